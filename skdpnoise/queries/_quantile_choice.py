r"""A quantile of one column by two private choices: the method under pure losses.

The doubles are cut into public cells, more of them where the quantile is believed to be. Cell
[l, h) has the utility

.. math:: u = \min\bigl(q n - N(l),\; N(h) - q n,\; 0\bigr)

with N(t) the number of records below t: 0 where the cell holds the quantile. One record moves every
N by at most 1, and n is public or released, hence moves u by at most 1, under both relations. What
is believed is public, and enters as a preference. A cell is chosen, then one of its parts, by
:class:`~skdpnoise.queries.NormQuantileMechanism`, which is exact.

A noisy bisection of T steps under a pure loss has T times the noise of one count in every step. A
choice has about the logarithm of the number of cells instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy import LossBudget
from skdpnoise.queries._quantile_search import Belief
from skdpnoise.queries._releases import Releases
from skdpnoise.queries.norm_quantile import NormQuantileMechanism, exact_terms

__all__ = ["choose_quantile", "halved", "joined", "parts_told_apart"]

_MISS = 0.003  # chance that one of many parts is chosen, though all records are in another
_ZERO = 0.25  # least probability of the cell at zero: columns with many zeros are common


def choose_quantile(
    keys: NDArray[np.int64],
    probability: float,
    belief: Belief,
    losses: Sequence[LossBudget],
    n_parts: Sequence[int],
    stage: tuple[str, Releases, float],
) -> Belief:
    """Return the cell that was chosen last; the keys are sorted `ordered` integers."""
    # Each choice cuts what is left into so many parts: first every interval of the belief, then the
    # cell that was chosen.
    label, releases, n_samples = stage
    edges, log_mass = belief.edges, belief.log_mass
    for loss, parts in zip(losses, n_parts, strict=True):
        cells, log_mass = _cut(edges, log_mass, parts)
        mechanism = NormQuantileMechanism.within(loss)
        releases.charge(label, mechanism)
        below = np.searchsorted(keys, cells, side="left")
        # in records: a choice multiplies probabilities by exp(utility / scale)
        preference = log_mass * mechanism.scale[0]
        utilities = quantile_utilities(below, probability * n_samples, preference)
        place = mechanism.select(utilities, releases.rng)
        edges, log_mass = cells[place : place + 2], np.zeros(1)
    return Belief(edges, log_mass)


def parts_told_apart(loss: LossBudget, n_samples: float, most: int) -> int:
    """Return how many parts of a cell a choice of a median can tell apart."""
    # Where all of n records are in one part, the utility of every other is -n/2. A choice by
    # permute-and-flip takes one of k others with a chance of about k/2 exp(-n/2 / scale).
    gap = 0.5 * n_samples / float(NormQuantileMechanism.within(loss).scale[0])
    return int(max(1.0, min(float(most), 2.0 * _MISS * math.exp(min(gap, 700.0)))))


def halved(belief: Belief) -> Belief:
    """Return the belief with every interval cut into two."""
    return Belief(*_cut(belief.edges, belief.log_mass, 2))


def joined(belief: Belief, least: float) -> Belief:
    """Return what is believed of a distance, with everything below the least in one interval."""
    cut, place = belief.cut(least)
    if place <= 1:
        return cut
    below = np.logaddexp.reduce(cut.log_mass[:place])
    edges = np.append(cut.edges[0], cut.edges[place:])
    return Belief(edges, np.append(below, cut.log_mass[place:]))


def quantile_utilities(
    below: NDArray[np.int_], rank: float, preference: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the utility of each cell, exactly for the public numbers as rounded."""
    # `below` counts the records below each edge of the cells.
    wanted = exact_terms(np.asarray(rank))
    fits = np.minimum(np.minimum(wanted - below[:-1], below[1:] - wanted), 0.0)
    utilities: NDArray[np.float64] = fits + exact_terms(preference)
    return utilities


def _cut(
    edges: NDArray[np.int64], log_mass: NDArray[np.float64], n_parts: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the edges of parts that are as even as whole numbers allow, and their log-masses."""
    low, width = edges[:-1, np.newaxis], np.diff(edges)[:, np.newaxis]
    steps = np.arange(n_parts)
    # No interval spans zero, so that widths fit; products are taken of quotients and remainders.
    cut = low + width // n_parts * steps + width % n_parts * steps // n_parts
    cut = np.append(cut.ravel(), edges[-1])
    mass = np.repeat(log_mass - np.log(n_parts), n_parts)
    real_parts = np.diff(cut) > 0
    kept = np.append(cut[:-1][real_parts], cut[-1])
    mass = mass[real_parts]
    at_zero = (kept[:-1] <= 0) & (kept[1:] > 0)
    mass[at_zero] = np.maximum(mass[at_zero], np.log(_ZERO * np.exp(mass).sum()))
    return kept, mass
