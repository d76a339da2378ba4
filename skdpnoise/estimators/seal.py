"""What private values do beside a release is not seen: no warning, no error that quotes them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from scipy import special

__all__ = ["silence", "without_values"]

Result = TypeVar("Result")

# Kinds of warnings that are heard; None where all are. Each thread has its own.
_heard: ContextVar[tuple[type[Warning], ...] | None] = ContextVar("heard", default=None)


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
    another order than they entered it undo one another. Here one filter stays in place, and it
    matches only within a block like this.
    """
    token = _heard.set(heard)
    try:
        with np.errstate(all="ignore"), special.errstate(all="ignore"):
            if not warnings.filters or warnings.filters[0][2] is not _Unheard:
                warnings.simplefilter("ignore", _Unheard)
            yield
    finally:
        _heard.reset(token)


def without_values(call: Callable[[], Result], otherwise: str) -> Result:
    """Return what a function returns; what it raises shows shapes, types and names at most.

    An error whose text is not known to be free of values is replaced by one of the same kind with
    the text `otherwise`, and nothing is attached to it.
    """
    try:
        return call()
    except Exception as error:
        problem = _explained(error, otherwise)
    raise problem  # outside the handler, so that the quoting error is not attached to it


# Texts of scikit-learn and numpy that hold shapes, names of columns and types, and no values.
_HARMLESS = re.compile(
    r"""
    Found\ array\ with\ \d+\ (?:sample|feature)\(s\)\ \(shape=\([\d,\ ]*\)\)\ while\ a\ minimum\ of
        \ \d+\ is\ required\ by\ \w+\.
    | Found\ array\ with\ dim\ \d+,\ while\ dim\ <=\ 2\ is\ required\ by\ \w+\.
    | Found\ input\ variables\ with\ inconsistent\ numbers\ of\ samples:\ \[[\d,\ ]*\]
    | Expected\ a\ 2-dimensional\ container\ but\ got\ <class\ '[\w.]+'>\ instead\..*
    | X\ has\ \d+\ features,\ but\ \w+\ is\ expecting\ \d+\ features\ as\ input\.
    | The\ feature\ names\ should\ match\ those\ that\ were\ passed\ during\ fit\..*
    | Feature\ names\ are\ only\ supported\ if\ all\ input\ features\ have\ string\ names.*
    | Sparse\ data\ was\ passed.*
    | Sparse\ input\ is\ not\ supported.*
    | y\ should\ be\ a\ 1d\ array,\ got\ an\ array\ of\ shape\ \([\d,\ ]*\)\ instead\.
    | float\(\)\ argument\ must\ be\ a\ string\ or\ a\ (?:real\ )?number,\ not\ '[\w.]+'
    | setting\ an\ array\ element\ with\ a\ sequence\.\ The\ requested\ array\ has\ an
        \ inhomogeneous\ shape\ after\ \d+\ dimensions\.\ The\ detected\ shape\ was\ \([\d,\ ]*\)
        \ \+\ inhomogeneous\ part\.
    | Input\ [\w]*\ ?contains\ NaN\..*
    | Input\ [\w]*\ ?contains\ infinity\ or\ a\ value\ too\ large\ for\ dtype\('\w+'\)\.
    | The\ 'groups'\ parameter\ of\ .*
    | This\ \w+\ instance\ is\ not\ fitted\ yet\..*
    """,
    re.VERBOSE | re.DOTALL,
)


def _explained(error: Exception, otherwise: str) -> Exception:
    """Return an error of the same kind that shows no value of the data."""
    kind: type[Any] = next(
        (kind for kind in (TypeError, MemoryError) if isinstance(error, kind)), ValueError
    )
    text = str(error)
    if not _HARMLESS.fullmatch(text):
        return kind(otherwise)
    own = type(error)
    return own(text) if own.__module__.startswith("sklearn.") else kind(text)
