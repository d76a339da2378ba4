"""Magnitudes and locations of columns from histograms that need no bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy import LossBudget
from skdpnoise.queries._releases import Releases
from skdpnoise.queries._sweeps import Gaps, Records, tallies
from skdpnoise.queries._tiles import LARGEST_EXPONENT, LONGEST, Floats, Integers, Places
from skdpnoise.sampling import secret_order

# Shares of the budget: magnitude, location (coarse, then fine); the rest is for what comes after.
SEARCH_SHARES = (0.4, 0.12, 0.18)

_EXPONENTS = np.arange(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1)
DIGIT_BITS = 11  # bits of a location that one histogram finds
MOST_DIGITS = -(-(LONGEST - 1) // DIGIT_BITS)


def find_bins(
    table: NDArray[np.floating], columns: Places, losses: Sequence[LossBudget], releases: Releases
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return locations, magnitudes, and which of the columns have both."""
    location = np.zeros(columns.size)
    magnitude, found = _magnitudes(table, columns, losses[0], releases)
    kept = np.flatnonzero(found)
    if kept.size:
        location[kept], found[kept] = _locations(
            Records(table), columns[kept], magnitude[kept], losses[1:], releases
        )
    return location, magnitude, found


def _magnitudes(
    table: NDArray[np.floating], columns: Places, loss: LossBudget, releases: Releases
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return powers of two near the typical difference of two records, and which stand out."""
    gaps = Gaps(table, secret_order(releases.rng, len(table)))

    def visit(loops: Any, tile: Floats, n: int, counts: Integers, _: Places) -> None:
        loops.count_exponents(tile, n, counts)

    counts = np.concatenate([c for _, c in tallies(gaps, columns, _EXPONENTS.size, visit)])
    fullest, stands_out = releases.fullest_bins(counts, loss, "magnitudes", paired=True)
    return np.ldexp(1.0, _EXPONENTS[fullest]), stands_out


def _locations(
    records: Records,
    columns: Places,
    magnitude: Floats,
    losses: Sequence[LossBudget],
    releases: Releases,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return centres of well-filled bins two magnitudes wide, and which columns have one."""
    inverse = 0.5 / magnitude  # a power of two, so that products are what quotients would be

    def visit(loops: Any, tile: Floats, n: int, counts: Integers, which: Places) -> None:
        loops.count_lengths(tile, n, inverse[which], counts)

    counts = np.concatenate([c for _, c in tallies(records, columns, 2 * (LONGEST + 1), visit)])
    fullest, stands_out = releases.fullest_bins(counts, losses[0], "locations, coarse")
    kept = np.flatnonzero(stands_out)
    index = _find_digits(records, columns[kept], inverse[kept], fullest[kept], losses[1], releases)
    location = np.zeros(columns.size)
    location[kept] = index * 2.0 * magnitude[kept]
    return location, stands_out


def _find_digits(
    records: Records,
    columns: Places,
    inverse: Floats,
    lengths: Places,
    loss: LossBudget,
    releases: Releases,
) -> Floats:
    """Return the middles of bins of known signs and bit lengths, in widths of a bin."""
    n_bits, below_zero = np.divmod(lengths, 2)
    free_bits = np.maximum(n_bits - 1, 0)  # the leading bit is known
    start = np.where(n_bits > 0, np.int64(1) << free_bits, 0)

    def sweep(some: Places) -> Iterator[tuple[Places, Integers]]:
        shift = np.maximum(free_bits[some] - DIGIT_BITS, 0)
        known = np.stack([below_zero[some], start[some], shift, free_bits[some] - shift])

        def visit(loops: Any, tile: Floats, n: int, counts: Integers, which: Places) -> None:
            loops.count_digits(tile, n, inverse[some[which]], known[:, which], counts)

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
