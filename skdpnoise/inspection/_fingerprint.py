"""Whether two states are the same to the last bit, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

__all__ = ["differences", "fingerprint"]

_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic)


def fingerprint(value: Any, _above: tuple[int, ...] = ()) -> Any:
    """Return something that is equal for values that are the same bit for bit."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, _PLAIN):
        return kind, repr(value)
    if id(value) in _above:  # a value that holds itself
        return kind, "above", len(_above) - _above.index(id(value))
    above = (*_above, id(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, np.ndarray):
        return kind, value.shape, [fingerprint(item, above) for item in value.ravel().tolist()]
    if sp.issparse(value):
        return kind, fingerprint(value.tocoo().coords, above), value.shape, value.data.tobytes()
    if isinstance(value, Mapping):
        items = [(fingerprint(k, above), fingerprint(v, above)) for k, v in value.items()]
        return kind, items
    if isinstance(value, list | tuple):
        return kind, [fingerprint(item, above) for item in value]
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(fingerprint(item, above)) for item in value)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return kind, getattr(value, "__module__", None), value.__qualname__
    if is_dataclass(value):
        return kind, [fingerprint(getattr(value, f.name), above) for f in fields(value)]
    if hasattr(value, "__dict__") and not hasattr(value, "__array__"):
        return kind, fingerprint(vars(value), above)
    return kind, joblib.hash(value)


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Return where two states differ, as the paths that lead there."""
    if fingerprint(first) == fingerprint(second):
        return []
    inner: list[tuple[str, Any, Any]] = []
    if type(first) is type(second):
        if isinstance(first, list | tuple) and len(first) == len(second):
            pairs = zip(first, second, strict=True)
            inner = [(f"[{k}]", a, b) for k, (a, b) in enumerate(pairs)]
        elif isinstance(first, Mapping) and first.keys() == second.keys():
            inner = [(f"[{key!r}]", first[key], second[key]) for key in first]
        elif hasattr(first, "__dict__") and not hasattr(first, "__array__"):
            here, there = vars(first), vars(second)
            names = [*here, *(name for name in there if name not in here)]
            inner = [(f".{name}", here.get(name), there.get(name)) for name in names]
    found = [where for name, a, b in inner for where in differences(a, b, path + name)]
    return found or [path.removeprefix(".") or "the whole state"]
