"""Within an audit no ledger is charged, whatever holds it, in any process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["is_uncharged", "uncharged"]

_AUDITED: ContextVar[bool] = ContextVar("audited", default=False)


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
