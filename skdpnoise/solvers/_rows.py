"""Compiled loops over tiles of rows: read, standardise, clip, round to integers, and sum.

A tile holds some rows of the data column by column, in double precision, whatever the layout and
the type of the data are. Loops run over the rows of one column, so the vector lanes are different
rows: nothing that is done to one row is reassociated, and its integers are the same bit for bit in
any tile, thread, layout or lane. Sums of products of integers are exact in any order, so these may
be.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["LANES", "norms_of_rows", "sum_products", "sum_rows"]

LANES = 4  # columns that are multiplied at once; tiles are padded with zeros to a multiple of them
# Integers count as within a ball up to this factor of the squared norm, for floating-point error;
# mechanisms leave more room than that.
_SLACK = 1.0 + 1e-11


@njit(cache=True, nogil=True)
def _load(data, begin, n, tile, first):
    """Copy rows begin to begin + n of the data to columns ``first`` and on of the tile."""
    if data.strides[0] < data.strides[1]:
        for j in range(data.shape[1]):
            column = tile[first + j]
            for i in range(n):
                column[i] = data[begin + i, j]
        return
    # Eight rows are read at a time, so that what is written is whole lines of the cache.
    octets = n // 8 * 8
    for i in range(0, octets, 8):
        row = begin + i
        r0, r1, r2, r3 = data[row], data[row + 1], data[row + 2], data[row + 3]
        r4, r5, r6, r7 = data[row + 4], data[row + 5], data[row + 6], data[row + 7]
        for j in range(data.shape[1]):
            column = tile[first + j]
            column[i] = r0[j]
            column[i + 1] = r1[j]
            column[i + 2] = r2[j]
            column[i + 3] = r3[j]
            column[i + 4] = r4[j]
            column[i + 5] = r5[j]
            column[i + 6] = r6[j]
            column[i + 7] = r7[j]
    for i in range(octets, n):
        for j in range(data.shape[1]):
            tile[first + j, i] = data[begin + i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def _standardise(tile, n, center, inverse_scale, limit, squares, magnitudes):
    """Standardise and clip a tile; add up the squares and the magnitudes of each row."""
    squares[:n] = 0.0
    magnitudes[:n] = 0.0
    for j in range(center.shape[0]):
        column, middle, factor, bound = tile[j], center[j], inverse_scale[j], limit[j]
        for i in range(n):
            # Written as comparisons so that a NaN becomes a bound.
            z = (column[i] - middle) * factor
            z = z if z > -bound else -bound
            z = z if z < bound else bound
            column[i] = z
            squares[i] += z * z
            magnitudes[i] += abs(z)


@njit(cache=True, nogil=True, error_model="numpy")
def _norms(tile, n, p, squares, out):
    """Write the norm of each row: from its sum of squares, or more slowly if that overflowed."""
    for i in range(n):
        out[i] = math.sqrt(squares[i])
    for i in range(n):
        if not 1e-280 < squares[i] < 1e280:
            largest = 0.0
            for j in range(p):
                largest = max(largest, abs(tile[j, i]))
            total = 0.0
            if largest > 0.0:
                for j in range(p):
                    total += (tile[j, i] / largest) ** 2
            out[i] = largest * math.sqrt(total)


@njit(cache=True, nogil=True, error_model="numpy")
def _factors(n, norm, l1_norm, sizes, magnitudes):
    """Overwrite the norms of the rows by the factors that bring them into both balls."""
    for i in range(n):
        factor = norm / sizes[i] if sizes[i] > norm else 1.0
        shrunk = magnitudes[i] * factor
        sizes[i] = l1_norm / magnitudes[i] if shrunk > l1_norm else factor


@njit(cache=True, nogil=True, error_model="numpy")
def _round(tile, n, factors, quantum, most, squares, magnitudes, out):
    """Write the nearest integers, and the sums of squares and magnitudes of what they stand for."""
    squares[:n] = 0.0
    magnitudes[:n] = 0.0
    for j in range(quantum.shape[0]):
        column, whole, unit, inverse, bound = tile[j], out[j], quantum[j], 1.0 / quantum[j], most[j]
        for i in range(n):
            k = np.rint(column[i] * factors[i] * inverse)
            k = k if k > -bound else -bound
            k = k if k < bound else bound
            whole[i] = k
            value = k * unit
            squares[i] += value * value
            magnitudes[i] += abs(value)


@njit(cache=True, nogil=True, error_model="numpy")
def _truncate(tile, n, factors, quantum, most, norm, l1_norm, squares, magnitudes, out):
    """Round rows that are outside a ball towards zero instead; those still outside become zero."""
    most_squares, most_magnitudes = norm * norm * _SLACK, l1_norm * _SLACK
    for i in range(n):
        if squares[i] <= most_squares and magnitudes[i] <= most_magnitudes:
            continue
        total, size = 0.0, 0.0
        for j in range(quantum.shape[0]):
            k = np.trunc(tile[j, i] * factors[i] * (1.0 / quantum[j]))
            k = k if k > -most[j] else -most[j]
            k = k if k < most[j] else most[j]
            out[j, i] = k
            total += (k * quantum[j]) * (k * quantum[j])
            size += abs(k * quantum[j])
        if not (total <= most_squares and size <= most_magnitudes):
            for j in range(quantum.shape[0]):
                out[j, i] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _quantise(data, extra, begin, n, center, inverse_scale, limit, quantum, most, norms, work, out):
    """Write the integers of n clipped rows to a tile.

    Whatever a row holds, its integers are finite and within the bounds: they are checked last.
    """
    tile, rows = work
    p = center.shape[0]
    norm, l1_norm = norms
    squares, magnitudes, factors = rows[0], rows[1], rows[2]
    _load(data, begin, n, tile, 0)
    _load(extra, begin, n, tile, data.shape[1])
    _standardise(tile, n, center, inverse_scale, limit, squares, magnitudes)
    _norms(tile, n, p, squares, factors)
    _factors(n, norm, l1_norm, factors, magnitudes)
    _round(tile, n, factors, quantum, most, squares, magnitudes, out)
    _truncate(tile, n, factors, quantum, most, norm, l1_norm, squares, magnitudes, out)


# Integers, so the flags change nothing but the speed: no sum is ever rounded.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _add_products(tile, n, total):
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
            block = total[j : j + 4, k : k + 4]
            block[0, 0] += s00
            block[0, 1] += s01
            block[0, 2] += s02
            block[0, 3] += s03
            block[1, 0] += s10
            block[1, 1] += s11
            block[1, 2] += s12
            block[1, 3] += s13
            block[2, 0] += s20
            block[2, 1] += s21
            block[2, 2] += s22
            block[2, 3] += s23
            block[3, 0] += s30
            block[3, 1] += s31
            block[3, 2] += s32
            block[3, 3] += s33


@njit(cache=True, nogil=True)
def _flush(part, total):
    """Add exact floats to integers, and set them to zero."""
    for j in range(part.shape[0]):
        for k in range(part.shape[1]):
            total[j, k] += np.int64(part[j, k])
            part[j, k] = 0.0


@njit(cache=True, nogil=True)
def _work(p, n):
    """Return two tiles of zeros, and some numbers for each row."""
    padded = -(-p // LANES) * LANES
    # Eight rows more, so that the columns do not all fall on the same lines of the cache.
    return np.zeros((padded, n + 8)), np.zeros((padded, n + 8)), np.zeros((3, n))


@njit(cache=True, nogil=True)
def sum_products(
    data, extra, rows, tile_rows, most_rows, center, inverse_scale, limit, quantum, most, norms
):
    r"""Return the exact sum of :math:`k k^\top` over the integers k of clipped rows.

    Parameters
    ----------
    data : ndarray of shape (n, m)
        float32 or float64.
    extra : ndarray of shape (n, p - m)
        Further columns.
    rows : tuple of 2 ints
        First row and the one after the last.
    tile_rows : int
        Rows taken at a time.
    most_rows : int
        Rows of which sums of products stay below 2**53.
    center, inverse_scale, limit : ndarray of shape (p,)
        How an entry is standardised, and the bound on its magnitude then.
    quantum : ndarray of shape (p,)
        Units of the integers.
    most : ndarray of shape (p,)
        Most quanta of one entry.
    norms : tuple of 2 floats
        Bounds on the l2 and l1 norm of a row; infinity for none.

    Returns
    -------
    ndarray of int64, shape (p', p')
        The upper triangle, p' being p rounded up to a multiple of ``LANES``.

    Examples
    --------
    >>> one = np.ones(2)
    >>> settings = 0 * one, one, 9 * one, one / 100, 1e9 * one, (1.0, np.inf)
    >>> sum_products(np.array([[3.0, 4.0]]), np.empty((1, 0)), (0, 1), 8, 8, *settings)[:2, :2]
    array([[3600, 4800],
           [   0, 6400]])
    """
    tile, integers, numbers = _work(center.shape[0], tile_rows)
    part = np.zeros((tile.shape[0], tile.shape[0]))
    total = np.zeros(part.shape, dtype=np.int64)
    held = 0
    for begin in range(rows[0], rows[1], tile_rows):
        n = min(tile_rows, rows[1] - begin)
        _quantise(
            data,
            extra,
            begin,
            n,
            center,
            inverse_scale,
            limit,
            quantum,
            most,
            norms,
            (tile, numbers),
            integers,
        )
        if held + n > most_rows:
            _flush(part, total)
            held = 0
        _add_products(integers, n, part)
        held += n
    _flush(part, total)
    for j in range(total.shape[0]):  # of blocks on the diagonal both halves were computed
        total[j, :j] = 0
    return total


@njit(cache=True, nogil=True)
def sum_rows(
    data, extra, rows, tile_rows, most_rows, center, inverse_scale, limit, quantum, most, norms
):
    r"""Return the exact sum of the integers of clipped rows.

    Parameters
    ----------
    data, extra, rows, tile_rows, most_rows, center, inverse_scale, limit, quantum, most, norms
        As for `sum_products`; ``most_rows`` is not used.

    Returns
    -------
    ndarray of int64, shape (p,)

    Examples
    --------
    >>> one = np.ones(2)
    >>> settings = 0 * one, one, 9 * one, one / 100, 1e9 * one, (1.0, np.inf)
    >>> sum_rows(np.array([[3.0, 4.0]]), np.empty((1, 0)), (0, 1), 8, 8, *settings)
    array([60, 80])
    """
    p = center.shape[0]
    tile, integers, numbers = _work(p, tile_rows)
    total = np.zeros(p, dtype=np.int64)
    for begin in range(rows[0], rows[1], tile_rows):
        n = min(tile_rows, rows[1] - begin)
        _quantise(
            data,
            extra,
            begin,
            n,
            center,
            inverse_scale,
            limit,
            quantum,
            most,
            norms,
            (tile, numbers),
            integers,
        )
        for j in range(p):
            column = integers[j]
            part = np.int64(0)
            for i in range(n):
                part += np.int64(column[i])
            total[j] += part
    return total


@njit(cache=True, nogil=True)
def norms_of_rows(data, extra, rows, tile_rows, center, inverse_scale, limit, out):
    """Write the Euclidean norms of standardised rows.

    Parameters
    ----------
    data, extra, rows, tile_rows, center, inverse_scale, limit
        As for `sum_products`.
    out : ndarray of shape (n,)
        Receives the norms.

    Examples
    --------
    >>> norms, one = np.empty(1), np.ones(2)
    >>> rows = np.array([[3.0, 4.0]])
    >>> norms_of_rows(rows, np.empty((1, 0)), (0, 1), 8, 0 * one, one, 9 * one, norms)
    >>> norms
    array([5.])
    """
    p = center.shape[0]
    tile, _, numbers = _work(p, tile_rows)
    for begin in range(rows[0], rows[1], tile_rows):
        n = min(tile_rows, rows[1] - begin)
        _load(data, begin, n, tile, 0)
        _load(extra, begin, n, tile, data.shape[1])
        _standardise(tile, n, center, inverse_scale, limit, numbers[0], numbers[1])
        _norms(tile, n, p, numbers[0], out[begin : begin + n])
