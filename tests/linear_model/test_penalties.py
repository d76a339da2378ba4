"""Penalties in the user's units: ridge, lasso and elastic net as scikit-learn has them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, Ridge
from sklearn.utils import get_tags

from skdpnoise import DPCoordinateDescentRegressor, DPElasticNet, DPLasso, DPRidge
from skdpnoise.linear_model import _penalties
from skdpnoise.linear_model._records import (
    LinearProblem,
    LinearTarget,
    Settings,
    Standardisation,
)
from skdpnoise.linear_model.solvers.moments import PseudoData
from tests._cases import each_value, quick
from tests._replay import two_runs
from tests.contracts._register import Forbidden

UNITS = np.array([1.0, 100.0, 0.01, 1.0, 1.0])
CENTRES = np.array([0.0, 5e2, 0.0, 0.0, 1.0])
BOUNDS = CENTRES - UNITS, CENTRES + UNITS
MODELS = {
    "ridge": (DPRidge, Ridge, (1.0, 300.0, 1e5)),
    "lasso": (DPLasso, Lasso, (0.001, 0.1, 2.0)),
    "elastic net": (DPElasticNet, ElasticNet, (0.001, 0.1, 2.0)),
}
every_model = pytest.mark.parametrize("name", MODELS)


def made(n=8000, seed=0):
    """Columns in unlike units, two of them far from 0, and a target far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 5)) * UNITS + CENTRES
    return X, X @ [1.0, 0.02, 200.0, 0.0, -0.5] + 0.3 * rng.normal(size=n) + 3.0


def fitted(make, X, y, epsilon=1e6, **keywords):
    keywords = {"random_state": 0, "feature_bounds": BOUNDS} | keywords
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(epsilon, **keywords).fit(X, y)


@each_value(1)
@pytest.mark.slow
@every_model
@pytest.mark.parametrize("solver", ["gram", "joint"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_boundless_epsilon_is_scikit_learns_model(name, solver, fit_intercept):
    X, y = made()
    ours, theirs, strengths = MODELS[name]
    for alpha in strengths:
        terms = {"alpha": alpha, "fit_intercept": fit_intercept}
        model, ordinary = fitted(ours, X, y, solver=solver, **terms), theirs(**terms).fit(X, y)
        assert model.solver_ == solver
        most = 2e-3 * max(np.abs(ordinary.coef_ * UNITS).max(), 1e-3)
        np.testing.assert_allclose(model.coef_ * UNITS, ordinary.coef_ * UNITS, atol=most)
        np.testing.assert_allclose(model.predict(X), ordinary.predict(X), atol=0.01)


@pytest.mark.slow
@every_model
def test_no_penalty_is_least_squares_and_a_huge_one_leaves_the_mean(name):
    X, y = made()
    for alpha in (0.0, 1e-100):
        best = LinearRegression().fit(X, y)
        model = fitted(MODELS[name][0], X, y, alpha=alpha)
        np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-3, atol=1e-3)
    for alpha in (1e12, 1e100):
        model = fitted(MODELS[name][0], X, y, alpha=alpha)
        np.testing.assert_allclose(model.predict(X), y.mean(), atol=0.01)
        if name != "ridge":
            assert not model.coef_.any()


@quick("gram-ridge")
@each_value(1)
@every_model
@pytest.mark.parametrize("solver", ["gram", "joint", "gradient"])
def test_a_change_of_units_changes_the_penalty_as_in_scikit_learn(name, solver):
    X, y = made(3000)
    ours, _, (_, alpha, _) = MODELS[name]
    model = fitted(ours, X, y, 1e4, alpha=alpha, solver=solver)
    strength = alpha * (64.0 if name == "ridge" else 8.0)  # 64 for absolute values of 8 w
    if name == "elastic net":
        model = fitted(ours, X, y, 1e4, alpha=alpha, solver=solver, l1_ratio=0.0)
        other = fitted(
            *(ours, 8.0 * X, y, 1e4),
            alpha=64.0 * alpha,
            solver=solver,
            l1_ratio=0.0,
            feature_bounds=(8.0 * BOUNDS[0], 8.0 * BOUNDS[1]),
        )
    else:
        bounds = 8.0 * BOUNDS[0], 8.0 * BOUNDS[1]
        other = fitted(ours, 8.0 * X, y, 1e4, alpha=strength, solver=solver, feature_bounds=bounds)
    np.testing.assert_allclose(8.0 * other.coef_, model.coef_, rtol=1e-9, atol=1e-12)


def test_penalties_in_standard_units_are_those_of_the_same_objective():
    rng = np.random.default_rng(0)
    scale, sigma, n = np.array([0.5, 2.0, 1e3]), 4.0, 50.0
    features = Standardisation(np.zeros(3), scale, np.ones(3, bool), np.ones(3))
    target = LinearTarget(np.zeros(1), Standardisation(*np.array([[1.0], [sigma], [1.0], [3.0]])))
    for make, power in ((DPRidge, 2), (DPLasso, 1), (DPElasticNet, 0)):
        settings = Settings.of(make(alpha=0.7))
        l1, l2 = settings.penalty(LinearProblem(settings, None, features, target), n)
        for v in rng.normal(size=(5, 3)):
            w = sigma * v / scale
            ours = sigma**2 * (l1 @ np.abs(v) + 0.5 * l2 @ v**2)
            theirs = {
                2: 0.7 / (2.0 * n) * w @ w,
                1: 0.7 * np.abs(w).sum(),
                0: 0.7 * (0.5 * np.abs(w).sum() + 0.25 * w @ w),
            }[power]
            assert ours == pytest.approx(theirs)


def test_columns_that_are_not_used_have_a_penalty_that_is_a_number():
    features = Standardisation(np.zeros(2), np.array([0.0, 1e-200]), np.arange(2) > 0, np.ones(2))
    target = LinearTarget(np.zeros(1), Standardisation(*np.array([[0.0], [0.0], [0.0], [3.0]])))
    settings = Settings.of(DPElasticNet())
    l1, l2 = _penalties.elastic_net(LinearProblem(settings, None, features, target), 10.0)
    assert l1[0] == 0.5 and l2[0] == 0.5 and l1[1] > 1e199 and l2[1] == np.inf


@pytest.mark.parametrize("seed", range(4))
def test_penalties_column_by_column_are_minimised(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 4)), rng.normal(size=6)
    data = PseudoData(X, y, np.zeros(4), 0.0, np.array([True, True, False, True, True]))
    l1 = np.array([0.3, 0.0, 9.0, 0.01, 0.1]) * (seed % 2)
    l2 = np.array([0.0, 5.0, 9.0, 1e-12, 1e3])

    def objective(w):
        penalty = l1[data.used] @ np.abs(w) + 0.5 * l2[data.used] @ w**2
        return 0.5 * ((y - X @ w) ** 2).mean() + penalty

    model = data.penalised(l1, l2)[0]
    assert model[2] == 0.0 and model.shape == (6,)
    best = minimize(objective, np.zeros(4), method="Nelder-Mead", tol=1e-13, options={
        "maxiter": 50_000, "maxfev": 50_000,
    })  # fmt: skip
    assert objective(model[:-1][data.used]) <= best.fun + 1e-9


