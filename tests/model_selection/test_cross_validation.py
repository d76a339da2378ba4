"""Cross-validation under one guarantee: what a record pays, what leaves, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPLogisticCD,
    DPStandardScaler,
    PrivacyGuarantee,
    PrivacyLedger,
)
from skdpnoise.accounting.limits import ApproximateBudget, as_loss
from skdpnoise.accounting.session import Session
from skdpnoise.inspection import audit
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.metrics.scoring import BITS, SCORINGS
from skdpnoise.model_selection import _cross_validation, _runs, dp_cross_validate
from skdpnoise.model_selection._strategies import Folds
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests.contracts._register import Notebook
from tests.model_selection._searches import LABELS, SCORE, Untouched, X, rows_at

pytestmark = pytest.mark.usefixtures("the_same_words")


MODEL = DPLogisticCD(feature_bounds=(-1.0, 1.0))
LINE = DPCoordinateDescentRegressor(feature_bounds=(-1.0, 1.0), target_bounds=(-2.0, 2.0))
RNG = np.random.default_rng(0)
MANY = RNG.uniform(-1.0, 1.0, size=(20_000, 3))
TARGET = MANY[:, 0] + 0.3 * RNG.normal(size=20_000)
adjacencies = pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])


@each_value(1)
@pytest.mark.parametrize("k", [2, 3, 5, 10])
@pytest.mark.parametrize("total", [PureLoss(1.0), GaussianLoss(0.3), ApproximateBudget(1.0, 1e-6)])
def test_a_record_pays_for_all_models_but_one_and_for_one_score(total, k):
    strategy = Folds.within(total, k)
    if isinstance(total, ApproximateBudget):
        parts = [strategy.fit_budget] * (k - 1)
        assert sum(one.delta for one in parts) <= total.delta
        spent = sum(one.epsilon for one in parts) + strategy.choice_budget.epsilon(0.0)
        assert 0.999 < spent <= total.epsilon
        return
    spent = as_loss(strategy.fit_budget).compose(k - 1) + strategy.choice_budget
    assert 0.999 * total.epsilon(1e-6) < spent.epsilon(1e-6) <= total.epsilon(1e-6) * (1 + 1e-9)


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_every_record_is_in_all_training_sets_but_one_and_scored_once(scoring, monkeypatch):
    fitted, scored = [], []
    fit, losses = _runs.SearchProblem.fitted, _runs.SearchProblem.losses

    def noted_fit(self, priced, rows=None):
        fitted.append(rows_at(self, self.parts.train, X))
        return fit(self, priced, rows)

    def noted_losses(self, models):
        scored.append(rows_at(self, self.parts.validation, X))
        return losses(self, models)

    monkeypatch.setattr(_runs.SearchProblem, "fitted", noted_fit)
    monkeypatch.setattr(_runs.SearchProblem, "losses", noted_losses)
    dp_cross_validate(MODEL, X, LABELS, cv=4, scoring=scoring)
    times = np.bincount(np.concatenate(scored), minlength=len(X))
    used = times > 0
    assert times.max() == 1
    assert np.bincount(np.concatenate(fitted), minlength=len(X))[used].tolist() == [3] * used.sum()
    for train, test in zip(fitted, scored, strict=True):
        assert not set(train) & set(test)
        assert sorted([*train, *test]) == np.flatnonzero(used).tolist()
    # Shares of labels come from records that are in no fold: a tenth of 300, as chance has it.
    assert (0 < (~used).sum() < 65) if scoring == "roc_auc" else used.all()
    assert 25 < min(map(len, scored)) <= max(map(len, scored)) < 130


def test_with_the_same_coins_a_record_more_is_in_one_fold_only():
    seen = []

    class Noted(_cross_validation._CrossValidation):
        def _divided(self, *args):
            parts = super()._divided(*args)
            seen.append([parts.division.at(fold).tables()["X"][:, 0] for fold in parts.train])
            raise Stopped

    for n in (299, 300):
        asked = Noted(MODEL, cv=4, random_state=0)
        with pytest.raises(Stopped):
            asked.fit(X[:n], LABELS[:n])
    few, many = seen
    assert sum(len(more) - len(less) for less, more in zip(few, many, strict=True)) == 1
    for less, more in zip(few, many, strict=True):
        np.testing.assert_array_equal(more[: less.size], less)


class Stopped(Exception):
    """Ends a fit before anything is fitted."""


@each_value(1)
@pytest.mark.slow
@adjacencies
@pytest.mark.parametrize(
    ("model", "y", "scoring"),
    [
        (DPLogisticCD(feature_bounds=(-1.0, 1.0), classes=["no", "yes"]), LABELS, "accuracy"),
        (LINE, SCORE, "neg_root_mean_squared_error"),
    ],
    ids=["labels", "numbers"],
)
def test_with_frozen_noise_a_cross_validation_of_neighbours_is_the_same(
    model, y, scoring, adjacency
):
    estimator = type(model)(**model.get_params() | {"adjacency": adjacency})
    asked = _cross_validation._CrossValidation(
        estimator, cv=3, scoring=scoring, adjacency=adjacency
    )
    report = audit(asked, X[:100], y[:100], method="replay", random_state=0)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORINGS)
def test_scores_are_near_those_of_the_models_that_are_returned(name):
    regression = SCORINGS[name].needs_target
    y = TARGET if regression else np.where(TARGET > 0.3, "yes", "no")
    model = LINE if regression else MODEL
    found = dp_cross_validate(
        model, MANY, y, cv=3, scoring=name, epsilon=8.0, return_estimator=True, random_state=0
    )
    exact = [get_scorer(name)(one, MANY, y) for one in found.estimator]
    np.testing.assert_allclose(found.test_score, exact, atol=0.03)
    assert found.scoring == name
    assert found.mean == pytest.approx(found.test_score.mean())
    assert (found.standard_error > 0.0).all()
    assert found.mean_standard_error == pytest.approx(np.sqrt((found.standard_error**2).sum()) / 3)
    assert f"{found.mean:.4f}" in str(found)
    assert "NOT PRIVATE" in str(found)
    for one in found.estimator:
        assert one.privacy_ is found.privacy


@each_value(1)
@pytest.mark.slow
@adjacencies
@pytest.mark.parametrize("budget", [PureLoss(0.3), GaussianLoss(0.1)])
def test_standard_errors_cover_the_noise_of_a_mean(adjacency, budget):
    # 91 to 99 % of 400: five standard deviations of that share on either side.
    wrong = np.count_nonzero(np.random.default_rng(0).random(2000) < 0.3)
    loss = wrong << BITS, 2000
    sessions = [Session(SeededWords(seed), adjacency) for seed in range(400)]
    drawn = [_runs.released_mean(loss, budget, session) for session in sessions]
    mean, error = np.array(drawn).T
    off = mean - wrong / 2000
    assert 0.9 < np.mean(np.abs(off) <= 1.96 * error) < 0.995
    assert np.std(off) == pytest.approx(error.mean(), rel=0.2)


def test_it_is_charged_once_for_everything_and_refused_beyond_the_budget():
    ledger = Notebook()
    found = dp_cross_validate(MODEL, X, LABELS, cv=3, epsilon=0.7, delta=1e-7, ledger=ledger)
    assert len(ledger.charges) == 1
    assert ledger.charges[0]["guarantee"] == (0.7, 1e-7)
    assert found.privacy.guarantee == PrivacyGuarantee(0.7, 1e-7)
    assert found.estimator is None
    budget = PrivacyLedger("people", 0.7, 1e-5, storage="memory")
    with pytest.raises(BudgetExceededError):
        dp_cross_validate(MODEL, X, LABELS, cv=3, ledger=budget)
    assert budget.charges() == ()


def test_nothing_exact_is_returned():
    found = dp_cross_validate(MODEL, X, LABELS, cv=3, random_state=0)
    assert set(vars(found)) == {
        *("scoring", "test_score", "standard_error", "_report", "_digests", "estimator")
    }
    again = dp_cross_validate(MODEL, X, LABELS, cv=3, random_state=1)
    assert set(found.test_score).isdisjoint(again.test_score)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_pipelines_and_groups_are_taken(delta):
    noise = {"noise": "iid_laplace"} if delta == 0.0 else {}
    steps = [("scale", DPStandardScaler(**noise)), ("model", DPLogisticCD(**noise))]
    groups = np.repeat(np.arange(100), 3)
    found = dp_cross_validate(
        Pipeline(steps), X, LABELS, groups=groups, rows_per_group=2, cv=2, delta=delta
    )
    assert found.privacy.unit == "group"
    assert found.privacy.total.epsilon(delta) <= 1.0 + 1e-9


def test_a_fit_that_fails_leaves_no_result_and_no_value(monkeypatch):
    def fails(self, priced, rows=None):
        raise ValueError("a value of a record")

    monkeypatch.setattr(_runs.SearchProblem, "fitted", fails)
    ledger = Notebook()
    with pytest.raises(_runs.SearchStopped) as stopped:
        dp_cross_validate(MODEL, X, LABELS, cv=3, ledger=ledger)
    assert "value of a record" not in str(stopped.value)
    assert len(ledger.charges) == 1


REFUSED = [
    ({"cv": StratifiedKFold(3)}, TypeError, "StratifiedKFold"),
    ({"cv": None}, TypeError, "'cv'"),
    ({"cv": [([0], [1])]}, TypeError, "'cv'"),
    ({"cv": 1}, ValueError, "'cv'"),
    ({"cv": True}, TypeError, "'cv'"),
    ({"cv": 301}, ValueError, "'cv'"),
    ({"scoring": "r2"}, ValueError, "'scoring'"),
    ({"scoring": "f1"}, ValueError, "'scoring'"),
    ({"epsilon": 0.0}, ValueError, "'epsilon'"),
    ({"adjacency": "add_remove"}, ValueError, "'adjacency'"),
    ({"rows_per_group": 2}, ValueError, "'rows_per_group'"),
    ({"public": ["nothing"]}, ValueError, "'public'"),
]


@pytest.mark.parametrize(("given", "error", "named"), REFUSED)
def test_what_cannot_be_done_is_refused_before_the_charge(given, error, named):
    with pytest.raises(error, match=named):
        dp_cross_validate(MODEL, X, LABELS, ledger=Untouched(), **{"cv": 3} | given)


def test_the_area_is_refused_where_the_number_of_records_is_private():
    model = DPLogisticCD(feature_bounds=(-1.0, 1.0), adjacency="add_remove")
    with pytest.raises(ValueError, match="dp_cross_validate needs adjacency='replace_one'"):
        dp_cross_validate(
            model, X, LABELS, scoring="roc_auc", adjacency="add_remove", ledger=Untouched()
        )
