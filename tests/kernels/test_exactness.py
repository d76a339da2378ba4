"""The update equation in exact arithmetic, and the same bits however the work is divided."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpnoise.kernels import LOGISTIC, POISSON, SQUARED, coordinate_descent, threads
from tests._cases import each_value, every_pair, quick
from tests.kernels._problems import FINE, each_loss, last, problem, target_of

# --- the update equation, in exact integer arithmetic ---------------------------------------


SLOPES = {
    SQUARED: lambda s, y: s - y,
    LOGISTIC: lambda s, y: -y / (1.0 + np.exp(y * s)),
    POISSON: lambda s, y: np.exp(s) - y,
}


def reference(X, y, *, loss, order, noise, step, l1, l2, clip, grid_size, divisor, start):
    """The equations of the docstring row by row, with Python's integers."""
    n, K = X.shape
    theta, path, sums = [float(v) for v in start], [], []
    for t in range(len(order)):
        for j in order[t]:
            q, total = grid_size[t][j], 0
            c = round(clip[j] / q)
            for i in range(n):
                score = sum(X[i, k] * theta[k] for k in range(K))
                gradient = SLOPES[loss](score, y[i]) * X[i, j]
                total += int(np.rint(min(max(gradient / q, -c), c)))
            sums.append(total)
            v = theta[j] - step[j] * q * (total + int(noise[t][j])) / divisor
            soft = np.sign(v) * max(abs(v) - step[j] * l1[j], 0.0)
            theta[j] = float(soft / (1.0 + step[j] * l2[j]))
        path.append(list(theta))
    return np.array(path), sums


@pytest.mark.slow
@each_loss
def test_a_path_with_noise_order_and_penalties_follows_the_equation_exactly(loss):
    rng = np.random.default_rng(3)
    n, K, T = 23, 4, 6
    X, y = problem(n, K - 1)
    y = target_of(loss, y)
    order = np.array([rng.permutation(K) for _ in range(T)])
    noise = rng.integers(-40, 40, (T, K))
    parameters = {
        "step": np.array([0.3, 0.2, 0.9, 0.5]),
        "l1": np.array([0.05, 0.0, 0.01, 0.0]),
        "l2": np.array([0.0, 0.3, 0.02, 0.0]),
        "clip": np.array([0.7, 1.1, 0.4, 0.5]),
        "grid_size": rng.uniform(0.01, 0.03, (T, K)),
    }
    start = rng.standard_normal(K) / 4
    expected, sums = reference(
        np.column_stack([X, np.ones(n)]),
        y,
        loss=loss,
        order=order,
        noise=noise,
        divisor=20.5,
        start=start,
        **parameters,
    )
    path = coordinate_descent(
        X,
        y,
        loss=loss,
        n_passes=T,
        order=order,
        noise=noise,
        n_samples=20.5,
        coef_init=start,
        fit_intercept=True,
        **parameters,
    )
    assert len(set(sums)) > T  # the example is not trivial
    assert_allclose(np.array(list(path)), expected, rtol=0, atol=1e-12)


def integer_sums(X, y, grid_size, *, clip=1.0, loss=SQUARED, **keywords):
    """The integers of one pass whose steps are 0, so that the iterate stays where it starts."""
    K = X.shape[1]
    start = keywords.pop("coef_init", np.zeros(K))
    sums = []
    for j in range(K):
        step = np.zeros(K)
        step[j] = 1.0 / grid_size
        theta = next(
            coordinate_descent(
                X,
                y,
                loss=loss,
                n_passes=1,
                step=step,
                clip=clip,
                grid_size=grid_size,
                n_samples=1.0,
                coef_init=start,
                **keywords,
            )
        )
        sums.append(start[j] - theta[j])
    return np.array(sums)


@each_loss
def test_every_sum_is_an_integer_number_of_quanta(loss):
    X, y = problem()
    y = target_of(loss, y)
    sums = integer_sums(X, y, 2.0**-20, loss=loss)
    assert np.all(sums != 0)
    assert_array_equal(sums, np.rint(sums))


@quick("poisson")
@each_loss
def test_one_record_moves_a_sum_by_at_most_twice_the_bound_and_comes_close(loss):
    rng = np.random.default_rng(5)
    n, p, clip, grid_size = 6, 2, 0.3, 2.0**-12
    bound = 2 * np.rint(clip / grid_size)
    X, y = rng.standard_normal((n, p)), np.ones(n)
    changes = []
    for _ in range(300):
        sums = []
        for sign in (-1.0, 1.0):
            X[0] = rng.standard_normal(p) * 10.0 ** rng.integers(-2, 200 if sign > 0 else 3)
            y[0] = rng.choice([-1.0, 1.0])
            sums.append(integer_sums(X, y, grid_size, clip=clip, loss=loss))
        changes.append(np.abs(sums[0] - sums[1]))
    largest = np.max(changes)
    assert 0.99 * bound <= largest <= bound


