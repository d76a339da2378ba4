"""What is public of a step's output reaches the next step, and changes no guarantee."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPKBinsDiscretizer,
    DPLogisticCD,
    DPOneHotEncoder,
    DPPipeline,
    DPStandardScaler,
    DPTableVectorizer,
)
from skdpnoise.compose import PublicOutput
from tests._cases import quick

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"kind": rng.choice(["a", "b", "c"], 3000), "number": rng.normal(5.0, 2.0, 3000)}
)
Y = (FRAME["kind"] == "a").to_numpy().astype(int)
SCHEMA = {"kind": ["a", "b", "c"], "number": (0.0, 10.0)}


def fitted(first, last, X=FRAME, **given):
    return DPPipeline([("first", first), ("last", last)], epsilon=3.0, **given).fit(X, Y)


def test_bounds_and_groups_reach_the_model():
    model = fitted(DPTableVectorizer(SCHEMA), DPLogisticCD())
    table, last = model.named_steps["first"], model.named_steps["last"]
    public = table.public_output_
    np.testing.assert_array_equal(last.feature_bounds, public.feature_bounds)
    assert last.column_groups == public.column_groups
    assert len(public.low) == table.transform(FRAME).shape[1]
    # what its user wrote stays as it was
    assert model.steps[1][1].feature_bounds is None
    assert model.steps[1][1].column_groups is None


@quick("DPTableVectorizer-DataFrame")
@pytest.mark.parametrize(
    ("first", "X"),
    [
        (DPOneHotEncoder(), FRAME[["kind"]]),
        (DPKBinsDiscretizer(4), FRAME[["number"]]),
        (DPTableVectorizer(SCHEMA), FRAME),
    ],
    ids=lambda one: type(one).__name__,
)
def test_no_budget_is_spent_on_what_is_handed_on(first, X):
    releases = [r.label for r in fitted(first, DPLogisticCD(), X).privacy_.releases]
    assert not [label for label in releases if label.startswith("last: magnitudes")]
    assert not [label for label in releases if label.startswith("last: locations")]


def test_a_user_has_the_last_word():
    own = (-9.0, 9.0)
    model = fitted(DPTableVectorizer(SCHEMA), DPLogisticCD(feature_bounds=own))
    assert model.named_steps["last"].feature_bounds == own
    assert model.named_steps["last"].column_groups is None


@pytest.mark.slow
def test_steps_that_are_not_next_get_nothing():
    steps = [
        ("table", DPTableVectorizer(SCHEMA)),
        ("scale", DPStandardScaler()),
        ("model", DPLogisticCD()),
    ]
    model = DPPipeline(steps, epsilon=5.0).fit(FRAME, Y)
    assert model.named_steps["scale"].feature_bounds is not None
    assert model.named_steps["model"].feature_bounds is None
    beside = ColumnTransformer([("kinds", DPOneHotEncoder(), ["kind"])])
    model = DPPipeline([("beside", beside), ("model", DPLogisticCD())], epsilon=5.0).fit(FRAME, Y)
    assert model.named_steps["model"].feature_bounds is None


def test_passthrough_between_is_no_step():
    steps = [
        ("table", DPTableVectorizer(SCHEMA)),
        ("nothing", "passthrough"),
        ("model", DPLogisticCD()),
    ]
    model = DPPipeline(steps, epsilon=5.0).fit(FRAME, Y)
    assert model.named_steps["model"].feature_bounds is not None


@pytest.mark.slow
def test_frames_between_steps_change_nothing():
    models = [
        fitted(DPTableVectorizer(SCHEMA).set_output(transform=kind), last, random_state=0)
        for kind in ("default", "pandas")
        for last in (DPCoordinateDescentRegressor(),)
    ]
    first, second = (model.named_steps["last"].coef_ for model in models)
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_steps_fitted_alone_hand_nothing_on():
    table, model = DPTableVectorizer(SCHEMA).fit(FRAME), DPLogisticCD()
    model.fit(table.transform(FRAME), Y)
    assert model.feature_bounds is None


def test_bounds_are_ordered():
    with pytest.raises(ValueError, match="low < high"):
        PublicOutput(np.zeros(2), np.zeros(2))
