"""Only the data that the user passes are refused for their values, not what steps make of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.utils import assert_all_finite

from skdpnoise import (
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
)
from skdpnoise.compose import register_private
from tests._cases import each_value, quick
from tests.compose._pipelines import Notebook

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
TABLE = rng.normal(size=(200, 2))
Y = (TABLE[:, 0] > 0.0).astype(int)
# Nothing is released by it: what it does is to say where a value is negative, and where 0.
THRESHOLD = DPMinMaxScaler(feature_bounds=(0.5, 1.5))
SCALE, MODEL = DPStandardScaler(), ("model", DPLogisticCD(classes=[0, 1]))
LOG, ROOT = FunctionTransformer(np.log), FunctionTransformer(np.sqrt)
FILL = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
KNOTS = np.linspace([-1.0, -2.0], [1.0, 2.0], 5)


@register_private
class Theirs(DPLogisticCD):
    """A private step of another author, which takes any value."""


@register_private
class Looking(DPLogisticCD):
    """One that refuses what is not finite, before it charges."""

    def fit(self, X, y, groups=None, **params):
        assert_all_finite(X)
        return super().fit(X, y, groups, **params)


def side_by_side(*steps, **options):
    named = [(f"step{place}", step, [place]) for place, step in enumerate(steps)]
    return ColumnTransformer(named, sparse_threshold=0, **options)


def outcome(steps, table, y=Y):
    """Return how a fit ends, and how often it was charged."""
    ledger = Notebook()
    try:
        DPPipeline(steps, epsilon=5.0, ledger=ledger).fit(table, y)
    except ValueError:
        return "refused", len(ledger.charges)
    return "fitted", len(ledger.charges)


BEHIND = [
    [LOG],
    [LOG, SCALE],
    [ROOT, BoundsClipper((0.0, 1.0))],
    [LOG, PolynomialFeatures(3)],
    [LOG, SplineTransformer(knots=KNOTS, extrapolation="continue")],
    [LOG, side_by_side("passthrough", SCALE)],
    [FeatureUnion([("log", LOG), ("root", ROOT)]), PolynomialFeatures(2)],
    [FunctionTransformer(np.reciprocal), FunctionTransformer(np.exp, validate=True)],
    [LOG, DPPipeline([("powers", PolynomialFeatures(2)), ("scale", SCALE)])],
    [LOG, side_by_side(Pipeline([("powers", PolynomialFeatures(2)), ("scale", SCALE)]), "drop")],
]


@quick("SplineTransformer")
@pytest.mark.parametrize("behind", BEHIND, ids=lambda steps: type(steps[-1]).__name__)
def test_a_threshold_before_public_steps_does_not_answer_whether_a_record_is_beyond_it(behind):
    """Else bisection would find the smallest value of a column, for nothing."""
    steps = [("threshold", THRESHOLD)]
    steps += [(f"step{place}", step) for place, step in enumerate(behind)]
    below = np.append(1.0 + 0.1 * TABLE.clip(-2.0, 2.0)[1:], [[0.49, 1.0]], axis=0)
    for table in (below.clip(0.6, None), below, np.where(below == 0.49, 0.5, below)):
        assert outcome([*steps, MODEL], table) == ("fitted", 1)


ANSWERING = [
    [LOG, PolynomialFeatures(2)],
    [DPPipeline([("log", LOG), ("powers", PolynomialFeatures(2)), ("scale", SCALE)])],
    [side_by_side(Pipeline([("log", LOG), ("powers", PolynomialFeatures(2))]), SCALE)],
]


@pytest.mark.parametrize("front", ANSWERING, ids=lambda steps: type(steps[-1]).__name__)
def test_public_steps_before_a_private_one_of_another_author_refuse_no_value_either(front):
    named = [(f"step{place}", step) for place, step in enumerate(front)]
    for last in (Theirs(classes=[0, 1]), DPPipeline([("theirs", Theirs(classes=[0, 1]))])):
        for table in (TABLE.clip(0.1, None), TABLE):
            assert outcome([*named, ("model", last)], table) == ("fitted", 1)
            search = DPGridSearchCV(Pipeline([*named, ("m", last)]), {}, epsilon=5.0)
            assert search.fit(table, Y).best_params_ == {}


@pytest.mark.parametrize("nested", [False, True])
def test_a_private_step_of_another_author_that_refuses_a_computed_value_costs_the_reservation(
    nested,
):
    """Its error tells whether a value is below 0."""
    steps = [("log", LOG), ("model", Looking(classes=[0, 1]))]
    for each in [steps, [("within", DPPipeline(steps))]][nested:]:
        ledger = PrivacyLedger("people", 20.0, 1e-4, "memory")
        with pytest.raises(ValueError, match="NaN"):
            DPPipeline(each, epsilon=5.0, ledger=ledger).fit(TABLE, Y)
        assert (ledger.total().n_charges, ledger.total().n_returned) == (1, 0)


def test_what_was_fitted_to_is_transformed_as_well():
    below = np.append(1.0 + 0.1 * TABLE.clip(-2.0, 2.0)[1:], [[0.49, 1.0]], axis=0)
    steps = [("threshold", THRESHOLD), ("log", LOG), ("clip", BoundsClipper((0.0, 1.0)))]
    assert DPPipeline([*steps, ("scale", SCALE)]).fit_transform(below).shape == below.shape


@quick("transformer2")
@pytest.mark.parametrize("transformer", [[LOG], [LOG, SCALE], [LOG, BoundsClipper((0.0, 1.0))]])
def test_a_threshold_on_the_target_does_not_answer_either(transformer):
    named = [(f"step{place}", step) for place, step in enumerate([THRESHOLD, *transformer])]
    target = TransformedTargetRegressor(
        DPCoordinateDescentRegressor(), transformer=Pipeline(named), check_inverse=False
    )
    y = 1.0 + 0.1 * TABLE[:, 0].clip(-2.0, 2.0)
    for changed in (y, np.append(y[1:], 0.49)):
        assert outcome([("model", target)], TABLE, changed) == ("fitted", 1)


@pytest.mark.parametrize("front", [[], [("s", SCALE)]])
def test_a_target_that_was_computed_is_refused_by_no_step_of_a_pipeline_within(front):
    within = DPPipeline([("s", SCALE), ("m", DPCoordinateDescentRegressor())])
    target = TransformedTargetRegressor(
        within, func=np.log, inverse_func=np.exp, check_inverse=False
    )
    y = np.exp(0.1 * TABLE[:, 0])
    for changed in (y, np.append(y[1:], 0.0)):
        assert outcome([*front, ("model", target)], TABLE, changed) == ("fitted", 1)


def test_labels_are_not_computed_so_that_none_of_them_is_unknown():
    target = TransformedTargetRegressor(
        DPLogisticCD(classes=[0, 1]), func=np.sign, inverse_func=np.sign, check_inverse=False
    )
    assert outcome([("model", target)], TABLE) == ("refused", 0)


# Where a value that is missing or not finite is refused, and where something is done about it
AS_PASSED = {
    "first": [SCALE],
    "behind passthrough": ["passthrough", SCALE],
    "a public step that looks": [PolynomialFeatures(2)],
    "clipped": [BoundsClipper((-1.0, 1.0))],
    "a column": [side_by_side(SCALE, "passthrough")],
    "passed by": [side_by_side("passthrough", SCALE)],
    "the remainder": [ColumnTransformer([("s", SCALE, [1])], remainder="passthrough")],
    "in a pipeline": [side_by_side(Pipeline([("same", "passthrough"), ("s", SCALE)]), "drop")],
    "in a union": [FeatureUnion([("same", "passthrough"), ("fill", FILL)])],
    "nested": [DPPipeline([("s", SCALE)])],
    "nested and passed by": [DPPipeline([("c", side_by_side("passthrough", SCALE))])],
    "nested before a step that looks": [DPPipeline([("p", PolynomialFeatures(2)), ("s", SCALE)])],
}
HANDLED = {
    "filled": [FILL],
    "filled and scaled": [FILL, SCALE],
    "passed by and filled": [side_by_side("passthrough", SCALE), FILL],
    "dropped": [side_by_side("drop", SCALE)],
    "encoded": [
        side_by_side(OneHotEncoder(categories=[[0.0]], handle_unknown="ignore"), SCALE),
    ],
}


@quick("in a pipeline", "a column", "inf", "first", "nested")
@each_value(1)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("steps", AS_PASSED.values(), ids=AS_PASSED)
def test_a_value_of_the_table_that_is_not_finite_is_refused_where_it_is_read_first(steps, value):
    table = TABLE.copy()
    table[3, 0] = value
    named = [(f"step{place}", step) for place, step in enumerate(steps)]
    assert outcome([*named, MODEL], table) == ("refused", 0)


@quick("default")
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_columns_that_pass_by_are_looked_at_in_every_kind_of_table(output):
    columns = ColumnTransformer([("same", "passthrough", ["a"]), ("s", clone(SCALE), ["b"])])
    steps = [("columns", columns.set_output(transform=output)), ("scale", DPStandardScaler())]
    complete = pd.DataFrame(TABLE, columns=["a", "b"])
    missing = complete.copy()
    missing.loc[3, "a"] = np.nan
    for kind in ("float64", "Float64"):
        assert outcome([*steps, MODEL], complete.astype(kind)) == ("fitted", 1)
        assert outcome([*steps, MODEL], missing.astype(kind)) == ("refused", 0)
    target = TransformedTargetRegressor(
        DPCoordinateDescentRegressor(), func=np.exp, inverse_func=np.log, check_inverse=False
    )
    assert outcome([("model", target)], TABLE, missing["a"].astype("Float64")) == ("refused", 0)


@quick("passed by and filled", "encoded")
@pytest.mark.parametrize("steps", HANDLED.values(), ids=HANDLED)
def test_a_missing_value_reaches_the_step_that_does_something_about_it(steps):
    table = TABLE.copy()
    table[3, 0] = np.nan
    named = [(f"step{place}", step) for place, step in enumerate(steps)]
    assert outcome([*named, MODEL], table) == ("fitted", 1)


@pytest.mark.parametrize("target", [{}, {"func": np.exp, "inverse_func": np.log}])
def test_a_missing_target_is_refused_before_it_is_transformed(target):
    regressor = DPCoordinateDescentRegressor()
    y = TABLE[:, 0].copy()
    y[3] = np.nan
    for model in (regressor, TransformedTargetRegressor(regressor, check_inverse=False, **target)):
        for front in ([("s", SCALE)], [("s", SCALE), ("log", LOG)]):
            assert outcome([*front, ("model", model)], TABLE, y) == ("refused", 0)


# Parallel steps

WIDE = {
    "union": FeatureUnion([("a", SCALE), ("b", THRESHOLD)], n_jobs=2),
    "columns": side_by_side(SCALE, THRESHOLD, n_jobs=2),
    "both": FeatureUnion([("a", side_by_side(SCALE, THRESHOLD, n_jobs=2)), ("b", LOG)], n_jobs=2),
    "nested": DPPipeline([("u", FeatureUnion([("a", SCALE), ("b", THRESHOLD)], n_jobs=2))]),
}


@pytest.mark.parametrize("wide", WIDE.values(), ids=WIDE)
def test_parallel_steps_take_what_others_computed_as_well(wide):
    narrow = DPStandardScaler(feature_bounds=(-1e-2, 1e-2))
    steps = [("narrow", narrow), ("exp", FunctionTransformer(np.exp)), ("wide", wide), MODEL]
    table = 1e-3 * TABLE
    table[0] = 5.0
    assert outcome(steps, table) == ("fitted", 1)


def test_private_steps_of_a_search_take_what_others_computed_in_other_threads():
    narrow = DPStandardScaler(feature_bounds=(-1e-2, 1e-2))
    steps = [("narrow", narrow), ("exp", FunctionTransformer(np.exp)), ("wide", WIDE["columns"])]
    table = 1e-3 * TABLE
    table[:20] = 5.0
    search = DPGridSearchCV(Pipeline([*steps, MODEL]), {"model__alpha": [0.0, 0.1]}, epsilon=5.0)
    assert hasattr(search.fit(table, Y), "best_estimator_")
