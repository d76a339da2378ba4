"""From real values to integer grid steps, and what that costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sensitivity import SensitivityProfile

_LARGEST_QUANTA = 2.0**62
_DIGIT = 2.0**32
_ROUNDING = 1.0 + 1e-5  # nearest_quanta errs by less than 1e-6 of a grid step


def norm_of_rounding(order: float, n_entries: int, bits: int) -> float:
    r"""Return what rounding K entries to integer grid steps can add to the q-norm of a change.

    .. math:: K^{1/q} \, 2^{-B}
    """
    # Each entry gets at most one more grid step; a factor covers the error of nearest_quanta.
    return math.ldexp(n_entries ** (1.0 / order), -bits) * _ROUNDING


def rounding_cost(
    sensitivity: SensitivityProfile, n_releases: int, bits: int, order: float
) -> float:
    r"""Return what rounding to integer grid steps can add to the worst |d/s|_q of T releases.

    .. math:: (T K)^{1/q} \, 2^{-B}
    """
    # Each of the K coordinates that can move gets at most one more grid step, 2^-B of its noise
    # scale.
    moving = int(np.count_nonzero(sensitivity.per_coordinate))
    return norm_of_rounding(order, n_releases * moving, bits)


def nearest_quanta(value: NDArray[np.float64], grid_size: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return value/grid step as nearest integers, clipped to ±2**62."""
    # A float quotient alone is off by many units beyond 2**53, and that error would add to the
    # sensitivity. So the quotient is taken in two digits of base 2**32: the remainder of the first
    # is exact, hence so is the first digit, and the second is off by less than 1e-6 before
    # rounding. Clipping never moves two values further apart.
    limit = grid_size * _LARGEST_QUANTA
    clipped = np.clip(value, -limit, limit)
    large = grid_size * _DIGIT
    rest = np.fmod(clipped, large)
    high = np.rint(clipped / large - rest / large).astype(np.int64)
    low = np.rint(rest / grid_size).astype(np.int64)
    return high * int(_DIGIT) + low
