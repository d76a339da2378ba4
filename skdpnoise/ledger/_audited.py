"""Within an audit no ledger is charged, whoever holds it and in whichever process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from skdpnoise.ledger._requests import checked_name, loss_of, stated
from skdpnoise.ledger.charge import Charge

__all__ = ["not_in_audits", "uncharged"]

P = ParamSpec("P")
T = TypeVar("T")

_AUDITED: ContextVar[bool] = ContextVar("audited", default=False)
_DELTA = 1e-6  # of what an unwritten charge states, where nothing else does


@contextmanager
def uncharged() -> Iterator[None]:
    """Let ledgers write nothing down while an audit fits in this context: that fit is not private.

    It ends with the block, and reaches no other thread.
    """
    token = _AUDITED.set(True)
    try:
        yield
    finally:
        _AUDITED.reset(token)


def not_in_audits(
    charge: Callable[Concatenate[T, P], Charge],
) -> Callable[Concatenate[T, P], Charge]:
    """Make a ledger's method return a charge of number 0 in audits, which is written nowhere."""

    @wraps(charge)
    def charge_unless_audited(ledger: T, /, *args: P.args, **kwargs: P.kwargs) -> Charge:
        return _unwritten(*args, **kwargs) if _AUDITED.get() else charge(ledger, *args, **kwargs)

    return charge_unless_audited


def _unwritten(label: Any, cost: Any, *, guarantee: Any = None, **facts: Any) -> Charge:
    loss, noise = loss_of(cost)
    name, estimator = facts.get("mechanism") or noise, facts.get("estimator")
    pair = stated(loss, guarantee, _DELTA)
    shown = checked_name("label", label)
    return Charge(0, datetime.now(UTC), shown, estimator, name, loss, pair, None, {}, "")
