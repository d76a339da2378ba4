"""Numbers that are drawn only as far as something is asked about them.

A lazily extended uniform number is a row of a table of integers: first the count of digits that
have been drawn, then the digits, the most significant first. A comparison draws as many digits as
it takes to find a difference and no more, so it is exact. What has been drawn is remembered: later
questions are about the same number. Setting the count to zero begins a new number.

Such comparisons make exact exponential and half-normal numbers. They leave the places that none has
looked at uniform and independent of everything else. So a number whose first places do not decide a
question gets further random bits: drawn anew, it would favour numbers that are easy to decide.

References: J. von Neumann (1951), "Various techniques used in connection with random digits", NBS
Applied Mathematics Series 12. C. F. F. Karney (2016), "Sampling exactly from the normal
distribution", ACM Transactions on Mathematical Software 42, Algorithms N, B and C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np

from skdpnoise.sampling.bits import BROKEN, Integers, Progress, Words, fill, take_below, take_bits
from skdpnoise.sampling.integers import uniform_integers
from skdpnoise.sampling.kernels import Compilable, inner
from skdpnoise.sampling.words import RandomWords

T = TypeVar("T")

# Bits that can be kept of one number. Two numbers agree so far with probability 2**-256.
CAPACITY = 256

# Width of a digit in bits. Narrow digits save random words, wide ones save ties. Eight bits are
# as fast as any; every width that divides 32 gives the same distribution.
DIGIT_BITS = 8

UNDECIDED = -1

# A larger integer part has probability e**-512 < 2**-256 and would overflow the result.
_LARGEST_INTEGER_PART = 512

# Places asked for one after the other by a question that is still open.
EXTENSIONS = (64, 128, 192, 256)

_MEAN_BITS = 40.0  # mean number of random bits of one draw beyond those of its places

# Rows of a table of numbers: x, two that take turns in a run, one for single comparisons, and
# the first of the constants CDF.
_X, _RUN_A, _RUN_B, _SINGLE, _FIRST_CDF = range(5)


class Digits(NamedTuple):
    """A table of lazily extended numbers, the width of their digits, and where these come from."""

    words: Words
    width: int
    numbers: Integers


def new_numbers(n: int, width: int, constants: tuple[int, ...] = ()) -> Integers:
    """Return a table of `n` new numbers and of constants with all their digits."""
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
def is_smaller(digits: Digits, position: int, one: int, other: int) -> tuple[int, int]:
    """Return 1 if number `one` is below number `other`, else 0; `UNDECIDED` if all digits agree."""
    words, width, numbers = digits
    for i in range(1, numbers.shape[1]):
        for number in (one, other):
            if numbers[number, 0] < i:
                numbers[number, 0] = i
                numbers[number, i] = take_bits(words, position, width)
                position += width
        if numbers[one, i] != numbers[other, i]:
            return (1 if numbers[one, i] < numbers[other, i] else 0), position
    return UNDECIDED, position


@inner
def run_parity(digits: Digits, position: int, first: int) -> tuple[int, int]:
    """Return n modulo 2 for a run x > u_1 > ... > u_n of uniforms below the number x in a row."""
    # Von Neumann (1951): n is even with probability exp(-x).
    lowest = first
    odd = 0
    while True:
        new = _RUN_A if lowest != _RUN_A else _RUN_B
        digits.numbers[new, 0] = 0
        descends, position = is_smaller(digits, position, new, lowest)
        if descends < 0:
            return UNDECIDED, position
        if descends == 0:
            return odd, position
        lowest = new
        odd = 1 - odd


@inner
def leading_bits(digits: Digits, position: int, number: int, n: int) -> tuple[int, int]:
    """Return floor(2**n * number) for n <= 53, drawing the bits that are not yet known."""
    words, width, numbers = digits
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


def _integer_part_cdf() -> tuple[int, ...]:
    r"""Return P(k <= i) for :math:`P(k) \propto e^{-k^2/2}`, as integers out of 2**CAPACITY."""
    with localcontext() as context:
        context.prec = 160  # decimal digits: 531 bits
        root = Decimal("-0.5").exp()
        sums = list(accumulate(root ** (k * k) for k in range(40)))
        cdf = [int(2**CAPACITY * partial / sums[-1]) for partial in sums]
    return tuple(cdf[: cdf.index(2**CAPACITY - 1) + 1])


CDF = _integer_part_cdf()


@inner
def exponential(digits: Digits, position: int) -> tuple[int, int]:
    """Return the integer part of E, exactly exponential, or -1, and the position after it."""
    # What is known of its fraction x is left in the table. Von Neumann (1951): in a run x > u_1 >
    # u_2 > ... of uniforms, n of them after x, n is even with probability exp(-x). So the first x
    # of an even run has density proportional to exp(-x) on [0, 1), and the number of odd runs
    # before it, each of probability 1/e, is the integer part.
    for integer_part in range(_LARGEST_INTEGER_PART + 1):
        digits.numbers[_X, 0] = 0
        odd, position = run_parity(digits, position, _X)
        if odd < 0:
            return -1, position
        if odd == 0:
            return integer_part, position
    return -1, position


@inner
def half_normal(digits: Digits, position: int) -> tuple[int, int]:
    """Return the integer part of |Z|, Z exactly normal, or -1, and the position after it."""
    # What is known of its fraction x is left in the table. Karney (2016), Algorithm N without its
    # signs. The letters are his.
    while True:
        # N1 and N2: the integer part k, with probability proportional to exp(-k**2/2).
        digits.numbers[_SINGLE, 0] = 0
        k = 0
        while True:
            below, position = is_smaller(digits, position, _SINGLE, _FIRST_CDF + k)
            if below != 0:
                break
            k += 1
        if below < 0:
            return -1, position
        # N3: the fraction x. N4: accept with probability exp(-x (2k + x) / 2), as k + 1 successes
        # of probability exp(-x f), f = (2k + x) / (2k + 2).
        digits.numbers[_X, 0] = 0
        m = 2 * k + 2
        n_bits = 1
        while 1 << n_bits < m:
            n_bits += 1
        for _ in range(k + 1):
            # Algorithm B: in a descending run x > z_1 > z_2 > ... that also ends with probability
            # 1 - f before each step, the number n of steps is even with probability exp(-x f).
            lowest = _X
            n = 0
            while True:
                # Algorithm C: go on with probability f = (m - 2) / m + x / m.
                choice, position = take_below(digits.words, position, m, n_bits)
                if choice == 0:
                    break
                if choice == 1:
                    digits.numbers[_SINGLE, 0] = 0
                    below, position = is_smaller(digits, position, _SINGLE, _X)
                    if below < 0:
                        return -1, position
                    if below == 0:
                        break
                z = _RUN_A if lowest != _RUN_A else _RUN_B
                digits.numbers[z, 0] = 0
                below, position = is_smaller(digits, position, z, lowest)
                if below < 0:
                    return -1, position
                if below == 0:
                    break
                lowest = z
                n += 1
            if n & 1 == 1:
                break
        else:
            return k, position


@dataclass(slots=True)
class LazyNumbers:
    """Non-negative numbers of which first[i] is the integer part of number i times 2**bits."""

    rng: RandomWords  # where further places come from
    first: Integers  # the places drawn so far
    bits: int  # how many of them are behind the point
    # value and places of those numbers of which more is known
    known: dict[int, tuple[int, int]] = field(default_factory=dict)

    def floor(self, index: int, bits: int) -> int:
        """Return floor(2**bits * number), drawing the digits that it takes."""
        value, places = self.known.get(index, (int(self.first[index]), self.bits))
        while places < bits:
            value = value << 64 | int(self.rng.take(1)[0])
            places += 64
        self.known[index] = value, places
        return value >> (places - bits)


def settled(ends: Callable[[int], tuple[T, T]]) -> T:
    """Return the common value of two bounds, from as many binary places as it takes."""
    for extension in EXTENSIONS:
        low, high = ends(extension)
        if low == high:
            return low
    raise RuntimeError(BROKEN)


@Compilable
def _fill_floors(
    words: Words, position: int, out: Integers, done: int, state: tuple[Any, ...]
) -> Progress:
    """Draw numbers to some places, and note those with more, after their count."""
    normal, bits, width, numbers, noted = state
    digits = Digits(words, width, numbers)
    end = 64 * words.size
    while done < out.size:
        whole, after = half_normal(digits, position) if normal else exponential(digits, position)
        if numbers[_X, 0] > 0:
            fraction, after = leading_bits(digits, after, _X, bits)
        else:
            fraction = take_bits(words, after, 1) << (bits - 1)
            fraction |= take_bits(words, after + 1, bits - 1)
            after += bits
        if after > end:
            break
        if whole < 0:
            return done, position, True
        if numbers[_X, 0] * width > bits:
            noted[0, 0] += 1
            if noted[0, 0] == noted.shape[0]:
                return done, position, True
            noted[noted[0, 0], 0] = done
            noted[noted[0, 0], 1:] = numbers[_X]
        out[done] = (whole << bits) + fraction
        done += 1
        position = after
    return done, position, False


def _draw(rng: RandomWords, size: int, bits: int, normal: bool, width: int) -> LazyNumbers:
    out = np.empty(size, dtype=np.int64)
    numbers = new_numbers(4, width, CDF)
    # A number is noted if a comparison has looked at more places than are returned of it. A few
    # comparisons look at one number, and each goes that far with a probability of about `rarely`.
    rarely = 0.5 ** (bits // width * width)
    room = min(size, 64 + int(64.0 * rarely * size))
    noted = np.zeros((room + 1, 1 + numbers.shape[1]), dtype=np.int64)
    state = normal, bits, width, numbers, noted
    fill(_fill_floors, rng, out, _MEAN_BITS + bits, state)
    known = {}
    for index, n_digits, *digits in noted[1 : noted[0, 0] + 1].tolist():
        value = int(out[index]) >> bits
        for digit in digits[:n_digits]:
            value = value << width | digit
        known[index] = value, width * n_digits
    return LazyNumbers(rng, out, bits, known)


def exponentials(rng: RandomWords, size: int, bits: int, width: int = DIGIT_BITS) -> LazyNumbers:
    """Draw exactly exponential numbers, to 2 <= `bits` <= 52 binary places at first."""
    return _draw(rng, size, bits, False, width)


def half_normals(rng: RandomWords, size: int, bits: int, width: int = DIGIT_BITS) -> LazyNumbers:
    """Draw absolute values of exactly normal numbers, to 2 <= `bits` <= 52 places at first."""
    return _draw(rng, size, bits, True, width)


def uniforms(rng: RandomWords, bounds: Integers, repeats: int, bits: int) -> LazyNumbers:
    """Draw numbers exactly uniform on [0, bound / 2**bits), ``repeats`` for each bound."""
    n_bits = int(bounds.max(initial=0)).bit_length()
    return LazyNumbers(rng, uniform_integers(rng, bounds, repeats, n_bits), bits)


def with_random_signs(rng: RandomWords, magnitudes: Integers) -> Integers:
    """Return the magnitudes, each with an independent fair sign."""
    source = rng.take(-(-magnitudes.size // 64))
    negative = np.unpackbits(source.view(np.uint8), count=magnitudes.size).view(np.bool_)
    np.negative(magnitudes, out=magnitudes, where=negative.reshape(magnitudes.shape))
    return magnitudes
