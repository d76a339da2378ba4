"""Tables in parts select columns as frames do, and are not mistaken for arrays."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPRidge
from skdpnoise.data import RowSource, scan_batches
from skdpnoise.data.sources import Taking, as_sources, is_spread
from tests.data._seen import SECRET, refused, seen, tenths, values

pytestmark = pytest.mark.usefixtures("the_same_words")

FRAME = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=["a", "b", "y"])


def source():
    return scan_batches(lambda: [FRAME[:1], FRAME[1:]])


def read(rows):
    return pd.concat(rows.batches())


def test_columns_are_selected_by_name():
    rows = source()
    assert (rows.columns, rows.shape, rows.ndim, len(rows)) == (("a", "b", "y"), (4, 3), 2, 4)
    pd.testing.assert_frame_equal(read(rows), FRAME)
    for names in (["a"], ["a", "b"], ["b", "y"], ["y", "a"], ["a", "y"], ["b", "a", "b"]):
        some = rows[names]
        assert (some.columns, some.shape) == (tuple(names), (4, len(names)))
        pd.testing.assert_frame_equal(read(some), FRAME[names])
    pd.testing.assert_series_equal(read(rows["b"]), FRAME["b"])
    assert (rows["b"].shape, rows["b"].ndim, rows["b"].columns) == ((4,), 1, None)
    for names in ("y", ["y"], ["b", "a"]):
        pd.testing.assert_frame_equal(read(rows.drop(names)), FRAME.drop(columns=names))
    pd.testing.assert_frame_equal(read(rows.drop("y")[["b"]]), FRAME[["b"]])


def test_a_column_that_is_not_there_is_refused_by_its_name():
    for choose in (
        lambda: source()["c"],
        lambda: source()[["a", "c"]],
        lambda: source().drop("c"),
        lambda: source().drop("a")[["a"]],
        lambda: source()["a"]["a"],
        lambda: source().map(np.asarray, 3)["a"],
        lambda: scan_batches(lambda: [np.ones((2, 2))])["a"],
    ):
        with pytest.raises(KeyError, match=r"There is no column '[ac]' in these rows") as caught:
            choose()
        assert "'b'" not in str(caught.value)  # a name of a file may be a value of a person


@pytest.mark.parametrize("rows", [0, slice(2), ("a", "b"), [True] * 4, np.array([0, 1])])
def test_rows_are_not_selected(rows):
    with pytest.raises(TypeError, match="no selection of rows"):
        source()[rows]


def test_maps_follow_each_other_and_have_the_shape_they_say():
    rows = source()[["a", "b"]].map(np.asarray, 2).map(np.negative, 2)
    assert (rows.columns, rows.shape) == (None, (4, 2))
    found = np.concatenate(list(rows.batches()))
    assert np.array_equal(found, -FRAME[["a", "b"]].to_numpy())
    column = rows.map(lambda some: some[:, 0])
    assert (column.shape, column.ndim) == ((4,), 1)


def test_what_a_map_writes_to_is_not_what_was_given():
    def double(rows):
        rows["a"] *= 2.0
        return rows

    before = FRAME.copy()
    rows = seen(X=source()[["a", "b"]].map(double, 2)).map(values)
    for _ in range(2):
        assert np.array_equal(rows.total(tenths), tenths(before[["a", "b"]] * [2.0, 1.0]))
    pd.testing.assert_frame_equal(FRAME, before)


def test_columns_side_by_side_are_read_without_a_copy():
    frame = pd.DataFrame(np.ones((4, 3), order="F"), columns=["a", "b", "y"])
    some = Taking(("a", "b")).placed(frame)(frame)
    assert list(some) == ["a", "b"]
    assert np.shares_memory(some.to_numpy(), frame.to_numpy())


def test_the_rows_that_are_read_first_are_told_of():
    rows = scan_batches([lambda: [FRAME[:0]], lambda: [FRAME[:2], FRAME[2:]]])
    assert rows[["y"]].first(lambda some: (list(some), len(some))) == (["y"], 2)
    with pytest.raises(ValueError, match="no rows"):
        scan_batches(lambda: [FRAME[:0]]).first(len)


def test_what_is_read_outside_a_pass_shows_no_value_either():
    def quotes(rows):
        raise ValueError(SECRET)

    def ends():
        yield FRAME
        quotes(FRAME)

    rows = scan_batches(ends)
    for read, *given in ([rows.__len__], [source().map(quotes, 2).first, len]):
        assert "ValueError where rows were read" in refused(read, *given)


def test_rows_in_parts_are_no_array_and_say_what_they_are():
    rows = source()
    with pytest.raises(TypeError, match="not an array"):
        np.asarray(rows)
    with pytest.raises(TypeError, match="not an array"):
        np.mean(rows)
    assert repr(rows) == "RowSource(1 parts, columns=['a', 'b', 'y'])"
    assert repr(rows["y"]) == "RowSource(1 parts)"


def test_what_is_whole_is_not_taken_for_parts():
    import dask.array
    import dask.bag
    import dask.dataframe

    frame = dask.dataframe.from_pandas(FRAME, npartitions=2)
    for table in (source(), source()["a"], dask.array.ones(3), frame, frame["a"]):
        assert is_spread(type(table))
    for table in (FRAME, FRAME["a"], FRAME.to_numpy(), [[1.0]], None, "text", dask.bag.range(3, 2)):
        assert not is_spread(type(table))


def test_a_table_that_is_whole_beside_others_is_refused():
    with pytest.raises(TypeError, match=r"y must lie in the same parts.*Got ndarray"):
        as_sources(X=source(), y=FRAME["y"].to_numpy())
    found = as_sources(X=source(), y=None)
    assert [*found] == ["X"]


def test_sources_of_dask_and_of_files_do_not_mix():
    import dask.array

    for X, y in ((source(), dask.array.ones(4)), (dask.array.ones((4, 1)), source()["y"])):
        with pytest.raises(
            ValueError, match=r"all be arrays or frames of dask|columns of one source"
        ):
            seen(X=X, y=y)


def test_neither_dask_nor_pyarrow_is_needed_to_take_arrays_for_what_they_are(monkeypatch):
    for name in ("dask", "dask.array", "dask.dataframe", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    assert not is_spread(type(FRAME))
    assert is_spread(type(scan_batches(lambda: [FRAME.to_numpy()])))


def test_a_source_is_copied_as_it_is():
    rows = RowSource(scan_batches(_batches).reader, Taking("a"))
    copy = pickle.loads(pickle.dumps(rows))
    assert (copy.shape, copy.columns) == ((4,), None)
    pd.testing.assert_series_equal(read(copy), FRAME["a"])


def _batches():
    return [FRAME]


def test_arrays_in_files_that_are_mapped_are_whole_tables(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (60, 2))
    X[:] = np.random.default_rng(0).normal(size=(60, 2))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    y = np.asarray(X) @ [1.0, -1.0]
    options = {"feature_bounds": (-4.0, 4.0), "target_bounds": (-9.0, 9.0), "random_state": 0}
    one, other = (DPRidge(**options).fit(table, y) for table in (np.asarray(X), mapped))
    assert np.array_equal(one.coef_, other.coef_)
