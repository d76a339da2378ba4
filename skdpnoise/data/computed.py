"""Only the data that a user passes are refused for their values; what steps make of them is not.

A refusal costs nothing. If what a public step computes could be refused, then a step with a
threshold in front of it would answer exact questions about the data, for nothing before the charge
and by a fit that fails after it. So every step behind another takes what it gets: our own
estimators replace each value that is not finite, or too large for sums, by itself, and
scikit-learn's do not look. The same holds while data are checked and after that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any

from skdpnoise._utils.context import context, within

DATA = frozenset({"X", "y"})


class Allowance(ABC):
    """Stands for a ledger in the parts of a run, and goes with them into any thread."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Return whether the run was charged, so that its parts may draw."""

    @property
    @abstractmethod
    def asked_epsilon(self) -> float | None:
        """The ε that a user gave what runs, None where nothing is told of it."""


def reading(computed: Collection[str]) -> AbstractContextManager[None]:
    """Say which of X and y were computed by a step, for the fits that run within."""
    return within(computed=frozenset(computed), made=frozenset(computed))


def is_part(estimator: Any) -> bool:
    """Return whether a search or a DPPipeline runs the fits of an estimator, and speaks for it."""
    return isinstance(getattr(estimator, "ledger", None), Allowance)


def asked_epsilon(estimator: Any) -> float:
    """Return the ε that a user gave: of the outermost composition that an estimator is part of."""
    given = estimator.ledger.asked_epsilon if is_part(estimator) else None
    return float(estimator.epsilon if given is None else given)


def is_charged(estimator: Any = None) -> bool:
    """Return whether what runs, or an estimator, is part of a composition that was charged."""
    return context().is_charged or (is_part(estimator) and bool(estimator.ledger.is_open))


def is_computed(name: str, estimator: Any = None) -> bool:
    """Return whether X or y, which an estimator reads, may not be refused for a value."""
    return name in context().computed or is_charged(estimator)


def passed() -> frozenset[str]:
    """Return which of X and y are as the user passed them, for the fit that runs."""
    return DATA - context().made


def made() -> AbstractContextManager[None]:
    """Say that X was computed by a step, for the fits that run within."""
    return within(made=context().made | {"X"})
