r"""Exact rounded noise of any symmetric density whose logarithm falls and is simple in pieces.

The density is :math:`f(z) \propto e^{-\rho(|z|)}`. Its half z = x >= 0 is cut into cells, intervals
with dyadic ends, and cell j of width :math:`w_j` is given an integer weight

.. math:: W_j \ge S\, w_j \sup_{x \in j} e^{\rho(0) - \rho(x)}, \qquad \sum_j W_j \le 2^{62},

with one number S for all cells. A draw goes as follows.

1. An integer uniform below :math:`2^{62}` falls into cell j, or past all of them: begin again. Its
   distance from the beginning of the cell and uniform digits after the point, drawn when they are
   asked for, make a number V uniform on :math:`[0, W_j)`.
2. x is uniform in the cell, its binary digits drawn as far as they are asked for.
3. If :math:`V < S w_j e^{\rho(0) - \rho(x)}` the x is accepted, otherwise all begins again.

(V, x) is uniform under a histogram that lies above :math:`S e^{\rho(0) - \rho(x)}`, so an accepted
x has that density: rejection from a piecewise constant envelope (Devroye 1986, II.3 and VIII). The
envelope decides the speed, nothing else. The cells end at some T; beyond, the envelope halves from
:math:`[jT, (j+1)T)` to the next, and j is the number of tosses of a fair coin up to the first head.

**Nothing is rounded before the end.** The comparison in 3 is one of two real numbers of which some
digits are known (Karney 2016). Doubles with a bound on all their errors decide it where these
digits suffice. Where they do not, once in many millions of draws, the same draw is made again from
the same random bits in rational and decimal arithmetic whose errors are bounded as well, with 64
more digits of V and of x at a time. So the draws are those of the exact path. Only an accepted x is
rounded, by completing it to one place more than is asked for.

**Privacy.** The result is :math:`\mathrm{round}(2^{bits} Z)` of an exact Z, a post-processing of
the ideal real-valued noise, and for integer queries q
:math:`q + \mathrm{round}(N) = \mathrm{round}(q + N)`: whatever guarantee is proved for the ideal
mechanism holds for the program, and gaps of floating-point noise reveal nothing (Mironov 2012). The
one exception is an error, raised with probability below :math:`2^{-100}` and independently of any
data, when a draw does not fit into 64 bits. References: those of `rounded_piecewise`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from numbers import Real

import numpy as np

from skdpnoise._utils.checks import check_count, check_real, complaint
from skdpnoise.sampling._piecewise_exact import OutOfWordsError, draw_exactly
from skdpnoise.sampling._piecewise_kernel import (
    ROUNDING,
    EnvelopeTable,
    Exponents,
    build_table,
    fill_piecewise,
)
from skdpnoise.sampling.bits import BROKEN, Integers, Progress, Words, fill
from skdpnoise.sampling.words import RandomWords

# Falls of the exponent that are taken for the rounding of c0, relative to the terms there.
_TOLERANCE = 2.0**-32

# Added to the bounds on the error of logarithms within which doubles decide nothing. At infinity
# nearly every draw that is not sure is decided exactly, to the same result.
_BAND = 0.0

_MOST_BITS = 52

# A draw that so many words do not finish shows that they are not random.
_MOST_WORDS = 1 << 12

Piece = tuple[float, float, float, float]
Shape = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Exponent:
    r"""Minus the logarithm of a symmetric density up to a constant, in pieces.

    .. math:: f(z) \propto e^{-\rho(|z|)}, \qquad
              \rho(x) = c_0 + c_1 x + c_2 x^2 + c_3 x^p \quad (k_i \le x < k_{i+1}),

    with other coefficients for each piece i. The floating-point numbers are meant as the exact
    binary fractions that they are, so they define one law exactly.

    Parameters
    ----------
    knots : tuple of float
        Left ends :math:`k_i` of the pieces, the first 0.0, increasing.
    coefficients : tuple of tuple of float
        :math:`(c_0, c_1, c_2, c_3)` of each piece. :math:`\rho` must not decrease, neither within
        a piece nor at a knot, except by as little as rounding of :math:`c_0` explains. A piece
        with :math:`c_3 \ne 0` needs all of :math:`c_1, c_2, c_3 \ge 0`.
    power : float, default=2.0
        The exponent p >= 1.
    end : float, default=inf
        The density is zero for :math:`|z| \ge` `end`.
    period : tuple of float, default=None
        A pair (length, increase): the pieces are those of [0, length), and
        :math:`\rho(x + length) = \rho(x) + increase`.

    Examples
    --------
    >>> normal = Exponent(knots=(0.0,), coefficients=((0.0, 0.0, 0.5, 0.0),))
    >>> staircase = Exponent((0.0, 0.5), ((0.0,) * 4, (1.0, 0.0, 0.0, 0.0)), period=(1.0, 1.0))
    """

    knots: tuple[float, ...]
    coefficients: tuple[Piece, ...]
    power: float = 2.0
    end: float = math.inf
    period: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.coefficients, Iterable):
            raise _fault("coefficients", "tuples of four numbers", self.coefficients)
        store = partial(object.__setattr__, self)
        store("knots", _floats("knots", self.knots))
        store("coefficients", tuple(_floats("coefficients", c, 4) for c in self.coefficients))
        store("power", *_floats("power", (self.power,)))
        store("end", check_real("Exponent", "end", self.end, high_closed=True))
        if self.period is not None:
            store("period", _floats("period", self.period, 2))
        _check(self)


def _fault(name: str, allowed: str, value: object) -> ValueError:
    return ValueError(complaint("Exponent", name, f"be {allowed}", repr(value)))


def _floats(name: str, values: object, count: int | None = None) -> tuple[float, ...]:
    allowed = "finite numbers" if count is None else f"{count} finite numbers each"
    if not isinstance(values, Iterable):
        raise _fault(name, allowed, values)
    values = tuple(values)
    if any(not isinstance(value, Real) or isinstance(value, bool) for value in values):
        raise TypeError(str(_fault(name, allowed, values)))
    floats = tuple(float(value) for value in values)
    if not all(map(math.isfinite, floats)) or count not in (None, len(floats)):
        raise _fault(name, allowed, values)
    return floats


def _check(exponent: Exponent) -> None:
    """Raise ValueError unless the pieces define a density that falls."""
    knots, pieces = exponent.knots, exponent.coefficients
    last = exponent.end if exponent.period is None else exponent.period[0]
    if not knots or knots[0] != 0.0 or any(a >= b for a, b in pairwise((*knots, last))):
        allowed = "increasing numbers from 0.0 on, below 'end' or the length of the period"
        raise _fault("knots", allowed, knots)
    if len(pieces) != len(knots):
        raise _fault("coefficients", f"of as many pieces as there are knots, {len(knots)}", pieces)
    if exponent.power < 1.0:
        raise _fault("power", "a number of at least 1", exponent.power)
    if exponent.period is not None and exponent.period[1] <= 0.0:
        raise _fault("period", "a length and an increase above 0", exponent.period)
    for start, stop, piece in zip(knots, (*knots[1:], last), pieces, strict=True):
        if not _rises(start, stop, piece):
            raise _fault(
                "coefficients",
                "such that no piece decreases (and, with c3 other than 0, of c1, c2, c3 >= 0; "
                "without an end or a period, the last one increases without bound)",
                piece,
            )
    if not math.isfinite(_fall(exponent)):
        raise _fault("coefficients", "such that the exponent does not fall at a knot", pieces)


def _rises(start: float, stop: float, piece: Piece) -> bool:
    """Return whether a piece does not decrease and, if it is infinite, grows without bound."""
    _, c1, c2, c3 = piece
    if c3 != 0.0:
        return min(c1, c2, c3) >= 0.0
    ends = [Fraction(x) for x in (start, stop) if x < math.inf]
    if len(ends) == 1 and not (c2 >= 0.0 and max(c1, c2) > 0.0):
        return False
    # The sign of the derivative is that of an exact comparison.
    return min(Fraction(c1) + 2 * Fraction(c2) * x for x in ends) >= 0


def _fall(exponent: Exponent) -> float:
    """Return a bound on rho(x) - rho(y) over x < y, infinite if it is more than rounding."""
    total = 0.0
    ends = list(exponent.knots[1:])
    after = list(exponent.coefficients[1:])
    if exponent.period is not None:
        length, increase = exponent.period
        first = exponent.coefficients[0]
        ends.append(length)
        after.append((first[0] + increase, 0.0, 0.0, 0.0))
    for knot, left, right in zip(ends, exponent.coefficients, after, strict=False):
        with np.errstate(over="ignore"):
            power = float(np.power(knot, exponent.power)) if left[3] or right[3] else 0.0
        powers = (1.0, knot, knot * knot, power)
        size = 1.0 + sum((abs(a) + abs(b)) * x for a, b, x in zip(left, right, powers, strict=True))
        jump = sum((b - a) * x for a, b, x in zip(left, right, powers, strict=True))
        if not (math.isfinite(size) and jump > -_TOLERANCE * size):
            return math.inf
        total += max(0.0, 2.0 * ROUNDING * size - jump)
    # Between x and y each knot is passed at most twice, apart from whole periods, over which the
    # exponent grows by more than it can fall.
    if exponent.period is not None and not 2.0 * total < exponent.period[1]:
        return math.inf
    return 2.0 * total


def _law(exponent: Exponent, *, on_integers: bool) -> Exponents:
    length, increase = exponent.period or (math.inf, 0.0)
    # Integers, whole periods and what is left of them are exact in doubles.
    exact = on_integers and (exponent.period is None or length.is_integer())
    return Exponents(
        knots=np.array(exponent.knots),
        coefficients=np.array(exponent.coefficients),
        power=exponent.power,
        end=exponent.end,
        length=length,
        increase=increase,
        fall=_fall(exponent),
        spread=0.0 if exact else 2.0**-49,
        point=1.0 if on_integers else 0.0,
    )


@lru_cache(maxsize=128)
def _table(exponent: Exponent, bits: int | None) -> EnvelopeTable:
    table = build_table(_law(exponent, on_integers=bits is None), bits)
    if table is None:
        remedy = "" if bits is None else f" with bits={bits!r}: ask for fewer bits"
        raise ValueError(f"The noise of this Exponent is too wide for samples of 64 bits{remedy}.")
    return table


def _draw(table: EnvelopeTable, rng: RandomWords, size: Shape) -> Integers:
    draws = np.empty(size, dtype=np.int64)
    out = draws.reshape(-1)
    state = int(table.bits is not None), _BAND, tuple(table.law), tuple(table.cells)
    fill_fast = fill_piecewise.for_bits(table.mean_bits * out.size)

    def kernel(buffer: Words, position: int, out: Integers, done: int) -> Progress:
        before = done
        while True:
            done, position, undecided = fill_fast(buffer, position, out, done, state)
            if not undecided:
                break
            try:
                out[done], position = draw_exactly(buffer, position, table)
            except OutOfWordsError:
                break
            done += 1
        if done == before and buffer.size > _MOST_WORDS:
            raise RuntimeError(BROKEN)
        return done, position, False

    fill(kernel, rng, out, table.mean_bits)
    return draws


def rounded_piecewise(rng: RandomWords, size: Shape, bits: int, exponent: Exponent) -> Integers:
    r"""Sample :math:`\mathrm{round}(2^{\mathrm{bits}} Z)`, Z exactly of the density of an exponent.

    .. math:: f(z) = e^{-\rho(|z|)} \Big/ \int e^{-\rho(|t|)}\,dt

    Every comparison is exact and only what is accepted is rounded, so the result is a
    post-processing of the ideal real-valued noise and inherits its privacy (proof: module
    `skdpnoise.sampling.piecewise`).

    Parameters
    ----------
    rng : RandomWords
        Random generator. The result does not depend on the pieces in which its words are fetched;
        those that are fetched and not needed are thrown away.
    size : int or tuple of int
        Shape of the result.
    bits : int
        Binary places kept, 0 <= `bits` <= 52.
    exponent : Exponent
        The law of Z.

    Returns
    -------
    samples : ndarray of int64, shape `size`
        In units of 2**-bits.

    Raises
    ------
    ValueError
        If the noise is so wide that 64 bits do not hold a sample, with a probability of 2**-100.
    RuntimeError
        If the words are so far from random that 256 bits do not tell two numbers apart.

    References
    ----------
    Devroye (1986), "Non-uniform random variate generation", chapters II.3 and VIII. Karney (2016),
    "Sampling exactly from the normal distribution", ACM Transactions on Mathematical Software 42.
    Mironov (2012), "On significance of the least significant bits for differential privacy", CCS.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> exponent = Exponent((0.0,), ((0.0, 0.0, 0.0, 1.0),), power=1.5)  # exp(-abs(z)**1.5)
    >>> samples = rounded_piecewise(SeededWords(0), (4, 1000), bits=20, exponent=exponent)
    >>> bool(0.8 < (samples / 2**20).std() < 0.9)
    True
    """
    bits = check_count("sample_rounded", "bits", bits, low=0, high=_MOST_BITS)
    return _draw(_table(exponent, bits), rng, size)


_LAPLACE = Exponent((0.0,), ((0.0, 1.0, 0.0, 0.0),))
_GAUSSIAN = Exponent((0.0,), ((0.0, 0.0, 0.5, 0.0),))


def rounded_laplace(rng: RandomWords, size: Shape, bits: int) -> Integers:
    r"""Sample :math:`\mathrm{round}(2^{\mathrm{bits}} Z)`, Z exactly Laplace of scale 1.

    .. math:: f(z) = \tfrac12 e^{-|z|}

    That is `rounded_piecewise` for :math:`\rho(x) = x`, whose coefficients are exact in floating
    point; parameters, result, errors and references are those of that function.

    Parameters
    ----------
    rng, size, bits
        As in `rounded_piecewise`.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> bool(0.9 < abs(rounded_laplace(SeededWords(0), 4000, bits=20) / 2**20).mean() < 1.1)
    True
    """
    return rounded_piecewise(rng, size, bits, _LAPLACE)


def rounded_gaussian(rng: RandomWords, size: Shape, bits: int) -> Integers:
    r"""Sample :math:`\mathrm{round}(2^{\mathrm{bits}} Z)`, Z exactly standard normal.

    .. math:: f(z) = e^{-z^2/2} / \sqrt{2\pi}

    That is `rounded_piecewise` for :math:`\rho(x) = x^2/2`, whose coefficients are exact in
    floating point; the tail is as exact as the rest. Result, errors and references are its own.

    Parameters
    ----------
    rng, size, bits
        As in `rounded_piecewise`.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> bool(0.9 < (rounded_gaussian(SeededWords(0), 4000, bits=20) / 2**20).std() < 1.1)
    True
    """
    return rounded_piecewise(rng, size, bits, _GAUSSIAN)


def integer_piecewise(rng: RandomWords, size: Shape, exponent: Exponent) -> Integers:
    r"""Sample integers of probability proportional to the exponential of an exponent, exactly.

    .. math:: P(k) = e^{-\rho(|k|)} \Big/ \sum_{i \in \mathbb{Z}} e^{-\rho(|i|)}

    As `rounded_piecewise`, with cells that are sets of integers, as fast for any width.

    Parameters
    ----------
    rng, size
        As in `rounded_piecewise`.
    exponent : Exponent
        The law; the discrete Laplace distribution of scale b is ``c1 = 1 / b``, the discrete
        Gaussian distribution of parameter sigma is ``c2 = 0.5 / sigma**2``.

    Returns
    -------
    samples : ndarray of int64, shape `size`

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", NeurIPS,
    for the laws; those of `rounded_piecewise` for the method.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> exponent = Exponent(knots=(0.0,), coefficients=((0.0, 0.0, 0.5 / 10.0**2, 0.0),))
    >>> bool(9.5 < integer_piecewise(SeededWords(0), 5000, exponent).std() < 10.5)
    True
    """
    return _draw(_table(exponent, None), rng, size)
