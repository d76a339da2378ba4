"""Poisson regression by coordinate descent, with differential privacy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from skdpnoise.compose import register_private
from skdpnoise.compose.charged import is_computed
from skdpnoise.estimators.callbacks import CallbackSupportMixin
from skdpnoise.estimators.scores import QuietScoreMixin
from skdpnoise.linear_model._coordinate_descent import PrivateLinearModel
from skdpnoise.linear_model._scaling import Target, standardise_target
from skdpnoise.solvers import POISSON

__all__ = ["DPPoissonRegressor"]


class _Counts(Target):
    """Counts, read in units of their mean, the centre; the linear function is of logarithms."""

    __slots__ = ()

    @property
    def units(self):
        return float(np.log(self.scaling.center[0])), float(self.scaling.used[0])

    def widened(self):
        return self

    def __call__(self, outputs):
        return [values / self.scaling.center for values in outputs]

    def residuals(self, y, scores):
        return (y - self.scaling.center * POISSON.mean(scores)) / self.scaling.scale

    def shift(self, excess):
        # From the mean without it to the mean: no more than twice, or half.
        part = excess * self.scaling.scale[0] / self.scaling.center[0]
        return -np.log1p(-np.clip(part, -1.0, 0.5))


@register_private
class DPPoissonRegressor(CallbackSupportMixin, QuietScoreMixin, RegressorMixin, PrivateLinearModel):
    """TODO."""

    _parameter_constraints = PrivateLinearModel._parameter_constraints | {
        "target_bounds": [None, tuple, list, np.ndarray]
    }
    _loss, _metric = POISSON, staticmethod(partial(d2_tweedie_score, power=1))

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        *,
        noise="auto",
        adjacency="replace_one",
        alpha=0.0,
        l1_ratio=0.5,
        fit_intercept=True,
        n_passes="auto",
        clip="auto",
        budget_growth="auto",
        feature_bounds=None,
        target_bounds=None,
        error_weights="curvature",
        rows_per_group=1,
        ledger=None,
        random_state=None,
        n_jobs=None,
    ):
        self.epsilon, self.delta, self.noise, self.adjacency = epsilon, delta, noise, adjacency
        self.alpha, self.l1_ratio, self.fit_intercept = alpha, l1_ratio, fit_intercept
        self.n_passes, self.clip, self.budget_growth = n_passes, clip, budget_growth
        self.feature_bounds, self.target_bounds = feature_bounds, target_bounds
        self.error_weights, self.rows_per_group = error_weights, rows_per_group
        self.ledger, self.random_state, self.n_jobs = ledger, random_state, n_jobs

    def _outputs(self, y):
        _, bounds, public = super()._outputs(y)
        bounds[0] = np.maximum(bounds[0], 0.0)
        if not bounds[1] > 0.0:
            raise ValueError("")
        if (y < 0.0).any() and not is_computed("y", self):
            raise ValueError("")
        return [np.clip(y, *bounds)], bounds, public

    def _find_target(self, settings, run, data):
        always = replace(settings, fit_intercept=True)
        found, run = standardise_target(always, run, data.outputs[0], data.target_bounds)
        least = found.scale / (2.0 * run.n_samples)
        center = np.maximum(found.center, least) if self.fit_intercept else np.ones(1)
        return _Counts(np.zeros(1), replace(found, center=center)), run

    def _plan(self, settings, run, problem):
        scaling = problem.target.scaling
        spread = float(scaling.scale[0] / scaling.center[0])
        loss = replace(settings.loss, spread=spread)
        return super()._plan(replace(settings, loss=loss), run, problem)

    def predict(self, X):
        return np.exp(np.clip(self._linear(X)[:, 0], -700.0, 700.0))
