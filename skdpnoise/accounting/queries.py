"""Sums over records that are made from one bound: what is summed, and how far a record moves it.

Each query clips what a record contributes to its bound, rounds it to grid steps, and sums integers.
Its sensitivity is computed from the same bound (:mod:`skdpnoise.sensitivity`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.kernels.second_moments import clipped_row_sums, second_moments
from skdpnoise.kernels.sizes import in_blocks
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.balls import KNormMechanism, calibrate_ball
from skdpnoise.mechanisms.matrices import SymmetricMatrixMechanism, calibrate_second_moments
from skdpnoise.privacy import Adjacency, LossBudget
from skdpnoise.sensitivity import (
    GroupedProfile,
    RowBounds,
    SensitivityProfile,
    clipped_rows,
    clipped_sum,
    grouped_sum,
    histogram_counts,
    second_moments_profile,
)

__all__ = ["ClippedRows", "ClippedSum", "ClippedVectors", "GroupedSum", "SecondMoments"]

Floats = NDArray[np.float64]
Integers = NDArray[Any]
"""Of int64; Python's own where 64 bits would not do."""

Step = Callable[[Any], Integers]
_Hold = Callable[[Any], Floats]
Contributions = Callable[[Any], Iterable[Any]]
"""From a leaf of a table to what its records contribute, shape (n_records, n_columns), some records
at a time; the leaf itself where there is none."""

_ENTRIES = 1 << 16  # of rows by group: within a processor's cache
_LARGEST = 2.0**62  # of sums of int64, which get noise
_SQUARED = 1e-140, 1e140  # between which a radius, and all that matters beside it, may be squared


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSum:
    """Sums of columns that are clipped to an interval."""

    low: Floats
    high: Floats
    contributions: Contributions | None = None
    alike: bool = False  # whether all columns get one noise, by how far they move together

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        profile = clipped_sum(self.low, self.high, adjacency)
        if not self.alike:
            return profile
        size = profile.n_coordinates
        return GroupedProfile([np.linalg.norm(profile.per_coordinate)], np.zeros(size))

    def step(self, grid_size: Floats) -> Step:
        hold = partial(_clipped, low=self.low, high=self.high)
        most = np.maximum(-self.low, self.high)
        return partial(_summed, self.contributions, hold, grid_size, most)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedVectors:
    """Sums of vectors, one record's held to a Euclidean norm, of which all entries are alike."""

    norm: float
    n_columns: int
    contributions: Contributions | None = None

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        width = 2.0 if adjacency == "replace_one" else 1.0
        return GroupedProfile([width * self.norm], np.zeros(self.n_columns))

    def calibrated(
        self, noise: str, loss: LossBudget, adjacency: Adjacency, n_releases: int = 1
    ) -> KNormMechanism | AdditiveMechanism:
        """Return the noise of some releases: for a pure loss that of the K-norm of the ball."""
        profile = self.sensitivity(adjacency)
        radius = float(profile.per_coordinate[0])  # of the one group
        return calibrate_ball(noise, profile, radius, loss, n_releases=n_releases)

    def step(self, grid_size: Floats) -> Step:
        hold = partial(bounded, norm=self.norm)
        return partial(_summed, self.contributions, hold, grid_size, self.norm)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedRows:
    """Sums of rows about a centre, in units of scales, in a box and shrunk into balls."""

    bounds: RowBounds
    center: Floats | None = None
    scale: Floats | float | None = None
    contributions: Contributions | None = None  # tables side by side
    n_threads: int = 1
    beyond: Floats | None = None  # entries count by how far they are beyond ± this, in scales

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        return clipped_rows(self.bounds, adjacency)

    def step(self, grid_size: Floats) -> Step:
        return partial(self._sums, clipped_row_sums, grid_size)

    def _sums(self, kernel: Callable[..., Integers], grid_size: Floats, leaf: Any) -> Integers:
        bounds = self.bounds
        sums = partial(
            kernel,
            row_grid_size=grid_size,
            norm=bounds.norm,
            columns=bounds.columns,
            l1_norm=bounds.l1_norm,
            center=self.center,
            scale=self.scale,
            beyond=self.beyond,
            n_threads=self.n_threads,
        )
        blocks = [leaf] if self.contributions is None else self.contributions(leaf)
        return np.asarray(sum(map(sums, blocks)))


@dataclass(frozen=True, slots=True, eq=False)
class SecondMoments(ClippedRows):
    """Sums of the products of all pairs of entries of such rows, a matrix."""

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        """Return the most that one record moves the sums of the upper triangle, row by row."""
        return second_moments_profile(self.bounds, adjacency)

    def calibrated(
        self, noise: str, loss: LossBudget, adjacency: Adjacency
    ) -> SymmetricMatrixMechanism:
        return calibrate_second_moments(noise, self.bounds, loss, adjacency)

    def step(self, grid_size: Floats) -> Step:
        # The grid of the products of rows, of which the root of a square is exact.
        return partial(self._sums, second_moments, np.sqrt(np.diag(grid_size)))


