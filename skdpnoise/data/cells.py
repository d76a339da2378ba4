"""The values of a column, by its declared type alone, and what no declared type says of them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skdpnoise.data.kinds import OBJECTS, Kind, kind_of

__all__ = [
    "Contents",
    "are_plain",
    "cells_of",
    "check_labels_of",
    "column_of",
    "contents_of",
    "contents_of_objects",
]
__all__ += ["is_missing", "kinds_of", "n_columns_of", "of_truth_values", "together", "types_of"]

_EXACT = 2**53  # from which on doubles do not hold every whole number
_DOUBLE = np.dtype(np.float64).itemsize
_BITS = 64  # of a whole number, as numpy has them
_NO_DATE = -(2**63)  # the whole number of numpy's NaT
_MISSING = ("NoneType", "NAType", "NaTType")
_PLAIN = (str, int, bool, float)
_NO_NUMBERS = (np.complexfloating, np.timedelta64)  # though numpy says so

Contents = frozenset[str]
"""Of a column of objects which of "text", "number", "boolean", "date", "missing" and "other" are in
it, "odd" for those that are no labels, and "long" for whole numbers that no type of numbers holds;
of numpy's numbers "wide" for whole numbers that one missing value would round."""


def types_of(table: Any) -> list[Any]:
    """Return the declared types of the columns; of an array one for all, of a list none."""
    schema: Any = getattr(table, "schema", None)
    if hasattr(schema, "types"):  # of pyarrow
        return list(schema.types)
    found = getattr(table, "dtypes", None)
    found = getattr(table, "dtype", None) if found is None else found
    several = hasattr(found, "__iter__") and not isinstance(found, type)
    return [] if found is None else list(found) if several else [found]


def kinds_of(table: Any) -> tuple[Kind, ...]:
    """Return the kind of each column of a table or a series; none where no types are declared."""
    if issparse(table):
        return ()
    schema: Any = getattr(table, "schema", None)
    fields = hasattr(schema, "field")  # of pyarrow, which say more than their types
    width = 1 if hasattr(table, "columns") or getattr(table, "ndim", 1) < 2 else table.shape[1]
    return tuple(map(kind_of, schema if fields else types_of(table))) * width


def n_columns_of(table: Any) -> int:
    """Return the number of columns of a table; 1 of a vector or a series."""
    return int(table.shape[1]) if len(getattr(table, "shape", ())) == 2 else 1


def cells_of(table: Any, place: int = 0) -> Any:
    """Return a column as an array of numbers or dates, or as a list of plain values."""
    # Whole numbers stay exact; where some are missing the others are equal floats, or objects.
    column = column_of(table, place)
    if isinstance(getattr(column, "dtype", None), np.dtype):  # of an array, or a series of pandas
        if column.dtype.kind not in "biufM":
            return column.tolist()
        precise = column.dtype.kind == "f" and column.dtype.itemsize > _DOUBLE
        with np.errstate(over="ignore"):  # of more than double precision
            return np.asarray(column, dtype=np.float64 if precise else None)
    library = type(column).__module__.partition(".")[0]
    column = _as_pandas(column) if library == "pyarrow" else column
    kind, polars = kind_of(column.dtype), library == "polars"
    if kind.name not in ("number", "boolean", "date") and (polars or not kind.category):
        return column.to_list()
    return (_of_polars if polars else _of_pandas)(column, kind)


def of_truth_values(kind: Kind, contents: Set[str]) -> bool:
    """Return whether 1 and 0 are shown as True and False in a column."""
    return kind.name == "boolean" or ("boolean" in contents and "number" not in contents)


