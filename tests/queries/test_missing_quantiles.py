"""Quantiles of columns in which values are missing: those of the others, at no more cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise.data.table import InMemory
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import private_quantiles
from skdpnoise.queries.quantiles import _histograms, _with_missing, prefix_strategy
from skdpnoise.queries.values import as_floats
from tests._cases import each_value, every_pair

WANTED = [0.25, 0.5, 0.75]
rng = np.random.default_rng(0)
FULL = rng.normal([50.0, -3e-5, 1e6], [5.0, 2e-6, 1e5], size=(20_000, 3))
GAPS = np.where(rng.random(FULL.shape) < [0.6, 0.1, 0.0], np.nan, FULL)
BOUNDS = ([0.0, -1e-4, 0.0], [100.0, 1e-4, 2e6])


@every_pair
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("bounds", [None, BOUNDS])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_they_are_those_of_the_values_that_are_there(adjacency, bounds, delta):
    guarantee = PrivacyGuarantee(2.0, delta)
    asked = {"adjacency": adjacency, "bounds": bounds, "random_state": 0}
    found = private_quantiles(GAPS, WANTED, guarantee, missing=True, **asked)
    assert found.found.all()
    errors = np.abs(found.values - np.nanquantile(GAPS, WANTED, axis=0))
    assert (errors <= np.array([0.5, 2e-7, 1e4])).all()
    share = np.count_nonzero(~np.isnan(GAPS), axis=0) / len(GAPS)
    assert found.n_present / found.n_samples == pytest.approx(share, abs=0.02)


def test_a_missing_value_is_one_count_in_a_bin_of_its_own_whatever_the_edges():
    ends = np.array([-1.0, 0.0, 1.0, 4.0])
    largest = np.finfo(float).max
    column = np.array([[-9.0], [0.0], [1.0], [1e300], [largest], [largest]])
    sweep = _histograms(np.array([0]), [_with_missing(ends)], len(column))
    (counts,) = InMemory.of(column).total(sweep)
    assert counts.tolist() == [1, 1, 2, 2]  # the last bin is for what is missing


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("branching", [0, 4, 8])
def test_neighbours_move_the_answers_by_no_more_than_is_charged_for(adjacency, branching):
    # All pairs of bins, of which the last is for what is missing: it becomes another value, a value
    # becomes missing, or a record with or without a value comes.
    n_bins = 9
    strategy = prefix_strategy(n_bins, branching, adjacency)
    empty = strategy.answers(np.zeros(n_bins, dtype=np.int64))
    one = [strategy.answers(np.eye(n_bins, dtype=np.int64)[k]) for k in range(n_bins)]
    others = one if adjacency == "replace_one" else [empty]
    moves = [a - b for a in one for b in others]
    assert max(np.abs(move).sum() for move in moves) <= strategy.l1
    assert max(np.linalg.norm(move) for move in moves) <= strategy.l2
    assert max(np.linalg.norm(move) for move in moves) >= 0.999 * strategy.l2


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_a_column_of_which_nothing_is_there_is_not_found(bounds):
    empty = np.full((5000, 2), np.nan)
    empty[:, 1] = rng.random(5000)
    found = private_quantiles(
        empty, [0.5], PrivacyGuarantee(1.0, 1e-6), missing=True, bounds=bounds, random_state=0
    )
    assert found.found.tolist() == [False, True]
    assert found.values[0, 0] == 0.0


def test_what_is_released_costs_what_it_costs_without_gaps():
    for budget in (GaussianLoss(0.5), PureLoss(0.5)):
        spent = [[], []]
        for missing, charges in enumerate(spent):
            asked = {"missing": bool(missing), "random_state": 0}
            asked["charge"] = lambda *one, kept=charges: kept.append(one)
            private_quantiles(FULL, WANTED, budget, **asked)
        assert [one[0] for one in spent[0]] == [one[0] for one in spent[1]]
        for (_, first), (_, second) in zip(*spent, strict=True):
            losses = [made.privacy_loss().delta(0.1) for made in (first, second)]
            assert losses[1] == pytest.approx(losses[0], rel=1e-6)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_are_refused_all_the_same(value):
    table = FULL[:10].copy()
    table[3, 0] = value
    with pytest.raises(ValueError, match="finite"):
        private_quantiles(table, 0.5, PrivacyGuarantee(1.0), missing=True)
    with pytest.raises(ValueError, match="finite"):
        private_quantiles(np.where(table == value, np.nan, table), 0.5, PrivacyGuarantee(1.0))


def test_single_precision_and_integers_are_read_as_doubles():
    single = GAPS.astype(np.float32)
    asked = {"missing": True, "random_state": 0}
    first = private_quantiles(single, WANTED, PrivacyGuarantee(2.0, 1e-6), **asked)
    second = private_quantiles(single.astype(float), WANTED, PrivacyGuarantee(2.0, 1e-6), **asked)
    np.testing.assert_array_equal(first.values, second.values)
    whole = private_quantiles(np.arange(4000), 0.5, PrivacyGuarantee(2.0, 1e-6), **asked)
    assert whole.values[0, 0] == pytest.approx(2000.0, abs=200.0)


def test_the_largest_numbers_are_numbers():
    largest = np.finfo(float).max
    column = np.array([[largest], [1.0], [np.nan], [-largest]])
    filled = as_floats(column, fills=True)[:, 0]
    assert filled[0] < largest
    assert filled[[1, 3]].tolist() == [1.0, -largest]
    assert filled[2] == largest


HOLES = {
    "None": lambda column: [None if np.isnan(one) else one for one in column],
    "a mask": lambda column: np.ma.masked_invalid(column),
    "NA": lambda column: pd.Series(column).astype("Float64"),
    "null": lambda column: pl.Series(column, nan_to_null=True),
}


@pytest.mark.parametrize("hold", HOLES.values(), ids=HOLES)
def test_what_is_missing_is_so_by_the_word_of_each_library(hold):
    asked = {"missing": True, "bounds": (0.0, 100.0), "random_state": 0}
    column, guarantee = GAPS[:2000, 0], PrivacyGuarantee(2.0, 1e-6)
    expected = private_quantiles(column, WANTED, guarantee, **asked)
    found = private_quantiles(hold(column), WANTED, guarantee, **asked)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.n_present == expected.n_present
