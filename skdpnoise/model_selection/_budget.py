"""Candidates with a given share of the budget, and a guard that no fit takes more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from skdpnoise.ledger import BudgetExceededError
from skdpnoise.ledger.steps import learns_nothing
from skdpnoise.noises import noise_names
from skdpnoise.privacy import (
    GaussianLoss,
    LossBudget,
    NumericLoss,
    PrivacyLoss,
    PureLoss,
    gdp_epsilon,
    gdp_mu,
)
from skdpnoise.sampling import RandomWords

__all__ = [
    "Cap",
    "Rehearsed",
    "check_alternative",
    "check_candidate",
    "check_names",
    "private_steps",
    "pure_noise",
    "with_budget",
]

_PURE_FOR_MATRICES = ("k_norm", "wishart")
_SET_BY_SEARCH = {"epsilon", "delta", "adjacency", "ledger", "rows_per_group", "random_state"}
_BELOW = 1e-6  # candidates ask for a little less than there is: ε is rounded up


class Rehearsed(Exception):
    """Raised by a closed cap: all checks are passed, and nothing is drawn yet."""


class Cap:
    """Stands where a ledger would, and lets a fit spend no more than one run may cost.

    Whatever a candidate is made of, each of its parts charges before it draws; so that the run is
    within the loss for which the search is accounted, or does not happen. Costs add up, of adaptive
    parts too, in ε (pure) or in μ² (Gaussian).

    Parameters
    ----------
    limit : PureLoss, GaussianLoss or None
        What a run may cost; None closes the cap: the first charge ends the fit.
    adjacency : str
        Neighbouring relation of the search.
    """

    def __init__(self, limit: LossBudget | None, adjacency: str) -> None:
        self._limit, self._adjacency = limit, adjacency
        self._spent = 0.0
        self.n_charges = 0

    def __deepcopy__(self, memo: Any) -> Cap:
        return self

    def charge(self, label: str, cost: Any, *, adjacency: str | None = None, **facts: Any) -> None:
        """Allow a charge, or refuse it."""
        if self._limit is None:
            raise Rehearsed
        if adjacency not in (None, self._adjacency):
            raise ValueError(f"{label!r} has adjacency {adjacency!r}, not {self._adjacency!r}.")
        loss = cost if isinstance(cost, PrivacyLoss) else cost.privacy_loss()
        if isinstance(self._limit, PureLoss):
            pure = loss.pure_epsilon if isinstance(loss, PureLoss | NumericLoss) else np.inf
            spent, most = self._spent + pure, self._limit.pure_epsilon
        else:
            square = loss.mu**2 if isinstance(loss, GaussianLoss) else np.inf
            spent, most = self._spent + square, self._limit.mu**2
        if spent > most:
            raise BudgetExceededError(
                f"{label!r} would cost {loss}, more than is left of {self._limit} for one run."
            )
        self._spent = spent
        self.n_charges += 1


def private_steps(estimator: Any) -> list[str]:
    """Return the prefixes of the parameters of all private parts: "" for the estimator itself."""
    names = set(estimator.get_params(deep=True))
    found = [name[: -len("epsilon")] for name in names if name.split("__")[-1] == "epsilon"]
    return sorted(p for p in found if {p + "delta", p + "adjacency", p + "ledger"} <= names)


def check_candidate(owner: str, estimator: Any, adjacency: str, public: Collection[str]) -> None:
    """Refuse an estimator that is not private throughout, or has a budget book of its own."""
    prefixes = private_steps(estimator)
    if not prefixes:
        raise TypeError(
            f"The 'estimator' parameter of {owner} must be a private estimator, or a pipeline with "
            f"private steps. Got {type(estimator).__name__}, which has no 'epsilon' to pay with."
        )
    parameters = estimator.get_params(deep=True)
    unpaid = [
        f"{name} ({type(step).__name__})"
        for name, step in _leaves(estimator)
        if "epsilon" not in step.get_params(deep=False)
        and not learns_nothing(step)
        and not {name, name.rpartition("__")[2], type(step).__name__} & set(public)
    ]
    if unpaid:
        raise ValueError(
            f"The 'estimator' parameter of {owner} must pay for what it reads. Got steps that read "
            f"the data unpaid: {', '.join(unpaid)}. Use a private counterpart, such as "
            "DPStandardScaler; or, if nothing private is learnt there, name it in 'public'."
        )
    for prefix in prefixes:
        if parameters[prefix + "ledger"] is not None:
            raise ValueError(
                f"The 'estimator' parameter of {owner} must leave {prefix + 'ledger'!r} at None: "
                f"the search is charged as a whole. Give the ledger to {owner}."
            )
        if parameters[prefix + "adjacency"] != adjacency:
            raise ValueError(
                f"The 'adjacency' parameter of {owner} must be that of its estimator. Got "
                f"{adjacency!r}, and {prefix + 'adjacency'}={parameters[prefix + 'adjacency']!r}."
            )


def check_names(owner: str, candidates: Iterable[Mapping[str, Any]]) -> None:
    """Refuse candidates that set what the search sets, for all alike."""
    set_here = {name for candidate in candidates for name in candidate}
    clash = sorted(name for name in set_here if name.split("__")[-1] in _SET_BY_SEARCH)
    if clash:
        raise ValueError(
            f"The parameters that {owner} varies (param_grid, param_distributions) must not be "
            f"among {sorted(_SET_BY_SEARCH)}, which the search sets. Got {', '.join(clash)}."
        )


def check_alternative(owner: str, candidate: Any, estimator: Any) -> None:
    """Refuse a candidate with invalid parameters, or with noise of another kind of loss."""
    for _, step in _leaves(candidate):
        if hasattr(step, "_validate_params"):
            step._validate_params()
    if pure_noise(candidate) != pure_noise(estimator):
        raise ValueError(
            f"Candidates of {owner} must all have noise of the same kind of loss as the estimator, "
            "pure (Laplace) or Gaussian: one run has one loss. Search them separately."
        )


def pure_noise(estimator: Any) -> bool:
    """Return whether the noise of the private parts calls for a pure budget."""
    parameters = estimator.get_params(deep=True)
    pure = False
    for prefix in private_steps(estimator):
        noise = parameters[prefix + "noise"]
        family = noise.partition("_")[2]
        pure |= parameters[prefix + "delta"] == 0.0 or noise in _PURE_FOR_MATRICES
        pure |= family in noise_names(pure=True)
    return pure


def with_budget(
    estimator: Any,
    budget: LossBudget,
    delta: float,
    *,
    ledger: Any,
    words: RandomWords,
    classes: Any = None,
) -> Any:
    """Return an unfitted copy whose private parts share a budget as their own ε say.

    Parameters
    ----------
    estimator : estimator
        With the parameters of the candidate.
    budget : PureLoss or GaussianLoss
        What all parts together may cost.
    delta : float
        δ at which parts state a Gaussian budget.
    ledger : object with ``charge``
        What the parts charge.
    words : RandomWords
        Seeds, if they are not secure; else parts draw from the operating system themselves.
    classes : ndarray or None, default=None
        Labels of a classifier, where it has a parameter for them that is not set.
    """
    copy = clone(estimator)
    parameters = copy.get_params(deep=True)
    prefixes = private_steps(copy)
    pure = isinstance(budget, PureLoss)
    weights = {p: _weight(parameters, p, pure=pure) for p in prefixes}
    total = sum(weights.values())
    changes: dict[str, Any] = {}
    for prefix in prefixes:
        share = budget.share(weights[prefix] / total * (1.0 - _BELOW))
        if isinstance(share, PureLoss):
            epsilon, own_delta = share.pure_epsilon, 0.0
        else:
            epsilon, own_delta = _stated(share.mu, delta), delta
            if parameters[prefix + "noise"] == "auto":
                changes[prefix + "noise"] = "inid_gaussian"
        changes[prefix + "epsilon"], changes[prefix + "delta"] = epsilon, own_delta
        changes[prefix + "ledger"] = ledger
        changes[prefix + "random_state"] = None if words.secure else _seed(words)
        if classes is not None and parameters.get(prefix + "classes", classes) is None:
            changes[prefix + "classes"] = classes
    return copy.set_params(**changes)


def _stated(mu: float, delta: float) -> float:
    """Return an ε that stands for at most μ at δ."""
    epsilon = gdp_epsilon(mu, delta)
    while epsilon > 0.0 and gdp_mu(epsilon, delta) > mu:
        epsilon *= 1.0 - 1e-9
    return epsilon


def _weight(parameters: dict[str, Any], prefix: str, *, pure: bool) -> float:
    """Return how much of the budget a part asks for: its ε, or its μ²."""
    epsilon, delta = parameters[prefix + "epsilon"], parameters[prefix + "delta"]
    if pure or delta == 0.0:
        return float(epsilon)
    return gdp_mu(float(epsilon), float(delta)) ** 2


def _seed(words: RandomWords) -> int:
    return int(words.take(1)[0] >> np.uint64(32))


def _leaves(estimator: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the innermost estimators of a composition, with names that lead to them."""
    inner = {
        key: value
        for key, value in estimator.get_params(deep=True).items()
        if hasattr(value, "fit") and hasattr(value, "get_params")
    }
    if not inner:
        yield name or type(estimator).__name__, estimator
    for key, value in inner.items():
        if not any(other.startswith(key + "__") for other in inner):
            yield key, value
