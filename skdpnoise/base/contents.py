"""All that an object holds, at any depth, and what in it nobody can look into."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable, Iterator
from functools import _lru_cache_wrapper
from io import IOBase
from itertools import chain
from types import (
    AsyncGeneratorType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
)
from typing import Any

import numpy as np

__all__ = ["is_sealed", "of_library", "reached"]

_LIBRARIES = {"numpy", "scipy", "sklearn", "joblib", "numba", "pandas", "polars", "pyarrow"}
_LIBRARIES |= {"torch", "dask", "skdpnoise", *sys.stdlib_module_names} - {"__main__"}
_FRAMES = ("pandas", "polars", "pyarrow")
# What can lead to anything without holding it, or hold bytes that anything can be made of.
_SEALED = (
    IOBase,
    *(bytes, bytearray, memoryview, weakref.ReferenceType, *weakref.ProxyTypes),
    *(GeneratorType, CoroutineType, AsyncGeneratorType, FrameType, _lru_cache_wrapper),
)
# Types of columns whose values can be of any type, or of bytes.
_OPEN = (
    "object",
    "binary",
    "category",
    "categorical",
    "list",
    "struct",
    "extension",
    "dictionary",
    "interval",
)
_PLAIN = (str, int, float, complex, type(None), np.dtype, CodeType)
_HAVE_GC = 1 << 14  # a flag of types that tell what they hold


def reached(thing: Any, stated: Iterable[str] = ()) -> Iterator[Any]:
    """Yield an object and all that it holds; of each also what it states by these names."""
    seen: dict[int, Any] = {}  # kept alive, or numbers of objects would recur
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if type(one) in _PLAIN or id(one) in seen:
            continue
        seen[id(one)] = one
        yield one
        if not is_sealed(one):
            waiting += _held(one)
            if not isinstance(one, type | ModuleType | dict | list | tuple | set):
                waiting += [getattr(one, name, None) for name in stated]


def is_sealed(thing: Any) -> bool:
    """Return whether nobody can look into an object: bytes, weak references, generators."""
    kind = type(thing)
    if issubclass(kind, _SEALED) or (issubclass(kind, ModuleType) and not of_library(thing)):
        return True
    if issubclass(kind, np.ndarray | np.generic):
        return thing.dtype.kind == "S" or (thing.dtype.kind == "V" and not thing.dtype.names)
    return not (kind in _PLAIN or kind.__flags__ & _HAVE_GC or of_library(kind))


def of_library(thing: Any) -> bool:
    """Return whether a module, or what has one, is of a library that is known by its names."""
    name = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    return str(name).partition(".")[0] in _LIBRARIES


def _held(thing: Any) -> Iterable[Any]:
    if isinstance(thing, ModuleType):
        return ()
    if isinstance(thing, type):
        return () if of_library(thing) else _of_class(thing)
    if isinstance(thing, np.ndarray):
        return thing.tolist() if thing.dtype.hasobject else ()
    if isinstance(thing, FunctionType):
        return _of_function(thing)
    if type(thing).__module__.partition(".")[0] in _FRAMES:
        return _of_frame(thing)
    return gc.get_referents(thing)


def _of_class(cls: type) -> list[Any]:
    own = {name: one for name, one in vars(cls).items() if name != "_abc_impl"}
    return [*cls.__bases__, *own.values()]


def _of_function(function: FunctionType) -> list[Any]:
    """Return what a function holds, and of the names that are global for it what they stand for."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    held = [*cells, function.__defaults__, function.__kwdefaults__, function.__dict__]
    if of_library(function):
        return held
    names = set(_names(function.__code__))
    for name in names & function.__globals__.keys():
        one = function.__globals__[name]
        if isinstance(one, ModuleType):  # of which it may name anything
            held += [vars(one)[inner] for inner in names & vars(one).keys()]
        else:
            held.append(one)
    return held


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)


def _of_frame(thing: Any) -> list[Any]:
    """Return what frames and columns hold that may be no plain value."""
    if hasattr(thing, "iloc"):
        parts = [thing] if thing.ndim == 1 else [thing.iloc[:, k] for k in range(thing.shape[1])]
        values = chain.from_iterable(map(_of_column, (*parts, thing.index)))
        return [*values, *getattr(thing, "columns", ()), thing.attrs, vars(thing)]
    if hasattr(thing, "get_columns"):  # of polars
        return list(chain.from_iterable(map(_of_column, thing.get_columns())))
    if hasattr(thing, "itercolumns"):  # of pyarrow
        return list(chain.from_iterable(map(_of_column, thing.itercolumns())))
    return list(_of_column(thing))


def _of_column(column: Any) -> Iterable[Any]:
    """Return the values of a column, where they may be more than numbers, text or dates."""
    declared = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if not any(word in declared for word in _OPEN):
        return ()
    names = ("to_list", "to_pylist", "tolist")
    listed: Iterable[Any] = next(getattr(column, one) for one in names if hasattr(column, one))()
    return listed
