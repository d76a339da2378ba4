"""Boosted stumps: the smallest honest learner, to show what a new family of estimators takes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.parameters import as_bounds, check_memory, number_pair
from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.accounting.session import FitSession
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import PrivateEstimator
from skdpnoise.base.register import register_private
from skdpnoise.base.scores import QuietScoreMixin
from skdpnoise.data.reading import NumberColumns, Supervised, read
from skdpnoise.data.schema import Schema
from skdpnoise.data.table import Table
from skdpnoise.data.tables import read_table
from skdpnoise.mechanisms import AdditiveMechanism, noise_options

Floats = NDArray[np.float64]
N_BINS = 64
# A record has a residual within ±1, and counts once, in one bin of a column.
HISTOGRAM = GroupedSum(N_BINS, itemgetter(0), np.array([-1.0, 1.0]), np.ones(2), itemgetter(1))
Stump = tuple[int, int, float, float]
"""A column, the last bin of its low side, and the scores of both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Public bins of the features, and the interval of the target that becomes [−1, 1]."""

    low: Floats
    width: Floats  # of a bin of each column
    middle: float
    half: float

    def bins(self, X: Any, column: int) -> NDArray[np.intp]:
        """Return the bin of each row."""
        places = (X[:, column].astype(np.float64) - self.low[column]) / self.width[column]
        return np.asarray(np.clip(np.floor(places), 0, N_BINS - 1), dtype=np.intp)

    def add(self, scores: Floats, stumps: list[Stump], X: Any) -> Floats:
        """Add what stumps say to the scores of rows, in place."""
        for column, last, left, right in stumps:
            scores += np.where(self.bins(X, column) <= last, left, right)
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class BoostingPlan:
    """One histogram of the residuals for each stump, fixed by public facts."""

    mechanism: AdditiveMechanism
    units: Units
    learning_rate: float

    def run(self, table: Table[Any], session: FitSession) -> list[Stump]:
        """Release the histograms, each with the stumps of those before."""
        drawn, stumps = session.draw("gradients", self.mechanism), list[Stump]()
        advance = partial(_advance, self.units, HISTOGRAM.step(self.mechanism.grid_size))
        with table.folded(_start, advance, "gradients") as fold:
            for k in range(len(drawn.noise)):
                column = k % self.units.low.size
                sums = drawn.in_units(fold.total((stumps[-1:], column)), k)
                stumps.append(self._stump(column, sums.reshape(N_BINS, 2)))
        return stumps

    def _stump(self, column: int, histogram: Floats) -> Stump:
        """Return the split that lowers the squared error most, by released sums alone."""
        below = np.cumsum(histogram, axis=0)[:-1]
        sums, counts = np.stack([below, histogram.sum(axis=0) - below], axis=1).T
        noise = np.sqrt(N_BINS) * self.mechanism.standard_deviation.max()
        means = sums / (np.maximum(counts, 0.0) + noise)
        best = int((means * sums).sum(axis=0).argmax())
        left, right = self.learning_rate * np.clip(means[:, best], -1.0, 1.0)
        return column, best, float(left), float(right)


def _start(rows: dict[str, Any]) -> Floats:
    return np.zeros(len(rows["y"]))


def _advance(
    units: Units, step: Any, scores: Floats, rows: dict[str, Any], update: tuple[list[Stump], int]
) -> Any:
    stumps, column = update
    target = np.clip((rows["y"] - units.middle) / units.half, -1.0, 1.0)
    residuals = target - units.add(scores, stumps, rows["X"])
    return step((units.bins(rows["X"], column), np.c_[residuals, np.ones(residuals.size)]))


@register_private
@constructor_of_fields
class DPBoostedStumps(PrivateEstimator, QuietScoreMixin, RegressorMixin, BaseEstimator):
    """Gradient boosting of the squared error by stumps, one column after the other."""

    _: KW_ONLY
    feature_bounds: tuple[Any, Any] | dict[str, Any] | None = None
    target_bounds: tuple[float, float] | None = None
    max_iter: int = 20
    learning_rate: float = 0.3
    _parameter_constraints: ClassVar[Constraints] = {
        "noise": [StrOptions(set(noise_options(adaptive=True)))],
        "feature_bounds": [tuple, list, dict, np.ndarray],
        "target_bounds": [tuple, list],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
    }

    def fit(self, X: Any, y: Any, groups: Any = None, **params: Any) -> Self:
        """Fit to private data, spending the whole guarantee."""
        with self._session(groups, params) as session:
            schema, rows = read(
                self, Supervised(NumberColumns()), self._known, X=X, y=y, groups=groups
            )
            plan = self._plan(schema, session)
            self.stumps_ = plan.run(rows.kept(session.rng).rows, session)
            self._units, self.privacy_ = plan.units, session.report()
        return self

    def _plan(self, schema: Schema, session: FitSession) -> BoostingPlan:
        size = 32.0 * N_BINS * self.max_iter
        check_memory("DPBoostedStumps", size, "the noise of so many stumps", "Lower max_iter.")
        low, high = as_bounds(self.feature_bounds, schema.n_columns, "feature_bounds", self)
        if not np.isfinite(high - low).all():
            raise ValueError("The 'feature_bounds' parameter of DPBoostedStumps must be finite.")
        pair = number_pair(self, "target_bounds", "a pair of numbers (low, high) with low < high")
        units = Units(low, (high - low) / N_BINS, sum(pair) / 2.0, (pair[1] - pair[0]) / 2.0)
        mechanism = session.reserve_for(HISTOGRAM, self.noise, self.max_iter)
        return BoostingPlan(mechanism, units, self.learning_rate)

    def predict(self, X: Any) -> Floats:
        """Return the scores of the stumps in the units of the target."""
        check_is_fitted(self)
        X, units = read_table(self, X, reset=False), self._units
        return units.middle + units.half * units.add(np.zeros(len(X)), self.stumps_, X)
