r"""The private descent of a linear model: planned on public facts, run, and its iterates finished.

Models are drawn towards the constant one by what the known noise explains of their slopes
(:func:`~skdpnoise.linear_model._defaults.kept`): post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skdpnoise._utils.parameters import check_memory, number_vector
from skdpnoise.accounting import Account
from skdpnoise.data.states import forget, new_token, scratch, state
from skdpnoise.kernels import Loss
from skdpnoise.kernels.columns import columnwise
from skdpnoise.kernels.coordinate_descent import (
    Sweep,
    Sweeps,
    Updates,
    coordinate_descent,
    grids_of_passes,
    scalings_of,
    visit,
)
from skdpnoise.linear_model import _defaults as rules
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._records import Problem, Settings
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.queries.searched_location import count_strength, mean_reach
from skdpnoise.sampling import RandomWords, permutation
from skdpnoise.sampling.observer import adder, plus_noise
from skdpnoise.sensitivity import clipped_gradient, clipped_sum

_LARGEST_GROWTH = math.log(1e6)  # of the budget from the first pass to the last
_MOST_GROWTH = 16.0  # as a logarithm: more than what is refused for itself
_SUM, _QUANTA = 2.0**62, 2.0**26  # 64-bit sums, and the largest contribution to one
_RESIDUAL_REACH = 3.0  # scales that residuals of a model are clipped to
_BLOCK_ROWS = 8192  # whose linear functions are held at once
_MANY = 2.0**30  # records, at which "auto" makes the most passes
_COPIES = 8  # of one number for each pass, output and coordinate that are held at once
# A classifier may be worse than the largest class if its scores have this variance from noise, or
# if records are fewer, in standard deviations of the noise of a count: then scales may be off.
_NOISY, _STRONG = 0.01, 1000.0
_CONFIDENT = 0.75  # standard deviations of its noise that a gain must exceed
_FEW = 8.0  # standard deviations of a score by which the largest class leads in doubt
_LEAST = 0.02  # part of the slopes that is kept in doubt, so that scores still put records in order
# How far from means, in scales, intercepts of clipped gradients are, and centres of the target.
_OFF, _OFF_CENTER = 0.2, 0.15


Released = tuple[float, float, float]  # a mean, the deviation of its noise, and its reach


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """All randomness of a descent."""

    noise: np.ndarray  # (n_passes, n_outputs * n_coordinates), in grid steps, output after output
    order: np.ndarray  # (n_passes, n_coordinates): how each pass visits the coordinates; public
    last: np.ndarray  # (1,): noise of what is released last; 0 where that is nothing


@dataclass(frozen=True, slots=True, eq=False)
class DescentPlan:
    """Everything about a descent that is fixed before the data are used."""

    mechanism: AdditiveMechanism | None  # of all passes; None where no coordinate is updated
    coordinates: np.ndarray  # that are updated, among the features and, last, the intercept
    n_features: int
    n_passes: int
    clip: float  # bound C on one record's gradient in every coordinate, in standardised units
    step: float
    n_samples: float  # the divisor: the number of records, public or estimated privately
    # What is released after the passes, its noise, and the most that a record adds to it.
    last: tuple[Residuals | Gain, AdditiveMechanism, float] | None = None

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
        slopes = deviation[-n:, :, self.coordinates < self.n_features]
        return float(((self.step * slopes / (self.n_samples * n)) ** 2).sum())

    def charge(self, account: Account) -> None:
        """Charge for the gradients of all passes, and for what is released after them."""
        if self.mechanism is not None:
            account.charge("gradients", self.mechanism)
        if self.last is not None:
            release, mechanism, _ = self.last
            account.charge(release.label, mechanism)

    def draw(self, rng: RandomWords) -> Draws:
        """Return the noise of all passes, a fresh order for each, and the noise of what is last."""
        n_coordinates = 0 if self.mechanism is None else self.coordinates.size
        noise = np.zeros((self.n_passes, 0), dtype=np.int64)
        if self.mechanism is not None:
            noise = self.mechanism.sample(rng)
        order = [permutation(rng, n_coordinates) for _ in range(self.n_passes)]
        last = np.zeros(1, dtype=np.int64) if self.last is None else self.last[1].sample(rng)[0]
        return Draws(noise, self.coordinates[np.stack(order)], last)

    def standardised(self, problem: Problem) -> Problem:
        """Return the problem in units that suit the steps, whatever the bounds are."""
        return replace(problem, features=problem.features.softened())

    def passes(self, settings: Settings, problem: Problem, draws: Draws) -> Iterator[np.ndarray]:
        """Yield the iterate of every pass in standard units, shape (n_outputs, n_features + 1)."""
        constant, features = problem.target.constant, problem.features
        if self.mechanism is None:
            yield np.column_stack([np.zeros((constant.size, self.n_features)), constant])
            return
        penalties = settings.penalties(settings, problem, self.n_samples)
        l1, l2 = (np.append(one, 0.0) for one in penalties)  # none of the intercept
        # Of coordinates that are not visited any will do that the clip is no huge multiple of.
        shape = (constant.size, self.n_passes, self.n_features + 1)
        quanta, noise = np.full(shape, self.clip), np.zeros(shape, dtype=np.int64)
        grid_size = np.broadcast_to(self.mechanism.grid_size, draws.noise.shape)
        for every, visited in ((quanta, grid_size), (noise, draws.noise)):
            by_output = visited.reshape(self.n_passes, constant.size, self.coordinates.size)
            every[..., self.coordinates] = by_output.swapaxes(0, 1)
        common: dict[str, Any] = {"n_passes": self.n_passes, "n_samples": self.n_samples}
        common |= {"step": self.step, "l1": l1, "l2": l2, "order": draws.order}
        common |= {"add": adder(self.mechanism)}
        outputs: list[Iterator[np.ndarray]]
        token = new_token()
        if problem.data.parts is None:
            n_threads = effective_n_jobs(settings.n_jobs)
            X = columnwise(problem.data.X, n_threads)  # once for all outputs
            common |= {"center": features.center, "scale": features.scale, "limit": features.limit}
            common |= {"clip": self.clip, "fit_intercept": True, "n_threads": n_threads}
            common |= {"loss": settings.loss}
            outputs = [
                coordinate_descent(X, target, grid_size=quanta[k], noise=noise[k], **common)
                for k, target in enumerate(problem.target(problem.data.outputs))
            ]
        else:
            n, size = len(problem.data.y), self.n_features + 1
            grids = [grids_of_passes(self.clip, one, (self.n_passes, size), n) for one in quanta]
            outputs = [
                visit(
                    SpreadSweeps(problem, settings.loss, token, k),
                    size,
                    Updates(grids=grids[k], noise=noise[k], **common),
                )
                for k in range(constant.size)
            ]
        try:
            yield from map(np.stack, zip(*outputs, strict=True))
        finally:
            forget(token)

    @staticmethod
    def averaged(path: np.ndarray) -> np.ndarray:
        """Return the mean of the last fifth of the iterates: post-processing, so free."""
        return np.asarray(path[-_n_averaged(len(path)) :].mean(axis=0))

    def finish(self, path: np.ndarray, problem: Problem, draws: Draws) -> np.ndarray:
        """Return the iterates drawn in, and mended by what is released last."""
        path = drawn_in(path, self, problem.target.constant)
        if self.last is None or not problem.target.units[1]:
            return path
        release, mechanism, reach = self.last
        model, grid_size = DescentPlan.averaged(path), float(mechanism.grid_size[0])
        step = partial(_steps_of_last, release, model, reach, grid_size)
        steps = problem.total(step, release.label, n_rows=_BLOCK_ROWS)
        total = plus_noise(mechanism, steps, draws.last)
        noise = float(mechanism.standard_deviation[0]) / self.n_samples
        mean = float(total[0]) * grid_size / self.n_samples
        return release.finish(path, (mean, noise, reach), self, problem)


def _steps_of_last(
    release: Residuals | Gain, model: np.ndarray, reach: float, grid_size: float, problem: Problem
) -> np.ndarray:
    """Return the sum of what is released last, in grid steps."""
    # Whatever a row holds by now: fmin and fmax take the bound for NaN.
    values = np.fmax(np.fmin(release.contributions(model, problem), reach), -reach)
    steps = np.rint(values / grid_size).astype(np.int64)
    return np.asarray(steps.sum(keepdims=True))


class SpreadSweeps:
    """Sweeps over rows in parts, each of which keeps its scores, or makes them anew."""

    def __init__(self, problem: Problem, loss: Loss, token: str, output: int) -> None:
        self._problem, self._facts = problem, (loss, token, output)
        self._history: list[Sweep] = []

    def __call__(self, sweep: Sweep) -> int:
        """Move the scores of all rows; return the next sum of gradients."""
        # All sweeps so far go along, of which a part makes those that it has not made: what it
        # keeps may be lost, with the worker that kept it.
        self._history.append(sweep)
        step = partial(_swept, self._facts, tuple(self._history))
        return int(self._problem.total(step, "gradients"))


class _Scores:
    """Scores of some rows after so many sweeps; -1 in the middle of one."""

    def __init__(self, loss: Loss, target: np.ndarray) -> None:
        self.lock = Lock()
        self.begin(loss, target)

    def begin(self, loss: Loss, target: np.ndarray) -> None:
        """Return to what they are before the first sweep."""
        score, known = loss.start(target)
        self.scores, self.made = (scratch(score), scratch(np.asarray(known))), 0


def _swept(
    facts: tuple[Loss, str, int], history: tuple[Sweep, ...], problem: Problem
) -> np.ndarray:
    """Return the sum of gradients of the last sweep over some rows."""
    (loss, token, output), data, features = facts, problem.data, problem.features
    target = problem.target(data.outputs)[output]
    p, units = data.X.shape[1], (features.center, features.scale, features.limit)
    scalings = scalings_of(*units, p, p + 1)
    kept = state(token, output, partial(_Scores, loss, target))
    with kept.lock:
        if not 0 <= kept.made < len(history):  # a sweep that failed, or is done once more
            kept.begin(loss, target)
        sweeps = Sweeps(data.X, kept.scores, loss.code, scalings)
        left, kept.made, found = history[kept.made :], -1, 0
        for sweep in left:
            found = int(sweeps(sweep))
        kept.made = len(history)
    return np.asarray(found)


def plan_descent(
    settings: Settings, used: np.ndarray, n_outputs: int, n_samples: float, budget: Budget
) -> DescentPlan:
    """Choose passes, clip and noise scales."""
    # The gradient of a record in coordinate j, clipped to [−C, C], is a contribution to a sum; one
    # pass releases these sums for every coordinate and output once, and T passes compose
    # adaptively. Weights of pass t and coordinate j are w_{tj} = g^{t(2+q)/q} v_j, so that the
    # budget of the passes grows by the factor g, with v_j = 1/M_j ("curvature"), 1 ("uniform") or
    # given.
    facts = settings, used, n_outputs, n_samples, budget
    if settings.last is None or not settings.fit_intercept:
        return _planned(*facts, (0.0, 1.0))
    strength = count_strength(budget.noise, budget.model, n_samples)
    common = strength, budget.order, bool(used.any())
    terms = settings.last.terms(*common, False)
    plan = _planned(*facts, terms)
    if plan.slope_noise() > _NOISY * n_outputs:
        noisy = settings.last.terms(*common, True)
        plan = plan if noisy == terms else _planned(*facts, noisy)
    return plan


def _planned(
    settings: Settings,
    used: np.ndarray,
    n_outputs: int,
    n_samples: float,
    budget: Budget,
    terms: tuple[float, float],
) -> DescentPlan:
    """Return the plan if such a part of the model's budget is for a last release of some reach."""
    part, reach = terms
    coordinates = np.flatnonzero(np.append(used, settings.fit_intercept))
    adjacency, left, order = budget.adjacency, budget.model, budget.order
    last = None
    if part:
        one_sum = clipped_sum(-reach, reach, adjacency)
        last = settings.last, calibrate(budget.noise, one_sum, left.share(part)), reach
    if not used.any():  # the constant model is all there is
        return DescentPlan(None, coordinates, used.size, 1, 1.0, 1.0, n_samples, last)
    left = left.share(1.0 - part)
    ones = np.ones(coordinates.size * n_outputs)
    one_pass = calibrate(budget.noise, clipped_gradient(ones, adjacency), left)
    noise_level = float(one_pass.standard_deviation.mean()) / n_samples
    noise_level *= rules.REFERENCE_PASSES ** (1.0 / order - 0.5)
    auto = rules.choose_defaults(noise_level, settings.loss)
    n_passes = int(_given(settings.n_passes, auto.n_passes))
    clip = settings.spread * float(_given(settings.clip, auto.clip))
    growth = _given(settings.budget_growth, auto.budget_growth)
    weights = np.tile(_error_weights(settings, used.size)[coordinates], n_outputs)
    if growth != 1.0:
        later = growth ** ((np.arange(n_passes) - n_passes + 1) * (2.0 + order) / order)
        weights = later[:, np.newaxis] * weights
    gradients = clipped_gradient(clip * ones, adjacency)
    mechanism = calibrate(budget.noise, gradients, left, n_releases=n_passes, weights=weights)
    step = auto.relaxation / settings.loss.curvature
    return DescentPlan(mechanism, coordinates, used.size, n_passes, clip, step, n_samples, last)


