"""Private curves: those of scikit-learn but for noise, and stated errors that cover."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import roc_auc_score

from skdpnoise import metrics
from skdpnoise.accounting.session import Drawn
from skdpnoise.ledger import BudgetExceededError, PrivacyLedger
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from tests._cases import each_value
from tests.contracts._register import Notebook

RNG = np.random.default_rng(0)
N = 16_000
CHANCES = RNG.beta(0.7, 1.4, N)
LABELS = (RNG.random(N) < CHANCES**1.3).astype(int)
CURVES = {
    "ROC": metrics.private_roc_curve,
    "calibration": metrics.private_calibration_curve,
}
every_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
adjacencies = pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])


@adjacencies
def test_with_little_noise_rates_are_those_of_scikit_learn(adjacency):
    guarantee = PrivacyGuarantee(1e4, adjacency=adjacency)
    curve = metrics.private_roc_curve(LABELS, CHANCES, guarantee, random_state=0)
    inner = curve.thresholds[1:-1]
    for rates, label in ((curve.fpr, 0), (curve.tpr, 1)):
        exact = [np.mean(CHANCES[label == LABELS] >= least) for least in inner]
        np.testing.assert_allclose(rates[1:-1], exact, atol=1e-4)
        assert rates[0] == 0.0
        assert rates[-1] == 1.0
    assert curve.roc_auc == pytest.approx(roc_auc_score(LABELS, CHANCES), abs=1e-3)


@adjacencies
def test_with_little_noise_a_calibration_curve_is_that_of_scikit_learn(adjacency):
    guarantee = PrivacyGuarantee(1e4, adjacency=adjacency)
    curve = metrics.private_calibration_curve(LABELS, CHANCES, guarantee, n_bins=7, random_state=0)
    true, predicted = calibration_curve(LABELS, CHANCES, n_bins=7)
    np.testing.assert_allclose(curve.prob_true, true, atol=1e-3)
    np.testing.assert_allclose(curve.prob_pred, predicted, atol=1e-3)
    np.testing.assert_allclose(curve.count, np.histogram(CHANCES, 7, (0, 1))[0], atol=0.1)


@each_value(1)
@pytest.mark.slow
@every_curve
@adjacencies
def test_its_standard_errors_cover_what_noise_does(curve, adjacency):
    # Of 400 curves ±1.96 standard errors must hold a point in 90 to 99.5 %: five standard
    # deviations of that share on either side. Isotonic rates come nearer, never further away.
    guarantee = PrivacyGuarantee(0.5, 1e-6, adjacency)
    exact = curve(LABELS, CHANCES, PrivacyGuarantee(1e9), noise="iid_laplace", random_state=0)
    runs = [curve(LABELS, CHANCES, guarantee, random_state=seed) for seed in range(400)]
    pairs = [("prob_true", "standard_error")]
    if curve is metrics.private_roc_curve:
        pairs = [("fpr", "fpr_standard_error"), ("tpr", "tpr_standard_error")]
    for field, error in pairs:
        for place in (2, 4, 6) if field == "prob_true" else (15, 24, 30):
            off = np.array([getattr(one, field)[place] for one in runs])
            off -= getattr(exact, field)[place]
            told = np.array([getattr(one, error)[place] for one in runs])
            assert 0.9 < np.mean(np.abs(off) <= 1.96 * told) < (0.995 if len(pairs) == 1 else 1.01)
            assert np.std(off) == pytest.approx(told.mean(), rel=0.2)


@each_value(1)
@pytest.mark.slow
@every_curve
@adjacencies
def test_one_record_moves_the_release_by_what_is_declared_at_most(curve, adjacency, monkeypatch):
    met = []

    def noted(self, values):
        met.append((self.mechanism, np.asarray(values, dtype=np.float64)))
        return np.asarray(values, dtype=np.float64)

    monkeypatch.setattr(Drawn, "on", noted)
    guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency)
    rng = np.random.default_rng(0)
    y, chances = LABELS[:50].copy(), CHANCES[:50].copy()
    largest = np.zeros(3)
    for _ in range(300):
        met.clear()
        curve(y, chances, guarantee, random_state=0)
        if adjacency == "add_remove":
            curve(y[:-1], chances[:-1], guarantee, random_state=0)
        # Any value whatever, those at the ends of bins among them.
        odd = rng.choice([-np.inf, 0.0, 0.1, 0.3 - 1e-17, 0.3, 0.7, 1.0, 5.0, np.nan, rng.random()])
        y[-1], chances[-1] = rng.integers(3), odd
        if adjacency == "replace_one":
            curve(y, chances, guarantee, random_state=0)
        (mechanism, first), (_, second) = met
        moved, profile = np.abs(first - second), mechanism.sensitivity
        assert (moved <= profile.per_coordinate).all()
        found = np.array([moved.max(), moved.sum(), np.sqrt((moved**2).sum())])
        assert (found <= [1.0, profile.l1, profile.l2 * (1.0 + 1e-12)]).all()
        largest = np.maximum(largest, found)
    np.testing.assert_allclose(largest, [1.0, profile.l1, profile.l2])


@pytest.mark.usefixtures("the_same_words")
@every_curve
def test_it_is_charged_once_for_what_it_states(curve):
    ledger = Notebook()
    found = curve(LABELS, CHANCES, PrivacyGuarantee(0.5, 1e-6), ledger=ledger)
    assert len(ledger.charges) == 1
    assert ledger.charges[0]["guarantee"] == (0.5, 1e-6)
    assert found.privacy.delta(0.5) <= 1e-6
    budget = PrivacyLedger("people", 0.7, 1e-5, storage="memory")
    curve(LABELS, CHANCES, PrivacyGuarantee(0.5, 1e-6), ledger=budget)
    with pytest.raises(BudgetExceededError):
        curve(LABELS, CHANCES, PrivacyGuarantee(0.5, 1e-6), ledger=budget)


@each_value(1)
@every_curve
@pytest.mark.parametrize("budget", [PureLoss(0.5), GaussianLoss(0.3)])
def test_a_loss_is_spent_as_it_is(curve, budget):
    found = curve(LABELS, CHANCES, budget, adjacency="add_remove", random_state=0)
    assert found.privacy.epsilon(1e-6) <= budget.epsilon(1e-6) * (1.0 + 1e-9)
    with pytest.raises(ValueError, match="'adjacency'"):
        curve(LABELS, CHANCES, budget)


@pytest.mark.usefixtures("the_same_words")
@every_curve
def test_a_curve_says_where_it_comes_from(curve):
    found = curve(LABELS, CHANCES, PrivacyGuarantee(1.0))
    assert "not fitted to" in str(found)
    assert "1-DP, replace_one" in str(found)
    assert "NOT PRIVATE" not in str(found)
    same = curve(LABELS, CHANCES, PrivacyGuarantee(1.0), same_rows=True, random_state=0)
    assert "comes on top" in str(same)
    assert "NOT PRIVATE" in str(same)


@each_value(1)
@every_curve
@adjacencies
@pytest.mark.parametrize("n", [0, 1, 2])
def test_of_few_records_nothing_is_said_and_nothing_fails(curve, adjacency, n):
    guarantee = PrivacyGuarantee(0.1, adjacency=adjacency)
    for seed in range(5):
        found = curve([1] * n, [0.3] * n, guarantee, random_state=seed)
        if curve is metrics.private_calibration_curve:
            assert np.isnan(found.prob_true).sum() >= 8
        else:
            assert (np.diff(found.tpr) >= 0.0).all()
            assert (np.diff(found.fpr) >= 0.0).all()
            assert 0.0 <= found.roc_auc <= 1.0
            assert found.tpr_standard_error.max() == 1.0


WRONG = [
    (metrics.private_roc_curve, CHANCES[1:], {}, "'y_score'"),
    (metrics.private_roc_curve, CHANCES, {"bins": [0.5, 0.5]}, "'bins'"),
    (metrics.private_roc_curve, CHANCES, {"pos_label": [1]}, "'pos_label'"),
    (metrics.private_calibration_curve, CHANCES[1:], {}, "'y_prob'"),
    (metrics.private_calibration_curve, CHANCES, {"n_bins": 0}, "'n_bins'"),
    (metrics.private_calibration_curve, CHANCES, {"noise": "iid_discrete_laplace"}, "'noise'"),
]


@pytest.mark.parametrize(("curve", "scores", "given", "named"), WRONG)
def test_what_makes_no_curve_is_refused_before_the_charge(curve, scores, given, named):
    ledger = Notebook()
    with pytest.raises(ValueError, match=named):
        curve(LABELS, scores, PrivacyGuarantee(1.0), ledger=ledger, **given)
    assert ledger.charges == []


@each_value(1)
@pytest.mark.parametrize("make", [*CURVES.values(), metrics.private_roc_auc_score])
@adjacencies
def test_what_is_published_hangs_on_the_release_alone(make, adjacency, monkeypatch):
    released = np.random.default_rng(0).uniform(50.0, 100.0, size=200)

    def frozen(self, values):
        return released[: np.size(values)]

    monkeypatch.setattr(Drawn, "on", frozen)
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    there = slice(0, -1) if adjacency == "add_remove" else slice(0, None)
    others = np.append(CHANCES[:-1], 0.5 * CHANCES[-1])
    one = make(LABELS, CHANCES, guarantee, random_state=0)
    other = make(LABELS[there], others[there], guarantee, random_state=0)
    for field in one.__slots__:
        if field != "mechanism":
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
