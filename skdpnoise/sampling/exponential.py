"""Exact rounded Laplace numbers from von Neumann's exponential algorithm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling._rounded import Shape, new_draws
from skdpnoise.sampling.bits import Progress, fill, take_bits
from skdpnoise.sampling.kernels import Compilable, inner
from skdpnoise.sampling.lazy import DIGIT_BITS, is_smaller, leading_bits, new_numbers
from skdpnoise.sampling.words import RandomWords

# Mean number of random bits of one draw beyond those of its precision (measured).
_MEAN_BITS = 28.5

# A larger integer part has probability e**-512 < 2**-256 and would overflow the result.
_LARGEST_INTEGER_PART = 512

# Rows of the table of numbers: x and two that take turns in a run.
_X, _RUN_A, _RUN_B = range(3)


@inner
def _exponential(
    words: NDArray[np.uint64],
    position: int,
    bits: int,
    width: int,
    numbers: NDArray[np.int64],
) -> tuple[int, int]:
    """Return round(2**bits * E), E exactly exponential, or -1, and the position after it.

    Von Neumann (1951): in a run x > u_1 > u_2 > ... of uniforms, n of them after x, n is even with
    probability exp(-x). So the first x of an even run has density proportional to exp(-x) on
    [0, 1), and the number of odd runs before it, each of probability 1/e, is the integer part.
    """
    integer_part = 0
    while integer_part <= _LARGEST_INTEGER_PART:
        numbers[_X, 0] = 0
        lowest = _X
        n = 0
        while True:
            new = _RUN_A if lowest != _RUN_A else _RUN_B
            numbers[new, 0] = 0
            descends, position = is_smaller(words, position, width, numbers, new, lowest)
            if descends < 0:
                return -1, position
            if descends == 0:
                break
            lowest = new
            n += 1
        if n & 1 == 0:
            fraction, position = leading_bits(words, position, width, numbers, _X, bits + 1)
            return ((integer_part << (bits + 1)) + fraction + 1) >> 1, position
        integer_part += 1
    return -1, position


@Compilable
def _fill_laplace(
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
        magnitude, after = _exponential(words, position, bits, width, numbers)
        negative = take_bits(words, after, 1)
        after += 1
        if after > end:
            break
        if magnitude < 0:
            return done, position, True
        out[done] = -magnitude if negative else magnitude
        done += 1
        position = after
    return done, position, False


def rounded_laplace(
    words: RandomWords, size: Shape, bits: int, *, digit_bits: int = DIGIT_BITS
) -> NDArray[np.int64]:
    r"""Draw :math:`\mathrm{round}(2^{\mathrm{bits}} Z)`, Z exactly Laplace of scale 1.

    .. math:: f(z) = \tfrac12 e^{-|z|}

    Z is never computed: uniform numbers are compared digit by digit until they differ
    (von Neumann's algorithm), then the fraction is completed to `bits` + 1 places and rounded.
    There is no floating-point number anywhere, hence none of the gaps through which the low bits
    of floating-point Laplace noise reveal the value below it (Mironov 2012).

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
        If the words are so far from random that 256 bits do not tell two numbers apart, or that
        a draw is huge.

    References
    ----------
    J. von Neumann (1951), "Various techniques used in connection with random digits", NBS Applied
    Mathematics Series 12. I. Mironov (2012), "On significance of the least significant bits for
    differential privacy", CCS.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords, rounded_laplace
    >>> draws = rounded_laplace(SeededWords(0), (4, 1000), bits=20)
    >>> draws.shape, draws.dtype
    ((4, 1000), dtype('int64'))
    >>> bool(0.9 < abs(draws / 2**20).mean() < 1.1)
    True
    """
    out, bits = new_draws(size, bits)
    numbers = new_numbers(3, digit_bits)
    fill(_fill_laplace, words, out.reshape(-1), _MEAN_BITS + bits, bits, digit_bits, numbers)
    return out
