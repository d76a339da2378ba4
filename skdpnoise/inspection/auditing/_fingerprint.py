"""Digests of states, equal to the last bit or not, and the places where two differ."""

from __future__ import annotations

import copyreg
import csv
import gc
import hashlib
import hmac
import logging
import mmap
import random
import re
import struct
import sys
import threading
import types
import typing
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from itertools import count
from typing import Any

import numpy as np

from skdpnoise.ledger import PrivacyLedger

__all__ = [
    "Unread",
    "differences",
    "examined",
    "fingerprint",
    "is_made_here",
    "memory_of",
    "parts_of",
    "shown",
]

Content = tuple[list[str], bytes, list[tuple[str, Any]]]  # words, bytes, and parts by name

_PLAIN = (int, float, complex, str, bytes, bytearray)
_LISTS = (list, tuple)
_SETS = (set, frozenset)
_BOUND = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
_OPAQUE = (weakref.ref, weakref.ProxyType, weakref.CallableProxyType)
_OF_LEDGERS = ("_storage", "_known", "_facts")  # what has been charged, perhaps by others meanwhile
_PROTOCOL = 4  # of pickles
_MADE_BY_PYTHON = 1 << 9  # a flag of classes that are made while a program runs
_POINTER = struct.calcsize("P")  # bytes
_OWN_PLACE = 1 << 60  # deeper than everything


@dataclass(frozen=True, slots=True)
class Unread:
    """An object that cannot be read: it equals nothing, itself in another walk included."""

    kind: str


def fingerprint(value: Any, *, caches: bool = True) -> bytes:
    """Return something that is equal for values that are the same bit for bit."""
    # What an object keeps of what it computed before (functools.cached_property) says when
    # somebody asked.
    return _StateWalk(caches=caches).digest(value)


def examined(value: Any) -> tuple[bytes, list[Unread]]:
    """Return the fingerprint of a value, and what cannot be read of it and of all it holds."""
    walk = _StateWalk()
    digest = walk.digest(value)
    return digest, [Unread(kind) for kind in sorted(walk.unread)]


def differences(first: Any, second: Any) -> list[str]:
    """Return where two states differ, as the paths that lead there."""
    return _differences(_StateWalk(), first, second, "", set())


def _differences(
    walk: _StateWalk, first: Any, second: Any, path: str, above: set[int]
) -> list[str]:
    if walk.digest(first) == walk.digest(second):
        return []
    here, there = (dict(walk.contents(value)[1]) for value in (first, second))
    found: list[str] = []
    if type(first) is type(second) and id(first) not in above:
        for name in [*here, *(name for name in there if name not in here)]:
            if name.startswith(("[", ".")):  # what a path of Python's can lead to
                inner = here.get(name), there.get(name)
                found += _differences(walk, *inner, path + name, above | {id(first)})
    if found:
        return found
    kinds = sorted({one.kind for one in (*here.values(), *there.values()) if type(one) is Unread})
    reason = f" (cannot be compared: {', '.join(kinds)})" if kinds else ""
    return [(path.removeprefix(".") or "the whole state") + reason]


def parts_of(value: Any) -> list[tuple[str, Any]]:
    """Return what an object holds by name, its items, attributes, slots, closures and states."""
    return [(name, part) for name, part in _StateWalk().contents(value)[1] if name != "class"]


def is_made_here(kind: type) -> bool:
    """Return whether no module holds a class: it may have been made in a fit."""
    if not kind.__flags__ & _MADE_BY_PYTHON:
        return False
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not kind


