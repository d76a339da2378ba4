"""Sweeps over columns: the same integers whatever the tiles, threads, layouts and loops."""

from __future__ import annotations

import math
import sys
from collections import Counter

import numba
import numpy as np
import pytest

from skdpnoise.accounting.gaps import GapsOfPresent
from skdpnoise.data import table
from skdpnoise.data.table import InMemory, scan_tables
from skdpnoise.inspection import Transcript
from skdpnoise.kernels import sweeps, tile_loops, tiles
from skdpnoise.kernels.sweeps import Sweep, all_finite
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import private_location_scale, private_moments, private_quantiles
from skdpnoise.queries.values import MISSING
from skdpnoise.sampling import SeededWords, integers, keyed, secret_pairs
from skdpnoise.sampling.integers import secret_rows
from skdpnoise.sampling.keyed import keyed_order, secret_key
from tests._cases import each_value, every_pair, quick
from tests._same_bits import in_parts
from tests._statistics import FALSE_ALARM, chi_square_pvalue

EXTREMES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 1e300, -1e300, 5e-324, -5e-324, 1e-310]
EXTREMES += [2.0**k * s for k in (-101, -100, 61, 62, 63, 100, 101) for s in (1.0, -1.0, 1.5)]


def tile():
    """Columns of very different values, and three unused numbers at the end of each."""
    rng = np.random.default_rng(0)
    rows = [
        np.resize(EXTREMES, 500),
        rng.integers(-9, 9, 500).astype(float),
        rng.normal(size=500),
        rng.normal(1e9, 1e3, 500),
        rng.standard_cauchy(500) * 1e15,
    ]
    return np.hstack([rows, np.full((5, 3), np.nan)])


def settings():
    """For each function of tiles, its arguments between the number of values and the counts."""
    unit = np.array([0.5, 1.0, 0.25, 2.0**-9, 2.0**-40])
    edges = np.sort(np.vstack([np.linspace(-3, 3, 63), np.full((4, 63), 1.0)]), axis=1)
    edges[2:] = np.sinh(np.linspace(-30, 30, 63))
    known = np.array(
        [[0, 1, 0, 0, 1], [1, 2, 0, 2**20, 2**30], [0, 0, 0, 9, 20], [0, 1, 3, 11, 10]]
    )
    most = np.array([7.0, 2.0, 2.0**20, 2.0**40, 2.0**61])
    facts = np.stack([-0.5 * unit * most, unit * (most + 2.0), unit, unit, most])
    return {
        "count_exponents": ((), 201),
        "count_lengths": ((unit,), 126),
        "count_digits": ((unit, known), 2048),
        "count_bins": ((edges,), 64),
        "add_rounded": ((1.0 / unit,), None),
        "add_digits": ((facts,), 2),
    }


@each_value(1)
@pytest.mark.parametrize("loops", [tiles, tile_loops])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf, 1e308])
def test_whatever_a_row_holds_is_clipped(loops, value):
    # A file or array may change after it was checked.
    zero, one = np.zeros(1), np.ones(1)
    for function, arguments, reach in [
        ("clip", (zero, one, 5.0), 5.0),
        ("round_to_steps", (zero, one), 2.0**34),
    ]:
        values = np.array([[value, 0.25]])
        getattr(loops, function)(values, 2, *arguments)
        assert abs(values[0, 0]) == reach


@quick("nan-skdpnoise.kernels.tiles")
@each_value(1)
@pytest.mark.parametrize("loops", [tiles, tile_loops])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_whatever_a_row_holds_adds_no_more_than_the_most_steps(loops, value):
    totals = np.zeros((1, 2), dtype=np.int64)
    facts = np.array([[-3.0], [5.0], [1.0], [0.5], [8.0]])
    loops.add_digits(np.array([[value, 1.0]]), 2, facts, totals)
    assert abs(int(totals[0, 0]) * 2**tiles.HALF_SUM + int(totals[0, 1])) == 8
    facts[4] = 2.0  # bounds that are wider than the most steps
    totals[:] = 0
    loops.add_digits(np.array([[value, 1.0]]), 2, facts, totals)
    assert abs(int(totals[0, 0]) * 2**tiles.HALF_SUM + int(totals[0, 1])) == 2


