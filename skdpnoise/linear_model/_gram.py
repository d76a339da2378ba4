"""Second moments of bounded rows: planned on public facts, released once, solved for any penalty.

.. math:: G = \\frac1n \\Bigl(\\sum_i z_i z_i^\\top + E\\Bigr), \\qquad z = (x, y, 1)

with x and y standardised, clipped to ±3 and shrunk, the constant included, into a ball of radius R.
Shrinking a whole row is weighting it: a linear function that holds for the record still holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._defaults import choose_row_norm
from skdpnoise.linear_model._pseudo_data import PseudoData, make_pseudo_data
from skdpnoise.linear_model._scaling import LIMIT, Standardisation
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

__all__ = ["GRAM_NOISES", "GramPlan", "check_gram", "plan_gram", "release_pseudo_data"]

# The same family buys locations and scales, so it must be one for vectors too.
GRAM_NOISES = [noise for noise in noise_options(adaptive=True) if noise in SECOND_MOMENT_NOISES]


@dataclass(frozen=True, slots=True, eq=False)
class GramPlan:
    """Everything about the release that is fixed before the data are used.

    Parameters
    ----------
    mechanism : SymmetricMatrixMechanism or None
        Noise of the second moments of features, target and, with an intercept, the constant; None
        where there is nothing to fit.
    columns : Standardisation
        Of the features and, last, the target; those that are used make the rows.
    constant : int
        1 if rows end with the constant 1, else 0.
    n_samples : float
        Divisor: the number of records, or the private count.
    """

    mechanism: SymmetricMatrixMechanism | None
    columns: Standardisation
    constant: int
    n_samples: float

    @property
    def noise_level(self) -> float:
        """κ, the root mean square singular value of the noise in the predictors' moments."""
        if self.mechanism is None:
            return 0.0
        target = int(np.count_nonzero(self.columns.used)) - 1
        deviation = np.delete(np.delete(self.mechanism.standard_deviation, target, 0), target, 1)
        if deviation.size == 0:
            return 0.0
        return float(np.linalg.norm(deviation)) / np.sqrt(len(deviation)) / self.n_samples

    def charge(self, account: Account) -> None:
        """Charge for the second moments."""
        if self.mechanism is not None:
            account.charge("second moments", self.mechanism)

    def draw(self, words: RandomWords) -> np.ndarray:
        """Return the noise, in quanta, shape (n_columns, n_columns), symmetric."""
        if self.mechanism is None:
            return np.zeros((0, 0), dtype=np.int64)
        return self.mechanism.sample(words)


def plan_gram(
    estimator: Any, columns: Standardisation, n_samples: float, budget: Budget
) -> GramPlan:
    """Choose the ball of the rows and calibrate the noise of their second moments.

    Parameters
    ----------
    estimator : DPCoordinateDescentRegressor or DPLassoPath
        Its parameters.
    columns : Standardisation
        Of the features and, last, the target.
    n_samples : float
        Number of records, public or paid for.
    budget : Budget
        What there is.
    """
    constant, used = int(estimator.fit_intercept), columns.used
    if not used[-1] or not (used[:-1].any() or constant):
        return GramPlan(None, columns, constant, n_samples)
    limits = np.append(columns.limit[used], np.ones(constant))
    longest = float(np.linalg.norm(limits))
    # "auto" stays within the kind of budget, pure or Gaussian, that was chosen for the whole fit.
    noise = estimator.noise if estimator.noise in CHOICES else budget.noise

    def plan(row_norm: float) -> GramPlan:
        bounds = RowBounds(limits.size, row_norm, columns=limits)
        mechanism = calibrate_second_moments(noise, bounds, budget.model, estimator.adjacency)
        return GramPlan(mechanism, columns, constant, n_samples)

    if estimator.row_norm != "auto":
        return plan(min(float(estimator.row_norm), longest))
    return plan(choose_row_norm(limits.size, longest, lambda radius: plan(radius).noise_level))


def check_gram(estimator: Any, n_features: int, budget: Budget) -> None:
    """Raise what planning would raise, before anything is spent or the data are used."""
    if estimator.noise not in GRAM_NOISES:
        raise ValueError(
            f"The 'noise' parameter of {type(estimator).__name__} must be one of {GRAM_NOISES} "
            f"with solver='gram'. Got {estimator.noise!r} instead. solver='gradient' takes it."
        )
    ones = np.ones(n_features + 1)
    columns = Standardisation(0.0 * ones, ones, ones > 0.0, LIMIT * ones)
    plan_gram(estimator, columns, 1.0, budget.least)


def release_pseudo_data(
    estimator: Any, X: np.ndarray, y: np.ndarray, plan: GramPlan, noise: np.ndarray
) -> PseudoData:
    """Release the noisy mean second moments, in standard units, as data that have them.

    The sums are exact integers, and the integer noise is added to them: the order of the records,
    memory layout and threads do not change a bit of the result.
    """
    mechanism, columns, used = plan.mechanism, plan.columns, plan.columns.used[:-1]
    if mechanism is None:
        return make_pseudo_data(np.zeros((1, 1)), used & False, 0.0)
    constant = np.ones(plan.constant)
    moments = second_moments(
        X if used.all() else X[:, used],
        targets=np.column_stack([y, np.ones((len(y), plan.constant))]),
        center=np.append(columns.center[columns.used], 0.0 * constant),
        scale=np.append(columns.scale[columns.used], constant),
        row_quantum=mechanism.row_quantum,
        norm=mechanism.row_bounds.norm,
        columns=mechanism.row_bounds.columns,
        l1_norm=mechanism.row_bounds.l1_norm,
        n_threads=effective_n_jobs(estimator.n_jobs),
    )
    noisy = plus_noise(mechanism, moments, noise) * mechanism.quantum / plan.n_samples
    return make_pseudo_data(noisy, used, plan.noise_level)
