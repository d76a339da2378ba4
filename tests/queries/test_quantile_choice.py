"""Cells are chosen by utilities that one record hardly moves; the chosen one has the quantile."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from skdpnoise.accounting.session import Session
from skdpnoise.data.ranks import SortedRanks
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.queries._quantile_choice import (
    _cut,
    choose_quantile,
    quantile_utilities,
    utility_sensitivity,
)
from skdpnoise.queries._quantile_search import believe_location, believe_spread, ordered, real
from skdpnoise.sampling import random_words
from tests._cases import each_value, quick

RNG = np.random.default_rng(0)


def choose(values, loss, probability=0.5, seed=0, belief=None):
    charged = []
    session = Session(
        random_words(seed),
        "replace_one",
        lambda label, mechanism: charged.append(mechanism.privacy_loss()),
    )
    found = choose_quantile(
        SortedRanks.of(values),
        probability,
        believe_location(-np.inf, np.inf) if belief is None else belief,
        (loss.share(0.5), loss.share(0.5)),
        (1, 1 << 18),
        ("median", session),
    )
    return found.quantile(0.5), charged


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1.0, 1e90])
@pytest.mark.parametrize("probability", [0.5, 0.875])
def test_with_a_large_budget_the_quantile_is_found(factor, probability):
    values = factor * (RNG.normal(size=2001) + 1.0)
    for loss in (PureLoss(1e3), GaussianLoss(200.0)):
        found, _ = choose(values, loss, probability)
        assert abs(np.mean(values < found) - probability) < 2e-3


@pytest.mark.slow
def test_zeros_are_found_as_zeros():
    values = np.repeat([0.0, 1.0, 5.0], [700, 200, 100])
    for seed in range(10):
        assert 0.0 <= choose(values, PureLoss(0.1), seed=seed)[0] < 1e-300


def test_two_choices_cost_what_they_were_given():
    _, charged = choose(RNG.normal(size=100), PureLoss(2.0))
    assert len(charged) == 2
    assert sum(loss.pure_epsilon for loss in charged) == pytest.approx(2.0)


def utilities_of(values, edges, probability, preference):
    below = np.searchsorted(np.sort(ordered(values)), edges)
    return quantile_utilities(below, probability * len(values), preference)


@quick("0.8888888888888888", "0.5")
@pytest.mark.parametrize("probability", [0.5, 0.75, 0.85, 8 / 9, 1 / 3])
def test_one_record_moves_no_utility_by_more_than_the_sensitivity(probability):
    places = np.array([-1e200, -1.0, 0.0, 0.2, 2.0])
    edges = ordered(np.array([-1e300, -1.0, -1e-9, 0.2, 1.0, 1e300]))
    preference = np.linspace(-3.0, 0.0, edges.size - 1)
    largest = {"add_remove": 0.0, "replace_one": 0.0}
    for n in range(7):
        for chosen in combinations_with_replacement(places, n):
            values = np.array(chosen)
            here = utilities_of(values, edges, probability, preference)
            others = [("add_remove", np.append(values, place)) for place in places]
            others += [("replace_one", np.append(values[1:], p)) for p in places if n]
            for adjacency, other in others:
                there = utilities_of(other, edges, probability, preference)
                moved = float(np.abs(there - here).max())
                largest[adjacency] = max(largest[adjacency], moved)
    assert largest["replace_one"] == utility_sensitivity(probability, "replace_one") == 1.0
    expected = max(probability, 1.0 - probability)
    assert largest["add_remove"] == pytest.approx(expected, abs=2.0**-10)
    assert largest["add_remove"] <= utility_sensitivity(probability, "add_remove")


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.5, 0.85, 8 / 9, np.nextafter(1.0, 0.0)])
def test_a_rounded_rank_of_many_records_moves_by_no_more(probability):
    zero = np.zeros(4)
    for n in RNG.integers(1, 1 << 39, size=2000).tolist():
        below = np.sort(np.append(RNG.integers(0, n, size=4, endpoint=True), n))
        here = quantile_utilities(below, probability * n, zero)
        for first in range(6):
            moved = below + (np.arange(5) >= first)
            there = quantile_utilities(moved, probability * (n + 1), zero)
            most = utility_sensitivity(probability, "add_remove")
            assert np.abs(there - here).max() <= most


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_choice_is_charged_for_what_it_was_given_whatever_the_sensitivity(adjacency):
    mechanisms = []
    session = Session(random_words(0), adjacency, lambda label, one: mechanisms.append(one))
    belief = believe_location(-np.inf, np.inf)
    for probability in (0.5, 0.85):
        ranks = SortedRanks.of(RNG.normal(size=50))
        choose_quantile(ranks, probability, belief, (PureLoss(1.0),), (1,), ("median", session))
    sensitivities = [one.selection.sensitivity for one in mechanisms]
    assert sensitivities == [0.5 if adjacency == "add_remove" else 1.0, 1.0]
    assert [one.privacy_loss().pure_epsilon for one in mechanisms] == [1.0, 1.0]


def test_the_utility_is_zero_for_the_cell_with_the_quantile_and_falls_on_both_sides():
    values = ordered(np.arange(100.0))
    edges = ordered(np.arange(0.0, 101.0, 10.0))
    utilities = quantile_utilities(np.searchsorted(values, edges), 50.0, np.zeros(10))
    expected = [-40.0, -30.0, -20.0, -10.0, 0.0, 0.0, -10.0, -20.0, -30.0, -40.0]
    np.testing.assert_array_equal(utilities, expected)


@each_value(1)
@pytest.mark.parametrize(
    "belief",
    [
        believe_location(-np.inf, np.inf),
        believe_location(-3.0, 1e6),
        believe_location(1.0, np.nextafter(1.0, 2.0)),
        believe_spread(1e50, 1e60),
    ],
)
@pytest.mark.parametrize("n_parts", [1, 8, pytest.param(1000, marks=pytest.mark.slow)])
def test_parts_cover_the_belief_in_order_and_zero_is_never_unlikely(belief, n_parts):
    edges, log_mass = _cut(belief.edges, belief.log_mass, n_parts)
    assert (np.diff(edges) > 0).all()
    assert (edges[0], edges[-1]) == (belief.edges[0], belief.edges[-1])
    assert np.isin(belief.edges, edges).all()
    at_zero = (edges[:-1] <= 0) & (edges[1:] > 0)
    assert at_zero.sum() == (real(int(edges[0])) <= 0.0 < real(int(edges[-1])))
    assert (np.exp(log_mass[at_zero]) >= 0.2 * np.exp(log_mass[~at_zero]).sum()).all()


@pytest.mark.parametrize("center", [0.0, 1e-300, 1e-200, -1e-30, 1e-3, 5.0, 1e6])
def test_no_spread_of_ordinary_size_is_thought_impossible_whatever_the_centre_is(center):
    belief = believe_spread(center, 1e9, sure=True)
    octave = (ordered(np.array([1.0, 2.0]))).tolist()
    place = int(np.searchsorted(belief.edges, octave[0]))
    log_mass = belief.log_mass - np.log(np.exp(belief.log_mass).sum())
    assert log_mass[place] > -20.0
