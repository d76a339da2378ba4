"""Ridge regression from second moments with OpenDP's normal noise, in an environment of its own.

OpenDP's own LinearRegression takes one column, and it has no classifier. So this is the plainest
model that its documented mechanisms make: with z a row of columns in [0, 1] and a 1, and t its
targets in [-1, 1] (classes: 1 for its own and 0 for others),

    (Z'Z + noise + ridge I)^-1 (Z't + noise).
"""

from __future__ import annotations

import math

import numpy as np
import opendp.prelude as dp

from benchmarks._peer_runs import MORE_CLASSES, REGRESSION, TWO_CLASSES, Predict, Problem, serve

dp.enable_features("contrib")


def noisy(values: np.ndarray, sensitivity: float, epsilon: float, delta: float) -> tuple:
    """Return values with the least normal noise for (ε, δ), and its standard deviation."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def made(scale: float) -> dp.Measurement:
        gaussian = dp.m.make_gaussian(*space, scale=scale)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta)

    scale = dp.binary_search_param(
        made, d_in=sensitivity, d_out=(epsilon, delta), T=float, bounds=(0.0, 1e6 * sensitivity)
    )
    return np.array(made(scale)(values.tolist())), scale


def coefficients(
    Z: np.ndarray, targets: np.ndarray, square: float, epsilon: float, delta: float
) -> np.ndarray:
    """Return the ridge solution for rows of squared norm up to `square`, and targets up to 1.

    One row more or less moves the upper triangle of Z'Z, off-diagonal entries times √2, by up to
    `square`, and Z't by up to its root. The ridge is about the largest eigenvalue of the noise.
    """
    n_columns = Z.shape[1]
    above = np.triu_indices(n_columns)
    weights = np.where(above[0] == above[1], 1.0, math.sqrt(2.0))
    moments = np.append((Z.T @ Z)[above] * weights, Z.T @ targets)
    found, scale = noisy(moments, math.sqrt(square**2 + square), epsilon, delta)
    gram = np.zeros((n_columns, n_columns))
    gram[above] = found[: weights.size] / weights
    gram += np.triu(gram, 1).T + scale * math.sqrt(2.0 * n_columns) * np.eye(n_columns)
    return np.linalg.solve(gram, found[weights.size :].reshape(n_columns, -1))


def _rows(problem: Problem, X: np.ndarray) -> np.ndarray:
    return np.column_stack([problem.unit(X), np.ones(len(X))])


def regression(problem: Problem, epsilon: float, delta: float) -> Predict:
    """Fit a number."""
    targets = problem.centred_target()[:, None]
    square = problem.norm**2 + 1.0
    w = coefficients(_rows(problem, problem.X), targets, square, epsilon, delta)
    return lambda X: problem.target((_rows(problem, X) @ w)[:, 0])


def classification(problem: Problem, epsilon: float, delta: float) -> Predict:
    """Fit a column of 0 and 1 for each class, the largest of which is predicted."""
    classes = np.unique(problem.y)
    targets = (problem.y[:, None] == classes).astype(float)
    square = problem.norm**2 + 1.0
    w = coefficients(_rows(problem, problem.X), targets, square, epsilon, delta)
    return lambda X: classes[np.argmax(_rows(problem, X) @ w, axis=1)]


if __name__ == "__main__":
    fits = {REGRESSION: regression, TWO_CLASSES: classification, MORE_CLASSES: classification}
    serve({"OpenDP ridge": fits}, {})
