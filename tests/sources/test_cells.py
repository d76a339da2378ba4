"""Cells of a column are plain values, whatever type of numbers holds them."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skdpnoise.queries.categories import label_of
from skdpnoise.sources.cells import cells_of


@pytest.mark.quick(2)
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
