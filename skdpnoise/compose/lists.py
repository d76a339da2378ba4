"""Lists of rows become what no single value of them decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

_TEXT = (str, bytes)


def without_lists(owner: str, X: Any) -> Any:
    """Return a list of rows as an array of doubles, or of objects if it holds text alone."""
    # numpy gives a list the type of its most general value: one 2.5 makes floats of all integers,
    # and one text makes text of all numbers. Names of columns and types that a public step keeps
    # would tell of that one value. So would one complex number, date or decimal. Other data, such
    # as lists of texts, of mappings or of rows of pairs, are returned as they are: what reads those
    # reads one after the other.
    if not isinstance(X, list | tuple) or not X or not all(map(_is_row, X)):
        return X
    if len({len(row) for row in X}) > 1:
        return X
    kinds = {_kind(value) for value in _values(X)}
    if kinds <= {"number", "missing"}:
        try:
            return np.array([[_double(value) for value in row] for row in X], dtype=np.float64)
        except OverflowError:
            pass
    elif kinds <= {"text", "missing"}:
        table = np.empty((len(X), len(X[0])), dtype=object)
        for place, row in enumerate(X):
            table[place] = list(row)
        return table
    elif kinds == {"nested"}:
        return X
    raise ValueError(
        f"{owner} takes lists of rows that hold numbers alone, in double precision, or text alone: "
        "else a single value would decide the types of columns. Pass an array, as in "
        "numpy.array(X, dtype=object), or a frame."
    )


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple)


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
