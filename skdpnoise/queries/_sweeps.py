"""Sweeps over the columns of a table, in tiles of rows that stay in the cache.

What a record adds is a function of its values alone, and all sums are of integers. So no result
depends on the tiles, the threads, or the layout of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.table import Partitioned
from skdpnoise.queries import _tiles
from skdpnoise.queries._tiles import Floats, Integers, Places

Visit = Callable[[Any, Floats, int, Integers, Places], None]
"""``visit(loops, tile, n, counts, which)`` adds what the first n values in each row count for.

Row i of the tile and of the counts belongs to column ``which[i]`` of those that are swept; `loops`
is ``_tiles``, or the same compiled.
"""

_ENTRIES = 1 << 16  # of a tile, which fits the second-level cache beside what it is read from
_MOST_COLUMNS, _MOST_ROWS = 64, 1 << 14
_PADDING = 8  # so that the rows of a tile do not all fall on the same lines of the cache
# Numba takes a second to compile loops. Up to so many values numpy takes a hundredth of that; more,
# but not very many at once, it gets until it has lost about as much in this process.
_INTERPRETED, _MOST_AT_ONCE, _MOST_IN_ALL = 1 << 20, 1 << 23, 1 << 27
_interpreted = {"values": 0}
# Below this many, handing work to a thread costs more than it saves.
_VALUES_PER_THREAD = 1 << 18
_PAIRED_VALUES = 1 << 21  # of pairs in parts, that come together at a time
_COLUMNS_AT_ONCE = 4  # of those
_MOST_PAIRED = 1 << 31  # two row numbers share 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The values of the records, in the order of the table, which may lie in parts."""

    table: Any  # an array, or a Partitioned of such

    def __len__(self) -> int:
        return len(self.table)

    def load(self, loops: Any, columns: Places, begin: int, n: int, tile: Floats) -> None:
        """Copy values in double precision."""
        rows, first = slice(begin, begin + n), int(columns[0])
        if columns[-1] - first == columns.size - 1:  # increasing, so these lie side by side
            np.copyto(tile[:, :n], self.table[rows, first : first + columns.size].T)
            return
        for row, column in zip(tile, columns.tolist(), strict=True):
            row[:n] = self.table[rows, column]


class Gaps:
    """Differences of the two records of each pair, in double precision."""

    def __init__(self, table: NDArray[np.floating], pairs: Integers) -> None:
        """Take pairs of records by their numbers, shape (2, n_pairs)."""
        # Pairs are sorted, so that one record of each is read in the order of memory.
        if len(table) > _MOST_PAIRED:
            raise ValueError("Columns without public bounds may have at most 2**31 records.")
        self.pairs = np.sort(pairs[0] << _tiles.HALF_WORD | pairs[1])
        # One compiled loop, whether or not the data can be written to.
        self.table = table.view()
        self.table.flags.writeable = False

    def __len__(self) -> int:
        return self.pairs.size

    def load(self, loops: Any, columns: Places, begin: int, n: int, tile: Floats) -> None:
        """Write differences."""
        loops.subtract(self.table, self.pairs[begin : begin + n], columns, tile)


