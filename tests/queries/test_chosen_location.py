"""Pure losses buy a median to within a cell; values within it are looked at closer, or said."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.accounting.session import Session
from skdpnoise.data.ranks import SortedRanks
from skdpnoise.privacy import PureLoss
from skdpnoise.queries._quantile_choice import choose_bulk, halved, joined, parts_told_apart
from skdpnoise.queries._quantile_search import Search, believe_octaves, believe_spread, real
from skdpnoise.sampling import random_words
from tests._cases import each_value
from tests.queries._searched import search_location

N = 2000
NORMAL = np.random.default_rng(0).normal(size=N)
# Records over the noise on one count: what is promised at least, and what it takes to look closer.
LEAST, PLENTY = 191.0, 381.0


def search(values, strength, seed=0, adjacency="replace_one"):
    """Search; return what is found, and the loss and label of every release."""
    charged = []
    factor = 2.0**0.5 if adjacency == "replace_one" else 2.0**-0.5
    loss = PureLoss(strength * factor / len(values))
    found = search_location(
        values,
        loss,
        noise="inid_laplace",
        adjacency=adjacency,
        n_samples=float(len(values)),
        random_state=seed,
        charge=lambda label, mechanism: charged.append(
            (label, mechanism.privacy_loss().pure_epsilon)
        ),
    )
    assert sum(cost for _, cost in charged) <= loss.pure_epsilon
    return found, [label for label, _ in charged]


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("strength", [LEAST, 300.0, PLENTY])
@pytest.mark.parametrize("offset", [0.0, 1e2, -1e4, 1e5, 1e6, -1e7, 1e9, 1e10, 1e12])
def test_a_spread_is_right_or_said_to_be_hidden_however_far_the_values_are(offset, strength):
    y, wrong = NORMAL + offset, 0
    for seed in range(8):
        found, _ = search(y, strength, seed)
        if found.found:
            wrong += not (0.1 < found.scale < 15.0 and abs(found.location - offset) < 3.0)
        else:
            wrong += not abs(found.location - offset) < 3.0 + found.error
            assert abs(offset) >= 1e4
        if strength == PLENTY and abs(offset) <= 1e9:
            assert found.found
    assert wrong <= 1  # of a hundred choices about one misses


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("strength", [LEAST, 300.0, PLENTY])
@pytest.mark.parametrize("value", [0.0, 7.3, -1e9, 1e-20, 1e30])
def test_a_constant_is_found_as_a_constant(value, strength):
    right = 0
    for seed in range(8):
        found, labels = search(np.full(N, value), strength, seed)
        close = abs(found.location - value) <= max(2.0**-12 * abs(value), 1e-290)
        right += not found.found and close and found.scale == 1.0
        assert labels[:2] == ["median", "median"]
    assert right >= 7


@pytest.mark.slow
def test_values_of_which_one_is_in_nearly_all_records_are_a_constant():
    y = np.where(np.arange(N) % 20 == 0, 7.3 + NORMAL, 7.3)
    for strength in (300.0, PLENTY):
        found = [search(y, strength, seed)[0] for seed in range(5)]
        assert not any(one.found for one in found)
        np.testing.assert_allclose([one.location for one in found], 7.3, rtol=1e-5)


@pytest.mark.slow
def test_looking_closer_is_paid_by_what_was_left_and_says_what_it_released():
    near, far = search(NORMAL, PLENTY)[1], search(NORMAL + 1e9, PLENTY)[1]
    assert near == ["median", "median", "spread", "mean square", "mean"]
    assert far == ["median", "median", "spread", "median", "spread", "mean square", "mean"]
    assert search(NORMAL + 1e9, LEAST)[1] == ["median", "median", "spread", "median"]
    # The loss is that of a search, whatever its choices; see `search` for the sum.
    for adjacency in ("replace_one", "add_remove"):
        for offset in (0.0, 1e9):
            search(NORMAL + offset, PLENTY, adjacency=adjacency)


@each_value(1)
@pytest.mark.parametrize("released", [0.7, 1.3, 1.7])
@pytest.mark.parametrize("offset", [0.0, 500.0])
def test_a_number_of_records_that_is_released_wrong_makes_no_spread_too_wide(offset, released):
    # A rank that is taken from it lies past all records, where any cell is as good as another.
    wrong = 0
    for seed in range(8):
        found = search_location(
            NORMAL + offset,
            PureLoss(LEAST * 2.0**0.5 / N),
            noise="inid_laplace",
            adjacency="add_remove",
            n_samples=released * N,
            random_state=seed,
        )
        wrong += abs(found.location - offset) > 0.5 or (found.found and found.scale > 4.0)
    assert wrong == 0


def test_a_choice_gets_as_many_parts_as_it_can_tell_apart():
    parts = [parts_told_apart(PureLoss(x / N), N, 1 << 18) for x in (1.0, 20.0, 50.0, 60.0, 1e9)]
    assert parts[0] == 1 and parts[-1] == 1 << 18
    assert 10 <= 10 * parts[1] <= parts[2] < parts[3]


def test_parts_of_a_belief_keep_its_mass_and_join_below_the_least():
    belief = believe_spread(5.0, 1e9, sure=True)
    both = joined(halved(belief), 3e-5)
    assert real(int(both.edges[0])) == 0.0 and real(int(both.edges[1])) == 3e-5
    assert np.exp(both.log_mass).sum() == pytest.approx(np.exp(halved(belief).log_mass).sum())
    assert set(belief.edges[belief.edges > both.edges[1]]) <= set(both.edges)
    octaves = believe_octaves(3e-5, 40.0)
    assert np.exp(octaves.log_mass).tolist() == pytest.approx([1 / octaves.log_mass.size] * 23)
    assert real(int(octaves.edges[1])) == 3e-5 and real(int(octaves.edges[-1])) == 64.0


def test_a_bulk_without_room_for_a_mean_leaves_no_share():
    shares = (0.36, 0.43, 0.04, 0.16)
    session, loss = Session(random_words(0), "replace_one"), PureLoss(LEAST * 2**0.5 / N)
    search = Search(loss, shares, LEAST, "inid_laplace", session, float(N))
    bulk = choose_bulk(SortedRanks.of(NORMAL + 1e9), (-np.inf, np.inf), search)
    assert not bulk.found and bulk.shares == (0.0, 0.0)
    assert abs(bulk.median - 1e9) <= bulk.spread
