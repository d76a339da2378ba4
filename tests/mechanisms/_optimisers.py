"""What the formulas of an allocation must agree with: general optimisers and vertices."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import minimize


def error(scale, weights, p):
    return float((weights * scale**p).sum())


def vertices(limit, radius, order):
    """Vertices, in |d|^order, of the box cut by the ball of the same order."""
    bound, budget = limit**order, radius**order
    for subset in itertools.product([0.0, 1.0], repeat=limit.size):
        full = bound * subset
        rest = budget - full.sum()
        if rest < -1e-12:
            continue
        yield full
        for j in np.flatnonzero(np.array(subset) == 0.0):
            part = full.copy()
            part[j] = min(rest, bound[j])
            yield part


def worst_change(scale, limit, radius):
    """The largest |d/s|_1 over the box and the l2 ball, by a general optimiser."""
    best = minimize(
        lambda d: -(d / scale).sum(),
        np.minimum(limit, radius / np.sqrt(limit.size)) * 0.9,
        jac=lambda d: -1 / scale,
        bounds=[(0.0, x) for x in limit],
        constraints={"type": "ineq", "fun": lambda d: radius**2 - d @ d, "jac": lambda d: -2 * d},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return best.x


def optimum_under_cuts(cuts, weights, order, p):
    """Minimise the error over inverse scales v = s^-order with every cut @ v <= 1 (convex)."""
    cuts = np.array(cuts)
    start = np.full(weights.size, 0.5 / cuts.sum(axis=1).max())
    best = minimize(
        lambda log_v: np.log((weights * np.exp(-log_v * p / order)).sum()),
        np.log(start),
        constraints={
            "type": "ineq",
            "fun": lambda log_v: 1 - cuts @ np.exp(log_v),
            "jac": lambda log_v: -cuts * np.exp(log_v),
        },
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return np.exp(-best.x / order), float(np.exp(best.fun))
