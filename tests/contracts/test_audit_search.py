"""A whole search under attack: hundreds of searches on neighbouring data, and broken ones caught.

The bound on epsilon exceeds the true one with probability at most FALSE_ALARM = 1e-9 over the
choice of the seeds (``tests/_audit.py``). What is looked at is all that a search publishes: the
winner's numbers, its parameters and its score.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from benchmarks._remembered import remembered
from skdpnoise import DPCoordinateDescentRegressor, DPGridSearchCV, DPLogisticCD
from skdpnoise.model_selection import _runs, _splits
from skdpnoise.model_selection._runs import SearchProblem
from skdpnoise.model_selection._splits import Parts
from skdpnoise.privacy import GaussianLoss, TruncatedNegativeBinomial
from tests._audit import audit

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

RUNS = 120  # on each of the two data sets
N = 60
GUARANTEE = {"epsilon": 1.0, "delta": 0.2}
PURE = {"epsilon": 1.5, "delta": 0.0}
ONE = {"n_passes": 1, "clip": 0.2, "feature_bounds": (-2.0, 2.0), "fit_intercept": False}
SHORT = TruncatedNegativeBinomial(eta=1.0, gamma=0.3)
ALPHAS = {"alpha": [0.0, 0.05, 0.1]}
CLASSIFIER = DPLogisticCD(**ONE)
GRAM = DPCoordinateDescentRegressor(
    solver="gram",
    row_norm=0.5,
    fit_intercept=False,
    feature_bounds=(-2.0, 2.0),
    target_bounds=(-2.0, 2.0),
)

SEARCHES = {
    "repeated, gaussian, replace one": DPGridSearchCV(
        CLASSIFIER, ALPHAS, strategy="repeated", repetitions=SHORT, **GUARANTEE
    ),
    "repeated, pure, add or remove": DPGridSearchCV(
        DPLogisticCD(**ONE, delta=0.0, adjacency="add_remove"),
        ALPHAS,
        strategy="repeated",
        repetitions=SHORT,
        adjacency="add_remove",
        **PURE,
    ),
    "noisy max, gaussian, add or remove": DPGridSearchCV(
        DPLogisticCD(**ONE, adjacency="add_remove"),
        ALPHAS,
        strategy="noisy_max",
        refit=False,
        adjacency="add_remove",
        **GUARANTEE,
    ),
    "noisy max with refit, pure, replace one": DPGridSearchCV(
        DPLogisticCD(**ONE, delta=0.0), ALPHAS, strategy="noisy_max", refit=True, **PURE
    ),
    "one release, judged by its own records": DPGridSearchCV(
        GRAM,
        {"alpha": [0.01, 0.1]},
        **GUARANTEE,
    ),
    "one release": DPGridSearchCV(
        GRAM,
        {"alpha": [0.01, 0.1]},
        strategy="release",
        validation_fraction=0.5,
        **GUARANTEE,
    ),
}


def neighbours(search):
    """Labels of chance on two points, and one record that agrees with a model, or is against it."""
    X = np.tile([[-1.0], [1.0]], (N // 2, 1))
    y = np.tile([-1.0, 1.0, 1.0, -1.0], N // 4)
    if search.adjacency == "add_remove":
        return (X, y), (np.vstack([X, [[2.0]]]), np.append(y, 1.0))
    X[0] = 2.0
    return (X, np.r_[-1.0, y[1:]]), (X, np.r_[1.0, y[1:]])


def published(search):
    """All numbers that leave a search."""
    best = search.best_estimator_
    return np.r_[
        best.coef_.ravel(), best.intercept_, search.best_score_, *search.best_params_.values()
    ]


def parts(records, where):
    """Divide records so that the one that differs, the first or the last, is where it is wanted.

    The guarantee holds for every outcome of the coins, so that an attack may know them.
    """
    rows = np.arange(records.rows.n_rows)
    middle = (rows >= N // 4) & (rows < 3 * N // 4)  # the record that differs is not among them
    scored = ~middle if where == "validation" else middle
    return Parts(records.rows.at_places(scored.astype(np.intp), 2), (0,), (1,))


def searches(search, where, n_runs=RUNS):
    """What is published by many searches on each of two neighbouring data sets."""
    with remembered(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_splits, "divide", lambda records, *args: parts(records, where))
        # Checks of parameters and data take most of the time of a tiny search.
        patch.setattr(_runs.SearchProblem, "read", lambda *args: None)
        search = clone(search)
        return [
            np.array(
                [
                    published(search.set_params(random_state=2 * run + side).fit(X, y))
                    for run in range(n_runs)
                ]
            )
            for side, (X, y) in enumerate(neighbours(search))
        ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "where"),
    [
        *((name, "train") for name in SEARCHES),
        *((name, "validation") for name in list(SEARCHES)[:1]),
    ],
)
def test_hundreds_of_searches_on_neighbours_do_not_refute_the_guarantee(name, where):
    search = SEARCHES[name]
    assert audit(*searches(search, where), search.delta) <= search.epsilon


@pytest.mark.slow
def test_a_search_that_publishes_nearly_exact_scores_is_caught(monkeypatch):
    mean = _runs.released_mean
    hardly_noisy = GaussianLoss(50.0)
    monkeypatch.setattr(
        _runs, "released_mean", lambda losses, budget, *args: mean(losses, hardly_noisy, *args)
    )
    monkeypatch.setattr(SearchProblem, "fitted", constant_model)
    search = SEARCHES["noisy max, gaussian, add or remove"]
    assert audit(*searches(search, "validation"), search.delta) > search.epsilon


@pytest.mark.slow
def test_a_search_with_fits_that_cost_nothing_is_caught(monkeypatch):
    priced = SearchProblem.priced

    def generous(problem, estimator, budget):
        asking = priced(problem, estimator, budget)
        asking.estimator.set_params(epsilon=50.0)
        return asking

    monkeypatch.setattr(SearchProblem, "priced", generous)
    search = clone(SEARCHES["noisy max, gaussian, add or remove"])
    search.set_params(param_grid={"alpha": [0.0, 1e-6, 2e-6]})  # whichever is chosen, it tells
    with pytest.raises(RuntimeError, match="did not charge"):  # the cap does not allow it
        searches(search, "train", 1)
    monkeypatch.setattr(_runs, "give_limit", lambda model, limit: None)
    with pytest.raises(RuntimeError, match="did not charge"):  # nor are fits without one published
        searches(search, "train", 1)
    monkeypatch.setattr(_runs, "settle", lambda cap, model: None)
    assert audit(*searches(search, "train"), search.delta) > search.epsilon


def constant_model(problem, estimator, rows=None):
    """A model that says the same of every record, fitted once: all that is left is the score."""
    return CONSTANT


CONSTANT = DPLogisticCD(epsilon=50.0, random_state=0, **ONE).fit(
    np.tile([[-1.0], [1.0]], (500, 1)), np.tile([1.0, -1.0], 500)
)
