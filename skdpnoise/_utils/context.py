"""The one context variable: facts of a run for the code deep inside it.

A thread or task that is started anew begins with none of it. Whoever hands a run to another thread
copies the context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Said = tuple[str, str | None]
"""The text of a warning and its topic."""


@dataclass(frozen=True, slots=True)
class Context:
    """One run, as what runs inside it sees it."""

    observer: Any = None  # of the audit that looks on
    is_audited: bool = False  # ledgers write nothing down
    is_charged: bool = False  # as part of a composition
    computed: frozenset[str] = frozenset()  # which of X and y a step computed
    heard: tuple[type[Warning], ...] | None = None  # kinds of warnings; None for all
    held_warnings: list[Said] | None = None  # until a fit is stored; None where none goes on
    hidden: list[tuple[str, NDArray[np.bool_]]] | None = None  # columns; None where nobody plans
    guesses: list[str] | None = None  # what was found by reading a file
    next_steps: dict[int, Any] | None = None  # of a pipeline, by the identity of those before them
    place: tuple[int, int, int] = (0, 0, 0)  # of the rows that are read: part, begin, number


_NONE = Context()
_current: ContextVar[Context] = ContextVar("skdpnoise", default=_NONE)


def context() -> Context:
    """Return the context of what runs."""
    return _current.get()


@contextmanager
def within(**fields: Any) -> Iterator[None]:
    """Run a block with other fields of the context."""
    token = _current.set(replace(_current.get(), **fields))
    try:
        yield
    finally:
        _current.reset(token)


def change(**fields: Any) -> None:
    """Set fields of the context of what runs, until it ends."""
    _current.set(replace(_current.get(), **fields))
