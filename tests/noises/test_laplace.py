"""What is special to the Laplace family."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpnoise.noises import get_noise
from tests._statistics import hockey_stick

laplace = get_noise("laplace")


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_log_ratio_of_densities_reaches_epsilon_and_no_more(epsilon):
    z = np.linspace(-20.0, 20.0, 4001)
    ratio = laplace.logpdf(z) - laplace.logpdf(z - epsilon)
    assert np.abs(ratio).max() == pytest.approx(epsilon, rel=1e-12)


def test_delta_vanishes_exactly_from_epsilon_on():
    assert laplace.hockey_stick(1.0, 1.0) == 0.0
    assert laplace.hockey_stick(1.0 - 1e-6, 1.0) > 0.0
    assert hockey_stick(laplace.logpdf, 1.0, 1.0 - 1e-6, 60.0) > 0.0
    assert hockey_stick(laplace.logpdf, 1.0, 1.0 + 1e-12, 60.0) == 0.0


def test_far_tails_stay_accurate():
    z = np.array([50.0, 300.0, 700.0])
    np.testing.assert_allclose(np.log(laplace.sf(z)), -z - math.log(2.0), rtol=1e-14)
    np.testing.assert_allclose(laplace.isf(1e-300), 300 * math.log(10) - math.log(2), rtol=1e-14)
