"""Ranges of columns, public or estimated privately, and the releases that find and use them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_order, complaint
from skdpnoise.data.table import Partitioned, in_units
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.privacy import Adjacency, LossBudget, check_real
from skdpnoise.queries._query import Query, as_table
from skdpnoise.queries._sweeps import Records, Visit, tallied_gaps, tallies
from skdpnoise.queries._tiles import LARGEST_EXPONENT, LONGEST, Floats, Integers, Places
from skdpnoise.sampling import RandomWords, secret_pairs
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import clipped_sum, histogram_counts, paired_histogram

__all__ = ["COUNT_SHARE", "STEPS", "release_record_count", "stage_losses"]

Charge = Callable[[str, Any], None]  # a label and the mechanism that releases

COUNT_SHARE = 0.02  # of the budget of a fit or a query
STEPS = 4  # releases: magnitude, coarse and fine location, and what comes after
# Shares of the budget: magnitude, location (coarse, then fine); the rest is for what comes after.
SEARCH_SHARES = (0.4, 0.12, 0.18)

_EXPONENTS = np.arange(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1)
DIGIT_BITS = 11  # bits of a location that one histogram finds
MOST_DIGITS = -(-(LONGEST - 1) // DIGIT_BITS)
# Pairs of records of which magnitudes are counted at most: so many, and in units of the noise.
_PAIRS, _PAIRS_PER_NOISE = 1 << 17, 200.0
_MISS = 0.02  # chance that noise alone is taken for a bin that stands out
# The same for the sum of the histograms in which none does, and the magnitudes summed as one: more,
# since a scale that is only noise costs less than all these columns.
_POOLED_MISS, _WINDOW = 0.3, 5
_IN_FULLEST = 0.3  # of pairs of normal values, whose distances are in the fullest bin


def stage_losses(budget: LossBudget, *, counts: bool, searches: bool) -> list[LossBudget]:
    """Return what each stage may cost, whatever the stages before it release."""
    # `counts` and `searches` say whether the number of records and the ranges of some columns are
    # bought. Together the stages cost no more than the budget.
    rest, stages = 1.0, []
    if counts:
        stages.append(budget.share(COUNT_SHARE))
        rest -= COUNT_SHARE
    if searches:
        stages += [budget.share(rest * part) for part in SEARCH_SHARES]
        rest *= 1.0 - sum(SEARCH_SHARES)
    return [*stages, budget if rest == 1.0 else budget.share(rest)]


def release_record_count(
    n_records: int, budget: LossBudget, noise: str, rng: RandomWords, charge: Charge
) -> float:
    """Return a noisy number of records, which one record moves by 1."""
    mechanism = calibrate(noise, clipped_sum(0.0, 1.0), budget)
    charge("number of records", mechanism)
    return float(mechanism.release(np.array([n_records]), rng)[0])


@dataclass(frozen=True, slots=True)
class Releases:
    """What every release of a series needs."""

    noise: str  # `"<rule>_<family>"`
    adjacency: Adjacency  # the neighbouring relation
    rng: RandomWords  # source of randomness
    charge: Charge  # called with a label and the mechanism before each release

    def of_histograms(
        self, shape: tuple[int, ...], loss: LossBudget, *, paired: bool = False
    ) -> AdditiveMechanism:
        """Return the noise of so many histograms of so many bins; `paired` is of pairs."""
        n_columns, n_bins = shape
        sensitivity = histogram_counts(n_bins, self.adjacency, n_columns)
        if paired:
            sensitivity = paired_histogram(n_bins, n_columns)
        return calibrate(self.noise, sensitivity, loss)

    def fullest_bins(
        self, counts: Integers, mechanism: AdditiveMechanism, label: str, *, pooled: bool = False
    ) -> tuple[Places, NDArray[np.bool_]]:
        """Release histograms, one per row; return their fullest bins and whether they stand out."""
        # A bin stands out if it exceeds what the largest of all noises exceeds with probability
        # 0.02. `pooled` lets histograms in which no bin stands out have the fullest bin of their
        # sum.
        n_bins = counts.shape[1]
        self.charge(label, mechanism)
        noisy = mechanism.release(counts.ravel(), self.rng).reshape(counts.shape)
        scale = mechanism.scale.reshape(counts.shape)[:, 0]
        threshold = scale * mechanism.family.isf(_MISS / n_bins)
        fullest, stands_out = noisy.argmax(axis=1), noisy.max(axis=1) > threshold
        if pooled and not stands_out.all():
            rest = ~stands_out
            total = np.convolve(noisy[rest].sum(axis=0), np.ones(_WINDOW), mode="same")
            noise = math.sqrt(_WINDOW) * float(np.linalg.norm(scale[rest]))
            if total.max() > noise * mechanism.family.isf(_POOLED_MISS / n_bins):
                fullest[rest], stands_out[rest] = total.argmax(), True
        return fullest, stands_out

    def sums(
        self,
        records: Records,
        columns: Places,
        contribution: Visit,
        interval: tuple[float, float],
        loss: LossBudget,
        label: str,
    ) -> tuple[Floats, float]:
        """Release one sum per column; return the sums and the standard deviation of the noise."""
        low, high = (end * np.ones(columns.size) for end in interval)
        mechanism = calibrate(self.noise, clipped_sum(low, high, self.adjacency), loss)
        self.charge(label, mechanism)
        grid_size = mechanism.grid_size

        def visit(loops: Any, tile: Floats, n: int, totals: Any, which: Any) -> None:
            contribution(loops, tile, n, totals, which)
            loops.add_rounded(tile, n, grid_size[which], totals)

        totals = np.concatenate([some for _, some in tallies(records, columns, 1, visit)])[:, 0]
        draws = mechanism.sample(self.rng)[0]
        noisy = in_units(plus_noise(mechanism, totals, draws), grid_size)
        return noisy, float(mechanism.standard_deviation[0])


def _count_exponents(loops: Any, tile: Floats, n: int, counts: Integers, _: Places) -> None:
    loops.count_exponents(tile, n, counts)


def uncharged(label: str, mechanism: Any) -> None:
    """Charge nothing: without an account the caller does the accounting."""


class Ranges:
    """Where the values of each column are, and what is left to release more about them."""

    def __init__(
        self,
        query: Query,
        noise: str,
        values: ArrayLike,
        bounds: tuple[ArrayLike, ArrayLike] | None,
        name: str = "values",
    ) -> None:
        """Check the values; "columns" may be empty under "add_remove"."""
        owner, matrix = query.owner, name == "columns"
        allowed = noise_options(adaptive=True)
        if noise not in allowed:
            must = f"be among {allowed}, which all of its releases can take"
            raise ValueError(complaint(owner, "noise", must, repr(noise)))
        array, _ = as_table(owner, values, name=name, n_dims=(2,) if matrix else (1, 2))
        if len(array) == 0 and not (matrix and query.adjacency == "add_remove"):
            raise ValueError(f"The {name!r} parameter of {owner} must not be empty.")
        # Floats stay as they are: a copy of large data would be as large again.
        floats = isinstance(array, Partitioned) or array.dtype.kind == "f"
        table = array if floats else array.astype(np.float64)
        # low, high: shape (n_columns,); infinite where there are no bounds
        self.low, self.high = (
            np.broadcast_to(np.asarray(end, dtype=float), table.shape[1])
            for end in bounds or (-np.inf, np.inf)
        )
        check_order(owner, "bounds", self.low, self.high)
        self.bounded = np.isfinite(self.low) & np.isfinite(self.high)
        self.query, self.records = query, Records(table)
        self.missing = False  # whether values may be missing, which count as the largest
        self.typical_found = True  # whether the noise would let normal values be found: public

    @property
    def n_releases(self) -> int:
        """Releases that find all ranges, and the one that comes after."""
        return 1 if self.bounded.all() else STEPS

    def find(
        self,
        noise: str,
        budget: LossBudget,
        n_samples: float | None,
        charge: Charge | None,
        *,
        pooled: bool = False,
    ) -> None:
        """Charge the budget, and estimate ranges that are not public with a part of it."""
        # Columns without bounds are searched for their magnitude and location as
        # skdpnoise.queries.private_location_scale says, steps 1 and 2; the number of records is
        # bought under "add_remove" unless one is given. The shares of the budget never add up to
        # more than the whole, whatever is released.
        query, searched = self.query, ~self.bounded
        charge = charge or uncharged
        self.releases = Releases(noise, query.adjacency, query.rng, charge)
        if n_samples is not None:
            n_samples = check_real(query.owner, "n_samples", n_samples)
        query.spend(budget, noise)
        counts = n_samples is None and query.adjacency == "add_remove"
        *stages, self.budget = stage_losses(budget, counts=counts, searches=bool(searched.any()))
        if counts:
            part = budget.share(COUNT_SHARE)
            n_samples = release_record_count(len(self.records), part, noise, query.rng, charge)
        elif n_samples is None:
            n_samples = float(len(self.records))
        self.n_samples = max(n_samples, 1.0)  # public, or estimated privately
        # In the units of the columns: middle and half width of public bounds; else a location, and
        # a power of two about one standard deviation. Halves are taken before the sum, so that the
        # widest bounds do not overflow.
        low, high = (np.where(searched, 0.0, end) for end in (self.low, self.high))
        self.center, self.unit = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        # false where a column is constant, or drowned in noise
        self.found = self.bounded.copy()
        open_columns = np.flatnonzero(searched)
        if open_columns.size:
            self._search(open_columns, stages[-3:], pooled)

    def _search(self, columns: Places, losses: Sequence[LossBudget], pooled: bool) -> None:
        """Find the magnitudes of columns, and then locations of those that have one."""
        found = self._magnitudes(columns, losses[0], pooled)
        self.unit[columns], self.found[columns] = found
        kept = columns[self.found[columns]]
        if kept.size:
            self.center[kept], located = self._locations(kept, losses[1:])
            self.found[kept] = located | pooled  # where no location is found, it is 0

    def _magnitudes(
        self, columns: Places, loss: LossBudget, pooled: bool
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return powers of two near the typical difference of two records, and which stand out."""
        # More pairs than make the noise small tell nothing more, and take time.
        shape = columns.size, _EXPONENTS.size
        mechanism = self.releases.of_histograms(shape, loss, paired=True)
        noise = mechanism.standard_deviation
        most = max(_PAIRS, math.ceil(_PAIRS_PER_NOISE * float(noise.max())))
        pairs = secret_pairs(self.releases.rng, len(self.records), most)
        counts = tallied_gaps(self.records.table, pairs, columns, _EXPONENTS.size, _count_exponents)
        if self.missing:
            counts[:, -1] = 0  # the distances to what is missing
        fullest, stands_out = self.releases.fullest_bins(
            counts, mechanism, "magnitudes", pooled=pooled
        )
        n_pairs = min(0.5 * self.n_samples, most)
        threshold = mechanism.scale.max() * mechanism.family.isf(_MISS / _EXPONENTS.size)
        self.typical_found = bool(_IN_FULLEST * n_pairs > threshold)
        return np.ldexp(1.0, _EXPONENTS[fullest]), stands_out

    def _locations(
        self, columns: Places, losses: Sequence[LossBudget]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return centres of well-filled bins two magnitudes wide, and which columns have one."""
        width = 2.0 * self.unit[columns]
        inverse = 1.0 / width  # a power of two, so that products are what quotients would be

        def visit(loops: Any, tile: Floats, n: int, counts: Integers, which: Places) -> None:
            loops.count_lengths(tile, n, inverse[which], counts)

        tallied = tallies(self.records, columns, 2 * (LONGEST + 1), visit)
        counts = np.concatenate([c for _, c in tallied])
        if self.missing:
            counts[:, 2 * LONGEST :] = 0  # where what is missing is
        mechanism = self.releases.of_histograms(counts.shape, losses[0])
        fullest, stands_out = self.releases.fullest_bins(counts, mechanism, "locations, coarse")
        kept = np.flatnonzero(stands_out)
        location = np.zeros(columns.size)
        index = self._find_digits(columns[kept], inverse[kept], fullest[kept], losses[1])
        location[kept] = index * width[kept]
        return location, stands_out

    def _find_digits(
        self, columns: Places, inverse: Floats, lengths: Places, loss: LossBudget
    ) -> Floats:
        """Return the middles of bins of known signs and bit lengths, in widths of a bin."""
        n_bits, below_zero = np.divmod(lengths, 2)
        free_bits = np.maximum(n_bits - 1, 0)  # the leading bit is known
        start = np.where(n_bits > 0, np.int64(1) << free_bits, 0)

        def sweep(some: Places) -> Iterator[tuple[Places, Integers]]:
            shift = np.maximum(free_bits[some] - DIGIT_BITS, 0)
            known = np.stack([below_zero[some], start[some], shift, free_bits[some] - shift])

            def visit(loops: Any, tile: Floats, n: int, counts: Integers, which: Places) -> None:
                loops.count_digits(tile, n, inverse[some[which]], known[:, which], counts)

            return tallies(self.records, columns[some], 1 << int(known[3].max(initial=0)), visit)

        n_digits = -(-free_bits // DIGIT_BITS)
        # One sweep for the next digits of all columns that have more: rows in parts are read anew.
        while (several := np.flatnonzero(free_bits)).size:
            for which, counts in sweep(several):
                for j, digits in zip(several[which].tolist(), counts, strict=True):
                    share = loss.share(1.0 / (columns.size * int(n_digits[j])))
                    width = min(int(free_bits[j]), DIGIT_BITS)
                    bins = digits[np.newaxis, : 1 << width]
                    mechanism = self.releases.of_histograms(bins.shape, share)
                    digit, _ = self.releases.fullest_bins(bins, mechanism, "locations, digits")
                    free_bits[j] -= width
                    start[j] += int(digit[0]) << int(free_bits[j])
        return np.where(below_zero, -1.0, 1.0) * (start + 0.5)
