"""Exact rounded normal numbers by Karney's algorithm."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling._rounded import Shape, new_draws
from skdpnoise.sampling.bits import Progress, fill, take_below, take_bits
from skdpnoise.sampling.kernels import Compilable, inner
from skdpnoise.sampling.lazy import CAPACITY, DIGIT_BITS, is_smaller, leading_bits, new_numbers
from skdpnoise.sampling.words import RandomWords

# Mean number of random bits of one draw beyond those of its precision (measured).
_MEAN_BITS = 38.5


def _integer_part_cdf() -> tuple[int, ...]:
    r"""Return P(k <= i) for :math:`P(k) \propto e^{-k^2/2}`, as integers out of 2**CAPACITY.

    Truncated; up to the first i that `CAPACITY` bits do not tell from 1.
    """
    with localcontext() as context:
        context.prec = 160  # decimal digits: 531 bits
        weights = [(Decimal(-k * k) / 2).exp() for k in range(40)]
        sums = accumulate(weights)
        cdf = [int(2**CAPACITY * partial / sum(weights)) for partial in sums]
    return tuple(cdf[: cdf.index(2**CAPACITY - 1) + 1])


_CDF = _integer_part_cdf()

# Rows of the table of numbers: x, two that take turns in a run, one for single comparisons, and
# the first of the constants _CDF.
_X, _RUN_A, _RUN_B, _SINGLE, _FIRST_CDF = range(5)


@inner
def _half_normal(
    words: NDArray[np.uint64],
    position: int,
    bits: int,
    width: int,
    numbers: NDArray[np.int64],
) -> tuple[int, int]:
    """Return round(2**bits * |Z|), Z exactly normal, or -1, and the position after it.

    Karney (2016), Algorithm N. The letters are his.
    """
    while True:
        # N1 and N2: the integer part k, with probability proportional to exp(-k**2/2).
        numbers[_SINGLE, 0] = 0
        k = 0
        while True:
            below, position = is_smaller(words, position, width, numbers, _SINGLE, _FIRST_CDF + k)
            if below != 0:
                break
            k += 1
        if below < 0:
            return -1, position
        # N3: the fraction x. N4: accept with probability exp(-x (2k + x) / 2), as k + 1 successes
        # of probability exp(-x f), f = (2k + x) / (2k + 2).
        numbers[_X, 0] = 0
        m = 2 * k + 2
        n_bits = 1
        while 1 << n_bits < m:
            n_bits += 1
        accepted = True
        for _ in range(k + 1):
            # Algorithm B: in a descending run x > z_1 > z_2 > ... that also ends with probability
            # 1 - f before each step, the number n of steps is even with probability exp(-x f).
            lowest = _X
            n = 0
            while True:
                # Algorithm C: go on with probability f = (m - 2) / m + x / m.
                choice, position = take_below(words, position, m, n_bits)
                if choice == 0:
                    break
                if choice == 1:
                    numbers[_SINGLE, 0] = 0
                    below, position = is_smaller(words, position, width, numbers, _SINGLE, _X)
                    if below < 0:
                        return -1, position
                    if below == 0:
                        break
                z = _RUN_A if lowest != _RUN_A else _RUN_B
                numbers[z, 0] = 0
                below, position = is_smaller(words, position, width, numbers, z, lowest)
                if below < 0:
                    return -1, position
                if below == 0:
                    break
                lowest = z
                n += 1
            if n & 1 == 1:
                accepted = False
                break
        if accepted:
            # N5, with the rounding.
            fraction, position = leading_bits(words, position, width, numbers, _X, bits + 1)
            return ((k << (bits + 1)) + fraction + 1) >> 1, position


@Compilable
def _fill_gaussian(
    words: NDArray[np.uint64],
    position: int,
    out: NDArray[np.int64],
    done: int,
    bits: int,
    width: int,
    numbers: NDArray[np.int64],
) -> Progress:
    end = 64 * words.size
    while done < out.size:
        magnitude, after = _half_normal(words, position, bits, width, numbers)
        negative = take_bits(words, after, 1)
        after += 1
        if after > end:
            break
        if magnitude < 0:
            return done, position, True
        out[done] = -magnitude if negative else magnitude  # N6
        done += 1
        position = after
    return done, position, False


def rounded_gaussian(
    words: RandomWords, size: Shape, bits: int, *, digit_bits: int = DIGIT_BITS
) -> NDArray[np.int64]:
    r"""Draw :math:`\mathrm{round}(2^{\mathrm{bits}} Z)`, Z exactly standard normal.

    .. math:: f(z) = e^{-z^2/2} / \sqrt{2\pi}

    Z is never computed: Karney's algorithm compares uniform numbers digit by digit until they
    differ, then the fraction is completed to `bits` + 1 places and rounded. There is no
    floating-point number anywhere, hence none of the gaps through which the low bits of
    floating-point noise reveal the value below it (Mironov 2012).

    Parameters
    ----------
    words : RandomWords
        Source of randomness. For a given stream the result does not depend on the pieces in which
        the words are fetched. Words fetched and not needed are thrown away.
    size : int or tuple of int
        Shape of the result.
    bits : int
        Binary places kept, 0 <= `bits` <= 52.
    digit_bits : int, default=8
        Width of the digits compared, a divisor of 64 up to 32. It changes the speed and which
        draws a given stream makes; it does not change the distribution.

    Returns
    -------
    draws : ndarray of int64, shape `size`
        In units of 2**-bits.

    Raises
    ------
    TypeError, ValueError
        If `bits` is not an integer in its range.
    RuntimeError
        If the words are so far from random that 256 bits do not tell two numbers apart.

    References
    ----------
    C. F. F. Karney (2016), "Sampling exactly from the normal distribution", ACM Transactions on
    Mathematical Software 42, Algorithms N, B and C. I. Mironov (2012), "On significance of the
    least significant bits for differential privacy", CCS.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords, rounded_gaussian
    >>> draws = rounded_gaussian(SeededWords(0), (4, 1000), bits=20)
    >>> draws.shape, draws.dtype
    ((4, 1000), dtype('int64'))
    >>> bool(0.9 < (draws / 2**20).std() < 1.1)
    True
    """
    out, bits = new_draws(size, bits)
    numbers = new_numbers(4, digit_bits, _CDF)
    fill(_fill_gaussian, words, out.reshape(-1), _MEAN_BITS + bits, bits, digit_bits, numbers)
    return out
