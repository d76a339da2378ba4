r"""Final steps after the passes of a solver: post-processing, and last releases.

Slopes shrink by what the known noise explains of them. Clipped gradients leave an intercept near a
median, a mean rate too small, slopes too small; and noise may leave labels worse than those of the
largest class. One more sum tells, and mends it; of two classes,
:mod:`~skdpnoise.linear_model.solvers.score_counts`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from skdpnoise.accounting.queries import ClippedSum
from skdpnoise.accounting.session import Session
from skdpnoise.data.table import Table
from skdpnoise.kernels.losses import SQUARED, exponential_mean
from skdpnoise.kernels.sizes import in_blocks
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._records import LinearProblem, Rows
from skdpnoise.linear_model._standard_units import LIMIT, Standardisation
from skdpnoise.linear_model.solvers.moments import MomentsRelease
from skdpnoise.linear_model.solvers.plans import SolverPlan
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.privacy import LossBudget
from skdpnoise.queries.searched_location import search_quantile_of


class LastRelease(ABC):
    """A final step that moves the iterates by one more release, which was planned."""

    __slots__ = ()
    label: ClassVar[str]
    query: Any  # what is summed, within its bound
    mechanism: Any  # calibrated for the query

    def asked(self, path: np.ndarray, plan: Any) -> Any:
        """Return the query of what rows contribute by the iterates so far."""
        return replace(self.query, contributions=partial(self.contributions, path, plan))

    @abstractmethod
    def contributions(self, path: np.ndarray, plan: Any, rows: Rows) -> Iterable[Any]:
        """Return what some rows at a time contribute, by the iterates so far; it is clipped."""

    @abstractmethod
    def __call__(self, path: np.ndarray, plan: Any, noisy: np.ndarray) -> np.ndarray:
        """Return the iterates, shape (n_passes, n_outputs, n_features + 1)."""


@dataclass(frozen=True, slots=True, eq=False)
class SetLevel:
    r"""Moves the intercept until a share q of the targets is below the model, by a search.

    .. math:: \hat b = \text{quantile}_q \bigl(y_i - x_i^\top w\bigr)
    """

    # Passes from a median to the level of another quantile are many, and noisy. The search looks
    # around that of a normal target. Its steps are counts of records below thresholds, or choices
    # by these: what is counted of a record depends on no other, since w is released.

    label = "residuals: "
    quantile: float
    loss: LossBudget
    noise: str

    def moved(self, path: np.ndarray, plan: Any, table: Table[Rows], session: Session) -> Any:
        model, level = plan.average(path), float(ndtri(self.quantile))
        before, model[:, -1] = model[0, -1], level
        residuals = table.map(partial(_residuals, plan.problem, model))
        terms = self.loss, self.noise, plan.n_samples, session.under(self.label)
        found = search_quantile_of(residuals, self.quantile, *terms)
        after = path.copy()
        after[..., -1] += level + found - before
        return after


@np.errstate(over="ignore")
def _residuals(problem: LinearProblem, model: np.ndarray, rows: Rows) -> np.ndarray:
    """Return what a model leaves of each target, in standard units, not clipped."""
    center, scale = problem.target.units
    parts = linear_functions(model, rows, problem.features)
    return np.concatenate([np.empty(0), *((y - center) / scale - some[0] for some, y in parts)])


FinalStep = LastRelease | SetLevel | Callable[[np.ndarray, Any], np.ndarray]
"""A last release, a search, or a function of the iterates and the plan: post-processing."""


def finished(
    plan: SolverPlan, path: np.ndarray, table: Table[Rows], session: Session
) -> np.ndarray:
    for step in plan.final:
        if isinstance(step, LastRelease):
            query = step.asked(path, plan)
            released = session.released(step.label, query, table, step.mechanism)
            path = step(path, plan, released.values)
        elif isinstance(step, SetLevel):
            path = step.moved(path, plan, table, session)
        else:
            path = step(path, plan)
    return path


def linear_functions(
    model: np.ndarray, rows: Rows, features: Standardisation
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the scores of some rows at a time, shape (n_outputs, n_rows), and their targets."""
    # They are summed column by column, so that what a record adds depends on no other record, to
    # the last bit.
    for at in in_blocks(len(rows.y)):
        X, y = rows.X[at], rows.y[at]
        if not isinstance(X, np.ndarray):  # products of sparse rows are summed entry by entry
            yield features.scores(X, model[:, :-1]).T + model[:, -1:], y
            continue
        X = features.held(X) if features.parts else X
        scores = np.repeat(model[:, -1:], len(y), axis=1)
        for j in np.flatnonzero(features.used & (model[:, :-1] != 0.0).any(axis=0)):
            standard = np.subtract(X[:, j], features.center[j], dtype=np.float64)
            standard /= features.scale[j]
            limit = features.limit[j]
            np.minimum(np.maximum(standard, -limit, out=standard), limit, out=standard)
            scores += model[:, j, np.newaxis] * standard
        yield scores, y


