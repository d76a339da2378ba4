"""The references of the benchmark of second moments: no noise is least squares."""

import numpy as np
import pytest

from benchmarks._gram_peers import Mapped, adassp, noisy_gradient_descent
from benchmarks.gram import gram_errors, lasso_problem


def _problem(n=5000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 5.0, size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n)


def test_references_with_hardly_any_noise_are_least_squares():
    X, y = _problem()
    mapped = Mapped(X, y)
    Z, target = mapped.features(X), mapped.target(y)
    assert np.abs(Z).max() <= 1.0
    best = np.linalg.lstsq(Z, target)[0]
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(adassp(Z, target, 1e9, 0.1, rng), best, atol=1e-5)
    descent = noisy_gradient_descent(Z, target, 1e9, 0.1, rng, 500, 100.0, 0.5)
    np.testing.assert_allclose(descent, best, atol=1e-3)
    assert mapped.score(best, X, y) > 0.99


def test_references_are_noisier_with_less_epsilon():
    X, y = _problem(500)
    mapped = Mapped(X, y)
    Z, target = mapped.features(X), mapped.target(y)
    best = np.linalg.lstsq(Z, target)[0]
    for method, options in ((adassp, ()), (noisy_gradient_descent, (20, 1.0, 0.2))):
        far = [
            np.median(
                [
                    np.linalg.norm(
                        method(Z, target, e, 1e-6, np.random.default_rng(s), *options) - best
                    )
                    for s in range(20)
                ]
            )
            for e in (0.5, 50.0)
        ]
        assert far[0] > far[1]


def test_errors_of_the_lasso_are_relative_to_its_minimum():
    X, y = _problem()
    problem = lasso_problem(X, y / y.std())
    errors, row_norm = gram_errors(problem, range(3), 4.0)
    assert row_norm == 4.0
    assert (errors >= -1e-9).all()
    assert errors.mean() < 1.0
    assert problem.relative_error(np.zeros(3)) == pytest.approx(
        problem.objective(np.zeros(3)) / problem.minimum - 1.0
    )
