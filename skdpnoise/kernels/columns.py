"""Columns of a table, contiguous: copied at once, or from a large file when they are read."""

from __future__ import annotations

from collections.abc import Callable
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.kernels.sizes import LARGE_FILE, rows_at_once
from skdpnoise.kernels.threads import enough_threads, threads

Tables = NDArray[Any] | list[NDArray[Any]]
"""A table, or tables and vectors side by side."""


def columnwise(X: NDArray[Any], n_threads: int = 1) -> NDArray[Any]:
    """Return a table as floats, with contiguous columns unless it is a large mapped file."""
    X = np.asarray(X)
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    base: Any = X
    while isinstance(base, np.ndarray):
        base = base.base
    large_file = isinstance(base, mmap) and X.nbytes > LARGE_FILE
    if X.dtype == dtype and (large_file or X[:, :1].flags.c_contiguous):
        return X
    try:
        table = np.empty(X.shape, dtype=dtype, order="F")
    except MemoryError:  # after the charge: `Columns` copies each column as it is read instead
        if X.dtype == dtype:
            return X
        raise
    with threads(len(X), enough_threads(len(X), n_threads)) as run:
        run(_copy, X, table)
    return table


def per_column(value: ArrayLike | None, default: float, size: int) -> NDArray[np.float64]:
    array = np.asarray(default if value is None else value, dtype=np.float64)
    return np.array(np.broadcast_to(array, size))  # a copy, since kernels are compiled for those


def side_by_side(X: Tables) -> list[NDArray[Any]]:
    """Return tables, a vector as one of one column."""
    several = isinstance(X, list) and all(isinstance(one, np.ndarray) for one in X)
    tables = [np.asarray(one) for one in (X if several else [X])]
    if len({len(one) for one in tables}) != 1:
        raise ValueError("The tables in the 'X' parameter must have as many rows each.")
    return [one[:, np.newaxis] if one.ndim == 1 else one for one in tables]


def load(tables: list[NDArray[Any]], begin: int, end: int, tile: NDArray[np.float64]) -> int:
    """Write some rows of all tables, a column in each row of the tile; return how many rows."""
    first = 0
    for table in tables:
        last = first + table.shape[1]
        tile[first:last, : end - begin] = table[begin:end].T
        first = last
    return end - begin


class Columns:
    """The columns of a table and, last, another one; of a file in row order two are held."""

    def __init__(self, X: NDArray[Any], last: NDArray[Any], run: Callable[..., Any]) -> None:
        self._X, self._last, self._run = X, last, run
        self._held: dict[int, NDArray[Any]] = {}
        self._all_held = bool(X[:, :1].flags.c_contiguous)
        if self._all_held:
            for k in range(X.shape[1] + 1):
                self._column(k)

    def take(self, one: int, other: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return two columns, copied where they are not contiguous, and forget those before."""
        if self._all_held:
            return self._held[one], self._held[other]
        self._held = {k: column for k, column in self._held.items() if k in (one, other)}
        return self._column(one), self._column(other)

    def _column(self, k: int) -> NDArray[Any]:
        if k not in self._held:
            column = self._X[:, k] if k < self._X.shape[1] else self._last
            if not column.flags.c_contiguous:
                column = np.empty(len(self._X), dtype=self._X.dtype)
                self._run(_copy, self._X[:, k], column)
            column.flags.writeable = False  # one compiled kernel, whatever the table is
            self._held[k] = column
        return self._held[k]


def _copy(rows: tuple[int, int], source: NDArray[Any], target: NDArray[Any]) -> None:
    block = rows_at_once(source[:1].size)  # of a table in row order, which stays in the cache
    for begin in range(*rows, block):
        end = min(begin + block, rows[1])
        target[begin:end] = source[begin:end]