@each_value(1)
@pytest.mark.parametrize("beyond", [-1e-3, -1e-16, 0.0, 3e-16, 1e-6, 1e-3, 0.005, 0.02, 0.5])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_record_just_beyond_the_clip_adds_the_bound_and_no_more(beyond, sign):
    clip, grid_size = 0.3, 2.0**-20
    value = clip * (1.0 + beyond)
    (found,) = integer_sums(np.ones((1, 1)), np.array([sign * value]), grid_size, clip=clip)
    assert abs(found) == np.rint(min(value, clip) / grid_size)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_record_whose_score_overflows_still_adds_at_most_the_bound(fit_intercept):
    X, y = problem(50, 2)
    X[7] = [1e308, -1e308]
    path = coordinate_descent(
        X,
        y,
        loss=SQUARED,
        n_passes=5,
        step=np.full(2 + fit_intercept, 1e3),
        clip=1.0,
        grid_size=2.0**-10,
        fit_intercept=fit_intercept,
    )
    moved = np.abs(np.diff(np.array(list(path)), axis=0, prepend=0.0))
    assert np.all(moved <= 1e3)  # step * C, as if every record were clipped


def test_noise_moves_one_update_by_step_times_quantum_over_the_divisor():
    X, y = problem()
    common = {"loss": SQUARED, "n_passes": 1, "step": np.full(4, 0.25), **FINE}
    quiet = next(coordinate_descent(X, y, **common))
    noise = np.array([[0, 0, 0, 12_345_678_901]])
    noisy = next(coordinate_descent(X, y, noise=noise, n_samples=100.0, **common))
    quiet_100 = next(coordinate_descent(X, y, n_samples=100.0, **common))
    assert not np.allclose(quiet, quiet_100)
    assert_allclose(quiet_100 - noisy, [0, 0, 0, 0.25 * 1e-8 * 12_345_678_901 / 100], atol=1e-13)


# --- the same answer however the work is divided --------------------------------------------


@quick("squared-float32-standardised")
@every_pair
@pytest.mark.parametrize("standardise", [False, True], ids=["raw", "standardised"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_loss
def test_threads_layout_and_blocks_do_not_change_one_bit(loss, dtype, standardise, monkeypatch):
    monkeypatch.setattr(threads, "PER_THREAD", 10)
    n = 1237
    X, y = problem(n, dtype=dtype)
    y = target_of(loss, y)
    rng = np.random.default_rng(1)
    keywords = {
        "noise": rng.integers(-(10**6), 10**6, (3, 5)),
        "clip": 0.4,
        "grid_size": 1e-7,
        "n_passes": 3,
        "fit_intercept": True,
        "step": np.array([0.5, 0.2, 1.0, 0.5, 0.8]),
    }
    if standardise:
        keywords |= {"center": X.mean(axis=0), "scale": X.std(axis=0), "limit": 1.5}
    expected = last(X, y, loss=loss, **keywords)
    divided = [
        last(np.asarray(X, order=layout), y, loss=loss, n_threads=n_threads, **keywords, **blocks)
        for layout in "CF"
        for n_threads in (1, 2, 3)
        for blocks in ({}, *({"block_rows": rows} for rows in (1, 7, 1000, n, 10 * n)))
    ]
    for theta in divided:
        assert_array_equal(theta, expected)


def test_a_strided_or_read_only_or_integer_array_gives_the_same_answer():
    X, y = problem(200)
    X = np.asfortranarray(np.rint(X * 4))
    expected = last(X, y, **FINE)
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    frozen = X.copy(order="F")
    frozen.flags.writeable = False
    for same in (wide, frozen, X.astype(np.int64)):
        assert_array_equal(last(same, y, fit_intercept=False, **FINE), expected)
    assert np.isfinite(last(frozen, y, fit_intercept=True, **FINE)).all()


def test_the_plain_sum_does_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(threads, "PER_THREAD", 10)
    X, y = problem(1237)
    one, two = (last(X, y, n_passes=5, block_rows=64, n_threads=k) for k in (1, 2))
    assert_array_equal(one, two)
    assert_allclose(last(X, y, n_passes=5, block_rows=7), one, rtol=1e-12)


@pytest.mark.slow
@each_loss
def test_single_precision_features_give_nearly_the_same_answer(loss):
    X, y = problem()
    y = target_of(loss, y)
    single, double = (last(X.astype(d), y, loss=loss, n_passes=20, **FINE) for d in ("f4", "f8"))
    assert not np.array_equal(single, double)
    assert_allclose(single, double, atol=1e-6)


def test_inputs_are_left_as_they_were():
    X, y = problem()
    before = X.copy(), y.copy()
    last(X, y, n_passes=3, fit_intercept=True, **FINE)
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])
