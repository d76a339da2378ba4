"""Poisson regression: its model without noise, what it refuses, and what it predicts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score

from skdpnoise import DPPoissonRegressor
from skdpnoise.linear_model._scaling import Rate, Standardisation
from tests._register import Forbidden, said

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

SECRET = -123.456


def counts(n=20_000, p=3, mean=3.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * [10.0, 1.0, 1e-3][:p] + 5.0
    y = rng.poisson(mean * np.exp(0.03 * X[:, 0] - 0.4 * (X[:, 1] - 5.0)) / 1.25)
    return X, y


@pytest.mark.parametrize("bounds", [None, (0.0, 1000.0), (-5.0, 100.0)], ids=str)
@pytest.mark.parametrize("mean", [0.5, 3.0, 40.0])
def test_with_much_budget_it_is_the_model_of_scikit_learn(bounds, mean):
    X, y = counts(mean=mean)
    model = DPPoissonRegressor(1e4, 0.1, target_bounds=bounds, n_passes=20, random_state=0)
    model.fit(X, y)
    scaled = PoissonRegressor(alpha=0.0, tol=1e-8).fit((X - 5.0) / [10.0, 1.0, 1e-3], y)
    assert_allclose(model.coef_ * [10.0, 1.0, 1e-3], scaled.coef_, atol=0.02)
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.03)
    best = scaled.score((X - 5.0) / [10.0, 1.0, 1e-3], y)
    assert model.score(X, y) == pytest.approx(best, abs=0.005)
    assert model.score(X, y) == d2_tweedie_score(y, model.predict(X), power=1)


def test_the_model_does_not_depend_on_the_unit_of_the_target():
    X, y = counts()
    few = DPPoissonRegressor(100.0, target_bounds=(0, 50), random_state=0).fit(X, y)
    many = DPPoissonRegressor(100.0, target_bounds=(0, 50 * 1024.0), random_state=0)
    many.fit(X, 1024.0 * y)
    assert_allclose(many.coef_, few.coef_, rtol=1e-6, atol=1e-9)
    assert many.intercept_ - few.intercept_ == pytest.approx(np.log(1024.0))


def test_negative_targets_are_refused_before_anything_is_spent_and_not_shown():
    X, y = counts(100)
    y = y.astype(float)
    y[7] = SECRET
    with pytest.raises(ValueError, match="DPPoissonRegressor needs counts") as caught:
        DPPoissonRegressor(ledger=Forbidden()).fit(X, y)
    assert "123" not in said(caught.value)


@pytest.mark.parametrize("bounds", [(-2.0, -1.0), (-1.0, 0.0)])
def test_bounds_without_positive_numbers_are_refused(bounds):
    with pytest.raises(ValueError, match=r"'target_bounds' parameter .* must end above 0"):
        DPPoissonRegressor(target_bounds=bounds, ledger=Forbidden()).fit(*counts(100))


def test_the_target_is_clipped_to_its_public_bounds():
    X, y = counts(2000)
    fits = [
        DPPoissonRegressor(target_bounds=(1.0, 6.0), random_state=0).fit(X, target)
        for target in (y, np.clip(y, 1, 6), np.where(y > 6, y * 1000, y))
    ]
    assert len({model.coef_.tobytes() for model in fits}) == 1


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.001, 0.1])
@pytest.mark.parametrize("unit", [0.0, 1e-90, 1.0, 1e90])
def test_predictions_are_positive_and_finite_whatever_the_data_are(epsilon, unit, fit_intercept):
    X, y = counts(500)
    for seed in range(2):
        model = DPPoissonRegressor(epsilon, fit_intercept=fit_intercept, random_state=seed)
        model.fit(X, y * unit)
        predicted = model.predict(np.vstack([X, 1e300 * X, -1e300 * X]))
        assert np.isfinite(predicted).all()
        assert (predicted > 0.0).all()


def test_without_an_intercept_a_row_of_zeros_has_the_rate_one():
    X, y = counts(2000)
    model = DPPoissonRegressor(10.0, fit_intercept=False, random_state=0).fit(X, y)
    assert model.intercept_ == 0.0
    assert_allclose(model.predict(np.zeros((1, 3))), 1.0)


def test_an_intercept_moves_by_what_makes_up_for_a_mean_residual():
    facts = (np.array([value]) for value in (2.0, 4.0, True, 3.0))
    rate = Rate(np.zeros(1), Standardisation(*facts))
    y, scores = np.array([1.0, 4.0, 7.0]), np.zeros(3)
    excess = rate.residuals(y, scores).mean()  # the mean is 4, and predicted is 2: too far
    assert excess == pytest.approx((4.0 - 2.0) / 4.0)
    assert rate.shift(excess) == pytest.approx(np.log(2.0))
    assert rate.shift(0.1) == pytest.approx(np.log(2.0 / (2.0 - 0.4)))
    assert rate.shift(-50.0) == pytest.approx(-np.log(2.0))
    assert rate.units == (np.log(2.0), 1.0)


@pytest.mark.slow
def test_visits_to_doctors_are_predicted_nearly_as_well_as_without_privacy():
    benchmark = pytest.importorskip("benchmarks.poisson")
    pytest.importorskip("statsmodels")
    X, y = benchmark.load()
    table = np.array([benchmark.scores(X, y, split, (1.0,)) for split in range(11)])
    private, *public = np.median(table, axis=0)
    assert private >= max(public) - benchmark.MOST_LOST