def together(
    owner: str, name: str, parts: Sequence[tuple[Kind, Contents]], declared: Kind | None = None
) -> tuple[Kind, Contents]:
    """Return what a column is declared to be in all parts of the rows, and what it holds."""
    # A part of objects may be what a missing value made of it: then the others say what it is.
    contents: Contents = frozenset().union(*(held for _, held in parts))
    kinds = {replace(kind, never_missing=False) for kind, _ in parts} - {OBJECTS}
    if declared is None or declared == OBJECTS:
        if not kinds:
            return OBJECTS, contents
        declared = parts[0][0] if len(parts) == 1 else min(kinds, key=repr)
        fit = len(kinds) == 1
    else:
        fit = {kind.name for kind in kinds if kind.name != "objects"} <= {declared.name}
    objects = [held for kind, held in parts if kind == OBJECTS]
    if not fit or any(held - {declared.name, "missing", "odd"} for held in objects):
        raise ValueError(
            f"{owner} needs {name} to have one type in all parts of the rows. Got several: convert "
            "it to one where the rows are read, such as numbers, text or pandas' 'boolean'."
        )
    return declared, contents


def check_labels_of(owner: str, name: str, contents: Contents, *, mixed: bool = False) -> None:
    """Refuse categories of which one value would decide how others are read or shown."""
    # With `mixed` each value is a category by itself, or none.
    if "odd" in contents and not mixed:
        raise ValueError(
            f"{owner} takes text, numbers and truth values as categories, and {name} has objects "
            "of another kind, such as dates, bytes or lists. Convert all of them to text."
        )
    if "text" in contents and not mixed and contents & {"boolean", "number"}:
        raise ValueError(
            f"{owner} takes text or numbers as categories, and {name} has both. Convert all of "
            "them to text: '1' and 1 are different."
        )
    if {"boolean", "number"} <= contents:
        raise ValueError(
            f"{owner} takes truth values or numbers as categories, and {name} has both, of which "
            "some are equal. Convert all of them to numbers, or to text."
        )
    if "wide" in contents:
        raise ValueError(
            f"{owner} takes whole numbers below 2**53 as categories in columns of numpy's types, "
            f"where one missing value would round all others. Got larger ones in {name}: give it a "
            "type that holds them beside missing values, as in .astype('Int64'), or text."
        )


def contents_of(table: Any, place: int = 0) -> Contents:
    """Return what a column holds of which its declared type does not tell."""
    column = column_of(table, place)
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # of pandas, by its labels
        column = column.cat.categories
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        values = column if isinstance(column, np.ndarray) else column.to_numpy()
        return frozenset({"wide"} if _is_wide(values) else ())
    if dtype is None or kind_of(dtype) != OBJECTS:
        inexact = dtype is not None and kind_of(dtype).name == "number" and not _keeps(dtype)
        return frozenset({"wide"} if inexact and _is_wide(cells_of(column)) else ())
    return contents_of_objects(column)


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none: None, NaN, pandas' NA."""
    return type(value).__name__ in _MISSING or (
        isinstance(value, float | np.floating) and math.isnan(value)
    )


def are_plain(values: Iterable[Any]) -> bool:
    """Return whether values have no code of their own, and equal ones are one category."""
    types = set(map(type, values))
    if any(one not in _PLAIN and one.__name__ not in _MISSING for one in types):
        return False
    # A whole number may be too long for a category where a float that equals it is one.
    return not types.issuperset((int, float))


def column_of(table: Any, place: int) -> Any:
    """Return a column of a table as its library has it; a vector or a series as it is."""
    if len(getattr(table, "shape", ())) != 2:
        return table
    if isinstance(table, np.ndarray):
        return table[:, place]
    if hasattr(table, "iloc"):
        return table.iloc[:, place]
    return table.to_series(place) if hasattr(table, "to_series") else table.column(place)


