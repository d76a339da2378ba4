"""What is special to the Laplace family."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import norm

from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from tests._statistics import hockey_stick

laplace = get_noise("laplace")


@pytest.mark.parametrize(
    "target", [PrivacyGuarantee(0.7), PrivacyGuarantee(0.7, 1e-6), PureLoss(0.7)]
)
def test_resource_is_epsilon_whatever_delta(target):
    assert laplace.resource(target) == 0.7


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_log_ratio_of_densities_reaches_epsilon_and_no_more(epsilon):
    z = np.linspace(-20.0, 20.0, 4001)
    ratio = laplace.logpdf(z) - laplace.logpdf(z - epsilon)
    assert np.abs(ratio).max() == pytest.approx(epsilon, rel=1e-12)


def test_delta_vanishes_exactly_from_epsilon_on():
    assert laplace.loss(1.0).delta(1.0) == 0.0
    assert hockey_stick(laplace.logpdf, 1.0, 1.0 - 1e-6, 60.0) > 0.0
    assert hockey_stick(laplace.logpdf, 1.0, 1.0 + 1e-12, 60.0) == 0.0


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1e-3, 0.2, 0.9999, 1.0, 3.0, 20.0, 60.0])
def test_epsilon_of_a_gaussian_budget_is_accurate_and_rounded_down(mu):
    """The normal distribution function by its power series in 200 decimal digits."""
    with localcontext() as context:
        context.prec = 1200
        half = Decimal(mu) / 2
        term, series, n = half, half, 0
        while abs(term) > Decimal(10) ** -1190:
            n += 1
            term *= half * half / (2 * n + 1)
            series += term
        # Phi(h) - 1/2 = phi(h) (h + h^3/3 + h^5/15 + ...)
        pi = _pi()
        centre = series * (-half * half / 2).exp() / (2 * pi).sqrt()
        exact = ((Decimal("0.5") + centre) / (Decimal("0.5") - centre)).ln()
        gap = float(1 - Decimal(laplace.resource(GaussianLoss(mu))) / exact)
    assert 0.0 < gap < 3e-13


def _pi() -> Decimal:
    """Machin's formula."""

    def arctan_of_inverse(n: int) -> Decimal:
        power = total = Decimal(1) / n
        k = 1
        while power > Decimal(10) ** -1195:
            power /= n * n
            k += 2
            total += power / k if k % 4 == 1 else -power / k
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))


def test_a_gaussian_budget_is_touched_at_the_corner():
    """At epsilon the two trade-off functions meet: no larger epsilon would be covered."""
    mu = 1.3
    epsilon = laplace.resource(GaussianLoss(mu))
    corner = 1.0 / (1.0 + math.exp(epsilon))
    assert norm.cdf(norm.isf(corner) - mu) == pytest.approx(corner, rel=1e-9)


def test_far_tails_stay_accurate():
    z = np.array([50.0, 300.0, 700.0])
    np.testing.assert_allclose(np.log(laplace.sf(z)), -z - math.log(2.0), rtol=1e-14)
    np.testing.assert_allclose(laplace.isf(1e-300), 300 * math.log(10) - math.log(2), rtol=1e-14)
