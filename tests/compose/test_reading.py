"""What is read and checked before the first draw changes nothing, and is heard once."""

from __future__ import annotations

import contextlib
import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPipeline,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
)
from skdpnoise.base import register
from skdpnoise.data.columns import without_lists
from skdpnoise.inspection import audit
from tests._cases import each_value, quick
from tests.compose._pipelines import Notebook

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
TABLE = rng.normal(size=(200, 2))
Y = (TABLE[:, 0] > 0.0).astype(int)
MODEL = DPLogisticCD(classes=[0, 1])
NOTHING_RELEASED = DPMinMaxScaler(feature_bounds=(-3.0, 3.0))


@pytest.mark.slow
@pytest.mark.parametrize("first", [DPRobustScaler(), DPPCA(n_components=1)], ids=str)
def test_a_replay_sees_the_fit_and_not_the_checks_before_it(first):
    pipeline = DPPipeline([("first", first), ("model", MODEL)])
    found = audit(pipeline, TABLE[:24], Y[:24], method="replay", random_state=0)
    assert found.passed


@pytest.mark.slow
def test_a_replay_still_refutes_a_pipeline_with_a_step_that_does_not_pay():
    pipeline = DPPipeline([("first", StandardScaler()), ("model", MODEL)], public=["first"])
    data = np.append(TABLE[:23], [[1e3, -1e3]], axis=0)
    found = audit(pipeline, data, Y[:24], method="replay", random_state=0)
    assert not found.passed


IN_PLACE = {
    "public": [Binarizer(threshold=0.5, copy=False)],
    "two": [Normalizer(copy=False), BoundsClipper((-1.0, 1.0), copy=False)],
    "private": [DPStandardScaler(feature_bounds=(-4.0, 4.0), copy=False)],
    "columns": [
        ColumnTransformer([("n", Normalizer(copy=False), [0, 1])], sparse_threshold=0),
        BoundsClipper((-1.0, 1.0), copy=False),
    ],
    "union": [FeatureUnion([("n", Normalizer(copy=False)), ("same", "passthrough")])],
    "nested": [DPPipeline([("s", DPStandardScaler(copy=False)), ("n", Normalizer(copy=False))])],
}


@pytest.mark.parametrize("steps", IN_PLACE.values(), ids=IN_PLACE)
def test_what_steps_do_in_place_is_done_once(steps):
    """A refusal by the ledger ends the fit before the first draw: until then nothing is changed."""

    class Refusing(Notebook):
        def charge(self, label, cost, **facts):
            raise ValueError("spent")

    table = np.asfortranarray(TABLE)
    kept = table.copy()
    named = [(f"step{place}", step) for place, step in enumerate(steps)]
    with pytest.raises(ValueError, match="spent"):
        DPPipeline([*named, ("model", MODEL)], ledger=Refusing()).fit(table, Y)
    np.testing.assert_array_equal(table, kept)


def test_a_step_that_is_vouched_for_checks_a_copy():
    class Doubling(Normalizer):
        def transform(self, X):
            X *= 2.0
            return X

    table = TABLE.copy()
    steps = [("double", Doubling()), ("model", MODEL)]
    DPPipeline(steps, public=["double"]).fit(table, Y)
    np.testing.assert_array_equal(table, 2.0 * TABLE)


@each_value(1)
@pytest.mark.parametrize("front", [[], [("scale", DPStandardScaler())]])
@pytest.mark.parametrize("model", [MODEL, DPCoordinateDescentRegressor()], ids=str)
def test_a_warning_of_a_column_of_targets_comes_once_and_before_the_charge(front, model):
    ledger = Notebook()
    pipeline = DPPipeline([*front, ("model", model)], ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataConversionWarning)
        with pytest.raises(DataConversionWarning, match="column-vector"):
            pipeline.fit(TABLE, Y[:, None])
    assert ledger.charges == []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", DataConversionWarning)
        pipeline.fit(TABLE, Y[:, None])
    assert [one.category for one in heard].count(DataConversionWarning) == 1


