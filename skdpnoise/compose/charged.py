"""Only the data that a user passes are refused for their values; what steps make of them is not.

A refusal costs nothing. If what a public step computes could be refused, then a step with a
threshold in front of it would answer exact questions about the data, for nothing before the charge
and by a fit that fails after it. So every step behind another takes what it gets: our own
estimators replace each value that is not finite, or too large for sums, by itself, and
scikit-learn's do not look. The same holds in the rehearsal and after the charge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sklearn import config_context

from skdpnoise.compose.parts import private_parts

DATA = frozenset({"X", "y"})
# Which of X and y were computed by a step, so that no value of them is refused, and whether what
# runs was charged. Each thread has its own.
_computed: ContextVar[frozenset[str]] = ContextVar("computed", default=frozenset())
_charged: ContextVar[bool] = ContextVar("charged", default=False)


class Allowance(ABC):
    """What the parts of a run charge instead of a ledger; it goes with them into any thread."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether the run was charged, so that its parts may draw."""


@contextmanager
def after_charge(model: Any) -> Iterator[None]:
    """Let no step of a composition that was charged refuse a value."""
    token = _charged.set(True)
    try:
        with reading(DATA), config_context(assume_finite=all_ours(model)):
            yield
    finally:
        _charged.reset(token)


@contextmanager
def reading(computed: Collection[str]) -> Iterator[None]:
    """Say which of X and y were computed by a step, for the fits that run within."""
    token = _computed.set(frozenset(computed))
    try:
        yield
    finally:
        _computed.reset(token)


def all_ours(model: Any) -> bool:
    """Return whether all private steps of a composition are estimators of this package."""
    private = (type(part.estimator) for part in private_parts(model))
    return all(step.__module__.startswith("skdpnoise.") for step in private)


def is_charged(estimator: Any = None) -> bool:
    """Return whether what runs, or an estimator, is part of a composition that was charged."""
    ledger = getattr(estimator, "ledger", None)
    return _charged.get() or (isinstance(ledger, Allowance) and ledger.is_open)


def is_computed(name: str, estimator: Any = None) -> bool:
    """Return whether X or y, which an estimator reads, may not be refused for a value."""
    return name in _computed.get() or is_charged(estimator)


def passed() -> frozenset[str]:
    """Return which of X and y are as the user passed them, for the fit that runs."""
    return DATA - _computed.get()
