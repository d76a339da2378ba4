"""Rows in memory and in partitions give the same answers, whatever is asked of them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from skdpnoise.data import scan_batches
from skdpnoise.data.groups import Groups
from skdpnoise.data.partition_cache import cache
from skdpnoise.data.ranks import ordered
from skdpnoise.data.table import InMemory, rows_at, scan_tables, scanned
from skdpnoise.sampling import SeededWords

N = 101
CUTS = slice(0, 30), slice(30, 30), slice(30, 99), slice(99, N)


@dataclass(frozen=True)
class Pair:
    x: np.ndarray
    y: np.ndarray


def pair(tables):
    return Pair(np.asarray(tables["X"]), np.asarray(tables["y"]))


def in_memory():
    return InMemory(arrays(), N).map(pair)


def in_partitions():
    X, y = arrays().values()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    source = scan_batches(lambda: (frame[cut] for cut in CUTS))
    return scan_tables(lambda tables: None, X=source.drop("y"), y=source["y"]).map(pair)


def arrays():
    rng = np.random.default_rng(0)
    return {"X": rng.integers(-9, 9, size=(N, 3)), "y": rng.integers(0, 5, size=N)}


@pytest.fixture(params=[in_memory, in_partitions])
def rows(request):
    return request.param()


def test_sums_and_maps_are_those_of_all_rows(rows):
    X, y = arrays().values()
    assert len(rows) == N
    np.testing.assert_array_equal(rows.total(lambda leaf: leaf.x.sum(axis=0)), X.sum(axis=0))
    doubled = rows.map(lambda leaf: 2 * leaf.x, 3)
    assert (doubled.n_rows, doubled.tail) == (N, (3,))
    np.testing.assert_array_equal(doubled.total(lambda leaf: leaf.sum(axis=0)), 2 * X.sum(axis=0))
    assert rows.total(lambda leaf: np.asarray(leaf.y.sum())) == y.sum()


class ByNumber:
    """Coins that anybody knows: rows fall by their numbers, or the numbers of their groups."""

    n_places = 4

    def of_numbers(self, begin, end):
        return np.arange(begin, end) % self.n_places

    def of_labels(self, labels):
        return np.asarray(labels) % self.n_places


def test_rows_fall_to_places_by_their_numbers(rows):
    X, y = arrays().values()
    division = rows.divided(ByNumber())
    assert division.sizes == (26, 25, 25, 25)
    for places in ((0,), (3,), (1, 2), (0, 1, 2, 3)):
        part, expected = division.at(*places), np.isin(np.arange(N) % 4, places)
        assert len(part) == np.count_nonzero(expected)
        np.testing.assert_array_equal(
            part.total(lambda leaf: leaf.x.sum(axis=0)), X[expected].sum(0)
        )
        assert part.total(lambda leaf: np.asarray(leaf.y.sum())) == y[expected].sum()
    assert len(division.at()) == 0
    whole = rows.undivided()
    assert whole.sizes == (N,)
    assert (len(whole.at(0)), len(whole.at())) == (N, 0)


@pytest.mark.usefixtures("the_same_words")
def test_rows_fall_to_places_by_the_labels_of_their_groups():
    # Each group lies in one partition; of it two rows are kept.
    labels = np.repeat(np.arange(9), 4)
    frame = pd.DataFrame({"a": np.arange(36), "groups": labels})
    source = scan_batches(lambda: (frame[:12], frame[12:12], frame[12:]))
    spread = scan_tables(len, X=source[["a"]], groups=source["groups"])
    whole = Groups.of_labels("fit", InMemory({"X": frame[["a"]]}, 36), 2, labels)
    both = (whole, Groups.in_partitions("fit", spread, 2))
    kept = [one.kept(SeededWords(3)) for one in both]
    first, second = (one.rows.divided(ByNumber(), one.labels) for one in kept)
    assert first.sizes == second.sizes == (6, 4, 4, 4)
    for places in ((0,), (1, 3), (0, 1, 2, 3)):
        sums = [
            one.at(*places).total(lambda tables: tables["X"].to_numpy().sum(axis=0))
            for one in (first, second)
        ]
        assert sums[0] == sums[1]


def test_what_goes_to_partitions_is_prepared():
    assert in_memory().travelling(1, str) == 1
    assert in_partitions().travelling(1, str) == "1"


def test_what_fits_take_of_rows_in_memory_is_their_own():
    rows = InMemory(arrays(), N)
    for part in (rows.undivided().at(0), rows.divided(ByNumber()).at(0, 1, 2, 3)):
        tables = part.tables()
        tables["X"][:] = -1
        np.testing.assert_array_equal(rows.leaf["X"], arrays()["X"])


def test_rows_are_chosen_by_their_numbers(rows):
    X, y = arrays().values()
    some = rows.chosen(lambda begin, end: np.arange(begin, end) % 7 == 3)
    assert len(some) == len(y[3::7])
    np.testing.assert_array_equal(some.total(lambda leaf: leaf.x.sum(axis=0)), X[3::7].sum(axis=0))


def test_what_partitions_give_comes_together_in_the_order_of_the_rows(rows):
    _, y = arrays().values()
    found = rows.joined(lambda leaf, first: (first, leaf.y), _in_order)
    np.testing.assert_array_equal(found, y)


def _in_order(parts):
    assert [first for first, _ in parts] == [*np.cumsum([0, *(len(y) for _, y in parts[:-1])])]
    return np.concatenate([y for _, y in parts])


def test_rows_that_come_together_are_those_of_the_numbers(rows):
    X, _ = arrays().values()
    numbers, columns = np.array([[70, 3, 99], [3, 40, 0]]), np.array([2, 0])
    found = rows.map(lambda leaf: leaf.x, 3).gathered(numbers, columns, products)
    expected = (X[numbers[0]] * X[numbers[1]]).sum(axis=0)[columns] + [0, 1]
    np.testing.assert_array_equal(found, expected)


def products(leaf, places, columns, which):
    first, second = (leaf[np.ix_(some, columns)] for some in places)
    return (first * second).sum(axis=0) + which


def test_ranks_are_those_of_all_values(rows):
    X, _ = arrays().values()
    ranks = rows.map(lambda leaf: leaf.x[:, 1].astype(float)).ranked()
    keys = ordered(np.array([-2.0, 0.0, 5.0]))
    assert ranks.size == N
    expected = [np.count_nonzero(X[:, 1] < end) for end in (-2, 0, 5)]
    assert ranks.below(keys).tolist() == expected
    assert ranks.distances(1.0).below(keys[2:]).tolist() == [np.count_nonzero(abs(X[:, 1] - 1) < 5)]


def test_a_first_look_returns_rows_and_what_it_found():
    frame = pd.DataFrame({"y": arrays()["y"]})

    def check(tables):
        return read(tables), int(tables["y"].max())

    def read(tables):
        return np.asarray(tables["y"])

    batches = scan_batches(lambda: (frame[cut] for cut in CUTS))["y"]
    for values, n_found in ((frame["y"], 1), (batches, 3)):
        rows, found = scanned(check, read, y=values)
        assert len(rows) == N and len(found) == n_found
        assert max(found) == frame["y"].max()
        assert rows.total(lambda leaf: leaf.sum()) == frame["y"].sum()
        assert rows.or_else(None) is rows
    none, found = scanned(check, read, y=scan_batches(lambda: [frame[:0]])["y"])
    assert len(none) == 0 and found == []
    assert none.or_else(np.zeros(0)).total(lambda leaf: leaf.sum()) == 0


def start(leaf):
    return np.zeros(len(leaf.y), dtype=np.int64)


def advance(state, leaf, update):
    state += update * leaf.y
    return np.asarray((state**2).sum())


def test_states_advance_with_every_update(rows):
    _, y = arrays().values()
    with rows.folded(start, advance) as fold:
        found = [int(fold.total(update)) for update in (1, 2, -5)]
    assert found == [int(((total * y) ** 2).sum()) for total in (1, 3, -2)]


def test_states_that_are_lost_are_made_anew():
    _, y = arrays().values()
    with in_partitions().folded(start, advance) as fold:
        fold.total(1)
        for token in [*cache.fits]:
            cache.forget(token)
        assert fold.total(2) == ((3 * y) ** 2).sum()
        assert cache.fits
    assert not cache.fits


def test_an_update_that_failed_half_way_is_not_counted_twice():
    _, y = arrays().values()
    failed = []

    def fails_once(state, leaf, update):
        state[:1] += update * leaf.y[:1]
        if update == 2 and not failed:
            failed.append(True)
            raise RuntimeError("lost")
        state[1:] += update * leaf.y[1:]
        return np.asarray(state.sum())

    with in_partitions().folded(start, fails_once) as fold:
        fold.total(1)
        with pytest.raises(RuntimeError):
            fold.total(2)
        assert fold.total(3) == 6 * y.sum()  # the update that failed is part of the history


def test_rows_of_leaves_keep_their_layout():
    leaf = {"X": np.asfortranarray(arrays()["X"]), "pairs": [Pair(arrays()["X"], arrays()["y"])]}
    some = rows_at(leaf, np.array([5, 2]))
    assert some["X"].flags.f_contiguous and some["pairs"][0].x.flags.c_contiguous
    np.testing.assert_array_equal(some["X"], arrays()["X"][[5, 2]])


def test_arrays_are_tables_of_one_leaf():
    values = arrays()["X"]
    rows = InMemory.of(values)
    assert (rows.n_rows, *rows.tail) == values.shape
    assert rows.leaf is values
