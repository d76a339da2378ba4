"""The private descent of a linear model: planned on public facts, then run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skdpnoise.estimators.parameters import check_memory, number_vector
from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._defaults import (
    MOST_PASSES,
    REFERENCE_PASSES,
    choose_defaults,
    gain_share,
    residual_share,
)
from skdpnoise.linear_model._scaling import LIMIT, Standardisation
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.privacy import PureLoss
from skdpnoise.queries.searched_location import count_strength, mean_reach
from skdpnoise.sampling import RandomWords, permutation
from skdpnoise.sampling.observer import adder
from skdpnoise.sensitivity import clipped_gradient, clipped_sum
from skdpnoise.solvers import LOGISTIC, SQUARED, Loss, coordinate_descent

__all__ = [
    "DescentPlan",
    "check_plan",
    "error_weights",
    "plan_descent",
    "run_descent",
]

_LARGEST_GROWTH = math.log(1e6)  # of the budget from the first pass to the last
_RESIDUAL_REACH = 3.0  # scales that residuals of a model are clipped to
_MANY = 2.0**30  # records, at which "auto" makes the most passes
_COPIES = 8  # of one number for each pass, output and coordinate that are held at once
_LAST = {SQUARED.name: "residuals", LOGISTIC.name: "gain over the largest class"}
# A classifier may be worse than the largest class if its scores have this variance from noise, or
# if records are fewer, in standard deviations of the noise of a count: then scales may be off.
_NOISY, _STRONG = 0.01, 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class DescentPlan:
    """Everything about a descent that is fixed before the data are used.

    Parameters
    ----------
    mechanism : AdditiveMechanism or None
        Noise of all passes: one vector per pass, outputs one after the other; None where there is
        no coordinate to update.
    coordinates : ndarray of int
        Those that are updated, among the features and, last, the intercept.
    n_features : int
        Of all features.
    loss : Loss
        What is minimised.
    n_passes : int
        T.
    clip : float
        Bound C on one record's gradient in every coordinate, in standardised units.
    step : float
        Step size.
    n_samples : float
        Divisor: the number of records, or the private count.
    last : AdditiveMechanism or None
        Noise of the sum of residuals or, for labels, of what the model gains over the largest
        class; None where neither is released.
    reach : float
        What a record adds to the last sum is within ± this.
    """

    mechanism: AdditiveMechanism | None
    coordinates: np.ndarray
    n_features: int
    loss: Loss
    n_passes: int
    clip: float
    step: float
    n_samples: float
    last: AdditiveMechanism | None = None
    reach: float = 1.0

    @property
    def n_averaged(self) -> int:
        """Number of last iterates whose mean is the model."""
        return max(1, -(-self.n_passes // 5))

    def slope_noise(self) -> float:
        """Return the sum of the variances that noise gives the mean of the last iterates' slopes.

        A step replaces a standardised coefficient but for the other coordinates, so that the noise
        of a pass is that of its iterate.
        """
        if self.mechanism is None:
            return 0.0
        per_pass = (self.n_passes, -1, self.coordinates.size)
        shape = (self.n_passes, self.mechanism.sensitivity.n_coordinates)
        deviation = np.broadcast_to(self.mechanism.standard_deviation, shape).reshape(per_pass)
        slopes = deviation[-self.n_averaged :, :, self.coordinates < self.n_features]
        return float(((self.step * slopes / (self.n_samples * self.n_averaged)) ** 2).sum())

    def charge(self, account: Account) -> None:
        """Charge for the gradients of all passes, and for what is released after them."""
        if self.mechanism is not None:
            account.charge("gradients", self.mechanism)
        if self.last is not None:
            account.charge(_LAST[self.loss.name], self.last)

    def draw(self, words: RandomWords) -> np.ndarray:
        """Return the noise of all passes, in quanta, shape (n_passes, outputs * coordinates)."""
        if self.mechanism is None:
            return np.zeros((self.n_passes, 0), dtype=np.int64)
        return self.mechanism.sample(words)


def plan_descent(
    estimator: Any, loss: Loss, used: np.ndarray, n_outputs: int, n_samples: float, budget: Budget
) -> DescentPlan:
    r"""Choose passes, clip and noise scales.

    The gradient of a record in coordinate j, clipped to [−C, C], is a contribution to a sum; one
    pass releases these sums for every coordinate and output once, and T passes compose adaptively.
    Weights of pass t and coordinate j are :math:`w_{tj} = g^{t(2+q)/q} v_j`, so that the budget of
    the passes grows by the factor g, with v_j = 1/M_j ("curvature"), 1 ("uniform") or given.
    """
    part, reach, order = 0.0, 1.0, _order(budget)
    strength = count_strength(budget.noise, budget.model, n_samples)
    if estimator.fit_intercept and loss is SQUARED:
        # Without features the mean is all there is.
        part = residual_share(strength, order) if used.any() else 1.0
        reach = _RESIDUAL_REACH if used.any() else mean_reach(strength)
    doubtful = loss is LOGISTIC and estimator.fit_intercept and bool(used.any())
    if doubtful and strength < _STRONG:
        part = gain_share(strength, order)
    plan = _planned(estimator, loss, used, n_outputs, n_samples, (budget, part, reach))
    if doubtful and not part and plan.slope_noise() > _NOISY * n_outputs:
        last = budget, gain_share(strength, order), reach
        plan = _planned(estimator, loss, used, n_outputs, n_samples, last)
    return plan


def _order(budget: Budget) -> float:
    """Return 1 where the costs of passes add up, as of Laplace noise, 2 where their squares do."""
    return 1.0 if isinstance(budget.model, PureLoss) else 2.0


def _planned(
    estimator: Any,
    loss: Loss,
    used: np.ndarray,
    n_outputs: int,
    n_samples: float,
    last_release: tuple[Budget, float, float],
) -> DescentPlan:
    """Return the plan if a part of the model's budget is for a last release of some reach."""
    budget, part, reach = last_release
    coordinates = np.flatnonzero(np.append(used, estimator.fit_intercept))
    n_coordinates = coordinates.size * n_outputs
    adjacency, left, order = estimator.adjacency, budget.model, _order(budget)
    last = None
    if part:
        last = calibrate(budget.noise, clipped_sum(-reach, reach, adjacency), left.share(part))
    if not used.any():  # the constant model is all there is
        return DescentPlan(None, coordinates, used.size, loss, 1, 1.0, 1.0, n_samples, last, reach)
    left = left.share(1.0 - part)
    ones = np.ones(n_coordinates)
    one_pass = calibrate(budget.noise, clipped_gradient(ones, adjacency), left)
    noise_level = float(one_pass.standard_deviation.mean()) / n_samples
    auto = choose_defaults(noise_level * REFERENCE_PASSES ** (1.0 / order - 0.5), loss)
    n_passes = auto.n_passes if estimator.n_passes == "auto" else int(estimator.n_passes)
    clip = auto.clip if estimator.clip == "auto" else float(estimator.clip)
    growth = auto.budget_growth if estimator.budget_growth == "auto" else estimator.budget_growth
    weights = np.tile(error_weights(estimator, loss, used.size)[coordinates], n_outputs)
    if growth != 1.0:
        later = growth ** ((np.arange(n_passes) - n_passes + 1) * (2.0 + order) / order)
        weights = later[:, np.newaxis] * weights
    mechanism = calibrate(
        budget.noise,
        clipped_gradient(clip * ones, adjacency),
        left,
        n_releases=n_passes,
        weights=weights,
    )
    step = auto.relaxation / loss.curvature
    return DescentPlan(
        mechanism, coordinates, used.size, loss, n_passes, clip, step, n_samples, last, reach
    )