# What releases nothing

INNER = DPPipeline([("bounded", NOTHING_RELEASED)])


@quick("0.0-steps5-1")
@each_value(1)
@pytest.mark.parametrize(
    ("steps", "n_charges"),
    [
        ([("s", NOTHING_RELEASED)], 0),
        ([("s", INNER)], 0),
        ([("s", NOTHING_RELEASED), ("m", MODEL)], 1),
        ([("s", INNER), ("m", MODEL)], 1),
        ([("s", DPPipeline([("inner", INNER)])), ("m", MODEL)], 1),
        ([("s", FeatureUnion([("a", INNER), ("b", DPStandardScaler())])), ("m", MODEL)], 1),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_part_that_releases_nothing_is_fitted_and_charged_for_nothing(steps, n_charges, delta):
    ledger = Notebook()
    model = DPPipeline(steps, epsilon=3.0, delta=delta, ledger=ledger).fit(TABLE, Y)
    assert len(ledger.charges) == n_charges
    assert bool(model.privacy_.releases) == bool(n_charges)


@pytest.mark.slow
def test_a_search_takes_a_pipeline_that_releases_nothing_before_its_model():
    pipeline = Pipeline([("s", INNER), ("m", MODEL)])
    search = DPGridSearchCV(pipeline, {"m__alpha": [0.0, 0.1]}, epsilon=3.0).fit(TABLE, Y)
    assert search.privacy_.releases


# Lists

ENCODER = OneHotEncoder(categories=[[0, 1, 2]], handle_unknown="ignore", sparse_output=False)
IMPUTER = SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)
NUMBERS = [[k % 3] for k in range(60)]


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("as_row", [list, tuple])
@pytest.mark.parametrize("search", [False, True])
def test_no_value_of_a_list_decides_names_or_types(search, as_row):
    found = set()
    for last in (1, 2.0, 1.5, True, np.float32(1.0), None, 2**70):
        rows = as_row([as_row(row) for row in [*NUMBERS, [last]]])
        steps = [("fill", IMPUTER), ("kinds", ENCODER), ("model", MODEL)]
        if search:
            fitted = DPGridSearchCV(Pipeline(steps), {"model__alpha": [0.0, 0.1]}, epsilon=5.0)
            model = fitted.fit(rows, np.arange(61) % 2).best_estimator_
        else:
            model = DPPipeline(steps).fit(rows, np.arange(61) % 2)
            assert model.predict(rows).shape == (61,)
            assert model.predict([[1]]).shape == (1,)
        names = tuple(model.named_steps["kinds"].get_feature_names_out())
        dtypes = model.named_steps["fill"].statistics_.dtype, model.named_steps["kinds"].categories_
        found.add((names, dtypes[0], dtypes[1][0].dtype))
    assert len(found) == 1


@pytest.mark.parametrize("rows", [[[1.0, "secret"]] * 30, [*[[1.0]] * 29, ["secret"]]])
def test_lists_of_numbers_and_text_are_refused_with_the_remedy(rows):
    steps = [("kinds", ENCODER), ("model", MODEL)]
    search = DPGridSearchCV(Pipeline(steps), {"model__alpha": [0.0, 0.1]})
    for estimator in (DPPipeline(steps, ledger=Notebook()), search):
        with pytest.raises(ValueError, match="Pass an array") as caught:
            estimator.fit(rows, np.arange(30) % 2)
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None


def test_lists_of_text_are_tables_of_objects():
    categories = [["a", "b"]] * 2
    encoder = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
    for last in ("b", "a longer text", None):
        rows = [*[["a", "b"]] * 29, ["b", last]]
        model = DPPipeline([("kinds", encoder), ("model", MODEL)]).fit(rows, np.arange(30) % 2)
        assert [one.dtype for one in model.named_steps["kinds"].categories_] == [object, object]


@pytest.mark.parametrize(
    "data", [[{"a": 1}, {"b": 2.5}], ["a text", "another"], [["a", "b"], ["c"]], [[("a", 1.5)]]]
)
def test_lists_that_no_array_can_hold_are_handed_on_as_they_are(data):
    assert without_lists("Test", data) is data


@each_value(1)
@pytest.mark.parametrize(
    "other",
    [1j, Decimal(4), date(2020, 1, 1), np.datetime64("2020-01-01"), [4], {}],
    ids=str,
)
@pytest.mark.parametrize("value", [1, 2.5, "a"])
def test_one_value_of_another_kind_decides_no_type_of_a_list_of_rows(value, other):
    """numpy makes text of all numbers beside a complex one, and objects beside a decimal."""
    for rows in ([[value, value], [value, other]], [[other, value], [other, value]]):
        with pytest.raises(ValueError, match="Pass an array"):
            without_lists("Test", rows)


# Widths that are found out

OPEN = [0.5, 0.9, "auto"]
BY_COLUMN = {
    "positions": ColumnTransformer([("a", "passthrough", [0]), ("b", "passthrough", [1])]),
    "masks": ColumnTransformer([("a", "passthrough", [True, False])]),
    "bounds": BoundsClipper(([-1.0] * 2, [1.0] * 2)),
    "knots": SplineTransformer(knots=np.linspace([-1.0] * 2, [1.0] * 2, 3)),
    "components": DPPCA(n_components=2),
}


@quick("auto-bounds")
@each_value(1)
@pytest.mark.parametrize("step", BY_COLUMN.values(), ids=BY_COLUMN)
@pytest.mark.parametrize("n_components", OPEN)
def test_a_step_that_needs_so_many_columns_costs_the_reservation_behind_one_that_finds_them_out(
    n_components, step
):
    """Which of them there are is released: whether the fit fails is paid for."""
    for front in (
        DPPCA(n_components=n_components),
        DPPipeline([("p", DPPCA(n_components=n_components))]),
    ):
        ledger = Notebook()
        steps = [("front", front), ("step", step), ("scale", DPStandardScaler())]
        with contextlib.suppress(ValueError):
            DPPipeline(steps, ledger=ledger).fit(TABLE)
        assert len(ledger.charges) == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_components", OPEN)
def test_steps_that_take_any_number_of_columns_stay_behind_one_that_finds_them_out(n_components):
    one = ColumnTransformer([("a", DPStandardScaler(), [0])], remainder="passthrough")
    for step in (PolynomialFeatures(2), BoundsClipper((-1.0, 1.0)), one):
        steps = [("front", DPPCA(n_components=n_components)), ("step", step), ("model", MODEL)]
        assert hasattr(DPPipeline(steps).fit(TABLE, Y), "steps_")


WRONG_WIDTH = {
    "bounds": BoundsClipper(([-1.0] * 3, [1.0] * 3)),
    "bounds of a model": DPLogisticCD(feature_bounds=([-1.0] * 3, [1.0] * 3)),
    "components": DPPCA(n_components=3),
    "places": ColumnTransformer([("a", "passthrough", [2])]),
    "knots": SplineTransformer(knots=np.linspace([-1.0] * 3, [1.0] * 3, 3)),
    "names": DPStandardScaler(feature_bounds={"a": (0.0, 1.0)}),
}


@pytest.mark.parametrize("step", WRONG_WIDTH.values(), ids=WRONG_WIDTH)
@pytest.mark.parametrize("front", [[DPStandardScaler()], [DPStandardScaler(), DPRobustScaler()]])
def test_a_step_that_needs_other_columns_is_refused_behind_scalers_before_anything_is_drawn(
    front, step
):
    ledger = PrivacyLedger("people", 20.0, 1e-4, "memory")
    steps = [(f"s{k}", one) for k, one in enumerate([*front, step])]
    model = [] if hasattr(step, "predict") else [("model", MODEL)]
    with pytest.raises(ValueError, match=r"must|features|cannot take"):
        DPPipeline([*steps, *model], ledger=ledger).fit(TABLE, Y)
    assert (ledger.total().n_charges, ledger.total().n_returned) == (0, 1)


# Messages and parameters


@each_value(1)
@pytest.mark.parametrize("secret", [np.array(3.75), 3.75, np.float64(3.75)])
@pytest.mark.parametrize("place", ["X", "y"])
def test_a_single_number_in_the_place_of_data_is_refused_and_not_quoted(place, secret):
    given = {"X": TABLE, "y": Y} | {place: secret}
    ledger = Notebook()
    with pytest.raises(TypeError, match=f"needs {place} as an array") as caught:
        DPPipeline([("s", DPStandardScaler()), ("m", MODEL)], ledger=ledger).fit(**given)
    assert "3.75" not in str(caught.value)
    assert caught.value.__context__ is None


class Changing(float):
    """A number that is another one each time it is asked."""

    asked = 0

    def __float__(self):
        Changing.asked += 1
        return 0.01 if Changing.asked % 2 else 50.0


@pytest.mark.parametrize("name", ["epsilon", "delta", "weights", "bounds"])
def test_a_number_that_changes_when_it_is_asked_is_refused(name):
    ledger, number = Notebook(), Changing(0.5)
    steps = [("s", DPStandardScaler()), ("m", MODEL)]
    for estimator in {
        "epsilon": [DPPipeline(steps, epsilon=number), DPStandardScaler(epsilon=number)],
        "delta": [DPPipeline(steps, delta=number), DPStandardScaler(delta=number)],
        "weights": [DPPipeline(steps, weights={"s": number, "m": 1.0})],
        "bounds": [DPLogisticCD(feature_bounds=(-number, number), clip=number)],
    }[name]:
        estimator.set_params(ledger=ledger)
        with pytest.raises((TypeError, ValueError), match=r"must be|must give"):
            estimator.fit(TABLE, Y)
    assert ledger.charges == []


class Particular(DPStandardScaler):
    """A private step of somebody else's that takes no values but those of one data set."""

    def fit(self, X, y=None, groups=None):
        if not np.array_equal(X, TABLE):
            raise ValueError("takes no other values")
        return super().fit(X, y, groups)


def test_a_step_that_takes_no_made_up_values_is_fitted(monkeypatch):
    known = [(cls, None) for cls in [*register._private, Particular]]
    monkeypatch.setattr(register, "_private", register.ExactClasses(known))
    ledger = Notebook()
    steps = [("own", Particular()), ("scale", DPStandardScaler())]
    assert hasattr(DPPipeline(steps, ledger=ledger).fit(TABLE), "steps_")
    assert len(ledger.charges) == 1


WITHIN = Pipeline([("b", DPStandardScaler()), ("last", DPCoordinateDescentRegressor())])
BEHIND = {
    "public": [PolynomialFeatures(2), DPCoordinateDescentRegressor()],
    "passing by": [ColumnTransformer([("a", "passthrough", [0])]), DPCoordinateDescentRegressor()],
    "side by side": [FeatureUnion([("b", DPStandardScaler())]), DPCoordinateDescentRegressor()],
    "in a row": [WITHIN],
    "of a target": [TransformedTargetRegressor(WITHIN, check_inverse=False)],
    "whole": [DPPipeline(WITHIN.steps)],
}


@pytest.mark.parametrize("rows_per_group", [1, 3])
@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
def test_groups_reach_every_private_step_behind_another(behind, rows_per_group):
    table = np.random.default_rng(0).normal(size=(60, 2))
    steps = [(f"s{k}", step) for k, step in enumerate([DPStandardScaler(), *behind])]
    ledger = PrivacyLedger("people", 50.0, 1e-3, "memory", unit="group")
    model = DPPipeline(steps, epsilon=5.0, rows_per_group=rows_per_group, ledger=ledger)
    bad = np.where(np.arange(120).reshape(60, 2) == 7, np.nan, table)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad, table[:, 0], groups=np.arange(60) // 3)
    model.fit(table, table[:, 0], groups=np.arange(60) // 3)
    assert (ledger.total().n_charges, ledger.total().n_returned) == (1, 1)
    assert model.privacy_.rows_per_group == rows_per_group
