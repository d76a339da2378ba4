"""Clips by groups of columns: a product of balls by force, the global clip as its limit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from skdpnoise.kernels.joint import (
    SOFTMAX,
    Clip,
    GridRows,
    GroupedClip,
    clipped_gradient_sums,
    joint_descent,
)
from skdpnoise.kernels.joint import descent as module
from skdpnoise.kernels.losses import SQUARED
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss
from skdpnoise.sensitivity import GroupedProfile
from tests._cases import quick

RNG = np.random.default_rng(0)
N, P, K = 200, 5, 3
GROUPS = np.array([0, 1, 0, 2, 1, 2])  # the constant's last
NORMS, GRIDS = (0.2, 0.5, 0.3), (2.0**-32, 2.0**-30, 2.0**-31)
X = RNG.normal(size=(N, P)) * [1.0, 0.3, 2.0, 1.0, 0.1]
ONES = np.eye(K)[RNG.integers(K, size=N)]
COEF = RNG.normal(size=(K, P + 1))


def grouped(norms=NORMS, grids=GRIDS, joint=None):
    return GroupedClip(GROUPS, tuple(map(Clip, norms, grids)), joint)


def sums(table, targets, clip, **keywords):
    rows = GridRows(table, grid_size=2.0**-16, limit=8.0, constant=1.0, **keywords)
    return clipped_gradient_sums(rows, targets, COEF, loss=SOFTMAX, clip=clip)


def exact_norms(change, clip):
    """The squared norm of a change in each group and of all, in units of the user, as fractions."""
    units = [Fraction(one.grid_size) for one in clip.clips]
    by_group = [
        sum(int(v) ** 2 for v in change[:, number == GROUPS].ravel()) * unit**2
        for number, unit in enumerate(units)
    ]
    return by_group, sum(by_group)


@quick("0.55")
@pytest.mark.parametrize("joint", [None, 0.55, 0.1])
def test_what_a_record_adds_lies_in_a_product_of_balls(joint):
    clip, rng = grouped(joint=joint), np.random.default_rng(1)
    shares, jointly = np.zeros(3), 0.0
    for trial in range(400):
        row = rng.normal(size=(1, P)) * 10.0 ** rng.uniform(-3, 3, size=P)
        if trial % 5 == 0:
            row[0, rng.integers(P)] = rng.choice([1e300, -1e300, 0.0])
        target = 10.0 ** rng.uniform(-3, 3) * ONES[trial % N : trial % N + 1]
        by_group, whole = exact_norms(sums(row, target, clip), clip)
        for number, (square, norm) in enumerate(zip(by_group, NORMS, strict=True)):
            assert square <= Fraction(norm) ** 2
            shares[number] = max(shares[number], float(square) ** 0.5 / norm)
        assert joint is None or whole <= Fraction(joint) ** 2
        jointly = max(jointly, float(whole) ** 0.5)
    if joint is None:
        assert (shares > 0.999).all()
    else:
        assert jointly > 0.999 * joint


def test_replacing_a_record_moves_the_sums_as_the_profile_says():
    clip, rng = grouped(), np.random.default_rng(2)
    profile = GroupedProfile(2.0 * np.array(NORMS), np.tile(GROUPS, K))
    before, largest = None, np.zeros(3)
    for _ in range(200):
        table, targets = X.copy(), ONES.copy()
        table[17] = rng.normal(size=P) * 10.0 ** rng.uniform(-2, 3)
        targets[17] = 5.0 * rng.choice([-1.0, 1.0]) * np.eye(K)[rng.integers(K)]
        found = sums(table, targets, clip) * clip.unit
        if before is not None:
            change = (found - before).ravel()
            for number, bound in enumerate(profile.bounds):
                moved = np.linalg.norm(change[profile.members == number])
                assert moved <= bound * (1.0 + 1e-12)
                largest[number] = max(largest[number], moved / bound)
        before = found
    assert (largest > 0.9).all()


@quick("0.01-0.4")
@pytest.mark.parametrize("joint", [None, 0.4])
@pytest.mark.parametrize("careless", [1e-4, 1e-2])
def test_the_last_checks_hold_what_careless_factors_would_let_through(monkeypatch, careless, joint):
    monkeypatch.setattr(module, "_ROOM", 1.0 + careless)
    clip = grouped(joint=joint)
    for i in range(N):
        # Rows of one group are held by the joint bound alone where that is the smaller one.
        row = 3.0 * X[i : i + 1] * np.where((GROUPS[:-1] == 1) | (i % 2 == 0), 10.0, 1e-3)
        by_group, whole = exact_norms(sums(row, ONES[i : i + 1], clip), clip)
        assert all(one <= Fraction(norm) ** 2 for one, norm in zip(by_group, NORMS, strict=True))
        assert joint is None or whole <= Fraction(joint) ** 2


def test_one_group_is_the_global_clip_to_the_last_bit():
    one = GroupedClip(np.zeros(P + 1, dtype=int), (Clip(0.7, 2.0**-30),))
    np.testing.assert_array_equal(sums(X, ONES, one), sums(X, ONES, Clip(0.7, 2.0**-30)))


def test_what_is_within_all_bounds_is_the_plain_sum():
    wide = grouped(norms=(50.0, 60.0, 70.0), grids=(2.0**-37, 2.0**-38, 2.0**-36))
    plain = sums(X, ONES, None)
    np.testing.assert_allclose(sums(X, ONES, wide) * wide.unit, plain, atol=1e-5)
    joint = GroupedClip(wide.groups, wide.clips, 100.0)
    np.testing.assert_array_equal(sums(X, ONES, joint), sums(X, ONES, wide))


@pytest.mark.parametrize("joint", [None, 0.4])
@pytest.mark.parametrize("keywords", [{"block_rows": 1}, {"block_rows": 7}, {"sparse": True}])
def test_sums_are_the_same_bits_in_any_block_whether_sparse_or_not(joint, keywords):
    table = X * (RNG.random(X.shape) < 0.5)
    clip, keywords = grouped(joint=joint), dict(keywords)
    other = sparse.csr_array(table) if keywords.pop("sparse", False) else table
    np.testing.assert_array_equal(sums(other, ONES, clip, **keywords), sums(table, ONES, clip))


def test_sums_that_could_leave_the_integers_are_refused():
    with pytest.raises(ValueError, match=r"too small for norm=0.2 to 0.5"):
        sums(X, ONES, grouped(grids=(2.0**-62,) * 3))


def test_noise_differs_between_groups_and_passes_are_in_their_units():
    width, n_passes = 2.0, 4
    profile = GroupedProfile(width * np.array(NORMS), np.tile(GROUPS, K), joint=width * 0.55)
    mechanism = calibrate("inid_gaussian", profile, GaussianLoss(1.0), n_releases=n_passes)
    grids = mechanism.grid_size.reshape(K, P + 1)
    scales = mechanism.scale.reshape(K, P + 1)
    assert len(np.unique(scales)) > 1
    for number in range(3):
        assert len(np.unique(grids[:, number == GROUPS])) == 1
    by_group = [float(grids[0, number == GROUPS][0]) for number in range(3)]
    clip = grouped(grids=by_group, joint=0.55)
    rows = GridRows(X, grid_size=2.0**-16, limit=8.0, constant=1.0)
    noise = np.ones((n_passes, K, P + 1), dtype=np.int64)
    facts = {"loss": SOFTMAX, "n_outputs": K, "n_passes": n_passes, "step": 0.5}
    paths = [
        [*joint_descent(rows, ONES, **facts, clip=[clip] * n_passes, noise=some)]
        for some in (None, 2**30 * noise)
    ]
    first = (paths[0][0] - paths[1][0]) * N / 0.5
    np.testing.assert_allclose(first, np.tile(clip.unit * 2**30, (K, 1)), rtol=1e-9)


@pytest.mark.parametrize("bound", [1e-170, 1e-300, 1e150])
def test_a_joint_bound_whose_square_is_no_double_holds(bound):
    rng = np.random.default_rng(0)
    parts = Clip(bound, bound / 8), Clip(bound, bound / 8)
    clip = GroupedClip(np.array([0, 0, 1]), parts, bound)
    for _ in range(100):
        rows = GridRows(rng.normal(size=(1, 2)), grid_size=0.5, limit=3.0, constant=1.0)
        targets = 1e3 * max(bound, 1.0) * rng.normal(size=(1, 1))
        found = clipped_gradient_sums(rows, targets, np.zeros((1, 3)), loss=SQUARED, clip=clip)
        assert np.linalg.norm(found / 8.0) <= 1.0
        assert found.any()
