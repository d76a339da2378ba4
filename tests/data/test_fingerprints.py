"""Fingerprints tell rows apart by their values, and by nothing else."""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from skdpnoise.data.fingerprints import Marker

N = 12
NUMBERS = np.random.default_rng(0).normal(size=(N, 3))
COLUMNS = {
    "floats": NUMBERS[:, 0],
    "singles": NUMBERS[:, 0].astype(np.float32),
    "whole numbers": np.arange(N, dtype=np.int8),
    "flags": np.arange(N) % 3 == 0,
    "complex": NUMBERS[:, 0] + 1j * NUMBERS[:, 1],
    "dates": np.datetime64("2026-01-01") + np.arange(N),
    "texts": np.array([f"person {k % 5}" for k in range(N)], dtype=object),
    "strings of numpy": np.array([f"person {k % 5}" for k in range(N)]),
    "mixed": np.array([1, "a", None, 2.5] * 3, dtype=object),
    "days": np.array([datetime.date(2026, 1, 1 + k) for k in range(N)], dtype=object),
    "a series": pd.Series(NUMBERS[:, 0]),
    "categories": pd.Series(pd.Categorical([f"c{k % 4}" for k in range(N)])),
    "missing numbers": pd.Series([1, None, 3] * 4, dtype="Int64"),
    "texts of arrow": pd.Series([f"person {k % 5}" for k in range(N)], dtype="string[pyarrow]"),
    "dates of a zone": pd.Series(pd.date_range("2026-01-01", periods=N, tz="Asia/Tokyo")),
    "an array": NUMBERS,
    "an array by columns": np.asfortranarray(NUMBERS),
    "a slice": np.repeat(NUMBERS, 2, axis=1)[:, ::2],
    "a table of texts": np.array([[f"{k}", "b"] for k in range(N)], dtype=object),
    "a frame": pd.DataFrame(NUMBERS),
    "a frame of many": pd.DataFrame({"a": NUMBERS[:, 0], "b": list("xyzx") * 3, "c": range(N)}),
    "a frame of short and long numbers": pd.DataFrame({"a": NUMBERS[:, 0], "b": np.int8(range(N))}),
    "a frame with a name twice": pd.DataFrame(NUMBERS, columns=["a", "b", "a"]),
}


def marks(*tables, like=None):
    marker = Marker(like)
    for table in tables:
        marker.add({"X": table})
    return marker.marks()


def rows_of(table, rows):
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


@pytest.mark.parametrize("table", COLUMNS.values(), ids=COLUMNS.keys())
def test_rows_are_known_again_however_they_are_divided(table):
    whole = marks(table)
    assert whole["X"][0] == N
    for cut in (0, 1, 5, N):
        parts = rows_of(table, slice(0, cut)), rows_of(table, slice(cut, N))
        assert marks(*parts, like=whole) == whole
    one_by_one = (rows_of(table, slice(k, k + 1)) for k in range(N))
    assert marks(*one_by_one, like=whole) == whole


@pytest.mark.parametrize("columns", [1, 2])
def test_batches_may_have_types_of_their_own(columns):
    # Of one row or column, which lies in memory by rows and by columns.
    numbers = pd.DataFrame(NUMBERS[:1, :columns])
    others = numbers.astype({0: object})
    for tables in ([numbers, others], [numbers.to_numpy(), others.to_numpy()]):
        whole = marks(*tables)
        assert marks(*tables, like=whole) == whole != marks(*tables[::-1], like=whole)


@pytest.mark.parametrize("table", COLUMNS.values(), ids=COLUMNS.keys())
def test_any_other_rows_are_told_apart(table):
    whole = marks(table)
    others = [
        [k for k in range(N) if k != 3],  # one less
        [*range(N), 0],  # one more
        list(range(N))[::-1],
        [1, 0, *range(2, N)],  # two change places
        [0, *range(N - 1)],  # the last is lost, the first there twice
    ]
    for rows in others:
        assert marks(rows_of(table, rows), like=whole) != whole


@pytest.mark.parametrize("moved", [1, 1000, 4096, 65_536])
def test_long_tables_are_known_again_and_blocks_that_change_places_are_seen(moved):
    table = np.asfortranarray(np.arange(400_000.0).reshape(-1, 2).astype(np.float32))
    whole = marks(table)
    cuts = [0, 1, 1021, 2042, 70_000, 70_003, len(table)]
    assert marks(*(table[a:b] for a, b in pairwise(cuts)), like=whole) == whole
    blocks = table[moved : 2 * moved], table[:moved], table[2 * moved :]
    assert marks(*blocks, like=whole) != whole


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_value_of_a_table_is_enough(order):
    X = np.array(NUMBERS, order=order)
    whole = marks(X)
    for k in range(X.size):
        other = X.copy("K")
        other.flat[k] = np.nextafter(other.flat[k], np.inf)
        assert marks(other, like=whole) != whole
        assert marks(pd.DataFrame(other), like=whole) != whole


def test_the_layout_in_memory_is_no_difference():
    forms = [
        NUMBERS,
        np.asfortranarray(NUMBERS),
        pd.DataFrame(NUMBERS),
        np.repeat(NUMBERS, 2, 0)[::2],
    ]
    for one in forms:
        before = marks(one)
        for other in forms:
            assert marks(other[:5], other[5:], like=before) == before


def test_values_of_categories_count_and_not_their_codes():
    one = pd.Series(pd.Categorical(list("abca"), categories=list("abc")))
    other = pd.Series(pd.Categorical(list("abca"), categories=list("cba")))
    assert marks(one) == marks(other)
    assert marks(one) != marks(pd.Series(pd.Categorical(list("abcb"), categories=list("abc"))))


def test_columns_that_are_gone_or_new_are_told_apart():
    frame = pd.DataFrame(np.asfortranarray(NUMBERS))
    whole = marks(frame)
    assert marks(frame[[0, 1]], like=whole) != whole
    assert marks(frame[[0, 2, 1]], like=whole) != whole
    with pytest.raises(ValueError, match="numbers of columns"):
        marks(frame, frame[[0, 1]])


def test_each_table_has_its_own():
    marker = Marker()
    marker.add({"X": NUMBERS, "y": NUMBERS[:, 0]})
    found = marker.marks()
    assert found["X"] == marks(NUMBERS)["X"]
    assert found["y"] == marks(NUMBERS[:, 0])["X"]


def test_no_rows_have_no_marks():
    marker = Marker()
    marker.add({"X": NUMBERS[:0]})
    assert (marker.marks(), marker.n_rows) == ({}, 0)
