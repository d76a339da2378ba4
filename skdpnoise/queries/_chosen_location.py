"""Median and spread of one column by private choices: the method under pure losses.

The median is found to within a public *cell*. Where the values turn out to lie within that cell,
what was meant for the mean looks closer: at the median alone, or at the spread too, if there is
enough. Whether it does is decided by released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy import LossBudget
from skdpnoise.queries._quantile_choice import choose_quantile, halved, joined, parts_told_apart
from skdpnoise.queries._quantile_search import (
    Belief,
    believe_location,
    believe_octaves,
    believe_spread,
    ordered,
    sorted_distances,
)
from skdpnoise.queries._releases import Releases
from skdpnoise.queries.norm_quantile import NormQuantileMechanism

__all__ = ["Bulk", "choose_bulk"]

# Parts of the records that lie beyond the spread: the least, and the most. It is what a choice can
# tell from nothing by so many times the scale of its utilities: then it is rarely far too wide.
_BEYOND, _MOST_BEYOND, _SURE = 1 / 9, 0.15, 9.0
# Within a cell a choice of one among many magnitudes is far too wide less often if it looks for
# fewer records; normal values have this ratio of the two quantiles of their distances.
_FEWER, _TO_MOST = 3 / 4, 1.385
# Of the median's loss: an interval of the belief is chosen, then one of at most so many parts.
_MEDIAN_SHARES = 0.5, 0.5
_MOST_PARTS, _MOST_CLOSER = 1 << 18, 1 << 20
# Numbers of records over the noise on one count, for the median, the spread, the mean square and
# the mean of values within a cell.
_CLOSER_NEEDS = 50.0, 56.0, 8.0, 34.0
_ZERO = 1e-300  # a choice of zero is at most this
_ROUNDING = 1.0 - 1e-12  # shares add up to no more than the whole, whatever their last digits


@dataclass(frozen=True, slots=True)
class Bulk:
    """Where most of the values are."""

    median: float  # in the units of the values
    # distance from the median that about nine tenths of the values keep; where it is not found, the
    # width of the cell of the median, or as much as the median may be off
    spread: float
    found: bool  # whether there is a spread
    shares: tuple[float, float]  # parts of the loss that are left for the mean square and the mean


def choose_bulk(
    data: NDArray[np.float64],
    bounds: tuple[float, float],
    budget: tuple[LossBudget, Sequence[float], float],
    common: tuple[Releases, float],
) -> Bulk:
    """Return median and spread of sorted values by choices."""
    loss, shares, _ = budget
    n_samples = common[1]
    halves = [loss.share(shares[0] * part) for part in _MEDIAN_SHARES]
    parts = (1, parts_told_apart(halves[1], n_samples, _MOST_PARTS))
    prior, stage = believe_location(*bounds), ("median", *common)
    cell = choose_quantile(ordered(data), 0.5, prior, halves, parts, stage)
    median = cell.quantile(0.5)
    center = median if abs(median) > _ZERO else 0.0
    widest = max(bounds[1] - median, median - bounds[0])
    # Distances below the width of the cell are not told apart: the median is no better known.
    prior = joined(halved(believe_spread(center, widest, sure=True)), cell.width)
    part = loss.share(shares[1])
    scale = float(NormQuantileMechanism.within(part).scale[0])
    beyond = min(max(_BEYOND, _SURE * scale / n_samples), _MOST_BEYOND)
    spread = _spread(data, median, 1.0 - beyond, prior, part, common)
    if spread > cell.width or spread <= _ZERO:
        # Tails of exponential laws: beyond this a ninth of the values lies.
        spread *= math.log(_BEYOND) / math.log(beyond)
        return Bulk(median, spread, spread > _ZERO, (shares[2], shares[3]))
    return _closer(data, cell, budget, common)


def _closer(
    data: NDArray[np.float64],
    cell: Belief,
    budget: tuple[LossBudget, Sequence[float], float],
    common: tuple[Releases, float],
) -> Bulk:
    """Return median and spread of values that lie within the cell of their median."""
    # What the mean square and the mean would have cost pays for it: for a median alone where it is
    # too little for both of them and a spread.
    loss, shares, strength = budget
    left = (shares[2] + shares[3]) * _ROUNDING
    enough = left * strength >= sum(_CLOSER_NEEDS)
    costs = [left * need / sum(_CLOSER_NEEDS) for need in _CLOSER_NEEDS]
    first = loss.share(costs[0] if enough else left)
    parts, stage = (parts_told_apart(first, common[1], _MOST_CLOSER),), ("median", *common)
    closer = choose_quantile(ordered(data), 0.5, cell, (first,), parts, stage)
    median = closer.quantile(0.5)
    if not enough:
        return Bulk(median, cell.width, False, (0.0, 0.0))
    prior = joined(halved(believe_octaves(closer.width, 2.0 * cell.width)), closer.width)
    spread = _TO_MOST * _spread(data, median, _FEWER, prior, loss.share(costs[1]), common)
    found = spread > closer.width
    return Bulk(median, max(spread, closer.width), found, (costs[2], costs[3]))


def _spread(
    data: NDArray[np.float64],
    center: float,
    probability: float,
    prior: Belief,
    loss: LossBudget,
    common: tuple[Releases, float],
) -> float:
    """Return the distance from the centre that such a part of the values keeps."""
    distances = ordered(sorted_distances(data, center))
    stage = ("spread", *common)
    return choose_quantile(distances, probability, prior, (loss,), (1,), stage).quantile(0.5)
