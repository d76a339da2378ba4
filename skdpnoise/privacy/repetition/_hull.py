"""The compiled upper hull of points in the plane; this file imports numba."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@njit(cache=True, nogil=True)
def upper_hull(x: Vector, y: Vector) -> NDArray[np.int64]:
    """Return the vertices of the least concave function above points with ascending x."""
    kept = np.empty(x.size, np.int64)
    n = 0
    for i in range(x.size):
        if n > 0 and x[kept[n - 1]] == x[i]:
            if y[kept[n - 1]] >= y[i]:
                continue
            n -= 1
        while n > 1:
            one, two = kept[n - 2], kept[n - 1]
            if (y[i] - y[two]) * (x[two] - x[one]) < (y[two] - y[one]) * (x[i] - x[two]):
                break
            n -= 1
        kept[n] = i
        n += 1
    return kept[:n]
