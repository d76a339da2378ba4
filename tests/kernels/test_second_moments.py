"""Sums over clipped rows: exact integers within the bounds, however the work is divided."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skdpnoise.kernels import (
    _plain_rows,
    _row_kernels,
    _rows,
    clipped_row_sums,
    row_norms,
    second_moments,
)
from tests._cases import each_value, quick

EXTREME = [0.0, -0.0, 1e-310, -1e-160, 1e-30, 1.0, -1.0, 3e4, -1e18, 1e155, -1e308]
SLACK = Fraction(1) + Fraction(1, 10**11)


@pytest.fixture(autouse=True, scope="module", params=["numpy", "compiled"])
def kernels(request):
    """Every test runs both ways."""
    few = -1 if request.param == "compiled" else 10**18
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_row_kernels, "INTERPRETED", few)
        yield


def test_loops_are_compiled_once_numpy_has_lost_as_much_time(monkeypatch):
    monkeypatch.setattr(_row_kernels, "INTERPRETED", 100)
    kernels = _row_kernels.Kernels()
    found = [kernels(n) for n in (60, 40, 1, 0)]
    assert found == [_plain_rows, _plain_rows, _rows, _rows]


def problem(n=300, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.lognormal(0.0, 1.0, size=(n, 1))
    X[rng.random((n, p)) < 0.05] = 0.0
    return X


def bounds(p, **changes):
    """Arguments under which some rows are clipped by each bound, and some by none."""
    keywords = {
        "center": np.linspace(-0.5, 0.5, p),
        "scale": np.linspace(0.5, 2.0, p),
        "limit": 3.0,
        "columns": np.linspace(1.0, 4.0, p),
        "norm": 1.2 * math.sqrt(p),
        "l1_norm": 0.9 * p,
        "row_grid_size": np.linspace(1e-3, 3e-3, p),
    }
    return keywords | changes


def integers(X, **keywords):
    """The integer rows, one call for each row."""
    return np.array([clipped_row_sums(row[None], **keywords) for row in X])


def reference(X, *, center, scale, limit, columns, norm, l1_norm, row_grid_size):
    """The docstring's formula, in numpy, with its own clipping."""
    z = np.clip((X - center) / scale, -np.minimum(limit, columns), np.minimum(limit, columns))
    with np.errstate(divide="ignore"):
        factor = np.minimum(1.0, norm / np.linalg.norm(z, axis=1))
        factor = np.minimum(factor, l1_norm / np.abs(z).sum(axis=1))
    z = z * factor[:, None] / row_grid_size
    most = np.floor(np.minimum(np.minimum(limit, columns), min(norm, l1_norm)) / row_grid_size)
    near, short = (np.clip(rounding(z), -most, most) for rounding in (np.rint, np.trunc))
    outside = (np.linalg.norm(near * row_grid_size, axis=1) > norm * (1 + 4e-12)) | (
        np.abs(near * row_grid_size).sum(axis=1) > l1_norm * (1 + 9e-12)
    )
    return np.where(outside[:, None], short, near).astype(np.int64), factor, outside


@quick("8")
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8, 11])
def test_the_sums_are_those_of_the_formula(p):
    X, keywords = problem(p=p), bounds(p)
    rows, factor, outside = reference(X, **keywords)
    assert 0.1 < (factor < 1.0).mean() < 0.99
    assert p == 1 or outside.sum() > 5
    assert_array_equal(integers(X, **keywords), rows)
    assert_array_equal(clipped_row_sums(X, **keywords), rows.sum(axis=0))
    moments = second_moments(X, **keywords)
    assert_array_equal(moments, rows.T @ rows)
    assert moments.dtype == np.int64
    assert moments.shape == (p, p)


def check_row(row, *, columns, norm, l1_norm, row_grid_size):
    values = [abs(int(k)) * Fraction(q) for k, q in zip(row, row_grid_size.tolist(), strict=True)]
    assert sum(v * v for v in values) <= Fraction(norm) ** 2 * SLACK
    assert l1_norm == math.inf or sum(values) <= Fraction(l1_norm) * SLACK
    assert all(v <= Fraction(c) * SLACK for v, c in zip(values, columns.tolist(), strict=True))


