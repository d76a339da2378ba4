"""No warning but our own is heard beside a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
from scipy import special

from skdpnoise._utils.context import context, within

_counting = Lock()
_n_blocks = 0  # in which threads are now
_lists: list[list[Any]] = []  # of filters with this one; somebody may have kept one, to restore it


class _Asked(type):
    """Decides what is one of these warnings at the moment when Python asks."""

    def __subclasscheck__(cls, category: type) -> bool:
        heard = context().heard
        return heard is not None and not issubclass(category, heard)


class _Unheard(Warning, metaclass=_Asked):
    """Every warning that is not to be heard at this moment in this thread."""


@contextmanager
def silence(*heard: type[Warning]) -> Iterator[None]:
    """Suppress warnings but those of the given kinds, and floating-point errors, in this thread."""
    # `warnings.catch_warnings` changes what the whole process hears, and threads that leave it in
    # another order than they entered it undo one another. Here one filter stands as long as any
    # thread is in a block like this, and it matches only within such a block. It is taken out of
    # every list that it was put into, since another thread may have kept one to restore it. (A list
    # kept from before the block, and restored within it, lets Python's warnings be heard for the
    # rest of the block; floating-point errors are suppressed in any case.)
    global _n_blocks
    outer = context().heard  # a block within another lets no more be heard than that
    kinds = heard if outer is None else tuple(kind for kind in heard if issubclass(kind, outer))
    with _counting:
        _n_blocks += 1
        warnings.simplefilter("ignore", _Unheard)
        filters: Any = warnings.filters
        if not any(one is filters for one in _lists):
            _lists.append(filters)
    try:
        with within(heard=kinds), np.errstate(all="ignore"), special.errstate(all="ignore"):
            yield
    finally:
        with _counting:
            _n_blocks -= 1
            if not _n_blocks:
                for filters in (*_lists, warnings.filters):
                    filters[:] = [one for one in filters if one[2] is not _Unheard]
                _lists.clear()
