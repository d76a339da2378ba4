"""Conversions against quadrature, known values and round trips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from skdpnoise.privacy import (
    PureLoss,
    corollary6_epsilon,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from tests._cases import each_value

REFERENCE = [
    (0.5, 1e-6, 0.124106149),
    (1.0, 1e-6, 0.236704381),
    (1.0, 1e-5, 0.268051123),
    (2.0, 1e-6, 0.448334740),
    (5.0, 1e-6, 1.020357145),
    (0.1, 1e-6, 0.0275446502),
]
EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0]
DELTAS = [1e-30, 1e-15, 1e-6, 1e-3, 0.2]


def log_hockey_stick(mu, epsilon):
    """log of the integral of (density of N(mu, 1) - e^epsilon density of N(0, 1))_+."""
    start = epsilon / mu - mu / 2  # in units of N(mu, 1)
    width = 1 / max(1.0, start)

    def excess(t):
        return (
            width
            * math.exp(-start * width * t - (width * t) ** 2 / 2)
            * -math.expm1(-mu * width * t)
        )

    tail, _ = quad(excess, 0, 45, epsabs=0, epsrel=1e-11, limit=200)
    return norm.logpdf(start) + math.log(tail)


@pytest.mark.parametrize(("epsilon", "delta", "mu"), REFERENCE)
def test_mu_has_the_reference_values_to_nine_digits(epsilon, delta, mu):
    decimals = len(repr(mu)) - 2
    assert gdp_mu(epsilon, delta) == pytest.approx(mu, abs=0.51 * 10.0**-decimals)


@each_value(2)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_delta_agrees_with_quadrature_of_the_hockey_stick(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert math.log(gdp_delta(mu, epsilon)) == pytest.approx(
        log_hockey_stick(mu, epsilon), abs=1e-8
    )


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.0), (1.0, 0.2), (4.0, 1.0), (0.499, 3.0)])
def test_delta_agrees_with_the_direct_formula_where_it_is_accurate(mu, epsilon):
    direct = norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)
    assert gdp_delta(mu, epsilon) == pytest.approx(direct, rel=1e-11)


def test_the_two_ways_to_compute_delta_meet_where_they_change_over():
    for epsilon in (0.0, 0.05, 1.0, 10.0):
        below, above = gdp_delta(0.5, epsilon), gdp_delta(math.nextafter(0.5, 1.0), epsilon)
        assert above == pytest.approx(below, rel=1e-12)
    for x in (29.9, 29.995, 30.1):  # the asymptotic series starts at 30
        assert math.log(gdp_delta(0.01, 0.01 * x)) == pytest.approx(
            log_hockey_stick(0.01, 0.01 * x), abs=1e-8
        )


@each_value(2)
@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
@pytest.mark.parametrize("delta", [1e-300, *DELTAS])
def test_mu_is_the_lower_end_and_tight(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert gdp_delta(mu, epsilon) <= delta
    assert gdp_delta(mu * (1 + 1e-9), epsilon) > delta


@each_value(2)
@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 7.0])
@pytest.mark.parametrize("delta", [1e-300, *DELTAS])
def test_epsilon_is_the_upper_end_and_tight(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    assert gdp_delta(mu, epsilon) <= delta
    assert epsilon == 0.0 or gdp_delta(mu, epsilon * (1 - 1e-9)) > delta


def test_epsilon_is_zero_where_delta_covers_the_whole_loss():
    total_variation = 2 * norm.cdf(0.05) - 1
    assert gdp_epsilon(0.1, total_variation * 1.001) == 0.0
    assert gdp_epsilon(0.1, total_variation * 0.999) > 0.0
    assert gdp_epsilon(0.0, 1e-6) == 0.0
    assert gdp_epsilon(1e200, 0.5) == math.inf


def test_conversions_are_monotone():
    mus = np.geomspace(0.05, 10, 40)
    deltas = [gdp_delta(mu, 1.0) for mu in mus]
    assert (np.diff(deltas) > 0).all()
    assert (np.diff([gdp_delta(0.7, e) for e in np.linspace(0, 20, 60)]) < 0).all()
    assert (np.diff([gdp_mu(e, 1e-6) for e in np.geomspace(1e-4, 50, 40)]) > 0).all()


def test_delta_is_zero_only_without_any_loss():
    assert gdp_delta(0.0, 1.0) == 0.0
    assert gdp_delta(1e-3, 50.0) == math.ulp(0.0)
    assert gdp_delta(1e9, 1.0) == 1.0


def test_zero_concentrated_delta_is_the_minimum_over_the_order():
    for rho, epsilon in [(0.01, 0.5), (0.1, 2.0), (2.0, 12.0)]:

        def log_delta(log_excess, rho=rho, epsilon=epsilon):
            a = 1 + math.exp(log_excess)
            return (a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a)

        best = min(
            minimize_scalar(log_delta, bounds=b, method="bounded", options={"xatol": 1e-10}).fun
            for b in ((-10, 0), (0, 5), (5, 12))
        )
        assert math.log(zcdp_delta(rho, epsilon)) == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("rho", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-6])
def test_zero_concentrated_conversions_invert_each_other(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    assert zcdp_delta(rho, epsilon) == pytest.approx(delta, rel=1e-6)
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke's simple one


def test_zero_concentrated_privacy_of_a_gaussian_is_safe_but_looser():
    for mu in (0.05, 0.5, 3.0):
        tight, loose = gdp_epsilon(mu, 1e-6), zcdp_epsilon(zcdp_rho(mu), 1e-6)
        assert tight < loose < 1.2 * tight


def test_zero_concentrated_privacy_of_nearly_nothing_needs_no_epsilon():
    assert zcdp_epsilon(1e-12, 0.5) == 0.0


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (gdp_delta, (-1.0, 1.0)),
        (gdp_delta, (1.0, -1.0)),
        (gdp_mu, (1.0, 0.0)),
        (gdp_mu, (1.0, 1.0)),
        (gdp_mu, (math.nan, 0.1)),
        (gdp_epsilon, (1.0, 0.0)),
        (gdp_epsilon, (math.inf, 0.1)),
        (zcdp_rho, (-1.0,)),
        (zcdp_delta, (0.0, 1.0)),
        (zcdp_epsilon, (1.0, 2.0)),
    ],
)
def test_values_outside_their_range_are_refused(function, arguments):
    with pytest.raises(ValueError, match=f"of {function.__name__} must be a float in the range"):
        function(*arguments)


@each_value(2)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.1])
def test_corollary_6_gives_a_pure_loss_that_meets_the_guarantee(epsilon, delta):
    pure = PureLoss(corollary6_epsilon(epsilon, delta))
    assert pure.delta(epsilon) <= delta
    # Its own delta: e^eps delta / (1 - delta + e^eps), so hardly any of it is left over at large
    # epsilon.
    exact = math.exp(epsilon) * delta / (1.0 - delta + math.exp(epsilon))
    assert pure.delta(epsilon) == pytest.approx(exact, rel=1e-6)
