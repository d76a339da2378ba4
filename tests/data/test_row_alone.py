"""A row adds a function of that row alone: by every reader, and for every kind of column.

The statement is in `skdpnoise.data.table`. Here a row with an odd entry is put into a table, or
taken out, or one is changed, and all other rows are compared, cell by cell and bit by bit.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPRidge
from skdpnoise.data import scan_batches, scan_csv, scan_dataset, scan_parquet
from skdpnoise.data.sources import as_sources
from skdpnoise.data.tables import read_table
from tests._cases import each_value

pytestmark = pytest.mark.usefixtures("the_same_words")

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.csv")
pytest.importorskip("pyarrow.dataset")
pytest.importorskip("pyarrow.parquet")

WIDE = 2**53
SCHEMA = pa.schema(
    {
        "number": pa.float64(),
        "narrow": pa.float32(),
        "whole": pa.int64(),
        "small": pa.int8(),
        "flag": pa.bool_(),
        "text": pa.string(),
        "time": pa.timestamp("us"),
        "day": pa.date32(),
    }
)
DAY = datetime.date(2020, 2, 29)
ROWS = [
    (0.1 * k, 0.5 * k, WIDE + k, k, k % 2 == 0, f"{k}", datetime.datetime(2020, 1, 1 + k), DAY)
    for k in range(7)
]
# Of each column what is valid and unlike the others: the odd row has one of these.
ODD = {
    "number": (None, 1e300, -0.0),
    "narrow": (None, 3e38),
    "whole": (None, 2**63 - 1, -(2**63)),
    "small": (None, -128),
    "flag": (None, True),
    "text": (None, "", "1.0", "Zoë"),
    "time": (None, datetime.datetime(1900, 1, 1, 0, 0, 0, 1)),
    "day": (None, datetime.date(1, 1, 1)),
}


def by_parquet(table, folder):
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=3)
    return scan_parquet(folder / "rows.parquet", batch_rows=2)


def by_csv(table, folder):
    pa.csv.write_csv(table, folder / "rows.csv")
    types = pa.csv.ConvertOptions(column_types=SCHEMA, null_values=[""], strings_can_be_null=False)
    return scan_csv(folder / "rows.csv", convert_options=types)


def by_dataset(table, folder):
    parts = [table.slice(begin, 3) for begin in range(0, len(table), 3)]
    for k, part in enumerate(parts):
        pa.parquet.write_table(part, folder / f"{k}.parquet")
    files = [str(folder / f"{k}.parquet") for k in range(len(parts))]
    return scan_dataset(pa.dataset.dataset(files, schema=SCHEMA), batch_rows=2)


def frame_of(table):
    """A frame of declared types, of which each can be missing."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def by_batches(table, _):
    frame = frame_of(table)
    return scan_batches(lambda: (frame[begin : begin + 3] for begin in range(0, len(frame), 3)))


def by_dask(table, _):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(frame_of(table), npartitions=3, sort=False)


READERS = {
    "parquet": by_parquet,
    "csv": by_csv,
    "dataset": by_dataset,
    "batches": by_batches,
    "dask": by_dask,
}


def cell(value):
    """Return the kind of a value and the value, alike in all containers of that kind."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return "missing"
    if isinstance(value, bool | np.bool_):
        return "flag", bool(value)
    if isinstance(value, str):
        return "text", value
    if isinstance(value, datetime.date):
        return "time", value.isoformat()
    exact = float(value) if isinstance(value, float | np.floating) else int(value)
    return "number", Fraction(exact), str(exact).startswith("-")


def read(source):
    """Return the rows as a reader gives them: the types of columns of each batch, and all cells."""
    batches = list(as_sources(X=source)["X"].batches())
    kinds = {tuple((name, str(batch[name].dtype)) for name in batch.columns) for batch in batches}
    rows = [
        tuple(map(cell, row))
        for batch in batches
        for row in zip(*(batch[name].tolist() for name in batch.columns), strict=True)
    ]
    return kinds, rows


def table_of(rows):
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def with_odd(column, value):
    odd = dict(zip(SCHEMA.names, ROWS[3], strict=True)) | {column: value}
    return tuple(odd.values())


CASES = [(column, value) for column, values in ODD.items() for value in values]


@each_value(2)
@pytest.mark.parametrize(("column", "value"), CASES)
@pytest.mark.parametrize("reader", READERS)
def test_a_row_put_in_or_changed_changes_no_cell_and_no_type_of_any_other_row(
    reader, column, value, tmp_path
):
    if reader == "csv" and value == "":
        pytest.skip("a file of text cannot tell an empty text from none")
    odd = with_odd(column, value)
    kinds, others = read(READERS[reader](table_of(ROWS), tmp_path))
    assert len(others) == len(ROWS)
    assert len(kinds) == 1
    for place in (0, 4, len(ROWS)):  # alone in a batch, or beside others
        put_in = [*ROWS[:place], odd, *ROWS[place:]]
        found_kinds, found = read(READERS[reader](table_of(put_in), tmp_path))
        assert found_kinds == kinds
        assert found[:place] + found[place + 1 :] == others
    changed = [*ROWS[:2], odd, *ROWS[3:]]
    found_kinds, found = read(READERS[reader](table_of(changed), tmp_path))
    assert found_kinds == kinds
    assert found[:2] + found[3:] == others[:2] + others[3:]


def test_cells_tell_apart_what_must_not_be_mixed_up():
    values = [None, True, 1, 2, WIDE, WIDE + 1, -0.0, 0.0, 0.1, "1", "", DAY, "missing"]
    assert len(set(map(cell, values))) == len(values)
    alike = [(None, np.nan, pd.NA, pd.NaT), (1, 1.0, np.float32(1.0)), (True, np.True_)]
    assert all(len(set(map(cell, group))) == 1 for group in alike)


NUMBERS = ["number", "narrow", "whole", "small"]
CONTAINERS = {
    "arrow": lambda table: frame_of(table)[NUMBERS],
    "nullable": lambda table: frame_of(table)[NUMBERS].convert_dtypes(
        dtype_backend="numpy_nullable"
    ),
    "numpy": lambda table: table.select(NUMBERS).to_pandas(),
    "array": lambda table: table.select(NUMBERS).to_pandas().to_numpy(),
    "objects": lambda table: table.select(NUMBERS).to_pandas().astype(object),
    "table": lambda table: table.select(NUMBERS),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_in_memory_a_row_changes_no_number_of_any_other_row(container):
    make = CONTAINERS[container]
    before = read_table(DPRidge(), make(table_of(ROWS)))
    for column in NUMBERS:
        for value in ODD[column][1:]:
            put_in = [*ROWS[:3], with_odd(column, min(value, 1e99)), *ROWS[3:]]
            after = read_table(DPRidge(), make(table_of(put_in)))
            assert after.dtype == before.dtype
            assert np.delete(after, 3, axis=0).tobytes() == before.tobytes()
