"""Laws of selections in closed form, for analysis: gaps to the best in, probabilities out.

Gaps are in units of the exponent: an acceptance probability is exp(-gap).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Gauss's rule on each panel, and how many numbers a block of the table of (nodes, candidates) has.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_BLOCK = 1 << 22


def proportional_law(gaps: Vector) -> Vector:
    """Return exp(-gap) over its sum."""
    accepted = np.exp(-gaps)
    return np.asarray(accepted / accepted.sum(), dtype=np.float64)


def permute_and_flip_law(gaps: Vector) -> Vector:
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


def laplace_law(gaps: Vector) -> Vector:
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


def _panels(edges: Vector) -> tuple[Vector, Vector]:
    """Return nodes and weights of Gauss's rule between successive edges."""
    half = 0.5 * np.diff(edges)[:, np.newaxis]
    nodes = edges[:-1, np.newaxis] + half * (1.0 + _NODES)
    return nodes.ravel(), (half * _WEIGHTS).ravel()


def _blocks(nodes: Vector, weights: Vector, n: int) -> list[tuple[Vector, Vector]]:
    rows = max(1, _BLOCK // n)
    starts = range(0, nodes.size, rows)
    return [(nodes[i : i + rows], weights[i : i + rows]) for i in starts]
