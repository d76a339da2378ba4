"""Columns cut or mapped at private quantiles."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.public_output import PublicOutput
from skdpnoise.base.register import register_private
from skdpnoise.data.tables import read_projections, read_table
from skdpnoise.preprocessing._scalers import QuantileScaler
from skdpnoise.preprocessing._transformers import Facts, OneHotMixin

_MOST = 1000  # bins or quantiles: more than 128 bins of a release can tell apart
_TAIL = 1e-3  # of a normal output: its values end about 3 standard deviations from zero


@constructor_of_fields
class BinsParameter:
    """The parameter that DPKBinsDiscretizer has first: what all share follows."""

    n_bins: int = 5


@register_private
@constructor_of_fields
class DPKBinsDiscretizer(OneHotMixin, QuantileScaler, BinsParameter):
    """Cut each column into bins that hold about as many records each.

    The private counterpart of :class:`sklearn.preprocessing.KBinsDiscretizer` with equal masses, or
    of equal width between **public** bounds.

    Parameters
    ----------
    %(parameters)s
    n_bins : int, default=5
        Bins of each column, 2 to 1000; where a value is frequent, some of them stay empty, so that
        the number of columns hangs on no record.
    encode : {"onehot-dense", "ordinal"}, default="onehot-dense"
        Whether a bin becomes a column of its own, or a number.
    strategy : {"quantile", "uniform"}, default="quantile"
        Equal masses, estimated; or equal widths between `feature_bounds`, which are then needed for
        every column, and cost nothing.

    Attributes
    ----------
    bin_edges_ : ndarray of shape (n_features,), of ndarray
        Inner edges and ends of each feature, never decreasing. Values beyond the ends are in the
        bins at the ends.
    n_bins_ : ndarray of int of shape (n_features,)
        Number of bins of each feature: ``n_bins``.
    public_output_ : PublicOutput
        Bounds and groups of the columns that are returned.
    %(estimators: n_samples_seen_, n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPQuantileTransformer : Maps a column to its quantiles.

    Notes
    -----
    %(paragraphs: quantiles)s

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).exponential(size=(20_000, 1))
    >>> bins = DPKBinsDiscretizer(n_bins=4, encode="ordinal").fit(X)
    >>> shares = np.bincount(bins.transform(X)[:, 0].astype(int)) / len(X)
    >>> bool(np.all(np.abs(shares - 0.25) < 0.05))
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_bins": [Interval(Integral, 2, _MOST, closed="both")],
        "encode": [StrOptions({"onehot-dense", "ordinal"})],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    _: KW_ONLY
    encode: Literal["onehot-dense", "ordinal"] = "onehot-dense"
    strategy: Literal["quantile", "uniform"] = "quantile"

    _hides = "cuts at 0"

    def _asked(self, bounds: np.ndarray) -> np.ndarray:
        if self.strategy == "uniform" and not np.isfinite(bounds).all():
            raise ValueError(
                "The 'feature_bounds' parameter of DPKBinsDiscretizer must give finite public "
                "bounds of every column with strategy='uniform'. Use strategy='quantile' without."
            )
        return np.full(bounds.shape[1], self.strategy == "quantile")

    def _probabilities(self) -> NDArray[np.float64]:
        return np.linspace(0.0, 1.0, int(self.n_bins) + 1)

    def _fitted(self, found: Any, bounds: np.ndarray) -> Facts:
        if found is None:
            at = self._probabilities()[:, np.newaxis]
            ends = bounds[0] + at * (bounds[1] - bounds[0])
        else:
            ends = found.values
        edges = np.empty(ends.shape[1], dtype=object)
        edges[:] = list(ends.T.copy())
        return {"bin_edges_": edges, "n_bins_": np.full(edges.size, len(ends) - 1)}

    @property
    def _labels(self) -> list[list[str]]:
        return [[str(k) for k in range(number)] for number in self.n_bins_.tolist()]

    @property
    def public_output_(self) -> PublicOutput:
        """Numbers of bins, or zeros and ones of which each feature has a single one."""
        check_is_fitted(self)
        if self.encode == "ordinal":
            return PublicOutput(np.zeros(self.n_bins_.size), np.maximum(self.n_bins_ - 1.0, 1.0))
        return super().public_output_

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        pairs = zip(X.T, self.bin_edges_, strict=True)
        places = [np.searchsorted(edges[1:-1], column, side="right") for column, edges in pairs]
        if self.encode == "ordinal":
            return np.column_stack(places).astype(X.dtype)
        return self._encoded(places, X.dtype)

    def inverse_transform(self, X: Any) -> Any:
        check_is_fitted(self)
        ordinal = self.encode == "ordinal"
        width = self.n_bins_.size if ordinal else sum(self._widths)
        table = read_projections(type(self).__name__, X, width)
        found: Any = np.rint(table).T if ordinal else self._places(table)
        columns = []
        for edges, places in zip(self.bin_edges_, found, strict=True):
            middle = 0.5 * edges[:-1] + 0.5 * edges[1:]
            columns.append(middle[np.clip(places, 0, middle.size - 1).astype(np.intp)])
        return np.column_stack(columns)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        if self.encode == "ordinal":
            return np.asarray(_check_feature_names_in(self, input_features), dtype=object)
        return super().get_feature_names_out(input_features)


