"""Magnitudes and locations of columns from histograms that need no bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy import LossBudget
from skdpnoise.queries._releases import Releases, blocks
from skdpnoise.sampling import secret_order

__all__ = ["DIGIT_BITS", "MOST_DIGITS", "SEARCH_SHARES", "find_bins"]

# Shares of the budget: magnitude, location (coarse, then fine); the rest is for what comes after.
SEARCH_SHARES = (0.4, 0.12, 0.18)

_EXPONENTS = np.arange(-100, 101)  # magnitudes looked for: 2**-100 to 2**100
_LONGEST = 62  # bits of the largest bin index that is told apart
DIGIT_BITS = 11  # bits of a location that one histogram finds
MOST_DIGITS = -(-(_LONGEST - 1) // DIGIT_BITS)


def find_bins(
    columns: Sequence[NDArray[np.floating]],
    losses: tuple[LossBudget, LossBudget, LossBudget],
    releases: Releases,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return locations, magnitudes, and which columns have both.

    The losses are those of the magnitudes, the coarse locations and the digits of locations.
    Columns that did not stand out in one step are left out of the next.
    """
    location = np.zeros(len(columns))
    magnitude, found = _magnitudes(columns, losses[0], releases)
    kept = np.flatnonzero(found).tolist()
    if kept:
        some = [columns[j] for j in kept]
        location[kept], found[kept] = _locations(
            some, magnitude[kept], losses[1], losses[2], releases
        )
    return location, magnitude, found


def _magnitudes(
    columns: Sequence[NDArray[np.floating]], loss: LossBudget, releases: Releases
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return powers of two near the typical difference of two records, and which stand out."""
    matching = secret_order(releases.words, len(columns[0]))
    half = matching.size // 2
    counts = np.zeros((len(columns), _EXPONENTS.size), dtype=np.int64)
    for j, column in enumerate(columns):
        first, second = column[matching[:half]], column[matching[half : 2 * half]]
        for one, other in zip(blocks(first), blocks(second), strict=True):
            gap = np.abs(one - other)  # in double precision, where floats do not overflow
            exponents = np.frexp(gap[gap > 0.0])[1] - 1  # floor(log2), exact
            bins = np.clip(exponents, _EXPONENTS[0], _EXPONENTS[-1]) - _EXPONENTS[0]
            counts[j] += np.bincount(bins, minlength=_EXPONENTS.size)
    fullest, stands_out = releases.fullest_bins(counts, loss, "magnitudes", paired=True)
    return np.ldexp(1.0, _EXPONENTS[fullest]), stands_out


def _locations(
    columns: Sequence[NDArray[np.floating]],
    magnitude: NDArray[np.float64],
    coarse: LossBudget,
    fine: LossBudget,
    releases: Releases,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return centres of well-filled bins two magnitudes wide, and which columns have one.

    Sign and bit length of the bin index come first, then its digits; a column shares its part of
    `fine` equally between its digits.
    """
    n_bins = 2 * (_LONGEST + 1)
    counts = np.zeros((len(columns), n_bins), dtype=np.int64)
    for j, column in enumerate(columns):
        for values in blocks(column):
            negative, index = _bin_index(values, magnitude[j])
            counts[j] += np.bincount(2 * _bit_length(index) + negative, minlength=n_bins)
    fullest, stands_out = releases.fullest_bins(counts, coarse, "locations, coarse")
    location = np.zeros(len(columns))
    for j in np.flatnonzero(stands_out).tolist():
        column = columns[j]
        n_bits, below_zero = divmod(int(fullest[j]), 2)
        start = 1 << (n_bits - 1) if n_bits else 0
        free_bits = max(n_bits - 1, 0)  # the leading bit is known
        n_digits = max(1, -(-free_bits // DIGIT_BITS))
        share = fine.share(1.0 / (np.count_nonzero(stands_out) * n_digits))
        while free_bits:
            width = min(free_bits, DIGIT_BITS)
            free_bits -= width
            digits = np.zeros((1, 1 << width), dtype=np.int64)
            for values in blocks(column):
                negative, index = _bin_index(values, magnitude[j])
                offset = (index[negative == below_zero] - start) >> free_bits
                inside = offset[(offset >= 0) & (offset < 1 << width)]
                digits[0] += np.bincount(inside, minlength=1 << width)
            digit, _ = releases.fullest_bins(digits, share, "locations, digits")
            start += int(digit[0]) << free_bits
        centre = (start + 0.5) * 2.0 * magnitude[j]
        location[j] = -centre if below_zero else centre
    return location, stands_out


def _bin_index(
    values: NDArray[np.float64], magnitude: float
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the sign and index of bins; b and its mirror image -1 - b share one index."""
    index = np.floor(values / (2.0 * magnitude))
    negative = index < 0
    longest = float(2**_LONGEST - 1024)  # below 2**62, and a float
    return negative, np.minimum(np.where(negative, -1.0 - index, index), longest).astype(np.int64)


def _bit_length(index: NDArray[np.int64]) -> NDArray[np.int64]:
    # Exact below 2**53; above, rounding may carry into the next power of two, which is as good.
    lengths = np.frexp(index.astype(np.float64))[1]
    return np.minimum(lengths, _LONGEST).astype(np.int64)
