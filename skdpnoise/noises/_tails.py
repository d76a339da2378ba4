"""Both halves of a symmetric density from one of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise.privacy.half_lines import Array


def reflect(upper: Callable[[Array], Array], z: ArrayLike) -> Array:
    """Return P(Z > z) of a symmetric density from its values at z >= 0."""
    z = np.asarray(z, dtype=np.float64)
    tail = upper(np.abs(z))
    return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail))


@np.errstate(divide="ignore", invalid="ignore")  # infinity, and infinity minus it, at q = 0
def reflect_inverse(lower_half: Callable[[Array], Array], q: ArrayLike) -> Array:
    """Return the inverse of P(Z > z) from its values at q <= 1/2; infinite at 0 and 1."""
    q = np.asarray(q, dtype=np.float64)
    magnitude = lower_half(np.minimum(q, 1.0 - q))
    return np.asarray(np.where(q == 0.5, 0.0, np.copysign(magnitude, 0.5 - q)))


def log_density(exponent: Callable[[Array], Array], total: float, z: ArrayLike) -> Array:
    """Return the logarithm of exp(-rho) / N, of the shape of `z`, from rho on [0, inf)."""
    return np.asarray(-exponent(np.abs(np.asarray(z, dtype=np.float64))) - math.log(total))
