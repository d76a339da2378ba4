"""Joint descent: the ordinary model in the limit, one record's bound by force, the same bits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from skdpnoise.kernels import LOGISTIC, POISSON, SQUARED
from skdpnoise.kernels.joint import SOFTMAX, Clip, GridRows, clipped_gradient_sums, joint_descent
from skdpnoise.kernels.joint import descent as module
from tests._cases import each_value

RNG = np.random.default_rng(0)
N, P, K = 300, 4, 3
X = RNG.normal(size=(N, P)) * [1.0, 0.3, 2.0, 1.0] + [0.0, 1.0, 0.0, 0.0]
LABELS = np.argmax(X[:, :K] + RNG.gumbel(size=(N, K)), axis=1)
ONES = np.eye(K)[LABELS]
CLIP = Clip(0.7, 2.0**-30)


def on_grid(table=X, bits=16, **keywords):
    keywords = {"limit": 8.0, "constant": 1.0} | keywords
    return GridRows(table, grid_size=2.0**-bits, **keywords)


def sums(rows, targets=ONES, coef=None, **keywords):
    coef = np.random.default_rng(1).normal(size=(K, P + 1)) if coef is None else coef
    keywords = {"loss": SOFTMAX, "clip": CLIP} | keywords
    return clipped_gradient_sums(rows, targets, coef, **keywords)


def last(rows, targets, **keywords):
    *_, coef = joint_descent(rows, targets, n_outputs=targets.shape[1], **keywords)
    return coef


GRIDS = {"no rounding": None, "26 bits": Clip(64.0, 2.0**-42)}


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS)
def test_without_noise_and_clip_it_is_the_ordinary_multinomial_model(grid):
    alpha = 1e-2
    model = LogisticRegression(C=1.0 / (alpha * N), tol=1e-12, max_iter=10_000).fit(X, LABELS)
    clip = None if GRIDS[grid] is None else [GRIDS[grid]] * 3000
    l2 = alpha * np.array([1.0] * P + [0.0])
    rows = on_grid(bits=21, block_rows=32)
    coef = last(rows, ONES, loss=SOFTMAX, n_passes=3000, step=0.2, l2=l2, clip=clip)
    np.testing.assert_allclose(coef[:, :-1], model.coef_, atol=1e-6)
    intercepts = coef[:, -1] - coef[:, -1].mean()
    np.testing.assert_allclose(intercepts, model.intercept_ - model.intercept_.mean(), atol=1e-6)


@pytest.mark.slow
def test_other_losses_are_the_ordinary_models_too():
    keywords = {"n_passes": 4000, "step": 0.05, "l2": 1e-2 * np.array([1.0] * P + [0.0])}
    target = X @ [1.0, 2.0, 0.0, -1.0] + RNG.normal(size=N)
    found = last(on_grid(bits=21), target[:, None], loss=SQUARED, **keywords)[0]
    ridge = Ridge(alpha=1e-2 * N).fit(X, target)
    np.testing.assert_allclose(found, [*ridge.coef_, ridge.intercept_], atol=1e-5)
    counts = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.2))
    found = last(on_grid(bits=21), counts[:, None].astype(float), loss=POISSON, **keywords)[0]
    poisson = PoissonRegressor(alpha=1e-2, tol=1e-12, max_iter=10_000).fit(X, counts)
    np.testing.assert_allclose(found, [*poisson.coef_, poisson.intercept_], atol=1e-5)
    one = (LABELS == 2).astype(float)[:, None]
    found = last(on_grid(bits=21), one, loss=LOGISTIC, **keywords)[0]
    logistic = LogisticRegression(C=100.0 / N, tol=1e-12, max_iter=10_000).fit(X, one[:, 0])
    np.testing.assert_allclose(found, [*logistic.coef_[0], *logistic.intercept_], atol=1e-5)


@pytest.mark.parametrize("clip", [CLIP, None])
def test_a_row_adds_what_it_adds_alone(clip):
    rows = on_grid(X, center=0.25, scale=1.5)
    alone = [
        sums(on_grid(X[i : i + 1], center=0.25, scale=1.5), ONES[i : i + 1], clip=clip)
        for i in range(N)
    ]
    if clip is None:
        np.testing.assert_allclose(sums(rows, clip=clip), np.sum(alone, axis=0), rtol=1e-9)
    else:
        np.testing.assert_array_equal(sums(rows, clip=clip), np.sum(alone, axis=0))


def test_scores_of_wide_rows_are_exact_and_the_same_bits_in_any_block():
    rng = np.random.default_rng(7)
    table, coef, met = rng.normal(size=(64, 500)), rng.normal(size=(K, 501)), []

    def link(scores):
        met.append(scores.copy())
        return scores

    for block_rows in (1, 5, 64):
        rows, loss = on_grid(table, block_rows=block_rows), replace(SOFTMAX, link=link)
        sums(rows, ONES[:64], coef=coef, loss=loss, clip=None)
    whole = met.pop()
    np.testing.assert_array_equal(np.concatenate(met[:64]), whole)
    np.testing.assert_array_equal(np.concatenate(met[64:]), whole)
    rows = on_grid(table)
    (block,) = rows.blocks()
    model, unit = module._on_grid(coef, rows.largest_norm, rows.grid_size)
    exact = [
        [sum(int(a) * int(b) for a, b in zip([*k, block.constant], w, strict=True)) for w in model]
        for k in block.integers
    ]
    np.testing.assert_array_equal(whole, np.array(exact, dtype=float) * unit)
    np.testing.assert_allclose(whole, table @ coef[:, :-1].T + coef[:, -1], atol=1e-3)


@each_value(2)
@pytest.mark.parametrize("block_rows", [1, 7, 64, 299, 1000])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "shuffled"])
def test_sums_are_the_same_bits_in_any_block_order_and_layout(block_rows, layout):
    table, targets = X, ONES
    if layout == "F":
        table = np.asfortranarray(X)
    if layout == "strided":
        table = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    if layout == "shuffled":
        order = np.random.default_rng(2).permutation(N)
        table, targets = X[order], ONES[order]
    found = sums(on_grid(table, block_rows=block_rows), targets)
    np.testing.assert_array_equal(found, sums(on_grid()))


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr("skdpnoise.kernels.threads.PER_THREAD", 50)
    rows = on_grid(block_rows=16)
    np.testing.assert_array_equal(sums(rows, n_threads=4), sums(on_grid()))
    np.testing.assert_array_equal(sums(rows, n_threads=3), sums(on_grid()))


def test_rows_that_are_kept_are_those_that_are_rounded_anew():
    rows = on_grid(block_rows=50)
    first = sums(rows)
    assert len(rows._kept) == 6
    np.testing.assert_array_equal(sums(rows), first)
    fine = on_grid(X, bits=21, limit=15.0, block_rows=50)  # beyond single precision
    np.testing.assert_array_equal(sums(fine, clip=None), sums(fine, clip=None))

    class Full(dict):
        def __setitem__(self, *_):
            raise MemoryError

    short = on_grid(block_rows=50)
    short._kept = Full()
    np.testing.assert_array_equal(sums(short), first)
    assert short._kept is None
    np.testing.assert_array_equal(sums(short), first)


def test_a_large_mapped_file_is_not_kept(monkeypatch, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    monkeypatch.setattr("skdpnoise.kernels.joint.descent.LARGE_FILE", X.nbytes - 1)
    rows = on_grid(mapped)
    np.testing.assert_array_equal(sums(rows), sums(on_grid()))
    assert rows._kept is None


def test_sparse_rows_are_the_dense_ones_and_stay_sparse():
    table = np.where(RNG.uniform(size=X.shape) < 0.3, X, 0.0)
    compressed = sparse.csr_array(table)
    compressed.toarray = compressed.todense = None  # nobody may make it dense
    for block_rows in (None, 32):
        found = sums(on_grid(compressed, scale=0.5, block_rows=block_rows))
        np.testing.assert_array_equal(found, sums(on_grid(table, scale=0.5)))
    stored = np.repeat(0.5 * compressed.data, 2), np.repeat(compressed.indices, 2)
    twice = sparse.csr_array((*stored, 2 * compressed.indptr), shape=table.shape)
    np.testing.assert_array_equal(sums(on_grid(twice)), sums(on_grid(table)))
    with pytest.raises(ValueError, match="centre 0"):
        on_grid(compressed, center=0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_other_types_are_read_as_their_values(dtype):
    table = np.rint(10.0 * X).astype(dtype)
    rows = on_grid(table, limit=64.0)
    np.testing.assert_array_equal(sums(rows), sums(on_grid(table.astype(float), limit=64.0)))


def adversarial_rows(rng, n, p):
    """Rows and scores for which rounding matters: ties, tiny and huge entries, unequal norms."""
    table = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-6, 3, size=(n, 1))
    table[::5] = rng.integers(-3, 4, size=(len(table[::5]), p)) / 2.0
    table[::7] = 0.0
    table[1::11] = 1e6
    return table


def squared_norms(rows, slopes_of, clip):
    """|k|^2 |m|^2 in Python's integers, row by row."""
    found = []
    for block in rows.blocks():
        whole = slopes_of(block, clip)
        assert (whole == np.rint(whole)).all()
        for k, m in zip(block.integers, whole, strict=True):
            left = sum(int(v) ** 2 for v in k) + int(block.constant) ** 2
            found.append(left * sum(int(v) ** 2 for v in m))
    return found


