r"""Descent along whole gradients: one record's, in all columns and outputs, is held by one norm.

One pass releases

.. math:: \sum_i \min\Bigl(1, \frac{C}{|x_i| \max(|q_i|, q_0)}\Bigr) \, x_i \otimes q_i

with x the standardised row and its constant, q the slopes of all outputs. With q_0 = 0 gradients
are clipped; where few passes are made, q_0 is the largest slope of the constant model, so that rows
are, and what classes have in common is subtracted whatever their sizes. However many columns and
classes there are, a record moves it by at most C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import ndtri, softmax

from skdpnoise._utils.parameters import check_memory
from skdpnoise.accounting.budget import BESIDE
from skdpnoise.accounting.queries import ClippedSum, ClippedVectors, GroupedSum
from skdpnoise.accounting.session import Session
from skdpnoise.data.table import Table
from skdpnoise.kernels import LOGISTIC, POISSON, SQUARED
from skdpnoise.kernels.joint import Clip, GridRows, clipped_gradient_sums
from skdpnoise.kernels.joint.descent import Descent
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._budget import NORMAL, FitBudget
from skdpnoise.linear_model._records import LinearProblem, LinearSchema, Rows, Settings
from skdpnoise.linear_model._standard_units import plain_units, side_by_side
from skdpnoise.linear_model.solvers.final_steps import (
    FinalStep,
    MajorityFallback,
    RescaleOnMoments,
    SetLevel,
    plan_mean,
    shrink_noisy_scores,
    shrink_noisy_slopes,
    shrink_rates,
    shrink_scores,
    shrink_slopes,
)
from skdpnoise.linear_model.solvers.moments import plan_moments
from skdpnoise.linear_model.solvers.plans import SolverPlan, made_up_problem
from skdpnoise.linear_model.solvers.score_counts import CalibrateScores
from skdpnoise.mechanisms import AdditiveMechanism, KNormMechanism, calibrate
from skdpnoise.mechanisms.balls import with_more_bits
from skdpnoise.privacy import PureLoss
from skdpnoise.queries.searched_location import count_strength

_LARGEST_SLOPE = math.sqrt(2.0)  # norm of what any loss of labels multiplies a row by
_ROW_BITS = 20  # of the norm of a row
_STEPS = 2.0**34  # of what a record may add; fewer where there are more than 2**24 records
_TINY = 1e-60  # power of which is a double
_SUM, _SAFETY = 2.0**60, 4.0  # of all steps; times the number of records, which may be noisy
_MANY = 2.0**30  # records


@dataclass(frozen=True, slots=True, eq=False)
class WholeGradients(ClippedVectors):
    """Sums of gradients in all columns and outputs, one record's held to the norm C in integers."""

    least: float = 0.0  # norm that slopes count as, at least, where they are clipped

    def clip(self, grid_size: np.ndarray) -> Clip:
        return Clip(self.norm, float(grid_size[0]), self.least)


