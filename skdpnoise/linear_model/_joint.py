r"""Gradients of all coefficients at once, each record held by one norm: planned, run, averaged.

One pass releases

.. math:: \sum_i \min\Bigl(1, \frac{C}{|x_i| |q_i|}\Bigr) \, x_i \otimes q_i

with x the standardised row and its constant, q the slopes of all outputs. However many columns and
classes there are, a record moves it by at most C. Every rule is a function of public numbers: of
μ n, the number of records over the noise of a count, and of the length L that rows have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skdpnoise.estimators.parameters import check_memory
from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import NORMAL, Budget
from skdpnoise.linear_model._defaults import kept
from skdpnoise.linear_model._records import LIMIT, Problem, Settings, Standardisation
from skdpnoise.linear_model._scaling import Run
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.privacy import GaussianLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import GroupedProfile, RowBounds, clipped_rows
from skdpnoise.solvers import SQUARED
from skdpnoise.solvers.joint import Clip, GridRows, joint_descent
from skdpnoise.solvers.second_moments import clipped_row_sums

__all__ = [
    "FEW_RECORDS",
    "MANY_COLUMNS",
    "JointPlan",
    "center_rows",
    "check_joint",
    "normal_for_joint",
    "plan_joint",
]

FEW_RECORDS = 100.0  # μ n below which "auto" does so within public bounds
MANY_COLUMNS = 60  # from which "auto" clips whole gradients of one output, too
MOST_PASSES, FEWEST_PASSES = 80, 12
_MOMENTUM = 0.9
_AVERAGED = 0.4  # of the iterates: the last ones, whose mean is the model
# How far all passes go, in units of μ n: the most, up to which μ n, by which power less, the least.
_MOST_REACH, _WEAK, _POWER, _LEAST_REACH = 5.0, 120.0, 0.35, 1.5
_PER_PASS = 20.0  # of a pass, in the same units, up to the most passes
_CLIP, _NO_CLIP = 0.1, 2e4  # of L, and the μ n from which it grows with it, up to no clip at all
# The same for targets that are numbers, of which the noise counts and not only the order.
_REACH_OF_NUMBERS, _CLIP_OF_NUMBERS, _FEWEST_OF_NUMBERS = 0.15, 0.3, 20
_LONGEST = 3.0  # clip, in units of L: no gradient of labels is much longer
_SHORTER = 3.5  # power of the clip, in units of L, by which steps are shorter where less is clipped
# Up to so many rows there are more passes where there is little noise: from this μ n, at most.
_FEW_ROWS, _MUCH, _MOST_OF_FEW = 1e5, 1e5, 500.0
_ROW_BITS = 20  # of the norm of a row
_STEPS = 2.0**34  # of what a record may add; fewer where there are more than 2**24 records
_SUM, _SAFETY = 2.0**60, 4.0  # of all steps; times the number of records, which may be noisy


@dataclass(frozen=True, slots=True, eq=False)
class JointPlan:
    """Everything about the passes that is fixed before the data are used."""

    mechanism: AdditiveMechanism | None  # of all passes; None where no column is used
    used: np.ndarray  # which features are updated
    n_outputs: int
    n_passes: int
    clip: float  # C
    step: float
    row_grid_size: float  # of standardised rows
    n_samples: float  # the divisor: the number of records, public or estimated privately
    constant: float  # that rows end with; 0 without an intercept

    def charge(self, account: Account) -> None:
        """Charge for the gradients of all passes."""
        if self.mechanism is not None:
            account.charge("gradients", self.mechanism)

    def draw(self, rng: RandomWords) -> np.ndarray:
        """Return the noise of all passes, shape (n_passes, n_outputs, n_features + 1)."""
        shape = self.n_passes, self.n_outputs, self.used.size + 1
        noise = np.zeros(shape, dtype=np.int64)
        if self.mechanism is not None:
            noise[..., self._updated] = self.mechanism.sample(rng).reshape(*shape[:2], -1)
        return noise

    @property
    def _updated(self) -> np.ndarray:
        """Index of the coefficients that are updated, among the features and the intercept."""
        return np.flatnonzero(np.append(self.used, self.constant > 0.0))

    def standardised(self, problem: Problem) -> Problem:
        """Return the problem with limits on what is far from the rest of its column."""
        return replace(problem, features=problem.features.capped())

    def passes(
        self, settings: Settings, problem: Problem, draws: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the iterate of every pass in standard units, shape (n_outputs, n_features + 1)."""
        mechanism, features = self.mechanism, problem.features
        if mechanism is None:
            coef = np.zeros(draws.shape[1:])
            coef[:, -1] = problem.target.constant
            yield coef
            return
        rows = GridRows(
            problem.data.X,
            grid_size=self.row_grid_size,
            limit=np.where(features.used, features.limit, 0.0),
            center=features.center,
            scale=features.scale,
            constant=self.constant,
        )
        outputs = problem.target(problem.data.outputs)
        if problem.target.scaling is None:  # labels
            outputs = [one > 0 for one in outputs]

        def targets(begin: int, end: int) -> np.ndarray:
            return np.stack([one[begin:end] for one in outputs], axis=1).astype(np.float64)

        def add(sums: np.ndarray, noise: np.ndarray) -> np.ndarray:
            # What has no noise stays zero, whatever the sums are.
            total, updated = np.zeros_like(sums), self._updated
            some = plus_noise(mechanism, sums[:, updated].ravel(), noise[:, updated].ravel())
            total[:, updated] = np.reshape(some, (len(sums), -1))
            return total

        penalty = settings.strength * np.append(np.ones(self.used.size), 0.0)
        unit = float(mechanism.grid_size[0])
        path = joint_descent(
            rows,
            targets,
            loss=settings.loss,
            n_outputs=self.n_outputs,
            n_passes=self.n_passes,
            step=self.step,
            clip=[Clip(self.clip, unit)] * self.n_passes,
            noise=draws,
            add=add,
            n_samples=self.n_samples,
            momentum=_MOMENTUM,
            l1=settings.l1_ratio * penalty,
            l2=(1.0 - settings.l1_ratio) * penalty,
            n_threads=effective_n_jobs(settings.n_jobs),
        )
        for coef in path:
            coef[:, -1] *= self.constant
            yield coef

    def finish(self, path: np.ndarray, problem: Problem, draws: np.ndarray) -> np.ndarray:
        """Return the iterates; slopes of numbers are drawn in by what noise may be of them."""
        if problem.target.scaling is None or self.mechanism is None:
            return path
        energy, n_slopes = float((self.averaged(path)[:, :-1] ** 2).sum()), int(self.used.sum())
        keep = kept(energy, n_slopes * self.slope_noise(), 1.0 + 2.0 * math.sqrt(2.0 / n_slopes))
        shrunk = path.copy()
        shrunk[..., :-1] *= keep
        return shrunk

    def slope_noise(self) -> float:
        """Return the variance that noise gives one slope, were there no rows to pull it back."""
        # Noise of pass t is in iterate s as 1 + m + ... + m^{s-t} steps of it.
        assert self.mechanism is not None
        ages = np.subtract.outer(np.arange(self.n_passes), np.arange(self.n_passes))
        steps = (1.0 - _MOMENTUM ** np.maximum(ages + 1, 0)) / (1.0 - _MOMENTUM)
        part = self.averaged(steps) * self.step / self.n_samples
        return float((part**2).sum() * float(self.mechanism.standard_deviation[0]) ** 2)

    @staticmethod
    def averaged(path: np.ndarray) -> np.ndarray:
        """Return the mean of the last iterates: post-processing, so free."""
        return np.asarray(path[-max(1, math.ceil(_AVERAGED * len(path))) :].mean(axis=0))


