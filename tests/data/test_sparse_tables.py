"""Sparse tables: of any format, in canonical rows, with nothing hidden that a fit cannot bear."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from skdpnoise import DPLogisticCD
from skdpnoise.data.sparse_tables import read_sparse
from tests._cases import each_value

RNG = np.random.default_rng(0)
DENSE = RNG.uniform(0.1, 1.0, size=(30, 6)) * (RNG.random((30, 6)) < 0.4)


def read(X, **keywords):
    return read_sparse(DPLogisticCD(), X, **keywords)


@each_value(1)
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_every_format_is_read_as_its_rows(kind, layout, dtype):
    dense = (10.0 * DENSE).astype(dtype)
    X = getattr(sp, f"{layout}_{kind}")(dense)
    table = read(X)
    assert table.format == "csr"
    assert table.has_canonical_format
    assert table.dtype == (dtype if np.dtype(dtype).kind == "f" else np.float64)
    np.testing.assert_array_equal(table.toarray(), dense)


def test_indices_of_64_bits_are_read():
    X = sp.csr_array(DENSE)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    np.testing.assert_array_equal(read(X).toarray(), DENSE)


def test_parts_of_entries_are_added_and_rows_sorted_without_a_change_to_what_was_passed():
    data, indices, indptr = np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), [0, 3, 4]
    X = sp.csr_array((data.copy(), indices.copy(), np.array(indptr)), shape=(2, 3))
    for flag in (None, True):  # the flag is not believed
        if flag is not None:
            X.has_canonical_format = flag
        np.testing.assert_array_equal(read(X).toarray(), [[2.0, 0.0, 5.0], [0.0, 8.0, 0.0]])
        np.testing.assert_array_equal(X.data, data)
        np.testing.assert_array_equal(X.indices, indices)


@pytest.mark.parametrize(
    ("value", "match"),
    [(np.nan, "contains NaN"), (np.inf, "infinity"), (1e200, "beyond 1e"), (1e-310, "subnormal")],
)
def test_values_that_a_fit_cannot_bear_are_refused(value, match):
    X = sp.csr_array(DENSE)
    X.data[3] = value
    with pytest.raises(ValueError, match=match):
        read(X)


def test_so_are_parts_whose_sum_is_too_large():
    X = sp.csr_array((np.array([0.9e100, 0.9e100]), np.array([0, 0]), np.array([0, 2, 2])), (2, 2))
    with pytest.raises(ValueError, match="beyond"):
        read(X)


def _broken(layout, name, values):
    X = sp.csr_array(DENSE).asformat(layout)
    array = getattr(X, name).copy()
    array[: len(values)] = values
    setattr(X, name, array)
    return X


@pytest.mark.parametrize(
    ("layout", "name", "values"),
    [
        ("csr", "indices", [-1]),
        ("csr", "indices", [6]),
        ("csr", "indptr", [1]),
        ("csr", "indptr", [0, 9, 3]),
        ("csr", "indptr", [0] * 30 + [10**6]),
        ("csc", "indices", [30]),
        ("coo", "row", [-1]),
        ("coo", "row", [30]),
        ("coo", "col", [6]),
    ],
)
def test_indices_that_are_none_of_a_table_are_refused(layout, name, values):
    with pytest.raises(ValueError, match="cannot read the sparse X"):
        read(_broken(layout, name, values))


def test_values_of_other_types_are_refused():
    with pytest.raises(ValueError, match="cannot read the sparse X"):
        read(sp.csr_array(DENSE * 1j))


def test_one_dimension_is_refused():
    with pytest.raises(ValueError, match="cannot read the sparse X"):
        read(sp.coo_array(np.ones(3)))