@each_value(2)
@pytest.mark.parametrize("n_outputs", [1, 3, 40])
@pytest.mark.parametrize("steps", [3.0, 2.0**9 + 0.3, 2.0**24, 1e9])
def test_no_record_is_beyond_the_bound_and_many_come_close(n_outputs, steps):
    rng = np.random.default_rng(int(steps) + n_outputs)
    rows = GridRows(
        adversarial_rows(rng, 400, 5), grid_size=2.0**-8, limit=64.0, constant=0.5, block_rows=50
    )
    clip = Clip(0.3, 0.3 / steps)
    bound = (Fraction(clip.norm) / Fraction(clip.grid_size)) ** 2

    def whole(block, clip):
        slopes = rng.normal(size=(len(block.integers), n_outputs))
        slopes *= 10.0 ** rng.uniform(-12, 6, size=(len(slopes), 1))
        return module._clipped(slopes, block.squares, rows.grid_size, clip)

    found = squared_norms(rows, whole, clip)
    assert max(found) <= bound
    if steps > 1e6:
        assert sum(one > 0.999 * bound for one in found) > 50


def test_rows_are_shortened_alike_where_slopes_count_as_longer():
    # Of ±.3 and ±.7 all count as .7: what a row adds is in proportion to its slopes.
    rng = np.random.default_rng(5)
    rows = GridRows(rng.normal(size=(400, 5)), grid_size=2.0**-12, limit=8.0, constant=1.0)
    slopes = rng.choice([-0.7, -0.3, 0.3, 0.7], size=(400, 1))
    for least in (0.0, 0.7, 5.0):
        clip = Clip(0.5, 2.0**-30, least)
        (block,) = rows.blocks()
        whole = module._clipped(slopes, block.squares, rows.grid_size, clip)
        norms = np.sqrt(block.squares) * rows.grid_size
        sizes = np.maximum(np.abs(slopes[:, 0]), least)
        expected = slopes[:, 0] * np.minimum(1.0, 0.5 / (norms * sizes))
        step = clip.grid_size / rows.grid_size
        np.testing.assert_allclose(whole[:, 0] * step, expected, atol=2.0 * step)
        added = squared_norms(rows, lambda _, __, whole=whole: whole, clip)
        assert max(added) <= clip.largest**2


