"""The K-norm mechanism: exact draws, the guarantee by force, and closed forms."""

from __future__ import annotations

import copy
import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import beta, chi2, gamma, halfnorm

from skdpnoise.mechanisms import AdditiveMechanism, Mechanism
from skdpnoise.mechanisms.balls import KNormMechanism, k_norm
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sampling.balls import most_places, rounded_cube, rounded_euclidean
from skdpnoise.sampling.lazy import exponentials, half_normals, uniforms
from tests._cases import every_pair, quick
from tests._statistics import FALSE_ALARM, chi_square_pvalue, uniform_pvalue

NORMS = [2.0, math.inf]
SAMPLERS = {2.0: rounded_euclidean, math.inf: rounded_cube}


def quantile_pvalue(values, distribution, n_bins=40):
    """Return the p-value of values being from a continuous distribution, by equal bins."""
    bins = np.floor(distribution.cdf(values) * n_bins).astype(int)
    return uniform_pvalue(np.clip(bins, 0, n_bins - 1), n_bins)


def direction_pvalue(x, norm):
    """Return the p-value of the first coordinates' directions being those of a uniform vector."""
    size = x.shape[1]
    if norm == 2.0:
        share = x[:, 0] ** 2 / (x**2).sum(axis=1)
        return quantile_pvalue(share, beta(0.5, (size - 1) / 2))
    largest = np.abs(x).max(axis=1)
    place = np.abs(x).argmax(axis=1)
    assert uniform_pvalue(place, size) > FALSE_ALARM
    others = np.abs(x[np.arange(len(x)), (place + 1) % size]) / largest
    return quantile_pvalue(others, beta(1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_draws_have_the_density_and_a_wrong_scale_is_seen(norm, size):
    x = SAMPLERS[norm](SeededWords(size), 200_000 // size + 20_000, size, 24) / 2.0**24
    radius = np.linalg.norm(x, norm, axis=1)
    # In the norm itself the radius is Gamma(K), the direction independent of it.
    assert quantile_pvalue(radius, gamma(size)) > FALSE_ALARM
    assert quantile_pvalue(1.05 * radius, gamma(size)) < FALSE_ALARM
    assert quantile_pvalue(0.95 * radius, gamma(size)) < FALSE_ALARM
    if size > 1:
        assert direction_pvalue(x, norm) > FALSE_ALARM
        assert direction_pvalue(x[radius > size], norm) > FALSE_ALARM
        pattern = (x[:, 0] > 0) + 2 * (x[:, 1] > 0)
        assert uniform_pvalue(pattern, 4) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [2, 3])
def test_the_way_that_draws_more_places_gives_the_same_distribution(norm, size):
    # Few places at first: nearly every draw of the Euclidean norm is undecided, and many others.
    bits, n = 3, 8_000
    draw = SAMPLERS[norm]
    slow = draw(SeededWords(1), n, size, bits, places=bits + 1)
    fast = draw(SeededWords(2), n, size, bits)
    for statistic in (lambda x: x[:, 0], lambda x: np.abs(x).max(axis=1)):
        edges = np.unique(np.quantile(statistic(fast), np.arange(1, 12) / 12))

        def counts(x, statistic=statistic, edges=edges):
            bins = np.searchsorted(edges, statistic(x), side="right")
            return np.bincount(bins, minlength=edges.size + 1)

        assert edges.size > 6
        assert two_sample_pvalue(counts(slow), counts(fast)) > FALSE_ALARM
        assert two_sample_pvalue(counts(np.rint(1.2 * slow)), counts(fast)) < FALSE_ALARM


def two_sample_pvalue(one, other):
    """Return the p-value of two vectors of counts having one law."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    statistic = ((one - other) ** 2 / (one + other)).sum()
    return float(chi2.sf(statistic, one.size - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "law"), [(exponentials, gamma(1)), (half_normals, halfnorm())], ids=["e", "n"]
)
def test_further_places_belong_to_the_number_that_was_drawn(draw, law):
    # One-bit digits and two places: comparisons have often seen more than was returned.
    n = 50_000

    def fine(numbers):
        return np.array([numbers.floor(i, 50) for i in range(n)])

    numbers = draw(SeededWords(3), n, 2, width=1)
    assert len(numbers.known) > n / 10
    values = fine(numbers)
    assert (values >> 48 == numbers.first).all()
    assert (values == fine(numbers)).all()
    assert quantile_pvalue(values / 2.0**50, law, 200) > FALSE_ALARM
    # Drawing what a comparison has seen anew would be a bias.
    forgetful = draw(SeededWords(3), n, 2, width=1)
    forgetful.known.clear()
    assert quantile_pvalue(fine(forgetful) / 2.0**50, law, 200) < FALSE_ALARM


def test_uniform_cells_stay_below_their_bounds():
    bounds = np.array([1, 3, 2**61 + 5])
    numbers = uniforms(SeededWords(0), bounds, 2000, 3)
    cells = numbers.first.reshape(3, 2000)
    assert (cells < bounds[:, None]).all()
    assert chi_square_pvalue(np.bincount(cells[1]), np.full(3, 1 / 3)) > FALSE_ALARM
    assert cells[2].max() > 2**60


class Zeros:
    """A broken source of words."""

    secure = False

    def take(self, n):
        return np.zeros(n, dtype=np.uint64)


@pytest.mark.parametrize("draw", SAMPLERS.values())
def test_a_broken_source_is_reported(draw):
    with pytest.raises(RuntimeError, match="broken"):
        draw(Zeros(), 10, 3, 10)


def log_density(x, mechanism):
    return -np.linalg.norm(x, mechanism.norm, axis=-1) / mechanism.scale


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 3, 30])
def test_no_neighbours_are_told_apart_by_more_than_epsilon(norm, size):
    rng, radius, epsilon = np.random.default_rng(0), 2.5, 0.7
    mechanism = k_norm(norm, radius, size, PureLoss(epsilon))
    value = rng.normal(size=(5000, size)) * 10
    moved = rng.normal(size=(5000, size))
    moved[::2] = rng.choice([-1.0, 1.0], size=(2500, size))  # corners
    moved *= radius / np.linalg.norm(moved, norm, axis=1, keepdims=True)
    # Both are rounded to grid steps, as differently as they can be.
    moved += rng.choice([-1.0, 1.0], size=moved.shape) * mechanism.grid_size
    output = value + rng.normal(size=value.shape) * 10
    output[0] = value[0]
    loss = log_density(output - value, mechanism) - log_density(output - value - moved, mechanism)
    assert np.abs(loss).max() <= epsilon
    assert epsilon * (1 - 1e-6) < loss[0] <= epsilon
    less = dataclasses.replace(mechanism, scale=0.99 * mechanism.scale)
    assert less.privacy_loss().pure_epsilon > epsilon * 1.005


@pytest.mark.parametrize(("norm", "added"), [(2.0, 3.0), (math.inf, 1.0)])
def test_the_rounding_of_the_value_is_charged_for(norm, added):
    coarse = KNormMechanism(norm, 1.0, 9, 2.0, bits=4, n_releases=3)
    expected = 3 * (0.5 + added / 16)
    assert coarse.privacy_loss().pure_epsilon == pytest.approx(expected, rel=1e-4)


@every_pair
@pytest.mark.parametrize("norm", [1, *NORMS])
@pytest.mark.parametrize("size", [1, 7, 500])
@pytest.mark.parametrize("n_releases", [1, 3])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 40.0])
def test_the_charge_never_exceeds_the_guarantee_and_nearly_uses_it(norm, size, n_releases, epsilon):
    guarantee = PrivacyGuarantee(epsilon, 1e-6)
    mechanism = k_norm(norm, 3.0, size, guarantee, n_releases=n_releases)
    assert isinstance(mechanism, Mechanism)
    loss = mechanism.privacy_loss().epsilon(0.0)
    assert epsilon * (1 - 1e-6) < loss <= epsilon
    assert mechanism.release(np.zeros((n_releases, size)), 0).shape == (n_releases, size)


@quick("inf-2.0")
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("norm", NORMS)
def test_expected_errors_are_those_of_the_draws(norm, p):
    mechanism = k_norm(norm, 2.0, 5, PureLoss(1.0), n_releases=1)
    many = dataclasses.replace(mechanism, n_releases=100_000)
    noise = np.abs(many.sample(SeededWords(0)) * many.grid_size) ** p
    assert noise.mean() * 5 == pytest.approx(mechanism.expected_error(p), rel=0.05)
    weights = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert mechanism.expected_error(p, weights) == pytest.approx(2 * mechanism.expected_error(p))


def test_total_variances_are_the_closed_forms():
    for size in (1, 2, 17):
        b = 1.0 / 0.5
        two = k_norm(2, 1.0, size, PureLoss(0.5)).expected_error()
        assert two == pytest.approx(size * (size + 1) * b**2, rel=1e-5)
        largest = k_norm(math.inf, 1.0, size, PureLoss(0.5)).expected_error()
        assert largest == pytest.approx(size * (size + 1) * (size + 2) * b**2 / 3, rel=1e-5)
        one = k_norm(1, 1.0, size, PureLoss(0.5)).expected_error()
        assert one == pytest.approx(2 * size * b**2, rel=1e-5)


def test_a_release_is_a_whole_number_of_quanta_whatever_the_value():
    mechanism = k_norm(2, 1.0, 2, PureLoss(1.0), n_releases=5000)
    for value in ([0.0, 1e6], [1 / 3, 1e-300]):
        released = mechanism.release(np.tile(value, (5000, 1)), 0)
        quanta = np.rint(released / mechanism.grid_size)
        assert (quanta * mechanism.grid_size == released).all()
        assert uniform_pvalue(quanta.astype(np.int64).ravel() & 15, 16) > FALSE_ALARM
    assert (mechanism.sample(SeededWords(1), 7) == mechanism.sample(SeededWords(1), 7)).all()


def test_what_it_is_is_shown():
    mechanism = k_norm(math.inf, 1.0, 3, PureLoss(0.5))
    assert repr(mechanism) == (
        "KNormMechanism(norm=inf, radius=1, n_coordinates=3, scale=2, n_releases=1, loss=0.5-DP)"
    )
    assert copy.deepcopy(mechanism) == mechanism
    assert isinstance(mechanism, KNormMechanism)
    assert isinstance(k_norm(1, 1.0, 3, PureLoss(0.5)), AdditiveMechanism)
    assert most_places(10**6) >= 38


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: k_norm(3, 1.0, 2, PureLoss(1.0)), ValueError, "1, 2 or inf"),
        (lambda: k_norm("2", 1.0, 2, PureLoss(1.0)), TypeError, "norm"),
        (lambda: k_norm(2, 0.0, 2, PureLoss(1.0)), ValueError, "radius"),
        (lambda: k_norm(2, math.inf, 2, PureLoss(1.0)), ValueError, "radius"),
        (lambda: k_norm(2, 1e300, 2, PureLoss(1.0)), ValueError, "units"),
        (lambda: k_norm(2, 1.0, 0, PureLoss(1.0)), ValueError, "n_coordinates"),
        (lambda: k_norm(2, 1.0, 2, PureLoss(0.0)), ValueError, "positive epsilon"),
        (lambda: k_norm(2, 1.0, 2, PureLoss(1e-15)), ValueError, "larger"),
        (lambda: k_norm(2, 1.0, 2, GaussianLoss(1.0)), ValueError, "Gaussian noise"),
        (lambda: k_norm(2, 1.0, 2, 1.0), TypeError, "guarantee"),
        (lambda: k_norm(2, 1.0, 2, PureLoss(1.0)).release([np.nan, 0]), ValueError, "finite"),
        (lambda: k_norm(2, 1.0, 2, PureLoss(1.0)).release(["a", "b"]), TypeError, "real"),
        (lambda: k_norm(2, 1.0, 2, PureLoss(1.0)).release([0.0]), ValueError, "shape"),
        (lambda: k_norm(2, 1.0, 2, PureLoss(1.0)).sample(SeededWords(0), 2), ValueError, "charged"),
        (
            lambda: k_norm(2, 1.0, 2, PureLoss(1.0)).sample(SeededWords(0), 0),
            ValueError,
            "n_releases",
        ),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
