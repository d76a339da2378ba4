"""The solver against scikit-learn, against slow exact arithmetic, and against itself."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge

from skdpnoise.solvers import coordinate_descent

PLAIN = {"clip": None, "quantum": None}
FINE = {"clip": 1e5, "quantum": 1e-8}  # a huge clip in tiny steps: nothing is clipped


def problem(n=300, p=4, seed=0, dtype=np.float64, layout="F"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * [1.0, 2.0, 0.5, 1.0][:p] + 0.3
    y = X @ [1.0, -0.5, 0.0, 0.7][:p] + 0.8 + 0.5 * rng.standard_normal(n)
    return np.asarray(X, dtype=dtype, order=layout), y


def labels(y):
    return np.where(y + np.sin(7 * y) > 0.5, 1.0, -1.0)


def curvature(X, intercept):
    M = np.mean(np.asarray(X, dtype=float) ** 2, axis=0)
    return np.append(M, 1.0) if intercept else M


def last(X, y, *, loss="squared", n_passes=400, fit_intercept=False, **keywords):
    smoothness = curvature(X, fit_intercept) * (1.0 if loss == "squared" else 0.25)
    keywords.setdefault("step", 1.0 / smoothness)
    *_, theta = coordinate_descent(
        X, y, loss=loss, n_passes=n_passes, fit_intercept=fit_intercept, **keywords
    )
    return theta


def penalised(value, intercept, p=4):
    return np.append(np.full(p, value), 0.0) if intercept else np.full(p, value)


def coefficients(model, intercept):
    coef = np.ravel(model.coef_)
    return np.append(coef, model.intercept_) if intercept else coef


# --- the limit without noise is scikit-learn ------------------------------------------------


@pytest.mark.parametrize("mode", [PLAIN, FINE], ids=["plain", "private"])
@pytest.mark.parametrize("intercept", [False, True], ids=["through_origin", "intercept"])
@pytest.mark.parametrize(
    ("model", "l1", "l2"),
    [
        (LinearRegression(), 0.0, 0.0),
        (Lasso(alpha=0.3, tol=1e-12, max_iter=100_000), 0.3, 0.0),
        (Ridge(alpha=60.0, tol=1e-12), 0.0, 0.2),
        (ElasticNet(alpha=0.3, l1_ratio=0.4, tol=1e-12, max_iter=100_000), 0.12, 0.18),
    ],
    ids=["least_squares", "lasso", "ridge", "elastic_net"],
)
def test_without_noise_the_squared_loss_gives_the_solution_of_scikit_learn(
    model, l1, l2, intercept, mode
):
    X, y = problem()
    theta = last(
        X,
        y,
        fit_intercept=intercept,
        l1=penalised(l1, intercept),
        l2=penalised(l2, intercept),
        **mode,
    )
    model = model.set_params(fit_intercept=intercept).fit(X, y)
    assert_allclose(theta, coefficients(model, intercept), rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", [PLAIN, FINE], ids=["plain", "private"])
@pytest.mark.parametrize("intercept", [False, True], ids=["through_origin", "intercept"])
def test_without_noise_the_logistic_loss_gives_the_ridge_solution_of_scikit_learn(intercept, mode):
    X, y = problem()
    y = labels(y)
    theta = last(
        X,
        y,
        loss="logistic",
        n_passes=1500,
        fit_intercept=intercept,
        l2=penalised(1.0 / len(y), intercept),
        **mode,
    )
    model = LogisticRegression(
        C=1.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky", fit_intercept=intercept
    )
    expected = coefficients(model.fit(X, y), intercept)
    assert_allclose(theta, expected, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*penalty.*:FutureWarning", "ignore:.*penalty:UserWarning")
@pytest.mark.parametrize("mode", [PLAIN, FINE], ids=["plain", "private"])
def test_without_noise_the_logistic_loss_gives_the_lasso_solution_of_scikit_learn(mode):
    X, y = problem()
    y = labels(y)
    theta = last(X, y, loss="logistic", n_passes=1500, l1=10.0 / len(y), **mode)
    model = LogisticRegression(
        C=0.1, penalty="l1", tol=1e-13, max_iter=100_000, solver="liblinear", fit_intercept=False
    )
    expected = coefficients(model.fit(X, y), False)
    assert 0.0 in theta
    assert_allclose(theta, expected, rtol=0, atol=1e-6)


# --- the update equation, in exact integer arithmetic ---------------------------------------


def reference(X, y, *, loss, order, noise, step, l1, l2, clip, quantum, divisor, start):
    """The equations of the docstring row by row, with Python's integers."""
    n, K = X.shape
    theta, path, sums = [float(v) for v in start], [], []
    for t in range(len(order)):
        for j in order[t]:
            q, total = quantum[t][j], 0
            c = round(clip[j] / q)
            for i in range(n):
                score = sum(X[i, k] * theta[k] for k in range(K))
                if loss == "squared":
                    gradient = (score - y[i]) * X[i, j]
                else:
                    gradient = -y[i] / (1.0 + np.exp(y[i] * score)) * X[i, j]
                total += int(np.rint(min(max(gradient / q, -c), c)))
            sums.append(total)
            v = theta[j] - step[j] * q * (total + int(noise[t][j])) / divisor
            soft = np.sign(v) * max(abs(v) - step[j] * l1[j], 0.0)
            theta[j] = float(soft / (1.0 + step[j] * l2[j]))
        path.append(list(theta))
    return np.array(path), sums


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_path_with_noise_order_and_penalties_follows_the_equation_exactly(loss):
    rng = np.random.default_rng(3)
    n, K, T = 23, 4, 6
    X, y = problem(n, K - 1)
    y = y if loss == "squared" else labels(y)
    order = np.array([rng.permutation(K) for _ in range(T)])
    noise = rng.integers(-40, 40, (T, K))
    parameters = {
        "step": np.array([0.3, 0.2, 0.9, 0.5]),
        "l1": np.array([0.05, 0.0, 0.01, 0.0]),
        "l2": np.array([0.0, 0.3, 0.02, 0.0]),
        "clip": np.array([0.7, 1.1, 0.4, 0.5]),
        "quantum": rng.uniform(0.01, 0.03, (T, K)),
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


def integer_sums(X, y, quantum, *, clip=1.0, loss="squared", **keywords):
    """The integers of one pass whose steps are 0, so that the iterate stays where it starts."""
    K = X.shape[1]
    start = keywords.pop("coef_init", np.zeros(K))
    sums = []
    for j in range(K):
        step = np.zeros(K)
        step[j] = 1.0 / quantum
        theta = next(
            coordinate_descent(
                X,
                y,
                loss=loss,
                n_passes=1,
                step=step,
                clip=clip,
                quantum=quantum,
                n_samples=1.0,
                coef_init=start,
                **keywords,
            )
        )
        sums.append(start[j] - theta[j])
    return np.array(sums)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_every_sum_is_an_integer_number_of_quanta(loss):
    X, y = problem()
    y = y if loss == "squared" else labels(y)
    sums = integer_sums(X, y, 2.0**-20, loss=loss)
    assert np.all(sums != 0)
    assert_array_equal(sums, np.rint(sums))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_one_record_moves_a_sum_by_at_most_twice_the_bound_and_comes_close(loss):
    rng = np.random.default_rng(5)
    n, p, clip, quantum = 6, 2, 0.3, 2.0**-12
    bound = 2 * np.rint(clip / quantum)
    X, y = rng.standard_normal((n, p)), np.ones(n)
    changes = []
    for _ in range(300):
        sums = []
        for sign in (-1.0, 1.0):
            X[0] = rng.standard_normal(p) * 10.0 ** rng.integers(-2, 200 if sign > 0 else 3)
            y[0] = rng.choice([-1.0, 1.0])
            sums.append(integer_sums(X, y, quantum, clip=clip, loss=loss))
        changes.append(np.abs(sums[0] - sums[1]))
    largest = np.max(changes)
    assert 0.99 * bound <= largest <= bound


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_record_whose_score_overflows_still_adds_at_most_the_bound(fit_intercept):
    X, y = problem(50, 2)
    X[7] = [1e308, -1e308]
    path = coordinate_descent(
        X,
        y,
        loss="squared",
        n_passes=5,
        step=np.full(2 + fit_intercept, 1e3),
        clip=1.0,
        quantum=2.0**-10,
        fit_intercept=fit_intercept,
    )
    moved = np.abs(np.diff(np.array(list(path)), axis=0, prepend=0.0))
    assert np.all(moved <= 1e3)  # step * C, as if every record were clipped


def test_noise_moves_one_update_by_step_times_quantum_over_the_divisor():
    X, y = problem()
    common = {"loss": "squared", "n_passes": 1, "step": np.full(4, 0.25), **FINE}
    quiet = next(coordinate_descent(X, y, **common))
    noise = np.array([[0, 0, 0, 12_345_678_901]])
    noisy = next(coordinate_descent(X, y, noise=noise, n_samples=100.0, **common))
    quiet_100 = next(coordinate_descent(X, y, n_samples=100.0, **common))
    assert not np.allclose(quiet, quiet_100)
    assert_allclose(quiet_100 - noisy, [0, 0, 0, 0.25 * 1e-8 * 12_345_678_901 / 100], atol=1e-13)


# --- the same answer however the work is divided --------------------------------------------


@pytest.mark.parametrize("standardise", [False, True], ids=["raw", "standardised"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_threads_layout_and_blocks_do_not_change_one_bit(loss, dtype, standardise, monkeypatch):
    monkeypatch.setitem(coordinate_descent.__globals__, "_ROWS_PER_THREAD", 10)
    n = 1237
    X, y = problem(n, dtype=dtype)
    y = y if loss == "squared" else labels(y)
    rng = np.random.default_rng(1)
    keywords = {
        "noise": rng.integers(-(10**6), 10**6, (3, 5)),
        "clip": 0.4,
        "quantum": 1e-7,
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
    monkeypatch.setitem(coordinate_descent.__globals__, "_ROWS_PER_THREAD", 10)
    X, y = problem(1237)
    one, two = (last(X, y, n_passes=5, block_rows=64, n_threads=k) for k in (1, 2))
    assert_array_equal(one, two)
    assert_allclose(last(X, y, n_passes=5, block_rows=7), one, rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_single_precision_features_give_nearly_the_same_answer(loss):
    X, y = problem()
    y = y if loss == "squared" else labels(y)
    single, double = (last(X.astype(d), y, loss=loss, n_passes=20, **FINE) for d in ("f4", "f8"))
    assert not np.array_equal(single, double)
    assert_allclose(single, double, atol=1e-6)


def test_inputs_are_left_as_they_were():
    X, y = problem()
    before = X.copy(), y.copy()
    last(X, y, n_passes=3, fit_intercept=True, **FINE)
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])


# --- standardisation, order, intercept, start, stop -----------------------------------------


@pytest.mark.parametrize("mode", [PLAIN, FINE], ids=["plain", "private"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_fused_standardisation_equals_standardising_first(loss, mode):
    X, y = problem()
    y = y if loss == "squared" else labels(y)
    center, scale, limit = np.array([0.1, 0.5, -0.2, 0.0]), np.array([1.5, 0.5, 2.0, 1.0]), 1.2
    Z = np.asfortranarray(np.clip((X - center) / scale, -limit, limit))
    assert (np.abs(Z) == limit).any()
    common = {"loss": loss, "n_passes": 15, "fit_intercept": True, "step": np.full(5, 0.5), **mode}
    fused = last(X, y, center=center, scale=scale, limit=limit, **common)
    assert_allclose(fused, last(Z, y, **common), atol=1e-9)
    # Each of the three may come alone.
    assert_allclose(last(X, y, limit=0.5, **common), last(np.clip(X, -0.5, 0.5), y, **common))
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
    monkeypatch.setitem(coordinate_descent.__globals__, "_ROWS_PER_THREAD", 10)
    X, y = problem()
    path = coordinate_descent(
        X, y, loss="squared", n_passes=10**9, step=1 / curvature(X, False), n_threads=2
    )
    first = next(path)
    kept = first.copy()
    second = next(path)
    assert_array_equal(first, kept)
    assert not np.array_equal(first, second)
    path.close()
    with pytest.raises(StopIteration):
        next(path)


def test_no_pass_yields_nothing():
    X, y = problem()
    assert list(coordinate_descent(X, y, loss="squared", n_passes=0, step=np.ones(4))) == []


# --- quanta: shapes, zero, and what is refused ----------------------------------------------


def test_a_quantum_for_each_pass_is_used_in_its_pass():
    X, y = problem()
    coarse, fine = np.full(4, 0.5), np.full(4, 1e-6)
    common = {"n_passes": 2, "clip": 1.0}
    both = last(X, y, quantum=np.stack([coarse, fine]), **common)
    first = last(X, y, n_passes=1, quantum=coarse, clip=1.0)
    second = last(X, y, n_passes=1, quantum=fine, clip=1.0, coef_init=first)
    assert_allclose(both, second, rtol=1e-12)
    assert not np.allclose(both, last(X, y, quantum=coarse, **common))


def test_a_coordinate_with_neither_clip_nor_quantum_stays_where_it_is():
    X, y = problem()
    clip, quantum = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1e-6, 0.0, 1e-6, 1e-6])
    theta = last(X, y, n_passes=5, clip=clip, quantum=quantum)
    assert theta[1] == 0.0
    assert np.all(theta[[0, 3]] != 0.0)


@pytest.mark.parametrize(
    ("clip", "quantum"), [(1.0, 1e-300), (1.0, 0.0), (1.0, 2.0**-51), (2.0**50, 2.0**-1)]
)
def test_a_quantum_too_small_for_exact_sums_is_refused_by_name(clip, quantum):
    X, y = problem(20, 2)
    with pytest.raises(ValueError, match=re.escape(f"quantum={quantum:g} is too small for clip=")):
        last(X, y, n_passes=1, clip=clip, quantum=quantum)


def test_the_sum_of_many_rows_at_the_largest_bound_is_refused_before_it_overflows():
    X, y = np.ones((2**14, 1), order="F"), np.full(2**14, 1e30)
    with pytest.raises(ValueError, match="quantum"):
        last(X, y, n_passes=1, clip=1.0, quantum=2.0**-50)
    for quantum in (2.0**-48, 2.0**-40):
        step = np.array([1.0 / 2**14])
        theta = last(X, y, n_passes=1, clip=1.0, quantum=quantum, n_samples=1.0, step=step)
        assert theta[0] == 1.0  # every record at the bound, and the sum exact


@pytest.mark.parametrize("given", [{"clip": 1.0}, {"quantum": 1.0}])
def test_clip_and_quantum_come_together(given):
    X, y = problem(20, 2)
    with pytest.raises(ValueError, match="clip and quantum must be given together"):
        last(X, y, n_passes=1, **given)