@pytest.mark.parametrize("p", [1, 4, 7])
def test_entries_count_by_how_far_they_are_beyond_limits(p):
    X, keywords = problem(p=p), bounds(p)
    beyond = np.linspace(0.0, 0.8, p)
    given = {name: keywords.pop(name) for name in ("center", "scale")}
    z = (X - given["center"]) * (1.0 / given["scale"])
    far = z - np.clip(z, -beyond, beyond)
    assert_array_equal(
        second_moments(X, **given, **keywords, beyond=beyond), second_moments(far, **keywords)
    )
    near = integers(np.full((1, p), 0.5), **keywords, beyond=1.0)
    assert_array_equal(near, np.zeros((1, p)))


@quick("1e-05", "0.7")
@pytest.mark.parametrize("grid_size", [1e-5, 0.03, 0.7, 5.0])
def test_whatever_a_row_holds_its_integers_are_within_the_bounds(grid_size):
    rng, p = np.random.default_rng(1), 4
    X = problem(200, p)
    extreme = rng.random(X.shape) < 0.3
    X[extreme] = rng.choice([*EXTREME, np.inf, -np.inf, np.nan], extreme.sum())
    stated = {
        "columns": np.array([0.4, 0.9, 2.0, 1.0]),
        "norm": 1.3,
        "l1_norm": 1.9,
        "row_grid_size": grid_size * np.array([1.0, 0.5, 2.0, 1.0]),
    }
    largest = 0.0
    for beyond in (0.0, np.array([0.0, 0.5, 2.0, 1e300])):
        for row in integers(X, **stated, beyond=beyond):
            check_row(row, **stated)
            largest = max(largest, np.linalg.norm(row * stated["row_grid_size"]))
    assert grid_size > 1e-2 or largest >= 0.99 * stated["norm"]


@each_value(2)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e308])
@pytest.mark.parametrize("n_far", [1, 2, 5])
def test_a_row_without_a_direction_that_would_leave_the_ball_counts_as_zero(value, n_far):
    row = np.append(np.full(n_far, value), [0.5])
    for stated in ({"norm": 1.0}, {"norm": 3.0, "l1_norm": 1.5}):
        found = integers(row[None], row_grid_size=2.0**-10, **stated)[0]
        largest = np.full(row.size, stated["norm"])
        check_row(
            found,
            columns=largest,
            norm=stated["norm"],
            l1_norm=stated.get("l1_norm", math.inf),
            row_grid_size=np.full(row.size, 2.0**-10),
        )


@pytest.mark.parametrize("value", [1e200, 1e-200, 1e-290, 1.7e308])
def test_a_row_of_any_size_keeps_its_direction(value):
    X = value * np.array([[0.75, 1.0]])
    if value < 1.0:
        (found,) = integers(X, norm=value, row_grid_size=value * 2.0**-10)
        assert np.abs(found - [614, 819]).max() <= 1
    else:
        expected = [0, 0] if value > 1e308 else [614, 819]  # its norm is beyond double precision
        assert_allclose(integers(X, norm=1.0, row_grid_size=2.0**-10)[0], expected, atol=1)


def test_rows_inside_are_rounded_to_nearest_and_rows_on_the_ball_towards_zero():
    grid_size = 2.0**-10
    inside = np.array([[0.3006, -0.2007]])
    assert integers(inside, norm=1.0, row_grid_size=grid_size).tolist() == [[308, -206]]
    # Nearest integers would have a norm above 1024.
    on = np.array([[613.6, math.sqrt(1024**2 - 613.6**2)]]) * 0.1  # shrunk to (613.6, 819.8)/1024
    assert integers(on, norm=1.0, row_grid_size=grid_size).tolist() == [[613, 819]]
    exact = np.array([[1.0, 0.0], [0.0, -1.0], [0.6015625, 0.5]])
    assert_array_equal(integers(exact, norm=1.0, row_grid_size=grid_size), exact * 1024)


def test_rows_on_the_grid_lose_nothing():
    rng = np.random.default_rng(0)
    X = rng.integers(-50, 50, size=(1000, 6)).astype(float)
    assert_array_equal(second_moments(X, norm=200.0, row_grid_size=0.5), 4 * (X.T @ X))
    assert_array_equal(clipped_row_sums(X, norm=200.0, row_grid_size=0.5), 2 * X.sum(axis=0))


