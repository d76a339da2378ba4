"""Whatever one value can make of a column has the same kind, in every library."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdpnoise.data.cells import kinds_of
from skdpnoise.data.kinds import Kind, kind_of
from tests._cases import each_value

DAY = datetime.date(2024, 1, 1)
HOUR = datetime.datetime(2024, 1, 1, 12)


@each_value(1)
@pytest.mark.parametrize(
    ("values", "name"),
    [([1, 2], "number"), ([1.5, 2.0], "number"), ([True, False], "boolean"), (["a", "b"], "text")],
)
@pytest.mark.parametrize("missing", [False, True])
def test_libraries_agree_on_kinds_and_a_missing_value_changes_none(values, name, missing):
    values = [*values, None] if missing else values
    array = pa.array(values)
    frame = pd.Series(values).convert_dtypes()
    tables = [
        pa.table({"a": array}),
        pl.DataFrame({"a": values}),
        frame,
        frame.convert_dtypes(dtype_backend="pyarrow"),
        pa.table({"a": array}).to_pandas(types_mapper=pd.ArrowDtype),
    ]
    assert [kinds_of(table) for table in tables] == [(Kind(name),)] * 5


def test_whole_numbers_of_numpy_are_what_one_missing_value_makes_of_them():
    whole, broken = pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, None]})
    assert whole.dtypes["a"] != broken.dtypes["a"]
    assert kinds_of(whole) == kinds_of(broken)


@pytest.mark.parametrize(
    ("labels", "name"), [(["a", "b"], "text"), ([1, 2], "number"), ([True, False], "boolean")]
)
def test_categories_have_the_kind_of_their_labels(labels, name):
    values = pd.Series(labels)
    assert not kinds_of(values)[0].category
    assert kinds_of(values.astype("category")) == (Kind(name, category=True),)


def test_labels_of_text_are_text_in_an_index_of_objects_too():
    for labels, name in ((["a", "b"], "text"), (["a", 1], "objects")):
        dtype = pd.CategoricalDtype(pd.Index(labels, dtype=object))
        assert kind_of(dtype) == Kind(name, category=True)


def test_dates_have_a_zone_or_none():
    naive, aware = pd.Series([HOUR]), pd.Series([HOUR]).dt.tz_localize("Asia/Tokyo")
    assert kinds_of(naive)[0] == Kind("date") == kinds_of(pl.Series([HOUR]))[0]
    assert kinds_of(aware)[0] == Kind("date", zone="Asia/Tokyo")
    zoned = pl.Series([HOUR]).dt.replace_time_zone("Asia/Tokyo")
    assert kinds_of(zoned)[0] == kinds_of(aware)[0]
    assert kind_of(pa.timestamp("us", "Asia/Tokyo")) == kinds_of(aware)[0]
    days = [kinds_of(pl.Series([DAY]))[0], kind_of(pa.date32()), kind_of(np.dtype("M8[D]"))]
    assert days == [Kind("date", days=True)] * 3


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype("m8[s]"),
        np.dtype(complex),
        pd.IntervalDtype("int64"),
        pd.SparseDtype(float),
        pl.Duration(),
        pl.Time(),
        pl.List(pl.Int64),
        pa.list_(pa.int64()),
        pa.duration("s"),
        pa.time64("us"),
    ],
)
def test_types_that_nothing_reads_are_other(dtype):
    assert kind_of(dtype).name == "other"


def test_only_a_field_of_arrow_excludes_missing_values():
    fields = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    table = pa.table({"a": [1], "b": [1]}).cast(fields)
    assert [kind.never_missing for kind in kinds_of(table)] == [True, False]
    assert not kinds_of(np.zeros((2, 2), dtype=int))[0].never_missing


def test_nothing_is_declared_of_objects():
    tables = [np.array([[1]], dtype=object), pd.Series([1], dtype=object), pl.Series([None])]
    assert {kinds_of(table)[0].name for table in tables} == {"objects"}


@pytest.mark.parametrize(
    ("unit", "days"), [*((u, True) for u in "YMWD"), *((u, False) for u in ("h", "m", "s", "ns"))]
)
def test_dates_of_numpy_have_a_time_of_day_where_their_unit_says_so(unit, days):
    assert kind_of(np.dtype(f"M8[{unit}]")) == Kind("date", days=days)
