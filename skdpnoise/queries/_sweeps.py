"""Sweeps over the columns of a table, in tiles of rows that stay in the cache.

What a record adds is a function of its values alone, and all sums are of integers. So no result
depends on the tiles, the threads, or the layout of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.sizes import FEWEST_ROWS
from skdpnoise.data.table import Table
from skdpnoise.queries import _tiles
from skdpnoise.queries._tiles import Floats, Integers, Places

Visit = Callable[[Any, Floats, int, Integers, Places], None]
"""``visit(loops, tile, n, counts, which)`` adds what the first n values in each row count for.

Row i of the tile and of the counts belongs to column ``which[i]`` of those that are swept; `loops`
is ``_tiles``, or the same compiled.
"""

_ENTRIES = 1 << 16  # of a tile, which fits the second-level cache beside what it is read from
_MOST_COLUMNS = _ENTRIES // FEWEST_ROWS
_PADDING = 8  # so that the rows of a tile do not all fall on the same lines of the cache
# Numba takes a second to compile loops. A process leaves so many values to numpy, in all: about as
# much is lost by them.
_INTERPRETED = 1 << 25
_interpreted = {"values": 0}
# Below this many, handing work to a thread costs more than it saves.
_VALUES_PER_THREAD = 1 << 18
_MOST_PAIRED = 1 << 31  # two row numbers share 64 bits


def tallies(table: Table[NDArray[Any]], columns: Places, width: int, visit: Visit) -> Integers:
    """Return `width` integers for each column: the sums of the visits to all values."""
    step = partial(swept, columns=columns, width=width, visit=visit, n_in_all=table.n_rows)
    return np.asarray(table.total(step, "sums of columns"))


def tallied_gaps(
    table: Table[NDArray[Any]], pairs: Integers, columns: Places, width: int, visit: Visit
) -> Integers:
    """Return `width` integers for each column: the sums of visits to differences of pairs."""
    if table.n_rows > _MOST_PAIRED:
        raise ValueError("Columns without public bounds may have at most 2**31 records.")
    step = partial(_swept_pairs, width, visit)
    return np.asarray(table.gathered(pairs, columns, step, "pairs of rows"))


def _swept_pairs(
    width: int, visit: Visit, rows: NDArray[Any], pairs: Integers, columns: Places, which: Places
) -> Integers:
    def visit_some(loops: Any, tile: Floats, n: int, counts: Integers, some: Places) -> None:
        visit(loops, tile, n, counts, which[some])

    return swept(rows, columns, width, visit_some, pairs.shape[1], pairs)


def _load(rows: NDArray[Any], columns: Places, begin: int, n: int, tile: Floats) -> None:
    """Copy values in double precision."""
    places, first = slice(begin, begin + n), int(columns[0])
    if columns[-1] - first == columns.size - 1:  # increasing, so these lie side by side
        np.copyto(tile[:, :n], rows[places, first : first + columns.size].T)
        return
    for row, column in zip(tile, columns.tolist(), strict=True):
        row[:n] = rows[places, column]


def swept(
    rows: NDArray[Any],
    columns: Places,
    width: int,
    visit: Visit,
    n_in_all: int,
    pairs: Integers | None = None,
) -> Integers:
    """Return sums of visits to values of some rows, of so many, or to differences of pairs."""
    n_values = len(rows) if pairs is None else pairs.shape[1]
    loops, most_threads = _loops(n_values * columns.size, n_in_all * columns.size)
    if pairs is not None:  # sorted, so that one record of each is read in the order of memory
        order, rows = np.sort(pairs[0] << _tiles.HALF_WORD | pairs[1]), rows.view()
        rows.flags.writeable = False  # one compiled loop, whether or not data can be written to

    def count(which: Places, some: tuple[int, int]) -> Integers:
        """Return the sums of the visits to a range of values."""
        counts = np.zeros((which.size, width), dtype=np.int64)
        n_rows = max(1, min(_ENTRIES // which.size, some[1] - some[0]))
        tile = np.empty((which.size, n_rows + _PADDING))
        for begin in range(*some, n_rows):
            n = min(n_rows, some[1] - begin)
            with np.errstate(all="ignore"):  # a warning would tell of a single record
                if pairs is None:
                    _load(rows, columns[which], begin, n, tile)
                else:
                    loops.subtract(rows, order[begin : begin + n], columns[which], tile)
                visit(loops, tile, n, counts, which)
        return counts

    found = [np.zeros((0, width), dtype=np.int64)]
    for start in range(0, columns.size, _MOST_COLUMNS):
        which = np.arange(start, min(start + _MOST_COLUMNS, columns.size))
        n_threads = max(1, min(most_threads, n_values * which.size // _VALUES_PER_THREAD))
        first, *others = pairwise(n_values * i // n_threads for i in range(n_threads + 1))
        # Threads are plain ones, which work after a fork and under joblib, as the loops release the
        # lock of the interpreter.
        with ThreadPoolExecutor(n_threads) as pool:
            waiting = [pool.submit(count, which, part) for part in others]
            found.append(sum((part.result() for part in waiting), start=count(which, first)))
    return np.concatenate(found)


def _loops(n_values: int, n_in_all: int) -> tuple[Any, int]:
    """Return functions of tiles for so many values of all, and the most threads."""
    if _interpreted["values"] + n_in_all <= _INTERPRETED:
        _interpreted["values"] += n_values
        return _tiles, 1
    from numba import config

    from skdpnoise.queries import _tile_loops

    return _tile_loops, config.NUMBA_NUM_THREADS


def all_finite(table: NDArray[Any]) -> bool:
    """Return whether every entry is finite, without a copy of the table."""
    n_rows = max(1, _ENTRIES // max(1, table[:1].size))
    return all(np.isfinite(table[i : i + n_rows]).all() for i in range(0, len(table), n_rows))
