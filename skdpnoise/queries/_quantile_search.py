r"""A quantile of one column by noisy bisection, from very few records and without any bounds.

Step t counts a for each record below a threshold and -b for the others:
:math:`(a + b) n (F(t) - q)` with :math:`q = b/(a + b)`. The noisy answer changes what is believed
of the quantile by Bayes' rule, so that later steps correct the errors of earlier ones; the next
threshold is the median of that belief.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.session import Drawn, Session
from skdpnoise.data.ranks import Ranks, doubles, ordered, real
from skdpnoise.kernels.tiles import Floats, Integers
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.noises import Noise
from skdpnoise.privacy import Adjacency, LossBudget
from skdpnoise.sensitivity import clipped_sum

_EXPONENTS = np.arange(-1022, 341)  # octaves of magnitudes that are told apart, to beyond 1e100
_FEW_OCTAVES = 12.0  # by which a spread may exceed its centre and be thought of still
_DECAY = 1.6  # octaves lose prior probability as this power of the distance
# Thresholds have so many leading bits more than tell apart what is likely, but for these tails.
_BITS, _TAIL = 14, 1e-3


@dataclass(frozen=True, slots=True)
class Search:
    """The budget of a search, and all that its stages have in common."""

    loss: LossBudget  # of all of them
    shares: Sequence[float]  # of the median, the spread, the mean square and the mean
    strength: float  # number of records over the standard deviation of the noise on one count
    noise: str  # `"<rule>_<family>"`
    session: Session
    n_samples: float


@dataclass(frozen=True, slots=True)
class Bulk:
    """Where most of the values are."""

    median: float  # in the units of the values
    # distance from the median that about nine tenths of the values keep; where it is not found, the
    # width of the cell of the median, or as much as the median may be off
    spread: float
    found: bool  # whether there is a spread
    shares: tuple[float, float]  # parts of the loss that are left for the mean square and the mean


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The probability that a real number lies in each of some intervals between doubles."""

    # The doubles from one edge to the next are equally probable: within an octave this is uniform.

    edges: Integers  # increasing, as `ordered` integers
    # shape (n,): logarithm of the probability of each interval, up to a constant
    log_mass: Floats
    # chance that a threshold has all records on one side; else any share is as likely
    whole: float = HALF

    def quantile(self, probability: float) -> float:
        return self._quantiles(probability)[0]

    def _quantiles(self, *probabilities: float) -> list[float]:
        mass = np.exp(self.log_mass - self.log_mass.max())
        ends, found = np.cumsum(mass), []
        for probability in probabilities:
            wanted = probability * float(ends[-1])
            place = min(int(np.searchsorted(ends, wanted)), mass.size - 1)
            inside = 1.0 - (float(ends[place]) - wanted) / max(float(mass[place]), 1e-300)
            left, right = int(self.edges[place]), int(self.edges[place + 1])
            found.append(real(left + round(min(max(inside, 0.0), 1.0) * (right - left))))
        return found

    def cautious(self, origin: float, worst: float) -> float:
        r"""Return the number m of least expected error, relative to the distance from an origin.

        .. math:: E \min(|m - x| / |x - o|, w)
        """
        # The origin is one candidate, whose error is 1; the others are percentiles. It stays where
        # none of them is better by more than a tail that is thought unlikely.
        found = np.array([origin, *self._quantiles(*np.arange(0.01, 1.0, 0.01).tolist())])
        centers = doubles((self.edges[:-1] >> 1) + (self.edges[1:] >> 1))
        mass = np.exp(self.log_mass - self.log_mass.max())
        with np.errstate(over="ignore"):
            distances = np.maximum(np.abs(centers - origin), np.finfo(np.float64).tiny)
            errors = np.abs(found[:, np.newaxis] - centers) / distances
        expected = np.minimum(errors, worst) @ mass
        expected[0] -= _TAIL * expected[0]
        return float(found[np.argmin(expected)])

    def middle(self) -> float:
        """Return the median, with no more leading bits than it takes to halve what is likely."""
        # So thresholds of a search share their leading bits, and so do the counts below them of
        # rows in partitions: few passes count for all of them.
        ends = self._quantiles(_TAIL, 0.5, 1.0 - _TAIL)
        low, middle, high = map(int, ordered(np.array(ends)))
        n_bits = max(0, (high - low).bit_length() - _BITS)
        return real(((middle + ((1 << n_bits) >> 1)) >> n_bits) << n_bits)

    @property
    def width(self) -> float:
        return real(int(self.edges[-1])) - real(int(self.edges[0]))

    def cut(self, threshold: float) -> tuple[Belief, int]:
        """Return the same belief with an edge at the threshold, and the number of that edge."""
        key = int(ordered(np.array([threshold]))[0])
        place = int(np.searchsorted(self.edges, key))
        if place == self.edges.size or place == 0 or int(self.edges[place]) == key:
            return self, min(place, self.edges.size - 1)
        left, right = int(self.edges[place - 1]), int(self.edges[place])
        below = (key - left) / (right - left)
        edges = np.insert(self.edges, place, key)
        log_mass = np.insert(self.log_mass, place, self.log_mass[place - 1] + math.log1p(-below))
        log_mass[place - 1] += math.log(below)
        return replace(self, edges=edges, log_mass=log_mass), place


