"""Two states are the same if every number that they can hold is, and if only then."""

from __future__ import annotations

import csv
import hashlib
import logging
import mmap
import queue
import re
import sqlite3
import struct
import sys
import threading
import weakref
import zlib
from collections import OrderedDict, defaultdict, deque
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from types import MappingProxyType, ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skdpnoise.inspection.auditing._fingerprint import differences, examined, fingerprint
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.privacy import PureLoss


class Thing:
    def __init__(self, **attributes):
        vars(self).update(attributes)


PAIRS = [
    (1.0, 1.0 + 2**-52),
    (0.0, -0.0),
    (1, 1.0),
    ("a", "b"),
    (np.arange(3), np.arange(3.0)),
    (np.zeros(2), np.array([0.0, -0.0])),
    (np.array(["a", None], dtype=object), np.array(["a", 1], dtype=object)),
    ([1, 2], (1, 2)),
    ({"a": 1}, {"a": 2}),
    ({1, 2}, {1, 3}),
    (sp.csr_array([[1.0, 0.0]]), sp.csr_array([[0.0, 1.0]])),
    (int, float),
    (Thing(a=1), Thing(a=2)),
    (PureLoss(1.0), PureLoss(2.0)),
    (np.random.default_rng(0), np.random.default_rng(1)),
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=range(len(PAIRS)))
def test_states_that_differ_in_a_bit_are_told_apart_and_equal_ones_are_not(first, second):
    assert fingerprint(first) == fingerprint(first)
    assert fingerprint(first) != fingerprint(second)


def test_a_state_that_holds_itself_has_an_end():
    one, other = Thing(a=1), Thing(a=1)
    one.me, other.me = one, other
    assert fingerprint(one) == fingerprint(other)


class Slots:
    __slots__ = ("__hidden", "value")

    def __init__(self, value):
        self.__hidden = self.value = value


class Extra:
    """What every subclass of a container can hold beside its items."""

    def __init__(self, *items):
        super().__init__(*items)
        self.extra = None


class ExtraList(Extra, list):
    pass


class ExtraDict(Extra, dict):
    pass


class ExtraSet(Extra, set):
    pass


class ExtraText(str):
    pass


class ExtraArray(np.ndarray):
    pass


