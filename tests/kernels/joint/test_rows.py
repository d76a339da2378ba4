"""Parts of rows in groups of columns: held to the norm 1, the same bits everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from skdpnoise.kernels.joint import GridRows, hold_parts
from skdpnoise.kernels.joint import descent as module
from tests._cases import each_value

RNG = np.random.default_rng(0)
GROUPS = (np.arange(10), np.arange(12, 37))
WIDE = RNG.normal(size=(400, 40)) * (RNG.random((400, 40)) < 0.3)
WIDE *= 10.0 ** RNG.integers(-3, 4, size=(400, 1))
WIDE[:50, :10] = RNG.normal(size=(50, 10))
WIDE[:50, :10] /= np.linalg.norm(WIDE[:50, :10], axis=1, keepdims=True)


def numbers(groups):
    found = np.full(WIDE.shape[1], -1)
    for number, columns in enumerate(groups):
        found[columns] = number
    return found


def integers(table, bits, groups=GROUPS, **keywords):
    keywords = {"limit": 1.0, "constant": 1.0} | keywords
    rows = GridRows(table, grid_size=2.0**-bits, groups=numbers(groups), **keywords)
    found = [block.integers for block in rows.blocks()]
    return np.concatenate([one if isinstance(one, np.ndarray) else one.toarray() for one in found])


def test_parts_are_scaled_down_to_the_norm_one_and_keep_their_direction():
    held = WIDE.copy()
    hold_parts(held, GROUPS)
    for columns in GROUPS:
        norms = np.linalg.norm(WIDE[:, columns], axis=1, keepdims=True)
        np.testing.assert_allclose(held[:, columns] * np.maximum(norms, 1.0), WIDE[:, columns])
    others = [10, 11, 37, 38, 39]
    np.testing.assert_array_equal(held[:, others], WIDE[:, others])
    np.testing.assert_allclose(integers(WIDE, 19)[:, GROUPS[0]], held[:, GROUPS[0]] * 2**19, atol=2)
    within = WIDE.copy() * 1e-9
    hold_parts(within, GROUPS)
    np.testing.assert_array_equal(within, WIDE * 1e-9)


@each_value(2)
@pytest.mark.slow
@pytest.mark.parametrize("bits", [2, 9, 19])
@pytest.mark.parametrize("block_rows", [1, 7, None])
def test_a_row_is_the_same_bits_whether_sparse_or_not_and_in_any_block(bits, block_rows):
    whole = integers(WIDE, bits)
    for table in (sparse.csr_array(WIDE), np.asfortranarray(WIDE), WIDE[:, ::-1][:, ::-1]):
        np.testing.assert_array_equal(integers(table, bits, block_rows=block_rows), whole)
    alone = np.concatenate([integers(WIDE[i : i + 1], bits) for i in range(60)])
    np.testing.assert_array_equal(alone, whole[:60])


@pytest.mark.parametrize("bits", [1, 2, 5, 9, 19])
def test_no_part_of_integers_is_longer_than_one_and_some_come_close(bits):
    table = np.vstack([WIDE, np.full((1, 40), 1e300), np.eye(40), -np.eye(40)])
    whole = integers(table, bits)
    most = 4**bits
    for columns in GROUPS:
        squares = [sum(int(k) ** 2 for k in row) for row in whole[:, columns]]
        assert max(squares) == most
        assert sorted(squares)[len(squares) // 2] > 0.3 * most or bits < 5
    rows = GridRows(table, grid_size=2.0**-bits, limit=1.0, constant=1.0, groups=numbers(GROUPS))
    norms = np.sqrt((whole**2).sum(axis=1) + rows.constant**2)
    assert 0.5 * rows.largest_norm < norms.max() <= rows.largest_norm


def test_what_careless_factors_let_through_counts_as_nothing(monkeypatch):
    monkeypatch.setattr(module, "_ROOM", 1.5)
    whole = integers(WIDE, 9)
    for columns in GROUPS:
        assert (whole[:, columns] ** 2).sum(axis=1).max() <= 4**9
