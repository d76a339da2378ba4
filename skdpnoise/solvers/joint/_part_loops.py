"""Loops over gradients of single records, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_MARGIN = 1.0 - 2.0**-30  # of factors: nearly all rounding is within it
_SMALLER = 1.0 - 2.0**-22  # a factor whose integers are too long is made smaller by this


# Sums of whole numbers are exact, so that their order is free; that of a norm is not seen.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _size(values: NDArray[np.floating[Any]], order: int) -> float:
    """Return the sum of r-th powers of magnitudes, in double precision."""
    size = 0.0
    if order == 1:
        for value in values:
            size += abs(np.float64(value))
    else:
        for value in values:
            size += np.float64(value) * np.float64(value)
    return size


@njit(cache=True, nogil=True)
def clipped_sums(
    gradients: NDArray[np.float32],
    present: NDArray[np.bool_],
    starts: NDArray[np.int64],
    bounds: NDArray[np.float64],
    steps: NDArray[np.float64],
    powers: NDArray[np.float64],
    order: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return sums of integers, which double precision holds, and how many more were not clipped."""
    n_groups, n_coordinates = len(bounds), gradients.shape[1]
    total, whole = np.zeros(n_coordinates), np.empty(n_coordinates)
    norms, excess = np.empty(n_groups), np.zeros(n_groups, dtype=np.int64)
    for i in np.flatnonzero(present):
        row = gradients[i]
        for g in range(n_groups):
            size = _size(row[starts[g] : starts[g + 1]], order)
            norms[g] = size if order == 1 else math.sqrt(size)
        if not np.isfinite(norms).all():
            continue
        for g in range(n_groups):
            here = slice(starts[g], starts[g + 1])
            factor = 1.0 / steps[g]
            excess[g] += 1
            if norms[g] > bounds[g]:
                factor *= bounds[g] / norms[g] * _MARGIN
                excess[g] -= 2
            _truncate(row[here], factor, powers[g], order, whole[here])
        total += whole
    return total, excess


@njit(cache=True, nogil=True)
def _truncate(
    row: NDArray[np.float32], factor: float, most: float, order: int, whole: NDArray[np.float64]
) -> None:
    """Store a multiple of a row as integers, towards zero, of a size that is verified."""
    while True:
        for j in range(len(row)):
            whole[j] = np.trunc(np.float64(row[j]) * factor)
        if _size(whole, order) <= most:
            return
        factor *= _SMALLER
