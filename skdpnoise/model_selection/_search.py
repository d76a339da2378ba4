"""Hyper-parameter search in which everything that is learnt from the data is paid for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skdpnoise._advice import advise, advise_on_bought_number, advise_on_public_number
from skdpnoise._validation import as_bounds, check_unpaid_arguments
from skdpnoise.ledger import PrivacyReport
from skdpnoise.linear_model._callbacks import CallbackSupportMixin, with_callbacks
from skdpnoise.mechanisms.groups import group_codes, sample_rows
from skdpnoise.mechanisms.repetition import choose_repetitions
from skdpnoise.model_selection._budget import (
    Rehearsed,
    check_alternative,
    check_candidate,
    check_names,
    pure_noise,
)
from skdpnoise.model_selection._delegation import Delegation, bought_number, settled
from skdpnoise.model_selection._parts import REFERENCE, divide, public_units, release_units
from skdpnoise.model_selection._progress import progress
from skdpnoise.model_selection._release import find_release
from skdpnoise.model_selection._runs import Outcome, Parts, Problem, Target
from skdpnoise.model_selection._scoring import SCORINGS, Scoring, choose_scoring
from skdpnoise.model_selection._statement import charge, state
from skdpnoise.model_selection._strategies import (
    NoisyMax,
    OneRelease,
    RepeatedRuns,
    Strategy,
)
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sampling import RandomWords, random_words

__all__ = ["PrivateSearchCV"]

_VALIDATION = 0.1  # of the records

# Runs try one of the best fifth of candidates with probability .95. Where fits of all candidates
# get nearly as much as runs would, none is left to chance.
_BEST, _COVERAGE, _NEARLY = 0.2, 0.95, 0.9


class PrivateSearchCV(Delegation, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator, ABC):
    """A search over candidates under one guarantee; subclasses say which candidates."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "get_params", "set_params"])],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "scoring": [None, StrOptions(set(SCORINGS))],
        "strategy": [StrOptions({"auto", "release", "repeated", "noisy_max"})],
        "repetitions": [StrOptions({"auto"}), HasMethods(["sample", "pmf"])],
        "refit": ["boolean"],
        "validation_fraction": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "adjacency": [StrOptions({"replace_one", "add_remove"})],
        "target_bounds": [None, tuple, list, np.ndarray],
        "public": [tuple, list, set, frozenset],
        "ledger": [None, HasMethods("charge")],
        "rows_per_group": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [None, Integral],
    }

    @abstractmethod
    def _candidates(self, words: RandomWords) -> list[Mapping[str, Any]]:
        """Return the parameters of all candidates, public."""

    @with_callbacks
    def fit(self, X: Any, y: Any, groups: Any = None, **unpaid: Any) -> PrivateSearchCV:
        """Choose, fit and score on private data, spending the whole guarantee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, in any form that the estimator takes.
        y : array-like of shape (n_samples,)
            Target or labels.
        groups : array-like of shape (n_samples,) or None, default=None
            Whose row it is: the guarantee is then for groups, of which at most `rows_per_group`
            rows are used.
        **unpaid : dict
            Refused: in particular ``sample_weight``, for which no sensitivity is proven.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the data are not as described, or the strategy cannot be used.
        TypeError
            If the estimator is not private, or anything else is passed.
        BudgetExceededError
            If the ledger does not have enough left; nothing is spent then.
        """
        # check
        check_unpaid_arguments(self, unpaid)
        self._validate_params()
        owner = type(self).__name__
        guarantee = PrivacyGuarantee(self.epsilon, self.delta, self.adjacency)
        check_candidate(owner, self.estimator, self.adjacency, self.public)
        scoring = choose_scoring(owner, self.scoring, self.estimator)
        known = self._public_units(scoring)
        X, y, classes = self._checked(X, y)
        codes = self._codes(groups, len(y))
        advise(self)
        advise_on_public_number(self, len(y), codes)
        # bound
        words = random_words(self.random_state)
        candidates = self._candidates(words)
        check_names(owner, candidates)
        rows = np.arange(len(y)) if codes is None else sample_rows(codes, self._most, words)
        # calibrate
        strategy = self._strategy(guarantee, candidates, grouped=codes is not None)
        buys = scoring.needs_target and strategy.name != "release"
        parts = self._divided(rows, codes, strategy, REFERENCE if buys else 0.0, words)
        shared = (scoring, X, y, parts, self.adjacency, self.delta, classes, words)
        problem = Problem(self.estimator, candidates, *shared)
        self._rehearse(problem, strategy)
        # charge
        most = None if codes is None else self._most
        report = state(self, guarantee, strategy, len(candidates), words.secure, most)
        charge(self, report)
        # draw, choose, store
        try:
            outcome = self._chosen(problem, strategy, known)
            advise_on_bought_number(self, bought_number(outcome.model), grouped=codes is not None)
        except BaseException as error:
            if self.ledger is not None:
                error.add_note(f"The ledger was charged {report.total}, which stays spent.")
            raise
        self._store(outcome, candidates, strategy, report, scoring)
        return self

    def _chosen(self, problem: Problem, strategy: Strategy, known: Target | None) -> Outcome:
        """Run the search; the number of tasks is told where it is public."""
        n_tasks = None if strategy.name == "repeated" else len(problem.candidates)
        with progress(self, n_tasks, problem.X, problem.y) as tell:
            target = Target() if known is None else known
            reference = problem.parts.reference
            if reference.size:
                options = (strategy.part_budget, self.adjacency, problem.words)
                target = release_units(problem.y[reference], known, problem.scoring, *options)
            return strategy.run(problem, target, self.n_jobs, tell)

    @property
    def _most(self) -> int:
        return int(self.rows_per_group)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.target_tags = deepcopy(inner.target_tags)
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def _codes(self, groups: Any, n_rows: int) -> NDArray[np.intp] | None:
        """Return the number of each row's group; None if there are no groups."""
        owner = type(self).__name__
        if groups is not None:
            return group_codes(f"{owner}.fit", groups, n_rows)
        if self._most > 1:
            raise ValueError(
                f"The 'rows_per_group' parameter of {owner} must be 1 without groups. Got "
                f"{self._most} instead: pass groups= to fit, or leave it at 1."
            )
        return None

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
        """Return X, y as an array, and the public labels of a classifier."""
        X, y = indexable(X, y)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = column_or_1d(y, warn=True)
        if len(y) < 4:
            raise ValueError(
                f"Found array with {len(y)} sample(s) while a minimum of 4 is required by "
                f"{type(self).__name__}."
            )
        if not is_classifier(self.estimator):
            return X, _as_numbers(type(self).__name__, y), None
        check_classification_targets(y)
        return X, y, np.unique(y)

    def _row_budget(self, guarantee: PrivacyGuarantee, *, grouped: bool) -> LossBudget:
        """Return the whole budget, with respect to one row."""
        budget: LossBudget
        if pure_noise(self.estimator) or guarantee.delta == 0.0:
            budget = PureLoss(guarantee.epsilon)
        else:
            budget = GaussianLoss(gdp_mu(guarantee.epsilon, guarantee.delta))
        return budget.per_row(self._most) if grouped else budget

    def _strategy(
        self, guarantee: PrivacyGuarantee, candidates: list[Mapping[str, Any]], *, grouped: bool
    ) -> Strategy:
        """Return the strategy, "auto" being the one that leaves most to each fit."""
        total = self._row_budget(guarantee, grouped=grouped)
        release = find_release(self.estimator, candidates)
        name, count = self.strategy, len(candidates)
        if release is not None and name in ("auto", "release"):
            return OneRelease(total, release, self.validation_fraction != "auto")
        if name == "release":
            raise ValueError(
                f"strategy='release' of {type(self).__name__} needs candidates that are "
                "post-processing of one release: 'alpha' and 'l1_ratio' of a "
                "DPCoordinateDescentRegressor with solver='gram' or 'auto', at the end of a "
                "pipeline or alone. Use strategy='auto'."
            )
        each = NoisyMax(total, count, bool(self.refit))
        if name == "noisy_max" or (name == "auto" and (self.refit or count == 1)):
            return each
        law = self.repetitions
        if isinstance(law, str):
            law = choose_repetitions(max(count, 2), guarantee, coverage=_COVERAGE, best=_BEST)
        kind = "pure" if isinstance(total, PureLoss) else "gaussian"
        runs = RepeatedRuns.within(guarantee, law, kind, self._most if grouped else 1)
        if name == "auto" and _size(each.fit_budget) >= _NEARLY * _size(runs.fit_budget):
            return each
        return runs

    def _divided(
        self,
        rows: NDArray[np.intp],
        codes: NDArray[np.intp] | None,
        strategy: Strategy,
        reference: float,
        words: RandomWords,
    ) -> Parts:
        """Return the parts of the rows that are used."""
        if isinstance(strategy, OneRelease) and not strategy.apart:
            return Parts(rows, rows, rows[:0])
        fraction = _VALIDATION if self.validation_fraction == "auto" else self.validation_fraction
        groups = None if codes is None else codes[rows]
        return divide(rows.size, fraction, reference, self.adjacency, words, groups).of(rows)

    def _public_units(self, scoring: Scoring) -> Target | None:
        if not scoring.needs_target or self.target_bounds is None:
            return None
        return public_units(as_bounds(self.target_bounds, 1, "target_bounds", self))

    def _rehearse(self, problem: Problem, strategy: Strategy) -> None:
        """Let candidates check their parameters and the data, up to where they would be charged."""
        owner, first = type(self).__name__, problem.candidate(0)
        for index in range(len(problem.candidates)):
            check_alternative(owner, problem.candidate(index), self.estimator)
        if isinstance(strategy, OneRelease):
            first = strategy.release.estimator
        parts = problem.parts
        rows = np.union1d(parts.train, np.union1d(parts.validation, parts.reference))
        try:
            problem.fitted(problem.priced(first, strategy.fit_budget, rehearse=True), rows)
        except Rehearsed:
            return
        raise ValueError(
            f"The 'estimator' parameter of {type(self).__name__} must charge for what it releases. "
            f"Got {type(self.estimator).__name__}, which released nothing, or did not charge."
        )

    def _store(
        self,
        outcome: Outcome,
        candidates: list[Mapping[str, Any]],
        strategy: Strategy,
        report: PrivacyReport,
        scoring: Scoring,
    ) -> None:
        """Set the fitted attributes, all at once."""
        best = dict(candidates[outcome.candidate])
        results: dict[str, Any] = {
            f"param_{name}": np.ma.MaskedArray(np.array([value], dtype=object), mask=[False])
            for name, value in best.items()
        }
        results |= {
            "params": [best],
            "mean_test_score": np.array([outcome.score]),
            "rank_test_score": np.array([1], dtype=np.int32),
        }
        model = settled(outcome.model, report)
        fitted = {
            "best_params_": best,
            "best_index_": 0,
            "best_score_": outcome.score,
            "best_estimator_": model,
            "cv_results_": results,
            "n_candidates_": len(candidates),
            "strategy_": strategy.name,
            "scorer_": get_scorer(scoring.name),
            "fit_budget_": strategy.fit_budget,
            "privacy_": report,
            "multimetric_": False,
        }
        if hasattr(model, "feature_names_in_"):
            fitted["feature_names_in_"] = model.feature_names_in_
        for name, value in fitted.items():
            setattr(self, name, value)


def _as_numbers(owner: str, y: NDArray[Any]) -> NDArray[np.float64]:
    """Return a target as numbers; the message of a failure does not show it."""
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"Unknown label type: {owner} needs y of numbers for a regressor, got text.")


def _size(budget: LossBudget) -> float:
    return budget.pure_epsilon if isinstance(budget, PureLoss) else budget.mu
