"""Digests of states, equal to the last bit or not, and the places where two differ."""

from __future__ import annotations

import copyreg
import logging
import mmap
import random
import struct
import sys
import threading
import types
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from operator import attrgetter
from pickle import whichmodule  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from skdpnoise.ledger import PrivacyLedger

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


def fingerprint(value: Any) -> bytes:
    """Return something that is equal for values that are the same bit for bit."""
    return _StateWalk().digest(value)


def examined(value: Any) -> tuple[bytes, list[Unread]]:
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
    here, there = (dict(contents(value)[2]) for value in (first, second))
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


def _is_made_here(kind: type) -> bool:
    """Return whether no module holds a class: it may have been made in a fit."""
    by_python = bool(kind.__flags__ & _MADE_BY_PYTHON)
    return by_python and not _is_held_by_a_module(kind, kind.__qualname__)


class _StateWalk:
    """Digests of objects by all that they hold: contents, attributes, slots, closures, states."""

    # Modules and classes stand for themselves by their names, and so do functions, beside their
    # code, defaults and closures. Locks, weak references and loggers hold no state that is
    # published. All else is read by its attributes, slots and pickle; what has no pickle cannot be
    # published, and what would be behind it (a suspended call, memory of a compiled library) is
    # named as unread.

    def __init__(self) -> None:
        self._depth: dict[int, int] = {}  # of what the walk is within
        self._known: dict[int, bytes] = {}
        self._within: dict[int, bytes] = {}  # parts of a cycle that is not walked to its end
        self._kept: list[Any] = []  # alive, or ids would recur
        self.unread: set[str] = set()  # kinds of what could not be read

    def digest(self, value: Any) -> bytes:
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
        words, data, parts = contents(value)
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
        found = _hashed([repr(words).encode("utf-8", "surrogatepass"), data, *digests])
        if highest < depth:
            self._within[key] = b"%d within" % len(self._within)
            return found, highest
        self._known[key] = found
        if depth == 0 or highest == depth:
            self._within.clear()
        return found, _OWN_PLACE


def contents(value: Any) -> Content:
    """Return what an object is by itself, in words and bytes, and its parts by name."""
    kind = type(value)
    whole = next((read for kinds, read in _READ_WHOLE if issubclass(kind, kinds)), None)
    try:
        if whole is not None:
            words, data, parts = whole(value)
        else:
            fits = (read for kinds, read in _READ_IN_PART if issubclass(kind, kinds))
            words, data, parts = next(fits, _of_nothing)(value)
            parts = parts if kind in _EXACT else [*parts, *_attributes(value)]
    except Exception:  # of what the object does when it is asked
        words, data, parts = [], b"", [unread_part(value)]
    if not isinstance(value, type) and _is_made_here(kind):
        parts = [*parts, ("class", kind)]
    return [_full_name(kind), *words], data, parts


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def unread_part(value: Any) -> tuple[str, Any]:
    return "unread", Unread(_full_name(type(value)))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield attributes, slots and, of what is made outside of Python, the state of a pickle."""
    kind = type(value)
    left_out = _OF_LEDGERS if isinstance(value, PrivacyLedger) else ()
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict | types.MappingProxyType):
        yield from ((f".{name}", held[name]) for name in list(held) if name not in left_out)
    if issubclass(kind, (types.FunctionType, *_BOUND)):  # taken apart already
        return
    for base in kind.__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType):
                with suppress(AttributeError):  # never set
                    yield f".{name}", member.__get__(value)
    if not issubclass(kind, (PrivacyLedger, *_PLAIN, *_SETS, np.ndarray, np.generic)):
        yield from _state(value, held if isinstance(held, dict) else {})


def _plain_items(value: Any) -> list[Any]:
    """Return the items as the base class holds them, whatever a subclass says."""
    (base,) = (base for base in (*_LISTS, *_SETS) if isinstance(value, base))
    return list(base.__iter__(value))


def _named(value: Any, *names: str) -> list[tuple[str, Any]]:
    return [(f".{name}", getattr(value, name)) for name in names if hasattr(value, name)]


def _state(value: Any, held: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what a pickle would hold beside attributes; items; what nobody can read as such."""
    kind = type(value)
    with suppress(Exception):
        known = _of_libraries(_full_name(kind), value)
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
                    yield unread_part(value)
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
            yield unread_part(value)
        return
    yield "state", kept


def _is_held_by_a_module(value: Any, name: str) -> bool:
    with suppress(AttributeError):
        return attrgetter(name)(sys.modules.get(whichmodule(value, name))) is value
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


def _of_class(value: Any) -> Content:
    """Return the name of a class, and what no module holds by that name."""
    words = [str(value.__module__), value.__qualname__]
    if not _is_made_here(value):
        return words, b"", []
    left_out = ("__dict__", "__weakref__", "__doc__", "__module__")
    held = [(f".{name}", part) for name, part in vars(value).items() if name not in left_out]
    return words, b"", [*_named(value, "__bases__"), *held]


def _of_module(value: Any) -> Content:
    known = sys.modules.get(value.__name__) is value
    return [value.__name__], b"", [] if known else [unread_part(value)]


