"""Grid search and randomised search, with differential privacy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils._param_validation import Interval

from skdpnoise.compose import register_private
from skdpnoise.compose.compositions import register_inner
from skdpnoise.ledger import Ledger
from skdpnoise.model_selection._search import PrivateSearchCV
from skdpnoise.privacy import Adjacency
from skdpnoise.sampling import RandomWords

__all__ = ["DPGridSearchCV", "DPRandomizedSearchCV"]


@register_private
class DPGridSearchCV(PrivateSearchCV):
    r"""Search over a grid of parameters: search, score and final model under one guarantee.

    `GridSearchCV` spends a budget on every fit and shows exact scores of private records. Here one
    (ε, δ) covers the whole search, however many candidates there are: the chosen parameters, the
    winner's score and the fitted winner. Budgets of the estimator say only how pipelines share what
    one fit gets.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a composition whose steps are private or known to learn nothing.
        That is required of **every candidate**, with its own values set, before anything is fitted.
        Callbacks of its own are refused, since they would see what is not paid for.
    param_grid : dict or list of dict
        Values of parameters, as for scikit-learn's `GridSearchCV`; numbers, text, arrays and
        estimators, of which `fit` makes copies at once. **Public**: it must not be made by looking
        at the data.
    epsilon : float, default=1.0
        ε of the whole search.
    delta : float, default=1e-6
        δ of the whole search. 0 asks for pure privacy.
    scoring : {"accuracy", "neg_log_loss", "r2", "neg_mean_squared_error"} or None, default=None
        What is best. None is accuracy for classifiers and R² for regressors. Losses of single
        records are clipped: log-loss at 4, squared errors at two scales of the target, squared.
    strategy : {"auto", "release", "repeated", "noisy_max"}, default="auto"
        "release" makes all candidates from one release, where they are post-processing of it
        (`alpha` and `l1_ratio` of a :class:`~skdpnoise.DPCoordinateDescentRegressor` that can use
        second moments). "repeated" takes the best of a random number of runs of random candidates.
        "noisy_max" fits each candidate with a share of the budget. "auto" is the one that leaves
        most to each fit: "release" where it can be used, "noisy_max" for two or three candidates or
        with `refit`, else "repeated".
    repetitions : law of the number of runs or "auto", default="auto"
        For "repeated": :class:`~skdpnoise.privacy.TruncatedNegativeBinomial` or
        :class:`~skdpnoise.privacy.PoissonRepetitions`.
    refit : bool, default=False
        For "noisy_max", and "auto" then takes that: search with half of the budget, and fit the
        winner again, to all records that were used, with the other half. Else the winner is
        published as it was fitted to the training part; fitting it again is not free.
    validation_fraction : float or "auto", default="auto"
        Of the records, on which candidates are scored and not fitted. "auto" is a tenth; for
        "release" it is none: penalties are judged by the records from which they come, with a
        twentieth of the budget. That flatters those with many columns for few records; give a
        number there.
    target_bounds : tuple (low, high) or None, default=None
        **Public** bounds of the target, for the units of errors. None buys them from a tenth of the
        records, except for "release".
    adjacency : {"replace_one", "add_remove"}, default="replace_one"
        What neighbouring data sets are; must be that of the estimator.
    public : collection of str, default=()
        Names of steps for which you vouch that they learn nothing private. The report lists them as
        "declared public by the user".
    ledger : PrivacyLedger or None, default=None
        What is charged, once, for the whole search. The estimator's own must be None. The winner
        keeps this ledger: fitting it again is charged.
    rows_per_group : int, default=1
        **Public**: of each group (``fit(..., groups=...)``) at most so many rows are used.
    random_state : int, RandomState, Generator or None, default=None
        None draws from the operating system's cryptographic source. Anything else is reproducible
        and protects nobody from those who know it: for tests only.
    n_jobs : int or None, default=None
        Processes for the fits.

    Attributes
    ----------
    best_params_ : dict
        Parameters of the winner.
    best_estimator_ : estimator
        The winner, fitted. Its ``privacy_`` is that of the search. To fit it again, or a clone of
        it, costs what its own ``epsilon`` says, and is charged to `ledger`.
    best_score_ : float
        Its score on the validation part, with noise.
    best_index_ : int
        0, its place in ``cv_results_``.
    cv_results_ : dict
        What was paid for: parameters and noisy score of the winner alone.
    n_candidates_ : int
        Number of candidates.
    strategy_ : str
        How it was searched.
    fit_budget_ : PureLoss or GaussianLoss
        What one fit of a candidate could spend.
    scorer_ : callable
        scikit-learn's scorer of that name, without noise or clipping: not for private records.
    privacy_ : PrivacyReport
        The guarantee of all of this together.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, where X has them.
    classes_ : ndarray
        Labels, of classifiers.

    See Also
    --------
    DPRandomizedSearchCV : Candidates drawn from distributions.

    Notes
    -----
    **Privacy.** Records, or groups, are divided by coins into a training and a validation part;
    neighbouring data sets differ in one of them only, so that each may spend the whole budget. Fits
    charge a cap before they draw, and cannot take more than their share, whatever they are. A run
    of which the fitted steps do not report what they charged ends the search. Scores are sums of
    bounded integers with exact noise. "release" and "noisy_max": costs add; the choice
    is by the exponential mechanism or permute-and-flip. "repeated": one run (candidate, fit, score)
    has the base loss; the loss of the best of a random number of runs follows from that
    (:func:`~skdpnoise.mechanisms.repeated_loss`), and the base is the largest that the guarantee
    allows. Nothing else leaves a run: no warning, no output, no error. A run that fails is the
    worst; if there is no other, one and the same error says so. How long the search takes tells how
    many runs there were; that is not protected. The labels of a classifier count as public. With
    `ledger`, the whole loss is charged before anything is drawn.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022.
    Koskela, Redberg and Wang, "Privacy profiles for private selection", arXiv:2402.06701.
    Liu and Talwar, "Private selection from private candidates", STOC 2019.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateSearchCV._parameter_constraints,
        "param_grid": [dict, list],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        scoring: str | None = None,
        strategy: str = "auto",
        repetitions: Any = "auto",
        refit: bool = False,
        validation_fraction: float | str = "auto",
        target_bounds: tuple[float, float] | None = None,
        adjacency: Adjacency = "replace_one",
        public: Collection[str] = (),
        ledger: Ledger | None = None,
        rows_per_group: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.strategy = strategy
        self.repetitions = repetitions
        self.refit = refit
        self.validation_fraction = validation_fraction
        self.target_bounds = target_bounds
        self.adjacency = adjacency
        self.public = public
        self.ledger = ledger
        self.rows_per_group = rows_per_group
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _candidates(self, words: RandomWords) -> list[Mapping[str, Any]]:
        return list(ParameterGrid(self.param_grid))


