r"""Gradients of all coefficients at once, each record held by one norm: planned, run, averaged.

One pass releases

.. math:: \sum_i \min\Bigl(1, \frac{C}{|x_i| |q_i|}\Bigr) \, x_i \otimes q_i

with x the standardised row and its constant, q the slopes of all outputs. However many columns and
classes there are, a record moves it by at most C. Every rule is a function of public numbers: of
μ n, the number of records over the noise of a count, and of the length L that rows have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse

from skdpnoise._utils.parameters import check_memory
from skdpnoise.accounting import Account
from skdpnoise.data.table import in_units, mapped, total
from skdpnoise.kernels import LOGISTIC, POISSON, SQUARED, Loss
from skdpnoise.kernels.joint import (
    Clip,
    GridRows,
    clipped_gradient_sums,
    columns_of,
    descend,
    hold_parts,
)
from skdpnoise.kernels.second_moments import clipped_row_sums
from skdpnoise.linear_model._budget import NORMAL, Budget
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._defaults import kept
from skdpnoise.linear_model._descent import kept_in_doubt, linear_functions
from skdpnoise.linear_model._gram import GRAM_NOISES, GramPlan, plan_gram
from skdpnoise.linear_model._levels import LEVEL, LevelPlan, plan_level
from skdpnoise.linear_model._records import (
    LIMIT,
    Data,
    Problem,
    Rate,
    Settings,
    Standardisation,
    Target,
)
from skdpnoise.linear_model._scaling import Run, standardise
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.privacy import GaussianLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import GroupedProfile, RowBounds, clipped_rows

__all__ = [
    "ENOUGH_RECORDS",
    "FEW_RECORDS",
    "MANY_COLUMNS",
    "JointPlan",
    "RowScaling",
    "check_joint",
    "check_whole_rows",
    "is_normal",
    "of_whole_rows",
    "plan_joint",
    "scale_for_joint",
]

# From so many columns on, and below μ n for each, regressions clip whole gradients.
MANY_COLUMNS, ENOUGH_RECORDS = 60, 100.0
FEW_RECORDS = 80.0  # μ n below which two classes without bounds are better held to the largest one
MOST_PASSES, FEWEST_PASSES = 80, 12
_MOMENTUM = 0.9
_AVERAGED = 0.4  # of the iterates: the last ones, whose mean is the model
# How far all passes go, in units of μ n: less by this power of it from the weak on, within ends.
_FAR, _WEAK, _FAR_POWER, _MOST_REACH, _LEAST_REACH = 5.0, 40.0, 0.5, 10.0, 0.4
_PER_PASS = 20.0  # of a pass, in the same units, up to the most passes
# C in units of L: more by this power of μ n / (√d L) from the weak one on, d being the number of
# coefficients, up to a half; beyond the strong one, where noise is nothing, in proportion.
_CLIP, _WEAK_COORDINATE, _CLIP_POWER, _MOST_CLIP, _STRONG = 0.12, 16.0, 0.7, 0.5, 4000.0
_LARGEST_SLOPE = math.sqrt(2.0)  # norm of what any loss of labels multiplies a row by
# The same for targets that are numbers, of which the noise counts and not only the order.
_REACH_OF_NUMBERS, _FEWEST_OF_NUMBERS = 0.5, 20
_CLIP_OF_NUMBERS, _POWER_OF_NUMBERS, _LONGEST = 0.3, 0.75, 10.0
# And for counts, in units of σ/m too, what they spread by in units of their mean. C grows with the
# root of μ n / (√d L) from the ordinary one, within ends; it is more where counts are rare. How far
# passes go grows with the root of σ/m.
_ORDINARY, _LEAST_OF_COUNTS, _LEAST_OF_RARE, _LONGEST_OF_COUNTS = 100.0, 0.3, 0.5, 100.0
_DOUBT_OF_COUNTS = 1.0  # by which slopes must exceed what noise is expected to make of them
_MANY_ENTRIES = 4e7  # of a table, beyond which passes are fewer by the root of their number
_SHORTER = 3.5  # power of the clip, in units of L, by which steps are shorter where less is clipped
# Up to so many rows there are more passes where there is little noise: from this μ n, at most.
_FEW_ROWS, _MUCH, _MOST_OF_FEW = 1e5, 1e5, 500.0
_ROW_BITS = 20  # of the norm of a row
_STEPS = 2.0**34  # of what a record may add; fewer where there are more than 2**24 records
# Of columns within bounds, in halves of these: a spread that is guessed, and the least; how much
# more than the noise spreads must differ to be told apart.
_GUESSED, _LEAST_SPREAD, _DOUBT = 0.5, 0.02, 2.0
_GUESSED_SPARSE = 0.25  # the same where nearly all is 0
# Of sparse rows: the constant, in units of L, up to 1; how far passes go at least; and from which
# μ n there are more passes, which take little time.
_CONSTANT_OF_SPARSE, _LEAST_REACH_OF_SPARSE, _MUCH_OF_SPARSE = 0.25, 1.0, 3e3
_TINY = 1e-60  # power of which is a double
_SHORTER_OF_SPARSE = 0.6  # of their clip
_BLOCK = 4096  # rows whose squares are held at once
# μ n between which two classes are doubted: below, a gain could not be told from its noise.
_DOUBTFUL = 70.0, 2000.0
# Their share, so that the noise of a gain is small: at most, and μ n by which it is less.
_MOST_DOUBT, _NEEDED = 0.12, 170.0
# What the smaller gain must exceed, in deviations of its noise and in roots of columns by records.
_SURE, _OVERFIT = 1.5, 0.3
_REFIT = 0.1  # of the budget of a model of numbers, for the slope of the target on predictions
_FLATTEST = 0.3  # curvature of losses of numbers along standardised columns, about
_SUM, _SAFETY = 2.0**60, 4.0  # of all steps; times the number of records, which may be noisy


@dataclass(frozen=True, slots=True, eq=False)
class JointDraws:
    """All randomness of the passes and of what is released after them; and their steps."""

    noise: np.ndarray  # (n_passes, n_outputs, n_features + 1), in grid steps
    last: np.ndarray  # of gains or of the level, (2,), or of second moments
    steps: list[float] = field(default_factory=list)  # filled by the passes


@dataclass(frozen=True, slots=True, eq=False)
class JointPlan:
    """Everything about the passes that is fixed before the data are used."""

    mechanism: AdditiveMechanism | None  # of all passes; None where no column is used
    used: np.ndarray  # which features are updated
    n_outputs: int
    n_passes: int
    clip: float  # C
    step: float
    longest_step: float
    row_grid_size: float  # of standardised rows
    n_samples: float  # the divisor: the number of records, public or estimated privately
    constant: float  # that rows end with; 0 without an intercept
    doubt: AdditiveMechanism | None = None  # of what two classes gain over either of them
    moments: GramPlan | None = None  # of the predictions and a target of numbers
    level: LevelPlan | None = None  # of the predictions and a target of counts
    n_jobs: int | None = None
    penalised: bool = False  # by the user, so that slopes are not made larger again

    def charge(self, account: Account) -> None:
        """Charge for the gradients of all passes."""
        if self.mechanism is not None:
            account.charge("gradients", self.mechanism)
        if self.doubt is not None:
            account.charge("gain over either class", self.doubt)
        if self.moments is not None:
            self.moments.charge(account)
        if self.level is not None:
            self.level.charge(account)

    def draw(self, rng: RandomWords) -> JointDraws:
        """Return the noise of passes and gains."""
        shape = self.n_passes, self.n_outputs, self.used.size + 1
        noise = np.zeros(shape, dtype=np.int64)
        if self.mechanism is not None:
            noise[..., self._updated] = self.mechanism.sample(rng).reshape(*shape[:2], -1)
        last = np.zeros(2) if self.doubt is None else self.doubt.sample(rng)[0]
        last = last if self.level is None else self.level.draw(rng)
        return JointDraws(noise, last if self.moments is None else self.moments.draw(rng))

    @property
    def _updated(self) -> np.ndarray:
        """Index of the coefficients that are updated, among the features and the intercept."""
        return np.flatnonzero(np.append(self.used, self.constant > 0.0))

    def standardised(self, problem: Problem) -> Problem:
        """Return the problem as it is: records are held by their norm."""
        return problem

    def passes(
        self, settings: Settings, problem: Problem, draws: JointDraws
    ) -> Iterator[np.ndarray]:
        """Yield the iterate of every pass in standard units, shape (n_outputs, n_features + 1)."""
        mechanism, features = self.mechanism, problem.features
        if mechanism is None:
            coef = np.zeros(draws.noise.shape[1:])
            coef[:, -1] = problem.target.constant
            yield coef
            return
        assert isinstance(features, RowScaling)
        weights, n_threads = problem.target.weights, effective_n_jobs(settings.n_jobs)
        common = settings.loss, n_threads
        if problem.data.parts is None:  # rows become integers once for all passes
            known = self._gradients(problem)

            def gradient(coef: np.ndarray, clip: Any) -> Any:
                return known(*common, clip, coef)

        else:

            def gradient(coef: np.ndarray, clip: Any) -> Any:
                return problem.total(partial(self._of_some, common, clip, coef), "gradients")

        def add(sums: np.ndarray, noise: np.ndarray) -> np.ndarray:
            # What has no noise stays zero, whatever the sums are.
            total, updated = np.zeros_like(sums), self._updated
            some = plus_noise(mechanism, sums[:, updated].ravel(), noise[:, updated].ravel())
            total[:, updated] = np.reshape(some, (len(sums), -1))
            return total

        part = 1.0 if weights is None else weights.penalty
        penalties = settings.penalties(settings, problem, self.n_samples)
        l1, l2 = (part * np.append(one, 0.0) for one in penalties)  # none of the intercept
        unit = float(mechanism.grid_size[0])
        path = descend(
            gradient,
            np.zeros(draws.noise.shape[1:]),
            n_passes=self.n_passes,
            step=self.step,
            longest_step=self.longest_step,
            steps=draws.steps,
            clip=[Clip(self.clip, unit)] * self.n_passes,
            noise=draws.noise,
            add=add,
            n_samples=self.n_samples,
            momentum=_MOMENTUM,
            l1=l1,
            l2=l2,
        )
        for coef in path:
            coef[:, -1] *= self.constant
            yield coef

    def _gradients(self, problem: Problem, keep: bool = True) -> Callable[..., np.ndarray]:
        """Return a function of a loss, threads, a clip and coefficients: the sum of gradients."""
        features, target = problem.features, problem.target
        assert isinstance(features, RowScaling)
        rows = GridRows(
            problem.data.X,
            grid_size=self.row_grid_size,
            limit=np.where(features.used, features.limit, 0.0),
            center=features.center,
            scale=features.scale,
            constant=self.constant,
            groups=features.groups,
            keep=keep,
        )
        outputs = target(problem.data.outputs)
        if target.scaling is None:  # labels
            outputs = [one > 0 for one in outputs]

        def targets(begin: int, end: int) -> np.ndarray:
            return np.stack([one[begin:end] for one in outputs], axis=1).astype(np.float64)

        def weight(begin: int, end: int) -> np.ndarray:
            some = [one[begin:end] for one in outputs]
            number = some[0].astype(int) if len(some) == 1 else np.argmax(some, axis=0)
            return np.asarray(target.weights.relative[number])

        weights = None if target.weights is None else weight

        def gradients(loss: Loss, n_threads: int, clip: Clip, coef: np.ndarray) -> np.ndarray:
            facts: dict[str, Any] = {"clip": clip, "weights": weights, "n_threads": n_threads}
            return clipped_gradient_sums(rows, targets, coef, loss=loss, **facts)

        return gradients

    def _of_some(
        self, common: tuple[Loss, int], clip: Clip, coef: np.ndarray, problem: Problem
    ) -> np.ndarray:
        """Return the sum of the gradients of some rows."""
        return self._gradients(problem, keep=False)(*common, clip, coef)

    def finish(self, path: np.ndarray, problem: Problem, draws: JointDraws) -> np.ndarray:
        """Return the iterates, drawn in by what the known noise may be of their slopes."""
        if self.mechanism is None:
            return path
        model, n_slopes = self.averaged(path)[:, :-1], int(self.used.sum())
        energy = float((model**2).sum())
        if self.moments is not None:
            return self._refitted(path, problem, draws.last)
        if isinstance(problem.target, Rate):
            return self._levelled(path, problem, draws)
        numbers = problem.target.scaling is not None
        noise = n_slopes * self.n_outputs * self.slope_noise(draws.steps)
        if numbers:  # rows of many records pull it back
            noise = min(noise, n_slopes * self.resting_noise())
        keep = energy / (energy + noise) if energy > 0.0 else 1.0
        if numbers:  # whose intercept is where they are
            return np.asarray(path * np.append(np.full(self.used.size, keep), 1.0))
        path = path * keep  # scores as a whole, so that labels stay as they are
        return path if self.doubt is None else self._doubted(path, problem, draws.last)

    def _refitted(self, path: np.ndarray, problem: Problem, draws: np.ndarray) -> np.ndarray:
        """Return the iterates with the slope and the intercept of the target on predictions."""
        # Passes over clipped gradients leave a model too small or, with noise, too large. Its
        # predictions are one feature of a fit to second moments.
        assert self.moments is not None
        model, features = self.averaged(path), problem.features
        assert isinstance(features, RowScaling)
        model[:, -1] = 0.0
        unit = float(np.linalg.norm(model[:, :-1] * features.spread))
        if unit == 0.0:
            return path
        predictions = partial(_predictions, model / unit)
        released = self.moments.release(problem, draws, self.n_jobs, predictions)
        slope, intercept = released.solve([0.0], 0.0)[0]
        keep = float(slope) / unit
        refitted = path * (min(keep, 1.0) if self.penalised else keep)
        refitted[..., -1] = intercept
        return np.asarray(refitted)

    def _levelled(self, path: np.ndarray, problem: Problem, draws: JointDraws) -> np.ndarray:
        """Return the iterates of logarithms of rates, drawn to the mean rate, and at its level."""
        # Where they are small, so is the curvature that pulls noise back.
        model = self.averaged(path)
        curvature = _FLATTEST * math.exp(min(float(model[0, -1]), 0.0))
        noise = int(self.used.sum()) * self.slope_noise(draws.steps, curvature)
        path = path * kept(float((model[:, :-1] ** 2).sum()), noise, _DOUBT_OF_COUNTS)
        if self.level is not None:
            assert isinstance(problem.features, RowScaling)
            spread = problem.features.spread
            path[..., -1] += self.level.moved(self.averaged(path), spread, problem, draws.last)
        return np.asarray(path)

    def _doubted(self, path: np.ndarray, problem: Problem, draws: np.ndarray) -> np.ndarray:
        """Return the iterates, drawn in where labels may be no better than those of one class."""
        # A record that is labelled rightly gains 1 over the class that it is not of, and else loses
        # 1 against its own: (0, 1), (1, 0), (0, -1) or (-1, 0), at most 2 apart.
        assert self.doubt is not None
        model, unit = self.averaged(path), float(self.doubt.grid_size[0])
        gains = problem.total(partial(_gains, model), "gains", n_rows=_BLOCK)
        steps = np.rint(gains / unit).astype(np.int64)
        noisy = in_units(plus_noise(self.doubt, steps, draws), unit)
        over_first, over_second = noisy / self.n_samples
        deviation = float(self.doubt.standard_deviation[0]) / self.n_samples
        # The records that are labelled are those of the fit: labels that mean nothing gain, too.
        least = _SURE * deviation + _OVERFIT * math.sqrt(self.used.sum() / self.n_samples)
        if min(over_first, over_second) > least:
            return path
        few, drawn = 0.5 / self.n_samples, path.copy()
        share = min(max(0.5 + 0.5 * (over_first - over_second), few), 1.0 - few)
        log_odds = math.log(share / (1.0 - share))
        drawn[..., :-1] *= kept_in_doubt(abs(log_odds), float(np.linalg.norm(model[:, :-1])))
        drawn[..., -1] = log_odds
        return drawn

    def slope_noise(self, steps: list[float], curvature: float = 0.0) -> float:
        """Return the variance that noise gives one slope, which rows of a curvature pull back."""
        # Column t is what the noise of pass t makes of the iterates.
        assert self.mechanism is not None
        path, pull = np.zeros((self.n_passes, self.n_passes)), np.eye(self.n_passes)
        velocity, slope = np.zeros((2, self.n_passes))
        for t, step in enumerate(steps):
            velocity = _MOMENTUM * velocity + pull[t] + curvature * slope
            path[t] = slope = slope - step * velocity
        part = self.averaged(path)
        noise = part / self.n_samples * float(self.mechanism.standard_deviation[0])
        return float((noise**2).sum())

    def resting_noise(self) -> float:
        """Return the variance of a mean of slopes that rest where gradients end."""
        # The mean of m iterates moves by the mean of m noisy gradients over the curvature.
        assert self.mechanism is not None
        n_averaged = max(1, math.ceil(_AVERAGED * self.n_passes))
        noise = float(self.mechanism.standard_deviation[0]) / self.n_samples / _FLATTEST
        return noise**2 / n_averaged

    @staticmethod
    def averaged(path: np.ndarray) -> np.ndarray:
        """Return the mean of the last iterates: post-processing, so free."""
        return np.asarray(path[-max(1, math.ceil(_AVERAGED * len(path))) :].mean(axis=0))


def _predictions(model: np.ndarray, problem: Problem) -> np.ndarray:
    """Return the linear function of a model as a table of one column."""
    blocks = (linear_functions(model, some)[0] for some in problem.blocks(_BLOCK))
    return np.concatenate([*blocks])[:, np.newaxis]


def _gains(model: np.ndarray, problem: Problem) -> np.ndarray:
    """Return how many more labels a model has right than either class alone."""
    positive = problem.data.outputs[0] > 0
    right = np.count_nonzero((linear_functions(model, problem)[0] > 0.0) == positive)
    found = np.count_nonzero(positive)
    return np.array([right - (positive.size - found), right - found])


def plan_joint(
    settings: Settings, problem: Problem, n_outputs: int, n_samples: float, budget: Budget
) -> JointPlan:
    """Choose passes, clip and step, and calibrate the noise of all passes."""
    # The noise of T passes adds to a score about 2 u T / (μ n), u being how far a pass moves the
    # score of a row of length L that is clipped. So u T is a multiple of μ n.
    features, target, left = problem.features, problem.target.scaling, budget.model
    assert isinstance(left, GaussianLoss)
    assert isinstance(features, RowScaling)
    used, constant = features.used, float(settings.fit_intercept)
    if settings.sparse:  # a 1 would be most of a short row, and of what it may add
        constant *= min(1.0, _CONSTANT_OF_SPARSE * features.length)
    n_used = int(np.count_nonzero(used))
    if not n_used or not (target is None or target.used[0]):  # a constant has been found
        return JointPlan(None, used, n_outputs, 1, 1.0, 1.0, 1.0, 1.0, n_samples, constant)
    shape = n_outputs, n_used + bool(constant)
    length = math.hypot(features.length, constant)
    longest = math.hypot(features.longest, constant)
    width = 2.0 if budget.adjacency == "replace_one" else 1.0
    weights = problem.target.weights
    counted = n_samples * (1.0 if weights is None else weights.share)
    strength = 2.0 / width * left.mu * counted
    part, doubt, moments, level = 0.0, None, None, None
    if settings.loss is SQUARED:
        assert target is not None
        noise = budget.noise if budget.noise in GRAM_NOISES else NORMAL
        part, plain = _REFIT, replace(settings, noise=noise, row_norm="auto")
        like = replace(budget, noise=noise)
        moments = plan_gram(plain, _with_feature(target), n_samples, like, part)
    elif settings.loss is POISSON and settings.fit_intercept:
        facts = strength, n_samples, problem.target.spread
        level = plan_level(budget, left.share(LEVEL), *facts)
        part = LEVEL if level is not None else 0.0
    elif _may_doubt(settings, problem) and _DOUBTFUL[0] <= strength < _DOUBTFUL[1]:
        part = min(_MOST_DOUBT, (_NEEDED / strength) ** 2)
        doubt = calibrate(budget.noise, GroupedProfile([width], np.zeros(2)), left.share(part))
    left = left.share(1.0 - part)
    size = problem.target.spread  # of slopes
    n_passes, clip, reach = _choose(settings, strength, (length, size), shape, n_samples)
    if settings.loss is not POISSON:
        clip = min(clip, _LARGEST_SLOPE * longest)
    if settings.clip != "auto":
        clip = float(settings.clip) * size
    longest_step = reach / n_passes * (1.0 - _MOMENTUM) / (clip * length)
    # Moments of rows have no eigenvalue above L²; the more is clipped, the longer a step may be. Of
    # sparse rows L is a guess.
    steepest = settings.loss.curvature * (longest if settings.sparse else length) ** 2
    step = (1.0 + _MOMENTUM) / steepest
    if settings.loss is not SQUARED:  # whose residuals have no bound
        step /= max(min(clip / (length * size), 1.0), _TINY) ** _SHORTER
    step = min(step, longest_step)
    profile = GroupedProfile([width * clip], np.zeros(math.prod(shape)))
    mechanism = calibrate(budget.noise, profile, left, n_releases=n_passes)
    steps = min(_STEPS, _SUM / (_SAFETY * n_samples))
    bits = math.floor(math.log2(steps * float(mechanism.scale[0]) / clip))
    mechanism = replace(mechanism, bits=min(max(bits, mechanism.bits), 52))
    grid_size = 2.0 ** math.ceil(math.log2(longest) - _ROW_BITS)
    passes = n_passes, clip, step, longest_step, grid_size, counted, constant
    last = doubt, moments, level
    return JointPlan(
        mechanism, used, n_outputs, *passes, *last, settings.n_jobs, settings.strength > 0.0
    )


def _may_doubt(settings: Settings, problem: Problem) -> bool:
    """Whether it is found what labels gain over one class: of two that are alike."""
    return settings.loss is LOGISTIC and settings.fit_intercept and problem.target.weights is None


def _with_feature(target: Standardisation) -> Standardisation:
    """Return the scaling of a standardised feature and of the target."""
    facts = [target.center, target.scale, target.used, target.limit]
    pairs = zip((0.0, 1.0, True, LIMIT), facts, strict=True)
    return Standardisation(*(np.append(one, other) for one, other in pairs))


def _choose(
    settings: Settings,
    strength: float,
    sizes: tuple[float, float],
    shape: tuple[int, int],
    n_samples: float,
) -> tuple[int, float, float]:
    """Return passes, the clip C and how far they go, by the sizes of typical rows and slopes."""
    length, size = sizes
    per_coordinate = strength / math.sqrt(math.prod(shape)) / length
    part = _CLIP * max(1.0, per_coordinate / _WEAK_COORDINATE) ** _CLIP_POWER
    part = max(min(part, _MOST_CLIP), _MOST_CLIP * per_coordinate / _STRONG, settings.loss.whole)
    part *= _SHORTER_OF_SPARSE if settings.sparse else 1.0
    far = _FAR * (_WEAK / strength) ** _FAR_POWER
    # Rows that are not centred have moments with one large eigenvalue and many small ones.
    least = _LEAST_REACH_OF_SPARSE if settings.sparse else _LEAST_REACH
    reach, fewest = min(max(far, least), _MOST_REACH) * strength, FEWEST_PASSES
    if settings.loss in (SQUARED, POISSON):  # judged by their noise, not by their order
        reach, fewest = _REACH_OF_NUMBERS * strength * math.sqrt(size), _FEWEST_OF_NUMBERS
    if settings.loss is SQUARED:
        strong = max(1.0, per_coordinate / _WEAK_COORDINATE) ** _POWER_OF_NUMBERS
        part = min(_CLIP_OF_NUMBERS * strong, _LONGEST)
    if settings.loss is POISSON:
        ordinary = math.sqrt(per_coordinate / _ORDINARY)
        part = min(max(ordinary, _LEAST_OF_COUNTS, _LEAST_OF_RARE * size), _LONGEST_OF_COUNTS)
        part *= size
    if settings.n_passes != "auto":
        return int(settings.n_passes), part * length, reach
    most = _most_passes(settings, strength, n_samples, shape[1])
    return round(max(min(reach / _PER_PASS, most), fewest)), part * length, reach


def _most_passes(settings: Settings, strength: float, n_samples: float, n_columns: int) -> float:
    """Return how many passes there are at most, so that they take not too long."""
    most = float(MOST_PASSES)
    if n_samples <= _FEW_ROWS:  # passes over few rows take no time
        much = _MUCH_OF_SPARSE if settings.sparse else _MUCH
        most = min(MOST_PASSES * max(1.0, strength / much) ** 0.5, _MOST_OF_FEW)
    # How many entries sparse rows have is not public: the root is as good a guess as any.
    per_row = math.sqrt(n_columns) if settings.sparse else n_columns
    return most * min(1.0, math.sqrt(_MANY_ENTRIES / (n_samples * per_row)))


def check_joint(settings: Settings, data: Data, budget: Budget) -> None:
    """Raise what planning would raise, before anything is spent or the data are used."""
    n_columns, n_outputs = data.X.shape[1], len(data.outputs)
    n_passes, n_kept = _MOST_OF_FEW, float(data.rows.n_kept)
    if settings.n_passes != "auto":
        n_passes = float(settings.n_passes)
    elif budget.adjacency == "replace_one":  # the number of records is public
        assert isinstance(budget.total, GaussianLoss)
        most = _most_passes(settings, budget.total.mu * n_kept, n_kept, 1)  # one at least is used
        n_passes = max(most, _FEWEST_OF_NUMBERS)
    size, reason = (
        32.0 * n_passes * n_outputs * (n_columns + 1),
        f"the noise of {n_passes:g} passes",
    )
    check_memory(settings.owner, size, reason, "Use fewer passes.")
    facts = np.zeros(1), np.ones(1), np.ones(1, dtype=bool), np.full(1, LIMIT)
    target = Target(np.zeros(1), None if data.target_bounds is None else Standardisation(*facts))
    ones = np.ones(n_columns)
    features = RowScaling(0.0 * ones, ones, ones > 0.0, LIMIT * ones, ones, data.groups)
    plan_joint(settings, Problem(data, features, target), n_outputs, 2.0**30, budget.least)


@dataclass(frozen=True, slots=True, eq=False)
class RowScaling(Standardisation):
    """A standardisation in which columns of rare values stay smaller than others."""

    spread: np.ndarray  # standard deviations of the columns in these units
    groups: np.ndarray  # numbers of groups of columns whose part of a row has norm 1; -1 for none

    def deviations(self) -> np.ndarray:
        """Return the standard deviations of the columns in these units."""
        return self.spread

    @property
    def length(self) -> float:
        """R, the norm of a typical row."""
        return float(np.linalg.norm(self.spread[self.used]))

    @property
    def longest(self) -> float:
        """The norm that no row exceeds: of a group, 1 more than that of its centre."""
        numbers, alone = self.groups, self.used & (self.groups == NO_GROUP)
        parts = [1.0 + np.linalg.norm(self.center[numbers == k]) for k in range(numbers.max() + 1)]
        return math.hypot(float(np.linalg.norm(self.limit[alone])), *map(float, parts))

    def held(self, X: Any) -> Any:
        """Return rows as they came, their parts in groups held to the norm 1."""
        groups = columns_of(self.groups)
        if not groups:
            return X
        rows = X.astype(np.float64)
        hold_parts(rows, groups)
        return rows


def scale_for_joint(settings: Settings, run: Run, data: Data) -> RowScaling:
    """Buy what must be known of the features for gradients of whole rows."""
    grouped, p = data.groups != NO_GROUP, data.groups.size
    bounds = np.where(grouped, [[-np.inf], [np.inf]], data.bounds)
    if issparse(data.X):  # zeros stay zeros
        largest = np.abs(data.bounds).max(axis=0)
        standard = Standardisation(np.zeros(p), largest, largest > 0.0, np.ones(p))
        return _of_groups(standard, np.full(p, _GUESSED_SPARSE), data.groups)
    if run.budget.centred:
        standard = _scale_rows(run, data)
    elif grouped.any():
        facts = np.zeros(p), np.ones(p), np.ones(p, dtype=bool), np.ones(p)
        alone, standard = np.flatnonzero(~grouped), Standardisation(*facts)
        if alone.size:
            X = mapped(data.X, partial(_columns_of, alone), alone.size)
            found = standardise(settings, run, X, data.bounds[:, alone])
            for field_ in fields(Standardisation):
                getattr(standard, field_.name)[alone] = getattr(found, field_.name)
    else:
        standard = standardise(settings, run, data.X, data.bounds)
    # By its deviation alone a column that is hardly ever 1 would have very long rows, by half of
    # its bounds alone one that is far from them would hardly count: scales are between.
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    within = np.isfinite(half) & standard.used
    part = np.where(within, np.clip(standard.scale / np.where(within, half, 1.0), 0.0, 1.0), 1.0)
    scale, limit = standard.scale / np.sqrt(part), standard.limit * np.sqrt(part)
    softened = replace(standard, scale=scale, limit=limit)
    return _of_groups(softened, np.sqrt(part), data.groups)


def _columns_of(columns: np.ndarray, X: np.ndarray) -> np.ndarray:
    return X[:, columns]


def _of_groups(standard: Standardisation, spread: np.ndarray, groups: np.ndarray) -> RowScaling:
    """Return the scaling, with what is known of columns of groups."""
    grouped = groups != NO_GROUP
    sizes = np.bincount(groups[grouped])[groups[grouped]]
    spread[grouped] = np.sqrt(1.0 / sizes)
    facts = standard.center, standard.scale, standard.used, standard.limit
    return RowScaling(*facts, spread, groups)


def _scale_rows(run: Run, data: Data) -> Standardisation:
    """Release means and mean squares of rows within public bounds, for centres and scales."""
    bounds, grouped = data.bounds, data.groups != NO_GROUP
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    middle, used = 0.5 * bounds[1] + 0.5 * bounds[0], half > 0.0
    half, p = np.where(used, half, 1.0), half.size
    mean, variance = np.zeros(p), np.full(p, _GUESSED**2)
    if run.budget.scaling and used.any():
        first, second, noise = _row_moments(run, data, middle, half)
        keep = kept(float((first**2).sum()), p * noise**2, 1.0)
        mean = np.clip(keep * first, -1.0, 1.0)
        alone = ~grouped
        variance[alone] = second - mean[alone] ** 2
        if alone.any():
            common, n_alone = variance[alone].mean(), int(alone.sum())
            others = variance[alone] - common
            drawn = kept(float((others**2).sum()), n_alone * noise**2, _DOUBT)
            variance[alone] = common + drawn * others
    mean = np.where(used, mean, 0.0)
    part = np.sqrt(np.clip(variance, _LEAST_SPREAD**2, 1.0))
    part[grouped] = 1.0
    return Standardisation(middle + half * mean, half * part, used, (1.0 + np.abs(mean)) / part)


def _row_moments(
    run: Run, data: Data, middle: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return noisy means of rows and of their squares, and the noise, in halves of the bounds."""
    # With z within ±1, the norm of (z, z² - 1/2) is at most the root of p + p/4. Of groups, whose
    # part of a row has norm 1, only z is summed.
    alone = np.flatnonzero(data.groups == NO_GROUP)
    p, norm = half.size, math.sqrt(1.25 * alone.size + data.groups.max() + 1)
    columns = np.append(np.ones(p), np.full(alone.size, 0.5))
    limits = RowBounds(columns.size, norm, columns=columns)
    profile = clipped_rows(limits, run.budget.adjacency)
    mechanism = calibrate("iid_gaussian", profile, run.budget.features)
    run.account.charge("means and squares of rows", mechanism)
    draws = mechanism.sample(run.rng)[0]
    bounds = mechanism.grid_size, limits.norm, limits.columns
    step = partial(_sums_of_moments, (middle, half, alone), bounds)
    sums = total(data.X, step, "means and squares of rows")
    noisy = in_units(plus_noise(mechanism, sums, draws), mechanism.grid_size) / run.n_samples
    return noisy[:p], noisy[p:] + 0.5, float(mechanism.standard_deviation[0]) / run.n_samples


