"""The options of the solver: standardisation, order, intercept, start, stop, grid steps."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpnoise.kernels import SQUARED, coordinate_descent, threads
from tests.kernels._problems import (
    FINE,
    PLAIN,
    curvature,
    each_loss,
    last,
    problem,
    target_of,
)

# --- standardisation, order, intercept, start, stop -----------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", [PLAIN, FINE], ids=["plain", "private"])
@each_loss
def test_fused_standardisation_equals_standardising_first(loss, mode):
    X, y = problem()
    y = target_of(loss, y)
    center, scale, limit = np.array([0.1, 0.5, -0.2, 0.0]), np.array([1.5, 0.5, 2.0, 1.0]), 1.2
    Z = np.asfortranarray(np.clip((X - center) / scale, -limit, limit))
    assert (np.abs(Z) == limit).any()
    common = {"loss": loss, "n_passes": 15, "fit_intercept": True, "step": np.full(5, 0.5), **mode}
    fused = last(X, y, center=center, scale=scale, limit=limit, **common)
    assert_allclose(fused, last(Z, y, **common), atol=1e-9)
    # Each of the three may come alone.
    assert_allclose(last(X, y, limit=0.5, **common), last(np.clip(X, -0.5, 0.5), y, **common))
    each = np.array([0.5, 2.0, 0.1, 30.0])
    assert_allclose(last(X, y, limit=each, **common), last(np.clip(X, -each, each), y, **common))
    assert_allclose(last(X, y, center=center, **common), last(X - center, y, **common))
    assert_allclose(last(X, y, scale=2.0, **common), last(X / 2.0, y, **common))


def test_a_vanishing_scale_gives_the_limit_and_no_nan():
    X, y = problem(60, 2)
    X[:, 1] = 5.0
    common = {"n_passes": 10, "step": np.full(2, 0.1), "limit": 3.0}
    theta = last(X, y, center=[0.0, 5.0], scale=[1.0, 5e-324], **common, **FINE)
    assert theta[1] == 0.0
    assert np.isfinite(theta).all()


def test_the_order_of_the_coordinates_is_honoured_pass_by_pass():
    X, y = problem()
    order = np.array([[2, 0, 3, 1], [1, 3, 0, 2], [0, 1, 2, 3]])
    first = last(X, y, n_passes=1, order=order[:1], **FINE)
    permuted = last(np.asfortranarray(X[:, order[0]]), y, n_passes=1, **FINE)
    assert_array_equal(first[order[0]], permuted)
    paths = [last(X, y, n_passes=3, order=o, **FINE) for o in (order, order[::-1], None)]
    assert len({tuple(path) for path in paths}) == 3


@pytest.mark.slow
def test_a_virtual_intercept_equals_a_column_of_ones():
    X, y = problem()
    ones = np.asfortranarray(np.column_stack([X, np.ones(len(y))]))
    for mode in (FINE, PLAIN):
        virtual = last(X, y, n_passes=8, fit_intercept=True, **mode)
        assert_allclose(virtual, last(ones, y, n_passes=8, **mode), rtol=1e-13)


def test_a_start_continues_a_stopped_run():
    X, y = problem()
    whole = last(X, y, n_passes=9, **PLAIN)
    half = last(X, y, n_passes=5, **PLAIN)
    assert_allclose(last(X, y, n_passes=4, coef_init=half, **PLAIN), whole, rtol=1e-11)


def test_a_run_can_be_stopped_early_and_every_pass_is_a_copy(monkeypatch):
    monkeypatch.setattr(threads, "PER_THREAD", 10)
    X, y = problem()
    path = coordinate_descent(
        X, y, loss=SQUARED, n_passes=10**9, step=1 / curvature(X, False), n_threads=2
    )
    first = next(path)
    kept = first.copy()
    second = next(path)
    assert_array_equal(first, kept)
    assert not np.array_equal(first, second)
    path.close()
    with pytest.raises(StopIteration):
        next(path)


def test_passes_that_nobody_asks_for_take_no_memory():
    """The benchmark of passes asks for 10**9 of them, and takes a few."""
    X, y = np.eye(3), np.ones(3)
    terms = {"loss": SQUARED, "step": [1.0, 1.0, 1.0], "clip": 1.0, "grid_size": 1e-6}
    one, many = (next(coordinate_descent(X, y, n_passes=n, **terms)) for n in (1, 10**9))
    assert np.array_equal(one, many)


def test_no_pass_yields_nothing():
    X, y = problem()
    assert list(coordinate_descent(X, y, loss=SQUARED, n_passes=0, step=np.ones(4))) == []


# --- grid steps: shapes, zero, and what is refused ----------------------------------------------


def test_a_quantum_for_each_pass_is_used_in_its_pass():
    X, y = problem()
    coarse, fine = np.full(4, 0.5), np.full(4, 1e-6)
    common = {"n_passes": 2, "clip": 1.0}
    both = last(X, y, grid_size=np.stack([coarse, fine]), **common)
    first = last(X, y, n_passes=1, grid_size=coarse, clip=1.0)
    second = last(X, y, n_passes=1, grid_size=fine, clip=1.0, coef_init=first)
    assert_allclose(both, second, rtol=1e-12)
    assert not np.allclose(both, last(X, y, grid_size=coarse, **common))


def test_a_coordinate_with_neither_clip_nor_quantum_stays_where_it_is():
    X, y = problem()
    clip, grid_size = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1e-6, 0.0, 1e-6, 1e-6])
    theta = last(X, y, n_passes=5, clip=clip, grid_size=grid_size)
    assert theta[1] == 0.0
    assert np.all(theta[[0, 3]] != 0.0)


@pytest.mark.parametrize(
    ("clip", "grid_size"), [(1.0, 1e-300), (1.0, 0.0), (1.0, 2.0**-51), (2.0**50, 2.0**-1)]
)
def test_a_quantum_too_small_for_exact_sums_is_refused_by_name(clip, grid_size):
    X, y = problem(20, 2)
    with pytest.raises(
        ValueError, match=re.escape(f"grid_size={grid_size:g} is too small for clip=")
    ):
        last(X, y, n_passes=1, clip=clip, grid_size=grid_size)


def test_the_sum_of_many_rows_at_the_largest_bound_is_refused_before_it_overflows():
    X, y = np.ones((2**14, 1), order="F"), np.full(2**14, 1e30)
    with pytest.raises(ValueError, match="grid_size"):
        last(X, y, n_passes=1, clip=1.0, grid_size=2.0**-50)
    for grid_size in (2.0**-48, 2.0**-40):
        step = np.array([1.0 / 2**14])
        theta = last(X, y, n_passes=1, clip=1.0, grid_size=grid_size, n_samples=1.0, step=step)
        assert theta[0] == 1.0  # every record at the bound, and the sum exact


@pytest.mark.parametrize("given", [{"clip": 1.0}, {"grid_size": 1.0}])
def test_clip_and_quantum_come_together(given):
    X, y = problem(20, 2)
    with pytest.raises(ValueError, match="clip and grid_size must be given together"):
        last(X, y, n_passes=1, **given)


def test_every_sum_that_is_used_meets_its_noise_once_and_no_other_does():
    met = []

    def add(total, draw):
        met.append(draw)
        return total + draw

    noise = np.arange(1, 7).reshape(2, 3)
    X = np.random.default_rng(0).normal(size=(20, 2))
    settings = {"loss": SQUARED, "n_passes": 2, "step": 1.0, "fit_intercept": True}
    settings |= {"clip": 1.0, "grid_size": 1e-3, "noise": noise, "coef_init": [0.5, -1.0, 2.0]}
    noted = list(coordinate_descent(X, X[:, 0], add=add, **settings))
    assert met == noise.ravel().tolist()
    for one, other in zip(noted, coordinate_descent(X, X[:, 0], **settings), strict=True):
        assert (one == other).all()
