"""Rows fall by coins of their own, which see no data: the same ones in memory and in parts."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from skdpnoise.accounting.session import Session
from skdpnoise.data.groups import Groups
from skdpnoise.data.table import InMemory
from skdpnoise.model_selection._splits import Coins, divide
from skdpnoise.sampling import SeededWords
from tests._statistics import FALSE_ALARM

N = 4000
KEY = bytes(range(32))
SHARES = (0.2, 0.1)


def records_of(n_rows, groups=None, most=1):
    """Records of which only the number, and groups, count."""
    rows = InMemory.of(np.arange(n_rows))
    alone = groups is None
    known = Groups(rows, n_rows) if alone else Groups.of_labels("fit", rows, most, groups)
    return known.kept(SeededWords(7))


def scattered(records, coins):
    """The rows of each place."""
    division = records.rows.divided(coins, records.labels)
    found = [division.at(place).leaf for place in range(coins.n_places)]
    assert [len(rows) for rows in found] == list(division.sizes)
    return found


def test_parts_are_disjoint_and_complete_and_as_large_as_chance_has_it():
    parts = scattered(records_of(N), Coins(KEY, SHARES))
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(N))
    for part, share in zip(parts, (0.7, *SHARES), strict=True):
        # Hoeffding's inequality for each of the three.
        assert abs(part.size - share * N) < np.sqrt(N * np.log(6.0 / FALSE_ALARM) / 2.0)


def test_coins_of_neighbouring_rows_are_not_alike():
    places = Coins(KEY, (0.5,)).of_numbers(0, N)
    for lag in (1, 2, 8, 1024):
        same = np.count_nonzero(places[lag:] == places[:-lag])
        assert abs(same - (N - lag) / 2) < np.sqrt(N * np.log(8.0 / FALSE_ALARM) / 2.0)


def test_a_row_falls_by_its_number_wherever_it_is_read():
    coins = Coins(KEY, SHARES)
    whole = coins.of_numbers(0, N)
    for begin, end in ((0, 1), (1, 1025), (1000, 3333), (N - 1, N), (5, 5)):
        np.testing.assert_array_equal(coins.of_numbers(begin, end), whole[begin:end])
    other = Coins(KEY[::-1], SHARES)
    assert 0.3 < np.mean(other.of_numbers(0, N) == whole) < 0.8


def test_with_the_same_coins_a_row_more_changes_one_part_only():
    few, many = (scattered(records_of(n), Coins(KEY, SHARES)) for n in (N - 1, N))
    sizes = [more.size - less.size for less, more in zip(few, many, strict=True)]
    assert sorted(sizes) == [0, 0, 1]
    for less, more in zip(few, many, strict=True):
        np.testing.assert_array_equal(more[: less.size], less)


LABELS = {
    "numbers": np.random.default_rng(0).integers(60, size=N),
    "text": np.random.default_rng(0).choice(["ann", "bob", "cy", "dee", "eve\ud800"], N),
    "dates": [datetime.date(2020, 1, 1 + day) for day in np.arange(N) % 28],
    "pairs": [(int(k) % 7, "x") for k in range(N)],
    "alike": [1, 1.0, True, np.int64(1), 2] * (N // 5),
}


@pytest.mark.parametrize("name", LABELS)
def test_a_group_is_never_torn_apart(name):
    labels = LABELS[name]
    parts = scattered(records_of(N, labels, most=N), Coins(KEY, (0.5,)))
    first, second = ({labels[row] for row in part.tolist()} for part in parts)
    assert not first & second
    assert len(first | second) == len(set(labels))


def test_a_group_falls_by_its_label_whatever_other_groups_there_are():
    labels, coins = LABELS["numbers"], Coins(KEY, SHARES)
    places = coins.of_labels(labels)
    rows = np.flatnonzero(labels != 17)
    others = labels[rows].astype(np.int16)
    found = coins.of_labels(others)
    np.testing.assert_array_equal(found, places[rows])
    # Numbers and texts that print alike share a coin, in arrays of any type.
    texts = list(map(str, labels))
    alike = coins.of_labels(texts)
    np.testing.assert_array_equal(alike, places)


def test_of_groups_with_too_many_rows_only_those_that_are_kept_fall():
    labels = LABELS["numbers"]
    records = records_of(N, labels, most=3)
    division = records.rows.divided(Coins(KEY, SHARES), records.labels)
    np.testing.assert_array_equal(division.at(0, 1, 2).leaf, records.rows.leaf)
    assert np.bincount(labels[records.rows.leaf]).max() == 3


def test_coins_are_tossed_again_where_the_number_of_rows_is_public_and_not_else():
    seen = []

    def divided(sizes, coins, labels):
        seen.append(coins.key)
        return SimpleNamespace(sizes=sizes if len(seen) < 5 else (2, 1, 1))

    public = Session(SeededWords(0), "replace_one")
    for sizes in ((1, 2, 2), (3, 0, 2), (3, 2, 0)):
        seen.clear()
        table = SimpleNamespace(divided=partial(divided, sizes))
        counted = SimpleNamespace(rows=table, labels=None)
        assert divide(counted, SHARES, public, False).division.sizes == (2, 1, 1)
        assert len(set(seen)) == 5
        seen.clear()
        found = divide(counted, SHARES, replace(public, adjacency="add_remove"), False)
        assert len(seen) == 1
        assert (found is None) == (sizes[0] < 2)
    table = SimpleNamespace(divided=lambda *_: SimpleNamespace(sizes=(1, 9, 9)))
    assert divide(SimpleNamespace(rows=table, labels=None), SHARES, public, False) is None
