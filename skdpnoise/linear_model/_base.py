"""What the private linear models share: parameters, the stored model, the linear function."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise.estimators.callbacks import collect_passes
from skdpnoise.estimators.private_fit import PrivateFitMixin
from skdpnoise.estimators.tables import read_table
from skdpnoise.ledger import PrivacyReport
from skdpnoise.linear_model._checks import as_bounds
from skdpnoise.linear_model._descent import DescentPlan, run_descent
from skdpnoise.linear_model._finish import centred, doubted, drawn_in
from skdpnoise.linear_model._scaling import Standardisation
from skdpnoise.mechanisms import noise_options
from skdpnoise.sampling import RandomWords
from skdpnoise.solvers import Loss

__all__ = ["PrivateLinearModel", "average_tail", "in_user_units", "units_of"]


class PrivateLinearModel(PrivateFitMixin, BaseEstimator):
    """What the private linear models have in common: parameters and the linear function."""

    feature_bounds: Any
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateFitMixin._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "noise": [StrOptions(set(noise_options(adaptive=True)))],
        "adjacency": [StrOptions({"replace_one", "add_remove"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "n_passes": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "clip": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "budget_growth": [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
        "feature_bounds": [None, tuple, list, np.ndarray],
        "error_weights": [StrOptions({"curvature", "uniform"}), "array-like"],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [None, Integral],
    }

    _output: int | slice = slice(None)  # regressors have one output and drop its axis

    def _bounds(self, n_features: int) -> np.ndarray:
        """Public (low, high) of the features, infinite where there are none."""
        return as_bounds(self.feature_bounds, n_features, "feature_bounds", self)

    def _solve(
        self,
        loss: Loss,
        X: np.ndarray,
        targets: Sequence[np.ndarray],
        features: Standardisation,
        plan: DescentPlan,
        noise: np.ndarray,
        words: RandomWords,
        y: np.ndarray,
        *,
        constant: np.ndarray,
        target: Standardisation | None = None,
        extra: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run the descent, telling callbacks of every pass; return the fitted attributes.

        `constant` holds the intercepts of the model that knows nothing of the features.
        """
        passes = run_descent(self, loss, X, targets, features, plan, noise, constant, words)
        center, scale = (0.0, 1.0) if target is None else units_of(target)
        model = partial(self._model, features=features, center=center, scale=scale, extra=extra)

        def finish(path: np.ndarray) -> np.ndarray:
            path = drawn_in(path, plan, constant)
            if target is None:
                return doubted(path, X, targets, features, plan, constant, words)
            if not target.used[0]:
                return path
            return centred(path, X, (y - center) / scale, features, plan, words)

        return model(collect_passes(self, passes, plan.n_passes, model, (X, y), finish))

    def _model(
        self,
        path: np.ndarray,
        features: Standardisation,
        center: float,
        scale: float,
        extra: dict[str, Any] | None,
    ) -> dict[str, Any]:
        """Return the fitted attributes, in the user's units.

        `path` has shape (n_passes, n_outputs, n_features + 1), in standard units; predictions are
        `center` plus `scale` times the linear function.
        """
        slopes, intercepts = in_user_units(path, features, center, scale)
        output = self._output
        return {
            "coef_": average_tail(slopes)[output],
            "intercept_": average_tail(intercepts)[output],
            "coef_path_": slopes[:, output],
            "intercept_path_": intercepts[:, output],
            "clip_range_": features.range,
            "n_passes_": len(path),
            "_standardised": (features, average_tail(path), center, scale),
            **(extra or {}),
        }

    _standardised: tuple[Standardisation, np.ndarray, float, float]

    def _linear(self, X: Any) -> np.ndarray:
        """Return the linear function, shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        # The same function as clip(X) @ coef_ + intercept_, without the cancellation that a column
        # far from zero brings.
        features, model, center, scale = self._standardised
        with np.errstate(all="ignore"):  # of rows far from those of the fit
            return center + scale * (features(X) @ model[:, :-1].T + model[:, -1])

    def _store(self, model: dict[str, Any], report: PrivacyReport) -> None:
        """Set the fitted attributes, all at once."""
        for name, value in {**model, "privacy_": report}.items():
            setattr(self, name, value)


def average_tail(path: np.ndarray) -> np.ndarray:
    """Return the mean of the last fifth of the iterates: post-processing, which costs nothing."""
    return path[-max(1, -(-len(path) // 5)) :].mean(axis=0)


def in_user_units(
    model: np.ndarray, features: Standardisation, center: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and intercepts from coefficients in standard units, the intercept last."""
    # a feature that is not used has coefficient 0, whatever its scale
    slopes = scale * model[..., :-1] / features.scale
    return slopes, center + scale * model[..., -1] - slopes @ features.center


def units_of(target: Standardisation) -> tuple[float, float]:
    """Return centre and scale of a target; one whose scale was not found is a constant."""
    return float(target.center[0]), float(target.used[0] * target.scale[0])
