"""Without noise the solver gives the solutions of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)

from skdpnoise.kernels import LOGISTIC, POISSON
from tests._cases import every_pair, quick
from tests.kernels._problems import FINE, PLAIN, labels, last, problem


def penalised(value, intercept, p=4):
    return np.append(np.full(p, value), 0.0) if intercept else np.full(p, value)


def coefficients(model, intercept):
    coef = np.ravel(model.coef_)
    return np.append(coef, model.intercept_) if intercept else coef


@every_pair
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
        loss=LOGISTIC,
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
    theta = last(X, y, loss=LOGISTIC, n_passes=1500, l1=10.0 / len(y), **mode)
    model = LogisticRegression(
        C=0.1, penalty="l1", tol=1e-11, max_iter=100_000, solver="liblinear", fit_intercept=False
    )
    expected = coefficients(model.fit(X, y), False)
    assert 0.0 in theta
    assert_allclose(theta, expected, rtol=0, atol=1e-6)


@quick("0.0-intercept-plain")
@every_pair
@pytest.mark.parametrize("mode", [PLAIN, FINE], ids=["plain", "private"])
@pytest.mark.parametrize("intercept", [False, True], ids=["through_origin", "intercept"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_without_noise_the_poisson_loss_gives_the_solution_of_scikit_learn(alpha, intercept, mode):
    X, y = problem()
    counts = np.rint(np.exp(0.5 * y))
    theta = last(
        X,
        counts,
        loss=POISSON,
        step=0.05,
        n_passes=2000,
        fit_intercept=intercept,
        l2=penalised(alpha, intercept),
        **mode,
    )
    model = PoissonRegressor(
        alpha=alpha, tol=1e-12, max_iter=10_000, solver="newton-cholesky", fit_intercept=intercept
    )
    expected = coefficients(model.fit(X, counts), intercept)
    assert_allclose(theta, expected, rtol=0, atol=1e-6)
