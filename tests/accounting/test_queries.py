"""A query's sums move by no more than its own sensitivity, whichever record changes, and by nearly
that much."""

from operator import itemgetter

import numpy as np
import pytest

from skdpnoise.accounting import queries
from skdpnoise.accounting.queries import (
    ClippedRows,
    ClippedSum,
    ClippedVectors,
    GroupedSum,
    SecondMoments,
    bounded,
)
from skdpnoise.accounting.session import Session
from skdpnoise.data.table import InMemory, scanned
from skdpnoise.kernels import sizes
from skdpnoise.privacy import GaussianLoss
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import GroupedProfile, RowBounds
from tests._cases import each_value
from tests._same_bits import in_parts

N_COLUMNS, N_GROUPS = 3, 2
LOW, HIGH = np.array([-1.0, 0.0, 0.5]), np.array([2.0, 0.5, 1.5])
CENTER, SCALE = np.array([0.1, -0.1, 0.2]), np.array([1.0, 2.0, 0.5])
COUNTED = np.array([1.0, 0.5, 1.0])  # with an end of 1 below, too, the last column is a count
GRID = 2.0**-16  # in units of which a rounded contribution moves a sum by one more at most


def codes(leaf):
    return leaf[:, -1].astype(np.intp)


def rows(leaf):
    return leaf[:, :-1]


def some_rows(leaf):
    return (leaf[at, :-1] for at in sizes.in_blocks(len(leaf)))


def codes_by_column(leaf):
    return (leaf[:, :-1] > 0.0).astype(np.intp) + (leaf[:, :-1] > 1.0)


BEYOND = np.array([0.5, 0.0, 0.3])
BOXED = RowBounds(N_COLUMNS, norm=1.0, columns=np.array([0.5, 1.0, 0.8]), l1_norm=1.3)
QUERIES = {
    "sum": ClippedSum(LOW, HIGH, some_rows),
    "sum with one noise": ClippedSum(np.zeros(3), np.ones(3), some_rows, alike=True),
    "vectors": ClippedVectors(2.0, N_COLUMNS, some_rows),
    "rows in a ball": ClippedRows(RowBounds(N_COLUMNS, norm=2.0), contributions=some_rows),
    "rows about a centre": ClippedRows(RowBounds(N_COLUMNS, norm=2.0), CENTER, SCALE, some_rows),
    "rows in a box and two balls": ClippedRows(BOXED, contributions=some_rows),
    "moments in a ball": SecondMoments(RowBounds(N_COLUMNS, norm=1.0), contributions=some_rows),
    "moments about a centre": SecondMoments(
        RowBounds(N_COLUMNS, norm=1.0), CENTER, SCALE, some_rows
    ),
    "moments in a box and a ball": SecondMoments(
        RowBounds(N_COLUMNS, 1.0, BOXED.columns), contributions=some_rows
    ),
    "moments beyond limits": SecondMoments(
        RowBounds(N_COLUMNS, 1.0, BOXED.columns), contributions=some_rows, beyond=BEYOND
    ),
    "sums by group": GroupedSum(N_GROUPS, codes, LOW, HIGH, rows),
    "sums of one group": GroupedSum(1, codes, LOW, HIGH, rows),
    "symmetric sums by group": GroupedSum(N_GROUPS, codes, -HIGH, HIGH, rows),
    "sums and counts by group": GroupedSum(
        N_GROUPS, codes, np.array([-1.0, -0.5, 1.0]), COUNTED, rows
    ),
    "counts by group": GroupedSum(N_GROUPS, codes),
    "counts of one group": GroupedSum(1, codes),
    "counts by column": GroupedSum(3, codes_by_column, n_columns=N_COLUMNS),
}