def check_plan(estimator: Any, loss: Loss, n_features: int, n_outputs: int, budget: Budget) -> None:
    """Raise what planning would raise, before anything is spent or the data are used."""
    if estimator.n_passes != "auto":
        n_numbers = int(estimator.n_passes) * n_outputs * (n_features + 1)
        check_memory(
            type(estimator).__name__,
            8.0 * _COPIES * n_numbers,
            f"the noise of 'n_passes'={estimator.n_passes}",
            "Use fewer passes.",
        )
    _check_growth(estimator)
    # So many records, and so little for them, ask for the smallest parts of a loss.
    used = np.ones(n_features, dtype=bool)
    plan_descent(estimator, loss, used, n_outputs, _MANY, budget.least)


def _check_growth(estimator: Any) -> None:
    """Refuse a growth that is too large for the passes, or for the most that "auto" stands for.

    How many "auto" stands for depends on released numbers: a fit that is paid for must bear all.
    """
    if estimator.budget_growth == "auto":
        return
    passes, most = f"n_passes={estimator.n_passes}", estimator.n_passes
    if most == "auto":
        most, passes = MOST_PASSES, f"n_passes='auto', which may make {MOST_PASSES} passes"
    largest = math.exp(_LARGEST_GROWTH / int(most))
    if estimator.budget_growth > largest:
        # Rounded down, so that what is advised is accepted.
        places = 3 - math.floor(math.log10(largest - 1.0)) if largest < 2.0 else 3
        advised = math.floor(largest * 10.0**places) / 10.0**places
        raise ValueError(
            f"The 'budget_growth' parameter of {type(estimator).__name__} is too large for "
            f"{passes}: the first pass would get nothing. Got {estimator.budget_growth:g}; use at "
            f"most {advised!r}, or a smaller number of 'n_passes'."
        )


