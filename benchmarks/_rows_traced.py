"""Which functions of the package get the rows of a fit, in whatever carries them.

A value carries rows where it, or anything that it refers to, has a length that the number of rows
divides, or is of a type that reads rows (``house.toml`` names these). The number is prime, so that
nothing else has such a length. What refers to what is asked of the garbage collector, which knows
slots, closures, partial functions, bound methods and iterators as it knows lists. Frames of Python
are seen, compiled loops are not. Run as a script, this file takes nothing from its folder: it
traces the package that stands first in PYTHONPATH.
"""

from __future__ import annotations

import gc
import inspect
import json
import re
import sys
import threading
import tomllib
import types
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = "skdpnoise"
N_ROWS = 1999  # fewer than a block of rows has: a copy of a block is one of all rows
_MOST = 100_000  # objects that are looked at behind one value
_ATOMS = (type(None), bool, int, float, complex, str, range, type, np.dtype, np.generic)
_ATOMS += (types.ModuleType, types.FrameType, types.TracebackType, types.CodeType)
_STAR, _STARS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
_LEFT_OUT = ("numba", "llvmlite")  # what they refer to is compiled code, and all of their own


@dataclass(frozen=True)
class Carriers:
    """Carriers of rows: by size, and by the dotted name of a type of the package."""

    row_types: str = "(?!)"
    n_rows: int = N_ROWS

    def carries(self, value: Any) -> bool:
        """Return whether a value, or anything that it refers to, has rows or reads them."""
        left, seen = [value], {}
        while left:
            one = left.pop()
            if isinstance(one, _ATOMS) or id(one) in seen:
                continue
            if self._is_long(one) or self._reads(type(one)):
                return True
            seen[id(one)] = one  # and keeps it alive: an id is an object's while it lives
            if len(seen) > _MOST:
                raise RuntimeError(f"more than {_MOST:,} objects behind a {type(value).__name__}.")
            left.extend(_behind(one))
        return False

    def _is_long(self, value: Any) -> bool:
        kind = type(value)
        if _is_ours(kind):
            return False  # what it holds is looked at; a property might read rows
        if isinstance(value, np.nditer):  # at its end it has no shape: its blocks are looked at
            return False
        if inspect.getattr_static(kind, "shape", None) is not None:
            shape = getattr(value, "shape", ())
            lengths = [one for one in shape if isinstance(one, int)]
        else:
            lengths = [len(value)] if isinstance(value, Sized) else []
        return any(length and length % self.n_rows == 0 for length in lengths)

    def _reads(self, kind: type) -> bool:
        names = (f"{one.__module__}.{one.__name__}" for one in kind.__mro__ if _is_ours(one))
        return any(re.fullmatch(self.row_types, name) for name in names)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == PACKAGE


def _behind(value: Any) -> list[Any]:
    """Return what a value refers to; of a function all but the globals of its module."""
    if type(value).__module__.partition(".")[0] in _LEFT_OUT:
        return []
    if isinstance(value, types.FunctionType):
        return [value.__closure__, value.__defaults__, value.__kwdefaults__, vars(value)]
    if isinstance(value, weakref.ReferenceType):
        return [value()]
    if isinstance(value, np.ndarray):
        return [value.base, *(value.flat if value.dtype.hasobject else ())]
    if isinstance(value, memoryview):
        return [value.obj]
    return gc.get_referents(value)


