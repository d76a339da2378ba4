"""Transcripts: what is noted, what is frozen, where two runs part, and what a change costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdpnoise.accounting.session import Session
from skdpnoise.data import scan_batches
from skdpnoise.data.table import InMemory
from skdpnoise.inspection import Transcript, coupled_order
from skdpnoise.inspection.auditing._costs import exact_epsilon, moved, quick_epsilon, total_moved
from skdpnoise.ledger import Account
from skdpnoise.mechanisms import (
    AdditiveMechanism,
    ExponentialMechanism,
    SymmetricMatrixMechanism,
    calibrate,
    calibrate_sampled,
    calibrate_second_moments,
    k_norm,
    l1_staircase,
)
from skdpnoise.privacy import (
    GaussianLoss,
    NormalShift,
    NumericLoss,
    PrivacyGuarantee,
    Promised,
    PureLoss,
)
from skdpnoise.queries import private_categories
from skdpnoise.queries.categories import CategoryMechanism, category_mechanism, release_categories
from skdpnoise.queries.norm_quantile import NormQuantileMechanism
from skdpnoise.sampling import random_words, secret_order
from skdpnoise.sampling.integers import secret_rows
from skdpnoise.sampling.keyed import keyed_order
from skdpnoise.sampling.observer import note_charge, plus_noise
from skdpnoise.sensitivity import GroupedProfile, RowBounds, SensitivityProfile
from tests._cases import each_value, quick


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
    "gaussian": lambda: calibrate("inid_gaussian", BALL, GaussianLoss(0.5)),
    "laplace": lambda: calibrate("iid_laplace", BALL, PureLoss(0.5)),
    "subbotin": lambda: calibrate("iid_subbotin", BALL, PrivacyGuarantee(1.0, 1e-6)),
    "k-norm": lambda: k_norm(2, 5.0, 2, PureLoss(0.5)),
}
LARGEST = np.array([3.0, 4.0])


@quick("0.5-k-norm")
@each_value(1)
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_a_change_is_counted_in_units_of_the_largest_that_is_declared(name, factor):
    mechanism = MECHANISMS[name]()
    (one,) = replayed(mechanism, [0.0, 0.0], factor * LARGEST)
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


@quick("k_norm")
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


@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace", "k_norm", "wishart"])
def test_second_moments_that_are_released_again_cost_again(noise):
    loss = GaussianLoss(1.0) if noise.endswith("gaussian") else PureLoss(1.0)
    mechanism = calibrate_second_moments(noise, RowBounds(2, 1.0), loss, "add_remove")
    counts = np.rint(np.diag([1.0, 0.0]) / mechanism.grid_size).astype(np.int64)

    def times(n_times):
        def release(value):
            return [mechanism.release(value) for _ in range(n_times)][-1]

        (one,) = replayed(mechanism, np.zeros((2, 2), dtype=np.int64), counts, release=release)
        return one

    assert times(3).is_repeated
    exact = times(1).loss.compose(3)
    for epsilon in (0.0, 0.5, 1.0, 2.5):
        assert times(3).loss.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=1e-9)


def test_a_choice_is_declared_by_the_utility_that_moves_most_and_costs_the_range_of_all():
    mechanism = ExponentialMechanism(2.0, 1.0)
    for there, share, cost in (
        ([2.0, 4.0], 1.0, 0.75),
        ([2.0, 3.0], 1.0, 1.0),
        ([6.0, 11.0], 3.0, 0.0),  # all of them by the same number
        ([4.0, 1.0], 2.0, 2.0),
    ):
        (one,) = replayed(mechanism, [0.0, 5.0], there, release=mechanism.select)
        assert one.share == pytest.approx(share, rel=1e-6)
        assert one.loss.pure_epsilon == pytest.approx(cost, rel=1e-6)
    monotonic = ExponentialMechanism(2.0, 1.0, monotonic=True)
    (same_way,) = replayed(monotonic, [0.0, 5.0], [2.0, 6.0], release=monotonic.select)
    assert same_way.share == pytest.approx(1.0, rel=1e-6)
    (both_ways,) = replayed(monotonic, [0.0, 5.0], [2.0, 4.0], release=monotonic.select)
    assert both_ways.share == np.inf
    assert both_ways.loss.pure_epsilon == pytest.approx(1.5, rel=1e-6)
    ranged = NormQuantileMechanism.within(GaussianLoss(0.5))
    (one,) = replayed(
        ranged, [0.0, 5.0], [1.0, 4.0], release=lambda u: ranged.select(u, random_words())
    )
    assert one.label == "value"
    assert one.loss.mu == pytest.approx(0.5, rel=1e-6)


def test_a_mechanism_that_nobody_knows_the_cost_of_is_refused():
    mechanism = l1_staircase(2, 1.0, PureLoss(1.0))
    with pytest.raises(TypeError, match="what a change costs under a L1StaircaseMechanism"):
        replayed(mechanism, [0.0, 0.0], [1.0, 0.0])


def test_losses_of_changes_add_up():
    assert total_moved([]).pure_epsilon == 0.0
    one, other = (
        replayed(MECHANISMS[name](), [0.0, 0.0], LARGEST) for name in ("gaussian", "laplace")
    )
    assert total_moved([*one, *one]).mu == pytest.approx(0.5 * 2**0.5, rel=1e-4)
    assert total_moved([*other, *other]).pure_epsilon == pytest.approx(1.0, rel=1e-4)
    both = total_moved([*one, *other])
    assert both.epsilon(1e-3) > max(one[0].loss.epsilon(1e-3), 0.5)


def test_a_mechanism_that_is_charged_for_twice_may_release_twice():
    mechanism = MECHANISMS["gaussian"]()

    def run(shift, charges=2):
        account = Account(PrivacyGuarantee(1e6, 0.5))
        for _ in range(charges):
            account.charge("value", mechanism)
        return [mechanism.release(shift * LARGEST) for _ in range(2)]

    for charges, groups in ((2, 2), (1, 1)):
        first = Transcript()
        first.watch(run, 0.0, charges=charges)
        second = Transcript(earlier=first)
        second.watch(run, 1.0, charges=charges)
        found = moved(first, second)
        assert len(found) == groups
        assert found[0].n_releases == 2 / groups
        assert found[0].share == pytest.approx((2 / groups) ** 0.5, rel=1e-4)


# What a change costs, whatever was declared of it

DECLARED = {
    "box": SensitivityProfile([3.0, 4.0]),
    "l1": SensitivityProfile([3.0, 4.0], l1=5.0),
    "l2": SensitivityProfile([3.0, 4.0], l2=4.5),
    "group": GroupedProfile([4.5], [0, 0]),
}
CUT = 1e-15  # laws by force end at 40 scales
NOISES = ("inid_gaussian", "iid_laplace", "iid_subbotin", "iid_flipped_huber")


def hockey_stick(mechanism, moved, epsilon):
    """Return δ(ε) of the laws of rounded noise beside those of it moved by integers, by force."""
    wide = int(40.0 * 2.0**mechanism.bits)
    ends = (np.arange(-wide, wide + 2) - 0.5) * 2.0**-mechanism.bits
    law = -np.diff(np.asarray(mechanism.family.sf(ends)))
    first, second = np.ones(1), np.ones(1)
    for step in moved:
        first = np.outer(first, law).ravel()
        second = np.outer(second, np.roll(law, int(step))).ravel()
    return max(
        float(np.maximum(one - np.exp(epsilon) * other, 0.0).sum())
        for one, other in ((first, second), (second, first))
    )


@quick("group-iid_flipped_huber")
@each_value(1)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("declared", DECLARED)
def test_a_change_costs_its_own_loss_and_what_keeps_its_declaration_no_more_than_is_charged(
    noise, declared
):
    profile, rng = DECLARED[declared], np.random.default_rng(0)
    scale = np.array([4.0, 4.0])
    mechanism = AdditiveMechanism(noise, scale, 2, profile)
    charged = mechanism.privacy_loss()
    kept = 0
    for factor in (0.5, 1.0, 2.0):
        there = factor * np.array([3.0, 4.0]) * rng.choice([-1.0, 1.0], 2)
        (one,) = replayed(mechanism, [0.0, 0.0], there)
        steps = np.rint(there / mechanism.grid_size).astype(int)
        for epsilon in (0.0, 0.5, 1.5):
            exact = hockey_stick(mechanism, steps, epsilon)
            assert one.loss.delta(epsilon) >= exact * (1.0 - 1e-9) - CUT
        if one.share <= 1.0:
            kept += 1
            for delta in (1e-2, 1e-6):
                assert exact_epsilon(one.loss, delta) <= charged.epsilon(delta) * (1.0 + 1e-9)
        else:
            assert factor > 0.5
            assert one.bound in ("for one number", "in l1", "in l2", "for group 0") or (
                one.bound == "for all releases together"
            )
    assert kept


@pytest.mark.parametrize("declared", [1.0, 0.5])
def test_a_bound_that_is_broken_does_not_multiply_the_loss_of_another_that_is_kept(declared):
    # Two numbers of a hundred move by one: the l2 bound knows, one number's bound may not.
    profile = SensitivityProfile(np.full(100, declared), l2=2.0**0.5)
    mechanism = calibrate("iid_gaussian", profile, GaussianLoss(0.5))
    there = np.eye(1, 100)[0] + np.eye(1, 100, 1)[0]
    (one,) = replayed(mechanism, np.zeros(100), there)
    assert one.share == pytest.approx(1.0 / declared, rel=1e-4)
    assert one.loss.mu == pytest.approx(0.5, rel=1e-4)
    if declared < 1.0:
        assert one.bound == "for one number"


def test_losses_of_several_kinds_are_composed_and_never_above_their_quick_bound():
    laplace = calibrate("iid_laplace", SensitivityProfile(np.ones(20)), PureLoss(2.0))
    (one,) = replayed(laplace, np.zeros(20), np.ones(20))
    loss = one.loss + GaussianLoss(0.3)
    assert quick_epsilon(one.loss, 1e-6) == pytest.approx(2.0, rel=1e-4)
    assert exact_epsilon(one.loss, 0.0) == quick_epsilon(one.loss, 0.0)
    assert exact_epsilon(one.loss, 1e-6) == pytest.approx(one.loss.epsilon(1e-6))
    assert 1.5 < exact_epsilon(loss, 1e-6) < quick_epsilon(loss, 1e-6)
    far = replayed(laplace, np.zeros(20), np.full(20, 1e9))[0].loss
    assert exact_epsilon(far, 1e-6) == far.pure_epsilon


@quick("0.1")
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_steps_over_samples_cost_what_the_largest_seen_does_and_no_more_than_is_charged(rate):
    guarantee = PrivacyGuarantee(2.0, 1e-5, "add_remove")
    made = calibrate_sampled(
        "iid_gaussian", GroupedProfile([1.0], [0, 0]), guarantee, rate=rate, n_releases=3
    )

    def run(shift):
        note_charge("value", made)
        for step in (0.0, shift, 0.0):
            plus_noise(made, np.rint(np.array([step, 0.0]) / made.grid_size).astype(int), [0, 0])

    for shift in (0.0, 0.5, 1.0, 2.0):
        first = Transcript()
        first.watch(run, 0.0)
        second = Transcript(earlier=first)
        second.watch(run, shift)
        (one,) = moved(first, second)
        assert one.share == pytest.approx(shift, rel=1e-4)
        used, charged = one.loss.epsilon(1e-5), made.privacy_loss().epsilon(1e-5)
        if shift < 1.0:
            assert used < 0.6 * charged
        elif shift == 1.0:
            assert 0.99 * charged < used <= charged
        else:
            assert used > 1.5 * charged


# Cells that neighbours need not have in common


def cells_of(mechanism, *labels, seed=0):
    """Show the categories of one list, replay with another; return what moved, and both results."""

    def run(values):
        note_charge("categories", mechanism)
        session = Session(random_words(), mechanism.adjacency)
        return release_categories(
            "categories", [InMemory(values, len(values))], mechanism, session
        )[0]

    first = Transcript(seed)
    one = first.watch(run, labels[0])
    second = Transcript(seed, earlier=first)
    other = second.watch(run, labels[1])
    assert second.diverged is None
    (found,) = moved(first, second)
    return found, one, other


def categories(noise="iid_gaussian", adjacency="replace_one", rows_per_group=1):
    guarantee = PrivacyGuarantee(1.0, 1e-2, adjacency)
    return category_mechanism("owner", noise, 1, adjacency, guarantee, rows_per_group)


MANY = ["red"] * 60 + ["blue"] * 50


@each_value(1)
@pytest.mark.parametrize("noise", ["iid_gaussian", "iid_laplace"])
@pytest.mark.parametrize(
    ("changed", "n_moved", "n_lone"),
    [
        ([*MANY, "red"], 1, 0),
        ([*MANY, "Ann's own"], 0, 1),
        ([*MANY[1:], "Ann's own"], 1, 1),
        ([*MANY[1:], "blue"], 2, 0),
        ([*MANY, None], 0, 0),
    ],
)
def test_a_moved_count_costs_its_noise_and_a_cell_that_one_data_set_lacks_its_chance(
    noise, changed, n_moved, n_lone
):
    mechanism = categories(noise)
    made = mechanism.additive
    curve = NormalShift() if noise == "iid_gaussian" else made.family
    one_step = round(1.0 / mechanism.grid_size) * 2.0**-made.bits
    expected = NumericLoss(
        ((curve, one_step, n_moved),) * (n_moved > 0)
        + ((Promised(mechanism.chance(1)), 0.0, n_lone),) * (n_lone > 0)
    )
    for pair in ((MANY, changed), (changed, MANY)):
        found, one, other = cells_of(mechanism, *pair)
        assert one[0] == other[0] == ("blue", "red")
        assert one[1].tolist() == other[1].tolist()
        for epsilon in (0.0, 0.2, 1.0):
            assert found.loss.delta(epsilon) == pytest.approx(expected.delta(epsilon), rel=1e-6)
            assert found.loss.delta(epsilon) <= mechanism.privacy_loss().delta(epsilon) * (1 + 1e-9)
        assert found.is_covered
        assert found.n_releases == 1.0
        assert found.share <= 1.0 + 1e-9
    if n_moved == 2:
        assert found.share == pytest.approx(1.0, rel=1e-3)


def test_a_cell_of_many_records_that_one_data_set_lacks_breaks_what_is_declared_and_costs_it_all():
    found, one, other = cells_of(categories(), MANY, [*["1.0"] * 60, *["2.0"] * 50])
    assert found.share > 50.0
    assert found.bound == "for the counts of one column"
    assert quick_epsilon(found.loss, 1e-2) == np.inf
    assert one[0] != other[0]


@pytest.mark.parametrize("seed", range(8))
def test_fits_are_compared_in_which_nobody_shows_a_cell_of_ones_own(seed):
    # Half of the cells of one record would be shown by so low a threshold.
    additive = AdditiveMechanism("iid_laplace", np.full(2, 1.5), 3, SensitivityProfile(np.ones(2)))
    mechanism = CategoryMechanism(additive, 1.5)
    assert mechanism.chance(1) > 0.3
    for pair in ((MANY, [*MANY[1:], "Ann's own"]), ([*MANY[1:], "Ann's own"], MANY)):
        _, one, other = cells_of(mechanism, *pair, seed=seed)
        assert one[0] == other[0] == ("blue", "red")


def test_groups_may_have_cells_of_as_many_records_for_themselves():
    mechanism = categories(rows_per_group=3)
    found, one, other = cells_of(mechanism, MANY, [*MANY[3:], *["Ann's own"] * 3])
    assert one[0] == other[0]
    assert found.share == pytest.approx(1.0, rel=1e-3)
    assert found.is_covered
    found, *_ = cells_of(mechanism, MANY, [*MANY[4:], *["Ann's own"] * 4])
    assert found.share > 1.2


def test_a_column_in_parts_has_the_cells_of_one_in_memory():
    def run(values):
        return private_categories(values, PrivacyGuarantee(1.0, 1e-2)).categories

    def parts(values):
        return scan_batches(lambda: (pd.DataFrame({"a": values[i::2]}) for i in range(2)))

    meetings = []
    for values in (MANY, parts(MANY)):
        transcript = Transcript()
        assert transcript.watch(run, values) == (("blue", "red"),)
        (meeting,) = transcript.meetings
        assert meeting.kind == "cells"
        meetings.append((meeting.names, meeting.integers.tolist(), meeting.released.tolist()))
    assert meetings[0] == meetings[1]


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


@pytest.mark.parametrize("n", range(1, 9))
def test_the_orders_of_those_with_a_value_are_coupled_with_one_more_of_them(n):
    for seed in range(20):
        first = Transcript(seed)
        order = first.watch(keyed_order, bytes(32), 0, n)
        longer = Transcript(seed, earlier=first).watch(keyed_order, bytes(32), 0, n + 1)
        assert sorted(longer.tolist()) == list(range(n + 1))
        pairs, fewer = (
            set(map(frozenset, zip(one[: len(one) // 2], one[len(one) // 2 :], strict=False)))
            for one in (coupled_order(longer).tolist(), order.tolist())
        )
        assert pairs == fewer


@pytest.mark.parametrize("most", [4, 6, 8])  # a part of both, of the first, and all records
def test_parts_of_the_records_are_coupled_with_one_fewer_of_them(most):
    met = set()
    for seed in range(30):
        first = Transcript(seed)
        part = first.watch(secret_rows, None, 7, most).tolist()
        same, fewer = (
            Transcript(seed, earlier=first).watch(secret_rows, None, n, most).tolist()
            for n in (7, 6)
        )
        assert same == part
        assert max(fewer) < 6 and len(set(fewer)) == min(most, 6)
        changed = [place for place, one in enumerate(part) if [one] != fewer[place : place + 1]]
        assert changed == [place for place, one in enumerate(part) if one == 6]
        met.add(len(changed))
    assert met == ({0, 1} if most < 7 else {1})


def test_orders_of_fewer_records_are_coupled_and_of_as_many_the_same():
    first = Transcript(3)
    order = first.watch(secret_order, None, 8)
    assert sorted(order.tolist()) == list(range(8))
    same, fewer = (Transcript(3, earlier=first).watch(secret_order, None, n) for n in (8, 6))
    assert (same == order).all()
    assert sorted(fewer.tolist()) == list(range(6))
    for place in range(8):  # records keep their partners, but for the two that lose theirs
        again = Transcript(3, earlier=first, place=place).watch(secret_order, None, 7)
        kept = np.delete(np.arange(8), place)[again]  # by their numbers among eight
        pairs, left = (
            {frozenset(p) for p in zip(o[:h], o[h : 2 * h], strict=True)}
            for o, h in ((order.tolist(), 4), (kept.tolist(), 3))
        )
        assert left < pairs
        assert sorted(kept.tolist()) == sorted(set(range(8)) - {place})
