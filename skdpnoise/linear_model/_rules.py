r"""Rules behind "auto": each is one record of tuned numbers, and functions from public facts.

The *noise level* of coordinate descent is

.. math:: \nu = T_0^{1/q - 1/2} \, \sigma_1 / n

with :math:`\sigma_1` the standard deviation of the noise on the sum of one coordinate's gradients
in a run of one pass with clip 1, q the order in which the family's costs add, and T_0 the reference
passes. A run of T passes with clip C has noise of about :math:`\nu C \sqrt T` on every mean
gradient. The *strength* of gradients of whole rows, and of counts, is the number of records over
the standard deviation of the noise on a count, for Gaussian noise about μ n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from skdpnoise.kernels import LOGISTIC, POISSON, SQUARED, Loss
from skdpnoise.linear_model._records import Settings
from skdpnoise.mechanisms import SECOND_MOMENT_NOISES, noise_options
from skdpnoise.mechanisms.requests import CHOICES

# Noises of second moments. The same family finds locations and scales, so that it must be one for
# vectors too.
MOMENT_NOISES = [one for one in noise_options(adaptive=True) if one in SECOND_MOMENT_NOISES]


@dataclass(frozen=True, slots=True)
class CoordinateRules:
    """Passes, clips and steps of coordinate descent, fitted by ``python -m benchmarks rules``."""

    # Its data sets over noise levels, where a grid of passes and clips stands beside them.

    reference_passes: int = 10  # T_0
    most_passes: int = 20
    fewest_passes: int = 2
    passes_level: float = 0.016  # noise level from which passes are fewer, by this power
    passes_power: float = 0.6
    clip: float = 0.8  # in standard units, times the tail of the loss
    clip_level: float = 0.008  # noise level from which clips are smaller, by this power
    clip_power: float = 0.5
    budget_growth: float = 1.1  # ratio of the budgets of successive passes
    long_step_level: float = 0.006  # noise level below which steps are as long as the loss allows


@dataclass(frozen=True, slots=True)
class CoordinateFinalRules:
    """Final steps of coordinate descent, fitted by ``python -m benchmarks hidden_target``."""

    residual_reach: float = 3.0  # scales that residuals of a model are clipped to
    intercept_off: float = 0.2  # how far from means intercepts of clipped gradients are, in scales
    center_off: float = 0.15  # and centres of a target
    noisy_scores: float = 0.01  # variance by noise from which scores may be worse than one class
    strong: float = 1000.0  # strength from which scales of features are right
    sure: float = 0.75  # standard deviations of its noise that a gain must exceed
    few_labels: float = 8.0  # standard deviations of a score by which the largest class then leads
    least_kept: float = 0.02  # part of the slopes that is kept: scores put records in order still
    shrinkage: float = 1.5  # noise of slopes counts so many times
    shrinkage_deviations: float = 2.0  # and so many of its own standard deviations more


@dataclass(frozen=True, slots=True)
class ShareRules:
    """Parts of the budget before the passes and after them: see ``benchmarks/constants.toml``."""

    # Scaling within bounds: diabetes at ε = 1; without: not known, `benchmarks defaults` shows its
    # effect. Targets, classes, residuals, gains: `benchmarks hidden_target`. Rows: `many`.

    scaling_within_bounds: float = 0.14  # for locations and scales
    scaling: float = 0.4  # without bounds
    scaling_level: float = 0.01  # noise of a count by records from which it is more
    scaling_power: float = 0.75
    most_scaling: float = 1.6  # times the above
    bounded_column: float = 0.25  # what a column with public bounds needs, beside one without
    rows: float = 0.1  # for the mean of rows within bounds, before gradients of whole rows
    least_search: float = 0.03  # for a target without bounds: without it there is no model
    most_search: float = 0.9
    second_look: float = 0.2  # of the rest, at a target that seems constant, if its tails are long
    most_before_look: float = 0.5  # that a search may have taken for a second look to find more
    classes: float = 42.0  # strength of the numbers of records of classes, for one moved count
    least_classes: float = 0.01
    most_classes: float = 0.75
    class_weights: float = 0.1  # most of the budget for numbers that balanced classes ask for
    residuals: tuple[float, float] = (100.0, 200.0)  # strength of pure and of Gaussian noise
    most_residuals: tuple[float, float] = (0.12, 0.3)
    least_residuals: float = 0.01
    useless_residuals: float = 60.0  # strength below whose root half, or half, they tell nothing
    useless_share: float = 0.5
    gain: float = 60.0  # strength of what is gained over the largest class
    least_gain: float = 1e-5
    most_gain: float = 0.12


@dataclass(frozen=True, slots=True)
class MomentsRules:
    """Radius and repair of second moments, fitted by ``python -m benchmarks gram``."""

    radius: float = 0.8  # of the ball, in roots of the number of columns
    quiet_radius: float = 0.03  # noise level below which it is wider, by this power
    radius_power: float = 0.25
    preferred: float = 0.025  # noise level up to which they are better, for columns of reach 1
    least_eigenvalue: float = 0.02  # of half the noise level: more are not raised
    least_mean: float = 0.5  # least part of a target's mean that is kept: it was found twice


@dataclass(frozen=True, slots=True)
class GradientRules:
    """Passes, clips and steps along whole gradients, fitted by ``python -m benchmarks many``."""

    # On eight sets of labels, normal columns of five factors, California and diabetes, and hashed
    # words; counts by `benchmarks poisson` on randhie and counts of mean .05 to 50.

    many_columns: int = 60  # from which regressions clip whole gradients,
    enough_records: float = 100.0  # below this strength for each of them
    few_records: float = 80.0  # strength below which two classes without bounds are one
    momentum: float = 0.9
    averaged: float = 0.4  # part of the iterates: the last ones, whose mean is the model
    most_passes: int = 80
    fewest_passes: int = 12
    reach_per_pass: float = 20.0
    many_entries: float = 4e7  # of a table, beyond which passes are fewer by a root
    few_rows: float = 1e5  # up to which passes take no time,
    much: float = 1e5  # and are more from this strength on,
    much_sparse: float = 3e3
    most_passes_of_few_rows: float = 500.0
    # How far all passes go, in units of the strength: less by this power of it.
    reach: float = 5.0
    reach_strength: float = 40.0
    reach_power: float = 0.5
    most_reach: float = 10.0
    least_reach: float = 0.4
    least_reach_sparse: float = 1.0
    # Clips in units of the length of rows, by the strength for each coefficient; beyond the strong
    # one, where noise is nothing, in proportion.
    clip: float = 0.12
    clip_strength: float = 16.0
    clip_power: float = 0.7
    most_clip: float = 0.5
    strong: float = 4000.0
    clip_sparse: float = 0.6  # times that of other rows
    shorter_steps: float = 3.5  # power of the clip by which steps are shorter where less is clipped
    # The same for targets that are numbers, whose noise counts and not only their order.
    reach_of_numbers: float = 0.5
    fewest_passes_of_numbers: int = 20
    clip_of_numbers: float = 0.3
    clip_power_of_numbers: float = 0.75
    most_clip_of_numbers: float = 10.0
    curvature: float = 0.3  # of losses of numbers along standardised columns, about
    # And for counts, in units of what they spread by: by the root of the strength.
    clip_strength_of_counts: float = 100.0
    least_clip_of_counts: float = 0.3
    least_clip_of_rare_counts: float = 0.5
    most_clip_of_counts: float = 100.0
    constant_sparse: float = 0.25  # that sparse rows end with, in lengths of rows, up to 1


@dataclass(frozen=True, slots=True)
class GradientFinalRules:
    """Final steps after passes along whole gradients, fitted as their rules."""

    unsure: tuple[float, float] = (70.0, 2000.0)  # strengths between which gains are released
    most_for_gains: float = 0.12  # of the budget, for gains over either class
    gains: float = 170.0  # strength by which it is less
    sure: float = 1.5  # standard deviations of their noise that gains must exceed,
    overfit: float = 0.3  # and roots of columns by records
    rescaling: float = 0.1  # of the budget of a model of numbers
    shrinkage_of_counts: float = 1.0  # noise of slopes counts so many times


@dataclass(frozen=True, slots=True)
class LevelRules:
    """The mean of a model of counts, fitted by ``python -m benchmarks poisson``."""

    share: float = 0.1  # of the budget of the model
    predicted: float = 2.0  # logarithm of the largest prediction, in spreads of logarithms
    counted: float = 4.0  # the largest count, in scales above the mean
    much: float = 2000.0  # strength from which limits are farther, by its root
    known: float = 40.0  # error of the released mean in scales: of its noise, times the strength,
    cut: float = 0.1  # and of what its limits cut off
    missed: float = 0.1  # error of what passes find, in scales
    least_predicted: float = 0.3
    least_counted: float = 0.1


@dataclass(frozen=True, slots=True)
class RowRules:
    """Spreads of columns of whole rows in halves of public bounds, fitted as their gradients."""

    guessed: float = 0.5
    guessed_sparse: float = 0.25  # where nearly all is 0
    least: float = 0.02
    shrinkage: float = 2.0  # noise counts so many times where columns are told apart


@dataclass(frozen=True, slots=True)
class TargetRules:
    """When a target is hidden, in scales, fitted by ``python -m benchmarks hidden_target``."""

    hidden: float = 0.25  # noise of its mean by which a target within wide bounds is hidden,
    hidden_in_tight_bounds: float = 0.3
    wide: float = 2.0  # bounds are wide from so many times ±3 scales on
    noisy: float = 0.15  # noise of a location that is worth a warning
    least_mean: float = 1.0 / 16.0  # of counts: by Markov, 1/14 of the quantile of 13/14


COORDINATE, COORDINATE_FINAL, SHARES = CoordinateRules(), CoordinateFinalRules(), ShareRules()
MOMENTS, GRADIENT, GRADIENT_FINAL = MomentsRules(), GradientRules(), GradientFinalRules()
LEVEL, ROWS, TARGET = LevelRules(), RowRules(), TargetRules()


def is_normal(noise: Any, delta: Any) -> bool:
    """Return True if the noise is normal, or may be."""
    normal = isinstance(noise, str) and (noise in CHOICES or noise.endswith("_gaussian"))
    return normal and isinstance(delta, Real) and float(delta) > 0.0


def asks_for_coordinate(settings: Settings) -> bool:
    """Return True if a parameter is set that only coordinate descent has."""
    given = settings.clip, settings.budget_growth, settings.error_weights
    return not all(isinstance(one, str) for one in given) or settings.error_weights == "uniform"


def asks_for_descent(settings: Settings) -> bool:
    """Return True if a parameter is set that second moments do not have."""
    passes = not isinstance(settings.n_passes, str)
    return passes or asks_for_coordinate(settings) or settings.noise not in MOMENT_NOISES


@dataclass(frozen=True, slots=True)
class CoordinateDefaults:
    """Settings that "auto" stands for in coordinate descent."""

    n_passes: int
    clip: float  # bound on one record's gradient, in standard units
    budget_growth: float
    relaxation: float  # step size in units of 1/M_j


def choose_defaults(noise_level: float, loss: Loss) -> CoordinateDefaults:
    """Return the settings of coordinate descent for a noise level and a loss."""
    rules, level = COORDINATE, noise_level * loss.tail
    passes = rules.most_passes * min(1.0, (rules.passes_level / level) ** rules.passes_power)
    clip = rules.clip * loss.tail * min(1.0, (rules.clip_level / level) ** rules.clip_power)
    relaxation = loss.looseness if level < rules.long_step_level else 1.0
    n_passes = max(rules.fewest_passes, round(passes))
    return CoordinateDefaults(n_passes, clip, rules.budget_growth, relaxation)


def choose_row_norm(n_columns: int, longest: float, noise_level: Callable[[float], float]) -> float:
    """Return the radius of the ball for rows of standardised columns."""
    # The noise grows with the square of the radius, and rows beyond it lose weight, not their
    # linear relation: so it is somewhat less than the length of a typical row, the root of the
    # number of columns, unless there is so little noise that even rare rows can be kept whole.
    rules = MOMENTS
    radius = rules.radius * np.sqrt(n_columns)
    wider = (rules.quiet_radius / max(noise_level(radius), 1e-30)) ** rules.radius_power
    return float(min(radius * max(1.0, wider), longest))


def prefers_moments(noise_level: float, reach: np.ndarray) -> bool:
    """Return True if second moments, with this much noise, are expected to beat descent."""
    # Private descent averages its noise and stops early, which suits much noise. But where public
    # bounds `reach` far beyond ±3 scales it has larger units, for the sake of few values that are
    # far from all others, and its passes are too few for all columns. Without features there is
    # only a mean to find, which rows shrunk into a ball would bias.
    return bool(reach.size) and noise_level < MOMENTS.preferred * float(np.mean(reach**2))


def scaling_share(noise_level: float | None = 0.0) -> float:
    """Return the share of private locations and scales; of None, within public bounds."""
    rules = SHARES
    if noise_level is None:
        return rules.scaling_within_bounds
    more = max(1.0, noise_level / rules.scaling_level) ** rules.scaling_power
    return rules.scaling * float(min(rules.most_scaling, more))


def second_look(loss: Loss) -> float:
    """Return the share of the rest for a second look at a target that seems constant."""
    # There is one for losses with long tails only: their targets may be nearly all alike.
    return SHARES.second_look if loss.tail > 1.0 else 0.0


def class_share(strength: float, order: float) -> float:
    """Return the share of the numbers of records of each class."""
    # A record that is replaced changes two counts: by 2 in sum, by the root of 2 in squares.
    rules = SHARES
    needed = rules.classes * 2.0 ** (1.0 / order)
    return float(min(rules.most_classes, max(rules.least_classes, (needed / strength) ** order)))


def residual_share(strength: float, order: float) -> float:
    """Return the part of the model's budget for its mean residual; 0 where that tells nothing."""
    rules, kind = SHARES, int(order) - 1
    if (rules.useless_residuals / strength) ** order > rules.useless_share:
        return 0.0
    wanted = max(rules.least_residuals, (rules.residuals[kind] / strength) ** order)
    return float(min(rules.most_residuals[kind], wanted))


