"""Another kind of column than at the fit gives the same answers, or is refused by its name."""

import datetime
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

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
from skdpnoise.data import scan_batches
from skdpnoise.data.cells import kinds_of
from skdpnoise.data.partitions import SpreadError
from tests._cases import each_value, quick
from tests.contracts._register import PRIVATE, Forbidden, each, ways

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

N = 240
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame({"a": RNG.integers(-2, 3, N), "b": RNG.normal(size=N).round(2)})
HOURS = pd.Series(pd.date_range("2024-01-01 20:00", periods=N, freq="h"))
TABLE = NUMBERS.assign(
    flag=RNG.random(N) > 0.5,
    town=RNG.choice(["1", "2", "3"], N),
    kind=pd.Categorical(RNG.choice(["x", "y"], N)),
    when=HOURS,
    at=HOURS.dt.tz_localize("UTC"),
)
LABELS = TABLE[["a", "flag", "town", "kind"]]


def text_of(column):
    return column.astype("str")


# From a column to the same values in another container, or of another type.
CHANGES = {
    "text": text_of,
    "objects of text": lambda column: text_of(column).astype(object),
    "text of Arrow": lambda column: text_of(column).astype("string[pyarrow]"),
    "objects": lambda column: column.astype(object),
    "category": lambda column: column.astype("category"),
    "category of text": lambda column: text_of(column).astype("category"),
    "nullable": lambda column: column.convert_dtypes(),
    "Arrow": lambda column: column.convert_dtypes(dtype_backend="pyarrow"),
    "decimal commas": lambda column: text_of(column).str.replace(".", ",") + ",5",
    "numbers": lambda column: pd.Series(np.arange(len(column)) % 3),
    "numbers of Arrow": lambda column: pd.Series(np.arange(len(column)), dtype="int64[pyarrow]"),
    "dates": lambda column: pd.Series(HOURS.to_numpy()),
    "Python's days": lambda column: pd.Series([datetime.date(2024, 1, 1)] * len(column)),
    "durations": lambda column: pd.Series(pd.to_timedelta(np.arange(len(column)), unit="s")),
    "truth values": lambda column: pd.Series(np.arange(len(column)) % 2 == 0),
    "Tokyo": lambda column: column.dt.tz_convert("Asia/Tokyo"),
    "no zone": lambda column: column.dt.tz_localize(None),
    "a zone": lambda column: column.dt.tz_localize("Asia/Tokyo"),
    "days": lambda column: column.dt.date.astype("date32[day][pyarrow]"),
    "periods": lambda column: column.dt.to_period("h"),
}
# What has the values of the fit, so that answers must be the same where they are given.
SAME = {"objects", "category", "nullable", "Arrow", "text", "objects of text", "text of Arrow"}
SAME |= {"category of text", "Tokyo", "periods"}


def table_of(entry):
    return {"labels": LABELS, "tables": TABLE}.get(entry.reads, NUMBERS)


