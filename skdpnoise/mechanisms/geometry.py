"""Boxes, balls and norms: the set of changes that one record can make."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sensitivity import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

Vector = NDArray[np.float64]


def moving_coordinates(sensitivity: SensitivityProfile) -> slice | NDArray[np.bool_]:
    """Return an index of the coordinates that a record can move, λ_j > 0; a slice for all."""
    limit = sensitivity.per_coordinate
    return slice(None) if limit.min() > 0.0 else limit > 0.0


def binding_balls(sensitivity: SensitivityProfile, order: float) -> list[tuple[float, float]]:
    """Return the joint bounds (r, Δ_r) with r ≥ q that cut the box, those of lower r first."""
    # A ball with r < q enters as its consequence at r = q: |d|_q is convex in |d|^r, so it is
    # largest when the largest coordinates are filled first. The consequence is rounded up.
    limit = sensitivity.per_coordinate
    radii: dict[float, float] = {}
    for r, radius in ((1.0, sensitivity.l1), (2.0, sensitivity.l2)):
        if radius is None:
            continue
        if r < order:
            ranked = np.sort(limit)[::-1]
            used = np.cumsum((ranked / radius) ** r)
            left = np.clip(1.0 - (used - (ranked / radius) ** r), 0.0, None) ** (1.0 / r)
            # Where the ball cuts, an error of n u in what is left moves the sum by 2 n u of itself.
            radius = rounded_up(norm(np.minimum(ranked, radius * left), order), 4 * limit.size)
            r = order
        radii[r] = min(radius, radii.get(r, radius))
    # A ball that cuts off less than rounding error does not count: to leave it out is safe.
    return [
        (r, radius)
        for r, radius in sorted(radii.items())
        if norm(limit, r) > radius * (1.0 + 1e-12)
    ]


def fill(limit: Vector, shape: Vector, order: float) -> Vector:
    """Return min(limit, τ shape) of unit norm, for a limit of larger norm and a positive shape."""
    level = limit / shape
    ranked = np.argsort(level, kind="stable")
    size = limit[ranked] ** order
    still_open = np.cumsum(shape[ranked][::-1] ** order)[::-1]
    # τ^r if the coordinates before this one are at their limit and the others are not.
    tau = (1.0 - (np.cumsum(size) - size)) / still_open
    fits = tau <= level[ranked] ** order
    if not fits.any():
        return limit
    return np.asarray(
        np.minimum(limit, tau[int(np.argmax(fits))] ** (1.0 / order) * shape), dtype=np.float64
    )


def norm(values: Vector, order: float) -> float:
    """Return |values|_order of non-negative values, in units of the largest (no overflow)."""
    largest = float(values.max())
    if largest == 0.0:
        return 0.0
    total = float(np.sum((values / largest) ** order))
    return largest * math.pow(total, 1.0 / order)
