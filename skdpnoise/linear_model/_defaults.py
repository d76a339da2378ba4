r"""Data-independent choices for everything set to "auto".

Every rule is a function of one public number, the *noise level*

.. math:: \nu = T_0^{1/q - 1/2} \, \sigma_1 / n

with :math:`\sigma_1` the standard deviation of the noise on the sum of one coordinate's gradients
in a run of one pass with clip 1, q the order in which the family's costs add, and T_0 = 10. A run
of T passes with clip C then has noise of about :math:`\nu C \sqrt T` on every mean gradient.
``python -m benchmarks rules`` shows how far from the best of a grid the rules are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdpnoise.kernels import Loss

# Of the budget, but for the number of records, for the search for a target without bounds: without
# it there is no model at all.
LEAST_SEARCHING, MOST_SEARCHING = 0.03, 0.9
MOST_BEFORE_LOOK = 0.5  # that a search may have taken where a second look may still find something
# Of the rest for the classes, and of the model's for what is released after it.
LEAST_CLASSES, LEAST_LAST = 0.01, 1e-5
CENTRING = 0.1  # for the mean of rows within bounds, before gradients of all columns at once
FOR_WEIGHTS = 0.1  # most of the budget, for the numbers of records that balanced classes ask for
REFERENCE_PASSES = 10
MOST_PASSES = 20  # that "auto" stands for


def scaling_share(noise_level: float | None = 0.0) -> float:
    """Share of the budget that goes to private locations and scales."""
    if noise_level is None:
        return 0.14
    return 0.4 * float(min(1.6, max(1.0, noise_level / 0.01) ** 0.75))


def second_look(loss: Loss) -> float:
    """Return the share of the rest for a second look at a target that seems constant."""
    # There is one for losses with long tails only: their targets may be nearly all alike.
    return 0.2 if loss.tail > 1.0 else 0.0


@dataclass(frozen=True, slots=True)
class Defaults:
    """What "auto" stands for."""

    n_passes: int  # passes over the coordinates
    clip: float  # bound on one record's gradient, in standardised units
    budget_growth: float  # ratio of the budgets of successive passes
    relaxation: float  # step size in units of 1/M_j


def choose_defaults(noise_level: float, loss: Loss) -> Defaults:
    """Return the defaults for a noise level and a loss."""
    noise_level *= loss.tail
    n_passes = round(MOST_PASSES * min(1.0, (0.016 / noise_level) ** 0.6))
    clip = 0.8 * loss.tail * min(1.0, (0.008 / noise_level) ** 0.5)
    relaxation = loss.looseness if noise_level < 0.006 else 1.0
    return Defaults(max(2, n_passes), clip, 1.1, relaxation)


def choose_row_norm(n_columns: int, longest: float, noise_level: Callable[[float], float]) -> float:
    """Return the radius of the ball for rows of standardised columns."""
    # The noise grows with the square of the radius, and rows beyond it lose weight, not their
    # linear relation: so it is somewhat less than the length of a typical row, the root of the
    # number of columns, unless there is so little noise that even rare rows can be kept whole.
    radius = 0.8 * np.sqrt(n_columns)
    wider = (0.03 / max(noise_level(radius), 1e-30)) ** 0.25
    return float(min(radius * max(1.0, wider), longest))


def prefers_gram(noise_level: float, reach: np.ndarray) -> bool:
    """Whether second moments, with this much noise, are expected to beat private gradients."""
    # Private descent averages its noise and stops early, which suits much noise. But where public
    # bounds `reach` far beyond ±3 scales it has larger units, for the sake of few values that are
    # far from all others, and its passes are too few for all columns. Without features there is
    # only a mean to find, which rows shrunk into a ball would bias.
    return bool(reach.size) and noise_level < 0.025 * float(np.mean(reach**2))


def class_share(strength: float, order: float) -> float:
    """Share of the budget for the numbers of records of each class."""
    # A record that is replaced changes two counts: by 2 in sum, by the root of 2 in squares.
    needed = 42.0 * 2.0 ** (1.0 / order)
    return float(min(0.75, max(LEAST_CLASSES, (needed / strength) ** order)))


def residual_share(strength: float, order: float) -> float:
    """Share of the model's budget for the mean of its residuals; 0 where that tells nothing."""
    if (60.0 / strength) ** order > 0.5:
        return 0.0
    most, needed = (0.12, 100.0) if order == 1.0 else (0.3, 200.0)
    return float(min(most, max(0.01, (needed / strength) ** order)))


def gain_share(strength: float, order: float) -> float:
    """Return the share of the model's budget for what a classifier gains over the largest class."""
    return float(min(0.12, max(LEAST_LAST, (60.0 / strength) ** order)))


def kept(energy: float, noise: float, doubt: float) -> float:
    r"""Return the part of slopes that is kept: the positive-part estimator of James and Stein.

    .. math:: k = \max\Bigl(0, 1 - \frac{c N}{E}\Bigr)
    """
    # E is the sum of squares, N what is expected of it from noise alone, and c the doubt: more than
    # 1, since E varies by √{2/d} of N around N if d slopes are nothing but noise.
    return max(0.0, 1.0 - doubt * noise / energy) if energy > 0.0 else 0.0


def centring_share(n_columns: int, strength: float) -> float:
    """Return the share for the mean of rows within bounds; 0 where its noise would be too large."""
    # A row is as long as the root of the number of columns at most, and may turn round.
    noise = 2.0 * np.sqrt(n_columns / CENTRING) / strength
    return CENTRING if noise <= 1.0 else 0.0


def path_alpha(noise_level: float, n_features: int) -> float:
    """Return the penalty of a lasso that keeps out most coefficients that are noise."""
    # The noise of one moment is about κ / √{p + 1}, and the largest of p of them about √{2 log p}
    # times that.
    p = max(n_features, 1)
    return float(noise_level * np.sqrt(2.0 * np.log(p + 1.0) / (p + 1.0)))