def _nearer(path: np.ndarray, constant: np.ndarray, keep: float) -> np.ndarray:
    """Return the iterates with this part of their distance from the constant model."""
    anchor = np.zeros(path.shape[1:])
    anchor[:, -1] = constant
    return np.asarray(anchor + keep * (path - anchor))


@dataclass(frozen=True, slots=True)
class ShrinkToConstant:
    """Shrinks all iterates of coordinate descent to the constant model."""

    noise: float  # variances that noise gives the mean of the last slopes, all together
    n_slopes: int

    def __call__(self, path: np.ndarray, plan: Any) -> np.ndarray:
        energy = float((plan.average(path[..., :-1]) ** 2).sum())
        keep = tuned.kept(energy, self.noise, self.n_slopes)
        return _nearer(path, plan.problem.target.constant, keep)


@dataclass(frozen=True, slots=True, eq=False)
class Recentre(LastRelease):
    """Moves the intercept by the part of a noisy mean residual that is likely no noise."""

    # Gradients are clipped, so that an intercept tends to a median. Residuals are clipped to ±r.

    label = "residuals"
    query: ClippedSum
    mechanism: AdditiveMechanism

    def contributions(self, path: np.ndarray, plan: Any, rows: Rows) -> Iterator[np.ndarray]:
        """Yield residuals in standard units; of the target as it came, not clipped."""
        center, scale = plan.problem.target.units
        for scores, y in linear_functions(plan.average(path), rows, plan.problem.features):
            yield ((y - center) / scale - scores[0])[:, np.newaxis]

    def __call__(self, path: np.ndarray, plan: Any, noisy: np.ndarray) -> np.ndarray:
        if not plan.problem.target.units[1]:
            return path
        mean = float(noisy[0]) / plan.n_samples
        noise = float(self.mechanism.standard_deviation[0]) / plan.n_samples
        keep = tuned.FINAL.off**2 / (tuned.FINAL.off**2 + noise**2)
        moved = path.copy()
        moved[..., -1] += keep * np.clip(mean, self.query.low[0], self.query.high[0])
        return moved


@dataclass(frozen=True, slots=True, eq=False)
class MajorityFallback(LastRelease):
    """Shrinks slopes whose labels may be worse than the largest class, by a released gain."""

    # A record adds −1, 0 or 1: whether the model labels it rightly, less whether the largest class
    # does. Shrunk slopes give few records another label than that class, if it leads by a wide
    # margin.

    label = "gain over the largest class"
    query: ClippedSum
    mechanism: AdditiveMechanism

    def contributions(self, path: np.ndarray, plan: Any, rows: Rows) -> Iterator[np.ndarray]:
        """Yield how many more labels the model has right than the largest class."""
        largest = _labels(plan.problem.target.constant[:, np.newaxis])
        for scores, y in linear_functions(plan.average(path), rows, plan.problem.features):
            gains = (_labels(scores) == y).astype(np.float64) - (largest == y)
            yield gains[:, np.newaxis]

    def __call__(self, path: np.ndarray, plan: Any, noisy: np.ndarray) -> np.ndarray:
        constant = plan.problem.target.constant
        gain = float(noisy[0]) / plan.n_samples
        noise = float(self.mechanism.standard_deviation[0]) / plan.n_samples
        if gain > noise:
            return path
        # Scores of standardised features vary by about the norm of the slopes; two of them, more.
        lead = abs(constant[0]) if len(constant) == 1 else np.diff(np.sort(constant)[-2:])[0]
        slopes = plan.average(path)[:, :-1]
        spread = np.linalg.norm(slopes, axis=1).max() * np.sqrt(min(len(constant), 2))
        return _nearer(path, constant, kept_for_few_labels(lead, spread))


def kept_for_few_labels(lead: float, spread: float) -> float:
    """Return the part of slopes with which labels of few records differ from the largest class."""
    rule = tuned.FINAL
    return float(np.clip(lead / max(rule.few_labels * spread, 1e-300), rule.least_kept, 1.0))


def _labels(scores: np.ndarray) -> np.ndarray:
    """Return the number of the class with the largest score; of two classes, the second if > 0."""
    found: np.ndarray = (
        np.greater(scores[0], 0.0) if len(scores) == 1 else np.argmax(scores, axis=0)
    )
    return found


