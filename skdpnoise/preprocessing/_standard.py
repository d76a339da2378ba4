"""Standardisation by private means and variances."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise.compose import register_private
from skdpnoise.ledger import Ledger
from skdpnoise.preprocessing._base import PrivateScaler
from skdpnoise.privacy import Adjacency
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.queries import private_moments
from skdpnoise.queries.moments import moments_budget

__all__ = ["DPStandardScaler"]


@shared_texts
@register_private
@dataclass(eq=False, repr=False)
class DPStandardScaler(PrivateScaler):
    r"""Subtract private means and divide by private standard deviations.

    .. math:: z_j = (x_j - \tilde m_j) / \tilde s_j

    The private counterpart of :class:`sklearn.preprocessing.StandardScaler`. Means and mean squares
    of all columns are one release, whose noise follows the columns' ranges: ``feature_bounds``
    where they are given, else ranges that are found privately. Values are clipped to the ranges for
    the statistics, not in :meth:`transform`.

    Parameters
    ----------
    %(estimators: epsilon, delta)s
    with_mean : bool, default=True
        Whether to subtract the mean.
    with_std : bool, default=True
        Whether to divide by the standard deviation. Without it, means are better.
    %(estimators: noise, adjacency, feature_bounds)s
        None finds ranges privately, with 70 % of the budget.
    %(estimators: copy, rows_per_group, ledger, random_state)s

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,) or None
        Private means; None if neither parameter asks for statistics.
    var_, scale_ : ndarray of shape (n_features,) or None
        Private variances, and their roots; None without ``with_std``. Not below what the noise can
        hide, so that no column is blown up.
    %(estimators: n_samples_seen_, n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPRobustScaler : By median and interquartile range: for columns with outliers.

    Notes
    -----
    **Privacy.** As :func:`~skdpnoise.queries.private_moments` says, with neighbours as
    ``adjacency`` says; transforming is post-processing of what was released. (Transforming a record
    shows that record.)

    **Columns that do not stand out**: constant, or drowned in noise. Without bounds nothing is
    known of them; they get mean 0 and scale 1, which leaves them as they are, and a warning. With
    bounds the mean is known, and the scale is the largest that the noise can hide.

    References
    ----------
    Karwa and Vadhan, ITCS 2018; Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal([100.0, -3.0], [5.0, 0.1], size=(20_000, 2))
    >>> scaler = DPStandardScaler(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(scaler.mean_ - [100.0, -3.0]) < [0.5, 0.01]))
    True
    >>> bool(np.all(np.abs(scaler.transform(X).std(axis=0) - 1.0) < 0.1))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateScaler._parameter_constraints,
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
    }

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    with_mean: bool = True
    with_std: bool = True
    noise: str = "auto"
    adjacency: Adjacency = "replace_one"
    feature_bounds: tuple[ArrayLike, ArrayLike] | None = None
    copy: bool = True
    rows_per_group: int = 1
    ledger: Ledger | None = None
    random_state: Any = None

    _budget = staticmethod(moments_budget)

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        return np.full(bounds.shape[1], self.with_mean or self.with_std)

    def _statistics(
        self, X: np.ndarray, bounds: np.ndarray, release: dict[str, Any]
    ) -> dict[str, Any]:
        if not (self.with_mean or self.with_std):
            return {"mean_": None, "var_": None, "scale_": None}
        found = private_moments(X, bounds=(bounds[0], bounds[1]), second=self.with_std, **release)
        self._warn(~found.found, "leaves as they are")
        variance = scale = None
        if self.with_std:
            unclear = found.found & ~found.clear & np.isfinite(bounds).all(axis=0)
            self._warn(unclear, "knows only an upper limit of the scale of")
            variance, scale = found.variance, found.deviation
        return {
            "mean_": found.mean,
            "var_": variance,
            "scale_": scale,
            "n_samples_seen_": found.n_samples,
        }

    def _steps(self) -> tuple[Any, Any]:
        return self.mean_ if self.with_mean else None, self.scale_ if self.with_std else None
