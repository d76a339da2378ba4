r"""The level of a model of rates: what brings its mean prediction to the mean of the counts.

Whole gradients are clipped, those of large counts most, so that passes find a mean that is too
small. After them two sums over the records are released together,

.. math:: \sum_i \Bigl(\min\Bigl(1, \frac{e^{s_i}}{u}\Bigr),
          \min\Bigl(1, \frac{y_i}{m v}\Bigr)\Bigr),

with s_i the linear function of the finished model and u and v the largest values that count, by
released numbers. Both entries are in [0, 1]: a record moves them by √2 in Euclidean norm at most,
under both adjacencies. The intercept moves by the logarithm of their ratio, times the part of it
that is likely to be more than noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from skdpnoise.accounting import Account
from skdpnoise.data.table import in_units
from skdpnoise.kernels.links import exponential_mean
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._descent import linear_functions
from skdpnoise.linear_model._records import Problem
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.privacy import GaussianLoss, LossBudget
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import GroupedProfile

__all__ = ["LEVEL", "LevelPlan", "plan_level"]

LEVEL = 0.1  # of the budget of a model of counts, for its level
# The largest prediction that counts, as a power of e for each unit of the spread of logarithms, and
# the largest count, in scales above the mean; more by the root of μ n from this one on.
_PREDICTED, _COUNTED, _MUCH = 2.0, 4.0, 2000.0
# Error of the released mean, in scales: of its noise, times μ n, and of what its limits cut off;
# and that of what passes find, since large counts are clipped.
_KNOWN, _CUT, _MISSED = 40.0, 0.1, 0.1
_LEAST_PREDICTED, _LEAST_COUNTED = 0.3, 0.1  # of the means, in units of the released mean
_BLOCK = 4096  # rows whose predictions are held at once


@dataclass(frozen=True, slots=True, eq=False)
class LevelPlan:
    """What is released of the level, fixed before the data are used."""

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
        """How much of the counts' mean is taken from here: it is what they are units of, too."""
        return float(self.error**2 / (self.error**2 + self.noise[1] ** 2))

    def doubt(self, predicted: float) -> float:
        """Return the variance of how far the intercept is to move, for such a limit."""
        rate = predicted / self.farther * float(self.noise[0])
        return rate**2 + self.believed * float(self.noise[1]) ** 2

    def charge(self, account: Account) -> None:
        """Charge for the level."""
        account.charge("level", self.mechanism)

    def draw(self, rng: RandomWords) -> np.ndarray:
        """Return the noise of both sums, in grid steps."""
        return np.asarray(self.mechanism.sample(rng)[0])

    def moved(
        self, model: np.ndarray, spread: np.ndarray, problem: Problem, draws: np.ndarray
    ) -> float:
        """Return how far the intercept of a model moves, of columns of such deviations."""
        predicted = self.farther * math.exp(
            min(_PREDICTED * float(np.linalg.norm(model[:, :-1] * spread)), 40.0)
        )
        unit = float(self.mechanism.grid_size[0])
        step = partial(_rates_and_counts, model, predicted, self.counted, unit)
        steps = problem.total(step, "level", n_rows=_BLOCK)
        noisy = in_units(plus_noise(self.mechanism, steps, draws), unit) / self.n_samples
        counted = 1.0 + self.believed * (self.counted * float(noisy[1]) - 1.0)
        mean = max(predicted * float(noisy[0]), _LEAST_PREDICTED)
        kept = self.missed**2 / (self.missed**2 + self.doubt(predicted))
        return kept * math.log(max(counted, _LEAST_COUNTED) / mean)


def _rates_and_counts(
    model: np.ndarray, predicted: float, counted: float, unit: float, problem: Problem
) -> np.ndarray:
    """Return the sums of predictions and of counts, both up to their limits, in grid steps."""
    rates = exponential_mean(linear_functions(model, problem)[0]) / predicted
    counts = problem.target(problem.data.outputs)[0] / counted
    parts = np.stack([np.fmin(rates, 1.0), np.fmin(counts, 1.0)])
    return np.asarray(np.rint(parts / unit).astype(np.int64).sum(axis=1))


def plan_level(
    budget: Budget, left: LossBudget, strength: float, n_samples: float, spread: float
) -> LevelPlan | None:
    """Return the release of a level of this spread, None where its noise is more than it mends."""
    profile = GroupedProfile([math.sqrt(2.0)], np.zeros(2))
    farther = math.sqrt(max(1.0, strength / _MUCH))
    counted = farther * (1.0 + _COUNTED * spread)
    error, missed = math.hypot(_KNOWN / strength, _CUT) * spread, _MISSED * spread
    if budget.counting:  # sums are divided by a number of records that is noisy
        share = budget.total.share(budget.counting)
        assert isinstance(share, GaussianLoss)
        error = math.hypot(error, 1.0 / (share.mu * n_samples))
    mechanism = calibrate(budget.noise, profile, left)
    plan = LevelPlan(mechanism, n_samples, farther, counted, error, missed)
    return plan if plan.doubt(farther) < missed**2 else None
