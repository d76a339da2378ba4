r"""Gradients of single records, clipped in groups of coordinates, as integers within their norms.

.. math:: k_{ij} = \mathrm{trunc}\left(\frac{g_{ij}}{a_g} \min\left(1, \frac{C_g}{|g_{ig}|_r}
          \right)\right), \qquad |k_{ig}|_r \le \lfloor C_g / a_g \rfloor_r

with a the grid step of the noise and r the norm of a group. The bound is verified on the integers,
whose powers are summed exactly: what floating-point arithmetic made of norm and factor does not
matter. Sums of integers depend on no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClippedParts"]

_LARGEST = 2.0**26  # norm of integers: their powers are summed exactly in double precision
_LESS = 1.0 - 2.0**-40  # of limits: more than a few roundings
_MOST_RECORDS = 2**26  # of one call, so that sums are exact, too
_MARGIN = 1.0 - 2.0**-30  # of factors: nearly all rounding is within it
_SMALLER = 1.0 - 2.0**-22  # a factor whose integers are too long is made smaller by this

Gradients = NDArray[np.float32] | Sequence[NDArray[np.float32]]
Piece = tuple[NDArray[np.float32], tuple[int, int], slice]


@dataclass(frozen=True, slots=True, eq=False)
class ClippedParts:
    """Sums of gradients, each clipped in groups of coordinates, in grid steps of a noise.

    Parameters
    ----------
    starts : ndarray of int64 of shape (n_groups + 1,)
        Where each group of coordinates begins, and the end.
    bounds : ndarray of float64 of shape (n_groups,)
        C, positive.
    grid_size : ndarray of float64 of shape (n_groups,)
        a, positive: the grid step of the noise in each group.
    order : {1, 2}
        r, the norm of each group.

    Attributes
    ----------
    steps : ndarray of float64 of shape (n_groups,)
        The step of integers: a, times a power of two where C is too many of them.
    powers : ndarray of float64 of shape (n_groups,)
        The largest sum of r-th powers of integers in each group.

    Examples
    --------
    >>> parts = ClippedParts(np.array([0, 2]), np.array([1.0]), np.array([0.125]), 2)
    >>> rows = np.array([[3.0, 4.0], [0.25, 0.0]], dtype=np.float32)
    >>> parts.sums(rows, np.array([True, True]))  # 8 times .6 and .8, towards zero; and 2
    array([6, 6])
    """

    starts: NDArray[np.int64]
    bounds: NDArray[np.float64]
    grid_size: NDArray[np.float64]
    order: int
    steps: NDArray[np.float64] = field(init=False)
    powers: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        longer = np.log2(self.bounds / self.grid_size / _LARGEST)
        steps = np.ldexp(self.grid_size, np.maximum(np.floor(longer) + 1.0, 0.0).astype(int))
        most = np.floor((self.bounds / steps) ** self.order * _LESS)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "powers", most)

    def sums(self, gradients: Gradients, present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the sums over records of their clipped gradients, in grid steps of the noise.

        A record whose gradient is not finite adds nothing.

        Parameters
        ----------
        gradients : ndarray of float32 of shape (n_records, n_coordinates), or sequence of such
            g, group by group; several stand side by side. At most 2**26 records.
        present : ndarray of bool of shape (n_records,)
            Which rows are records; the others add nothing.

        Returns
        -------
        ndarray of int64 of shape (n_coordinates,)
        """
        return self.sums_and_excess(gradients, present)[0]

    def sums_and_excess(
        self, gradients: Gradients, present: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sums, and of each group the records that are within C less those beyond.

        Parameters
        ----------
        gradients, present
            As of :meth:`sums`. A record whose gradient is not finite counts as neither.

        Returns
        -------
        sums : ndarray of int64 of shape (n_coordinates,)
        excess : ndarray of int64 of shape (n_groups,)
        """
        from skdpnoise.kernels.joint._part_loops import add_powers  # compiled when it is used

        assert present.size <= _MOST_RECORDS
        tables = [gradients] if isinstance(gradients, np.ndarray) else gradients
        pieces = [list(self._pieces(tables, group)) for group in range(self.bounds.size)]
        rows, norms = np.flatnonzero(present), np.zeros((self.bounds.size, present.size))
        for group, size in zip(pieces, norms, strict=True):
            for table, columns, _ in group:
                add_powers(table, columns, rows, self.order, size)
        norms **= 1.0 / self.order
        rows = rows[np.isfinite(norms[:, rows]).all(axis=0)]
        bounds = self.bounds[:, np.newaxis]
        beyond = norms > bounds
        shrunk = np.divide(_MARGIN * bounds, norms, out=np.ones_like(norms), where=beyond)
        total = np.zeros(self.starts[-1])
        for group, factors, most in zip(
            pieces, shrunk / self.steps[:, np.newaxis], self.powers, strict=True
        ):
            self._add(group, rows, factors, most, total)
        per_step = (self.steps / self.grid_size).astype(np.int64)  # powers of two
        whole = total.astype(np.int64) * np.repeat(per_step, np.diff(self.starts))
        return whole, rows.size - 2 * np.count_nonzero(beyond[:, rows], axis=1)

    def _pieces(self, tables: Sequence[NDArray[np.float32]], group: int) -> Iterator[Piece]:
        """Yield the columns of tables that are those of a group, and where they begin there."""
        ends = np.cumsum([table.shape[1] for table in tables])
        for table, end in zip(tables, ends.tolist(), strict=True):
            begin = end - table.shape[1]
            first, last = max(begin, int(self.starts[group])), min(end, int(self.starts[group + 1]))
            if first < last:
                yield table, (first - begin, last - begin), slice(first, last)

    def _add(
        self,
        group: list[Piece],
        rows: NDArray[np.intp],
        factors: NDArray[np.float64],
        most: float,
        total: NDArray[np.float64],
    ) -> None:
        """Add the integers of a group, of each record as many as keep within their size."""
        from skdpnoise.kernels.joint._part_loops import add_whole

        while rows.size:
            sizes = np.zeros(factors.size)
            for table, columns, place in group:
                add_whole(table, columns, rows, factors, self.order, total[place], sizes)
            rows = rows[~(sizes[rows] <= most)]
            for table, columns, place in group:
                add_whole(table, columns, rows, -factors, self.order, total[place], sizes)
            factors[rows] *= _SMALLER