def some_records(rng, n):
    """Rows within, at and far beyond all bounds; the last column is a code: of no group too."""
    values = rng.choice([-1e9, -1e9, -0.8, -0.5, 0.0, 0.5, 0.8, 1e9, 1e9], size=(n, N_COLUMNS))
    values[::3] = rng.normal(size=values[::3].shape)
    alike = rng.random(n) < 0.2  # corners that are alike in all columns
    values[alike] = np.sign(values[alike, :1]) * 1e9
    return np.column_stack([values, rng.choice([-1, 0, 0, 1, 1, 2], size=n)])


def neighbours(adjacency, n=1000):
    rng = np.random.default_rng(0)
    table, changes = some_records(rng, 6), some_records(rng, n)
    for number, record in enumerate(changes):
        if adjacency == "add_remove":
            yield table, np.vstack([table, record])
        else:
            first, second = table.copy(), table.copy()
            first[2], second[2] = changes[number - 1], record
            if number % 2:  # by its mirror image in some columns
                second[2, :-1] = first[2, :-1] * rng.choice([-1.0, 1.0], size=N_COLUMNS)
            yield first, second


def summed(query, grid=GRID):
    """From rows to a query's sums in grid steps; of a matrix, to its upper triangle."""
    size = query.sensitivity("replace_one").n_coordinates
    if not isinstance(query, SecondMoments):
        return query.step(np.full(size, grid))
    step, upper = query.step(np.full((N_COLUMNS, N_COLUMNS), grid)), np.triu_indices(N_COLUMNS)
    return lambda leaf: step(leaf)[upper]


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", QUERIES)
def test_one_record_moves_the_sums_by_the_stated_sensitivity_at_most_and_nearly(name, adjacency):
    query = QUERIES[name]
    profile = query.sensitivity(adjacency)
    size, step = profile.n_coordinates, summed(query)
    changes = [step(second) - step(first) for first, second in neighbours(adjacency)]
    moved = np.abs(np.array(changes)) * GRID
    assert moved.shape[1] == size
    assert (moved <= profile.per_coordinate + GRID).all()
    l1, l2 = moved.sum(axis=1).max(), np.linalg.norm(moved, axis=1).max()
    if isinstance(profile, GroupedProfile):
        assert 0.9 * profile.bounds[0] <= l2 <= profile.bounds[0] + np.sqrt(size) * GRID
        return
    np.testing.assert_allclose(moved.max(axis=0), profile.per_coordinate, rtol=0.1)
    if profile.l1 is not None:
        assert l1 <= profile.l1 + size * GRID
    if profile.l2 is not None:
        assert l2 <= profile.l2 + np.sqrt(size) * GRID
    if name.startswith(("counts", "sums", "symmetric", "rows in a ball")):
        assert l2 >= 0.9 * profile.l2
    if name.startswith(("counts", "sums", "symmetric")):
        assert l1 >= 0.9 * profile.l1


@pytest.mark.parametrize("name", QUERIES)
def test_sums_of_parts_are_those_of_all_records_whatever_their_order(name):
    step, table = summed(QUERIES[name]), some_records(np.random.default_rng(1), 400)
    parts = step(table[:150]) + step(table[150:150]) + step(table[150:][::-1])
    np.testing.assert_array_equal(parts, step(table))
    assert parts.dtype == np.int64


@pytest.mark.parametrize(
    ("name", "module", "constant"),
    [
        ("sums by group", queries, "_ENTRIES"),
        *(
            (name, sizes, "MOST_ROWS")
            for name in ("sum", "vectors", "rows in a ball", "moments in a ball")
        ),
    ],
)
def test_sums_of_few_records_at_a_time_are_those_of_all(monkeypatch, name, module, constant):
    step, table = summed(QUERIES[name]), some_records(np.random.default_rng(1), 400)
    whole = step(table)
    monkeypatch.setattr(module, constant, 50)
    np.testing.assert_array_equal(step(table), whole)


IN_KERNELS = [name for name, query in QUERIES.items() if isinstance(query, ClippedRows)]


