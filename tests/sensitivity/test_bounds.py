"""Neighbours by force: one record changed in thousands of ways."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from scipy.sparse import lil_array
from scipy.sparse.csgraph import maximum_flow

from skdpnoise.sensitivity import (
    clipped_gradient,
    clipped_sum,
    grouped_sum,
    histogram_counts,
    paired_histogram,
)
from tests._cases import each_value

ADJACENCIES = ["replace_one", "add_remove"]


def neighbours(rng, adjacency, draw, n_samples=8, n_pairs=3000):
    """Pairs of data sets that differ in one record; ``draw(n)`` makes n records."""
    for _ in range(n_pairs):
        data = draw(n_samples)
        if adjacency == "add_remove":
            yield data, data[:-1]
        else:
            changed = data.copy()
            changed[-1] = draw(1)[0]
            yield data, changed


def largest_changes(query, pairs):
    changes = np.abs([query(a) - query(b) for a, b in pairs])
    return changes.max(axis=0), changes.sum(axis=1).max(), np.sqrt((changes**2).sum(axis=1)).max()


def assert_bounds_hold_and_are_reached(profile, largest):
    per_coordinate, l1, l2 = largest
    assert (per_coordinate <= profile.per_coordinate * (1 + 1e-12)).all()
    assert (per_coordinate >= 0.99 * profile.per_coordinate).all()
    for bound, value in ((profile.l1, l1), (profile.l2, l2)):
        if bound is not None:
            assert 0.99 * bound <= value <= bound


@pytest.mark.parametrize(
    ("adjacency", "mean"), [("replace_one", False), ("replace_one", True), ("add_remove", False)]
)
def test_one_record_moves_a_gradient_by_at_most_the_stated_sensitivity(adjacency, mean):
    rng, clip, n = np.random.default_rng(0), np.array([0.5, 2.0, 1e-3]), 8
    profile = clipped_gradient(clip, adjacency, n_samples=n if mean else None)

    def query(gradients):
        return np.clip(gradients, -clip, clip).sum(axis=0) / (n if mean else 1)

    pairs = neighbours(rng, adjacency, lambda k: clip * rng.standard_cauchy((k, 3)), n)
    assert_bounds_hold_and_are_reached(profile, largest_changes(query, pairs))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_record_moves_a_clipped_sum_by_at_most_the_stated_sensitivity(adjacency):
    rng, low, high = np.random.default_rng(1), np.array([-1.0, -3.0, 2.0]), np.array([4.0, 1.0, 5])
    profile = clipped_sum(low, high, adjacency)

    def query(values):
        return np.clip(values, low, high).sum(axis=0)

    pairs = neighbours(rng, adjacency, lambda k: 5 * rng.standard_cauchy((k, 3)))
    assert_bounds_hold_and_are_reached(profile, largest_changes(query, pairs))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("n_bins", "n_columns"), [(1, 1), (3, 1), (4, 2)])
def test_one_record_moves_a_histogram_by_at_most_the_stated_sensitivity(
    adjacency, n_bins, n_columns
):
    rng = np.random.default_rng(2)
    profile = histogram_counts(n_bins, adjacency, n_columns)

    def query(bins):  # the last bin is "none of them"
        return np.concatenate([np.bincount(c, minlength=n_bins + 1)[:n_bins] for c in bins.T])

    pairs = neighbours(rng, adjacency, lambda k: rng.integers(0, n_bins + 1, (k, n_columns)))
    assert_bounds_hold_and_are_reached(profile, largest_changes(query, pairs))


def pair_counts(bins, matching):
    """Counts of a function of two records: the bin of each pair in each column."""
    pairs = bins[matching]
    difference = np.abs(pairs[:, 0] - pairs[:, 1]) % 4
    return np.concatenate([np.bincount(c, minlength=5)[1:5] for c in difference.T])


def random_matching(rng, n):
    return rng.permutation(n)[: n - n % 2].reshape(-1, 2)


def test_replacing_one_record_moves_a_paired_histogram_by_at_most_the_stated_sensitivity():
    rng, n = np.random.default_rng(3), 9
    profile = paired_histogram(4, n_columns=2)
    matching = random_matching(rng, n)
    while n - 1 not in matching:  # the changed record takes part
        matching = random_matching(rng, n)
    pairs = neighbours(rng, "replace_one", lambda k: rng.integers(0, 50, (k, 2)), n)
    per_coordinate, l1, l2 = largest_changes(lambda bins: pair_counts(bins, matching), pairs)
    assert per_coordinate[:3].tolist() == [1, 1, 1]
    assert (per_coordinate <= profile.per_coordinate).all()
    assert l1 == profile.l1 == 4
    assert 0.99 * profile.l2 <= l2 <= profile.l2


def matchings(records: tuple, n_pairs: int):
    """All sets of so many disjoint pairs of records, each once."""
    if n_pairs == 0:
        yield frozenset()
    elif len(records) >= 2 * n_pairs:
        first, rest = records[0], records[1:]
        yield from matchings(rest, n_pairs)  # the first one stays out
        for other in rest:
            others = tuple(one for one in rest if one != other)
            for pairs in matchings(others, n_pairs - 1):
                yield pairs | {frozenset((first, other))}


def without(x, matching: frozenset, records: tuple):
    """The matchings that the proof makes of one of D', without x, each with its probability."""
    of_x = {pair for pair in matching if x in pair}
    if not of_x:
        return {matching: Fraction(1)}
    others, (pair,) = matching - of_x, of_x
    free = [z for z in records if not any(z in pair for pair in matching)]
    (y,) = pair - {x}
    made = [others | {frozenset((z, y))} for z in free] or [others]
    return dict.fromkeys(made, Fraction(1, len(made)))


