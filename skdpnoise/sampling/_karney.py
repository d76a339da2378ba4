"""Exact exponential and half-normal numbers, of which only what comparisons need is drawn.

References
----------
J. von Neumann (1951), "Various techniques used in connection with random digits", NBS Applied
Mathematics Series 12. C. F. F. Karney (2016), "Sampling exactly from the normal distribution", ACM
Transactions on Mathematical Software 42, Algorithms N, B and C.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling.bits import take_below
from skdpnoise.sampling.kernels import inner
from skdpnoise.sampling.lazy import CAPACITY, is_smaller, run_parity

# A larger integer part has probability e**-512 < 2**-256 and would overflow the result.
_LARGEST_INTEGER_PART = 512


def _integer_part_cdf() -> tuple[int, ...]:
    r"""Return P(k <= i) for :math:`P(k) \propto e^{-k^2/2}`, as integers out of 2**CAPACITY."""
    with localcontext() as context:
        context.prec = 160  # decimal digits: 531 bits
        weights = [(Decimal(-k * k) / 2).exp() for k in range(40)]
        sums = accumulate(weights)
        cdf = [int(2**CAPACITY * partial / sum(weights)) for partial in sums]
    return tuple(cdf[: cdf.index(2**CAPACITY - 1) + 1])


CDF = _integer_part_cdf()

# Rows of the table of numbers: x, two that take turns in a run, one for single comparisons, and
# the first of the constants CDF.
_X, _RUN_A, _RUN_B, _SINGLE, _FIRST_CDF = range(5)


@inner
def exponential(
    words: NDArray[np.uint64],
    position: int,
    width: int,
    numbers: NDArray[np.int64],
) -> tuple[int, int]:
    """Return the integer part of E, exactly exponential, or -1, and the position after it."""
    # What is known of its fraction x is left in the table. Von Neumann (1951): in a run x > u_1 >
    # u_2 > ... of uniforms, n of them after x, n is even with probability exp(-x). So the first x
    # of an even run has density proportional to exp(-x) on [0, 1), and the number of odd runs
    # before it, each of probability 1/e, is the integer part.
    integer_part = 0
    while integer_part <= _LARGEST_INTEGER_PART:
        numbers[_X, 0] = 0
        odd, position = run_parity(words, position, width, numbers, _X)
        if odd < 0:
            return -1, position
        if odd == 0:
            return integer_part, position
        integer_part += 1
    return -1, position


@inner
def half_normal(
    words: NDArray[np.uint64],
    position: int,
    width: int,
    numbers: NDArray[np.int64],
) -> tuple[int, int]:
    """Return the integer part of |Z|, Z exactly normal, or -1, and the position after it."""
    # What is known of its fraction x is left in the table. Karney (2016), Algorithm N without its
    # signs. The letters are his.
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
            return k, position
