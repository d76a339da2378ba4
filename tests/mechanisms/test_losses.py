"""The worst case that a mechanism is charged for, by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.mechanisms.allocation import shifts, worst_shift
from skdpnoise.noises import get_noise
from skdpnoise.privacy import NumericLoss, PrivacyGuarantee
from skdpnoise.sensitivity import SensitivityProfile

GUARANTEE = PrivacyGuarantee(1.0, 1e-4)
LOG_CONCAVE = ["laplace", "flipped_huber", "osgt", "subbotin", "truncated_laplace"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LOG_CONCAVE, "gaussian"])
def test_a_change_that_is_spread_costs_no_more_than_the_sum_on_one_coordinate(name):
    family = get_noise(name)
    rng = np.random.default_rng(0)
    for _ in range(6):
        parts = rng.uniform(0.05, 1.0, rng.integers(2, 5))
        spread = NumericLoss(tuple((family, float(part), 1) for part in parts))
        for epsilon in np.linspace(0.0, 0.9 * parts.sum(), 5):
            whole = float(family.hockey_stick(epsilon, parts.sum()))
            assert spread.delta(epsilon) <= whole * (1.0 + 1e-3) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "flipped_huber"])
@pytest.mark.parametrize("bounds", [{"l1": 3.5}, {"l2": 2.2}])
def test_no_change_within_the_joint_bounds_costs_more_than_is_charged(name, bounds):
    sensitivity = SensitivityProfile([2.0, 1.0, 1.0, 0.5], **bounds)
    mechanism = calibrate(f"inid_{name}", sensitivity, GUARANTEE)
    family, rng = mechanism.family, np.random.default_rng(1)
    claimed = mechanism.own_loss().delta(1.0)
    assert claimed <= 1e-4
    worst = 0.0
    for _ in range(30):
        d = sensitivity.per_coordinate * rng.choice([0.0, 0.3, 1.0], 4)
        if "l1" in bounds:
            d *= min(1.0, bounds["l1"] / max(d.sum(), 1e-9))
        else:
            d *= min(1.0, bounds["l2"] / max(np.linalg.norm(d), 1e-9))
        moved = tuple((family, float(x), 1) for x in d / mechanism.scale if x > 0.0)
        if moved:
            worst = max(worst, NumericLoss(moved).delta(1.0))
    assert worst <= 1e-4 * (1.0 + 1e-9)


def test_the_rounding_of_the_value_is_part_of_every_shift():
    sensitivity, scale = SensitivityProfile([1.0, 0.0, 3.0]), np.array([2.0, 0.0, 4.0])
    values, counts = shifts(scale, sensitivity, 5, 10, by="coordinate")
    assert values == pytest.approx([0.5 + 2.0**-10, 0.0, 0.75 + 2.0**-10], rel=1e-7)
    assert counts.tolist() == [5.0, 5.0, 5.0]
    merged, times = shifts(scale, sensitivity, 5, 10, by="release")
    assert merged == pytest.approx([1.25 + 2 * 2.0**-10], rel=1e-7)
    assert times.tolist() == [5.0]
    assert worst_shift(scale, sensitivity, 5, 10, 1.0) >= 5 * merged[0] * (1.0 - 1e-12)


@pytest.mark.slow
def test_releases_with_scales_of_their_own_are_all_charged_for():
    sensitivity = SensitivityProfile([1.0, 2.0])
    weights = np.array([[1.0, 1.0], [5.0, 5.0]])
    mechanism = calibrate("inid_laplace", sensitivity, GUARANTEE, n_releases=2, weights=weights)
    by_hand = NumericLoss(
        tuple(
            (get_noise("laplace"), float(limit / s), 1)
            for row in mechanism.scale
            for limit, s in zip((1.0, 2.0), row, strict=True)
        )
    )
    assert by_hand.delta(1.0) == pytest.approx(mechanism.own_loss().delta(1.0), rel=1e-3)


@pytest.mark.slow
def test_a_coordinate_that_can_move_must_have_noise():
    mechanism = calibrate("inid_laplace", SensitivityProfile([1.0, 2.0]), GUARANTEE)
    with pytest.raises(ValueError, match=r"'scale'.*positive"):
        replace(mechanism, scale=np.array([0.0, 5.0]), promise=None)


def test_more_shifts_than_can_be_told_apart_are_rounded_up():
    profile = SensitivityProfile(np.linspace(1.0, 2.0, 30_000))
    mechanism = AdditiveMechanism("iid_laplace", np.full(30_000, 300.0), 30, profile)
    loss = mechanism.own_loss()
    assert len(loss.terms) < 20_000
    assert sum(count for _, _, count in loss.terms) == 30_000
    total = sum(shift * count for _, shift, count in loss.terms)
    exact = float((profile.per_coordinate / mechanism.scale).sum())
    assert exact <= total <= exact * (1.0 + 2e-4)


def test_a_joint_bound_merges_shifts_only_where_the_density_is_log_concave():
    """Steps of a staircase that three shifts of .46 cross cost more than one shift of 1.4."""
    profile = SensitivityProfile([0.9] * 3, l1=1.4)
    mechanism = AdditiveMechanism("iid_staircase", [1.0] * 3, 30, profile)
    spread = NumericLoss(tuple((mechanism.family, 0.46, 1) for _ in range(3)))
    assert mechanism.own_loss().pure_epsilon >= spread.pure_epsilon > 2.5
