"""The four objectives of the DP-CD study and their minima."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Lasso, LogisticRegression

from skdpnoise.datasets import fetch_california, fetch_electricity
from skdpnoise.kernels import LOSSES, coordinate_descent
from skdpnoise.privacy import PrivacyGuarantee

# Ten passes of the library's own solver must not improve the minimum by more than this.
_OPTIMALITY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Minimise (1/n) Σ loss(x_i.w, y_i) + l1 |w|_1 + (l2/2) |w|²; no intercept."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    loss: Any
    l1: float
    l2: float
    minimum: float = float("nan")

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """Epsilon 1 and delta 1/n², under replacement of one record."""
        return PrivacyGuarantee(1.0, 1.0 / len(self.y) ** 2, adjacency="replace_one")

    @property
    def feature_size(self) -> NDArray[np.float64]:
        """Root mean square of each column, taken as public (as in the study)."""
        return np.sqrt(np.mean(self.X**2, axis=0))

    @property
    def curvature(self) -> NDArray[np.float64]:
        """M_j, a bound on the second derivative along coordinate j; public like feature_size."""
        return self.feature_size**2 * LOSSES[self.loss].curvature

    def objective(self, w: NDArray[np.float64]) -> float:
        """Value at w."""
        score = self.X @ w
        if self.loss == "squared":
            risk = 0.5 * np.mean((score - self.y) ** 2)
        else:
            risk = np.mean(np.logaddexp(0.0, -self.y * score))
        return float(risk + self.l1 * np.abs(w).sum() + 0.5 * self.l2 * (w @ w))

    def relative_error(self, w: NDArray[np.float64]) -> float:
        """(F(w) - F*) / F*."""
        return self.objective(w) / self.minimum - 1.0


def load_problems(data_home: str | os.PathLike[str] | None = None) -> dict[str, Problem]:
    """The raw and the standardised problem of California housing and of Electricity.

    Raises
    ------
    RuntimeError
        If scikit-learn's minimum and the library's own solver disagree.
    """
    X, y = fetch_california(data_home=data_home, return_X_y=True)
    problems = [
        _solved("california_raw", X, y, "squared", l1=1.0, l2=0.0),
        _solved("california_standardised", _standardised(X), y, "squared", l1=0.1, l2=0.0),
    ]
    X, label = fetch_electricity(data_home=data_home, return_X_y=True)
    y = np.where(label == "UP", 1.0, -1.0)
    problems += [
        _solved("electricity_raw", X, y, "logistic", l1=0.0, l2=1.0 / len(y)),
        _solved("electricity_standardised", _standardised(X), y, "logistic", l1=0.0, l2=1 / len(y)),
    ]
    return {problem.name: problem for problem in problems}


def _standardised(X: NDArray[np.float64]) -> NDArray[np.float64]:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _solved(
    name: str, X: NDArray[np.float64], y: NDArray[np.float64], loss: Any, *, l1: float, l2: float
) -> Problem:
    if loss == "squared":
        model = Lasso(alpha=l1, fit_intercept=False, tol=1e-12, max_iter=1_000_000)
    else:
        model = LogisticRegression(
            C=1.0 / (len(y) * l2),
            fit_intercept=False,
            solver="newton-cholesky",
            tol=1e-10,
            max_iter=1000,
        )
    w = np.ravel(model.fit(X, y).coef_).astype(np.float64)
    problem = Problem(name, np.asfortranarray(X), y, loss, l1, l2)
    # A point that exact coordinate descent cannot improve is the minimum of these objectives.
    *_, moved = coordinate_descent(
        problem.X,
        y,
        loss=LOSSES[loss],
        n_passes=10,
        step=1.0 / problem.curvature,
        l1=l1,
        l2=l2,
        coef_init=w,
    )
    minimum = problem.objective(w)
    if not problem.objective(moved) >= minimum * (1.0 - _OPTIMALITY):
        raise RuntimeError(f"{name}: scikit-learn's solution is not the minimum.")
    return Problem(name, problem.X, y, loss, l1, l2, minimum)
