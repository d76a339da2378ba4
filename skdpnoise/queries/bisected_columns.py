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

from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.session import Search, Session
from skdpnoise.data.ranks import real
from skdpnoise.kernels.sweeps import Sweep
from skdpnoise.kernels.tiles import Floats, Integers, Places
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import Adjacency, LossBudget
from skdpnoise.queries._quantile_search import (
    Belief,
    believe_location,
    believe_spread,
    log_likelihood,
)
from skdpnoise.sensitivity import SensitivityProfile, clipped_sum

_STEPS = 8  # of each bisection
# Chance that a scale is found where all columns are constant, at most, and of columns of one kind
# asked together, of which it was none of 1,400 fits.
_FALSE, _FALSE_TOGETHER = 0.04, 0.2
_TOLD = 2.0  # standard deviations of its noise by which a step tells what it asks
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

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        ones = np.ones(self.columns.size)
        # Whatever the relation, one pair becomes another or goes.
        return clipped_sum(-ones, ones, "replace_one" if self.paired else adjacency)

    @property
    def among_pairs(self) -> bool:
        """True if pairs are of those records that have a value."""
        # The others count as gaps of 0, as each pair that is not below a threshold counts -2.
        return self.paired and self.missing is not None

    def step(self, grid_size: Floats) -> Sweep:
        thresholds, missing, among_pairs = self.thresholds, self.missing, self.among_pairs
        paired, in_steps = self.paired, np.rint(1.0 / grid_size).astype(np.int64)

        def visit(loops: Any, tile: Floats, n: int, totals: Integers, which: Places) -> None:
            values = np.abs(tile[:, :n]) if paired else tile[:, :n]
            below = np.count_nonzero(values < thresholds[which, np.newaxis], axis=1)
            signs = 2 * below - n
            if among_pairs:
                signs -= n
            elif missing is not None:
                signs += np.count_nonzero(values == missing, axis=1)
            totals[:, 0] += signs * in_steps[which]

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
    session, noise, half = terms
    mechanism = calibrate(noise, query.sensitivity(session.adjacency), half, n_releases=_STEPS)
    drawn, evidence = session.draw(label, mechanism), np.zeros(len(beliefs))
    grid_sizes = np.broadcast_to(mechanism.grid_size, drawn.noise.shape)
    scales = np.broadcast_to(mechanism.scale, drawn.noise.shape) / (2.0 * query.n_records)
    most_pairs = math.ceil(query.n_records) if query.paired else 0
    for step in range(_STEPS):
        cuts = [one.cut(one.middle()) for one in beliefs]
        thresholds = np.array([real(int(one.edges[edge])) for one, edge in cuts])
        if query.among_pairs:  # no gap that is 0 counts
            thresholds = np.maximum(thresholds, _LEAST)
        asked = replace(query, thresholds=thresholds)
        noisy = yield partial(session.summed, label, asked, drawn, step, most_pairs)
        # Of pairs that count -2, a share of 1 is that of a sum of 0.
        most = 1.0 if query.among_pairs else 0.5
        shares = most + noisy * grid_sizes[step] / (2.0 * query.n_records)
        facts = mechanism.family, shares, scales[step]
        above, below = log_likelihood(*facts, 0.5, 1.0), log_likelihood(*facts, 0.0, 0.5)
        constant = np.where(thresholds > 0.0, 1.0, 0.0)  # of gaps, which then are all zero
        evidence -= mechanism.family.logpdf((shares - constant) / scales[step])
        for k, (belief, edge) in enumerate(cuts):
            log_mass = belief.log_mass.copy()
            log_mass[:edge] += above[k]
            log_mass[edge:] += below[k]
            largest = log_mass.max()
            total = float(np.log(np.exp(log_mass - largest).sum()) + largest)
            evidence[k] += total
            beliefs[k] = replace(belief, log_mass=log_mass - total)
    return beliefs, evidence
