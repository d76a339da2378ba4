"""Fingerprints of tables: whether rows that are read again are those that were read before."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Marks", "marked"]

Marks = dict[str, tuple[int, int]]
"""Of each table the number of its rows, and a checksum of their values."""


def marked(marks: Marks, tables: Mapping[str, Any]) -> Marks:
    """Return fingerprints, continued by more rows."""
    found = dict(marks)
    for name, table in tables.items():
        n_rows, checksum = found.get(name, (0, 0))
        for values in _arrays(table):
            checksum = zlib.crc32(values, checksum)
        found[name] = n_rows + len(table), checksum
    return found


def _arrays(table: Any) -> list[Any]:
    """Return what a table holds as buffers of bytes, column by column where there are some."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "biufcmM":
        # Whether rows or columns lie side by side is the same in every pass.
        columnwise = table.ndim > 1 and table.flags.f_contiguous
        return [_bytes(table.T if columnwise else table)]
    import pandas as pd

    columns = [table] if getattr(table, "ndim", 1) == 1 else [table[name] for name in table]
    arrays = []
    for column in columns:
        series = column if isinstance(column, pd.Series) else pd.Series(column)
        plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufcmM"
        values = series.to_numpy() if plain else pd.util.hash_pandas_object(series, index=False)
        arrays.append(_bytes(np.asarray(values)))
    return arrays


def _bytes(values: np.ndarray) -> Any:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1).data
