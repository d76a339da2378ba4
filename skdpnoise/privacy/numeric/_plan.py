"""Which shifts of a curve get lattices, so that thousands of them share a few dozen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy.curves import LossCurve, raised
from skdpnoise.privacy.numeric._lattice import Lattice, discretise

Vector = NDArray[np.float64]

_NODES_FREE = 48  # so many different shifts of a curve get a lattice each
_RATIO = 1.07  # between lattices, where there are more, or the next larger shift
_NEGLIGIBLE = 5e-4  # of the variance, for what interpolating from zero adds
_TINY = 1e-9  # of the largest shift: smaller ones count as that
_REACHES = np.geomspace(1e-8, 1e5, 200)  # of an unbounded loss, in units of the shift
_CELLS = 2_000_000  # values of a curve that are computed at once
_DISTINCT, _MERGED = 1000, 0.002  # more shifts than that are merged if within this of a larger one


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Which shifts of a curve get lattices, for a composition."""

    # Whatever stands for a shift is one of the shifts themselves and not below it: noise on the
    # integers has curves that jump from one integer to the next, so that a node a hair below one
    # would have the curve of the integer before.

    curve: LossCurve
    shifts: Vector
    counts: Vector
    nodes: Vector
    tops: Vector

    @classmethod
    def of(cls, curve: LossCurve, shifts: Vector, counts: Vector, floor: float) -> Plan:
        shifts = np.maximum(shifts, _TINY * shifts[-1])
        if shifts.size > _DISTINCT:
            cells = np.floor(np.log(shifts[-1] / shifts) / _MERGED)
            first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
            counts = np.add.reduceat(counts, first)
            shifts = np.maximum.reduceat(shifts, first)
        nodes = shifts
        if shifts.size > _NODES_FREE:
            part = shifts / shifts[-1]
            total = float(counts @ part**2)
            # Below the lowest lattice, interpolation from zero adds up to shift times lowest.
            added = np.cumsum(counts * part) * part
            lowest = shifts[max(0, int(np.searchsorted(added, _NEGLIGIBLE * total)) - 1)]
            n_nodes = max(2, math.ceil(math.log(shifts[-1] / lowest) / math.log(_RATIO)) + 1)
            wanted = np.searchsorted(shifts, np.geomspace(lowest, shifts[-1], n_nodes))
            wanted[-1] = shifts.size - 1
            nodes = np.concatenate([[0.0], np.unique(shifts[wanted])])
        return cls(curve, shifts, counts, nodes, _tops(curve, nodes, floor))

    @property
    def high(self) -> NDArray[np.intp]:
        """The node that stands for each shift, or is the upper one of the two that do."""
        index = np.searchsorted(self.nodes, self.shifts)
        assert (self.nodes[index] >= self.shifts).all(), "a node lies below its shift"
        return index

    def variance(self) -> float:
        """Return the variance of the loss, roughly."""
        shift = np.sqrt(self.counts @ self.shifts**2 / self.counts.sum())
        step = float(_tops(self.curve, shift[None], 1e-12)[0]) / 64.0
        lattice = discretise(raised(self.curve, step * np.arange(66), shift), step)
        losses = lattice.losses
        mean = float(lattice.p @ losses)
        return float(lattice.p @ (losses - mean) ** 2) * step**2 * float(self.counts.sum())

    def support(self) -> float:
        """Return the largest finite loss of the composition, roughly."""
        return float(self.counts @ self.tops[self.high])

    def build(
        self, step: float, nodes: list[Lattice]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Vector, Vector]:
        """Append the lattices to `nodes`; return low, high, t and count of each term."""
        first = len(nodes)
        dots = np.maximum(np.ceil(self.tops / step * (1.0 + 1e-12)).astype(int) + 1, 2)
        values: list[Vector] = []
        # Lattices of about the same length are computed in one table, not too large.
        chunk = np.arange(dots.size) * int(dots.max()) // _CELLS
        changes = np.diff(np.ceil(np.log2(dots))) + np.diff(chunk)
        for block in np.split(np.arange(dots.size), np.flatnonzero(changes) + 1):
            grid = step * np.arange(int(dots[block].max()))
            table = raised(self.curve, grid, self.nodes[block, None])
            values += [row[:count] for row, count in zip(table, dots[block], strict=True)]
        nodes += [discretise(row, step) for row in values]
        high = self.high
        if self.nodes is self.shifts:
            index = first + np.arange(self.nodes.size)
            return index, index, np.ones(index.size), self.counts
        low = np.maximum(high - 1, 0)
        t = np.empty(self.shifts.size)
        for j in np.unique(high):
            (members,) = np.nonzero(high == j)
            t[members] = self._weights(self.shifts[members], values[max(j - 1, 0)], values[j], step)
        return first + low, first + high, t, self.counts

    def _weights(self, shifts: Vector, low: Vector, high: Vector, step: float) -> Vector:
        """Return the least t for which low + t (high - low) covers each curve at every dot."""
        below = np.zeros_like(high)
        below[: low.size] = low[: high.size]
        gap = high - below
        grid = step * np.arange(high.size)
        between = raised(self.curve, grid, shifts[:, None]) - below
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(between > 0.0, between / gap, 0.0)
        weights: Vector = np.clip(np.nan_to_num(ratio, nan=1.0).max(axis=1) * (1 + 1e-9), 0.0, 1.0)
        return weights


def _tops(curve: LossCurve, shifts: Vector, floor: float) -> Vector:
    """Return the loss at which each curve ends: its largest, or where it falls to the floor."""
    tops = np.array(curve.max_loss(shifts), dtype=np.float64)
    (endless,) = np.nonzero(np.isinf(tops))
    if endless.size:
        grid = _REACHES * shifts[endless, None]
        values = curve.hockey_stick(grid, shifts[endless, None])
        # An infinite loss with positive probability makes the curve flat in the end.
        ended = (values <= floor) | (values <= values[:, -1:] * (1.0 + 1e-9))
        ended[:, -1] = True
        tops[endless] = grid[np.arange(endless.size), ended.argmax(axis=1)]
    return tops