@constructor_of_fields
class PointsParameter:
    """The parameter that DPQuantileTransformer has first: what all share follows."""

    n_quantiles: int = 100


@register_private
@constructor_of_fields
class DPQuantileTransformer(QuantileScaler, PointsParameter):
    """Map each column to its quantiles, evenly spread or normal.

    The private counterpart of :class:`sklearn.preprocessing.QuantileTransformer`: rare and extreme
    values come closer, whatever the units are.

    Parameters
    ----------
    %(parameters)s
    n_quantiles : int, default=100
        Points between which the map is linear, 2 to 1000.
    output_distribution : {"uniform", "normal"}, default="uniform"
        Values from 0 to 1, or normal ones that end at ±3.09.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Private quantiles, never decreasing.
    references_ : ndarray of shape (n_quantiles,)
        Their probabilities.
    public_output_ : PublicOutput
        Bounds of the columns that are returned.
    %(estimators: n_samples_seen_, n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPKBinsDiscretizer : Cuts a column at its quantiles.

    Notes
    -----
    %(paragraphs: quantiles)s

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).exponential(size=(20_000, 1))
    >>> Z = DPQuantileTransformer().fit_transform(X)
    >>> bool(abs(np.mean(Z < 0.3) - 0.3) < 0.05)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_quantiles": [Interval(Integral, 2, _MOST, closed="both")],
        "output_distribution": [StrOptions({"uniform", "normal"})],
    }

    _: KW_ONLY
    output_distribution: Literal["uniform", "normal"] = "uniform"

    _hides = "maps by the range from 0 to 1"

    def _asked(self, bounds: np.ndarray) -> np.ndarray:
        return np.ones(bounds.shape[1], dtype=bool)

    def _probabilities(self) -> NDArray[np.float64]:
        return np.linspace(0.0, 1.0, int(self.n_quantiles))

    def _fitted(self, found: Any, bounds: np.ndarray) -> Facts:
        at = self._probabilities()
        values = np.where(found.found, found.values, at[:, np.newaxis])
        return {"quantiles_": values, "references_": at}

    @property
    def public_output_(self) -> PublicOutput:
        """From 0 to 1, or to either side of 0."""
        check_is_fitted(self)
        width = self.quantiles_.shape[1]
        end = 1.0 if self.output_distribution == "uniform" else -float(ndtri(_TAIL))
        low = 0.0 if self.output_distribution == "uniform" else -end
        return PublicOutput(np.full(width, low), np.full(width, end))

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        X = read_table(self, X, reset=False, copy=self.copy, force_writeable=True)
        for k, ends in enumerate(self.quantiles_.T):
            place = np.interp(X[:, k], ends, self.references_)
            if self.output_distribution == "normal":
                place = ndtri(np.clip(place, _TAIL, 1.0 - _TAIL))
            X[:, k] = place
        return X

    def inverse_transform(self, X: Any) -> Any:
        check_is_fitted(self)
        table = read_projections(type(self).__name__, X, self.quantiles_.shape[1])
        if self.output_distribution == "normal":
            table = ndtr(table)
        pairs = zip(table.T, self.quantiles_.T, strict=True)
        return np.column_stack([np.interp(z, self.references_, ends) for z, ends in pairs])
