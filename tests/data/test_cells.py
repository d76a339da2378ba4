"""Cells of a column are plain values, whatever type of numbers holds them."""

import math
import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise.data.cells import are_plain, cells_of, contents_of, is_missing, together
from skdpnoise.data.kinds import OBJECTS, Kind
from skdpnoise.preprocessing._blocks import numbered
from skdpnoise.queries.categories import _tallied, label_of


@pytest.mark.parametrize("hold", [np.asarray, pd.Series], ids=["array", "series"])
def test_floats_of_any_size_and_order_of_bytes_are_the_same_cells(hold):
    column = np.array([1.0, 2.5, np.nan])
    for dtype in (np.float32, ">f4", ">f8", np.longdouble):
        found = cells_of(hold(column.astype(dtype)))
        np.testing.assert_array_equal(found, column)
        assert [label_of(cell) for cell in found.tolist()] == [1, 2.5, None]
    assert label_of(np.longdouble(1.0)) == 1


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp <= 1024, reason="long doubles are doubles here")
def test_what_no_double_holds_is_infinite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(cells_of(np.array([np.finfo(np.longdouble).max]))[0])


def test_a_part_of_objects_may_hold_what_a_missing_value_made_of_a_column_and_nothing_else():
    number, nothing = Kind("number"), frozenset()

    def found(*parts, declared=None):
        return together("Test", "column 'a' of X", parts, declared)

    gaps = (OBJECTS, frozenset({"number", "missing"}))
    assert found((number, nothing), gaps) == (number, frozenset({"number", "missing"}))
    assert found(gaps, gaps, declared=number)[0] == number
    assert found(gaps) == (OBJECTS, gaps[1])
    for held in ({"text"}, {"text", "number"}, {"boolean"}, {"other"}):
        with pytest.raises(ValueError, match="column 'a' of X to have one type in all parts"):
            found((number, nothing), (OBJECTS, frozenset(held)))
        with pytest.raises(ValueError, match="column 'a' of X to have one type in all parts"):
            found((OBJECTS, frozenset(held)), declared=number)
    for other in (Kind("text"), Kind("date"), Kind("boolean")):
        with pytest.raises(ValueError, match="one type in all parts"):
            found((number, nothing), (other, nothing))


def test_whole_numbers_are_wide_where_their_type_does_not_keep_them_beside_a_missing_one():
    large = [2**60, 1]
    frames = [
        (pl.DataFrame({"a": pl.Series(large, dtype=pl.Int64)}), False),
        (pl.DataFrame({"a": pl.Series(large, dtype=pl.UInt64)}), False),
        (pl.DataFrame({"a": pl.Series(large).cast(pl.Decimal(38, 0))}), True),
    ]
    if hasattr(pl, "Int128"):
        frames += [(pl.DataFrame({"a": pl.Series(large, dtype=pl.Int128)}), True)]
    for frame, wide in frames:
        assert ("wide" in contents_of(frame)) == wide
    for dtype, wide in {"int64": True, "Int64": False, "int64[pyarrow]": False}.items():
        frame = pd.DataFrame({"a": pd.Series(large, dtype=dtype)})
        assert ("wide" in contents_of(frame)) == wide
        assert contents_of(frame.astype(float)) == frozenset()


class Text(str):
    """Text of a class of its own, which is no category."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("cells", "plain"),
    [
        (["a", "b", "a", "1"], True),
        ([1, True, False, 0, 2**70, -3], True),
        ([1.0, -0.0, math.nan, 0.0, math.inf, 2.0**64, True], True),
        (["a", None, pd.NA, math.nan, float("nan")], True),
        ([2.0**64, 2**64, 1, 1.0], False),
        (["a", Text("a"), "a"], False),
        ([np.str_("a"), "a", Decimal(1), 1], False),
        ([["a"], "a"], False),
    ],
)
def test_cells_are_counted_and_numbered_as_if_one_by_one(cells, plain):
    assert are_plain(cells) == plain
    labels = [label_of(cell) for cell in cells]
    places = {label: float(place) for place, label in enumerate(labels) if label is not None}
    found = numbered(cells, lambda label: places.get(label, -1.0), -2.0)
    one_by_one = [-2.0 if is_missing(cell) else places.get(label_of(cell), -1.0) for cell in cells]
    assert found.tolist() == one_by_one
    counted = dict(zip(*_tallied(cells), strict=True))
    assert counted == Counter(label for label in labels if label is not None)
