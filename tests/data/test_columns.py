"""One missing value does not change how all other records are read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdpnoise import BoundsClipper, DPGridSearchCV, DPLogisticCD, DPPipeline, DPStandardScaler
from skdpnoise.base.register import _of_sklearn, _public
from skdpnoise.data.columns import by_declared_type, is_numeric
from skdpnoise.inspection.auditing._fingerprint import differences
from tests._cases import each_value, quick
from tests._replay import two_runs
from tests.compose._pipelines import Notebook
from tests.compose.test_public_register import CASES

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

N = 60
CODES = np.random.default_rng(0).integers(0, 2, N)
NUMBERS, TRUTHS, TEXTS = [1, 2], [False, True], ["u", "v"]


def polars(dtype):
    return lambda values: pl.DataFrame({"c": pl.Series(values, dtype=dtype)})


def pandas(dtype):
    return lambda values: pd.DataFrame({"c": pd.array(values, dtype=dtype)})


def category(kinds):
    return lambda values: pd.DataFrame({"c": pd.Categorical(values, categories=kinds)})


# How a column can be declared that may have missing values, and what it has
KINDS = {
    "polars Int8": (polars(pl.Int8), NUMBERS),
    "polars Int64": (polars(pl.Int64), NUMBERS),
    "polars UInt8": (polars(pl.UInt8), NUMBERS),
    "polars Decimal": (polars(pl.Decimal(10, 2)), NUMBERS),
    "polars Boolean": (polars(pl.Boolean), TRUTHS),
    "polars Float32": (polars(pl.Float32), [1.0, 2.0]),
    "polars String": (polars(pl.String), TEXTS),
    "polars Categorical": (polars(pl.Categorical), TEXTS),
    "polars Enum": (polars(pl.Enum(TEXTS)), TEXTS),
    "pandas Int64": (pandas("Int64"), NUMBERS),
    "pandas Float32": (pandas("Float32"), [1.0, 2.0]),
    "pandas boolean": (pandas("boolean"), TRUTHS),
    "pandas string": (pandas("string"), TEXTS),
    "pandas int64[pyarrow]": (pandas("int64[pyarrow]"), NUMBERS),
    "pandas bool[pyarrow]": (pandas("bool[pyarrow]"), TRUTHS),
    "pandas category of int": (category(NUMBERS), NUMBERS),
    "pandas category of bool": (category(TRUTHS), TRUTHS),
    "pandas category of text": (category(TEXTS), TEXTS),
    "pandas category of Int64": (category(pd.array(NUMBERS, dtype="Int64")), NUMBERS),
    "pandas object": (pandas(object), NUMBERS),
    "array of objects": (lambda values: np.array(values, dtype=object)[:, np.newaxis], NUMBERS),
}


def two_tables(kind):
    """Return a table, the same without one of its values, and the values that it may have."""
    build, values = KINDS[kind]
    complete = [values[code] for code in CODES]
    return build(complete), build([*complete[:7], None, *complete[8:]]), values


def public_steps(values):
    """Yield every registered class, for one column of such values."""
    fill = values[0]
    yield OneHotEncoder(categories=[values], handle_unknown="ignore", sparse_output=False)
    yield OrdinalEncoder(categories=[values], handle_unknown="use_encoded_value", unknown_value=-1)
    yield SimpleImputer(strategy="constant", fill_value=fill, keep_empty_features=True)
    yield MissingIndicator(features="all")
    yield FunctionTransformer()
    for function in (np.reciprocal, np.square, np.invert, np.exp2, np.logical_not):
        yield FunctionTransformer(function)
    yield from (Normalizer(), Binarizer(threshold=1.5), PolynomialFeatures(2))
    yield SplineTransformer(knots=[[0.0], [1.0], [3.0]], extrapolation="constant")
    yield from (GaussianRandomProjection(1, random_state=0), RBFSampler(gamma=1.0, random_state=0))
    yield from (SparseRandomProjection(1, random_state=0), PolynomialCountSketch(random_state=0))
    yield BoundsClipper((0.0, 1.5))


STEPS = [type(step) for step in public_steps(NUMBERS)]


def read(step, table):
    """Return the state, the message and the output of a step in front of private ones."""
    ledger = Notebook()
    try:
        model = DPPipeline(
            [("step", clone(step)), ("scale", DPStandardScaler(feature_bounds=(-9.0, 9.0)))],
            ledger=ledger,
        ).fit(table)
    except (ValueError, TypeError) as error:
        return str(error), len(ledger.charges), None, None
    fitted = model.named_steps["step"]
    names = list(fitted.get_feature_names_out()) if hasattr(fitted, "get_feature_names_out") else []
    output = fitted.transform(by_declared_type("Test", table))
    return names, len(ledger.charges), fitted, output


def may_be_refused(message):
    """Return whether a message says that the table which was passed has a missing value."""
    return isinstance(message, str) and ("contains NaN" in message or "cannot take" in message)


@quick("FunctionTransformer", "polars Boolean", "pandas int64[pyarrow]")
@pytest.mark.usefixtures("the_same_words")
@each_value(1)
@pytest.mark.parametrize("place", range(len(STEPS)), ids=[one.__name__ for one in STEPS])
@pytest.mark.parametrize("kind", KINDS)
def test_one_missing_value_changes_neither_the_state_nor_the_types_of_a_public_step(kind, place):
    complete, missing, values = two_tables(kind)
    step = list(public_steps(values))[place]
    (here, n_here, first, output), (there, n_there, second, other) = (
        read(step, table) for table in (complete, missing)
    )
    if first is None or second is None:  # refused for its type, or since a value is missing
        assert (n_here if first is None else n_there) == 0
        assert here == there or may_be_refused(there)
        return
    assert (here, n_here) == (there, n_there)
    assert differences(first, second) == []
    assert type(output) is type(other)
    if isinstance(output, np.ndarray):
        assert output.dtype == other.dtype
        same = np.arange(N) != 7
        assert np.array_equal(output[same], other[same], equal_nan=output.dtype.kind == "f")


def test_every_registered_class_is_among_these_or_reads_no_columns():
    assert {*STEPS} <= {*_public, *_of_sklearn()}
    others = {type(step) for step, _ in CASES} - {*STEPS}
    assert {one.__name__ for one in others} <= {
        "HashingVectorizer",
        "FeatureHasher",
        "TfidfTransformer",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_type_of_a_column_is_that_which_it_is_declared_to_have(kind):
    complete, missing, values = two_tables(kind)
    found = [by_declared_type("Test", table) for table in (complete, missing)]
    types = [
        list(getattr(table, "dtypes", [table.dtype] if kind[0] == "a" else [])) for table in found
    ]
    assert types[0] == types[1]
    arrays = [np.asarray(table) for table in found]
    assert arrays[0].dtype == arrays[1].dtype
    numeric = isinstance(values[0], int | float) and "object" not in kind
    assert [is_numeric(table) for table in found] == [numeric] * 2
    assert (arrays[0].dtype.kind == "f") == numeric
    assert arrays[0].dtype.itemsize == (4 if "Float32" in kind else 8)


def test_columns_that_cannot_change_their_type_stay_as_they_are():
    table = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.5]})
    assert by_declared_type("Test", table) is table
    assert by_declared_type("Test", table.to_numpy(dtype=object)).dtype == object
    days = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", None])})
    assert by_declared_type("Test", days) is days


def test_a_converted_frame_keeps_its_index_and_its_names():
    table = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": ["u", "v"]}, index=[7, 7])
    table.columns = ["same", "same"]
    found = by_declared_type("Test", table)
    assert list(found.columns) == ["same", "same"]
    assert list(found.index) == [7, 7]
    assert [dtype.kind for dtype in found.dtypes] == ["f", "O"]


def test_frames_of_a_library_whose_types_are_not_known_are_refused():
    class Frame:
        columns, shape = ("a",), (len(CODES), 1)

    with pytest.raises(TypeError, match="frames of pandas or polars, and tables of Arrow"):
        DPPipeline([("scale", DPStandardScaler())]).fit(Frame())


# Whole fits

BIG = 4000
AMOUNT = np.random.default_rng(1).normal(size=BIG)
DIGITS = np.random.default_rng(2).integers(0, 10, BIG)
LABELS = (AMOUNT > 0.0).astype(int)


def amounts(kind, *, missing):
    digits = [int(digit) for digit in DIGITS]
    digits[7] = None if missing else digits[7]
    if kind == "polars":
        return pl.DataFrame({"a": AMOUNT, "c": pl.Series(digits, dtype=pl.Int64)})
    return pd.DataFrame({"a": AMOUNT, "c": pd.Categorical(digits, categories=range(10))})


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["polars", "category"])
def test_a_search_scores_the_same_model_with_and_without_a_missing_value(kind):
    """The score is 1, or 0 where parts of the records are read as other types."""
    fill = SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)
    columns = ColumnTransformer([("n", DPStandardScaler(), ["a"]), ("c", fill, ["c"])])
    steps = DPPipeline([("columns", columns), ("model", DPLogisticCD(classes=[0, 1]))])
    for missing in (False, True):
        search = DPGridSearchCV(steps, {"model__alpha": [0.0, 0.01]}, epsilon=5.0)
        search.fit(amounts(kind, missing=missing), LABELS)
        assert search.best_score_ > 0.8
        predicted = search.predict(amounts(kind, missing=not missing))
        assert np.mean(predicted == LABELS) > 0.8


@each_value(1)
@pytest.mark.parametrize("kind", ["polars Int64", "polars Boolean", "pandas category of int"])
@pytest.mark.parametrize("searched", [False, True])
def test_on_frozen_releases_one_missing_value_leaves_the_same_model(kind, searched):
    """What differs is what the noise of each release makes up for, and nothing beside it."""
    complete, missing, values = two_tables(kind)
    fill = SimpleImputer(strategy="constant", fill_value=values[0], keep_empty_features=True)
    kinds = OneHotEncoder(categories=[values], handle_unknown="ignore", sparse_output=False)
    fitted = [("fill", fill), ("kinds", kinds), ("model", DPLogisticCD(classes=[0, 1]))]
    model = DPPipeline(fitted)
    if searched:
        model = DPGridSearchCV(model, {"model__alpha": [0.0, 0.1]}, strategy="noisy_max")

    def run(table, y):
        found = clone(model).fit(table, y)
        return found.best_estimator_.steps_ if searched else found.steps_

    replay = two_runs(run, (complete, CODES), (missing, CODES), seed=0)
    replay.check_same()


@pytest.mark.parametrize("kind", ["polars", "category"])
def test_a_pipeline_releases_the_same_with_and_without_a_missing_value(kind):
    ages = FunctionTransformer(np.reciprocal)
    means = []
    for missing in (False, True):
        steps = [("recip", ages), ("scale", DPStandardScaler(feature_bounds=(-1.0, 1.0)))]
        table = amounts(kind, missing=missing)[["c"]]
        model = DPPipeline(steps, epsilon=5.0, random_state=0).fit(table)
        means.append(model.named_steps["scale"].mean_[0])
    assert abs(means[0] - means[1]) < 2.0 / BIG + 1e-9  # one record of a bounded column
