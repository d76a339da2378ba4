"""Joint bounds hold for every change that a record can make, and are reached."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from skdpnoise.sensitivity.bounds import bounded_ones, shifted_sums, support_sizes
from tests._cases import every_pair


def records(n_coordinates, max_ones):
    """Every 0/1 vector with at most so many ones."""
    every = itertools.product((0, 1), repeat=n_coordinates)
    return np.array([row for row in every if sum(row) <= max_ones])


def changes(n_coordinates, max_ones, adjacency):
    """Every change of the counts that one record can make, up to sign."""
    rows = records(n_coordinates, max_ones)
    if adjacency == "add_remove":
        return rows
    return np.unique((rows[:, None] - rows).reshape(-1, n_coordinates), axis=0)


@every_pair
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("n_coordinates", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("mixing", [0.0, 0.07, 0.11, -0.05])
def test_the_bounds_of_counts_hold_for_every_change_and_are_reached(
    n_coordinates, mixing, adjacency
):
    for max_ones in range(1, n_coordinates + 1):
        profile = bounded_ones(n_coordinates, max_ones, adjacency, mixing=mixing)
        moved = changes(n_coordinates, max_ones, adjacency).astype(float)
        moved -= mixing * moved.sum(axis=1, keepdims=True)
        assert np.linalg.norm(moved, axis=1).max() == pytest.approx(profile.l2, rel=1e-14)
        assert (np.abs(moved).max(axis=0) <= profile.per_coordinate * (1 + 1e-14)).all()
        if mixing == 0.0:
            assert np.abs(moved).sum(axis=1).max() == profile.l1


@pytest.mark.parametrize("mixing", [0.0, 0.03, 0.1])
def test_the_l2_bound_of_counts_is_rounded_up(mixing):
    for size, ones in itertools.product((7, 30), (1, 3, 7)):
        c = Fraction(mixing)
        exact = max(t - (2 * c - size * c * c) * t * t for t in range(ones + 1))
        bound = Fraction(bounded_ones(size, ones, mixing=mixing).l2)
        assert exact <= bound**2 <= exact * (1 + Fraction(1, 10**15))


def test_support_sizes_are_those_of_all_pairs_of_records():
    for d, k in [(5, 2), (5, 3), (5, 5), (6, 4), (1, 1)]:
        moved = changes(d, k, "replace_one")
        sums, sizes = moved.sum(axis=1), np.abs(moved).sum(axis=1)
        expected = {t: sizes[sums == t].max() for t in range(k + 1)}
        assert support_sizes(d, k, "replace_one") == expected


def test_shifted_sums_move_by_no_more_than_the_bound_and_reach_it():
    rng = np.random.default_rng(0)
    low, high = rng.normal(size=50), rng.normal(size=50) + 6.0
    shift = 0.5 * low + 0.5 * high
    profile = shifted_sums(low, high, shift).per_coordinate
    assert profile[-1] == 1.0
    for i in range(50):
        ends = [abs(Fraction(end) - Fraction(shift[i])) for end in (low[i], high[i])]
        assert max(ends) <= Fraction(profile[i])
        assert float(max(ends)) == pytest.approx(profile[i], rel=1e-15)
        assert profile[i] == pytest.approx((high[i] - low[i]) / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounded_ones(3, 4), r"'max_ones'.*in the range \[1, 3\]. Got 4"),
        (lambda: bounded_ones(3, 0), "max_ones"),
        (lambda: bounded_ones(3, 1, "both"), "adjacency"),
        (lambda: bounded_ones(3, 1, mixing=np.nan), "mixing"),
        (lambda: shifted_sums(1.0, 1.0, 0.0), "swapped"),
        (lambda: shifted_sums(0.0, np.inf, 0.0), "finite"),
    ],
)
def test_impossible_bounds_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
