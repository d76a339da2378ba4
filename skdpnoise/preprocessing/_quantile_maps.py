"""Columns cut or mapped at private quantiles."""

from __future__ import annotations

from dataclasses import KW_ONLY
from itertools import pairwise
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
from skdpnoise.data.table import Table
from skdpnoise.data.tables import read_projections, read_table
from skdpnoise.preprocessing._labels import unique_names
from skdpnoise.preprocessing._scalers import Facts, PrivateScaler
from skdpnoise.queries.quantiles import private_quantiles, quantiles_budget

_MOST = 1000  # bins or quantiles: more than 128 bins of a release can tell apart
_TAIL = 1e-3  # of a normal output: its values end about 3 standard deviations from zero


class QuantileMap(PrivateScaler):
    """A transformer of single columns that needs quantiles and nothing else."""

    _budget = staticmethod(quantiles_budget)

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        return np.ones(bounds.shape[1], dtype=bool)

    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        return []


@constructor_of_fields
class BinsParameter:
    """The parameter that DPKBinsDiscretizer has first: what all share follows."""

    n_bins: int = 5


@register_private
@constructor_of_fields
class DPKBinsDiscretizer(QuantileMap, BinsParameter):
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
        Equal masses, bought; or equal widths between `feature_bounds`, which are then needed for
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
    **Privacy.** That of :func:`~skdpnoise.queries.private_quantiles`. What :meth:`transform`
    returns of a private record is not private.

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

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        if self.strategy == "uniform" and not np.isfinite(bounds).all():
            raise ValueError(
                "The 'feature_bounds' parameter of DPKBinsDiscretizer must give finite public "
                "bounds of every column with strategy='uniform'. Use strategy='quantile' without."
            )
        return np.full(bounds.shape[1], self.strategy == "quantile")

    def _statistics(self, rows: Table[Any], bounds: np.ndarray, release: Facts) -> Facts:
        at = np.linspace(0.0, 1.0, int(self.n_bins) + 1)
        if self.strategy == "uniform":
            ends = bounds[0] + at[:, np.newaxis] * (bounds[1] - bounds[0])
            return _edges_of(ends)
        found = private_quantiles(rows, at, bounds=(bounds[0], bounds[1]), **release)
        self._warn(~found.found, "cuts at 0", typical_found=found.typical_found)
        return _edges_of(found.values) | {"n_samples_seen_": found.n_samples}

    @property
    def _widths(self) -> list[int]:
        ordinal = self.encode == "ordinal"
        return [1 if ordinal else int(number) for number in self.n_bins_]

    @property
    def public_output_(self) -> PublicOutput:
        """Numbers of bins, or zeros and ones of which each feature has a single one."""
        check_is_fitted(self)
        if self.encode == "ordinal":
            return PublicOutput(np.zeros(self.n_bins_.size), np.maximum(self.n_bins_ - 1.0, 1.0))
        ends = np.cumsum([0, *self._widths]).tolist()
        groups = tuple(tuple(range(a, b)) for a, b in pairwise(ends))
        return PublicOutput(np.zeros(ends[-1]), np.ones(ends[-1]), groups)

    def transform(self, X: Any) -> Any:
        """Return the bin of every value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_encoded_features)
            Zeros and ones, or numbers from 0 on.
        """
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        pairs = zip(X.T, self.bin_edges_, strict=True)
        places = [np.searchsorted(edges[1:-1], column, side="right") for column, edges in pairs]
        if self.encode == "ordinal":
            return np.column_stack(places).astype(X.dtype)
        encoded = np.zeros((len(X), sum(self._widths)), dtype=X.dtype)
        start = 0
        for column, width in zip(places, self._widths, strict=True):
            encoded[np.arange(len(X)), start + column] = 1.0
            start += width
        return encoded

    def inverse_transform(self, X: Any) -> Any:
        """Return the middle of the bin.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_encoded_features)
            What :meth:`transform` returns.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        table = read_projections(type(self).__name__, X, sum(self._widths))
        columns, start = [], 0
        for edges, width in zip(self.bin_edges_, self._widths, strict=True):
            part = table[:, start : start + width]
            place = part.argmax(axis=1) if self.encode != "ordinal" else np.rint(part[:, 0])
            middle = 0.5 * edges[:-1] + 0.5 * edges[1:]
            columns.append(middle[np.clip(place, 0, middle.size - 1).astype(np.intp)])
            start += width
        return np.column_stack(columns)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features, with numbers of bins as in "age_0" if they are many.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None are those seen in fit, or "x0", "x1", ...

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self.encode == "ordinal":
            return np.asarray(names, dtype=object)
        sizes = zip(names, self._widths, strict=True)
        return unique_names(f"{name}_{k}" for name, width in sizes for k in range(width))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _edges_of(ends: NDArray[np.float64]) -> Facts:
    """Return the edges of each column, and how many bins they make."""
    edges = np.empty(ends.shape[1], dtype=object)
    edges[:] = list(ends.T.copy())
    return {"bin_edges_": edges, "n_bins_": np.full(edges.size, len(ends) - 1)}


@constructor_of_fields
class PointsParameter:
    """The parameter that DPQuantileTransformer has first: what all share follows."""

    n_quantiles: int = 100


@register_private
@constructor_of_fields
class DPQuantileTransformer(QuantileMap, PointsParameter):
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
    **Privacy.** That of :func:`~skdpnoise.queries.private_quantiles`. What :meth:`transform`
    returns of a private record is not private.

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

    def _statistics(self, rows: Table[Any], bounds: np.ndarray, release: Facts) -> Facts:
        at = np.linspace(0.0, 1.0, int(self.n_quantiles))
        found = private_quantiles(rows, at, bounds=(bounds[0], bounds[1]), **release)
        what = "maps by the range from 0 to 1"
        self._warn(~found.found, what, typical_found=found.typical_found)
        values = np.where(found.found, found.values, at[:, np.newaxis])
        return {"quantiles_": values, "references_": at, "n_samples_seen_": found.n_samples}

    @property
    def public_output_(self) -> PublicOutput:
        """From 0 to 1, or to either side of 0."""
        check_is_fitted(self)
        width = self.quantiles_.shape[1]
        end = 1.0 if self.output_distribution == "uniform" else -float(ndtri(_TAIL))
        low = 0.0 if self.output_distribution == "uniform" else -end
        return PublicOutput(np.full(width, low), np.full(width, end))

    def transform(self, X: Any) -> Any:
        """Return the quantile of every value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Float32 stays float32.
        """
        check_is_fitted(self)
        X = read_table(self, X, reset=False, copy=self.copy, force_writeable=True)
        for k, ends in enumerate(self.quantiles_.T):
            place = np.interp(X[:, k], ends, self.references_)
            if self.output_distribution == "normal":
                place = ndtri(np.clip(place, _TAIL, 1.0 - _TAIL))
            X[:, k] = place
        return X

    def inverse_transform(self, X: Any) -> Any:
        """Return the values at quantiles.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What :meth:`transform` returns.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        table = read_projections(type(self).__name__, X, self.quantiles_.shape[1])
        if self.output_distribution == "normal":
            table = ndtr(table)
        pairs = zip(table.T, self.quantiles_.T, strict=True)
        return np.column_stack([np.interp(z, self.references_, ends) for z, ends in pairs])