def variants(X):
    """The same rows in other layouts."""
    wide = np.repeat(np.repeat(X, 2, axis=1), 3, axis=0)[::3, ::2]
    frozen = X.copy()
    frozen.flags.writeable = False
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": wide,
        "backwards": X[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": frozen,
    }


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_layout_threads_blocks_and_order_do_not_change_one_integer(dtype, n_threads, monkeypatch):
    monkeypatch.setitem(second_moments.__globals__, "PER_THREAD", 1)
    X = problem(517, 6).astype(dtype)
    keywords = bounds(6)
    expected = second_moments(X.astype(np.float64), **keywords)
    total = clipped_row_sums(X.astype(np.float64), **keywords)
    shuffled = np.random.default_rng(0).permutation(X)
    for rows in [*variants(X).values(), shuffled]:
        for block in (None, 1, 7, 8, 64, 517, 9999):
            options = keywords | {"block_rows": block, "n_threads": n_threads}
            assert_array_equal(second_moments(rows, **options), expected)
            assert_array_equal(clipped_row_sums(rows, **options), total)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 70),
    p=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 70), max_size=4),
    block=st.integers(1, 80),
    log_quantum=st.integers(-40, 3),
    m=st.integers(0, 2),
)
def test_any_division_of_the_rows_gives_the_same_sums(seed, n, p, cuts, block, log_quantum, m):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    extreme = rng.random(X.shape) < 0.1
    X[extreme] = rng.choice(EXTREME, extreme.sum())
    keywords = {"norm": rng.lognormal(), "row_grid_size": 2.0**log_quantum, "center": rng.normal()}
    if keywords["norm"] / keywords["row_grid_size"] > 2.0**26:
        keywords["row_grid_size"] = keywords["norm"] * 2.0**-26
    m = min(m, p - 1)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    whole = second_moments(X, **keywords)
    parts = [
        second_moments(
            [np.asfortranarray(X[a:b, : p - m]), X[a:b, p - m :]],
            block_rows=block,
            **keywords,
        )
        for a, b in pairwise(edges)
    ]
    assert_array_equal(sum(parts), whole)
    rows = integers(X, **keywords).astype(object)
    assert_array_equal((rows.T @ rows).astype(np.int64), whole)


def test_sums_beyond_what_doubles_hold_are_exact():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(400, 3))
    keywords = {"norm": 2.0, "row_grid_size": 2.0**-25}
    rows = integers(X, **keywords).astype(object)
    exact = rows.T @ rows
    assert exact[0, 0] > 2**54
    found = second_moments(X, **keywords, block_rows=100)
    assert found.tolist() == exact.tolist()


def test_tables_side_by_side_are_one_table():
    X, keywords = problem(p=6), bounds(6)
    expected, total = second_moments(X, **keywords), clipped_row_sums(X, **keywords)
    for parts in ([X[:, :5], X[:, 5]], [X[:, :4], X[:, 4:]], [X[:, 0], X[:, 1:3], X[:, 3:]]):
        assert_array_equal(second_moments(parts, **keywords), expected)
        assert_array_equal(clipped_row_sums(parts, **keywords), total)
        assert_allclose(row_norms(parts, center=1.0), np.linalg.norm(X - 1.0, axis=1))
    labels = np.arange(300) % 2
    found = second_moments([X[:, :1], labels], norm=1e3, row_grid_size=2.0**-10)
    assert found[1, 1] == 150 * 2**20


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.float16])
def test_other_types_are_read_as_numbers(dtype):
    X = np.random.default_rng(0).integers(0, 2, size=(100, 3)).astype(dtype)
    found = second_moments(X, norm=3.0, row_grid_size=0.5)
    assert_array_equal(found, 4 * (X.astype(int).T @ X.astype(int)))


def test_zero_rows_and_no_rows_are_nothing():
    for n in (0, 1, 50):
        X = np.zeros((n, 3))
        assert not second_moments(X, norm=1.0, row_grid_size=1e-3, l1_norm=2.0).any()
        assert not clipped_row_sums(X, norm=1.0, row_grid_size=1e-3).any()
        assert_array_equal(row_norms(X), np.zeros(n))


