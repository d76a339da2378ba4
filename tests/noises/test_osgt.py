"""What is special to offset symmetric Gaussian tails."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from skdpnoise.noises import get_noise
from skdpnoise.noises.osgt import Osgt
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, fit_pvalue, hockey_stick
from tests.noises._quadrature import expectation

SHAPES = [0.0, 0.01, 1.0, 5.0, 30.0]


@pytest.mark.parametrize("shape", SHAPES)
def test_moments_and_information_agree_with_quadrature(shape):
    noise = Osgt(shape)
    assert expectation(noise, np.ones_like) == pytest.approx(1.0, rel=1e-11)
    for p in (-0.5, 0.5, 1.0, 2.0, 3.0):
        moment = expectation(noise, lambda z, p=p: z**p)
        tolerance = 1e-5 if p < 0.0 else 1e-11  # quadrature near a pole
        assert noise.absolute_moment(p) == pytest.approx(moment, rel=tolerance)
    slope = expectation(noise, lambda z: (z + shape) ** 2)
    assert noise.fisher_information == pytest.approx(slope, rel=1e-11)


@pytest.mark.parametrize("shape", [0.0, 0.5, 2.0, 5.0])
def test_variance_is_the_closed_form(shape):
    hazard = norm.pdf(shape) / norm.sf(shape)
    assert Osgt(shape).variance == pytest.approx(1.0 + shape**2 - shape * hazard, rel=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
def test_tails_are_those_of_a_normal_distribution(shape):
    noise = Osgt(shape)
    z = np.array([0.0, 0.3, 2.0, 5.0])
    exact = np.exp(log_ndtr(-z - shape) - log_ndtr(-shape)) / 2.0
    np.testing.assert_allclose(noise.sf(z), exact, rtol=1e-11)
    q = np.concatenate([np.geomspace(1e-290, 0.4, 200), np.linspace(0.41, 0.999, 50)])
    np.testing.assert_allclose(noise.sf(noise.isf(q)), q, rtol=1e-11)
    assert noise.isf([0.0, 0.5, 1.0]).tolist() == [math.inf, 0.0, -math.inf]


@each_value(1)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.5, 5.0])
def test_delta_agrees_with_quadrature(shape, shift):
    noise = Osgt(shape)
    reach = float(noise.isf(1e-30)) + shift
    for epsilon in (0.0, 0.01, 0.1, 0.5, 3.0, 10.0):
        exact = hockey_stick(noise.logpdf, shift, epsilon, reach)
        assert noise.hockey_stick(epsilon, shift) == pytest.approx(exact, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize(
    ("shape", "epsilon", "shift", "delta"),
    [
        (1.0, 12.0, 0.5, 3.5575886945794694e-126),
        (1.0, 1.3, 0.4, 0.00036471418871201708),
        (3.0, 3.0, 4.5, 0.99975699645229799),
        (20.0, 12.0, 0.3, 1.9836534128281031e-261),
        (5.0, 0.0, 1e-09, 2.5932519803213562e-9),
        (100.0, 1.0, 0.01, 7.4982196324268621e-5),
    ],
)
def test_delta_keeps_its_digits_however_small(shape, epsilon, shift, delta):
    """By mpmath in 60 digits: P(Z > t - s) - e^epsilon P(Z > t)."""
    assert Osgt(shape).hockey_stick(epsilon, shift) == pytest.approx(delta, rel=1e-11)


def test_without_offset_it_is_the_normal_family():
    epsilon, z = np.linspace(0.0, 20.0, 30), np.linspace(-3.0, 9.0, 30)
    none, normal = Osgt(0.0), get_noise("gaussian")
    np.testing.assert_allclose(
        none.hockey_stick(epsilon, 0.7), normal.hockey_stick(epsilon, 0.7), rtol=1e-13
    )
    np.testing.assert_allclose(none.logpdf(z), normal.logpdf(z), rtol=1e-13)


def test_with_a_large_offset_it_is_nearly_laplace():
    noise, laplace = Osgt(1e3), get_noise("laplace")
    epsilon = np.array([0.0, 0.3, 0.6])
    np.testing.assert_allclose(
        noise.hockey_stick(epsilon, 0.7e-3), laplace.hockey_stick(epsilon, 0.7), rtol=1e-3
    )
    assert noise.variance * 1e6 == pytest.approx(2.0, rel=1e-4)


def test_no_shift_costs_nothing_and_large_epsilon_does_not_overflow():
    noise = Osgt(3.0)
    assert noise.hockey_stick([0.0, 1.0], 0.0).tolist() == [0.0, 0.0]
    far = noise.hockey_stick(np.linspace(0.0, 700.0, 50)[:, None], [1e-300, 1e-3, 1.0, 100.0])
    assert np.isfinite(far).all()
    assert (np.diff(far, axis=0) <= 0.0).all()
    assert (np.diff(far, axis=1) >= 0.0).all()
    assert noise.max_loss([0.0, 1e-9]).tolist() == [0.0, math.inf]


@pytest.mark.parametrize("shape", [0.01, 100.0])
def test_draws_follow_the_density_of_their_shape(shape):
    noise = Osgt(shape)
    draws = noise.sample_rounded(SeededWords(1), 150_000, 30)
    assert fit_pvalue(draws, noise, 30) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, noise, 30, scale=scale) < FALSE_ALARM


@pytest.mark.parametrize("shape", [-1.0, 1001.0, math.nan])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="'shape' parameter of Osgt"):
        Osgt(shape)
