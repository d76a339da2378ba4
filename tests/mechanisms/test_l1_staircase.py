"""Staircase noise on the l1 ball: the published table, exact draws, the guarantee by force."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta

from skdpnoise.mechanisms import Mechanism, calibrate
from skdpnoise.mechanisms.balls import L1StaircaseMechanism, _cumulative, l1_staircase
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sampling.balls import Radii, _spacings, rounded_simplex_levels
from skdpnoise.sampling.lazy import LazyNumbers
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, every_pair
from tests._statistics import FALSE_ALARM, chi_square_pvalue, uniform_pvalue

EPSILONS = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
TABLE = {
    "staircase": [3.9962, 1.9862, 1.3050, 0.9546, 0.7366, 0.5856],
    "gamma": [0.73012, 0.66708, 0.60195, 0.53705, 0.47435, 0.41535],
    "iid_laplace": [4.0, 2.0, 1.3333, 1.0, 0.8, 0.6667],
    "inid_laplace": [3.4283, 1.7141, 1.1428, 0.8571, 0.6857, 0.5714],
}


def test_the_two_dimensional_table_is_reproduced():
    profile = SensitivityProfile([0.15, 0.85], l1=1.0)
    for i, epsilon in enumerate(EPSILONS):
        mechanism = l1_staircase(2, 1.0, PureLoss(epsilon))
        assert mechanism.expected_error(1.0) == pytest.approx(TABLE["staircase"][i], abs=6e-5)
        assert mechanism.gamma == pytest.approx(TABLE["gamma"][i], abs=6e-6)
        for noise in ("iid_laplace", "inid_laplace"):
            error = calibrate(noise, profile, PureLoss(epsilon), p=1.0).expected_error(1.0)
            assert error == pytest.approx(TABLE[noise][i], abs=6e-5)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0, 30.0])
def test_one_dimension_is_the_staircase_of_geng_and_viswanath(epsilon):
    mechanism = l1_staircase(1, 1.0, PureLoss(epsilon))
    assert mechanism.gamma == pytest.approx(1 / (1 + math.exp(epsilon / 2)), rel=1e-3)
    expected = math.exp(epsilon / 2) / math.expm1(epsilon)
    assert mechanism.expected_error(1.0) == pytest.approx(expected, rel=1e-5)


@each_value(2)
@pytest.mark.parametrize("size", [1, 3, 20, 300])
@pytest.mark.parametrize("epsilon", [0.5, 5.0, 60.0])
def test_it_is_never_worse_than_laplace_noise_and_gamma_is_best(size, epsilon):
    mechanism = l1_staircase(size, 1.0, PureLoss(epsilon))
    error = mechanism.expected_error(1.0)
    assert error <= size / epsilon * (1 + 1e-6)
    for gamma in np.linspace(0.02, 1.0, 25):
        other = l1_staircase(size, 1.0, PureLoss(epsilon), gamma=gamma)
        assert error <= other.expected_error(1.0) * (1 + 1e-9)


def shells(mechanism):
    """Ends of eighths of shells, up to where little is left, and the probability of each."""
    size, gamma, eps = mechanism.n_coordinates, mechanism.gamma, mechanism.step
    k = np.arange(math.ceil(3 * (size + 10) / eps) + 3)
    limits = np.append(np.ravel(np.column_stack([k, k + gamma])), k[-1] + 1.0)
    ends = np.interp(np.arange(1, 8 * limits.size - 7) / 8, np.arange(limits.size), limits)
    starts = np.concatenate([[0.0], ends[:-1]])
    log_density = np.repeat(np.ravel(np.column_stack([-k * eps, -(k + 1) * eps])), 8)
    mass = np.exp(log_density) * (ends**size - starts**size)
    return ends, mass / mass.sum()


def merged(ends, probabilities, n):
    """Join shells until each holds at least 200 draws on average."""
    kept, total, cuts = [], 0.0, []
    for end, p in zip(ends, probabilities, strict=True):
        total += p
        if total * n >= 200:
            kept.append(total)
            cuts.append(end)
            total = 0.0
    kept[-1] += total
    return np.array(cuts[:-1]), np.array(kept)


@pytest.mark.parametrize(
    ("size", "epsilon", "gamma"), [(1, 1.0, None), (2, 2.0, None), (5, 3.0, 0.3), (40, 6.0, 0.9)]
)
def test_draws_have_the_density_and_a_wrong_scale_is_seen(size, epsilon, gamma):
    n = 20_000 + 200_000 // size
    mechanism = l1_staircase(size, 1.0, PureLoss(epsilon), gamma=gamma)
    mechanism = dataclasses.replace(mechanism, n_releases=n)
    x = mechanism.sample(SeededWords(size)) / 2.0**mechanism.bits
    radius = np.abs(x).sum(axis=1)
    cuts, probabilities = merged(*shells(mechanism), n)
    for scale, fits in ((1.0, True), (1.05, False), (0.95, False)):
        counts = np.bincount(np.searchsorted(cuts, scale * radius), minlength=cuts.size + 1)
        assert (chi_square_pvalue(counts, probabilities) > FALSE_ALARM) == fits
    assert uniform_pvalue((x[:, 0] > 0) + 2 * (x[:, -1] > 0), 4) > FALSE_ALARM or size == 1
    if size > 1:
        for column in (0, size - 1):
            share = np.abs(x[:, column]) / radius
            bins = np.floor(beta(1, size - 1).cdf(share) * 40).astype(int)
            assert uniform_pvalue(np.minimum(bins, 39), 40) > FALSE_ALARM
            outer = bins[radius > np.median(radius)]
            assert uniform_pvalue(np.minimum(outer, 39), 40) > FALSE_ALARM


def test_within_a_shell_the_density_is_flat():
    mechanism = l1_staircase(2, 1.0, PureLoss(2.0), n_releases=1)
    mechanism = dataclasses.replace(mechanism, n_releases=100_000)
    radius = np.abs(mechanism.sample(SeededWords(0)) / 2.0**mechanism.bits).sum(axis=1)
    gamma = mechanism.gamma
    for low, high in ((0.0, gamma), (gamma, 1.0), (1.0, 1.0 + gamma)):
        inside = radius[(radius > low) & (radius < high)] ** 2
        bins = np.floor((inside - low**2) / (high**2 - low**2) * 20).astype(int)
        assert uniform_pvalue(np.clip(bins, 0, 19), 20) > FALSE_ALARM


@pytest.mark.slow
def test_the_way_that_draws_more_places_gives_the_same_distribution():
    # At first as few places as there can be: every row is undecided.
    bits, n = 3, 20_000
    slow = rounded_simplex_levels(SeededWords(1), n, 3, bits, Radii((), 3, 1), places=4)
    # The ball of radius 3/2: each magnitude is 3/2 of a Beta(1, 3) variable.
    half_steps = (np.arange(8 * 1.5) + 0.5) / 8
    below = beta(1, 3).cdf(half_steps / 1.5)
    probabilities = np.diff(np.concatenate([[0.0], below[:9], [1.0]]))
    for column in range(3):
        counts = np.bincount(np.minimum(np.abs(slow[:, column]), 9), minlength=10)
        assert chi_square_pvalue(counts, probabilities) > FALSE_ALARM
        assert chi_square_pvalue(np.roll(counts, 1), probabilities) < FALSE_ALARM


@pytest.mark.parametrize(
    ("size", "epsilon"), [(1, 1.0), (2, 0.05), (30, 3.0), (400, 2.0), (5, 90.0)]
)
def test_probabilities_of_the_radii_are_computed_to_many_places(size, epsilon):
    first = l1_staircase(size, 1.0, PureLoss(epsilon)).gamma * 2**32
    cumulative = _cumulative(size, epsilon, int(first))
    radius = np.arange(len(cumulative)) + first / 2.0**32
    weight = size * np.log(radius) - epsilon * np.arange(len(cumulative))
    weight = np.exp(weight - weight.max())
    assert (np.array(cumulative) / 2**256).astype(float) == pytest.approx(
        np.cumsum(weight) / weight.sum(), abs=1e-10
    )
    assert all(a <= b for a, b in itertools.pairwise(cumulative))
    assert 2**256 - cumulative[-1] < 2**60  # what is cut off


class Ones:
    """A source of which every bit is one: the largest level, which ties with the table."""

    secure = False

    def take(self, n):
        return np.full(n, 2**64 - 1, dtype=np.uint64)


def test_a_tie_with_the_table_is_decided_by_further_places():
    cumulative = (1 << 254, (1 << 256) - 2, (1 << 256) - 1)
    drawn = rounded_simplex_levels(Ones(), 3, 1, 2, Radii(cumulative, 1, 0), places=20)
    assert drawn.shape == (3, 1)


def test_spacings_next_to_a_boundary_are_followed_as_far_as_it_takes():
    class Words:
        """The next places of one number are all ones, those of the other zeros."""

        secure, stream = False, [2**64 - 1, 0]

        def take(self, n):
            return np.array([self.stream.pop(0)], dtype=np.uint64)

    # To 68 places the numbers are 1/4 and 3/4; their spacing is a little less than a half.
    known = {0: (4 << 64, 68), 1: (12 << 64, 68)}
    points = LazyNumbers(Words(), np.array([4, 12]), 4, known)
    assert _spacings(points, 0, 2, 1) == [0, 0]
    assert Words.stream == []


def log_density(x, mechanism):
    """Logarithm of the density, up to a constant, from the definition with shells."""
    radius = np.abs(x).sum(axis=-1) / mechanism.width
    k = np.floor(radius)
    return -mechanism.step * (k + (radius - k >= mechanism.gamma))


@pytest.mark.parametrize("size", [1, 2, 10])
def test_no_neighbours_are_told_apart_by_more_than_epsilon(size):
    rng, radius, epsilon = np.random.default_rng(0), 2.5, 0.7
    mechanism = l1_staircase(size, radius, PureLoss(epsilon))
    value = rng.normal(size=(20_000, size)) * 5
    moved = rng.laplace(size=value.shape)
    moved[::2] *= rng.random((10_000, 1)) * np.eye(size)[rng.integers(size, size=10_000)]
    moved *= radius / np.abs(moved).sum(axis=1, keepdims=True)
    moved += rng.choice([-1.0, 1.0], size=moved.shape) * mechanism.grid_size
    output = value + rng.laplace(size=value.shape) * radius
    loss = log_density(output - value, mechanism) - log_density(output - value - moved, mechanism)
    assert np.abs(loss).max() == pytest.approx(epsilon, rel=1e-12)
    less = dataclasses.replace(mechanism, width=0.99 * mechanism.width)
    loss = log_density(output - value, less) - log_density(output - value - moved, less)
    assert np.abs(loss).max() > 1.9 * epsilon
    assert less.privacy_loss().pure_epsilon == 2 * epsilon


def test_a_width_without_room_for_the_rounding_of_the_value_costs_another_step():
    charged = [
        L1StaircaseMechanism(4, 1.0, width, 0.5, 0.5, bits=4).privacy_loss().pure_epsilon
        for width in (1.0, 1.3, 1.34)
    ]
    assert charged == [1.0, 1.0, 0.5]


@every_pair
@pytest.mark.parametrize("size", [1, 7, 300])
@pytest.mark.parametrize("n_releases", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 40.0])
def test_the_charge_never_exceeds_the_guarantee_and_nearly_uses_it(size, n_releases, epsilon):
    guarantee = PrivacyGuarantee(epsilon, 1e-6)
    mechanism = l1_staircase(size, 3.0, guarantee, n_releases=n_releases)
    assert isinstance(mechanism, Mechanism)
    loss = mechanism.privacy_loss().epsilon(0.0)
    assert epsilon * (1 - 1e-9) < loss <= epsilon
    assert mechanism.width == pytest.approx(3.0, rel=1e-6)
    if size < 300:
        assert mechanism.release(np.zeros((n_releases, size)), 0).shape == (n_releases, size)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_expected_errors_are_those_of_the_draws(p):
    mechanism = l1_staircase(4, 2.0, PureLoss(3.0))
    many = dataclasses.replace(mechanism, n_releases=100_000)
    noise = np.abs(many.sample(SeededWords(0)) * many.grid_size) ** p
    assert noise.mean() * 4 == pytest.approx(mechanism.expected_error(p), rel=0.05)
    weights = np.array([0.0, 1.0, 2.0, 3.0])
    assert mechanism.expected_error(p, weights) == pytest.approx(1.5 * mechanism.expected_error(p))


def test_a_release_is_a_whole_number_of_quanta_whatever_the_value():
    mechanism = l1_staircase(2, 1.0, PureLoss(900.0), n_releases=3000)
    for value in ([0.0, 1e6], [1 / 3, 1e-300]):
        released = mechanism.release(np.tile(value, (3000, 1)), 0)
        quanta = np.rint(released / mechanism.grid_size)
        assert (quanta * mechanism.grid_size == released).all()
        assert uniform_pvalue(quanta.astype(np.int64).ravel() & 15, 16) > FALSE_ALARM
    assert (mechanism.sample(SeededWords(1), 7) == mechanism.sample(SeededWords(1), 7)).all()


def test_what_it_is_is_shown():
    mechanism = l1_staircase(3, 1.0, PureLoss(0.5), gamma=0.25)
    assert repr(mechanism) == (
        "L1StaircaseMechanism(n_coordinates=3, radius=1, gamma=0.25, n_releases=1, loss=0.5-DP)"
    )
    assert copy.deepcopy(mechanism) == mechanism
    assert isinstance(mechanism, L1StaircaseMechanism)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: l1_staircase(0, 1.0, PureLoss(1.0)), ValueError, "n_coordinates"),
        (lambda: l1_staircase(2, -1.0, PureLoss(1.0)), ValueError, "radius"),
        (lambda: l1_staircase(2, math.nan, PureLoss(1.0)), ValueError, "radius"),
        (lambda: l1_staircase(2, 1e300, PureLoss(1.0)), ValueError, "units"),
        (lambda: l1_staircase(2, 1.0, PureLoss(1.0), gamma=1.5), ValueError, "gamma"),
        (lambda: l1_staircase(2, 1.0, PureLoss(1e-5)), ValueError, "Laplace"),
        (lambda: l1_staircase(10_000, 1.0, PureLoss(1.0)), ValueError, "Laplace"),
        (lambda: l1_staircase(2, 1.0, GaussianLoss(1.0)), ValueError, "Gaussian noise"),
        (lambda: l1_staircase(2, 1.0, None), TypeError, "guarantee"),
        (lambda: l1_staircase(1, 1.0, PureLoss(1.0)).release([np.inf]), ValueError, "finite"),
        (lambda: l1_staircase(1, 1.0, PureLoss(1.0)).release([1.0, 2.0]), ValueError, "shape"),
        (
            lambda: l1_staircase(1, 1.0, PureLoss(1.0)).sample(SeededWords(0), 2),
            ValueError,
            "charg",
        ),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
