"""No warning but our own is heard beside a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from scipy import special

from skdpnoise._utils.context import context, within


class _Unheard(type):
    """Decides what is one of these warnings at the moment when Python asks."""

    def __subclasscheck__(cls, category: type) -> bool:
        heard = context().heard
        return heard is not None and not issubclass(category, heard)


@contextmanager
def silence(*heard: type[Warning]) -> Iterator[None]:
    """Suppress warnings but those of the given kinds, and floating-point errors, in this thread."""
    # `warnings.catch_warnings` changes what the whole process hears, and threads that leave it in
    # another order than they entered it undo one another. Here each block adds a filter of its own,
    # which matters within such blocks only, and takes it out again of the list that it was put into
    # and of the one that is there by now. (A list kept from before the block, and restored within
    # it, lets Python's warnings be heard for the rest of the block; floating-point errors are
    # suppressed in any case.)
    outer = context().heard  # a block within another lets no more be heard than that
    kinds = heard if outer is None else tuple(kind for kind in heard if issubclass(kind, outer))
    unheard: Any = _Unheard("Unheard", (Warning,), {})
    filters: Any = warnings.filters
    warnings.simplefilter("ignore", unheard)
    try:
        with within(heard=kinds), np.errstate(all="ignore"), special.errstate(all="ignore"):
            yield
    finally:
        by_now: Any = warnings.filters
        for kept in (filters, by_now):
            with suppress(ValueError):  # lists that threads share are changed in one step
                kept.remove(("ignore", None, unheard, None, 0))
