"""Exact draws of a count from ratios of its probabilities and the first of them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from skdpnoise.sampling import RandomWords

__all__ = ["SPARE_DIGITS", "draw_count"]

SPARE_DIGITS = 40  # for the rounding of a few operations
_WORD = 64
_SPARE_BITS = 32


class Law(Protocol):
    """A law of a count."""

    def _ratio(self, k: int) -> tuple[int, int]:
        """Return Pr[K = k + 1]/Pr[K = k], exactly, as a fraction."""
        ...

    def _inverse_first(self, digits: int) -> Decimal:
        """Return 1/Pr[K = first] to so many digits: it errs by less than 10**-digits of itself."""
        ...


def draw_count(words: RandomWords, law: Law, first: int) -> int:
    """Return the smallest k with V < Pr[K <= k] for a uniform V of as many bits as that takes."""
    value, bits = 0, 0
    while True:
        for word in words.take(2):
            value, bits = value << _WORD | int(word), bits + _WORD
        found = _search(law, first, value, bits)
        if found is not None:
            return found


def _search(law: Law, first: int, value: int, bits: int) -> int | None:
    """Return K for V in [value, value + 1]/2**bits, or None if V is not known well enough.

    Everything is in units of Pr[K = first]: weights begin with 1, and sum to 1/Pr[K = first].
    Lower and upper bounds are integers, in units of 2**-places.
    """
    places = bits + _SPARE_BITS
    digits = math.ceil(places * math.log10(2.0)) + 2
    total = Fraction(law._inverse_first(digits)) * 2**places
    error = total / 10**digits
    low = math.floor(value * (total - error) / 2**bits)
    high = math.ceil((value + 1) * (total + error) / 2**bits)
    weight_low = weight_high = sum_low = sum_high = 1 << places
    k = first
    while True:
        if high <= sum_low:
            return k
        if sum_high > low:
            return None
        top, bottom = law._ratio(k)
        weight_low = weight_low * top // bottom
        weight_high = -(-weight_high * top // bottom)
        sum_low, sum_high, k = sum_low + weight_low, sum_high + weight_high, k + 1