@dataclass
class Trace:
    """The functions below a folder that get rows, in the order of their calls.

    Arguments and closures are looked at where a function begins, all its variables where it ends:
    rows may also come back from what it calls.
    """

    root: Path
    carriers: Carriers
    of_numbers: Sequence[str] = ()  # folders that count only where they are called with rows
    calls: list[tuple[str, str]] = field(default_factory=list)  # file and function
    found: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # names of the rows

    def __call__(self, frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and (
            not code.co_name.startswith("<") or code.co_name == "<lambda>"
        )
        if event not in ("call", "return") or not is_function:
            return
        path = Path(code.co_filename)
        if not path.is_relative_to(self.root):
            return
        place = (path.relative_to(self.root).as_posix(), code.co_qualname)
        if place[0].partition("/")[0] in self.of_numbers and not self._called_with_rows(frame):
            return
        names = {name for name, one in frame.f_locals.items() if self.carriers.carries(one)}
        if names and event == "call":
            self.calls.append(place)
        if names:
            self.found.setdefault(place, set()).update(names if event == "call" else ())

    def _called_with_rows(self, frame: types.FrameType) -> bool:
        """Return whether the call by which a folder was entered has rows."""
        folder = self.root / Path(frame.f_code.co_filename).relative_to(self.root).parts[0]
        while (caller := frame.f_back) and Path(caller.f_code.co_filename).is_relative_to(folder):
            frame = caller
        code = frame.f_code
        n_arguments = code.co_argcount + code.co_kwonlyargcount
        n_arguments += sum(bool(code.co_flags & one) for one in (_STAR, _STARS))
        given = (*code.co_varnames[:n_arguments], *code.co_freevars)
        values = frame.f_locals
        return any(self.carriers.carries(values[name]) for name in given if name in values)

    def during(self, call: Callable[[], object]) -> Trace:
        """Return the trace of a call, in all threads that it starts."""
        sys.setprofile(self)
        threading.setprofile(self)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self

    def figures(self, planners: str, checkers: str) -> dict[str, Any]:
        """Return the numbers, and the functions, those first that plan by their names."""
        folders = [file.partition("/")[0] for file, _ in self.calls]
        plan = {
            (file, name)
            for file, name in self.found
            if re.fullmatch(planners, name.rpartition(".")[2])
            and not re.fullmatch(checkers, f"{file}: {name}")
        }
        numbers = {
            "functions that get rows": len(self.found),
            "files": len({file for file, _ in self.found}),
            "folders": len({file.partition("/")[0] for file, _ in self.found}),
            "functions that plan": len(plan),
            "returns to a folder": _returns(folders),
            "names of rows": len(set().union(*self.found.values()) - {"self"}),
        }
        written = [[f"{file}: {name}" for file, name in one] for one in (plan, self.found)]
        places = {
            "functions that plan": sorted(written[0]),
            "functions that get rows": sorted(written[1]),
        }
        return {"figures": numbers, "places": places}


def _returns(folders: list[str]) -> int:
    """Return how often a folder is entered again that was left before."""
    entered = [new for old, new in pairwise(["", *folders]) if new != old]
    return len(entered) - len(set(entered))


def cases() -> Mapping[str, Callable[[], object]]:
    """Return the fits that are followed."""
    import pandas as pd

    from skdpnoise import DPLogisticCD, DPPipeline, DPTableVectorizer

    rng = np.random.default_rng(0)
    X = rng.normal([50, 1e6, 3], [10, 2e5, 1], size=(N_ROWS, 3))
    y = np.where(X[:, 0] + 5 * rng.normal(size=N_ROWS) > 50, "yes", "no")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": rng.choice(["u", "v", "w"], N_ROWS)})
    steps = [("table", DPTableVectorizer()), ("model", DPLogisticCD())]
    return {
        "logistic": lambda: DPLogisticCD(random_state=0).fit(X, y),
        "pipeline": lambda: DPPipeline(steps).fit(frame, y),
    }


def main() -> None:
    """Print the figures of all fits as JSON; each is made once before, for what is kept."""
    import skdpnoise

    warnings.simplefilter("ignore")
    kept = tomllib.loads(Path(__file__).with_name("house.toml").read_text(encoding="utf-8"))["rows"]
    carriers = Carriers("|".join(kept["types"]))
    found = {}
    for name, call in cases().items():
        call()
        root = Path(skdpnoise.__file__).parent
        trace = Trace(root, carriers, kept["of_numbers"]).during(call)
        found[name] = trace.figures("|".join(kept["planners"]), "|".join(kept["checkers"]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
