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

from skdpnoise.accounting.budget import BESIDE, HALF, LEAST
from skdpnoise.kernels import LOGISTIC, POISSON, SQUARED, Loss
from skdpnoise.linear_model._records import LinearSchema, Settings
from skdpnoise.mechanisms import SECOND_MOMENT_NOISES, noise_options
from skdpnoise.mechanisms.requests import CHOICES, budget_of
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, PureLoss

# Noises of second moments. The same family finds locations and scales, so that it must be one for
# vectors too.
MOMENT_NOISES = [one for one in noise_options(adaptive=True) if one in SECOND_MOMENT_NOISES]


@dataclass(frozen=True, slots=True)
class CoordinateRules:
    """Passes, clips and steps of coordinate descent, fitted by ``python -m benchmarks rules``."""

    # Its data sets over noise levels, where a grid of passes and clips stands beside them.

    most_passes: int = 20
    clip: float = 0.8  # in standard units, times the tail of the loss
    # Noise level up to which passes are most, clips whole and steps as long as the loss allows;
    # beyond it passes and clips fall with its root.
    quiet: float = 0.01
    budget_growth: float = 1.1  # ratio of the budgets of successive passes

    @property
    def reference_passes(self) -> int:
        """T_0: about as many as fits make."""
        return self.most_passes // 2


@dataclass(frozen=True, slots=True)
class ShareRules:
    """Parts of the budget before the passes and after them, by ``benchmarks hidden_target``."""

    # Its data sets, and those of `benchmarks many` for rows.

    # For locations and scales of columns without bounds: more in proportion to the noise of a
    # count by records, from that on at which coordinate descent makes fewer passes.
    scaling: float = 0.4
    most_scaling: float = 0.64
    counted: float = (
        60.0  # strength of counts: of the classes, and of what labels gain over the largest
    )
    told: float = 150.0  # strength of sums that tell of what passes found


@dataclass(frozen=True, slots=True)
class MomentsRules:
    """Radius and repair of second moments, fitted by ``python -m benchmarks gram``."""

    radius: float = 0.8  # of the ball, in roots of the number of columns
    # Noise level below which it is wider, by the root of the root; and up to which they are better
    # than descent, for columns of reach 1.
    quiet: float = 0.025


@dataclass(frozen=True, slots=True)
class GradientRules:
    """Passes, clips and steps along whole gradients, fitted by ``python -m benchmarks many``."""

    # On eight sets of labels, normal columns of five factors, California and diabetes, and hashed
    # words; counts by `benchmarks poisson` on randhie and counts of mean .05 to 50.

    many_columns: int = 60  # from which regressions clip whole gradients,
    # below this strength for each of them; below it in all, two classes without bounds are one.
    few_records: float = 70.0
    momentum: float = 0.9
    averaged: float = 0.4  # part of the iterates: the last ones, whose mean is the model
    most_passes: int = 80
    fewest_passes: int = 20
    reach_per_pass: float = 20.0
    many_entries: float = 4e7  # of a table, beyond which passes are fewer by a root
    much: float = 1e5  # strength from which passes are more, of no more rows: they take no time
    much_sparse: float = 3e3
    most_passes_of_few_rows: float = 500.0
    # How far all passes go, in units of the strength: far from it by a root, and least; and least
    # for sparse rows, which are not centred: one eigenvalue is large, and many are small.
    far: float = 1000.0
    least_reach: tuple[float, float] = (0.5, 1.0)
    # Clips in units of the length of rows, by a power of the strength for each coefficient; beyond
    # the strong one, where noise is nothing, in proportion.
    clip: float = 0.12
    clip_strength: float = 16.0
    clip_power: float = 0.7
    most_clip: float = 0.5
    strong: float = 4000.0
    shorter_steps: float = 3.5  # power of the clip by which steps are shorter where less is clipped
    # The same for targets that are numbers and for counts, in units of what they spread by: their
    # noise counts, and not only their order.
    clip_of_numbers: float = 0.3
    most_clip_of_numbers: float = 10.0
    clip_strength_of_counts: float = 100.0  # by the root of the strength
    curvature: float = 0.3  # of losses of numbers along standardised columns, about
    # What sparse rows end with, in lengths of rows, up to 1; and what their columns spread by.
    sparse: float = 0.25


@dataclass(frozen=True, slots=True)
class FinalRules:
    """Final steps of all descents, fitted by ``hidden_target``, ``many`` and ``poisson``."""

    off: float = 0.15  # error of intercepts that passes over clipped gradients find, in scales
    strong: float = 1000.0  # strength from which labels are no worse than those of one class
    bins: int = 6  # of the scores of two classes, over ±3 standard deviations
    few_labels: float = 8.0  # standard deviations of a score by which the largest class then leads
    least_kept: float = 0.02  # part of the slopes that is kept: scores put records in order still
    known: float = 40.0  # error of the released mean of counts, in scales, times its strength


@dataclass(frozen=True, slots=True)
class TargetRules:
    """When a target is hidden, fitted by ``python -m benchmarks hidden_target``."""

    hidden: float = 0.25  # noise of its mean, in scales