def test_infinite_penalties_leave_columns_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    data = PseudoData(X, y, np.zeros(3), 0.0, np.ones(3, bool))
    alone = np.linalg.lstsq(X[:, 1:], y, rcond=None)[0]
    for l1, l2 in ((0.0, np.inf), (np.inf, 0.0)):
        first = np.array([1.0, 0.0, 0.0])
        given = (np.where(first, one, 1e-9 if l1 else 0.0) for one in (l1, l2))
        model = data.penalised(*given)[0]
        np.testing.assert_allclose(model[:3], [0.0, *alone], atol=1e-6)


@pytest.mark.slow
@every_model
def test_noise_has_what_least_squares_has(name):
    X, y = made(2000)
    ours, _, (alpha, _, _) = MODELS[name]
    for settings in ({}, {"delta": 0.0}, {"solver": "gradient"}, {"adjacency": "add_remove"}):
        model = fitted(ours, X, y, 3.0, alpha=alpha, **settings)
        plain = fitted(DPCoordinateDescentRegressor, X, y, 3.0, **settings)
        assert str(model.privacy_.total) == str(plain.privacy_.total)
        theirs = [str(release) for release in plain.privacy_.releases]
        assert [str(release) for release in model.privacy_.releases] == theirs


@quick("add_remove-joint-lasso")
@each_value(1)
@every_model
@pytest.mark.parametrize("solver", ["gram", "joint", "gradient"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_the_penalty_depends_on_released_numbers_alone(name, solver, adjacency):
    X, y = made(60)
    other, others = X.copy(), y.copy()
    other[-1], others[-1] = 1e50, -1e50
    near = (other, others) if adjacency == "replace_one" else (X[:-1], y[:-1])
    model = MODELS[name][0](
        *(100.0,), alpha=0.5, solver=solver, adjacency=adjacency, feature_bounds=BOUNDS
    )

    def fit(X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return clone(model).set_params(random_state=3).fit(X, y).coef_

    runs = two_runs(fit, (X, y), near, 3)
    assert (runs.first == runs.second).all()
    assert max(moved.share for moved in runs.moved) <= 1.0 + 1e-9


@each_value(1)
@every_model
@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"alpha": -1.0}, "'alpha'"),
        ({"alpha": "auto"}, "'alpha'"),
        ({"alpha": np.nan}, "'alpha'"),
        ({"solver": "svd"}, "'solver'"),
        ({"solver": "gram", "column_groups": [[0, 1]]}, "'solver'.*column_groups"),
        ({"l1_ratio": 1.5}, "'l1_ratio'"),
    ],
)
def test_what_is_wrong_is_said_before_the_charge(name, settings, match):
    if not settings.keys() <= MODELS[name][0]().get_params().keys():
        return
    with pytest.raises(ValueError, match=match):
        fitted(MODELS[name][0], *made(100), ledger=Forbidden(), **settings)


@each_value(1)
@every_model
@pytest.mark.parametrize("solver", ["gram", "gradient"])
def test_no_column_and_no_target_that_varies_leave_a_constant(name, solver):
    X, y = made(200)
    for table, target in ((np.ones_like(X), y), (X, np.ones_like(y))):
        terms = {"feature_bounds": None, "solver": solver}
        model = fitted(MODELS[name][0], table, target, 1.0, **terms)
        assert np.isfinite(model.coef_).all()
        assert np.ptp(model.predict(table)) < 3.0


@every_model
def test_which_tables_are_read_is_said_of_what_can_be_fitted(name):
    ours = MODELS[name][0]
    for settings, sparse in (
        ({}, False),
        ({"feature_bounds": (0.0, 1.0)}, True),
        ({"column_groups": [[0, 1]]}, True),
        ({"column_groups": [[0, 1]], "solver": "gram"}, False),
        ({"feature_bounds": (0.0, 1.0), "delta": 0.0}, True),
        ({"feature_bounds": (0.0, 1.0), "noise": "iid_laplace"}, False),
        ({"feature_bounds": (0.0, 1.0), "delta": "none", "noise": 3}, False),
    ):
        assert get_tags(ours(**settings)).input_tags.sparse is sparse
