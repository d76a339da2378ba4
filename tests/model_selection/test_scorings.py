"""Searches by every score: what they state is near the truth, and what has no proof is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from skdpnoise import DPCoordinateDescentRegressor, DPGridSearchCV, DPLogisticCD
from skdpnoise.inspection import audit
from skdpnoise.metrics.scoring import SCORINGS
from skdpnoise.privacy import GaussianLoss, PureLoss
from tests._cases import each_value
from tests.model_selection._searches import Untouched

pytestmark = pytest.mark.usefixtures("the_same_words")


RNG = np.random.default_rng(0)
N = 30_000
X = RNG.uniform(-1.0, 1.0, size=(N, 3))
SCORE = X[:, 0] + 0.3 * RNG.normal(size=N)
LABELS = np.where(SCORE > 0.7, "yes", "no")
MODELS = {
    False: (DPLogisticCD(feature_bounds=(-1.0, 1.0)), LABELS),
    True: (DPCoordinateDescentRegressor(feature_bounds=(-1.0, 1.0)), SCORE),
}


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["repeated", "noisy_max", "auto"])
@pytest.mark.parametrize("name", SCORINGS)
def test_a_search_finds_the_better_candidate_and_its_score(name, strategy):
    model, y = MODELS[SCORINGS[name].needs_target]
    search = DPGridSearchCV(
        model,
        {"alpha": [0.0, 30.0]},
        epsilon=8.0,
        scoring=name,
        strategy=strategy,
        validation_fraction=0.3,
        random_state=1,
    ).fit(X, y)
    assert search.best_params_["alpha"] == 0.0
    exact = get_scorer(name)(search.best_estimator_, X, y)
    assert search.best_score_ == pytest.approx(exact, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_balanced_accuracy_is_for_both_neighbours_and_many_labels(adjacency):
    y = np.digitize(SCORE, [-0.5, 0.5])
    model = DPLogisticCD(feature_bounds=(-1.0, 1.0), adjacency=adjacency)
    search = DPGridSearchCV(
        model, {"alpha": [0.0, 0.01]}, scoring="balanced_accuracy", epsilon=8.0, adjacency=adjacency
    ).fit(X, y)
    exact = get_scorer("balanced_accuracy")(search.best_estimator_, X, y)
    assert search.best_score_ == pytest.approx(exact, abs=0.06)


def test_the_area_is_refused_where_the_number_of_pairs_is_private_or_labels_are_more_than_two():
    for given, y, named in (
        ({"adjacency": "add_remove"}, LABELS, "adjacency='replace_one'"),
        ({}, np.digitize(SCORE, [-0.5, 0.5]), "two labels"),
    ):
        model = DPLogisticCD(feature_bounds=(-1.0, 1.0), **given)
        search = DPGridSearchCV(
            model, {"alpha": [0.0, 1.0]}, scoring="roc_auc", ledger=Untouched(), **given
        )
        with pytest.raises(ValueError, match=named):
            search.fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_shares_of_labels_are_bought_within_the_budget_of_other_records(delta, monkeypatch):
    from skdpnoise.model_selection import _runs

    met = []
    genuine = _runs._release_shares

    def noted(problem, y, budget, noise):
        met.append((y.n_rows, budget))
        return genuine(problem, y, budget, noise)

    monkeypatch.setattr(_runs, "_release_shares", noted)
    noise = "iid_laplace" if delta == 0.0 else "auto"
    search = DPGridSearchCV(
        DPLogisticCD(feature_bounds=(-1.0, 1.0), noise=noise),
        {"alpha": [0.0, 1.0]},
        scoring="balanced_accuracy",
        strategy="noisy_max",
        delta=delta,
    ).fit(X, LABELS)
    size, budget = met[-1]
    # Each of 30,000 records by a coin of its own: six standard deviations to either side.
    assert abs(size - N // 10) < 6.0 * np.sqrt(0.09 * N)
    assert isinstance(budget, PureLoss if delta == 0.0 else GaussianLoss)
    assert budget.epsilon(delta) <= 1.0 + 1e-9
    assert search.privacy_.total.epsilon(delta) <= 1.0 + 1e-9


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["repeated", "noisy_max"])
@pytest.mark.parametrize("name", ["balanced_accuracy", "roc_auc"])
def test_with_frozen_noise_a_search_of_neighbours_is_the_same(name, strategy):
    search = DPGridSearchCV(
        DPLogisticCD(feature_bounds=(-1.0, 1.0), classes=["no", "yes"]),
        {"alpha": [0.0, 0.1]},
        scoring=name,
        strategy=strategy,
    )
    report = audit(search, X[:200], LABELS[:200], method="replay", random_state=0)
    assert report.passed, str(report)
