"""What is special to truncated Laplace noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpnoise.noises import get_noise
from skdpnoise.noises.truncated_laplace import TruncatedLaplace
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, fit_pvalue
from tests.noises._quadrature import expectation

SHAPES = [0.01, 0.5, 3.0, 10.0, 60.0]


def delta_by_quadrature(noise, epsilon: float, shift: float) -> float:
    """Integrate max(0, f(z) - e^epsilon f(z - shift)) between jumps and kinks."""
    width = noise.shape
    kinks = [-width, width, shift - width, 0.0, shift, 0.5 * (shift - epsilon)]
    ends = np.union1d(np.linspace(-width, width, 2001), kinks)
    ends = ends[np.abs(ends) <= width]
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(ends)[:, None]
    z = ends[:-1, None] + half * (1.0 + nodes)
    excess = np.exp(noise.logpdf(z)) - np.exp(epsilon + noise.logpdf(z - shift))
    return float((half * weights * np.maximum(excess, 0.0)).sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_moments_and_tails_agree_with_quadrature(shape):
    noise = TruncatedLaplace(shape)
    assert expectation(noise, np.ones_like) == pytest.approx(1.0, rel=1e-11)
    for p in (0.5, 1.0, 2.0, 3.0):
        moment = expectation(noise, lambda z, p=p: z**p)
        assert noise.absolute_moment(p) == pytest.approx(moment, rel=1e-10)
    assert noise.variance == noise.absolute_moment(2.0)
    z = np.array([-0.5, 0.0, 0.5, 0.99, 1.0]) * shape
    exact = [expectation(noise, lambda x, v=v: x > abs(v), [abs(v)]) / 2.0 for v in z]
    exact = np.where(z >= 0.0, exact, 1.0 - np.array(exact))
    np.testing.assert_allclose(noise.sf(z), exact, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles_invert_tails_and_end_with_the_support(shape):
    noise = TruncatedLaplace(shape)
    q = np.concatenate([np.geomspace(1e-9, 0.4, 100), np.linspace(0.41, 0.999, 50)])
    # Near the end of the support the tail is a small difference of z and A.
    np.testing.assert_allclose(noise.sf(noise.isf(q)), q, rtol=1e-6)
    np.testing.assert_allclose(noise.isf([0.0, 0.5, 1.0]), [shape, 0.0, -shape], atol=1e-14)
    assert noise.logpdf([-shape, shape, 2.0 * shape]).tolist() == [-math.inf] * 3
    assert noise.sf([shape, 2.0 * shape]).tolist() == [0.0, 0.0]
    assert noise.fisher_information == math.inf


@each_value(1)
@pytest.mark.parametrize("shape", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.5, 5.0, 12.0])
def test_delta_agrees_with_quadrature(shape, shift):
    noise = TruncatedLaplace(shape)
    for epsilon in (0.0, 0.1, 0.5, 2.0, 10.0):
        exact = delta_by_quadrature(noise, epsilon, shift)
        assert noise.hockey_stick(epsilon, shift) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("shape", [0.5, 3.0, 10.0])
def test_delta_grows_with_the_shift_until_all_is_disclosed(shape):
    noise = TruncatedLaplace(shape)
    shifts = np.linspace(0.0, 2.2 * shape, 300)
    for epsilon in (0.0, 1.0, 700.0):
        delta = noise.hockey_stick(epsilon, shifts)
        assert (np.diff(delta) >= 0.0).all()
        assert delta[0] == 0.0
        assert delta[-1] == 1.0


def test_a_chance_of_total_disclosure_remains_for_every_epsilon():
    noise = TruncatedLaplace(10.0)
    disclosed = noise.sf(10.0 - 0.5)
    np.testing.assert_allclose(noise.hockey_stick([0.5, 5.0, 700.0], 0.5), disclosed, rtol=1e-12)
    assert noise.max_loss([0.0, 1e-9]).tolist() == [0.0, math.inf]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (5.0, 0.01)])
def test_the_half_width_gives_exactly_the_guarantee_and_the_published_errors(epsilon, delta):
    noise = TruncatedLaplace(TruncatedLaplace.half_width(epsilon, delta))
    assert noise.hockey_stick(epsilon, epsilon) == pytest.approx(delta, rel=1e-9)
    c = math.expm1(epsilon) / (2.0 * delta)
    log = math.log1p(c)
    assert noise.absolute_moment(1.0) == pytest.approx(1.0 - log / c, rel=1e-12)
    assert noise.variance == pytest.approx(2.0 * (1.0 - (0.5 * log**2 + log) / c), rel=1e-11)


def test_a_wide_support_is_nearly_laplace():
    epsilon = np.array([0.0, 0.3, 0.6])
    np.testing.assert_allclose(
        TruncatedLaplace(60.0).hockey_stick(epsilon, 0.7),
        get_noise("laplace").hockey_stick(epsilon, 0.7),
        rtol=1e-12,
    )


@pytest.mark.parametrize("shape", [0.5, 3.0])
def test_draws_follow_the_density_of_their_shape(shape):
    noise = TruncatedLaplace(shape)
    draws = noise.sample_rounded(SeededWords(1), 150_000, 30)
    assert np.abs(draws).max() <= shape * 2.0**30
    assert fit_pvalue(draws, noise, 30) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, noise, 30, scale=scale) < FALSE_ALARM


@pytest.mark.parametrize("shape", [0.0, 701.0, math.nan])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="'shape' parameter of TruncatedLaplace"):
        TruncatedLaplace(shape)
