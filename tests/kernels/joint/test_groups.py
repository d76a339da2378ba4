"""Parts of rows in groups of columns are held to the norm 1, on the integers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from skdpnoise.kernels.joint import Clip, GridRows, GroupedClip, clipped_gradient_sums
from skdpnoise.kernels.joint.descent import SparseParts
from skdpnoise.kernels.losses import SQUARED

GROUPS = np.array([0, 0, 0, -1, 1, 1])
GRID = 2.0**-12


def made(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, 1.0, -1.0, 0.3, 1e-3, 1e100, -1e100], size=(n, 6))
    X[:40] = 0.0
    X[np.arange(40), rng.integers(3, size=40)] = 1.0
    # Norms of 1 and a few ulps beside.
    X[40:60, :3] = rng.normal(size=(20, 3))
    X[40:60, :3] /= np.linalg.norm(X[40:60, :3], axis=1)[:, np.newaxis]
    X[40:60, :3] *= 1.0 + 2.0**-52 * rng.integers(-4, 5, size=(20, 1))
    return X


def integers(X, **options):
    settings = {"grid_size": GRID, "limit": 1.0, "constant": 1.0, "groups": GROUPS} | options
    blocks = [block.integers for block in GridRows(X, **settings).blocks()]
    return np.concatenate([b if isinstance(b, np.ndarray) else b.toarray() for b in blocks])


@pytest.mark.parametrize("sparse", [False, True])
def test_no_part_is_longer_and_parts_within_stay_as_they_are(sparse):
    X = made()
    whole = integers(csr_array(X) if sparse else X)
    for group in (0, 1):
        squares = (whole[:, group == GROUPS] ** 2).sum(axis=1)
        assert squares.max() <= (1.0 / GRID) ** 2
        assert squares.max() > (0.99 / GRID) ** 2
    np.testing.assert_array_equal(whole[:40], X[:40] / GRID)
    np.testing.assert_array_equal(whole[:, 3], np.rint(np.clip(X[:, 3], -1.0, 1.0) / GRID))


def test_longer_parts_keep_their_direction():
    whole = integers(np.array([[3.0, -3.0, 0.0, 9.0, 4.0, 4.0]]), limit=10.0)
    np.testing.assert_allclose(whole[0, :3] * GRID, [0.5**0.5, -(0.5**0.5), 0.0], atol=2 * GRID)
    assert whole[0, 3] == 9.0 / GRID


def test_centres_of_groups_are_subtracted_last():
    center = np.array([0.25, 0.5, 0.25, 0.0, 0.0, 0.0])
    X = made()
    moved = integers(X, center=center, limit=2.0)
    np.testing.assert_array_equal(moved + np.rint(center / GRID), integers(X, limit=2.0))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("block_rows", [1, 7, 64])
def test_a_row_is_the_same_in_any_block(sparse, block_rows):
    X = csr_array(made()) if sparse else made()
    np.testing.assert_array_equal(integers(X, block_rows=block_rows), integers(X))


def test_no_row_exceeds_the_largest_norm_and_scales_of_groups_are_one():
    center = np.array([0.25, 0.5, 0.25, 0.0, 0.0, 0.0])
    rows = GridRows(made(), grid_size=GRID, limit=1.0, center=center, constant=1.0, groups=GROUPS)
    for block in rows.blocks():
        assert np.sqrt(block.squares.max()) <= rows.largest_norm
    with pytest.raises(ValueError, match="scale 1"):
        GridRows(made(), grid_size=GRID, limit=1.0, scale=2.0, groups=GROUPS)


def ones(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 46))
    X[:, :2] = rng.normal(size=(n, 2))
    X[np.arange(n), rng.integers(2, 24, size=n)] = 1.0
    X[np.arange(n), rng.integers(24, 46, size=n)] = 1.0
    X[:100, 3:9] = rng.normal(size=(100, 6))  # no ones
    X[100:200] = 0.0
    return X


OF_ONES = np.repeat([-1, 0, 1], [2, 22, 22])
CLIP = Clip(1.0, 2.0**-30)
OF_PARTS = GroupedClip(np.repeat([0, 1], [20, 27]), (CLIP, Clip(2.0, 2.0**-29)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_rows_of_ones_are_kept_sparse_and_their_sums_are_the_same_bits(
    monkeypatch, order, n_outputs
):
    rng = np.random.default_rng(2)
    X, coef = np.asarray(ones(), order=order), rng.normal(size=(n_outputs, 47))
    y = rng.normal(size=(len(X), n_outputs))
    center = np.where(OF_ONES >= 0, rng.uniform(-0.1, 0.1, 46), 0.5)
    facts = {"grid_size": GRID, "limit": 3.0, "center": center, "groups": OF_ONES}
    # Without a constant, sums of what is stored could be larger than a gradient.
    assert all(isinstance(one.integers, np.ndarray) for one in GridRows(X, **facts).blocks())
    found = []
    for sparse in (True, False):
        if not sparse:
            monkeypatch.setattr(GridRows, "_has_sparse_parts", lambda *_: False)
        rows = GridRows(X, constant=1.0, **facts)
        total = [
            clipped_gradient_sums(rows, y, coef, loss=SQUARED, clip=clip)
            for clip in (CLIP, CLIP, OF_PARTS)  # of which rows are kept from the first on
        ]
        blocks = [*rows.blocks()]
        assert isinstance(blocks[0].integers, SparseParts) == sparse
        tables = [b.integers.toarray() if sparse else b.integers for b in blocks]
        squares = np.concatenate([block.squares for block in blocks])
        found.append((total, np.concatenate(tables), squares))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
