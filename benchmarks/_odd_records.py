"""Neighbouring tables that differ in one odd cell, in every container that estimators read."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from skdpnoise.data import scan_batches, scan_csv, scan_dataset, scan_parquet

N_RECORDS = 240
COLUMN = "cell"  # the column with the odd value
BESIDE = "beside"  # a column of plain numbers
PLACES = ("first", "middle", "last")  # of the record in which neighbours differ
_PARTS = 3
_DAY = datetime.datetime(2020, 3, 1)

USUAL: dict[str, list[Any]] = {
    "int": [1, 2, 3, 4],
    "float": [0.5, 1.0, 2.5, -3.0],
    "bool": [True, False],
    "text": ["red", "green", "blue"],
    "category": ["red", "green", "blue"],
    "date": [_DAY + datetime.timedelta(days=30 * k) for k in range(4)],
}
# What a typed column may hold, and what only a column of any objects, or of text, may.
TYPED: dict[str, list[Any]] = {
    "int": [None, 2**53 + 1, -1, 2],
    "float": [None, -0.0, 1e300, 2.0**53, 1.0],
    "bool": [None, False],
    "text": [None, "7", "unseen", "x" * 300, ""],
    "category": [None, "rare", "green"],
    "date": [None, datetime.datetime(1900, 1, 1), datetime.datetime(2200, 5, 6, 7, 8)],
}
UNTYPED: dict[str, list[Any]] = {
    "int": [1.0, True, "1", "text", 1e300, 0.5],
    "float": [1, True, "0.5", "text"],
    "bool": [1, 0.0, "True", "text"],
    "text": [7, 7.0, True, 2**53 + 1],
    "category": [7, "unseen"],
    "date": ["2020-01-01", 7],
}


@dataclass(frozen=True, slots=True)
class Container:
    """One way to hold a table."""

    name: str
    # from values, numbers beside them, the kind of the column and an empty folder, to X
    table: Callable[[list[Any], list[float], str, Path], Any]
    untyped: bool = False  # whether a value decides the type, or there is none
    alone: bool = False  # whether it has no column beside


def odd_values(container: Container, kind: str) -> list[Any]:
    """Return the values to be put in."""
    return [*TYPED[kind], *(UNTYPED[kind] if container.untyped else [])]


def values_of(kind: str, n: int = N_RECORDS) -> list[Any]:
    """Return usual values of a column."""
    usual = USUAL[kind]
    return [usual[k % len(usual)] for k in range(n)]


def beside(n: int) -> list[float]:
    """Return the numbers of the other column, which are also the target."""
    return [((7 * k) % 11 - 5) / 5.0 for k in range(n)]


def _numpy(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    kinds = {"int": np.int64, "float": np.float64, "bool": bool, "text": "U300", "date": "M8[us]"}
    if None in values and kind not in ("float", "date"):
        raise TypeError
    return np.array(values, dtype=kinds[kind])[:, np.newaxis]


def _objects(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    table = np.empty((len(values), 2), dtype=object)
    table[:, 0], table[:, 1] = values, others
    return table


def _frame(column: Any, others: list[float]) -> Any:
    return pd.DataFrame({COLUMN: column, BESIDE: others})


def _pandas(
    kinds: dict[str, Any], values: list[Any], others: list[float], kind: str, folder: Path | None
) -> Any:
    dtype = kinds[kind]
    if dtype in (np.dtype(bool), np.dtype(np.int64)) and any(type(v) is float for v in values):
        raise TypeError  # numpy would cut it
    if dtype == np.dtype(bool) and None in values:
        raise TypeError
    return _frame(pd.Series(values, dtype=dtype), others)


_CATEGORIES = pd.CategoricalDtype(["red", "green", "blue", "rare"])
NUMPY_TYPES = {
    "int": np.dtype(np.int64),
    "float": np.dtype(np.float64),
    "bool": np.dtype(bool),
    "text": np.dtype(object),
    "category": _CATEGORIES,
    "date": np.dtype("M8[us]"),
}
NULLABLE = {
    "int": pd.Int64Dtype(),
    "float": pd.Float64Dtype(),
    "bool": pd.BooleanDtype(),
    "text": pd.StringDtype("python"),
    "category": _CATEGORIES,
    "date": np.dtype("M8[us]"),
}
ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "date": pa.timestamp("us"),
}
OBJECTS = dict.fromkeys(USUAL, np.dtype(object))


def _inferred(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    return _frame(pd.Series(values, dtype="category" if kind == "category" else None), others)


def _polars(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    dtype = {
        "int": pl.Int64,
        "float": pl.Float64,
        "bool": pl.Boolean,
        "text": pl.String,
        "category": pl.Enum(_CATEGORIES.categories.tolist()),
        "date": pl.Datetime("us"),
    }[kind]
    return pl.DataFrame({COLUMN: pl.Series(values, dtype=dtype), BESIDE: others})


def _arrow(values: list[Any], others: list[float], kind: str) -> Any:
    column = pa.array(values, pa.string() if kind == "category" else ARROW[kind])
    column = column.dictionary_encode() if kind == "category" else column
    return pa.table({COLUMN: column, BESIDE: pa.array(others)})


def _dataset(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    return scan_dataset(
        pads.dataset(_arrow(values, others, kind)), batch_rows=-(-len(values) // _PARTS)
    )


def _parquet(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    path = folder / "table.parquet"
    pq.write_table(_arrow(values, others, kind), path, row_group_size=-(-len(values) // _PARTS))
    return scan_parquet(path)


def _csv(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    path = folder / "table.csv"
    text = pa.array([None if value is None else str(value) for value in values], pa.string())
    pacsv.write_csv(pa.table({COLUMN: text, BESIDE: pa.array(others)}), path)
    types = {"int": "number", "float": "number", "bool": "boolean", "date": "date"}
    return scan_csv(path, header=True, dtypes={COLUMN: types.get(kind, "text"), BESIDE: "number"})


def _batches(values: list[Any], others: list[float], kind: str, folder: Path) -> Any:
    whole = _pandas(NULLABLE, values, others, kind, None)
    step = -(-len(whole) // _PARTS)
    return scan_batches(lambda: (whole[k : k + step] for k in range(0, len(whole), step)))


CONTAINERS = (
    Container("numpy", _numpy, alone=True),
    Container("numpy, objects", _objects, untyped=True),
    Container("pandas, numpy types", partial(_pandas, NUMPY_TYPES)),
    Container("pandas, objects", partial(_pandas, OBJECTS), untyped=True),
    Container("pandas, inferred", _inferred, untyped=True),
    Container("pandas, nullable", partial(_pandas, NULLABLE)),
    Container("pandas, pyarrow", partial(_pandas, {k: pd.ArrowDtype(v) for k, v in ARROW.items()})),
    Container("polars", _polars),
    Container("Arrow dataset", _dataset),
    Container("Parquet", _parquet),
    Container("CSV", _csv, untyped=True),
    Container("batches of frames", _batches),
)


def place_of(where: str, size: int) -> int:
    """Return the number of the row that has the first, the middle or the last place."""
    return {"first": 0, "middle": size // 2, "last": size - 1}[where]


def tables(
    container: Container, kind: str, adjacency: str, folder: Path, where: str = "last"
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield odd values, the usual table, and its neighbour: None if its column cannot hold one.

    Tables come with the numbers beside the column. Under "add_remove" the neighbour has one record
    more. What a source says when it is asked for the neighbour comes in its place.
    """
    usual, more = values_of(kind), adjacency == "add_remove"
    place = place_of(where, len(usual) + more)
    others = beside(len(usual) + more)
    fewer = others[:place] + others[place + 1 :] if more else others
    for number, odd in enumerate(odd_values(container, kind)):
        changed = [*usual[:place], odd, *usual[place + (not more) :]]
        folders = [folder / f"{number}_{name}" for name in ("usual", "odd")]
        for one in folders:
            one.mkdir(parents=True)
        first = container.table(usual, fewer, kind, folders[0]), fewer
        try:
            yield odd, first, (container.table(changed, others, kind, folders[1]), others)
        except (TypeError, ValueError, OverflowError, KeyError) as error:
            yield odd, first, error if container.untyped else None
        except pl.exceptions.PolarsError:
            yield odd, first, None
