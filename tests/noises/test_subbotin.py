"""What is special to the generalised Gaussian family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import gennorm

from skdpnoise.noises import get_noise
from skdpnoise.noises.subbotin import Subbotin
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, fit_pvalue, hockey_stick
from tests.noises._quadrature import expectation

SHAPES = [1.0, 1.05, 1.3, 1.5, 1.9, 2.0]


@pytest.mark.parametrize("shape", SHAPES)
def test_moments_and_information_agree_with_quadrature(shape):
    noise = Subbotin(shape)
    assert expectation(noise, np.ones_like) == pytest.approx(1.0, rel=1e-11)
    for p in (0.5, 1.0, 2.0, 3.0):
        moment = expectation(noise, lambda z, p=p: z**p)
        assert noise.absolute_moment(p) == pytest.approx(moment, rel=1e-10)
    slope = expectation(noise, lambda z: z ** (2.0 * shape - 2.0))
    assert noise.fisher_information == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_density_and_tails_are_those_of_scipy(shape):
    noise, scale = Subbotin(shape), shape ** (1.0 / shape)
    z = np.array([-2.0, 0.0, 0.1, 3.0, 11.0])
    np.testing.assert_allclose(noise.logpdf(z), gennorm.logpdf(z, shape, scale=scale), rtol=1e-12)
    np.testing.assert_allclose(noise.sf(z), gennorm.sf(z, shape, scale=scale), rtol=1e-11)
    q = np.concatenate([np.geomspace(1e-290, 0.4, 200), np.linspace(0.41, 0.999, 50)])
    np.testing.assert_allclose(noise.sf(noise.isf(q)), q, rtol=1e-11)
    assert noise.isf([0.0, 0.5, 1.0]).tolist() == [math.inf, 0.0, -math.inf]


@each_value(1)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.5, 5.0])
def test_delta_agrees_with_quadrature(shape, shift):
    noise = Subbotin(shape)
    reach = float(noise.isf(1e-30)) + shift
    for epsilon in (0.0, 0.01, 0.1, 0.5, 3.0, 10.0):
        exact = hockey_stick(noise.logpdf, shift, epsilon, reach)
        # Quadrature is the less accurate one: the density has a cusp at 0, near which the loss
        # reaches epsilon.
        assert noise.hockey_stick(epsilon, shift) == pytest.approx(exact, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize(
    ("shape", "epsilon", "shift", "delta"),
    [
        (1.5, 3.0, 0.5, 6.2670009422927817e-66),
        (1.5, 1.3, 0.4, 5.1201685575539058e-13),
        (1.05, 0.25, 0.24, 0.00021769974913811345),
        (1.9, 0.25, 0.01, 2.3696736023607164e-210),
        (1.5, 0.0, 1e-09, 4.2267892966480654e-10),
        (1.3, 12.0, 5.0, 6.8252961012266586e-15),
        (1.2, 2.0, 2.5, 0.30722504928072969),
    ],
)
def test_delta_keeps_its_digits_however_small(shape, epsilon, shift, delta):
    """By mpmath in 40 digits: P(Z > t - s) - e^epsilon P(Z > t), t by bisection."""
    assert Subbotin(shape).hockey_stick(epsilon, shift) == pytest.approx(delta, rel=1e-11)


@pytest.mark.parametrize(("shape", "name"), [(1.0, "laplace"), (2.0, "gaussian")])
def test_both_ends_are_the_known_families(shape, name):
    noise, known = Subbotin(shape), get_noise(name)
    epsilon, z = np.linspace(0.0, 20.0, 30), np.linspace(-3.0, 9.0, 30)
    for shift in (0.0, 0.001, 0.7, 4.0):
        np.testing.assert_allclose(
            noise.hockey_stick(epsilon, shift), known.hockey_stick(epsilon, shift), rtol=1e-11
        )
        assert noise.max_loss(shift) == known.max_loss(shift)
    np.testing.assert_allclose(noise.logpdf(z), known.logpdf(z), rtol=1e-13)


@pytest.mark.parametrize("shape", [1.01, 1.05, 1.5, 2.0])
def test_no_shift_costs_nothing_and_large_epsilon_does_not_overflow(shape):
    noise = Subbotin(shape)
    assert noise.hockey_stick([0.0, 1.0], 0.0).tolist() == [0.0, 0.0]
    far = noise.hockey_stick(np.linspace(0.0, 700.0, 50)[:, None], [1e-300, 1e-3, 1.0, 100.0])
    assert np.isfinite(far).all()
    assert (np.diff(far, axis=0) <= 0.0).all()
    assert (np.diff(far, axis=1) >= 0.0).all()
    assert noise.max_loss([0.0, 1e-9]).tolist() == [0.0, math.inf]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [1.05, 2.0])
def test_draws_follow_the_density_of_their_shape(shape):
    noise = Subbotin(shape)
    draws = noise.sample_rounded(SeededWords(1), 150_000, 30)
    assert fit_pvalue(draws, noise, 30) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, noise, 30, scale=scale) < FALSE_ALARM


@pytest.mark.parametrize("shape", [0.9, 1.0 + 1e-15, 1.0099, 2.1, math.nan])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="'shape' parameter of Subbotin"):
        Subbotin(shape)
