"""Scaling to an interval by public bounds, or by private low and high quantiles."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise.compose import register_private
from skdpnoise.estimators.parameters import number_pair
from skdpnoise.ledger import Ledger
from skdpnoise.preprocessing._base import PrivateScaler, check_quantile_range
from skdpnoise.privacy import Adjacency
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.queries import private_quantiles
from skdpnoise.queries.quantiles import quantiles_budget

__all__ = ["DPMinMaxScaler"]


@shared_texts
@register_private
@dataclass(eq=False, repr=False)
class DPMinMaxScaler(PrivateScaler):
    r"""Map public bounds, or a private low and high quantile, to an interval.

    .. math:: z_j = a + (b - a) (x_j - l_j) / (h_j - l_j)

    The private counterpart of :class:`sklearn.preprocessing.MinMaxScaler`. Columns with public
    ``feature_bounds`` are scaled by them, which costs nothing. The smallest and the largest value
    of a column are single records and cannot be released; for columns without bounds private
    quantiles take their place, all from one release.

    Parameters
    ----------
    feature_range : tuple (a, b), default=(0, 1)
        The interval, a < b.
    %(estimators: epsilon, delta)s
    clip : bool, default=False
        Whether :meth:`transform` clips to the interval. Values beyond the quantiles, some of every
        column without bounds, otherwise land outside it.
    quantile_range : tuple (low, high), default=(1.0, 99.0)
        Percentages that take the place of minimum and maximum, 0 <= low < high <= 100. The nearer
        to the ends, the more noise.
    %(estimators: noise, adjacency, feature_bounds, copy, rows_per_group, ledger, random_state)s

    Attributes
    ----------
    data_min_, data_max_, data_range_ : ndarray of shape (n_features,)
        Public bounds or private quantiles, and their distance.
    scale_, min_ : ndarray of shape (n_features,)
        ``X * scale_ + min_`` is what :meth:`transform` returns.
    %(estimators: n_samples_seen_, n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    BoundsClipper : Clip to public bounds.

    Notes
    -----
    **Privacy.** As :func:`~skdpnoise.queries.private_quantiles` says, with neighbours as
    ``adjacency`` says; only columns without public bounds take part, and where there is none
    nothing is released. Transforming is post-processing. (Transforming a record shows that record.)

    **Columns that do not stand out**, without bounds: constant, or drowned in noise. Nothing is
    known of them; they count as lying between 0 and 1, and a warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform([0.0, -10.0], [100.0, 10.0], size=(20_000, 2))
    >>> scaler = DPMinMaxScaler(feature_bounds=([0.0, -np.inf], [100.0, np.inf]))
    >>> scaler.fit(X).data_min_[0], scaler.data_max_[0]
    (np.float64(0.0), np.float64(100.0))
    >>> bool(abs(scaler.data_max_[1] - 10.0) < 1.0)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateScaler._parameter_constraints,
        "feature_range": [tuple],
        "clip": ["boolean"],
        "quantile_range": [tuple],
    }

    feature_range: tuple[float, float] = (0, 1)
    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    clip: bool = False
    quantile_range: tuple[float, float] = (1.0, 99.0)
    noise: str = "auto"
    adjacency: Adjacency = "replace_one"
    feature_bounds: tuple[ArrayLike, ArrayLike] | None = None
    copy: bool = True
    rows_per_group: int = 1
    ledger: Ledger | None = None
    random_state: Any = None

    def _check_own_params(self) -> None:
        check_quantile_range(self)
        expected = "a pair of finite numbers (low, high) with low < high, within ±1e+100"
        low, high = number_pair(self, "feature_range", expected)
        if not low < high:
            raise ValueError(
                f"The 'feature_range' parameter of DPMinMaxScaler must be {expected}. Got "
                f"{self.feature_range!r} instead."
            )

    _budget = staticmethod(quantiles_budget)

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        return np.asarray(~np.isfinite(bounds).all(axis=0))

    def _statistics(
        self, X: np.ndarray, bounds: np.ndarray, release: dict[str, Any]
    ) -> dict[str, Any]:
        low, high = bounds.copy()
        searched = np.flatnonzero(self._released(bounds))
        fitted: dict[str, Any] = {}
        if searched.size:
            table = X if searched.size == low.size else X[:, searched]
            found = private_quantiles(table, check_quantile_range(self), **release)
            lost = np.zeros(low.size, dtype=bool)
            lost[searched] = ~found.found
            self._warn(lost, "takes the range from 0 to 1 for")
            ends = np.where(found.found, found.values, [[0.0], [1.0]])
            # A public bound on one side only still holds.
            low[searched], high[searched] = np.clip(ends, low[searched], high[searched])
            narrow = np.maximum(found.resolution, 1e-12 * np.abs(ends).max(axis=0))
            high[searched] = np.maximum(high[searched], low[searched] + narrow)
            fitted["n_samples_seen_"] = found.n_samples
        elif self.adjacency == "replace_one":
            fitted["n_samples_seen_"] = len(X)
        first, last = self.feature_range
        scale = (last - first) / (high - low)
        return {
            **fitted,
            "data_min_": low,
            "data_max_": high,
            "data_range_": high - low,
            "scale_": scale,
            "min_": first - low * scale,
        }

    def transform(self, X: Any) -> Any:
        """Map to the interval.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            In ``feature_range`` where X is within ``data_min_`` and ``data_max_``, and everywhere
            with ``clip=True``; float32 stays float32.
        """
        X = self._multiply_and_shift(X)
        return np.clip(X, *self.feature_range, out=X) if self.clip else X

    def inverse_transform(self, X: Any) -> Any:
        """Undo :meth:`transform`, but for clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            In ``feature_range``.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            In the user's units.
        """
        return self._shift_and_divide(X)

    def _steps(self) -> tuple[Any, Any]:
        return self.min_, self.scale_