def believe_location(low: float, high: float) -> Belief:
    """Return what is believed of a location before any data: units near 1, and public bounds."""
    # Octaves lose probability as a power of their distance from 1. Where both bounds are finite,
    # one half of the probability is even between them.
    octaves = np.ldexp(1.0, _EXPONENTS)
    edges = np.concatenate([-octaves[::-1], [0.0], octaves])
    weights = octave_weights(_EXPONENTS[:-1])
    inner = weights[:1]  # between 0 and the smallest octave
    mass = np.concatenate([weights[::-1], inner, inner, weights])
    finite = math.isfinite(low) and math.isfinite(high)
    linear = np.linspace(0.0, 1.0, 65)[1:-1] if finite else np.empty(0)
    cells, share = _between(edges, mass, low, high, low * (1.0 - linear) + high * linear)
    if finite:
        share = 0.5 * share / share.sum() + 0.5 * np.diff(cells / 2.0) / (high / 2.0 - low / 2.0)
    return _belief(cells, share)


def believe_spread(center: float, widest: float, *, sure: bool = False) -> Belief:
    """Return what is believed of a spread around a centre before more data."""
    # One half of the probability is near the magnitude of the centre, if that is not 0, one half as
    # for locations; nothing is wider than the public bounds. A centre that is far from all units
    # may be a zero that was found approximately, unless it is known that zeros are found.
    edges = np.concatenate([[0.0], np.ldexp(1.0, _EXPONENTS)])
    weights = octave_weights(_EXPONENTS[:-1])
    if center != 0.0:
        exponent = math.frexp(abs(center))[1]
        near = 0.5 if sure else 0.5 * (1.0 + abs(exponent) / 6.0) ** -_DECAY
        weights = (1.0 - near) * weights + near * octave_weights(
            _EXPONENTS[:-1], exponent - 2.0, 3.0
        )
        if sure:
            # A median of values that are 2**k times as large is rarely this near to zero; where
            # it is, nothing is known of k.
            weights *= np.exp2(-np.clip(_EXPONENTS[:-1] - exponent, 0.0, _FEW_OCTAVES))
    mass = np.concatenate([weights[:1], weights])
    return _belief(*_between(edges, mass, 0.0, widest, np.empty(0)))


def believe_octaves(least: float, most: float) -> Belief:
    # One more interval, as likely, is all below the least.
    first, last = math.frexp(least)[1], math.frexp(most)[1]
    octaves = np.ldexp(1.0, np.arange(first, last + 1))
    cells = np.concatenate([[0.0, least], octaves[octaves > least]])
    return _belief(cells, np.ones(cells.size - 1))


