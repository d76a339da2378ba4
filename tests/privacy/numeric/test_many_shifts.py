"""Compositions of noise on the integers with many different shifts, against exact laws.

The loss of discrete Laplace noise of scale b moved by n is (n - 2 K)/b with an integer K between 0
and n, and that of discrete Gaussian noise n (2 Z - n)/(2 σ²) with an integer Z: so sums of losses
live on the integers, where their laws can be computed without a grid.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpnoise.noises import get_noise
from skdpnoise.privacy import NumericLoss
from skdpnoise.privacy.numeric._lattice import _DISTINCT, _NODES_FREE, Plan
from skdpnoise.privacy.numeric.loss import composed_delta
from tests._cases import quick

# Sums of thousands of positive terms in double precision err by less than this.
ORACLE = 1e-11


def law_of_laplace(scale, n):
    """Probabilities of K = 0, ..., n."""
    q = math.exp(-1.0 / scale)
    law = math.tanh(0.5 / scale) * q ** np.arange(n + 1.0)
    law[0], law[-1] = 1.0 / (1.0 + q), q**n / (1.0 + q)
    return law


def convolved_delta(scale, shifts, counts, epsilon):
    """δ of discrete Laplace noise: the law of the sum of all K by plain convolution."""
    law = np.ones(1)
    for n, count in zip(shifts, counts, strict=True):
        square = law_of_laplace(scale, int(n))
        for bit in f"{int(count):b}"[::-1]:
            law = np.convolve(law, square) if bit == "1" else law
            square = np.convolve(square, square)
    losses = (float(shifts @ counts) - 2.0 * np.arange(law.size)) / scale
    return float(law @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))))


def delta_of(spectrum, deviation, length, losses_of, epsilon):
    """δ from the characteristic function of an integer of mean zero, at its first frequencies."""
    assert abs(spectrum[-1]) < 1e-18  # it falls like that of a normal variable
    padded = np.zeros(length // 2 + 1, dtype=complex)
    padded[: spectrum.size] = np.conj(spectrum)
    law = np.maximum(np.fft.fftshift(np.fft.irfft(padded, length)), 0.0)
    losses = losses_of(np.arange(-length // 2, length // 2))
    return float(law @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))))


def frequencies_of(deviation):
    length = 1 << math.ceil(math.log2(26.0 * deviation))
    return length, 2.0 * np.pi / length * np.arange(math.ceil(12.0 * length / (6.28 * deviation)))


def transformed_laplace_delta(scale, shifts, counts, epsilon):
    """δ of discrete Laplace noise, as many releases of each shift as are counted."""
    deviation = 0.5 * math.sqrt(float(counts @ shifts**2))
    length, frequencies = frequencies_of(deviation)
    q, k = math.exp(-1.0 / scale), np.arange(shifts.max() + 1.0)
    turned = np.exp(1j * np.outer(frequencies, k))
    inside = np.cumsum(math.tanh(0.5 / scale) * q**k * turned, axis=1)
    mean, product = 0.0, np.ones(frequencies.size, dtype=complex)
    for n, count in zip(shifts.astype(int), counts, strict=True):
        one = (1.0 + q**n * turned[:, n]) / (1.0 + q) + inside[:, n - 1] - inside[:, 0]
        product *= one**count
        mean += count * float(law_of_laplace(scale, n) @ np.arange(n + 1.0))
    centre = round(mean)
    product *= np.exp(-1j * frequencies * centre)
    total = float(counts @ shifts)
    return delta_of(
        product, deviation, length, lambda s: (total - 2.0 * (s + centre)) / scale, epsilon
    )


def transformed_gaussian_delta(scale, shifts, epsilon):
    """δ of one release of discrete Gaussian noise for each shift."""
    square = float(shifts @ shifts)
    deviation = scale * math.sqrt(square)
    length, frequencies = frequencies_of(deviation)
    z = np.arange(-math.ceil(9.0 * scale), math.ceil(9.0 * scale) + 1.0)
    law = np.exp(-0.5 * (z / scale) ** 2)
    law /= law.sum()
    product = np.ones(frequencies.size, dtype=complex)
    for n in shifts:
        product *= np.cos(np.outer(frequencies * n, z)) @ law
    return delta_of(product, deviation, length, lambda s: (s + 0.5 * square) / scale**2, epsilon)


def integer_shifts(rng, size, largest):
    return np.sort(rng.choice(np.arange(1.0, largest), size, replace=False))


@pytest.mark.parametrize("seed", range(4))
def test_the_two_oracles_agree(seed):
    rng = np.random.default_rng(seed)
    shifts = integer_shifts(rng, 60, 150)
    scale = math.sqrt(float(shifts @ shifts))
    one = convolved_delta(scale, shifts, np.ones(60), 1.2)
    assert transformed_laplace_delta(scale, shifts, np.ones(60), 1.2) == pytest.approx(
        one, rel=1e-11
    )


@quick("5", "11")
@pytest.mark.parametrize("seed", range(12))
def test_more_than_48_integer_shifts_are_never_below_the_exact_law(seed):
    rng = np.random.default_rng(seed)
    shifts = integer_shifts(rng, int(rng.integers(_NODES_FREE + 1, 90)), 200)
    counts = np.ones(shifts.size)
    mu = rng.uniform(0.5, 3.0)
    scale = math.sqrt(float(shifts @ shifts)) / mu
    family = get_noise("discrete_laplace", scale)
    for part in (0.3, 1.0, 3.0):
        epsilon = 0.5 * mu**2 + part * mu
        truth = convolved_delta(scale, shifts, counts, epsilon)
        found = composed_delta([(family, shifts, counts)], epsilon)
        assert truth * (1.0 - ORACLE) <= found <= truth * 1.03


@quick("2-98", "4-256")
@pytest.mark.parametrize(("low", "high"), [(1, 64), (2, 98), (1, 169), (4, 256), (9, 196)])
def test_a_lattice_at_a_round_number_is_not_that_of_the_integer_before(low, high):
    """The geometric mean of the ends is an integer, and almost all releases have that shift."""
    middle = math.isqrt(low * high)
    assert middle**2 == low * high
    shifts = np.arange(float(low), high + 1.0)
    counts = np.where(shifts == middle, 2000.0, 1.0)
    counts[0] = math.ceil(0.002 * float(counts @ shifts**2) / low**2)  # so that it gets a lattice
    scale = math.sqrt(float(counts @ shifts**2))
    family = get_noise("discrete_laplace", scale)
    for epsilon in (1.0, 4.0):
        truth = transformed_laplace_delta(scale, shifts, counts, epsilon)
        found = composed_delta([(family, shifts, counts)], epsilon)
        assert truth * (1.0 - ORACLE) <= found <= truth * 1.03


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_discrete_gaussian_noise_with_more_than_48_shifts_is_never_below_the_exact_law(seed):
    rng = np.random.default_rng(seed)
    shifts = integer_shifts(rng, _NODES_FREE + 5, 60)
    mu = rng.uniform(1.0, 3.0)
    scale = math.sqrt(float(shifts @ shifts)) / mu
    family = get_noise("discrete_gaussian", scale)
    for part in (0.3, 1.0, 3.0):
        epsilon = 0.5 * mu**2 + part * mu
        truth = transformed_gaussian_delta(scale, shifts, epsilon)
        found = composed_delta([(family, shifts, np.ones(shifts.size))], epsilon)
        assert truth * (1.0 - ORACLE) <= found <= truth * 1.03


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_more_than_1000_integer_shifts_are_never_below_the_exact_law(seed):
    rng = np.random.default_rng(seed)
    shifts = integer_shifts(rng, _DISTINCT + int(rng.integers(1, 200)), 1300)
    mu = rng.uniform(0.5, 2.0)
    scale = math.sqrt(float(shifts @ shifts)) / mu
    family = get_noise("discrete_laplace", scale)
    for part in (0.3, 1.0, 3.0):
        epsilon = 0.5 * mu**2 + part * mu
        truth = transformed_laplace_delta(scale, shifts, np.ones(shifts.size), epsilon)
        found = composed_delta([(family, shifts, np.ones(shifts.size))], epsilon)
        assert truth * (1.0 - ORACLE) <= found <= truth * 1.03


class Steps:
    """A curve that jumps at the integers, and nothing else."""

    def hockey_stick(self, epsilon, shift):
        gap = np.minimum(np.asarray(epsilon) - np.floor(shift), 0.0)
        return np.asarray(-np.expm1(0.5 * gap))

    def max_loss(self, shift):
        return np.floor(np.asarray(shift, dtype=np.float64))


@pytest.mark.slow
@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    size=st.sampled_from([1, _NODES_FREE, _NODES_FREE + 1, 300, _DISTINCT, _DISTINCT + 1, 3000]),
    reach=st.sampled_from([1.0, 1.1, 3.0, 1000.0]),
    unit=st.sampled_from([1.0, 0.1, 1.0 / 3.0, 1e-200, 7e150]),
    heavy=st.integers(0, 10**6),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_stands_for_a_shift_is_a_shift_and_not_below_it(size, reach, unit, heavy, seed):
    rng = np.random.default_rng(seed)
    values = unit * integer_shifts(rng, size, math.ceil(reach * size) + 1)
    counts = np.ones(size)
    counts[heavy % size] += heavy
    plan = Plan(Steps(), values, counts, 1e-60)
    assert set(plan.nodes) <= {0.0, *np.maximum(values, 1e-9 * values[-1])}
    assert (plan.nodes[plan.high] >= plan.shifts).all()
    # Counted from the largest down, no shift has become smaller and none is missing.
    at_least = np.cumsum(plan.counts[::-1])[::-1]
    places = np.searchsorted(plan.shifts, values)
    assert plan.counts.sum() == counts.sum()
    assert (at_least[places] >= np.cumsum(counts[::-1])[::-1]).all()


def test_the_loss_of_many_shifts_in_a_mechanism_is_that_of_its_terms():
    shifts = np.arange(1.0, 65.0)
    counts = np.where(shifts == 8.0, 300, 1)
    scale = 250.0
    family = get_noise("discrete_laplace", scale)
    loss = NumericLoss(
        tuple((family, float(s), int(n)) for s, n in zip(shifts, counts, strict=True))
    )
    truth = convolved_delta(scale, shifts, counts, 2.0)
    assert truth * (1.0 - ORACLE) <= loss.delta(2.0) <= 1.03 * truth
