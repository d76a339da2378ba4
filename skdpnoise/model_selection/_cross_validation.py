"""Cross-validation in which everything that is learnt from the data is charged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting import Ledger
from skdpnoise.base.compositions import Children, below, register_inner
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.compose.shares import search_budget
from skdpnoise.compose.whole import ReportOfModels, digests_of
from skdpnoise.data.groups import Groups
from skdpnoise.model_selection._candidates import Candidate
from skdpnoise.model_selection._runs import Outcome, SearchProblem
from skdpnoise.model_selection._search import PrivateSearchCV
from skdpnoise.model_selection._splits import Records
from skdpnoise.model_selection._strategies import Folds, Strategy
from skdpnoise.privacy import Adjacency, PrivacyGuarantee
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.words import with_caveat

_REPORT = ReportOfModels()


@dataclass(frozen=True, eq=False)
class PrivateCrossValidation:
    """Noisy scores of all folds, with what they and the models cost together: all of it public.

    Parameters
    ----------
    scoring : str
        scikit-learn's name of the score.
    test_score : ndarray of shape (n_folds,)
        Score of each fold by the model that was fitted to the others.
    standard_error : ndarray of shape (n_folds,)
        Of the noise of each fold's score. What the folds are made of, and the noise in the models,
        is in the spread of `test_score`; noise of units or shares of labels, which all folds have
        in common, is in neither.
    privacy : PrivacyReport
        What everything cost; it says so if a model was changed since.
    estimator : tuple of estimators or None, default=None
        The fitted models, where they were asked for.

    Examples
    --------
    >>> from skdpnoise import DPLogisticCD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + rng.normal(size=20_000) > 0
    >>> found = dp_cross_validate(DPLogisticCD(feature_bounds=(-4, 4)), X, y)
    >>> found.scoring, found.test_score.shape, found.mean > 0.65
    ('accuracy', (5,), True)
    """

    scoring: str
    test_score: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    privacy: ReportOfModels = _REPORT
    estimator: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        vars(self)["_digests"] = digests_of(self)

    @property
    def mean(self) -> float:
        """Mean score of the folds."""
        return float(self.test_score.mean())

    @property
    def mean_standard_error(self) -> float:
        """Standard error of the mean by the noise of the scores, which is independent."""
        return float(np.linalg.norm(self.standard_error)) / self.test_score.size

    def __str__(self) -> str:
        found = f"{self.scoring}: {self.mean:.4f} ± {self.mean_standard_error:.2g}"
        spread = float(self.test_score.std(ddof=1))
        folds = f"mean of {self.test_score.size} folds, which differ by {spread:.2g}"
        stated = f"{found} ({folds}; {self.privacy.guarantee})"
        return with_caveat(stated, secure=self.privacy.secure)


def _models(result: PrivateCrossValidation, fitted: bool) -> tuple[Children, Collection[str]]:
    children = tuple((str(k), model) for k, model in enumerate(result.estimator or (), 1))
    vouched = [
        below(number, name)
        for number, model in children
        for name in set(vars(result)["_report"].declared) & set(model.get_params())
    ]
    return children, vouched


register_inner(PrivateCrossValidation, _models)


@shared_texts
def dp_cross_validate(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    cv: int = 5,
    scoring: str | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    target_bounds: tuple[float, float] | None = None,
    adjacency: Adjacency = "replace_one",
    public: Collection[str] = (),
    ledger: Ledger | None = None,
    rows_per_group: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    return_estimator: bool = False,
) -> PrivateCrossValidation:
    r"""Score a private model by cross-validation: all models and scores under one guarantee.

    Each of k folds is scored by a model that is fitted to the others. scikit-learn's
    `cross_validate` would spend the budget of the estimator k times, and show exact scores.

    **Guarantee.** A record is in the training sets of k - 1 models, and in one fold that is scored:
    its losses are those of k - 1 fits, each with 0.9/(k - 1) of the budget, and of one noisy sum
    with a tenth. The scores of different folds are of disjoint records and compose in parallel.
    Folds are made by position and coins, so that replacing a record changes one fold only. Where
    shares of labels or units of the target are needed, a tenth of the records is kept from all
    folds and estimates them with the whole budget. Neither training scores nor times are returned.

    Models get a part of the budget only, and score lower than one that is fitted with all of it:
    the fewer folds, the more each gets. To choose among candidates,
    :class:`~skdpnoise.DPGridSearchCV` is cheaper.

    Parameters
    ----------
    estimator : estimator
        A private one, or a pipeline with private steps, unfitted. Its own budget only says how
        the steps of a pipeline share that of one fit.
    X : array-like or RowSource of shape (n_samples, n_features)
        Features, in any form that the estimator takes.
    y : array-like or RowSource of shape (n_samples,)
        Target or labels; of rows in parts a column of the same source.
    %(fits: groups)s
        A whole group is in one fold.
    cv : int, default=5
        Number k of folds. Splitters are refused: folds that are stratified by private labels would
        tell of them.
    scoring : str or None, default=None
        As for :class:`~skdpnoise.DPGridSearchCV`.
    %(WholeMixin: epsilon, delta)s
    %(PrivateSearchCV: target_bounds, adjacency)s
    %(WholeMixin: public)s
    ledger : PrivacyLedger or None, default=None
        What is charged, once, for everything. The estimator's own must be None.
    %(WholeMixin: rows_per_group, random_state)s
    %(PrivateSearchCV: n_jobs)s
    return_estimator : bool, default=False
        Whether to return the fitted models: they are paid for.

    Returns
    -------
    PrivateCrossValidation

    Raises
    ------
    ValueError
        If a parameter or the data are not as described.
    TypeError
        If the estimator is not private, or `cv` is no number.
    %(queries: SpreadError)s
    %(fits: BudgetExceededError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16.
    McSherry, "Privacy integrated queries", SIGMOD 2009, Theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPCoordinateDescentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + rng.normal(size=20_000)
    >>> model = DPCoordinateDescentRegressor(feature_bounds=(-4, 4), target_bounds=(-8, 8))
    >>> found = dp_cross_validate(model, X, y, cv=3, scoring="neg_mean_absolute_error")
    >>> bool(abs(found.mean + 0.8) < 0.1)
    True
    """
    if not isinstance(cv, Integral):
        raise TypeError(
            "The 'cv' parameter of dp_cross_validate must be a number of folds, which are made by "
            f"position and chance. Got an object of type {type(cv).__name__} instead: a splitter "
            "that looks at y or X, such as StratifiedKFold, would tell of private records."
        )
    search = _CrossValidation(
        estimator,
        epsilon=epsilon,
        delta=delta,
        scoring=scoring,
        target_bounds=target_bounds,
        adjacency=adjacency,
        public=public,
        ledger=ledger,
        rows_per_group=rows_per_group,
        random_state=random_state,
        n_jobs=n_jobs,
        cv=cv,
    )
    _, models, *found = search.fit(X, y, groups).outcome_
    facts = search.scoring_, *map(np.array, found), search.privacy_
    return PrivateCrossValidation(*facts, tuple(models) if return_estimator else None)


@constructor_of_fields
class _CrossValidation(PrivateSearchCV):
    """A search with one candidate, which is fitted and scored fold by fold."""

    _parameter_constraints: ClassVar[Constraints] = {
        "cv": [Interval(Integral, 2, None, closed="left")]
    }

    _: KW_ONLY
    cv: int = 5

    def _candidates(self, rng: RandomWords) -> list[Mapping[str, Any]]:
        return [{}]

    def _strategy(
        self, guarantee: PrivacyGuarantee, candidates: Sequence[Candidate], most: int | None
    ) -> Strategy:
        only = candidates[0]
        kinds = {"pure": only.pure, "samples": only.samples}
        return Folds.within(search_budget(guarantee, **kinds, rows_per_group=most or 1), self.cv)

    def _check_enough(self, records: Groups[Records], reference: float) -> None:
        units = records.n_groups or records.rows.n_rows
        if self.adjacency == "replace_one" and units * (1.0 - reference) < self.cv:
            raise self._too_few()

    def _too_few(self) -> ValueError:
        return ValueError(
            "The 'cv' parameter of dp_cross_validate must leave 2 rows to fit and 1 to score at "
            f"least in every fold. Got {self.cv!r}, and too few rows, or groups, for it."
        )

    def _store(self, outcome: Outcome, problem: SearchProblem, strategy: Strategy) -> None:
        self.outcome_, self.scoring_ = outcome, problem.scoring.name


_CrossValidation.__name__ = "dp_cross_validate"  # in messages, reports and ledgers
