"""Standard units: from the columns of a user to those in which models are fitted, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdpnoise.kernels import row_products
from skdpnoise.kernels.joint import columns_of, hold_parts
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.queries.location_scale import LIMIT as LIMIT
from skdpnoise.queries.location_scale import TO_SIGMA

# Standardised values are clipped to 3 scales, or to this many at most: a value farther off has more
# leverage on second moments than it deserves.
FARTHEST = 60.0
TWO_VALUES = 0.1  # part by which the scale of a column of two values may be off what these have


OF_COLUMNS = ("center", "scale", "used", "limit")  # arrays of a standardisation


@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """Centres, scales and which columns are used; all arrays have shape (n_columns,)."""

    center: np.ndarray  # in the units of the columns, as the scale
    scale: np.ndarray
    used: np.ndarray  # False for columns that are constant or drowned in noise
    limit: np.ndarray  # standardised values are clipped to ± this
    spread: np.ndarray | float = 1.0  # standard deviations of the columns in these units
    groups: np.ndarray | None = None  # numbers of those whose part of a row has norm 1; -1 for none

    @property
    def reach(self) -> np.ndarray:
        """The limit in units of ±3: above 1 where bounds are wide for the spread of the column."""
        return self.limit / LIMIT

    def softened(self) -> Standardisation:
        """Return one with scales between those that the columns have and those of the limits."""
        # A mean square is at most the largest value times the mean of magnitudes: in these units
        # it is of the order of 1 for any column, however few values are far from all others.
        # So columns are the smaller, in standard deviations, the wider their bounds are.
        root = np.sqrt(self.reach)
        limit = self.limit / root
        spread = np.asarray(1.0 / (limit / LIMIT))
        return replace(self, scale=self.scale * root, limit=limit, spread=spread)

    @property
    def plain(self) -> Standardisation:
        """The same in standard deviations, in which no columns share a unit of norm."""
        part = self.spread
        return replace(
            self, scale=self.scale * part, limit=self.limit / part, spread=1.0, groups=None
        )

    def of_two_values(self, bounds: np.ndarray) -> np.ndarray:
        """Return which columns have the scale of two values, the ends of bounds (2, n_columns)."""
        # Scales are from mean absolute deviations, each of at most half of the bounds.
        with np.errstate(invalid="ignore"):
            half = 0.5 * (bounds[1] - bounds[0])
            ends = self.center - bounds[0], bounds[1] - self.center
            deviations = ends[1] * np.minimum(ends[0], half), ends[0] * np.minimum(ends[1], half)
            scale = 0.5 * TO_SIGMA * (deviations[0] + deviations[1]) / half
            return np.asarray(np.abs(self.scale - scale) <= TWO_VALUES * scale)

    def widened(self, unbounded: np.ndarray) -> Standardisation:
        """Return one that clips what is farthest alone, some columns being without bounds."""
        within = np.minimum(self.limit, FARTHEST)
        return replace(self, limit=np.where(unbounded, FARTHEST, within))

    def narrowed(self, bounds: np.ndarray) -> Standardisation:
        """Return one that clips to ±3 scales, but for columns of two values, the ends of bounds."""
        narrow = np.minimum(self.limit, LIMIT)
        return replace(self, limit=np.where(self.of_two_values(bounds), self.limit, narrow))

    def through_origin(self) -> Standardisation:
        """Return a standardisation that leaves 0 where it is, for models without an intercept."""
        scale = np.hypot(self.center, self.scale)
        widest = np.hypot(self.center, self.scale * self.reach)
        return Standardisation(np.zeros_like(self.center), scale, self.used, LIMIT * widest / scale)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the values in standard units, clipped; columns that are not used become 0."""
        standard = np.subtract(self.held(values), self.center, dtype=np.float64)
        standard /= self.scale
        standard[:, ~self.used] = 0.0
        return np.asarray(np.clip(standard, -self.limit, self.limit, out=standard))

    def scores(self, X: Any, slopes: np.ndarray) -> np.ndarray:
        """Return the products of the rows in standard units with slopes of several outputs."""
        if isinstance(X, np.ndarray):
            # Last digits of a row must not hang on what is beside it.
            return row_products(self(X), slopes.T)
        # What is not stored is 0 in the user's units: rows are that, and what differs from it.
        rows: Any = self.held(X.astype(np.float64))
        nothing, columns = self(np.zeros((1, X.shape[1]))), rows.indices
        standard = (rows.data - self.center[columns]) / self.scale[columns]
        standard = np.clip(standard, -self.limit[columns], self.limit[columns])
        rows.data = np.where(self.used[columns], standard, 0.0) - nothing[0, columns]
        return np.asarray(rows @ slopes.T + nothing @ slopes.T)

    @property
    def parts(self) -> Sequence[np.ndarray]:
        """The columns of each group, in which a row has norm 1 at most."""
        return () if self.groups is None else columns_of(self.groups)

    def held(self, X: Any) -> Any:
        """Return rows as they came, their parts in groups held to the norm 1."""
        if not self.parts:
            return X
        rows = X.astype(np.float64)
        hold_parts(rows, self.parts)
        return rows

    def in_user_units(
        self, model: np.ndarray, units: tuple[float, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes and intercepts from coefficients in standard units, the intercept last."""
        center, scale = units  # of the target
        # A feature that is not used has coefficient 0, whatever its scale.
        slopes = scale * model[..., :-1] / self.scale
        return slopes, center + scale * model[..., -1] - slopes @ self.center

    @property
    def range(self) -> np.ndarray:
        """The interval that is not clipped, of shape (2, n_columns)."""
        reach = np.where(self.used, self.limit * self.scale, np.inf)
        return np.stack([self.center - reach, self.center + reach])

    @property
    def length(self) -> float:
        """R, the norm of a typical row."""
        return float(np.linalg.norm(np.broadcast_to(self.spread, self.used.shape)[self.used]))

    @property
    def longest(self) -> float:
        """The norm that no row exceeds: of a group, 1 more than that of its centre."""
        alone = self.used if self.groups is None else self.used & (self.groups == NO_GROUP)
        parts = (1.0 + float(np.linalg.norm(self.center[columns])) for columns in self.parts)
        return math.hypot(float(np.linalg.norm(self.limit[alone])), *parts)


def side_by_side(*columns: Standardisation) -> Standardisation:
    """Return the scaling of columns of which each has one, in their order."""
    arrays = ([getattr(one, name) for one in columns] for name in OF_COLUMNS)
    return Standardisation(*map(np.concatenate, arrays))


def plain_units(n_columns: int) -> Standardisation:
    ones = np.ones(n_columns)
    return Standardisation(0.0 * ones, ones, ones > 0.0, LIMIT * ones)
