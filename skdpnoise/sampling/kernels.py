"""Loops that Python runs while there is little to do, and numba compiles when that is faster.

Importing numba and compiling one sampler takes about a second, the interpreter half a microsecond
for each of some ten thousand random bits of a fit. Both draw the same numbers, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

# Random bits that one process leaves to the interpreter, of each kernel: some tenths of a second.
INTERPRETED_BITS = 1_000_000

_new_inner: list[Callable[..., Any]] = []
_registering = Lock()


def inner(function: F) -> F:
    """Mark a function that kernels call; called from Python it is an ordinary function."""
    _new_inner.append(function)
    return function


class Trial:
    """The work that one process leaves to an interpreter, before compiled loops pay."""

    def __init__(self, most: float) -> None:
        self.most, self.done = most, 0.0

    def takes(self, n: float) -> bool:
        """Return whether so much more work is left to it, and count it then."""
        fits = self.done + n <= self.most
        self.done += n * fits
        return fits


class Compilable(Generic[P, R]):
    """A loop over draws: call it to have it interpreted, or take what `for_bits` returns."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._interpreted = Trial(INTERPRETED_BITS)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        # Compiled code does not warn either.
        with np.errstate(all="ignore"):
            return self._function(*args, **kwargs)

    def for_bits(self, n: float) -> Callable[P, R]:
        """Return this loop in the form that reads about n more random bits sooner."""
        plain = "compiled" not in vars(self) and self._interpreted.takes(n)
        return self if plain else self.compiled

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The loop as machine code, made when it is first asked for, or read from numba's cache."""
        from numba import njit
        from numba.extending import register_jitable

        with _registering:
            while _new_inner:
                register_jitable(nogil=True)(_new_inner.pop())
        compiled: Callable[P, R] = njit(cache=True, nogil=True)(self._function)
        return compiled
