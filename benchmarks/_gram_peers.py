"""References written from their papers, for the benchmark of second moments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy import gdp_mu

__all__ = ["DIFFPRIVLIB", "Mapped", "adassp", "gradient_grid", "noisy_gradient_descent"]

try:
    from diffprivlib.models import LinearRegression as DIFFPRIVLIB
except ImportError:
    DIFFPRIVLIB = None


class Mapped:
    """Features and target mapped to [-1, 1] by public bounds, with a constant column.

    Parameters
    ----------
    X, y : ndarray of shape (n_samples, n_features), (n_samples,)
        All records, whose smallest and largest values stand for public bounds.
    """

    def __init__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        self.bounds = (X.min(axis=0), X.max(axis=0)), (y.min(), y.max())

    def features(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows of norm up to the root of their length."""
        return np.column_stack([_mapped(X, *self.bounds[0]), np.ones(len(X))])

    def target(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values in [-1, 1]."""
        return _mapped(y, *self.bounds[1])

    def score(
        self, w: NDArray[np.float64], X: NDArray[np.float64], y: NDArray[np.float64]
    ) -> float:
        """R2 of a linear function of mapped features."""
        target = self.target(y)
        rest = np.sum((self.features(X) @ w - target) ** 2)
        return float(1.0 - rest / np.sum((target - target.mean()) ** 2))


def _mapped(values: Any, low: Any, high: Any) -> NDArray[np.float64]:
    return np.clip(2.0 * (values - low) / (high - low) - 1.0, -1.0, 1.0)


def adassp(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    rho: float = 0.05,
) -> NDArray[np.float64]:
    """AdaSSP (Wang, arXiv:1803.02596, Algorithm 2), its constants as printed.

    Rows of X have norm up to the root of their length, and |y| is at most 1. The third of the
    guarantee for each of three releases is that of the paper, under add/remove of a record; ours
    are measured under replacement, which asks for more.
    """
    n_columns = X.shape[1]
    square = float(n_columns)  # of the bound on a row
    unit = np.sqrt(np.log(6.0 / delta)) / (epsilon / 3.0)
    gram = X.T @ X
    smallest = float(np.linalg.eigvalsh(gram)[0])
    smallest += unit * square * rng.standard_normal()
    smallest = max(smallest - np.log(6.0 / delta) / (epsilon / 3.0) * square, 0.0)
    spread = np.sqrt(n_columns * np.log(2.0 * n_columns**2 / rho))
    ridge = max(0.0, unit * square * spread - smallest)
    noise = np.triu(rng.standard_normal((n_columns, n_columns)))
    noise += np.triu(noise, 1).T
    moments = X.T @ y + unit * np.sqrt(square) * rng.standard_normal(n_columns)
    noisy = gram + unit * square * noise + ridge * np.eye(n_columns)
    return np.linalg.solve(noisy, moments)


def gradient_grid(quick: bool) -> Iterator[tuple[int, float, float]]:
    """Passes, clip and step of noisy gradient descent to choose from."""
    if quick:
        return itertools.product((10, 50), (0.5,), (0.2,))
    return itertools.product((5, 20, 50, 100), (0.25, 0.5, 1.0, 2.0), (0.05, 0.1, 0.2))


def noisy_gradient_descent(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    n_passes: int,
    clip: float,
    step: float,
) -> NDArray[np.float64]:
    """Full-batch gradient descent with clipped gradients and normal noise, exact composition.

    Each record's gradient is scaled into a ball of radius `clip` (Abadi et al., arXiv:1607.00133,
    Algorithm 1, with all records in every batch); replacing one moves the mean by 2 clip / n.
    """
    deviation = 2.0 * clip / len(y) * np.sqrt(n_passes) / gdp_mu(epsilon, delta)
    norms = np.linalg.norm(X, axis=1)
    w = np.zeros(X.shape[1])
    for _ in range(n_passes):
        residual = X @ w - y
        factor = np.minimum(1.0, clip / np.maximum(np.abs(residual) * norms, 1e-300))
        gradient = X.T @ (factor * residual) / len(y)
        w = w - step * (gradient + deviation * rng.standard_normal(w.size))
    return w
