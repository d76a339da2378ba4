"""Noise whose shape follows the budget: what is returned meets it by its own loss, and just so."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.mechanisms import calibrate
from skdpnoise.mechanisms._shape_search import meets
from skdpnoise.mechanisms.additive import least_epsilon
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import quick

FAMILIES = ["discrete_gaussian", "discrete_laplace", "staircase"]


def profile(family, size, seed):
    rng = np.random.default_rng(seed)
    whole = family != "staircase"
    return SensitivityProfile(
        rng.integers(1, 9, size).astype(float) if whole else rng.lognormal(size=size)
    )


# Compositions of many coordinates and releases, where the search and the finished mechanism put
# their losses on lattices of different steps.
MANY = [(20, 100, 3.337, 2.66e-3), (20, 5, 0.262, 3.6e-8)]


@quick("staircase-20-100-3.337-0.00266")
@pytest.mark.parametrize(("size", "n_releases", "epsilon", "delta"), MANY)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_own_loss_of_many_coordinates_meets_the_guarantee(
    family, size, n_releases, epsilon, delta
):
    guarantee = PrivacyGuarantee(epsilon, delta)
    sensitivity = profile(family, size, 0)
    if family == "staircase":  # with the same noise everywhere: as if all moved so far
        sensitivity = SensitivityProfile(np.full(size, 2.5))
    made = calibrate(f"iid_{family}", sensitivity, guarantee, n_releases=n_releases)
    assert 0.98 * delta <= made.own_loss().delta(epsilon) <= delta


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["spr", "inid"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_own_loss_of_a_few_coordinates_meets_the_guarantee(family, rule):
    guarantee = PrivacyGuarantee(0.8, 1e-5)
    made = calibrate(f"{rule}_{family}", profile(family, 3, 5), guarantee, n_releases=2)
    assert 0.98e-5 <= made.own_loss().delta(0.8) <= 1e-5


@pytest.mark.parametrize("family", ["discrete_laplace", "staircase"])
def test_the_own_loss_meets_a_budget_of_either_kind(family):
    for seed, size in enumerate((1, 4, 9)):
        sensitivity = profile(family, size, seed)
        pure = calibrate(f"inid_{family}", sensitivity, PureLoss(0.3), n_releases=3)
        assert pure.promise == PureLoss(0.3)
        assert 0.3 * (1.0 - 1e-6) <= pure.own_loss().pure_epsilon <= 0.3
        gaussian = calibrate(f"inid_{family}", sensitivity, GaussianLoss(0.3), n_releases=3)
        assert gaussian.promise == GaussianLoss(0.3)
        assert meets(gaussian, GaussianLoss(0.3))
        assert not meets(gaussian, GaussianLoss(0.3 * (1.0 - 1e-4)))


def test_a_joint_bound_counts_for_pure_noise_on_the_integers():
    counts = SensitivityProfile(np.ones(10), l1=2.0)
    made = calibrate("inid_discrete_laplace", counts, PureLoss(0.3))
    assert 0.3 * (1.0 - 1e-9) <= least_epsilon(made) <= 0.3
    assert made.own_loss().pure_epsilon > 1.0  # of independent coordinates
