"""From real values to integer quanta, and what that costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sensitivity import SensitivityProfile

_LARGEST_QUANTA = 2.0**62
_DIGIT = 2.0**32
_ROUNDING = 1.0 + 1e-5  # nearest_quanta errs by less than 1e-6 of a quantum
_SMALLEST, _LARGEST = 1e-280, 1e280


def norm_of_rounding(order: float, n_entries: int, bits: int) -> float:
    r"""Return what rounding a vector to integer quanta can add to the norm of a change.

    .. math:: K^{1/q} \, 2^{-B}

    Each entry gets at most one more quantum; a factor covers the error of :func:`nearest_quanta`.

    Parameters
    ----------
    order : float
        q.
    n_entries : int
        K.
    bits : int
        B: the unit of the result spans 2**bits quanta.

    Returns
    -------
    float

    Examples
    --------
    >>> round(norm_of_rounding(2.0, 4, 10) * 2**10, 4)
    2.0
    """
    return math.ldexp(n_entries ** (1.0 / order), -bits) * _ROUNDING


def within_doubles(scale: float, bits: int) -> bool:
    """Return whether a scale that spans 2**bits quanta, and its quantum, are far from the limits.

    Parameters
    ----------
    scale : float
        Positive.
    bits : int
        Number of bits.

    Returns
    -------
    bool

    Examples
    --------
    >>> within_doubles(1.0, 24), within_doubles(1e-279, 24)
    (True, False)
    """
    return scale <= _LARGEST and scale * 2.0**-bits >= _SMALLEST


def rounding_cost(
    sensitivity: SensitivityProfile, n_releases: int, bits: int, order: float
) -> float:
    r"""Return what rounding the value to integer quanta can add to the worst |d/s|_q.

    .. math:: (T K)^{1/q} \, 2^{-B}

    Each coordinate that can move gets at most one more quantum, which is 2^-B of its noise scale:
    see :func:`norm_of_rounding`.

    Parameters
    ----------
    sensitivity : SensitivityProfile
        K is the number of its positive entries.
    n_releases : int
        T.
    bits : int
        B.
    order : float
        q.

    Returns
    -------
    float

    Examples
    --------
    >>> round(rounding_cost(SensitivityProfile([1.0, 1.0, 0.0]), 2, 10, 2.0) * 2**10, 4)
    2.0
    """
    moving = int(np.count_nonzero(sensitivity.per_coordinate))
    return norm_of_rounding(order, n_releases * moving, bits)


def nearest_quanta(value: NDArray[np.float64], quantum: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return value/quantum as nearest integers, clipped to ±2**62.

    A float quotient alone is off by many units beyond 2**53, and that error would add to the
    sensitivity. So the quotient is taken in two digits of base 2**32: the remainder of the first is
    exact, hence so is the first digit, and the second is off by less than 1e-6 before rounding.
    Clipping never moves two values further apart.

    Parameters
    ----------
    value, quantum : ndarray of one shape
        In the same units; the quantum positive.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> nearest_quanta(np.array([0.26, 2.0**60]), np.array([0.1, 1.0]))
    array([                  3, 1152921504606846976])
    """
    limit = quantum * _LARGEST_QUANTA
    clipped = np.clip(value, -limit, limit)
    large = quantum * _DIGIT
    rest = np.fmod(clipped, large)
    high = np.rint(clipped / large - rest / large).astype(np.int64)
    low = np.rint(rest / quantum).astype(np.int64)
    quanta: NDArray[np.int64] = high * int(_DIGIT) + low
    return quanta
