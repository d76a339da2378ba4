r"""Three ways to find the best of several candidates privately, each with its whole cost.

**Parts.** The records are divided by chance, without a look at them, into a training part, to
which models are fitted, and a validation part, on which they are scored. Neighbouring data sets,
divided by the same coins, differ in one of the parts only. If that is the training part, scores are
functions of released models and of records that are the same; if it is the validation part, models
are the same. So *each part may spend the whole budget* (parallel composition), and one run that
fits at loss C and scores at loss C has loss C. (The law of the whole is a mixture over coins that
do not depend on the data, and the hockey-stick divergence is jointly convex.)

**release.** All candidates are functions of one release. It is made from the training part with the
whole budget. The validation part is spent on the choice and the score of the winner. If no part is
set aside, all records are spent on the release and, with a twentieth of the budget, for being asked
again.

**repeated.** A run takes a candidate at random, fits it and scores it, with a base budget. The best
of a random number of runs is published, and nothing else: no other score, no other model, not how
many runs there were. What that costs does not depend on the number of candidates
(:mod:`~skdpnoise.mechanisms.selection.repeated`).

**noisy_max.** Every candidate is fitted, each with its share. With `refit`, the winner is fitted
again to the records of both parts with half of the budget, which both parts then spend.

References
----------
McSherry, "Privacy integrated queries", SIGMOD 2009, Theorem 4 (parallel composition). Papernot and
Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022 (repeated). McKenna and
Sheldon, NeurIPS 2020; Dong, Durfee and Rogers, ICML 2020 (the choice).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from skdpnoise.mechanisms.selection import ExponentialMechanism, base_budget, repeated_loss
from skdpnoise.metrics.scoring import BITS
from skdpnoise.model_selection._release import SharedRelease
from skdpnoise.model_selection._runs import FAILED, Outcome, Priced, Problem, SearchStopped, Target
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.privacy.repetition.laws import RepetitionLaw
from skdpnoise.queries import private_argmax
from skdpnoise.sampling import integers_below
from skdpnoise.sampling.observer import note_charge

__all__ = ["NoisyMax", "OneRelease", "RepeatedRuns", "Strategy"]

_CHOICE = 0.75  # of the validation part's budget; the rest pays for the winner's score
_ASKING = 0.05  # of the whole budget, for judging the candidates of one release by all records
_REFIT = 0.5  # of the whole budget, for fitting the winner again
_NARROW = BITS - 4  # differences between candidates are held within ±2**_NARROW

Tell = Callable[[str], None]
Losses = NDArray[np.int64]


class Strategy(Protocol):
    """A way to choose, with its cost."""

    @property
    def name(self) -> str:
        """What the parameter `strategy` calls it."""
        ...

    @property
    def fit_budget(self) -> LossBudget:
        """What one fit of a candidate may cost."""
        ...

    @property
    def part_budget(self) -> LossBudget:
        """What a further part of the records may spend, so that the whole costs no more."""
        ...

    def loss(self, rows: int) -> PrivacyLoss:
        """What the whole search costs with respect to a group of at most so many rows."""
        ...

    def choose(self, problem: Problem, losses: Losses, target: Target) -> tuple[int, float]:
        """Return the best of rows of losses, one for each fitted model, and its noisy score."""
        ...

    def run(self, problem: Problem, target: Target, n_jobs: int | None, tell: Tell) -> Outcome:
        """Choose; `tell` is called after each part whose number is public."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class OneRelease:
    """Candidates that are post-processing of one release."""

    total: LossBudget
    release: SharedRelease
    apart: bool
    name: str = "release"

    @property
    def fit_budget(self) -> LossBudget:
        """The whole budget, or all but what judging the same records costs."""
        return self.total if self.apart else self.total.share(1.0 - _ASKING)

    @property
    def part_budget(self) -> LossBudget:
        """The whole budget."""
        return self.total

    def loss(self, rows: int) -> PrivacyLoss:
        """The whole budget, which each part spends."""
        return self.total.for_group(rows)

    def choose(self, problem: Problem, losses: Losses, target: Target) -> tuple[int, float]:
        """Choose with the validation part's budget."""
        budget = self.total if self.apart else self.total.share(_ASKING)
        return _best(problem, losses, budget, target)

    def run(self, problem: Problem, target: Target, n_jobs: int | None, tell: Tell) -> Outcome:
        """Release, make all candidates, choose."""
        path = problem.fitted(problem.priced(self.release.estimator, self.fit_budget))
        models = [self.release.model(path, c.estimator) for c in problem.candidates]
        target = _units(path, target)
        best, score = self.choose(problem, _all_losses(problem, models, target), target)
        for k in range(len(models)):
            tell(f"candidate {k + 1}")
        return Outcome(best, models[best], score)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMax:
    """Every candidate fitted, with its share."""

    total: LossBudget
    n_candidates: int
    refit: bool
    name: str = "noisy_max"

    @property
    def fit_budget(self) -> LossBudget:
        """An equal share, of half of the budget with `refit`."""
        return self._search.share(1.0 / self.n_candidates)

    @property
    def part_budget(self) -> LossBudget:
        """The whole budget."""
        return self.total

    @property
    def _search(self) -> LossBudget:
        return self.total.share(1.0 - _REFIT) if self.refit else self.total

    def loss(self, rows: int) -> PrivacyLoss:
        """The whole budget, which each part spends."""
        return self.total.for_group(rows)

    def choose(self, problem: Problem, losses: Losses, target: Target) -> tuple[int, float]:
        """Choose with the validation part's budget."""
        return _best(problem, losses, self._search, target)

    def run(self, problem: Problem, target: Target, n_jobs: int | None, tell: Tell) -> Outcome:
        """Fit all, choose, perhaps fit again."""
        priced = [problem.priced(c.estimator, self.fit_budget) for c in problem.candidates]
        # A generator of tasks, in order: progress is told as fits end.
        parallel = Parallel(n_jobs=n_jobs, return_as="generator", verbose=0)
        models = []
        for model in parallel(delayed(_fitted)(problem, one) for one in priced):
            models.append(model)
            tell(f"candidate {len(models)}")
        best, score = self.choose(problem, _all_losses(problem, models, target), target)
        model = models[best]
        if model is None:
            raise SearchStopped(FAILED)
        if self.refit:
            estimator = problem.candidates[best].estimator
            again = problem.priced(estimator, self.total.share(_REFIT))
            # Not to a reference part, which has spent the whole budget.
            parts = problem.parts
            rows = np.sort(np.concatenate([parts.train, parts.validation]))
            model = problem.fitted(again, rows)
        return Outcome(best, model, score)


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedRuns:
    """The best of a random number of runs of random candidates."""

    base: LossBudget
    law: RepetitionLaw
    rows_per_group: int = 1
    name: str = "repeated"

    @classmethod
    def within(
        cls, guarantee: PrivacyGuarantee, law: RepetitionLaw, kind: str, rows_per_group: int
    ) -> RepeatedRuns:
        """Return the runs with the largest base budget that the guarantee allows."""
        return cls(base_budget(guarantee, law, kind), law, rows_per_group)

    @property
    def fit_budget(self) -> LossBudget:
        """The base budget, with respect to one row."""
        return self.base if self.rows_per_group == 1 else self.base.per_row(self.rows_per_group)

    # The best of several runs costs no less than one, at every ε.
    part_budget = fit_budget

    def loss(self, rows: int) -> PrivacyLoss:
        """Loss of the best of all runs; one run has the base loss for a group."""
        return repeated_loss(self.base, self.law)

    def run(self, problem: Problem, target: Target, n_jobs: int | None, tell: Tell) -> Outcome:
        """Draw how many runs, and run; ties are broken by chance."""
        rng = problem.rng
        n_runs = self.law.sample(rng)
        if n_runs == 0:
            raise SearchStopped(
                "The random number of runs is 0, so nothing is fitted; the budget is spent. A law "
                "with a larger mean makes that rarer; TruncatedNegativeBinomial never gives 0."
            )
        chosen = [int(k) for k in integers_below(rng, len(problem.candidates), n_runs)]
        estimators = [problem.candidates[k].estimator for k in chosen]
        priced = [problem.priced(estimator, self.fit_budget) for estimator in estimators]
        tasks = (delayed(_run)(problem, one, target) for one in priced)
        runs = Parallel(n_jobs=n_jobs, verbose=0)(tasks)
        models = [model for model, _ in runs]
        best, score = self._best_of(problem, models, [losses for _, losses in runs], target)
        if models[best] is None:
            raise SearchStopped(FAILED)
        return Outcome(chosen[best], models[best], score)

    def choose(self, problem: Problem, losses: Losses, target: Target) -> tuple[int, float]:
        """Take the best noisy score, each within the budget of its run."""
        return self._best_of(problem, losses, losses, target)

    def _best_of(
        self, problem: Problem, models: Iterable[Any], losses: Any, target: Target
    ) -> tuple[int, float]:
        """Return the run with the best score; one that failed, without a model, is the worst."""
        # So nothing is seen of a run that failed unless all have.
        keys = []
        for k, model in enumerate(models):
            score = problem.noisy_score(losses[k], self.fit_budget, target)
            tie = int(problem.rng.take(1)[0])
            keys.append((-np.inf if model is None else score, tie, k))
        score, _, best = max(keys)
        return best, score


