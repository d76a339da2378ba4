"""Sweeps over the columns of a table, in tiles of rows that stay in the cache.

What a record adds is a function of its values alone, and all sums are of integers. So no result
depends on the tiles, the threads, or the layout of the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.kernels import tiles
from skdpnoise.kernels.sizes import INTERPRETED, PER_THREAD, TILE
from skdpnoise.kernels.tiles import Floats, Integers, Places

Visit = Callable[[Any, Floats, int, Integers, Places], None]
"""``visit(loops, tile, n, counts, which)`` adds what the first n values in each row count for.

Row i of the tile and of the counts belongs to column ``which[i]`` of those that are swept; `loops`
is ``tiles``, or the same compiled.
"""

_MOST_COLUMNS = 64  # of a tile
_PADDING = 8  # so that the rows of a tile do not all fall on the same lines of the cache
_MOST_PAIRED = 1 << 31  # two row numbers share 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Integers that values of some columns, or differences of pairs of records, count for."""

    columns: Places
    shape: tuple[int, ...]  # of the integers of one column
    visit: Visit
    n_records: float  # about as many as there are in all, whose values or pairs are visited

    def __call__(
        self,
        rows: NDArray[Any],
        pairs: Integers | None = None,
        columns: Places | None = None,
        which: Places | None = None,
    ) -> Integers:
        """Return the sums of the visits to values of some rows, or to differences of pairs."""
        # Of a table that has some of the columns alone: where it has them, and which they are.
        columns = self.columns if columns is None else columns
        which = np.arange(columns.size) if which is None else which
        n_values = len(rows) if pairs is None else pairs.shape[1]
        n_in_all = max(self.n_records, n_values)
        loops, most_threads = _loops(n_in_all * columns.size)
        order = None
        if pairs is not None:  # sorted, so that one record of each is read in the order of memory
            if len(rows) > _MOST_PAIRED:
                raise ValueError("Columns without public bounds may have at most 2**31 records.")
            order, rows = np.sort(pairs[0] << tiles.HALF_WORD | pairs[1]), rows.view()
            rows.flags.writeable = False  # one compiled loop, whether or not data can be written to

        def count(some: slice, ends: tuple[int, int]) -> Integers:
            places = columns[some]
            counts = np.zeros((places.size, *self.shape), dtype=np.int64)
            n_rows = max(1, min(TILE // places.size, ends[1] - ends[0]))
            tile = np.empty((places.size, n_rows + _PADDING))
            first, last = int(places[0]), int(places[-1])  # increasing: are they side by side?
            beside = slice(first, last + 1) if last - first == places.size - 1 else None
            for begin in range(*ends, n_rows):
                end = min(begin + n_rows, ends[1])
                with np.errstate(all="ignore"):  # a warning would tell of a single record
                    if order is not None:
                        loops.subtract(rows, order[begin:end], places, tile)
                    elif beside is not None:  # copied in double precision
                        np.copyto(tile[:, : end - begin], rows[begin:end, beside].T)
                    else:
                        for out, column in zip(tile, places.tolist(), strict=True):
                            out[: end - begin] = rows[begin:end, column]
                    self.visit(loops, tile, end - begin, counts, which[some])
            return counts

        found = [np.zeros((0, *self.shape), dtype=np.int64)]
        for start in range(0, columns.size, _MOST_COLUMNS):
            some = slice(start, min(start + _MOST_COLUMNS, columns.size))
            n_entries = n_values * (some.stop - start)
            n_threads = max(1, min(most_threads, n_entries // PER_THREAD))
            first, *others = pairwise(n_values * i // n_threads for i in range(n_threads + 1))
            # Threads are plain ones, which work after a fork and under joblib, as the loops release
            # the lock of the interpreter.
            with ThreadPoolExecutor(n_threads) as pool:
                waiting = [pool.submit(count, some, part) for part in others]
                found.append(sum((part.result() for part in waiting), start=count(some, first)))
        return np.concatenate(found)


def _loops(n_in_all: float) -> tuple[Any, int]:
    """Return functions of tiles for so many values, and the most threads."""
    if n_in_all <= INTERPRETED and "numba" not in sys.modules:
        return tiles, 1
    from numba import config

    from skdpnoise.kernels import tile_loops

    return tile_loops, config.NUMBA_NUM_THREADS


def all_finite(table: NDArray[Any]) -> bool:
    """Return whether every entry is finite, without a copy of the table."""
    n_rows = max(1, TILE // max(1, table[:1].size))
    return all(np.isfinite(table[i : i + n_rows]).all() for i in range(0, len(table), n_rows))