@pytest.mark.parametrize("name", IN_KERNELS)
def test_kernels_refuse_what_64_bits_cannot_hold(name):
    table = some_records(np.random.default_rng(1), 400)
    with pytest.raises(ValueError, match="row_grid_size is too small"):
        summed(QUERIES[name], 2.0**-120)(table)


@each_value(1)
@pytest.mark.parametrize("fine", [2.0**-62, 2.0**-75])
@pytest.mark.parametrize("name", [name for name in QUERIES if name not in IN_KERNELS])
def test_sums_that_64_bits_cannot_hold_are_exact(name, fine):
    step, table = summed(QUERIES[name], fine), some_records(np.random.default_rng(1), 400)
    single = [[int(found) for found in step(table[k : k + 1])] for k in range(len(table))]
    found = step(table)
    assert found.tolist() == [sum(column) for column in zip(*single, strict=True)]
    assert max(map(abs, found)) > 2**63


def test_a_narrow_interval_far_from_zero_is_summed_in_parts_as_in_memory():
    """Of more records than such grid steps leave room for in 64 bits."""
    low, high = np.array([1e6]), np.array([1e6 + 1e-3])
    table = np.random.default_rng(0).uniform(low, high, size=(2000, 1))
    parts, _ = scanned(lambda one: (one["X"], None), itemgetter("X"), X=in_parts(table, 3))
    found = [
        Session(random_words(0), "replace_one").release(
            "sums", ClippedSum(low, high), rows, GaussianLoss(1.0), "iid_gaussian"
        )
        for rows in (InMemory.of(table), parts)
    ]
    assert found[0].values == found[1].values == pytest.approx(table.sum(axis=0), abs=0.1)


def test_grouped_sums_are_those_of_the_rows_with_each_code():
    table = some_records(np.random.default_rng(2), 300)
    query = QUERIES["sums by group"]
    found = query.step(np.full(6, GRID))(table).reshape(N_GROUPS, N_COLUMNS) * GRID
    for group in range(N_GROUPS):
        inside = np.clip(rows(table)[codes(table) == group], LOW, HIGH)
        np.testing.assert_allclose(found[group], inside.sum(axis=0), atol=300 * GRID)


def test_counts_are_released_as_whole_numbers_plus_noise():
    table = InMemory.of(some_records(np.random.default_rng(3), 5000))
    session = Session(random_words(0), "replace_one")
    query = QUERIES["counts by group"]
    found = session.tally("groups", query, table, GaussianLoss(1.0), "iid_gaussian")
    truth = np.bincount(codes(table.leaf) + 1, minlength=N_GROUPS + 2)[1:-1]
    assert (np.abs(found.values - truth) < 8.0 * found.standard_deviation).all()


@pytest.mark.parametrize("radius", [1e-300, 1e-170, 1e-140, 1.0, 1e140, 1e170, 1e300])
def test_rows_lie_in_their_ball_and_reach_its_edge_in_any_units(radius):
    rows = radius * np.array([[9.0, 9.0, 9.0], [0.9, -0.9, 0.9], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]])
    found = bounded(rows, radius) / radius
    np.testing.assert_allclose(
        np.linalg.norm(found, axis=1), [1.0, 1.0, np.sqrt(0.75), 0.0], rtol=1e-12
    )


def test_missing_values_count_as_a_bound():
    assert np.isfinite(bounded(np.array([[np.nan, np.inf]]), 1.0)).all()
    assert ClippedSum(LOW, HIGH).step(np.ones(3))(np.full((2, 3), np.nan)).dtype == np.int64


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_noise_of_second_moments_is_for_the_rows_and_the_neighbours_asked_for(adjacency):
    query = QUERIES["moments in a box and a ball"]
    mechanism = query.calibrated("inid_gaussian", GaussianLoss(1.0), adjacency)
    assert mechanism.row_bounds is query.bounds
    assert mechanism.adjacency == adjacency
    wanted = query.sensitivity(adjacency).per_coordinate
    np.testing.assert_array_equal(mechanism.sensitivity.per_coordinate, wanted)
