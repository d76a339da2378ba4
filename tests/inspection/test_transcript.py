"""Transcripts: what is noted, what is frozen, where two runs part, and what a change costs."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.inspection import Transcript
from skdpnoise.inspection._costs import moved, total_moved
from skdpnoise.ledger import Account
from skdpnoise.mechanisms import (
    AdditiveMechanism,
    ExponentialMechanism,
    SymmetricMatrixMechanism,
    calibrate,
    calibrate_second_moments,
    k_norm,
    l1_staircase,
)
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries.norm_quantile import NormQuantileMechanism
from skdpnoise.sampling import random_words, secret_order
from skdpnoise.sampling.observer import note_charge
from skdpnoise.sensitivity import GroupedProfile, RowBounds, SensitivityProfile


def replayed(mechanism, here, there, release=None):
    """Charge for a mechanism, release one value and replay with another; return what moved."""

    def run(value):
        note_charge("value", mechanism)
        return (release or mechanism.release)(value)

    first = Transcript()
    one = first.watch(run, here)
    second = Transcript(earlier=first)
    assert np.array_equal(second.watch(run, there), one)
    return moved(first, second)


BALL = SensitivityProfile([3.0, 4.0], l1=7.0, l2=5.0)
MECHANISMS = {
    "gaussian": (calibrate("inid_gaussian", BALL, GaussianLoss(0.5)), [3.0, 4.0]),
    "laplace": (calibrate("iid_laplace", BALL, PureLoss(0.5)), [3.0, 4.0]),
    "subbotin": (calibrate("iid_subbotin", BALL, PrivacyGuarantee(1.0, 1e-6)), [3.0, 4.0]),
    "k-norm": (k_norm(2, 5.0, 2, PureLoss(0.5)), [3.0, 4.0]),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_a_change_is_counted_in_units_of_the_largest_that_is_declared(name, factor):
    mechanism, largest = MECHANISMS[name]
    (one,) = replayed(mechanism, [0.0, 0.0], factor * np.array(largest))
    assert one.share == pytest.approx(factor, rel=1e-4)
    assert one.label == "value"
    assert one.n_releases == 1.0
    if one.loss is not None:
        whole = mechanism.privacy_loss().epsilon(1e-6)
        expected = one.loss.epsilon(1e-6)
        assert (expected < whole) if factor < 1.0 else (expected > whole * 0.999)


def test_what_no_single_bound_forbids_is_measured_against_the_joint_one():
    profile = SensitivityProfile([1.0, 1.0, 1.0, 1.0], l1=2.0)
    mechanism = calibrate("iid_laplace", profile, PureLoss(1.0))
    (one,) = replayed(mechanism, np.zeros(4), np.ones(4))
    assert one.share == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("joint", [None, 5.0])
def test_a_change_of_a_group_is_measured_by_its_norm(joint):
    profile = GroupedProfile([5.0, 1.0], [0, 0, 1], joint=joint)
    mechanism = calibrate("inid_gaussian", profile, GaussianLoss(0.5))
    for factor in (0.5, 1.0, 1.5):
        (one,) = replayed(mechanism, np.zeros(3), factor * np.array([3.0, 4.0, 0.0]))
        assert one.share == pytest.approx(factor, rel=1e-4)


@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace", "k_norm", "wishart"])
def test_a_change_of_second_moments_is_counted_in_what_its_noise_is_charged_for(noise):
    budget = GaussianLoss(1.0) if noise.endswith("gaussian") else PureLoss(1.0)
    mechanism = calibrate_second_moments(noise, RowBounds(2, 1.0), budget, "add_remove")
    zero = np.zeros((2, 2), dtype=np.int64)
    shares = []
    for angle in np.linspace(0.0, np.pi, 181):
        row = np.array([np.cos(angle), np.sin(angle)])
        counts = np.rint(np.outer(row, row) / mechanism.grid_size).astype(np.int64)
        (one,) = replayed(mechanism, zero, counts)
        shares.append(one.share)
    assert max(shares) == pytest.approx(1.0, rel=1e-3)
    assert max(shares) <= 1.0 + 1e-6
    assert isinstance(mechanism, SymmetricMatrixMechanism)


def test_a_choice_is_counted_by_the_utility_that_moves_most_and_by_what_it_was_charged_for():
    mechanism = ExponentialMechanism(2.0, 1.0)
    (one,) = replayed(mechanism, [0.0, 5.0], [2.0, 4.0], release=mechanism.select)
    assert one.share == pytest.approx(1.0, rel=1e-6)
    assert one.loss.pure_epsilon == pytest.approx(1.0, rel=1e-6)
    monotonic = ExponentialMechanism(2.0, 1.0, monotonic=True)
    (same_way,) = replayed(monotonic, [0.0, 5.0], [2.0, 6.0], release=monotonic.select)
    assert same_way.share == pytest.approx(1.0, rel=1e-6)
    (both_ways,) = replayed(monotonic, [0.0, 5.0], [2.0, 4.0], release=monotonic.select)
    assert both_ways.share == np.inf
    ranged = NormQuantileMechanism.within(GaussianLoss(0.5))
    (one,) = replayed(
        ranged, [0.0, 5.0], [1.0, 5.0], release=lambda u: ranged.select(u, random_words())
    )
    assert one.label == "value"
    assert one.loss.mu == pytest.approx(0.5, rel=1e-6)


def test_a_mechanism_that_nobody_knows_the_cost_of_is_refused():
    mechanism = l1_staircase(2, 1.0, PureLoss(1.0))
    with pytest.raises(TypeError, match="what a change costs under a L1StaircaseMechanism"):
        replayed(mechanism, [0.0, 0.0], [1.0, 0.0])


def test_losses_of_changes_add_up():
    assert total_moved([]).pure_epsilon == 0.0
    gaussian, laplace = (MECHANISMS[name] for name in ("gaussian", "laplace"))
    one = replayed(gaussian[0], [0.0, 0.0], gaussian[1])
    other = replayed(laplace[0], [0.0, 0.0], laplace[1])
    assert total_moved([*one, *one]).mu == pytest.approx(0.5 * 2**0.5, rel=1e-4)
    assert total_moved([*other, *other]).pure_epsilon == pytest.approx(1.0, rel=1e-4)
    both = total_moved([*one, *other])
    assert both.epsilon(1e-3) > max(one[0].loss.epsilon(1e-3), 0.5)


def test_a_mechanism_that_is_charged_for_twice_may_release_twice():
    mechanism, value = MECHANISMS["gaussian"]

    def run(shift, charges=2):
        account = Account(PrivacyGuarantee(1e6, 0.5))
        for _ in range(charges):
            account.charge("value", mechanism)
        return [mechanism.release(shift * np.array(value)) for _ in range(2)]

    for charges, groups in ((2, 2), (1, 1)):
        first = Transcript()
        first.watch(run, 0.0, charges=charges)
        second = Transcript(earlier=first)
        second.watch(run, 1.0, charges=charges)
        found = moved(first, second)
        assert len(found) == groups
        assert found[0].n_releases == 2 / groups
        assert found[0].share == pytest.approx((2 / groups) ** 0.5, rel=1e-4)


# Where two runs part


def release(scale, size, kind="sum", n_records=4):
    """One release, of some kind, preceded by a secret order."""
    secret_order(random_words(), n_records)
    if kind == "choice":
        return ExponentialMechanism(1.0, 1.0).select(np.zeros(size))
    mechanism = AdditiveMechanism("iid_laplace", np.full(size, scale), 20, _profile(size))
    return mechanism.release(np.zeros(size))


def _profile(size):
    return SensitivityProfile(np.ones(size))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 5.0}, "release 1 has another mechanism on the neighbour"),
        ({"size": 3}, "is a sum of shape"),
        ({"kind": "choice"}, "is a choice of shape"),
        ({"n_records": 5}, "an order of more records is asked for"),
    ],
)
def test_a_run_that_does_something_else_is_noticed_and_goes_its_own_way(change, message):
    usual = {"scale": 4.0, "size": 2}
    first = Transcript()
    one = first.watch(release, **usual)
    again = Transcript(earlier=first)
    assert np.array_equal(again.watch(release, **usual), one)
    assert again.diverged is None
    other = Transcript(earlier=first)
    other.watch(release, **{**usual, **change})
    assert message in other.diverged


def test_more_releases_than_before_are_noticed():
    first = Transcript()
    first.watch(lambda: None)
    other = Transcript(earlier=first)
    other.watch(release, 4.0, 2)
    assert "release 1 (sum) has no counterpart" in other.diverged


def test_orders_of_fewer_records_are_coupled_and_of_as_many_the_same():
    first = Transcript(3)
    order = first.watch(secret_order, None, 8)
    assert sorted(order.tolist()) == list(range(8))
    same, fewer = (Transcript(3, earlier=first).watch(secret_order, None, n) for n in (8, 6))
    assert (same == order).all()
    assert sorted(fewer.tolist()) == list(range(6))
