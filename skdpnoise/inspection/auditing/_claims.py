"""The claim of an estimator, and clones of it that an audit may run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from typing import Any

from joblib import parallel_config
from sklearn.base import clone

from skdpnoise._utils.context import within
from skdpnoise._utils.nested import estimators_in, give_seeds
from skdpnoise.base.register import is_private
from skdpnoise.data.sources import by_storage
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, check_adjacency

__all__ = [
    "check_fits",
    "claimed",
    "clone_for_audit",
    "declared_within",
    "fit_quietly",
    "is_gaussian",
    "said",
    "seeded_clones",
]


def claimed(
    estimator: Any, epsilon: float | None, delta: float | None, adjacency: str | None
) -> PrivacyGuarantee:
    """Return the guarantee that is audited: what is given, else what parameters say."""
    # A δ that is named nowhere is 0, as of estimators that know pure privacy only. A neighbouring
    # relation that is named nowhere is not guessed: a wrong one would accuse the innocent.
    name, params = type(estimator).__name__, {"delta": 0.0, **estimator.get_params(deep=False)}
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    stated: dict[str, Any]
    stated = {key: params.get(key) if one is None else one for key, one in given.items()}
    if stated["epsilon"] is None:
        raise ValueError(
            f"{name} has no parameter 'epsilon' that says what it claims: pass epsilon= (and "
            "delta=, adjacency=) to audit."
        )
    if stated["adjacency"] is None:
        raise ValueError(
            f"{name} has no parameter 'adjacency' that says for which neighbours its epsilon "
            "holds: pass adjacency='replace_one' or adjacency='add_remove' to audit, as its "
            "documentation says."
        )
    relation = check_adjacency("audit", stated["adjacency"])
    return PrivacyGuarantee(stated["epsilon"], stated["delta"], relation)


def clone_for_audit(estimator: Any, seed: int | None = None) -> Any:
    """Return a clone that charges no ledger and runs on one core."""
    # With a seed, everything public in it that takes a random state has one of its own: clones of
    # the same seed take the same public coins. What is private keeps its own, which an observer
    # sets.
    copy = clone(estimator)
    for part in estimators_in(copy, set()):
        given = part.get_params(deep=False)
        unset = {n: None for n in ("ledger", "n_jobs") if given.get(n) is not None}
        if unset:
            part.set_params(**unset)
    if seed is not None:
        give_seeds([part for part in estimators_in(copy, set()) if not _is_private(part)], seed)
    return copy


def seeded_clones(estimator: Any, seeds: Sequence[int]) -> Iterator[Any]:
    """Yield clones in which everything that takes a random state has one of its own."""
    ready = clone_for_audit(estimator)
    for seed in seeds:
        copy = clone(ready)
        give_seeds(list(estimators_in(copy, set())), seed)
        yield copy


def declared_within(estimator: Any) -> tuple[str, ...]:
    """Return the names of steps that pipelines and searches in an estimator declare public."""
    ours = (one for one in estimators_in(estimator, set()) if _is_ours(one))
    declared = (one.get_params(deep=False).get("public") or () for one in ours)
    return tuple(sorted({str(name) for names in declared for name in names}))


def _is_ours(estimator: Any) -> bool:
    return any(kind.__module__.startswith("skdpnoise.") for kind in type(estimator).__mro__)


def _is_private(estimator: Any) -> bool:
    """Return whether random numbers of an estimator make noise: those of our own, for example."""
    return _is_ours(estimator) or is_private(estimator)


def fit_quietly(estimator: Any, X: Any, y: Any) -> tuple[Any, list[str], str | None]:
    """Fit to a copy of the data; return the estimator, its warnings, and what was raised, if so."""
    # No ledger is charged, wherever one is held. Everything runs in this thread: another one would
    # have no observer, and might charge.
    raised = None
    with ExitStack() as stack:
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        stack.enter_context(parallel_config(backend="sequential"))
        stack.enter_context(within(is_audited=True))
        warnings.simplefilter("always")
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


def is_gaussian(model: Any) -> bool:
    """Return whether a fitted model states that its loss is that of a Gaussian mechanism."""
    return isinstance(getattr(getattr(model, "privacy_", None), "total", None), GaussianLoss)


def said(error: Exception) -> str:
    """Return the kind and the text of an error; some cannot say what they are."""
    try:
        return f"{type(error).__qualname__}: {error}"
    except Exception:
        return type(error).__qualname__
