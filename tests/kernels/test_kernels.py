"""Properties of one sweep: rounding, the exponential, and vectorised code that stays strict."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from skdpnoise.kernels import LOGISTIC, LOSSES, POISSON, SQUARED
from skdpnoise.kernels._kernels import MOST_STEPS, decay, plain_sweep, private_sweep, sigmoid


@njit
def sigmoids(t):
    out = np.empty_like(t)
    for i in range(t.shape[0]):
        out[i] = sigmoid(t[i])
    return out


@njit
def decays(t):
    out = np.empty_like(t)
    for i in range(t.shape[0]):
        out[i] = decay(t[i])
    return out


def one_sum(column, score, grid_size, bound, rows=None, block=64):
    score = np.array(score, dtype=float)
    column = np.array(column, dtype=float)
    rows = (0, len(score)) if rows is None else rows
    columns = column, column, score, np.empty(0, dtype=np.int8)
    code, fine = SQUARED.code, (1.0 / grid_size, bound * grid_size)
    return private_sweep(rows, block, code, *columns, 0.0, None, *fine)


def test_the_sigmoid_agrees_with_scipy_to_ten_digits():
    t = np.concatenate([np.linspace(-50, 50, 100_001), [-1e300, -0.0, 0.0, 1e-300, 1e300]])
    assert_allclose(sigmoids(t), expit(t), rtol=0, atol=1e-12)
    assert sigmoid(0.0) == 0.5
    assert sigmoid(-np.inf) < 1e-17
    assert sigmoid(np.inf) == 1.0


def test_the_relative_error_of_the_sigmoid_is_small_until_it_saturates():
    t = np.linspace(-39, 39, 10_001)
    assert_allclose(sigmoids(t), expit(t), rtol=5e-12)


def test_the_exponential_has_a_small_relative_error_and_ends_at_forty():
    t = np.concatenate([np.linspace(-40, 40, 10_001), [-0.0, 1e-300]])
    assert_allclose(decays(t), np.exp(-t), rtol=3e-12)
    for beyond in (41.0, 1e300, np.inf):
        assert decay(beyond) == decay(40.0)
        assert decay(-beyond) == decay(-40.0)


@pytest.mark.parametrize("compiled", [sigmoids, decays])
def test_a_lone_value_and_one_in_a_vector_lane_are_the_same_bits(compiled):
    t = np.random.default_rng(0).normal(0, 5, 1003)
    assert_array_equal(compiled(t), [compiled(t[i : i + 1])[0] for i in range(len(t))])


@pytest.mark.slow
@pytest.mark.parametrize("grid_size", [1.0, 0.125, 2.0**-30])
def test_quanta_are_rounded_to_the_nearest_integer_and_ties_to_even(grid_size):
    multiples = np.array([0.0, 0.49, 0.5, 0.51, 1.5, 2.5, -0.5, -1.5, -2.5, 7.0, -7.49, 1e6 + 0.5])
    for multiple in multiples:
        expected = round(Fraction(multiple))
        assert one_sum([1.0], [multiple * grid_size], grid_size, 2.0**22) == expected


def test_a_gradient_beyond_the_bound_counts_as_the_bound_and_a_nan_as_minus_the_bound():
    for bound in (1.0, 5.0, float(MOST_STEPS)):
        for grid_size in (1.0, 0.3, 1e-7, 1e100):
            sums = [one_sum([1.0], [g], grid_size, bound) for g in (1e300, -1e300, np.inf, np.nan)]
            assert sums == [bound, -bound, bound, -bound]


def test_bounds_that_are_no_multiple_of_a_power_of_two_never_grow_by_rounding():
    rng = np.random.default_rng(2)
    for grid_size in 10.0 ** rng.uniform(-12, 3, 300):
        bound = float(rng.integers(MOST_STEPS - 1000, MOST_STEPS + 1))
        assert one_sum([1.0], [1e300], grid_size, bound) == bound


def test_a_sum_is_exact_however_its_rows_are_divided():
    rng = np.random.default_rng(1)
    score = rng.normal(0, 2.0**40, 1003)
    exact = sum(round(Fraction(s)) for s in score)
    ones = np.ones(1003)
    for block in (1, 5, 64, 1000, 5000):
        assert one_sum(ones, score, 1.0, 2.0**49, block=block) == exact
        parts = [one_sum(ones, score, 1.0, 2.0**49, rows=r, block=block) for r in [(0, 500)]]
        parts.append(one_sum(ones, score, 1.0, 2.0**49, rows=(500, 1003), block=block))
        assert sum(parts) == exact


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_moved_scores_are_the_same_bits_in_private_and_plain_sweeps(loss):
    rng = np.random.default_rng(4)
    old, new, start = rng.standard_normal((3, 900))
    y = np.tile([-1.0, 1.0, 1.0], 300)
    scaling = (0.1, 1.3, 2.0, -0.1, 0.7, 2.0)
    begin, target = loss.start(y)
    start += begin
    private, plain, sums = start.copy(), start.copy(), np.zeros(13)
    how = (0, 900), 70, loss.code, old, new
    private_sweep(*how, private, target, 0.37, scaling, 1e6, 1e3)
    plain_sweep(*how, plain, target, 0.37, scaling, sums)
    assert_array_equal(private, plain)
    standardised = np.clip((old - 0.1) * 1.3, -2, 2)
    assert_allclose(private, start + 0.37 * standardised, rtol=1e-13, atol=1e-13)
    derivative = {
        SQUARED: private,
        LOGISTIC: expit(private) - (y > 0),
        POISSON: np.exp(private) - y,
    }[loss]
    expected = np.sum(derivative * np.clip((new + 0.1) * 0.7, -2, 2))
    assert_allclose(sums.sum(), expected, rtol=1e-9)
