"""Compiled parts of the sampler of piecewise exponents: its envelope and the fast draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdpnoise.sampling.bits import Floats, Integers, Progress, Words, take_bits
from skdpnoise.sampling.kernels import Compilable, inner

# Bits of the integer that chooses a cell and the height below its envelope at once.
CHOICE_BITS = 62
# Leading bits of that integer for which the first cell is tabulated.
GUIDE_BITS = 11

# Cells are split until each rejects less than this part of the attempts, or until there are so
# many. A law of one bump then has some 400 cells and rejects one attempt in a hundred.
LARGEST_WASTE = 2.0**-15
MAX_CELLS = 4096

# At least so many bits of a point are drawn before its density is compared with anything.
FEWEST_BITS = 16

# Density, relative to that at zero, below which the cells may end. The tail is drawn exactly.
TAIL = 2.0**-64

# Density below which a draw need not fit into 64 bits.
LARGEST_DRAW = 2.0**-100

# Bound on the relative error of the few floating-point operations of an exponent or an envelope:
# 128 times that of one operation. The same again stands for the exponential function.
ROUNDING = 2.0**-46

# In place of a number of bits: cells that the fast path leaves to the exact one, and rejection.
LEFT_TO_EXACT = -1
REJECTED = -2

REJECT, ACCEPT, UNDECIDED = 0, 1, -1

# exp of more would overflow, which the interpreter takes for an error.
LARGEST_POWER = 709.0

# To refine the cells of one law takes the interpreter as long as to read so many bits.
REFINING_BITS = 20_000


# Calls of loops pass records as plain tuples: named ones cost 0.2 ms each to be recognised.
class Exponents(NamedTuple):
    """An exponent as arrays, with bounds on the errors of its evaluation."""

    knots: Floats
    coefficients: Floats
    power: float
    end: float
    length: float  # of a period, or infinity
    increase: float
    fall: float  # bound on rho(x) - rho(y) for x < y: not zero where c0 was rounded
    spread: float  # relative displacement of an argument, covering its rounding
    point: float  # 1.0 for laws on the integers, whose cells are sets of points; else 0.0


class Envelope(NamedTuple):
    """The envelope: a column for each cell, and two more for the tail and for rejection."""

    cumulative: Integers  # sum of the weights of the cells before
    guide: Integers  # first cell for each value of the leading bits
    sure: Integers  # heights below this are accepted wherever in the cell
    first: Integers  # left end in the unit of the cell
    n_bits: Integers  # binary logarithm of the number of units in the cell
    drop: Integers  # bits of a unit that rounding drops
    unit: Floats
    height: Floats  # weight of the cell if the density were one


@inner
def evaluate(x: float, law: Exponents) -> tuple[float, float]:
    """Return rho(x) - rho(0) and a bound on its error."""
    # The value is exact up to that bound for an argument within x (1 +- spread / 2), if the spread
    # is not zero; such a displacement changes the value much at a jump only.
    if x >= law.end:
        return math.inf, 0.0
    turns = 0.0
    if law.length < math.inf:
        turns = float(np.floor(x / law.length))
        # The last representable number of a period, for those rounded out of it.
        x = min(max(x - turns * law.length, 0.0), law.length * (1.0 - 2.0**-53))
    base = float(law.coefficients[0, 0])
    at = law.knots.size - 1
    while law.knots[at] > x:  # knots[0] is 0; numba takes half a second to compile a search
        at -= 1
    piece, rise = law.coefficients[at], turns * law.increase
    constant, linear, square = float(piece[0]), float(piece[1]) * x, float(piece[2]) * x * x
    if piece[3] != 0.0 and x > 0.0:
        rise += float(piece[3] * np.float64(x) ** law.power)
    size = abs(constant) + abs(base) + abs(linear) + abs(square) + rise
    return (constant - base) + linear + square + rise, ROUNDING * size


@inner
def bounds(low: float, high: float, law: Exponents, band: float) -> tuple[float, float]:
    """Return numbers below and above exp(-rho(x) + rho(0)) for all x from `low` to `high`."""
    slack = 2.0 * law.fall + ROUNDING
    value, error = evaluate(high * (1.0 + law.spread), law)
    least = math.exp(-value - error - slack - band)
    value, error = evaluate(low * (1.0 - law.spread), law)
    highest = -value + error + slack + band
    return least, math.exp(highest) if highest < LARGEST_POWER else math.inf


@inner
def cell_bounds(index: int, level: int, law: Exponents) -> tuple[float, float]:
    """Return bounds of the density on the cell from index * 2**level to (index + 1) * 2**level."""
    low, end = math.ldexp(float(index), int(level)), math.ldexp(float(index + 1), int(level))
    return bounds(low, end - law.point, law, 0.0)


@Compilable
def refine(columns: tuple[Any, ...], count: int, lowest: int, law_fields: tuple[Any, ...]) -> int:
    """Split the first `count` cells, and theirs, while they waste too much; return their number."""
    index, level, least, most = columns
    law = Exponents(*law_fields)
    for cell in range(count):
        least[cell], most[cell] = cell_bounds(index[cell], level[cell], law)
    while True:
        total = 0.0
        for cell in range(count):
            total += math.ldexp(most[cell], int(level[cell]))
        before = count
        for cell in range(before):
            waste = math.ldexp(most[cell] - least[cell], int(level[cell]))
            if waste > LARGEST_WASTE * total and level[cell] > lowest and count < index.size:
                index[cell] *= 2
                level[cell] -= 1
                index[count] = index[cell] + 1
                level[count] = level[cell]
                for half in (cell, count):
                    least[half], most[half] = cell_bounds(index[half], level[half], law)
                count += 1
        if count == before:
            return count


@inner
def _decide(height: int, x: int, cell: int, law: Exponents, cells: Envelope, band: float) -> int:
    """Compare a number of [height, height + 1) with the density at a number of [x, x + 1) units."""
    unit = cells.unit[cell]
    low = float(x) * unit
    least, most = bounds(low, (float(x) + 1.0) * unit - law.point, law, band)
    if float(height) + 1.0 <= cells.height[cell] * least:
        return ACCEPT
    # Strictly, so that a bound that has underflowed to zero decides nothing.
    if float(height) > cells.height[cell] * most:
        return REJECT
    return UNDECIDED


@Compilable
def fill_piecewise(
    words: Words, position: int, out: Integers, done: int, state: tuple[Any, ...]
) -> Progress:
    """Fill `out` as far as doubles suffice; a flag says that the next draw needs more."""
    half, band, law_fields, cell_fields = state
    law, cells = Exponents(*law_fields), Envelope(*cell_fields)
    end = 64 * words.size
    while done < out.size:
        after = position
        while True:
            choice = take_bits(words, after, CHOICE_BITS + 1)
            after += CHOICE_BITS + 1
            if after > end:
                return done, position, False
            height = choice >> 1
            cell = cells.guide[height >> (CHOICE_BITS - GUIDE_BITS)]
            while height >= cells.cumulative[cell + 1]:
                cell += 1
            n = cells.n_bits[cell]
            if n == REJECTED:
                continue
            if n == LEFT_TO_EXACT:
                return done, position, True
            x = cells.first[cell]
            if n > 0:
                x += take_bits(words, after, n)
                after += n
                if after > end:
                    return done, position, False
            height -= cells.cumulative[cell]
            if height < cells.sure[cell]:
                break
            decision = _decide(height, x, cell, law, cells, band)
            if decision == UNDECIDED:
                return done, position, True
            if decision == ACCEPT:
                break
        magnitude = ((x >> cells.drop[cell]) + half) >> half
        out[done] = -magnitude if choice & 1 else magnitude
        done += 1
        position = after
    return done, position, False


@dataclass(frozen=True, slots=True)
class EnvelopeTable:
    law: Exponents
    cells: Envelope
    bits: int | None  # binary places of the result, or None for a law on the integers
    index: Integers  # cell i begins at index[i] * 2**level[i]
    level: Integers  # and has the width 2**level[i]
    top: int  # the cells end at 2**top
    scale: float  # weight of a cell of width one if the density were one
    mean_bits: float  # random bits of a draw


def point_bits(level: int | Integers, bits: int | None) -> Integers:
    """Return how many bits of a point in a cell are drawn before anything is compared."""
    if bits is None:
        return np.asarray(level)
    return np.asarray(np.maximum(np.asarray(level) + (bits + 1), FEWEST_BITS))


@np.errstate(all="ignore")
def build_table(law: Exponents, bits: int | None) -> EnvelopeTable | None:
    """Return the envelope of a law, or None if the draws would not fit into 64 bits."""
    top = _top(law)
    largest = 2.0 ** (62 if bits is None else 63 - bits)
    if top is None or (largest < law.end and evaluate(largest, law)[0] < -math.log(LARGEST_DRAW)):
        return None
    index, level, least, most = _cells(law, top)
    width = np.ldexp(1.0, level)
    if bits is None:
        width[0] = 0.5  # zero, which has no sign
    # The tail weighs as much as a cell of width 2 * 2**top and of the density at 2**top.
    tail = 0.0
    if 2.0**top < law.end:
        tail = math.ldexp(cell_bounds(1, top, law)[1], top + 1)
    scale = 2.0**CHOICE_BITS * (1.0 - 2.0**-20) / (float((width * most).sum()) + tail)
    weights = np.ceil(scale * np.append(width * most, tail)).astype(np.int64) + 1
    cumulative = np.zeros(weights.size + 2, dtype=np.int64)
    np.cumsum(weights, out=cumulative[1:-1])
    cumulative[-1] = 2**CHOICE_BITS
    starts = np.arange(2**GUIDE_BITS) << (CHOICE_BITS - GUIDE_BITS)
    n_bits = point_bits(level, bits)
    drop = n_bits * 0 if bits is None else n_bits - level - (bits + 1)
    # Points that do not fit into 64 bits are far out (or finer than anybody asks for).
    fast = np.log2(index + 1.0) + n_bits < 62.0
    n_bits = np.where(fast, n_bits, 0)
    cells = Envelope(
        cumulative=cumulative,
        guide=np.searchsorted(cumulative, starts, side="right") - 1,
        sure=np.maximum(np.floor(scale * width * least).astype(np.int64) - 1, 0),
        first=np.where(fast, index, 0) << n_bits,
        n_bits=np.append(np.where(fast, n_bits, LEFT_TO_EXACT), [LEFT_TO_EXACT, REJECTED]),
        drop=drop,
        unit=np.ldexp(1.0, level - n_bits),
        height=scale * width,
    )
    accepted = scale * float((width * (least + most)).sum()) / 2.0 ** (CHOICE_BITS + 1)
    attempt = CHOICE_BITS + 1 + float(np.dot(weights[:-1] / 2.0**CHOICE_BITS, n_bits))
    return EnvelopeTable(law, cells, bits, index, level, top, scale, attempt / accepted)


def _top(law: Exponents) -> int | None:
    """Return the least t such that the cells may end at T = 2**t."""
    # The support ends there, or the density is small and rho(T + j T) >= rho(T) + j log 2 for every
    # j: by convexity of the last piece, or as so many whole periods are passed. (A density so
    # narrow that it ends below the first T tried is all in the cells near zero.)
    first = -200 if law.point == 0.0 else 0
    while evaluate(2.0 ** (first + 16), law)[0] < -math.log(TAIL):  # nor does it end before there
        first += 16
    for top in range(first, 1000):
        end = 2.0**top
        if end >= law.end:
            return top
        value, _ = evaluate(end, law)
        if value < -math.log(TAIL) or (law.length < math.inf and end < law.length):
            continue
        if law.length < math.inf:
            gain = math.floor(end / law.length) * law.increase
        elif end < law.knots[-1] or law.coefficients[-1, 2] < 0.0:
            continue
        else:
            gain = evaluate(2.0 * end, law)[0] - value
        if gain * (1.0 - ROUNDING) > 0.7:  # log 2 = 0.693
            return top
    return None


def _cells(law: Exponents, top: int) -> tuple[Integers, Integers, Floats, Floats]:
    """Return index, level and bounds of the cells from 0 to 2**top, from left to right."""
    index, level = np.zeros((2, MAX_CELLS), dtype=np.int64)
    index[1:] = 1
    if law.point == 0.0:
        level[0], count, lowest = top, 1, top - 50
    else:
        # Zero stands alone, and after it come [1, 2), [2, 4), [4, 8), ...
        level[0], count, lowest = 0, top + 1, 0
        level[1:count] = np.arange(top)
    least, most = np.empty((2, MAX_CELLS))
    columns = index, level, least, most
    count = refine.for_bits(REFINING_BITS)(columns, count, lowest, tuple(law))
    left = np.ldexp(index[:count].astype(np.float64), level[:count])
    order = np.argsort(left)
    order = order[left[order] < law.end]
    return index[order], level[order], least[order], most[order]
