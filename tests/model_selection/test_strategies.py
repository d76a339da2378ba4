"""How far one record moves what a search chooses by: all that integers of losses can be."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from skdpnoise.metrics.scoring import BITS, SCORINGS, pair_losses, sums_of
from skdpnoise.model_selection._runs import Target
from skdpnoise.model_selection._strategies import _units, _utilities
from tests._cases import each_value

SCORES = ["accuracy", "balanced_accuracy", "r2"]


def problem(scoring, adjacency):
    session = SimpleNamespace(adjacency=adjacency)
    return SimpleNamespace(scoring=SCORINGS[scoring], session=session)


def utilities(losses, stated):
    return _utilities(sums_of(losses), stated)


def losses_of(scoring, shape, rng):
    """Losses of candidates (rows) at records (columns): the extremes, and some between."""
    largest = 1 << BITS
    if scoring == "accuracy":
        return rng.choice([0, largest], shape)
    if scoring == "balanced_accuracy":
        return rng.choice([0, largest // 3, largest], shape)
    return np.where(rng.random(shape) < 0.7, rng.choice([0, largest], shape), rng.integers(largest))


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("scoring", SCORES)
@pytest.mark.parametrize("n_candidates", [2, 3, 40])
def test_one_record_moves_each_utility_by_what_is_stated_and_comes_close(
    scoring, adjacency, n_candidates
):
    rng, stated = np.random.default_rng(0), problem(scoring, adjacency)
    changes = []
    for _ in range(300):
        here = losses_of(scoring, (n_candidates, 4), rng)
        there = here[:, 1:]
        if adjacency == "replace_one":
            there = np.column_stack([losses_of(scoring, n_candidates, rng), there])
        (one, moves, alike), (other, same, _) = utilities(here, stated), utilities(there, stated)
        assert moves == same
        assert not alike or (one <= other).all()
        changes.append(np.abs(one - other).max())
    assert 0.99 * moves <= max(changes) <= moves


def test_one_record_moves_the_utility_by_pairs_by_what_is_stated_and_comes_close():
    rng, stated, n = np.random.default_rng(0), problem("roc_auc", "replace_one"), 6
    changes = []
    for _ in range(300):
        scores, y = rng.choice([0.0, 0.5, 1.0], size=(3, n)), rng.random(n) < 0.5
        here, _, alike = utilities(np.array([pair_losses(one, y) for one in scores]), stated)
        scores[:, 0], y[0] = rng.choice([-1.0, 0.5, 2.0], size=3), rng.random() < 0.5
        there, moves, _ = utilities(np.array([pair_losses(one, y) for one in scores]), stated)
        changes.append(np.abs(here - there).max())
        assert not alike
    assert 0.99 * moves <= max(changes) <= moves


def test_public_units_are_those_of_the_bounds_also_where_they_are_0_and_1():
    public = Target(0.0, 1.0, public=True)
    assert _units(None, public) is public
