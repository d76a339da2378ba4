"""What every noise family promises. Families are found by themselves; nothing to edit here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.sampling import SeededWords, SystemWords
from tests._statistics import FALSE_ALARM, fit_pvalue, hockey_stick

RESOURCES = [0.1, 0.7, 2.0]

every_family = pytest.mark.parametrize(
    "noise", [get_noise(n) for n in noise_names()], ids=noise_names()
)


def expectation(noise, function) -> float:
    """Integrate function(z) f(z) over z > 0 with Gauss's rule on short panels, and double it."""
    ends = np.concatenate(
        [[0.0], np.geomspace(1e-9, 1.0, 60), np.linspace(1.0, far(noise), 2000)[1:]]
    )
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = 0.5 * np.diff(ends)[:, None]
    z = ends[:-1, None] + half * (1.0 + nodes)
    return float(2.0 * (half * weights * function(z) * np.exp(noise.logpdf(z))).sum())


def far(noise) -> float:
    return float(noise.isf(1e-30))


@every_family
def test_density_integrates_to_one_and_is_symmetric(noise):
    assert expectation(noise, np.ones_like) == pytest.approx(1.0, rel=1e-9)
    z = np.linspace(-5.0, 5.0, 101)
    np.testing.assert_allclose(noise.logpdf(z), noise.logpdf(-z), rtol=1e-13)


@every_family
def test_moments_agree_with_quadrature(noise):
    assert noise.variance == pytest.approx(expectation(noise, np.square), rel=1e-9)
    assert noise.absolute_moment(2) == pytest.approx(noise.variance, rel=1e-12)
    assert noise.absolute_moment(0) == pytest.approx(1.0, rel=1e-12)
    for p in (0.5, 1.0, 2.5, 4.0):
        quadrature = expectation(noise, lambda z, p=p: z**p)
        assert noise.absolute_moment(p) == pytest.approx(quadrature, rel=1e-7)


@every_family
@pytest.mark.parametrize("z", [-3.0, -0.5, 0.0, 0.3, 1.0, 4.0, 12.0, 30.0])
def test_tail_probability_agrees_with_quadrature(noise, z):
    reach = z + far(noise)
    ends = np.union1d(np.linspace(z, reach, 20_001), [0.0] if z < 0.0 else [])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(ends)[:, None]
    values = noise.logpdf(ends[:-1, None] + half * (1.0 + nodes))
    peak = values.max()  # in logs: the tail may be far below the smallest float
    log_tail = peak + math.log((half * weights * np.exp(values - peak)).sum())
    assert math.log(noise.sf(z)) == pytest.approx(log_tail, abs=1e-8)


@every_family
def test_quantiles_invert_tail_probabilities(noise):
    q = np.concatenate([np.geomspace(1e-290, 0.4, 200), np.linspace(0.41, 0.999, 50)])
    np.testing.assert_allclose(noise.sf(noise.isf(q)), q, rtol=1e-9)
    z = np.linspace(-3.0, 20.0, 200)
    np.testing.assert_allclose(noise.isf(noise.sf(z)), z, rtol=1e-9, atol=1e-9)
    assert noise.isf(0.5) == pytest.approx(0.0, abs=1e-15)
    assert noise.sf(0.0) == pytest.approx(0.5)
    assert noise.isf(0.0) == math.inf
    assert noise.isf(1.0) == -math.inf


@every_family
def test_functions_keep_the_shape_of_their_argument(noise):
    for function in (noise.logpdf, noise.sf, noise.isf):
        assert np.shape(function(0.25)) == ()
        assert np.shape(function([[0.25, 0.5, 0.75]])) == (1, 3)


@every_family
@pytest.mark.parametrize("bits", [0, 5, 24, 52])
def test_draws_follow_the_density(noise, bits):
    draws = noise.sample_rounded(SeededWords(bits), (150, 1000), bits)
    assert draws.shape == (150, 1000)
    assert draws.dtype == np.int64
    assert fit_pvalue(draws, noise, bits) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, noise, bits, scale=scale) < FALSE_ALARM


@every_family
def test_draws_from_the_operating_system_follow_the_density(noise):
    assert fit_pvalue(noise.sample_rounded(SystemWords(), 150_000, 24), noise, 24) > FALSE_ALARM


@every_family
@pytest.mark.parametrize("resource", RESOURCES)
def test_claimed_loss_covers_the_true_one(noise, resource):
    loss = noise.loss(resource)
    assert isinstance(loss, PrivacyLoss)
    for epsilon in np.linspace(0.0, 1.5 * resource, 16):
        true_delta = hockey_stick(noise.logpdf, resource, epsilon, far(noise))
        assert loss.delta(epsilon) >= true_delta * (1.0 - 1e-9) - 1e-15


@every_family
@pytest.mark.parametrize("resource", RESOURCES)
def test_a_claim_one_percent_smaller_would_be_false(noise, resource):
    smaller = noise.loss(0.99 * resource)
    grid = np.linspace(0.0, 1.5 * resource, 301)
    true_delta = [hockey_stick(noise.logpdf, resource, epsilon, far(noise)) for epsilon in grid]
    assert any(smaller.delta(e) < 0.999 * d for e, d in zip(grid, true_delta, strict=True))


@every_family
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (5.0, 1e-12), (1.0, 0.1)])
def test_resource_meets_the_guarantee_and_one_percent_more_does_not(noise, epsilon, delta):
    resource = noise.resource(PrivacyGuarantee(epsilon, delta))
    assert noise.loss(resource).delta(epsilon) <= delta
    more = noise.loss(1.01 * resource)
    assert more.delta(epsilon) > delta or more.epsilon(0.0) > epsilon


@every_family
def test_pure_privacy_is_given_or_refused_with_a_way_out(noise):
    guarantee = PrivacyGuarantee(1.0)
    if noise.supports_pure:
        for target in (guarantee, PureLoss(1.0)):
            assert noise.loss(noise.resource(target)).delta(1.0) == 0.0
        return
    for target in (guarantee, PureLoss(1.0)):
        with pytest.raises(ValueError, match="'noise' parameter") as caught:
            noise.resource(target)
        assert all(repr(name) in str(caught.value) for name in noise_names(pure=True))


@every_family
@pytest.mark.parametrize("mu", [1e-8, 1e-3, 0.3, 0.999, 1.0, 4.0, 12.0])
def test_a_gaussian_budget_is_never_exceeded_and_well_used(noise, mu):
    target = GaussianLoss(mu)
    resource = noise.resource(target)
    reach = far(noise) + resource
    for epsilon in np.linspace(0.0, max(2.0 * mu, 0.5 * mu**2), 8):
        true_delta = hockey_stick(noise.logpdf, resource, epsilon, reach)
        assert true_delta <= target.delta(epsilon) * (1.0 + 1e-7) + 1e-15
    assert noise.resource(GaussianLoss(1.01 * mu)) > resource


@every_family
@pytest.mark.parametrize("resource", RESOURCES)
def test_the_loss_of_a_resource_buys_that_resource(noise, resource):
    assert noise.resource(noise.loss(resource)) == pytest.approx(resource, rel=1e-9)


@every_family
def test_targets_of_another_type_are_refused(noise):
    for bad in (1.0, "1", None):
        with pytest.raises(TypeError, match="'target' parameter"):
            noise.resource(bad)


@every_family
def test_constants_are_in_their_range(noise):
    assert noise.norm_order >= 1.0
    assert isinstance(noise.supports_pure, bool)
    assert math.isfinite(noise.variance)
