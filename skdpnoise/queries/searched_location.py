r"""Location and scale of one column from very few records, with or without bounds.

1. *median* m, over all doubles or those within public bounds: under Gaussian losses by a noisy
   bisection of 48 steps, each the number of records below a threshold; under pure losses by two
   choices, of an interval of doubles and of one of its parts, the *cell*.
2. *spread* s, a quantile of :math:`|x - m|`: of 13/14 by bisection in 12 steps, or of 7/8 by one
   choice, which does not tell apart what is below the width of the cell.
3. Where a choice says that the values lie within the cell: one more *median*, of parts of the cell,
   and one more *spread*, of 3/4, if there is enough for it. If not, or if the values lie within
   the part as well, there is no scale.
4. *mean square* of :math:`\min(|x - m|/s, 2)`, whose root is the scale in units of s.
5. *mean* of values clipped to 2.5 to 5 scales around m: the location. Both are shrunk towards
   typical values by as much as their noise suggests.

With too little loss for all of this, it goes into one median by bisection. Without two public
bounds the location is then the number m of least expected error :math:`\min(|m - x|/|x|, 5)` over
what is believed of the median x: 0, whose error is 1, where it may well be far too large. Within
bounds it is the median of the belief, or their middle where that says next to nothing. Where all of
this would leave a model too little, a *rough* search is the bisections of 1 and 2 alone, of a
spread of 3/4.

**Privacy.** A step of a bisection is a sum with contributions a below its threshold and -b above
it (:func:`~skdpnoise.sensitivity.clipped_sum`): a = b = 1 for medians, a = 1 and b = 13 for
spreads, 3 for rough ones. A choice is by permute-and-flip
(:class:`~skdpnoise.queries.NormQuantileMechanism`) with utilities of sensitivity 1, of medians
under "add_remove" 1/2. Mean square and mean are clipped sums, rounded to integer grid steps.
Thresholds, cells, m, s, whether to look closer and every share depend on released and public
numbers only, and the shares of `loss` never add up to more than the whole: adaptive composition
then costs no more than `loss`, which is that of one row.

McKenna and Sheldon, "Permute-and-flip", NeurIPS 2020, Theorem 1 (a choice). Karp and Kleinberg,
"Noisy binary search and its applications", SODA 2007 (the median of the belief as the next
threshold). Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy",
arXiv:2210.17520, Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.session import Session
from skdpnoise.data.ranks import Ranks
from skdpnoise.data.table import Table
from skdpnoise.kernels.sweeps import Visit
from skdpnoise.kernels.tiles import Floats
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import LossBudget, PureLoss
from skdpnoise.queries._quantile_choice import ENOUGH, choose_bulk, choose_cell
from skdpnoise.queries._quantile_search import (
    Belief,
    Bulk,
    Search,
    believe_location,
    believe_spread,
    plan_search,
    search_quantile,
)
from skdpnoise.queries.location_scale import LIMIT
from skdpnoise.queries.ranges import ColumnSums
from skdpnoise.sensitivity import clipped_sum

_HALF, _NEARLY_ALL, _MOST = (1, 1), (1, 13), (1, 3)
_OF_MOST = 1.150349  # the distance within which 3/4 of normal values are, in deviations
_WEIGHTS = 1 << 16  # a + b for other quantiles
_FARTHEST = 2.0  # spreads from the median that a distance counts
_REACHES = 2.5, 5.0  # standard deviations that the mean looks at, by how little noise it has
_TYPICAL, _DEVIATION = 0.31, 0.18  # mean squares over squared spreads: their mean, and deviation
_SHIFT = 0.4  # how far means are from medians, in standard deviations
_LEAST = 1.0 / 14.0  # mean square over squared spread, which one in 14 is beyond
_WORST = 5.0  # the most that an error of a median counts, where 0 in its place counts 1
# A median is lost in noise if what is believed of it is so much of the distance between two public
# bounds, of which 0.34 is what nothing tells.
_LOST_BETWEEN = 0.25
_CONSTANT = 2.0**-45  # a spread that is smaller, relative to the location, is that of a constant


@dataclass(frozen=True, slots=True)
class _Schedule:
    """How a search shares its budget."""

    # Needs are numbers of records over the standard deviation of the noise on one count. They are
    # for the median, the spread, the mean square and the mean; twice as much is of use, and then
    # all four get the same. With less than `least` for all four only the median is looked for, by
    # so many steps. `quantiles` finds median and spread.

    needs: tuple[float, float, float, float]
    least: float
    order: float
    n_steps: int
    quantiles: Callable[[Ranks, tuple[float, float], Search], Bulk]

    @property
    def needed(self) -> float:
        return float(np.linalg.norm(self.needs, self.order))

    @property
    def wanted(self) -> float:
        return 2.0 * self.needed

    def shares(self, strength: float) -> list[float]:
        """Return the parts of a loss that the four get; the loss gives a count such a strength."""
        needs = np.power(self.needs, self.order)
        wants = self.wanted**self.order / 4.0
        beyond = (strength**self.order - needs.sum()) / (4.0 * wants - needs.sum())
        costs = needs + min(1.0, max(0.0, beyond)) * (wants - needs)
        return list(costs / costs.sum() * (1.0 - 1e-12))


@dataclass(frozen=True, slots=True)
class SearchedLocation:
    """A location, and a scale if there was enough for it; all of it is public.

    Examples
    --------
    >>> SearchedLocation(12.5, 0.1, 3.0, True).found
    True
    """

    location: float  # in the units of the values: a mean, or a median where `found` is False
    # what the noise does to the location, about one standard deviation, in the same units
    error: float
    scale: float  # about one standard deviation of the bulk of the values; 1 where `found` is False
    found: bool  # whether there is a scale: there is none for a constant, or with too little budget
    hidden: bool = False  # whether noise hides the location, which is then 0 or between the bounds


def search_share(
    noise: str, loss: LossBudget, n_samples: float, most: float, *, bare: bool = False
) -> float:
    """Return the part of a loss that :func:`search_location` needs: a function of public facts."""
    # A search needs a number of records in units of the noise on a count, n/σ. Under Gaussian
    # losses σ falls with the root of the part, under pure ones with the part itself. Where 28 % of
    # n/σ are more than is needed, it gets that, up to about twice its needs.
    schedule, strength = _schedule(loss), count_strength(noise, loss, n_samples)
    plenty = max(schedule.needed, 0.0 if bare else _PLENTY * strength)
    return float(min(most, (min(schedule.wanted, plenty) / strength) ** schedule.order))


def rough_share(noise: str, loss: LossBudget, n_samples: float) -> float:
    """Return the part of a loss that :func:`search_roughly` needs; 0 where there is enough."""
    # A function of public facts: for the median as much as in a search, and for the spread.
    if isinstance(loss, PureLoss):
        return 0.0
    strength = count_strength(noise, loss, n_samples)
    part = 2.0 * (_GAUSSIAN.needs[0] / strength) ** 2
    enough = (_GAUSSIAN.needed / strength) ** 2 <= _PLENTY
    return 0.0 if enough or part > HALF else part


def search_roughly(
    table: Table[Any],
    loss: LossBudget,
    bounds: tuple[float, float],
    noise: str,
    n_samples: float,
    session: Session,
) -> SearchedLocation:
    """Find a median and a spread of a table of vectors by bisections, and nothing more."""
    strength = count_strength(noise, loss, n_samples)
    search = Search(loss, (HALF, HALF, 0.0, 0.0), strength, noise, session, n_samples)
    data = table.map(partial(_clipped, *bounds)).ranked()
    bulk = _searched(data, bounds, search, _MOST)
    if _is_constant(bulk):
        return SearchedLocation(bulk.median, bulk.spread, 1.0, False)
    scale = bulk.spread / _OF_MOST
    error = math.sqrt(2.0 * math.pi) / (math.sqrt(HALF) * strength)  # of a normal density
    return SearchedLocation(bulk.median, error * scale, scale, True)


def search_location(
    table: Table[Any],
    loss: LossBudget,
    bounds: tuple[float, float],
    noise: str,
    n_samples: float,
    session: Session,
) -> SearchedLocation:
    """Find the location and scale of a table of vectors, from a few hundred records over ε."""
    column = table.map(partial(_clipped, *bounds))
    data = column.ranked()
    schedule, strength = _schedule(loss), count_strength(noise, loss, n_samples)
    search = Search(loss, schedule.shares(strength), strength, noise, session, n_samples)
    if strength < schedule.least:
        stage = "median", loss, schedule.n_steps
        belief = _bisected(data, _HALF, believe_location(*bounds), search, stage)
        return _by_median(belief, *bounds)
    bulk = schedule.quantiles(data, bounds, search)
    if not bulk.found or _is_constant(bulk):
        return SearchedLocation(bulk.median, bulk.spread, 1.0, False)
    mean, error, scale = _refined(column.map(_as_column, 1), bulk, search)
    return SearchedLocation(bulk.median + mean, error, scale, True)


def search_quantile_of(
    table: Table[Any],
    quantile: float,
    loss: LossBudget,
    noise: str,
    n_samples: float,
    session: Session,
) -> float:
    """Return a quantile of a table of vectors in standard units, centred, by all of the loss."""
    # It is looked for as far as Cantelli's inequality allows, in units of LIMIT deviations, and
    # found as the median of `search_location` is, by the same argument: a record counts a below a
    # threshold and -b above it, a + b = 1 and b the quantile in steps of 2**-16, which moves a sum
    # by 1 under replace-one and by max(a, b) under add/remove. Or there are two choices by
    # utilities of sensitivity 1, of medians under add/remove 1/2.
    below = quantile / (1.0 - quantile)
    reach = LIMIT * math.sqrt(max(below, 1.0 / below))
    # Ends are so near that hardly any threshold has all records on one side.
    ranks, prior = table.ranked(), replace(believe_location(-reach, reach), whole=0.0)
    search = Search(loss, (1.0,), count_strength(noise, loss, n_samples), noise, session, n_samples)
    if isinstance(loss, PureLoss):
        return choose_cell(ranks, quantile, prior, search, "quantile").quantile(0.5)
    above = min(max(round(_WEIGHTS * quantile), 1), _WEIGHTS - 1)
    stage = "quantile", loss, _GAUSSIAN.n_steps
    return _bisected(ranks, (_WEIGHTS - above, above), prior, search, stage).quantile(0.5)


def _clipped(low: float, high: float, values: Any) -> Floats:
    doubles: Floats = np.asarray(values, dtype=np.float64)
    if math.isinf(low) and math.isinf(high):  # a copy were a third of what a search holds
        return doubles
    return np.asarray(np.clip(doubles, low, high))


def _as_column(values: Floats) -> Floats:
    return values[:, np.newaxis]


def _by_median(belief: Belief, low: float, high: float) -> SearchedLocation:
    """Return the median that is believed in, or what stands for one that noise hides."""
    unsure = 0.5 * belief.quantile(0.84) - 0.5 * belief.quantile(0.16)
    if math.isfinite(low) and math.isfinite(high):
        hidden = unsure >= _LOST_BETWEEN * (high - low)
        median = 0.5 * low + 0.5 * high if hidden else belief.quantile(0.5)
    else:  # where nothing limits errors, too large a median is worse than one that is too small
        otherwise = min(max(0.0, low), high)
        median = belief.cautious(otherwise, _WORST)
        hidden = median == otherwise
    return SearchedLocation(median, unsure, 1.0, False, hidden)


def _is_constant(bulk: Bulk) -> bool:
    return bulk.spread <= max(_CONSTANT * abs(bulk.median), 1e-290)


def _searched(
    data: Ranks,
    bounds: tuple[float, float],
    search: Search,
    weights: tuple[int, int] = _NEARLY_ALL,
) -> Bulk:
    first, second, *left = search.shares
    stage = "median", search.loss.share(first), _GAUSSIAN.n_steps
    median = _bisected(data, _HALF, believe_location(*bounds), search, stage).quantile(0.5)
    distances = data.distances(median)
    prior = believe_spread(median, max(bounds[1] - median, median - bounds[0]))
    stage = "spread", search.loss.share(second), _GAUSSIAN.n_steps // 4
    spread = _bisected(distances, weights, prior, search, stage).quantile(0.5)
    return Bulk(median, spread, True, (left[0], left[1]))


def _bisected(
    ranks: Ranks,
    weights: tuple[int, int],
    belief: Belief,
    search: Search,
    stage: tuple[str, LossBudget, int],
) -> Belief:
    label, loss, n_steps = stage
    mechanism = plan_search(search.noise, weights, loss, search.session.adjacency, n_steps)
    drawn = search.session.draw(label, mechanism)
    return search_quantile(ranks, weights, belief, drawn, search.n_samples)


def _refined(column: Table[Any], bulk: Bulk, search: Search) -> tuple[float, float, float]:
    n_samples, center, spread = search.n_samples, bulk.median, bulk.spread
    losses = [search.loss.share(part) for part in bulk.shares]

    def release(
        label: str, contribution: Visit, interval: tuple[float, float], loss: LossBudget
    ) -> tuple[float, float]:
        sums = ColumnSums(len(column), np.zeros(1, dtype=np.intp), contribution, *interval)
        found = search.session.release(label, sums, column, loss, search.noise)
        return found.values[0] / n_samples, float(found.standard_deviation[0]) / n_samples

    def square(loops: Any, tile: Floats, n: int, *_: Any) -> None:
        tile[:, :n] = np.minimum(np.abs(tile[:, :n] - center) / spread, _FARTHEST) ** 2

    found, noise = release("mean square", square, (0.0, _FARTHEST**2), losses[0])
    squares = _shrunk(found, noise, _TYPICAL, _DEVIATION)
    # The floor keeps a mean square that the noise made tiny, or negative, from blowing values up.
    scale = math.sqrt(max(squares, _LEAST)) * spread
    reach = mean_reach(count_strength(search.noise, losses[1], n_samples))

    def clipped(loops: Any, tile: Floats, n: int, *_: Any) -> None:
        loops.clip(tile, n, np.array([center]), np.array([scale]), reach)

    found, error = release("mean", clipped, (-reach, reach), losses[1])
    mean = float(np.clip(_shrunk(found, error, 0.0, _SHIFT), -reach, reach))
    return mean * scale, error * scale, scale


def _shrunk(estimate: float, noise: float, typical: float, deviation: float) -> float:
    trust = deviation**2 / (deviation**2 + noise**2)
    return typical + trust * (float(estimate) - typical)


def mean_reach(strength: float) -> float:
    """Return how many scales a mean looks at: less where that many cost much noise.

    Examples
    --------
    >>> mean_reach(20.0), mean_reach(200.0)
    (2.5, 5.0)
    """
    return float(np.clip(_REACHES[0] * strength / _GAUSSIAN.least, *_REACHES))


def count_strength(noise: str, loss: LossBudget, n_samples: float) -> float:
    one_count = calibrate(noise, clipped_sum(0.0, 1.0), loss)
    return n_samples / float(one_count.standard_deviation[0])


# Where costs add in squares many small steps lose little; where they add up, much.
_GAUSSIAN = _Schedule((26.0, 48.0, 12.0, 34.0), 40.0, 2.0, 48, _searched)
_PURE = _Schedule((66.0, 80.0, 8.0, 36.0), ENOUGH, 1.0, 24, choose_bulk)
_PLENTY = 0.28  # of all that there is, where that is more than a search needs


def _schedule(loss: LossBudget) -> _Schedule:
    return _PURE if isinstance(loss, PureLoss) else _GAUSSIAN