def plan_joint(
    settings: Settings, used: np.ndarray, n_outputs: int, n_samples: float, budget: Budget
) -> JointPlan:
    """Choose passes, clip and step, and calibrate the noise of all passes."""
    # The noise of T passes adds to a score about 2 u T / (μ n), u being how far a pass moves the
    # score of a row of length L that is clipped. So u T is a multiple of μ n.
    assert isinstance(budget.model, GaussianLoss)
    n_used, constant = int(np.count_nonzero(used)), float(settings.fit_intercept)
    if not n_used:  # intercepts alone have been found, if there are any
        return JointPlan(None, used, n_outputs, 1, 1.0, 1.0, 1.0, n_samples, constant)
    length = math.sqrt(n_used + constant**2)
    strength = budget.model.mu * n_samples
    far, part, fewest = _MOST_REACH * (_WEAK / strength) ** _POWER, _CLIP, FEWEST_PASSES
    reach = min(max(far, _LEAST_REACH), _MOST_REACH) * strength
    if settings.loss is SQUARED:  # predictions are judged by their noise, not by their order
        reach, part, fewest = _REACH_OF_NUMBERS * strength, _CLIP_OF_NUMBERS, _FEWEST_OF_NUMBERS
    most = MOST_PASSES
    if n_samples <= _FEW_ROWS:  # passes over few rows take no time
        most = min(MOST_PASSES * max(1.0, strength / _MUCH) ** 0.5, _MOST_OF_FEW)
    n_passes = round(min(max(reach / _PER_PASS, fewest), most))
    if settings.n_passes != "auto":
        n_passes = int(settings.n_passes)
    clip = length * min(part * max(1.0, strength / _NO_CLIP), _LONGEST)
    if settings.clip != "auto":
        clip = float(settings.clip)
    step = reach / n_passes * (1.0 - _MOMENTUM) / (clip * length)
    # Moments of rows have no eigenvalue above L²; the more is clipped, the longer a step may be.
    steepest = settings.loss.curvature * length**2
    step = min(step, (1.0 + _MOMENTUM) / steepest / min(clip / length, 1.0) ** _SHORTER)
    size = n_outputs * (n_used + bool(constant))
    width = 2.0 if budget.adjacency == "replace_one" else 1.0
    profile = GroupedProfile([width * clip], np.zeros(size))
    mechanism = calibrate(budget.noise, profile, budget.model, n_releases=n_passes)
    steps = min(_STEPS, _SUM / (_SAFETY * n_samples))
    bits = math.floor(math.log2(steps * float(mechanism.scale[0]) / clip))
    mechanism = replace(mechanism, bits=min(max(bits, mechanism.bits), 52))
    grid_size = 2.0 ** math.ceil(math.log2(LIMIT * length) - _ROW_BITS)
    facts = n_passes, clip, step, grid_size, n_samples, constant
    return JointPlan(mechanism, used, n_outputs, *facts)


