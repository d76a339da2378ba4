"""One missing, odd or wide value changes no name, no type, no category and no other row."""

import datetime
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from skdpnoise import (
    DPGridSearchCV,
    DPLogisticCD,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPPipeline,
    DPStandardScaler,
    DPTableVectorizer,
)
from skdpnoise.data import RowSource, scan_batches, scan_csv, scan_dataset, scan_parquet
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import private_categories
from tests._cases import each_value
from tests.contracts._register import Forbidden

pytestmark = pytest.mark.usefixtures("the_same_words")

N = 300
DAY = datetime.date(2024, 3, 1)
HOUR = datetime.datetime(2024, 3, 1, 12)
ZONED = HOUR.replace(tzinfo=datetime.UTC)
WIDE = 2**53
KINDS = {
    "int": ([1, 2], pa.int64(), "number", [WIDE + 1, 2**70, "x", 2.5]),
    "float": ([0.5, 2.0], pa.float64(), "number", [1e300, "x", True]),
    "bool": ([True, False], pa.bool_(), "boolean", ["x", 7]),
    "text": (["a", "b"], pa.string(), "text", [5, b"x", "c" * 10_000, True]),
    "day": ([DAY, DAY.replace(day=9)], pa.date32(), pa.date32(), ["x", HOUR]),
    "date": ([HOUR, HOUR.replace(day=9)], pa.timestamp("us"), "date", ["x", ZONED]),
    "zoned": (
        [ZONED, ZONED.replace(day=9)],
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "UTC"),
        ["x", HOUR],
    ),
}


def _arrow(values, kind):
    return pa.table({"a": pa.array(values, KINDS[kind][1]), "n": pa.array(np.arange(N) % 7)})


def _plain(values, kind, tmp_path):
    return pd.DataFrame({"a": values, "n": np.arange(N) % 7})


def _array(values, kind, tmp_path):
    dtype = np.array(values[:2]).dtype
    if values[-1] is None:
        dtype = {"i": float, "b": object}.get(dtype.kind, dtype if dtype.kind == "f" else object)
    elif type(values[-1]) not in (type(values[0]), float):
        dtype = object
    return np.array(values, dtype=dtype).reshape(-1, 1)


def _nullable(backend, values, kind, tmp_path):
    frame = _arrow(values, kind).to_pandas(types_mapper=pd.ArrowDtype)
    if backend == "pyarrow":
        return frame
    types = {"int": "Int64", "float": "Float64", "bool": "boolean", "text": "string"}
    return frame.astype({"a": types[kind]})


def _polars(values, kind, tmp_path):
    return pl.from_arrow(_arrow(values, kind))


def _parquet(values, kind, tmp_path):
    path = tmp_path / f"{abs(hash(str(values[-1])))}.parquet"
    pyarrow.parquet.write_table(_arrow(values, kind), path, row_group_size=100)
    return scan_parquet(path)


def _dataset(values, kind, tmp_path):
    _parquet(values, kind, tmp_path)
    path = tmp_path / f"{abs(hash(str(values[-1])))}.parquet"
    return scan_dataset(pyarrow.dataset.dataset(path))


def _csv(values, kind, tmp_path):
    path = tmp_path / f"{abs(hash(str(values[-1])))}.csv"
    lines = ["" if value is None else str(value) for value in values]
    path.write_text("".join(f"{line},{k % 7}\n" for k, line in enumerate(lines)))
    return scan_csv(path, names=["a", "n"], dtypes={"a": KINDS[kind][2], "n": "number"})


def _batches(values, kind, tmp_path):
    return scan_batches(lambda: [pd.DataFrame({"a": values[k : k + 100]}) for k in (0, 100, 200)])


