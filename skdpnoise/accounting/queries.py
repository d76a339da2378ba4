"""Sums over records that are made from one bound: what is summed, and how far a record moves it.

Each query clips what a record contributes to its bound, rounds it to grid steps, and sums integers.
Its sensitivity is computed from the same bound (:mod:`skdpnoise.sensitivity`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy import Adjacency
from skdpnoise.sensitivity import (
    RowBounds,
    SensitivityProfile,
    clipped_gradient,
    clipped_rows,
    clipped_sum,
    grouped_sum,
    histogram_counts,
    second_moments_profile,
)

__all__ = ["ClippedGradient", "ClippedRows", "ClippedSum", "GroupedSum", "SecondMoments"]

Floats = NDArray[np.float64]
Integers = NDArray[Any]
"""Of int64; Python's own where 64 bits would not do."""

Step = Callable[[Any], Integers]
Rows = Callable[[Any], NDArray[Any]]
"""From a leaf of a table to what its records contribute, shape (n_records, n_columns)."""

_PRODUCTS = 1 << 20  # of entries of rows, that are held at a time
_ENTRIES = 1 << 16  # of rows by group: within a processor's cache
_LARGEST = 2.0**62  # of sums of int64, which get noise
_SQUARED = 1e-140, 1e140  # between which a radius, and all that matters beside it, may be squared


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSum:
    """Sums of columns that are clipped to an interval."""

    low: Floats
    high: Floats
    rows: Rows = np.asarray

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        """Return the most that one record moves the sums."""
        return clipped_sum(self.low, self.high, adjacency)

    def step(self, grid_size: Floats) -> Step:
        """Return what sums clipped values in grid steps."""
        return partial(self._sums, grid_size)

    def _sums(self, grid_size: Floats, leaf: Any) -> Integers:
        rows, most = self.rows(leaf), np.maximum(-self.low, self.high)
        steps = _in_steps(_clipped(rows, self.low, self.high), grid_size, most)
        return np.asarray(steps.sum(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class ClippedGradient:
    """Sums of gradients whose entries are clipped to [−C_j, C_j]."""

    clip: Floats
    gradients: Rows  # a function of a row and of public coefficients

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        """Return the most that one record moves the sums."""
        return clipped_gradient(self.clip, adjacency)

    def step(self, grid_size: Floats) -> Step:
        """Return what sums clipped gradients in grid steps."""
        return ClippedSum(-self.clip, self.clip, self.gradients).step(grid_size)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedRows:
    """Sums of rows that are clipped to a box and shrunk into balls."""

    bounds: RowBounds
    rows: Rows = np.asarray

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        """Return the most that one record moves the sums."""
        return clipped_rows(self.bounds, adjacency)

    def step(self, grid_size: Floats) -> Step:
        """Return what sums bounded rows in grid steps."""
        return partial(self._sums, grid_size)

    def _sums(self, grid_size: Floats, leaf: Any) -> Integers:
        rows = bounded(self.rows(leaf), self.bounds)
        return np.asarray(_in_steps(rows, grid_size, self.bounds.limits).sum(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class SecondMoments:
    """Sums of the products of two entries of bounded rows: of the upper triangle, row by row."""

    bounds: RowBounds
    rows: Rows = np.asarray

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        """Return the most that one record moves the sums."""
        return second_moments_profile(self.bounds, adjacency)

    def step(self, grid_size: Floats) -> Step:
        """Return what sums products in grid steps."""
        return partial(self._sums, grid_size)

    def _sums(self, grid_size: Floats, leaf: Any) -> Integers:
        first, second = np.triu_indices(self.bounds.n_columns)
        rows, most = self.rows(leaf), self.bounds.limits[first] * self.bounds.limits[second]
        total: Integers = np.zeros(first.size, dtype=_kind(len(rows), grid_size, most))
        at_once = max(1, _PRODUCTS // first.size)
        for begin in range(0, len(rows), at_once):
            some = bounded(rows[begin : begin + at_once], self.bounds)
            products = some[:, first] * some[:, second]
            total += _in_steps(products, grid_size, most).sum(axis=0)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class GroupedSum:
    """Sums of clipped rows in public groups, or counts of records in them, group after group."""

    # A record is in one group, or in none: its code is then negative. Without rows it is one count;
    # with several columns of codes, one count for each of them, column after column.

    n_groups: int
    codes: Callable[[Any], NDArray[np.intp]]  # (n_records,), of counts also (n_records, n_columns)
    low: Floats | None = None  # (n_columns,), of rows
    high: Floats | None = None
    rows: Rows | None = None
    n_columns: int = 1  # of codes

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        """Return the most that one record moves the sums."""
        if self.low is None or self.high is None:
            return histogram_counts(self.n_groups, adjacency, self.n_columns)
        return grouped_sum(self.low, self.high, self.n_groups, adjacency)

    def step(self, grid_size: Floats) -> Step:
        """Return what sums clipped rows, or counts records, in grid steps."""
        return partial(self._counts if self.rows is None else self._sums, grid_size)

    def _counts(self, grid_size: Floats, leaf: Any) -> Integers:
        # A bin before the groups and one after them take the records of no group.
        codes = np.clip(self.codes(leaf), -1, self.n_groups).reshape(-1, self.n_columns)
        n_bins, size = self.n_groups + 2, (self.n_groups + 2) * self.n_columns
        places = codes + (1 + n_bins * np.arange(self.n_columns))
        counts = np.bincount(places.ravel(), minlength=size).reshape(-1, n_bins)[:, 1:-1]
        found: Integers = counts.ravel().astype(_kind(len(codes), grid_size, 1.0))
        return np.asarray(found * _in_steps(np.ones(len(grid_size)), grid_size, 1.0))

    def _sums(self, grid_size: Floats, leaf: Any) -> Integers:
        assert self.rows is not None and self.low is not None and self.high is not None
        all_codes, all_rows = self.codes(leaf), self.rows(leaf)
        grid, most = grid_size.reshape(self.n_groups, -1), np.maximum(-self.low, self.high)
        total: Integers = np.zeros(grid.shape, dtype=_kind(len(all_codes), grid, most))
        at_once = max(1, _ENTRIES // grid.shape[1])
        for begin in range(0, len(all_codes), at_once):
            codes = all_codes[begin : begin + at_once]
            there = np.flatnonzero(self._are_groups(codes))
            order = there[np.argsort(codes[there], kind="stable")]
            groups, begins = np.unique(codes[order], return_index=True)
            rows = _clipped(all_rows[begin : begin + at_once][order], self.low, self.high)
            if groups.size:
                steps = _in_steps(rows, grid[codes[order]], most)
                total[groups] += np.add.reduceat(steps, begins)
        return total.ravel()

    def _are_groups(self, codes: NDArray[np.intp]) -> NDArray[np.bool_]:
        return (codes >= 0) & (codes < self.n_groups)


def bounded(rows: NDArray[Any], bounds: RowBounds) -> Floats:
    """Return rows, each clipped to the box of its bounds and then shrunk into their balls."""
    clipped = _clipped(rows, -bounds.limits, bounds.limits)
    # Squares of entries as small, or as large, as these would be 0, or infinite.
    unit = 1.0 if _SQUARED[0] < bounds.radius < _SQUARED[1] else bounds.radius
    norms = unit * np.linalg.norm(clipped if unit == 1.0 else clipped / unit, axis=1)
    factor = bounds.norm / np.maximum(norms, bounds.norm)
    if bounds.l1_norm is not None:
        sums = np.abs(clipped).sum(axis=1)
        factor = np.minimum(factor, bounds.l1_norm / np.maximum(sums, bounds.l1_norm))
    return np.asarray(clipped * factor[:, np.newaxis])


def _clipped(rows: NDArray[Any], low: Floats, high: Floats) -> Floats:
    """Return rows within bounds; what is no number becomes one of them."""
    with np.errstate(all="ignore"):  # a warning would tell of a single record
        return np.fmax(np.fmin(np.asarray(rows, dtype=np.float64), high), low)


def _in_steps(values: Floats, grid_size: Floats, most: Any) -> Integers:
    """Return values, at most so large each, in grid steps: sums of all of them are exact."""
    steps = np.rint(values / grid_size)
    if _kind(len(values), grid_size, most) is object:
        return np.asarray(np.frompyfunc(int, 1, 1)(steps))
    return steps.astype(np.int64)


def _kind(n_rows: int, grid_size: Floats, most: Any) -> type:
    """Return the type of integers that sums of so many values need, of which each is bounded."""
    return np.int64 if n_rows * float(np.max(most / grid_size)) < _LARGEST else object
