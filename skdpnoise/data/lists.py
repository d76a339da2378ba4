"""Lists become arrays of a type that no single value of them decides."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skdpnoise._utils.checks import check_collected
from skdpnoise._utils.silence import silence

_TEXT = (str, bytes)
_ROWS = (list, tuple)


def read_once(owner: str, data: Any, *, name: str = "X") -> Any:
    """Return data that are read on demand as an array: what is checked is what is fitted."""
    check_collected(owner, name, data)
    data = as_frame(data)
    if _is_table(data) or not hasattr(data, "__array__"):
        return data
    values, failed = None, False
    try:
        with silence():
            values = data.__array__()
    except Exception:
        failed = True
    if failed or not isinstance(values, np.ndarray):
        raise ValueError(
            f"{owner} needs arrays or frames. Got an object of type {type(data).__name__} that "
            "cannot be read as one: convert it first, as in numpy.asarray(...)."
        )
    return values


def as_frame(data: Any) -> Any:
    """Return a table of Arrow as a frame of pandas with the same types, anything else as it is."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None or not isinstance(data, arrow.Table | arrow.RecordBatch):
        return data
    import pandas as pd

    # What pandas once wrote into the table, such as its index, is no fact of the columns.
    return data.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)


def without_lists(owner: str, X: Any) -> Any:
    """Return a list of rows as an array of doubles, or of objects if it holds text alone."""
    # numpy gives a list the type of its most general value: one 2.5 makes floats of all integers,
    # and one text makes text of all numbers. Names of columns and types that a public step keeps
    # would tell of that one value. So would one complex number, date or decimal. Lists of texts, of
    # mappings or of rows of pairs are returned as they are: what reads those reads one after the
    # other.
    if _is_table(X) or not hasattr(X, "__len__"):
        return X
    if not isinstance(X, _ROWS):
        raise TypeError(
            f"{owner} takes arrays, frames and lists of rows. Got an object of type "
            f"{type(X).__name__}: a single value would decide how the others are read. Convert it "
            "first, as in numpy.asarray(...)."
        )
    if not X or any(all(isinstance(one, kind) for one in X) for kind in (_TEXT, Mapping)):
        return X
    table = _table(X) if all(map(_is_row, X)) else None
    if table is None and all(one is None or isinstance(one, _TEXT) for one in X):
        raise ValueError(
            f"{owner} takes a list of texts where none is missing: fill each that is by an empty "
            "text, as in [text or '' for text in X]."
        )
    if table is None:
        raise ValueError(
            f"{owner} takes lists of rows that hold numbers alone, in double precision, or text "
            "alone: else a single value would decide the types of columns. Pass an array, as in "
            "numpy.array(X, dtype=object), or a frame."
        )
    return table


def target_without_lists(y: Any) -> Any:
    """Return a target that is a list as an array of objects, unless it holds text alone."""
    # For the same reason: a TransformedTargetRegressor takes the reciprocals of whole numbers as
    # whole numbers. Arrays of objects become doubles, whatever they hold.
    if not isinstance(y, _ROWS) or not y or all(isinstance(value, _TEXT) for value in y):
        return y
    if all(map(_is_row, y)) and len({len(row) for row in y}) == 1:
        return objects_of(y)
    vector = np.empty(len(y), dtype=object)
    for place, value in enumerate(y):
        vector[place] = value
    return vector


def _is_table(data: Any) -> bool:
    """Return whether data state the types of what they hold, or are frames of some kind."""
    known = isinstance(data, np.ndarray) or hasattr(data, "columns") or hasattr(data, "iloc")
    return known or issparse(data)


def _table(rows: Any) -> Any:
    """Return rows of one kind of values in a form that no value decides; None if there is none."""
    kinds = {_kind(value) for value in _values(rows)}
    if len({len(row) for row in rows}) > 1 or kinds == {"nested"}:
        return rows if kinds <= {"text", "nested"} else None
    if kinds <= {"number", "missing"}:
        try:
            return np.array([[_double(value) for value in row] for row in rows], dtype=np.float64)
        except Exception:  # of a number that says so itself, which may quote it
            return None
    return objects_of(rows) if kinds <= {"text", "missing"} else None


def _is_row(row: Any) -> bool:
    if isinstance(row, np.ndarray):
        return row.ndim == 1 and not isinstance(row, np.ma.MaskedArray)
    return isinstance(row, _ROWS)


def objects_of(rows: Any) -> NDArray[Any]:
    """Return rows of one length as an array of objects."""
    table = np.empty((len(rows), len(rows[0])), dtype=object)
    for place, row in enumerate(rows):
        table[place] = list(row)
    return table


def _values(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        yield from row


def _kind(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, _TEXT):
        return "text"
    if isinstance(value, list | tuple | Mapping):
        return "nested"  # pairs of names and values, for a FeatureHasher
    return "number" if isinstance(value, Real | np.bool_) else "other"


def _double(value: Any) -> float:
    return np.nan if value is None else float(value)
