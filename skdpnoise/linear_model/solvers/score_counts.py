r"""Final steps for two classes by one release: how many records of each class have which scores.

Passes over clipped gradients order the records well long before they find how far apart the scores
should be; and where they found nothing but noise, the model does not tell. Counts tell both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.base.log_odds import expected_losses
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._records import Rows
from skdpnoise.linear_model._standard_units import LIMIT
from skdpnoise.linear_model.solvers.final_steps import (
    LastRelease,
    linear_functions,
)
from skdpnoise.mechanisms import AdditiveMechanism


@dataclass(frozen=True, slots=True, eq=False)
class LabelsByScore(LastRelease):
    """Counts of the records of each class by bins of the score, those of the second class last."""

    # A record is one count, whatever its score: replacing it moves two counts by 1, adding or
    # removing it moves one. The bins depend on released numbers alone. They have one width, about a
    # standard deviation, around the intercept; the outer ones hold what is beyond, too. The
    # predicted label changes at an edge of bins, unless that is beyond nearly all scores.

    label = "labels by score"
    query: GroupedSum
    mechanism: AdditiveMechanism

    def asked(self, path: np.ndarray, plan: Any) -> GroupedSum:
        return replace(self.query, codes=partial(self.contributions, path, plan))

    def contributions(self, path: np.ndarray, plan: Any, rows: Rows) -> np.ndarray:
        """Return the number of the count of each record."""
        edges, blocks = self.edges(path, plan), []
        for scores, y in linear_functions(plan.average(path), rows, plan.problem.features):
            blocks.append(np.searchsorted(edges, scores[0]) + (len(edges) + 1) * (y == 1))
        return np.concatenate(blocks)

    def edges(self, path: np.ndarray, plan: Any) -> np.ndarray:
        """Return the scores between bins: multiples of their width."""
        n_bins = self.query.n_groups // 2
        width = 2.0 * LIMIT * spread_of_scores(path, plan) / tuned.FINAL.bins
        around = round(float(plan.average(path)[0, -1]) / width)
        return np.asarray(width * (np.arange(1, n_bins) - n_bins // 2 + around))

    @property
    def noise(self) -> float:
        """Standard deviation of the noise of each count."""
        return float(self.mechanism.standard_deviation[0])


@dataclass(frozen=True, slots=True, eq=False)
class CalibrateScores(LabelsByScore):
    """Sets the slope A and the intercept B of the log-odds, A s + B, of a score s."""

    log_odds: bool  # whether scores are; else they are only moved
    penalised: bool  # by the user, so that slopes are not made larger again

    def __call__(self, path: np.ndarray, plan: Any, noisy: np.ndarray) -> np.ndarray:
        spread, was = spread_of_scores(path, plan), float(plan.average(path)[0, -1])
        scores = spread * _means((self.edges(path, plan) - was) / spread)
        slopes, intercepts = 2.0 ** np.arange(-6.0, 2.0, 0.125) / spread, np.arange(-10, 10, 0.125)
        if self.penalised:
            slopes = np.append(slopes[slopes < 1.0], 1.0)
        # Of more bins than scores are thought to fill, those that may hold nothing tell nothing.
        told = noisy.reshape(2, -1).sum(axis=0) > math.sqrt(2.0) * self.noise
        told |= told.size <= tuned.FINAL.bins or not told.any()
        mean = expected_losses(noisy, self.noise, scores, slopes, intercepts, told)
        if self.log_odds:
            # The records counted were fitted: each slope gains 1/n by that, at its whole length;
            # that of few passes is unknown, and whole where log-odds vary by 1.
            whole = spread if len(path) < tuned.GRADIENT.fewest_passes else 1.0
            mean += plan.n_slopes / plan.n_samples * whole * slopes[:, np.newaxis]
        best, level = np.unravel_index(int(mean.argmin()), mean.shape)
        slope, intercept = float(slopes[best]), float(intercepts[level])
        if not self.log_odds:  # labels change where both classes are as likely
            slope, intercept = 1.0, intercept / slope
        moved = slope * path
        moved[..., -1] = intercept
        return np.asarray(moved)


def spread_of_scores(path: np.ndarray, plan: Any) -> float:
    """Return about the standard deviation of the scores; 1 if all slopes are 0."""
    slopes = plan.average(path)[:, :-1] * plan.problem.features.spread
    return float(np.linalg.norm(slopes)) or 1.0


def _means(edges: np.ndarray) -> np.ndarray:
    """Return the means of a standard normal number between edges; far away, the middles."""
    half = 0.5 * (edges[1] - edges[0])
    middles = np.append(edges - half, edges[-1] + half)
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    chances = np.diff(norm.cdf(ends))
    known = np.abs(middles) <= 2.0 * LIMIT
    return np.where(known, -np.diff(norm.pdf(ends)) / np.where(known, chances, 1.0), middles)