def _as_pandas(column: Any) -> Any:
    """Return a column of Arrow as a series that stays what it is declared to be."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.to_pandas(types_mapper=pd.ArrowDtype)


def _of_pandas(column: Any, kind: Kind) -> Any:
    """Return numbers, dates, or any categories of a type that numpy does not have."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype) and kind.category:
        return cells_of(column.astype(pd.ArrowDtype(dtype.pyarrow_dtype.value_type)))
    if isinstance(dtype, pd.CategoricalDtype):
        kinds = cells_of(pd.Series(column.cat.categories))
        if isinstance(kinds, np.ndarray) and kinds.dtype.kind == "M":
            return np.append(kinds, np.datetime64("NaT"))[column.cat.codes.to_numpy()]
        listed = [*kinds, None] if isinstance(kinds, list) else [*kinds.tolist(), None]
        return [listed[code] for code in column.cat.codes.tolist()]  # -1 is what is missing
    if isinstance(dtype, pd.PeriodDtype):
        return column.dt.start_time.to_numpy()
    if kind.name == "date":
        zoned = column if kind.zone is None else column.dt.tz_localize(None)
        return zoned.astype("M8[s]" if kind.days else "M8[us]").to_numpy()
    if getattr(dtype, "kind", "") not in ("i", "u"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = column.isna().to_numpy()
    exact = np.uint64 if dtype.kind == "u" else np.int64
    if not missing.any():
        return column.to_numpy(dtype=exact)
    return _beside_missing(column.fillna(0).to_numpy(dtype=exact), missing)


def _beside_missing(values: Any, missing: Any) -> Any:
    """Return whole numbers of which some are missing: as floats where these are equal."""
    if not _is_wide(values):
        return np.where(missing, np.nan, values.astype(np.float64))
    return [None if none else value for value, none in zip(values.tolist(), missing, strict=True)]


def _of_polars(column: Any, kind: Kind) -> Any:
    """Return numbers or dates."""
    import polars as pl

    dtype = column.dtype
    if dtype.is_integer() and dtype not in (getattr(pl, "Int128", None), pl.Null):
        exact = pl.UInt64 if dtype == pl.UInt64 else pl.Int64
        values = column.cast(exact).fill_null(0).to_numpy()
        missing = column.is_null().to_numpy()
        return _beside_missing(values, missing) if missing.any() else values
    if kind.name != "date":
        return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if kind.zone is not None:
        column = column.dt.replace_time_zone(None)
    # By whole numbers: the first versions of polars cannot hand over dates of which some are none.
    seconds = column.cast(pl.Datetime("us")).dt.epoch("s").fill_null(_NO_DATE)
    return seconds.to_numpy().astype("datetime64[s]")


def _keeps(dtype: Any) -> bool:
    """Return whether numbers of a declared type stay what they are, beside a missing one too."""
    if kind_of(dtype).category:  # a dictionary of Arrow, whose labels stay as they are
        return True
    whole = getattr(dtype, "is_integer", None)  # of polars
    if whole is None:
        return getattr(dtype, "kind", "") in ("i", "u", "f")
    return dtype.is_float() or (whole() and "128" not in str(dtype))


def contents_of_objects(column: Iterable[Any]) -> Contents:
    values: Sequence[Any] = column.tolist() if hasattr(column, "tolist") else list(column)
    types = set(map(type, values))
    floats = {one for one in types if issubclass(one, float | np.floating)}
    found = {name for one in types - floats for name in _of_type(one)}
    if floats:
        numbers = [value for value in values if isinstance(value, float | np.floating)]
        absent = sum(map(is_missing, numbers))
        found |= {"number"} if absent < len(numbers) else set()
        found |= {"missing"} if absent else set()
    long = any(type(value) is int and value.bit_length() >= _BITS for value in values)
    return frozenset(found | ({"long"} if long else set()))


def _of_type(one: type) -> Contents:
    if one.__name__ in _MISSING:
        return frozenset({"missing"})
    if issubclass(one, str):
        return frozenset({"text"})
    if issubclass(one, bool | np.bool_):
        return frozenset({"boolean"})
    if issubclass(one, datetime.date | np.datetime64) or one.__name__ == "Period":
        return frozenset({"date", "odd"})
    if not issubclass(one, Real | np.number | Decimal) or issubclass(one, _NO_NUMBERS):
        return frozenset({"other", "odd"})
    plain = one in (int, float, Decimal) or issubclass(one, np.number)
    return frozenset({"number"} if plain else {"number", "odd"})


def _is_wide(values: Any) -> bool:
    """Return whether there are whole numbers that are not equal to one double alone."""
    if values.dtype.itemsize < _DOUBLE or values.size == 0:
        return False
    if values.dtype.kind != "f":
        return bool(values.max() >= _EXACT or values.min() <= -_EXACT)
    with np.errstate(invalid="ignore"):
        beyond = np.abs(values) >= _EXACT
    return bool((beyond & np.isfinite(values)).any())
