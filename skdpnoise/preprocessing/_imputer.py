"""Missing values, replaced by what is public or released."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.data.tables import read_table, survivable
from skdpnoise.preprocessing._scalers import QuantileScaler
from skdpnoise.preprocessing._schema import unique_names
from skdpnoise.preprocessing._transformers import Facts

_POINTS = 400  # quantiles whose mean is the mean


@register_private
@constructor_of_fields
class DPSimpleImputer(QuantileScaler):
    r"""Replace missing numbers of each column by a private mean, median or mode.

    The private counterpart of :class:`sklearn.impute.SimpleImputer`, for columns of numbers in
    which NaN is what is missing. All statistics come from one release of cumulative counts.

    Parameters
    ----------
    %(parameters)s
    strategy : {"mean", "median", "most_frequent", "constant"}, default="mean"
        What takes the place. The mean is of values within 64 scales of the bulk, or within public
        bounds. The most frequent value is the middle of the shortest interval with a tenth of the
        records, for columns of few values. "constant" costs nothing.
    fill_value : float, default=0.0
        **Public**: of "constant", and of columns that the noise hides.
    add_indicator : bool, default=False
        Whether to add a column for **every** feature that says where a value was missing, such as
        "missingindicator_age": which features have missing values is private.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        What takes the place.
    n_present_ : ndarray of shape (n_features,) or None
        About how many records have a value; None for "constant".
    %(estimators: n_samples_seen_, n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPTableVectorizer : Takes missing values of any kind of column.

    Notes
    -----
    **Privacy.** That of :func:`~skdpnoise.queries.private_quantiles`, in which a missing value is
    one beyond all others. What :meth:`transform` returns of a private record is not private.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(50.0, 5.0, size=(20_000, 1))
    >>> X[::3] = np.nan
    >>> imputer = DPSimpleImputer(strategy="median").fit(X)
    >>> bool(abs(imputer.transform([[np.nan]])[0, 0] - 50.0) < 1.0)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "strategy": [StrOptions({"mean", "median", "most_frequent", "constant"})],
        "fill_value": [int, float],
        "add_indicator": ["boolean"],
    }
    _takes_missing: ClassVar[bool] = True
    _hides = "puts {fill_value:g} for what is missing in"

    _: KW_ONLY
    strategy: Literal["mean", "median", "most_frequent", "constant"] = "mean"
    fill_value: float = 0.0
    add_indicator: bool = False

    def _check_own_params(self) -> None:
        if not abs(float(self.fill_value)) <= 1e100:
            raise ValueError(
                "The 'fill_value' parameter of DPSimpleImputer must be a finite number within "
                f"±1e+100. Got {self.fill_value!r} instead."
            )

    def _asked(self, bounds: np.ndarray) -> np.ndarray:
        return np.full(bounds.shape[1], self.strategy != "constant")

    def _probabilities(self) -> ArrayLike:
        return 0.5 if self.strategy == "median" else (np.arange(_POINTS) + 0.5) / _POINTS

    def _fitted(self, found: Any, bounds: np.ndarray) -> Facts:
        constant = np.full(bounds.shape[1], float(self.fill_value))
        if found is None:
            return {"statistics_": constant, "n_present_": None}
        chosen = _densest if self.strategy == "most_frequent" else partial(np.mean, axis=0)
        statistics = np.where(found.found, chosen(found.values), constant)
        return {"statistics_": statistics, "n_present_": found.n_present}

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        X = read_table(self, X, reset=False, missing=True, copy=True, force_writeable=True)
        absent = np.isnan(X)
        X[absent] = np.broadcast_to(self.statistics_, X.shape)[absent]
        X = survivable(X)
        return np.hstack([X, absent.astype(X.dtype)]) if self.add_indicator else X

    def inverse_transform(self, X: Any) -> Any:
        check_is_fitted(self)
        if not self.add_indicator:
            raise ValueError(
                "DPSimpleImputer.inverse_transform needs add_indicator=True in fit: nothing else "
                "tells where a value was missing."
            )
        table = np.asarray(X, dtype=np.float64)
        half = table.shape[1] // 2
        return np.where(table[:, half:] > 0.5, np.nan, table[:, :half])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        check_is_fitted(self)
        names = list(_check_feature_names_in(self, input_features))
        more = [f"missingindicator_{name}" for name in names] if self.add_indicator else []
        return unique_names([*names, *more])


def _densest(quantiles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where quantiles lie closest together: the middle of the shortest tenth of them."""
    step = max(1, len(quantiles) // 10)
    widths = quantiles[step:] - quantiles[:-step]
    places = widths.argmin(axis=0)
    columns = np.arange(quantiles.shape[1])
    ends = quantiles[places, columns], quantiles[places + step, columns]
    return np.asarray(0.5 * ends[0] + 0.5 * ends[1])
