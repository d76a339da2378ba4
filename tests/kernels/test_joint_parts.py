"""Sums of gradients that are clipped in groups: integers within every norm, by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.kernels.joint.parts import ClippedParts

STARTS = np.array([0, 3, 4, 40])
BOUNDS = np.array([1.0, 0.25, 3.0])
GRID = np.array([2.0**-20, 3e-7, 1.1e-6])


def size(whole, order):
    """Return the power of the norm of each group, in Python's integers."""
    parts = np.split(whole, STARTS[1:-1])
    return [sum(abs(int(k)) ** order for k in part) for part in parts]


def most(parts):
    """Return the largest power of each group, exactly, from bounds and grid."""
    from fractions import Fraction

    pairs = zip(parts.bounds.tolist(), parts.grid_size.tolist(), strict=True)
    return [(Fraction(bound) / Fraction(grid)) ** parts.order for bound, grid in pairs]


def rows():
    """Yield gradients of many sizes, those that lie on their bound among them."""
    rng = np.random.default_rng(0)
    for scale in (1e-30, 1e-3, 0.1, 1.0, 1e3, 1e30):
        yield from (scale * rng.normal(size=(20, 40))).astype(np.float32)
    for _ in range(50):
        row = rng.normal(size=40)
        for begin, end, bound in zip(STARTS[:-1], STARTS[1:], BOUNDS, strict=True):
            row[begin:end] *= bound / np.linalg.norm(row[begin:end])
        near = row.astype(np.float32)
        yield from (near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9)))
    one = np.zeros(40, dtype=np.float32)
    for j in (0, 3, 39):
        for entry in (1.0, 0.25, 3.0, np.float32(1) / 3, 3.4e38, 1e-45):
            once = one.copy()
            once[j] = entry
            yield once


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("grid", [GRID, GRID * 1e-4, GRID * 1e3])
def test_no_record_adds_more_than_its_bounds_in_any_group(order, grid):
    parts = ClippedParts(STARTS, BOUNDS, grid, order)
    limits = most(parts)
    for row in rows():
        whole = parts.sums(row[np.newaxis], np.array([True]))
        assert all(found <= limit for found, limit in zip(size(whole, order), limits, strict=True))


def test_what_is_within_its_bounds_loses_a_grid_step_at_most():
    parts = ClippedParts(STARTS, BOUNDS, GRID, 2)
    step = np.repeat(GRID, np.diff(STARTS))
    for row in rows():
        inside = [np.linalg.norm(part.astype(float)) for part in np.split(row, STARTS[1:-1])]
        if not np.isfinite(inside).all():
            continue
        factor = np.repeat(np.minimum(1.0, BOUNDS / np.maximum(inside, 1e-300)), np.diff(STARTS))
        exact = row.astype(float) * factor / step
        whole = parts.sums(row[np.newaxis], np.array([True]))
        assert (np.abs(whole) <= np.abs(exact) + 1e-6).all()
        assert np.abs(whole - exact).max() <= 1.0 + 1e-8 * np.abs(exact).max()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_record_that_is_not_finite_adds_nothing_in_any_group(wrong):
    parts = ClippedParts(STARTS, BOUNDS, GRID, 2)
    gradients = np.ones((3, 40), dtype=np.float32)
    gradients[1, 7] = wrong
    whole = parts.sums(gradients, np.array([True, True, False]))
    assert (whole == parts.sums(gradients[:1], np.array([True]))).all()
    assert whole.any()


def test_sums_are_those_of_single_records_in_any_order():
    rng = np.random.default_rng(1)
    gradients = rng.normal(size=(30, 40)).astype(np.float32)
    parts = ClippedParts(STARTS, BOUNDS, GRID * 1e-4, 2)
    alone = sum(parts.sums(row[np.newaxis], np.array([True])) for row in gradients)
    present = np.ones(30, dtype=bool)
    assert (parts.sums(gradients, present) == alone).all()
    assert (parts.sums(gradients[rng.permutation(30)], present) == alone).all()
    assert not parts.sums(gradients, ~present).any()


@pytest.mark.parametrize("cuts", [[3, 4], [1, 2, 3, 4, 20], [20], [3], []])
def test_tables_side_by_side_are_one_table(cuts):
    gradients = np.stack(list(rows()))
    gradients[::7, 5] = np.nan
    present = np.arange(len(gradients)) % 5 > 0
    parts = ClippedParts(STARTS, BOUNDS, GRID * 1e-4, 1)
    tables = [np.ascontiguousarray(part) for part in np.split(gradients, cuts, axis=1)]
    for one, other in zip(
        parts.sums_and_excess(tables, present),
        parts.sums_and_excess(gradients, present),
        strict=True,
    ):
        assert (one == other).all()


@pytest.mark.parametrize("order", [1, 2])
def test_what_is_too_long_is_taken_back_whole(order):
    # A bound that the norms in floating point miss: then nothing but the integers counts.
    parts = ClippedParts(STARTS, BOUNDS, GRID, order)
    object.__setattr__(parts, "powers", np.floor((1.0 - 2.0**-20) * parts.powers))
    limits = parts.powers.tolist()
    together, alone = np.zeros(40, dtype=np.int64), np.stack(list(rows())[60:160])
    for row in alone:
        whole = parts.sums(row[np.newaxis], np.array([True]))
        assert all(found <= limit for found, limit in zip(size(whole, order), limits, strict=True))
        together += whole
    assert (parts.sums(alone, np.ones(len(alone), dtype=bool)) == together).all()


def test_records_within_and_beyond_each_bound_are_counted():
    gradients = np.zeros((4, 40), dtype=np.float32)
    gradients[:3, 0] = 0.5, 1.0, 2.0  # of C = 1
    gradients[3, 5] = np.nan
    parts = ClippedParts(STARTS, BOUNDS, GRID, 2)
    assert parts.sums_and_excess(gradients, np.ones(4, dtype=bool))[1].tolist() == [1, 3, 3]
    assert parts.sums_and_excess(gradients, np.arange(4) < 2)[1].tolist() == [2, 2, 2]