COORDINATE, SHARES, MOMENTS = CoordinateRules(), ShareRules(), MomentsRules()
GRADIENT, FINAL, TARGET = GradientRules(), FinalRules(), TargetRules()


def holds_rows(noise: Any, delta: Any) -> bool:
    """Return True if the noise may fit a ball of rows: normal, or pure by the norm of the ball."""
    if not (isinstance(noise, str) and isinstance(delta, Real)):
        return False
    return noise in CHOICES or (noise.endswith("_gaussian") and float(delta) > 0.0)


def asks_for_coordinate(settings: Settings) -> bool:
    """Return True if a parameter is set that only coordinate descent has."""
    given = settings.clip, settings.budget_growth, settings.error_weights
    return not all(isinstance(one, str) for one in given) or settings.error_weights == "uniform"


def asks_for_descent(settings: Settings) -> bool:
    """Return True if a parameter is set that second moments do not have."""
    passes = not isinstance(settings.n_passes, str)
    return passes or asks_for_coordinate(settings) or settings.noise not in MOMENT_NOISES


def prefers_gradient(settings: Settings, schema: LinearSchema) -> bool:
    rule, fits = GRADIENT, holds_rows(settings.noise, settings.delta)
    if not fits or asks_for_coordinate(settings):
        return False
    # How many records there are is public under replace-one alone.
    guarantee = PrivacyGuarantee(settings.epsilon, settings.delta)
    loss = budget_of(guarantee, pure=not settings.delta)
    assert loss is not None
    strength = ball_strength(loss, schema.n_rows or 0.0, schema.n_columns)
    if settings.loss is SQUARED:  # whose second moments would be noise, of so many columns
        moments = not asks_for_descent(settings) and isinstance(settings.row_norm, str)
        many = schema.n_columns >= rule.many_columns
        return moments and many and is_noisy(strength, schema.n_columns)
    if settings.loss is POISSON and not settings.delta:  # whose rates few passes do not find
        return False
    if settings.loss is not LOGISTIC or schema.n_rows is None or schema.n_outputs > 1:
        return True
    # Few records find no scales: then the largest class is hard to beat.
    return bool(np.isfinite(schema.bounds).all() or not strength < rule.few_records)


def is_noisy(strength: float, n_columns: int) -> bool:
    """Return True if noise is so much for each column that slopes are scaled as a whole."""
    return strength < GRADIENT.few_records * n_columns


@dataclass(frozen=True, slots=True)
class CoordinateDefaults:
    """Settings that "auto" stands for in coordinate descent."""

    n_passes: int
    clip: float  # bound on one record's gradient, in standard units
    budget_growth: float
    relaxation: float  # step size in units of 1/M_j


def choose_defaults(noise_level: float, loss: Loss) -> CoordinateDefaults:
    rules, level = COORDINATE, noise_level * loss.tail
    part = math.sqrt(min(1.0, rules.quiet / level))
    relaxation = loss.looseness if level < rules.quiet else 1.0
    n_passes = max(1, round(rules.most_passes * part))
    return CoordinateDefaults(
        n_passes, rules.clip * loss.tail * part, rules.budget_growth, relaxation
    )


def choose_row_norm(n_columns: int, longest: float, noise_level: Callable[[float], float]) -> float:
    """Return the radius of the ball for rows of standardised columns."""
    # The noise grows with the square of the radius, and rows beyond it lose weight, not their
    # linear relation: so it is somewhat less than the length of a typical row, the root of the
    # number of columns, unless there is so little noise that even rare rows can be kept whole.
    rules = MOMENTS
    radius = rules.radius * np.sqrt(n_columns)
    wider = np.sqrt(np.sqrt(rules.quiet / max(noise_level(radius), 1e-30)))
    return float(min(radius * max(1.0, wider), longest))


def prefers_moments(noise_level: float, reach: np.ndarray) -> bool:
    # Private descent averages its noise and stops early, which suits much noise. But where public
    # bounds `reach` far beyond ±3 scales it has larger units, for the sake of few values that are
    # far from all others, and its passes are too few for all columns. Without features there is
    # only a mean to find, which rows shrunk into a ball would bias.
    return bool(reach.size) and noise_level < MOMENTS.quiet * float(np.mean(reach**2))


def sure_gain(before: float, after: float, noise: float, n_samples: float) -> float:
    r"""Return what is left of a gain in mean squares, less what may be chance; no gain if negative.

    .. math:: g - 2 \sqrt{N^2 + 4 l g / n}
    """
    # The squares of residuals r and r - d differ by about 2 r d, and g is the mean square of d: of
    # n records the mean of 2 r d has a standard deviation of about 2 √{l g / n}.
    gain = before - after
    sampled = 4.0 * max(before, 0.0) * max(gain, 0.0) / n_samples
    return gain - 2.0 * math.hypot(noise, math.sqrt(sampled))


def scaling_share(noise_level: float) -> float:
    """Return the share of private locations and scales, by the noise of a count by records."""
    more = max(1.0, noise_level / COORDINATE.quiet)
    return min(SHARES.most_scaling, SHARES.scaling * more)


