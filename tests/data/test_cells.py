"""Cells of a column are plain values, whatever type of numbers holds them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise.data.cells import cells_of, contents_of, together
from skdpnoise.data.kinds import OBJECTS, Kind
from skdpnoise.queries.categories import label_of


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