def plan_search(
    noise: str, weights: tuple[int, int], loss: LossBudget, adjacency: Adjacency, n_steps: int
) -> AdditiveMechanism:
    # A record adds a or -b, whatever the threshold: it moves every sum by at most a + b if it is
    # replaced, and by at most max(a, b) if it is added or removed (clipped_sum). The steps are
    # adaptive releases of one mechanism, which is charged for all of them.
    below, above = weights
    sums = clipped_sum(-float(above), float(below), adjacency)
    return calibrate(noise, sums, loss, n_releases=n_steps)


def search_quantile(
    ranks: Ranks, weights: tuple[int, int], belief: Belief, drawn: Drawn, n_samples: float
) -> Belief:
    """Return what is believed of the quantile q = b/(a + b) after all steps of a mechanism."""
    # Sums are exact integers, and the thresholds and the belief depend on
    # earlier answers and public numbers only: they are post-processing.
    below, above = weights
    probability, unit = above / (below + above), (below + above) * n_samples
    # Where no threshold has all records on one side, shares lie as near on both sides of q: so the
    # noise of many steps does not lead to the longer one.
    whole = belief.whole
    near = math.inf if whole else min(probability, 1.0 - probability)
    mechanism, shape = drawn.mechanism, drawn.noise.shape
    grid_sizes = np.broadcast_to(mechanism.grid_size, shape)[:, 0].tolist()
    scales = np.broadcast_to(mechanism.scale, shape)[:, 0].tolist()
    for step, (grid_size, scale) in enumerate(zip(grid_sizes, scales, strict=True)):
        belief, edge = belief.cut(belief.middle())
        n_below = int(ranks.below(belief.edges[edge : edge + 1])[0])
        steps_below, steps_above = round(below / grid_size), round(above / grid_size)
        total = n_below * steps_below - (ranks.size - n_below) * steps_above
        answer = float(drawn.add(np.array([total]), step)[0]) * grid_size
        share = min(max(answer / unit, -near), near) + probability
        facts = mechanism.family, share, scale / unit
        log_mass = belief.log_mass.copy()
        log_mass[:edge] += log_likelihood(*facts, probability, min(probability + near, 1.0), whole)
        log_mass[edge:] += log_likelihood(*facts, max(probability - near, 0.0), probability, whole)
        belief = replace(belief, log_mass=log_mass - log_mass.max())
    return belief


def log_likelihood(
    family: Noise, share: Any, scale: Any, low: float, high: float, whole: float = HALF
) -> Any:
    """Return the log-likelihood of noisy shares of records, the true ones being in an interval."""
    end = 1.0 if high == 1.0 else 0.0
    between = family.sf((share - high) / scale) - family.sf((share - low) / scale)
    at_end = np.exp(family.logpdf((share - end) / scale))
    # One density on both sides of q: else the shorter side would be believed for being short.
    likelihood = whole * at_end + (1.0 - whole) * scale * between
    return np.log(np.maximum(likelihood, 1e-300))


def octave_weights(exponents: Integers, center: float = 0.0, width: float = 6.0) -> Floats:
    """Return how likely octaves of magnitudes are before any data: units are near 1."""
    weights = (1.0 + np.abs(exponents - center) / width) ** -_DECAY
    return np.asarray(weights / weights.sum())


def _between(
    edges: Floats, mass: Floats, low: float, high: float, more: Floats
) -> tuple[Floats, Floats]:
    """Return intervals from low to high, with more edges than those given, and their mass."""
    low, high = max(low, float(edges[0])), min(high, float(edges[-1]))
    inside = np.union1d(edges, more)
    cells = np.concatenate([[low], inside[(inside > low) & (inside < high)], [high]])
    keys, places = ordered(edges), ordered(cells)
    interval = np.searchsorted(keys, places[:-1], side="right") - 1
    interval = np.clip(interval, 0, mass.size - 1)
    width = (keys[interval + 1] - keys[interval]).astype(np.float64)
    return cells, mass[interval] * (np.diff(places).astype(np.float64) / width)


def _belief(cells: Floats, mass: Floats) -> Belief:
    floor = np.finfo(np.float64).tiny
    return Belief(ordered(cells), np.log(np.maximum(mass / mass.sum(), floor)))
