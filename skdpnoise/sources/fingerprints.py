"""Fingerprints of tables: whether rows that are read again are those that were read before.

They tell of an accident, such as a file that is written to, and not of somebody who would look for
other rows with the same checksums.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Marker", "Marks"]

Marks = dict[str, tuple[int, bool, int]]
"""Of each table: rows, whether columns have checksums of their own, and one of all values."""


class Marker:
    """Takes the fingerprints of tables, of some rows after the other."""

    def __init__(self, like: Marks | None = None) -> None:
        self.n_rows = 0
        self._like, self._checksums = like or {}, dict[str, tuple[bool, list[int]]]()

    def add(self, tables: Mapping[str, Any]) -> None:
        """Continue with more rows."""
        n_rows = 0
        for name, given in tables.items():
            n_rows = len(given)
            if n_rows == 0:
                continue
            table = _as_array(given)
            if name not in self._checksums:
                like = self._like.get(name)
                by_column = _by_column(given) if like is None else like[1]
                self._checksums[name] = by_column, [0] * (_width(table) if by_column else 1)
            by_column, checksums = self._checksums[name]
            values = [_column(table, k) for k in range(_width(table))] if by_column else [table]
            for k, (one, before) in enumerate(zip(values, checksums, strict=True)):
                checksums[k] = zlib.crc32(_bytes(one), before)
        self.n_rows += n_rows

    def marks(self) -> Marks:
        """Return the fingerprints of all rows so far: none where there were no rows."""
        return {
            name: (self.n_rows, by_column, zlib.crc32(np.array(checksums).tobytes()))
            for name, (by_column, checksums) in self._checksums.items()
        }


def _as_array(table: Any) -> Any:
    """Return a frame of numbers of one type as an array, and what else there is as it is."""
    if getattr(table, "ndim", 1) != 2 or not hasattr(table, "iloc"):
        return table
    dtypes = set(table.dtypes)
    plain = len(dtypes) == 1 and _is_plain_dtype(dtypes.pop())
    return table.to_numpy() if plain else table


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


def _bytes(values: Any) -> Any:
    """Return values as bytes: those of objects, texts and categories by their hashes."""
    if not isinstance(values, np.ndarray) or not _is_plain(values):
        import pandas as pd

        series = values if isinstance(values, pd.Series) else pd.Series(np.ravel(values))
        plain = _is_plain(series)
        values = series.to_numpy() if plain else pd.util.hash_pandas_object(series, index=False)
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1).data
