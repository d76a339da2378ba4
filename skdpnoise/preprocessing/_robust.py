"""Scaling by private medians and interquartile ranges."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from skdpnoise.compose import register_private
from skdpnoise.ledger import Ledger
from skdpnoise.preprocessing._base import PrivateScaler, check_quantile_range
from skdpnoise.privacy import Adjacency
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.queries import private_quantiles
from skdpnoise.queries.quantiles import quantiles_budget

__all__ = ["DPRobustScaler"]


@shared_texts
@register_private
@dataclass(eq=False, repr=False)
class DPRobustScaler(PrivateScaler):
    r"""Subtract private medians and divide by private interquartile ranges.

    .. math:: z_j = (x_j - \tilde q_{1/2}) / (\tilde q_{3/4} - \tilde q_{1/4})

    The private counterpart of :class:`sklearn.preprocessing.RobustScaler`. All quantiles of all
    columns come from one release of cumulative counts over public or privately found ranges.

    Parameters
    ----------
    %(estimators: epsilon, delta)s
    with_centering : bool, default=True
        Whether to subtract the median.
    with_scaling : bool, default=True
        Whether to divide by the range between quantiles.
    quantile_range : tuple (low, high), default=(25.0, 75.0)
        Percentages, 0 <= low < high <= 100.
    unit_variance : bool, default=False
        Whether to divide the scale by the range of a standard normal law, so that normal columns
        get unit variance; the percentages must then lie strictly between 0 and 100.
    %(estimators: noise, adjacency, feature_bounds)s
        None finds ranges privately, with 70 % of the budget.
    %(estimators: copy, rows_per_group, ledger, random_state)s

    Attributes
    ----------
    center_ : ndarray of shape (n_features,) or None
        Private medians; None without ``with_centering``.
    scale_ : ndarray of shape (n_features,) or None
        Private ranges between quantiles, at least the width of a bin; None without
        ``with_scaling``.
    %(estimators: n_samples_seen_, n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPStandardScaler : By mean and standard deviation.

    Notes
    -----
    **Privacy.** As :func:`~skdpnoise.queries.private_quantiles` says, with neighbours as
    ``adjacency`` says; transforming is post-processing of what was released. (Transforming a record
    shows that record.)

    **Columns that do not stand out**, without bounds: constant, or drowned in noise. Nothing is
    known of them; they get centre 0 and scale 1, which leaves them as they are, and a warning. In
    columns where one value prevails the quantiles may coincide; the scale is then the width of the
    narrowest bin: 1/256 of the public bounds, or a seventh to a thirteenth of a
    typical difference of two records.

    References
    ----------
    Henzinger, Upadhyay and Upadhyay, SODA 2023, Theorem 2; Hay et al., VLDB 2010.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal([100.0, -3.0], [5.0, 0.1], size=(20_000, 2))
    >>> scaler = DPRobustScaler(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(scaler.center_ - [100.0, -3.0]) < [0.5, 0.01]))
    True
    >>> bool(np.all(np.abs(scaler.scale_ / [6.74, 0.135] - 1.0) < 0.1))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateScaler._parameter_constraints,
        "with_centering": ["boolean"],
        "with_scaling": ["boolean"],
        "quantile_range": [tuple],
        "unit_variance": ["boolean"],
    }

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    with_centering: bool = True
    with_scaling: bool = True
    quantile_range: tuple[float, float] = (25.0, 75.0)
    unit_variance: bool = False
    noise: str = "auto"
    adjacency: Adjacency = "replace_one"
    feature_bounds: tuple[ArrayLike, ArrayLike] | None = None
    copy: bool = True
    rows_per_group: int = 1
    ledger: Ledger | None = None
    random_state: Any = None

    def _check_own_params(self) -> None:
        low, high = check_quantile_range(self)
        if self.unit_variance and not 0.0 < low < high < 1.0:
            raise ValueError(
                "The 'quantile_range' parameter of DPRobustScaler must lie strictly between 0 and "
                f"100 with unit_variance=True. Got {self.quantile_range!r} instead."
            )

    _budget = staticmethod(quantiles_budget)

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        return np.full(bounds.shape[1], self.with_centering or self.with_scaling)

    def _statistics(
        self, X: np.ndarray, bounds: np.ndarray, release: dict[str, Any]
    ) -> dict[str, Any]:
        if not (self.with_centering or self.with_scaling):
            return {"center_": None, "scale_": None}
        ends = check_quantile_range(self)
        wanted = [ends[0], 0.5, ends[1]]
        found = private_quantiles(X, wanted, bounds=(bounds[0], bounds[1]), **release)
        self._warn(~found.found, "leaves as they are")
        low, middle, high = found.values
        # A bin of a column far from zero may be too narrow for its digits.
        least = np.maximum(found.resolution, 1e-12 * np.abs(found.values).max(axis=0))
        scale = np.where(found.found, np.maximum(high - low, least), 1.0)
        if self.unit_variance:
            scale = np.where(found.found, scale / (ndtri(ends[1]) - ndtri(ends[0])), 1.0)
        return {
            "center_": middle if self.with_centering else None,
            "scale_": scale if self.with_scaling else None,
            "n_samples_seen_": found.n_samples,
        }

    def _steps(self) -> tuple[Any, Any]:
        return self.center_, self.scale_
