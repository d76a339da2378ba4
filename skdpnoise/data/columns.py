"""Columns get the type that they are declared to have, and no single value decides it.

A column of polars integers becomes integers in numpy as long as nothing is missing, and floats as
soon as one value is: all other records are then read differently, a reciprocal of 2 is 0 or 0.5,
and a fitted encoder, or a name of a column, tells of that one value. So is a category of integers
in pandas. Here every column that can have missing values is converted before anything reads it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from skdpnoise._utils.silence import silence
from skdpnoise.data.kinds import kind_of
from skdpnoise.data.lists import read_once, without_lists

_SIMPLE = 4  # bytes of a number of single precision, which stays one


def read_features(owner: str, X: Any) -> Any:
    """Return features in which no single value decides how the others are read."""
    return by_declared_type(owner, without_lists(owner, read_once(owner, X)))


def by_declared_type(owner: str, data: Any) -> Any:
    """Return a frame whose columns have a type that no missing value changes."""
    # Numbers and truth values that can be missing become doubles, or floats of single precision if
    # they are declared as such, with NaN for what is missing; text, and categories of text, become
    # objects. Categories become what they are categories of. Columns of numpy's own types in
    # pandas, and arrays, cannot change their type for a value: they stay as they are.
    if isinstance(data, np.ndarray) or not (hasattr(data, "columns") or hasattr(data, "dtype")):
        return data
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    failed = False
    try:
        with silence():
            if pandas is not None and isinstance(data, pandas.Series):
                return _pandas_column(data)
            if pandas is not None and isinstance(data, pandas.DataFrame):
                return _pandas_frame(data)
            if polars is not None and isinstance(data, polars.Series):
                return _polars_column(data)
            if polars is not None and isinstance(data, polars.DataFrame):
                return data.with_columns([_polars_column(column) for column in data.iter_columns()])
    except MemoryError:
        raise
    except Exception:
        failed = True
    if failed or hasattr(data, "columns"):
        raise TypeError(  # outside the handler, so that the quoting error is not attached to it
            f"{owner} takes arrays, frames of pandas or polars, and tables of Arrow. Got an object "
            f"of type {type(data).__name__}, of which the types of columns are not known: convert "
            "it first, as in X.to_pandas(), or its columns to numbers and text."
        )
    return data


def is_numeric(data: Any) -> bool:
    """Return whether all columns are declared as numbers or truth values, whatever they hold."""
    if is_polars(data):
        dtypes = list(data.dtypes) if hasattr(data, "columns") else [data.dtype]
        return all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in dtypes)
    several = hasattr(data, "columns") and hasattr(data, "dtypes")
    dtypes = list(data.dtypes) if several else [getattr(data, "dtype", None)]
    return all(getattr(dtype, "kind", "O") in "biuf" for dtype in dtypes)


def is_polars(data: Any) -> bool:
    """Return whether data are a frame or a series of polars."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(data, polars.DataFrame | polars.Series)


def _pandas_frame(frame: Any) -> Any:
    import pandas as pd

    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    read = [_pandas_column(column) for column in columns]
    if all(new is old for new, old in zip(read, columns, strict=True)):
        return frame
    table = pd.DataFrame(dict(enumerate(read)), index=frame.index, copy=False)
    table.columns = frame.columns  # which need not be different
    return table


def _pandas_column(column: Any) -> Any:
    """Return a column that is declared to hold missing values as one of numpy's types."""
    import pandas as pd

    kind = kind_of(column.dtype)
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.start_time
    if isinstance(column.dtype, pd.ArrowDtype) and kind.name == "date":
        if kind.days:  # which numpy's dates in pandas cannot say
            return column
        return column.astype("M8[us]" if kind.zone is None else f"datetime64[us, {kind.zone}]")
    if isinstance(column.dtype, pd.CategoricalDtype):
        kinds = column.cat.categories
        target = _target(kinds.dtype)
        target = target if isinstance(target, np.dtype) else np.dtype(object)
        listed = pd.Series(kinds).to_numpy(dtype=target)
        missing = np.datetime64("NaT") if listed.dtype.kind in "mM" else np.nan
        values = np.empty(len(listed) + 1, dtype=listed.dtype)
        values[:-1], values[-1] = listed, missing
        values = values[column.cat.codes.to_numpy()]  # -1, the last one, is what is missing
    else:
        target = column.dtype if isinstance(column.dtype, np.dtype) else _target(column.dtype)
        if target == column.dtype:
            return column
        values = column.to_numpy(dtype=target, na_value=np.nan)
    return pd.Series(values, index=column.index, name=column.name, dtype=values.dtype)


def _target(dtype: Any) -> Any:
    """Return the type that a column of pandas is read as, by its declared type."""
    import pandas as pd
    from pandas.api import types

    if isinstance(dtype, np.dtype):
        return _numeric(dtype) if types.is_numeric_dtype(dtype) else dtype
    if isinstance(dtype, pd.SparseDtype | pd.DatetimeTZDtype):
        return dtype  # refused, or read, whatever they hold
    numeric = types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype)
    return _numeric(dtype) if numeric else np.dtype(object)


def _numeric(dtype: Any) -> np.dtype[Any]:
    simple = dtype.kind == "f" and dtype.itemsize <= _SIMPLE
    return np.dtype(np.float32 if simple else np.float64)


def _polars_column(column: Any) -> Any:
    """Return a column of polars as floats or text."""
    import polars as pl

    kind = column.dtype
    if kind in (pl.Float32, pl.Float64):
        return column.fill_null(float("nan"))
    if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        return column.cast(pl.Float64).fill_null(float("nan"))
    return column.cast(pl.String) if kind in (pl.Categorical, pl.Enum) else column
