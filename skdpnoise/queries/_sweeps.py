"""Sweeps over the columns of a table, in tiles of rows that stay in the cache.

What a record adds is a function of its values alone, and all sums are of integers. So no result
depends on the tiles, the threads, or the layout of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

__all__ = ["Contribution", "Gaps", "Records", "Tile", "all_finite", "count_sums", "tallies"]

Tile = NDArray[np.float64]
"""Row i holds the values of one column, with unused numbers at its end."""

Integers = NDArray[np.int64]
Visit = Callable[[Tile, int, Integers, NDArray[np.intp]], None]
"""``visit(tile, n, counts, which)`` adds what the first n values in each row of the tile count for.

Row i of the tile and of the counts stands for column ``which[i]`` of those that are swept.
"""

Contribution = Callable[[NDArray[np.float64], NDArray[np.intp]], None]
"""``contribution(values, which)`` overwrites values, of shape (len(which), n), by what they add."""

_ENTRIES = 1 << 16  # of a tile, which fits the second-level cache beside what it is read from
_MOST_COLUMNS, _MOST_ROWS = 64, 1 << 14
_PADDING = 8  # so that the rows of a tile do not all fall on the same lines of the cache
# Below this many values, handing work to a thread costs more than it saves.
_VALUES_PER_THREAD = 1 << 18
_MOST_PAIRED = 1 << 31  # two row numbers share 64 bits
_HALF_WORD = np.int64(32)

COMPILED = {"cache": True, "nogil": True}


class Source(Protocol):
    """What a sweep reads."""

    def __len__(self) -> int:
        """Return how many values each column has."""
        ...

    def load(self, columns: NDArray[np.intp], begin: int, n: int, tile: Tile) -> None:
        """Write values `begin` to `begin` + n of some columns to the rows of a tile."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The values of the records, in the order of the table."""

    table: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.table)

    def load(self, columns: NDArray[np.intp], begin: int, n: int, tile: Tile) -> None:
        """Copy values in double precision."""
        rows, first = slice(begin, begin + n), int(columns[0])
        if columns[-1] - first == columns.size - 1:  # increasing, so these lie side by side
            np.copyto(tile[:, :n], self.table[rows, first : first + columns.size].T)
            return
        for row, column in zip(tile, columns.tolist(), strict=True):
            row[:n] = self.table[rows, column]


class Gaps:
    """Differences of the two records of each pair, in double precision."""

    def __init__(self, table: NDArray[np.floating], order: Integers) -> None:
        """Pair the first half of the records in an order with the second; `order` is overwritten.

        The last of an odd number is left out. Pairs are sorted, so that one record of each is read
        in the order of memory.
        """
        if order.size > _MOST_PAIRED:
            raise ValueError("Columns without public bounds may have at most 2**31 records.")
        half = order.size // 2
        self.pairs = order[:half]
        self.pairs <<= _HALF_WORD
        self.pairs |= order[half : 2 * half]
        self.pairs.sort()
        # One compiled kernel, whether or not the data can be written to.
        self.table = table.view()
        self.table.flags.writeable = False

    def __len__(self) -> int:
        return self.pairs.size

    def load(self, columns: NDArray[np.intp], begin: int, n: int, tile: Tile) -> None:
        """Write differences."""
        _subtract(self.table, self.pairs[begin : begin + n], columns, tile)


@njit(**COMPILED)
def _subtract(data, pairs, columns, tile):
    """Write the differences of pairs of rows of the data to a tile."""
    n, mask = pairs.shape[0], (np.int64(1) << _HALF_WORD) - 1
    if data.strides[0] < data.strides[1]:
        for j in range(columns.shape[0]):
            column, out = columns[j], tile[j]
            for i in range(n):
                first, second = pairs[i] >> _HALF_WORD, pairs[i] & mask
                out[i] = np.float64(data[first, column]) - np.float64(data[second, column])
        return
    for i in range(n):
        first, second = data[pairs[i] >> _HALF_WORD], data[pairs[i] & mask]
        for j in range(columns.shape[0]):
            column = columns[j]
            tile[j, i] = np.float64(first[column]) - np.float64(second[column])


def tallies(
    source: Source, columns: NDArray[np.intp], width: int, visit: Visit
) -> Iterator[tuple[NDArray[np.intp], Integers]]:
    """Yield places in `columns`, and `width` integers for each of them: the sums of all visits.

    The columns increase. A few are swept at a time, by as many threads as numba may use: plain
    ones, which work after a fork and under joblib, as the kernels release the lock.
    """
    for start in range(0, columns.size, _MOST_COLUMNS):
        which = np.arange(start, min(start + _MOST_COLUMNS, columns.size))
        some = columns[which]

        def count(rows: tuple[int, int], which: Any = which, some: Any = some) -> Integers:
            counts = np.zeros((which.size, width), dtype=np.int64)
            n_rows = min(_ENTRIES // which.size, _MOST_ROWS, rows[1] - rows[0])
            tile = np.empty((which.size, n_rows + _PADDING))
            for begin in range(*rows, max(n_rows, 1)):
                n = min(n_rows, rows[1] - begin)
                source.load(some, begin, n, tile)
                visit(tile, n, counts, which)
            return counts

        n_ranges = min(config.NUMBA_NUM_THREADS, len(source) * which.size // _VALUES_PER_THREAD)
        ranges = list(pairwise(len(source) * i // max(n_ranges, 1) for i in range(max(n_ranges, 1) + 1)))
        if len(ranges) == 1:
            yield which, count(ranges[0])
            continue
        with ThreadPoolExecutor(len(ranges) - 1) as pool:
            others = [pool.submit(count, rows) for rows in ranges[1:]]
            yield which, sum((other.result() for other in others), start=count(ranges[0]))


def count_sums(
    source: Source, columns: NDArray[np.intp], quantum: NDArray[np.float64], contribution: Contribution
) -> Integers:
    """Return the sums over all values of what they contribute, each rounded to integer quanta."""

    def visit(tile: Tile, n: int, counts: Integers, which: NDArray[np.intp]) -> None:
        contribution(tile[:, :n], which)
        _add_rounded(tile, n, quantum[which], counts)

    return np.concatenate([c for _, c in tallies(source, columns, 1, visit)])[:, 0]


@njit(**COMPILED, error_model="numpy")
def _add_rounded(tile, n, quantum, totals):
    """Add the values in quanta, rounded to the nearest integers, to the totals."""
    for j in range(quantum.shape[0]):
        values, unit = tile[j], quantum[j]
        for i in range(n):
            values[i] = np.rint(values[i] / unit)
        total = np.int64(0)
        for i in range(n):
            total += np.int64(values[i])
        totals[j, 0] += total


def all_finite(table: NDArray[Any]) -> bool:
    """Return whether every entry is finite, without a copy of the table."""
    n_rows = max(1, _ENTRIES // max(1, table[:1].size))
    return all(np.isfinite(table[i : i + n_rows]).all() for i in range(0, len(table), n_rows))
