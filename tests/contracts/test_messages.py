"""A refusal has the right name, the cause, no value, and a remedy that is tried here."""

from __future__ import annotations

import re
from itertools import compress

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer

from skdpnoise import (
    DPLogisticCD,
    DPPipeline,
    DPRidge,
    DPSimpleImputer,
    DPTableVectorizer,
)
from skdpnoise.model_selection import dp_cross_validate
from skdpnoise.privacy import PrivacyGuarantee
from tests._cases import each_value, quick
from tests._storage import every_storage_of_parts
from tests.contracts._register import ENTRIES, Forbidden, each, said, ways

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

N = 80
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(N, 3))
GONE = np.arange(N) % 9 == 4
SUPERVISED = [entry for entry in ENTRIES if entry.target is not None and not entry.by_torch]
ALONE = [entry for entry in ENTRIES if entry.alone and not entry.by_torch]
NUMERIC = [entry for entry in ALONE if entry.reads == "numbers" and entry.spends]


def paid(entry):
    """Return an estimator; where its refusals come late, a ledger fails the test."""
    return entry.estimator(ledger=Forbidden()) if entry.spends else entry.estimator()


def refused(fit):
    """Return what the refusal of a fit says, with all that is attached to it."""
    with pytest.raises((TypeError, ValueError)) as caught:
        fit()
    assert caught.value.__cause__ is None
    text = said(caught.value)
    assert not re.search("storm|8675|oslo", text), "a value is shown"
    return str(caught.value)


def values_of(entry, *, missing=GONE):
    """Return a target as a list, None where it is missing."""
    first = X[:, 0]
    if entry.target == "labels":
        found = np.where(first > 0.0, "storm", "calm").astype(object)
    else:
        found = (np.round(first + 2.0) if entry.target == "counts" else first + 1.0).astype(object)
        found[7] = 8675.0
    found[missing] = None
    return found.tolist()


def _object(values, missing):
    found = np.array(values, dtype=object)
    found[[value is None for value in values]] = missing
    return found


def _floats(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


TARGETS = {
    "list": list,
    "array of None": lambda v: _object(v, None),
    "array of NaN": lambda v: _object(v, np.nan),
    "array of NA": lambda v: _object(v, pd.NA),
    "array": _floats,
    "column of an array": lambda v: _floats(v)[:, np.newaxis],
    "series": lambda v: pd.Series(v, index=range(5, N + 5)),
    "series of objects": lambda v: pd.Series(v, dtype=object),
    "category": lambda v: pd.Series(v, dtype="category"),
    "Float64": lambda v: pd.Series(v, dtype="Float64"),
    "pandas Arrow": lambda v: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(v))),
    "frame": lambda v: pd.DataFrame({"t": v}),
    "polars": pl.Series,
    "polars frame": lambda v: pl.DataFrame({"t": v}),
    "arrow": pa.array,
}
OF_NUMBERS = {"array", "column of an array", "Float64"}


def kept(y, keep):
    if isinstance(y, list):
        return [*compress(y, keep)]
    if isinstance(y, pl.Series | pl.DataFrame):
        return y.filter(keep)
    return y.filter(pa.array(keep)) if isinstance(y, pa.Array) else y[keep]


@quick(
    "list", "DPCoordinateDescentRegressor joint 2", "frame", "DPLogisticCD 2 coordinate", "DPRidge"
)
@each_value(1)
@each(SUPERVISED)
@pytest.mark.parametrize("form", TARGETS)
def test_a_missing_target_says_how_to_leave_such_records_out(entry, form):
    if entry.target == "labels" and form in OF_NUMBERS:
        y = TARGETS[form]([None if v is None else float(v == "calm") for v in values_of(entry)])
    else:
        y = TARGETS[form](values_of(entry))
    text = refused(lambda: paid(entry).fit(X, y))
    assert text.startswith("Input y contains NaN (missing values)")
    assert "Imputer" not in text
    (expression,) = re.findall(r"by keep = (.*?)(?:, or give them|\. A target)", text)
    keep = eval(expression, {"y": y, "numpy": np, "pandas": pd})
    assert np.asarray(keep).tolist() == (~GONE).tolist()
    entry.estimator().fit(X[keep], kept(y, keep))


@each_value(1)
@each(ways(SUPERVISED))
@every_storage_of_parts
def test_a_missing_target_in_parts_says_where_to_leave_such_records_out(entry, storage, stored):
    source = stored(pd.DataFrame(X, columns=["a", "b", "c"]).assign(t=values_of(entry)))
    text = refused(lambda: paid(entry).fit(source[["a", "b", "c"]], source["t"]))
    assert "Input y contains NaN" in text
    if storage == "dask":
        return  # whose own words leave rows out
    (expression,) = re.findall(r"as in (skdpnoise.*?\)\)), or of", text)
    import skdpnoise.data

    rows = eval(expression, {"source": source, "target": "t", "skdpnoise": skdpnoise})
    entry.estimator().fit(rows[["a", "b", "c"]], rows["t"])


