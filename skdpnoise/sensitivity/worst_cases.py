r"""Upper bounds of what a box and a ball allow, valid in floating point.

A maximum that is found by comparing floating-point numbers can be far too small where two of them
tie. So no maximum here rests on a comparison. By weak duality *every* price θ ≥ 0 of the ball's
constraint gives an upper bound: a search proposes the price, and what is returned is the bound at
that price, or at none if that is less, rounded up by more than its rounding error.

.. math:: \max \Bigl(\sum_j (w_j x_j)^q\Bigr)^{1/q} \quad\text{s.t.}\quad
          0 \le x_j \le c_j, \; \sum_j x_j^r \le R^r, \qquad q \le r

In :math:`u_j = (x_j/R)^r` the objective :math:`\sum_j v_j u_j^a` with :math:`v = (w R)^q` and a =
q/r is concave, and with :math:`m = (c/R)^r`, for every price θ ≥ 0,

.. math:: \sum_j v_j u_j^a \le \theta + \sum_j \max_{0 \le u \le m_j} (v_j u^a - \theta u)

with equality at the best price: for a = 1 it is the value of the first item of a knapsack that does
not fit whole (Dantzig), else that of :math:`u_j = \min(m_j, \tau v_j^{1/(1-a)})` with τ such that u
lies on the ball.

Dantzig, "Discrete-variable extremum problems", Operations Research 5(2), 1957 (the knapsack). Boyd
and Vandenberghe, "Convex optimization", 2004, Section 5.1.3 (weak duality).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["all_rounded_up", "largest_norm", "rounded_up"]

Vector = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_FEW = 32.0  # roundings of one term of a sum, with room to spare
# Smaller entries, in units of the largest, are raised to this: a larger box, or weight, is safe,
# and squares stay within double precision.
_LEAST = 1e-140


def rounded_up(value: float, n_terms: int = 1) -> float:
    r"""Return a number above a sum of non-negative terms whose computed value is given.

    .. math:: (1 + (n + 32) \, 2^{-52}) \, v
    """
    # and the next float. A sum of n such terms, in any order, errs by less than n   2^{-53} of
    # itself; the rest is for up to 32 roundings of each term, its powers included.
    return math.nextafter(value * (1.0 + (n_terms + _FEW) * _EPS), math.inf)


def all_rounded_up(values: Vector, n_terms: Vector | float = 1.0) -> Vector:
    """Return numbers above sums of ``n_terms`` non-negative terms, as :func:`rounded_up` does."""
    return np.asarray(np.nextafter(values * (1.0 + (n_terms + _FEW) * _EPS), np.inf))


def largest_norm(
    weight: Vector, limit: Vector, radius: float, *, order: float = 1.0, ball: float = 2.0
) -> float:
    """Return the largest weighted norm of a vector in a box and a ball, rounded up."""
    used = (weight > 0.0) & (limit > 0.0)
    if not used.all():
        weight, limit = weight[used], limit[used]
    if weight.size == 0:
        return 0.0
    top = float(weight.max())
    if top == math.inf:
        return math.inf
    a = order / ball
    value = np.maximum(weight / top, _LEAST) ** order
    size = np.maximum(np.minimum(limit, radius) / radius, _LEAST) ** ball
    in_box = value * size**a
    best = float(in_box.sum())
    if float(size.sum()) > 1.0:
        priced = _knapsack(value, size) if a == 1.0 else _concave(value, size, in_box, a)
        best = min(best, priced)
    best = rounded_up(best, round(weight.size + 8.0 / (1.0 - a) if a < 1.0 else weight.size))
    return rounded_up(rounded_up(best ** (1.0 / order) * radius) * top)


def _knapsack(value: Vector, size: Vector) -> float:
    """Return θ + Σ (v - θ)₊ m for the value θ of the item at which the knapsack is full."""
    ranked = np.argsort(-value, kind="stable")
    at = min(int(np.searchsorted(np.cumsum(size[ranked]), 1.0)), size.size - 1)
    price = float(value[ranked[at]])
    return price + float(np.maximum(value - price, 0.0) @ size)


def _concave(value: Vector, size: Vector, in_box: Vector, a: float) -> float:
    r"""Return the bound at the price :math:`\theta = a \tau^{a-1}`."""
    # Where the maximum over u lies within the box it is (1 - a) v (τ v^{1/(1-a)})^a.
    shape = np.maximum(value ** (1.0 / (1.0 - a)), _LEAST**2)
    level = size / shape
    ranked = np.argsort(level, kind="stable")
    steps, full = level[ranked], np.cumsum(size[ranked])
    still_open = np.cumsum(shape[ranked][::-1])[::-1]
    # τ if the coordinates before this one are at their limit and the others are not.
    tau = (1.0 - full + size[ranked]) / still_open
    fits = tau <= steps
    at = int(np.argmax(fits)) if fits.any() else fits.size - 1
    # Between two levels, whatever rounding has done to it.
    chosen = min(max(float(tau[at]), float(steps[at - 1]) if at else 0.0), float(steps[at]))
    if chosen <= 0.0:
        return math.inf
    price = a * math.pow(chosen, a - 1.0)
    inside = chosen * shape
    within = np.where(inside < size, (1.0 - a) * value * inside**a, in_box - price * size)
    return price + float(within.sum())