def gain_share(strength: float, order: float) -> float:
    """Return the part of the model's budget for what labels gain over the largest class."""
    rules = SHARES
    return float(min(rules.most_gain, max(rules.least_gain, (rules.gain / strength) ** order)))


def row_share(n_columns: int, strength: float) -> float:
    """Return the share of the mean of rows within bounds; 0 where its noise would be too large."""
    # A row is as long as the root of the number of columns at most, and may turn round.
    noise = 2.0 * np.sqrt(n_columns / SHARES.rows) / strength
    return SHARES.rows if noise <= 1.0 else 0.0


def kept(energy: float, noise: float, shrinkage: float) -> float:
    r"""Return the part of slopes that is kept: the positive-part estimator of James and Stein.

    .. math:: k = \max\Bigl(0, 1 - \frac{c N}{E}\Bigr)
    """
    # E is the sum of squares, N what is expected of it from noise alone; c is more than 1, since E
    # varies by √{2/d} of N around N if d slopes are nothing but noise.
    return max(0.0, 1.0 - shrinkage * noise / energy) if energy > 0.0 else 0.0


def path_alpha(noise_level: float, n_features: int) -> float:
    """Return the penalty of a lasso that keeps out most coefficients that are noise."""
    # The noise of one moment is about κ / √{p + 1}, and the largest of p of them about √{2 log p}
    # times that.
    p = max(n_features, 1)
    return float(noise_level * np.sqrt(2.0 * np.log(p + 1.0) / (p + 1.0)))


