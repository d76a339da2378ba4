"""Links that are the same bits in any block."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import expit
from scipy.special import softmax as scipy_softmax

from skdpnoise.kernels.losses import exponential, exponential_mean, logistic_mean, softmax

SCORES = np.concatenate(
    [
        np.linspace(-40.0, 40.0, 997),
        np.random.default_rng(0).normal(0.0, 5.0, 1000),
        [0.0, -0.0, 1e-300, -1e-300, np.log(2.0) / 2, -np.log(2.0) / 2, 699.99, -699.99],
    ]
)


def test_the_exponential_is_within_a_few_units_in_the_last_place():
    found = exponential(SCORES)
    with mpmath.workdps(40):
        exact = [mpmath.exp(mpmath.mpf(float(x))) for x in SCORES]
        off = [abs(mpmath.mpf(float(f)) / e - 1) for f, e in zip(found, exact, strict=True)]
    assert max(off) < 2.0**-51


@pytest.mark.parametrize("function", [exponential, logistic_mean, exponential_mean])
def test_an_entry_is_the_same_in_any_block_and_layout(function):
    whole = function(SCORES)
    ones = np.array([function(np.array([x]))[0] for x in SCORES])
    np.testing.assert_array_equal(whole, ones)
    np.testing.assert_array_equal(function(SCORES[::-3])[::-1], whole[::-3][::-1])
    table = np.asfortranarray(np.stack([SCORES, -SCORES], axis=1))
    np.testing.assert_array_equal(function(table)[:, 0], whole)


def test_a_row_of_softmax_is_the_same_in_any_block_and_layout():
    table = np.random.default_rng(0).normal(0.0, 9.0, (301, 7))
    whole = softmax(table)
    np.testing.assert_array_equal(np.concatenate([softmax(row[None]) for row in table]), whole)
    np.testing.assert_array_equal(softmax(np.asfortranarray(table)), whole)
    np.testing.assert_allclose(whole, scipy_softmax(table, axis=1), rtol=1e-14)
    far = softmax(np.array([[0.0, -1e308], [1e308, 1e308]]))
    np.testing.assert_allclose(far, [[1.0, 0.0], [0.5, 0.5]], rtol=0, atol=1e-300)


def test_means_are_those_of_the_field():
    np.testing.assert_allclose(logistic_mean(SCORES), expit(SCORES), rtol=1e-15, atol=1e-300)
    np.testing.assert_array_equal(logistic_mean(np.array([-1e308, 1e308])) > [0, 0.5], True)
    np.testing.assert_allclose(exponential_mean(SCORES), np.exp(np.clip(SCORES, -40, 40)), 1e-15)
