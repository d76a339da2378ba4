r"""Median and spread of one column by private choices: the method under pure losses.

The doubles are cut into public cells, more of them where the quantile is believed to be, which
enters as a public preference. Cell [l, h) has the utility

.. math:: u = \min\bigl(q n - N(l),\; N(h) - q n,\; 0\bigr)

with n the true number of records and N(t) that of those below t: 0 where the cell holds the
quantile. A record that is replaced moves every N by at most 1 and leaves n, hence moves u by at
most 1. A record that is added moves n by 1 and N by 0 or 1, hence qn - N by q or q - 1: u moves by
at most max(q, 1 - q), for a median by 1/2. A cell is chosen, then one of its parts, by
:class:`~skdpnoise.queries.NormQuantileMechanism`, which is exact. Where the values turn out, by
released numbers, to lie within that cell, what was meant for the mean looks closer.

A noisy bisection of T steps under a pure loss has T times the noise of one count in every step; a
choice has about the logarithm of the number of cells instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.session import Session
from skdpnoise.data.ranks import Ranks
from skdpnoise.kernels.tiles import Floats, Integers
from skdpnoise.mechanisms.selection import NormQuantileMechanism
from skdpnoise.privacy import Adjacency, LossBudget
from skdpnoise.queries._quantile_search import (
    Belief,
    Bulk,
    Search,
    believe_location,
    believe_octaves,
    believe_spread,
)
from skdpnoise.queries.norm_quantile import exact_terms

_MISS = 0.003  # chance that one of many parts is chosen, though all records are in another
_ZERO = 0.25  # least probability of the cell at zero: columns with many zeros are common
_BEYOND = 1 / 8  # part of the records that lie beyond the spread
# Within a cell a choice of one among many magnitudes is far too wide less often if it looks for
# fewer records; normal values have this ratio of the two quantiles of their distances.
_FEWER, _TO_MOST = 3 / 4, 1.385
# An interval of the belief is chosen, then one of at most so many parts.
_MOST_PARTS = 1 << 20
ENOUGH = 150.0  # records over the noise on one count, for median, spread, mean square and mean
_NOTHING = 1e-300  # a choice of zero is at most this
_ROUNDING = 1.0 - 1e-12  # shares add up to no more than the whole, whatever their last digits


def choose_bulk(data: Ranks, bounds: tuple[float, float], search: Search) -> Bulk:
    loss, shares = search.loss, search.shares
    first = replace(search, loss=loss.share(shares[0]))
    cell = choose_cell(data, 0.5, believe_location(*bounds), first, "median")
    median = cell.quantile(0.5)
    center = median if abs(median) > _NOTHING else 0.0
    widest = max(bounds[1] - median, median - bounds[0])
    # Distances below the width of the cell are not told apart: the median is no better known.
    prior = joined(halved(believe_spread(center, widest, sure=True)), cell.width)
    part = loss.share(shares[1])
    spread = _spread(data, median, 1.0 - _BEYOND, prior, part, search)
    if spread > cell.width or spread <= _NOTHING:
        return Bulk(median, spread, spread > _NOTHING, (shares[2], shares[3]))
    return _closer(data, cell, search)


def choose_cell(
    data: Ranks, probability: float, belief: Belief, search: Search, label: str
) -> Belief:
    """Return the part of an interval that holds a quantile, by all of the loss."""
    halves = [search.loss.share(HALF)] * 2
    parts = (1, parts_told_apart(halves[1], search.n_samples, _MOST_PARTS))
    return choose_quantile(data, probability, belief, halves, parts, (label, search.session))


def _closer(data: Ranks, cell: Belief, search: Search) -> Bulk:
    """Return median and spread of values that lie within the cell of their median."""
    # What the mean square and the mean would have cost goes to it: to a median alone where it is
    # too little for both of them and a spread.
    left = (search.shares[2] + search.shares[3]) * _ROUNDING
    enough = left * search.strength >= ENOUGH
    costs = [left * share for share in search.shares]
    first = search.loss.share(costs[0] if enough else left)
    parts = (parts_told_apart(first, search.n_samples, _MOST_PARTS),)
    stage = "median", search.session
    closer = choose_quantile(data, 0.5, cell, (first,), parts, stage)
    median = closer.quantile(0.5)
    if not enough:
        return Bulk(median, cell.width, False, (0.0, 0.0))
    prior = joined(halved(believe_octaves(closer.width, 2.0 * cell.width)), closer.width)
    second = search.loss.share(costs[1])
    spread = _TO_MOST * _spread(data, median, _FEWER, prior, second, search)
    found = spread > closer.width
    return Bulk(median, max(spread, closer.width), found, (costs[2], costs[3]))


def _spread(
    data: Ranks, center: float, probability: float, prior: Belief, loss: LossBudget, search: Search
) -> float:
    distances = data.distances(center)
    stage = "spread", search.session
    return choose_quantile(distances, probability, prior, (loss,), (1,), stage).quantile(0.5)


def choose_quantile(
    ranks: Ranks,
    probability: float,
    belief: Belief,
    losses: Sequence[LossBudget],
    n_parts: Sequence[int],
    stage: tuple[str, Session],
) -> Belief:
    """Return the cell that was chosen last."""
    # Each choice cuts what is left into so many parts: first every interval of the belief, then the
    # cell that was chosen.
    label, session = stage
    sensitivity = utility_sensitivity(probability, session.adjacency)
    edges, log_mass = belief.edges, belief.log_mass
    for loss, parts in zip(losses, n_parts, strict=True):
        cells, log_mass = _cut(edges, log_mass, parts)
        mechanism = NormQuantileMechanism.within(loss, sensitivity=sensitivity)
        below = ranks.below(cells)
        # in records: a choice multiplies probabilities by exp(utility / scale)
        preference = log_mass * mechanism.scale[0]
        utilities = quantile_utilities(below, probability * ranks.size, preference)
        place = session.choose(label, mechanism, utilities)
        edges, log_mass = cells[place : place + 2], np.zeros(1)
    return Belief(edges, log_mass)


def parts_told_apart(loss: LossBudget, n_samples: float, most: int) -> int:
    """Return how many parts of a cell a choice of a median can tell apart."""
    # Where all of n records are in one part, the utility of every other is -n/2. A choice by
    # permute-and-flip takes one of k others with a chance of about k/2 exp(-n/2 / scale). Under
    # "add_remove" the scale is half of this, which allows for a number of records that was released
    # twice too large.
    gap = 0.5 * n_samples / float(NormQuantileMechanism.within(loss).scale[0])
    return int(max(1.0, min(float(most), 2.0 * _MISS * math.exp(min(gap, 700.0)))))


def halved(belief: Belief) -> Belief:
    return Belief(*_cut(belief.edges, belief.log_mass, 2))


def joined(belief: Belief, least: float) -> Belief:
    """Return what is believed of a distance, with everything below the least in one interval."""
    cut, place = belief.cut(least)
    if place <= 1:
        return cut
    below = np.logaddexp.reduce(cut.log_mass[:place])
    edges = np.append(cut.edges[0], cut.edges[place:])
    return Belief(edges, np.append(below, cut.log_mass[place:]))


def utility_sensitivity(probability: float, adjacency: Adjacency) -> float:
    """Return the most that one record moves a utility of a choice of this quantile."""
    # Ranks of medians are exact; others are rounded, and max(q, 1 - q) would save little.
    return 0.5 if adjacency == "add_remove" and probability == 0.5 else 1.0


def quantile_utilities(below: NDArray[np.int_], rank: float, preference: Floats) -> Floats:
    # `below` counts the records below each edge of the cells. A rank qn may be private: one record
    # that is added moves it, as rounded to a multiple of the unit, by 0 to 1, and N(t) by 0 or 1.
    wanted = exact_terms(np.asarray(rank))
    fits = np.minimum(np.minimum(wanted - below[:-1], below[1:] - wanted), 0.0)
    return np.asarray(fits + exact_terms(preference))


def _cut(edges: Integers, log_mass: Floats, n_parts: int) -> tuple[Integers, Floats]:
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