@each_value(2)
@pytest.mark.parametrize("n", range(8))
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_adding_one_record_couples_random_pairs_within_the_stated_sensitivity(n, most):
    # The coupling of the proof, for all matchings, and all parts of a matching.
    x, records = n, tuple(range(n))
    larger = list(matchings((*records, x), min((n + 1) // 2, most)))
    smaller = list(matchings(records, min(n // 2, most)))
    assert len(set(larger)) == len(larger)
    law = dict.fromkeys(smaller, Fraction(0))
    lost = gained = 0
    for one in larger:
        for made, probability in without(x, one, records).items():
            law[made] += probability / len(larger)  # and it is a matching of D, else a KeyError
            lost, gained = max(lost, len(one - made)), max(gained, len(made - one))
    assert set(law.values()) == {Fraction(1, len(smaller))}
    assert max(lost, gained) <= 1
    assert lost + gained <= paired_histogram(9).l1
    if larger[0] and len(larger[0]) == len(smaller[0]):
        assert lost + gained == paired_histogram(9).l1


def test_a_matching_whose_number_of_pairs_is_not_that_of_the_docstring_has_no_such_coupling():
    # Such as pairs that are dropped as soon as a record stays out: two counts would change.
    larger, smaller = set(matchings(tuple(range(6)), 3)), set(matchings(tuple(range(5)), 1))
    assert min(len(one - other) for one in larger for other in smaller) == 2


def test_a_mean_is_refused_where_the_number_of_records_is_private():
    with pytest.raises(ValueError, match=r"'n_samples'.*add_remove.*Release the sum"):
        clipped_gradient(1.0, "add_remove", n_samples=10)


@pytest.mark.parametrize("clip", [0.0, -1.0, [1.0, 0.0]])
def test_a_clip_that_is_not_positive_is_refused(clip):
    with pytest.raises(ValueError, match=r"'clip'.*positive"):
        clipped_gradient(clip)


@pytest.mark.parametrize("clip", [np.nan, np.inf, [], [[1.0]]])
def test_a_clip_of_the_wrong_form_is_refused(clip):
    with pytest.raises(ValueError, match="'clip'"):
        clipped_gradient(clip)


def test_clips_and_bounds_that_are_not_numbers_are_refused():
    with pytest.raises(TypeError, match="'clip'"):
        clipped_gradient("1")
    with pytest.raises(TypeError, match="'high'"):
        clipped_sum(0.0, True)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (1.0, 1.0), ([0.0, 2.0], 1.0)])
def test_swapped_bounds_are_refused(low, high):
    with pytest.raises(ValueError, match=r"'low'.*low < high.*swapped"):
        clipped_sum(low, high)


def test_grouped_sums_may_count_records_and_swapped_bounds_are_refused():
    profile = grouped_sum([-1.0, 1.0], 1.0, n_groups=2)
    assert profile.per_coordinate.tolist() == [2.0, 1.0, 2.0, 1.0]
    # Within a group residuals of both signs, (2, 0); between groups (1, 1) and (1, 1).
    assert profile.l1 == pytest.approx(4.0)
    assert profile.l2 == pytest.approx(2.0)
    with pytest.raises(ValueError, match=r"'low'.*swapped"):
        grouped_sum([-1.0, 2.0], 1.0, n_groups=2)


@pytest.mark.parametrize("n_bins", [0, -1])
def test_a_histogram_needs_a_bin(n_bins):
    with pytest.raises(ValueError, match="'n_bins' parameter of histogram_counts"):
        histogram_counts(n_bins)
    with pytest.raises(ValueError, match="'n_bins' parameter of paired_histogram"):
        paired_histogram(n_bins)
    with pytest.raises(TypeError, match="'n_columns'"):
        paired_histogram(3, n_columns=2.0)


@pytest.mark.parametrize(
    "bound", [lambda a: clipped_gradient(1.0, a), lambda a: clipped_sum(0, 1, a)]
)
def test_an_unknown_adjacency_is_refused(bound):
    with pytest.raises(ValueError, match="'adjacency'"):
        bound("swap")
    with pytest.raises(ValueError, match="'n_samples'"):
        clipped_gradient(1.0, n_samples=0)


# Pairs of those records that have a value


def samples(n: int, most: int):
    """All sets of records that may be sampled, which are equally likely."""
    return list(combinations(range(n), min(n, most)))


def laws_of_gaps(there: np.ndarray, most: int) -> Counter:
    """How often columns have these matchings, of all draws; `there` says who has a value."""
    law: Counter = Counter()
    drawn = samples(len(there), most)
    for sample in drawn:
        each = []
        for column in there.T:
            some = tuple(k for k in sample if column[k])
            each.append(list(matchings(some, len(some) // 2)))
        n_draws = len(drawn) * math.prod(map(len, each))
        for made in product(*each):
            law[made] += Fraction(1, n_draws)
    return law


def is_close(first: tuple, second: tuple, profile, last: int | None) -> bool:
    """True if no column differs by more than is stated; the pairs of `last` are other ones."""
    n_lost = [
        len([p for p in one if last in p or p not in other])
        for one, other in zip(first, second, strict=True)
    ]
    n_gained = [
        len([p for p in other if last in p or p not in one])
        for one, other in zip(first, second, strict=True)
    ]
    within = sum(n_lost) + sum(n_gained) <= profile.l1
    return within and max(n_lost, default=0) <= 1 and max(n_gained, default=0) <= 1


def can_be_coupled(first: Counter, second: Counter, close) -> bool:
    """True if two laws are those of one draw of close pairs: by Strassen, if a flow saturates."""
    scale = math.lcm(*(weight.denominator for weight in [*first.values(), *second.values()]))
    n, total = len(first), len(first) + len(second) + 2
    graph = lil_array((total, total), dtype=np.int32)
    for i, (one, weight) in enumerate(first.items()):
        graph[total - 2, i] = int(weight * scale)
        for j, other in enumerate(second):
            if close(one, other):
                graph[i, n + j] = scale
    for j, weight in enumerate(second.values()):
        graph[n + j, total - 1] = int(weight * scale)
    return maximum_flow(graph.tocsr(), total - 2, total - 1).flow_value == scale


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("most", [2, 4])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_neighbours_couple_pairs_of_those_with_a_value_within_the_stated_sensitivity(
    adjacency, most, n
):
    # All ways in which one column has values, and some of two; the last record changes, its pairs
    # too if it is there in both.
    columns = [np.array(list(product([True, False], repeat=n)), dtype=bool)]
    rng = np.random.default_rng(n)
    tables = [column[:, np.newaxis] for column in columns[0]]
    tables += [rng.random((n, 2)) < 0.7 for _ in range(6 if n < 5 else 2)]
    for there in tables:
        profile = paired_histogram(9, n_columns=there.shape[1])
        law = laws_of_gaps(there, most)
        if adjacency == "add_remove":
            close = partial(is_close, profile=profile, last=None)
            assert can_be_coupled(law, laws_of_gaps(there[:-1], most), close)
            continue
        close = partial(is_close, profile=profile, last=n - 1)
        for last in product([True, False], repeat=there.shape[1]):
            other = np.vstack([there[:-1], last])
            assert can_be_coupled(law, laws_of_gaps(other, most), close)


def test_pairs_in_the_order_of_the_records_have_no_such_coupling():
    # One that loses its value would move all pairs behind it.
    def in_order(some):
        made = frozenset(map(frozenset, zip(some[::2], some[1::2], strict=False)))
        return Counter({(made,): Fraction(1)})

    close = partial(is_close, profile=paired_histogram(9), last=None)
    assert not can_be_coupled(in_order(range(6)), in_order(range(1, 6)), close)
