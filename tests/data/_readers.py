"""Every reader of tables, and every kind of column that it can hold.

A reader takes the values of one column and a target of numbers, and returns a function that opens
them as features and target, or the other way round. It raises :class:`NotHeld` if its container
cannot hold these values: of a declared type, or of a file of text, in which an empty text is none.
"""

from __future__ import annotations

import datetime
import itertools
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from skdpnoise.data import scan_batches, scan_csv, scan_dataset, scan_parquet

WIDE = 2**53
DAY = datetime.date(2024, 3, 1)
HOUR = datetime.datetime(2024, 3, 1, 12)
ZONED = HOUR.replace(tzinfo=datetime.UTC)
HOUR_LONG, HOURS_LONG = datetime.timedelta(hours=1), datetime.timedelta(hours=2)
TEXTS = pa.dictionary(pa.int32(), pa.string())
WHOLES = pa.dictionary(pa.int32(), pa.int64())


class NotHeld(Exception):
    """A container cannot hold these values."""


@dataclass(frozen=True)
class KindOfColumn:
    """Two usual values, the types that declare them, and values that are odd beside them."""

    usual: tuple[Any, Any]
    arrow: pa.DataType
    odd: tuple[Any, ...]
    numpy: str = "O"
    nullable: str | None = None  # of pandas
    polars: Any = None  # where it is not that of Arrow

    @property
    def number(self) -> bool:
        """True if models read it."""
        return isinstance(self.usual[0], int | float | Decimal) and self.arrow != WHOLES


KINDS = {
    "whole": KindOfColumn((1, 2), pa.int64(), (2**70, "x", 2.5, True), "i8", "Int64"),
    "small": KindOfColumn((1, 2), pa.int8(), (-128, 300, "x", 2.5), "i1", "Int8"),
    "positive": KindOfColumn((1, 2), pa.uint64(), (2**63 + 1, -1, "x", 2.5), "u8", "UInt64"),
    "wide": KindOfColumn((WIDE, WIDE + 1), pa.int64(), (1, "x", 0.5, -WIDE), "i8", "Int64"),
    "float": KindOfColumn(
        (0.5, 2.0), pa.float64(), (1e300, float("inf"), "x", True), "f8", "Float64"
    ),
    "narrow": KindOfColumn((0.5, 2.0), pa.float32(), (3e38, 1e300, "x"), "f4", "Float32"),
    "decimal": KindOfColumn(
        (Decimal("0.50"), Decimal("2.00")), pa.decimal128(9, 2), (Decimal("9.25"), "x", 1, 0.5)
    ),
    "truth": KindOfColumn((True, False), pa.bool_(), (7, 0.5, "x"), "?", "boolean"),
    "text": KindOfColumn(("a", "b"), pa.string(), ("Zoë" * 5_000, "", 5, b"x"), "U", "string"),
    "day": KindOfColumn((DAY, DAY.replace(day=9)), pa.date32(), (DAY.replace(1901), HOUR, "x")),
    "time": KindOfColumn(
        (HOUR, HOUR.replace(day=9)),
        pa.timestamp("us"),
        (HOUR.replace(1901), DAY, ZONED, "x", 5),
        "M8[us]",
    ),
    "moment": KindOfColumn(
        (ZONED, ZONED.replace(day=9)), pa.timestamp("us", "UTC"), (ZONED.replace(1901), HOUR, "x")
    ),
    "category": KindOfColumn(("a", "b"), TEXTS, ("c", "", 5), "U", "category", pl.Categorical()),
    "category of numbers": KindOfColumn((1, 2), WHOLES, (3, 2.5, "x"), "i8", "category", NotHeld),
    "labels": KindOfColumn(
        ("a", "b"),
        TEXTS,
        ("c", "z"),
        "U",
        pd.CategoricalDtype(["a", "b", "z"]),
        pl.Enum(["a", "b", "z"]),
    ),
    "duration": KindOfColumn((HOUR_LONG, HOURS_LONG), pa.duration("us"), ("x", 5), "m8[us]"),
    "bytes": KindOfColumn((b"a", b"b"), pa.binary(), (b"", "x", 5)),
    "list": KindOfColumn(([1], [2]), pa.list_(pa.int64()), ([], "x", 5)),
    "nothing": KindOfColumn((None, None), pa.null(), (1, 0.5, True, "x", HOUR)),
}

Opened = Callable[..., tuple[Any, Any]]
RowReader = Callable[..., Opened]
_names = itertools.count()


def _path(folder: Any, ending: str) -> Any:
    return folder / f"{next(_names)}.{ending}"


