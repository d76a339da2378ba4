"""How far one record moves what a search chooses by: all that integers of losses can be."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from skdpnoise.metrics.scoring import BITS
from skdpnoise.model_selection._strategies import _utilities

SCORES = ["accuracy", "r2"]


def problem(scoring, adjacency):
    return SimpleNamespace(scoring=SimpleNamespace(name=scoring), adjacency=adjacency)


def losses_of(scoring, shape, rng):
    """Losses of candidates (rows) at records (columns): the extremes, and some between."""
    largest = 1 << BITS
    if scoring == "accuracy":
        return rng.choice([0, largest], shape)
    return np.where(rng.random(shape) < 0.7, rng.choice([0, largest], shape), rng.integers(largest))


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
        (one, moves, alike), (other, same, _) = _utilities(here, stated), _utilities(there, stated)
        assert moves == same
        assert not alike or (one <= other).all()
        changes.append(np.abs(one - other).max())
    assert 0.99 * moves <= max(changes) <= moves
