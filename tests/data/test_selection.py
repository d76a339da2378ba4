"""Rows in parts that are chosen by their numbers, and what a first look refuses and shows."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

from skdpnoise import DPStandardScaler
from skdpnoise.data import scan_batches
from skdpnoise.data import table as tables
from skdpnoise.data.groups import Groups
from skdpnoise.data.partitions import SpreadError
from skdpnoise.data.selection import selected_rows
from skdpnoise.data.sources import as_sources
from skdpnoise.data.table import InMemory, scan_partitions
from skdpnoise.decomposition.moments import _chosen, _subset
from skdpnoise.sampling import SeededWords
from skdpnoise.sampling.keyed import words_of_rows
from tests._cases import quick
from tests._same_bits import COUNTS, in_parts, source_of
from tests._session import session_of

N = 90


def seen(**tables):
    """Return tables in parts, after a look at them."""
    return scan_partitions(as_sources(**tables), len)


def values(tables):
    return tables["X"]


def by_digit(begin, end):
    return np.arange(begin, end) % 10 < 3


@pytest.mark.parametrize("n_parts", COUNTS)
def test_rows_are_chosen_by_their_numbers_among_all(n_parts):
    X = np.arange(N)
    expected = X[by_digit(0, N)]
    some = seen(X=in_parts(X, n_parts)).chosen(by_digit).map(values)
    assert len(some) == expected.size
    assert some.total(_sum) == expected.sum()
    # The number of a first row is that among those that are taken.
    places = some.joined(_with_places, partial(np.concatenate, axis=1))
    assert np.array_equal(places, [expected, np.arange(expected.size)])


def _sum(rows):
    return rows.sum()


def _with_places(rows, first):
    return np.stack([rows, first + np.arange(len(rows))])


def test_rows_are_counted_some_at_a_time(monkeypatch):
    monkeypatch.setattr(tables, "HELD", 7)
    some = seen(X=in_parts(np.arange(N), 7)).chosen(by_digit)
    assert len(some) == by_digit(0, N).sum()


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("n_parts", COUNTS[:3])
def test_rows_are_chosen_among_those_that_groups_keep(n_parts):
    groups = np.arange(N) // 5  # parts cut at multiples of five
    tables = np.stack([np.arange(N), groups], axis=1)
    parts = np.split(tables, np.arange(1, n_parts) * 10)
    source = source_of(parts)
    tables = as_sources(X=source.map(_first_column), groups=source.map(_last_column))
    rows = seen(**tables)
    grouped = Groups.in_partitions("fit", rows, 2)
    kept = grouped.keep(SeededWords(0)).map(values)
    whole = kept.joined(lambda leaf, _: leaf, np.concatenate)
    assert len(whole) == 36
    in_memory = Groups.in_memory("fit", InMemory.of(np.arange(N)), 2, groups)
    assert np.array_equal(whole, in_memory.keep(SeededWords(0)).leaf)
    some, expected = kept.chosen(by_digit), whole[by_digit(0, 36)]
    for here in (some, seen(X=selected_rows(tables, some.rows)["X"]).map(values)):
        places = here.joined(_with_places, partial(np.concatenate, axis=1))
        assert np.array_equal(places, [expected, np.arange(expected.size)])


def _first_column(rows):
    return rows[:, 0]


def _last_column(rows):
    return rows[:, 1]


def test_bytes_of_rows_are_those_of_words_of_eight():
    key = bytes(range(32))
    coins = words_of_rows(key, 0, 40).astype("<u8").view(np.uint8)
    for begin, end in product(range(0, 300, 23), repeat=2):
        if begin <= end:
            found = _chosen(key, 77, begin, end)
            assert np.array_equal(found, coins[begin:end] < 77)
    assert abs(_chosen(key, 64, 0, 1 << 16).mean() - 0.25) < 0.01


@quick("replace_one")
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_record_of_one_part_changes_one_row_of_a_subset(adjacency):
    # By brute force: any record, in any part, replaced; or the last one left out, since a byte goes
    # with the number of a row, and so with the others of a neighbour by another outcome of the key.
    X = np.random.default_rng(0).normal(size=(N, 1))
    for seed, at in product(range(5), range(0, N, 7)):
        other = X.copy()
        other[at] = 9.0
        if adjacency == "add_remove":
            other = X[:-1]
        taken = []
        for table in (X, other):
            rows = seen(X=in_parts(table, 7)).map(values, 1)
            some, count = _subset(rows, 10.0, session_of(seed, adjacency))
            found = some.joined(lambda leaf, _: leaf, np.concatenate)
            whole, _ = _subset(InMemory.of(table), 10.0, session_of(seed, adjacency))
            assert np.array_equal(found, whole.leaf)
            taken.append((set(found.ravel().tolist()), count))
        (here, n_here), (there, n_there) = taken
        assert len(here - there) <= 1
        assert len(there - here) <= 1
        assert n_here == n_there


# What a first look shows


def _quotes(rows):
    raise ValueError(f"could not convert {rows.ravel()[0]}")


def test_errors_of_functions_that_map_rows_are_not_shown():
    rows = in_parts(np.full((20, 2), 987654321.0), 2).map(_quotes, 2)
    with pytest.raises(Exception, match="ValueError in part 0 of the rows") as caught:
        DPStandardScaler().fit(rows)
    assert "987654321" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.usefixtures("the_same_words")
def test_columns_of_the_same_files_belong_together_however_often_they_are_scanned(tmp_path):
    import pandas as pd

    from skdpnoise.data import scan_csv, scan_parquet

    frame = pd.DataFrame({"a": np.arange(20.0), "who": np.arange(20)})
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "more.csv", index=False)
    for scan, path in (
        (scan_parquet, "rows.parquet"),
        (partial(scan_csv, header=True), "rows.csv"),
    ):
        one, other = (scan(tmp_path / path) for _ in range(2))
        DPStandardScaler(20.0).fit(one[["a"]], groups=other["who"])
    with pytest.raises(ValueError, match="columns of one source"):
        more = scan_csv(tmp_path / "more.csv", header=True)
        DPStandardScaler(20.0).fit(one[["a"]], groups=more["who"])


def test_parts_of_dask_and_of_files_are_not_mixed():
    import dask.array

    X = np.arange(20.0)[:, np.newaxis]
    labels = scan_batches(partial(list, [np.arange(20)]))
    for given in (dask.array.from_array(X, chunks=20), in_parts(X, 1)):
        groups = labels
        if not isinstance(given, dask.array.Array):
            groups = dask.array.from_array(np.arange(20), chunks=20)
        with pytest.raises(ValueError, match=r"of dask|of one source"):
            DPStandardScaler().fit(given, groups=groups)


def one_of_three(begin, end):
    return np.arange(begin, end) % 3 == 1


def failing(begin, end):
    raise ValueError("the first row is 7654321")


@pytest.mark.parametrize("way", ["parts", "dask"])
def test_sources_of_chosen_rows_are_read_as_others_are(way):
    X = np.random.default_rng(0).normal(size=(N, 2))
    source = in_parts(X, 7) if way == "parts" else dask_array(X)
    rows = seen(X=source)
    (left,) = selected_rows(as_sources(X=source), rows.chosen(one_of_three).rows).values()
    again = seen(X=left).map(values)
    assert len(again) == N // 3
    scaled = again.total(_in_units)
    np.testing.assert_array_equal(scaled, _in_units(X[one_of_three(0, N)]))
    (left,) = selected_rows(as_sources(X=source), rows.chosen(failing, [1] * 7).rows).values()
    with pytest.raises(SpreadError, match="ValueError") as caught:
        seen(X=left)
    assert "7654321" not in str(caught.value)
    assert caught.value.__context__ is None


def _in_units(rows):
    return np.rint(1e9 * rows).astype(np.int64).sum(axis=0)


def dask_array(X):
    import dask.array

    return dask.array.from_array(X, chunks=(-(-len(X) // 7), 2))
