"""The kind of a column: what its declared type says of its values, and no value of it.

A type that a library found by looking at values hangs on each of them: one missing value makes
floats of whole numbers, or objects of truth values. So kinds are coarser than types: whatever one
value can make of a column has the same kind, or is refused by the column's name.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

__all__ = ["OBJECTS", "Kind", "KindName", "are_numbers", "as_numbers", "kind_of"]

KindName = Literal["number", "boolean", "text", "date", "objects", "other"]

_DAYS = ("Y", "M", "W", "D")  # units of numpy's dates without a time
_LONG = "YAQMWDBC"  # first letters of frequencies of pandas' periods of a day or more


@dataclass(frozen=True, slots=True)
class Kind:
    """The public facts that the declared type of a column tells of its values."""

    # Of "objects" no type is declared, as of numpy's `object`; "other" are types that no estimator
    # reads: durations, intervals, lists, complex numbers.
    name: KindName
    zone: str | None = None  # of dates; None of dates without one
    days: bool = False  # whether dates have no time of day
    # Whether the type itself excludes missing values, as a field of Arrow that is "not null" does.
    # Whole numbers of numpy do not: one missing value makes floats of them.
    never_missing: bool = False
    category: bool = False  # whether values are declared as categories, with labels of this kind
    holds: KindName | None = None  # of objects: what parameters say that all of them are


OBJECTS = Kind("objects")
_NUMBER, _BOOLEAN, _TEXT, _OTHER = Kind("number"), Kind("boolean"), Kind("text"), Kind("other")
_OF_NUMPY = dict.fromkeys("iuf", _NUMBER) | dict.fromkeys("UT", _TEXT) | {"b": _BOOLEAN}


def are_numbers(table: Any) -> bool:
    """Return whether a frame or series of pandas has numbers and truth values alone."""
    dtypes = set(table.dtypes) if getattr(table, "ndim", 1) == 2 else {table.dtype}
    kinds = {dtype.kind if isinstance(dtype, np.dtype) else _kind_letter(dtype) for dtype in dtypes}
    return bool(kinds) and kinds <= set("biuf")


def as_numbers(table: Any, dtype: Any = np.float64) -> Any:
    """Return such a frame or series as an array of floats, NaN where a value is missing."""
    nullable = {"na_value": np.nan} if _has_nullable(table) else {}
    return table.to_numpy(dtype=dtype, **nullable)


def _has_nullable(table: Any) -> bool:
    dtypes = set(table.dtypes) if getattr(table, "ndim", 1) == 2 else {table.dtype}
    return any(not isinstance(dtype, np.dtype) for dtype in dtypes)


def _kind_letter(dtype: Any) -> str:
    """Return what numpy calls a type of pandas that may have missing values; "O" of others."""
    return dtype.kind if hasattr(dtype, "numpy_dtype") and not kind_of(dtype).category else "O"


def kind_of(dtype: Any) -> Kind:
    """Return the kind of a type of numpy, pandas, polars or pyarrow, or of a field of Arrow."""
    if isinstance(dtype, np.dtype):
        return _of_numpy(dtype)
    library = type(dtype).__module__.partition(".")[0]
    if library == "pyarrow":
        return _of_field(dtype) if hasattr(dtype, "nullable") else _of_arrow(dtype)
    if library == "polars" or hasattr(dtype, "is_temporal"):
        return _of_polars(dtype)
    return _of_pandas(dtype)


def _of_numpy(dtype: np.dtype[Any]) -> Kind:
    if dtype.kind == "O":
        return OBJECTS
    if dtype.kind == "M":
        return Kind("date", days=np.datetime_data(dtype)[0] in _DAYS)
    return _OF_NUMPY.get(dtype.kind, _OTHER)


def _of_pandas(dtype: Any) -> Kind:
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.ArrowDtype):
        return _of_arrow(dtype.pyarrow_dtype)
    if isinstance(dtype, pandas.CategoricalDtype):
        # Before pandas 3 labels of text are objects.
        text = dtype.categories.inferred_type == "string"
        return replace(_TEXT if text else kind_of(dtype.categories.dtype), category=True)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return Kind("date", zone=str(dtype.tz))
    if isinstance(dtype, pandas.StringDtype):
        return _TEXT
    if isinstance(dtype, pandas.PeriodDtype):
        return Kind("date", days=str(dtype)[7:].lstrip("0123456789")[0] in _LONG)
    if isinstance(dtype, pandas.IntervalDtype | pandas.SparseDtype):
        return _OTHER
    return _OF_NUMPY.get(getattr(dtype, "kind", "O"), _OTHER)


def _of_polars(dtype: Any) -> Kind:
    name = str(dtype)
    if dtype.is_numeric():
        return _NUMBER
    if dtype.is_temporal() and name.startswith("Date"):
        return Kind("date", zone=getattr(dtype, "time_zone", None), days=name == "Date")
    simple = name.partition("(")[0]
    if simple in ("Categorical", "Enum"):
        return replace(_TEXT, category=True)
    known = {"Boolean": _BOOLEAN, "String": _TEXT, "Object": OBJECTS, "Null": OBJECTS}
    return known.get(simple, _OTHER)


def _of_field(field: Any) -> Kind:
    return replace(_of_arrow(field.type), never_missing=not field.nullable)


def _of_arrow(dtype: Any) -> Kind:
    import pyarrow

    types = pyarrow.types
    if types.is_dictionary(dtype):
        return replace(_of_arrow(dtype.value_type), category=True)
    if types.is_boolean(dtype):
        return _BOOLEAN
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return _NUMBER
    if types.is_string(dtype) or types.is_large_string(dtype) or str(dtype) == "string_view":
        return _TEXT
    if types.is_date(dtype):
        return Kind("date", days=True)
    if types.is_timestamp(dtype):
        return Kind("date", zone=dtype.tz)
    return OBJECTS if types.is_null(dtype) else _OTHER