class Silent:
    """Leaves out of its pickles, and of its text, what it holds."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return Silent, (0,)


@dataclass(frozen=True)
class Facts:
    name: str = "facts"


def with_extra(thing, value, name="extra"):
    object.__setattr__(thing, name, value)
    return thing


def with_attributes(function, value):
    function.extra = value
    return function


def by_default(value):
    def function(one=value):
        return one

    return function


def by_keyword(value):
    def function(*, one=value):
        return one

    return function


def started(value):
    def generator():
        yield value

    running = generator()
    next(running)
    return running


def table(value):
    frame = pd.DataFrame({"a": [0.0]})
    frame.attrs["mean"] = value
    return frame


def raised(value):
    """An exception with another one behind it, and variables of what raised it."""
    hidden = value + 1.0
    try:
        try:
            raise ValueError(value)
        except ValueError as error:
            raise RuntimeError("failed") from error
    except RuntimeError as error:
        assert hidden
        return error


def frame(value):
    assert value
    return sys._getframe()


def finalizer(value):
    found = weakref.finalize(Slots, print, value)
    found.atexit = False
    return found


def module(value):
    made = ModuleType("made")
    made.mean = value
    return made


def described(value):
    def function():
        return 0

    function.__doc__ = repr(value)
    return function


def annotated(value):
    def function():
        return 0

    function.__annotations__ = {"mean": value}
    return function


def mapped(value):
    memory = mmap.mmap(-1, 8)
    memory[0] = int(8 * value)
    return memory


HIDING_PLACES = {
    "attribute": lambda v: Thing(a=v),
    "partial": lambda v: partial(np.subtract, v),
    "keyword of a partial": lambda v: partial(np.subtract, out=v),
    "attribute of a partial": lambda v: with_attributes(partial(np.subtract, 1), v),
    "closure": lambda v: lambda z: z - v,
    "default": by_default,
    "default of a keyword": by_keyword,
    "attribute of a function": lambda v: with_attributes(lambda: 0, v),
    "constant of code": lambda v: eval(f"lambda: {v!r}"),
    "bound method": lambda v: Thing(a=v).__repr__,
    "method of a list": lambda v: [v].__contains__,
    "builtin method": lambda v: [v].append,
    "dataclass": lambda v: with_extra(Facts(), v),
    "list": lambda v: with_extra(ExtraList(), v),
    "dict": lambda v: with_extra(ExtraDict(), v),
    "set": lambda v: with_extra(ExtraSet(), v),
    "text": lambda v: with_extra(ExtraText("a"), v),
    "array": lambda v: with_extra(np.zeros(1).view(ExtraArray), v),
    "masked array": lambda v: np.ma.masked_array([v, 1.0], mask=[True, False]),
    "metadata of a dtype": lambda v: np.zeros(1, np.dtype(float, metadata={"mean": v})),
    "sparse array": lambda v: with_extra(sp.csr_array([[1.0]]), v),
    "slots": Slots,
    "silent pickle": Silent,
    "class": lambda v: type("Made", (), {"mean": v}),
    "instance of a class": lambda v: type("Made", (), {"mean": v})(),
    "property": lambda v: property(lambda self: v),
    "key": lambda v: {v: 0},
    "item of a set": lambda v: frozenset([v]),
    "default of a dict": lambda v: defaultdict(lambda: v),
    "deque": lambda v: deque([v]),
    "mapping": lambda v: MappingProxyType({"a": v}),
    "values of a dict": lambda v: {"a": v}.values(),
    "iterator": lambda v: iter([v]),
    "itemgetter": itemgetter,
    "frame": table,
    "exception": ValueError,
    "namespace": lambda v: SimpleNamespace(a=v),
    "memory": lambda v: memoryview(np.array([v])),
    "generator of numbers": lambda v: np.random.default_rng(int(1000 * v)),
    "memory of two dimensions": lambda v: memoryview(np.array([[v]])),
    "memory around a view": lambda v: np.array([[0.0], [v]])[0],
    "memory around a view of memory": lambda v: memoryview(np.array([0.0, v]))[:1],
    "lines of code": lambda v: compile("\n" * int(8 * v) + "x = 1", "file", "exec"),
    "description": described,
    "annotation": annotated,
    "file name of code": lambda v: compile("1", f"{v}", "eval"),
    "line of code": lambda v: (lambda: 0).__code__.replace(co_firstlineno=int(8 * v)),
    "class of a number": lambda v: type("Made", (float,), {"mean": v})(1.0),
    "class of an array": lambda v: np.zeros(1).view(type("Made", (np.ndarray,), {"mean": v})),
    "mapped memory": mapped,
    "keys of an ordered dict": lambda v: OrderedDict({v: 1}).keys(),
    "order of an array": lambda v: np.zeros((2, 2), order="C" if v < 0.3 else "F"),
}


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_a_number_is_seen_wherever_a_state_can_hold_it(place):
    hide = HIDING_PLACES[place]
    one, again, other = (Thing(a=hide(value)) for value in (0.25, 0.25, 0.5))
    assert fingerprint(one) == fingerprint(again)
    assert differences(one, again) == []
    assert fingerprint(one) != fingerprint(other)
    paths = differences(one, other)
    assert paths
    assert all(path.startswith("a") for path in paths)


class Unpickled:
    """Refuses to be pickled, and hides nothing."""

    def __init__(self, value):
        self.value = value

    def __reduce_ex__(self, protocol):
        raise TypeError


class UnpickledSlots(Slots):
    __slots__ = ("more",)

    def __reduce_ex__(self, protocol):
        raise TypeError


@pytest.mark.parametrize("make", [Unpickled, UnpickledSlots])
def test_what_does_not_pickle_is_compared_by_its_attributes_if_it_holds_nothing_else(make):
    assert differences(make(1), make(1)) == []
    assert differences(make(1), make(2)) != []


UNREADABLE = {
    "zlib.Compress": zlib.compressobj,
    "zlib.Decompress": zlib.decompressobj,
    "numpy.nditer": lambda: np.nditer(np.zeros(1)),
    "_queue.SimpleQueue": queue.SimpleQueue,
    "sqlite3.Connection": lambda: sqlite3.connect(":memory:"),
    "_csv.reader": lambda: csv.reader(["0"]),
    "_hashlib.HASH": lambda: hashlib.sha256(b"0"),
    "_blake2.blake2b": lambda: hashlib.blake2b(b"0"),
    "_struct.Struct": lambda: struct.Struct("8x"),
    "re.Match": lambda: re.match("a*", "aa"),
    "_contextvars.Context": copy_context,
    "_contextvars.ContextVar": lambda: ContextVar("mean"),
    "builtins.generator": lambda: started(0.0),
    "builtins.frame": lambda: frame(0.5),
    "builtins.traceback": lambda: raised(0.0).__traceback__,
    "weakref.finalize": lambda: finalizer(0.0),
    "builtins.module": lambda: module(0.0),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_never_taken_to_be_equal(name):
    one, other = (Thing(a=UNREADABLE[name]()) for _ in range(2))
    assert fingerprint(one) != fingerprint(other)
    (path,) = differences(one, other)
    assert path.startswith("a")
    assert "cannot be compared: " in path
    assert name in {part.kind for part in examined(one)[1]}
    assert differences(one, one) == []
    shared = one.a
    assert differences(Thing(a=shared, b=1), Thing(a=shared, b=2)) == ["b"]


class Remembering:
    @cached_property
    def twice(self):
        return 2.0


def remembering(asked):
    one = Remembering()
    if asked:
        assert one.twice == 2.0
    return one


@pytest.mark.parametrize(
    "make",
    [
        object,
        threading.Lock,
        threading.RLock,
        lambda: weakref.ref(Thing),
        lambda: logging.getLogger("skdpnoise"),
        lambda: np,
        lambda: {Thing(a=1): 2},
        lambda: PrivacyLedger("wages", 1.0, 0.0, "memory"),
    ],
)
def test_where_an_object_lies_and_who_waits_for_it_makes_no_difference(make):
    one, other = Thing(a=make()), Thing(a=make())
    assert fingerprint(one) == fingerprint(other)
    assert differences(one, other) == []


def test_what_was_computed_before_is_a_part_of_a_state():
    assert fingerprint(remembering(True)) != fingerprint(remembering(False))
    assert differences(remembering(True), remembering(False)) == ["twice"]


def test_many_ways_through_a_state_take_no_longer_than_one():
    def tangle(value):
        things = [Thing(a=0) for _ in range(30)]
        for one in things:
            one.all = things  # a cycle through all of them
        deep = [value]
        for _ in range(100):
            deep = [deep, deep]
        things[7].a = deep
        return things

    assert fingerprint(tangle(1)) == fingerprint(tangle(1))
    assert fingerprint(tangle(1)) != fingerprint(tangle(2))


def test_differences_are_named_by_the_path_that_leads_there():
    first = Thing(steps=[("a", Thing(x_=np.zeros(2), y_=1))], z_={"k": 1}, same_=3)
    second = Thing(steps=[("a", Thing(x_=np.ones(2), y_=1))], z_={"k": 2}, same_=3, new_=0)
    assert differences(first, second) == ["steps[0][1].x_", "z_['k']", "new_"]
    assert differences(first, first) == []
    assert differences(1, 2) == ["the whole state"]
