"""Log-odds of two classes by one release: how many records of each have which scores.

Clipped gradients say little of records that are far on the wrong side, so that a network is too
sure; and where it found nothing but noise, it does not tell. Counts tell both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.accounting.session import Released
from skdpnoise.base.log_odds import expected_losses
from skdpnoise.kernels.sizes import in_blocks

_HALVES = 2.0 ** np.arange(-1.0, 6.0)  # of the bins of scores, whose width doubles from 0
EDGES = np.concatenate([-_HALVES[::-1], [0.0], _HALVES])
_WITHIN = np.append(0.5 * _HALVES[0], 1.5 * _HALVES)  # scores of the bins, about
SCORES = np.concatenate([-_WITHIN[::-1], _WITHIN])
_SLOPES, _INTERCEPTS = 2.0 ** np.arange(-7.0, 3.0, 0.125), np.arange(-10.0, 10.0, 0.125)

AS_THEY_ARE = np.array([1.0, 0.0])
# A record is one count, whatever its score: one more or less moves one count by 1.
COUNTS = GroupedSum(2 * len(SCORES), partial(np.asarray, dtype=np.intp))
"""Counts of the records of each class by bins of the score, those of the second class last."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoresAlone:
    """Differences of two outputs of a network, each a function of its row alone, bit for bit."""

    # Rows go through one by one, in the same place of memory, with the same random numbers if the
    # network takes any.

    torch: Any
    module: Any  # in eval mode
    place: Any  # Tensor (1, ...)
    seed: int

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        found, torch = np.empty((len(rows), 2)), self.torch
        # The seed of all devices takes ten times as long as a row, and is kept for each call.
        on_processor = self.place.device.type == "cpu"
        begin = torch.default_generator.manual_seed if on_processor else torch.manual_seed
        with torch.no_grad():
            for row, outputs in zip(torch.from_numpy(rows), found, strict=True):
                self.place[0] = row
                begin(self.seed)
                outputs[:] = self.module(self.place)[0].cpu().numpy()
        with np.errstate(invalid="ignore"):
            return np.asarray(found[:, 1] - found[:, 0])


def labels_by_score(
    scores: ScoresAlone, leaf_of: Callable[[Any], tuple[NDArray[np.float32], NDArray[np.int64]]]
) -> GroupedSum:
    """Return these counts for a network, of leaves whose rows and targets are in its units."""

    def codes(leaf: dict[str, NDArray[Any]]) -> NDArray[np.intp]:
        found = np.empty(len(leaf["y"]), dtype=np.intp)
        for at in in_blocks(found.size):
            rows, targets = leaf_of({name: values[at] for name, values in leaf.items()})
            found[at] = np.searchsorted(EDGES, scores(rows)) + len(SCORES) * (targets == 1)
        return found

    return replace(COUNTS, codes=codes)


def log_odds(counts: Released) -> NDArray[np.float64]:
    """Return slope and intercept of the log-odds in the score: of the least expected loss."""
    noise = float(counts.standard_deviation[0])
    losses = expected_losses(counts.values, noise, SCORES, _SLOPES, _INTERCEPTS)
    slope, intercept = np.unravel_index(int(losses.argmin()), losses.shape)
    return np.array([_SLOPES[slope], _INTERCEPTS[intercept]])
