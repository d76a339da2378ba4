"""Facts about exact classes: a subclass may learn what its parent does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

T = TypeVar("T")
Condition = Callable[[Any], str | None]
Sparse = Callable[[Any], bool]
Reads = Literal["objects", "values", "types"]


def _never(estimator: Any) -> bool:
    return False


def _always(estimator: Any) -> bool:
    return True


def _values(estimator: Any) -> Reads:
    return "values"


@dataclass(frozen=True, slots=True)
class Rule:
    """Under which parameters a class learns nothing, what it reads, and what its output is."""

    condition: Condition
    sparse: Sparse = _never
    reads: Callable[[Any], Reads] = _values
    fitted: Callable[[Any], bool] = _always  # whether a fitted state is that of the parameters

    def changed(self, step: Any) -> bool:
        """Return whether a fitted step has a state that its parameters do not give it."""
        own = set(step.get_params(deep=False))
        learnt = any(name.endswith("_") and name not in own for name in vars(step))
        return learnt and not self.fitted(step)


class ExactClasses(Generic[T]):
    """Facts about classes, found by identity: a metaclass may call two classes equal."""

    def __init__(self, facts: Iterable[tuple[type, T]] = ()) -> None:
        self._facts = {id(cls): (cls, fact) for cls, fact in facts}  # which keeps them alive

    def __setitem__(self, cls: type, fact: T) -> None:
        self._facts[id(cls)] = cls, fact

    def __contains__(self, cls: type) -> bool:
        return id(cls) in self._facts

    def __iter__(self) -> Iterator[type]:
        return (cls for cls, _ in self._facts.values())

    def get(self, cls: type) -> T | None:
        return self._facts[id(cls)][1] if cls in self else None
