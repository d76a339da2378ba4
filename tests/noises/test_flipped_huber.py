"""What is special to the flipped Huber family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from skdpnoise.noises import get_noise
from skdpnoise.noises.flipped_huber import FlippedHuber
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, fit_pvalue, hockey_stick
from tests.noises._quadrature import expectation

SHAPES = [0.001, 0.05, 1.0, 3.18, 10.0, 40.0]
DELTA = 1e-6


def scale_needed(epsilon: float, shape: float) -> float:
    """Return the gamma that hides a change of 1 with the delta of this module."""
    noise = FlippedHuber(shape)

    def excess(log_scale):
        return float(noise.hockey_stick(epsilon, math.exp(-log_scale))) - DELTA

    return math.exp(brentq(excess, -3.0, 5.0, xtol=1e-14, rtol=1e-14))


@pytest.mark.parametrize("shape", SHAPES)
def test_moments_and_information_agree_with_quadrature(shape):
    noise = FlippedHuber(shape)
    assert expectation(noise, np.ones_like, [shape]) == pytest.approx(1.0, rel=1e-11)
    assert noise.variance == pytest.approx(expectation(noise, np.square, [shape]), rel=1e-10)
    for p in (0.5, 1.0, 3.0):
        moment = expectation(noise, lambda z, p=p: z**p, [shape])
        assert noise.absolute_moment(p) == pytest.approx(moment, rel=1e-10)
    slope = expectation(noise, lambda z: np.maximum(z, noise.shape) ** 2, [noise.shape])
    assert noise.fisher_information == pytest.approx(slope, rel=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_tails_and_quantiles_agree(shape):
    noise = FlippedHuber(shape)
    q = np.concatenate([np.geomspace(1e-290, 0.4, 200), np.linspace(0.41, 0.999, 50)])
    np.testing.assert_allclose(noise.sf(noise.isf(q)), q, rtol=1e-12)
    z = np.minimum(np.array([0.5, 0.99, 1.0, 1.01, 2.0]) * shape, 15.0)
    step = 1e-4 / max(1.0, shape)
    slope = (np.log(noise.sf(z - step)) - np.log(noise.sf(z + step))) / (2.0 * step)
    np.testing.assert_allclose(slope, np.exp(noise.logpdf(z)) / noise.sf(z), rtol=1e-4)


@each_value(1)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.5, 5.0])
def test_delta_agrees_with_quadrature(shape, shift):
    noise = FlippedHuber(shape)
    reach = float(noise.isf(1e-30)) + shift
    for epsilon in (0.0, 0.01, 0.1, 0.5, 3.0, 10.0):
        exact = hockey_stick(noise.logpdf, shift, epsilon, reach)
        assert noise.hockey_stick(epsilon, shift) == pytest.approx(exact, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize(
    ("shape", "epsilon", "shift", "delta"),
    [
        (3.0, 12.0, 0.5, 4.7152077980550262e-128),
        (3.0, 1.3, 0.4, 4.8339010895116859e-06),
        (3.0, 3.0, 4.5, 0.99486461800042677),
        (0.01, 3.0, 0.1, 7.3048051303464202e-200),
        (10.0, 40.0, 2.5, 5.3507688442392402e-71),
        (1.0, 0.0, 1e-9, 5.7252023161065767e-10),
    ],
)
def test_delta_keeps_its_digits_however_small(shape, epsilon, shift, delta):
    """By mpmath in 60 digits: P(Z > t - s) - e^epsilon P(Z > t), t by bisection."""
    value = FlippedHuber(shape).hockey_stick(epsilon, shift)
    assert value == pytest.approx(delta, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "alpha", "gamma", "variance"),
    [
        (0.5, 20.285, 6.3695, 7.99799),
        (1.0, 11.047, 3.3237, 1.99978),
        (2.0, 6.1363, 1.7516, 0.49998),
        (5.0, 3.0456, 0.7805, 0.08000),
    ],
)
def test_the_best_shapes_are_the_published_ones(epsilon, alpha, gamma, variance):
    def cost(shape):
        return scale_needed(epsilon, shape) ** 2 * FlippedHuber(shape).variance

    assert scale_needed(epsilon, alpha / gamma) == pytest.approx(gamma, rel=1e-4)
    # Beyond 8 nothing is left but the Laplace distribution, whose variance is a little larger.
    best = minimize_scalar(cost, bounds=(1.0, 8.0), method="bounded")
    low, high = FlippedHuber.shape_range
    assert low < best.x < high
    assert best.fun == pytest.approx(variance, rel=1e-5, abs=5e-6)
    assert best.x == pytest.approx(alpha / gamma, rel=1e-3)
    assert cost(alpha / gamma) == pytest.approx(best.fun, rel=1e-4)


def test_a_short_centre_is_nearly_the_normal_family():
    epsilon = np.array([0.0, 0.5, 3.0])
    short, normal = FlippedHuber(1e-3), get_noise("gaussian")
    np.testing.assert_allclose(
        short.hockey_stick(epsilon, 0.7), normal.hockey_stick(epsilon, 0.7), rtol=1e-5
    )


@pytest.mark.parametrize("shift", [0.2, 1.0, 4.0])
def test_concentrated_bound_holds_and_is_not_twice_too_large(shift):
    noise = FlippedHuber(2.0)
    z = np.linspace(-60.0, 60.0, 400_001)
    log_p, log_q = noise.logpdf(z), noise.logpdf(z - shift)
    for order in (1.5, 3.0, 20.0):
        exponent = order * log_p + (1.0 - order) * log_q
        top = exponent.max()
        divergence = (top + math.log(np.exp(exponent - top).sum() * 3e-4)) / (order - 1.0)
        xi, rho = noise.zcdp(shift, shift)
        assert divergence <= (xi + rho * order) * (1.0 + 1e-9)
        if order == 20.0:
            assert divergence > 0.5 * (xi + rho * order)
    assert noise.zcdp(shift, 3.0, 7) == pytest.approx((7.0 * xi, 4.5))


def test_no_shift_costs_nothing_and_large_epsilon_does_not_overflow():
    noise = FlippedHuber(3.0)
    assert noise.hockey_stick([0.0, 1.0], 0.0).tolist() == [0.0, 0.0]
    far = noise.hockey_stick(np.linspace(0.0, 700.0, 50)[:, None], [1e-300, 1e-3, 1.0, 100.0])
    assert np.isfinite(far).all()
    assert (np.diff(far, axis=0) <= 0.0).all()
    assert (np.diff(far, axis=1) >= 0.0).all()
    assert noise.max_loss([0.0, 1e-9]).tolist() == [0.0, math.inf]


def test_the_square_of_the_shape_is_exact():
    alpha = FlippedHuber(20.285 / 6.3695).shape
    assert alpha == pytest.approx(20.285 / 6.3695, rel=1e-7)
    assert (alpha * 2.0**26).is_integer()


@pytest.mark.parametrize("shape", [0.05, 3.18, 30.0])
def test_draws_follow_the_density_of_their_shape(shape):
    noise = FlippedHuber(shape)
    draws = noise.sample_rounded(SeededWords(1), 150_000, 30)
    assert fit_pvalue(draws, noise, 30) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, noise, 30, scale=scale) < FALSE_ALARM


@pytest.mark.parametrize("shape", [0.0, -1.0, 41.0, math.nan])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="'shape' parameter of FlippedHuber"):
        FlippedHuber(shape)
