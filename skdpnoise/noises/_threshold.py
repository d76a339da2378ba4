"""What the noise families share: their half-lines, and the two tails of a symmetric density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy.half_lines import (
    SQRT_2PI,
    mills,
    mills_descent,
    mills_fall,
    pairs,
    ratio,
    threshold_delta,
)

__all__ = [
    "SQRT_2PI",
    "mills",
    "mills_descent",
    "mills_fall",
    "pairs",
    "ratio",
    "reflect",
    "reflect_inverse",
    "threshold_delta",
    "unbounded_loss",
]

Array = NDArray[np.float64]


def unbounded_loss(shift: ArrayLike) -> Array:
    """Return infinity for every change but none."""
    return np.where(np.asarray(shift, dtype=np.float64) > 0.0, np.inf, 0.0)


def reflect(upper: Callable[[Array], Array], z: ArrayLike) -> Array:
    """Return P(Z > z) of a symmetric density from its values at z >= 0."""
    z = np.asarray(z, dtype=np.float64)
    tail = upper(np.abs(z))
    return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail))


def reflect_inverse(lower_half: Callable[[Array], Array], q: ArrayLike) -> Array:
    """Return the inverse of P(Z > z) from its values at q <= 1/2; infinite at 0 and 1."""
    q = np.asarray(q, dtype=np.float64)
    with np.errstate(divide="ignore"):
        magnitude = lower_half(np.minimum(q, 1.0 - q))
    return np.asarray(np.where(q == 0.5, 0.0, np.copysign(magnitude, 0.5 - q)))