def _given(value: float | str, automatic: float) -> float:
    """Return what a parameter stands for."""
    return automatic if isinstance(value, str) else value


def check_descent(
    settings: Settings, shape: tuple[int, ...], n_outputs: int, budget: Budget
) -> None:
    """Raise what planning would raise, before anything is spent or the data are used."""
    n_rows, n_features = shape
    check_sums(settings, n_rows, n_features)
    if settings.n_passes != "auto":
        n_numbers = int(settings.n_passes) * n_outputs * (n_features + 1)
        reason = f"the noise of 'n_passes'={settings.n_passes}"
        check_memory(settings.owner, 8.0 * _COPIES * n_numbers, reason, "Use fewer passes.")
    _check_growth(settings)
    # So many records, and so little for them, ask for the smallest parts of a loss.
    plan_descent(settings, np.ones(n_features, dtype=bool), n_outputs, _MANY, budget.least)


def check_sums(settings: Settings, n_rows: int, n_columns: int) -> None:
    """Refuse noise scales so far apart that sums of integers would leave 64 bits."""
    # All scales span the same number of grid steps, chosen so that the largest one is no fewer than
    # 2**24 of what a record can change (`mechanisms.calibrate`); the smallest is then as many more
    # as it is smaller. Scales fall as the cube root of weights, or more slowly, and at most as the
    # budget of the passes grows.
    weights = _error_weights(settings, n_columns)
    growth = 1.0 if settings.budget_growth == "auto" else float(settings.budget_growth)
    n_passes = rules.MOST_PASSES if settings.n_passes == "auto" else int(settings.n_passes)
    growing = min(n_passes * math.log(growth), _MOST_GROWTH)
    apart = float(np.cbrt(weights.max() / weights.min())) * math.exp(growing)
    most = _SUM / (n_rows * _QUANTA)
    if apart > most:
        raise ValueError(
            f"The 'error_weights' or the 'budget_growth' parameter of {settings.owner} "
            f"makes noise scales {apart:.3g} times as large as others, too far apart for {n_rows} "
            f"rows: sums of their integers would leave 64 bits. Use at most {most:.3g}."
        )