def _dask(values, kind, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    parts = [partial(pd.DataFrame, {"a": values[k : k + 150]}) for k in (0, 150)]
    meta = pd.DataFrame({"a": pd.Series(KINDS[kind][0])})[:0]
    return dask.from_map(lambda part: part(), parts, meta=meta)


READERS = {
    "array": _array,
    "pandas": _plain,
    "numpy_nullable": partial(_nullable, "numpy_nullable"),
    "pyarrow": partial(_nullable, "pyarrow"),
    "polars": _polars,
    "parquet": _parquet,
    "dataset": _dataset,
    "csv": _csv,
    "batches": _batches,
    "dask": _dask,
}
DATES = ("day", "date", "zoned")
LEFT_OUT = {("numpy_nullable", kind) for kind in DATES} | {("array", "zoned")}


def _outcome(make, table):
    """Return what a fit makes public, and the encoded rows but the last; a text if it refuses."""
    try:
        fitted = make(None).fit(table)
    except (ValueError, TypeError) as error:
        with pytest.raises(type(error)):  # before anything is charged for
            make(Forbidden()).fit(table)
        return str(error)
    try:
        encoded = fitted.transform(table)
        if isinstance(encoded, RowSource):
            encoded = np.concatenate([*map(np.asarray, encoded.batches())])
    except TypeError as error:
        return str(error)
    names = [(one.dtype.kind, one.tolist()) for one in getattr(fitted, "categories_", ())]
    return fitted.get_feature_names_out().tolist(), names, np.asarray(encoded)[: N - 1]


def _vectorizer(schema, ledger):
    return DPTableVectorizer(schema, 50.0, 1e-3, n_bins=0, random_state=0, ledger=ledger)


def _encoder(make, categories, ledger):
    facts = {"epsilon": 50.0, "delta": 1e-3, "random_state": 0}
    return make(categories=categories, ledger=ledger, **facts)


def _forms(kind):
    labels = KINDS[kind][0]
    forms = {"undeclared": partial(_vectorizer, None)}
    if kind in DATES:
        return forms | {"date": partial(_vectorizer, {"a": "date"})}
    if kind != "text":
        forms["bounds"] = partial(_vectorizer, {"a": (0, 3)})
    return forms | {
        "list": partial(_vectorizer, {"a": labels}),
        "category": partial(_vectorizer, {"a": "category"}),
        "buckets": partial(_vectorizer, {"a": {"buckets": 5}}),
        "ordinal": partial(_vectorizer, {"a": {"kind": "ordinal", "categories": labels}}),
        "one-hot": partial(_encoder, DPOneHotEncoder, "auto"),
        "one-hot given": partial(_encoder, DPOneHotEncoder, [labels]),
        "ordinal codes": partial(_encoder, DPOrdinalEncoder, "auto"),
    }


def _of_a(table, reader):
    if reader == "array":
        return table
    return table.select(["a"]) if hasattr(table, "select") else table[["a"]]


SOME = ("undeclared", "date", "list", "buckets", "one-hot")  # of readers that share much


@pytest.mark.slow
@each_value(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_one_missing_odd_or_wide_value_changes_no_name_no_category_and_no_other_row(
    reader, kind, tmp_path
):
    if (reader, kind) in LEFT_OUT:
        pytest.skip("no such column can be there")
    usual = KINDS[kind][0]
    column = [usual[k % 2] for k in range(N)]
    forms = _forms(kind)
    if reader not in ("pandas", "parquet"):
        forms = {name: forms[name] for name in forms if name in SOME}
    for form, make in forms.items():
        if reader == "array" and isinstance(make.args[0], dict):
            make = partial(make.func, {"x0": make.args[0]["a"]})
        whole = _outcome(make, _of_a(READERS[reader](column, kind, tmp_path), reader))
        # Numbers are moved and scaled by what was bought, which has noise.
        exact = not isinstance(whole, str) and set(np.unique(whole[2])) <= {-1.0, 0.0, 1.0}
        for last in [None, *KINDS[kind][3]]:
            try:
                table = READERS[reader]([*column[:-1], last], kind, tmp_path)
            except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError, OverflowError):
                continue  # no column of this type holds it
            found = _outcome(make, _of_a(table, reader))
            if isinstance(found, str) or isinstance(whole, str):
                assert isinstance(found, str), (form, last, whole)
                assert "'a'" in found or "'x0'" in found, (form, last, found)
                continue
            assert found[:2] == whole[:2], (form, last)
            assert found[2].shape == whole[2].shape
            if exact:
                np.testing.assert_array_equal(found[2], whole[2], err_msg=f"{form} {last}")


@pytest.mark.parametrize("kind", ["int", "bool", "text"])
def test_private_categories_are_the_same_in_every_container(kind, tmp_path):
    column = [KINDS[kind][0][k % 2] for k in range(N)]
    tables = {reader: READERS[reader] for reader in READERS if reader != "dask"}
    tables["list"] = lambda values, kind, tmp_path: values
    tables["arrow"] = lambda values, kind, tmp_path: _arrow(values, kind).select(["a"])
    for last in (column[-1], None):
        found = []
        for reader, read in tables.items():
            if (reader, kind, last) == ("csv", "text", None):
                continue  # an empty text, which is none that is missing
            table = read([*column[:-1], last], kind, tmp_path)
            table = table if reader in ("list", "arrow") else _of_a(table, reader)
            made = private_categories(
                table, PrivacyGuarantee(5.0, 1e-3), noise="iid_gaussian", random_state=0
            )
            found.append((repr(made.categories), made.counts[0].tolist()))
        assert found == [(f"({tuple(sorted(KINDS[kind][0]))!r},)", found[0][1])] * len(found)


@pytest.mark.parametrize("scan", [_parquet, _dataset, _csv])
def test_numbers_of_files_are_those_of_memory_and_models_refuse_missing_ones(scan, tmp_path):
    column = [k % 5 for k in range(N)]
    rows = scan(column, "int", tmp_path)
    whole = _plain(column, "int", tmp_path)
    make = partial(DPStandardScaler, 5.0, feature_bounds=(0, 7), random_state=0)
    np.testing.assert_array_equal(make().fit(rows).mean_, make().fit(whole).mean_)
    y = rows["n"]
    with pytest.raises(ValueError, match="NaN"):
        make().fit(scan([*column[:-1], None], "int", tmp_path))
    model = DPLogisticCD(5.0, feature_bounds=(0, 4), classes=[*range(7)], random_state=0)
    assert model.fit(rows[["a"]], y).classes_.tolist() == [*range(7)]


@pytest.mark.parametrize("scan", [_parquet, _batches])
def test_a_pipeline_reads_columns_as_they_are_declared(scan, tmp_path):
    column = [k % 2 + 1 for k in range(N)]
    steps = [
        ("table", DPTableVectorizer({"a": [1, 2]})),
        ("model", DPLogisticCD(classes=[0, 1])),
    ]
    y = np.array(column) - 1
    for last in (column[-1], None):
        frame = _plain([*column[:-1], last], "int", tmp_path)
        model = DPPipeline(steps, epsilon=5.0, random_state=0).fit(frame[["a"]], y)
        assert model.steps_[0][1].get_feature_names_out().tolist() == [
            *("a_1", "a_2", "a_other", "a_missing")
        ]


def test_a_csv_is_read_by_the_word_of_its_user_alone(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("Eve,31\nBob,45\n")
    with pytest.raises(ValueError, match=r"header=True.*names=") as caught:
        scan_csv(path)
    assert "Eve" not in str(caught.value)
    with pytest.raises(ValueError, match="header=True"):
        scan_csv(path, dtypes={"name": "text", "age": "number"})
    rows = scan_csv(path, names=["name", "age"])
    assert (rows.columns, len(rows), rows.guessed) == (("name", "age"), 2, ("age", "name"))
    path.write_text("name,age\nEve,31\nBob,45\n")
    typed = scan_csv(path, dtypes={"name": "text", "age": "number"})
    assert (len(typed), typed.guessed) == (2, ())
    with pytest.raises(ValueError, match=r"'dtypes'.*'size'"):
        scan_csv(path, header=True, dtypes={"size": "number"})
    with pytest.raises(ValueError, match=r"'dtypes'.*'age'.*'numbers'"):
        scan_csv(path, header=True, dtypes={"age": "numbers"})
    with pytest.raises(ValueError, match=r"'names'.*header=True"):
        scan_csv(path, header=True, names=["a", "b"])


def _is_two(frame):
    return (frame["a"] == 2).to_numpy(dtype=int)


def test_types_that_were_found_by_reading_are_told_by_every_report_and_refused_by_tables(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,x\n2,y\n" * 300)
    rows = scan_csv(path, header=True, dtypes={"b": "text"})
    guessed = "types of columns, which were found by reading the file"
    for make in (DPOneHotEncoder, DPOrdinalEncoder):
        assert guessed in make(random_state=0).fit(rows).privacy_.declared
        assert guessed not in make(random_state=0).fit(rows[["b"]]).privacy_.declared
    scaler = DPStandardScaler(feature_bounds=(0, 3)).fit(rows[["a"]])
    assert guessed in scaler.privacy_.declared
    Y = rows.map(_is_two)
    for whole in (
        DPPipeline([("s", DPStandardScaler()), ("m", DPLogisticRegression(classes=[0, 1]))]),
        DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [0.0, 0.1]}, epsilon=9.0),
    ):
        assert guessed in whole.fit(rows[["a"]], Y).privacy_.declared
        assert guessed in " ".join(whole.privacy_.statement().split())
    for schema in (None, {"a": "category"}, {"a": {"buckets": 3}}):
        with pytest.raises(ValueError, match=r"guess the type of column 'a'.*dtypes=\{'a'"):
            DPTableVectorizer(schema, ledger=Forbidden()).fit(rows)
    for entry in ((0, 3), [1, 2], "number"):
        made = DPTableVectorizer({"a": entry}, random_state=0).fit(rows)
        assert guessed in made.privacy_.declared
    with pytest.raises(TypeError, match="needs text in column 'a'"):
        DPTableVectorizer({"a": ["1", "2"]}, ledger=Forbidden()).fit(rows)


def test_a_field_of_arrow_that_is_never_null_gets_no_indicator(tmp_path):
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())]
    table = pa.table({"a": [1, 2] * 300, "b": [1, 2] * 300}).cast(pa.schema(fields))
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    made = _vectorizer(None, None).fit(scan_parquet(tmp_path / "rows.parquet"))
    assert made.get_feature_names_out().tolist() == ["a", "a_beyond", "b", "b_beyond", "b_missing"]


