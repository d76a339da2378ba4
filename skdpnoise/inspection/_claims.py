"""What an estimator claims, and clones of it that an audit may run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, check_adjacency

__all__ = [
    "check_fits",
    "claimed",
    "clone_for_audit",
    "fit_quietly",
    "is_gaussian",
    "seeded_clones",
]


def claimed(
    estimator: Any, epsilon: float | None, delta: float | None, adjacency: str | None
) -> PrivacyGuarantee:
    """Return the guarantee that is audited: what is given, else what parameters say.

    A δ that is named nowhere is 0, as of estimators that know pure privacy only. A neighbouring
    relation that is named nowhere is not guessed: a wrong one would accuse the innocent.
    """
    name = type(estimator).__name__
    params = estimator.get_params(deep=False)
    epsilon = params.get("epsilon") if epsilon is None else epsilon
    if epsilon is None:
        raise ValueError(
            f"{name} has no parameter 'epsilon' that says what it claims: pass epsilon= (and "
            "delta=, adjacency=) to audit."
        )
    delta = params.get("delta", 0.0) if delta is None else delta
    adjacency = params.get("adjacency") if adjacency is None else adjacency
    if adjacency is None:
        raise ValueError(
            f"{name} has no parameter 'adjacency' that says for which neighbours its epsilon "
            "holds: pass adjacency='replace_one' or adjacency='add_remove' to audit, as its "
            "documentation says."
        )
    relation = check_adjacency("audit", adjacency)
    return PrivacyGuarantee(epsilon, delta, relation)


def clone_for_audit(estimator: Any) -> Any:
    """Return a clone that charges no ledger and runs on one core."""
    copy = clone(estimator)
    changes = {
        name: None
        for name, value in copy.get_params(deep=True).items()
        if name.rpartition("__")[2] in ("ledger", "n_jobs") and value is not None
    }
    return copy.set_params(**changes)


def seeded_clones(estimator: Any, seeds: Sequence[int]) -> Iterator[Any]:
    """Yield clones in which everything that takes a random state has one of its own."""
    ready = clone_for_audit(estimator)
    params = ready.get_params(deep=True)
    names = [name for name in params if name.rpartition("__")[2] == "random_state"]
    for seed in seeds:
        states = np.random.SeedSequence(seed).generate_state(len(names)).tolist()
        copy = clone(ready)
        copy.set_params(**dict(zip(names, states, strict=True)))
        yield copy


def fit_quietly(estimator: Any, X: Any, y: Any) -> tuple[Any, list[str], str | None]:
    """Fit; return the estimator, what was warned of, and what was raised, if anything."""
    raised = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(X) if y is None else estimator.fit(X, y)
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
    return estimator, [f"{w.category.__name__}: {w.message}" for w in caught], raised


def check_fits(name: str, raised: Sequence[str | None]) -> None:
    """Refuse an audit in which every fit fails: that nothing is found would mean nothing."""
    if all(text is not None for text in raised):
        raise ValueError(f"{name} cannot be fitted to these data, or their neighbours: {raised[0]}")


def is_gaussian(model: Any) -> bool:
    """Return whether a fitted model states that its loss is that of a Gaussian mechanism."""
    return isinstance(getattr(getattr(model, "privacy_", None), "total", None), GaussianLoss)