def _sums_of_moments(columns: tuple[Any, ...], bounds: tuple[Any, ...], X: Any) -> np.ndarray:
    """Return the sums of rows in halves of public bounds, and of their squares less a half."""
    (middle, half, alone), (grid_size, norm, limits) = columns, bounds
    sums = np.zeros(grid_size.size, dtype=np.int64)
    for begin in range(0, len(X), _BLOCK):
        values = X[begin : begin + _BLOCK].astype(np.float64)
        z = np.clip((values - middle) / half, -1.0, 1.0)
        both = np.hstack([z, z[:, alone] ** 2 - 0.5])
        sums += clipped_row_sums(both, row_grid_size=grid_size, norm=norm, columns=limits)
    return sums


def is_normal(estimator: Any) -> bool:
    """Whether the noise is normal, or may be."""
    noise, delta = estimator.noise, estimator.delta
    normal = isinstance(noise, str) and (noise in CHOICES or noise.endswith("_gaussian"))
    return normal and isinstance(delta, Real) and float(delta) > 0.0


def check_whole_rows(model: Any, data: Data) -> list[str]:
    """Return what is given that only whole rows can use; refuse it to another solver."""
    facts = {
        "class_weight": getattr(model, "class_weight", None) is not None,
        "column_groups": getattr(model, "column_groups", None) is not None,
        "sparse X": issparse(data.X),
    }
    given = [name for name, is_given in facts.items() if is_given]
    if given and model.solver not in ("auto", "joint"):
        raise ValueError(
            f"The 'solver' parameter of {type(model).__name__} must not be {model.solver!r} with "
            f"{', '.join(given)}. Use solver='auto' or 'joint'."
        )
    return given


def of_whole_rows(model: Any, settings: Settings, data: Data) -> Settings:
    """Return the settings of normal noise on gradients of whole rows, or refuse what these lack."""
    if issparse(data.X) and not np.isfinite(data.bounds).all():
        raise ValueError(
            f"{settings.owner} needs public scales of all columns of a sparse X, since private "
            "ones would make it dense: give 'feature_bounds', or 'column_groups' for columns "
            "that share one unit of norm in each row."
        )
    if not is_normal(model):
        reason = "sparse X" if issparse(data.X) else "gradients of whole rows (solver='joint')"
        raise ValueError(
            f"The 'noise' parameter of {settings.owner} must be normal noise, and delta positive, "
            f"for {reason}. Got noise={settings.noise!r} and delta={model.delta:g}. Use another "
            "noise and delta, or another solver."
        )
    noise = NORMAL if settings.noise in CHOICES else settings.noise
    return replace(settings, noise=noise, joint=True, sparse=issparse(data.X))