def class_share(strength: float, order: float) -> float:
    return _share(SHARES.counted / strength, order, 1.0 - BESIDE)


def gain_share(strength: float, order: float) -> float:
    """Return the part of the model's budget for what labels gain over the largest class."""
    return _share(SHARES.counted / strength, order, BESIDE)


def residual_share(strength: float, order: float) -> float:
    """Return the part of the model's budget for its mean residual; 0 where that tells nothing."""
    if (SHARES.counted / strength) ** order > HALF:
        return 0.0
    return _share(SHARES.told / strength, order, BESIDE ** (1.0 / order))


def level_share(strength: float, order: float) -> float:
    """Return the part of the model's budget for the quantile of what its slopes leave."""
    return _share(SHARES.told / strength, order, BESIDE ** (1.0 / order))


def _share(needed: float, order: float, most: float) -> float:
    """Return the share that gives a sum its strength, within ends."""
    return float(min(most, max(LEAST, needed**order)))


def ball_strength(loss: LossBudget, n_samples: float, n_coordinates: int) -> float:
    """Return the number of records by the noise of a sum of vectors of norm 1."""
    if isinstance(loss, PureLoss):  # noise whose norm is, on average, the number of coordinates
        return n_samples * loss.pure_epsilon / math.sqrt(n_coordinates + 1.0)
    return n_samples * loss.mu


def row_share(n_columns: int, strength: float, order: float) -> float:
    """Return the share of the mean of rows within bounds; 0 where its noise would be too large."""
    # A row is as long as the root of the number of columns at most, and may turn round.
    noise = 2.0 * np.sqrt(n_columns) / (BESIDE ** (1.0 / order) * strength)
    return BESIDE if noise <= 0.5 * order else 0.0


def kept(energy: float, noise: float, n_slopes: int) -> float:
    r"""Return the part of slopes that is kept: the positive-part estimator of James and Stein.

    .. math:: k = \max\Bigl(0, 1 - \frac{N}{E} \bigl(1 + \sqrt{2/d}\bigr)\Bigr)
    """
    # E is the sum of squares, N what is expected of it from noise alone, of which it varies by
    # √{2/d} if d slopes are nothing but noise.
    more = 1.0 + math.sqrt(2.0 / max(n_slopes, 1))
    return max(0.0, 1.0 - more * noise / energy) if energy > 0.0 else 0.0


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
    part = max(part, rules.most_clip * per_coordinate / rules.strong)
    reach = max(math.sqrt(rules.far / strength), rules.least_reach[sparse]) * strength
    if not loss.labels:  # judged by their noise, not by their order
        reach = rules.least_reach[0] * strength * math.sqrt(size)
        part = min(rules.clip_of_numbers * more**rules.clip_power, rules.most_clip_of_numbers)
    if loss is POISSON:
        ordinary = math.sqrt(per_coordinate / rules.clip_strength_of_counts)
        least = max(rules.clip_of_numbers, rules.most_clip * size)
        part = min(max(ordinary, least), rules.most_clip_of_numbers) * size
    if not isinstance(settings.n_passes, str):
        return int(settings.n_passes), part * length, reach
    most = most_passes(strength, n_samples, shape[1], sparse)
    return (
        round(max(min(reach / rules.reach_per_pass, most), rules.fewest_passes)),
        part * length,
        reach,
    )


def pure_passes(n_passes: int | str, per_slope: float, *, by_rows: bool) -> int:
    """Return the number of passes of pure noise, by n ε for each of the slopes."""
    # Costs add up, and noise has a norm in proportion to the number of slopes: of T passes each
    # has noise of about T d / (ε n) for d of them, so that T follows n ε / d. Clipped gradients
    # need a second pass to tell what classes have in common, and have less noise than rows.
    if not isinstance(n_passes, str):
        return int(n_passes)
    wanted = HALF * BESIDE * per_slope if by_rows else max(HALF * math.sqrt(per_slope), 2.0)
    return round(min(max(wanted, 1.0), GRADIENT.fewest_passes))


def most_passes(strength: float, n_samples: float, n_columns: int, sparse: bool) -> float:
    """Return how many passes there are at most, so that they take not too long."""
    rules = GRADIENT
    most = float(rules.most_passes)
    if n_samples <= rules.much:
        much = rules.much_sparse if sparse else rules.much
        more = max(1.0, strength / much) ** 0.5
        most = min(rules.most_passes * more, rules.most_passes_of_few_rows)
    # How many entries sparse rows have is not public: the root is as good a guess as any.
    per_row = math.sqrt(n_columns) if sparse else n_columns
    return most * min(1.0, math.sqrt(rules.many_entries / (n_samples * per_row)))


def share_of_scores(strength: float, order: float, n_columns: int) -> float:
    """Return the part of the model's budget for counts of two classes by score."""
    # Without noise, and a clip, passes find the model itself: bins are coarser.
    if not GRADIENT.few_records <= strength < GRADIENT.strong * n_columns:
        return 0.0
    # What they tell is a sum of all of them.
    needed = SHARES.told * math.sqrt(2.0 * FINAL.bins) / strength
    return _share(needed, order, 2.0 * BESIDE / order)
