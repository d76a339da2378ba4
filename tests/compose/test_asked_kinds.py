"""Kinds of the columns that public steps compare with listed values, wherever the steps stand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from skdpnoise import DPPipeline, DPRidge, DPStandardScaler, DPTableVectorizer
from skdpnoise.compose.fitting import read_to_fit
from skdpnoise.data.kinds import OBJECTS
from tests._same_bits import in_parts

OWNER = DPPipeline([])
OBJECT_TABLE = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [3, None]}, dtype=object)
THREE = OneHotEncoder(categories=[[1, 2], ["x", "y"], [3]])
FILL = SimpleImputer(strategy="constant", fill_value="x")


def one(listed):
    return OrdinalEncoder(categories=[listed])


def columns(*steps, rest="drop"):
    named = [(str(k), step, where) for k, (step, where) in enumerate(steps)]
    return ColumnTransformer(named, remainder=rest)


ALL, NONE = ("number", "text", "number"), (None, None, None)
CASES = {
    "encoder": (THREE, ALL),
    "categories that are found": (OneHotEncoder(), NONE),
    "other numbers of columns": (OneHotEncoder(categories=[[1]]), NONE),
    "both kinds": (OneHotEncoder(categories=[[1, "x"], ["x"], [3]]), (None, "text", "number")),
    "behind what keeps columns": (
        Pipeline([("fill", FILL), ("same", FunctionTransformer()), ("p", None), ("e", THREE)]),
        ALL,
    ),
    "behind what makes others": (Pipeline([("s", DPStandardScaler()), ("e", THREE)]), NONE),
    "nested": (DPPipeline([("p", "passthrough"), ("e", THREE), ("s", DPStandardScaler())]), ALL),
    "union": (FeatureUnion([("s", MissingIndicator()), ("e", THREE)]), ALL),
    "indicator": (MissingIndicator(missing_values="x"), ("text",) * 3),
    "target": (TransformedTargetRegressor(Pipeline([("e", THREE), ("m", DPRidge())])), ALL),
    "by name": (columns((one(["x"]), ["b"])), (None, "text", None)),
    "by names in a slice": (columns((THREE, slice("a", "c"))), ALL),
    "by a slice": (columns((one([3]), slice(-1, None))), (None, None, "number")),
    "by a mask": (columns((one(["x"]), [False, True, False])), (None, "text", None)),
    "by place": (columns((one([3]), [2])), (None, None, "number")),
    "the rest": (
        columns(("drop", ["b"]), rest=OrdinalEncoder(categories=[[1], [3]])),
        ("number", None, "number"),
    ),
    "a column that is not there": (columns((one(["x"]), ["d"])), NONE),
    "twice": (columns((one([1]), ["a"]), (FunctionTransformer(), ["a"])), ("number", None, None)),
}


@pytest.mark.parametrize(("step", "expected"), CASES.values(), ids=CASES)
def test_columns_of_objects_hold_what_is_compared_with_them(step, expected):
    words = OBJECT_TABLE.assign(a=OBJECT_TABLE["b"], c=OBJECT_TABLE["b"])
    _, columns = read_to_fit(OWNER, words if expected[0] == "text" else OBJECT_TABLE, [step])
    assert tuple(kind.holds for kind in columns.kinds) == expected
    assert {kind.name for kind in columns.kinds} == {"objects"}


@pytest.mark.parametrize("place", range(3))
def test_what_is_not_of_that_kind_is_refused_by_its_name(place):
    name = "abc"[place]
    other = OBJECT_TABLE.copy()
    other[name] = [1, 2] if name == "b" else ["1", None]
    for given in (other, other.convert_dtypes()):
        with pytest.raises(TypeError, match=f"in column '{name}' of X, as its parameters say"):
            read_to_fit(OWNER, given, [THREE])


def test_of_several_compositions_only_what_all_ask_for_is_asked():
    _, found = read_to_fit(OWNER, OBJECT_TABLE, [THREE, columns((one([1]), ["a"]))])
    assert [kind.holds for kind in found.kinds] == ["number", None, None]
    assert read_to_fit(OWNER, OBJECT_TABLE, [THREE, FILL])[1].kinds == (OBJECTS,) * 3


def test_truth_values_that_may_be_missing_keep_their_bounds_wherever_they_lie():
    """In a pipeline as in its first step alone, which does not buy their location."""
    truth = pd.array([True, None, False] * 100, dtype="boolean")
    frame = pd.DataFrame({"truth": truth, "number": np.linspace(-1.0, 1.0, 300)})
    settings = {"epsilon": 5.0, "random_state": 0}
    alone = DPTableVectorizer(**settings).fit(frame).privacy_.releases
    tables = frame, in_parts(frame, 3), pl.from_pandas(frame)
    fits = [DPPipeline([("t", DPTableVectorizer())], **settings).fit(each) for each in tables]
    for fit in fits:
        assert [r.n_coordinates for r in fit.privacy_.releases] == [r.n_coordinates for r in alone]
        np.testing.assert_array_equal(fit.transform(frame), fits[0].transform(frame))
