"""Compiled loops over a tile of rows: standardise, clip, round to integers, and multiply.

A tile holds some rows of the data column by column, in double precision. Loops run over the rows of
one column, so the vector lanes are different rows: nothing that is done to one row is reassociated,
and its integers are the same bit for bit in any tile, thread, layout or lane.

This file imports numba; ``_plain_rows`` has the same functions in numpy. No function calls another
one: numba would optimise the inner one once for itself and once more for each that calls it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from skdpnoise.kernels._plain_rows import SLACK, Floats


@njit(cache=True, nogil=True, error_model="numpy")
def standardise(
    tile: Floats, n: int, standard: tuple[Floats, Floats, Floats, Floats], sums: Floats
) -> None:
    """Standardise and clip the first n rows of a tile; measure each of them."""
    center, inverse_scale, beyond, limit = standard
    squares, magnitudes, sizes = sums[0], sums[1], sums[2]
    squares[:n] = 0.0
    magnitudes[:n] = 0.0
    for j in range(center.shape[0]):
        column, middle, factor = tile[j], center[j], inverse_scale[j]
        near, bound = beyond[j], limit[j]
        for i in range(n):
            # Written as comparisons so that a NaN becomes a bound.
            z = (column[i] - middle) * factor
            if near > 0.0:
                inner = z if z > -near else -near
                z -= inner if inner < near else near
            z = z if z > -bound else -bound
            z = z if z < bound else bound
            column[i] = z
            squares[i] += z * z
            magnitudes[i] += abs(z)
    for i in range(n):
        sizes[i] = math.sqrt(squares[i])
    for i in range(n):
        if not 1e-280 < squares[i] < 1e280:  # more slowly, since it over- or underflowed
            largest = 0.0
            for j in range(center.shape[0]):
                largest = max(largest, abs(tile[j, i]))
            total = 0.0
            if largest > 0.0:
                for j in range(center.shape[0]):
                    share = tile[j, i] / largest
                    total += share * share
            sizes[i] = largest * math.sqrt(total)


@njit(cache=True, nogil=True, error_model="numpy")
def quantise(
    tile: Floats, n: int, grid: tuple[Floats, Floats, float, float], sums: Floats, out: Floats
) -> None:
    """Write the integers of the first n rows of a standardised tile."""
    # A row is shrunk into both balls and rounded to the nearest integers. If what they stand for is
    # outside a ball, it is rounded towards zero instead; if it is outside still, it becomes zero.
    # Whatever a row holds, its integers are finite and within the bounds: they are checked last.
    grid_size, most, norm, l1_norm = grid
    squares, magnitudes, factors = sums[0], sums[1], sums[2]
    for i in range(n):
        factor = norm / factors[i] if factors[i] > norm else 1.0
        shrunk = magnitudes[i] * factor
        factors[i] = l1_norm / magnitudes[i] if shrunk > l1_norm else factor
        squares[i] = 0.0
    magnitudes[:n] = 0.0
    for j in range(grid_size.shape[0]):
        column, whole, unit, bound = tile[j], out[j], grid_size[j], most[j]
        inverse = 1.0 / unit
        for i in range(n):
            k = np.rint(column[i] * factors[i] * inverse)
            k = k if k > -bound else -bound
            k = k if k < bound else bound
            whole[i] = k
            value = k * unit
            squares[i] += value * value
            magnitudes[i] += abs(value)
    most_squares, most_magnitudes = norm * norm * SLACK, l1_norm * SLACK
    for i in range(n):
        if squares[i] <= most_squares and magnitudes[i] <= most_magnitudes:
            continue
        total, size = 0.0, 0.0
        for j in range(grid_size.shape[0]):
            k = np.trunc(tile[j, i] * factors[i] * (1.0 / grid_size[j]))
            k = k if k > -most[j] else -most[j]
            k = k if k < most[j] else most[j]
            out[j, i] = k
            total += (k * grid_size[j]) * (k * grid_size[j])
            size += abs(k * grid_size[j])
        if not (total <= most_squares and size <= most_magnitudes):
            for j in range(grid_size.shape[0]):
                out[j, i] = 0.0


# Integers, so the flags change nothing but the speed: no sum is ever rounded.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def add_products(tile: Floats, n: int, total: Floats) -> None:
    """Add the products of all pairs of columns to the upper triangle, four by four."""
    p = tile.shape[0]
    for j in range(0, p, 4):
        a0, a1, a2, a3 = tile[j], tile[j + 1], tile[j + 2], tile[j + 3]
        for k in range(j, p, 4):
            b0, b1, b2, b3 = tile[k], tile[k + 1], tile[k + 2], tile[k + 3]
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
            for i in range(n):
                x0, x1, x2, x3 = a0[i], a1[i], a2[i], a3[i]
                y0, y1, y2, y3 = b0[i], b1[i], b2[i], b3[i]
                s00 += x0 * y0
                s01 += x0 * y1
                s02 += x0 * y2
                s03 += x0 * y3
                s10 += x1 * y0
                s11 += x1 * y1
                s12 += x1 * y2
                s13 += x1 * y3
                s20 += x2 * y0
                s21 += x2 * y1
                s22 += x2 * y2
                s23 += x2 * y3
                s30 += x3 * y0
                s31 += x3 * y1
                s32 += x3 * y2
                s33 += x3 * y3
            sums = (
                (s00, s01, s02, s03),
                (s10, s11, s12, s13),
                (s20, s21, s22, s23),
                (s30, s31, s32, s33),
            )
            for a in range(4):
                for b in range(4):
                    total[j + a, k + b] += sums[a][b]