@quick("DPLogisticCD 2")
@each(ways(SUPERVISED))
def test_several_targets_are_one_model_each(entry):
    columns = [values_of(entry, missing=[]), values_of(entry, missing=[])[::-1]]
    columns[0][7] = columns[0][6]
    columns[1][N - 8] = columns[1][0]
    table = np.array(columns, dtype=object).T
    table = table if entry.target == "labels" else table.astype(float)
    forms = [table, pd.DataFrame(table), table.tolist(), pl.DataFrame(table.tolist(), orient="row")]
    for y in forms:
        text = refused(lambda y=y: paid(entry).fit(X, y))
        assert f"({N}, 2)" in text
        (expression,) = re.findall(r"each column, (.*?), with a part of epsilon", text)
        for k in (0, 1):
            target = eval(expression, {"y": y, "numpy": np, "k": k})
            entry.estimator(epsilon=0.5, delta=5e-7).fit(X, target)
    if entry.target == "labels":
        y = pd.get_dummies(pd.Series(columns[0])).astype(int)
        text = refused(lambda: paid(entry).fit(X, y))
        (expression,) = re.findall(r"become one column by (.*?)\.$", text)
        entry.estimator().fit(X, eval(expression, {"y": y, "numpy": np}))


def lazy(table, *columns):
    return pl.DataFrame(table, schema=list(columns) or list("abc")).lazy()


@quick("DPGridSearchCV DPCoordinateDescentRegressor", "DPLogisticCD 2", "DPSimpleImputer")
@each(ways([entry for entry in ENTRIES if not entry.by_torch]))
def test_a_lazy_frame_is_to_be_collected_wherever_data_are_passed(entry):
    y = entry.y(X)
    frame = lazy(X).collect()
    model = entry.estimator().fit(frame, y)
    calls = {"X": lambda data: paid(entry).fit(data, y)}
    if entry.target is not None:
        calls["y"] = lambda data: paid(entry).fit(frame, data)
    if hasattr(entry.make, "predict"):
        calls["X of predict"] = model.predict
        calls["X of score"] = lambda data: model.score(data, y)
        calls["y of score"] = lambda data: model.score(frame, data)
    if hasattr(model, "transform"):
        calls["X of transform"] = model.transform
    if entry.spends:
        calls["groups"] = lambda data: paid(entry).fit(frame, y, groups=data)
    for name, call in calls.items():
        name = name.partition(" ")[0]
        data = lazy(X) if name == "X" else lazy(np.arange(N)[:, np.newaxis], "g")
        text = refused(lambda call=call, data=data: call(data))
        assert f"the rows of {name}," in text
        assert f"Pass {name}.collect()." in text
    assert entry.estimator().fit(lazy(X).collect(), y) is not None
    if entry.target is not None:
        entry.estimator().fit(frame, pl.DataFrame({"y": y}).lazy().collect())


def test_lazy_frames_of_scores_and_searches_are_to_be_collected():
    from skdpnoise import metrics

    guarantee, zeros = PrivacyGuarantee(1.0), np.zeros(N)
    data = lazy(zeros[:, np.newaxis], "y")
    ways = [
        lambda *both: metrics.private_accuracy_score(*both, guarantee),
        lambda *both: metrics.private_r2_score(*both, guarantee, target_bounds=(0, 1)),
        lambda *both: metrics.private_roc_auc_score(*both, guarantee, pos_label=1),
        lambda *both: metrics.private_log_loss(*both, guarantee, labels=[0, 1]),
    ]
    for way in ways:
        for both, name in (((data, zeros), "y_true"), ((zeros, data), "y_")):
            text = refused(lambda way=way, both=both: way(*both))
            assert f"the rows of {name}" in text
            assert ".collect()" in text
    for both, name in (((lazy(X), zeros), "X"), ((X, data), "y")):
        text = refused(lambda both=both: dp_cross_validate(DPRidge(), *both))
        assert f"Pass {name}.collect()." in text


def with_text(kind):
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    city = np.where(X[:, 1] > 0.0, "rome", "oslo")
    if kind.startswith("polars"):
        frame = pl.DataFrame(frame).with_columns(city=pl.Series(city))
        return frame.with_columns(pl.col("city").cast(pl.Categorical)) if "cat" in kind else frame
    frame = frame.assign(city=pd.Series(city, dtype=kind.partition(" ")[0]))
    if "missing" in kind:
        frame.loc[3, "city"] = None
    return frame