@pytest.mark.parametrize("careless", [1e-4, 3e-5])
def test_the_last_check_holds_what_a_careless_factor_would_let_through(monkeypatch, careless):
    # The margin makes the check idle; without it, the check alone must hold the bound.

    monkeypatch.setattr(module, "_ROOM", 1.0 + careless)
    rng = np.random.default_rng(3)
    rows = GridRows(rng.normal(size=(500, 5)), grid_size=2.0**-12, limit=8.0)
    clip = Clip(1.0, 2.0**-30)

    def whole(block, clip):
        slopes = rng.normal(size=(len(block.integers), 3))
        return module._clipped(slopes, block.squares, rows.grid_size, clip)

    found = squared_norms(rows, whole, clip)
    assert max(found) <= 2**60
    assert found.count(0) > 100


def test_replacing_a_record_moves_the_sums_by_twice_the_bound_at_most():
    rows, rng = on_grid(), np.random.default_rng(4)
    coef, before = rng.normal(size=(K, P + 1)), None
    moved = []
    for _ in range(200):
        table, targets = X.copy(), ONES.copy()
        table[17] = rng.normal(size=P) * 10.0 ** rng.uniform(-3, 3)
        targets[17] = np.eye(K)[rng.integers(K)]
        found = sums(on_grid(table), targets, coef=coef)
        if before is not None:
            moved.append(sum(int(v) ** 2 for v in (found - before).ravel()))
        before = found
    most = Fraction(2 * Fraction(CLIP.norm) / Fraction(CLIP.grid_size)) ** 2
    assert max(moved) <= most
    assert max(moved) > 0.9 * most
    assert rows.n_rows == N


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_whatever_a_row_holds_it_adds_no_more_than_the_bound(value):
    table = X.copy()
    table[3, 1] = value
    for some in (ONES, np.where(np.arange(N)[:, None] == 5, value, ONES)):
        found = sums(on_grid(table), some, loss=SQUARED)
        others = np.delete(np.arange(N), [3, 5])
        rest = sums(on_grid(X[others]), ONES[others], loss=SQUARED)
        moved = sum(int(v) ** 2 for v in (found - rest).ravel())
        assert moved <= Fraction(2 * Fraction(CLIP.norm) / Fraction(CLIP.grid_size)) ** 2


