"""Everything that a fitted model publishes, as numbers."""

from __future__ import annotations

import types
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from skdpnoise.inspection._claims import estimators_in
from skdpnoise.inspection._fingerprint import fingerprint, is_made_here, parts_of, shown

__all__ = ["Layout", "Parameters", "View", "view"]

_DEEPEST = 16
_LONGEST = 2048  # entries of one array that are looked at: half from each end
_CODES = 4096  # of texts
_ASKED = ("predict_proba", "decision_function", "predict", "score_samples", "transform")
_WHOLE = (bytes, bytearray, complex, set, frozenset, types.CodeType)  # told by a digest
_ENOUGH = ("predict_proba", "decision_function")  # labels follow from these

View = dict[str, NDArray[np.float64]]


class Parameters:
    """What is public of an estimator and of all estimators in it before it is fitted."""

    # A parameter that a fit overwrites, or changes in place, is no longer what was given.

    def __init__(self, estimator: Any | None = None) -> None:
        self._given: dict[tuple[type, str], set[bytes]] = {}
        for part in () if estimator is None else estimators_in(estimator, set()):
            for name, value in part.get_params(deep=False).items():
                self._given.setdefault((type(part), name), set()).add(fingerprint(value))

    def told(self, owner: Any, name: str, value: Any) -> bool:
        """Return whether an attribute is what all estimators of its class were given."""
        given = self._given.get((type(owner), name))
        return given is not None and given == {fingerprint(value)}


def view(
    model: Any, points: Any, warned: Sequence[str], raised: str | None, given: Parameters
) -> View:
    """Return all numbers of a fitted model by name, and what it says of some points."""
    found: View = {"warned": _codes(warned), "raised": _codes([raised or ""])}
    if raised is not None:
        return found
    look = _Look(found, given)
    look.at("", model)
    for name in _ASKED:
        with suppress(AttributeError, TypeError, ValueError, NotFittedError):
            look.at(f"{name}()", getattr(model, name)(deepcopy(points)))
            if name in _ENOUGH:
                break
    found["structure"] = _codes([" ".join(look.structure)])
    return found


class _Look:
    """A walk through what a model holds: its numbers by name, and how they are arranged."""

    def __init__(self, found: View, given: Parameters) -> None:
        self.structure: list[str] = []
        self._found, self._given = found, given

    def at(self, path: str, value: Any, above: tuple[int, ...] = ()) -> None:
        """Note an object and all that it holds."""
        kind = value if isinstance(value, type) else type(value)
        arranged = getattr(value, "dtype", ""), getattr(value, "shape", "")
        self.structure.append(f"{path} {kind.__module__}.{kind.__qualname__} {arranged}")
        if value is None or len(above) > _DEEPEST or id(value) in above:
            return
        for name, part in _behind(value):
            self.at(f"{path}{name}", part, (*above, id(value)))
        if sp.issparse(value):
            self.at(path, value.toarray(), above)
        elif hasattr(value, "to_numpy"):
            for name in ("index", "columns"):  # of frames
                labels = getattr(value, name, None)
                if labels is not None and not callable(labels):
                    self._found[f"{path}.{name}"] = _codes([str(one) for one in _ends_of(labels)])
            self.at(path, value.to_numpy(), above)
        elif (whole := _in_numbers(value)) is not None:
            self._found[path] = whole
        else:
            for name, part in self._parts(value):
                self.at(f"{path}{name}", part, (*above, id(value)))

    def _parts(self, value: Any) -> list[tuple[str, Any]]:
        """Return what an object holds, without parameters that are as they were given: public."""
        if isinstance(value, Mapping):
            items = enumerate(value.items())
            return [(f"[{shown(key, place)}]", item) for place, (key, item) in items]
        if isinstance(value, list | tuple):
            ends = [(f"[{k}]", item) for k, item in enumerate(_ends_of(value))]
            whole = [fingerprint(value)] if len(value) > _LONGEST else []
            return [*ends, *(("[...]", one) for one in whole)]
        held = parts_of(value)
        return [(name, part) for name, part in held if not self._given.told(value, name[1:], part)]


def _behind(value: Any) -> list[tuple[str, Any]]:
    """Return what a value leads to beside its numbers: other memory, and a class of its own."""
    found: list[tuple[str, Any]] = []
    if isinstance(value, np.ndarray):
        base = value.base
        found = [(".metadata", value.dtype.metadata)] if value.dtype.metadata else []
        if base is not None and getattr(base, "nbytes", None) != value.nbytes:
            found.append((".base", base))
    if not isinstance(value, type) and is_made_here(type(value)):
        found.append((".class", fingerprint(type(value)).hex()))
    return found


def _in_numbers(value: Any) -> NDArray[np.float64] | None:
    """Return numbers that stand for all of a value; None where it is to be taken apart."""
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return _plain(value)
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, str):
        return _codes([value])
    if isinstance(value, _WHOLE):
        return _codes([fingerprint(value).hex()])
    return _codes([value.__name__]) if isinstance(value, types.ModuleType) else None


def _of_array(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers, or codes of texts; of very many both ends, and a code of all."""
    if array.dtype.kind not in "iufb":
        texts = [str(item) for item in array.ravel().tolist()]
        return _codes([*_ends_of(texts), *_whole("".join(texts), len(texts))])
    values: NDArray[np.float64] = array.ravel().astype(np.float64)
    if values.size <= _LONGEST:
        return values
    half = _LONGEST // 2
    ends = values[:half], values[-half:]
    return np.concatenate([*ends, _codes([fingerprint(values).hex()])])


def _plain(value: Any) -> NDArray[np.float64]:
    """Return a number as a double; of one beyond all doubles a code of its digits."""
    try:
        return np.array([float(value)])
    except (OverflowError, TypeError):
        return _codes([str(value)])


def _whole(text: str, size: int) -> list[str]:
    """Return a text for a code of all that only the ends are looked at of."""
    return [text] if size > _LONGEST else []


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
