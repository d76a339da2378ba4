"""Names of what the user says is public, as a charge stores them: all, however many."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from skdpnoise.accounting.report import DECLARED
from skdpnoise.data.sources import FOUND_BY_READING

__all__ = ["COLUMNS", "FACTS", "LABELS", "declared_below", "declared_in", "said_public"]

LABELS, COLUMNS = "labels of y", "names and types of columns"
FACTS = (LABELS, COLUMNS, FOUND_BY_READING)  # of the data of a whole, whichever step reads them
_PART = 64  # names: a longer list among parameters is stored as its length


def declared_below(label: str, names: Collection[str]) -> list[str]:
    """Return what a step declares by its names in the whole; facts of the data have no label."""
    return [name if name in FACTS or not label else f"{label}__{name}" for name in names]


def said_public(steps: Collection[str]) -> dict[str, list[list[str]]]:
    """Return what the user declared public in the form in which all of it is stored."""
    names = list(steps)
    return {DECLARED: [names[k : k + _PART] for k in range(0, len(names), _PART)]} if names else {}


def declared_in(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    lists = parameters.get(DECLARED)
    stored = lists if isinstance(lists, list) else []
    return tuple(str(step) for steps in stored if isinstance(steps, list) for step in steps)
