"""Rows cut into parts in many ways, and whether two fits gave the same bits."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from skdpnoise.data import scan_batches, scan_parquet

COUNTS = (1, 2, 7, 64)  # of parts
WAYS = ("parquet", "dask array", "dask frame")


def cut(table, n_parts, *, order=None):
    """Return the parts of a table: uneven, some of one row, and in some order."""
    rng = np.random.default_rng(n_parts)
    ends = np.sort(rng.choice(np.arange(1, len(table)), n_parts - 1, replace=False))
    parts = [table[a:b] for a, b in pairwise([0, *ends.tolist(), len(table)])]
    return parts if order is None else [parts[k] for k in order]


def in_parts(table, n_parts, *, order=None):
    """Return a table as a source, of which each part comes in one or two batches."""
    return source_of(cut(table, n_parts, order=order))


def source_of(parts):
    """Return parts as a source."""
    return scan_batches([partial(_halves, part) for part in parts])


def _halves(part):
    return [part] if len(part) < 9 else [part[:5], part[5:]]


def by_way(way, frame, folder):
    """Return a frame as a file, or an array or a frame of dask."""
    import dask.array
    import dask.dataframe

    if way == "parquet":
        path = folder / "rows.parquet"
        frame.to_parquet(path, row_group_size=len(frame) // 5)
        return scan_parquet(path, batch_rows=97)
    if way == "dask frame":
        return dask.dataframe.from_pandas(frame, npartitions=6, sort=False)
    return dask.array.from_array(frame.to_numpy(), chunks=(len(frame) // 7, 2))


def differing(one, other):
    """Return the names of the fitted attributes that are not the same, bit for bit."""
    first, second = fitted(one), fitted(other)
    return sorted(
        {name for name in first if name in second and not _equal(first[name], second[name])}
        | (first.keys() ^ second.keys())
    )


def fitted(estimator):
    """Return all that a fit set, by name."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("__")
    }


def _equal(one, other):
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    if type(one) is not type(other):
        return False
    if isinstance(one, BaseEstimator):
        return differing(one, other) == []
    if is_dataclass(one):
        return all(_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    if callable(one):
        return repr(one) == repr(other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == np.asarray(other).dtype and np.array_equal(one, other)
    return one == other