def shrink_scores(path: np.ndarray, plan: Any) -> np.ndarray:
    """Shrink scores as a whole, so that labels stay as they are."""
    return path * _ridge_kept(path, plan, plan.n_slopes * plan.slope_noise())


def shrink_noisy_scores(path: np.ndarray, plan: Any) -> np.ndarray:
    """Shrink scores of few passes, which may be noise alone, so that labels stay as they are."""
    keep = _likely_kept(path, plan, plan.slope_noise())
    # However long slopes are, what is kept of noise are small scores.
    spread = float(np.linalg.norm(plan.average(path)[:, :-1] * plan.problem.features.spread))
    return np.asarray(path * max(keep, tuned.FINAL.least_kept / max(spread, 1.0)))


def shrink_noisy_slopes(path: np.ndarray, plan: Any) -> np.ndarray:
    """Shrink slopes of few passes, which may be noise alone, to the constant model."""
    keep = _likely_kept(path, plan, min(plan.slope_noise(), plan.resting_noise()))
    return np.asarray(path * np.append(np.full(path.shape[-1] - 1, keep), 1.0))


def _likely_kept(path: np.ndarray, plan: Any, noise: float) -> float:
    energy = float((plan.average(path)[:, :-1] ** 2).sum())
    return tuned.kept(energy, plan.n_slopes * noise, plan.n_slopes)


def shrink_slopes(path: np.ndarray, plan: Any) -> np.ndarray:
    """Shrink slopes of a model of numbers, whose intercept is where they are."""
    # Rows of many records pull noise back.
    noise = plan.n_slopes * min(plan.slope_noise(), plan.resting_noise())
    keep = _ridge_kept(path, plan, noise)
    return np.asarray(path * np.append(np.full(path.shape[-1] - 1, keep), 1.0))


def _ridge_kept(path: np.ndarray, plan: Any, noise: float) -> float:
    energy = float((plan.average(path)[:, :-1] ** 2).sum())
    return energy / (energy + noise) if energy > 0.0 else 1.0


def shrink_rates(path: np.ndarray, plan: Any) -> np.ndarray:
    """Shrink logarithms of rates to the mean rate."""
    # Where rates are small, so is the curvature that pulls noise back.
    model = plan.average(path)
    curvature = tuned.GRADIENT.curvature * math.exp(min(float(model[0, -1]), 0.0))
    noise = plan.n_slopes * plan.slope_noise(curvature)
    energy = float((model[:, :-1] ** 2).sum())
    keep = tuned.kept(energy, noise, plan.n_slopes)
    return np.asarray(path * keep)


@dataclass(frozen=True, slots=True, eq=False)
class RescaleOnMoments(LastRelease):
    """Multiplies a model of numbers by the slope of the target on its predictions."""

    # Passes over clipped gradients leave a model too small or, with noise, too large. Its
    # predictions are one feature of a fit to second moments. The intercept of least squares is
    # theirs, too.

    label = "second moments"
    moments: MomentsRelease

    @property
    def query(self) -> Any:
        """Return the second moments of predictions and target."""
        return self.moments.query

    @property
    def mechanism(self) -> Any:
        return self.moments.mechanism

    def contributions(self, path: np.ndarray, plan: Any, rows: Rows) -> Iterator[list[np.ndarray]]:
        """Yield predictions, in standard units, and the target."""
        model, unit = self._model(path, plan)
        for scores, y in linear_functions(model / (unit or 1.0), rows, plan.problem.features):
            yield self.moments.tables(Rows(scores.T, y))

    def __call__(self, path: np.ndarray, plan: Any, noisy: np.ndarray) -> np.ndarray:
        model, unit = self._model(path, plan)
        if unit == 0.0:
            return path
        settings, sizes = plan.problem.settings, np.abs(model[0, :-1]) / unit
        # Penalties of all slopes are one of their common factor: no infinite one is of those kept.
        l1, l2 = (one[sizes > 0.0] for one in settings.penalty(plan.problem, plan.n_samples))
        sizes = sizes[sizes > 0.0]
        data = self.moments.chosen(noisy).data
        plain = float(data.solve([0.0], 0.0)[0, 0])
        penalised = data.penalised(np.array([l1 @ sizes]), np.array([l2 @ sizes**2]))[0, 0]
        # Passes had the penalties, and noise adds to them: slopes are made no smaller for them.
        slope = min(plain, max(unit, float(penalised)))
        rescaled = path * (slope / unit)
        level = data.target_mean - slope * float(data.feature_mean[0])
        rescaled[..., -1] = level if settings.loss is SQUARED else path[..., -1]
        return np.asarray(rescaled)

    def _model(self, path: np.ndarray, plan: Any) -> tuple[np.ndarray, float]:
        """Return the slopes, without an intercept, and about how far they spread predictions."""
        model = plan.average(path)
        model[:, -1] = 0.0
        return model, float(np.linalg.norm(model[:, :-1] * plan.problem.features.spread))