class _StateWalk:
    """Digests of objects by all that they hold: contents, attributes, slots, closures, states."""

    # Modules and classes stand for themselves by their names, and so do functions, beside their
    # code, defaults and closures. Locks, weak references and loggers hold no state that is
    # published.

    def __init__(self, *, caches: bool = True) -> None:
        self._caches = caches
        self._depth: dict[int, int] = {}  # of what the walk is within
        self._known: dict[int, bytes] = {}
        self._within: dict[int, bytes] = {}  # parts of a cycle that is not walked to its end
        self._kept: list[Any] = []  # alive, or ids would recur
        self.unread: set[str] = set()  # kinds of what could not be read

    def digest(self, value: Any) -> bytes:
        """Return the digest of one object."""
        return self._visit(value)[0]

    def _visit(self, value: Any) -> tuple[bytes, int]:
        """Return a digest, and how far up the walk it refers to."""
        key = id(value)
        if key in self._known:
            return self._known[key], _OWN_PLACE
        depth = len(self._depth)
        if key in self._depth:  # a value that holds itself
            return b"%d above" % (depth - self._depth[key]), self._depth[key]
        if key in self._within:
            return self._within[key], 0
        if type(value) is Unread:
            self.unread.add(value.kind)
        head, parts = self.contents(value)
        self._kept.append(value)
        self._depth[key] = depth
        digests, highest = [], _OWN_PLACE
        for name, part in parts:
            digest, reached = self._visit(part)
            highest = min(highest, reached)
            digests.append(repr(name).encode() + digest)
        del self._depth[key]
        if isinstance(value, _SETS):
            digests.sort()
        found = _hashed([head, *digests])
        if highest < depth:
            self._within[key] = b"%d within" % len(self._within)
            return found, highest
        self._known[key] = found
        if depth == 0 or highest == depth:
            self._within.clear()
        return found, _OWN_PLACE

    def contents(self, value: Any) -> tuple[bytes, list[tuple[str, Any]]]:
        """Return what an object is by itself, and its parts by name."""
        kind = type(value)
        whole = next((read for kinds, read in _READ_WHOLE if issubclass(kind, kinds)), None)
        try:
            if whole is not None:
                words, data, parts = whole(value)
            else:
                fits = (read for kinds, read in _READ_IN_PART if issubclass(kind, kinds))
                words, data, parts = next(fits, _of_nothing)(value)
                parts = parts if kind in _EXACT else [*parts, *self._attributes(value)]
        except Exception:  # of what the object does when it is asked
            words, data = [], b""
            parts = [("unread", Unread(f"{kind.__module__}.{kind.__qualname__}"))]
        if not isinstance(value, type) and is_made_here(kind):
            parts = [*parts, ("class", kind)]
        return _text(kind.__module__, kind.__qualname__, *words) + data, parts

    def _attributes(self, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield attributes, slots and, of what is made outside of Python, the state of a pickle."""
        kind = type(value)
        left_out = set(_OF_LEDGERS) if isinstance(value, PrivacyLedger) else set()
        held = getattr(value, "__dict__", None)
        if isinstance(held, dict | types.MappingProxyType):
            for name, part in list(held.items()):
                cached = isinstance(getattr(kind, str(name), None), cached_property)
                if name not in left_out and (self._caches or not cached):
                    yield f".{name}", part
        yield from _slots(value)
        handled = (types.FunctionType, PrivacyLedger, *_BOUND, *_PLAIN, *_SETS, np.ndarray)
        if not issubclass(kind, handled):
            yield from _state(value, held if isinstance(held, dict) else {})


def _plain_items(value: Any) -> list[Any]:
    """Return the items as the base class holds them, whatever a subclass says."""
    (base,) = (base for base in (*_LISTS, *_SETS) if isinstance(value, base))
    return list(base.__iter__(value))


def shown(key: Any, place: int) -> str:
    """Return a key as a path shows it; class and place where it might show an address."""
    return repr(key) if type(key) in _PLAIN else f"a {type(key).__qualname__}, {place}"


def _name(value: Any) -> list[str]:
    if isinstance(value, types.ModuleType | logging.Logger):
        return [str(getattr(value, "__name__", getattr(value, "name", "")))]
    return [str(value.__module__), value.__qualname__]


def _body(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a class or a module holds that Python does not know by its name."""
    if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is not value:
        yield from ((f".{name}", part) for name, part in vars(value).items())
    if not isinstance(value, type) or not is_made_here(value):
        return
    yield "bases", value.__bases__
    for name, part in vars(value).items():
        if name not in ("__dict__", "__weakref__", "__doc__", "__module__"):
            yield f".{name}", part


def _named(value: Any, *names: str) -> list[tuple[str, Any]]:
    return [(f".{name}", getattr(value, name)) for name in names]


def _unless_empty(name: str, read: Callable[[], Any]) -> Iterator[tuple[str, Any]]:
    with suppress(LookupError, ValueError, AttributeError):  # never set
        yield name, read()


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what slots hold; functions and methods are taken apart already."""
    if isinstance(value, (types.FunctionType, *_BOUND)):
        return
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType):
                yield from _unless_empty(f".{name}", partial(member.__get__, value))


def _state(value: Any, held: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what a pickle would hold beside attributes; items; what nobody can read as such."""
    kind = type(value)
    with suppress(Exception):
        known = _of_libraries(f"{kind.__module__}.{kind.__qualname__}", value)
        if known is not None:
            yield from known
            return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reducer = copyreg.dispatch_table.get(kind)
            reduced: Any = value.__reduce_ex__(_PROTOCOL) if reducer is None else reducer(value)
            if isinstance(reduced, str):
                yield "global", reduced
                if not _is_held_by_a_module(value, reduced):
                    yield "unread", Unread(f"{kind.__module__}.{kind.__qualname__}")
                return
            own = reduced[2] if len(reduced) > 2 else None
            if isinstance(own, dict):
                own = {k: part for k, part in own.items() if held.get(k) is not part} or None
            kept = [*reduced[:2], own, *(list(items or ()) for items in reduced[3:5])]
    except Exception:
        with suppress(Exception):
            if isinstance(value, Mapping):
                yield "items", list(value.items())
            elif isinstance(value, Collection):
                yield "items", list(value)
        if kind not in _READ_OTHERWISE and not _is_of_python(kind):
            yield "unread", Unread(f"{kind.__module__}.{kind.__qualname__}")
        return
    yield "state", kept


def _is_held_by_a_module(value: Any, name: str) -> bool:
    """Return whether a name stands for an object: else its memory is unknown."""
    first, *others = name.split(".")
    for module in list(sys.modules.values()):
        found = getattr(module, "__dict__", {}).get(first)
        for other in others:
            found = getattr(found, other, None)
        if found is value:
            return True
    return False


def _of_libraries(name: str, value: Any) -> list[tuple[str, Any]] | None:
    """Return what parts of well-known libraries hold that do not pickle; None of all others."""
    if type(value) is mmap.mmap:  # behind arrays that are mapped into memory
        return [("memory", value[:])]
    # Weak references; and the owner of an array's memory, which the array shows whole (polars).
    if name in ("pandas._libs.internals.BlockValuesRefs", "builtins.PySliceContainer"):
        return []
    if name.startswith("pandas._libs.index."):  # beside the labels a table that finds them
        return [("values", value.values)]
    if name == "pandas._libs.interval.IntervalTree":
        return _named(value, "left", "right", "closed")
    if name in ("builtins.PyDataFrame", "builtins.PySeries"):  # of polars
        return [("state", value.__getstate__())]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.layout is torch.strided:
        here = value.detach().cpu().untyped_storage()  # that of which it may be a view
        memory = torch.empty(0, dtype=torch.uint8).set_(here).numpy().copy()
        kept = value.shape, value.stride(), value.storage_offset(), value.requires_grad
        words = [*map(str, kept), str(value.device), str(value.dtype), str(value.is_conj())]
        hooks = ("_backward_hooks", "_post_accumulate_grad_hooks", "grad", "grad_fn")
        parts = _named(value, *hooks)
        return [("memory", memory), ("words", [*words, str(value.is_neg())]), *parts]
    if name.endswith(("._memoryviewslice", ".memoryview")):  # of Cython
        return [("memory", memoryview(value).tobytes()), (".base", value.base)]
    return None


def _is_of_python(kind: type) -> bool:
    """Return whether attributes and slots are all the memory that objects of a class have."""
    size = object.__basicsize__ + _POINTER * (
        (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    )
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        names = {slots} if isinstance(slots, str) else set(slots)
        size += _POINTER * len(names - {"__dict__", "__weakref__"})
    return kind.__basicsize__ <= size and kind.__itemsize__ == 0


def _of_function(value: Any) -> Content:
    names = ("__defaults__", "__kwdefaults__", "__closure__", "__doc__", "__annotations__")
    return _name(value), b"", [*_named(value, *names), ("code", value.__code__)]


def _of_code(value: Any) -> Content:
    constants = [(f"constant {k}", constant) for k, constant in enumerate(value.co_consts)]
    place = [value.co_filename, str(value.co_firstlineno)]
    return [value.co_name, *place, *value.co_names], value.co_code + value.co_linetable, constants


def _of_variable_type(value: Any) -> Content:
    return [value.__name__], b"", _named(value, "__bound__", "__constraints__")


def _of_nothing(_: Any) -> Content:
    return [], b"", []


def _of_cell(value: Any) -> Content:
    return [], b"", [*_unless_empty(".cell_contents", lambda: value.cell_contents)]


def _of_frame(value: Any) -> Content:
    return [value.f_code.co_name], b"", [("variables", dict(value.f_locals))]


def _of_plain(value: Any) -> Content:
    """Return a number or a text as the base class shows it, whatever a subclass says."""
    (plain,) = (base for base in _PLAIN if isinstance(value, base))
    return [], plain.__repr__(value).encode("utf-8", "surrogatepass"), []


def _of_array(value: Any) -> Content:
    array = np.asarray(value)
    words = [str(array.dtype), str(array.shape), repr(value.flags)]
    parts = [("metadata", array.dtype.metadata), (".base", memory_of(value))]
    if not array.dtype.hasobject:
        return words, array.tobytes(), parts
    items = [(f"[{k}]", item) for k, item in enumerate(array.ravel().tolist())]
    return words, b"", [*parts, *items]


def memory_of(array: Any) -> Any:
    """Return the memory that a view is a part of; None for an array that shows all of its own."""
    # A capsule is how compiled libraries own the memory of one array that they hand out.
    return None if type(array.base).__name__ == "PyCapsule" else array.base


def _of_memory(value: Any) -> Content:
    return [value.format, str(value.shape)], value.tobytes(), _named(value, "obj")


def _of_error(value: Any) -> Content:
    """Return what an exception leads to: to others, and to the variables of what raised it."""
    places, trace = [], value.__traceback__
    while trace is not None:
        places.append((f"line {trace.tb_lineno}", trace.tb_frame))
        trace = trace.tb_next
    return [], b"", [*_named(value, "args", "__cause__", "__context__"), *places]


def _of_suspended(value: Any) -> Content:
    """Return variables, the place of the next step, and what loops have still before them."""
    named = (getattr(value, name, None) for name in ("gi_frame", "cr_frame", "ag_frame"))
    frames = [frame for frame in named if frame is not None]
    left_out = (types.FrameType, types.CodeType, types.FunctionType, str)
    stack = [one for one in gc.get_referents(value) if not isinstance(one, left_out)]
    words = [value.__qualname__, *(str(frame.f_lasti) for frame in frames)]
    return words, b"", [*(("frame", frame) for frame in frames), ("stack", stack)]


def _of_hash(value: Any) -> Content:
    long = (64,) if "shake" in value.name else ()
    return [value.name], b"", [(".digest", value.digest(*long))]


def _of_reader(value: Any) -> Content:
    """Return the lines that a reader of csv has before it."""
    return [], b"", [("lines", [one for one in gc.get_referents(value) if type(one) is not type])]


def _of_dict(value: Any) -> Content:
    pairs = list(dict.items(value))
    keys = [(f"key {k}", key) for k, (key, _) in enumerate(pairs)]
    return [], b"", [*keys, *((f"[{shown(key, k)}]", part) for k, (key, part) in enumerate(pairs))]


def _of_method(value: Any) -> Content:
    function = getattr(value, "__func__", None)
    return [value.__name__], b"", [(".__self__", value.__self__), (".__func__", function)]


def _views(held: dict[int, int]) -> tuple[Any, Any, Any]:
    return held.keys(), held.values(), held.items()


_EXACT = frozenset((*_PLAIN, *_LISTS, *_SETS, dict, np.ndarray, *_BOUND))

_HASHES = tuple(
    type(one)
    for one in (
        *(make() for make in (hashlib.sha256, hashlib.shake_128, hashlib.blake2b, hashlib.blake2s)),
        # Of OpenSSL, where Python has it.
        getattr(hmac.new(b"", b"", "sha256"), "_hmac", None) or hashlib.sha256(),
    )
)
_OF_CSV: type = type(csv.reader(()))
_DIALECT: type = type(csv.reader(()).dialect)
_UNREAD = count()

_Readers = tuple[tuple[tuple[type, ...], Callable[[Any], Content]], ...]
"""Ways to read an object by its kind, in order; the first kind that fits counts."""

# That is all there is. Special forms of annotations, such as Literal, are each one object.
_SINGLES = (type(None), bool, type(Ellipsis), type(NotImplemented), type(typing.Optional))
_READ_WHOLE: _Readers = (
    (_SINGLES, lambda value: ([repr(value)], b"", [])),
    ((type, types.ModuleType, logging.Logger), lambda value: (_name(value), b"", [*_body(value)])),
    (_OPAQUE, _of_nothing),
    ((Unread,), lambda value: ([value.kind, str(next(_UNREAD))], b"", [])),
    ((_DIALECT,), lambda value: ([], b"", _named(value, *(n for n in dir(value) if n[0] != "_")))),
    ((Context,), lambda value: ([], b"", [("variables", list(value.items()))])),
    ((typing.TypeVar,), _of_variable_type),
    ((types.CodeType,), _of_code),
    ((types.CellType,), _of_cell),
    ((memoryview,), _of_memory),
    ((types.FrameType,), _of_frame),
    ((ContextVar,), lambda value: ([value.name], b"", [*_unless_empty("value", value.get)])),
    ((weakref.finalize,), lambda value: ([], b"", [("call", value.peek())])),
)
# There are attributes, slots and states beside it.
_READ_IN_PART: _Readers = (
    (_HASHES, _of_hash),
    ((re.Match,), lambda value: ([], b"", _named(value, "regs"))),
    ((_OF_CSV,), _of_reader),
    ((struct.Struct,), lambda value: ([], b"", _named(value, "format"))),
    ((types.FunctionType,), _of_function),
    ((np.generic,), lambda value: ([], _text(str(value.dtype)) + value.tobytes(), [])),
    (_PLAIN, _of_plain),
    ((np.ndarray,), _of_array),
    ((dict,), _of_dict),
    (_LISTS, lambda value: ([], b"", [(f"[{k}]", x) for k, x in enumerate(_plain_items(value))])),
    (_SETS, lambda value: ([], b"", [("item", part) for part in _plain_items(value)])),
    ((BaseException,), _of_error),
    ((types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType), _of_suspended),
    (_BOUND, _of_method),
)


# What no pickle holds and what is read here, or what holds nothing that is published.
_READ_OTHERWISE = frozenset(
    (
        *(kind for kinds, _ in (*_READ_WHOLE, *_READ_IN_PART) for kind in kinds),
        *(type(view) for view in (*_views({}), *_views(OrderedDict()))),
        *(types.MappingProxyType, random.SystemRandom, property, classmethod, staticmethod),
        *(type(threading.Lock()), type(threading.RLock())),
        *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
        *(types.MethodDescriptorType, types.ClassMethodDescriptorType),
        type(vars(Collection)["_abc_impl"]),  # which classes were asked about before
    )
)


def _text(*words: str) -> bytes:
    return repr(words).encode("utf-8", "surrogatepass")


def _hashed(parts: list[bytes]) -> bytes:
    """Return one digest of many, each with its length, so that none runs into the next."""
    hasher = blake2b(digest_size=20)
    for part in parts:
        hasher.update(b"%d:" % len(part))
        hasher.update(part)
    return hasher.digest()
