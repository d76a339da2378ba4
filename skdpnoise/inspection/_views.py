"""Everything that a fitted model publishes, as numbers."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

__all__ = ["Layout", "view"]

_DEEPEST = 8
_LONGEST = 2048  # entries of one array that are looked at: half from each end
_CODES = 4096  # of texts
_ASKED = ("predict_proba", "decision_function", "predict", "score_samples", "transform")
_ENOUGH = ("predict_proba", "decision_function")  # labels follow from these

View = dict[str, NDArray[np.float64]]


def view(model: Any, points: Any, warned: Sequence[str], raised: str | None) -> View:
    """Return all numbers of a fitted model by name, and what it says of some points."""
    found: View = {"warned": _codes(warned), "raised": _codes([raised or ""])}
    if raised is not None:
        return found
    _walk("", model, found, (), 0)
    for name in _ASKED:
        with suppress(AttributeError, TypeError, ValueError, NotFittedError):
            _walk(f"{name}()", getattr(model, name)(deepcopy(points)), found, (), _DEEPEST - 1)
            if name in _ENOUGH:
                break
    return found


def _walk(path: str, value: Any, found: View, above: tuple[int, ...], depth: int) -> None:
    if value is None or depth > _DEEPEST or id(value) in above:
        return
    if isinstance(value, bool | int | float | np.number | np.bool_):
        found[path] = np.array([float(value)])
    elif isinstance(value, str):
        found[path] = _codes([value])
    elif sp.issparse(value):
        _walk(path, value.toarray(), found, above, depth)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        found[path] = _ends(value.ravel().astype(np.float64))
    elif hasattr(value, "to_numpy"):
        _walk(path, value.to_numpy(), found, above, depth)
    elif isinstance(value, np.ndarray):
        texts = value.ravel().tolist()
        found[path] = _codes([str(item) for item in _ends_of(texts)])
    else:
        for name, part in _parts(value):
            _walk(f"{path}{name}", part, found, (*above, id(value)), depth + 1)


def _parts(value: Any) -> list[tuple[str, Any]]:
    """Return what an object holds, without parameters, which are public."""
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [(f"[{k}]", item) for k, item in enumerate(_ends_of(value))]
    if isinstance(value, type) or callable(value):
        return []
    if is_dataclass(value):
        return [(f".{f.name}", getattr(value, f.name)) for f in fields(value)]
    if not hasattr(value, "__dict__"):
        return []
    public: Mapping[str, Any] = {}
    if hasattr(value, "get_params"):
        public = {k: v for k, v in value.get_params(deep=False).items() if not _holds_models(v)}
    return [(f".{name}", part) for name, part in vars(value).items() if name not in public]


def _holds_models(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_models(item) for item in value)
    return hasattr(value, "fit")


def _ends(values: NDArray[np.float64]) -> NDArray[np.float64]:
    half = _LONGEST // 2
    return values if values.size <= _LONGEST else np.r_[values[:half], values[-half:]]


def _ends_of(values: Any) -> list[Any]:
    half = _LONGEST // 2
    return list(values) if len(values) <= _LONGEST else [*values[:half], *values[-half:]]


def _codes(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.array([float(zlib.crc32(text.encode()) % _CODES) for text in texts])


class Layout:
    """Which numbers make a row of the table of all fits; what changes its size gives its size."""

    def __init__(self, views: Sequence[View]) -> None:
        sizes: dict[str, set[int]] = {}
        for one in views:
            for name, values in one.items():
                sizes.setdefault(name, set()).add(values.size)
        self.fixed = {name: size.pop() for name, size in sizes.items() if len(size) == 1}
        self.loose = sorted(set(sizes) - set(self.fixed))

    def table(self, views: Sequence[View]) -> NDArray[np.float64]:
        """Return one row for each view: values, 0 where there is none, and sizes."""
        rows = []
        for one in views:
            parts = [
                one[name] if name in one and one[name].size == size else np.full(size, np.nan)
                for name, size in self.fixed.items()
            ]
            counts = [float(one[name].size) if name in one else -1.0 for name in self.loose]
            rows.append(np.concatenate([*parts, counts]))
        values = np.array(rows)
        odd = ~np.isfinite(values)
        # Whether a number is missing tells something too.
        telling = odd.any(axis=0) if odd.size else np.zeros(0, dtype=bool)
        self.telling = getattr(self, "telling", telling)
        return np.hstack([np.where(odd, 0.0, values), odd[:, self.telling].astype(np.float64)])
