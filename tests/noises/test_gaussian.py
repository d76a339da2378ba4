"""What is special to the normal family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from skdpnoise.noises import get_noise
from tests._statistics import hockey_stick

gaussian = get_noise("gaussian")


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [
        (0.5, 1e-6, 0.124106149),
        (1.0, 1e-6, 0.236704381),
        (1.0, 1e-5, 0.268051123),
        (2.0, 1e-6, 0.448334740),
        (5.0, 1e-6, 1.020357145),
        (0.1, 1e-6, 0.0275446502),
    ],
)
def test_the_published_mu_meets_its_guarantee_exactly(epsilon, delta, mu):
    assert gaussian.hockey_stick(epsilon, mu) == pytest.approx(delta, rel=2e-7)


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_claimed_loss_is_exact(mu):
    for epsilon in np.linspace(0.0, 2.0 * mu, 9):
        true_delta = hockey_stick(gaussian.logpdf, mu, epsilon, 40.0)
        assert gaussian.hockey_stick(epsilon, mu) == pytest.approx(true_delta, rel=1e-6)


def test_several_coordinates_cost_the_euclidean_norm():
    """A change (3, 4)/10 costs what 1/2 on one coordinate does: seen along the direction."""
    change = np.array([0.3, 0.4])
    mu = float(np.linalg.norm(change, gaussian.norm_order))
    x, y = np.meshgrid(*[np.linspace(-9.0, 9.0, 1801)] * 2)
    density = np.exp(gaussian.logpdf(x) + gaussian.logpdf(y))
    moved = np.exp(gaussian.logpdf(x - change[0]) + gaussian.logpdf(y - change[1]))
    delta = np.maximum(0.0, density - math.exp(0.3) * moved).sum() * 0.01**2
    assert gaussian.hockey_stick(0.3, mu) == pytest.approx(delta, rel=1e-4)


def test_far_tails_agree_with_scipy_in_logs():
    z = np.array([5.0, 20.0, 37.0])
    np.testing.assert_allclose(np.log(gaussian.sf(z)), norm.logsf(z), rtol=1e-12)
    np.testing.assert_allclose(gaussian.logpdf(1e100), -0.5e200, rtol=1e-12)
