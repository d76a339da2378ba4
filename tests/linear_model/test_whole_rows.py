"""Groups of columns and sparse rows of the models that are no logistic regressions."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression
from sklearn.utils import get_tags

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearSVC,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
)
from skdpnoise.privacy import gdp_mu
from tests._cases import each_value, quick
from tests._replay import two_runs
from tests.contracts._register import Forbidden

SMALL = {"alpha": 1e-4}
MODELS = {
    "squares": (DPCoordinateDescentRegressor, {}),
    "ridge": (DPRidge, SMALL),
    "lasso": (DPLasso, SMALL),
    "elastic net": (DPElasticNet, SMALL),
    "huber": (DPHuberRegressor, {}),
    "quantile": (DPQuantileRegressor, {}),
    "svc": (DPLinearSVC, {}),
    "counts": (DPPoissonRegressor, {}),
}
GROUPS = [[1, 2, 3, 4], [5, 6]]
every_model = pytest.mark.parametrize("name", MODELS)


def made(name, n=3000, seed=0):
    """A number, and two categories."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(4, size=n), rng.integers(2, size=n)
    number = rng.uniform(-1.0, 1.0, size=(n, 1))
    X = np.hstack([number, np.eye(4)[kinds[0]], np.eye(2)[kinds[1]]])
    y = X @ [1.0, 2.0, 0.0, -2.0, 0.5, 1.0, -1.0] + 0.3 * rng.normal(size=n)
    if name == "counts":
        return X, rng.poisson(np.exp(0.5 * y + 1.0)).astype(float)
    return X, (y > 0.0).astype(int) if name == "svc" else y


def bounds_of(name):
    number = np.r_[-1.0, np.full(6, -np.inf)], np.r_[1.0, np.full(6, np.inf)]
    both = {"feature_bounds": number, "column_groups": GROUPS}
    targets = {"svc": {}, "counts": {"target_bounds": (0.0, 20.0)}}
    return both | targets.get(name, {"target_bounds": (-5.0, 5.0)})


def fitted(name, X, y, epsilon=1.0, **keywords):
    make, settings = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(epsilon, **({"random_state": 0} | settings | keywords)).fit(X, y)


@quick("replace_one-True-lasso")
@each_value(1)
@every_model
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_nothing_is_spent_on_scales_that_are_public(name, sparse, adjacency):
    X, y = made(name)
    for bounds in (bounds_of(name), {"feature_bounds": (-1.0, 1.0)} | {"column_groups": GROUPS}):
        table = sp.csr_array(X) if sparse else X
        model = fitted(name, table, y, adjacency=adjacency, **bounds)
        labels = [release.label for release in model.privacy_.releases]
        of_columns = {
            "means": 1,
            "mean absolute deviations": 1,
            "means and squares of rows": 8,  # of all columns, and the square of the number
        }
        for release in model.privacy_.releases:
            if release.label in of_columns:
                assert not sparse and release.n_coordinates == of_columns[release.label]
        assert {"gradients", "second moments"} & set(labels)  # of least squares with little noise
        total = np.sqrt(sum(release.loss.mu**2 for release in model.privacy_.releases))
        assert 0.97 * gdp_mu(1.0, 1e-6) < total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)
        assert model.score(table, y) > (0.5 if name == "counts" else 0.7)  # counts vary more


@quick("ridge")
@every_model
def test_where_all_scales_are_public_all_is_for_the_model(name):
    X, y = made(name)
    groups = {"column_groups": [[0], *GROUPS]}
    model = fitted(name, X, y, fit_intercept=False, **groups)
    features = {"means", "mean absolute deviations", "means and squares of rows", "magnitudes"}
    assert not features & {release.label for release in model.privacy_.releases}
    total = np.sqrt(sum(release.loss.mu**2 for release in model.privacy_.releases))
    assert total > 0.99 * gdp_mu(1.0, 1e-6)


