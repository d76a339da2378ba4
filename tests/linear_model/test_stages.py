"""The stages of a fit: what each is handed, and what it draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from skdpnoise.linear_model._descent import GAIN, RESIDUALS, plan_descent

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPLassoPath,
    DPLogisticCD,
    DPPoissonRegressor,
)
from skdpnoise.kernels import LOGISTIC, SQUARED
from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import split_budget
from skdpnoise.linear_model._records import Settings
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sampling import SeededWords
from tests.linear_model._public import public_data

ESTIMATORS = [DPCoordinateDescentRegressor, DPLogisticCD, DPPoissonRegressor]


class Noted(SeededWords):
    """Words that note how many were taken."""

    taken = 0

    def take(self, n):
        self.taken += n
        return super().take(n)


def plan_of(estimator, used, n_outputs=1, n_samples=2000.0):
    settings, used = Settings.of(estimator), np.asarray(used)
    bounds = np.tile([[-1.0], [1.0]], used.size)
    target_bounds = bounds[:, :1] if hasattr(estimator, "target_bounds") else None
    account = Account(PrivacyGuarantee(estimator.epsilon, estimator.delta))
    data = public_data(bounds, target_bounds, n_outputs)
    budget = split_budget(settings, account, data)
    return plan_descent(settings, used, n_outputs, n_samples, budget.for_records(n_samples))


def test_settings_hold_what_an_estimator_has_and_defaults_for_the_rest():
    model = DPLogisticCD(alpha=0.5, clip=2.0, fit_intercept=False, n_jobs=3)
    settings = Settings.of(model)
    assert (settings.owner, settings.loss, settings.last) == ("DPLogisticCD", LOGISTIC, GAIN)
    assert (settings.alpha, settings.clip, settings.n_jobs) == (0.5, 2.0, 3)
    assert settings.fit_intercept is False and settings.row_norm == "auto"
    path = Settings.of(DPLassoPath(row_norm=2.0))
    assert (path.row_norm, path.n_passes, path.clip) == (2.0, "auto", "auto")
    assert (path.loss, path.last) == (SQUARED, RESIDUALS)
    # A change of the estimator after its settings were read changes nothing.
    model.set_params(clip=9.0)
    assert settings.clip == 2.0


@pytest.mark.parametrize("Estimator", ESTIMATORS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_plan_draws_noise_for_every_update_and_a_fresh_order_for_every_pass(Estimator, n_outputs):
    plan = plan_of(Estimator(n_passes=40), [True, False, True, True, True], n_outputs)
    draws = plan.draw(SeededWords(0))
    visited = [0, 2, 3, 4, 5]  # the features that are used, and the intercept
    assert draws.noise.shape == (40, n_outputs * len(visited))
    assert (np.sort(draws.order, axis=1) == visited).all()
    assert len({tuple(order) for order in draws.order.tolist()}) > 20
    again = plan.draw(SeededWords(0))
    assert_array_equal(again.order, draws.order)
    assert_array_equal(again.noise, draws.noise)


@pytest.mark.parametrize("Estimator", [DPCoordinateDescentRegressor, DPLogisticCD])
def test_what_is_last_has_noise_of_its_own_and_where_nothing_is_last_none(Estimator):
    with_intercept = plan_of(Estimator(0.3), [True, True])
    assert with_intercept.last is not None
    assert len({int(with_intercept.draw(SeededWords(seed)).last[0]) for seed in range(5)}) == 5
    without = plan_of(Estimator(0.3, fit_intercept=False), [True, True])
    assert without.last is None and without.draw(SeededWords(0)).last == 0
    assert (np.sort(without.draw(SeededWords(0)).order, axis=1) == [0, 1]).all()
    assert plan_of(DPPoissonRegressor(), [True, True]).last is None


def test_without_features_nothing_is_drawn_but_for_what_is_last():
    words = Noted(0)
    plan = plan_of(DPLogisticCD(), [False, False])
    draws = plan.draw(words)
    assert words.taken == 0
    assert draws.noise.shape == draws.order.shape == (1, 0)
    regression = plan_of(DPCoordinateDescentRegressor(), [False, False])
    assert regression.last is not None and regression.draw(words).noise.size == 0
    assert words.taken > 0
