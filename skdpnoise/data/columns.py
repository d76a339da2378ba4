"""Data of users as arrays and frames in which no single value decides how others are read.

A column of polars integers becomes integers in numpy as long as nothing is missing, and floats as
soon as one value is: all other records are then read differently, a reciprocal of 2 is 0 or 0.5,
and a fitted encoder, or a name of a column, tells of that one value. So is a category of integers
in pandas. Here every column that can have missing values is converted before anything reads it, and
lists become arrays of a type that none of their values decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _num_samples

from skdpnoise._utils.silence import silence
from skdpnoise.data.cells import types_of
from skdpnoise.data.groups import group_codes
from skdpnoise.data.kinds import kind_of
from skdpnoise.data.redaction import check_collected, unless_it_fails
from skdpnoise.data.sources import RowSource, by_storage

Made = TypeVar("Made")

_SIMPLE = 4  # bytes of a number of single precision, which stays one
_TEXT = (str, bytes)
_ROWS = (list, tuple)


def first_read(rows: RowSource, read: Callable[[Any], Made]) -> Made:
    """Return what a function of ours makes of the rows that are read first, or refuse them."""
    first: tuple[Made, str | None] = rows.first(partial(_told, read))
    found, complaint = first
    if complaint is not None:  # where rows are read errors are not shown: they may quote them
        raise TypeError(complaint)
    return found


def _told(read: Callable[[Any], Made], X: Any) -> tuple[Made | None, str | None]:
    try:
        return read(X), None
    except (TypeError, ValueError) as error:
        return None, str(error)


def read_features(owner: str, X: Any) -> Any:
    """Return features in which no single value decides how the others are read."""
    return by_declared_type(owner, read_once(owner, X))


def by_declared_type(owner: str, data: Any) -> Any:
    """Return a frame whose columns have a type that no missing value changes."""
    # Numbers and truth values that can be missing become doubles, or floats of single precision if
    # they are declared as such, with NaN for what is missing; text, and categories of text, become
    # objects. Categories become what they are categories of. Columns of numpy's own types in
    # pandas, and arrays, cannot change their type for a value: they stay as they are.
    if isinstance(data, np.ndarray) or not (hasattr(data, "columns") or hasattr(data, "dtype")):
        return data
    typed = None
    with silence(), unless_it_fails():
        typed = _typed(data)
    if typed is None:
        raise TypeError(
            f"{owner} takes arrays, frames of pandas or polars, and tables of Arrow. Got an object "
            f"of type {type(data).__name__}, of which the types of columns are not known: convert "
            "it first, as in X.to_pandas(), or its columns to numbers and text."
        )
    return typed


def _typed(data: Any) -> Any:
    """Return a frame or a column by declared types; None of a frame of no library that is known."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(data, pandas.Series):
        return _pandas_column(data)
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return _pandas_frame(data)
    if polars is not None and isinstance(data, polars.Series):
        return _polars_column(data)
    if polars is not None and isinstance(data, polars.DataFrame):
        return data.with_columns([_polars_column(column) for column in data.iter_columns()])
    return None if hasattr(data, "columns") else data


def is_numeric(data: Any) -> bool:
    """Return whether all columns are declared as numbers or truth values, whatever they hold."""
    types = by_storage(data, types_of, lambda rows: rows.first(types_of))
    return bool(types) and all(map(_is_of_numbers, types))


def _is_of_numbers(dtype: Any) -> bool:
    if hasattr(dtype, "is_temporal"):  # of polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"


def is_polars(data: Any) -> bool:
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
    if not hasattr(X, "__len__"):
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


def target_without_lists(owner: str, y: Any) -> Any:
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


def read_once(
    owner: str, data: Any, *, name: str = "X", listed: Callable[[str, Any], Any] = without_lists
) -> Any:
    """Return data that are read on demand as an array: what is checked is what is fitted."""
    # `listed` reads what is neither a frame nor an array, such as a list of rows.
    check_collected(owner, name, type(data))
    if type(data).__module__.partition(".")[0] == "pyarrow":
        data = as_frame(data)
    frame = hasattr(data, "columns") or hasattr(data, "iloc")
    if frame or isinstance(data, np.ndarray) or issparse(data):
        return data
    if not hasattr(data, "__array__"):
        return listed(owner, data)
    values = None
    with silence(), unless_it_fails():
        values = data.__array__()
    if not isinstance(values, np.ndarray):
        raise ValueError(
            f"{owner} needs arrays or frames. Got an object of type {type(data).__name__} that "
            "cannot be read as one: convert it first, as in numpy.asarray(...)."
        )
    return values


def _table(rows: Any) -> Any:
    """Return rows of one kind of values in a form that no value decides; None if there is none."""
    kinds = {_kind(value) for row in rows for value in row}
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


def read_beside(owner: str, X: Any, y: Any, groups: Any) -> tuple[Any, Any, int, int | None]:
    """Return y and groups as steps get them beside X, and how many rows and groups there are."""
    y = read_once(owner, y, name="y", listed=target_without_lists)
    n_rows = check_data(owner, X, y)
    if groups is None:
        return y, None, n_rows, None
    with silence():
        codes = group_codes(f"{owner}.fit", groups, n_rows)
    return y, codes, n_rows, int(codes.max()) + 1


def counted_beside(X: RowSource, y: Any, groups: Any) -> tuple[Any, Any, int, None]:
    """Return y and groups of rows in parts as they are, and the number of rows."""
    return y, groups, len(X), None


def check_data(owner: str, X: Any, y: Any) -> int:
    """Return the number of rows of data that steps can be fitted to."""
    if any(np.ma.isMaskedArray(data) for data in (X, y)):
        raise TypeError(
            f"{owner} does not support masked arrays: data would be read without their mask. Fill "
            "what is masked by a public constant, as in numpy.ma.filled(..., 0.0)."
        )
    if issparse(X):
        raise TypeError(
            f"Sparse data were passed to {owner}, but dense data are required: private steps read "
            "every value. Convert X with X.toarray()."
        )
    given = {"X": X} if y is None else {"X": X, "y": y}
    lengths = []
    for name, data in given.items():
        check_collected(owner, name, type(data))
        found = None
        with silence(), unless_it_fails():
            found = int(_num_samples(data))
        if found is None:
            raise TypeError(
                f"{owner} needs {name} as an array, a frame or a list with an entry for each "
                f"record. Got an object of type {type(data).__name__}, which has no length."
            )
        lengths.append(found)
    if len(set(lengths)) > 1:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {lengths}")
    return lengths[0]
