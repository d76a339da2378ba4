"""Bisections of columns side by side: what a record moves, what is found, and what is not."""

import math
from itertools import product

import numpy as np
import pytest

from skdpnoise.accounting.session import Session
from skdpnoise.data.table import InMemory
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.queries import bisected_columns as bisected
from skdpnoise.queries import private_location_scale, private_quantiles
from skdpnoise.queries.bisected_columns import AlikeGaps, ColumnSigns, bisect_columns, find_common
from skdpnoise.queries.ranges import searching_share
from skdpnoise.queries.values import MISSING
from skdpnoise.sampling import SeededWords
from skdpnoise.sampling.observer import note_charge
from tests._replay import two_runs
from tests._same_bits import COUNTS, in_parts

VALUES = (-2.0, 0.0, 1.0, 5.0)
THRESHOLDS = np.array([0.5, 1.0])
COLUMNS = np.arange(2)
FEW = GaussianLoss(0.15)  # too little for histograms of 30 columns of 500 records


def sums_of(rows, paired):
    step = ColumnSigns(len(rows), COLUMNS, THRESHOLDS, paired).step(np.full(2, 0.25))
    if not paired:
        return step(rows).ravel()
    pairs = np.arange(len(rows) // 2 * 2).reshape(-1, 2).T  # one matching of all that there are
    return step(rows, pairs, COLUMNS, COLUMNS).ravel()


@pytest.mark.parametrize("paired", [False, True])
def test_a_record_that_is_replaced_moves_sums_by_no_more_than_their_sensitivity(paired):
    profile = ColumnSigns(3, COLUMNS, THRESHOLDS, paired).sensitivity("replace_one")
    rows, seen = np.array([[1.0, -2.0], [0.0, 5.0], [1.0, 1.0], [-2.0, 0.0]]), np.zeros(2)
    for k, record in product(range(4), product(VALUES, VALUES)):
        other = rows.copy()
        other[k] = record
        seen = np.maximum(seen, np.abs(sums_of(other, paired) - sums_of(rows, paired)) / 4.0)
    assert np.all(seen <= profile.per_coordinate)
    assert np.all(seen == 2.0)  # and these are reached


def test_a_record_that_is_removed_moves_sums_of_records_by_one():
    profile = ColumnSigns(3, COLUMNS, THRESHOLDS, False).sensitivity("add_remove")
    rows = np.array([*product(VALUES, VALUES)])
    moves = [
        np.abs(sums_of(np.delete(rows, k, 0), False) - sums_of(rows, False)) / 4.0
        for k in range(len(rows))
    ]
    assert np.max(moves, axis=0).tolist() == profile.per_coordinate.tolist() == [1.0, 1.0]


def test_a_pair_that_goes_or_becomes_another_moves_sums_by_no_more_than_their_sensitivity():
    # The coupling of `paired_histogram`: of one record more, one pair is another one, or one more.
    profile = ColumnSigns(3, COLUMNS, THRESHOLDS, True).sensitivity("add_remove")
    gaps = [abs(a - b) for a, b in product(VALUES, VALUES)]
    signs = [np.where(gap < THRESHOLDS, 1.0, -1.0) for gap in gaps]
    for one, other in product([*signs, np.zeros(2)], signs):
        assert np.all(np.abs(one - other) <= profile.per_coordinate)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_all_steps_cost_no_more_than_the_loss_that_is_given(adjacency):
    rows, spent = np.random.default_rng(0).normal(size=(500, 30)), []
    session = Session(SeededWords(0), adjacency, lambda label, what: spent.append((label, what)))
    ends = np.full(30, -np.inf), np.full(30, np.inf)
    terms = session, "inid_gaussian", GaussianLoss(0.4)
    search = bisect_columns(np.arange(30), ends, terms, 500.0, alike=True)
    session.answer(search, InMemory.of(rows))
    losses = [what.privacy_loss() for _, what in spent]
    assert [label for label, _ in spent] == ["magnitudes", "locations"]
    assert math.hypot(*(loss.mu for loss in losses)) <= 0.4
    assert all(what.n_releases == 8 for _, what in spent)


def test_columns_are_found_that_histograms_hide():
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.uniform(-3.0, 3.0, 30)
    rows = rng.normal(3.0, 1.0, size=(500, 30)) * scales
    terms = {"pooled": True, "random_state": 0}
    found = private_location_scale(rows, GaussianLoss(0.4), **terms)
    assert found.found.mean() > 0.8 and not found.typical_found
    off = np.abs(np.log2(found.scale / scales))[found.found]
    assert np.median(off) < 1.0
    assert np.median(np.abs(found.location / scales - 3.0)[found.found]) < 0.5


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("value", [0.0, 7.0, -1e-9])
@pytest.mark.parametrize("n_columns", [5, 30, 100])
def test_constant_columns_have_no_scale(n_columns, value, pooled):
    rows, loss = np.full((500, n_columns), value), GaussianLoss(0.03 * math.sqrt(n_columns))
    found = [
        private_location_scale(rows, loss, pooled=pooled, random_state=seed) for seed in range(5)
    ]
    assert not any(one.typical_found for one in found)
    assert sum(one.found.any() for one in found) == 0


def test_the_evidence_for_constant_columns_is_one_at_most_in_the_mean(monkeypatch):
    seen = []

    def note(evidence, *, alike):
        seen.append(np.exp(evidence))
        return np.zeros(evidence.size, dtype=bool)

    monkeypatch.setattr(bisected, "_kept", note)
    for seed in range(20):
        private_location_scale(np.zeros((60, 40)), FEW, random_state=seed)
    ratios = np.concatenate(seen)
    assert len(seen) == 20
    assert ratios.mean() <= 1.0 + 3.0 * ratios.std() / math.sqrt(ratios.size)


@pytest.mark.parametrize("n_bounded", [1, 10])
def test_columns_beside_those_within_bounds_leave_their_share(n_bounded):
    rows, spent = np.random.default_rng(0).normal(size=(400, 20)), []
    low = np.where(np.arange(20) < n_bounded, -4.0, -np.inf)
    terms = {"random_state": 0, "charge": lambda label, what: spent.append((label, what))}
    found = private_location_scale(rows, GaussianLoss(0.4), bounds=(low, -low), **terms)
    assert found.found[:n_bounded].all() and not found.typical_found
    labels, losses = zip(*spent, strict=True)
    assert labels[0] == "magnitudes" and labels[-1] == "mean absolute deviations of bounded columns"
    assert math.hypot(*(what.privacy_loss().mu for what in losses)) <= 0.4


def test_whoever_knows_the_records_does_not_know_the_pairs_of_those_that_have_a_value():
    rows = InMemory.of(np.arange(12.0).reshape(6, 2))
    query = ColumnSigns(3, COLUMNS, THRESHOLDS, True, MISSING)
    sessions = [Session(SeededWords(seed), "replace_one") for seed in (0, 0, 1)]
    keys = [one._paired(query, np.ones(2), 3, rows)[0].key for one in (*sessions, sessions[0])]
    assert keys[0] == keys[1]  # of the seed
    assert len({*keys}) == 3  # and another one for each release


def of_common(rows, loss=FEW, seed=0, charge=lambda *_: None, missing=None):
    """Return the location and the scale of columns that are alike, and what they cost."""
    session = Session(SeededWords(seed), "replace_one", charge)
    ends = np.full(rows.shape[1], -np.inf), np.full(rows.shape[1], np.inf)
    terms = session, "inid_gaussian", loss
    search = find_common(np.arange(rows.shape[1]), ends, terms, float(len(rows)), missing=missing)
    return session.answer(search, InMemory.of(rows))


def test_columns_that_are_alike_have_one_location_and_one_scale():
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        factors = 2.0 ** rng.uniform(-1.0, 1.0, 30)
        rows = 1e-3 * factors * rng.normal(2.0, 1.0, size=(500, 30))
        rows[:, ::5] = 0.0  # no difference tells of these
        found.append(of_common(rows, seed=seed))
    location, scale, spent = np.transpose(found)
    assert np.mean(scale > 0.0) >= 0.75
    off = np.log2(scale[scale > 0.0] / 1e-3)
    assert np.median(np.abs(off)) < 1.0
    assert np.all(np.abs(location[scale > 0.0]) < 0.03) and np.all(spent <= 0.5)


@pytest.mark.parametrize(
    "scales", [10.0 ** np.linspace(-3.0, 3.0, 30), np.r_[np.ones(15), np.full(15, 1e-3)]]
)
def test_columns_that_are_not_alike_have_scales_of_their_own(scales):
    for seed in range(10):
        rows, charges = np.random.default_rng(seed).normal(3.0, 1.0, size=(500, 30)) * scales, []
        _, scale, part = of_common(
            rows, seed=seed, charge=lambda _, what, to=charges: to.append(what)
        )
        spent = math.hypot(*(what.privacy_loss().mu for what in charges))
        assert scale == 0.0 and 0.999 * FEW.share(part).mu <= spent <= FEW.share(part).mu * 1.001


@pytest.mark.parametrize("value", [0.0, 7.0])
@pytest.mark.parametrize("n_columns", [2, 30])
def test_constant_columns_are_not_alike(n_columns, value):
    rows = np.full((500, n_columns), value)
    assert sum(of_common(rows, seed=seed)[1] > 0.0 for seed in range(100)) <= 4


def test_a_common_scale_costs_what_it_says_and_is_not_searched_for_where_that_is_too_much():
    rows, spent = np.random.default_rng(0).normal(size=(500, 30)), []
    *_, part = of_common(rows, charge=lambda label, what: spent.append((label, what)))
    labels = [label for label, _ in spent]
    assert labels == ["common magnitude", "alike gaps", "common location"]
    losses = [what.privacy_loss().mu for _, what in spent]
    assert math.hypot(*losses) <= FEW.share(part).mu * (1.0 + 1e-9)
    assert [what.n_releases for _, what in spent] == [8, 1, 8]
    spent.clear()
    assert of_common(rows[:100], charge=lambda *more: spent.append(more)) == (0.0, 0.0, 0.0)
    assert not spent


def test_a_pair_moves_counts_of_alike_gaps_by_no_more_than_their_sensitivity():
    query = AlikeGaps(3, COLUMNS, 2.0)
    profile, step = query.sensitivity("add_remove"), query.step(np.full(2, 0.25))
    gaps = (-9.0, 0.0, 0.2, 0.25, -2.0, 16.0, 17.0)
    sums = [step(np.full((1, 2), gap)).ravel() / 4.0 for gap in gaps]
    assert [one[0] for one in sums] == [1.0, 0.0, -1.0, 1.0, 1.0, 1.0, -1.0]
    sums.append(step(np.zeros((0, 2))).ravel())  # no pair
    moves = [np.abs(one - other) for one, other in product(sums, sums)]
    assert np.max(moves, axis=0).tolist() == profile.per_coordinate.tolist() == [2.0, 2.0]
    # Of no common gap, however small, one of nothing is near.
    for common in (0.0, 5e-324, 2e-323, 4e-323, 1e-300, 1e308):
        step = AlikeGaps(3, COLUMNS, common).step(np.ones(2))
        sums = [step(np.full((1, 2), gap)).ravel() for gap in (*gaps, common, np.inf)]
        assert np.ptp(sums, axis=0).max() <= 2.0 and sums[gaps.index(0.0)].tolist() == [0, 0]


def test_gaps_that_differ_count_on_both_sides_and_those_of_nothing_on_none():
    query = ColumnSigns(3, COLUMNS, THRESHOLDS, True, differing=True)
    profile, step = query.sensitivity("replace_one"), query.step(np.ones(2))
    sums = [step(np.full((1, 2), gap)).ravel() for gap in (-9.0, 0.0, 0.7)]
    assert [one.tolist() for one in sums] == [[-1, -1], [0, 0], [-1, 1]]
    for one, other in product(sums, sums):
        assert np.all(np.abs(one - other) <= profile.per_coordinate)


def test_what_is_missing_is_no_gap_of_columns_that_are_alike():
    rng = np.random.default_rng(0)
    rows = rng.normal(5.0, 3.0, size=(2000, 30))
    rows[rng.random(rows.shape) < 0.5] = MISSING
    _, scale, _ = of_common(rows, missing=MISSING)
    assert 1.0 < scale < 9.0


@pytest.mark.parametrize("n_bounded", [0, 10])
def test_what_columns_that_are_alike_leave_refines_them(n_bounded):
    rng, charges = np.random.default_rng(0), []
    rows = rng.normal(4.0, 2.0, size=(800, 30))
    low = np.where(np.arange(30) < n_bounded, -2.0, -np.inf)
    high = np.where(np.arange(30) < n_bounded, 10.0, np.inf)
    note = lambda _, what: charges.append(what.privacy_loss().mu)  # noqa: E731
    loss = GaussianLoss(0.25)
    facts = {"bounds": (low, high), "pooled": True, "random_state": 0, "charge": note}
    found = private_location_scale(rows, loss, **facts)
    assert found.found.all() and np.hypot.reduce(charges) <= loss.mu
    assert np.hypot.reduce(charges) >= 0.95 * loss.mu
    assert np.abs(found.location - 4.0).max() < 2.0
    assert np.all((found.scale > 1.0) & (found.scale < 4.0))


def test_pure_losses_keep_histograms():
    rows = np.random.default_rng(0).normal(size=(500, 30))
    found = private_location_scale(rows, PureLoss(0.5), random_state=0)
    assert not found.found.all()


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_rows_in_parts_give_the_same_bits(adjacency):
    import pandas

    rows = np.random.default_rng(0).normal(2.0, 3.0, size=(480, 30))
    terms = {"adjacency": adjacency, "n_samples": 480.0, "pooled": True, "random_state": 0}
    whole = private_location_scale(rows, GaussianLoss(0.3), **terms)
    for n_parts in COUNTS:
        parts = in_parts(pandas.DataFrame(rows), n_parts)
        found = private_location_scale(parts, GaussianLoss(0.3), **terms)
        assert found.location.tolist() == whole.location.tolist()
        assert found.scale.tolist() == whole.scale.tolist()
    assert whole.found.any() and not whole.typical_found


def test_a_search_takes_what_it_needs_and_where_histograms_find_all_of_its_share():
    noise, n = "inid_gaussian", 1500.0
    losses = (0.05, 0.08, 0.1, 9.0)
    parts = [searching_share(noise, GaussianLoss(mu), n, 8) for mu in losses]
    assert parts[0] == parts[-1] == 1.0
    assert 0.3 < parts[2] < parts[1] < 0.7
    assert math.isclose(parts[1] * 0.08**2, parts[2] * 0.1**2, rel_tol=1e-6)  # the same noise
    assert searching_share(noise, GaussianLoss(0.25), n, 64) < 0.7  # too little for so many
    assert searching_share(noise, PureLoss(0.1), n, 8) == 1.0


def test_what_is_missing_is_no_sign_and_pairs_fewer_are_gaps_of_nothing():
    rows = np.array([[-2.0, MISSING], [0.0, 5.0], [MISSING, 1.0], [5.0, MISSING]])
    facts = 4, COLUMNS, THRESHOLDS
    values = ColumnSigns(*facts, False, MISSING).step(np.ones(2))
    assert values(rows).ravel().tolist() == [1, -2]  # two below and one not; none and two
    gaps = ColumnSigns(*facts, True, MISSING).step(np.ones(2))
    assert gaps(np.array([[0.2, -7.0], [3.0, 0.0]])).ravel().tolist() == [-2, -2]
    assert gaps(np.zeros((5, 2))).ravel().tolist() == gaps(np.zeros((0, 2))).ravel().tolist()


def test_a_pair_that_is_lost_or_gained_moves_sums_by_no_more_than_their_sensitivity():
    query = ColumnSigns(3, COLUMNS, THRESHOLDS, True, MISSING)
    profile, step = query.sensitivity("add_remove"), query.step(np.ones(2))
    sums = [step(np.full((1, 2), gap)).ravel() for gap in (-9.0, 0.0, 0.7, 2.0)]
    sums.append(step(np.zeros((0, 2))).ravel())  # no pair
    for one, other in product(sums, sums):
        assert np.all(np.abs(one - other) <= profile.per_coordinate)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
def test_constant_columns_of_which_a_part_is_missing_have_no_scale(share):
    rng = np.random.default_rng(0)
    for value, seed in product((0.0, 7.0), range(5)):
        rows = np.where(rng.random((500, 30)) < share, np.nan, value)
        found = private_quantiles(rows, 0.5, FEW, missing=True, random_state=seed)
        assert not found.typical_found and not found.found.any()


@pytest.mark.parametrize("budget", [GaussianLoss(0.3), GaussianLoss(20.0)])
@pytest.mark.parametrize("last", [(np.nan, np.nan), (3.0, np.nan), (3.0, -1.0)])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_value_that_is_there_or_not_moves_no_more_than_is_charged_for(adjacency, last, budget):
    # By bisection, and by histograms.
    rows = np.random.default_rng(0).normal(size=(61, 2))
    rows[::3, 0] = np.nan
    rows[-1] = last
    others = [rows[:-1]]
    if adjacency == "replace_one":
        others = [
            np.vstack([rows[:-1], one]) for one in ((np.nan, 9.0), (1e6, 1e-9), (np.nan,) * 2)
        ]

    def run(values):
        asked = {"missing": True, "adjacency": adjacency, "random_state": 0, "charge": note_charge}
        return private_quantiles(values, 0.5, budget, **asked)

    for other, seed in product(others, range(5)):
        runs = two_runs(run, (rows,), (other,), seed)
        assert runs.there.diverged is None
        assert all(one.share <= 1.0 + 1e-9 for one in runs.moved)