def _held(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what is made, where the container takes the values."""
    try:
        return make(*args, **kwargs)
    except (pa.ArrowException, pl.exceptions.PolarsError, ValueError, TypeError, OverflowError):
        raise NotHeld from None


def _series(values: list[Any], kind: str) -> pd.Series:
    """Return a column as pandas makes it of values: of the usual type if it can be."""
    known = KINDS[kind]
    if known.nullable is not None and not isinstance(known.nullable, str):
        return pd.Series(values, dtype=known.nullable)
    if known.nullable == "category":
        return pd.Series(values).astype("category")
    if known.numpy == "f4":  # which nobody has unless it is said, and holds what is missing
        with suppress(ValueError, TypeError):
            return pd.Series(np.array(values, dtype=np.float32))
    if known.numpy in ("i1", "u8"):
        same = {type(value) for value in values} == {type(known.usual[0])}
        if same and (np.array(values).astype(known.numpy) == values).all():
            return pd.Series(np.array(values, dtype=known.numpy))
    return pd.Series(values)


def _frame(column: Any, y: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"a": column, "y": y})


def _opened(scan: Callable[[], Any]) -> Opened:
    def opened(*, target: bool = False) -> tuple[Any, Any]:
        rows = scan()
        X, y = ("y", "a") if target else ("a", "y")
        return (rows.select([X]) if isinstance(rows, pa.Table) else rows[[X]]), rows[y]

    return opened


def _opened_array(column: Any, y: list[int]) -> Opened:
    def opened(*, target: bool = False) -> tuple[Any, Any]:
        numbers = np.array(y)
        return (numbers.reshape(-1, 1), column[:, 0]) if target else (column, numbers)

    return opened


def _in_memory(frame: Any) -> Opened:
    return _opened(lambda: frame)


def _array(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    # As numpy makes it: of mixed values it has texts, in which a user would not have None.
    # An array of truth values is declared to hold no numbers: beside one they would be others.
    types = {type(value) for value in values}
    mixed = len(types - {float, int}) > 0 and len(types) > 1
    dtype = "O" if mixed or KINDS[kind].numpy == "O" else None
    column = _held(np.array, values, dtype=dtype).reshape(len(values), -1)
    if column.shape[1] > 1:
        raise NotHeld
    return _opened_array(column, y)


def _objects(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    return _opened_array(column, y)


def _pandas(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    return _in_memory(_frame(_held(_series, values, kind), y))


def _pandas_2(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    """Text of pandas before its version 3: columns of objects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not hasattr(pd.options, "future") or "infer_string" not in dir(pd.options.future):
            pytest.skip("this pandas has one type of text")
        with pd.option_context("future.infer_string", False):
            return _pandas(values, y, kind, folder)


def _nullable(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    if (dtype := KINDS[kind].nullable) is None:
        raise NotHeld
    return _in_memory(_frame(_held(pd.Series, values, dtype=dtype), y))


def _table(values: list[Any], y: list[int], kind: str) -> pa.Table:
    return pa.table({"a": _held(pa.array, values, KINDS[kind].arrow), "y": pa.array(y)})


def _pyarrow(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    return _in_memory(_table(values, y, kind).to_pandas(types_mapper=pd.ArrowDtype))


def _arrow(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    return _in_memory(_table(values, y, kind))


def _polars(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    known = KINDS[kind].polars
    if known is NotHeld:
        raise NotHeld
    if known is None:
        frame = _held(pl.from_arrow, _table(values, y, kind))
    else:
        frame = pl.DataFrame({"a": _held(pl.Series, values, dtype=known, strict=True), "y": y})
    return _in_memory(frame)


def _polars_objects(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    column = _held(pl.Series, values, dtype=pl.Object)
    return _in_memory(pl.DataFrame({"a": column, "y": y}))


def _parquet(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    path = _path(folder, "parquet")
    _held(pa.parquet.write_table, _table(values, y, kind), path, row_group_size=40)
    return _opened(lambda: scan_parquet(path))


def _dataset(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    table, paths = _table(values, y, kind), []
    for begin in range(0, len(table), 40):
        paths.append(str(_path(folder, "parquet")))
        _held(pa.parquet.write_table, table.slice(begin, 40), paths[-1])
    return _opened(lambda: scan_dataset(pa.dataset.dataset(paths, schema=table.schema)))


def _csv(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    dtype = KINDS[kind].arrow
    texts = pa.types.is_string(getattr(dtype, "value_type", dtype)) or pa.types.is_binary(dtype)
    if pa.types.is_null(dtype) or pa.types.is_nested(dtype) or (texts and {None, ""} & {*values}):
        raise NotHeld
    path = _path(folder, "csv")
    cells = ["" if v is None else v.decode() if isinstance(v, bytes) else str(v) for v in values]
    path.write_text("".join(f"{cell},{k}\n" for cell, k in zip(cells, y, strict=True)))
    return _opened(lambda: scan_csv(path, names=["a", "y"], dtypes={"a": dtype, "y": "number"}))


def _parts(values: list[Any], y: list[int], kind: str) -> list[pd.DataFrame]:
    width = 40
    cuts = range(0, len(values), width)
    return [
        _frame(_held(_series, values[cut : cut + width], kind), y[cut : cut + width])
        for cut in cuts
    ]


def _batches(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    """Batches of which each has the types that pandas finds in it alone."""
    batches = _parts(values, y, kind)
    return _opened(lambda: scan_batches(lambda: batches))


def _dask(values: list[Any], y: list[int], kind: str, folder: Any) -> Any:
    dask = pytest.importorskip("dask.dataframe")
    if kind == "decimal":  # of which dask makes text
        raise NotHeld
    usual = [KINDS[kind].usual[k % 2] for k in range(len(values))]
    meta = _frame(_series(usual, kind), y)[:0]
    if kind == "labels":  # else dask says that they are not known
        meta["a"] = pd.Series([], dtype=KINDS[kind].nullable)
    parts = _parts(values, y, kind)
    return _opened(lambda: dask.from_map(partial(_part, parts), range(len(parts)), meta=meta))


def _part(parts: list[pd.DataFrame], number: int) -> pd.DataFrame:
    return parts[number]


READERS: dict[str, RowReader] = {
    "numpy": _array,
    "objects of numpy": _objects,
    "pandas": _pandas,
    "pandas 2": _pandas_2,
    "numpy_nullable": _nullable,
    "pyarrow": _pyarrow,
    "Arrow": _arrow,
    "polars": _polars,
    "objects of polars": _polars_objects,
    "parquet": _parquet,
    "dataset": _dataset,
    "csv": _csv,
    "batches": _batches,
    "dask": _dask,
}
IN_PARTS = ("parquet", "dataset", "csv", "batches", "dask")
