"""Bounds by the names of columns are those in the order of the columns, for every estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise import DPPipeline, DPRidge, DPStandardScaler
from skdpnoise.inspection import audit
from skdpnoise.inspection.auditing._fingerprint import fingerprint
from skdpnoise.inspection.auditing._neighbours import bounds_of
from tests._cases import each_value, quick
from tests.contracts._register import ENTRIES, Forbidden, each, ways

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

NAMES = ["age", "hours", "gain"]
VALUES = np.random.default_rng(0).normal([0.0, 1.0, 100.0], [1.0, 3.0, 50.0], size=(300, 3))
BY_NAME = {"gain": (0.0, 200.0), "age": [-3, 3], "hours": np.array([-10.0, 10.0])}
IN_ORDER = ([-3.0, -10.0, 0.0], [3.0, 10.0, 200.0])
FRAMES = {
    "pandas": lambda: pd.DataFrame(VALUES, columns=NAMES),
    "polars": lambda: pl.DataFrame(VALUES, schema=NAMES),
}
BOUNDED = [entry for entry in ENTRIES if "feature_bounds" in entry.estimator().get_params()]
seed = {"random_state": 0}


def learnt(entry, frame, bounds):
    given = seed if entry.spends else {}
    model = entry.make(**{**entry.settings, **given, "feature_bounds": bounds})
    fitted = vars(model.fit(frame, entry.y(VALUES))).copy()
    return {name: fingerprint(one) for name, one in fitted.items() if name != "feature_bounds"}


@quick("DPCoordinateDescentRegressor-pandas")
@each_value(1)
@pytest.mark.parametrize("library", FRAMES)
@each(ways(BOUNDED))
def test_they_give_the_same_fit_as_bounds_in_order(entry, library):
    frame = FRAMES[library]()
    assert learnt(entry, frame, BY_NAME) == learnt(entry, frame, IN_ORDER)


@each(ways(BOUNDED))
def test_columns_that_are_not_named_have_none(entry):
    some = {"age": BY_NAME["age"]}
    open_ended = ([-3.0, -np.inf, -np.inf], [3.0, np.inf, np.inf])
    frame = FRAMES["pandas"]()
    assert learnt(entry, frame, some) == learnt(entry, frame, open_ended)


WRONG = {
    "no such column": ({"Age": (0, 1)}, "Got 'Age', which is not the name of a column"),
    "a number as a name": ({0: (0, 1)}, "Got int, which is not the name"),
    "no pair": ({"age": 3}, "for column 'age'"),
    "three ends": ({"age": (0, 1, 2)}, "for column 'age'"),
    "text": ({"age": ("0", "1")}, "for column 'age'"),
    "an end for each row": ({"age": ([0, 0], [1, 1])}, "for column 'age'"),
    "swapped": ({"hours": (9, 0)}, "swapped"),
    "missing": ({"hours": (np.nan, 1)}, "NaN"),
    "huge": ({"hours": (0, 1e300)}, "within"),
}


@each_value(1)
@pytest.mark.parametrize(("bounds", "said"), WRONG.values(), ids=WRONG)
@each(ways(BOUNDED))
def test_names_and_pairs_that_cannot_be_meant_are_refused_before_the_charge(entry, bounds, said):
    ledger = {"ledger": Forbidden()} if entry.spends else {}
    model = entry.make(**{**entry.settings, **ledger, "feature_bounds": bounds})
    with pytest.raises(ValueError, match="'feature_bounds'") as refusal:
        model.fit(FRAMES["pandas"](), entry.y(VALUES))
    assert said in str(refusal.value)


@pytest.mark.usefixtures("the_same_words")
@each(ways(BOUNDED))
def test_an_array_has_no_names_also_after_a_frame(entry):
    ledger = {"ledger": Forbidden()} if entry.spends else {}
    model = entry.make(**{**entry.settings, "feature_bounds": BY_NAME})
    y = entry.y(VALUES)
    model.fit(FRAMES["pandas"](), y).set_params(**ledger)
    with pytest.raises(ValueError, match="Got names, and none are known"):
        model.fit(VALUES, y)


def test_a_step_of_a_pipeline_takes_them():
    steps = [("scale", DPStandardScaler(feature_bounds=BY_NAME)), ("model", DPRidge())]
    frame = FRAMES["pandas"]()
    model = DPPipeline(steps, epsilon=5.0, random_state=0).fit(frame, VALUES[:, 0])
    steps[0][1].set_params(feature_bounds=IN_ORDER)
    other = DPPipeline(steps, epsilon=5.0, random_state=0).fit(frame, VALUES[:, 0])
    assert model["scale"].mean_.tolist() == other["scale"].mean_.tolist()


def test_an_audit_finds_its_corners_by_them():
    frame = FRAMES["pandas"]().head(40)
    for given in (BY_NAME, IN_ORDER):
        low, high = bounds_of(DPStandardScaler(feature_bounds=given), VALUES, columns=NAMES)
        assert (low.tolist(), high.tolist()) == IN_ORDER
    found = audit(DPStandardScaler(feature_bounds=BY_NAME), frame, method="replay")
    assert found.passed
    assert max(dict(found.results[0].shares).values()) > 0.95


@pytest.mark.parametrize("bounds", [BY_NAME, {"age": (1, 2, 3)}, {"age": 5}])
def test_an_audit_leaves_what_an_estimator_refuses_to_the_estimator(bounds):
    low, high = bounds_of(DPStandardScaler(feature_bounds=bounds), VALUES)
    assert (low == VALUES.min(axis=0)).all()
    assert (high == VALUES.max(axis=0)).all()
