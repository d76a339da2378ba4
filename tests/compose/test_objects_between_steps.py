"""Columns of objects are refused by their type, so that no error tells of a single value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection

from skdpnoise import BoundsClipper, DPPipeline, DPStandardScaler
from skdpnoise.base import register
from skdpnoise.compose import register_public
from tests._cases import each_value, quick
from tests.compose._pipelines import Notebook

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

N = 60
rng = np.random.default_rng(0)
AGES = rng.integers(20, 60, size=(N, 2)).astype(object)
AGES[AGES == 37] = 38


def constant(**options):
    return SimpleImputer(strategy="constant", keep_empty_features=True, **options)


def outcome(steps, table):
    """Return how a fit ends, and how often it was charged."""
    ledger = Notebook()
    named = [(f"step{place}", clone(step)) for place, step in enumerate(steps)]
    try:
        DPPipeline([*named, ("scale", DPStandardScaler())], ledger=ledger).fit(table)
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}", len(ledger.charges)
    return "fitted", len(ledger.charges)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_no_fit_fails_exactly_if_somebody_is_37(form):
    fill = constant(missing_values=37, fill_value=0)
    found = AGES.copy()
    found[5, 0] = 37
    tables = [form(table) for table in (AGES, found)]
    ends = [outcome([fill, FunctionTransformer(np.reciprocal)], table) for table in tables]
    assert ends[0] == ends[1]
    assert "needs columns of a numeric type" in ends[0][0]
    assert ends[0][1] == 0


def beside_text(step):
    """Return a step on the first column, beside a column of text."""
    return ColumnTransformer([("a", step, ["a"]), ("b", "passthrough", ["t"])], sparse_threshold=0)


def first(step):
    return ColumnTransformer([("a", step, [0])], sparse_threshold=0)


def function(name, **options):
    return FunctionTransformer(getattr(np, name), **options)


KNOTS = [[-1.0], [0.0], [1.0]]
BEFORE = [beside_text(function(name)) for name in ("sqrt", "reciprocal", "square", "log")]
BEFORE += [
    beside_text("passthrough"),
    beside_text(constant(missing_values=37.0, fill_value=0.0)),
    beside_text(MissingIndicator(features="all", missing_values=37.0)),
]
BETWEEN = [
    *(function(name) for name in ("reciprocal", "floor", "sign", "log", "invert", "isnan")),
    function("reciprocal", validate=True),
    FunctionTransformer(),
    constant(missing_values=np.nan, fill_value="x"),
    constant(missing_values=0, fill_value=3),
    MissingIndicator(features="all", missing_values=0),
    OneHotEncoder(categories=[[0.0, 1.0]], handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", sparse_output=False),
    OrdinalEncoder(categories=[[0, 1]], handle_unknown="use_encoded_value", unknown_value=-1),
    Normalizer(),
    Binarizer(),
    PolynomialFeatures(2),
    SplineTransformer(knots=KNOTS, extrapolation="constant"),
    RBFSampler(gamma=1.0),
    PolynomialCountSketch(),
    GaussianRandomProjection(n_components=1),
    BoundsClipper((-1.0, 1.0)),
    DPStandardScaler(),
    DPPipeline([("scale", DPStandardScaler())]),
]
LAST = [None, function("sqrt"), function("reciprocal"), Normalizer(), constant(fill_value=0.0)]
FORMS = ["mixed", "objects"]
ORDINARY = pd.DataFrame({"a": rng.uniform(1.0, 2.0, N), "t": rng.choice(["x", "y"], N)})
RECORDS = [-3.0, 0.0, 37.0, 1e200, -1e-320]


def neighbours(form):
    """Return tables that differ in a record, whose type is declared in the same way."""
    for value in (None, *RECORDS):
        table = ORDINARY.copy()
        if value is not None:
            table.loc[7, "a"] = value
        yield table.astype(object) if form == "objects" else table


@pytest.mark.slow
@each_value(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("before", BEFORE)
def test_a_chain_of_public_steps_fails_for_no_record_or_for_each(before, between, last, form):
    steps = [before, first(between), *([] if last is None else [last])]
    ends = {outcome(steps, table) for table in neighbours(form)}
    assert len(ends) == 1
    assert ends.pop()[1] in (0, 1)


@pytest.mark.parametrize(
    "step", [function("sqrt"), function("reciprocal"), constant(fill_value="x")]
)
def test_a_table_of_objects_is_computed_with_by_nobody_whatever_it_holds(step):
    for table in (AGES, np.where(AGES > 40, "text", AGES), np.full((N, 2), None)):
        text, charges = outcome([step, FunctionTransformer(np.sign)], table)
        assert charges == 0
        assert "needs columns of a numeric type" in text


def test_objects_that_a_user_passes_are_numbers_to_steps_that_convert_them():
    for step in (Normalizer(), PolynomialFeatures(2), function("sqrt", validate=True)):
        assert outcome([step], AGES) == ("fitted", 1)
    assert outcome([], AGES) == ("fitted", 1)
    encoder = OneHotEncoder(categories=[["x", "y"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("a", DPStandardScaler(), ["a"]), ("t", encoder, ["t"])])
    assert outcome([columns], ORDINARY.astype(object)) == ("fitted", 1)


@pytest.mark.parametrize("value", [1, 37, 2.5, "text", None])
def test_polars_guesses_no_type_from_a_value(value):
    table = AGES.copy()
    table[0, 0] = value
    for step in (constant(missing_values=np.nan, fill_value=0.5), FunctionTransformer()):
        frame = pd.DataFrame(table, columns=["a", "b"], dtype=object)
        text, charges = outcome([clone(step).set_output(transform="polars")], frame)
        assert charges == 0
        assert "polars would guess" in text
    passing = ColumnTransformer([("a", "passthrough", ["a"])]).set_output(transform="polars")
    text, charges = outcome([passing], frame)
    assert charges == 0
    assert "polars would guess" in text


class Rooted(FunctionTransformer):
    """A class of somebody else's, which says nothing of what it reads."""


