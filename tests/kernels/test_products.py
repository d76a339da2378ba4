"""Products of rows with a matrix: each row by itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from skdpnoise.kernels import products, row_products
from tests._cases import each_value

CASES = [(1, 1, 1), (7, 1, 3), (300, 5, 2), (1000, 33, 7), (200, 200, 40)]


def problem(n, p, k, dtype=float):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, p)).astype(dtype), rng.normal(size=(p, k)), rng.normal(size=p)


@each_value(1)
@pytest.mark.parametrize("shape", CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_has_the_same_bits_beside_any_other_rows(shape, dtype, monkeypatch):
    X, matrix, center = problem(*shape, dtype)
    whole = row_products(X, matrix, center)
    rng = np.random.default_rng(0)
    for some in (slice(0, 1), slice(1, None), slice(None, None, -1), rng.integers(0, len(X), 17)):
        for table in (X[some], np.asfortranarray(X[some]), np.repeat(X[some], 2, axis=0)[::2]):
            assert np.array_equal(row_products(table, matrix, center), whole[some])
    for at_once in (1, 5, 64):
        monkeypatch.setattr(products, "rows_at_once", lambda _, most=at_once: most)
        assert np.array_equal(row_products(X, matrix, center), whole)


def test_libraries_of_linear_algebra_do_not_promise_that():
    # Else there would be no need of this function.
    X, matrix, _ = problem(1000, 33, 7)
    alone = np.concatenate([row[np.newaxis] @ matrix for row in X])
    assert not np.array_equal(alone, X @ matrix)


@pytest.mark.parametrize("shape", CASES[:3])
def test_products_are_those_of_exact_arithmetic_but_for_rounding(shape):
    X, matrix, center = problem(*shape)
    found = row_products(X, matrix, center)
    for i in range(0, len(X), 50):
        for k in range(matrix.shape[1]):
            terms = [
                (Fraction(x) - Fraction(c)) * Fraction(m)
                for x, c, m in zip(X[i], center, matrix[:, k], strict=True)
            ]
            # One rounding of each difference and product, and one of each sum.
            bound = (len(terms) + 2) * np.finfo(float).eps * float(sum(map(abs, terms)))
            assert abs(Fraction(found[i, k]) - sum(terms)) <= bound


def test_empty_tables_have_products():
    assert row_products(np.ones((0, 3)), np.ones((3, 2))).shape == (0, 2)
    assert row_products(np.ones((4, 3)), np.ones((3, 0))).shape == (4, 0)