@register_private
class DPRandomizedSearchCV(PrivateSearchCV):
    """Search over candidates drawn from distributions, under one guarantee.

    As :class:`DPGridSearchCV`, with candidates from `param_distributions` as scikit-learn's
    `RandomizedSearchCV` draws them. They are drawn without a look at the data and are public.

    Parameters
    ----------
    estimator : estimator
        As for :class:`DPGridSearchCV`.
    param_distributions : dict or list of dict
        Values of parameters, or distributions with a method ``rvs``.
    n_iter : int, default=10
        Number of candidates.
    epsilon, delta, scoring, strategy, repetitions, refit : see :class:`DPGridSearchCV`
    validation_fraction, target_bounds, adjacency, public : see :class:`DPGridSearchCV`
    ledger, rows_per_group, random_state, n_jobs : see :class:`DPGridSearchCV`

    Attributes
    ----------
    best_params_, best_estimator_, best_score_, best_index_ : see :class:`DPGridSearchCV`
    cv_results_, n_candidates_, strategy_, fit_budget_ : see :class:`DPGridSearchCV`
    scorer_, privacy_, n_features_in_, feature_names_in_, classes_ : see :class:`DPGridSearchCV`

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateSearchCV._parameter_constraints,
        "param_distributions": [dict, list],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        n_iter: int = 10,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        scoring: str | None = None,
        strategy: str = "auto",
        repetitions: Any = "auto",
        refit: bool = False,
        validation_fraction: float | str = "auto",
        target_bounds: tuple[float, float] | None = None,
        adjacency: Adjacency = "replace_one",
        public: Collection[str] = (),
        ledger: Ledger | None = None,
        rows_per_group: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.strategy = strategy
        self.repetitions = repetitions
        self.refit = refit
        self.validation_fraction = validation_fraction
        self.target_bounds = target_bounds
        self.adjacency = adjacency
        self.public = public
        self.ledger = ledger
        self.rows_per_group = rows_per_group
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _candidates(self, words: RandomWords) -> list[Mapping[str, Any]]:
        # Seeds of candidates are public: they are not those of the noise.
        seed = None if words.secure else int(words.take(1)[0] >> np.uint64(32))
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=seed))


def _winner(
    search: PrivateSearchCV, fitted: bool
) -> tuple[tuple[tuple[str, Any], ...], Collection[str]]:
    """Return the winner, once there is one, and the names of its steps that are vouched for."""
    if not fitted or not hasattr(search, "best_estimator_"):
        return (), ()
    winner = search.best_estimator_
    return (("", winner),), set(search.privacy_.declared) & set(winner.get_params())


for _search in (DPGridSearchCV, DPRandomizedSearchCV):
    register_inner(_search, _winner)