def _fitted(problem: Problem, priced: Priced) -> Any:
    """Return a fitted model; None if the fit failed, which is an outcome like another."""
    try:
        return problem.fitted(priced)
    except (MemoryError, SearchStopped):
        raise
    except Exception:
        return None


def _run(problem: Problem, priced: Priced, target: Target) -> tuple[Any, NDArray[np.int64]]:
    """Return a fitted model and its losses."""
    model = _fitted(problem, priced)
    return model, _losses(problem, model, target)


def _losses(problem: Problem, model: Any, target: Target) -> NDArray[np.int64]:
    """Return the losses of a model; the largest ones if there is none."""
    if model is None:
        return np.full(problem.parts.validation.size, 1 << BITS, dtype=np.int64)
    return problem.losses(model, target)


def _all_losses(problem: Problem, models: list[Any], target: Target) -> Losses:
    """Return the losses of all models, a row for each."""
    losses = np.empty((len(models), problem.parts.validation.size), dtype=np.int64)
    for k, model in enumerate(models):
        losses[k] = _losses(problem, model, target)
    return losses


def _best(
    problem: Problem, losses: Losses, budget: LossBudget, target: Target
) -> tuple[int, float]:
    """Return the best of public models by the validation part, and its noisy score."""
    utilities, sensitivity, monotonic = _utilities(losses, problem)
    best, mechanism = private_argmax(
        utilities,
        budget.share(_CHOICE),
        sensitivity=sensitivity,
        monotonic=monotonic,
        random_state=problem.rng,
    )
    by_range = isinstance(mechanism, ExponentialMechanism)
    note_charge("choice", _Ranged(mechanism) if by_range else mechanism)
    score = problem.noisy_score(losses[best], budget.share(1.0 - _CHOICE), target)
    return best, score


