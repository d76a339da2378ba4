"""No row, however chosen, changes sums of rows or of second moments by more than is stated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from skdpnoise.sensitivity import (
    RowBounds,
    clipped_rows,
    second_moment_change,
    second_moments_profile,
    spread_l1_norm,
)
from tests._cases import each_value, every_pair, quick

ADJACENCIES = ["add_remove", "replace_one"]
HALF = math.sqrt(0.5)
BOUNDS = {
    "ball": lambda p: RowBounds(p, 1.5),
    "one long column": lambda p: RowBounds(p, 2.0, np.linspace(0.2, 1.9, p) ** 2),
    "box": lambda p: RowBounds(p, 10.0, np.linspace(0.5, 2.0, p)),
    "l1": lambda p: RowBounds(p, 1.0, l1_norm=0.85 * math.sqrt(p) if p > 1 else 1.0),
    "all": lambda p: RowBounds(p, 1.0, np.linspace(0.3, 0.8, p), l1_norm=0.8 * math.sqrt(p)),
}


def within(bounds, rows):
    """Clip and shrink rows, the last axis, into the bounds."""
    limits = np.inf if bounds.columns is None else bounds.columns
    rows = np.clip(rows, -limits, limits)
    with np.errstate(divide="ignore"):
        factor = np.minimum(1.0, bounds.norm / np.linalg.norm(rows, axis=-1))
        if bounds.l1_norm is not None:
            factor = np.minimum(factor, bounds.l1_norm / np.abs(rows).sum(axis=-1))
    return rows * factor[..., None]


def change(rows, scale=1.0):
    """Scaled changes of the second moments: one row, or two that replace each other."""
    a = rows / scale
    moments = a[..., :, None] * a[..., None, :]
    return moments[:, 0] - (moments[:, 1] if rows.shape[1] == 2 else 0.0)


def size(changes, norm, off_diagonal):
    """The norms of the definition, entry by entry."""
    p = changes.shape[-1]
    if norm == "nuclear":
        return np.abs(np.linalg.eigvalsh(changes)).sum(axis=-1)
    upper = np.triu(np.ones((p, p)), 1)
    if norm == "l1":
        return (np.abs(changes) * (np.eye(p) + upper / off_diagonal)).sum(axis=(-1, -2))
    return np.sqrt((changes**2 * (np.eye(p) + upper / off_diagonal**2)).sum(axis=(-1, -2)))


def climb(objective, bounds, n_rows, rng, n_starts=60, n_steps=150):
    """Return the largest value that random starts and random steps uphill find."""
    p = bounds.n_columns
    rows = rng.normal(size=(n_starts, n_rows, p)) * 10.0 ** rng.uniform(-1, 3, p)
    rows = within(bounds, rows * (rng.random(rows.shape) < 0.7))
    rows[0] = within(bounds, np.full((n_rows, p), 1e9))
    best = objective(rows)
    step = np.full((n_starts, 1, 1), 0.5)
    for _ in range(n_steps):
        moves = rng.normal(size=rows.shape) * (rng.random(rows.shape) < 0.5)
        moved = within(bounds, 1.5 * (rows + step * bounds.radius * moves))
        value = objective(moved)
        better = value > best
        rows[better], best = moved[better], np.maximum(best, value)
        step = np.maximum(step * np.where(better, 1.3, 0.95)[:, None, None], 1e-3)
    return best.max()


@quick("l1-nuclear-add_remove")
@every_pair
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("norm", ["l2", "l1", "nuclear"])
@pytest.mark.parametrize("kind", BOUNDS)
def test_no_change_of_second_moments_exceeds_the_bound(kind, norm, adjacency):
    rng = np.random.default_rng(0)
    n_rows = 2 if adjacency == "replace_one" else 1
    for p, off_diagonal in itertools.product((1, 2, 3, 5), (HALF, 0.5**0.25, 1.0, 0.4)):
        if norm == "l2" and off_diagonal == 0.4:
            continue
        bounds = BOUNDS[kind](p)
        scale = rng.lognormal(0.0, 0.5, size=p) if p != 3 else np.ones(p)
        claim = second_moment_change(
            bounds, adjacency, norm=norm, scale=scale, off_diagonal=off_diagonal
        )
        found = climb(
            lambda rows, s=scale, r=off_diagonal: size(change(rows, s), norm, r),
            bounds,
            n_rows,
            rng,
        )
        assert found <= claim * (1.0 + 1e-12)
        assert found >= 0.3 * claim  # the search is not asleep


def extremes(p):
    """Rows, pairs of rows, and what they attain: kind, norm, scale, off_diagonal, rows."""
    one, other = np.eye(p)[:2]
    spread = np.full(p, 1.0 / math.sqrt(p))
    angles = np.where(np.arange(p) < p // 2, 1.0, 5.0) * np.pi / 8
    turned = math.sqrt(2.0 / p) * np.array([np.cos(angles), np.sin(angles)])
    l1_row = np.repeat(two_values(p, 0.85 * math.sqrt(p)), p // 2)
    ball, l1 = RowBounds(p, 1.0), RowBounds(p, 1.0, l1_norm=0.85 * math.sqrt(p))
    corner = np.linspace(0.5, 2.0, p)
    box = RowBounds(p, 10.0, corner)
    narrow = RowBounds(p, 0.1, np.full(p, 0.1 * HALF))
    return [
        (ball, "l2", 1.0, HALF, [spread]),
        (ball, "l2", 1.0, HALF, [one, other]),
        (ball, "l2", 1.0, 1.0, [one]),
        (ball, "l2", 1.0, 1.0, [one, other]),
        (narrow, "l2", 1.0, 1.0, [0.1 * HALF * (one + other)]),
        (ball, "nuclear", 1.0, 1.0, [spread]),
        (ball, "nuclear", 1.0, 1.0, [one, other]),
        (ball, "l1", 1.0, 1.0, [spread]),
        (ball, "l1", 1.0, 0.3, [spread]),
        (ball, "l1", 1.0, 0.5, turned),
        (l1, "l1", 1.0, 0.8, [l1_row]),
        (box, "l2", np.sqrt(corner), 0.5**0.25, [corner]),
        (box, "l1", np.cbrt(corner), 0.8, [corner]),
        (box, "nuclear", corner, 1.0, [corner]),
        (RowBounds(3, 1.0, [0.36, 0.64, 0.9]), "l2", np.array([0.5, 0.7, 1.0]), HALF,
         [[0.36, 0.64, math.sqrt(1 - 0.36**2 - 0.64**2)]]),
        (RowBounds(3, 1.0, [0.36, 0.64, 0.9]), "nuclear", np.array([0.5, 0.7, 1.0]), HALF,
         [[0.36, 0.64, math.sqrt(1 - 0.36**2 - 0.64**2)]]),
    ]  # fmt: skip


def two_values(p, total):
    """Return a, b such that half of p entries of each have norm one and the given sum."""
    mean = total / p
    spread = math.sqrt(1.0 / p - mean**2)
    return mean - spread, mean + spread


@pytest.mark.parametrize("case", range(len(extremes(4))))
def test_the_bounds_are_reached(case):
    for p in (4, 8):
        bounds, norm, scale, off_diagonal, rows = extremes(p)[case]
        rows = np.asarray(rows)
        assert within(bounds, rows) == pytest.approx(rows, rel=1e-12)
        claim = second_moment_change(
            bounds, ADJACENCIES[len(rows) - 1], norm=norm, scale=scale, off_diagonal=off_diagonal
        )
        found = size(change(rows[None], scale), norm, off_diagonal)[0]
        assert found == pytest.approx(claim, rel=1e-9)


def test_one_column_can_only_change_by_its_square():
    bounds = RowBounds(1, 2.0)
    for adjacency, norm in itertools.product(ADJACENCIES, ("l2", "l1", "nuclear")):
        assert 4.0 <= second_moment_change(bounds, adjacency, norm=norm) <= 4.0 * (1.0 + 1e-12)


def test_half_the_variance_off_the_diagonal_costs_nothing():
    for p in (2, 10, 300):
        bounds = RowBounds(p, 3.0)
        same, half = (second_moment_change(bounds, off_diagonal=r) for r in (1.0, HALF))
        assert same == pytest.approx(half, rel=1e-12)


def test_replacing_a_row_costs_laplace_noise_little_more_than_root_two():
    bounds = RowBounds(500, 1.0)
    two, one = (second_moment_change(bounds, a, norm="l1") for a in ("replace_one", "add_remove"))
    assert 1.40 < two / one < 1.42
    # A tighter l1 ball brings the factor of two back, where it is the smaller bound.
    bounds = RowBounds(500, 1.0, l1_norm=0.7 * math.sqrt(500))
    two, one = (second_moment_change(bounds, a, norm="l1") for a in ("replace_one", "add_remove"))
    assert two == pytest.approx(2.0 * one)


@each_value(2)
@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("p", [1, 2, 6])
def test_largest_squares_and_sums_are_those_of_general_optimisers(kind, p):
    rng = np.random.default_rng(p)
    bounds = BOUNDS[kind](p)
    for _ in range(5):
        scale = rng.lognormal(0.0, 0.8, size=p)
        box = np.column_stack([np.zeros(p), bounds.limits**2])
        best = linprog(-1.0 / scale**2, np.ones((1, p)), [bounds.radius**2], bounds=box)
        assert bounds.largest_square(scale) == pytest.approx(-best.fun, rel=1e-6)
        limits = [{"type": "ineq", "fun": lambda x, b=bounds: b.norm**2 - x @ x}]
        if bounds.l1_norm is not None:
            limits.append({"type": "ineq", "fun": lambda x, b=bounds: b.l1_norm - x.sum()})
        best = minimize(
            lambda x, scale=scale: -(x / scale).sum(),
            0.5 * bounds.limits / math.sqrt(p),
            bounds=[(0.0, c) for c in bounds.limits],
            constraints=limits,
            method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-12},
        )
        assert bounds.largest_sum(scale) == pytest.approx(-best.fun, rel=1e-6)


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", BOUNDS)
def test_no_entry_of_second_moments_exceeds_its_bound_and_each_comes_close(kind, adjacency):
    rng = np.random.default_rng(1)
    n_rows = 2 if adjacency == "replace_one" else 1
    for p in (1, 2, 4):
        bounds = BOUNDS[kind](p)
        profile = second_moments_profile(bounds, adjacency)
        assert profile.n_coordinates == p * (p + 1) // 2
        for index, (j, k) in enumerate(zip(*np.triu_indices(p), strict=True)):
            found = climb(
                lambda rows, j=j, k=k: np.abs(change(rows)[:, j, k]),
                bounds,
                n_rows,
                rng,
                n_steps=200,
            )
            assert found <= profile.per_coordinate[index] * (1.0 + 1e-12)
            assert found >= 0.9 * profile.per_coordinate[index]
        for norm, claim in (("l1", profile.l1), ("l2", profile.l2)):
            found = climb(
                lambda rows, norm=norm: size(change(rows), norm, 1.0), bounds, n_rows, rng
            )
            assert found <= claim * (1.0 + 1e-12)


@each_value(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", BOUNDS)
def test_a_sum_of_clipped_rows_moves_by_no_more_than_the_profile_and_reaches_it(kind, adjacency):
    rng = np.random.default_rng(2)
    for p in (1, 2, 5):
        bounds = BOUNDS[kind](p)
        profile = clipped_rows(bounds, adjacency)
        rows = within(bounds, rng.normal(size=(2, 4000, p)) * rng.lognormal(0, 2, (2, 4000, 1)))
        rows[1, ::2] = -rows[0, ::2]
        moved = rows[0] - rows[1] if adjacency == "replace_one" else rows[0]
        corners = within(bounds, np.vstack([1e9 * np.eye(p), np.ones((1, p))]))
        moved = np.vstack([moved, corners * (2.0 if adjacency == "replace_one" else 1.0)])
        assert (np.abs(moved).max(axis=0) <= profile.per_coordinate * (1 + 1e-12)).all()
        assert (np.abs(moved).max(axis=0) >= profile.per_coordinate * (1 - 1e-12)).all()
        for norm, claim in ((1, profile.l1), (2, profile.l2)):
            found = np.linalg.norm(moved, norm, axis=1).max()
            assert 0.9 * claim <= found <= claim * (1 + 1e-12)


def test_hardly_any_spread_row_exceeds_the_l1_norm_of_spread_rows():
    rows = np.random.default_rng(0).normal(size=(20_000, 100))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert (np.abs(rows).sum(axis=1) > spread_l1_norm(100, 1.0)).mean() < 0.01
    assert spread_l1_norm(1, 2.0) == 2.0
    one = second_moment_change(RowBounds(100, 1.0), "add_remove", norm="l1")
    bounds = RowBounds(100, 1.0, l1_norm=spread_l1_norm(100, 1.0))
    assert second_moment_change(bounds, "add_remove", norm="l1") < 0.735 * one


def test_bounds_on_rows_are_shown_and_kept_from_change():
    columns = np.array([1.0, 2.0])
    bounds = RowBounds(2, 1.5, columns, l1_norm=1.2)
    columns[0] = 99.0
    assert repr(bounds) == "RowBounds(n_columns=2, norm=1.5, columns=1 to 2, l1_norm=1.2)"
    assert bounds.limits == pytest.approx([1.0, 1.2])
    assert bounds.radius == 1.2
    with pytest.raises(ValueError, match="read-only"):
        bounds.columns[0] = 5.0
    assert RowBounds(2, 1.5, 0.5).columns.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: RowBounds(0, 1.0), ValueError, "n_columns"),
        (lambda: RowBounds(2, 0.0), ValueError, "norm"),
        (lambda: RowBounds(2, "1"), TypeError, "norm"),
        (lambda: RowBounds(2, 1.0, [1.0, 0.0]), ValueError, "columns"),
        (lambda: RowBounds(2, 1.0, [1.0, np.inf]), ValueError, "columns"),
        (lambda: RowBounds(2, 1.0, [1.0] * 3), ValueError, "columns"),
        (lambda: RowBounds(2, 1.0, l1_norm=-1.0), ValueError, "l1_norm"),
        (lambda: RowBounds(2, 1.0).largest_square([1.0, 0.0]), ValueError, "scale"),
        (lambda: RowBounds(2, 1.0).largest_sum([1.0] * 3), ValueError, "scale"),
        (lambda: second_moment_change(RowBounds(2, 1.0), "both"), ValueError, "adjacency"),
        (lambda: second_moment_change(RowBounds(2, 1.0), norm="max"), ValueError, "norm"),
        (lambda: second_moment_change(RowBounds(2, 1.0), scale=-1.0), ValueError, "scale"),
        (
            lambda: second_moment_change(RowBounds(2, 1.0), off_diagonal=0.7),
            ValueError,
            "at least sqrt",
        ),
        (lambda: second_moments_profile(RowBounds(2, 1.0), "both"), ValueError, "adjacency"),
        (lambda: clipped_rows(RowBounds(2, 1.0), "both"), ValueError, "adjacency"),
        (lambda: spread_l1_norm(2, 0.0), ValueError, "norm"),
    ],
)
def test_impossible_bounds_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
