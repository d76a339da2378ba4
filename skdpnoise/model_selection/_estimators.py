"""Grid search and randomised search, with differential privacy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils._param_validation import Interval

from skdpnoise.compose import register_private
from skdpnoise.compose.compositions import Children, register_inner
from skdpnoise.compose.shares import seed_from
from skdpnoise.ledger import Ledger as Ledger  # of fields of the base, as the next one
from skdpnoise.model_selection._search import PrivateSearchCV
from skdpnoise.privacy import Adjacency as Adjacency
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sampling import RandomWords


@shared_texts
@register_private
@dataclass(eq=False, repr=False)
class DPGridSearchCV(PrivateSearchCV):
    r"""Search over a grid of parameters: search, score and final model under one guarantee.

    `GridSearchCV` spends a budget on every fit and shows exact scores of private records. Here one
    (ε, δ) covers the whole search, for any number of candidates: the chosen parameters, the
    winner's score and the fitted winner. The estimator's own budgets only say how the steps of a
    pipeline share the budget of one fit.

    Parameters
    ----------
    %(searches: estimator)s
    param_grid : dict or list of dict
        Values of parameters, as for scikit-learn's `GridSearchCV`; numbers, text, arrays and
        estimators, of which `fit` makes copies at once. **Public**: it must not be made by looking
        at the data.
    %(searches: epsilon, delta, scoring, strategy, repetitions, refit, validation_fraction)s
    %(searches: target_bounds, adjacency, public, ledger, rows_per_group)s
    %(estimators: random_state)s
    %(searches: n_jobs)s

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateSearchCV._parameter_constraints,
        "param_grid": [dict, list],
    }

    param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]]

    def _candidates(self, rng: RandomWords) -> list[Mapping[str, Any]]:
        return list(ParameterGrid(self.param_grid))


@shared_texts
@register_private
@dataclass(eq=False, repr=False)
class DPRandomizedSearchCV(PrivateSearchCV):
    """Search over candidates sampled from distributions, under one guarantee.

    As :class:`DPGridSearchCV`, with candidates from `param_distributions` as scikit-learn's
    `RandomizedSearchCV` samples them. They are sampled without looking at the data and are public.

    Parameters
    ----------
    %(searches: estimator)s
    param_distributions : dict or list of dict
        Values of parameters, or distributions with a method ``rvs``.
    %(searches: epsilon, delta, scoring, strategy, repetitions, refit, validation_fraction)s
    %(searches: target_bounds, adjacency, public, ledger, rows_per_group)s
    %(estimators: random_state)s
    %(searches: n_jobs)s
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateSearchCV._parameter_constraints,
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
    return (("", winner),), set(search.privacy_.declared) & set(winner.get_params())


for _search in (DPGridSearchCV, DPRandomizedSearchCV):
    register_inner(_search, _winner)