@quick("object missing-DPLogisticCD 2", "category-DPPCA", "polars-DPCoordinateDescentRegressor")
@each_value(1)
@each(ways(NUMERIC))
@pytest.mark.parametrize(
    "kind", ["object", "object missing", "string", "category", "str", "polars", "polars category"]
)
def test_a_frame_with_text_is_for_a_table_vectorizer(entry, kind):
    frame, y = with_text(kind), entry.y(X)
    text = refused(lambda: paid(entry).fit(frame, y))
    assert "these columns of X are not declared as numbers: 'city'" in text
    assert "age" not in text
    assert "OneHotEncoder" not in text
    advised = re.findall(r"DPPipeline\(.*?\)\]\)", text)
    assert advised == [
        f"DPPipeline([('table', DPTableVectorizer()), ('model', {entry.make.__name__}(...))])"
    ]
    steps = [("table", DPTableVectorizer()), ("model", entry.estimator())]
    DPPipeline(steps).fit(frame, y)


@each(ways(NUMERIC))
def test_an_array_with_text_is_for_a_table_vectorizer_too(entry):
    table, y = with_text("object").to_numpy(dtype=object), entry.y(X)
    text = refused(lambda: paid(entry).fit(table, y))
    assert "X has text" in text
    assert "missing" not in text
    DPPipeline([("table", DPTableVectorizer()), ("model", entry.estimator())]).fit(table, y)


@each(ways([entry for entry in NUMERIC if entry.target is not None]))
def test_text_in_a_column_that_held_numbers_is_to_be_converted(entry):
    model = entry.estimator().fit(pd.DataFrame(X, columns=list("abc")), entry.y(X))
    new = pd.DataFrame(X, columns=list("abc")).astype({"b": object})
    new.loc[3, "b"] = "oslo"
    text = refused(lambda: model.predict(new))
    assert "needs numbers in column" in text
    assert "'b'" in text
    assert "'a'" not in text
    model.predict(new.assign(b=pd.to_numeric(new["b"], errors="coerce").fillna(0.0)))


@each(ways(NUMERIC))
def test_a_missing_number_is_for_an_imputer(entry):
    table, y = np.where(X > 0.9, np.nan, X), entry.y(X)
    text = refused(lambda: paid(entry).fit(table, y))
    assert "Input X contains NaN" in text
    (expression,) = re.findall(r"for example by (SimpleImputer\(.*?\))\.", text)
    for imputer in (DPSimpleImputer(), eval(expression, {"SimpleImputer": SimpleImputer})):
        DPPipeline([("fill", imputer), ("model", entry.estimator())]).fit(table, y)


TEXTS = ["good oslo film" if x > 0.0 else "bad film" for x in X[:, 0]]


@pytest.mark.parametrize(
    "read",
    [
        list,
        lambda texts: np.array(texts, dtype=object),
        pd.Series,
        lambda texts: pd.Series(texts, dtype="string"),
        pl.Series,
    ],
    ids=["list", "array", "series", "string", "polars"],
)
def test_a_missing_text_is_to_be_filled(read):
    texts = read([None if gone else text for text, gone in zip(TEXTS, GONE, strict=True)])
    model = DPLogisticCD(feature_bounds=(-1.0, 1.0))
    hashed = HashingVectorizer(n_features=16, decode_error="replace")
    pipeline = DPPipeline([("hash", hashed), ("model", model)], ledger=Forbidden())
    y = X[:, 0] > 0.0
    text = refused(lambda: pipeline.fit(texts, y))
    found = re.findall(r"as in (.*?\))(?: or, in polars, (.*?\)),|$)", text)
    if isinstance(texts, list):
        (expression,) = re.findall(r"as in (\[.*\])\.", text)
        filled = eval(expression, {"X": texts})
    else:
        assert "HashingVectorizer" in text
        assert "a text for each record" in text
        expression = found[0][isinstance(texts, pl.Series)]
        filled = eval(expression, {"texts": texts, "pandas": pd})
    pipeline.set_params(ledger=None).fit(filled, y)


def test_an_error_of_a_hidden_step_says_no_more_than_before():
    """A public step of another kind, which fails for a value, still only says that it did."""
    from sklearn.preprocessing import PolynomialFeatures

    steps = [("powers", PolynomialFeatures()), ("model", DPRidge())]
    table = X.astype(object)
    table[3, 1] = "oslo"
    text = refused(lambda: DPPipeline(steps, ledger=Forbidden()).fit(table, X[:, 0]))
    assert "needs a text" not in text