def choose_gradients(
    settings: Settings,
    strength: float,
    sizes: tuple[float, float],
    shape: tuple[int, int],
    n_samples: float,
    sparse: bool,
) -> tuple[int, float, float]:
    """Return passes, the clip C and how far they go, by the sizes of typical rows and slopes."""
    rules, loss, (length, size) = GRADIENT, settings.loss, sizes
    per_coordinate = strength / math.sqrt(math.prod(shape)) / length
    more = max(1.0, per_coordinate / rules.clip_strength)
    part = min(rules.clip * more**rules.clip_power, rules.most_clip)
    part = max(part, rules.most_clip * per_coordinate / rules.strong, loss.whole)
    part *= rules.clip_sparse if sparse else 1.0
    far = rules.reach * (rules.reach_strength / strength) ** rules.reach_power
    # Rows that are not centred have moments with one large eigenvalue and many small ones.
    least = rules.least_reach_sparse if sparse else rules.least_reach
    reach, fewest = min(max(far, least), rules.most_reach) * strength, rules.fewest_passes
    if loss in (SQUARED, POISSON):  # judged by their noise, not by their order
        reach = rules.reach_of_numbers * strength * math.sqrt(size)
        fewest = rules.fewest_passes_of_numbers
    if loss is SQUARED:
        part = rules.clip_of_numbers * more**rules.clip_power_of_numbers
        part = min(part, rules.most_clip_of_numbers)
    if loss is POISSON:
        ordinary = math.sqrt(per_coordinate / rules.clip_strength_of_counts)
        least = max(rules.least_clip_of_counts, rules.least_clip_of_rare_counts * size)
        part = min(max(ordinary, least), rules.most_clip_of_counts) * size
    if not isinstance(settings.n_passes, str):
        return int(settings.n_passes), part * length, reach
    most = most_passes(strength, n_samples, shape[1], sparse)
    return round(max(min(reach / rules.reach_per_pass, most), fewest)), part * length, reach


def most_passes(strength: float, n_samples: float, n_columns: int, sparse: bool) -> float:
    """Return how many passes there are at most, so that they take not too long."""
    rules = GRADIENT
    most = float(rules.most_passes)
    if n_samples <= rules.few_rows:
        much = rules.much_sparse if sparse else rules.much
        more = max(1.0, strength / much) ** 0.5
        most = min(rules.most_passes * more, rules.most_passes_of_few_rows)
    # How many entries sparse rows have is not public: the root is as good a guess as any.
    per_row = math.sqrt(n_columns) if sparse else n_columns
    return most * min(1.0, math.sqrt(rules.many_entries / (n_samples * per_row)))


def share_of_gains(settings: Settings, strength: float, weighted: bool) -> float:
    """Return the part of the model's budget for what labels gain over either of two classes."""
    rules = GRADIENT_FINAL
    low, high = rules.unsure
    alike = settings.loss is LOGISTIC and settings.fit_intercept and not weighted
    if not (alike and low <= strength < high):
        return 0.0
    return min(rules.most_for_gains, (rules.gains / strength) ** 2)