def _check_growth(settings: Settings) -> None:
    """Refuse a growth that is too large for the passes, or for the most that "auto" stands for."""
    # How many "auto" stands for depends on released numbers: a fit that is paid for must bear all.
    if isinstance(settings.budget_growth, str):
        return
    passes, most = f"n_passes={settings.n_passes}", settings.n_passes
    if most == "auto":
        most = rules.MOST_PASSES
        passes = f"n_passes='auto', which may make {most} passes"
    largest = math.exp(_LARGEST_GROWTH / int(most))
    if settings.budget_growth > largest:
        # Rounded down, so that what is advised is accepted.
        places = 3 - math.floor(math.log10(largest - 1.0)) if largest < 2.0 else 3
        advised = math.floor(largest * 10.0**places) / 10.0**places
        raise ValueError(
            f"The 'budget_growth' parameter of {settings.owner} is too large for {passes}: the "
            f"first pass would get nothing. Got {settings.budget_growth:g}; use at most "
            f"{advised!r}, or a smaller number of 'n_passes'."
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


def _n_averaged(n_passes: int) -> int:
    """Return the number of last iterates whose mean is the model."""
    return max(1, -(-n_passes // 5))


def drawn_in(path: np.ndarray, plan: DescentPlan, constant: np.ndarray) -> np.ndarray:
    """Return the iterates, shape (n_passes, n_outputs, n_features + 1), nearer to the constant."""
    slopes = DescentPlan.averaged(path[..., :-1])
    energy, noise = float((slopes**2).sum()), plan.slope_noise()
    n_slopes = int(np.count_nonzero(plan.coordinates < plan.n_features)) * len(slopes)
    keep = rules.kept(energy, noise, 1.5 + 2.0 * float(np.sqrt(2.0 / max(n_slopes, 1))))
    return _nearer(path, constant, keep)


def _nearer(path: np.ndarray, constant: np.ndarray, keep: float) -> np.ndarray:
    """Return the iterates with this part of their distance from the constant model."""
    anchor = np.zeros(path.shape[1:])
    anchor[:, -1] = constant
    return np.asarray(anchor + keep * (path - anchor))


class Residuals:
    """The residuals of the model, whose mean the intercept moves by."""

    # Gradients are clipped, so that an intercept tends to a median. One more release is the sum of
    # the residuals, clipped to ±r scales (skdpnoise.sensitivity.clipped_sum). The intercept moves
    # by the part of its noisy mean that is expected to be no noise.

    label = "residuals"

    def terms(
        self, strength: float, order: float, uses_features: bool, noisy: bool
    ) -> tuple[float, float]:
        """Return the share and the reach; without features the mean is all there is."""
        if not uses_features:
            return 1.0, mean_reach(strength)
        return rules.residual_share(strength, order), _RESIDUAL_REACH

    def contributions(self, model: np.ndarray, problem: Problem) -> np.ndarray:
        """Return residuals in standard units; of the target as it came, not clipped."""
        center, scale = problem.target.units
        scores = linear_functions(model, problem)[0]
        return np.asarray((problem.data.y - center) / scale - scores)

    def finish(
        self, path: np.ndarray, released: Released, plan: DescentPlan, problem: Problem
    ) -> np.ndarray:
        """Return the iterates with the mean residual added to the intercept; one output."""
        mean, noise, reach = released
        off = _OFF_CENTER if plan.mechanism is None else _OFF
        keep = off**2 / (off**2 + noise**2)
        moved = path.copy()
        moved[..., -1] += keep * np.clip(mean, -reach, reach)
        return moved


class Gain:
    """How many more records the model labels rightly than the largest class."""

    # Noise in the slopes may make a classifier worse than the largest class. How many records more
    # than that the model predicts rightly is released: a record adds −1, 0 or 1. If that does not
    # stand out of its noise, the slopes are shrunk until the labels of few records can differ from
    # the largest class: where that leads by a wide margin, not at all.
    # Outputs are -1 and +1: one array for two classes, else one for each class against the rest.

    label = "gain over the largest class"

    def terms(
        self, strength: float, order: float, uses_features: bool, noisy: bool
    ) -> tuple[float, float]:
        """Return the share and the reach; nothing is released where there is no doubt."""
        doubtful = uses_features and (noisy or strength < _STRONG)
        return (rules.gain_share(strength, order) if doubtful else 0.0), 1.0

    def contributions(self, model: np.ndarray, problem: Problem) -> np.ndarray:
        """Return -1, 0 or 1 for every record."""
        constant, right = problem.target.constant, _labels(problem.data.outputs)
        found = _labels(linear_functions(model, problem))
        rightly = (found == right).astype(np.float64)
        return np.asarray(rightly - (_labels(constant[:, np.newaxis]) == right))

    def finish(
        self, path: np.ndarray, released: Released, plan: DescentPlan, problem: Problem
    ) -> np.ndarray:
        """Return the iterates, drawn in if the model is not better than the largest class."""
        (mean, noise, _), constant = released, problem.target.constant
        if mean > _CONFIDENT * noise:
            return path
        # Scores of standardised features vary by about the norm of the slopes; two of them, more.
        lead = abs(constant[0]) if len(constant) == 1 else np.diff(np.sort(constant)[-2:])[0]
        slopes = DescentPlan.averaged(path)[:, :-1]
        spread = np.linalg.norm(slopes, axis=1).max() * np.sqrt(min(len(constant), 2))
        return _nearer(path, constant, kept_in_doubt(lead, spread))


RESIDUALS, GAIN = Residuals(), Gain()


def kept_in_doubt(lead: float, spread: float) -> float:
    """Return the part of slopes with which labels of few records differ from the largest class."""
    return float(np.clip(lead / max(_FEW * spread, 1e-300), _LEAST, 1.0))


def _labels(scores: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Return the number of the class with the largest score; of two classes, the second if > 0."""
    found: np.ndarray = (
        np.greater(scores[0], 0.0) if len(scores) == 1 else np.argmax(scores, axis=0)
    )
    return found


def linear_functions(model: np.ndarray, problem: Problem) -> np.ndarray:
    """Return the scores of the records, shape (n_outputs, n_samples)."""
    # They are summed column by column, so that what a record adds depends on no other record, to
    # the last bit.
    X, features = problem.data.X, problem.features
    if not isinstance(X, np.ndarray):  # products of sparse rows are summed entry by entry
        return np.asarray(features.scores(X, model[:, :-1]).T + model[:, -1:])
    X = features.held(X)
    scores = np.repeat(model[:, -1:], len(X), axis=1)
    for j in np.flatnonzero(features.used & (model[:, :-1] != 0.0).any(axis=0)):
        standard = (X[:, j].astype(np.float64) - features.center[j]) / features.scale[j]
        scores += model[:, j, np.newaxis] * np.clip(standard, -features.limit[j], features.limit[j])
    return scores