@quick("count_lengths", "add_rounded")
@pytest.mark.parametrize("name", settings())
def test_compiled_loops_count_what_numpy_does(name):
    arguments, width = settings()[name]
    values = tile()
    if name == "add_rounded":  # grid steps are such that sums fit
        values = np.clip(values, -1e9, 1e9)
    counts = []
    for module in (tiles, tile_loops):
        counts.append(np.zeros((5, width) if width else 5, dtype=np.int64))
        getattr(module, name)(values.copy(), 500, *arguments, counts[-1])
    assert (counts[0] == counts[1]).all()
    assert np.count_nonzero(counts[0]) >= 4


@pytest.mark.parametrize("name", ["clip", "round_to_steps"])
def test_compiled_loops_overwrite_values_as_numpy_does(name):
    center, unit = np.array([0.0, 1.0, 0.3, 1e9, -7.0]), np.array([0.5, 3.0, 0.7, 1e3, 1e13])
    found = []
    for module in (tiles, tile_loops):
        values = tile()
        with np.errstate(over="raise"):
            getattr(module, name)(values, 500, center, unit, *([8.0] if name == "clip" else []))
        found.append(values)
        if name == "round_to_steps":
            counts = np.zeros((5, 8), dtype=np.int64)
            module.add_powers(values, 500, counts)
            found[-1] = counts
    np.testing.assert_array_equal(*found)


