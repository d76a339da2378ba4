"""Uniform numbers on [0, 1) that are drawn only as far as something is asked about them.

A lazily extended uniform number is a row of a table of integers: first the count of digits that
have been drawn, then the digits, of `width` bits each and the most significant first. A comparison
draws as many digits as it takes to find a difference and no more, so it is exact. What has been
drawn is remembered as long as the number lives: later questions are about the same number. Setting
the count to zero begins a new number.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from skdpnoise.sampling.bits import Integers, Words, take_bits
from skdpnoise.sampling.kernels import inner

# Bits that can be kept of one number. Two numbers agree so far with probability 2**-256.
CAPACITY = 256

# Width of a digit in bits. Narrow digits save random words, wide ones save ties. Eight bits are
# as fast as any; every width that divides 32 gives the same distribution.
DIGIT_BITS = 8

UNDECIDED = -1


def new_numbers(n: int, width: int, constants: tuple[int, ...] = ()) -> Integers:
    """Return a table of `n` new numbers and of constants of which every digit is known."""
    return _table(n, width, constants).copy()


@cache
def _table(n: int, width: int, constants: tuple[int, ...]) -> Integers:
    places = range(CAPACITY - width, -1, -width)
    table = np.zeros((n + len(constants), 1 + len(places)), dtype=np.int64)
    for row, constant in enumerate(constants, start=n):
        table[row, 0] = len(places)
        table[row, 1:] = [constant >> place & (2**width - 1) for place in places]
    return table


@inner
def is_smaller(
    words: Words, position: int, width: int, numbers: Integers, one: int, other: int
) -> tuple[int, int]:
    """Return 1 if number `one` is below number `other`, else 0; `UNDECIDED` if all digits agree."""
    for i in range(1, numbers.shape[1]):
        if numbers[one, 0] < i:
            numbers[one, 0] = i
            numbers[one, i] = take_bits(words, position, width)
            position += width
        if numbers[other, 0] < i:
            numbers[other, 0] = i
            numbers[other, i] = take_bits(words, position, width)
            position += width
        if numbers[one, i] != numbers[other, i]:
            return (1 if numbers[one, i] < numbers[other, i] else 0), position
    return UNDECIDED, position


@inner
def run_parity(
    words: Words, position: int, width: int, numbers: Integers, first: int
) -> tuple[int, int]:
    """Return n modulo 2 for a run x > u_1 > ... > u_n of uniforms below the number x in a row."""
    # Von Neumann (1951): n is even with probability exp(-x). Rows 1 and 2 take turns.
    lowest = first
    odd = 0
    while True:
        new = 1 if lowest != 1 else 2
        numbers[new, 0] = 0
        descends, position = is_smaller(words, position, width, numbers, new, lowest)
        if descends < 0:
            return UNDECIDED, position
        if descends == 0:
            return odd, position
        lowest = new
        odd = 1 - odd


@inner
def leading_bits(
    words: Words, position: int, width: int, numbers: Integers, number: int, n: int
) -> tuple[int, int]:
    """Return floor(2**n * number) for n <= 53, drawing the bits that are not yet known."""
    value = 0
    missing = n
    for i in range(1, numbers[number, 0] + 1):
        used = min(width, missing)
        value = (value << used) | (numbers[number, i] >> (width - used))
        missing -= used
    if missing > 0:
        value = (value << missing) | take_bits(words, position, missing)
        position += missing
    return value, position
