"""Scaling by privately released statistics: one release, and what each scaler makes of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.parameters import as_bounds, number_pair
from skdpnoise.accounting.session import FitSession
from skdpnoise.base.advice import cause_of_hiding, named, note_hidden, warn_last
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.data.computed import asked_epsilon
from skdpnoise.data.reading import NumberColumns
from skdpnoise.data.schema import Schema
from skdpnoise.data.table import Table
from skdpnoise.data.tables import read_table, survivable
from skdpnoise.mechanisms import noise_options
from skdpnoise.preprocessing._transformers import Facts, PrivateTransformer, ReleasePlan
from skdpnoise.privacy import LossBudget
from skdpnoise.queries.moments import moments_budget, private_moments
from skdpnoise.queries.quantiles import Quantiles, private_quantiles, quantiles_budget
from skdpnoise.queries.ranges import STEPS, stage_losses

_DIGITS = 1e-12  # of a number, that differences of released ones can have
_UNDOES: dict[np.ufunc, np.ufunc] = {np.add: np.subtract, np.multiply: np.divide}
_UNDOES |= {undo: step for step, undo in _UNDOES.items()}


@constructor_of_fields
class PrivateScaler(OneToOneFeatureMixin, PrivateTransformer):
    """A transformer of single columns by statistics of them: quantiles, or moments."""

    _takes_cells = False
    _hides: ClassVar[str] = "leaves as they are"  # those columns that the noise hides
    # Returns the noise and the loss that the mechanism of the statistics shares out.
    _budget: ClassVar[Callable[..., tuple[str, LossBudget]]]
    _parameter_constraints: ClassVar[Constraints] = {
        "noise": [StrOptions(set(noise_options(adaptive=True)))],
        "feature_bounds": [None, tuple, list, dict, np.ndarray],
        "copy": ["boolean"],
    }

    _: KW_ONLY
    feature_bounds: tuple[Any, Any] | dict[str, Any] | None = None
    copy: bool = True

    def _form(self) -> NumberColumns:
        return NumberColumns({"missing": self._takes_missing})

    def _plan(self, schema: Schema, session: FitSession) -> ReleasePlan:
        bounds = as_bounds(self.feature_bounds, schema.n_columns, "feature_bounds", self)
        asked, relation = self._asked(bounds), session.adjacency
        if not asked.any():
            return ReleasePlan(columns=bounds)
        searches = not np.isfinite(bounds[:, asked]).all()
        size = int(asked.sum()), relation, STEPS if searches else 1, session.rows_per_group
        noise, budget = self._budget(self.noise, session.guarantee, *size)
        stages = stage_losses(budget, relation, searches=searches)
        if not searches and relation == "replace_one":  # one mechanism
            stages = []
        return ReleasePlan(columns=bounds, noise=noise, numbers=budget, stages=stages)

    def _release(self, plan: ReleasePlan, rows: Table[Any], session: FitSession) -> Facts:
        bounds, public = plan.columns, self.adjacency == "replace_one"
        fitted = {"n_samples_seen_": len(rows)} if public else {}
        if plan.numbers is None:
            return fitted | self._fitted(None, bounds)
        asked = self._asked(bounds)
        if not asked.all():
            rows = rows.map(partial(_some_columns, asked), int(asked.sum()))
        ends = bounds[0, asked], bounds[1, asked]
        terms = {"noise": plan.noise, "bounds": ends, **session.terms}
        found = self._find(rows, plan.numbers, terms)
        if not public:
            session.account.n_records = found.n_samples
        lost = np.zeros(asked.size, dtype=bool)
        lost[asked] = ~found.found
        self._warn(lost, self._hides.format_map(vars(self)), typical_found=found.typical_found)
        return {"n_samples_seen_": found.n_samples} | self._fitted(found, bounds)

    @abstractmethod
    def _asked(self, bounds: np.ndarray) -> np.ndarray:
        """Return of which columns something is released."""

    @abstractmethod
    def _find(self, rows: Table[Any], loss: LossBudget, terms: Facts) -> Any:
        """Return what is released of these columns within a loss."""

    @abstractmethod
    def _fitted(self, found: Any, bounds: np.ndarray) -> Facts:
        """Return the fitted attributes by what was released, None if nothing was."""

    @abstractmethod
    def inverse_transform(self, X: Any) -> Any:
        """Undo :meth:`transform`, as far as what it returns tells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            What :meth:`transform` returns.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            In the units of the data: of a bin its middle, of what an imputer filled in NaN.

        Raises
        ------
        ValueError
            If an imputer has no ``add_indicator``: nothing tells where a value was missing.
        """

    def _warn(self, lost: np.ndarray, what: str, *, typical_found: bool) -> None:
        if lost.any():
            note_hidden(type(self).__name__, lost)
            cause = cause_of_hiding(asked_epsilon(self), typical_found=typical_found)
            warn_last(
                f"{type(self).__name__} {what} {named(self, lost)}: {cause}. More records, a "
                "larger epsilon or closer public bounds (feature_bounds) would help."
            )


class QuantileScaler(PrivateScaler):
    """A transformer of single columns by quantiles of them."""

    _budget = staticmethod(quantiles_budget)

    @abstractmethod
    def _probabilities(self) -> ArrayLike:
        """Return which quantiles are released."""

    def _find(self, rows: Table[Any], loss: LossBudget, terms: Facts) -> Any:
        at = self._probabilities()
        return private_quantiles(rows, at, loss, missing=self._takes_missing, **terms)


class LinearScaler(PrivateScaler):
    """A transformer that adds a number to each column, and multiplies it by another."""

    @abstractmethod
    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        """Return what transform does to every column, in turn; None leaves out a step."""

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._moved(X, self._steps())

    def inverse_transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._moved(X, [(_UNDOES[step], values) for step, values in self._steps()[::-1]])

    def _moved(self, X: Any, steps: list[tuple[np.ufunc, Any]]) -> np.ndarray:
        X = read_table(self, X, reset=False, copy=self.copy, force_writeable=True)
        with np.errstate(all="ignore"):  # the rows may be those of a fit, in a pipeline
            for step, values in steps:
                if values is not None:
                    step(X, values, out=X)
        return survivable(X)


@register_private
@constructor_of_fields
class DPStandardScaler(LinearScaler):
    r"""Subtract private means and divide by private standard deviations.

    .. math:: z_j = (x_j - \tilde m_j) / \tilde s_j

    The private counterpart of :class:`sklearn.preprocessing.StandardScaler`. Means and mean squares
    of all columns are one release, of values clipped to ``feature_bounds`` where they are given,
    else to ranges that are found privately; :meth:`transform` does not clip.

    Parameters
    ----------
    %(parameters)s
    with_mean : bool, default=True
        Whether to subtract the mean.
    with_std : bool, default=True
        Whether to divide by the standard deviation. Without it, means are better.

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
    **Privacy.** That of :func:`~skdpnoise.queries.private_moments`. What :meth:`transform` returns
    of a private record is not private.

    **Columns that do not stand out**, constant or drowned in noise, get mean 0 and scale 1 without
    bounds, and a warning. With bounds the mean is known, and the scale is the largest that the
    noise can hide.

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

    _parameter_constraints: ClassVar[Constraints] = {
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
    }

    _: KW_ONLY
    with_mean: bool = True
    with_std: bool = True

    _budget = staticmethod(moments_budget)

    def _asked(self, bounds: np.ndarray) -> np.ndarray:
        return np.full(bounds.shape[1], self.with_mean or self.with_std)

    def _find(self, rows: Table[Any], loss: LossBudget, terms: Facts) -> Any:
        return private_moments(rows, loss, second=self.with_std, **terms)

    def _fitted(self, found: Any, bounds: np.ndarray) -> Facts:
        mean = None if found is None else found.mean
        if not self.with_std:
            return {"mean_": mean, "var_": None, "scale_": None}
        unclear = found.found & ~found.clear & np.isfinite(bounds).all(axis=0)
        what = "knows only an upper limit of the scale of"
        self._warn(unclear, what, typical_found=False)
        return {"mean_": mean, "var_": found.variance, "scale_": found.deviation}

    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        mean = self.mean_ if self.with_mean else None
        return [(np.subtract, mean), (np.divide, self.scale_ if self.with_std else None)]