def test_a_class_that_does_not_say_what_it_reads_gets_no_objects_from_other_steps(monkeypatch):
    known = [(cls, register._public.get(cls)) for cls in register._public]
    monkeypatch.setattr(register, "_public", register.ExactClasses(known))
    register_public(Rooted, lambda step: None)
    for table in (AGES, np.where(AGES > 40, 0, AGES)):
        text, charges = outcome([constant(fill_value=0), Rooted(np.reciprocal)], table)
        assert charges == 0
        assert "needs columns of a numeric type" in text
    assert outcome([constant(fill_value=0.0), Rooted(np.square)], AGES.astype(float))[1] == 1
    assert outcome([make_pipeline(Normalizer(), Rooted(np.square))], AGES.astype(float))[1] == 1


@quick("from_pandas")
@pytest.mark.parametrize("form", [lambda table: table, pl.from_pandas, pd.DataFrame.to_numpy])
def test_objects_that_a_pipeline_hands_on_are_refused_by_their_type_whatever_they_hold(form):
    """They come behind a draw: it is paid for, and is the same for every value."""
    ends = set()
    encoder = OneHotEncoder(categories=[["x", "y"]], handle_unknown="ignore", sparse_output=False)
    for value in (1.0, 0.0):
        table = ORDINARY.assign(b=rng.normal(size=N), t=ORDINARY["t"].astype(object))
        table.loc[7, "a"] = value
        found = form(table[["a", "t", "b"]])
        places = ["a", "t", "b"] if hasattr(found, "columns") else [0, 1, 2]
        passing = ("same", "passthrough", places[:2])
        kinds = ("kinds", encoder, places[1:2])
        scale = ("scale", DPStandardScaler(), places[2:])
        inner = ColumnTransformer([passing, kinds, scale], sparse_threshold=0)
        text, charges = outcome(
            [DPPipeline([("inner", inner)]), first(function("reciprocal"))], found
        )
        assert charges == 1
        assert "needs columns of a numeric type" in text
        ends.add(text)
    assert len(ends) == 1


@pytest.mark.parametrize("last", [DPStandardScaler(), DPPipeline([("scale", DPStandardScaler())])])
def test_a_private_step_gets_no_objects_from_a_private_one(last):
    """It would convert single values, and might fail for one."""
    ends = set()
    for value in ("x", 37, 1e200):
        table = ORDINARY.assign(t=ORDINARY["t"].astype(object))
        table.loc[7, "t"] = value
        columns = [("scale", DPStandardScaler(), ["a"]), ("same", "passthrough", ["t"])]
        front = DPPipeline([("columns", ColumnTransformer(columns, sparse_threshold=0))])
        ends.add(outcome([front, last], table))
    assert len(ends) == 1
    text, charges = ends.pop()
    assert charges == 1
    assert "needs columns of a numeric type" in text


@pytest.mark.parametrize(
    ("last", "label"),
    [
        (DPStandardScaler(), "step1"),
        (make_pipeline(DPStandardScaler()), "step1__dpstandardscaler"),
        (ColumnTransformer([("some", DPStandardScaler(), [0])]), "step1__some"),
    ],
)
def test_a_refused_step_is_named_as_in_the_whole(last, label):
    table = ORDINARY.assign(t=ORDINARY["t"].astype(object))
    front = ColumnTransformer([("same", "passthrough", ["t"])])
    text, charges = outcome([front, last], table)
    assert f"The step {label!r} (DPStandardScaler) needs columns of a numeric type" in text
    assert charges == 0
