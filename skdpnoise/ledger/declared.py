"""Steps that a user declared public, as a charge stores them: all of them, however many."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from skdpnoise.ledger.report import DECLARED

__all__ = ["declared_in", "said_public"]

_PART = 64  # names: a longer list among parameters is stored as its length


def said_public(steps: Collection[str]) -> dict[str, list[list[str]]]:
    """Return steps that the user declared public in the form in which all of them are stored."""
    names = list(steps)
    return {DECLARED: [names[k : k + _PART] for k in range(0, len(names), _PART)]} if names else {}


def declared_in(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the steps that were stored as declared public."""
    lists = parameters.get(DECLARED)
    stored = lists if isinstance(lists, list) else []
    return tuple(str(step) for steps in stored if isinstance(steps, list) for step in steps)
