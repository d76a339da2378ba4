"""What the private scalers share: parameters, checks, account, and transforming in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise.estimators.parameters import check_size, number_pair
from skdpnoise.estimators.private_fit import PrivateFitMixin, as_bounds, warn_last
from skdpnoise.estimators.tables import read_table, survivable
from skdpnoise.mechanisms import noise_options
from skdpnoise.privacy import LossBudget, PureLoss
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.queries.ranges import STEPS, stage_losses
from skdpnoise.sampling import random_words

__all__ = ["PrivateScaler", "check_quantile_range"]


@shared_texts
class PrivateScaler(PrivateFitMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer of single columns whose statistics are released privately."""

    noise: str
    feature_bounds: Any
    copy: bool
    random_state: Any
    n_features_in_: int
    # Returns the noise and the loss that the mechanism of the statistics shares out.
    _budget: ClassVar[Callable[..., tuple[str, LossBudget]]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateFitMixin._parameter_constraints,
        "noise": [StrOptions(set(noise_options(adaptive=True)))],
        "feature_bounds": [None, tuple, list, np.ndarray],
        "copy": ["boolean"],
    }

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        """Release the statistics of private data, spending the guarantee.

        Large data are read by as many threads as numba may use (the environment variable
        ``NUMBA_NUM_THREADS``); no result depends on their number.

        Parameters
        ----------
        %(fits: X, y, groups, **params)s

        Returns
        -------
        self : object

        Raises
        ------
        %(fits: ValueError, BudgetExceededError, TypeError)s
        """
        with self._private_fit(groups, params) as account:
            self._check_own_params()
            X = read_table(self, X, ensure_min_samples=2)
            check_size(self, *X.shape)
            rows = self._grouped(groups, len(X))
            bounds = as_bounds(self.feature_bounds, X.shape[1], "feature_bounds", self)
            counts = self.adjacency == "add_remove"
            release: dict[str, Any] = {"adjacency": self.adjacency, "charge": account.charge}
            released = self._released(bounds)
            if released.any():
                searches = not np.isfinite(bounds[:, released]).all()
                noise, budget = self._budget(
                    self.noise,
                    account.guarantee,
                    int(released.sum()),
                    self.adjacency,
                    STEPS if searches else 1,
                    account.rows_per_group or 1,
                )
                release |= {"noise": noise, "guarantee": budget}
                if searches or counts:
                    # Squares add, so that stages would say no more.
                    stages = [budget]
                    if isinstance(budget, PureLoss):
                        stages = stage_losses(budget, counts=counts, searches=searches)
                    account.spend(stages, noise)
                # else there is one mechanism, which says best what it costs
            rng = release["random_state"] = random_words(self.random_state)
            (X,) = rows.keep(rng, X)
            fitted = self._statistics(X, bounds, release)
            if counts:
                account.n_records = fitted.get("n_samples_seen_")
            report = account.report(type(self).__name__, secure=rng.secure, empty=True)
            for name, value in {**fitted, "privacy_": report}.items():
                setattr(self, name, value)
        return self

    def _check_own_params(self) -> None:
        """Check what the constraints cannot say."""

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        """Return of which columns something is released."""
        return np.ones(bounds.shape[1], dtype=bool)

    @abstractmethod
    def _statistics(
        self, X: np.ndarray, bounds: np.ndarray, release: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the fitted attributes; all but public facts must come from charged releases."""

    def transform(self, X: Any) -> Any:
        """Subtract the centres and divide by the scales; nothing is clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            In units of the scales; float32 stays float32.
        """
        return self._shift_and_divide(X)

    def inverse_transform(self, X: Any) -> Any:
        """Undo :meth:`transform`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What :meth:`transform` returns.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            In the user's units.
        """
        return self._multiply_and_shift(X)

    @abstractmethod
    def _steps(self) -> tuple[Any, Any]:
        """Return the shift and the scale of every column; None leaves out a step."""

    def _shift_and_divide(self, X: Any) -> np.ndarray:
        X, (shift, scale) = self._checked(X)
        with np.errstate(all="ignore"):  # the rows may be those of a fit, in a pipeline
            if shift is not None:
                X -= shift
            if scale is not None:
                X /= scale
        return survivable(X)

    def _multiply_and_shift(self, X: Any) -> np.ndarray:
        X, (shift, scale) = self._checked(X)
        with np.errstate(all="ignore"):
            if scale is not None:
                X *= scale
            if shift is not None:
                X += shift
        return survivable(X)

    def _checked(self, X: Any) -> tuple[np.ndarray, tuple[Any, Any]]:
        check_is_fitted(self)
        steps = self._steps()
        return read_table(self, X, reset=False, copy=self.copy, force_writeable=True), steps

    def _warn(self, lost: np.ndarray, what: str) -> None:
        if lost.any():
            warn_last(
                f"{type(self).__name__} {what} {np.count_nonzero(lost)} of {lost.size} columns: "
                f"each is constant, or the noise at epsilon={self.epsilon:g} hides its scale. More "
                "records, a larger epsilon or closer public bounds (feature_bounds) would help."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_quantile_range(estimator: Any) -> tuple[float, float]:
    """Return the parameter as two probabilities, or say what is wrong with it."""
    expected = "a pair of percentages with 0 <= low < high <= 100"
    low, high = number_pair(estimator, "quantile_range", expected)
    if not 0.0 <= low < high <= 100.0:
        raise ValueError(
            f"The 'quantile_range' parameter of {type(estimator).__name__} must be {expected}. Got "
            f"{estimator.quantile_range!r} instead."
        )
    return low / 100.0, high / 100.0
