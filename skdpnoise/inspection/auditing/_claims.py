"""The claim of an estimator, and clones of it that an audit may run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from skdpnoise._utils.nested import estimators_in, give_seeds
from skdpnoise.base.register import is_private
from skdpnoise.base.steps import relation_of
from skdpnoise.data.sources import by_storage
from skdpnoise.planning.plan_fits import clone_without, uncharged_fits
from skdpnoise.privacy import PrivacyGuarantee

_SAYS = {
    "epsilon": "what it claims: pass epsilon= (and delta=, adjacency=) to audit",
    "adjacency": "for which neighbours its epsilon holds: pass adjacency='replace_one' or "
    "adjacency='add_remove' to audit, as its documentation says",
}


def claimed(
    estimator: Any, epsilon: float | None, delta: float | None, adjacency: str | None
) -> PrivacyGuarantee:
    """Return the guarantee that is audited: what is given, else what parameters say."""
    # A δ that is named nowhere is 0, as of estimators that know pure privacy only. A neighbouring
    # relation that is named nowhere is not guessed: a wrong one would accuse the innocent.
    name, params = type(estimator).__name__, {"delta": 0.0, **estimator.get_params(deep=False)}
    if is_private(estimator) and "adjacency" in params:
        params["adjacency"] = relation_of(estimator)
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    stated: dict[str, Any]
    stated = {key: params.get(key) if one is None else one for key, one in given.items()}
    for key, says in _SAYS.items():
        if stated[key] is None:
            raise ValueError(f"{name} has no parameter {key!r} that says {says}.")
    return PrivacyGuarantee(**stated)


def clone_for_audit(estimator: Any, seed: int | None = None) -> Any:
    # With a seed, everything public in it that takes a random state has one of its own: clones of
    # the same seed take the same public coins. What is private keeps its own, which an observer
    # sets.
    copy, parts = clone_without(estimator, "ledger", "n_jobs")
    if seed is not None:
        give_seeds([part for part in parts if not (_is_ours(part) or is_private(part))], seed)
    return copy


def seeded_clones(estimator: Any, seeds: Sequence[int]) -> Iterator[Any]:
    """Yield clones in which everything that takes a random state has one of its own."""
    for seed in seeds:
        copy, parts = clone_without(estimator, "ledger", "n_jobs")
        give_seeds(parts, seed)
        yield copy


def declared_within(estimator: Any) -> tuple[str, ...]:
    ours = (one for one in estimators_in(estimator, set()) if _is_ours(one))
    declared = (one.get_params(deep=False).get("public") or () for one in ours)
    return tuple(sorted({str(name) for names in declared for name in names}))


def _is_ours(estimator: Any) -> bool:
    return any(kind.__module__.startswith("skdpnoise.") for kind in type(estimator).__mro__)


def fit_quietly(estimator: Any, X: Any, y: Any) -> tuple[Any, list[str], str | None]:
    """Fit to a copy of the data; return the estimator, its warnings, and what was raised, if so."""
    # Another thread would have no observer, and might charge.
    raised = None
    with uncharged_fits() as caught:
        # A step with copy=False changes them. Nothing changes rows in parts.
        X, y = (by_storage(one, deepcopy, lambda source: source) for one in (X, y))
        try:
            estimator.fit(X) if y is None else estimator.fit(X, y)
        except Exception as error:
            raised = said(error)
    return estimator, [f"{w.category.__name__}: {w.message}" for w in caught], raised


def check_fits(name: str, raised: Sequence[str | None]) -> None:
    """Refuse an audit in which every fit fails: that nothing is found would mean nothing."""
    if all(text is not None for text in raised):
        raise ValueError(f"{name} cannot be fitted to these data, or their neighbours: {raised[0]}")


def said(error: Exception) -> str:
    try:
        return f"{type(error).__qualname__}: {error}"
    except Exception:
        return type(error).__qualname__
