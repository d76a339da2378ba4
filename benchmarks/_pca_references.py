"""Private PCA as its papers have it, for comparison: not exact, not for private data.

Chaudhuri, Sarwate and Sinha and "Analyze Gauss" add noise to the second moments of rows of public
norm; Amin et al. draw one eigenvector after another by the exponential mechanism.
"""

from __future__ import annotations

import importlib
import math
import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Matrix = NDArray[np.float64]

_MOST_FOR_OPENDP = 40  # columns: its sampler of directions rejects nearly all where there are more


def analyze_gauss(
    X: Matrix, k: int, norm: float, epsilon: float, delta: float, rng: np.random.Generator
) -> Matrix:
    """Dwork et al. 2014, Algorithm 1: equal noise on the upper triangle, rows of public norm."""
    p = X.shape[1]
    size = np.linalg.norm(X, axis=1)
    rows = X * np.minimum(1.0, norm / np.maximum(size, 1e-300))[:, None]
    # replacing a row moves the moments by up to √2 squared norms
    sigma = math.sqrt(2.0) * norm**2 * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    upper = np.triu(rng.normal(size=(p, p)) * sigma)
    noise = upper + np.triu(upper, 1).T
    return np.linalg.eigh(rows.T @ rows + noise)[1][:, : -k - 1 : -1].T


def diffprivlib_pca(
    X: Matrix, k: int, norm: float, epsilon: float, delta: float, rng: np.random.Generator
) -> Matrix:
    """IBM's library, pure privacy only; it also spends on the mean, within public bounds."""
    models: Any = importlib.import_module("diffprivlib.models")
    bounds = (X.min(axis=0), X.max(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = models.PCA(k, epsilon=epsilon, data_norm=norm, bounds=bounds, centered=False)
        return np.asarray(model.fit(X).components_)


def opendp_pca(
    X: Matrix, k: int, norm: float, epsilon: float, delta: float, rng: np.random.Generator
) -> Matrix:
    """OpenDP's estimator, pure privacy only: eigenvectors one after another."""
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    module = importlib.import_module("opendp.extras.sklearn.decomposition")
    n, p = X.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = module.PCA(
            epsilon=epsilon, row_norm=norm, n_samples=n, n_features=p, n_components=k
        )
        return np.asarray(model.fit(X).components_)[:k]


@cache
def peers(n_features: int, epsilon: float) -> dict[str, Any]:
    """Return the references, and what is installed, imports and takes less than minutes."""
    found: dict[str, Any] = {"Analyze Gauss": analyze_gauss}
    installed = [(["diffprivlib.models"], "diffprivlib", diffprivlib_pca)]
    if n_features <= _MOST_FOR_OPENDP and epsilon <= 1.0:
        installed.append((["opendp.prelude", "randomgen"], "OpenDP", opendp_pca))
    for modules, label, fit in installed:
        try:
            for module in modules:
                importlib.import_module(module)
        except ImportError:
            print(f"{label} is left out: it is not installed, or not for these versions")
        else:
            found[label] = fit
    return found


def exponential_eigenvectors(
    S: Matrix, k: int, norm: float, epsilon: float, rng: np.random.Generator
) -> Matrix:
    r"""Draw k orthogonal directions one after another, each with ε/k.

    .. math:: f(v) \propto \exp\!\left(\frac{\varepsilon}{2 k R^2} v^\top S v\right)

    on the unit sphere of what is left: replacing a row moves the utility by at most R² either way
    (Amin et al. 2019, Algorithm 1, with the budget shared equally).
    """
    basis = np.eye(len(S))
    directions = []
    for _ in range(k):
        inside = bingham(epsilon / (2.0 * k * norm**2) * (basis.T @ S @ basis), rng)
        directions.append(basis @ inside)
        frame, _ = np.linalg.qr(np.column_stack([inside, np.eye(len(inside))]))
        basis = basis @ frame[:, 1 : len(inside)]
    return np.array(directions)


def bingham(matrix: Matrix, rng: np.random.Generator) -> Matrix:
    """Draw from the density exp(x'Mx) on the sphere: rejection from an angular normal law.

    Kent, Ganeiber and Mardia, "A new unified approach for the simulation of a wide class of
    directional distributions", JCGS 2018, Section 3.
    """
    values, vectors = np.linalg.eigh(matrix)
    a = values[-1] - values
    p = a.size
    if p == 1:
        return vectors[:, 0]
    b = brentq(lambda b: float(np.sum(1.0 / (b + 2.0 * a))) - 1.0, 1e-12, float(p))
    omega = 1.0 + 2.0 * a / b
    bound = -0.5 * (p - b) + 0.5 * p * math.log(p / b)
    while True:
        z = rng.standard_normal((16, p)) / np.sqrt(omega)
        z /= np.linalg.norm(z, axis=1)[:, None]
        log_odds = -(z**2) @ a + 0.5 * p * np.log(z**2 @ omega) - bound
        (kept,) = np.nonzero(np.log(rng.random(16)) < log_odds)
        if kept.size:
            return vectors @ z[kept[0]]
