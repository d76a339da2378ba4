"""Curves of losses in fifty digits: no δ is too small, however small the change or the δ.

Half-lines are the worst events of log-concave noise: P(Z > t - s) - e^ε P(Z > t), with t where the
loss is ε. mpmath computes both probabilities; doubles would lose all their digits.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from skdpnoise.noises import get_noise
from skdpnoise.privacy import (
    GaussianLoss,
    NormalShift,
    NumericLoss,
    PureLoss,
    RandomisedResponse,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
)
from skdpnoise.privacy.curves import raised
from tests._cases import quick

DIGITS = 50
SAFE = 1e-11  # what consumers of a curve add to it
SHIFTS = [1e-100, 3e-18, 1e-13, 1e-12, 7e-9, 1e-4, 0.3, 5.0]


def exactly(x):
    return mp.mpf(float(x))


def upper_normal(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def laplace(_):
    return lambda x: x, lambda x: mp.exp(-x) / 2


def gaussian(_):
    return lambda x: x * x / 2, upper_normal


def flipped_huber(noise):
    a = exactly(noise.shape)

    def tail(x):
        return mp.exp(-a * a / 2) * mp.sqrt(2 * mp.pi) * upper_normal(x)

    total = 2 * ((1 - mp.exp(-a * a)) / a + tail(a))
    return (
        lambda x: a * x if x <= a else (x * x + a * a) / 2,
        lambda x: (tail(x) if x >= a else (mp.exp(-a * x) - mp.exp(-a * a)) / a + tail(a)) / total,
    )


def osgt(noise):
    theta = exactly(noise.shape)
    return (
        lambda x: x * (theta + x / 2),
        lambda x: upper_normal(x + theta) / (2 * upper_normal(theta)),
    )


def subbotin(noise):
    p = exactly(noise.shape)
    return lambda x: x**p / p, lambda x: mp.gammainc(1 / p, x**p / p) / mp.gamma(1 / p) / 2


FAMILIES = [
    (gaussian, get_noise("gaussian")),
    (laplace, get_noise("laplace")),
    *[(flipped_huber, get_noise("flipped_huber", a)) for a in (0.05, 3.0, 40.0)],
    *[(osgt, get_noise("osgt", theta)) for theta in (0.01, 30.0, 1000.0)],
    *[(subbotin, get_noise("subbotin", p)) for p in (1.2, 1.9)],
]


def half_line_delta(law, epsilon, shift):
    """The divergence at ε, by bisection for the point where the loss is ε."""
    rho, tail = law
    e, s = exactly(epsilon), exactly(shift)

    def upper(x):
        return tail(x) if x >= 0 else 1 - tail(-x)

    low, high = s / 2, max(s, mp.mpf(1))
    while rho(high) - rho(abs(high - s)) < e:
        high *= 2
        if high > 2**12:  # a bounded loss that ends before
            return mp.mpf(0)
    for _ in range(190):
        middle = (low + high) / 2
        below = rho(middle) - rho(abs(middle - s)) < e
        low, high = (middle, high) if below else (low, middle)
    return upper(high - s) - mp.exp(e) * upper(high)


@quick("1.05-1.0", "1.3-3.0")
@pytest.mark.parametrize("wider", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("shape", [1.01, 1.05, 1.3])
def test_short_falls_of_a_power_keep_their_digits(shape, wider):
    """Where differences of two tails would cancel."""
    noise = get_noise("subbotin", shape)
    with mp.workdps(DIGITS):
        for shift in wider * np.array([1e-4, 0.004219, 0.05]):
            for epsilon in shift * np.array([0.8, 1.0, 1.240706]):
                truth = half_line_delta(subbotin(noise), epsilon, shift)
                # ε counts as 2**-50 of itself less, which raises steep curves.
                least = half_line_delta(subbotin(noise), epsilon * (1.0 - 2.0**-50), shift)
                assert truth <= exactly(raised(noise, epsilon, shift)) <= least * (1 + 1.6e-11)


def epsilons(noise, shift):
    """Where a shift matters: up to a dozen times the typical loss, and near the middle."""
    typical = shift * math.sqrt(min(noise.fisher_information, 1e6))
    return [0.0, 1e-9 * typical, 0.5 * typical, 2.0 * typical, 9.0 * typical]


@quick("subbotin-Subbotin(shape=1.9)", "flipped_huber-FlippedHuber(shape=40.0)")
@pytest.mark.parametrize(
    ("law", "noise"), FAMILIES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_curves_of_log_concave_noise_are_right_at_every_shift(law, noise):
    with mp.workdps(DIGITS):
        for shift in SHIFTS:
            if shift < 1e-18 and noise.shape_range is not None:
                continue  # bisection would need more digits than that
            for epsilon in epsilons(noise, shift):
                truth = half_line_delta(law(noise), epsilon, shift)
                found = exactly(noise.hockey_stick(epsilon, shift))
                if truth > mp.mpf(10) ** -280:
                    assert truth * (1 - 1e-10) <= found <= truth * (1 + 1e-10)
                    assert exactly(raised(noise, epsilon, shift)) >= truth
                loss = NumericLoss(((noise, shift, 1),)) if noise.norm_order != 2.0 else None
                if loss is not None:
                    assert exactly(loss.delta(epsilon)) >= min(truth, 1)


@pytest.mark.parametrize("mu", SHIFTS)
def test_normal_distributions_are_told_apart_by_no_more_than_is_stated(mu):
    with mp.workdps(DIGITS + 320):
        for x in (-0.5 * mu, 0.0, 1e-6, 0.7, 3.0, 8.0, 30.0):
            epsilon = max(0.0, mu * (x + 0.5 * mu))
            e, m = exactly(epsilon), exactly(mu)
            truth = upper_normal(e / m - m / 2) - mp.exp(e) * upper_normal(e / m + m / 2)
            found = exactly(NormalShift().hockey_stick(epsilon, mu))
            if truth > mp.mpf(10) ** -280:
                assert truth * (1 - SAFE) <= found <= truth * (1 + SAFE)
            for loss in (GaussianLoss(mu), GaussianLoss(mu).numeric()):
                assert truth <= exactly(loss.delta(epsilon)) <= truth * (1 + 1e-9) + mp.mpf(5e-324)
            assert truth <= exactly(gdp_delta(mu, epsilon))


def test_small_normal_shifts_beside_other_losses_are_not_lost():
    for mu in (1e-250, 1e-170, 1e-14, 1e-3):
        loss = PureLoss(1e-200) + GaussianLoss(mu)
        alone = GaussianLoss(mu).delta(0.0)
        assert loss.delta(0.0) >= alone * (1.0 - 1e-12)
        assert loss.pure_epsilon == math.inf
        many = NumericLoss(((NormalShift(), mu, 10**6),))
        assert many.delta(0.0) >= GaussianLoss(mu).compose(10**6).delta(0.0) * (1.0 - 1e-12)


@pytest.mark.parametrize("shape", [0.01, 0.7, 5.0, 1e3, 1e9])
def test_discrete_laplace_noise_is_never_below_its_sums(shape):
    noise, rng = get_noise("discrete_laplace", shape), np.random.default_rng(0)
    with mp.workdps(DIGITS):
        rate = exactly(noise.rate)
        q = mp.exp(-rate)
        for n in (1, 2, 7, 333, 601_795):
            largest = float(noise.max_loss(n))
            for part in (0.0, 1e-12, rng.uniform(), 1.0 - 1e-9, 1.0 - 1e-13):
                e = exactly(part * largest)
                t = int(mp.floor((e / rate + n) / 2)) + 1

                def at_least(k):
                    return q**k / (1 + q) if k >= 1 else 1 - q ** (1 - k) / (1 + q)

                truth = at_least(t - n) - mp.exp(e) * at_least(t)
                assert exactly(raised(noise, part * largest, float(n))) >= truth
                assert exactly(NumericLoss(((noise, float(n), 1),)).delta(float(e))) >= truth


@quick("1.5-0.4")
@pytest.mark.parametrize(("step", "gamma"), [(1.5, 0.4), (5.0, 0.05), (30.0, 1e-6), (2.0, 1e-15)])
def test_staircase_noise_is_never_below_the_integral_of_its_steps(step, gamma):
    noise, rng = get_noise("staircase", step, gamma), np.random.default_rng(1)
    with mp.workdps(DIGITS):
        e, g = exactly(step), exactly(gamma)
        top = (1 - mp.exp(-e)) / (2 * (g + (1 - g) * mp.exp(-e)))

        def density(x):
            k = mp.floor(abs(x))
            return top * mp.exp(-e * (k + (1 if abs(x) - k >= g else 0)))

        for shift in (1e-18, 3e-9, 0.4, 1.0, 1.0 + 1e-12, 3.7):
            s = exactly(shift)
            levels = [k + x for k in range(int(70 / step) + 3) for x in (mp.mpf(0), g)]
            cuts = sorted({sign * x + move for x in levels for sign in (1, -1) for move in (0, s)})
            for part in (0.0, rng.uniform(), 1.0 - 1e-12):
                epsilon = part * float(noise.max_loss(shift))
                truth = mp.mpf(0)
                for left, right in itertools.pairwise(cuts):
                    middle = (left + right) / 2
                    gap = density(middle - s) - mp.exp(exactly(epsilon)) * density(middle)
                    truth += max(gap, 0) * (right - left)
                truth -= mp.exp(-e * int(70 / step))  # what lies beyond the last level, at most
                assert exactly(raised(noise, epsilon, shift)) >= truth
                assert exactly(NumericLoss(((noise, shift, 1),)).delta(epsilon)) >= truth


def test_pure_privacy_is_rounded_up():
    rng = np.random.default_rng(0)
    with mp.workdps(DIGITS):
        for _ in range(300):
            pure = 10.0 ** rng.uniform(-15.0, 2.0)
            epsilon = pure * rng.choice([0.0, rng.uniform(), 1.0 - 10.0 ** rng.uniform(-15, -1)])
            e, p = exactly(epsilon), exactly(pure)
            truth = (mp.exp(p) - mp.exp(e)) / (1 + mp.exp(p))
            assert truth <= exactly(PureLoss(pure).delta(epsilon))
            found = exactly(RandomisedResponse().hockey_stick(epsilon, pure))
            assert truth * (1 - SAFE) <= found <= truth * (1 + SAFE)


@pytest.mark.slow
def test_what_is_solved_for_meets_what_was_asked_for_as_computed():
    rng = np.random.default_rng(0)
    for _ in range(200):
        epsilon, delta = 10.0 ** rng.uniform(-6.0, 1.5), 10.0 ** rng.uniform(-250.0, -0.01)
        assert GaussianLoss(gdp_mu(epsilon, delta)).delta(epsilon) <= delta
        mu, pure = 10.0 ** rng.uniform(-8.0, 1.0), 10.0 ** rng.uniform(-12.0, 2.0)
        found = gdp_epsilon(mu, delta)
        assert found == math.inf or gdp_delta(mu, found) <= delta
        assert PureLoss(pure).delta(PureLoss(pure).epsilon(delta)) <= delta
