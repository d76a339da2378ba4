"""Exact choices among candidates whose utilities are integers, and their laws, for analysis.

A candidate that lies `gap` below the best is accepted with probability exp(-gap / 2**bits), of
integers: no floating-point number takes part. The laws take gaps in units of the exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from skdpnoise.sampling import RandomWords, rounded_laplace
from skdpnoise.sampling.bits import Floats, Integers, Progress, Words, fill, take_below
from skdpnoise.sampling.kernels import Compilable, inner
from skdpnoise.sampling.lazy import DIGIT_BITS, Digits, new_numbers, run_parity

# Random bits of one visit beyond those of the choice of a candidate, and the most visits that words
# are fetched for at once.
_VISIT_BITS, _MOST_VISITS = 20.0, 4096

_X, _BELOW_ONE = 0, 1  # rows of the table of numbers: x, and the first of a run below 1

# Gauss's rule on each panel, and how many numbers a block of the table of (nodes, candidates) has.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_BLOCK = 1 << 22
_MARGIN = 1e-11  # relative error of normal quantiles, with room to spare


@inner
def _accepts(digits: Digits, position: int, gap: int, bits: int) -> tuple[int, int]:
    """Return 1 with probability exp(-gap / 2**bits), else 0; -1 if the words tie."""
    # Canonne, Kamath and Steinke (2020), Algorithm 1: one coin of e**-1 for every whole unit of the
    # exponent, stopping at the first that fails, and one for the fraction.
    _, width, numbers = digits
    for _ in range(gap >> bits):
        # A run below 1 has one number more than follow its first.
        numbers[_BELOW_ONE, 0] = 0
        heads, position = run_parity(digits, position, _BELOW_ONE)
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
    odd, position = run_parity(digits, position, _X)
    return (1 - odd if odd >= 0 else -1), position


@Compilable
def _fill_choices(
    words: Words, position: int, out: Integers, done: int, state: tuple[Any, ...]
) -> Progress:
    """Fill `out` with random candidates, each accepted with probability exp(-gap / 2**bits)."""
    gaps, bits, width, numbers, order, left, returns = state
    digits = Digits(words, width, numbers)
    end = 64 * words.size
    while done < out.size and position < end:
        index_bits = 1
        while 1 << index_bits < left[0]:
            index_bits += 1
        place, after = take_below(words, position, left[0], index_bits)
        candidate = order[place]
        heads, after = _accepts(digits, after, gaps[candidate], bits)
        if after > end:
            break
        if heads < 0:
            return done, position, True
        # Rejected tries are over, too: they are independent of all that comes.
        position = after
        if heads == 1:
            out[done] = candidate
            done += 1
            left[0] = gaps.size
        elif not returns:
            left[0] -= 1
            order[place], order[left[0]] = order[left[0]], order[place]
    return done, position, False


def draw_laplace(rng: RandomWords, utilities: Integers, bits: int, size: int) -> Integers:
    """Return where utility + round(2**bits * Z) is largest, Z Laplace; ties to the first."""
    noisy = rounded_laplace(rng, (size, utilities.size), bits) + utilities
    return np.asarray(np.argmax(noisy, axis=1), dtype=np.int64)


def _choose(rng: RandomWords, utilities: Integers, bits: int, size: int, returns: bool) -> Integers:
    """Return indices sampled by how far each candidate lies below the best."""
    out = np.zeros(size, dtype=np.int64)
    n = utilities.size
    if n > 1:
        gaps, numbers = utilities.max() - utilities, new_numbers(3, DIGIT_BITS)
        mean_bits = (1.4 * (n - 1).bit_length() + _VISIT_BITS) * min(n, _MOST_VISITS)
        state = gaps, bits, DIGIT_BITS, numbers, np.arange(n), np.array([n]), returns
        fill(_fill_choices, rng, out, mean_bits, state)
    return out


# By probabilities proportional to exp(utility / 2**bits), for utilities in ±2**61; and by visiting
# candidates in random order until one is accepted.
draw_exponential = partial(_choose, returns=True)
draw_permute_and_flip = partial(_choose, returns=False)


def proportional_law(gaps: Floats) -> Floats:
    accepted = np.exp(-gaps)
    return np.asarray(accepted / accepted.sum(), dtype=np.float64)


def permute_and_flip_law(gaps: Floats) -> Floats:
    r"""Return the law of permute-and-flip.

    .. math:: \Pr[r] = p_r \int_0^1 \prod_{j \ne r} (1 - p_j t) \, dt, \qquad p_j = e^{-gap_j}
    """
    # A random order is the order of independent uniform times; r is chosen at its time t if its
    # coin falls heads and every other candidate comes later or falls tails.
    accepted = np.exp(-gaps)
    # The integrand falls as exp(-t sum p): panels that double in width from 1/n on.
    n_doublings = int(np.ceil(np.log2(gaps.size))) + 2
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-n_doublings, 1.0)])
    times, weights = _panels(edges)
    law = np.zeros(gaps.size)
    for t, weight in _blocks(times, weights, gaps.size):
        misses = np.log1p(-np.outer(t, accepted))
        law += weight @ np.exp(misses.sum(axis=1, keepdims=True) - misses)
    return accepted * law


def laplace_law(gaps: Floats) -> Floats:
    r"""Return the law of the largest of -gap + Z with Laplace Z of scale 1.

    .. math:: \Pr[r] = \int f(z + gap_r) \prod_{j \ne r} F(z + gap_j) \, dz
    """
    # The integral is by Gauss's rule between the kinks, in some n**2 steps. The rounding of the
    # noise to integers is left out: it is less than one part in 2**9 of the scale, and in 2**24 of
    # the sensitivity.
    # Beyond 60 + log n scales nothing is left; panels are at most one scale wide.
    kinks = -np.unique(np.minimum(gaps, 60.0))
    edges = np.unique(np.concatenate([kinks, np.arange(-60.0, 61.0 + np.log(gaps.size))]))
    nodes, weights = _panels(edges)
    law = np.zeros(gaps.size)
    for z, weight in _blocks(nodes, weights, gaps.size):
        shifted = z[:, np.newaxis] + gaps
        tail = 0.5 * np.exp(-np.abs(shifted))
        below = np.where(shifted < 0.0, tail, 1.0 - tail)
        product = np.exp(np.log(below).sum(axis=1, keepdims=True))
        law += weight @ (tail * product / below)
    return law


def _panels(edges: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss's rule between successive edges."""
    half = 0.5 * np.diff(edges)[:, np.newaxis]
    nodes = edges[:-1, np.newaxis] + half * (1.0 + _NODES)
    return nodes.ravel(), (half * _WEIGHTS).ravel()


