"""Hyper-parameter search in which everything that is learnt from the data is charged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.checks import check_type
from skdpnoise._utils.numbers import JOBS, check_grouped
from skdpnoise._utils.parameters import as_bounds, check_parameters
from skdpnoise._utils.silence import silence
from skdpnoise.accounting.budget import BESIDE, HALF
from skdpnoise.accounting.limits import pure_part
from skdpnoise.accounting.reservation import returnable
from skdpnoise.accounting.session import Session
from skdpnoise.base import advice
from skdpnoise.base.callbacks import CallbackSupportMixin, with_callbacks
from skdpnoise.base.compositions import Children, register_inner
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.misuse_warnings import clone_with_ledger, warn_of_misuse
from skdpnoise.base.partitioned import answered
from skdpnoise.base.private_fit import check_unpaid_arguments
from skdpnoise.base.register import register_private
from skdpnoise.compose.fitting import read_to_fit, settled
from skdpnoise.compose.shares import search_budget, seed_from
from skdpnoise.compose.statement import drawing, reserve_whole
from skdpnoise.compose.whole import WholeMixin
from skdpnoise.data.columns import check_data, read_features
from skdpnoise.data.fitted_kinds import read_as_fitted
from skdpnoise.data.groups import Groups
from skdpnoise.data.reading import Form, Supervised, read
from skdpnoise.data.redaction import check_collected, without_values
from skdpnoise.data.schema import Schema
from skdpnoise.data.sources import RowSource, by_storage
from skdpnoise.data.table import InMemory
from skdpnoise.data.targets import check_two_classes
from skdpnoise.mechanisms import choose_repetitions
from skdpnoise.mechanisms.requests import number_of
from skdpnoise.metrics.scoring import SCORINGS, Scoring, check_pairs, choose_scoring
from skdpnoise.model_selection import _runs, _splits
from skdpnoise.model_selection._candidates import (
    Candidate,
    declared_by,
    public_labels,
    sealed_candidates,
)
from skdpnoise.model_selection._runs import Outcome, SearchProblem, Target
from skdpnoise.model_selection._splits import Parts, Records
from skdpnoise.model_selection._strategies import NoisyMax, OneRelease, RepeatedRuns, Strategy
from skdpnoise.planning.mixin import PlanMixin
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.privacy.repetition.laws import PoissonRepetitions, TruncatedNegativeBinomial
from skdpnoise.sampling import RandomWords, random_words

FEWEST = 4  # rows: two to fit, one to score, one to learn the units of the target
# Runs try one of the best fifth of candidates with probability .95.
_BEST, _COVERAGE = 0.2, 0.95

_LAWS = (TruncatedNegativeBinomial, PoissonRepetitions)
# Of what callbacks of scikit-learn may ask for, what they do not get.
_HOOKS = ("on_fit_task_begin", "on_fit_task_end")
_SECRET = {"X", "y", "fitted_estimator"}


@dataclass(frozen=True, slots=True)
class StepColumns(Form[Any, Schema]):
    """X in any form that steps take, beside a y of as many rows."""

    fewest: int = FEWEST

    def read(self, estimator: Any, tables: Records) -> tuple[InMemory[Any], Schema]:
        owner = type(estimator).__name__
        X = read_features(owner, tables["X"])
        n_rows = check_data(owner, X, tables["y"])
        if n_rows < self.fewest:
            raise ValueError(
                f"Found array with {n_rows} sample(s) while a minimum of {self.fewest} is required "
                f"by {owner}."
            )
        if isinstance(X, list):  # of texts, say
            X = np.fromiter(X, dtype=object, count=n_rows)
        return InMemory(X, n_rows), Schema(n_columns=0, n_rows=None)

    def scan(self, estimator: Any, tables: Records) -> Schema:
        return replace(self, fewest=0).read(estimator, tables)[1]

    def agreed(self, estimator: Any, found: list[Schema], source: RowSource | None) -> Schema:
        return found[0]

    def load(
        self, schema: Schema, computed: frozenset[str]
    ) -> tuple[Callable[[Records], Any], tuple[int, ...]]:
        return _features, ()


def _features(tables: Records) -> Any:
    return read_features("A fit", tables["X"])


def _offers(method: str) -> Any:
    def check(search: Any) -> bool:
        fitted = hasattr(search, "best_estimator_")
        getattr(search.best_estimator_ if fitted else search.estimator, method)
        return True

    return available_if(check)


def _delegated(method: str) -> Any:
    """Return a method that the winner runs, where the estimator has it."""

    def run(self: PrivateSearchCV, X: Any) -> Any:
        """Return what this method of the winner says of rows in memory, or in parts."""
        check_is_fitted(self)
        X = read_as_fitted(self, X)
        return answered(type(self).__name__, self.best_estimator_, method, X)

    run.__name__ = method
    return _offers(method)(run)


@constructor_of_fields
class PrivateSearchCV(WholeMixin, PlanMixin, BaseSearchCV, CallbackSupportMixin):
    """A search over candidates under one guarantee; subclasses say which candidates."""

    _parameter_constraints: ClassVar[Constraints] = {
        "estimator": [HasMethods(["fit", "get_params", "set_params"])],
        "scoring": [None, StrOptions(set(SCORINGS))],
        "strategy": [StrOptions({"auto", "release", "repeated", "noisy_max"})],
        "repetitions": [StrOptions({"auto"}), *_LAWS],
        "refit": [StrOptions({"auto"}), "boolean"],
        "validation_fraction": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "target_bounds": [None, tuple, list, np.ndarray],
        "n_jobs": JOBS,
    }

    estimator: Any
    _: KW_ONLY
    scoring: str | None = None
    strategy: str = "auto"
    repetitions: Any = "auto"
    refit: bool | str = "auto"
    validation_fraction: float | str = "auto"
    target_bounds: tuple[float, float] | None = None
    n_jobs: int | None = None

    @abstractmethod
    def _candidates(self, rng: RandomWords) -> list[Mapping[str, Any]]:
        """Return the parameters of all candidates, public."""

    @with_callbacks
    def fit(self, X: Any, y: Any, groups: Any = None, **params: Any) -> PrivateSearchCV:
        """Choose, fit and score on private data, spending the whole guarantee.

        Parameters
        ----------
        X : array-like or RowSource of shape (n_samples, n_features)
            Features, in any form that the estimator takes. Of rows in parts the same candidate is
            chosen as in memory; its fits, and the scores, read some rows at a time.
        y : array-like or RowSource of shape (n_samples,)
            Target or labels; of rows in parts a column of the same source.
        %(fits: groups, **params)s

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the data are not as described, or the strategy cannot be used.
        TypeError
            If the estimator is not private, or anything else is passed.
        %(queries: SpreadError)s
        %(fits: BudgetExceededError)s
        """
        # check
        owner = type(self).__name__
        warn_of_misuse(self)
        check_unpaid_arguments(self, params)
        check_parameters(self)
        check_callbacks(self)
        guarantee = PrivacyGuarantee(self.epsilon, self.delta, self.adjacency)
        session = Session.of_whole(random_words(self.random_state), self.adjacency)
        candidates = sealed_candidates(self, self._candidates(session.rng))
        scoring = choose_scoring(owner, self.scoring, [c.estimator for c in candidates])
        check_grouped(self, groups)
        # plan
        most = None if groups is None else int(self.rows_per_group)
        advice.advise(self)
        strategy = self._strategy(guarantee, candidates, most)
        estimates = scoring.needs_shares or (scoring.needs_target and strategy.name != "release")
        reference = _runs.REFERENCE if estimates else 0.0
        given = public_labels(owner, candidates)
        declared = declared_by(candidates, X, y, given)
        problem = SearchProblem(
            candidates=candidates,
            scoring=scoring,
            target=self._public_units(scoring),
            session=session,
            epsilon=self.epsilon,
            delta=self.delta,
            declared=declared,
            n_jobs=self.n_jobs,
        )
        for one in strategy.fitted_alone(candidates):
            problem.check(owner, one, strategy.fit_budget)
        report = strategy.report(owner, guarantee, problem, most)

        def cost_of(asked: PrivacyGuarantee) -> PrivacyLoss:
            chosen = strategy if asked == guarantee else self._strategy(asked, candidates, most)
            return chosen.loss(most or 1)

        asked, ledger = copy(self), self.ledger  # whoever is charged may change parameters
        # reserve
        stated = report.unit, report.releases[0].noise, report.declared
        reservation = reserve_whole(self, guarantee, cost_of, *stated)
        # read

        def checked() -> Any:
            schema, records, columns = self._read(X, y, groups, candidates)
            classes = schema.classes if given is None else given
            if is_classifier(candidates[0].estimator) and classes is not None:
                where = "'classes' of the estimator that is searched over"
                check_two_classes(owner, classes, where)
            check_pairs(owner, scoring, 0 if classes is None else len(classes), self.adjacency)
            asked._check_enough(records, reference)
            for one in strategy.fitted_alone(candidates):
                problem.read(owner, one, strategy.fit_budget, records.rows)
            return records, classes, columns

        records, classes, columns = returnable(reservation, checked)
        reservation.keep()
        session.spend("choice and scores", report)
        # draw, choose, store
        with drawing(self, reservation, report.total):
            parts = asked._divided(records.kept(session.rng), strategy, reference, session)
            problem = replace(problem, classes=classes, parts=parts)
            outcome = _runs.without_traces(lambda: self._run(problem, strategy, estimates))
            estimated, said = advice.estimated_number(outcome.models[-1]), outcome.said()
            for model in outcome.models:
                settled(model, report, ledger)
            self._store(outcome, problem, strategy)
            self._columns, self.privacy_ = columns, report
            for warning in said:
                advice.warn_last(*warning)
            advice.advise_on_estimated_number(self, estimated, grouped=groups is not None)
        return self

    def _read(
        self, X: Any, y: Any, groups: Any, candidates: Sequence[Candidate]
    ) -> tuple[Schema, Groups[Records], Any]:
        compared = [one.estimator for one in candidates]
        X, columns = read_to_fit(self, X, compared)
        form = Supervised(StepColumns(), is_classifier(compared[0]), fewest=FEWEST)
        with silence(DataConversionWarning):  # of a shape
            schema, records = read(self, form, groups=groups, X=X, y=y)
        advice.advise_on_public_number(self, records.rows.n_rows, records.n_groups)
        return schema, records, columns

    def _run(self, problem: SearchProblem, strategy: Strategy, estimates: bool) -> Outcome:
        n_tasks = None if strategy.name == "repeated" else len(problem.candidates)
        with progress(self, n_tasks) as tell, silence():
            if estimates:
                target = _runs.release_units(problem, pure_part(strategy.total))
                problem = replace(problem, target=target)
            outcome = strategy.run(problem, tell)
            if outcome.models[0] is None:
                raise _runs.SearchStopped(_runs.FAILED)
            return outcome

    predict = _delegated("predict")
    predict_proba = _delegated("predict_proba")
    predict_log_proba = _delegated("predict_log_proba")
    decision_function = _delegated("decision_function")

    @_offers("score")
    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """Return the score of the winner, without noise: of private records, not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : None
            For scikit-learn's conventions; weights are refused.

        Returns
        -------
        float
            By `scoring`, or the winner's own score.
        """
        check_is_fitted(self)
        check_unpaid_arguments(self, {"sample_weight": sample_weight}, "score")
        owner, model = type(self).__name__, self.best_estimator_
        refused = partial(answered, owner, model, "score")  # rows in parts
        rows: Any = by_storage(read_as_fitted(self, X), lambda rows: rows, refused)
        check_collected(owner, "y", type(y))
        scorer = check_scoring(model, scoring=self.scoring)
        with without_values(
            f"{owner}.score cannot compare y with the predictions for X: give the columns that "
            "were fitted to, and one finite number, or label of the kind that was fitted, for each "
            "row of X."
        ):
            return float(scorer(model, rows, y))

    @property
    def classes_(self) -> Any:
        """Labels of the winner, for classifiers."""
        check_is_fitted(self)
        return self.best_estimator_.classes_

    __sklearn_clone__ = clone_with_ledger

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = deepcopy(get_tags(self.estimator).target_tags)
        tags.input_tags.sparse = False
        return tags

    def get_metadata_routing(self) -> Any:
        return BaseEstimator.get_metadata_routing(self)  # nothing is handed to steps within

    def _strategy(
        self, guarantee: PrivacyGuarantee, candidates: Sequence[Candidate], most: int | None
    ) -> Strategy:
        """Return the strategy, "auto" being the one that leaves most to each fit."""
        pure, samples = candidates[0].pure, any(one.samples for one in candidates)
        kinds = {"pure": pure, "samples": samples}
        total = search_budget(guarantee, **kinds, rows_per_group=most or 1)
        release = OneRelease.within(total, candidates, apart=self.validation_fraction != "auto")
        name, count, law = self.strategy, len(candidates), self.repetitions
        # The cost of a subclass of these laws is not known.
        check_type(type(self).__name__, "repetitions", law, str, *_LAWS)
        if release is not None and name in ("auto", "release"):
            return release
        if name == "release":
            raise ValueError(
                f"strategy='release' of {type(self).__name__} needs candidates that are "
                "post-processing of one release: 'alpha' and 'l1_ratio' of a "
                "DPCoordinateDescentRegressor with solver='gram' or 'auto', at the end of a "
                "pipeline or alone. Use strategy='auto'."
            )
        # Half of the budget for the winner is more than its share of 1/k for k > 2 candidates.
        asked = None if isinstance(self.refit, str) else bool(self.refit)
        each = NoisyMax.within(total, count, refit=count > 2 if asked is None else asked)
        if name == "noisy_max" or (name == "auto" and (asked or count == 1)):
            return each
        if isinstance(law, str):
            law = choose_repetitions(max(count, 2), guarantee, coverage=_COVERAGE, best=_BEST)
        runs = RepeatedRuns.within(guarantee, law, total, most or 1)
        share = NoisyMax.within(total, count, refit=False)
        sizes = [number_of(pure_part(one.fit_budget)) for one in (share, runs)]
        if name == "auto" and sizes[0] >= (1.0 - BESIDE) * sizes[1]:
            return each
        return runs

    def _divided(
        self, records: Groups[Records], strategy: Strategy, reference: float, session: Session
    ) -> Parts:
        shares = strategy.shares(self._fraction, reference)
        if not shares:
            return Parts(records.rows.undivided(), (0,), (0,))
        found = _splits.divide(records, shares, session, strategy.name == "folds")
        if found is None:
            raise self._too_few()
        return found

    @property
    def _fraction(self) -> float:
        given = self.validation_fraction
        return _runs.REFERENCE if isinstance(given, str) else given

    def _check_enough(self, records: Groups[Records], reference: float) -> None:
        """Refuse too few records, as far as is public before they are divided."""
        # Of a private number of rows it tells whether two are left: hardly ever, if half are.
        left = records.rows.n_rows * (1.0 - self._fraction - reference)
        units = records.rows.n_rows if records.n_groups is None else records.n_groups
        few = left < 2.0 or units < 2 + (reference > 0.0)  # a group falls into one part
        if few if self.adjacency == "replace_one" else self._fraction > HALF:
            raise self._too_few()

    def _too_few(self) -> ValueError:
        return ValueError(
            f"The 'validation_fraction' parameter of {type(self).__name__} must leave 2 rows "
            f"to fit and 1 to score at least, and half of them where their number is private. "
            f"Got {self.validation_fraction!r}, and too few rows, or groups, for it."
        )

    def _public_units(self, scoring: Scoring) -> Target:
        """Return the units of a target with finite public bounds: half of them is two scales."""
        low, high = as_bounds(self.target_bounds, 1, "target_bounds", self)[:, 0]
        if not scoring.needs_target or not np.isfinite([low, high]).all():
            return Target()
        return Target(0.5 * low + 0.5 * high, 0.25 * (high - low), public=True)

    def _store(self, outcome: Outcome, problem: SearchProblem, strategy: Strategy) -> None:
        best = problem.candidates[outcome.candidate].parameters
        self.best_params_, self.best_index_ = best, 0
        (self.best_score_,), (self.best_estimator_,) = outcome.scores, outcome.models
        # One row each, which holds a value whole also where it is a collection.
        rows = {name: np.array([value, None], dtype=object)[:1] for name, value in best.items()}
        columns = {f"param_{name}": np.ma.MaskedArray(row, [False]) for name, row in rows.items()}
        found = {"params": [best], "mean_test_score": np.array(outcome.scores)}
        self.cv_results_ = {**columns, **found, "rank_test_score": np.array([1], dtype=np.int32)}
        self.n_candidates_, self.strategy_ = len(problem.candidates), strategy.name
        self.scorer_, self.fit_budget_ = get_scorer(problem.scoring.name), strategy.fit_budget
        self.multimetric_ = False
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit, to a frame
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def check_callbacks(search: Any) -> None:
    """Refuse callbacks that ask for records or models, such as scikit-learn's ScoringMonitor."""
    owner = type(search).__name__
    for callback in getattr(search, "_skl_callbacks", ()):
        hooks = [getattr(callback, name) for name in _HOOKS]
        asked = sorted(_SECRET & {name for hook in hooks for name in signature(hook).parameters})
        if asked:
            raise ValueError(
                f"Callbacks of {owner} get neither records nor models: exact scores and "
                "models that do not win are not covered by the guarantee. Got a "
                f"{type(callback).__name__}, which asks for {', '.join(asked)}. Use one that does "
                "not, such as ProgressBar."
            )


