r"""Locations and scales of many columns from few records, by noisy bisections side by side.

1. *Magnitude.* Step t asks of every column whether most of :math:`|x_i - x_j|`, over secret pairs
   of records, lie below a threshold of its own. The noisy answers change what is believed of their
   median by Bayes' rule, as in :mod:`skdpnoise.queries.searched_location`.
2. *Which columns have a scale.* The answers have a likelihood under what was believed, and one
   under the hypothesis that all pairs are alike. Their ratio E has a mean of 1 at most if the
   column is constant, whatever the thresholds were (an e-value): of p columns those k with the
   largest ratios are kept of which each has :math:`E \ge p / (\alpha k)`. If all columns are
   constant, one is kept with a probability of at most α. Columns of one kind are asked together:
   where the mean of all ratios is 1/α, those are kept that are rather not constant.
3. *Location.* The same bisection, of the values themselves.

Columns that are alike may have one location and one scale, of which all columns together tell as
much as one would alone: so these take a small part of the budget. A common bisection finds the
median of those gaps that are not 0, then one more sum how many of them are within eight times that,
less the others. Where these are many, the columns are alike, and a third stage finds the median of
all values. Constant columns are not: all their gaps are 0. What is added up over the columns are
numbers that are released, of each of them, as above.

A histogram of magnitudes tells more where the noise lets its fullest bin stand out. Here the noise
of one count may be a tenth of the records.

**Privacy.** A step sums ±1 for every pair, or record, and column. A record that is replaced is in
one pair and moves each sum by at most 2; so it is, after a coupling of the matchings, with one that
is added or removed (:func:`~skdpnoise.sensitivity.paired_histogram`). Sums over records are those
of :func:`~skdpnoise.sensitivity.clipped_sum`. Thresholds and which columns are kept are functions
of released numbers: all steps are adaptive releases of one mechanism, which is charged for them.

Where values may be missing, pairs are of those records that have one in the column (*Gaps* there),
of which each that is not below the threshold counts -2: so many pairs fewer are as many gaps of 0,
and a column is constant whatever part of it is missing. A sum moves by 2 at most all the same. What
is missing is no sign of a location.

Wang and Ramdas, "False discovery rate control with e-values", JRSS B 2022, Theorem 2 (which columns
are kept). Vovk and Wang, "E-values: calibration, combination and applications", Annals of
Statistics 2021, Section 3 (their mean).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skdpnoise.accounting.budget import BESIDE, HALF
from skdpnoise.accounting.session import Search, Session
from skdpnoise.data.ranks import real
from skdpnoise.kernels.sweeps import Sweep
from skdpnoise.kernels.tiles import Floats, Integers, Places
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.noises import get_noise
from skdpnoise.privacy import Adjacency, LossBudget
from skdpnoise.queries._quantile_search import (
    Belief,
    believe_location,
    believe_spread,
    log_likelihood,
)
from skdpnoise.sensitivity import SensitivityProfile, clipped_sum

_STEPS = 8  # of each bisection
_STAGES = 3  # of a common location and scale, which cost the same
# Chance that a scale is found where all columns are constant, at most, and of columns of one kind
# asked together, of which it was none of 1,400 fits.
_FALSE, _FALSE_TOGETHER = 0.04, 0.2
_TOLD = 2.0  # standard deviations of its noise by which a step tells what it asks
# Of gaps within so many times the common one, less the others, the least part in columns that are
# alike: 0 in constant ones, and more than 2.2 standard deviations of its noise from that.
_FAR, _ALIKE = 8.0, 0.4
_LEAST = 5e-324  # the smallest number above 0, which no gap of equal values reaches
_GAP = 0.953873  # median difference of two normal values, in standard deviations


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSigns:
    """How many values of each column, or gaps of pairs, are below a threshold less the others."""

    n_records: float  # or pairs: about as many as there are in all
    columns: Places
    thresholds: Floats
    paired: bool
    missing: float | None = None  # what stands for no value, which is no sign
    differing: bool = False  # whether gaps of 0 are no signs

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        ones = np.ones(self.columns.size)
        # Whatever the relation, one pair becomes another or goes.
        return clipped_sum(-ones, ones, "replace_one" if self.paired else adjacency)

    @property
    def among_pairs(self) -> bool:
        """True if pairs are of those records that have a value, and all gaps are signs."""
        # The others count as gaps of 0, as each pair that is not below a threshold counts -2.
        return self.paired and self.missing is not None and not self.differing

    @property
    def least(self) -> float:
        """The smallest threshold: where gaps of 0 do not count, there is none below them."""
        return _LEAST if self.among_pairs or self.differing else -math.inf

    @property
    def none(self) -> float:
        """The share that stands for a sum of 0."""
        return 1.0 if self.among_pairs else 0.5

    def step(self, grid_size: Floats) -> Sweep:
        thresholds, missing, among_pairs = self.thresholds, self.missing, self.among_pairs
        paired, differing = self.paired, self.differing
        in_steps = np.rint(1.0 / grid_size).astype(np.int64)

        def visit(loops: Any, tile: Floats, n: int, totals: Integers, which: Places) -> None:
            values = np.abs(tile[:, :n]) if paired else tile[:, :n]
            below = np.count_nonzero(values < thresholds[which, np.newaxis], axis=1)
            signs = 2 * below - n
            if differing:
                signs += np.count_nonzero(values, axis=1) - n
            elif among_pairs:
                signs -= n
            elif missing is not None:
                signs += np.count_nonzero(values == missing, axis=1)
            totals[:, 0] += signs * in_steps[which]

        return Sweep(self.columns, (1,), visit, self.n_records)


@dataclass(frozen=True, slots=True, eq=False)
class AlikeGaps:
    """How many gaps of pairs are near one that is common to all columns, less those far from it."""

    n_records: float  # pairs: about as many as there are in all
    columns: Places
    common: float
    missing: float | None = None  # what stands for no value, of which no pair is made

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        ones = np.ones(self.columns.size)
        # Whatever the relation, one pair becomes another or goes.
        return clipped_sum(-ones, ones, "replace_one")

    def step(self, grid_size: Floats) -> Sweep:
        low, high = max(self.common / _FAR, _LEAST), self.common * _FAR  # a gap of 0 is no sign
        in_steps = np.rint(1.0 / grid_size).astype(np.int64)

        def visit(loops: Any, tile: Floats, n: int, totals: Integers, which: Places) -> None:
            gaps = np.abs(tile[:, :n])
            near = np.count_nonzero((gaps >= low) & (gaps <= high), axis=1)
            totals[:, 0] += (2 * near - np.count_nonzero(gaps, axis=1)) * in_steps[which]

        return Sweep(self.columns, (1,), visit, self.n_records)


def needed_share(noise: str, loss: LossBudget, n_samples: float, n_columns: int) -> float:
    """Return the part of a Gaussian loss that bisections need, a function of public facts."""
    # With it a step tells all pairs on one side from half of them by so many standard deviations.
    profile = ColumnSigns(1.0, np.arange(n_columns), np.empty(0), paired=True)
    steps = calibrate(
        noise, profile.sensitivity("replace_one"), loss.share(HALF), n_releases=_STEPS
    )
    told = 0.5 * n_samples / float(steps.standard_deviation.max())
    return float(min(1.0, (_TOLD / told) ** 2))


def bisect_columns(
    columns: Places,
    ends: tuple[Floats, Floats],
    terms: tuple[Session, str, LossBudget],
    n_samples: float,
    *,
    alike: bool,
    missing: float | None = None,
) -> Search[tuple[Floats, Floats, Floats]]:
    """Return locations, scales and which were found, of columns that may have one public bound."""
    session, noise, loss = terms
    half = loss.share(HALF)
    widest = [float(high - low) for low, high in zip(*ends, strict=True)]
    beliefs = [believe_spread(0.0, width) for width in widest]
    facts: dict[str, Any] = {"paired": True, "missing": missing}
    query = ColumnSigns(max(1.0, 0.5 * n_samples), columns, np.zeros(columns.size), **facts)
    stage = session, noise, half
    beliefs, evidence = yield from _bisected(query, beliefs, "magnitudes", stage)
    scales = np.array([one.quantile(0.5) for one in beliefs]) / _GAP
    found = _kept(evidence, alike=alike) & (scales > 0.0)
    locations, places = np.zeros(columns.size), np.flatnonzero(found)
    if places.size:
        facts["paired"] = False
        query = ColumnSigns(n_samples, columns[places], np.zeros(places.size), **facts)
        beliefs = [believe_location(float(ends[0][k]), float(ends[1][k])) for k in places]
        beliefs, _ = yield from _bisected(query, beliefs, "locations", stage)
        locations[places] = [one.quantile(0.5) for one in beliefs]
    return locations, np.where(found, scales, 1.0), found


def find_common(
    columns: Places,
    ends: tuple[Floats, Floats],
    terms: tuple[Session, str, LossBudget],
    n_samples: float,
    *,
    missing: float | None = None,
) -> Search[tuple[float, float, float]]:
    """Return a location and a scale of columns that are alike, and the part of the loss spent."""
    # The scale is 0 where they are not, or where three stages would take too much of the loss.
    session, noise, loss = terms
    part = HALF * max(needed_share(noise, loss, n_samples, 1), BESIDE)
    if part > HALF / _STAGES:
        return 0.0, 0.0, 0.0
    stage, n_pairs = (session, noise, loss.share(part)), max(1.0, 0.5 * n_samples)
    facts: dict[str, Any] = {"paired": True, "missing": missing}
    query = ColumnSigns(n_pairs, columns, np.zeros(columns.size), **facts, differing=True)
    widest = [believe_spread(0.0, float((ends[1] - ends[0]).max()))]
    beliefs, _ = yield from _bisected(query, widest, "common magnitude", stage)
    gap = beliefs[0].quantile(0.5)
    alike = AlikeGaps(n_pairs, columns, gap, missing)
    mechanism = calibrate(noise, alike.sensitivity(session.adjacency), stage[2])
    drawn, most = session.draw("alike gaps", mechanism), math.ceil(n_pairs)
    counts = yield partial(session.summed, "alike gaps", alike, drawn, 0, most)
    grid_size = np.broadcast_to(mechanism.grid_size, drawn.noise.shape)[0]
    if float((counts * grid_size).mean()) < _ALIKE * n_pairs:
        return 0.0, 0.0, 2.0 * part
    facts["paired"] = False
    query = ColumnSigns(n_samples, columns, np.zeros(columns.size), **facts)
    between = [believe_location(float(ends[0].min()), float(ends[1].max()))]
    beliefs, _ = yield from _bisected(query, between, "common location", stage)
    return beliefs[0].quantile(0.5), gap / _GAP, _STAGES * part


def _kept(evidence: Floats, *, alike: bool) -> Any:
    """Return which columns are rather not constant than constant, by logarithms of e-values."""
    if alike:
        together = float(np.logaddexp.reduce(evidence)) - math.log(evidence.size)
        return (evidence >= 0.0) & (together >= -math.log(_FALSE_TOGETHER))
    largest, ranks = np.sort(evidence)[::-1], np.arange(1, evidence.size + 1)
    enough = np.flatnonzero(largest >= np.log(evidence.size / (_FALSE * ranks)))
    return evidence >= (largest[enough[-1]] if enough.size else math.inf)


def _bisected(
    query: ColumnSigns, beliefs: list[Belief], label: str, terms: tuple[Session, str, LossBudget]
) -> Search[tuple[list[Belief], Floats]]:
    """Return what is believed of the medians, and the evidence that they are not zero."""
    # One belief may be of all columns together, the noise of whose mean is nearly normal.
    session, noise, loss = terms
    mechanism = calibrate(noise, query.sensitivity(session.adjacency), loss, n_releases=_STEPS)
    drawn, evidence = session.draw(label, mechanism), np.zeros(len(beliefs))
    together = query.columns.size // len(beliefs)
    family = mechanism.family if together == 1 else get_noise("gaussian")
    grid_sizes = np.broadcast_to(mechanism.grid_size, drawn.noise.shape)
    scales = np.broadcast_to(mechanism.scale, drawn.noise.shape) / (2.0 * query.n_records)
    scales = scales[:, : len(beliefs)] / math.sqrt(together)  # all columns have the same noise
    most_pairs = math.ceil(query.n_records) if query.paired else 0
    for step in range(_STEPS):
        cuts = [one.cut(one.middle()) for one in beliefs]
        thresholds = np.array([real(int(one.edges[edge])) for one, edge in cuts])
        thresholds = np.maximum(thresholds, query.least)
        asked = replace(query, thresholds=np.repeat(thresholds, together))
        noisy = yield partial(session.summed, label, asked, drawn, step, most_pairs)
        shares = query.none + noisy * grid_sizes[step] / (2.0 * query.n_records)
        shares = shares.reshape(len(beliefs), together).mean(axis=1)
        facts = family, shares, scales[step]
        above, below = log_likelihood(*facts, 0.5, 1.0), log_likelihood(*facts, 0.0, 0.5)
        # Of gaps, which then are all zero.
        constant = query.none if query.differing else np.where(thresholds > 0.0, 1.0, 0.0)
        evidence -= family.logpdf((shares - constant) / scales[step])
        for k, (belief, edge) in enumerate(cuts):
            log_mass = belief.log_mass.copy()
            log_mass[:edge] += above[k]
            log_mass[edge:] += below[k]
            largest = log_mass.max()
            total = float(np.log(np.exp(log_mass - largest).sum()) + largest)
            evidence[k] += total
            beliefs[k] = replace(belief, log_mass=log_mass - total)
    return beliefs, evidence
