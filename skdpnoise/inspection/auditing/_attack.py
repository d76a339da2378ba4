"""A score of fitted models and thresholds on it, chosen on fits of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from skdpnoise.inspection.auditing._bounds import epsilon_bound, mu_bound

Table = NDArray[np.float64]
Scores = NDArray[np.float64]
Fit = Callable[[Table, Table], Callable[[Table], Scores]]
_RIDGES = (1e-6, 1e-2, 1.0)
_LONE = 3  # single numbers that are tried as a score
_SHARES = np.concatenate([np.geomspace(0.002, 0.1, 18), np.linspace(0.12, 0.88, 39)])
_SHARES = np.unique(np.concatenate([_SHARES, 1.0 - _SHARES]))


@dataclass(frozen=True, slots=True)
class Event:
    # 1: above the threshold, which points to the first data set; -1: below, to the second
    side: int
    threshold: float

    def hits(self, first: Scores, second: Scores) -> tuple[int, int]:
        """Return how often it is hit on the data set it points to, and on the other."""
        beyond = [self.side * scores > self.side * self.threshold for scores in (first, second)]
        here, there = (int(np.count_nonzero(one)) for one in beyond)
        return (here, there) if self.side > 0 else (there, here)


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    name: str  # kind of score
    score: Callable[[Table], Scores]  # from a table of fits, one per row, to scores
    for_epsilon: Event
    for_mu: Event


def choose_attack(
    first: Table, second: Table, trials: float, delta: float, false_alarm: float
) -> Attack:
    # Kinds of score are compared on halves of the fits that they were not fitted to.
    found = []
    for name, fit in _kinds(first, second).items():
        scores = cross_fitted(fit, first, second)
        epsilon, for_epsilon = _best_event(
            scores, trials, lambda h, f: epsilon_bound(h, f, trials, delta, false_alarm)
        )
        mu, for_mu = _best_event(scores, trials, lambda h, f: mu_bound(h, f, trials, false_alarm))
        # Of equal bounds on epsilon the one with the larger bound on mu.
        found.append((epsilon + 1e-3 * mu, name, fit, for_epsilon, for_mu))
    _, name, fit, for_epsilon, for_mu = max(found, key=itemgetter(0))
    return Attack(name, fit(first, second), for_epsilon, for_mu)


def cross_fitted(fit: Fit, first: Table, second: Table) -> list[Scores]:
    """Return the scores of two tables, each half of them as a fit to the other half has them."""
    scores = [np.empty(len(table)) for table in (first, second)]
    for half in (0, 1):
        score = fit(first[half::2], second[half::2])
        for values, table in zip(scores, (first, second), strict=True):
            values[1 - half :: 2] = score(table[1 - half :: 2])
    return scores


def _best_event(
    scores: list[Scores], trials: float, bound: Callable[[Any, Any], Any]
) -> tuple[float, Event]:
    """Return the threshold, and its side, with the largest bound that is to be expected."""
    together = np.concatenate(scores)
    values = np.unique(np.quantile(together, _SHARES))
    best = -1.0, Event(1, 0.0)
    # Between two values: single points that many fits share are then on one side, whole.
    middles = np.concatenate([values, 0.5 * (values[1:] + values[:-1])])
    for side in (1, -1):
        counts = [
            np.array([np.count_nonzero(side * s > side * t) for t in middles]) for s in scores
        ]
        # One more on the wrong side than was seen: rates of zero are not to be trusted.
        rates = [(c + 0.5) / (len(s) + 1.0) for c, s in zip(counts, scores, strict=True)]
        bounds = bound(*(np.floor(trials * rate) for rate in rates[::side]))
        place = int(np.argmax(bounds))
        if bounds[place] > best[0]:
            away = _away_from_scores(together, side, float(middles[place]))
            best = float(bounds[place]), Event(side, away)
    return best


def _away_from_scores(scores: Scores, side: int, threshold: float) -> float:
    """Return a threshold with the same scores on each side, as far from them as can be."""
    # Of numbers that never change, the score of later fits differs by rounding alone: on a score
    # that was met a threshold would put all of them on either side.
    below = (side * scores[side * scores <= side * threshold]).max(initial=-np.inf)
    above = (side * scores[side * scores > side * threshold]).min(initial=np.inf)
    middle = 0.5 * below + 0.5 * above
    return float(side * middle) if below <= middle < above else threshold


def _kinds(first: Table, second: Table) -> dict[str, Fit]:
    """Return the kinds of score that are tried, of columns those whose ranks differ most."""
    ranks = rankdata(np.vstack([first, second]), axis=0)
    gap = np.abs(ranks[: len(first)].mean(axis=0) - ranks[len(first) :].mean(axis=0))
    lone = [int(column) for column in np.argsort(-gap)[:_LONE] if gap[column] > 0.0]
    return {
        **{f"linear discriminant, ridge {k:g}": partial(_linear, ridge=k) for k in _RIDGES},
        "linear discriminant of normal scores": of_normal_scores,
        **{f"number {column}": partial(_single, column=column) for column in lone},
    }


def _sizes(first: Table, second: Table) -> tuple[Table, Table]:
    # What is constant on either data set, but not the same, is told apart with certainty: its size
    # is a small part of the difference.
    pooled = np.vstack([first, second])
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.median(pooled, axis=0)
        gap = np.abs(first.mean(axis=0) - second.mean(axis=0))
        size = 0.5 * (first.std(axis=0) + second.std(axis=0))
    rounding = 1e-9 * np.abs(center)
    size = np.where(size > rounding, size, np.where(gap > rounding, gap / 8.0, np.inf))
    return center, np.where(np.isfinite(size), size, np.inf)


def _linear(first: Table, second: Table, ridge: float) -> Callable[[Table], Scores]:
    """Fisher's discriminant, which for Gaussian noise is the likelihood ratio."""
    center, size = _sizes(first, second)
    kept = np.flatnonzero(np.isfinite(size))
    if kept.size == 0:
        return lambda table: np.zeros(len(table))

    def standard(table: Table) -> Table:
        return np.clip((table[:, kept] - center[kept]) / size[kept], -50.0, 50.0)

    a, b = standard(first), standard(second)
    pooled = np.atleast_2d(np.cov(a.T)) + np.atleast_2d(np.cov(b.T)) + ridge * np.eye(kept.size)
    direction = np.linalg.solve(pooled, a.mean(axis=0) - b.mean(axis=0))
    middle = 0.5 * (a.mean(axis=0) + b.mean(axis=0)) @ direction
    length = float(np.sqrt(direction @ pooled @ direction)) or 1.0
    return lambda table: (standard(table) @ direction - middle) / length


def of_normal_scores(first: Table, second: Table) -> Callable[[Table], Scores]:
    """The same of normal scores of each column, for numbers of very different sizes."""
    pooled = np.sort(np.vstack([first, second]), axis=0)

    def scores(table: Table) -> Table:
        out = np.empty(table.shape)
        for j, known in enumerate(pooled.T):
            left = np.searchsorted(known, table[:, j], side="left")
            right = np.searchsorted(known, table[:, j], side="right")
            out[:, j] = ndtri((0.5 * (left + right) + 0.5) / (known.size + 1.0))
        return out

    inner = _linear(scores(first), scores(second), 1e-2)
    return lambda table: inner(scores(table))


def _single(first: Table, second: Table, column: int) -> Callable[[Table], Scores]:
    """One number, turned so that it is larger on the first data set."""
    ranks = rankdata(np.concatenate([first[:, column], second[:, column]]))
    sign = 1.0 if ranks[: len(first)].mean() >= ranks[len(first) :].mean() else -1.0
    return lambda table: sign * table[:, column]
