"""Releases of histograms and exact sums that share one noise and one account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import Adjacency, LossBudget
from skdpnoise.queries._sweeps import Records, Visit, tallies
from skdpnoise.queries._tiles import Floats, Integers, Places
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import clipped_sum, histogram_counts, paired_histogram

Charge = Callable[[str, Any], None]  # a label and the mechanism that releases

_MISS = 0.02  # chance that noise alone is taken for a bin that stands out


@dataclass(frozen=True, slots=True)
class Releases:
    """What every release of a series needs."""

    noise: str  # `"<rule>_<family>"`
    adjacency: Adjacency  # the neighbouring relation
    rng: RandomWords  # source of randomness
    charge: Charge  # called with a label and the mechanism before each release

    def fullest_bins(
        self, counts: Integers, loss: LossBudget, label: str, *, paired: bool = False
    ) -> tuple[Places, NDArray[np.bool_]]:
        """Release histograms, one per row; return their fullest bins and whether they stand out."""
        # A bin stands out if it exceeds what the largest of all noises exceeds with probability
        # 0.02. `paired` counts pairs of records, at most one of which holds any given record.
        n_columns, n_bins = counts.shape
        sensitivity = (
            paired_histogram(n_bins, n_columns)
            if paired
            else histogram_counts(n_bins, self.adjacency, n_columns)
        )
        mechanism = calibrate(self.noise, sensitivity, loss)
        self.charge(label, mechanism)
        noisy = mechanism.release(counts.ravel(), self.rng).reshape(counts.shape)
        scale = mechanism.scale.reshape(counts.shape)[:, 0]
        threshold = scale * mechanism.family.isf(_MISS / n_bins)
        return noisy.argmax(axis=1), noisy.max(axis=1) > threshold

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

        def visit(loops: Any, tile: Floats, n: int, totals: Any, which: Any) -> None:
            contribution(loops, tile, n, totals, which)
            loops.add_rounded(tile, n, mechanism.grid_size[which], totals)

        totals = np.concatenate([some for _, some in tallies(records, columns, 1, visit)])[:, 0]
        draws = mechanism.sample(self.rng)[0]
        noisy = plus_noise(mechanism, totals, draws) * mechanism.grid_size
        return noisy, float(mechanism.standard_deviation[0])


def uncharged(label: str, mechanism: Any) -> None:
    """Charge nothing: without an account the caller does the accounting."""