@dataclass(frozen=True, slots=True, eq=False)
class GroupedSum:
    """Sums of clipped rows in public groups, or counts of records in them, group after group."""

    # A record is in one group, or in none: its code is then negative. Without rows it is one count;
    # with several columns of codes, one count for each of them, column after column.

    n_groups: int
    codes: Callable[[Any], NDArray[np.intp]]  # (n_records,), of counts also (n_records, n_columns)
    low: Floats | None = None  # (n_columns,), of rows
    high: Floats | None = None
    rows: Callable[[Any], NDArray[Any]] | None = None  # (n_records, n_columns)
    n_columns: int = 1  # of codes

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        if self.low is None or self.high is None:
            return histogram_counts(self.n_groups, adjacency, self.n_columns)
        return grouped_sum(self.low, self.high, self.n_groups, adjacency)

    def step(self, grid_size: Floats) -> Step:
        return partial(self._counts if self.rows is None else self._sums, grid_size)

    def _counts(self, grid_size: Floats, leaf: Any) -> Integers:
        # A bin before the groups and one after them take the records of no group.
        codes, n_bins = self.codes(leaf), self.n_groups + 2
        first = 1 + n_bins * np.arange(self.n_columns)
        counts = np.zeros(n_bins * self.n_columns, dtype=np.int64)
        for at in in_blocks(len(codes)):
            places = np.clip(codes[at], -1, self.n_groups).reshape(-1, self.n_columns) + first
            counts += np.bincount(places.ravel(), minlength=counts.size)
        kind = _kind(len(codes), grid_size, 1.0)
        found: Integers = counts.reshape(-1, n_bins)[:, 1:-1].ravel().astype(kind)
        return np.asarray(found * _in_steps(np.ones(len(grid_size)), grid_size, kind))

    def _sums(self, grid_size: Floats, leaf: Any) -> Integers:
        assert self.rows is not None and self.low is not None and self.high is not None
        all_codes, all_rows = self.codes(leaf), self.rows(leaf)
        grid, most = grid_size.reshape(self.n_groups, -1), np.maximum(-self.low, self.high)
        kind = _kind(len(all_codes), grid, most)
        total: Integers = np.zeros(grid.shape, dtype=kind)
        at_once = max(1, _ENTRIES // grid.shape[1])
        for begin in range(0, len(all_codes), at_once):
            codes = all_codes[begin : begin + at_once]
            there = np.flatnonzero((codes >= 0) & (codes < self.n_groups))
            order = there[np.argsort(codes[there], kind="stable")]
            groups, begins = np.unique(codes[order], return_index=True)
            rows = _clipped(all_rows[begin : begin + at_once][order], self.low, self.high)
            if groups.size:
                steps = _in_steps(rows, grid[codes[order]], kind)
                total[groups] += np.add.reduceat(steps, begins)
        return total.ravel()


def bounded(rows: NDArray[Any], norm: float) -> Floats:
    """Return rows, each shrunk into a ball; what is no number becomes one first."""
    with np.errstate(all="ignore"):
        clipped = np.fmax(np.fmin(np.asarray(rows, dtype=np.float64), norm), -norm)
    # Squares of entries as small, or as large, as these would be 0, or infinite.
    unit = 1.0 if _SQUARED[0] < norm < _SQUARED[1] else norm
    norms = unit * np.linalg.norm(clipped if unit == 1.0 else clipped / unit, axis=1)
    return np.asarray(clipped * (norm / np.maximum(norms, norm))[:, np.newaxis])


def _clipped(rows: NDArray[Any], low: Any, high: Any) -> Floats:
    """Return rows within bounds; what is no number becomes one of them."""
    with np.errstate(all="ignore"):  # a warning would tell of a single record
        found: Floats = np.fmax(np.fmin(np.asarray(rows, dtype=np.float64), high), low)
    return found


def _summed(
    contributions: Contributions | None, hold: _Hold, grid_size: Floats, most: Any, leaf: Any
) -> Integers:
    """Return the sums of all that is held within a bound, each entry in grid steps."""
    total, n_rows = np.zeros(1, dtype=np.int64), 0
    for some in [leaf] if contributions is None else contributions(leaf):
        n_rows += len(some)
        steps = _in_steps(hold(some), grid_size, _kind(n_rows, grid_size, most))
        total = total + steps.sum(axis=0)
    return total


def _in_steps(values: Floats, grid_size: Floats, kind: type) -> Integers:
    """Return values in grid steps, as integers of a type that holds sums of all of them."""
    steps = np.rint(values / grid_size)
    return np.asarray(np.frompyfunc(int, 1, 1)(steps)) if kind is object else steps.astype(np.int64)


def _kind(n_rows: int, grid_size: Floats, most: Any) -> type:
    """Return the type of integers that sums of so many values need, of which each is bounded."""
    return np.int64 if n_rows * float(np.max(most / grid_size)) < _LARGEST else object