def error_weights(estimator: Any, loss: Loss, n_features: int) -> np.ndarray:
    """Return the weight of every feature's error, and of the intercept's."""
    weights = estimator.error_weights
    if isinstance(weights, str):
        # Standardised columns and the intercept share one curvature.
        return np.full(n_features + 1, 1.0 / loss.curvature if weights == "curvature" else 1.0)
    expected = n_features + bool(estimator.fit_intercept)
    text = (
        f"'curvature', 'uniform' or an array of shape ({expected},), one positive number for each "
        "feature and, with fit_intercept, one for the intercept, from 1e-100 to 1e+100"
    )
    weights = number_vector(type(estimator).__name__, "error_weights", weights, text)
    if weights.shape != (expected,) or not ((weights >= 1e-100) & (weights <= 1e100)).all():
        raise ValueError(
            f"The 'error_weights' parameter of {type(estimator).__name__} must be {text}. Got "
            f"shape {weights.shape}."
        )
    return np.append(weights, 1.0)[: n_features + 1]


def run_descent(
    estimator: Any,
    loss: Loss,
    X: np.ndarray,
    targets: Sequence[np.ndarray],
    features: Standardisation,
    plan: DescentPlan,
    noise: np.ndarray,
    constant: np.ndarray,
    words: RandomWords,
) -> Iterator[np.ndarray]:
    """Yield the iterate of every pass, of shape (n_outputs, n_features + 1), in standard units.

    The last column is the intercept. Each pass visits the coordinates in a fresh public order.
    Where there is no coordinate to update, the constants are the only iterate.
    """
    n_features = X.shape[1]
    if plan.mechanism is None:
        yield np.column_stack([np.zeros((len(targets), n_features)), constant])
        return
    order = np.stack(
        [plan.coordinates[permutation(words, plan.coordinates.size)] for _ in range(plan.n_passes)]
    )
    alpha = 0.0 if estimator.alpha == "auto" else estimator.alpha
    penalty = alpha * np.append(np.ones(n_features), 0.0)
    quantum = np.broadcast_to(plan.mechanism.quantum, noise.shape)
    per_output = (plan.n_passes, len(targets), plan.coordinates.size)
    outputs = []
    for k, target in enumerate(targets):
        # Of coordinates that are not visited any will do that the clip is no huge multiple of.
        quanta = np.full((plan.n_passes, n_features + 1), plan.clip)
        quanta[:, plan.coordinates] = quantum.reshape(per_output)[:, k]
        draws = np.zeros(quanta.shape, dtype=np.int64)
        draws[:, plan.coordinates] = noise.reshape(per_output)[:, k]
        outputs.append(
            coordinate_descent(
                X,
                target,
                loss=loss,
                n_passes=plan.n_passes,
                step=plan.step,
                l1=estimator.l1_ratio * penalty,
                l2=(1.0 - estimator.l1_ratio) * penalty,
                clip=plan.clip,
                quantum=quanta,
                noise=draws,
                add=adder(plan.mechanism),
                order=order,
                n_samples=plan.n_samples,
                center=features.center,
                scale=features.scale,
                limit=LIMIT,
                fit_intercept=True,
                n_threads=effective_n_jobs(estimator.n_jobs),
            )
        )
    yield from map(np.stack, zip(*outputs, strict=True))
