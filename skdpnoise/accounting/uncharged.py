"""Within an audit no ledger is charged, whatever holds it, in any process."""

from __future__ import annotations

from contextlib import AbstractContextManager

from skdpnoise._utils.context import context, within

__all__ = ["is_uncharged", "uncharged"]


def uncharged() -> AbstractContextManager[None]:
    """Let ledgers write nothing down while an audit fits in this context."""
    return within(is_audited=True)


def is_uncharged() -> bool:
    """Return whether an audit fits in this context."""
    return context().is_audited