@dataclass(frozen=True, slots=True, eq=False)
class _Ranged:
    """A choice that is charged for the range of its loss, for an observer."""

    mechanism: Any

    def privacy_loss(self) -> GaussianLoss:
        """Return the loss of an exponential mechanism in μ."""
        loss: GaussianLoss = self.mechanism.gaussian_loss()
        return loss


def _utilities(
    losses: NDArray[np.int64], problem: Problem
) -> tuple[NDArray[np.float64], float, bool]:
    """Return the utilities of candidates, how far one record moves each, and whether all alike."""
    # Of losses that vary by degrees, candidates are compared by the difference to the mean over all
    # candidates, record by record, held within a sixteenth of the range: good candidates differ by
    # less, and the noise falls with it. Sums of integers below 2^53 are exact.
    if problem.scoring.name == "accuracy":
        # A record that is added can only be right or wrong: no utility rises.
        alike = problem.adjacency == "add_remove"
        return -losses.sum(axis=1).astype(np.float64), float(1 << BITS), alike
    differences = losses - losses.mean(axis=0).astype(np.int64)
    held = np.clip(differences, -(1 << _NARROW), 1 << _NARROW)
    moves = 2.0 if problem.adjacency == "replace_one" else 1.0
    return -held.sum(axis=1).astype(np.float64), moves * float(1 << _NARROW), False


def _units(path: Any, target: Target) -> Target:
    """Return the units of the target that a release has found, unless they are known already."""
    if target != Target():
        return target
    final = path[-1] if hasattr(path, "steps") else path
    _, _, location, scale = final._standardised
    moments = final._pseudo_data.y
    return Target(location, scale, max(float(np.mean(moments**2)), 0.05))
