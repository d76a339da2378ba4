"""Files and iterators give the rows that are in them, some at a time; what is wrong is said."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from skdpnoise import DPTableVectorizer
from skdpnoise.data import files, scan_batches, scan_csv, scan_dataset, scan_parquet
from skdpnoise.data.partitions import rows_at_once
from tests._cases import each_value
from tests.data._seen import SECRET, first_rows, refused, seen, targets, tenths, values

pytestmark = pytest.mark.usefixtures("the_same_words")

N = 500
FRAME = pd.DataFrame(
    {
        "a": np.random.default_rng(0).normal(size=N),
        "b": np.random.default_rng(1).normal(size=N),
        "n": np.arange(N),
        "text": [f"t{k % 7}" for k in range(N)],
        "kind": pd.Categorical([f"k{k % 3}" for k in range(N)]),
        "day": pd.date_range("2026-01-01", periods=N),
        "flag": np.arange(N) % 2 == 0,
        "y": np.arange(N) % 5,
    }
)
NUMBERS = FRAME[["a", "b", "n", "y"]]


def parquet(folder, frame=FRAME, name="rows.parquet", **options):
    frame.to_parquet(folder / name, **{"row_group_size": 120, **options})
    return folder / name


def plain(frame):
    """Return a frame without types of storage, for comparison."""
    return frame.astype(dict.fromkeys(frame, object)).reset_index(drop=True)


def together(source):
    return plain(pd.concat(source.batches(), ignore_index=True))


@pytest.mark.slow
@pytest.mark.parametrize("batch_rows", [None, 7, 10_000])
def test_parquet_files_give_their_rows_and_each_row_group_is_a_part(tmp_path, batch_rows):
    paths = [parquet(tmp_path), parquet(tmp_path, FRAME[:130], "more.parquet")]
    one = scan_parquet(paths[0], batch_rows=batch_rows)
    assert (one.columns, one.shape, one.reader.n_parts) == (tuple(FRAME), FRAME.shape, 5)
    pd.testing.assert_frame_equal(together(one), plain(FRAME))
    both = scan_parquet(paths, batch_rows=batch_rows)
    assert (len(both), both.reader.n_parts) == (N + 130, 7)
    pd.testing.assert_frame_equal(together(both), plain(pd.concat([FRAME, FRAME[:130]])))
    if batch_rows:
        assert max(map(len, one.batches())) == min(batch_rows, 120)


def test_numbers_of_one_type_come_as_they_are_stored(tmp_path):
    for dtype in (np.float64, np.float32):
        frame = NUMBERS[["a", "b"]].astype(dtype)
        frame.iloc[3, 1] = np.nan
        path = parquet(tmp_path, frame)
        for batch in (*scan_parquet(path).batches(), *scan_parquet(path)[["b"]].batches()):
            assert set(batch.dtypes) == {np.dtype(dtype)}
        pd.testing.assert_frame_equal(
            pd.concat(scan_parquet(path).batches(), ignore_index=True), frame
        )


def test_an_index_of_pandas_is_no_column(tmp_path):
    frame = NUMBERS.set_index(pd.Index([f"p{k}" for k in range(N)], name="person"))
    source = scan_parquet(parquet(tmp_path, frame))
    assert source.columns == tuple(NUMBERS)
    assert all(tuple(batch.columns) == tuple(NUMBERS) for batch in source.batches())
    rows = pyarrow.dataset.dataset(tmp_path, format="parquet")
    assert scan_dataset(rows).columns == tuple(NUMBERS)
    assert all(tuple(batch.columns) == tuple(NUMBERS) for batch in scan_dataset(rows).batches())


def test_only_columns_that_are_asked_for_are_read(tmp_path, monkeypatch):
    asked = []
    iter_batches = pq.ParquetFile.iter_batches

    def spied(self, *arguments, columns, **options):
        asked.append(columns)
        return iter_batches(self, *arguments, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spied)
    source = scan_parquet(parquet(tmp_path, row_group_size=N))
    rows = seen(X=source[["b", "a"]], y=source["y"])
    rows.only("y").map(targets).total(tenths)
    rows.only("X").map(values).total(tenths)
    assert asked == [["b", "a", "y"], ["y"], ["b", "a"]]


def test_large_row_groups_take_no_more_memory_than_small_ones(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(800_000, 4)), columns=list("abcd"))
    path = parquet(tmp_path, frame, row_group_size=len(frame), use_dictionary=False)
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    for _ in scan_parquet(path, batch_rows=4096).batches():
        most = max(most, pool.bytes_allocated() - before)
    # A page of each column, and the batch: not the group.
    assert 0 < most < frame.size * 8 / 4


def test_batches_are_cut_by_the_numbers_in_them():
    assert rows_at_once(1) == 1 << 19
    assert rows_at_once(20) == 1 << 15  # the next power of two after 2**19 / 20
    assert rows_at_once(10**6) == 1 << 10


@each_value(1)
@pytest.mark.parametrize("scan", [scan_parquet, scan_dataset])
@pytest.mark.parametrize("batch_rows", [0, -1, 2.5, True, "many"])
def test_batch_rows_must_be_a_whole_number(scan, batch_rows):
    with pytest.raises(ValueError, match=f"'batch_rows' parameter of {scan.__name__}"):
        scan(None, batch_rows=batch_rows)


def test_files_of_other_columns_are_refused_before_anything_is_read(tmp_path):
    other = NUMBERS.rename(columns={"b": "c"})
    paths = [parquet(tmp_path, NUMBERS), parquet(tmp_path, other, "other.parquet")]
    with pytest.raises(ValueError, match=r"columns of .*other\.parquet are not those"):
        scan_parquet(paths)
    texts = [path.with_suffix(".csv") for path in paths]
    for path, frame in zip(texts, (NUMBERS, other), strict=True):
        frame.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"columns of .*other\.csv are not those"):
        scan_csv(texts, header=True)


OF_KINDS = [pa.int64(), pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.timestamp("us")]
OF_KINDS += [pa.timestamp("us", "UTC"), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize(
    ("one", "other"),
    zip(OF_KINDS, [*OF_KINDS[1:], OF_KINDS[0]], strict=True),
)
def test_files_of_other_kinds_of_columns_are_refused_before_anything_is_read(tmp_path, one, other):
    paths = []
    for place, dtype in enumerate((one, other)):
        paths.append(tmp_path / f"{place}.parquet")
        pq.write_table(pa.table({"a": pa.array([None], dtype)}), paths[-1])
    with pytest.raises(ValueError, match=r"types of columns of .*1\.parquet are not those"):
        scan_parquet(paths)


@pytest.mark.parametrize("scan", [scan_parquet, scan_csv])
def test_a_path_must_name_a_file(tmp_path, scan):
    with pytest.raises(FileNotFoundError):
        scan(tmp_path / "none")
    with pytest.raises(ValueError, match="'path' parameter must name"):
        scan([])


def test_files_of_other_types_are_read_as_each_says(tmp_path):
    whole = parquet(tmp_path, NUMBERS[["n", "y"]])
    parts = parquet(tmp_path, NUMBERS[["n", "y"]].astype({"n": float}) + 0.5, "halves.parquet")
    rows = seen(X=scan_parquet([whole, parts])).map(values)
    expected = sum(tenths(pd.read_parquet(path)) for path in (whole, parts))
    assert np.array_equal(rows.total(tenths), expected)


def test_a_file_that_is_written_anew_between_passes_is_refused(tmp_path):
    path = parquet(tmp_path, NUMBERS)
    rows = seen(X=scan_parquet(path)).map(values)
    parquet(tmp_path, NUMBERS.assign(a=0.0))
    assert "part 0 is not what it was" in refused(rows.total, tenths)
    parquet(tmp_path, NUMBERS, row_group_size=N)
    assert "part" in refused(rows.total, tenths)
    path.unlink()
    assert "FileNotFoundError in part 0" in refused(rows.total, tenths)
    path.write_bytes(b"no file of this kind")
    assert "ArrowInvalid in part 0" in refused(rows.total, tenths)


def csv(folder, frame=NUMBERS, name="rows.csv", **options):
    frame.to_csv(folder / name, index=False, **options)
    return folder / name


def test_files_of_text_give_their_rows_and_each_is_a_part(tmp_path):
    paths = [csv(tmp_path), csv(tmp_path, NUMBERS[:20], "more.csv")]
    both = scan_csv(paths, header=True)
    assert (both.columns, both.shape, both.reader.n_parts) == (tuple(NUMBERS), (N + 20, 4), 2)
    pd.testing.assert_frame_equal(together(both), plain(pd.concat([NUMBERS, NUMBERS[:20]])))
    rows = seen(X=both.drop("y"), y=both["y"])
    assert rows.only("y").map(targets).total(np.sum) == NUMBERS["y"].sum() + NUMBERS["y"][:20].sum()


def test_a_column_has_the_type_of_the_first_file_that_has_a_value_in_it(tmp_path):
    empty = csv(tmp_path, NUMBERS[:0], "header.csv")
    missing = csv(tmp_path, NUMBERS[:3].assign(a=None), "missing.csv")
    full = csv(tmp_path)
    rows = scan_csv([empty, missing, full], header=True)
    assert rows.shape == (N + 3, NUMBERS.shape[1])
    read = together(rows)
    assert read["a"][:3].isna().all()
    pd.testing.assert_frame_equal(
        read[3:].reset_index(drop=True), together(scan_csv(full, header=True))
    )


@pytest.mark.parametrize("content", [b"", b"PAR1", b"a,y\n1,2\n"])
def test_a_file_that_is_no_parquet_file_is_named(tmp_path, content):
    path = tmp_path / "other.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other\.parquet is no Parquet file"):
        scan_parquet([parquet(tmp_path), path])


def test_options_of_text_are_used_and_not_changed(tmp_path):
    path = csv(tmp_path, NUMBERS[["a", "n", "y"]], sep=";", na_rep="none")
    convert = pyarrow.csv.ConvertOptions(column_types={"n": pa.float64()}, null_values=["none"])
    options = {
        "parse_options": pyarrow.csv.ParseOptions(delimiter=";"),
        "convert_options": convert,
        "read_options": pyarrow.csv.ReadOptions(block_size=1000),
    }
    given = dict(options)
    source = scan_csv(path, header=True, **options)
    batches = list(source.drop("a").batches())
    assert len(batches) > 1
    assert all(batch["n"].dtype == np.float64 for batch in batches)
    assert np.array_equal(pd.concat(batches)["n"], NUMBERS["n"])
    assert options == given
    assert (convert.include_columns, convert.column_types) == ([], {"n": pa.float64()})
    assert len(source) == N


def test_a_text_of_another_type_than_the_first_rows_is_refused_without_it(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a\n" + "1\n" * 100_000 + "2\n" * 600_000 + f"{SECRET}\n")
    source = scan_csv(path, header=True)
    text = refused(lambda: seen(X=source))
    assert "dtypes={'a': 'text'}" in text
    assert "column 'a'" in text
    assert str(path) in text
    refused(lambda: len(source))
    refused(lambda: list(source.batches()))


FIRST_ROWS = {
    "more values than columns": (f"a,b\n1,2\n{SECRET},2,3\n", {}),
    "fewer": (f"a,b\n1,2\n{SECRET}\n", {}),
    "another type than is named": (f"a,b\n1,2\n{SECRET},3\n", {"a": pa.int64()}),
    "nothing": ("", {}),
}


@pytest.mark.parametrize(("text", "types"), FIRST_ROWS.values(), ids=FIRST_ROWS.keys())
def test_first_rows_of_text_that_are_no_table_are_refused_without_them(tmp_path, text, types):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    convert = pyarrow.csv.ConvertOptions(column_types=types)
    said = refused(lambda: scan_csv(path, header=True, convert_options=convert), kind=ValueError)
    assert str(path) in said


def test_types_of_later_files_of_text_are_those_of_the_first(tmp_path):
    texts = {"halves": "a\n0.5\n1.5\n", "whole": "a\n1\n2\n", "words": f"a\n{SECRET}\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    both = scan_csv([tmp_path / "halves", tmp_path / "whole"], header=True)
    assert [batch["a"].dtype for batch in both.batches()] == [np.float64] * 2
    for name, other in (("whole", "halves"), ("whole", "words"), ("halves", "words")):
        source = scan_csv([tmp_path / name, tmp_path / other], header=True)
        assert str(tmp_path / other) in refused(lambda source=source: seen(X=source))


def test_datasets_in_folders_give_their_rows_and_the_columns_that_name_folders(tmp_path):
    table = pa.Table.from_pandas(FRAME[["a", "b", "n", "y", "kind"]], preserve_index=False)
    folders = pyarrow.dataset.partitioning(pa.schema([("y", pa.int64())]), flavor="hive")
    pyarrow.dataset.write_dataset(
        table, tmp_path, format="parquet", partitioning=folders, max_rows_per_group=40
    )
    source = scan_dataset(pyarrow.dataset.dataset(tmp_path, partitioning="hive"), batch_rows=13)
    assert (len(source), source.reader.n_parts) == (N, 5)
    found = together(source).sort_values("n", ignore_index=True)
    expected = plain(FRAME)[list(source.columns)].assign(y=FRAME["y"])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert max(map(len, source.batches())) == 13
    rows = seen(X=source[["a", "b"]], y=source["y"])
    assert np.array_equal(rows.map(values).total(tenths), tenths(FRAME[["a", "b"]]))
    assert rows.only("y").map(targets).total(np.sum) == FRAME["y"].sum()


def test_datasets_in_memory_and_of_text_are_read(tmp_path):
    csv(tmp_path)
    for rows in (
        pyarrow.dataset.dataset(pa.Table.from_pandas(NUMBERS)),
        pyarrow.dataset.dataset(tmp_path, format="csv"),
    ):
        source = scan_dataset(rows)
        assert source.shape == NUMBERS.shape
        assert np.array_equal(seen(X=source).map(values).total(tenths), tenths(NUMBERS))


def test_what_is_no_dataset_or_has_no_files_or_rows_left_out_is_refused(tmp_path):
    with pytest.raises(TypeError, match="'dataset' parameter"):
        scan_dataset(tmp_path)
    with pytest.raises(ValueError, match="no files"):
        scan_dataset(pyarrow.dataset.dataset(tmp_path, schema=pa.schema([]), format="parquet"))
    rows = pyarrow.dataset.dataset(pa.Table.from_pandas(NUMBERS))
    with pytest.raises(ValueError, match="filter"):
        scan_dataset(rows.filter(pyarrow.dataset.field("a") > 0))


def sources(folder):
    """Return a source of each kind that reads files, by name."""
    path, text = parquet(folder, NUMBERS), csv(folder)
    return {
        "parquet": scan_parquet(path),
        "csv": scan_csv(text, header=True, parse_options=pyarrow.csv.ParseOptions(delimiter=",")),
        "dataset": scan_dataset(pyarrow.dataset.dataset(path)),
        "batches": scan_batches([partial(np.split, NUMBERS.to_numpy(), [100, 300])]),
    }


@pytest.mark.parametrize("kind", ["parquet", "csv", "dataset", "batches"])
def test_sources_are_pickled_with_their_columns_and_maps(tmp_path, kind):
    source = sources(tmp_path)[kind]
    if kind != "batches":
        source = source[["a", "y"]]
    copy = pickle.loads(pickle.dumps(source.map(np.negative, 2)))
    assert (copy.columns, copy.shape) == (None, (N, 2))
    assert np.array_equal(
        np.concatenate([*map(np.asarray, copy.batches())]),
        -np.concatenate([*map(np.asarray, source.batches())]),
    )


@pytest.mark.parametrize("kind", ["parquet", "csv", "batches"])
def test_one_file_that_is_scanned_twice_is_one_source(tmp_path, kind):
    one, other = sources(tmp_path)[kind], sources(tmp_path)[kind]
    if kind == "batches":  # of functions nobody knows
        with pytest.raises(ValueError, match="columns of one source"):
            seen(X=one, y=other)
    else:
        assert len(seen(X=one.drop("y"), y=other["y"])) == N
    with pytest.raises(ValueError, match="columns of one source"):
        seen(X=one, y=scan_csv(csv(tmp_path, NUMBERS, "other.csv"), header=True)["y"])


def test_functions_give_arrays_vectors_frames_and_columns():
    x = np.arange(6.0)
    vector = scan_batches([lambda: [x[:4]], lambda: [x[4:]]])
    assert (vector.shape, vector.ndim, vector.columns) == ((6,), 1, None)
    column = scan_batches(lambda: [pd.Series(x)])
    assert (column.shape, column.columns) == ((6,), None)
    table = scan_batches(lambda: [x.reshape(3, 2)])
    assert (table.shape, table.columns) == ((3, 2), None)
    numbered = scan_batches(lambda: [pd.DataFrame(x.reshape(3, 2))])
    assert (numbered.shape, numbered.columns) == ((3, 2), None)
    for source in (vector, column, table, numbered):
        assert seen(X=source).map(values).total(tenths).sum() == 150


def test_what_can_be_read_only_once_is_refused():
    batches = [np.ones((2, 2))] * 3
    for given in (batches, iter(batches), np.ones((2, 2)), [], None):
        with pytest.raises(TypeError, match="read only once"):
            scan_batches(given)
    once = iter(batches)
    with pytest.raises(TypeError, match="same iterator"):
        scan_batches(lambda: once)
    # A function may hide it; then the second pass finds nothing.
    rows = seen(X=scan_batches(lambda: (batch for batch in once))).map(values)
    assert "part 0 is not what it was" in refused(rows.total, tenths)


def test_functions_must_give_rows_that_are_arrays_or_frames():
    with pytest.raises(ValueError, match="gave no rows"):
        scan_batches(list)
    with pytest.raises(TypeError, match="Got list"):
        scan_batches(lambda: [[1.0, 2.0]])


X, WIDE = np.ones((3, 2)), np.ones((3, 4))


class Closed:
    """An iterator that says when it is closed, and is held by itself until then."""

    n_open = 0

    def __init__(self, *batches):
        self.batches, self.me = iter(batches), self
        Closed.n_open += 1

    def __iter__(self):
        return self

    def __next__(self):
        batch = next(self.batches)
        if batch is None:
            raise ValueError(SECRET)
        return batch

    def close(self):
        Closed.n_open -= self.me is not None
        self.me = None


@pytest.mark.parametrize("last", [X, None, X[:, :1]], ids=["all", "an error", "other columns"])
def test_what_gives_batches_is_closed(last):
    source = scan_batches(partial(Closed, X, X, last))
    assert Closed.n_open == 0
    assert source.first(len) == len(X)
    if last is X:
        assert len(seen(X=source)) == len(source) == 3 * len(X)
    else:
        refused(lambda: seen(X=source))
    assert Closed.n_open == 0
    batches = source.batches()
    next(batches)
    batches.close()
    assert Closed.n_open == 0


FIRST = pd.DataFrame(X, columns=["a", "b"])
NUMBERED = pd.DataFrame(X)
OTHERS = {
    "wider": (X, WIDE, r"2 columns.* 4 columns"),
    "a vector": (X, X[:, 0], r"2 columns.* one dimension"),
    "no array": (X, X.tolist(), r"2 columns.* list"),
    "other names": (FIRST, FIRST.rename(columns={"a": "c"}), r"\['a', 'b'\].*\['c', 'b'\]"),
    "another order": (FIRST, FIRST[["b", "a"]], r"\['a', 'b'\].*\['b', 'a'\]"),
    "no names": (FIRST, X, r"\['a', 'b'\].* 2 columns"),
    "another order of numbers": (NUMBERED, NUMBERED[[1, 0]], r"\[0, 1\].*\[1, 0\]"),
    "other numbers": (NUMBERED, NUMBERED.rename(columns={0: 2}), r"\[0, 1\].*\[2, 1\]"),
    "an array, then a frame": (X, NUMBERED, r"2 columns.*\[0, 1\]"),
}


@pytest.mark.parametrize(("one", "other", "said"), OTHERS.values(), ids=OTHERS.keys())
def test_batches_of_other_columns_are_refused(one, other, said):
    for source in (
        scan_batches([lambda: [one], lambda: [other]]),
        scan_batches(lambda: [one, other]),
    ):
        text = refused(lambda source=source: seen(X=source))
        assert "must have the same columns" in text
        assert pd.Series([text]).str.contains(said).all()


def test_numbers_of_first_rows_count_through_all_parts(tmp_path):
    source = scan_parquet(parquet(tmp_path, NUMBERS), batch_rows=50)
    places = seen(X=source).map(values).joined(first_rows, np.array)
    assert places[:, 0].tolist() == [0, *np.cumsum(places[:-1, 1]).tolist()]
    assert places[:, 1].tolist() == [50, 50, 20] * 4 + [20]


def test_memory_that_pyarrow_keeps_is_given_back_some_times_a_second(tmp_path, monkeypatch):
    """Not after each part, which costs quick passes a fifth."""
    clock, calls = iter(np.arange(100.0, 200.0, 0.1)), []

    class Pool:
        def release_unused(self):
            calls.append(None)

    rows = scan_parquet(parquet(tmp_path, row_group_size=25))
    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    monkeypatch.setattr(files, "monotonic", lambda: next(clock))
    assert len(list(rows.batches())) == rows.reader.n_parts == 20
    assert 6 <= len(calls) <= 8  # once in a quarter of a second


def test_columns_of_one_name_are_refused_as_that(tmp_path):
    twice = pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("a,a\n1,2\n")
    for scan in (
        lambda: scan_parquet(tmp_path / "rows.parquet"),
        lambda: scan_csv(tmp_path / "rows.csv", header=True),
        lambda: scan_dataset(pa.dataset.dataset(twice)),
    ):
        with pytest.raises(ValueError, match="must have different names"):
            scan()


@pytest.mark.parametrize("cells", [[[1.0], None, []], [{"x": 1}, {"x": 2}, None]], ids=["l", "s"])
def test_a_column_of_lists_or_records_is_refused_by_its_name_and_may_be_left_out(cells, tmp_path):
    table = pa.table({"odd": cells * 40, "a": [1.0, 2.0, 3.0] * 40})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"'odd' of X is of another type.*schema={'odd': 'drop'}"):
        DPTableVectorizer().fit(scan_parquet(tmp_path / "rows.parquet"))
    vectorizer = DPTableVectorizer({"odd": "drop", "a": (0, 4)}, n_bins=0)
    vectorizer.fit(scan_parquet(tmp_path / "rows.parquet"))
    assert [*vectorizer.get_feature_names_out()] == ["a", "a_beyond", "a_missing"]


@pytest.mark.parametrize(
    ("text", "encoding", "dtype", "options"),
    [
        ("å", "latin-1", "text", {"read_options": pa.csv.ReadOptions(encoding="latin-1")}),
        ("3,5", "utf-8", "number", {"convert_options": pa.csv.ConvertOptions(decimal_point=",")}),
        (
            "31.12.2026",
            "utf-8",
            "date",
            {"convert_options": pa.csv.ConvertOptions(timestamp_parsers=["%d.%m.%Y"])},
        ),
    ],
    ids=["encoding", "decimal comma", "date"],
)
def test_how_a_csv_is_written_is_said_by_options_that_its_refusal_names(
    text, encoding, dtype, options, tmp_path
):
    (tmp_path / "rows.csv").write_text(f"a;b\n{text};1\n{text};2\n", encoding=encoding)
    terms = {"header": True, "dtypes": {"a": dtype, "b": "number"}}
    terms["parse_options"] = pa.csv.ParseOptions(delimiter=";")
    with pytest.raises(ValueError, match="'a': name another") as caught:
        scan_csv(tmp_path / "rows.csv", **terms)
    assert text not in str(caught.value)
    (name,) = options
    assert f"{name}=" in str(caught.value)
    assert len(scan_csv(tmp_path / "rows.csv", **terms, **options)) == 2


def test_types_of_some_columns_name_no_header(tmp_path):
    (tmp_path / "rows.csv").write_text("a,secret person\n1,2\n3,4\n")
    for dtypes in (None, {}, {"a": "number"}):
        with pytest.raises(ValueError, match="Say header=True if it has") as caught:
            scan_csv(tmp_path / "rows.csv", dtypes=dtypes)
        assert "secret" not in str(caught.value)
    named = scan_csv(tmp_path / "rows.csv", dtypes={"a": "number", "secret person": "number"})
    assert named.columns == ("a", "secret person")
