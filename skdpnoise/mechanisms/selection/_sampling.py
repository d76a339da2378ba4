"""Exact choices among candidates whose utilities are integers.

A candidate that lies `gap` below the best is accepted with probability exp(-gap / 2**bits): gap and
bits are integers, and no floating-point number takes part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling import RandomWords, rounded_laplace
from skdpnoise.sampling.bits import Kernel, Progress, fill, take_below
from skdpnoise.sampling.kernels import Compilable, inner
from skdpnoise.sampling.lazy import DIGIT_BITS, is_smaller, new_numbers

__all__ = ["draw_exponential", "draw_laplace", "draw_permute_and_flip"]

# Random bits of one visit beyond those of the choice of a candidate, and the most visits that words
# are fetched for at once.
_VISIT_BITS, _MOST_VISITS = 20.0, 4096

# Rows of the table of numbers: x and two that take turns in a run.
_X, _RUN_A, _RUN_B = range(3)


@inner
def _descends(
    words: NDArray[np.uint64], position: int, width: int, numbers: NDArray[np.int64], below_x: bool
) -> tuple[int, int]:
    """Return 1 with probability exp(-x), x the number in row 0 or else 1; -1 if the words tie."""
    # Von Neumann (1951): in a run x > u_1 > u_2 > ... of n uniforms, n is even with probability
    # exp(-x). Every uniform is below x = 1.
    n = 0
    lowest = _X
    if not below_x:
        numbers[_RUN_A, 0] = 0
        lowest = _RUN_A
        n = 1
    while True:
        new = _RUN_A if lowest != _RUN_A else _RUN_B
        numbers[new, 0] = 0
        smaller, position = is_smaller(words, position, width, numbers, new, lowest)
        if smaller < 0:
            return -1, position
        if smaller == 0:
            return 1 - (n & 1), position
        lowest = new
        n += 1


@inner
def _accepts(
    words: NDArray[np.uint64],
    position: int,
    width: int,
    numbers: NDArray[np.int64],
    gap: int,
    bits: int,
) -> tuple[int, int]:
    """Return 1 with probability exp(-gap / 2**bits), else 0; -1 if the words tie."""
    # Canonne, Kamath and Steinke (2020), Algorithm 1: one coin of e**-1 for every whole unit of the
    # exponent, stopping at the first that fails, and one for the fraction.
    for _ in range(gap >> bits):
        heads, position = _descends(words, position, width, numbers, False)
        if heads != 1:
            return heads, position
    fraction = gap & ((1 << bits) - 1)
    if fraction == 0:
        return 1, position
    place = bits
    for i in range(1, numbers.shape[1]):
        # The digits of fraction / 2**bits; zeros follow.
        place -= width
        digit = fraction >> place if place >= 0 else fraction << -place if place > -width else 0
        numbers[_X, i] = digit & ((1 << width) - 1)
    numbers[_X, 0] = numbers.shape[1] - 1
    heads, position = _descends(words, position, width, numbers, True)
    return heads, position


@Compilable
def _fill_exponential(
    words: NDArray[np.uint64],
    position: int,
    out: NDArray[np.int64],
    done: int,
    gaps: NDArray[np.int64],
    bits: int,
    index_bits: int,
    width: int,
    numbers: NDArray[np.int64],
) -> Progress:
    """Rejection: a uniform candidate, accepted with probability exp(-gap / 2**bits)."""
    end = 64 * words.size
    while done < out.size and position < end:
        candidate, after = take_below(words, position, gaps.size, index_bits)
        heads, after = _accepts(words, after, width, numbers, gaps[candidate], bits)
        if after > end:
            break
        if heads < 0:
            return done, position, True
        # Rejected tries are over, too: they are independent of all that comes.
        position = after
        if heads == 1:
            out[done] = candidate
            done += 1
    return done, position, False


@Compilable
def _fill_permute_and_flip(
    words: NDArray[np.uint64],
    position: int,
    out: NDArray[np.int64],
    done: int,
    gaps: NDArray[np.int64],
    bits: int,
    index_bits: int,
    width: int,
    numbers: NDArray[np.int64],
    order: NDArray[np.int64],
    left: NDArray[np.int64],
) -> Progress:
    """Candidates in random order, each accepted with probability exp(-gap / 2**bits)."""
    end = 64 * words.size
    while done < out.size and position < end:
        n = index_bits
        while n > 1 and left[0] <= 1 << (n - 1):
            n -= 1
        place, after = take_below(words, position, left[0], n)
        candidate = order[place]
        heads, after = _accepts(words, after, width, numbers, gaps[candidate], bits)
        if after > end:
            break
        if heads < 0:
            return done, position, True
        position = after
        if heads == 1:
            out[done] = candidate
            done += 1
            left[0] = gaps.size
        else:
            left[0] -= 1
            order[place], order[left[0]] = order[left[0]], order[place]
    return done, position, False


def draw_exponential(
    rng: RandomWords, utilities: NDArray[np.int64], bits: int, size: int
) -> NDArray[np.int64]:
    """Draw indices with probability proportional to exp(utility / 2**bits), utilities in ±2**61."""
    return _fill(_fill_exponential, rng, utilities, bits, size)


def draw_permute_and_flip(
    rng: RandomWords, utilities: NDArray[np.int64], bits: int, size: int
) -> NDArray[np.int64]:
    """Draw indices by visiting candidates in random order until one is accepted."""
    order, left = np.arange(utilities.size), np.array([utilities.size])
    return _fill(_fill_permute_and_flip, rng, utilities, bits, size, order, left)


def draw_laplace(
    rng: RandomWords, utilities: NDArray[np.int64], bits: int, size: int
) -> NDArray[np.int64]:
    """Draw the largest of utility + round(2**bits * Z), Z Laplace; ties to the first."""
    winners: NDArray[np.int64] = np.argmax(
        rounded_laplace(rng, (size, utilities.size), bits) + utilities, axis=1
    ).astype(np.int64)
    return winners


def _fill(
    kernel: Kernel,
    rng: RandomWords,
    utilities: NDArray[np.int64],
    bits: int,
    size: int,
    *state: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return draws of a kernel that knows how far each candidate lies below the best."""
    out = np.zeros(size, dtype=np.int64)
    gaps = utilities.max() - utilities
    if gaps.size > 1:
        index_bits = (gaps.size - 1).bit_length()
        numbers = new_numbers(3, DIGIT_BITS)
        mean_bits = (1.4 * index_bits + _VISIT_BITS) * min(gaps.size, _MOST_VISITS)
        fill(kernel, rng, out, mean_bits, gaps, bits, index_bits, DIGIT_BITS, numbers, *state)
    return out