@pytest.mark.parametrize("clip", [Clip(0.7, 2.0**-40), None])
def test_weights_multiply_what_is_clipped_already(clip):
    rows, weights = on_grid(), np.random.default_rng(5).choice([0.0, 0.25, 0.5, 1.0], N)
    found = sums(rows, clip=clip, weights=weights)
    alone = [weights[i] * sums(on_grid(X[i : i + 1]), ONES[i : i + 1], clip=clip) for i in range(N)]
    unit = 1.0 if clip is None else clip.grid_size
    np.testing.assert_allclose(found * unit, np.sum(alone, axis=0) * unit, atol=1e-4)
    whole = sums(rows, clip=clip, weights=np.ones(N))
    np.testing.assert_array_equal(whole, sums(rows, clip=clip))
    for i in range(20) if clip else ():
        one = sums(on_grid(X[i : i + 1]), ONES[i : i + 1], weights=weights[i : i + 1])
        room = 2.0**19 * np.sqrt(K)  # of a row of integers times half a unit of each slope
        assert np.linalg.norm(one.astype(float)) <= weights[i] * CLIP.largest + room


def test_rounding_does_not_bias_what_is_not_clipped():
    clip, rows = Clip(100.0, 2.0**-22), on_grid(block_rows=50)  # slopes in steps of 2**-6
    off = sums(rows, clip=clip) * clip.grid_size - sums(rows, clip=None)
    table = np.column_stack([X, np.ones(N)])
    deviation = 2.0**-6 / np.sqrt(12.0) * np.linalg.norm(table, axis=0)
    assert np.abs(off / deviation).max() < 6.2  # a false alarm of 1e-9 for each of 15 numbers
    assert np.abs(off / deviation).max() > 0.3


def test_sums_that_could_leave_the_integers_are_refused():
    with pytest.raises(ValueError, match="could leave 64 bits"):
        sums(on_grid(block_rows=1), clip=Clip(1.0, 2.0**-56))
    with pytest.raises(ValueError, match="would not be exact"):
        sums(on_grid(block_rows=300), clip=Clip(1.0, 2.0**-50))
    with pytest.raises(ValueError, match="power of two"):
        GridRows(X, grid_size=0.3, limit=1.0)
    with pytest.raises(ValueError, match="squared norms are exact"):
        on_grid(bits=24)


def test_noise_is_added_in_units_of_the_grid_and_the_same_noise_gives_the_same_path():
    rng = np.random.default_rng(5)
    noise = rng.integers(-(2**30), 2**30, size=(4, K, P + 1))
    clips = [Clip(0.7, 2.0**-28), Clip(0.7, 2.0**-29), CLIP, CLIP]
    keywords = {"loss": SOFTMAX, "n_passes": 4, "step": 0.3, "clip": clips, "noise": noise}
    one = [*joint_descent(on_grid(), ONES, n_outputs=K, **keywords)]
    rows = on_grid(block_rows=13)
    two = [*joint_descent(rows, ONES, n_outputs=K, n_samples=N, **keywords)]
    np.testing.assert_array_equal(one, two)
    start = np.zeros((K, P + 1))
    exact = sums(on_grid(), coef=start, clip=clips[0]) + noise[0]
    np.testing.assert_array_equal(one[0], start - 0.3 * (exact * 2.0**-28 / N))
    silent = last(on_grid(), ONES, **(keywords | {"noise": None}))
    assert np.abs(silent - one[-1]).max() > 1e-3


def test_an_adder_meets_every_sum_once():
    met = []

    def add(integers, draws):
        met.append((integers.copy(), draws))
        return integers + draws

    noise = np.ones((3, K, P + 1), dtype=np.int64)
    last(on_grid(), ONES, loss=SOFTMAX, n_passes=3, step=0.1, clip=[CLIP] * 3, noise=noise, add=add)
    assert len(met) == 3
    assert all(integers.dtype == np.int64 for integers, _ in met)


def test_a_large_lasso_penalty_leaves_the_intercept_alone():
    l1 = np.array([10.0] * P + [0.0])
    coef = last(on_grid(), ONES, loss=SOFTMAX, n_passes=400, step=0.2, l1=l1)
    assert (coef[:, :-1] == 0.0).all()
    shares = np.exp(coef[:, -1]) / np.exp(coef[:, -1]).sum()
    np.testing.assert_allclose(shares, ONES.mean(axis=0), atol=1e-6)


def test_it_goes_on_where_it_is_told_to_start():
    start = np.random.default_rng(6).normal(size=(K, P + 1))
    found = last(on_grid(), ONES, loss=SOFTMAX, n_passes=1, step=0.1, momentum=0.0, coef_init=start)
    expected = start - 0.1 * sums(on_grid(), coef=start, clip=None) / N
    np.testing.assert_allclose(found, expected, rtol=1e-12)
