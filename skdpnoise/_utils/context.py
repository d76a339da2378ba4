"""The one context variable: facts of a run for the code deep inside it.

A new thread or task begins with none of it: whoever hands a run to another one copies the context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Said = tuple[str, str | None, bool]
"""The text of a warning, its topic, and whether it comes before others."""


@dataclass(frozen=True, slots=True)
class Context:
    """One run, as what runs inside it sees it."""

    observer: Any = None  # of the audit that looks on
    is_audited: bool = False  # ledgers write nothing down
    is_charged: bool = False  # as part of a composition
    reservation: Any = None  # that the next random word keeps
    computed: frozenset[str] = frozenset()  # which of X and y may not be refused for a value
    made: frozenset[str] = frozenset()  # which of them another step made
    heard: tuple[type[Warning], ...] | None = None  # kinds of warnings; None for all
    held_warnings: list[Said] | None = None  # until a fit is stored; None where none goes on
    hidden: list[tuple[str, NDArray[np.bool_]]] | None = None  # columns; None where nobody plans
    guesses: list[str] | None = None  # what was found by reading a file
    next_steps: dict[int, Any] | None = None  # of a pipeline, by the identity of those before them
    place: tuple[int, int, int] = (0, 0, 0)  # of the rows that are read: part, begin, number


_NONE = Context()
_current: ContextVar[Context] = ContextVar("skdpnoise", default=_NONE)


def context() -> Context:
    return _current.get()


def keep_reserved() -> None:
    """Keep what is reserved for the run, of which a random word is taken."""
    reservation = _current.get().reservation
    if reservation is not None:
        reservation.keep()


@contextmanager
def within(**fields: Any) -> Iterator[None]:
    token = _current.set(replace(_current.get(), **fields))
    try:
        yield
    finally:
        _current.reset(token)


def change(**fields: Any) -> None:
    """Set fields of the context of what runs, until it ends."""
    _current.set(replace(_current.get(), **fields))
