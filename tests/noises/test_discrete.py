"""The two families that live on the integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpnoise.noises.discrete_gaussian import DiscreteGaussian
from skdpnoise.noises.discrete_laplace import DiscreteLaplace
from skdpnoise.privacy import gdp_delta
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, distance_pvalue, fit_pvalue

NOISES = [
    family(scale)
    for family in (DiscreteLaplace, DiscreteGaussian)
    for scale in (0.1, 0.5, 1.0, 7.3, 49.0, 60.0, 300.0)
]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=str)


def integers(noise) -> np.ndarray:
    half = math.ceil((45.0 if isinstance(noise, DiscreteLaplace) else 10.0) * noise.shape) + 40
    return np.arange(-half, half + 1)


@every_noise
def test_probabilities_sum_to_one_and_give_the_moments(noise):
    k = integers(noise)
    pmf = np.exp(noise.logpdf(k))
    assert pmf.sum() == pytest.approx(1.0, rel=1e-12)
    for p in (0.5, 1.0, 2.0, 3.0):
        moment = (pmf * np.abs(k, dtype=float) ** p).sum()
        assert noise.absolute_moment(p) == pytest.approx(moment, rel=1e-11)
    assert noise.variance == pytest.approx(noise.absolute_moment(2.0), rel=1e-11)
    assert noise.absolute_moment(0.0) == 1.0
    assert noise.absolute_moment(-0.5) == math.inf
    assert noise.fisher_information == math.inf
    np.testing.assert_array_equal(noise.logpdf([0.5, -1.5]), [-math.inf] * 2)


@every_noise
def test_tails_are_sums_of_probabilities(noise):
    k = integers(noise)
    pmf = np.exp(noise.logpdf(k))
    above = np.cumsum(pmf[::-1])[::-1]
    inner = slice(20, -20)
    tails = np.append(above[1:], 0.0)
    np.testing.assert_allclose(noise.sf(k[inner]), tails[inner], rtol=1e-9, atol=1e-18)
    np.testing.assert_array_equal(noise.sf(k + 0.75), noise.sf(k))
    z = np.arange(0.0, 30.0 * noise.shape, max(1.0, noise.shape // 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = noise.sf(z - 1.0) - noise.sf(z)
    keep = (z >= 1.0) & (noise.sf(z) > 1e-300)
    np.testing.assert_allclose(fall[keep], np.exp(noise.logpdf(z[keep])), rtol=1e-9)


@every_noise
def test_quantiles_are_the_smallest_integers(noise):
    q = np.concatenate([np.geomspace(1e-290, 0.4, 200), np.linspace(0.41, 0.999, 50)])
    k = noise.isf(q)
    assert (k == np.floor(k)).all()
    assert (noise.sf(k) <= q).all()
    assert (noise.sf(k - 1.0) > q).all()
    assert noise.isf([0.0, 1.0]).tolist() == [math.inf, -math.inf]
    assert noise.isf(0.25).shape == ()


@each_value(1)
@every_noise
@pytest.mark.parametrize("shift", [1, 2, 9, 30])
def test_delta_is_the_sum_over_the_integers(noise, shift):
    k = integers(noise)
    for epsilon in (0.0, 0.013, 0.1, 0.7, 3.0, 20.0):
        loss = noise.logpdf(k) - noise.logpdf(k - shift) - epsilon
        gain = np.where(loss > 1e-13, -np.expm1(-np.abs(loss)), 0.0)
        exact = (np.exp(noise.logpdf(k)) * gain).sum()
        value = noise.hockey_stick(epsilon, shift)
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-15)
        assert noise.hockey_stick(epsilon, shift + 0.9) == value


@pytest.mark.parametrize(
    ("scale", "epsilon", "shift", "delta"),
    [
        (7.0, 5.0, 1, 5.8292309610169719e-270),
        (1.0, 12.0, 1, 8.4454240201419398e-33),
        (40.0, 0.7, 1, 1.0467832778779533e-175),
        (60.0, 0.4, 1, 1.182991279297314e-130),
        (400.0, 0.02, 1, 1.9065677271081594e-19),
        (400.0, 0.08, 9, 1.0963889574874085e-6),
    ],
)
def test_delta_keeps_its_digits_however_small(scale, epsilon, shift, delta):
    """By mpmath in 50 digits: the sum over all integers."""
    value = DiscreteGaussian(scale).hockey_stick(epsilon, shift)
    assert value == pytest.approx(delta, rel=1e-11)


def test_table_and_expansion_agree():
    table, expansion = DiscreteGaussian(50.0), DiscreteGaussian(np.nextafter(50.0, 51.0))
    epsilon = np.linspace(0.0, 0.7, 50)[:, None]
    shift = np.array([1.0, 3.0, 8.0, 9.0, 20.0, 100.0])
    np.testing.assert_allclose(
        table.hockey_stick(epsilon, shift), expansion.hockey_stick(epsilon, shift), rtol=2e-11
    )
    k = np.arange(0.0, 1900.0)
    np.testing.assert_allclose(table.sf(k), expansion.sf(k), rtol=1e-12)


def test_a_wide_discrete_gaussian_is_nearly_normal():
    noise = DiscreteGaussian(1e6)
    for epsilon in (0.0, 0.1, 1.0):
        delta = gdp_delta(0.25, epsilon)
        assert noise.hockey_stick(epsilon, 250_000) == pytest.approx(delta, rel=1e-4)
    assert noise.variance == pytest.approx(1e12, rel=1e-12)


def test_a_wide_discrete_laplace_is_nearly_continuous():
    noise = DiscreteLaplace(1e6)
    assert noise.hockey_stick(0.1, 500_000) == pytest.approx(-math.expm1(-0.2), rel=1e-5)
    assert noise.absolute_moment(2.5) == pytest.approx(math.gamma(3.5) * 1e15, rel=1e-9)


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e4])
def test_discrete_laplace_is_pure(scale):
    noise = DiscreteLaplace(scale)
    for shift in (1, 3):
        largest = noise.max_loss(shift)
        assert largest == pytest.approx(shift / scale, rel=1e-15)
        assert noise.hockey_stick(largest, shift) == 0.0
        assert noise.hockey_stick(0.99 * largest, shift) > 0.0
    assert noise.max_loss([0.0, 0.9]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.3, 60.0])
@pytest.mark.parametrize("shift", [1, 5])
def test_discrete_gaussian_is_concentrated(sigma, shift):
    noise = DiscreteGaussian(sigma)
    k = integers(noise)
    log_p, log_q = noise.logpdf(k), noise.logpdf(k - shift)
    for order in (1.5, 4.0):
        exponent = order * log_p + (1.0 - order) * log_q
        top = exponent.max()
        divergence = (top + math.log(np.exp(exponent - top).sum())) / (order - 1.0)
        assert divergence <= order * shift**2 / (2.0 * sigma**2) * (1.0 + 1e-9)
    assert noise.variance <= sigma**2 * (1.0 + 1e-12)
    assert noise.max_loss([0.0, 0.9, 1.0]).tolist() == [0.0, 0.0, math.inf]


@every_noise
def test_no_shift_costs_nothing_and_large_epsilon_does_not_overflow(noise):
    assert noise.hockey_stick([0.0, 1.0], 0.0).tolist() == [0.0, 0.0]
    far = noise.hockey_stick(np.linspace(0.0, 700.0, 50)[:, None], [0.5, 1.0, 100.0, 1e6])
    assert np.isfinite(far).all()
    assert (np.diff(far, axis=0) <= 0.0).all()
    assert (np.diff(far, axis=1) >= -1e-15).all()


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(0.7), DiscreteLaplace(40.0), DiscreteGaussian(30.0)], ids=str
)
def test_draws_follow_the_probabilities(noise):
    draws = noise.sample_rounded(SeededWords(1), (150, 1000), 0)
    assert draws.shape == (150, 1000)
    assert fit_pvalue(draws, noise, 0) > FALSE_ALARM
    wrong = type(noise)(1.05 * noise.shape)
    assert fit_pvalue(draws, wrong, 0) < FALSE_ALARM


@every_noise
def test_binary_places_are_refused(noise):
    with pytest.raises(ValueError, match=r"'bits' parameter of Discrete.* must be 0"):
        noise.sample_rounded(SeededWords(1), 3, 1)


@pytest.mark.parametrize("scale", [0.0, 2e9, math.nan])
def test_other_scales_are_refused(scale):
    for family in (DiscreteLaplace, DiscreteGaussian):
        with pytest.raises(ValueError, match="'shape' parameter of Discrete"):
            family(scale)


@pytest.mark.slow
def test_the_discrete_families_agree_with_opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    theirs = dp.m.make_laplace(*space, scale=2.0)
    ours = DiscreteLaplace(2.0)
    assert theirs.map(3) == pytest.approx(float(ours.max_loss(3.0)), rel=1e-12)
    assert distance_pvalue([theirs(0) for _ in range(8000)], ours, 0) > FALSE_ALARM

    concentrated = dp.m.make_gaussian(*space, scale=2.0)
    ours = DiscreteGaussian(2.0)
    assert concentrated.map(3) == pytest.approx(3.0**2 / (2.0 * 2.0**2), rel=1e-12)
    assert distance_pvalue([concentrated(0) for _ in range(8000)], ours, 0) > FALSE_ALARM
    # Their curve follows from the Renyi divergences and lies above the exact one.
    curve = dp.c.make_zCDP_to_approxDP(concentrated).map(3)
    for epsilon in (0.5, 2.0, 6.0):
        exact = float(ours.hockey_stick(epsilon, 3.0))
        assert 0.1 * curve.delta(epsilon) < exact <= curve.delta(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [1, 3])
def test_the_discrete_families_agree_with_dp_accounting(shift):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    cases = [
        (DiscreteLaplace(2.0), pld.from_discrete_laplace_mechanism, 0.5),
        (DiscreteGaussian(4.0), pld.from_discrete_gaussian_mechanism, 4.0),
    ]
    for noise, make, parameter in cases:
        for epsilon in (0.0, 0.3, 1.0):
            below, above = (
                make(
                    parameter,
                    sensitivity=shift,
                    value_discretization_interval=1e-5,
                    pessimistic_estimate=pessimistic,
                ).get_delta_for_epsilon(epsilon)
                for pessimistic in (False, True)
            )
            found = float(noise.hockey_stick(epsilon, float(shift)))
            assert below * (1.0 - 1e-9) - 1e-12 <= found <= above * (1.0 + 1e-9) + 1e-12
