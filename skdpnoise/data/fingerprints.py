"""Fingerprints of tables: whether rows that are read again are those that were read before.

They tell of an accident, such as a file that is written to, and not of somebody who would look for
other rows with the same checksums.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.kinds import are_numbers, as_numbers

Marks = dict[str, tuple[int, bool, int]]
"""Of each table: rows, whether columns have checksums of their own, and one of all values."""


_LANES = 1021  # a prime, so that blocks of rows that change places are in other lanes


class Marker:
    """Takes the fingerprints of tables, of some rows after the other."""

    # Words of 32 bits are dealt to lanes in turn and added there, modulo 2**32, so that batches may
    # be cut anywhere. That takes the time of a copy; a checksum of one byte after the other, seven
    # times that.

    def __init__(self, like: Marks | None = None) -> None:
        self.n_rows = 0
        self._like, self._sums = like or {}, dict[str, tuple[bool, NDArray[np.uint32], int]]()

    def add(self, tables: Mapping[str, Any]) -> None:
        n_rows = 0
        for name, given in tables.items():
            n_rows = len(given)
            if n_rows == 0:
                continue
            table = _as_array(given)
            if name not in self._sums:
                like = self._like.get(name)
                by_column = _by_column(given) if like is None else like[1]
                sums = np.zeros((_width(table) if by_column else 1, _LANES), dtype=np.uint32)
                self._sums[name] = by_column, sums, 0
            by_column, sums, n_before = self._sums[name]
            if by_column and _width(table) != len(sums):
                raise ValueError("Batches of one part have different numbers of columns.")
            for k, words in enumerate(_words(table, by_column)):
                _deal(words, sums[k : k + len(words)], n_before * (words.shape[1] // n_rows))
            self._sums[name] = by_column, sums, n_before + n_rows
        self.n_rows += n_rows

    def marks(self) -> Marks:
        """Return the fingerprints of all rows so far: none where there were no rows."""
        return {
            name: (self.n_rows, by_column, zlib.crc32(sums.tobytes()))
            for name, (by_column, sums, _) in self._sums.items()
        }


def _words(table: Any, by_column: bool) -> list[NDArray[np.uint32]]:
    """Return the words of some columns at a time, or of whole rows."""
    if not by_column:
        return [_as_words(table).reshape(1, -1)]
    if isinstance(table, np.ndarray) and table.ndim == 2 and _is_plain(table):
        return [_as_words(table.T).reshape(table.shape[1], -1)]
    return [_as_words(_column(table, k)).reshape(1, -1) for k in range(_width(table))]


def _deal(words: NDArray[np.uint32], sums: NDArray[np.uint32], place: int) -> None:
    """Add words to lanes, from the lane of a place on."""
    begin = place % _LANES
    n_first = min(_LANES - begin, words.shape[1])
    sums[:, begin : begin + n_first] += words[:, :n_first]
    n_rounds, n_last = divmod(words.shape[1] - n_first, _LANES)
    rounds = words[:, n_first : n_first + n_rounds * _LANES].reshape(len(words), n_rounds, _LANES)
    sums += rounds.sum(axis=1, dtype=np.uint32)
    sums[:, :n_last] += words[:, words.shape[1] - n_last :]


def _as_array(table: Any) -> Any:
    """Return a frame of numbers as an array, and what else there is as it is."""
    if getattr(table, "ndim", 1) != 2 or not hasattr(table, "iloc"):
        return table
    dtypes = set(table.dtypes)
    if len(dtypes) == 1 and _is_plain_dtype(next(iter(dtypes))):
        return table.to_numpy()
    return as_numbers(table) if are_numbers(table) else table


def _by_column(table: Any) -> bool:
    """Return whether each column gets a checksum of its own: as its values lie in memory."""
    if getattr(table, "ndim", 1) != 2:
        return False
    if not isinstance(table, np.ndarray) or not _is_plain(table):
        return True
    return bool(table.flags.f_contiguous and not table.flags.c_contiguous)


def _width(table: Any) -> int:
    return int(table.shape[1]) if getattr(table, "ndim", 1) == 2 else 1


def _column(table: Any, k: int) -> Any:
    if getattr(table, "ndim", 1) != 2:
        return table
    return table.iloc[:, k] if hasattr(table, "iloc") else table[:, k]


def _is_plain(values: Any) -> bool:
    return _is_plain_dtype(values.dtype)


def _is_plain_dtype(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biufcmM"


def _hashes(series: Any) -> Any:
    import pandas as pd

    try:
        return pd.util.hash_pandas_object(series, index=False)
    except TypeError:  # of lists and the like, which an estimator refuses, or leaves out
        return pd.util.hash_pandas_object(series.map(repr).astype(object), index=False)


def _as_words(values: Any) -> NDArray[np.uint32]:
    """Return values as words: those of objects, texts and categories by their hashes."""
    if not isinstance(values, np.ndarray) or not _is_plain(values):
        import pandas as pd

        series = values if isinstance(values, pd.Series) else pd.Series(np.ravel(values))
        if _is_plain(series):
            values = series.to_numpy()
        elif are_numbers(series):
            values = as_numbers(series)
        else:
            values = _hashes(series)
    array = np.ascontiguousarray(values)
    if array.dtype.itemsize < np.dtype(np.uint32).itemsize:
        return array.view(f"u{array.dtype.itemsize}").astype(np.uint32)
    return array.view(np.uint32)
