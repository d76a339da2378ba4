"""Columns some of whose values are missing: read by their declared types, or refused.

Missing is what each library calls so, None and NaN. No value, and no missing one, decides how the
other values of a column are read.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.cells import column_of, n_columns_of
from skdpnoise.data.kinds import OBJECTS, Kind, kind_of
from skdpnoise.data.redaction import unless_it_fails, without_values

Missing = Literal["error", "skip"]
"""Missing values: all is refused, or they are left out."""
Made = TypeVar("Made")

_MISSING_TARGET = (
    "Input y contains NaN (missing values). {} learns from records that have a target: leave the "
    "others out"
)
_NOT_FILLED = " A target that is filled in would be learnt."


def with_gaps(values: Any) -> NDArray[np.floating] | None:
    """Return numbers as floats, NaN where one is missing; None if they are no numbers."""
    if not hasattr(values, "columns"):
        return _numbers_of(values if _is_declared(values) else _listed(values))
    columns = [_numbers_of(column_of(values, k)) for k in range(n_columns_of(values))]
    found = [column for column in columns if column is not None]
    return np.column_stack(found) if len(found) == len(columns) > 0 else None


def present(values: Any) -> NDArray[np.bool_] | None:
    """Return whether each value is there; None of what is no column, or holds truth values."""
    values = values if _is_declared(values) else _listed(values)
    if hasattr(values, "columns") or getattr(values, "ndim", 1) != 1:
        return None
    kind = _kind(values)
    if kind.name == "boolean":
        return None
    if _is_number(kind):
        numbers = _numbers_of(values)
        return None if numbers is None else ~np.isnan(numbers)
    if kind != OBJECTS and _is_declared(values):
        library = type(values).__module__.partition(".")[0]
        known = {"pandas": "notna", "polars": "is_not_null", "pyarrow": "is_valid"}[library]
        return np.asarray(getattr(values, known)(), dtype=np.bool_)
    entries = np.asarray(values)
    if entries.dtype.kind != "O":
        return np.asarray(entries == entries)
    if any(isinstance(entry, bool | np.bool_) for entry in entries):
        return None
    with unless_it_fails():
        return ~np.array([*map(is_missing, entries)], dtype=np.bool_)
    return None


def is_missing(value: Any) -> bool:
    """Return whether an object stands for no value: None or the like, or unequal to itself."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    # pyarrow's scalars say themselves whether they hold a value.
    return getattr(value, "is_valid", True) is False or bool(value != value)


def _is_declared(values: Any) -> bool:
    """Return whether values are of a library that declares types beside those of numpy."""
    return type(values).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")


def _kind(column: Any) -> Kind:
    return kind_of(column.dtype if hasattr(column, "dtype") else column.type)


def _is_number(kind: Kind) -> bool:
    return kind.name in ("number", "boolean") and not kind.category


def _listed(values: Any) -> NDArray[Any]:
    """Return an array as it is, and a list as one; what is masked becomes None."""
    if isinstance(values, np.ma.MaskedArray):
        entries = values.data.astype(object)
        entries[np.ma.getmaskarray(values)] = None
        return entries
    array = np.asarray(values)
    mixed = array.dtype.kind in "US" and not isinstance(values, np.ndarray)
    return np.asarray(values, dtype=object) if mixed else array  # not "None" and "nan" as text


def _numbers_of(column: Any) -> NDArray[np.floating] | None:
    kind = _kind(column)
    if kind == OBJECTS:
        entries = np.asarray(column)
        with unless_it_fails():
            return np.array([*map(_number, entries.flat)]).reshape(entries.shape)
        return None
    if not _is_number(kind):
        return None
    if not _is_declared(column) or isinstance(getattr(column, "dtype", None), np.dtype):
        array = np.asarray(column)
        return array if array.dtype.kind == "f" else array.astype(np.float64)
    if hasattr(column, "iloc"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if hasattr(column, "dtype"):
        return np.asarray(column.cast(sys.modules["polars"].Float64))
    return np.asarray(column.cast("double", safe=False))


def _number(entry: Any) -> float:
    if is_missing(entry):
        return np.nan
    if not isinstance(entry, Real | np.bool_ | Decimal):
        raise TypeError
    return float(entry)


def check_present(owner: str, y: Any) -> None:
    """Refuse rows in parts of which some have no target; no rows of those can be selected."""
    there = present(y)
    if there is not None and not there.all():
        raise ValueError(
            f"{_MISSING_TARGET.format(owner)} where they are read, as in skdpnoise.data."
            "scan_batches(lambda: (rows[rows[target].notna()] for rows in source.batches())), or "
            f"of a frame of dask by frame.dropna(subset=[target]).{_NOT_FILLED}"
        )


def without_targets(owner: str, y: Any, *, otherwise: str = "") -> ValueError:
    """Return the error of a target that some record does not have, with what leaves these out."""
    return ValueError(
        f"{_MISSING_TARGET.format(owner)} of X and y, and of groups if there are some, by keep = "
        f"{_kept(y)}{otherwise}.{_NOT_FILLED}"
    )


def has_missing(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "f":
        return bool(np.isnan(values).any())
    unfit = (
        "y has objects that cannot be compared with themselves. Convert them to numbers or text."
    )
    with without_values(unfit):
        return values.dtype.kind == "O" and any(map(is_missing, values))


def _kept(y: Any) -> str:
    """Return an expression of y that tells which records have a target, by the type of y alone."""
    library = type(y).__module__.partition(".")[0]
    several = len(getattr(y, "shape", ())) == 2
    if library == "pandas":
        return "y.notna().all(axis=1).to_numpy()" if several else "y.notna().to_numpy()"
    if library == "polars":
        column = "y.to_series()" if several else "y"
        floats = "Float" in str(getattr(y, "dtype", None) or y.dtypes[0])
        return f"{column}{'.fill_nan(None)' if floats else ''}.is_not_null().to_numpy()"
    if isinstance(y, np.ndarray) and y.dtype.kind == "f":  # which a pipeline made of anything
        return "~numpy.isnan(numpy.asarray(y, dtype=float)).ravel()"
    return "pandas.notna(numpy.array(y, dtype=object).ravel())"


def missing_labels(name: str) -> ValueError:
    return ValueError(
        f"Input {name} contains NaN (missing labels). Leave these records out, or give them a "
        "label of their own."
    )


def missing_numbers(owner: str, name: str) -> ValueError:
    return ValueError(
        f"Input {name} contains NaN.\n{owner} does not accept missing values: put a "
        "DPSimpleImputer before it in a DPPipeline, or replace them by a public constant, for "
        "example by SimpleImputer(strategy='constant', fill_value=0.0, "
        "keep_empty_features=True)."
    )