def _of_function(value: Any) -> Content:
    names = ("__defaults__", "__kwdefaults__", "__closure__", "__doc__", "__annotations__")
    code = [("code", value.__code__)]
    return [value.__module__, value.__qualname__], b"", [*_named(value, *names), *code]


def _of_code(value: Any) -> Content:
    constants = [(f"constant {k}", constant) for k, constant in enumerate(value.co_consts)]
    place = [value.co_filename, str(value.co_firstlineno)]
    return [value.co_name, *place, *value.co_names], value.co_code + value.co_linetable, constants


def _of_nothing(_: Any) -> Content:
    return [], b"", []


def _of_plain(value: Any) -> Content:
    """Return a number or a text as the base class shows it, whatever a subclass says."""
    if isinstance(value, bytes | bytearray):
        return [], bytes(memoryview(value)), []
    (plain,) = (base for base in _PLAIN if isinstance(value, base))
    return [], plain.__repr__(value).encode("utf-8", "surrogatepass"), []


def _of_array(value: Any) -> Content:
    array, base = np.asarray(value), value.base
    words = [str(array.dtype), str(array.shape), repr(value.flags)]
    # A capsule is how compiled libraries own the memory of one array that they hand out.
    held = {"metadata": array.dtype.metadata, ".base": base}
    if type(base).__name__ == "PyCapsule":
        del held[".base"]
    parts = [(name, part) for name, part in held.items() if part is not None]
    if not array.dtype.hasobject:
        return words, array.tobytes(), parts
    return words, b"", [*parts, *_items(array.ravel().tolist())]


def _items(values: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"[{k}]", part) for k, part in enumerate(values)]


def _of_dict(value: Any) -> Content:
    """Return keys, and what stands under them, by class and place where they have an address."""
    found: list[tuple[str, Any]] = []
    for k, (key, part) in enumerate(dict.items(value)):
        shown = repr(key) if type(key) in _PLAIN else f"a {type(key).__qualname__}, {k}"
        found += [(f"key {k}", key), (f"[{shown}]", part)]
    return [], b"", found


def _of_method(value: Any) -> Content:
    function = getattr(value, "__func__", None)
    return [value.__name__], b"", [(".__self__", value.__self__), (".__func__", function)]


_EXACT = frozenset((*_PLAIN, *_LISTS, *_SETS, dict, np.ndarray, *_BOUND))

_DICTS: tuple[dict[Any, Any], ...] = ({}, OrderedDict())
_UNREAD = count()
# They run, or are to run: where to, nobody can tell from outside.
_RUNNING = (types.FrameType, types.TracebackType, weakref.finalize)

_Readers = tuple[tuple[tuple[type, ...], Callable[[Any], Content]], ...]
"""Ways to read an object by its kind, in order; the first kind that fits counts."""

# That is all there is.
_READ_WHOLE: _Readers = (
    (
        (type(None), bool, type(Ellipsis), type(NotImplemented)),
        lambda value: ([repr(value)], b"", []),
    ),
    ((type,), _of_class),
    ((types.ModuleType,), _of_module),
    ((logging.Logger,), lambda value: ([value.name], b"", [])),
    (_OPAQUE, _of_nothing),
    (_RUNNING, lambda value: ([], b"", [unread_part(value)])),
    ((Unread,), lambda value: ([value.kind, str(next(_UNREAD))], b"", [])),
    ((types.CodeType,), _of_code),
    ((types.CellType,), lambda value: ([], b"", _named(value, "cell_contents"))),
    (
        (memoryview,),
        lambda value: ([value.format, str(value.shape)], value.tobytes(), _named(value, "obj")),
    ),
)
# There are attributes, slots and states beside it.
_READ_IN_PART: _Readers = (
    ((types.FunctionType,), _of_function),
    ((np.ndarray, np.generic), _of_array),
    (_PLAIN, _of_plain),
    ((dict,), _of_dict),
    (_LISTS, lambda value: ([], b"", _items(_plain_items(value)))),
    (_SETS, lambda value: ([], b"", [("item", part) for part in _plain_items(value)])),
    (
        (BaseException,),
        lambda value: ([], b"", _named(value, "args", "__cause__", "__context__", "__traceback__")),
    ),
    (_BOUND, _of_method),
)


# What no pickle holds and what is read here, or what holds nothing that is published.
_READ_OTHERWISE = frozenset(
    (
        *(kind for kinds, _ in (*_READ_WHOLE, *_READ_IN_PART) for kind in kinds),
        *(type(getattr(one, name)()) for one in _DICTS for name in ("keys", "values", "items")),
        *(types.MappingProxyType, random.SystemRandom, property, classmethod, staticmethod),
        *(type(threading.Lock()), type(threading.RLock())),
        *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
        *(types.MethodDescriptorType, types.ClassMethodDescriptorType),
        type(vars(Collection)["_abc_impl"]),  # which classes were asked about before
    )
)


def _hashed(parts: list[bytes]) -> bytes:
    """Return one digest of many, each with its length, so that none runs into the next."""
    hasher = blake2b(digest_size=20)
    for part in parts:
        hasher.update(b"%d:" % len(part))
        hasher.update(part)
    return hasher.digest()
