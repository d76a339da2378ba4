"""What is fitted after the charge does not fail for a value: not even a failure is for free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sklearn import config_context

__all__ = ["after_charge", "is_charged"]

_charged: ContextVar[bool] = ContextVar("charged", default=False)  # each thread has its own


@contextmanager
def after_charge(private: Iterable[Any]) -> Iterator[None]:
    """Let no step of a composition refuse values that are not finite, or too large for sums.

    What a public step makes of the output of a private one, such as its exponential, was not seen
    in a rehearsal. Whether it is finite may depend on a single record, and so may not be told: our
    own estimators replace such values one by one, and scikit-learn's do not look. Beside a private
    step of another author, who may rely on scikit-learn's look, they do.

    Parameters
    ----------
    private : iterable of estimators
        The private steps of the composition.
    """
    ours = all(type(step).__module__.startswith("skdpnoise.") for step in private)
    token = _charged.set(True)
    try:
        with config_context(assume_finite=ours):
            yield
    finally:
        _charged.reset(token)


def is_charged() -> bool:
    """Return whether what runs in this thread is part of a composition that was charged."""
    return _charged.get()
