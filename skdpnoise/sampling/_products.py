"""The compiled product of two matrices of integers; this file imports numba."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


# Integers, so the flags change nothing but the speed: no sum is ever rounded. (Threads of a BLAS
# library get in the way of each other when there are more processes than cores.)
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def exact_products(
    one: NDArray[np.float64], other: NDArray[np.float64], out: NDArray[np.int64]
) -> None:
    """Write the products of all rows of one with all rows of the other."""
    size, n = one.shape
    for j in range(size):
        a = one[j]
        for k in range(0, size // 4 * 4, 4):
            b0, b1, b2, b3 = other[k], other[k + 1], other[k + 2], other[k + 3]
            s0 = s1 = s2 = s3 = 0.0
            for i in range(n):
                s0 += a[i] * b0[i]
                s1 += a[i] * b1[i]
                s2 += a[i] * b2[i]
                s3 += a[i] * b3[i]
            out[j, k] = np.int64(s0)
            out[j, k + 1] = np.int64(s1)
            out[j, k + 2] = np.int64(s2)
            out[j, k + 3] = np.int64(s3)
        for k in range(size // 4 * 4, size):
            b = other[k]
            s = 0.0
            for i in range(n):
                s += a[i] * b[i]
            out[j, k] = np.int64(s)