def changed(frame, name, change):
    """Return a frame with one column changed; None where the change has no meaning for it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return frame.assign(**{name: CHANGES[change](frame[name])})
    except (AttributeError, TypeError, ValueError):
        return None


def answers(model, X):
    names = ("predict_proba", "decision_function", "predict", "transform", "mahalanobis")
    method = next(name for name in names if hasattr(model, name))
    return np.asarray(getattr(model, method)(X))


def meaning(frame, name):
    """Return what a column is, of objects by its values: before pandas 3 so is text."""
    kind = kinds_of(frame)[list(frame).index(name)].name
    if kind == "objects":
        kind = {"string": "text"}.get(found := pd.api.types.infer_dtype(frame[name]), found)
    return "number" if kind == "boolean" else kind


def judge(model, frame, name, change, new):
    """Fail if a changed column gives another answer without a word, or a refusal without a name."""
    before = answers(model, frame)
    try:
        after = answers(model, new)
    except (TypeError, ValueError) as error:
        assert repr(name) in str(error), f"{name} as {change}: {error}"
        return "refused"
    same = np.array_equal(after, before, equal_nan=True)
    alike = len({meaning(one, name) for one in (frame, new)}) == 1
    assert same or (change not in SAME and alike), f"{name} as {change}"
    return "the same" if same else "other numbers"


@quick("DPStandardScaler")
@each(ways(PRIVATE))
def test_another_kind_at_predict_is_the_same_or_refused_by_the_name_of_the_column(entry):
    frame = table_of(entry)
    y = entry.y(NUMBERS[["b"]].to_numpy())
    model = entry.estimator(random_state=0, epsilon=8.0, feature_bounds=(-4.0, 4.0)).fit(frame, y)
    said = {
        (name, change): judge(model, frame, name, change, new)
        for name in frame
        for change in CHANGES
        if (new := changed(frame, name, change)) is not None
    }
    assert said["a", "text"] == "refused"
    assert said["a", "decimal commas"] == "refused"
    assert said["a", "dates"] == "refused"
    assert said["a", "nullable"] == said["a", "objects"] == "the same"


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


# The same table in the containers of other libraries.
CONTAINERS = {
    "polars": pl.from_pandas,
    "Arrow": arrow,
    "Arrow that notes an index": lambda frame: pa.Table.from_pandas(frame.set_index("a")).select(
        [*frame]
    ),
    "a batch of Arrow": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
}


@quick("DPRandomizedSearchCV DPPoissonRegressor", "DPPCA", "DPTableVectorizer")
@each(ways(PRIVATE))
def test_tables_of_other_libraries_are_read_as_at_the_fit(entry):
    frame = table_of(entry)
    y = entry.y(NUMBERS[["b"]].to_numpy())
    make = entry.estimator(random_state=0, epsilon=8.0, feature_bounds=(-4.0, 4.0))
    model = clone(make).fit(frame, y)
    before = answers(model, frame)
    again = clone(make).fit(arrow(frame), y)
    np.testing.assert_array_equal(answers(again, frame), before)
    for container in CONTAINERS.values():
        np.testing.assert_array_equal(answers(model, container(frame)), before)
        for name, change in (("a", "text"), ("a", "decimal commas")):
            with pytest.raises(TypeError, match=f"numbers in column {name!r} of X"):
                answers(model, container(changed(frame, name, change)))


SCHEMA = {"a": (-2, 2), "town": ["1", "2", "3"], "kind": {"buckets": 4}, "flag": "number"}
Y = (NUMBERS["b"] > 0).astype(int)
CLASSIFIER = DPLogisticRegression(classes=[0, 1])
TABLES = {
    "pipeline": DPPipeline([("t", DPTableVectorizer(SCHEMA)), ("m", CLASSIFIER)], epsilon=9.0),
    "nested": DPPipeline(
        [("in", DPPipeline([("t", DPTableVectorizer(SCHEMA))])), ("m", CLASSIFIER)], epsilon=9.0
    ),
    "search": DPGridSearchCV(
        DPPipeline([("t", DPTableVectorizer(SCHEMA)), ("m", CLASSIFIER)]),
        {"m__alpha": [0.0, 0.1]},
        epsilon=9.0,
    ),
}
CATEGORIES = [[-2, -1, 0, 1, 2], ["1", "2", "3"]]
PUBLIC = {
    "public encoder": DPPipeline(
        [
            (
                "e",
                OneHotEncoder(categories=CATEGORIES, handle_unknown="ignore", sparse_output=False),
            ),
            ("m", CLASSIFIER),
        ]
    ),
    "given categories": DPPipeline(
        [("e", DPOneHotEncoder(categories=CATEGORIES)), ("m", CLASSIFIER)]
    ),
}


@quick("public encoder")
@pytest.mark.parametrize("name", [*TABLES, *PUBLIC])
def test_compositions_know_the_kinds_of_the_fit(name):
    frame = TABLE if name in TABLES else TABLE[["a", "town"]]
    model = clone({**TABLES, **PUBLIC}[name]).set_params(random_state=0).fit(frame, Y)
    model = pickle.loads(pickle.dumps(model))
    for column in frame:
        for change in CHANGES:
            new = changed(frame, column, change)
            if new is not None:
                judge(model, frame, column, change, new)
    with pytest.raises(TypeError, match="'a'"):
        model.score(changed(frame, "a", "text"), Y)
    for container in CONTAINERS.values():
        np.testing.assert_array_equal(answers(model, container(frame)), answers(model, frame))
        with pytest.raises(TypeError, match="'a'"):
            model.score(container(changed(frame, "a", "text")), Y)


PLACES = {"numbers": [[1, 2, 3], [1, 2, 3]], "text": [["1", "2", "3"], ["1", "2", "3"]]}
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}


def hot(lists):
    return OneHotEncoder(categories=lists, handle_unknown="ignore", sparse_output=False)


def places(lists):
    return OrdinalEncoder(categories=lists, **UNKNOWN)


def filled(value):
    return SimpleImputer(strategy="constant", fill_value=value, keep_empty_features=True)


def by_columns(lists, *, names):
    steps = [("hot", hot(lists[:1]), names[0]), ("places", places(lists[1:]), names[1])]
    return ColumnTransformer(steps, sparse_threshold=0)


# Public steps that compare values with public ones, alone and behind others.
COMPARING = {
    "hot": hot,
    "places": places,
    "union": lambda lists: FeatureUnion([("hot", hot(lists)), ("places", places(lists))]),
    "columns by name": lambda lists: by_columns(lists, names=[["a"], slice("b", "b")]),
    "columns by place": lambda lists: by_columns(lists, names=[[0], [-1]]),
    "columns by a slice": lambda lists: by_columns(lists, names=[slice(0, 1), slice(1, None)]),
    "columns by a mask": lambda lists: by_columns(lists, names=[[True, False], [False, True]]),
    "the rest": lambda lists: ColumnTransformer(
        [("hot", hot(lists[:1]), ["a"])], remainder=places(lists[1:]), sparse_threshold=0
    ),
    "behind a fill": lambda lists: Pipeline(
        [("fill", filled(lists[0][0])), ("pass", FunctionTransformer()), ("hot", hot(lists))]
    ),
    "nested": lambda lists: DPPipeline(
        [("pass", "passthrough"), ("hot", hot(lists)), ("scale", DPStandardScaler())]
    ),
    "indicator": lambda lists: MissingIndicator(missing_values=lists[0][0], features="all"),
}
HOLDING = {
    "numbers": lambda frame: frame.astype(int),
    "objects of numbers": lambda frame: frame.astype(int).astype(object),
    "polars": lambda frame: pl.from_pandas(frame.astype(int)),
    "text": lambda frame: frame,
    "objects of text": lambda frame: frame.astype(object),
    "polars of text": pl.from_pandas,
    "objects but for one": lambda frame: pd.concat([frame[:-1], frame[-1:].astype(int)]),
    "objects of numbers but for one": lambda frame: pd.concat(
        [frame[:-1].astype(int).astype(object), frame[-1:].astype(object)]
    ),
}
DIGITS = pd.DataFrame(RNG.integers(1, 4, (N, 2)), columns=["a", "b"]).astype("str")


def of_kind(held):
    """Return which of the lists hold the values of a table; None of a mixed one."""
    if "but for one" in held:
        return None
    return "text" if "text" in held else "numbers"


@quick("columns by name-pipeline")
@each_value(1)
@pytest.mark.parametrize("around", ["pipeline", "search"])
@pytest.mark.parametrize("name", COMPARING)
def test_what_public_steps_compare_with_is_of_their_kind_in_the_fit_and_later(name, around):
    y, tables = (DIGITS["a"] > "1").astype(int), {h: one(DIGITS) for h, one in HOLDING.items()}
    for listed, lists in PLACES.items():
        steps = [("first", COMPARING[name](lists)), ("m", DPLogisticCD(n_passes=1, classes=[0, 1]))]
        whole = DPPipeline(steps, epsilon=90.0)
        if around == "search":
            whole = DPGridSearchCV(Pipeline(steps), {"m__alpha": [0.0]}, epsilon=90.0)
        for held, table in tables.items():
            model = clone(whole).set_params(random_state=0)
            if of_kind(held) != listed:
                with pytest.raises(TypeError, match=r"in column '[ab]' of X"):
                    model.set_params(ledger=Forbidden()).fit(table, y)
                continue
            try:
                model.fit(table, y)
            except ValueError as error:  # of scikit-learn's, which takes no text of numpy
                assert "MissingIndicator" in str(error) or "SimpleImputer" in str(error)
                continue
            before = model.predict_proba(table)
            assert len(np.unique(before, axis=0)) > 1
            for other, later in tables.items():
                try:
                    np.testing.assert_array_equal(model.predict_proba(later), before)
                except TypeError as error:
                    assert "in column 'a' of X" in str(error) or "'b'" in str(error)
                    assert other != held
                except ValueError as error:  # of scikit-learn's, for floats instead of integers
                    assert "The dtype of the filling value" in str(error)
                else:
                    assert of_kind(other) == listed


@quick("search")
@pytest.mark.parametrize("around", ["pipeline", "search"])
def test_rows_in_parts_are_of_the_kind_that_public_steps_compare_with(around):
    def parts(table):
        return scan_batches(lambda: [table[: N // 2], table[N // 2 :]])

    y = (DIGITS["a"] > "1").astype(int)
    for held in ("numbers", "objects of numbers", "text", "objects of text"):
        steps = [("hot", hot(PLACES[of_kind(held)])), ("m", DPLogisticCD(classes=[0, 1]))]
        model = DPPipeline(steps, epsilon=9.0)
        if around == "search":
            model = DPGridSearchCV(model, {"m__alpha": [0.0]}, epsilon=9.0)
        frames = {name: one(DIGITS) for name, one in HOLDING.items() if "polars" not in name}
        rows = parts(frames[held].assign(y=y))
        model.fit(rows[["a", "b"]], rows["y"])
        for other, frame in frames.items():
            if of_kind(other) not in (None, of_kind(held)):
                rows = parts(frame.assign(y=y))
                with pytest.raises(TypeError, match="in column 'a' of X"):
                    model.predict_proba(rows[["a", "b"]])
                with pytest.raises(TypeError, match="in column 'a' of X"):
                    clone(model).set_params(ledger=Forbidden()).fit(rows[["a", "b"]], rows["y"])
                halves = [frames[held][: N // 2], frame[N // 2 :]]
                later = scan_batches([partial(list, [half]) for half in halves])
                with pytest.raises((TypeError, SpreadError)):  # in whichever part they are
                    list(model.predict_proba(later).batches())


ORDERS = {
    "as in the fit": lambda frame: frame,
    "reversed": lambda frame: frame[frame.columns[::-1]],
    "beside others": lambda frame: pd.concat(
        [pd.Series(1.0, frame.index, name="z"), frame], axis=1
    ),
}


@each_value(1)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("parts", [False, True])
def test_columns_that_a_step_takes_by_name_are_compared_in_any_order(order, parts):
    def said(frame):
        X = ORDERS[order](frame)
        if parts:
            source = scan_batches(lambda: [X[: N // 2], X[N // 2 :]])
            return np.concatenate([*model.predict_proba(source).batches()])
        return model.predict_proba(X)

    encoder = OneHotEncoder(
        categories=CATEGORIES, handle_unknown="ignore", sparse_output=False, dtype=np.float32
    )
    steps = [("e", encoder, ["a", "town"]), ("n", DPStandardScaler(), ["b"])]
    frame = TABLE[["a", "town", "b"]]
    model = DPPipeline([("c", ColumnTransformer(steps, sparse_threshold=0)), ("m", CLASSIFIER)])
    model.set_params(random_state=0).fit(frame, Y)
    np.testing.assert_array_equal(said(frame), model.predict_proba(frame))
    for name, change in [("a", "text"), ("town", "numbers"), ("b", "text")]:
        with pytest.raises(TypeError, match=f"DPPipeline needs .* in column {name!r} of X"):
            said(changed(frame, name, change))


def test_a_sparse_column_is_to_be_made_dense():
    frame = NUMBERS.assign(c=1.0)
    models = [
        DPStandardScaler(random_state=0).fit(frame),
        DPPipeline([("s", DPStandardScaler())], random_state=0).fit(frame),
    ]
    sparse = frame.assign(b=pd.arrays.SparseArray(frame["b"]))
    for model in models:
        with pytest.raises(TypeError, match=r"'b' of X.*sparse column.*X\['b'\].sparse.to_dense"):
            model.transform(sparse)
        dense = sparse.assign(b=sparse["b"].sparse.to_dense())
        np.testing.assert_array_equal(model.transform(dense), model.transform(frame))


def test_another_order_of_columns_is_called_that_behind_a_step_that_passes_all_on():
    model = DPPipeline([("p", "passthrough"), ("t", DPTableVectorizer(SCHEMA)), ("m", CLASSIFIER)])
    model.fit(TABLE, Y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(TABLE[TABLE.columns[::-1]])


@pytest.mark.parametrize("name", ["pipeline", "search"])
def test_rows_in_parts_have_the_kinds_of_the_fit_too(name):
    frame = TABLE[["a", "flag", "town", "kind"]]
    model = clone(TABLES[name]).set_params(random_state=0)
    (step,) = [s for k, s in model.get_params().items() if hasattr(s, "schema")][:1]
    step.set_params(schema={name: one for name, one in SCHEMA.items() if name in frame})
    model.fit(frame, Y)
    halves = scan_batches(lambda: [frame[: N // 2], frame[N // 2 :]])
    found = np.concatenate([*model.predict_proba(halves).batches()])
    np.testing.assert_array_equal(found, model.predict_proba(frame))
    wrong = changed(frame, "town", "numbers")
    with pytest.raises(TypeError, match="'town'"):
        model.predict_proba(scan_batches(lambda: [wrong[: N // 2], wrong[N // 2 :]]))


@each_value(1)
@pytest.mark.parametrize(
    ("schema", "column", "remedy"),
    [
        ({"town": (0, 3)}, "town", pd.to_numeric),
        ({"town": "number"}, "town", pd.to_numeric),
        ({"town": "log"}, "town", pd.to_numeric),
        ({"town": [1, 2, 3]}, "town", pd.to_numeric),
        ({"town": {"kind": "ordinal", "categories": [1, 2, 3]}}, "town", pd.to_numeric),
        ({"a": ["-2", "0"]}, "a", lambda column: column.astype("str")),
        ({"when": "number"}, "when", lambda c: (c - pd.Timestamp(0)).dt.days),
        ({"a": "date"}, "a", pd.to_datetime),
        ({"flag": ["yes", "no"]}, "flag", lambda column: column.astype("str")),
    ],
)
@pytest.mark.parametrize("form", ["declared", "objects"])
def test_a_schema_that_says_another_kind_than_the_table_is_refused_before_the_charge(
    schema, column, remedy, form
):
    frame = TABLE[[column]] if form == "declared" else TABLE[[column]].astype(object)
    with pytest.raises(TypeError, match=f"{column!r}.*parameters say") as caught:
        DPTableVectorizer(schema, ledger=Forbidden()).fit(frame)
    assert not any(str(value) in str(caught.value) for value in ("2024", "'1'", "'2'"))
    DPTableVectorizer(schema).fit(TABLE[[column]].assign(**{column: remedy(TABLE[column])}))


def test_a_schema_of_an_array_names_its_columns_by_their_places():
    array = TABLE[["a", "town"]].to_numpy(dtype=object)
    for schema in ({"x1": (0, 3)}, {"x0": ["-1", "0"], "x1": "category"}):
        for table in (array, array.astype(str) if "x0" not in schema else array):
            with pytest.raises(TypeError, match=r"column 'x[01]' of X, as its parameters say"):
                DPTableVectorizer(schema, ledger=Forbidden()).fit(table)
    made = DPTableVectorizer({"x0": (-2, 2), "x1": ["1", "2"]}).fit(array)
    assert [one.column.kind for one in made.columns_.blocks] == ["number", "category"]


def test_a_schema_of_a_table_in_parts_is_compared_with_every_batch():
    halves = TABLE[: N // 2], TABLE[N // 2 :].assign(town=1)
    for schema in ({"town": (0, 3)}, {"town": ["1", "2"]}):
        with pytest.raises(TypeError, match="'town'"):
            DPTableVectorizer(schema, ledger=Forbidden()).fit(scan_batches(lambda: halves))


@pytest.mark.parametrize("make", [DPOneHotEncoder, DPOrdinalEncoder])
def test_encoders_compare_given_categories_with_declared_kinds(make):
    with pytest.raises(TypeError, match=r"numbers in column 'town'.*Got text"):
        make(categories=[[1, 2, 3]], ledger=Forbidden()).fit(TABLE[["town"]])
    with pytest.raises(TypeError, match=r"'when' of X has dates.*DPTableVectorizer"):
        make(ledger=Forbidden()).fit(TABLE[["when"]])


def test_dates_are_read_in_the_zone_of_the_fit():
    def hours(frame):
        names = [*model.get_feature_names_out()]
        first = names.index("at_hour0")
        return model.transform(frame)[:, first : first + 24].argmax(axis=1)

    model = DPTableVectorizer(n_bins=0, random_state=0).fit(TABLE[["at"]])
    expected = TABLE["at"].dt.hour.to_numpy()
    for zone in ("Asia/Tokyo", "America/New_York", "Asia/Kathmandu"):
        moved = TABLE[["at"]].assign(at=TABLE["at"].dt.tz_convert(zone))
        np.testing.assert_array_equal(hours(moved), expected)
        np.testing.assert_array_equal(hours(pl.from_pandas(moved)), expected)
    naive = TABLE[["at"]].assign(at=TABLE["at"].dt.tz_localize(None))
    with pytest.raises(TypeError, match=r"with a time zone in column 'at'.*tz_localize\('UTC'"):
        model.transform(naive)
    with pytest.raises(TypeError, match="replace_time_zone"):
        model.transform(pl.from_pandas(naive))


def test_hashed_objects_are_text_in_the_fit_and_after_it():
    column = TABLE[["town"]].astype(object)
    model = DPTableVectorizer({"town": {"buckets": 4}}, random_state=0).fit(column)
    np.testing.assert_array_equal(model.transform(column), model.transform(TABLE[["town"]]))
    for other in (column.astype(int), column.astype(int).astype(object)):
        with pytest.raises(TypeError, match="needs text in column 'town'"):
            model.transform(other)
    numbers = DPTableVectorizer({"town": {"buckets": 4}}, ledger=Forbidden())
    with pytest.raises(ValueError, match=r"hashes columns of objects that are text.*'town'"):
        numbers.fit(column.astype(int).astype(object))


def test_days_and_periods_are_dates():
    days = pd.DataFrame({"d": [datetime.date(2024, 1, 1 + k % 28) for k in range(N)]})
    periods = pd.DataFrame({"d": pd.to_datetime(days["d"]).dt.to_period("D")})
    stamps = pd.DataFrame({"d": pd.to_datetime(days["d"])})
    tables = days, periods, stamps
    make = DPTableVectorizer({"d": "date"}, epsilon=9.0, random_state=0)
    made = [clone(make).fit(frame) for frame in tables]
    values = [model.transform(frame)[:, 0] for model, frame in zip(made, tables, strict=True)]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])
    np.testing.assert_array_equal(made[1].transform(periods), made[1].transform(stamps))
    # All hours would be midnight.
    for frame in (periods, pl.from_pandas(days)):
        with pytest.raises(TypeError, match="with a time of day in column 'd'"):
            made[2].transform(frame)


REMEDIES = [
    ("a", "text"),
    ("b", "objects of text"),
    ("flag", "text"),
    ("town", "numbers"),
    ("when", "text"),
    ("when", "a zone"),
    ("when", "numbers"),
    ("when", "days"),
    ("at", "no zone"),
]


@quick("town-numbers-pandas", "when-days-pandas")
@each_value(1)
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(("column", "change"), REMEDIES)
def test_what_a_refusal_names_works_as_it_stands(library, column, change):
    model = clone(TABLES["pipeline"]).set_params(random_state=0).fit(TABLE, Y)
    X = changed(TABLE, column, change)
    if library == "polars":
        X = pl.from_pandas(X)
    with pytest.raises(TypeError, match=repr(column)) as caught:
        model.predict(X)
    text = str(caught.value).partition(", as in ")[2].partition("as in ")[2]
    remedy = text.removesuffix(".").partition(", by the unit")[0]
    found = eval(remedy, {"pandas": pd, "polars": pl, "X": X})
    better = (
        X.with_columns(found.alias(column)) if library == "polars" else X.assign(**{column: found})
    )
    assert len(model.predict(better)) == N
    if change in ("text", "objects of text"):
        np.testing.assert_array_equal(model.predict_proba(better), model.predict_proba(TABLE))


def test_a_missing_value_makes_no_other_type_of_a_column_of_arrow():
    model = clone(TABLES["pipeline"]).set_params(random_state=0).fit(TABLE, Y)
    holes = TABLE.assign(flag=TABLE["flag"].astype("boolean"), a=TABLE["a"].astype("Int64"))
    holes.loc[3, ["flag", "a", "town"]] = None
    found = model.predict_proba(arrow(holes))
    np.testing.assert_array_equal(found, model.predict_proba(holes))
    rest = np.arange(N) != 3
    np.testing.assert_array_equal(found[rest], model.predict_proba(TABLE)[rest])
    again = clone(TABLES["pipeline"]).set_params(random_state=0).fit(arrow(holes), Y)
    assert [*again["t"].get_feature_names_out()] == [*model["t"].get_feature_names_out()]
    table = [DPTableVectorizer(random_state=0).fit(arrow(one)) for one in (TABLE, holes)]
    assert len({tuple(one.get_feature_names_out()) for one in table}) == 1


def test_columns_in_another_order_are_refused_for_their_order():
    model = clone(TABLES["pipeline"]).set_params(random_state=0).fit(TABLE, Y)
    with pytest.raises(ValueError, match=r"names|order"):
        model.predict(TABLE[[*reversed(TABLE.columns)]])