@pytest.mark.slow
@pytest.mark.parametrize("module", [tiles, tile_loops])
def test_bin_indices_are_those_of_exact_arithmetic(module):
    values = np.array([*range(-70, 70), 0.25, -0.25, 1e17, -1e17, 2.0**80, -(2.0**80)])
    counts = np.zeros((1, 126), dtype=np.int64)
    module.count_lengths(values[np.newaxis].copy(), values.size, np.array([0.5]), counts)
    expected = Counter()
    for value in values.tolist():
        index = int(value // 2.0)
        negative = index < 0
        index = -1 - index if negative else index
        expected[2 * min(index.bit_length(), 62) + negative] += 1
    assert {i: n for i, n in enumerate(counts[0].tolist()) if n} == expected


@pytest.mark.parametrize("n", [1, 2, 3, 10, 4001])
def test_gaps_are_of_the_pairs_that_are_given(n):
    pairs = secret_pairs(SeededWords(n), n, n)
    records = np.random.default_rng(n).normal(size=(n, 1))
    found = []

    def visit(loops, tile, n, counts, which):
        found.extend(tile[0, :n])

    Sweep(np.arange(1), (), visit, n // 2)(records, pairs)
    assert sorted(found) == sorted((records[pairs[0]] - records[pairs[1]])[:, 0])
    assert n // 2 == np.unique(pairs).size / 2


@each_value(1)
@pytest.mark.parametrize("sparse", [1, 4])  # with and without an order of all records
@pytest.mark.parametrize(("n", "most"), [(4, 1), (5, 2), (6, 2), (6, 3)])
def test_every_matching_of_its_size_is_drawn_as_often(n, most, sparse, monkeypatch):
    # What `paired_histogram` rests on, also where more pairs could be made than are drawn.
    monkeypatch.setattr(integers, "_SPARSE", sparse)
    words, found = SeededWords(n), Counter()
    n_matchings = math.comb(n, 2 * most) * math.prod(range(1, 2 * most, 2))
    for _ in range(110 * n_matchings):
        pairs = secret_pairs(words, n, most).T.tolist()
        found[frozenset(map(frozenset, pairs))] += 1
    assert len(found) == n_matchings
    assert all(len(matching) == most for matching in found)
    law = np.full(n_matchings, 1.0 / n_matchings)
    assert chi_square_pvalue(list(found.values()), law) > FALSE_ALARM


@each_value(1)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_every_order_for_a_use_of_a_key_is_drawn_as_often(n):
    found = Counter(
        tuple(keyed_order(secret_key(SeededWords(seed)), seed % 3, n).tolist())
        for seed in range(110 * math.factorial(n))
    )
    law = np.full(math.factorial(n), 1.0 / math.factorial(n))
    assert chi_square_pvalue(list(found.values()), law) > FALSE_ALARM


def test_equal_words_are_drawn_anew(monkeypatch):
    words = np.array([3, 1, 3, 9, 2, 5], dtype=np.uint64)
    monkeypatch.setattr(keyed, "words_of_rows", lambda key, begin, end: words[begin:end])
    assert keyed_order(bytes(32), 0, 3).tolist() == [1, 2, 0]


def test_gaps_are_of_pairs_of_those_that_have_a_value():
    column = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    X = np.column_stack([column, np.where(column % 3 == 1, column, MISSING), column])
    found = []

    def visit(loops, tile, n, counts, which):
        found.append((int(which[0]), tile[0, :n].tolist()))

    step = GapsOfPresent(Sweep(np.arange(3), (1,), visit, 3), MISSING, bytes(32))
    InMemory.of(X).gathered(secret_rows(SeededWords(0), 7, 8), np.arange(3), step)
    differences = {a - b: {a, b} for a in column for b in column if a != b}
    for place, gaps in found:
        members = [one for gap in gaps for one in differences[gap]]
        assert len(members) == len(set(members)) == [6, 4, 6][place]
        assert place != 1 or set(members) == {1.0, 4.0, 16.0, 64.0}
    assert found[0][1] != found[2][1]  # each column has a matching of its own
    for n_parts in (1, 7):
        whole, found = found[:3], []
        step = GapsOfPresent(Sweep(np.arange(3), (1,), visit, 3), MISSING, bytes(32))
        rows = scan_tables(len, X=in_parts(X, n_parts)).map(values)
        rows.gathered(np.arange(7), np.arange(3), step)
        assert found == whole


@pytest.mark.parametrize(("n", "most"), [(5, 4), (6, 4), (5, 2)])
def test_every_set_of_secret_rows_is_drawn_as_often(n, most):
    words = SeededWords(n)
    found = Counter(tuple(secret_rows(words, n, most).tolist()) for _ in range(2000))
    law = np.full(math.comb(n, most), 1.0 / math.comb(n, most))
    assert chi_square_pvalue(list(found.values()), law) > FALSE_ALARM
    assert secret_rows(words, most, most).tolist() == list(range(most))
    assert all(list(one) == sorted(set(one)) for one in found)


@pytest.mark.parametrize("at_a_time", [1, 300, 10**6])
def test_gaps_of_rows_in_parts_are_those_of_a_table(at_a_time, monkeypatch):
    # More columns than come together at a time, not in their order, each with steps of its own.
    monkeypatch.setattr(table, "HELD", at_a_time)
    X = np.random.default_rng(0).standard_cauchy((60, 11))
    pairs = secret_pairs(SeededWords(0), 60, 25)
    columns, steps = np.array([10, 0, 3, 4, 5, 7, 1, 9, 2]), 1.0 + np.arange(9)

    def visit(loops, tile, n, counts, which):
        counts[:, 0] += np.rint(steps[which, np.newaxis] * np.abs(tile[:, :n])).sum(1).astype(int)
        counts[:, 1] += which

    plain = np.rint(steps * np.abs(X[pairs[0]] - X[pairs[1]])[:, columns]).sum(axis=0)
    sweep = Sweep(columns, (2,), visit, 25)
    found = InMemory.of(X).gathered(pairs, columns, sweep)
    assert np.array_equal(found[:, 0], plain)
    for n_parts in (1, 7):
        rows = scan_tables(len, X=in_parts(X, n_parts)).map(values)
        assert np.array_equal(rows.gathered(pairs, columns, sweep), found)


def values(tables):
    """Return the rows as an array."""
    return np.asarray(tables["X"])


def test_an_observed_order_is_not_overwritten():
    first = Transcript(0)
    pairs = first.watch(secret_pairs, None, 8, 4)
    kept = pairs.copy()
    Sweep(np.arange(1), (), lambda *_: None, 4)(np.zeros((8, 1)), pairs)
    assert (Transcript(0, earlier=first).watch(secret_pairs, None, 8, 4) == kept).all()


@pytest.fixture
def swept_in_pieces(monkeypatch):
    """Small tiles, several threads, few columns at once, compiled loops."""

    def choose(n_threads, compiled):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", n_threads)
        monkeypatch.setattr(sweeps, "PER_THREAD", 1)
        monkeypatch.setattr(sweeps, "TILE", 200)
        monkeypatch.setattr(sweeps, "_MOST_COLUMNS", 3)
        if not compiled:
            monkeypatch.setattr(sweeps, "_loops", lambda n_in_all: (tiles, 1))

    return choose


def test_loops_are_compiled_where_numba_is_loaded_or_numpy_would_lose_as_much(monkeypatch):
    most = sweeps.INTERPRETED
    assert sweeps._loops(1)[0] is tile_loops  # which these tests have loaded
    monkeypatch.delitem(sys.modules, "numba")
    assert sweeps._loops(most) == (tiles, 1)
    # Parts of large data: what counts are all of them.
    told = []
    monkeypatch.setattr(sweeps, "_loops", lambda n_in_all: told.append(n_in_all) or (tiles, 1))
    Sweep(np.arange(2), (), lambda *_: None, 1e6)(np.zeros((10, 3)))
    Sweep(np.arange(2), (), lambda *_: None, 1)(np.zeros((10, 3)))
    assert told == [2e6, 20]


def queries():
    guarantee = PrivacyGuarantee(20.0, 1e-6)
    bounds = np.array([-np.inf, -9.0, -np.inf, -np.inf, -1e6, -np.inf]), np.full(6, 1e7)
    return {
        "location and scale": lambda X: private_location_scale(
            X, guarantee, bounds=bounds, random_state=0
        ),
        "moments": lambda X: private_moments(X, guarantee, bounds=bounds, random_state=0),
        "quantiles": lambda X: private_quantiles(
            X, [0.2, 0.9], guarantee, bounds=bounds, random_state=0
        ),
    }


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", queries())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_layouttiles_and_loops_do_not_change_one_bit(name, dtype, swept_in_pieces):
    rng = np.random.default_rng(0)
    X = rng.normal([0, 1, -5e3, 2e5, 3, 1e-9], [1, 3, 1, 7, 1e4, 1e-9], (3001, 6)).astype(dtype)
    query = queries()[name]
    whole = query(X)
    assert np.count_nonzero(whole.found) == 6
    read_only = X.copy()
    read_only.flags.writeable = False
    layouts = [X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], read_only]
    for compiled in (False, True):
        for n_threads in (1, 3):
            swept_in_pieces(n_threads, compiled)
            for layout in layouts:
                found = query(layout)
                for field in whole.__slots__:
                    assert np.array_equal(getattr(found, field), getattr(whole, field))


def test_columns_apart_are_read_as_those_side_by_side():
    X = np.random.default_rng(0).normal(size=(100, 9))
    for columns in ([0, 1, 2], [4], [1, 3, 8], [0, 2, 3, 4]):

        def visit(loops, tile, n, counts, which, columns=columns):
            assert (tile[:, :n] == X[:n, columns].T).all()
            counts[:, 0] += n

        counts = Sweep(np.array(columns), (1,), visit, 100)(X)
        assert counts.tolist() == [[100]] * len(columns)


@every_pair
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(1,), (70_001,), (3, 5), (2, 70_001), (40_000, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_entry_that_is_not_finite_is_noticed_wherever_it_is(bad, shape, order):
    rows = np.zeros(shape, order=order)
    assert all_finite(rows)
    for index in (0, rows.size // 2, rows.size - 1):
        rows.flat[index] = bad
        assert not all_finite(rows)
        rows.flat[index] = 0.0
    assert all_finite(np.zeros((3, 0)))
    assert all_finite(np.zeros(3, dtype=int))