@pytest.mark.parametrize("order", "CF")
def test_norms_are_those_of_standardised_rows(order, monkeypatch):
    monkeypatch.setitem(second_moments.__globals__, "PER_THREAD", 1)
    X = problem(1000, 7)
    center, scale = np.linspace(-1, 1, 7), np.linspace(0.5, 2, 7)
    z = np.clip((X - center) / scale, -2.0, 2.0)
    keywords = {"center": center, "scale": scale, "limit": 2.0}
    found = row_norms(np.asarray(X, order=order), n_threads=3, **keywords)
    assert_allclose(found, np.linalg.norm(z, axis=1), rtol=1e-14)
    assert_array_equal(found, row_norms(X, block_rows=1, **keywords))
    assert row_norms(np.array([[3e200, 4e200], [3e-200, 4e-200]])) == pytest.approx([5e200, 5e-200])


def test_data_are_neither_changed_nor_copied():
    X = problem()
    before = X.copy()
    second_moments(X, **bounds(5))
    assert_array_equal(X, before)
    assert X.flags.writeable
    second_moments(X[:2], **bounds(5))
    for rows in (np.ones((100_000, 5)), np.ones((200_000, 5), dtype=np.float32, order="F")):
        tracemalloc.start()
        second_moments(rows, **bounds(5), block_rows=500)
        assert tracemalloc.get_traced_memory()[1] < 0.1 * rows.nbytes
        tracemalloc.stop()


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setitem(second_moments.__globals__, "PER_THREAD", 1)

    def fails(*arguments):
        raise RuntimeError("as it should")

    monkeypatch.setattr(_plain_rows, "standardise", fails)
    monkeypatch.setattr(_rows, "standardise", fails)
    with pytest.raises(RuntimeError, match="as it should"):
        row_norms(problem(), n_threads=2)


@each_value(2)
@pytest.mark.slow
@pytest.mark.parametrize("grid_size", [1e-5, 0.03, 0.7])
@pytest.mark.parametrize("p", [1, 2, 9, 40])
def test_numpy_writes_the_numbers_of_the_compiled_loops_bit_for_bit(p, grid_size):
    rng = np.random.default_rng(p)
    odd = rng.choice([*EXTREME, math.inf, -math.inf, math.nan], size=(p, 200))
    values = np.hstack([odd, rng.normal(size=(p, 300)), rng.normal(size=(p, 100)).round(1)])
    out = np.zeros((2, -(-p // 4) * 4, 608))
    for n in (1, 2, 7, 600):  # numpy has other loops for few numbers
        for limit, norms in ((1e300, (1.0, math.inf)), (3.0, (0.8, 1.1)), (0.5, (math.inf, 2.0))):
            tiles, sums = np.zeros((2, p, 608)), np.zeros((2, 3, 600))
            tiles[:, :, :n] = values[:, -n:]
            beyond = np.arange(p) % 3 * 0.4
            settings = np.zeros(p), np.linspace(0.5, 2.0, p), beyond, np.full(p, limit)
            most = np.full(p, math.floor(min(limit, *norms) / grid_size))
            grid = np.full(p, grid_size), most, *norms
            _rows.standardise(tiles[0], n, settings, sums[0])
            _plain_rows.standardise(tiles[1], n, settings, sums[1])
            assert_array_equal(*tiles)
            assert_array_equal(*sums)
            _rows.quantise(tiles[0], n, grid, sums[0], out[0])
            _plain_rows.quantise(tiles[1], n, grid, sums[1], out[1])
            assert_array_equal(*out)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"norm": 1.0, "row_grid_size": 0.0}, "must be positive"),
        ({"norm": 1.0, "row_grid_size": [1.0, -1.0, 1.0]}, "must be positive"),
        ({"norm": 1.0, "row_grid_size": np.nan}, "must be positive"),
        ({"norm": 1.0, "row_grid_size": 1e-20}, "too small"),
        ({"norm": 1.0, "row_grid_size": 2.0**-27}, "too small"),
        ({"norm": np.nan, "row_grid_size": 1.0}, "must be positive"),
        ({"norm": -1.0, "row_grid_size": 1.0}, "must be positive"),
    ],
)
def test_quanta_that_are_not_exact_are_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        second_moments(np.zeros((4, 3)), **keywords)


def test_sums_that_could_overflow_are_refused_from_public_facts():
    X = np.broadcast_to(np.zeros((1, 2)), (2**13, 2))
    second_moments(X[: 2**12], norm=1.0, row_grid_size=2.0**-25)
    with pytest.raises(ValueError, match="overflow"):
        second_moments(X, norm=1.0, row_grid_size=2.0**-25)
    # A thousand million rows of 2**16.25 grid steps are within the limit.
    assert 10**9 * 2.0**32.5 < 2**63 - 2**61
