r"""Any penalty from noisy second moments: pseudo-data for ordinary solvers, by post-processing.

The noisy matrix is projected to the positive semi-definite cone. Eigenvalues ℓ of the predictors'
block that the noise hides are raised:

.. math:: \ell \to \ell + h^2 / \ell, \qquad h = \kappa / 2

with κ the noise level, known since the law of the noise is. This regularises the normal equations
as errors in the predictors ask for (it minimises :math:`|G w - g|^2 + h^2 |w|^2`), and changes
eigenvalues far above the noise only in second order. The square root of the result is data of a
few rows that have these second moments, on which any least-squares solver gives the answer.

Every model is drawn towards the constant 0, the centre of the target, by as much as a ridge on the
same moments may be noise (:func:`~skdpnoise.linear_model._defaults.kept`); a half of the target's
mean stays in any case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import enet_path, ridge_regression

from skdpnoise.estimators.seal import silence
from skdpnoise.linear_model._defaults import kept

__all__ = ["PseudoData", "make_pseudo_data"]

_SMALLEST = 0.02  # of h: eigenvalues are raised by at most h over this
# Least part of the target's mean that is kept: it was found twice, here and by a search, and either
# is noisy.
_TRUSTED = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class PseudoData:
    """Few rows with the second moments of many: centred, so that solvers need no intercept."""

    X: np.ndarray  # (n_rows, n_features), in standard units, as y
    y: np.ndarray
    feature_mean: np.ndarray  # what the intercept makes up for; zeros without one
    target_mean: float  # the same for the target
    used: np.ndarray  # which of all features these are; the others have coefficient 0
    noise_level: float = 0.0  # κ: that of one moment times the root of the number of predictors

    @property
    def alpha_max(self) -> float:
        """The least l1 penalty for which all coefficients are 0."""
        return float(np.abs(self.X.T @ self.y).max(initial=0.0)) / len(self.y)

    def solve(self, alphas: ArrayLike, l1_ratio: float) -> np.ndarray:
        """Return the elastic nets of all penalties, shape (n_alphas, n_all_features + 1)."""
        # The last column is the intercept. Each minimises `|y - X w|² / (2 n_rows) + alpha
        # (l1_ratio |w|_1 + (1 - l1_ratio) |w|² / 2)`.
        alphas = np.asarray(alphas, dtype=np.float64)
        models = np.zeros((len(alphas), self.used.size + 1))
        coefs = self._coefs(alphas, l1_ratio)
        part = self._kept()
        coefs *= part
        models[:, np.flatnonzero(self.used)] = coefs
        models[:, -1] = max(part, _TRUSTED) * self.target_mean - coefs @ self.feature_mean
        return models

    def _kept(self) -> float:
        """Return the part of every model that is kept: how much of a ridge is no noise."""
        n_features = self.X.shape[1]
        if not self.noise_level or not n_features:
            return 1.0
        ridge = 0.5 * self.noise_level
        coefs = self._coefs(np.array([ridge]), 0.0)[0]
        explained = ((self.X @ coefs) ** 2).mean()
        values = np.linalg.svd(self.X, compute_uv=False) ** 2 / len(self.X)
        # Moments with the target are noisy, and so are those that coefficients are multiplied by.
        variance = self.noise_level**2 / (n_features + 1.0) * (1.0 + coefs @ coefs)
        # Half of it: where eigenvalues were raised, coefficients are nearer to 0 already.
        noise = 0.5 * variance * (values / (values + ridge) ** 2).sum()
        return float(kept(explained, noise, 1.0 + np.sqrt(2.0 / n_features)))

    def _coefs(self, alphas: np.ndarray, l1_ratio: float) -> np.ndarray:
        coefs = np.zeros((len(alphas), self.X.shape[1]))
        if self.alpha_max == 0.0:
            return coefs
        lasso = alphas * l1_ratio > 0.0
        for k in np.flatnonzero(~lasso):
            strength = len(self.y) * alphas[k]
            coefs[k] = ridge_regression(self.X, self.y, strength, solver="svd")
        if lasso.any():
            with silence():  # what is left after so many iterations is far below the noise
                order = np.flatnonzero(lasso)[np.argsort(-alphas[lasso], kind="stable")]
                _, path, _ = enet_path(
                    np.asfortranarray(self.X),
                    self.y,
                    l1_ratio=l1_ratio,
                    alphas=alphas[order],
                    tol=1e-12,
                    max_iter=10_000,
                )
            coefs[order] = path.T
        return coefs


def make_pseudo_data(moments: np.ndarray, used: np.ndarray, noise_level: float) -> PseudoData:
    """Return data whose second moments are those released, repaired and centred."""
    n_features = int(np.count_nonzero(used))
    matrix = _projected(moments)
    predictors = np.delete(np.arange(len(matrix)), n_features)
    block = np.ix_(predictors, predictors)
    matrix[block] += _raised(matrix[block], 0.5 * noise_level)
    mean = np.zeros(n_features + 1)
    centred = matrix[: n_features + 1, : n_features + 1]
    if len(matrix) == n_features + 2 and matrix[-1, -1] > 0.0:
        # Least squares with a free intercept: what the constant does not explain.
        mean = matrix[-1, :-1] / matrix[-1, -1]
        centred = centred - np.outer(mean, matrix[-1, :-1])
    values, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    root = np.sqrt(np.maximum(values, 0.0) * len(values))[:, np.newaxis] * vectors.T
    return PseudoData(root[:, :-1], root[:, -1], mean[:-1], float(mean[-1]), used, noise_level)


def _projected(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest positive semi-definite matrix, in Frobenius norm."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _raised(matrix: np.ndarray, level: float) -> np.ndarray:
    """Return what raises every eigenvalue ℓ by level²/ℓ."""
    if level == 0.0 or matrix.size == 0:
        return np.zeros_like(matrix)
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * (level**2 / np.maximum(values, _SMALLEST * level))) @ vectors.T)