def check_joint(settings: Settings, shape: tuple[int, ...], n_outputs: int, budget: Budget) -> None:
    """Raise what planning would raise, before anything is spent or the data are used."""
    used = np.ones(shape[1], dtype=bool)
    n_passes = _MOST_OF_FEW if settings.n_passes == "auto" else float(settings.n_passes)
    reason = f"the noise of {n_passes:g} passes"
    check_memory(
        settings.owner, 32.0 * n_passes * n_outputs * (shape[1] + 1), reason, "Use fewer passes."
    )
    plan_joint(settings, used, n_outputs, 2.0**30, budget.least)


def center_rows(settings: Settings, run: Run, X: np.ndarray, bounds: np.ndarray) -> Standardisation:
    """Release the mean of rows within public bounds; return these as centre and halves as scale."""
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    middle, used = 0.5 * bounds[1] + 0.5 * bounds[0], half > 0.0
    mean = np.zeros(half.size)
    if run.budget.scaling and used.any():
        # A row within its bounds has a norm of at most the root of the number of columns.
        limits = RowBounds(half.size, math.sqrt(half.size), columns=np.ones(half.size))
        profile = clipped_rows(limits, run.budget.adjacency)
        mechanism = calibrate("iid_gaussian", profile, run.budget.features)
        run.account.charge("means of rows", mechanism)
        draws = mechanism.sample(run.rng)[0]
        sums = clipped_row_sums(
            X,
            center=middle,
            scale=np.where(used, half, 1.0),
            row_grid_size=mechanism.grid_size,
            norm=limits.norm,
            columns=limits.columns,
            n_threads=effective_n_jobs(settings.n_jobs),
        )
        noisy = plus_noise(mechanism, sums, draws) * mechanism.grid_size / run.n_samples
        mean = np.where(used, np.clip(noisy, -1.0, 1.0), 0.0)
    return Standardisation(
        middle + half * mean, np.where(used, half, 1.0), used, 1.0 + np.abs(mean)
    )


def normal_for_joint(estimator: Any, settings: Settings) -> Settings:
    """Return the settings with normal noise, or refuse others for gradients of all columns."""
    noise, owner = settings.noise, settings.owner
    if noise in CHOICES:
        noise = NORMAL
    if not (estimator.delta > 0.0 and noise.endswith("_gaussian")):
        raise ValueError(
            f"The 'noise' parameter of {owner} must be normal noise, and delta positive, for "
            f"solver='joint'. Got noise={settings.noise!r} and delta={estimator.delta:g}. Use "
            "another solver, or another noise and delta."
        )
    return replace(settings, noise=noise)
