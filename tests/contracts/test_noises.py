"""What every noise family promises. Families are found by themselves; nothing to edit here."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.special import ndtr, ndtri_exp

from skdpnoise.mechanisms._scale_search import gaussian_mu
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.privacy import LossCurve, NumericLoss, gdp_delta
from skdpnoise.sampling import SeededWords, SystemWords
from tests._cases import each_value, quick
from tests._statistics import FALSE_ALARM, fit_pvalue, hockey_stick

SHIFTS = [0.1, 0.7, 2.0]


def shapes(name):
    """The default of a family, and two values well inside the range of its shape."""
    family = get_noise(name)
    yield family
    if family.shape_range is not None:
        low, high = family.shape_range
        yield get_noise(name, low * (high / low) ** 0.4)
        yield get_noise(name, low * (high / low) ** 0.7)


FAMILIES = [family for name in noise_names() for family in shapes(name)]
SMOOTH = [family for family in FAMILIES if not family.lattice]
every_family = pytest.mark.parametrize("noise", FAMILIES, ids=str)
every_density = pytest.mark.parametrize("noise", SMOOTH, ids=str)
every_lattice = pytest.mark.parametrize("noise", [f for f in FAMILIES if f.lattice], ids=str)


def far(noise) -> float:
    return float(noise.isf(1e-30))


def kinks(noise):
    """Where a density may jump or bend, z > 0."""
    found = [np.arange(70.0), [getattr(noise, "shape", 1.0)]]
    if hasattr(noise, "share"):  # of a step that is on the higher level
        found.append(np.arange(70.0) + noise.share)
    return np.concatenate(found)


def panels(noise, *more: float):
    """Ends of short panels over z > 0."""
    reach = far(noise)
    ends = [np.geomspace(1e-9, 1.0, 60), np.linspace(1.0, reach, 2000)[1:], kinks(noise), more]
    ends = np.unique(np.concatenate([[0.0], *ends]))
    return ends[ends <= reach]


def expectation(noise, function) -> float:
    """Integrate function(z) f(z) over z > 0 with Gauss's rule on short panels, and double it."""
    ends = panels(noise)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = 0.5 * np.diff(ends)[:, None]
    z = ends[:-1, None] + half * (1.0 + nodes)
    return float(2.0 * (half * weights * function(z) * np.exp(noise.logpdf(z))).sum())


@every_family
def test_a_family_is_a_noise_a_curve_and_a_value(noise):
    assert isinstance(noise, Noise)
    curve: LossCurve = noise
    assert NumericLoss(((curve, 1.0, 1),)).terms[0][0] is noise
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert hash(noise) == hash(pickle.loads(pickle.dumps(noise)))
    assert math.isfinite(noise.variance)
    assert noise.fisher_information > 0.0
    assert all(isinstance(x, bool) for x in (noise.supports_pure, noise.log_concave, noise.lattice))
    assert noise.norm_order is None or noise.norm_order >= 1.0


@every_density
def test_density_integrates_to_one_and_is_symmetric(noise):
    assert expectation(noise, np.ones_like) == pytest.approx(1.0, rel=1e-9)
    z = np.linspace(-5.0, 5.0, 101)
    np.testing.assert_allclose(noise.logpdf(z), noise.logpdf(-z), rtol=1e-13)


@every_density
def test_moments_agree_with_quadrature(noise):
    assert noise.variance == pytest.approx(expectation(noise, np.square), rel=1e-9)
    assert noise.absolute_moment(2) == pytest.approx(noise.variance, rel=1e-9)
    assert noise.absolute_moment(0) == pytest.approx(1.0, rel=1e-9)
    for p in (0.5, 1.0, 2.5, 4.0):
        quadrature = expectation(noise, lambda z, p=p: z**p)
        assert noise.absolute_moment(p) == pytest.approx(quadrature, rel=1e-7)


@every_density
def test_fisher_information_agrees_with_quadrature_of_the_slope(noise):
    if not math.isfinite(noise.fisher_information):
        return
    step = 1e-6
    slope = expectation(
        noise, lambda z: ((noise.logpdf(z + step) - noise.logpdf(z - step)) / (2 * step)) ** 2
    )
    assert noise.fisher_information == pytest.approx(slope, rel=1e-3)