@register_private
@constructor_of_fields
class DPRobustScaler(LinearScaler, QuantileScaler):
    r"""Subtract private medians and divide by private interquartile ranges.

    .. math:: z_j = (x_j - \tilde q_{1/2}) / (\tilde q_{3/4} - \tilde q_{1/4})

    The private counterpart of :class:`sklearn.preprocessing.RobustScaler`. All quantiles of all
    columns come from one release of cumulative counts over public or privately found ranges.

    Parameters
    ----------
    %(parameters)s
    with_centering : bool, default=True
        Whether to subtract the median.
    with_scaling : bool, default=True
        Whether to divide by the range between quantiles.
    quantile_range : tuple (low, high), default=(25.0, 75.0)
        Percentages, 0 <= low < high <= 100.
    unit_variance : bool, default=False
        Whether to divide by the range of a standard normal law too, so that normal columns get unit
        variance; percentages must then lie strictly between 0 and 100.

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
    %(paragraphs: quantiles)s

    **Columns that do not stand out**, constant or drowned in noise and without bounds, get centre 0
    and scale 1, and a warning. Where quantiles coincide, the scale is the width of the narrowest
    bin: 1/256 of the bounds, or a seventh to a 26th of a typical difference of two records.

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

    _parameter_constraints: ClassVar[Constraints] = {
        "with_centering": ["boolean"],
        "with_scaling": ["boolean"],
        "quantile_range": [tuple],
        "unit_variance": ["boolean"],
    }

    _: KW_ONLY
    with_centering: bool = True
    with_scaling: bool = True
    quantile_range: tuple[float, float] = (25.0, 75.0)
    unit_variance: bool = False

    def _check_own_params(self) -> None:
        low, high = _quantile_range(self)
        if self.unit_variance and not 0.0 < low < high < 1.0:
            raise ValueError(
                "The 'quantile_range' parameter of DPRobustScaler must lie strictly between 0 and "
                f"100 with unit_variance=True. Got {self.quantile_range!r} instead."
            )

    def _asked(self, bounds: np.ndarray) -> np.ndarray:
        return np.full(bounds.shape[1], self.with_centering or self.with_scaling)

    def _probabilities(self) -> ArrayLike:
        low, high = _quantile_range(self)
        return [low, 0.5, high]

    def _fitted(self, found: Any, bounds: np.ndarray) -> Facts:
        if found is None:
            return {"center_": None, "scale_": None}
        low, middle, high = found.values
        scale = np.where(found.found, np.maximum(high - low, narrowest(found)), 1.0)
        if self.unit_variance:
            first, last = _quantile_range(self)
            scale = np.where(found.found, scale / (ndtri(last) - ndtri(first)), 1.0)
        return {
            "center_": middle if self.with_centering else None,
            "scale_": scale if self.with_scaling else None,
        }

    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        return [(np.subtract, self.center_), (np.divide, self.scale_)]


@constructor_of_fields
class IntervalParameter:
    """The parameter that DPMinMaxScaler has first: what all share follows."""

    feature_range: tuple[float, float] = (0, 1)


@register_private
@constructor_of_fields
class DPMinMaxScaler(LinearScaler, QuantileScaler, IntervalParameter):
    r"""Map public bounds, or a private low and high quantile, to an interval.

    .. math:: z_j = a + (b - a) (x_j - l_j) / (h_j - l_j)

    The private counterpart of :class:`sklearn.preprocessing.MinMaxScaler`. Columns with public
    ``feature_bounds`` are scaled by them, at no cost. Of others, the smallest and the largest value
    are single records: private quantiles take their place, all from one release.

    Parameters
    ----------
    %(parameters)s
    feature_range : tuple (a, b), default=(0, 1)
        The interval, a < b.
    clip : bool, default=False
        Whether :meth:`transform` clips to the interval; else values beyond quantiles lie outside.
    quantile_range : tuple (low, high), default=(1.0, 99.0)
        Percentages, 0 <= low < high <= 100; the nearer to the ends, the more noise.

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
    **Privacy.** That of :func:`~skdpnoise.queries.private_quantiles`, of the columns without public
    bounds. What :meth:`transform` returns of a private record is not private.

    **Columns that do not stand out**, constant or drowned in noise and without bounds, count as
    lying between 0 and 1, and a warning says so.

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

    _parameter_constraints: ClassVar[Constraints] = {
        "feature_range": [tuple],
        "clip": ["boolean"],
        "quantile_range": [tuple],
    }

    _: KW_ONLY
    clip: bool = False
    quantile_range: tuple[float, float] = (1.0, 99.0)

    def _check_own_params(self) -> None:
        _quantile_range(self)
        expected = "a pair of finite numbers (low, high) with low < high, within ±1e+100"
        number_pair(self, "feature_range", expected)

    _hides = "takes the range from 0 to 1 for"

    def _asked(self, bounds: np.ndarray) -> np.ndarray:
        return np.asarray(~np.isfinite(bounds).all(axis=0))

    def _probabilities(self) -> ArrayLike:
        return _quantile_range(self)

    def _fitted(self, found: Any, bounds: np.ndarray) -> Facts:
        low, high = bounds.copy()
        if found is not None:
            asked, ends = self._asked(bounds), np.where(found.found, found.values, [[0.0], [1.0]])
            # A public bound on one side only still holds.
            low[asked], high[asked] = np.clip(ends, low[asked], high[asked])
            least = np.maximum(found.resolution, _DIGITS * np.abs(ends).max(axis=0))
            high[asked] = np.maximum(high[asked], low[asked] + least)
        first, last = self.feature_range
        scale = (last - first) / (high - low)
        facts: Facts = {"data_min_": low, "data_max_": high, "data_range_": high - low}
        return facts | {"scale_": scale, "min_": first - low * scale}

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        X = self._moved(X, self._steps())  # an array, whatever output is set
        return np.clip(X, *self.feature_range, out=X) if self.clip else X

    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        return [(np.multiply, self.scale_), (np.add, self.min_)]


def narrowest(found: Quantiles) -> np.ndarray:
    """Return the least scale of columns: a bin far from zero may be too narrow for its digits."""
    scale: np.ndarray = np.maximum(found.resolution, _DIGITS * np.abs(found.values).max(axis=0))
    return scale


def _some_columns(which: np.ndarray, X: np.ndarray) -> np.ndarray:
    return X[:, which]


def _quantile_range(estimator: Any) -> tuple[float, float]:
    """Return the parameter as two probabilities, or say what is wrong with it."""
    expected = "a pair of percentages with 0 <= low < high <= 100"
    low, high = number_pair(estimator, "quantile_range", expected, 0.0, 100.0)
    return low / 100.0, high / 100.0
