"""Small problems for the tests of the solver, and the last iterate on them."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.kernels import LOGISTIC, LOSSES, SQUARED, coordinate_descent

each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)

PLAIN = {"clip": None, "grid_size": None}
FINE = {"clip": 1e5, "grid_size": 1e-8}  # a huge clip in tiny steps: nothing is clipped


def problem(n=300, p=4, seed=0, dtype=np.float64, layout="F"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * [1.0, 2.0, 0.5, 1.0][:p] + 0.3
    y = X @ [1.0, -0.5, 0.0, 0.7][:p] + 0.8 + 0.5 * rng.standard_normal(n)
    return np.asarray(X, dtype=dtype, order=layout), y


def labels(y):
    return np.where(y + np.sin(7 * y) > 0.5, 1.0, -1.0)


def target_of(loss, y):
    """What a loss takes for these numbers."""
    return labels(y) if loss is LOGISTIC else y


def curvature(X, intercept):
    M = np.mean(np.asarray(X, dtype=float) ** 2, axis=0)
    return np.append(M, 1.0) if intercept else M


def last(X, y, *, loss=SQUARED, n_passes=400, fit_intercept=False, **keywords):
    smoothness = curvature(X, fit_intercept) * loss.curvature
    keywords.setdefault("step", 1.0 / smoothness)
    *_, theta = coordinate_descent(
        X, y, loss=loss, n_passes=n_passes, fit_intercept=fit_intercept, **keywords
    )
    return theta
