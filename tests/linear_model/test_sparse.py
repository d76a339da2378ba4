"""Sparse rows and groups of columns: never dense, never beyond what is declared."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from skdpnoise import (
    DPHuberRegressor,
    DPLogisticCD,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
)
from skdpnoise.linear_model.solvers import gradient as descent
from skdpnoise.privacy import gdp_mu
from tests._cases import each_value, quick
from tests.contracts._register import Forbidden

GROUPS = [[0, 1, 2, 3], [4, 5, 6]]


def made(n=4000, seed=0):
    """Two one-hot blocks of four and three columns, and two numbers in the unit ball."""
    rng = np.random.default_rng(seed)
    X = np.hstack(
        [
            np.eye(4)[rng.integers(4, size=n)],
            np.eye(3)[rng.integers(3, size=n)],
            rng.uniform(-0.7, 0.7, size=(n, 2)),
        ]
    )
    scores = X @ [2.0, -2.0, 0.0, 0.0, 1.5, 0.0, -1.5, 1.0, 0.0]
    return X, (scores + rng.logistic(size=n) > 0).astype(int)


def fitted(X, y, epsilon=1.0, **keywords):
    keywords = {"random_state": 0} | keywords
    return DPLogisticCD(epsilon, **keywords).fit(X, y)


COVERED = [
    {"feature_bounds": (-1.0, 1.0)},
    {"feature_bounds": (-1.0, 1.0), "column_groups": GROUPS},
    {"column_groups": [*GROUPS, [7, 8]]},
]


@each_value(1)
@pytest.mark.parametrize("settings", COVERED)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_rows_give_the_same_model_in_any_format(settings, n_classes):
    X, y = made(600)
    y = y + (X[:, 3] > 0) * (n_classes - 2)
    models = [
        fitted(sp.csr_array(X).asformat(layout), y, **settings) for layout in ("csr", "csc", "coo")
    ]
    assert {model.solver_ for model in models} == {"joint"}
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
    model, table = models[0], sp.csc_array(X)
    np.testing.assert_allclose(model.decision_function(table), model.decision_function(X))
    np.testing.assert_array_equal(model.predict(table), model.predict(X))
    np.testing.assert_allclose(model.predict_proba(table), model.predict_proba(X))
    assert model.predict_log_proba(table).shape == (600, n_classes)


def test_a_model_of_dense_rows_predicts_for_sparse_ones():
    X, y = made(600)
    model = fitted(X + 0.0, y, feature_bounds=(-1.0, 1.0))  # with centres
    assert np.abs(model.clip_range_.sum(axis=0)).max() > 0.01
    np.testing.assert_allclose(
        model.decision_function(sp.csr_array(X)), model.decision_function(X), atol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"column_groups": [range(100_000)]}, {"feature_bounds": (0, 1)}]
)
def test_what_would_not_fit_into_memory_is_never_made_dense(settings):
    n, p = 20_000, 100_000  # 16 GB
    rng = np.random.default_rng(0)
    places = rng.integers(p, size=(n, 5))
    places[:, 0] = y = rng.integers(2, size=n)
    X = sp.csr_array((np.full(5 * n, 0.4), places.ravel(), np.arange(0, 5 * n + 1, 5)), (n, p))
    tracemalloc.start()
    try:
        model = fitted(X, y, 5.0, n_passes=6, **settings)
        found = model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3e8
    assert (found == y).mean() > (0.9 if "column_groups" in settings else 0.6)


@quick("add_remove")
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_all_is_charged_and_nothing_is_spent_on_scales_of_sparse_rows(adjacency):
    X, y = made()
    for settings in COVERED:
        report = fitted(sp.csr_array(X), y, adjacency=adjacency, **settings).privacy_
        labels = {release.label for release in report.releases}
        assert labels <= {"number of records", "labels by score", "gradients"}
        total = np.sqrt(sum(release.loss.mu**2 for release in report.releases))
        assert 0.96 * gdp_mu(1.0, 1e-6) < total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)


REGRESSORS = [DPRidge, DPHuberRegressor, DPQuantileRegressor, DPPoissonRegressor]


@each_value(1)
@pytest.mark.parametrize("make", REGRESSORS)
@pytest.mark.parametrize("settings", COVERED)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("target_bounds", [None, (0.0, 9.0)])
def test_regressors_spend_nothing_on_scales_of_sparse_rows_or_groups(
    make, settings, delta, target_bounds
):
    X, _ = made(3000)
    y = np.random.default_rng(1).poisson(np.exp(X @ [1.0, 0.0, -1.0, 0.5, 1.0, 0.0, 0.5, 1.0, 0.0]))
    terms = {"target_bounds": target_bounds, "random_state": 0, **settings}
    grouped = "column_groups" in settings
    for rows in [sp.csr_array(X), *([X] if grouped and "feature_bounds" not in settings else [])]:
        model = make(10.0, delta, **terms).fit(rows, y)
        labels = {release.label for release in model.privacy_.releases}
        assert "gradients" in labels and "means and squares of rows" not in labels
        assert not labels & {"magnitudes", "means", "mean absolute deviations"}
        assert model.privacy_.total.delta(10.0) <= delta
        assert np.corrcoef(model.predict(rows), y)[0, 1] > 0.2


def test_a_group_counts_as_one_column():
    X, y = made()
    pure = np.random.default_rng(1).permuted(np.tile(np.eye(1, 200), (4000, 1)), axis=1)
    wide = np.hstack([pure, X])
    clips = {}
    for name, settings in {
        "groups": {"column_groups": [range(200), range(200, 204), range(204, 207), [207, 208]]},
        "columns": {"feature_bounds": (-1.0, 1.0)},
    }.items():
        clips[name] = _clip(sp.csr_array(wide), y, **settings)
    assert clips["groups"] < clips["columns"]
    assert clips["groups"] <= 0.5 * np.sqrt(5.0)


def _watched(X, y, **settings):
    met, inner = [], descent.clipped_gradient_sums

    def watched(rows, targets, coef, **facts):
        whole = inner(rows, targets, coef, **facts)
        met.append((whole, facts["clip"], rows))
        return whole

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descent, "clipped_gradient_sums", watched)
        fitted(X, y, **settings)
    return met


def _clip(X, y, **settings):
    return _watched(X, y, n_passes=1, **settings)[0][1].norm


VALUES = [1e100, -1e100, 1e50, 7.0, 1.0, 0.5, 1e-30]


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_wrong_declaration_moves_no_release_further(sparse, adjacency):
    rng = np.random.default_rng(2)
    X, y = made(40)
    settings = {"column_groups": [*GROUPS, [7, 8]], "classes": [0, 1], "adjacency": adjacency}
    largest, kind = 0.0, sp.csr_array if sparse else np.asarray
    for _ in range(25):
        found = []
        for _ in range(2):
            X[-1] = rng.choice(VALUES, size=9) * rng.choice([0.0, 1.0], size=9)
            y[-1] = rng.integers(2)
            found.append(_watched(kind(X), y, n_passes=1, **settings)[0])
        (one, clip, rows), (other, _, _) = found
        if adjacency == "add_remove":
            # The record alone is what it adds: all others are the same.
            other, width = _watched(kind(X[:-1]), y[:-1], n_passes=1, **settings)[0][0], 1.0
            one = found[1][0]
        else:
            width = 2.0
        moved = float(np.linalg.norm((one - other).astype(float)))
        assert moved <= width * clip.largest
        largest = max(largest, moved / clip.largest / width)
        for block in rows.blocks():
            whole = block.integers.toarray() if sparse else block.integers
            for columns in settings["column_groups"]:
                assert (whole[:, columns] ** 2).sum(axis=1).max() <= rows.grid_size**-2
    assert largest > 0.6


def test_a_wrong_declaration_costs_accuracy_only():
    X, y = made()
    wrong = X * 1e6  # every part has to be scaled down to the norm 1
    model = fitted(wrong, y, 5.0, column_groups=[*GROUPS, [7, 8]])
    assert model.score(wrong, y) > 0.7
    right = fitted(X, y, 5.0, column_groups=[*GROUPS, [7, 8]])
    np.testing.assert_allclose(right.score(X, y), right.score(sp.csr_array(X), y))
    np.testing.assert_allclose(model.decision_function(wrong), model.decision_function(1e90 * X))


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_with_much_budget_groups_are_in_the_users_units(sparse):
    X, y = made(20_000)
    plain = LogisticRegression(C=1e6, max_iter=1000).fit(X, y)
    table = sp.csr_array(X) if sparse else X
    model = fitted(table, y, 1e6, column_groups=[*GROUPS, [7, 8]])
    np.testing.assert_allclose(model.predict_proba(table), plain.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_, model.decision_function(X))


def test_groups_beside_columns_without_bounds():
    X, y = made(20_000)
    X[:, 7:] *= [100.0, 1e-3]
    model = fitted(X, y, 5.0, column_groups=GROUPS)
    plain = LogisticRegression(C=1e6, max_iter=5000).fit(X / np.abs(X).max(axis=0), y)
    assert model.score(X, y) > plain.score(X / np.abs(X).max(axis=0), y) - 0.02


def test_names_of_a_frame_are_columns():
    X, y = made(500)
    frame = pd.DataFrame(X, columns=[*"abcdefghi"])
    settings = {"feature_bounds": (-1.0, 1.0)}
    named = fitted(frame, y, column_groups={"one": [*"abcd"], "two": [*"efg"]}, **settings)
    numbered = fitted(X, y, column_groups=GROUPS, **settings)
    np.testing.assert_array_equal(named.coef_, numbered.coef_)


def test_groups_of_persons_keep_sparse_rows():
    X, y = made(600)
    people = np.arange(600) // 3
    settings = {"column_groups": [*GROUPS, [7, 8]], "rows_per_group": 2, "random_state": 0}
    one, other = (
        DPLogisticCD(5.0, **settings).fit(table, y, groups=people)
        for table in (sp.coo_array(X), sp.csc_array(X))
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_doubts_and_weights_bear_sparse_rows(n_classes):
    X, y = made(900)
    y = y + (X[:, 3] > 0) * (n_classes - 2)
    settings = {"column_groups": [*GROUPS, [7, 8]], "class_weight": "balanced"}
    assert np.isfinite(fitted(sp.csr_array(X), y, 0.5, **settings).coef_).all()
    del settings["class_weight"]
    labels = [release.label for release in fitted(sp.csr_array(X), y, **settings).privacy_.releases]
    assert ("labels by score" in labels) == (n_classes == 2)


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({}, ValueError, "sparse X.*give 'feature_bounds', or 'column_groups'"),
        ({"column_groups": GROUPS}, ValueError, "sparse X"),
        ({"feature_bounds": (0.0, np.inf)}, ValueError, "sparse X"),
        ({"feature_bounds": (0, 1), "solver": "coordinate"}, ValueError, "'solver'.*sparse X"),
        ({"feature_bounds": (0, 1), "noise": "iid_laplace"}, ValueError, "normal noise"),
    ],
)
def test_what_sparse_rows_cannot_have_is_refused_before_the_charge(settings, error, match):
    X, y = made(50)
    with pytest.raises(error, match=match):
        fitted(sp.csr_array(X), y, ledger=Forbidden(), **settings)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"solver": "coordinate"}, "'solver' parameter.*with column_groups"),
        ({"noise": "inid_laplace"}, "normal noise with a positive delta"),
        ({"column_groups": [[0, 9]]}, "'column_groups' parameter.*9, which is not a column"),
        ({"column_groups": [[0], [0]]}, "'column_groups' parameter.*0 twice"),
        ({"column_groups": [[]]}, "'column_groups' parameter.*is empty"),
        ({"column_groups": "all"}, "'column_groups' parameter"),
    ],
)
def test_groups_that_cannot_be_are_refused_before_the_charge(settings, match):
    X, y = made(50)
    with pytest.raises(ValueError, match=match):
        fitted(X, y, ledger=Forbidden(), **({"column_groups": GROUPS} | settings))


def test_the_tag_says_what_can_be_sparse():
    assert not get_tags(DPLogisticCD()).input_tags.sparse
    assert not get_tags(DPLogisticCD(feature_bounds=(0, 1), solver="coordinate")).input_tags.sparse
    assert get_tags(DPLogisticCD(feature_bounds=(0, 1))).input_tags.sparse
    assert get_tags(DPLogisticCD(column_groups=[[0]])).input_tags.sparse
