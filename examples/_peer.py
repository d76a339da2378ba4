"""Noisy gradient descent, a private method to compare with."""

import numpy as np
from sklearn.base import BaseEstimator

from skdpnoise.privacy import gdp_mu


class NoisyDescent(BaseEstimator):
    """Linear or logistic regression by gradients of all records, clipped to norm 1, with noise.

    Abadi and others, arXiv:1607.00133, Algorithm 1, with all records in every step; composition is
    exact. Columns and target must be in standard units, and labels False and True: what that takes
    from the data is not paid for. Neighbours differ in one record that is replaced.
    """

    def __init__(self, epsilon, delta=1e-6, step=1.0, n_steps=30):
        self.epsilon, self.delta, self.step, self.n_steps = epsilon, delta, step, n_steps

    def fit(self, X, y):
        """Fit to records; labels are of type bool."""
        rng = np.random.default_rng()
        X = np.column_stack([X, np.ones(len(X))])
        # One record moves the sum of a step by 2 at most, and the costs of steps add in squares.
        deviation = 2.0 * np.sqrt(self.n_steps) / gdp_mu(self.epsilon, self.delta)
        norms, w = np.linalg.norm(X, axis=1), np.zeros(X.shape[1])
        for _ in range(self.n_steps):
            score = X @ w
            slope = (1.0 / (1.0 + np.exp(-score)) if y.dtype == bool else score) - y
            slope *= np.minimum(1.0, 1.0 / np.maximum(np.abs(slope) * norms, 1e-12))
            w -= self.step * (X.T @ slope + deviation * rng.standard_normal(w.size)) / len(X)
        self.coef_, self.intercept_ = w[:-1], w[-1]
        return self

    def score(self, X, y):
        """Return accuracy or R²."""
        score = X @ self.coef_ + self.intercept_
        if y.dtype == bool:
            return np.mean((score > 0) == y)
        return 1.0 - np.mean((y - score) ** 2) / np.var(y)
