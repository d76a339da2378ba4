"""The sampler of piecewise exponents in exact arithmetic: slow, and the meaning of the fast one."""

from __future__ import annotations

import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from skdpnoise.sampling._piecewise_kernel import CHOICE_BITS, EnvelopeTable, Exponents, point_bits
from skdpnoise.sampling.bits import BROKEN, Words
from skdpnoise.sampling.lazy import CAPACITY

# Both numbers of an undecided comparison get so many more bits at a time, which are 19.3 decimal
# digits; the arithmetic gets 20.
_STEP_BITS = 64
_STEP_DIGITS = 20
_FIRST_DIGITS = 60

# Exponents above this are not told apart. No comparison within CAPACITY bits notices.
_HUGE = 10**5


class OutOfWordsError(Exception):
    """There are too few words for the draw."""


class BitReader:
    """The bits of a buffer of words as integers of any length, the lowest first."""

    def __init__(self, words: Words, position: int) -> None:
        self._words = words
        self.position = position

    def take(self, n: int) -> int:
        start, self.position = self.position, self.position + n
        if self.position > 64 * self._words.size:
            raise OutOfWordsError
        part = self._words[start >> 6 : (self.position + 63) >> 6].astype("<u8")
        return int.from_bytes(part.tobytes(), "little") >> (start & 63) & ((1 << n) - 1)


def _locate(law: Exponents, x: Fraction) -> tuple[int, int, Fraction]:
    """Return the period and the piece of x, and its distance from the start of the period."""
    turns = 0
    if law.length < math.inf:
        turns = x // Fraction(law.length)
        x -= turns * Fraction(law.length)
    return turns, bisect_right(law.knots.tolist(), x) - 1, x


def _enclose(law: Exponents, x: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Return rho(x) - rho(0) and a bound on its error, in arithmetic of so many digits."""
    turns, piece, y = _locate(law, x)
    c0, c1, c2, c3 = map(Fraction, law.coefficients[piece].tolist())
    rational = c0 - Fraction(float(law.coefficients[0, 0])) + c1 * y + c2 * y * y
    value = _quotient(rational + turns * Fraction(law.increase))
    scale = abs(value) + 1
    if c3 and y:
        exponent = Decimal(law.power) * _quotient(y).ln()
        term = _quotient(c3) * exponent.exp()
        value += term
        # The error of y is relative, that of its logarithm absolute, and so on.
        scale += term * (1 + abs(exponent) + Decimal(law.power))
    # Every operation is rounded correctly, and there are fewer than 25 of them.
    return value, 100 * scale * Decimal(10) ** -digits


def _quotient(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def density(law: Exponents, low: Fraction, high: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Return bounds of exp(-rho(x) + rho(0)) over low <= x < high, or at x = low = high."""
    if low >= law.end:
        return Decimal(0), Decimal(0)
    start, error = _enclose(law, low, digits)
    # Within one piece the exponent does not fall; across knots it does by rounding of c0.
    crosses = _locate(law, low)[:2] != _locate(law, high)[:2]
    fall = Decimal(law.fall) if crosses else Decimal(0)
    most = _exp_of_minus(start - error - fall) * (1 + 10 * Decimal(10) ** -digits)
    if high >= law.end:
        return Decimal(0), most
    stop, error = _enclose(law, high, digits)
    if stop > _HUGE:
        return Decimal(0), most
    least = _exp_of_minus(stop + error + fall) * (1 - 10 * Decimal(10) ** -digits)
    return least, most


def _exp_of_minus(value: Decimal) -> Decimal:
    return (-min(value, Decimal(_HUGE))).exp()


def draw_exactly(words: Words, position: int, table: EnvelopeTable) -> tuple[int, int]:
    """Return a draw, a fixed function of the words from bit `position` on, and the bit after it."""
    reader = BitReader(words, position)
    while True:
        choice = reader.take(CHOICE_BITS + 1)
        cell = int(np.searchsorted(table.cells.cumulative, choice >> 1, side="right")) - 1
        height = (choice >> 1) - int(table.cells.cumulative[cell])
        if cell > table.index.size:
            continue
        index, level, factor = _within(table, cell, reader)
        n_bits = int(point_bits(level, table.bits))
        point = (index << n_bits) + reader.take(n_bits)
        places = n_bits - level
        accepted = None
        for step in range(CAPACITY // _STEP_BITS + 1):
            if step:
                height = (height << _STEP_BITS) + reader.take(_STEP_BITS)
                if table.bits is not None:
                    point = (point << _STEP_BITS) + reader.take(_STEP_BITS)
                    places += _STEP_BITS
            low = Fraction(point) / Fraction(2) ** places
            high = low if table.bits is None else low + 1 / Fraction(2) ** places
            with localcontext() as context:
                context.prec = digits = _FIRST_DIGITS + _STEP_DIGITS * step
                unit = factor * 2 ** (_STEP_BITS * step)
                accepted = _below(height, unit, *density(table.law, low, high, digits), digits)
            if accepted is not None:
                break
        else:
            raise RuntimeError(BROKEN)
        if accepted:
            break
    magnitude = point if table.bits is None else ((point >> (places - table.bits - 1)) + 1) >> 1
    if magnitude >= 2**63:
        raise RuntimeError(BROKEN)
    return (-magnitude if choice & 1 else magnitude), reader.position


def _within(table: EnvelopeTable, cell: int, reader: BitReader) -> tuple[int, int, Fraction]:
    """Return index and level of a cell of the envelope, and its height."""
    if cell < table.index.size:
        height = Fraction(float(table.cells.height[cell]))
        return int(table.index[cell]), int(table.level[cell]), height
    # The tail: beyond T = 2**level the envelope halves from T j to T (j + 1), and its weight is
    # that of the first such cell twice.
    index, factor = 1, 2 * Fraction(table.scale) * Fraction(2) ** table.top
    while reader.take(1) == 0:
        index += 1
        factor *= 2
    return index, table.top, factor


def _below(height: int, unit: Fraction, least: Decimal, most: Decimal, digits: int) -> bool | None:
    """Return whether a number of [height, height + 1) is below unit * density; None if unknown."""
    factor = _quotient(unit)
    rounding = 10 * Decimal(10) ** -digits
    if height + 1 <= factor * least * (1 - rounding):
        return True
    if height >= factor * most * (1 + rounding):
        return False
    return None
