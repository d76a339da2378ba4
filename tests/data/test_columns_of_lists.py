"""No single value of a list decides how the others are read, whatever container holds them."""

from __future__ import annotations

import warnings
from array import array
from collections import UserList, deque

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import FunctionTransformer

from skdpnoise import DPCoordinateDescentRegressor, DPGridSearchCV, DPPipeline
from skdpnoise.data.columns import read_features, target_without_lists
from tests._cases import each_value
from tests.compose._pipelines import Notebook

WHOLE = [[1, 2], [3, 4], [5, 6]]
HALF = [[1, 2.5], [3, 4], [5, 6]]  # a neighbour
CONTAINERS = {
    "lists": lambda rows: [list(row) for row in rows],
    "tuples": lambda rows: tuple(tuple(row) for row in rows),
    "arrays": lambda rows: [np.array(row) for row in rows],
    "arrays of objects": lambda rows: [np.array(row, dtype=object) for row in rows],
    "some arrays": lambda rows: [np.array(rows[0]), *map(list, rows[1:])],
    "numbers of numpy": lambda rows: [[np.asarray(value)[()] for value in row] for row in rows],
    "series": lambda rows: [pd.Series(row) for row in rows],
    "a list of somebody else": lambda rows: UserList(map(list, rows)),
    "rows of somebody else": lambda rows: [UserList(row) for row in rows],
    "a queue": lambda rows: deque(map(list, rows)),
    "arrays of Python": lambda rows: [array("d", row) for row in rows],
    "a dict": lambda rows: {place: list(row) for place, row in enumerate(rows)},
    "dicts": lambda rows: dict(enumerate(rows)).values(),
}


def _read(rows):
    try:
        return read_features("Test", rows).dtype
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", CONTAINERS)
def test_neighbours_are_read_as_the_same_type_or_refused_in_the_same_words(name):
    found = [_read(CONTAINERS[name](rows)) for rows in (WHOLE, HALF)]
    assert found[0] == found[1]
    assert found[0] == np.float64 or "Convert it" in found[0][1] or "Pass an array" in found[0][1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2, 3], [2.5, 2, 3]),
        ((1, 2, 3), (2.5, 2, 3)),
        ([[1], [2]], [[2.5], [2]]),
        ([np.array([1]), np.array([2])], [np.array([2.5]), np.array([2])]),
        ([np.int64(1), 2], [np.float64(2.5), 2]),
        ([True, 2], [2.5, 2]),
        ([1, 2], [None, 2]),
        ([1, 2], [1 + 0j, 2]),
    ],
    ids=str,
)
def test_a_target_in_a_list_becomes_objects_whatever_its_numbers_are(first, second):
    read = [target_without_lists("Test", y) for y in (first, second)]
    assert [one.dtype for one in read] == [object, object]
    assert read[0].shape == read[1].shape


def test_labels_of_text_stay_a_list():
    labels = ["a", "b"]
    assert target_without_lists("Test", labels) is labels


@pytest.mark.parametrize("by", ["func", "transformer"])
def test_the_reciprocal_of_a_target_does_not_hang_on_one_record(by):
    """numpy takes reciprocals of whole numbers as whole numbers."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, size=(500, 2)), rng.integers(2, 6, size=500).tolist()
    own = {"func": np.reciprocal, "inverse_func": np.reciprocal, "check_inverse": False}
    step = FunctionTransformer(np.reciprocal, np.reciprocal, check_inverse=False)
    settings = own if by == "func" else {"transformer": step, "check_inverse": False}
    model = DPCoordinateDescentRegressor(feature_bounds=(-1, 1), target_bounds=(0, 1))
    target = TransformedTargetRegressor(model, **settings)
    found = []
    for given in (y, [2.5, *y[1:]], np.array(y, dtype=float)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = DPPipeline([("m", target)], epsilon=100.0, delta=0.1, random_state=0)
            found.append(whole.fit(X, given).named_steps["m"].regressor_.intercept_)
    assert np.ptp(found) < 0.02
    assert 0.2 < found[0] < 0.4


@each_value(1)
@pytest.mark.parametrize("name", ["a list of somebody else", "rows of somebody else", "series"])
@pytest.mark.parametrize("search", [False, True])
def test_what_cannot_be_read_is_refused_before_the_charge(name, search):
    ledger = Notebook()
    step, model = FunctionTransformer(np.reciprocal), DPCoordinateDescentRegressor()
    whole = DPPipeline([("f", step), ("m", model)], ledger=ledger)
    if search:
        whole = DPGridSearchCV(DPPipeline([("f", step), ("m", model)]), {}, ledger=ledger)
    with pytest.raises((TypeError, ValueError), match="single value"):
        whole.fit(CONTAINERS[name](HALF * 20), np.arange(60.0))
    assert ledger.charges == []
