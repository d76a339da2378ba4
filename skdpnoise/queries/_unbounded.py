"""Magnitudes and locations of columns from histograms that need no bounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skdpnoise.privacy import LossBudget
from skdpnoise.queries._releases import Releases
from skdpnoise.queries._sweeps import COMPILED, Gaps, Records, Tile, tallies
from skdpnoise.sampling import secret_order

__all__ = ["DIGIT_BITS", "MOST_DIGITS", "find_bins"]

_LARGEST_EXPONENT = 100  # magnitudes looked for: 2**-100 to 2**100
_EXPONENTS = np.arange(-_LARGEST_EXPONENT, _LARGEST_EXPONENT + 1)
_LONGEST = 62  # bits of the largest bin index that is told apart
_LARGEST_INDEX = float(2**_LONGEST - 1024)  # below 2**62, and a float
DIGIT_BITS = 11  # bits of a location that one histogram finds
MOST_DIGITS = -(-(_LONGEST - 1) // DIGIT_BITS)

Integers = NDArray[np.int64]


def find_bins(
    table: NDArray[np.floating],
    columns: NDArray[np.intp],
    losses: tuple[LossBudget, LossBudget, LossBudget],
    releases: Releases,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return locations, magnitudes, and which of the columns have both.

    The losses are those of the magnitudes, the coarse locations and the digits of locations.
    Columns that did not stand out in one step are left out of the next.
    """
    location = np.zeros(columns.size)
    magnitude, found = _magnitudes(table, columns, losses[0], releases)
    kept = np.flatnonzero(found)
    if kept.size:
        location[kept], found[kept] = _locations(
            Records(table), columns[kept], magnitude[kept], losses[1:], releases
        )
    return location, magnitude, found


def _magnitudes(
    table: NDArray[np.floating],
    columns: NDArray[np.intp],
    loss: LossBudget,
    releases: Releases,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return powers of two near the typical difference of two records, and which stand out."""
    gaps = Gaps(table, secret_order(releases.words, len(table)))

    def visit(tile: Tile, n: int, counts: Integers, _: NDArray[np.intp]) -> None:
        _count_exponents(tile.view(np.int64), n, counts)

    counts = np.concatenate([c for _, c in tallies(gaps, columns, _EXPONENTS.size, visit)])
    fullest, stands_out = releases.fullest_bins(counts, loss, "magnitudes", paired=True)
    return np.ldexp(1.0, _EXPONENTS[fullest]), stands_out


@njit(**COMPILED)
def _count_exponents(tile, n, counts):
    """Count floor(log2) of the magnitudes that are not 0, from the bits of the numbers."""
    for j in range(counts.shape[0]):
        numbers, count = tile[j], counts[j]
        for i in range(n):
            if numbers[i] << 1 != 0:
                exponent = ((numbers[i] >> 52) & 0x7FF) - 1023
                exponent = min(max(exponent, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
                count[exponent + _LARGEST_EXPONENT] += 1


def _locations(
    records: Records,
    columns: NDArray[np.intp],
    magnitude: NDArray[np.float64],
    losses: tuple[LossBudget, ...],
    releases: Releases,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return centres of well-filled bins two magnitudes wide, and which columns have one.

    Sign and bit length of the bin index come first, then its digits.
    """
    inverse = 0.5 / magnitude  # a power of two, so that products are what quotients would be

    def visit(tile: Tile, n: int, counts: Integers, which: NDArray[np.intp]) -> None:
        _count_lengths(tile, n, inverse[which], counts)

    counts = np.concatenate([c for _, c in tallies(records, columns, 2 * (_LONGEST + 1), visit)])
    fullest, stands_out = releases.fullest_bins(counts, losses[0], "locations, coarse")
    kept = np.flatnonzero(stands_out)
    index = _find_digits(records, columns[kept], inverse[kept], fullest[kept], losses[1], releases)
    location = np.zeros(columns.size)
    location[kept] = index * 2.0 * magnitude[kept]
    return location, stands_out


@njit(**COMPILED)
def _bin_index(value):
    """Return the sign and index of a bin; b and its mirror image -1 - b share one index."""
    index = np.floor(value)
    negative = index < 0.0
    return negative, min(-1.0 - index if negative else index, _LARGEST_INDEX)


@njit(**COMPILED)
def _count_lengths(tile, n, inverse, counts):
    """Count signs and bit lengths of bin indices."""
    for j in range(inverse.shape[0]):
        values, factor, count = tile[j], inverse[j], counts[j]
        for i in range(n):
            negative, index = _bin_index(values[i] * factor)
            # Exact below 2**53; above, rounding may carry into the next power of two, which is as
            # good.
            length = (np.float64(index).view(np.int64) >> 52) - 1022 if index > 0.0 else 0
            count[2 * min(length, _LONGEST) + negative] += 1


def _find_digits(
    records: Records,
    columns: NDArray[np.intp],
    inverse: NDArray[np.float64],
    lengths: NDArray[np.intp],
    loss: LossBudget,
    releases: Releases,
) -> NDArray[np.float64]:
    """Return the middles of bins of known signs and bit lengths, in widths of a bin.

    Columns share the loss equally, and so do the digits of a column. First digits are counted for
    many columns in one sweep, later ones column by column.
    """
    n_bits, below_zero = np.divmod(lengths, 2)
    free_bits = np.maximum(n_bits - 1, 0)  # the leading bit is known
    start = np.where(n_bits > 0, np.int64(1) << free_bits, 0)

    def sweep(some: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], Integers]]:
        shift = np.maximum(free_bits[some] - DIGIT_BITS, 0)
        known = np.stack([below_zero[some], start[some], shift, free_bits[some] - shift])

        def visit(tile: Tile, n: int, counts: Integers, which: NDArray[np.intp]) -> None:
            _count_digits(tile, n, inverse[some[which]], known[:, which], counts)

        return tallies(records, columns[some], 1 << int(known[3].max(initial=0)), visit)

    several = np.flatnonzero(free_bits)
    for which, counts in sweep(several):
        for j, digits in zip(several[which].tolist(), counts, strict=True):
            n_digits = -(-int(free_bits[j]) // DIGIT_BITS)
            share = loss.share(1.0 / (columns.size * n_digits))
            while True:
                width = min(int(free_bits[j]), DIGIT_BITS)
                counted = digits[np.newaxis, : 1 << width]
                digit, _ = releases.fullest_bins(counted, share, "locations, digits")
                free_bits[j] -= width
                start[j] += int(digit[0]) << int(free_bits[j])
                if free_bits[j] == 0:
                    break
                ((_, (digits,)),) = sweep(np.array([j]))
    return np.where(below_zero, -1.0, 1.0) * (start + 0.5)


@njit(**COMPILED)
def _count_digits(tile, n, inverse, known, counts):
    """Count the next digits of the bin indices that begin as is known: sign, start, and bits."""
    for j in range(inverse.shape[0]):
        values, factor, count = tile[j], inverse[j], counts[j]
        below_zero, start, shift, width = known[:, j]
        for i in range(n):
            negative, index = _bin_index(values[i] * factor)
            digit = (np.int64(index) - start) >> shift
            if negative == below_zero and 0 <= digit < 1 << width:
                count[digit] += 1