def test_large_whole_numbers_stay_apart_beside_a_missing_one(tmp_path):
    for last in (WIDE, None):
        column = [WIDE] * 150 + [WIDE + 1] * 149 + [last]
        for table in (_parquet(column, "int", tmp_path), _polars(column, "int", tmp_path)):
            made = private_categories(
                _of_a(table, "frame"), PrivacyGuarantee(5.0, 1e-3), random_state=0
            )
            assert made.categories == ((WIDE, WIDE + 1),)


@each_value(1)
@pytest.mark.parametrize("scan", [_parquet, _dataset, _csv])
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_value_changes_the_type_of_no_batch(scan, kind, tmp_path):
    column = [KINDS[kind][0][k % 2] for k in range(N)]
    types = []
    for last in (column[-1], None):
        rows = scan([*column[:-1], last], kind, tmp_path)
        types.append({(str(batch.dtypes["a"]), *rows.kinds) for batch in rows.batches()})
    assert types[0] == types[1]
    assert len(types[0]) == 1


def test_a_value_of_another_type_in_the_first_rows_names_its_column(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,x\nsecret,y\n")
    with pytest.raises(ValueError, match="column 'a'") as caught:
        scan_csv(path, header=True, dtypes={"a": "number", "b": "text"})
    assert "secret" not in str(caught.value)
    scan_csv(path, header=True, dtypes={"a": "text", "b": "text"})


@pytest.mark.parametrize("labels", [[b"a", b"b"], [[1], [2]]])
def test_labels_that_are_no_categories_are_refused_by_the_column(labels):
    for values in (labels, [labels[0], 5]):
        frame = pd.DataFrame({"a": values * 30}, dtype=object)
        with pytest.raises(ValueError, match="'a'"):
            DPTableVectorizer({"a": labels}, ledger=Forbidden()).fit(frame)


@pytest.mark.parametrize("values", [[None] * 59 + [0.5], [None] * 60])
def test_a_column_without_a_value_is_no_category_and_no_number(values):
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    with pytest.raises(ValueError, match="'a'"):
        DPTableVectorizer(ledger=Forbidden()).fit(frame)
    parts = [pd.DataFrame({"a": values[:30]}, dtype=object), pd.DataFrame({"a": [None] * 30})]
    with pytest.raises(ValueError, match="'a'"):
        DPTableVectorizer(ledger=Forbidden()).fit(scan_batches(lambda: parts))
