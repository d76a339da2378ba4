"""Rounding to integer grid steps is exact, and its cost is covered."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from skdpnoise.mechanisms.grid_sizes import nearest_steps, rounding_cost
from skdpnoise.sensitivity import SensitivityProfile


def exact_error(value, grid_size):
    """How far the integer is from the exact quotient."""
    quanta = nearest_steps(np.array([value]), np.array([grid_size]))[0]
    return abs(Fraction(value) / Fraction(grid_size) - int(quanta))


@pytest.mark.parametrize("log_size", [0, 10, 31, 33, 52, 54, 58, 61])
def test_quotients_of_any_size_are_rounded_to_the_nearest_integer(log_size):
    rng = np.random.default_rng(log_size)
    for grid_size in np.concatenate([rng.lognormal(0, 3, 50), [1e-280, 1e250]]):
        value = grid_size * 2.0**log_size * rng.uniform(-1, 1)
        assert exact_error(float(value), float(grid_size)) <= Fraction(1, 2) + Fraction(1, 10**6)


def test_a_float_quotient_alone_would_be_wrong_by_many_quanta():
    rng = np.random.default_rng(0)
    grid_size = float(rng.lognormal())
    value = float(grid_size * 2.0**61 * 0.7312)
    naive = int(np.rint(value / grid_size))
    assert abs(Fraction(value) / Fraction(grid_size) - naive) > 10
    assert exact_error(value, grid_size) < 1


def test_values_beyond_the_largest_integer_are_clipped():
    value, grid_size = np.array([1e308, -1e308, 2.0**70]), np.array([1.0, 1e-200, 1.0])
    assert nearest_steps(value, grid_size).tolist() == [2**62, -(2**62), 2**62]


@pytest.mark.parametrize("order", [1.0, 2.0])
def test_rounding_never_adds_more_than_is_charged_and_can_add_nearly_as_much(order):
    rng, bits, limit = np.random.default_rng(0), 6, np.array([1.0, 3.0, 0.0])
    scale = np.array([0.7, 2.9, 1.0])
    grid_size = scale * 2.0**-bits
    base = rng.normal(size=(20_000, 3)) * 5
    moved = base + rng.choice([-1.0, 1.0], base.shape) * limit
    integers = nearest_steps(moved, np.broadcast_to(grid_size, moved.shape)) - nearest_steps(
        base, np.broadcast_to(grid_size, base.shape)
    )
    grown = np.linalg.norm(integers * 2.0**-bits, order, axis=1).max()
    real = np.linalg.norm(limit / scale, order)
    charged = rounding_cost(SensitivityProfile(limit), 1, bits, order)
    assert real < grown <= real + charged
    assert charged == pytest.approx(2 ** (1 / order) * 2.0**-bits, rel=1e-4)
    assert rounding_cost(SensitivityProfile(limit), 9, bits, order) == pytest.approx(
        9 ** (1 / order) * charged
    )
