"""A loss is what its record says: its slope, its curvature, and what the kernels make of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdpnoise.kernels import LOSSES, POISSON
from skdpnoise.kernels._kernels import private_sweep
from tests.kernels._problems import each_loss, labels

FORMULAS = {
    "squared": lambda s, t: 0.5 * (s - t) ** 2,
    "logistic": lambda s, t: np.logaddexp(0.0, s) - t * s,
    "poisson": lambda s, t: np.exp(s) - t * s,
}
SCORES = np.linspace(-8.0, 8.0, 1001)


def test_every_loss_has_a_formula_here_and_a_code_of_its_own():
    assert FORMULAS.keys() == LOSSES.keys()
    assert all(loss.name == name for name, loss in LOSSES.items())
    assert len({loss.code for loss in LOSSES.values()}) == len(LOSSES)


@each_loss
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_the_slope_is_the_derivative_of_the_loss(loss, target):
    step = 1e-5
    above, below = (FORMULAS[loss.name](SCORES + h, target) for h in (step, -step))
    assert_allclose(loss.slope(SCORES, target), (above - below) / (2 * step), rtol=1e-8, atol=1e-7)


@each_loss
def test_the_curvature_bounds_the_change_of_the_slope_and_is_reached(loss):
    # Of an exponential as far as the bound is meant: rates of 2.5 times the mean.
    scores = SCORES[np.exp(SCORES) <= 2.5] if loss is POISSON else SCORES
    changes = np.diff(loss.slope(scores, 0.0)) / np.diff(scores)
    assert changes.max() <= loss.curvature * (1.0 + 1e-9)
    assert changes.max() >= 0.98 * loss.curvature
    assert changes.min() >= 0.0  # convex


@pytest.mark.slow
@each_loss
def test_the_kernel_of_a_code_has_the_slope_of_its_loss(loss):
    rng = np.random.default_rng(0)
    change, grid_size, n = 0.7, 2.0**-40, 200
    y = labels(rng.normal(size=n))
    one, other = rng.normal(size=(2, n))
    targets = (y + 1.0) / 2.0 if loss.name == "logistic" else y
    for i in range(n):
        score, target = loss.start(y[i : i + 1])
        columns = one[i : i + 1], other[i : i + 1], score, target
        k = private_sweep((0, 1), 8, loss.code, *columns, change, None, 1.0 / grid_size, 2.0**8)
        expected = loss.slope(change * one[i], targets[i]) * other[i]
        assert k * grid_size == pytest.approx(expected, rel=3e-12, abs=1e-11)