@dataclass(frozen=True, slots=True, eq=False)
class GradientPlan(SolverPlan):
    """Passes, clip and noise of descent along whole gradients."""

    solver = "gradient"
    query: WholeGradients  # of one pass
    mechanism: AdditiveMechanism | KNormMechanism | None  # of all passes; None without a column
    constant: float  # that rows end with; 0 without an intercept
    momentum: float = 0.0
    step: float = 1.0
    longest_step: float = 1.0
    row_grid_size: float = 1.0  # of standardised rows
    steps: list[float] = field(default_factory=list)  # of the passes that were made

    @property
    def n_slopes(self) -> int:
        """Number of slopes that are updated, of all outputs."""
        return int(self.problem.features.used.sum()) * self.problem.schema.n_outputs

    def run(self, table: Table[Rows], session: Session) -> Iterator[np.ndarray]:
        mechanism, problem, settings = self.mechanism, self.problem, self.problem.settings
        shape = problem.schema.n_outputs, problem.schema.n_columns + 1
        if mechanism is None:
            coef = np.zeros(shape)
            coef[:, -1] = problem.target.constant
            yield coef
            return
        drawn, weights = session.draw("gradients", mechanism), problem.target.weights
        clip = self.query.clip(mechanism.grid_size)
        rows = table.map(partial(_on_grid, self, clip, table.lasts, table.n_threads))
        # Of the features and the intercept.
        updated = np.flatnonzero(np.append(problem.features.used, self.constant > 0.0))
        part = 1.0 if weights is None else weights.penalty
        penalties = settings.penalty(problem, self.n_samples)
        l1, l2 = (part * np.append(one, 0.0) for one in penalties)  # none of the intercept
        coef = np.zeros(shape)
        if self.constant:
            coef[:, -1] = problem.target.constant / self.constant
        if settings.loss.quantile is not None and self.constant:
            coef[:, -1] = ndtri(settings.loss.quantile) / self.constant
        descent = Descent(coef, self.step, self.longest_step, self.momentum, l1, l2)
        for t in range(self.n_passes):
            found = rows.total(partial(_sums_at, coef), "gradients")[:, updated]
            # What is not updated stays zero, whatever its sums are.
            noisy = np.zeros(shape)
            noisy[:, updated] = drawn.add(found.ravel(), t).reshape(found.shape) * clip.grid_size
            coef = descent.moved(noisy / self.n_samples)
            self.steps.append(descent.step)
            yield coef * np.append(np.ones(shape[1] - 1), self.constant)

    def average(self, path: np.ndarray) -> np.ndarray:
        return np.asarray(path[-_n_averaged(len(path)) :].mean(axis=0))

    def slope_noise(self, curvature: float = 0.0) -> float:
        """Return the variance that noise gives one slope, which rows of a curvature pull back."""
        # Column t is what the noise of pass t makes of the iterates.
        assert self.mechanism is not None
        path, pull = np.zeros((self.n_passes, self.n_passes)), np.eye(self.n_passes)
        velocity, slope = np.zeros((2, self.n_passes))
        for t, step in enumerate(self.steps):
            velocity = self.momentum * velocity + pull[t] + curvature * slope
            path[t] = slope = slope - step * velocity
        part = self.average(path)
        noise = part / self.n_samples * float(self.mechanism.standard_deviation[0])
        return float((noise**2).sum())

    def resting_noise(self) -> float:
        """Return the variance of a mean of slopes that rest where gradients end."""
        # The mean of m iterates moves by the mean of m noisy gradients over the curvature.
        assert self.mechanism is not None
        deviation = float(self.mechanism.standard_deviation[0])
        noise = deviation / self.n_samples / tuned.GRADIENT.curvature
        return noise**2 / _n_averaged(self.n_passes)


def _n_averaged(n_passes: int) -> int:
    """Return the number of last iterates whose mean is the model."""
    return max(1, math.ceil(tuned.GRADIENT.averaged * n_passes))