@each_value(1)
@every_density
@pytest.mark.parametrize("z", [-3.0, -0.5, 0.0, 0.3, 1.0, 4.0, 12.0])
def test_tail_probability_agrees_with_quadrature(noise, z):
    ends = panels(noise, abs(z))
    ends = np.union1d(ends, -ends)
    ends = np.append(ends[ends >= z], far(noise) + np.linspace(0.1, 3.0, 30))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(ends)[:, None]
    values = noise.logpdf(ends[:-1, None] + half * (1.0 + nodes))
    if not np.isfinite(values).any():
        assert noise.sf(z) == 0.0
        return
    peak = values.max()  # in logs: the tail may be far below the smallest float
    total = (half * weights * np.exp(values - peak)).sum()
    if total > 0.0 and noise.sf(z) > 1e-25:
        assert math.log(noise.sf(z)) == pytest.approx(peak + math.log(total), abs=1e-4)


@every_density
def test_quantiles_invert_tail_probabilities(noise):
    # Where the support ends, or the density is flat, z has too few digits for a far tail.
    least = 1e-200 if noise.log_concave and noise.isf(0.0) == math.inf else 1e-3
    q = np.concatenate([np.geomspace(least, 0.4, 200), np.linspace(0.41, 0.999, 50)])
    np.testing.assert_allclose(noise.sf(noise.isf(q)), q, rtol=1e-8)
    z = np.linspace(-3.0, 5.0, 200)
    z = z[(noise.sf(z) > 0.0) & (noise.sf(z) < 1.0 - 1e-9)]
    np.testing.assert_allclose(noise.isf(noise.sf(z)), z, rtol=1e-6, atol=1e-6)
    assert noise.isf(0.5) == pytest.approx(0.0, abs=1e-12)
    assert noise.sf(0.0) == pytest.approx(0.5)
    assert noise.isf(0.0) > noise.isf(1e-12)
    assert noise.isf(1.0) == -noise.isf(0.0)


@pytest.mark.parametrize("noise", FAMILIES[::2], ids=str)
def test_functions_keep_the_shape_of_their_argument(noise):
    for function in (noise.logpdf, noise.sf, noise.isf):
        assert np.shape(function(0.25)) == ()
        assert np.shape(function([[0.25, 0.5, 0.75]])) == (1, 3)
    assert noise.hockey_stick([0.0, 0.5, 1.0], [[1.0], [2.0]]).shape == (2, 3)
    assert np.shape(noise.hockey_stick(0.5, 1.0)) == ()
    assert noise.max_loss(np.array([0.0, 1.0])).shape == (2,)


@each_value(1)
@pytest.mark.slow
@every_density
@pytest.mark.parametrize("bits", [0, 24, 40])
def test_draws_follow_the_density(noise, bits):
    draws = noise.sample_rounded(SeededWords(bits), (150, 1000), bits)
    assert draws.shape == (150, 1000)
    assert draws.dtype == np.int64
    if bits == 0 and noise.variance < 4.0:
        return  # too few different values to test the fit by bins
    assert fit_pvalue(draws, noise, bits) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, noise, bits, scale=scale) < FALSE_ALARM


@every_lattice
def test_integer_draws_follow_their_probabilities(noise):
    draws = noise.sample_rounded(SeededWords(1), 400_000, 0)
    values, counts = np.unique(draws, return_counts=True)
    expected = draws.size * np.exp(noise.logpdf(values))
    large = expected > 100
    pearson = float(((counts[large] - expected[large]) ** 2 / expected[large]).sum())
    # P(chi-square of k > k + 2 sqrt(k x) + 2 x) <= exp(-x) (Laurent and Massart, 2000).
    x, k = -math.log(FALSE_ALARM), int(large.sum())
    assert pearson < k + 2.0 * math.sqrt(k * x) + 2.0 * x
    wrong = draws.size * np.exp(type(noise)(1.05 * noise.shape).logpdf(values))
    pearson = float(((counts[large] - wrong[large]) ** 2 / wrong[large]).sum())
    assert pearson > k + 2.0 * math.sqrt(k * x) + 2.0 * x
    with pytest.raises(ValueError, match="bits"):
        noise.sample_rounded(SeededWords(1), 10, 5)


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("noise", SMOOTH[::4], ids=str)  # whatever draws, words are words
def test_draws_from_the_operating_system_follow_the_density(noise):
    assert fit_pvalue(noise.sample_rounded(SystemWords(), 150_000, 24), noise, 24) > FALSE_ALARM