@contextmanager
def progress(search: Any, n_tasks: int | None) -> Iterator[Callable[[str], None]]:
    """Tell callbacks that a search begins and ends; yield a function to call after each task."""
    if not hasattr(search, "_init_callback_context"):
        yield lambda name: None
        return
    # No records and no model are handed out: what does not win is not paid for, nor are scores.
    common: dict[str, Any] = {"estimator": search, "metadata": {}}
    whole = search._init_callback_context(max_subtasks=n_tasks or 0)
    whole.call_on_fit_task_begin(**common)

    def tell(name: str) -> None:
        if n_tasks:
            task = whole.subcontext(task_name=name)
            task.call_on_fit_task_begin(**common)
            task.call_on_fit_task_end(**common)

    yield tell
    whole.call_on_fit_task_end(**common)


@register_private
@constructor_of_fields
class DPGridSearchCV(PrivateSearchCV):
    r"""Search over a grid of parameters: search, score and final model under one guarantee.

    One (ε, δ) covers the chosen parameters, the winner's score and the fitted winner, for any
    number of candidates; `GridSearchCV` would spend a budget on every fit, and show exact scores.
    The estimator's own budgets only say how the steps of a pipeline share the budget of one fit.

    Parameters
    ----------
    %(parameters)s
    param_grid : dict or list of dict
        Values of parameters, as for scikit-learn's `GridSearchCV`; numbers, text, arrays and
        estimators, of which `fit` makes copies at once. **Public**: it must not be made by looking
        at the data.

    Attributes
    ----------
    %(searches: best_params_, best_estimator_, best_score_, best_index_, cv_results_)s
    %(searches: n_candidates_, strategy_, fit_budget_, scorer_, privacy_, classes_)s
    %(estimators: n_features_in_, feature_names_in_)s

    See Also
    --------
    DPRandomizedSearchCV : Candidates sampled from distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPGridSearchCV, DPLogisticCD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + rng.normal(size=20_000) > 0
    >>> grid = {"alpha": [0.0, 0.01, 0.03, 0.1]}
    >>> search = DPGridSearchCV(DPLogisticCD(feature_bounds=(-4, 4)), grid).fit(X, y)
    >>> search.strategy_, bool(search.score(X, y) > 0.65)
    ('repeated', True)
    >>> print(search.privacy_.guarantee)
    (ε=1, δ=1e-06)-DP, replace_one
    """

    _parameter_constraints: ClassVar[Constraints] = {"param_grid": [dict, list]}

    param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]]

    def _candidates(self, rng: RandomWords) -> list[Mapping[str, Any]]:
        return list(ParameterGrid(self.param_grid))


