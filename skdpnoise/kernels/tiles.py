"""Integers that the values of a tile count for, in numpy.

The rows of a tile belong to columns of the data, of which each has its own row of counts and its
own settings; the first n values of a row are meant, and may be overwritten. ``tile_loops`` has the
same functions compiled, for data that take numpy longer than to load them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Places = NDArray[np.intp]

HALF_WORD = 32  # bits of the second row number of a pair
LARGEST_EXPONENT = 100  # magnitudes are told apart from 2**-100 to 2**100
LONGEST = 62  # bits of the largest bin index that is told apart
LARGEST_INDEX = float(2**LONGEST - 1024)  # below 2**62, and a float
DIGIT = 2.0**17  # values are rounded to 2**-34 of the reach: two digits, whose products are exact
STEPS = DIGIT**2
HALF_SUM = 31  # bits of the lower part of a value of up to 62
LIMB = 32  # bits of the lower part of a sum


def subtract(table: NDArray[np.floating], pairs: Integers, columns: Integers, tile: Floats) -> None:
    """Write the differences of pairs of rows of a table, in double precision."""
    first, second = (
        table[np.ix_(rows, columns)].T for rows in (pairs >> HALF_WORD, pairs & (2**HALF_WORD - 1))
    )
    with np.errstate(over="ignore"):
        np.subtract(first, second, out=tile[:, : pairs.size], dtype=np.float64)


def count_exponents(tile: Floats, n: int, counts: Integers) -> None:
    """Count floor(log2) of the magnitudes that are not 0, from the bits of the numbers."""
    bits = tile[:, :n].view(np.int64)
    exponents = np.clip(((bits >> 52) & 0x7FF) - 1023, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    for count, places, there in zip(
        counts, exponents + LARGEST_EXPONENT, bits << 1 != 0, strict=True
    ):
        count += np.bincount(places[there], minlength=count.size)


def count_lengths(tile: Floats, n: int, inverse: Floats, counts: Integers) -> None:
    """Count signs and bit lengths of bin indices: twice the length, plus 1 below zero."""
    # Exact below 2**53; above, rounding may carry into the next power of two, which is as good.
    negative, index = _bin_index(tile[:, :n] * inverse[:, None])
    length = np.clip((index.view(np.int64) >> 52) - 1022, 0, LONGEST)
    for count, places in zip(counts, 2 * length + negative, strict=True):
        count += np.bincount(places, minlength=count.size)


def count_digits(tile: Floats, n: int, inverse: Floats, known: Integers, counts: Integers) -> None:
    """Count the next digits of the bin indices that begin as is known."""
    # The rows of `known`: whether they are below zero, their first bits, how many bits come after
    # the digit, and how many it has.
    below_zero, start, shift, width = known[:, :, None]
    negative, index = _bin_index(tile[:, :n] * inverse[:, None])
    digits = (index.astype(np.int64) - start) >> shift
    kept = (negative == below_zero) & (digits >= 0) & (digits < 1 << width)
    for count, places, there in zip(counts, digits, kept, strict=True):
        count += np.bincount(places[there], minlength=count.size)


def clip(tile: Floats, n: int, location: Floats, unit: Floats, reach: float) -> None:
    """Overwrite values by how far they are from the locations, in units, up to the reach."""
    values = tile[:, :n]
    with np.errstate(over="ignore"):
        values -= location[:, None]
        values /= unit[:, None]
    # Whatever a file holds by now: fmin and fmax take the bound for NaN.
    np.fmax(np.fmin(values, reach, out=values), -reach, out=values)


def add_rounded(tile: Floats, n: int, grid_size: Floats, totals: Integers) -> None:
    """Add the values in grid steps, rounded to the nearest integers, to the totals."""
    totals += np.rint(tile[:, :n] / grid_size[:, None]).astype(np.int64).sum(axis=1)


def add_digits(tile: Floats, n: int, facts: Floats, totals: Integers) -> None:
    """Add values within bounds in steps from the centres, each as its upper and lower bits."""
    # The rows of `facts`: lower and upper bounds, centres, steps, and the most steps.
    low, high, middle, unit, most = facts[:, :, None]
    k = tile[:, :n]
    np.fmax(np.fmin(k, high, out=k), low, out=k)
    k -= middle
    k /= unit
    np.fmax(np.fmin(np.rint(k, out=k), most, out=k), -most, out=k)
    whole = k.astype(np.int64)
    totals[:, 0] += (whole >> HALF_SUM).sum(axis=1)
    totals[:, 1] += (whole & ((1 << HALF_SUM) - 1)).sum(axis=1)


def round_to_steps(tile: Floats, n: int, center: Floats, half: Floats) -> None:
    """Overwrite values by their distances from the centres, in whole 2**-34 of the half widths."""
    k, middle, width = tile[:, :n], center[:, None], half[:, None]
    # Clipped first, so that nothing overflows.
    np.fmax(np.fmin(k, middle + width, out=k), middle - width, out=k)
    k -= middle
    k /= width
    k *= STEPS
    np.rint(np.clip(k, -STEPS, STEPS, out=k), out=k)


def add_powers(tile: Floats, n: int, counts: Integers) -> None:
    """Add Σ k, and the sums of products of the digits of k, each as its upper and lower bits."""
    # Digits are at most 2**17 and a tile has 2**14 rows at most: every sum stays below 2**53.
    k = tile[:, :n]
    high = np.floor(k * (1.0 / DIGIT))
    low = k - high * DIGIT
    parts = k, high * high, high * low, low * low
    whole = np.stack([part.sum(axis=1) for part in parts], axis=1).astype(np.int64)
    counts[:, 0::2] += whole >> LIMB
    counts[:, 1::2] += whole & ((1 << LIMB) - 1)


def count_bins(tile: Floats, n: int, inner: Floats, counts: Integers) -> None:
    """Count values by how many of 2**k - 1 inner edges are not above them."""
    for values, edges, count in zip(tile[:, :n], inner, counts, strict=True):
        count += np.bincount(np.searchsorted(edges, values, side="right"), minlength=count.size)


def _bin_index(values: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return signs and indices of bins; b and its mirror image -1 - b share one index."""
    index = np.floor(values)
    negative = index < 0.0
    return negative, np.minimum(np.where(negative, -1.0 - index, index), LARGEST_INDEX)
