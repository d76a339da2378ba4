"""Loops over gradients of single records, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


# That of a norm is a matter of rounding; sums of whole numbers are exact, so that their order is
# free.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def add_powers(
    table: NDArray[np.float32],
    columns: tuple[int, int],
    rows: NDArray[np.intp],
    order: int,
    sizes: NDArray[np.float64],
) -> None:
    """Add to the size of each row the sum of r-th powers of magnitudes in some columns."""
    for i in rows:
        values = table[i, columns[0] : columns[1]]
        size = 0.0
        if order == 1:
            for j in range(len(values)):
                size += abs(np.float64(values[j]))
        else:
            for j in range(len(values)):
                size += np.float64(values[j]) * np.float64(values[j])
        sizes[i] += size


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def add_whole(
    table: NDArray[np.float32],
    columns: tuple[int, int],
    rows: NDArray[np.intp],
    factors: NDArray[np.float64],
    order: int,
    total: NDArray[np.float64],
    sizes: NDArray[np.float64],
) -> None:
    """Add multiples of rows, as integers towards zero, and of each the sum of r-th powers."""
    # The factor of each row has a sign: minus the same factor takes the same integers away.
    for i in rows:
        values, factor, size = table[i, columns[0] : columns[1]], factors[i], 0.0
        if order == 1:
            for j in range(len(values)):
                whole = np.trunc(np.float64(values[j]) * factor)
                total[j] += whole
                size += abs(whole)
        else:
            for j in range(len(values)):
                whole = np.trunc(np.float64(values[j]) * factor)
                total[j] += whole
                size += whole * whole
        sizes[i] += size
