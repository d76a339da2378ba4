"""Columns that share a row's single 1, and sparse rows: declared, held, and never made dense."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPElasticNet,
    DPLogisticCD,
    DPPipeline,
    DPRidge,
    DPTableVectorizer,
)
from skdpnoise.privacy import gdp_mu
from tests._cases import each_value
from tests._replay import two_runs
from tests.contracts._register import Forbidden

GROUPS = [[1, 2, 3], [4, 5]]


def made(n=2000, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(3, size=n), rng.integers(2, size=n)
    number = rng.uniform(-1.0, 1.0, size=(n, 1))
    X = np.hstack([number, *(np.eye(k)[kind] for k, kind in zip((3, 2), kinds, strict=True))])
    weights = rng.normal(size=(6, n_classes)) * 2.0
    return X, np.argmax(X @ weights + rng.gumbel(size=(n, n_classes)), axis=1)


def fitted(X, y, epsilon=1.0, **keywords):
    bounds = np.r_[-1.0, np.full(5, -np.inf)], np.r_[1.0, np.full(5, np.inf)]
    keywords = {"random_state": 0, "feature_bounds": bounds, "column_groups": GROUPS} | keywords
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPLogisticCD(epsilon, **keywords).fit(X, y)


@each_value(1)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_groups_need_no_bounds_and_cost_no_scales(n_classes, adjacency):
    X, y = made(n_classes=n_classes)
    model = fitted(X, y, adjacency=adjacency)
    labels = [release.label for release in model.privacy_.releases]
    assert set(labels) <= {
        "number of records",
        "means and squares of rows",
        "gradients",
        "labels by score",
    }
    moments = model.privacy_.releases[labels.index("means and squares of rows")]
    assert moments.n_coordinates == 7  # means of six columns, squares of the one without a group
    total = np.sqrt(sum(release.loss.mu**2 for release in model.privacy_.releases))
    assert 0.97 * gdp_mu(1.0, 1e-6) < total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)
    best = fitted(X, y, 1e4, adjacency=adjacency).score(X, y)
    assert model.score(X, y) > best - 0.05


@pytest.mark.slow
def test_a_column_without_bounds_is_found_and_others_are_not_searched():
    X, y = made(20_000)
    X[:, 0] *= 1e6
    model = fitted(X, y, feature_bounds=None)
    sizes = {r.label: r.n_coordinates for r in model.privacy_.releases}
    assert sizes["means"] == sizes["mean absolute deviations"] == 1
    assert model.score(X, y) > fitted(X, y, 1e4, feature_bounds=None).score(X, y) - 0.05


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("factor", [1.0, 1e100])
def test_a_wrong_declaration_costs_no_guarantee(adjacency, factor):
    X, y = made(60)
    largest = {}
    rng = np.random.default_rng(0)
    for seed in range(20):
        one, other = X.copy(), X.copy()
        one[-1] = factor * rng.choice([-1.0, 1.0], size=6)
        other[-1] = -one[-1] if seed % 2 else X[0]
        labels, others = y.copy(), y.copy()
        labels[-1], others[-1] = rng.integers(2, size=2)
        near = (other, others) if adjacency == "replace_one" else (one[:-1], labels[:-1])
        bounds = np.r_[-1.0, np.full(5, -np.inf)], np.r_[1.0, np.full(5, np.inf)]
        model = DPLogisticCD(
            100.0,
            adjacency=adjacency,
            feature_bounds=bounds,
            column_groups=GROUPS,
            classes=[0, 1],
            n_passes=3,
            random_state=seed,
        )

        def fit(X, y, model=model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(X, y).coef_

        runs = two_runs(fit, (one, labels), near, seed)
        assert (runs.first == runs.second).all()
        for moved in runs.moved:
            largest[moved.label] = max(largest.get(moved.label, 0.0), moved.share)
    assert max(largest.values()) <= 1.0 + 1e-9
    assert largest["gradients"] > 0.5
    assert largest["means and squares of rows"] > 0.4


def numbers(n=20_000, seed=0):
    """Rows whose target is a number that hangs on both groups."""
    X, _ = made(n, seed)
    return X, X @ [1.0, 2.0, 0.0, -1.0, 0.5, 0.0] + np.random.default_rng(seed).normal(size=n)


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("estimator", [DPCoordinateDescentRegressor, DPRidge, DPElasticNet])
def test_groups_are_fitted_by_second_moments_where_their_noise_is_small(
    estimator, delta, adjacency
):
    X, y = numbers()
    facts = {"delta": delta, "adjacency": adjacency, "random_state": 0, "column_groups": GROUPS}
    facts |= {"alpha": 0.01} if estimator is DPElasticNet else {}
    model = estimator(20.0, **facts).fit(X, y)
    assert model.solver_ == "gram"
    assert model.score(X, y) > 0.55
    within = np.clip(X, *model.clip_range_) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), within, rtol=1e-9, atol=1e-9)
    assert estimator(0.05, **facts).fit(X, y).solver_ == "joint"
    assert estimator(20.0, solver="joint", **facts).fit(X, y).solver_ == "joint"
    # No budget is spent on the scales of groups.
    sizes = {release.label: release.n_coordinates for release in model.privacy_.releases}
    assert sizes["means"] == 1


def test_parameters_of_descent_and_sparse_rows_keep_groups_from_second_moments():
    X, y = numbers(2000)
    facts = {"random_state": 0, "column_groups": GROUPS}
    passes = DPCoordinateDescentRegressor(100.0, n_passes=3, **facts).fit(X, y)
    assert passes.solver_ == "joint"
    facts["feature_bounds"] = (-1.0, 1.0)
    few = DPCoordinateDescentRegressor(100.0, **facts).fit(sparse.csr_array(X), y)
    assert few.solver_ == "joint"


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("factor", [10.0, 1e100])
def test_a_wrong_declaration_costs_no_second_moments(adjacency, factor):
    X, y = numbers(200)
    largest, rng = 0.0, np.random.default_rng(0)
    for seed in range(10):
        one, other = X.copy(), X.copy()
        one[-1] = factor * rng.choice([-1.0, 1.0], size=6)
        other[-1] = -one[-1] if seed % 2 else X[0]
        targets, others = y.copy(), y.copy()
        targets[-1], others[-1] = 0.1 * factor * rng.choice([-1.0, 1.0], size=2)
        near = (other, others) if adjacency == "replace_one" else (one[:-1], targets[:-1])
        bounds = {"feature_bounds": (-1.0, 1.0), "target_bounds": (-6.0, 6.0)}
        terms = {"adjacency": adjacency, "column_groups": GROUPS, "random_state": seed}
        model = DPRidge(200.0, **bounds, **terms)

        def fit(X, y, model=model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(X, y).coef_

        runs = two_runs(fit, (one, targets), near, seed)
        assert (runs.first == runs.second).all()
        assert model.solver_ == "gram"
        moved = {one.label: one.share for one in runs.moved}
        assert max(moved.values()) <= 1.0 + 1e-9
        largest = max(largest, moved["second moments"])
    assert largest > 0.3


@pytest.mark.slow
def test_a_table_loses_little_of_what_the_model_finds_of_columns_with_far_values():
    rng = np.random.default_rng(0)
    n = 200_000
    X = rng.normal(size=(n, 3))
    X[:, 0] = np.where(rng.random(n) < 0.1, rng.exponential(10.0, n), X[:, 0])
    y = X @ [1.0, 0.5, 0.0] + rng.normal(size=n)
    frame = pd.DataFrame(X, columns=[*"abc"])
    steps = [("table", DPTableVectorizer()), ("model", DPRidge())]
    for seed in range(3):
        behind = DPPipeline(steps, epsilon=1.0, random_state=seed).fit(frame, y)
        alone = DPRidge(1.0, random_state=seed).fit(frame, y)
        assert behind.score(frame, y) > alone.score(frame, y) - 0.02


def test_a_wrong_declaration_still_fits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)) * 5.0
    y = X[:, 0] + X[:, 1] > 0.0
    assert fitted(X, y, feature_bounds=None, column_groups=[range(4)]).score(X, y) > 0.8


def test_names_of_a_frame_and_a_dict_are_the_same_as_numbers():
    X, y = made()
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    numbers = fitted(X, y)
    for groups in ([["b", "c", "d"], ["e", "f"]], {"first": ["b", "c", "d"], "second": [4, 5]}):
        model = fitted(frame, y, column_groups=groups)
        np.testing.assert_array_equal(model.coef_, numbers.coef_)
        assert clone(model).column_groups == groups


@pytest.mark.parametrize(
    "groups",
    [
        *([[0, 1], [1, 2]], [[]], [[6]], [["z"]], "ab", [3], [[True]], [[-1]], [[1, 1]], 5),
        *([np.array(0)], np.array(0)),
    ],
)
def test_what_is_no_partition_is_refused_before_the_charge(groups):
    with pytest.raises(ValueError, match="'column_groups'"):
        fitted(*made(100), column_groups=groups, ledger=Forbidden())


@each_value(1)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_rows_are_fitted_and_predicted(container, n_classes):
    X, y = made(n_classes=n_classes)
    model = fitted(container(X), y, 3.0)
    assert model.solver_ == "joint"
    dense = X.copy()
    for method in ("decision_function", "predict_proba", "predict"):
        found = getattr(model, method)
        np.testing.assert_allclose(found(container(X)), found(dense), rtol=1e-9, atol=1e-12)
    assert model.score(container(X), y) > fitted(X, y, 1e4).score(X, y) - 0.06
    centred = fitted(X, y, 3.0)
    np.testing.assert_allclose(
        centred.decision_function(container(X)), centred.decision_function(X)
    )


@pytest.mark.slow
def test_sparse_rows_are_never_made_dense():
    rng = np.random.default_rng(0)
    n, p = 20_000, 100_000
    columns = rng.integers(p, size=(n, 5))
    X = sparse.csr_array(
        (np.full(5 * n, 5**-0.5), columns.ravel(), np.arange(0, 5 * n + 1, 5)), (n, p)
    )
    y = columns[:, 0] % 2
    tracemalloc.start()
    try:
        model = fitted(X, y, column_groups=[range(p)], feature_bounds=None, n_passes=3)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.02 * 8.0 * n * p


def test_what_is_wrong_with_sparse_rows_is_said_before_the_charge():
    X, y = made(100)
    ledger = {"ledger": Forbidden()}
    with pytest.raises(ValueError, match=r"public scales.*'column_groups'"):
        fitted(sparse.csr_array(X), y, feature_bounds=None, column_groups=None, **ledger)
    with pytest.raises(ValueError, match="must not be 'coordinate' with column_groups, sparse X"):
        fitted(sparse.csr_array(X), y, solver="coordinate", **ledger)
    for bad, match in ((np.nan, "NaN"), (np.inf, "infinity"), (1e200, "beyond")):
        broken = X.copy()
        broken[3, 0] = bad
        with pytest.raises(ValueError, match=match):
            fitted(sparse.csr_array(broken), y, **ledger)
    out = sparse.csr_array(X)
    out.indices[0] = 99
    with pytest.raises(ValueError, match="sparse X"):
        fitted(out, y, **ledger)


def test_entries_that_are_stored_twice_count_as_their_sum():
    X, y = made(500)
    once = sparse.csr_array(X)
    row = np.repeat(np.arange(500), np.diff(once.indptr))
    data, columns = np.tile(0.5 * once.data, 2), np.tile(once.indices, 2)
    order = np.argsort(np.tile(row, 2), kind="stable")
    twice = sparse.csr_array((data[order], columns[order], 2 * once.indptr), once.shape)
    np.testing.assert_array_equal(fitted(twice, y).coef_, fitted(once, y).coef_)
    assert twice.nnz == 2 * once.nnz  # the user's own array is left as it is
