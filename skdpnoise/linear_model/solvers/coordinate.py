"""Coordinate descent: one record's gradient is clipped in each coordinate by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skdpnoise._utils.parameters import check_memory, number_vector
from skdpnoise.accounting.queries import ClippedSum
from skdpnoise.accounting.session import Session
from skdpnoise.data.table import Table
from skdpnoise.kernels import LOGISTIC, SQUARED, Loss
from skdpnoise.kernels.coordinate_descent import (
    Scores,
    Sweep,
    Sweeps,
    Updates,
    grids_of_passes,
    scalings_of,
    visit,
)
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._records import (
    LinearProblem,
    LinearSchema,
    LinearTarget,
    Rows,
    Settings,
)
from skdpnoise.linear_model._standard_units import LIMIT, Standardisation
from skdpnoise.linear_model.solvers.final_steps import (
    FinalStep,
    MajorityFallback,
    Recentre,
    ShrinkToConstant,
)
from skdpnoise.linear_model.solvers.plans import SolverPlan, made_up_problem
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.privacy import Adjacency
from skdpnoise.queries.searched_location import count_strength, mean_reach
from skdpnoise.sampling import permutation
from skdpnoise.sensitivity import SensitivityProfile, clipped_gradient

_LARGEST_GROWTH = math.log(1e6)  # of the budget from the first pass to the last
_MOST_GROWTH = 16.0  # as a logarithm: more than what is refused for itself
_SUM, _MOST_STEPS = 2.0**62, 2.0**26  # 64-bit sums, and the largest contribution to one
_MANY = 2.0**30  # records, at which "auto" makes the most passes
_COPIES = 8  # of one number for each pass, output and coordinate that are held at once


@dataclass(frozen=True, slots=True)
class ClippedGradients:
    """Sums of gradients, one record's in every coordinate of each output clipped to [−C, C]."""

    clip: float  # C
    n_coordinates: int  # of all outputs

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        return clipped_gradient(np.full(self.n_coordinates, self.clip), adjacency)

    def grids(self, grid_size: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the grid steps of all passes, and the most of them that one record adds."""
        return grids_of_passes(self.clip, grid_size, grid_size.shape, n_rows)


@dataclass(frozen=True, slots=True, eq=False)
class CoordinatePlan(SolverPlan):
    """Passes, clip and noise of coordinate descent, in units that suit its steps."""

    solver = "coordinate"
    mechanism: AdditiveMechanism | None  # of all passes; None where no coordinate is updated
    coordinates: np.ndarray  # that are updated, among the features and, last, the intercept
    query: ClippedGradients  # in standard units, of one pass
    step: float = 1.0

    def slope_noise(self) -> float:
        """Return the sum of the variances that noise gives the mean of the last slopes."""
        # A step replaces a standardised coefficient but for the other coordinates, so that the
        # noise of a pass is that of its iterate; less for columns within wide bounds.
        if self.mechanism is None:
            return 0.0
        per_pass = (self.n_passes, -1, self.coordinates.size)
        shape = (self.n_passes, self.mechanism.sensitivity.n_coordinates)
        deviation = np.broadcast_to(self.mechanism.standard_deviation, shape).reshape(per_pass)
        n = _n_averaged(self.n_passes)
        slopes = deviation[-n:, :, self.coordinates < self.problem.schema.n_columns]
        return float(((self.step * slopes / (self.n_samples * n)) ** 2).sum())

    def run(self, table: Table[Rows], session: Session) -> Iterator[np.ndarray]:
        problem, settings, n_passes = self.problem, self.problem.settings, self.n_passes
        constant, n_features = problem.target.constant, problem.schema.n_columns
        if self.mechanism is None:
            yield np.column_stack([np.zeros((constant.size, n_features)), constant])
            return
        drawn = session.draw("gradients", self.mechanism)
        size, coordinates = self.coordinates.size, self.coordinates.tolist()
        order = np.stack([permutation(session.rng, size) for _ in range(n_passes)])
        grid_size = np.broadcast_to(self.mechanism.grid_size, drawn.noise.shape)
        grids = self.query.grids(grid_size, len(table))
        # No penalty of the intercept.
        penalties = settings.penalty(problem, self.n_samples)
        l1, l2 = (np.append(one, 0.0)[self.coordinates] for one in penalties)
        updates = Updates(n_passes, self.n_samples, self.step, l1, l2, order)
        with ExitStack() as stack:
            at_hand = (table.n_threads, stack) if table.lasts else None
            rows = table.map(partial(_swept, settings.loss.code, problem.features, at_hand))
            start = partial(_start, settings.loss, problem.target)
            fold = stack.enter_context(rows.folded(start, _advance, "gradients"))

            def gradient(output: int, t: int, previous: int, change: float, k: int) -> float:
                at = t, output * size + k
                grid = float(grids[0][at]), float(grids[1][at])
                sweep = coordinates[previous], change, coordinates[k], grid
                return grid[0] * int(drawn.add(int(fold.total((output, sweep))), at))

            outputs = [
                visit(partial(gradient, k), size, updates) for k in range(problem.schema.n_outputs)
            ]
            for thetas in zip(*outputs, strict=True):
                coef = np.zeros((constant.size, n_features + 1))
                coef[:, self.coordinates] = thetas
                yield coef

    def average(self, path: np.ndarray) -> np.ndarray:
        return averaged(path)


@dataclass(frozen=True, slots=True, eq=False)
class _Swept:
    """Rows that are read column by column."""

    sweeps: Sweeps
    y: np.ndarray


def _swept(
    code: int, features: Standardisation, at_hand: tuple[int, ExitStack] | None, rows: Rows
) -> _Swept:
    p = rows.X.shape[1]
    scalings = scalings_of(features.center, features.scale, features.limit, p, p + 1)
    sweeps = Sweeps(rows.X, code, scalings)
    return _Swept(sweeps.at_hand(*at_hand) if at_hand else sweeps, rows.y)


def _start(loss: Loss, target: LinearTarget, rows: _Swept) -> list[Scores]:
    """Return the scores of all rows before the first sweep, for each output."""
    return [loss.start(values) for values in target(rows.y)]


def _advance(scores: list[Scores], rows: _Swept, update: tuple[int, Sweep]) -> np.ndarray:
    """Move the scores of one output; return the next sum of its gradients."""
    output, sweep = update
    return np.asarray(rows.sweeps(scores[output], sweep))


class CoordinateDescent:
    """Coordinate descent along clipped gradients, each coordinate once in every pass."""

    name: ClassVar[str] = "coordinate"

    def check(self, settings: Settings, schema: LinearSchema, budget: FitBudget) -> None:
        self.check_parameters(settings, schema)
        # So many records, and so little for them, ask for the smallest parts of a loss.
        plan_coordinates(made_up_problem(settings, schema), _MANY, budget.least)

    def check_parameters(self, settings: Settings, schema: LinearSchema) -> None:
        n_features = schema.n_columns
        _check_sums(settings, schema.n_rows or 1, n_features)
        if not isinstance(settings.n_passes, str):
            n_numbers = int(settings.n_passes) * schema.n_outputs * (n_features + 1)
            reason = f"the noise of 'n_passes'={settings.n_passes}"
            check_memory(settings.owner, 8.0 * _COPIES * n_numbers, reason, "Use fewer passes.")
        _check_growth(settings)

    def plan(self, problem: LinearProblem, n_samples: float, budget: FitBudget) -> CoordinatePlan:
        if problem.schema.n_rows is None:
            _check_sums(problem.settings, n_samples, problem.schema.n_columns)
        return plan_coordinates(problem, n_samples, budget)


COORDINATE = CoordinateDescent()


def plan_coordinates(problem: LinearProblem, n_samples: float, budget: FitBudget) -> CoordinatePlan:
    """Choose passes, clip and noise scales, and a release after the passes if one is worth it."""
    # The gradient of a record in coordinate j, clipped to [−C, C], is a contribution to a sum; one
    # pass releases these sums for every coordinate and output once, and T passes compose
    # adaptively. Weights of pass t and coordinate j are w_{tj} = g^{t(2+q)/q} v_j, so that the
    # budget of the passes grows by the factor g, with v_j = 1/M_j ("curvature"), 1 ("uniform") or
    # given.
    settings, order = problem.settings, budget.order
    problem = replace(problem, features=problem.features.softened())
    if settings.loss not in (SQUARED, LOGISTIC) or not settings.fit_intercept:
        return _planned(problem, n_samples, budget, 0.0)
    strength = count_strength(budget.noise, budget.model, n_samples)
    uses_features = bool(problem.features.used.any())
    if settings.loss is SQUARED:
        if not uses_features:  # the mean is all there is
            return _planned(problem, n_samples, budget, 1.0, mean_reach(strength))
        part = tuned.residual_share(strength, order)
        return _planned(problem, n_samples, budget, part, LIMIT)
    weak = uses_features and strength < tuned.FINAL.strong
    part = tuned.gain_share(strength, order) if weak else 0.0
    return _planned(problem, n_samples, budget, part)


def _planned(
    problem: LinearProblem, n_samples: float, budget: FitBudget, part: float, reach: float = 1.0
) -> CoordinatePlan:
    """Return the plan if such a part of the model's budget is for a last release of some reach."""
    settings, used, n_outputs = problem.settings, problem.features.used, problem.schema.n_outputs
    coordinates = np.flatnonzero(np.append(used, settings.fit_intercept))
    adjacency, left, order = budget.adjacency, budget.model, budget.order
    query = ClippedGradients(1.0, coordinates.size * n_outputs)
    last: tuple[FinalStep, ...] = ()
    if part:
        ends = np.array([reach])
        told = ClippedSum(-ends, ends)
        mechanism = calibrate(budget.noise, told.sensitivity(adjacency), left.share(part))
        last = ((Recentre if settings.loss is SQUARED else MajorityFallback)(told, mechanism),)
    if not used.any():  # the constant model is all there is
        plan = CoordinatePlan(problem, n_samples, 1, None, coordinates, query)
        return replace(plan, final=(ShrinkToConstant(0.0, 0), *last))
    left = left.share(1.0 - part)
    one_pass = calibrate(budget.noise, query.sensitivity(adjacency), left)
    noise_level = float(one_pass.standard_deviation.mean()) / n_samples
    noise_level *= tuned.COORDINATE.reference_passes ** (1.0 / order - 0.5)
    auto = tuned.choose_defaults(noise_level, settings.loss)
    n_passes = int(_given(settings.n_passes, auto.n_passes))
    query = replace(query, clip=problem.target.spread * float(_given(settings.clip, auto.clip)))
    # Of many passes no more than may be asked for.
    growth = min(auto.budget_growth, math.exp(_LARGEST_GROWTH / n_passes))
    growth = _given(settings.budget_growth, growth)
    weights = np.tile(_error_weights(settings, used.size)[coordinates], n_outputs)
    if growth != 1.0:
        later = growth ** ((np.arange(n_passes) - n_passes + 1) * (2.0 + order) / order)
        weights = later[:, np.newaxis] * weights
    how: dict[str, Any] = {"n_releases": n_passes, "weights": weights}
    mechanism = calibrate(budget.noise, query.sensitivity(adjacency), left, **how)
    step = auto.relaxation / settings.loss.curvature
    plan = CoordinatePlan(problem, n_samples, n_passes, mechanism, coordinates, query, step)
    shrink = ShrinkToConstant(plan.slope_noise(), int(used.sum()) * n_outputs)
    return replace(plan, final=(shrink, *last))


def _given(value: float | str, automatic: float) -> float:
    return automatic if isinstance(value, str) else value


def _check_sums(settings: Settings, n_rows: float, n_columns: int) -> None:
    """Refuse noise scales so far apart that sums of integers would leave 64 bits."""
    # All scales span the same number of grid steps, chosen so that the largest one is no fewer than
    # 2**24 of what a record can change (`mechanisms.calibrate`); the smallest is then as many more
    # as it is smaller. Scales fall as the cube root of weights, or more slowly, and at most as the
    # budget of the passes grows.
    weights, most = _error_weights(settings, n_columns), tuned.COORDINATE.most_passes
    growth = _given(settings.budget_growth, 1.0)
    n_passes = _given(settings.n_passes, most)
    growing = min(n_passes * math.log(growth), _MOST_GROWTH)
    apart = float(np.cbrt(weights.max() / weights.min())) * math.exp(growing)
    farthest = _SUM / (n_rows * _MOST_STEPS)
    if apart > farthest:
        raise ValueError(
            f"The 'error_weights' or the 'budget_growth' parameter of {settings.owner} makes noise "
            f"scales {apart:.3g} times as large as others, too far apart for {n_rows:.0f} rows: "
            f"sums of their integers would leave 64 bits. Use at most {farthest:.3g}."
        )


def _check_growth(settings: Settings) -> None:
    """Refuse a growth that is too large for the passes, or for the most that "auto" stands for."""
    # How many "auto" stands for depends on released numbers: a fit that was charged must bear all.
    growth, most = settings.budget_growth, settings.n_passes
    if isinstance(growth, str):
        return
    passes = f"n_passes={most}"
    if isinstance(most, str):
        most = tuned.COORDINATE.most_passes
        passes = f"n_passes='auto', which may make {most} passes"
    largest = math.exp(_LARGEST_GROWTH / int(most))
    if growth > largest:
        # Rounded down, so that what is advised is accepted.
        places = 3 - math.floor(math.log10(largest - 1.0)) if largest < 2.0 else 3
        advised = math.floor(largest * 10.0**places) / 10.0**places
        raise ValueError(
            f"The 'budget_growth' parameter of {settings.owner} is too large for {passes}: the "
            f"first pass would get nothing. Got {growth:g}; use at most {advised!r}, or a smaller "
            "number of 'n_passes'."
        )


def _error_weights(settings: Settings, n_features: int) -> np.ndarray:
    """Return the weight of every feature's error, and of the intercept's."""
    weights = settings.error_weights
    if isinstance(weights, str):
        # Standardised columns and the intercept share one curvature.
        alike = 1.0 / settings.loss.curvature if weights == "curvature" else 1.0
        return np.full(n_features + 1, alike)
    expected = n_features + bool(settings.fit_intercept)
    text = (
        f"'curvature', 'uniform' or an array of shape ({expected},), one positive number for each "
        "feature and, with fit_intercept, one for the intercept, from 1e-100 to 1e+100"
    )
    weights = number_vector(settings.owner, "error_weights", weights, text)
    if weights.shape != (expected,) or not ((weights >= 1e-100) & (weights <= 1e100)).all():
        raise ValueError(
            f"The 'error_weights' parameter of {settings.owner} must be {text}. Got shape "
            f"{weights.shape}."
        )
    return np.append(weights, 1.0)[: n_features + 1]


def averaged(path: np.ndarray) -> np.ndarray:
    """Return the mean of the last fifth of the iterates."""
    return np.asarray(path[-_n_averaged(len(path)) :].mean(axis=0))


def _n_averaged(n_passes: int) -> int:
    return max(1, -(-n_passes // 5))
