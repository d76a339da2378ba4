"""The functions of ``tiles``, which says what they do, as compiled loops; this imports numba.

A value meets the same operations in the same order, so the numbers are the same bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skdpnoise.kernels.tiles import (
    DIGIT,
    HALF_SUM,
    HALF_WORD,
    LARGEST_EXPONENT,
    LARGEST_INDEX,
    LIMB,
    LONGEST,
    STEPS,
    Floats,
    Integers,
)

_COMPILED: dict[str, Any] = {"cache": True, "nogil": True}


@njit(**_COMPILED)
def subtract(table: NDArray[Any], pairs: Integers, columns: Integers, tile: Floats) -> None:
    n, mask = pairs.shape[0], (1 << HALF_WORD) - 1
    if table.strides[0] < table.strides[1]:
        for j in range(columns.shape[0]):
            column, out = columns[j], tile[j]
            for i in range(n):
                first, second = pairs[i] >> HALF_WORD, pairs[i] & mask
                out[i] = np.float64(table[first, column]) - np.float64(table[second, column])
        return
    for i in range(n):
        first, second = table[pairs[i] >> HALF_WORD], table[pairs[i] & mask]
        for j in range(columns.shape[0]):
            column = columns[j]
            tile[j, i] = np.float64(first[column]) - np.float64(second[column])


@njit(**_COMPILED)
def count_exponents(tile: Floats, n: int, counts: Integers) -> None:
    for j in range(counts.shape[0]):
        values, count = tile[j], counts[j]
        for i in range(n):
            bits = int(np.float64(values[i]).view(np.int64))
            if bits << 1 != 0:
                exponent = ((bits >> 52) & 0x7FF) - 1023
                exponent = min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT)
                count[exponent + LARGEST_EXPONENT] += 1


@njit(**_COMPILED)
def _signed_index(values: Floats, n: int, inverse: float) -> None:
    """Overwrite values by indices of bins, and by minus the index (perhaps -0.0) below zero."""
    for i in range(n):
        index = np.floor(values[i] * inverse)
        magnitude = min(-1.0 - index if index < 0.0 else abs(index), LARGEST_INDEX)  # not -0.0
        values[i] = -magnitude if index < 0.0 else magnitude


@njit(**_COMPILED)
def count_lengths(tile: Floats, n: int, inverse: Floats, counts: Integers) -> None:
    for j in range(counts.shape[0]):
        values, count = tile[j], counts[j]
        _signed_index(values, n, inverse[j])
        for i in range(n):
            bits = int(np.float64(values[i]).view(np.int64))
            length = min(max(((bits >> 52) & 0x7FF) - 1022, 0), LONGEST)
            count[2 * length - (bits >> 63)] += 1


@njit(**_COMPILED)
def count_digits(tile: Floats, n: int, inverse: Floats, known: Integers, counts: Integers) -> None:
    for j in range(counts.shape[0]):
        values, count = tile[j], counts[j]
        below_zero, start, shift, width = known[:, j]
        _signed_index(values, n, inverse[j])
        for i in range(n):
            negative = -(np.float64(values[i]).view(np.int64) >> 63)
            digit = (np.int64(abs(values[i])) - start) >> shift
            if negative == below_zero and 0 <= digit < 1 << width:
                count[digit] += 1


@njit(**_COMPILED, error_model="numpy")
def clip(tile: Floats, n: int, location: Floats, unit: Floats, reach: float) -> None:
    for j in range(location.shape[0]):
        values, middle, scale = tile[j], location[j], unit[j]
        for i in range(n):
            # In this order of arguments the bound is taken for NaN.
            values[i] = max(-reach, min(reach, (values[i] - middle) / scale))


@njit(**_COMPILED, error_model="numpy")
def add_rounded(tile: Floats, n: int, grid_size: Floats, totals: Integers) -> None:
    for j in range(grid_size.shape[0]):
        values, unit = tile[j], grid_size[j]
        for i in range(n):
            values[i] = np.rint(values[i] / unit)
        total = np.int64(0)
        for i in range(n):
            total += np.int64(values[i])
        totals[j] += total


@njit(**_COMPILED, error_model="numpy")
def add_digits(tile: Floats, n: int, facts: Floats, totals: Integers) -> None:
    mask = (1 << HALF_SUM) - 1
    for j in range(totals.shape[0]):
        values, (low, high, middle, unit, most) = tile[j], facts[:, j]
        for i in range(n):
            k = np.rint((max(low, min(high, values[i])) - middle) / unit)
            values[i] = max(-most, min(most, k))
        upper, lower = np.int64(0), np.int64(0)
        for i in range(n):
            whole = np.int64(values[i])
            upper += whole >> HALF_SUM
            lower += whole & mask
        totals[j, 0] += upper
        totals[j, 1] += lower


@njit(**_COMPILED, error_model="numpy")
def round_to_steps(tile: Floats, n: int, center: Floats, half: Floats) -> None:
    for j in range(center.shape[0]):
        values, middle, width = tile[j], center[j], half[j]
        low, high = middle - width, middle + width
        for i in range(n):
            k = (max(low, min(high, values[i])) - middle) / width * STEPS
            values[i] = np.rint(min(max(k, -STEPS), STEPS))


# All sums are integers below 2**53, so the flags change nothing but the speed.
@njit(**_COMPILED, fastmath={"reassoc", "contract", "nsz"})
def add_powers(tile: Floats, n: int, counts: Integers) -> None:
    for j in range(counts.shape[0]):
        values, total = tile[j], counts[j]
        first = high_high = high_low = low_low = 0.0
        for i in range(n):
            k = values[i]
            high = np.floor(k * (1.0 / DIGIT))
            low = k - high * DIGIT
            first += k
            high_high += high * high
            high_low += high * low
            low_low += low * low
        for part, value in enumerate((first, high_high, high_low, low_low)):
            whole = np.int64(value)
            total[2 * part] += whole >> LIMB
            total[2 * part + 1] += whole & ((1 << LIMB) - 1)


@njit(**_COMPILED)
def count_bins(tile: Floats, n: int, inner: Floats, counts: Integers) -> None:
    places = np.empty(n, dtype=np.int64)
    for j in range(inner.shape[0]):
        values, edges, count = tile[j], inner[j], counts[j]
        places[:] = 0
        step = (edges.shape[0] + 1) >> 1
        while step > 0:  # a binary search of all values at once, without branches
            for i in range(n):
                places[i] += step * np.int64(edges[places[i] + step - 1] <= values[i])
            step >>= 1
        for i in range(n):
            count[places[i]] += 1
