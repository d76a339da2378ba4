"""Sums and sums of squares of clipped values: neighbours by force."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.sensitivity.bounds import FREE_L1, FREE_L2, clipped_moments
from tests._cases import each_value, quick

RATIOS = [0.1, FREE_L1, 0.8, np.sqrt(2.0), FREE_L2, 2.0, 30.0]


def changes(first, second, adjacency):
    """What one record does to the vector: grids of values in each of two columns, and corners."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-1.0, 1.0, size=(200_000, 2))
    grid = np.linspace(-1.0, 1.0, 401)
    # The worst pairs are alike in both columns, whose bounds are reached independently.
    before, after = (a.ravel() for a in np.meshgrid(grid, grid))
    u = np.vstack([u, np.column_stack([before, before])])
    if adjacency == "add_remove":
        old = np.zeros_like(u)
    else:
        old = np.vstack([rng.uniform(-1.0, 1.0, size=(200_000, 2)), np.column_stack([after] * 2)])
    return np.hstack([first * (u - old), second * (u**2 - old**2)])


@quick("replace_one-1.4142135623730951", "replace_one-2.0", "add_remove-0.5")
@each_value(1)
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_record_moves_moments_by_at_most_what_is_stated_and_by_no_less(ratio, adjacency):
    first = np.array([1.0, 3.0])
    profile = clipped_moments(first, ratio * first, adjacency)
    moved = np.abs(changes(first, ratio * first, adjacency))
    assert (moved.max(axis=0) <= profile.per_coordinate).all()
    np.testing.assert_allclose(moved.max(axis=0), profile.per_coordinate, rtol=1e-9)
    for stated, found in (
        (profile.l1, moved.sum(axis=1).max()),
        (profile.l2, np.linalg.norm(moved, axis=1).max()),
    ):
        if adjacency == "replace_one":
            assert 0.999 * stated < found <= stated
        else:
            assert stated is None  # the corner is reached


def test_squares_come_for_nothing_up_to_the_free_ratios_and_not_beyond():
    for free, name in ((FREE_L1, "l1"), (FREE_L2, "l2")):
        assert getattr(clipped_moments([1.0], [free]), name) == pytest.approx(2.0, rel=1e-9)
        assert getattr(clipped_moments([1.0], [1.01 * free]), name) > 2.0001 * (name == "l2")
    assert clipped_moments([1.0], [1.01 * FREE_L1]).l1 > 2.0


@pytest.mark.parametrize("second", [[0.0], [np.inf], [1.0, 1.0], [-1.0]])
def test_scales_that_are_not_positive_or_do_not_match_are_refused(second):
    with pytest.raises(ValueError, match=r"'second'.*positive finite numbers of shape \(1,\)"):
        clipped_moments([1.0], second)
    with pytest.raises(ValueError, match=r"'first'.*positive" if len(second) < 2 else "'second'"):
        clipped_moments(second, [1.0])