@register_private
@constructor_of_fields
class DPRandomizedSearchCV(PrivateSearchCV):
    """Search over candidates sampled from distributions, under one guarantee.

    As :class:`DPGridSearchCV`, with candidates from `param_distributions` as scikit-learn's
    `RandomizedSearchCV` samples them. They are sampled without looking at the data and are public.

    Parameters
    ----------
    %(parameters)s
    param_distributions : dict or list of dict
        Values of parameters, or distributions with a method ``rvs``.
    n_iter : int, default=10
        Number of candidates.

    Attributes
    ----------
    %(searches: best_params_, best_estimator_, best_score_, best_index_, cv_results_)s
    %(searches: n_candidates_, strategy_, fit_budget_, scorer_, privacy_, classes_)s
    %(estimators: n_features_in_, feature_names_in_)s

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdpnoise import DPCoordinateDescentRegressor, DPRandomizedSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + rng.normal(size=20_000)
    >>> penalties = {"alpha": loguniform(1e-4, 1.0)}
    >>> search = DPRandomizedSearchCV(DPCoordinateDescentRegressor(), penalties).fit(X, y)
    >>> search.strategy_, search.n_candidates_, bool(search.score(X, y) > 0.4)
    ('release', 10, True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "param_distributions": [dict, list],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    n_iter: int = field(default=10, kw_only=True)

    def _candidates(self, rng: RandomWords) -> list[Mapping[str, Any]]:
        # Seeds of candidates are public: they are not those of the noise.
        seed = seed_from(rng)
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=seed))


def _winner(search: PrivateSearchCV, fitted: bool) -> tuple[Children, Collection[str]]:
    """Return the winner, once there is one, and the names of its steps that are vouched for."""
    if not fitted or not hasattr(search, "best_estimator_"):
        return (), ()
    winner = search.best_estimator_
    steps = {name for name, one in winner.get_params().items() if hasattr(one, "fit")}
    return (("", winner),), set(search._report.declared) & steps


for _search in (DPGridSearchCV, DPRandomizedSearchCV):
    register_inner(_search, _winner)
