"""What a search asks of its estimator and of its candidates, before anything is charged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from skdpnoise.compose import taken_apart
from skdpnoise.compose._caps import Cap, Rehearsed
from skdpnoise.compose._shares import check_shareable, private_steps, pure_noise, with_budget

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

_SET_BY_SEARCH = {"epsilon", "delta", "adjacency", "ledger", "rows_per_group", "random_state"}


def check_candidate(owner: str, estimator: Any, adjacency: str, public: Collection[str]) -> None:
    """Refuse an estimator that is not private throughout, or has a budget book of its own."""
    parts = taken_apart(estimator, owner=owner, parameter="estimator", public=public)
    check_shareable(owner, "estimator", parts, adjacency)


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
    for part in taken_apart(candidate, owner=owner, parameter="estimator"):
        if hasattr(part.estimator, "_validate_params"):
            part.estimator._validate_params()
    if pure_noise(candidate) != pure_noise(estimator):
        raise ValueError(
            f"Candidates of {owner} must all have noise of the same kind of loss as the estimator, "
            "pure (Laplace) or Gaussian: one run has one loss. Search them separately."
        )
