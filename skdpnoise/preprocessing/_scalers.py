"""Scaling by privately released statistics: one fit, and what each scaler releases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.parameters import as_bounds, number_pair
from skdpnoise.base.advice import cause_of_hiding, named, note_hidden, warn_last
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import PrivateEstimator
from skdpnoise.base.public_output import hand_on
from skdpnoise.base.register import register_private
from skdpnoise.data.reading import NumberColumns
from skdpnoise.data.table import Table
from skdpnoise.data.tables import read_table, survivable
from skdpnoise.mechanisms import noise_options
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.queries.moments import moments_budget, private_moments
from skdpnoise.queries.quantiles import private_quantiles, quantiles_budget
from skdpnoise.queries.ranges import STEPS, stage_losses

Facts = dict[str, Any]  # arguments of a query, or fitted attributes, by name

_UNDOES = {np.add: np.subtract, np.subtract: np.add, np.multiply: np.divide, np.divide: np.multiply}


@constructor_of_fields
class PrivateScaler(PrivateEstimator, OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer of single columns whose statistics are released privately."""

    _takes_missing: ClassVar[bool] = False  # whether NaN stands for no value
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

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        """Release the statistics of private data, spending the guarantee.

        Large data are read by as many threads as ``NUMBA_NUM_THREADS`` says, to the same result.

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
        with self._session(groups, params) as session:
            self._check_own_params()
            form = NumberColumns({"missing": self._takes_missing})
            schema, rows = self._read_rows(form, X=X, groups=groups)
            bounds = as_bounds(self.feature_bounds, schema.n_columns, "feature_bounds", self)
            release, stages = self._plan(bounds, session.guarantee, session.rows_per_group)
            if stages:
                session.account.spend(stages, release["noise"])
            release |= {"random_state": session.rng, "charge": session.charge}
            fitted = self._statistics(rows.keep(session.rng), bounds, release)
            if self.adjacency == "add_remove":
                session.account.n_records = fitted.get("n_samples_seen_")
            report = session.report(empty=True)
            self.__dict__.update(fitted, privacy_=report)
            if hasattr(self, "public_output_"):
                hand_on(self, self.public_output_)
        return self

    def _plan(
        self, bounds: np.ndarray, guarantee: PrivacyGuarantee, rows_per_group: int
    ) -> tuple[Facts, Sequence[PrivacyLoss]]:
        """Return noise and budget of the release, and the stages that a ledger is charged."""
        released, counts = self._released(bounds), guarantee.adjacency == "add_remove"
        release: Facts = {"adjacency": guarantee.adjacency}
        if not released.any():
            return release, []
        searches = not np.isfinite(bounds[:, released]).all()
        n_columns, n_releases = int(released.sum()), STEPS if searches else 1
        facts = guarantee, n_columns, guarantee.adjacency, n_releases
        noise, budget = self._budget(self.noise, *facts, rows_per_group)
        release |= {"noise": noise, "guarantee": budget}
        if not (searches or counts):  # one mechanism, which says best what it costs
            return release, []
        if isinstance(budget, PureLoss):
            return release, stage_losses(budget, counts=counts, searches=searches)
        return release, [budget]  # squares add, so that stages would say no more

    def _check_own_params(self) -> None:
        """Check what the constraints cannot say."""

    @abstractmethod
    def _released(self, bounds: np.ndarray) -> np.ndarray:
        """Return of which columns something is released."""

    @abstractmethod
    def _statistics(self, rows: Table[Any], bounds: np.ndarray, release: Facts) -> Facts:
        """Return the fitted attributes; all but public facts must come from charged releases."""

    def transform(self, X: Any) -> Any:
        """Shift and scale every column; only a parameter ``clip`` makes it clip.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Float32 stays float32.
        """
        return self._moved(X, back=False)

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
        return self._moved(X, back=True)

    @abstractmethod
    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        """Return what transform does to every column, in turn; None leaves out a step."""

    def _moved(self, X: Any, *, back: bool) -> np.ndarray:
        check_is_fitted(self)
        steps = self._steps()
        if back:
            steps = [(_UNDOES[step], values) for step, values in reversed(steps)]
        X = read_table(self, X, reset=False, copy=self.copy, force_writeable=True)
        with np.errstate(all="ignore"):  # the rows may be those of a fit, in a pipeline
            for step, values in steps:
                if values is not None:
                    step(X, values, out=X)
        return survivable(X)

    def _warn(self, lost: np.ndarray, what: str, *, typical_found: bool) -> None:
        if lost.any():
            note_hidden(type(self).__name__, lost)
            cause = cause_of_hiding(self.epsilon, typical_found=typical_found)
            warn_last(
                f"{type(self).__name__} {what} {named(self, lost)}: {cause}. More records, a "
                "larger epsilon or closer public bounds (feature_bounds) would help."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@register_private
@constructor_of_fields
class DPStandardScaler(PrivateScaler):
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

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        return np.full(bounds.shape[1], self.with_mean or self.with_std)

    def _statistics(self, rows: Table[Any], bounds: np.ndarray, release: Facts) -> Facts:
        if not (self.with_mean or self.with_std):
            return {"mean_": None, "var_": None, "scale_": None}
        found = private_moments(
            rows, bounds=(bounds[0], bounds[1]), second=self.with_std, **release
        )
        self._warn(~found.found, "leaves as they are", typical_found=found.typical_found)
        fitted: Facts = {"mean_": found.mean, "n_samples_seen_": found.n_samples}
        if not self.with_std:
            return fitted | {"var_": None, "scale_": None}
        unclear = found.found & ~found.clear & np.isfinite(bounds).all(axis=0)
        what = "knows only an upper limit of the scale of"
        self._warn(unclear, what, typical_found=False)
        return fitted | {"var_": found.variance, "scale_": found.deviation}

    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        mean = self.mean_ if self.with_mean else None
        return [(np.subtract, mean), (np.divide, self.scale_ if self.with_std else None)]


@register_private
@constructor_of_fields
class DPRobustScaler(PrivateScaler):
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
    **Privacy.** That of :func:`~skdpnoise.queries.private_quantiles`. What :meth:`transform`
    returns of a private record is not private.

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

    _budget = staticmethod(quantiles_budget)

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        return np.full(bounds.shape[1], self.with_centering or self.with_scaling)

    def _statistics(self, rows: Table[Any], bounds: np.ndarray, release: Facts) -> Facts:
        if not (self.with_centering or self.with_scaling):
            return {"center_": None, "scale_": None}
        ends = _quantile_range(self)
        wanted = [ends[0], 0.5, ends[1]]
        found = private_quantiles(rows, wanted, bounds=(bounds[0], bounds[1]), **release)
        self._warn(~found.found, "leaves as they are", typical_found=found.typical_found)
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

    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        return [(np.subtract, self.center_), (np.divide, self.scale_)]


@constructor_of_fields
class IntervalParameter:
    """The parameter that DPMinMaxScaler has first: what all share follows."""

    feature_range: tuple[float, float] = (0, 1)


@register_private
@constructor_of_fields
class DPMinMaxScaler(PrivateScaler, IntervalParameter):
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

    _budget = staticmethod(quantiles_budget)

    def _released(self, bounds: np.ndarray) -> np.ndarray:
        return np.asarray(~np.isfinite(bounds).all(axis=0))

    def _statistics(self, rows: Table[Any], bounds: np.ndarray, release: Facts) -> Facts:
        low, high = bounds.copy()
        searched = np.flatnonzero(self._released(bounds))
        fitted: Facts = {}
        if searched.size:
            if searched.size < low.size:
                rows = rows.map(partial(_some_columns, searched), searched.size)
            found = private_quantiles(rows, _quantile_range(self), **release)
            lost = np.zeros(low.size, dtype=bool)
            lost[searched] = ~found.found
            what = "takes the range from 0 to 1 for"
            self._warn(lost, what, typical_found=found.typical_found)
            ends = np.where(found.found, found.values, [[0.0], [1.0]])
            # A public bound on one side only still holds.
            low[searched], high[searched] = np.clip(ends, low[searched], high[searched])
            narrow = np.maximum(found.resolution, 1e-12 * np.abs(ends).max(axis=0))
            high[searched] = np.maximum(high[searched], low[searched] + narrow)
            fitted["n_samples_seen_"] = found.n_samples
        elif self.adjacency == "replace_one":
            fitted["n_samples_seen_"] = len(rows)
        first, last = self.feature_range
        scale = (last - first) / (high - low)
        fitted |= {"data_min_": low, "data_max_": high, "data_range_": high - low}
        return fitted | {"scale_": scale, "min_": first - low * scale}

    def transform(self, X: Any) -> Any:
        X = self._moved(X, back=False)  # an array, whatever output is set
        return np.clip(X, *self.feature_range, out=X) if self.clip else X

    def _steps(self) -> list[tuple[np.ufunc, Any]]:
        return [(np.multiply, self.scale_), (np.add, self.min_)]


def _some_columns(places: np.ndarray, X: np.ndarray) -> np.ndarray:
    return X[:, places]


def _quantile_range(estimator: Any) -> tuple[float, float]:
    """Return the parameter as two probabilities, or say what is wrong with it."""
    expected = "a pair of percentages with 0 <= low < high <= 100"
    low, high = number_pair(estimator, "quantile_range", expected, 0.0, 100.0)
    return low / 100.0, high / 100.0
