r"""Three ways to find the best of several candidates privately, and folds, with their whole costs.

Models are fitted to a training part and scored on a validation part, each of which *may spend the
whole budget* (:mod:`~skdpnoise.model_selection._splits` has the proof).

**release.** All candidates are functions of one release from the training part; the validation part
pays for the choice and the winner's score. If no part is set aside, a twentieth of the budget does.

**repeated.** A run takes a candidate at random, fits it and scores it, with a base budget. Only the
best of a random number of runs is published, not even how many there were, and the cost does not
depend on the number of candidates (Papernot and Steinke, ICLR 2022).

**noisy_max.** Every candidate is fitted, each with its share. With `refit`, the winner is fitted
again to the records of both parts with half of the budget, which both parts then spend (the choice:
McKenna and Sheldon, NeurIPS 2020; Dong, Durfee and Rogers, ICML 2020).

**folds.** Neighbours differ in one fold j only, without which model j is fitted; the scores of the
other folds come from their own records and from models that are released. So the whole is an
adaptive composition of k - 1 fits, each with the share 0.9/(k - 1), and of one score with 0.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdpnoise._utils.parallel import in_order
from skdpnoise.accounting import PrivacyReport, Release
from skdpnoise.accounting.budget import BESIDE, HALF
from skdpnoise.accounting.limits import ApproximateBudget, SearchBudget, as_loss, pure_part
from skdpnoise.data.partitions import SpreadError
from skdpnoise.linear_model import DPCoordinateDescentRegressor, DPLassoPath
from skdpnoise.mechanisms.selection import approximate_base, base_budget, repeated_loss
from skdpnoise.metrics.scoring import BITS, NARROW, pair_share
from skdpnoise.model_selection import _runs
from skdpnoise.model_selection._candidates import Candidate
from skdpnoise.model_selection._runs import LEAST_VARIANCE, Outcome, Priced, SearchProblem, Target
from skdpnoise.model_selection._splits import Records
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.privacy.repetition.laws import RepetitionLaw
from skdpnoise.queries.argmax import chooser_within
from skdpnoise.sampling import integers_below

# Of the whole budget, for judging the candidates of one release by all records.
_ASKING = BESIDE * HALF
_CHOICE = 0.75  # of the validation part's budget; the rest pays for the winner's score
_FREE = ("alpha", "l1_ratio")  # functions of released second moments

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Strategy(ABC):
    """A way to choose, with its cost."""

    name: ClassVar[str]  # what the parameter `strategy` calls it
    released: ClassVar[str]  # in words
    total: SearchBudget  # of each part of the records, with respect to one row
    fit_budget: SearchBudget  # what one fit of a candidate may cost
    choice_budget: LossBudget  # what the validation part spends on choice and score of the winner
    scored: ClassVar[float] = 1.0 - _CHOICE  # of that, for the score

    @property
    def score_budget(self) -> LossBudget:
        return self.choice_budget.share(self.scored)

    def fitted_alone(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates

    def n_scores(self, n_candidates: int) -> int:
        return n_candidates

    def shares(self, fraction: float, reference: float) -> Sequence[float]:
        """Return the shares of all parts but the first; none where the records stay together."""
        return fraction, reference

    def loss(self, rows: int) -> PrivacyLoss:
        return self.total.for_group(rows)

    def fitted(
        self, fits: Sequence[tuple[SearchProblem, Candidate]], tell: Tell | None = None
    ) -> list[Any]:
        priced = [
            (one, one.priced(candidate.estimator, self.fit_budget)) for one, candidate in fits
        ]
        models = []
        for model in in_order((delayed(_fitted)(*one) for one in priced), fits[0][0].n_jobs):
            models.append(model)
            if tell is not None:
                tell(f"candidate {len(models)}")
        return models

    def choose(self, problem: SearchProblem, models: Sequence[Any]) -> tuple[int, float]:
        losses = problem.losses(models)
        utilities, sensitivity, monotonic = _utilities(losses, problem)
        part = self.choice_budget.share(_CHOICE)
        chooser = chooser_within(part, sensitivity, monotonic=monotonic)
        best = problem.session.choose("choice", chooser.mechanism, utilities, charged=chooser)
        return best, problem.score(int(losses[0, best]), self.score_budget)[0]

    def report(
        self,
        owner: str,
        guarantee: PrivacyGuarantee,
        problem: SearchProblem,
        rows_per_group: int | None,
    ) -> PrivacyReport:
        loss = self.loss(rows_per_group or 1)
        noise = _runs.score_noise(self.score_budget, problem.session.adjacency)
        scale = noise.scale / float(1 << BITS)
        span = (float(scale.min()), float(scale.max()))
        released = self.released.format(budget=self.fit_budget)
        released += ", the winner fitted again" * getattr(self, "refit", False)
        n_scores = self.n_scores(len(problem.candidates))
        line = Release(released, noise.noise, 1, n_scores, span, loss, "candidates")
        return PrivacyReport(
            estimator=owner,
            guarantee=guarantee,
            releases=(line,),
            total=loss,
            secure=problem.session.rng.secure,
            rows_per_group=rows_per_group,
            declared=problem.declared,
            planned=loss,
        )

    @abstractmethod
    def run(self, problem: SearchProblem, tell: Tell) -> Outcome:
        """Choose; `tell` is called after each part whose number is public."""


@dataclass(frozen=True, slots=True, eq=False)
class OneRelease(Strategy):
    """Candidates that are post-processing of one release: every penalty from one noisy matrix."""

    name = "release"
    released = "one release, the choice among its candidates, the score"
    estimator: Any  # its one fit makes all candidates
    apart: bool  # whether a validation part is set aside

    @classmethod
    def within(
        cls, total: SearchBudget, candidates: Sequence[Candidate], *, apart: bool
    ) -> OneRelease | None:
        """Return the release that makes all candidates; None if they need fits of their own."""
        first = candidates[0].estimator
        final = _final(first)
        # With ε and δ added up, a fit of each candidate costs about what a choice does.
        if type(final) is not DPCoordinateDescentRegressor or isinstance(total, ApproximateBudget):
            return None
        if not final._may_solve_moments():
            return None
        prefix = "" if final is first else f"{first.steps[-1][0]}__"
        free = {prefix + name for name in _FREE}
        if not all(set(candidate.parameters) <= free for candidate in candidates):
            return None
        names = set(DPLassoPath().get_params()) & set(final.get_params())
        settings = {name: clone(getattr(final, name), safe=False) for name in names}
        path: Any = DPLassoPath(**settings, alphas=1)
        if prefix:
            path = Pipeline([*clone(first).steps[:-1], (prefix[:-2], path)])
        budgets = (total, total) if apart else (total.share(1.0 - _ASKING), total.share(_ASKING))
        return cls(total, *budgets, path, apart)

    def fitted_alone(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return [replace(candidates[0], estimator=self.estimator)]

    def shares(self, fraction: float, reference: float) -> Sequence[float]:
        return (fraction, reference) if self.apart else ()

    def run(self, problem: SearchProblem, tell: Tell) -> Outcome:
        path = problem.fitted(problem.priced(self.estimator, self.fit_budget))
        models = [_model_of(path, candidate.estimator) for candidate in problem.candidates]
        problem = replace(problem, target=_units(path, problem.target))
        best, score = self.choose(problem, models)
        for k in range(len(models)):
            tell(f"candidate {k + 1}")
        vars(models[best])[_runs.SAID] = vars(path)[_runs.SAID]
        return Outcome(best, [models[best]], [score])


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMax(Strategy):
    """Every candidate fitted, with its share."""

    name = "noisy_max"
    released = "fits of all candidates, the choice among them, the score"
    refit: bool

    @classmethod
    def within(cls, total: SearchBudget, n_candidates: int, *, refit: bool) -> NoisyMax:
        choice = total.share(1.0 - HALF) if refit else total
        return cls(total, choice.share(1.0 / n_candidates), pure_part(choice), refit)

    def run(self, problem: SearchProblem, tell: Tell) -> Outcome:
        models = self.fitted([(problem, one) for one in problem.candidates], tell)
        best, score = self.choose(problem, models)
        model = models[best]
        if self.refit and model is not None:
            again = problem.priced(problem.candidates[best].estimator, self.total.share(HALF))
            # Not to a reference part, which has spent the whole budget.
            parts = problem.parts
            model = problem.fitted(again, (*parts.train, *parts.validation))
            # Each score compared the rows with those of the first scan; this fit has none.
            problem.rows(range(len(parts.division.sizes))).total(_counted, "last look")
        return Outcome(best, [model], [score])


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedRuns(Strategy):
    """The best of a random number of runs of random candidates."""

    # `total` is that of one run: the best of several costs no less, at every ε.
    name = "repeated"
    scored = 1.0  # since runs are compared by their scores
    released = "the best of a random number of runs, each within {budget}, and its score"
    base: SearchBudget  # of one run, with respect to the unit that is protected
    law: RepetitionLaw

    @classmethod
    def within(
        cls,
        guarantee: PrivacyGuarantee,
        law: RepetitionLaw,
        total: SearchBudget,
        rows_per_group: int,
    ) -> RepeatedRuns:
        # A run fits to one part of the records, and scores on another.
        base: SearchBudget
        if isinstance(total, ApproximateBudget):
            base = ApproximateBudget(*approximate_base(guarantee, law))
        else:
            base = base_budget(
                guarantee, law, "pure" if isinstance(total, PureLoss) else "gaussian"
            )
        row = base if rows_per_group == 1 else base.per_row(rows_per_group)
        return cls(row, row, pure_part(row), base, law)

    def loss(self, rows: int) -> PrivacyLoss:
        """Loss of the best of all runs; one run has the base loss for a group."""
        return repeated_loss(as_loss(self.base), self.law)

    def run(self, problem: SearchProblem, tell: Tell) -> Outcome:
        """Draw how many runs, and run; ties are broken by chance."""
        n_runs = problem.session.repetitions(self.law)
        if n_runs == 0:
            raise _runs.SearchStopped(
                "The random number of runs is 0, so nothing is fitted; the budget is spent. A law "
                "with a larger mean makes that rarer; TruncatedNegativeBinomial never gives 0."
            )
        rng = problem.session.rng
        chosen = [int(k) for k in integers_below(rng, len(problem.candidates), n_runs)]
        models = self.fitted([(problem, problem.candidates[k]) for k in chosen])
        # A run that failed is the worst, so that nothing is seen of it unless all have.
        keys = []
        for k, loss in enumerate(problem.losses(models)[0].tolist()):
            score, _ = problem.score(loss, self.score_budget)
            tie = int(rng.take(1)[0])
            keys.append((-np.inf if models[k] is None else score, tie, k))
        score, _, best = max(keys)
        return Outcome(chosen[best], [models[best]], [score])


@dataclass(frozen=True, slots=True, eq=False)
class Folds(Strategy):
    """One candidate, fitted to all folds but one, each time another, and scored on that one."""

    name = "folds"
    scored = 1.0  # as there is nothing to choose
    released = "fits to all folds but one, each within {budget}, and the scores of the folds"
    n_folds: int

    @classmethod
    def within(cls, total: SearchBudget, n_folds: int) -> Folds:
        fit, score = total.share((1.0 - BESIDE) / (n_folds - 1)), total.share(BESIDE)
        return cls(total, fit, pure_part(score), n_folds)

    def n_scores(self, n_candidates: int) -> int:
        return self.n_folds

    def shares(self, fraction: float, reference: float) -> Sequence[float]:
        return [(1.0 - reference) / self.n_folds] * (self.n_folds - 1) + [reference]

    def run(self, problem: SearchProblem, tell: Tell) -> Outcome:
        """Fit and score all folds; if one cannot be fitted there is no result."""
        folds = problem.parts.train
        (only,) = problem.candidates
        each = []
        for fold in folds:
            others = tuple(place for place in folds if place != fold)
            parts = replace(problem.parts, train=others, validation=(fold,))
            each.append(_with_pairs(replace(problem, parts=parts)))
        models = self.fitted([(one, only) for one in each])
        if any(model is None for model in models):
            raise _runs.SearchStopped(_runs.FAILED)
        scored = []
        for one, model in zip(each, models, strict=True):
            loss = int(one.losses([model])[0, 0])
            scored.append(one.score(loss, self.score_budget))
        scores, errors = zip(*scored, strict=True)
        return Outcome(0, models, scores, errors)


def _model_of(fitted: Any, candidate: Any) -> Any:
    """Return the fitted estimator of a candidate, as the unfitted one says; costs nothing."""
    final = _final(candidate)
    settings = {name: getattr(final, name) for name in _FREE}
    if type(fitted) is not Pipeline:
        return fitted.model(**settings)
    name, path = fitted.steps[-1]
    return Pipeline([*fitted.steps[:-1], (name, path.model(**settings))])


def _final(estimator: Any) -> Any:
    return estimator.steps[-1][1] if type(estimator) is Pipeline else estimator


def _fitted(problem: SearchProblem, priced: Priced) -> Any:
    """Return a fitted model; None if the fit failed, which is an outcome like another."""
    # Where parts of the rows are lost, or change, the search ends: an outcome above all others, so
    # that the best of any number of runs is still what is published.
    try:
        return problem.fitted(priced)
    except (MemoryError, SpreadError, _runs.SearchStopped):
        raise
    except Exception:
        return None


def _counted(records: Records) -> NDArray[np.int64]:
    return np.array([len(records["y"])])


def _utilities(
    losses: NDArray[Any], problem: SearchProblem
) -> tuple[NDArray[np.float64], float, bool]:
    """Return the utilities of candidates, how far one record moves each, and whether all alike."""
    # Of losses that vary by degrees, candidates are compared by the difference to the mean over all
    # candidates, record by record, held within a sixteenth of the range: good candidates differ by
    # less, and the noise falls with it.
    if problem.scoring.name == "accuracy" or problem.scoring.needs_shares:
        # A record that is added can only be right or wrong: no utility rises.
        alike = problem.session.adjacency == "add_remove"
        return -losses[0].astype(np.float64), float(1 << BITS), alike
    moves = 2.0 if problem.session.adjacency == "replace_one" else 1.0
    return -losses[1].astype(np.float64), moves * float(1 << NARROW), False


def _units(path: Any, target: Target) -> Target:
    if target.public:
        return target
    final = path[-1] if hasattr(path, "steps") else path
    _, _, location, scale = final._standardised
    return Target(location, scale, max(float(np.mean(final._pseudo_data.y**2)), LEAST_VARIANCE))


def _with_pairs(problem: SearchProblem) -> SearchProblem:
    """Return the problem of a fold: how many pairs it has is its own."""
    target = problem.target
    if not problem.scoring.by_pairs or target.shares is None:
        return problem
    whole = pair_share(float(target.shares.shares[1]), problem.n_scored)
    return replace(problem, target=replace(target, variance=whole))
