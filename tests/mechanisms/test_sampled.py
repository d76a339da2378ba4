"""Noise on sums over Poisson samples: within the guarantee, and the least that is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from skdpnoise.mechanisms import calibrate
from skdpnoise.mechanisms.sampled import SampledMechanism, calibrate_sampled
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile
from tests._cases import each_value, quick

GUARANTEE = PrivacyGuarantee(2.0, 1e-5, "add_remove")
NOISES = [
    f"{rule}_{family}" for rule in ("iid", "spr", "inid") for family in ("gaussian", "laplace")
]
MEMBERS = [0] * 30 + [1] * 4 + [2]


def profile(noise):
    return GroupedProfile([1.0, 0.5, 2.0], MEMBERS, 2 if noise.endswith("gaussian") else 1)


@quick("None-iid_laplace")
@each_value(2)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("beside", [None, GaussianLoss(0.1), PureLoss(0.3)])
def test_all_that_is_spent_is_within_the_guarantee_and_nearly_all_of_it(noise, beside):
    made = calibrate_sampled(
        noise, profile(noise), GUARANTEE, rate=0.02, n_releases=100, beside=beside
    )
    loss = made.privacy_loss()
    whole = loss if beside is None else loss + beside
    assert whole.delta(2.0) <= 1e-5
    assert whole.epsilon(1e-5) >= 1.999


@quick("spr_laplace", "iid_gaussian")
@pytest.mark.parametrize("noise", NOISES)
def test_scales_are_those_of_one_release_of_the_same_shift(noise):
    made = calibrate_sampled(noise, profile(noise), GUARANTEE, rate=0.02, n_releases=100)
    bounds = made.sensitivity.bounds
    first = np.searchsorted(MEMBERS, range(3))
    ratios = bounds / made.scale[first]
    if noise.endswith("gaussian"):
        shift = made.step.own_loss().mu
        assert np.linalg.norm(ratios) == pytest.approx(shift, rel=1e-4)
    else:
        shift = made.step.own_loss().numeric().pure_epsilon
        assert ratios.sum() == pytest.approx(shift, rel=1e-4)


def test_laplace_noise_in_many_groups_is_no_more_private_than_one_number_that_moves_by_all():
    # The two groups together, as a pair of their own, against the number that stands for them.
    step = calibrate("iid_laplace", GroupedProfile([1.0, 1.0], [0, 1], 1), PureLoss(2.0))
    made = SampledMechanism(step, 1.0, 1).privacy_loss()
    for epsilon in (0.0, 0.3, 1.0, 1.7):
        assert made.delta(epsilon) >= step.own_loss().delta(epsilon) - 1e-12


def test_sampling_with_certainty_is_no_sampling():
    step = calibrate("iid_gaussian", profile("iid_gaussian"), GaussianLoss(0.3))
    loss = SampledMechanism(step, 1.0, 4).privacy_loss()
    assert loss.mu == pytest.approx(0.6, rel=1e-4)


def test_each_step_is_sampled_by_itself():
    step = calibrate("inid_gaussian", profile("inid_gaussian"), GaussianLoss(0.3))
    made = SampledMechanism(step, 0.1, 3)
    rng = random_words(0)
    draws = [made.sample(rng) for _ in range(3)]
    assert all(draw.shape == (35,) and draw.dtype == np.int64 for draw in draws)
    assert (draws[0] != draws[1]).any()


ONE = GroupedProfile([1.0], [0], 1)
TWICE = calibrate("iid_gaussian", ONE, GaussianLoss(1.0), n_releases=2)
STEPPED = calibrate("iid_staircase", SensitivityProfile([1.0]), PureLoss(1.0))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": 1.1}, "rate"),
        ({"n_releases": 0}, "n_releases"),
        ({"step": None}, "step"),
        ({"step": TWICE}, "step"),
        ({"step": STEPPED}, "noise"),
    ],
)
def test_what_is_not_proven_cannot_be_made(change, named):
    step = calibrate("iid_gaussian", ONE, GaussianLoss(1.0))
    with pytest.raises((TypeError, ValueError), match=named):
        dataclasses.replace(SampledMechanism(step, 0.5, 10), **change)


def test_other_noise_and_replaced_records_are_refused():
    facts = {"rate": 0.1, "n_releases": 10}
    with pytest.raises(ValueError, match="noise"):
        calibrate_sampled("inid_staircase", profile("iid_laplace"), GUARANTEE, **facts)
    with pytest.raises(ValueError, match="adjacency"):
        replaced = PrivacyGuarantee(2.0, 1e-5)
        calibrate_sampled("inid_gaussian", profile("iid_gaussian"), replaced, **facts)