def tallies(
    source: Records | Gaps, columns: Places, width: int, visit: Visit, n_in_all: int | None = None
) -> Iterator[tuple[Places, Integers]]:
    """Yield places in `columns`, and `width` integers for each of them: the sums of all visits."""
    # The records may be some of so many.
    n = len(source)
    n_in_all = n if n_in_all is None else n_in_all
    if isinstance(source.table, Partitioned):
        step = partial(_tallied, columns, width, visit, n)
        yield np.arange(columns.size), source.table.total(step, "sums of columns")
        return
    loops, most_threads = _loops(n * columns.size, n_in_all * columns.size)

    def count(which: Places, rows: tuple[int, int]) -> Integers:
        """Return the sums of the visits to a range of rows."""
        counts = np.zeros((which.size, width), dtype=np.int64)
        n_rows = max(1, min(_ENTRIES // which.size, _MOST_ROWS, rows[1] - rows[0]))
        tile = np.empty((which.size, n_rows + _PADDING))
        for begin in range(*rows, n_rows):
            n = min(n_rows, rows[1] - begin)
            with np.errstate(all="ignore"):  # a warning would tell of a single record
                source.load(loops, columns[which], begin, n, tile)
                visit(loops, tile, n, counts, which)
        return counts

    for start in range(0, columns.size, _MOST_COLUMNS):
        which = np.arange(start, min(start + _MOST_COLUMNS, columns.size))
        n_threads = max(1, min(most_threads, n * which.size // _VALUES_PER_THREAD))
        first, *others = pairwise(n * i // n_threads for i in range(n_threads + 1))
        # Threads are plain ones, which work after a fork and under joblib, as the loops release the
        # lock of the interpreter.
        with ThreadPoolExecutor(n_threads) as pool:
            waiting = [pool.submit(count, which, rows) for rows in others]
            totals = sum((part.result() for part in waiting), start=count(which, first))
        yield which, totals


def _tallied(
    columns: Places, width: int, visit: Visit, n_in_all: int, table: NDArray[np.floating]
) -> Integers:
    """Return the sums of all visits to some rows."""
    found = [counts for _, counts in tallies(Records(table), columns, width, visit, n_in_all)]
    return np.concatenate(found) if found else np.zeros((0, width), dtype=np.int64)


def tallied_gaps(
    table: Any, pairs: Integers, columns: Places, width: int, visit: Visit
) -> Integers:
    """Return `width` integers for each column: the sums of visits to differences of pairs."""
    if not isinstance(table, Partitioned):
        gaps = Gaps(table, pairs)
        return np.concatenate([counts for _, counts in tallies(gaps, columns, width, visit)])
    # Records of pairs come together where the parts are, of some columns at a time.
    rows, places = np.unique(pairs, return_inverse=True)
    places = places.reshape(pairs.shape)
    n_columns = max(1, _PAIRED_VALUES // max(1, rows.size))
    found = []
    for begin in range(0, columns.size, n_columns):
        some = np.arange(begin, min(begin + n_columns, columns.size))
        take = partial(_taken, rows, columns[some])
        finish = partial(_gaps_between, places, width, visit, some)
        found.append(table.joined(take, finish, "pairs of rows"))
    return np.concatenate(found)


def _taken(
    rows: Integers, columns: Places, table: NDArray[np.floating], first: int
) -> NDArray[np.floating]:
    """Return the rows of a leaf that are in pairs."""
    begin, end = np.searchsorted(rows, [first, first + len(table)])
    return np.asarray(table[np.ix_(rows[begin:end] - first, columns)])


def _gaps_between(
    places: Integers,
    width: int,
    visit: Visit,
    which: Places,
    tables: list[NDArray[np.floating]],
) -> Integers:
    """Return the sums of visits to the differences of rows that came together."""
    found = []
    for begin in range(0, which.size, _COLUMNS_AT_ONCE):  # a copy of all would be twice the memory
        lot = which[begin : begin + _COLUMNS_AT_ONCE]
        table = np.concatenate([one[:, begin : begin + lot.size] for one in tables])
        seen = _visit_of(visit, lot)
        found.append(tallied_gaps(table, places, np.arange(lot.size), width, seen))
    return np.concatenate(found)


def _visit_of(visit: Visit, which: Places) -> Visit:
    """Return a visit to some columns, which stand at other places among all."""

    def visit_some(loops: Any, tile: Floats, n: int, counts: Integers, some: Places) -> None:
        visit(loops, tile, n, counts, which[some])

    return visit_some


def _loops(n_values: int, n_in_all: int) -> tuple[Any, int]:
    """Return functions of tiles for so many values of all, and the most threads."""
    if n_in_all <= _INTERPRETED:
        return _tiles, 1
    if n_in_all <= _MOST_AT_ONCE and _interpreted["values"] < _MOST_IN_ALL:
        _interpreted["values"] += n_values
        return _tiles, 1
    from numba import config

    from skdpnoise.queries import _tile_loops

    return _tile_loops, config.NUMBA_NUM_THREADS


def all_finite(table: NDArray[Any]) -> bool:
    """Return whether every entry is finite, without a copy of the table."""
    n_rows = max(1, _ENTRIES // max(1, table[:1].size))
    return all(np.isfinite(table[i : i + n_rows]).all() for i in range(0, len(table), n_rows))