@quick("settings0-elastic net", "settings0-counts")
@each_value(1)
@every_model
@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}])
def test_sparse_rows_give_the_same_model_in_any_format(name, settings):
    X, y = made(name, 600)
    models = [
        fitted(name, sp.csr_array(X).asformat(layout), y, **bounds_of(name), **settings)
        for layout in ("csr", "csc", "coo")
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
    model, table = models[0], sp.csc_array(X)
    if name == "svc":
        np.testing.assert_allclose(model.decision_function(table), model.decision_function(X))
    np.testing.assert_allclose(model.predict(table), model.predict(X))
    assert get_tags(model).input_tags.sparse


@quick("replace_one-False-huber")
@each_value(1)
@every_model
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_wrong_declaration_costs_no_guarantee(name, sparse, adjacency):
    X, y = made(name, 50)
    rng, largest, kind = np.random.default_rng(0), {}, sp.csr_array if sparse else np.asarray
    for seed in range(8):
        one, other = X.copy(), X.copy()
        one[-1] = (1.0 if seed % 2 else 1e100) * rng.choice([-1.0, 0.0, 1.0], size=7)
        other[-1] = -one[-1]
        labels, others = y.copy(), y.copy()
        # The row turns round: so does the gradient where the target stays on its side.
        labels[-1], others[-1] = (0, seed % 3 == 0) if name == "svc" else (1e50, 1e50)
        near = (other, others) if adjacency == "replace_one" else (one[:-1], labels[:-1])
        make, settings = MODELS[name]
        classes = {"classes": [0, 1]} if name == "svc" else {}
        terms = {"adjacency": adjacency, "random_state": seed} | classes | settings
        model = make(100.0, **terms, **bounds_of(name))

        def fit(X, y, model=model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(kind(X), y).coef_

        runs = two_runs(fit, (one, labels), near, seed)
        assert (runs.first == runs.second).all()
        for moved in runs.moved:
            largest[moved.label] = max(largest.get(moved.label, 0.0), moved.share)
    assert max(largest.values()) <= 1.0 + 1e-9
    assert largest["gradients"] > 0.4


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["squares", "huber"])
def test_boundless_epsilon_is_least_squares_in_the_users_units(name, sparse):
    X, y = made(name, 8000)
    table = sp.csr_array(X) if sparse else X
    threshold = {"threshold": 10.0} if name == "huber" else {}
    model = fitted(name, table, y, 1e6, **bounds_of(name), **threshold)
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(table), plain.predict(X), atol=0.02)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X), atol=1e-9)


@pytest.mark.slow
@every_model
def test_what_would_not_fit_into_memory_is_never_made_dense(name):
    n, p = 20_000, 100_000
    rng = np.random.default_rng(0)
    places = rng.integers(p, size=(n, 5))
    X = sp.csr_array((np.full(5 * n, 0.4), places.ravel(), np.arange(0, 5 * n + 1, 5)), (n, p))
    y = places[:, 0] % 2
    tracemalloc.start()
    try:
        fitted(name, X, y, 5.0, column_groups=[range(p)]).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8e8  # of 16 GB; the noise of all passes is some of it


@each_value(1)
@every_model
@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({}, "sparse X.*give 'feature_bounds', or 'column_groups'"),
        ({"column_groups": GROUPS}, "sparse X"),
        ({"feature_bounds": (0, 1), "noise": "iid_laplace"}, "normal noise"),
        ({"feature_bounds": (0, 1), "solver": "one by one"}, "'solver'.*sparse X"),
        ({"feature_bounds": (0, 1), "column_groups": [[0, 99]]}, "'column_groups'"),
    ],
)
def test_what_sparse_rows_cannot_have_is_refused_before_the_charge(name, settings, match):
    if not settings.keys() <= MODELS[name][0]().get_params().keys():
        return
    X, y = made(name, 50)
    solvers = [settings.get("solver", "auto")]
    if solvers == ["one by one"]:
        solvers = ["coordinate"] if name == "counts" else ["gram", "gradient"]
    for solver in solvers:
        given = settings | {"solver": solver} if "solver" in settings else settings
        with pytest.raises(ValueError, match=match):
            fitted(name, sp.csr_array(X), y, ledger=Forbidden(), **given)


@quick("iid_gaussian-squares")
@each_value(1)
@every_model
@pytest.mark.parametrize("noise", ["iid_gaussian", "spr_gaussian", "inid_gaussian"])
def test_any_normal_noise_is_taken(name, noise):
    make, settings = MODELS[name]
    settings = settings | ({"solver": "joint"} if "solver" in make().get_params() else {})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int) if name == "svc" else np.abs(X[:, 0])
    model = make(noise=noise, feature_bounds=(-3.0, 3.0), random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert {one.noise for one in model.privacy_.releases if one.label == "gradients"} == {noise}


def test_passes_that_are_not_made_need_no_memory(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "skdpnoise.linear_model.solvers.gradient.check_memory",
        lambda *facts: asked.append(facts[1]),
    )
    X = sp.csr_array((np.random.default_rng(0).random((500, 1000)) < 0.01).astype(float))
    settings = {"column_groups": [range(1000)], "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPRidge(1.0, **settings).fit(X, np.asarray(X.sum(axis=1)))
    assert asked[-1] <= 32.0 * 1001 * 80.0
    assert model.n_passes_ <= 80
