"""Ranges of columns, public or estimated privately, and the releases that find and use them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_order
from skdpnoise.accounting.budget import COUNT_SHARE, HALF, split
from skdpnoise.accounting.session import Query, Released, Search, Session
from skdpnoise.data.table import Table
from skdpnoise.kernels.sweeps import Sweep, Visit
from skdpnoise.kernels.tiles import LARGEST_EXPONENT, LONGEST, Floats, Integers, Places
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import Adjacency, LossBudget, PureLoss
from skdpnoise.queries._quantile_search import octave_weights
from skdpnoise.queries.bisected_columns import bisect_columns, find_common, needed_share
from skdpnoise.queries.values import MISSING
from skdpnoise.sensitivity import (
    SensitivityProfile,
    clipped_sum,
    histogram_counts,
    paired_histogram,
)

STEPS = 4  # releases: magnitude, coarse and fine location, and what comes after
# Shares of the budget: magnitude, location (coarse, then fine); the rest is for what comes after.
SEARCH_SHARES = (0.4, 0.12, 0.18)
_STAGES = ("magnitudes", "coarse", "digits")

_EXPONENTS = np.arange(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1)
DIGIT_BITS = 11  # bits of a location that one histogram finds
MOST_DIGITS = -(-(LONGEST - 1) // DIGIT_BITS)
_SWEPT = 1 << 12  # columns whose digits are counted at once
# Pairs of records of which magnitudes are counted at most: so many, and in units of the noise.
REACH = 8.0  # magnitudes to either side of a location, in which nearly all values are
TYPICAL = 0.25  # standard deviation in halves of public bounds, of which nothing is known
LEAST_MAGNITUDES = 0.25  # least scale of a column whose magnitude was found
_PAIRS, _PAIRS_PER_NOISE = 1 << 17, 200.0
_MISS = 0.02  # chance that noise alone is taken for bins that stand out, of however many columns
_WINDOW = 5  # magnitudes that are summed as one in the sum of the histograms in which none does
_IN_FULLEST = 0.3  # of pairs of normal values, whose distances are in the fullest bin


def stage_losses(budget: LossBudget, adjacency: Adjacency, *, searches: bool) -> list[LossBudget]:
    """Return what each stage may cost, whatever the stages before it release."""
    if not isinstance(budget, PureLoss):  # squares add, so that stages would say no more
        return [budget]
    counts = adjacency == "add_remove"
    return [*split(budget, **search_shares(counts=counts, searches=searches)).values()]


def search_shares(*, counts: bool, searches: bool) -> dict[str, float]:
    """Return the share of each stage by its name: together the stages cost the whole budget."""
    # `counts` and `searches` say whether the number of records and the ranges of some columns are
    # estimated privately.
    rest = 1.0 - COUNT_SHARE if counts else 1.0
    shares = {"count": COUNT_SHARE} if counts else {}
    if searches:
        shares |= {stage: rest * part for stage, part in zip(_STAGES, SEARCH_SHARES, strict=True)}
        rest *= 1.0 - sum(SEARCH_SHARES)
    return shares | {"rest": rest}


def shows(noise: str, loss: LossBudget, n_samples: float, differ: float) -> bool:
    """Return True if a search finds normal values in a column of which so many pairs differ."""
    # A function of public facts and of released numbers.
    part = split(loss, **search_shares(counts=False, searches=True))["magnitudes"]
    mechanism = calibrate(noise, paired_histogram(_EXPONENTS.size, 1), part)
    return would_stand_out(mechanism, 0.5 * differ * n_samples)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSums:
    """Sums of some columns, of which a contribution in tiles lies in an interval."""

    n_records: float  # about as many as there are in all
    columns: Places
    contribution: Visit  # overwrites a tile by what its values contribute
    low: float
    high: float

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        ones = np.ones(self.columns.size)
        return clipped_sum(self.low * ones, self.high * ones, adjacency)

    def step(self, grid_size: Floats) -> Sweep:
        def visit(loops: Any, tile: Floats, n: int, totals: Any, which: Any) -> None:
            self.contribution(loops, tile, n, totals, which)
            loops.add_rounded(tile, n, grid_size[which], totals)

        return Sweep(self.columns, (), visit, self.n_records)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCounts:
    """Histograms of some columns, of each of which a record is one count."""

    n_records: float  # or pairs of them: about as many as there are in all
    columns: Places
    n_bins: int
    visit: Visit
    paired: bool = False  # whether what is counted are differences of pairs of records
    missing: float | None = None  # what stands for no value, of which no pair is made

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        if self.paired:
            return paired_histogram(self.n_bins, self.columns.size)
        return histogram_counts(self.n_bins, adjacency, self.columns.size)

    def step(self, grid_size: Floats) -> Sweep:
        return Sweep(self.columns, (self.n_bins,), self.visit, self.n_records)

    def of_one(self, n_bins: int) -> ColumnCounts:
        return replace(self, columns=self.columns[:1], n_bins=n_bins)


class Ranges:
    """Where the values of each column are, and what is left to release more about them."""

    def __init__(
        self,
        owner: str,
        n_columns: int,
        bounds: tuple[ArrayLike, ArrayLike] | None,
        *,
        missing: bool = False,
        pooled: bool = False,
    ) -> None:
        # low, high: shape (n_columns,); infinite where there are no bounds
        self.low, self.high = (
            np.broadcast_to(np.asarray(end, dtype=float), n_columns)
            for end in bounds or (-np.inf, np.inf)
        )
        check_order(owner, "bounds", self.low, self.high)
        self.bounded = np.isfinite(self.low) & np.isfinite(self.high)
        self.missing = missing  # whether the largest value stands for what is missing
        self.pooled = pooled  # whether hidden columns are like most others
        self.common = False  # whether those without bounds have one location and one scale
        self.spent = 0.0  # part of the budget that the search for these took
        self.bisected = False  # whether columns without bounds were, and need no refinement
        self.typical_found = True  # whether the noise would let normal values be found: public

    @property
    def absent(self) -> float | None:
        """The number that stands for no value; None where there is one everywhere."""
        return MISSING if self.missing else None

    @property
    def n_releases(self) -> int:
        return 1 if self.bounded.all() else STEPS

    def find(
        self,
        session: Session,
        noise: str,
        budget: LossBudget,
        n_samples: float | None,
        *,
        refined: bool = False,
    ) -> Search[None]:
        """Estimate ranges that are not public with a part of the budget."""
        # Columns without bounds are searched for their magnitude and location as
        # skdpnoise.queries.private_location_scale says, steps 1 and 2; the number of records is
        # estimated privately under "add_remove" unless one is given. The shares of the budget
        # never add up to more than the whole, whatever is released.
        searched = ~self.bounded
        self.session, self.noise = session, noise
        counts = n_samples is None and session.adjacency == "add_remove"
        shares = search_shares(counts=counts, searches=bool(searched.any()))
        parts = split(budget, **shares)
        self.budget = parts["rest"]
        if n_samples is None:
            n_samples = yield partial(session.number, loss=parts.get("count"), noise=noise)
        self.n_samples = max(n_samples, 1.0)  # public, or estimated privately
        # In the units of the columns: middle and half width of public bounds; else a location, and
        # a power of two about one standard deviation. Halves are taken before the sum, so that the
        # widest bounds do not overflow.
        low, high = (np.where(searched, 0.0, end) for end in (self.low, self.high))
        self.center, self.unit = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        # false where a column is constant, or drowned in noise
        self.found = self.bounded.copy()
        open_columns = np.flatnonzero(searched)
        if not open_columns.size:
            return
        known = self.n_samples, open_columns.size
        ends = self.low[searched], self.high[searched]
        if hides_magnitudes(noise, parts["magnitudes"], *known):
            self.typical_found, self.bisected = False, True
            if self.pooled and open_columns.size > 1 and not counts:  # whose share is of the whole
                terms = session, noise, budget
                location, scale, self.spent = yield from find_common(
                    open_columns, ends, terms, self.n_samples, missing=self.absent
                )
                if scale > 0.0:
                    self.center[searched], self.unit[searched] = location, scale
                    self.found[searched] = self.common = True
                    return
                budget = budget.share(1.0 - self.spent)
                self.budget = budget.share(shares["rest"])
            # What comes after would only be noise where nothing does that for other columns.
            rest = shares["rest"] * (self.bounded.mean() if refined else 1.0)
            loss = budget.share(1.0 - shares.get("count", 0.0) - rest)
            terms = session, noise, loss
            facts = yield from bisect_columns(
                open_columns, ends, terms, self.n_samples, alike=self.pooled, missing=self.absent
            )
            self.center[searched], self.unit[searched], self.found[searched] = facts
            return
        some = yield from self._magnitudes(open_columns, parts["magnitudes"])
        self.unit[open_columns], self.found[open_columns] = some
        kept = open_columns[self.found[open_columns]]
        if kept.size:
            losses = parts["coarse"], parts["digits"]
            self.center[kept], located = yield from self._locations(kept, losses)
            self.found[kept] = located | self.pooled  # where no location is found, it is 0

    def _magnitudes(
        self, columns: Places, loss: LossBudget
    ) -> Search[tuple[Floats, NDArray[np.bool_]]]:
        """Return powers of two near the typical difference of two records, and which stand out."""

        def visit(loops: Any, tile: Floats, n: int, counts: Integers, which: Places) -> None:
            loops.count_exponents(tile, n, counts)

        # More pairs than make the noise small tell nothing more, and take time.
        facts = columns, _EXPONENTS.size, visit
        query = ColumnCounts(0.5 * self.n_samples, *facts, paired=True, missing=self.absent)
        mechanism = self.noise_on(query, loss)
        noise = float(mechanism.standard_deviation.max())
        most = max(_PAIRS, math.ceil(_PAIRS_PER_NOISE * noise))
        query = replace(query, n_records=min(query.n_records, most))
        (released,) = yield partial(
            self.session.tallied, "magnitudes", query, mechanisms=[mechanism], most_pairs=most
        )
        fullest, stands_out = fullest_bins(
            released, columns.size, pooled=self.pooled, likely=octave_weights(_EXPONENTS)
        )
        self.typical_found = would_stand_out(mechanism, query.n_records)
        return np.ldexp(1.0, _EXPONENTS[fullest]), stands_out

    def _locations(
        self, columns: Places, losses: tuple[LossBudget, LossBudget]
    ) -> Search[tuple[Floats, NDArray[np.bool_]]]:
        """Return centres of well-filled bins two magnitudes wide, and which columns have one."""
        width = 2.0 * self.unit[columns]
        inverse = 1.0 / width  # a power of two, so that products are what quotients would be
        missing = self.missing

        def visit(loops: Any, tile: Floats, n: int, counts: Integers, which: Places) -> None:
            loops.count_lengths(tile, n, inverse[which], counts)
            if missing:
                counts[:, 2 * LONGEST :] = 0  # where what is missing is

        query = ColumnCounts(self.n_samples, columns, 2 * (LONGEST + 1), visit)
        coarse = [self.noise_on(query, losses[0])]
        release = partial(self.session.tallied, "locations, coarse")
        (released,) = yield partial(release, query, mechanisms=coarse)
        fullest, stands_out = fullest_bins(released, columns.size)
        kept = np.flatnonzero(stands_out)
        location = np.zeros(columns.size)
        facts = columns[kept], inverse[kept], fullest[kept]
        index = yield from self._find_digits(*facts, losses[1])
        location[kept] = index * width[kept]
        return location, stands_out

    def _find_digits(
        self, columns: Places, inverse: Floats, lengths: Places, loss: LossBudget
    ) -> Search[Floats]:
        """Return the middles of bins of known signs and bit lengths, in widths of a bin."""
        n_bits, below_zero = np.divmod(lengths, 2)
        free_bits = np.maximum(n_bits - 1, 0)  # the leading bit is known
        start = np.where(n_bits > 0, np.int64(1) << free_bits, 0)

        def counts_of(some: Places, widths: Places) -> ColumnCounts:
            known = np.stack([below_zero[some], start[some], free_bits[some] - widths, widths])

            def visit(loops: Any, tile: Floats, n: int, counts: Integers, which: Places) -> None:
                loops.count_digits(tile, n, inverse[some[which]], known[:, which], counts)

            return ColumnCounts(self.n_samples, columns[some], 1 << int(widths.max()), visit)

        n_digits = -(-free_bits // DIGIT_BITS)
        # One sweep for the next digits of all columns that have more: rows in parts are read anew.
        while (several := np.flatnonzero(free_bits)).size:
            for begin in range(0, several.size, _SWEPT):
                lot = several[begin : begin + _SWEPT]
                widths = np.minimum(free_bits[lot], DIGIT_BITS)
                query, shares = counts_of(lot, widths), 1.0 / (lengths.size * n_digits[lot])
                mechanisms = [
                    self.noise_on(query.of_one(1 << width), loss.share(share))
                    for width, share in zip(widths.tolist(), shares.tolist(), strict=True)
                ]
                release = partial(self.session.tallied, "locations, digits")
                released = yield partial(release, query, mechanisms=mechanisms)
                free_bits[lot] -= widths
                digits = [int(fullest_bins(one, 1)[0][0]) for one in released]
                start[lot] += np.array(digits) << free_bits[lot]
        return np.where(below_zero, -1.0, 1.0) * (start + 0.5)

    def noise_on(self, query: Query, loss: LossBudget) -> AdditiveMechanism:
        return calibrate(self.noise, query.sensitivity(self.session.adjacency), loss)

    def ask(self, label: str, query: Query, loss: LossBudget) -> Callable[[Table[Any]], Any]:
        mechanism = self.noise_on(query, loss)
        return partial(self.session.released, label, query, mechanism=mechanism)

    def averaged(self, released: Released) -> tuple[Floats, float]:
        return (
            released.values / self.n_samples,
            float(released.standard_deviation[0]) / self.n_samples,
        )


def would_stand_out(mechanism: AdditiveMechanism, n_pairs: float) -> bool:
    """Return whether the magnitude of normal values stands out in histograms of so many pairs."""
    threshold = mechanism.scale.max() * mechanism.family.isf(_MISS / _EXPONENTS.size)
    return bool(_IN_FULLEST * n_pairs > threshold)


def hides_magnitudes(noise: str, loss: LossBudget, n_samples: float, n_columns: int) -> bool:
    """Return whether noise would hide normal values in histograms, and they are bisected."""
    if isinstance(loss, PureLoss):  # of which the costs of many steps add up
        return False
    mechanism = calibrate(noise, paired_histogram(_EXPONENTS.size, n_columns), loss)
    # At the threshold one half is hidden, one standard deviation above it a sixth.
    unsure = float(mechanism.standard_deviation.max()) / _IN_FULLEST
    return not would_stand_out(mechanism, 0.5 * n_samples - unsure)


def searching_share(noise: str, loss: LossBudget, n_samples: float, n_columns: int) -> float:
    """Return the part of a loss that a search of columns needs, by public facts."""
    if hides_magnitudes(noise, loss.share(SEARCH_SHARES[0]), n_samples, n_columns):
        return needed_share(noise, loss, n_samples, n_columns)
    return 1.0


def fullest_bins(
    released: Released, n_columns: int, *, pooled: bool = False, likely: Floats | None = None
) -> tuple[Places, NDArray[np.bool_]]:
    """Return the fullest bins of noisy histograms of columns, and whether they stand out."""
    # Of columns without any values one stands out with a probability of 0.02 at most, however many
    # there are (Benjamini and Hochberg 1995; one is Bonferroni's bound over the bins, each of which
    # has its part of that probability by how `likely` it is). `pooled` lets histograms in which no
    # bin stands out have the fullest bin of their sum, for half of the probability.
    noisy, mechanism = released.values.reshape(n_columns, -1), released.mechanism
    n_bins = noisy.shape[1]
    part = np.full(n_bins, 1.0 / n_bins) if likely is None else likely / likely.sum()
    scale = mechanism.scale.reshape(noisy.shape)[:, 0]
    miss = HALF * _MISS if pooled else _MISS

    def chance(counts: Any, noise: Any, places: Any) -> Floats:
        return np.asarray(mechanism.family.sf(counts / noise) / part[places])

    fullest = noisy.argmax(axis=1)
    stands_out = _discoveries(chance(noisy.max(axis=1), scale, fullest), miss)
    if pooled and not stands_out.all():
        rest = ~stands_out
        total = np.convolve(noisy[rest].sum(axis=0), np.ones(_WINDOW), mode="same")
        noise, place = math.sqrt(_WINDOW) * np.linalg.norm(scale[rest]), total.argmax()
        if chance(total.max(), noise, place) <= miss:
            fullest[rest], stands_out[rest] = place, True
    return fullest, stands_out


def _discoveries(chances: Floats, rate: float) -> NDArray[np.bool_]:
    """Return which chances are small enough, among so many, for a rate of false discoveries."""
    order = np.sort(chances)
    passed = np.flatnonzero(order <= rate * np.arange(1, order.size + 1) / order.size)
    return np.asarray(chances <= (order[passed[-1]] if passed.size else -1.0))