def _on_grid(
    plan: GradientPlan, clip: Clip, keep: bool, n_threads: int, rows: Rows
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the sums of gradients of some rows, a function of the coefficients."""
    problem, features, target = plan.problem, plan.problem.features, plan.problem.target
    gridded = GridRows(
        rows.X,
        grid_size=plan.row_grid_size,
        limit=np.where(features.used, features.limit, 0.0),
        center=features.center,
        scale=features.scale,
        constant=plan.constant,
        groups=features.groups,
        keep=keep,  # integers for the next pass
    )
    weights = None if target.weights is None else target.weights.relative[rows.y]
    return partial(
        clipped_gradient_sums,
        gridded,
        np.stack(target(rows.y), axis=1),
        loss=problem.settings.loss,
        clip=clip,
        weights=weights,
        n_threads=n_threads,
    )


def _sums_at(coef: np.ndarray, sums: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return sums(coef)


class GradientDescent:
    """Proximal descent with momentum along clipped whole gradients."""

    name: ClassVar[str] = "gradient"

    def check(self, settings: Settings, schema: LinearSchema, budget: FitBudget) -> None:
        n_passes = tuned.GRADIENT.most_passes_of_few_rows
        if not isinstance(settings.n_passes, str):
            n_passes = float(settings.n_passes)
        elif schema.n_rows is not None:
            n_rows = float(schema.n_rows)
            strength = tuned.ball_strength(budget.total, n_rows, 1)
            most = tuned.most_passes(strength, n_rows, 1, schema.sparse)  # one at least is used
            n_passes = max(most, tuned.GRADIENT.fewest_passes)
            n_passes = tuned.GRADIENT.fewest_passes if budget.pure else n_passes
        size = 32.0 * n_passes * schema.n_outputs * (schema.n_columns + 1)
        reason = f"the noise of {n_passes:g} passes"
        check_memory(settings.owner, size, reason, "Use fewer passes.")
        self.plan(made_up_problem(settings, schema), _MANY, budget.least)

    def plan(self, problem: LinearProblem, n_samples: float, budget: FitBudget) -> GradientPlan:
        # The noise of T passes adds to a score about 2 u T / (μ n), u being how far a pass moves
        # the score of a row of length L that is clipped. So u T is a multiple of μ n.
        settings, sparse, loss = problem.settings, problem.schema.sparse, problem.settings.loss
        features, target, left = problem.features, problem.target, budget.model
        constant = float(settings.fit_intercept)
        if sparse:  # a 1 would be most of a short row, and of what it may add
            constant *= min(1.0, tuned.GRADIENT.sparse * features.length)
        n_used = int(np.count_nonzero(features.used))
        if not n_used or not (target.scaling is None or target.scaling.used[0]):
            # A constant has been found; a quantile is one more.
            _, final = _level(problem, budget, 1.0)
            query = WholeGradients(1.0, 1)
            return GradientPlan(problem, n_samples, 1, query, None, constant, final=final)
        shape = problem.schema.n_outputs, n_used + bool(constant)
        length = math.hypot(features.length, constant)
        longest = math.hypot(features.longest, constant)
        counted = n_samples * (1.0 if target.weights is None else target.weights.share)
        one = WholeGradients(1.0, 1).sensitivity(budget.adjacency)
        effective = 2.0 / float(one.per_coordinate[0]) * counted
        strength = tuned.ball_strength(left, effective, math.prod(shape))
        if isinstance(left, PureLoss):
            # Costs add up: each of T passes has noise that is larger by the root of T.
            there = effective * left.pure_epsilon / math.prod(shape)
            by_rows = loss.labels and loss.curvature < 1.0
            few = tuned.pure_passes(settings.n_passes, there, by_rows=by_rows)
            settings, strength = replace(settings, n_passes=few), strength / math.sqrt(few)
        part, final = _final_steps(problem, n_samples, budget, strength)
        left = left.share(1.0 - part)
        size = target.spread  # of slopes
        sizes = length, size
        n_passes, clip, reach = tuned.choose_gradients(
            settings, strength, sizes, shape, n_samples, sparse
        )
        momentum = tuned.GRADIENT.momentum
        if budget.pure:  # of few passes: it lasts for as many
            momentum = min(momentum, 1.0 - 2.0 / (n_passes + 1.0))
        if loss is not POISSON:
            clip = min(clip, _LARGEST_SLOPE * longest)
        if not isinstance(settings.clip, str):
            clip = float(settings.clip) * size
        least = 0.0
        few = budget.pure and n_passes < tuned.GRADIENT.fewest_passes
        if few and loss is LOGISTIC and isinstance(settings.clip, str):
            # Rows are clipped by their own norm, so that a pass from a constant model subtracts
            # what classes have in common, whatever their sizes.
            least = float(LOGISTIC.mean(np.abs(target.constant))[0])
            clip = tuned.GRADIENT.most_clip * length * least
        longest_step = reach / n_passes * (1.0 - momentum) / (clip * length)
        # Moments of rows have no eigenvalue above L²; the more is clipped, the longer a step may
        # be. Of sparse rows L is a guess.
        step = (1.0 + momentum) / (loss.curvature * (longest if sparse else length) ** 2)
        if loss.labels or loss.curvature > 1.0:  # most records bend less than one may
            whole = max(min(clip / (length * size), 1.0), _TINY)
            step /= whole**tuned.GRADIENT.shorter_steps
        step = min(step, longest_step)
        if least:
            step = 1.0 / (loss.curvature * tuned.GRADIENT.most_clip * length**2)
            longest_step = max(step, longest_step)
        query = WholeGradients(clip, math.prod(shape), least=least)
        mechanism = query.calibrated(budget.noise, left, budget.adjacency, n_passes)
        steps = min(_STEPS, _SUM / (_SAFETY * n_samples))
        bits = math.floor(math.log2(steps * float(np.max(mechanism.scale)) / clip))
        mechanism = with_more_bits(mechanism, bits)
        return GradientPlan(
            problem,
            counted,
            n_passes,
            query,
            mechanism,
            constant,
            momentum=momentum,
            step=step,
            longest_step=longest_step,
            row_grid_size=2.0 ** math.ceil(math.log2(longest) - _ROW_BITS),
            final=final,
        )


GRADIENT = GradientDescent()


def _final_steps(
    problem: LinearProblem, n_samples: float, budget: FitBudget, strength: float
) -> tuple[float, tuple[FinalStep, ...]]:
    """Return the part of the model's budget for releases after the passes, and the final steps."""
    settings, target, left = problem.settings, problem.target, budget.model
    if settings.loss is POISSON:
        part, level = BESIDE, None
        if settings.fit_intercept:
            level = plan_mean(budget, left.share(part), strength, n_samples, target.spread)
        return (0.0, (shrink_rates,)) if level is None else (part, (shrink_rates, level))
    if target.scaling is not None:
        return _of_numbers(problem, n_samples, budget, strength)
    shrink = shrink_noisy_scores if budget.pure else shrink_scores
    strength = count_strength(budget.noise, left, n_samples) if budget.pure else strength
    alike = settings.fit_intercept and problem.schema.n_outputs == 1 and target.weights is None
    n_used = int(problem.features.used.sum())
    part = tuned.share_of_scores(strength, budget.order, n_used) if alike else 0.0
    if not part:
        return _fallback(budget, problem, n_samples) if budget.pure else (0.0, (shrink,))
    bins = tuned.FINAL.bins
    if budget.pure:  # rows may be far from their centre: scores may be anywhere
        bins *= 4 if strength >= tuned.FINAL.strong else 2
    query = GroupedSum(2 * bins, partial(np.asarray, dtype=np.intp))
    counts = calibrate(budget.noise, query.sensitivity(budget.adjacency), left.share(part))
    log_odds = settings.loss is LOGISTIC
    last = CalibrateScores(query, counts, log_odds, log_odds and settings.strength > 0.0)
    return part, (shrink, last)


def _of_numbers(
    problem: LinearProblem, n_samples: float, budget: FitBudget, strength: float
) -> tuple[float, tuple[FinalStep, ...]]:
    """Return the same for numbers: slopes first, and then the level of a quantile."""
    settings, scaling = problem.settings, problem.target.scaling
    assert scaling is not None
    level_part, level = _level(problem, budget, tuned.level_share(strength, budget.order))
    if settings.loss is not SQUARED and not tuned.is_noisy(strength, problem.features.used.sum()):
        shrink = shrink_noisy_slopes if budget.pure else shrink_slopes
        return level_part, (shrink, *level)
    noise = budget.noise if budget.noise in tuned.MOMENT_NOISES else NORMAL
    plain = replace(settings, noise=noise, row_norm="auto")
    columns = side_by_side(plain_units(1), scaling.widened(np.zeros(1, dtype=bool)))
    moments = plan_moments(plain, columns, n_samples, replace(budget, noise=noise), BESIDE)
    return BESIDE + level_part, (RescaleOnMoments(moments), *level)


def _level(
    problem: LinearProblem, budget: FitBudget, part: float
) -> tuple[float, tuple[FinalStep, ...]]:
    """Return the part of the model's budget for the search of a quantile's level, if any."""
    settings, scaling = problem.settings, problem.target.scaling
    quantile = settings.loss.quantile
    if quantile is None or not settings.fit_intercept or scaling is None or not scaling.used[0]:
        return 0.0, ()
    loss = budget.model.share(part) if part < 1.0 else budget.model
    return part, (SetLevel(quantile, loss, budget.noise),)


def _fallback(
    budget: FitBudget, problem: LinearProblem, n_samples: float
) -> tuple[float, tuple[FinalStep, ...]]:
    """Return the part of the model's budget that labels of pure noise need, and final steps."""
    strength = count_strength(budget.noise, budget.model, n_samples)
    begins = budget.first == "classes" and problem.target.weights is None
    if not begins or strength >= tuned.FINAL.strong:
        return 0.0, (shrink_noisy_scores,)
    part = tuned.gain_share(strength, budget.order)
    told = ClippedSum(-np.ones(1), np.ones(1))
    gain = calibrate(budget.noise, told.sensitivity(budget.adjacency), budget.model.share(part))
    constant = problem.target.constant
    if constant.size > 1:
        # Of many classes a guess may lose less than noise hides.
        lead = float(softmax(constant).max()) - 1.0 / constant.size
        if lead * n_samples < 2.0 * float(gain.standard_deviation[0]):
            return 0.0, (shrink_noisy_scores,)
    return part, (shrink_noisy_scores, MajorityFallback(told, gain))
