"""What is special to staircase noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import kstest

from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise
from skdpnoise.noises.staircase import Staircase, optimal_gamma
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, fit_pvalue

NOISES = [Staircase(e, g) for e in (0.3, 1.0, 3.0, 20.0) for g in (None, 0.1, 0.5, 0.8)]
every_staircase = pytest.mark.parametrize("noise", NOISES, ids=str)


def jumps(noise) -> np.ndarray:
    """Where the density jumps, as far as it matters to sums."""
    k = np.arange(math.ceil(40.0 / noise.shape) + 2)
    return np.concatenate([k + noise.share, -k - noise.share])


def pieces(noise, *others) -> tuple[np.ndarray, np.ndarray]:
    """Middle and width of the intervals between all jumps and the other ends."""
    ends = np.unique(np.concatenate([jumps(noise), *others]))
    return 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)


def exact_delta(noise, epsilon: float, shift: float) -> float:
    """Sum max(0, f(z) - e^epsilon f(z - shift)) over the pieces on which it is constant."""
    z, width = pieces(noise, jumps(noise) + shift, [0.0, shift])
    loss = noise.logpdf(z) - noise.logpdf(z - shift) - epsilon
    gain = np.where(loss > 1e-9, -np.expm1(-np.abs(loss)), 0.0)
    return float((width * np.exp(noise.logpdf(z)) * gain).sum())


@every_staircase
def test_moments_and_tails_are_sums_over_the_steps(noise):
    z, width = pieces(noise, [0.0])
    f = np.exp(noise.logpdf(z))
    assert (width * f).sum() == pytest.approx(1.0, rel=1e-11)
    assert (f[1:] <= f[:-1])[z[1:] > 0.0].all()
    for p in (0.0, 0.5, 1.0, 2.0, 3.0):
        left, right = np.abs(z) - 0.5 * width, np.abs(z) + 0.5 * width
        power = (right ** (p + 1.0) - np.maximum(left, 0.0) ** (p + 1.0)) / (p + 1.0)
        assert noise.absolute_moment(p) == pytest.approx((power * f).sum(), rel=1e-11)
    assert noise.variance == noise.absolute_moment(2.0)
    ends = (z - 0.5 * width)[z > 0.0]
    tails = np.cumsum((width * f)[z > 0.0][::-1])[::-1]
    np.testing.assert_allclose(noise.sf(ends), tails, rtol=1e-10, atol=1e-17)
    np.testing.assert_allclose(noise.sf(-ends), 1.0 - tails, rtol=1e-10)


@every_staircase
def test_tails_are_straight_between_jumps_and_quantiles_invert_them(noise):
    # Within a steep step a tail changes by more than the resolution of z.
    tolerance = 1e-10 if noise.shape < 10.0 else 1e-5
    z, width = pieces(noise, [0.0])
    left, right = noise.sf(z - 0.5 * width), noise.sf(z + 0.5 * width)
    np.testing.assert_allclose(noise.sf(z), 0.5 * (left + right), rtol=tolerance)
    q = np.concatenate([np.geomspace(1e-290, 0.4, 200), np.linspace(0.41, 0.999, 50)])
    np.testing.assert_allclose(noise.sf(noise.isf(q)), q, rtol=tolerance)
    assert noise.isf([0.0, 0.5, 1.0]).tolist() == [math.inf, 0.0, -math.inf]


@each_value(1)
@every_staircase
@pytest.mark.parametrize("shift", [0.01, 0.3, 0.99, 1.0, 1.2, 1.75, 2.0, 3.3, 7.9])
def test_delta_is_the_sum_over_all_steps(noise, shift):
    for epsilon in (0.0, 0.1, 0.29, 0.5, 1.5, 3.5, 10.0):
        exact = exact_delta(noise, epsilon, shift)
        assert noise.hockey_stick(epsilon, shift) == pytest.approx(exact, rel=1e-10, abs=1e-16)


@every_staircase
def test_a_larger_shift_never_costs_less(noise):
    """Though the density is not log-concave: it falls on both sides of 0."""
    shifts = np.linspace(0.0, 8.0, 4001)
    epsilon = np.array([0.0, 0.1, 0.29, 0.5, 1.5, 3.5])[:, None]
    assert (np.diff(noise.hockey_stick(epsilon, shifts), axis=1) >= -1e-14).all()


@every_staircase
def test_one_step_costs_epsilon_and_no_more(noise):
    z = np.linspace(-9.0, 9.0, 2001)
    for shift, steps in ((0.2, 1), (1.0, 1), (1.001, 2), (2.5, 3)):
        loss = noise.logpdf(z) - noise.logpdf(z - shift)
        assert noise.max_loss(shift) == pytest.approx(steps * noise.shape)
        assert np.abs(loss).max() <= noise.max_loss(shift) * (1.0 + 1e-12)
        assert noise.hockey_stick(steps * noise.shape, shift) == 0.0
        assert noise.hockey_stick((steps - 0.01) * noise.shape, shift) > 0.0
    assert noise.max_loss(0.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_explicit_curve_up_to_one_step(epsilon):
    for gamma in (None, 0.7):
        noise = Staircase(epsilon, gamma)
        g, r = noise.share, math.exp(-epsilon)
        a = (1.0 - r) / (2.0 * (g + (1.0 - g) * r))
        for shift in (0.2, 0.9, 1.0):
            chance = a * (min(shift, 2.0 * g) + shift * r / (1.0 - r))
            for e in (0.0, 0.5 * epsilon):
                delta = chance * -math.expm1(e - epsilon)
                assert noise.hockey_stick(e, shift) == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-13, 1e-9, 1e-6, 9.99e-4, 1e-3, 0.1, 1.0, 3.0, 10.0, 60.0])
def test_expected_absolute_error_is_the_published_one(epsilon):
    noise = Staircase(epsilon)
    assert noise.share == pytest.approx(1.0 / (1.0 + math.exp(0.5 * epsilon)), rel=1e-15)
    error = math.exp(0.5 * epsilon) / math.expm1(epsilon)
    assert noise.absolute_moment(1.0) == pytest.approx(error, rel=1e-12)
    assert noise.absolute_moment(1.0) < get_noise("laplace").absolute_moment(1.0) / epsilon


@each_value(1)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_the_best_gamma_has_the_smallest_error(epsilon, p):
    def error(log_gamma):
        return math.log(Staircase(epsilon, math.exp(log_gamma)).absolute_moment(p))

    best = minimize_scalar(error, bounds=(-12.0, -1e-6), method="bounded", options={"xatol": 1e-9})
    gamma = optimal_gamma(epsilon, p)
    assert error(math.log(gamma)) <= best.fun + 1e-13
    assert gamma == pytest.approx(math.exp(best.x), rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_closed_forms_of_gamma_agree_with_the_root(epsilon):
    for p in (1.0, 2.0):
        near = optimal_gamma(epsilon, p * (1.0 + 1e-9))
        assert optimal_gamma(epsilon, p) == pytest.approx(near, rel=1e-6)
    b = math.exp(-epsilon)  # as printed in the paper
    cube = (b - 2.0 * b**2 + 2.0 * b**4 - b**5) ** (1.0 / 3.0)
    printed = -b / (1.0 - b) + cube / (2.0 ** (1.0 / 3.0) * (1.0 - b) ** 2)
    assert optimal_gamma(epsilon, 2.0) == pytest.approx(printed, rel=1e-6)


@pytest.mark.parametrize("noise", [Staircase(0.05), Staircase(1.0, 0.8), Staircase(20.0, 0.1)])
def test_draws_follow_the_density_of_their_shape(noise):
    draws = noise.sample_rounded(SeededWords(1), 150_000, 30)
    assert fit_pvalue(draws, noise, 30) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, noise, 30, scale=scale) < FALSE_ALARM


def test_information_is_infinite():
    assert Staircase().fisher_information == math.inf


@pytest.mark.parametrize("shape", [0.0, 65.0, math.nan])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="'shape' parameter of Staircase"):
        Staircase(shape)
    with pytest.raises(ValueError, match="'epsilon' parameter of optimal_gamma"):
        optimal_gamma(shape)


@pytest.mark.parametrize("gamma", [0.0, 1.0, math.nan])
def test_other_shares_are_refused(gamma):
    with pytest.raises(ValueError, match="'gamma' parameter of Staircase"):
        Staircase(1.0, gamma)
    with pytest.raises(ValueError, match="'p' parameter of optimal_gamma"):
        optimal_gamma(1.0, -abs(gamma))


@pytest.mark.parametrize("epsilon", [1e-13, 1e-11, 1e-9])
def test_the_smallest_steps_that_are_drawn_follow_a_laplace_law(epsilon):
    bits = 25 - max(0, math.ceil(math.log2(1e-9 / epsilon)))
    draws = Staircase(epsilon).sample_rounded(SeededWords(1), 20_000, bits)
    part = np.abs(draws) * (2.0**-bits * epsilon)
    assert kstest(part, "expon").pvalue > FALSE_ALARM
    assert np.abs(draws).max() < 2**62


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_the_best_gamma_of_flat_steps_is_near_one_half(p):
    gammas = [optimal_gamma(epsilon, p) for epsilon in (1e-13, 1e-11, 1e-8, 1e-5)]
    np.testing.assert_allclose(gammas, 0.5, atol=1e-5)
    assert optimal_gamma(1e-4, 2.0) == pytest.approx(0.5 - 1e-4 / 12.0, rel=1e-9)


@each_value(1)
@pytest.mark.parametrize("rule", ["iid", "inid"])
@pytest.mark.parametrize("size", [1e-9, 1e-4, 1.0, 100.0, 1e8])
def test_every_budget_is_kept_by_steps_that_can_be_drawn(rule, size):
    sensitivity = SensitivityProfile([1.0, 1e-3, 2.0])
    for target in (PureLoss(size), GaussianLoss(min(size, 1e4))):
        found = calibrate(f"{rule}_staircase", sensitivity, target, weights=[1e-30, 1.0, 1e30])
        shapes = [family.shape for family in found.families]
        assert min(shapes) >= 1e-13 and max(shapes) <= 64.0
        if isinstance(target, PureLoss):
            assert sum(shapes[k % len(shapes)] for k in range(3)) <= size
        assert np.abs(found.sample(SeededWords(0))).max() < 2**62
    with pytest.raises(ValueError, match="too small for"):
        calibrate(f"{rule}_staircase", sensitivity, PureLoss(1e-13))
