"""Estimators that are held by another one's parameters, at any depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator


def give_seeds(parts: Sequence[Any], seed: int) -> None:
    parts = [part for part in parts if "random_state" in part.get_params(deep=False)]
    states = np.random.SeedSequence(seed).generate_state(len(parts)).tolist()
    for part, state in zip(parts, states, strict=True):
        part.set_params(random_state=state)


def estimators_in(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield an estimator and all that its parameters hold, such as those of a search's grid."""
    # A frozen estimator is its own clone: what it holds belongs to somebody else.
    if isinstance(value, type | FrozenEstimator) or id(value) in seen:
        return
    inner: Any = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif isinstance(value, np.ndarray) and value.dtype == object:
        inner = value.ravel().tolist()
    elif hasattr(value, "get_params") and hasattr(value, "set_params"):
        seen.add(id(value))
        yield value
        inner = value.get_params(deep=False).values()
    for part in inner:
        yield from estimators_in(part, seen)
