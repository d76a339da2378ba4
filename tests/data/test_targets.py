"""Labels and targets are read as what they are; public classes are exactly what was given."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD
from skdpnoise.data.targets import (
    known_classes,
    public_classes,
    read_labels,
    read_numbers,
)
from skdpnoise.linear_model._records import Rows
from tests._cases import each_value

NUMBERS = [0, 1, 1, 0]
READ = {
    "booleans": (np.array([False, True, True, False]), "b"),
    "booleans in a list": ([False, True, True, False], "b"),
    "booleans as objects": (np.array([False, True, True, False], dtype=object), "b"),
    "nullable booleans": (pd.Series([False, True, True, False], dtype="boolean"), "b"),
    "integers": (np.array(NUMBERS, dtype=np.int8), "i"),
    "unsigned": (np.array(NUMBERS, dtype=np.uint16), "u"),
    "integers in a tuple": (tuple(NUMBERS), "i"),
    "integers as objects": (np.array(NUMBERS, dtype=object), "i"),
    "nullable integers": (pd.Series(NUMBERS, dtype="Int64"), "i"),
    "polars integers": (pl.Series(NUMBERS), "i"),
    "whole floats": (np.array(NUMBERS, dtype=np.float32), "f"),
    "whole floats and integers": ([0, 1.0, 1, 0.0], "f"),
    "text": (np.array(["a", "b", "b", "a"]), "U"),
    "text in a list": (["a", "b", "b", "a"], "U"),
    "text as objects": (np.array(["a", "b", "b", "a"], dtype=object), "O"),
    "a series of text": (pd.Series(["a", "b", "b", "a"]), "O"),
    "categories": (pd.Series(["a", "b", "b", "a"], dtype="category"), "O"),
    "polars text": (pl.Series(["a", "b", "b", "a"]), "U"),
    "numpy's strings": (np.array(["a", "b", "b", "a"], dtype=np.dtypes.StringDType()), "O"),
}


@pytest.mark.parametrize("name", READ)
def test_labels_of_one_kind_are_read_and_sorted(name):
    given, kind = READ[name]
    labels = read_labels("DPLogisticCD", given, 4)
    assert labels.dtype.kind == kind
    classes = known_classes(DPLogisticCD(), labels)
    numbers = Rows.of_labels(classes, {"X": None, "y": labels}).y
    assert len(classes) == 2
    np.testing.assert_array_equal(numbers, [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["b", "a"], ["a", "b"]),
        (("b", "a", "c"), ["a", "b", "c"]),
        (np.array([2, 0, 1]), [0, 1, 2]),
        (pd.Series([3.0, 1.0]), [1.0, 3.0]),
        (pd.Index(["b", "a"]), ["a", "b"]),
        (pl.Series(["b", "a"]), ["a", "b"]),
        ([True, False], [False, True]),
    ],
    ids=str,
)
def test_public_classes_are_sorted_and_keep_their_kind(given, found):
    classes = public_classes("DPLogisticCD", given)
    assert classes.tolist() == found
    assert classes.dtype.kind in "iufbU"


@each_value(1)
@pytest.mark.parametrize("large", [2**53 + 1, -(2**53) - 1, 2**60, np.int64(2**60), 10**400])
@pytest.mark.parametrize("beside", [0.0, np.float32(1.0)])
def test_whole_numbers_that_doubles_cannot_tell_apart_are_refused_beside_floats(large, beside):
    labels = [large, large + 1, beside]
    for y in (labels, np.array(labels, dtype=object)):
        with pytest.raises(ValueError, match="beyond 2\\*\\*53 beside floats") as caught:
            read_labels("Test", y, 3)
        assert str(large) not in str(caught.value)
    with pytest.raises(ValueError, match="'classes'"):
        public_classes("Test", labels)
    assert len(np.unique(read_labels("Test", [2**53, 2**53 - 1, beside], 3))) == 3


class Quoting(str):
    """Text that fails when it is compared, with a text that must not be shown."""

    def _fail(self, *args):
        raise RuntimeError("a secret")

    __eq__ = __lt__ = __gt__ = __hash__ = __str__ = __repr__ = _fail


def test_text_is_read_as_what_it_holds_or_refused_without_a_quotation():
    labels = [Quoting("b"), "a", Quoting("b")]
    found = read_labels("Test", np.array(labels, dtype=object), 3)
    assert np.unique(found).tolist() == ["a", "b"]
    assert set(map(type, found)) == {str}
    assert public_classes("Test", [Quoting("b"), "a"]).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="cannot be read") as caught:
        read_labels("Test", labels, 3)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_public_classes_hold_for_labels_of_another_type_of_number():
    labels = read_labels("DPLogisticCD", np.array([0.0, 2.0]), 2)
    classes = known_classes(DPLogisticCD(classes=[0, 1, 2]), labels)
    numbers = Rows.of_labels(classes, {"X": None, "y": labels}).y
    assert classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(numbers, [0, 2])


@pytest.mark.parametrize(
    "y",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=object),
        np.array([1, 2, 3], dtype=np.float16),
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series([1.0, 2.0, 3.0], dtype="Float32"),
        pl.Series([1, 2, 3]),
    ],
    ids=lambda y: type(y).__name__ + str(getattr(y, "dtype", "")),
)
def test_targets_are_read_as_doubles(y):
    numbers = read_numbers(DPCoordinateDescentRegressor(), y, 3)
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, [1.0, 2.0, 3.0])


@each_value(1)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, "1e4000"])
def test_floating_point_labels_of_every_width_are_checked_one_by_one(kind, wrong):
    labels = np.arange(8).astype(kind) % 2
    np.testing.assert_array_equal(read_labels("Owner", labels, 8), [0, 1, 0, 1, 0, 1, 0, 1])
    with np.errstate(over="ignore"):
        labels[3] = np.longdouble(wrong)
    with warnings.catch_warnings(), pytest.raises(ValueError, match=r"NaN|infinity"):
        warnings.simplefilter("error")
        read_labels("Owner", labels, 8)


@pytest.mark.parametrize("n_rows", [2, 4])
@pytest.mark.parametrize("y", [np.array([0, 1, 1]), np.array(["a", "b", "b"]), [0, 1, 1]], ids=str)
def test_targets_of_another_length_than_the_rows_are_refused_whatever_holds_them(y, n_rows):
    text = rf"inconsistent numbers of samples: \[{n_rows}, 3\]"
    with pytest.raises(ValueError, match=text):
        read_labels("Test", y, n_rows)
    with pytest.raises(ValueError, match=text):
        read_numbers(DPCoordinateDescentRegressor(), np.arange(3.0), n_rows)