def _blocks(nodes: Floats, weights: Floats, n: int) -> list[tuple[Floats, Floats]]:
    rows = max(1, _BLOCK // n)
    starts = range(0, nodes.size, rows)
    return [(nodes[i : i + rows], weights[i : i + rows]) for i in starts]


def range_mu(epsilon: float) -> float:
    """Return 2 Φ^{-1}(expit(ε/2)), rounded up."""
    if epsilon < 1e-3:
        # Φ^{-1}(1/2 + x) = √(2π) x (1 + π x²/3 + ...) with x < ε/8: the cubic term is below ε².
        return math.sqrt(2.0 * math.pi) * epsilon / 4.0 * (1.0 + epsilon**2 + _MARGIN)
    # The smaller tail keeps its relative accuracy.
    return -2.0 * float(ndtri_exp(-float(np.logaddexp(0.0, 0.5 * epsilon)))) * (1.0 + _MARGIN)


def range_epsilon(mu: float) -> float:
    """Return the ε of a range that makes μ: 2 logit Φ(μ/2), rounded down."""
    epsilon = 2.0 * float(log_ndtr(0.5 * mu) - log_ndtr(-0.5 * mu)) * (1.0 - 1e-9)
    while epsilon > 0.0 and range_mu(epsilon) > mu:
        epsilon *= 1.0 - 1e-9
    return epsilon


class ChoiceLaw(NamedTuple):
    """A sampler of candidates by utilities in grid steps, and its law by gaps to the best."""

    draw: Callable[[RandomWords, Integers, int, int], Integers]
    law: Callable[[Floats], Floats]
    excess: float = 0.0  # of a bound on the expected gap beyond log n, in units of the exponent


KINDS = {
    "exponential": ChoiceLaw(draw_permute_and_flip, permute_and_flip_law),
    "laplace": ChoiceLaw(draw_laplace, laplace_law, excess=1.0),
    "gumbel": ChoiceLaw(draw_exponential, proportional_law),
}
"""By the noise whose largest is chosen."""