@quick(
    "Subbotin(shape=1.3274091975946836)",
    "Staircase(shape=1.0, gamma=None)",
    "TruncatedLaplace(shape=10.0)",
    "FlippedHuber(shape=1.0)",
    "2.0",
)
@each_value(1)
@every_density
@pytest.mark.parametrize("shift", SHIFTS)
def test_the_curve_covers_the_integral_and_is_reached(noise, shift):
    """For noise that is not log-concave a smaller change may be the worst: it covers, at least."""
    for epsilon in np.linspace(0.0, 2.0 * shift, 9):
        claimed = float(noise.hockey_stick(epsilon, shift))
        true_delta = hockey_stick(noise.logpdf, shift, epsilon, far(noise) + shift, kinks(noise))
        assert claimed >= true_delta * (1.0 - 1e-6) - 1e-12
        if noise.log_concave:
            assert claimed == pytest.approx(true_delta, rel=2e-3, abs=2e-6)


@each_value(1)
@every_lattice
@pytest.mark.parametrize("shift", [1, 3])
def test_the_curve_of_integer_noise_is_the_sum(noise, shift):
    k = np.arange(-4000, 4001)
    p, q = np.exp(noise.logpdf(k)), np.exp(noise.logpdf(k - shift))
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        delta = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
        assert noise.hockey_stick(epsilon, shift) == pytest.approx(delta, rel=1e-8, abs=1e-15)


@every_family
def test_a_larger_change_and_a_smaller_epsilon_cost_more(noise):
    epsilon = np.linspace(0.0, 5.0, 41)
    shift = np.array([0.0, 0.2, 1.0, 1.5, 3.0])[:, None]
    delta = noise.hockey_stick(epsilon, shift)
    assert (delta[0] == 0.0).all()
    assert (np.diff(delta, axis=0) >= -1e-15).all()
    assert (np.diff(delta, axis=1) <= 1e-15).all()
    assert ((delta >= 0.0) & (delta <= 1.0)).all()


@every_family
def test_the_largest_loss_is_where_the_curve_ends(noise):
    for shift in (1.0, 2.0):
        largest = float(noise.max_loss(shift))
        if math.isfinite(largest):
            assert noise.hockey_stick(largest * (1.0 + 1e-9), shift) == 0.0
            assert noise.hockey_stick(largest * 0.98, shift) > 0.0
        else:
            assert noise.hockey_stick(3.0, shift) > 0.0
    assert not noise.supports_pure or math.isfinite(noise.max_loss(1.0))


@each_value(1)
@every_density
@pytest.mark.parametrize("shift", [1e-6, 0.01, 0.3, 1.0, 4.0])
def test_the_gaussian_loss_of_a_shift_contains_its_curve(noise, shift):
    if float(noise.hockey_stick(1e4, shift)) > 0.0:
        return  # total disclosure is never Gaussian
    mu = float(gaussian_mu(noise, np.array([shift]))[0])
    for epsilon in np.linspace(0.0, 4.0 * mu + mu**2, 40):
        assert noise.hockey_stick(epsilon, shift) <= gdp_delta(mu, epsilon) * (1 + 1e-7) + 1e-300


@each_value(1)
@every_density
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 4.0])
def test_the_gaussian_loss_of_a_log_concave_noise_is_its_largest_rise(noise, shift):
    """max g(t) - g(t - a), g = Phi^-1 F, on a fine grid: the other road to the same number."""
    if not noise.log_concave or not math.isinf(float(noise.isf(0.0))):
        return
    t = np.linspace(0.5 * shift, 0.5 * shift + float(noise.isf(1e-60)), 400_001)
    below = -ndtri_exp(np.log(noise.sf(t)))
    behind = t - shift
    value = ndtri_exp(np.log(noise.sf(np.abs(behind))))
    rise = below - np.where(behind > 0.0, -value, value)
    mu = float(gaussian_mu(noise, np.array([shift]))[0])
    assert rise.max() * (1.0 - 1e-9) <= mu <= rise.max() * (1.0 + 1e-5)


@each_value(1)
@every_density
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 4.0])
def test_the_gaussian_loss_of_other_noise_has_the_total_variation_of_its_largest_loss(noise, shift):
    """tanh(eps/2) = 2 Phi(mu/2) - 1: the other road for noise that is not log-concave."""
    epsilon = float(noise.max_loss(shift))
    if noise.log_concave or not math.isfinite(epsilon):
        return
    mu = float(gaussian_mu(noise, np.array([shift]))[0])
    distance = 1.0 - 2.0 * float(ndtr(-0.5 * mu))
    assert distance >= math.tanh(0.5 * epsilon) * (1.0 - 1e-12)
    assert distance <= math.tanh(0.5 * epsilon) * (1.0 + 1e-6)
