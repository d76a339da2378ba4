"""Tables of numpy, pandas and polars: their rows, numbers, and cells that hold nothing or news.

A column keeps its type whatever record is put in: types are public, and neighbours share them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.data.cells import is_missing
from skdpnoise.data.columns import is_polars

_UNSEEN = "unseen"


@dataclass(frozen=True, slots=True, eq=False)
class Odd:
    """A value that a column can hold, and that may be unlike all that is there."""

    kind: str  # what it is, in words
    table: Any  # the table, with a column that can hold it
    value: Any


def as_table(X: Any) -> Any:
    return X if hasattr(X, "iloc") or is_polars(X) else np.asarray(X)


def names_of(X: Any, columns: Sequence[int]) -> list[Any]:
    return [X.columns[k] for k in columns] if hasattr(X, "columns") else []


def numeric_columns(X: Any) -> dict[int, np.dtype[Any]]:
    kinds = {k: _numpy_kind(X, k) for k in range(X.shape[1])}
    return {k: kind for k, kind in kinds.items() if kind is not None}


def numbers(X: Any, columns: Sequence[int]) -> NDArray[np.float64]:
    """Return columns as finite numbers: 0 for what is none."""
    found = np.zeros((X.shape[0], len(columns)))
    for place, k in enumerate(columns):
        found[:, place] = [0.0 if is_missing(cell) else float(cell) for cell in _cells(X, k)]
    return np.nan_to_num(found, posinf=0.0, neginf=0.0)


def taken(X: Any, rows: ArrayLike) -> Any:
    places = np.asarray(rows, dtype=np.intp)
    if hasattr(X, "iloc"):
        return X.iloc[places].reset_index(drop=True)
    return X[places.tolist()] if is_polars(X) else X[places]


def stacked(X: Any, rows: Any) -> Any:
    if hasattr(X, "iloc"):
        import pandas as pd

        return pd.concat([X, rows], ignore_index=True)
    if is_polars(X):
        import polars as pl

        return pl.concat([X, rows])
    return np.vstack([X, rows])


def with_numbers(X: Any, values: Mapping[int, ArrayLike]) -> Any:
    kinds = numeric_columns(X)
    for k, new in values.items():
        held = _as_kind(np.atleast_1d(np.asarray(new, dtype=np.float64)), kinds[k])
        X = _with_column(X, k, held.tolist())
    return X


def with_cell(X: Any, row: int, column: int, value: Any) -> Any:
    cells = _cells(X, column)
    cells[row] = value
    return _with_column(X, column, cells)


def rows_of(X: Any) -> list[tuple[Any, ...]]:
    """Return rows as tuples that can be compared: a missing value equals one of its kind."""
    columns = [
        [("missing", type(cell).__name__) if is_missing(cell) else cell for cell in _cells(X, k)]
        for k in range(X.shape[1])
    ]
    return list(zip(*columns, strict=True))


def odd_values(X: Any, column: int) -> Iterator[Odd]:
    """Yield what a column can hold beside what is there: nothing, and an unseen category."""
    for kind, value in _missing_values(X, column):
        yield Odd(kind, X, value)
    known = _known_categories(X, column)
    kinds = {type(one) for one in known}
    if not kinds or kinds - {str, int, float}:
        return
    unseen: Any = _UNSEEN if kinds == {str} else None
    if unseen is None and str not in kinds and _named_categories(X, column):
        unseen = max(known) + 1
    if unseen is None or unseen in known:
        return
    yield Odd("an unseen category", _widened(X, column, unseen), unseen)


def _missing_values(X: Any, column: int) -> list[tuple[str, Any]]:
    nothing, undefined = ("a missing value", None), ("a NaN", float("nan"))
    if is_polars(X):
        return [nothing, undefined] if X.dtypes[column].is_float() else [nothing]
    kind = X.dtypes.iloc[column] if hasattr(X, "iloc") else X.dtype
    if kind == np.dtype(object):
        return [nothing, undefined]
    if isinstance(kind, np.dtype) and kind.kind not in "mM":
        return [undefined] if kind.kind == "f" else []
    return [nothing]


def _known_categories(X: Any, column: int) -> list[Any]:
    if column in numeric_columns(X):
        return []
    found = [cell for cell in _cells(X, column) if not is_missing(cell)]
    return [*_named_categories(X, column), *found]


def _named_categories(X: Any, column: int) -> list[Any]:
    if hasattr(X, "iloc"):
        index = getattr(X.dtypes.iloc[column], "categories", None)
        return [] if index is None else index.tolist()
    if is_polars(X):
        import polars as pl

        kind = X.dtypes[column]
        return kind.categories.to_list() if isinstance(kind, pl.Enum) else []
    return []


def _widened(X: Any, column: int, category: Any) -> Any:
    """Return a table with one more category where a type names them, or bounds their length."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "U":
        return X.astype(np.result_type(X.dtype, np.array(category).dtype))
    named = _named_categories(X, column)
    if not named:
        return X
    if is_polars(X):
        import polars as pl

        return X.with_columns(pl.col(X.columns[column]).cast(pl.Enum([*named, category])))
    X = X.copy()
    X.isetitem(column, X.iloc[:, column].cat.add_categories([category]))
    return X


def _with_column(X: Any, column: int, cells: list[Any]) -> Any:
    if is_polars(X):
        import polars as pl

        name = X.columns[column]
        return X.with_columns(pl.Series(name, cells, dtype=X.dtypes[column]))
    X = X.copy()
    if hasattr(X, "iloc"):
        import pandas as pd

        X.isetitem(column, pd.Series(cells, index=X.index, dtype=X.dtypes.iloc[column]))
    else:
        X[:, column] = cells
    return X


def _cells(X: Any, column: int) -> list[Any]:
    if hasattr(X, "iloc"):
        return list(X.iloc[:, column].tolist())
    return list(X[:, column].to_list() if is_polars(X) else X[:, column].tolist())


def _numpy_kind(X: Any, column: int) -> np.dtype[Any] | None:
    """Return numpy's type for a column of numbers; None if it is none, or of numbers of another."""
    if is_polars(X):
        none = X[:0].to_series(column)  # not of dates, of which old versions end the process
        numbers = none.dtype.is_numeric() or str(none.dtype) == "Boolean"
        kind = none.to_numpy().dtype if numbers else None
    elif hasattr(X, "iloc"):
        kind = getattr(X.dtypes.iloc[column], "numpy_dtype", X.dtypes.iloc[column])
    else:
        kind = X.dtype
        if kind.kind == "O":
            cells = [cell for cell in X[:, column].tolist() if not is_missing(cell)]
            plain = cells and all(type(cell) in (bool, int, float) for cell in cells)
            return np.dtype(float) if plain else None
    return kind if isinstance(kind, np.dtype) and kind.kind in "iufb" else None


def _as_kind(values: NDArray[np.float64], kind: np.dtype[Any]) -> NDArray[Any]:
    """Return values as a column holds them, as far as its numbers reach."""
    if kind.kind == "f":
        limit = float(np.finfo(kind).max)
        return np.clip(values, -limit, limit).astype(kind)
    if kind.kind == "b":
        return values > 0.0
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    return np.array([min(max(int(value), low), high) for value in np.rint(values)], dtype=kind)