@dataclass(frozen=True, slots=True, eq=False)
class MatchMean(LastRelease):
    r"""Brings the mean prediction of a model of rates to the mean of the counts.

    .. math:: \sum_i \Bigl(\min\Bigl(1, \frac{e^{s_i}}{u}\Bigr),
              \min\Bigl(1, \frac{y_i}{m v}\Bigr)\Bigr)
    """

    # With s_i the linear function of the finished model and u and v the largest values that count,
    # by released numbers. Both entries are in [0, 1]: a record moves them by √2 in Euclidean norm
    # at most, under both adjacencies. The intercept moves by the logarithm of their ratio, times
    # the part of it that is likely to be more than noise.

    label = "level"
    query: ClippedSum  # of both, from 0 to 1
    mechanism: AdditiveMechanism
    n_samples: float
    farther: float  # factor of both limits
    counted: float  # v
    error: float  # of the released mean of the counts, in its own units
    missed: float  # by how much passes may find it wrong

    @property
    def noise(self) -> np.ndarray:
        """Standard deviations of the means of both sums, in units of the released mean, at most."""
        part = self.mechanism.standard_deviation / self.n_samples
        return np.asarray(part * [self.farther, self.counted])

    @property
    def believed(self) -> float:
        """Part of the counts' mean that is taken from here: it is what they are units of, too."""
        return float(self.error**2 / (self.error**2 + self.noise[1] ** 2))

    def variance(self, predicted: float) -> float:
        """Return the variance of how far the intercept is to move, for such a limit."""
        rate = predicted / self.farther * float(self.noise[0])
        return rate**2 + self.believed * float(self.noise[1]) ** 2

    def _most_predicted(self, path: np.ndarray, plan: Any) -> float:
        """Return u, by the slopes so far."""
        slopes = plan.average(path)[:, :-1] * plan.problem.features.spread
        size = LIMIT * float(np.linalg.norm(slopes))
        return self.farther * math.exp(min(size, 40.0))

    def contributions(self, path: np.ndarray, plan: Any, rows: Rows) -> Iterator[np.ndarray]:
        """Yield predictions and counts, both in units of their limits."""
        most = self._most_predicted(path, plan)
        for scores, y in linear_functions(plan.average(path), rows, plan.problem.features):
            counts = plan.problem.target(y)[0] / self.counted
            yield np.stack([exponential_mean(scores[0]) / most, counts], axis=1)

    def __call__(self, path: np.ndarray, plan: Any, noisy: np.ndarray) -> np.ndarray:
        predicted = self._most_predicted(path, plan)
        rate, count = noisy / self.n_samples
        counted = 1.0 + self.believed * (self.counted * float(count) - 1.0)
        # Neither is less than its noise is wide.
        counted = max(counted, float(self.noise[1]))
        mean = max(predicted * float(rate), predicted / self.farther * float(self.noise[0]))
        kept = self.missed**2 / (self.missed**2 + self.variance(predicted))
        moved = path.copy()
        moved[..., -1] += kept * math.log(counted / mean)
        return moved


def plan_mean(
    budget: FitBudget, left: LossBudget, strength: float, n_samples: float, spread: float
) -> MatchMean | None:
    """Return the release for counts of this spread, None where its noise is more than it mends."""
    rule, query = tuned.FINAL, ClippedSum(np.zeros(2), np.ones(2), alike=True)
    farther = math.sqrt(max(1.0, strength / rule.strong))
    counted = farther * (1.0 + LIMIT * spread)
    # Of rare counts the mean is a sum of its own.
    error = math.hypot(rule.known / strength * spread, rule.off * min(spread, 1.0))
    missed = rule.off * spread
    if budget.counting:  # sums are divided by a number of records that is noisy
        share = budget.total.share(budget.counting)
        error = math.hypot(error, 1.0 / tuned.ball_strength(share, n_samples, 1))
    mechanism = calibrate(budget.noise, query.sensitivity(budget.adjacency), left)
    plan = MatchMean(query, mechanism, n_samples, farther, counted, error, missed)
    return plan if plan.variance(farther) < missed**2 else None
