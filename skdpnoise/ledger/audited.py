"""Within an audit no ledger is charged, whatever holds it, in any process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from skdpnoise.ledger.charge import Charge
from skdpnoise.ledger.requests import checked_name, loss_of, stated

__all__ = ["is_uncharged", "uncharged", "unwritten"]

_AUDITED: ContextVar[bool] = ContextVar("audited", default=False)
_DELTA = 1e-6  # of what an unwritten charge states, where nothing else does


@contextmanager
def uncharged() -> Iterator[None]:
    """Let ledgers write nothing down while an audit fits in this context."""
    token = _AUDITED.set(True)
    try:
        yield
    finally:
        _AUDITED.reset(token)


def is_uncharged() -> bool:
    """Return whether an audit fits in this context."""
    return _AUDITED.get()


def unwritten(label: Any, cost: Any, guarantee: Any) -> Charge:
    """Return a charge of number 0, which is written nowhere."""
    loss, noise = loss_of(cost)
    pair = stated(loss, guarantee, _DELTA)
    shown = checked_name("label", label)
    return Charge(0, datetime.now(UTC), shown, None, noise, loss, pair, None, {}, "")
