"""No warning but our own is heard beside a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

import numpy as np
from scipy import special

__all__ = ["silence"]

# Kinds of warnings that are heard; None where all are. Each thread has its own.
_heard: ContextVar[tuple[type[Warning], ...] | None] = ContextVar("heard", default=None)
_counting = Lock()
_n_blocks = 0  # in which threads are now


class _Asked(type):
    """Decides what is one of these warnings at the moment when Python asks."""

    def __subclasscheck__(cls, category: type) -> bool:
        heard = _heard.get()
        return heard is not None and not issubclass(category, heard)


class _Unheard(Warning, metaclass=_Asked):
    """Every warning that is not to be heard at this moment in this thread."""


@contextmanager
def silence(*heard: type[Warning]) -> Iterator[None]:
    """Suppress warnings but those of the given kinds, and floating-point errors, in this thread.

    ``warnings.catch_warnings`` changes what the whole process hears, and threads that leave it in
    another order than they entered it undo one another. Here one filter stands as long as any
    thread is in a block like this, and it matches only within such a block.
    """
    global _n_blocks
    outer = _heard.get()  # a block within another lets no more be heard than that
    token = _heard.set(heard if outer is None else tuple(k for k in heard if issubclass(k, outer)))
    with _counting:
        _n_blocks += 1
        warnings.simplefilter("ignore", _Unheard)
    try:
        with np.errstate(all="ignore"), special.errstate(all="ignore"):
            yield
    finally:
        _heard.reset(token)
        with _counting:
            _n_blocks -= 1
            if not _n_blocks:
                filters: Any = warnings.filters
                filters[:] = [one for one in filters if one[2] is not _Unheard]
