"""Second moments of bounded rows: planned on public facts, released once, solved for any penalty.

.. math:: G = \\frac1n \\Bigl(\\sum_i z_i z_i^\\top + E\\Bigr), \\qquad z = (x, y, 1)

with x and y standardised, clipped to ±3 and shrunk, the constant included, into a ball of radius R.
Shrinking a row equals giving it a smaller weight, so an exact linear relation survives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs

from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._defaults import choose_row_norm
from skdpnoise.linear_model._pseudo_data import PseudoData, make_pseudo_data
from skdpnoise.linear_model._records import Problem
from skdpnoise.linear_model._scaling import LIMIT, Standardisation
from skdpnoise.linear_model._settings import Settings
from skdpnoise.mechanisms import noise_options
from skdpnoise.mechanisms.matrices.calibrate import (
    SECOND_MOMENT_NOISES,
    SymmetricMatrixMechanism,
    calibrate_second_moments,
)
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity.second_moments import RowBounds
from skdpnoise.solvers.second_moments import second_moments

__all__ = ["GRAM_NOISES", "GramPlan", "check_gram", "plan_gram"]

# The same family buys locations and scales, so it must be one for vectors too.
GRAM_NOISES = [noise for noise in noise_options(adaptive=True) if noise in SECOND_MOMENT_NOISES]


@dataclass(frozen=True, slots=True, eq=False)
class GramPlan:
    """Everything about the release that is fixed before the data are used."""

    # Of the second moments of features, target and, with an intercept, the constant.
    mechanism: SymmetricMatrixMechanism | None  # None where there is nothing to fit
    columns: Standardisation  # of the features and, last, the target; those used make the rows
    constant: int  # 1 if rows end with the constant 1, else 0
    n_samples: float  # the divisor: the number of records, public or estimated privately
    n_passes = 1  # to callbacks

    @property
    def noise_level(self) -> float:
        """κ, the root mean square singular value of the noise in the predictors' moments."""
        if self.mechanism is None:
            return 0.0
        target = int(np.count_nonzero(self.columns.used)) - 1
        deviation = np.delete(np.delete(self.mechanism.standard_deviation, target, 0), target, 1)
        if deviation.size == 0:
            return 0.0
        return float(np.linalg.norm(deviation) / np.sqrt(len(deviation)) / self.n_samples)

    def charge(self, account: Account) -> None:
        """Charge for the second moments."""
        if self.mechanism is not None:
            account.charge("second moments", self.mechanism)

    def draw(self, rng: RandomWords) -> np.ndarray:
        """Return the noise, in grid steps, shape (n_columns, n_columns), symmetric."""
        if self.mechanism is None:
            return np.zeros((0, 0), dtype=np.int64)
        return self.mechanism.sample(rng)

    def penalty(self, settings: Settings) -> tuple[float, float]:
        """Return strength and mix of the penalty; "auto" is a ridge of half the noise level."""
        if isinstance(settings.alpha, str):
            return 0.5 * self.noise_level, 0.0
        return settings.alpha, settings.l1_ratio

    def standardised(self, problem: Problem) -> Problem:
        """Return the problem with limits on what is far from the rest of its column."""
        return replace(problem, features=problem.features.capped())

    def passes(
        self, settings: Settings, problem: Problem, draws: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the only model, of shape (1, n_features + 1), in standard units."""
        alpha, l1_ratio = self.penalty(settings)
        yield self.release(settings, problem, draws).solve([alpha], l1_ratio)

    def finish(self, path: np.ndarray, problem: Problem, draws: np.ndarray) -> np.ndarray:
        """Return the models as they are."""
        return path

    @staticmethod
    def averaged(path: np.ndarray) -> np.ndarray:
        """Return the only model."""
        return np.asarray(path[-1])

    def release(self, settings: Settings, problem: Problem, noise: np.ndarray) -> PseudoData:
        """Release the noisy mean second moments, in standard units, as data that have them."""
        # The sums are exact integers, and the integer noise is added to them: the order of the
        # records, memory layout and threads do not change a bit of the result.
        mechanism, columns, used = self.mechanism, self.columns, self.columns.used[:-1]
        if mechanism is None:
            return make_pseudo_data(np.zeros((1, 1)), used & False, 0.0)
        X, y, constant = problem.data.X, problem.data.y, np.ones(self.constant)
        moments = second_moments(
            X if used.all() else X[:, used],
            targets=np.column_stack([y, np.ones((len(y), self.constant))]),
            center=np.append(columns.center[columns.used], 0.0 * constant),
            scale=np.append(columns.scale[columns.used], constant),
            row_grid_size=mechanism.row_grid_size,
            norm=mechanism.row_bounds.norm,
            columns=mechanism.row_bounds.columns,
            l1_norm=mechanism.row_bounds.l1_norm,
            n_threads=effective_n_jobs(settings.n_jobs),
        )
        noisy = plus_noise(mechanism, moments, noise) * mechanism.grid_size / self.n_samples
        return make_pseudo_data(noisy, used, self.noise_level)


def plan_gram(
    settings: Settings, columns: Standardisation, n_samples: float, budget: Budget
) -> GramPlan:
    """Choose the ball of the rows and calibrate the noise of their second moments."""
    columns = columns.capped()
    constant, used = int(settings.fit_intercept), columns.used
    if not used[-1] or not (used[:-1].any() or constant):
        return GramPlan(None, columns, constant, n_samples)
    limits = np.append(columns.limit[used], np.ones(constant))
    longest = float(np.linalg.norm(limits))
    # "auto" stays within the kind of budget, pure or Gaussian, that was chosen for the whole fit.
    noise = settings.noise if settings.noise in CHOICES else budget.noise

    def plan(row_norm: float) -> GramPlan:
        bounds = RowBounds(limits.size, row_norm, columns=limits)
        mechanism = calibrate_second_moments(noise, bounds, budget.model, budget.adjacency)
        return GramPlan(mechanism, columns, constant, n_samples)

    if not isinstance(settings.row_norm, str):
        return plan(min(float(settings.row_norm), longest))
    return plan(choose_row_norm(limits.size, longest, lambda radius: plan(radius).noise_level))


def check_gram(settings: Settings, n_features: int, budget: Budget) -> None:
    """Raise what planning would raise, before anything is spent or the data are used."""
    if settings.noise not in GRAM_NOISES:
        raise ValueError(
            f"The 'noise' parameter of {settings.owner} must be one of {GRAM_NOISES} "
            f"with solver='gram'. Got {settings.noise!r} instead. solver='gradient' takes it."
        )
    ones = np.ones(n_features + 1)
    columns = Standardisation(0.0 * ones, ones, ones > 0.0, LIMIT * ones)
    plan_gram(settings, columns, 1.0, budget.least)
