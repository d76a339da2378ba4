"""Everything that a fitted model publishes, as numbers."""

from __future__ import annotations

import math
import re
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdpnoise._utils.nested import estimators_in
from skdpnoise.inspection.auditing._claims import said
from skdpnoise.inspection.auditing._fingerprint import (
    Unread,
    contents,
    examined,
    fingerprint,
    unread_part,
)

UNREAD = "cannot be read: "  # begins the name of a type
_DEEPEST = 1000
_RARE = 0.02  # of the fits
_EXACT = 1 << 53  # whole numbers below it are doubles
_LONGEST = 2048  # entries of one array that are looked at: half from each end
_CODES = 4096  # of texts
_ASKED = ("predict_proba", "decision_function", "predict", "score_samples", "transform")
_SETS = (set, frozenset)  # told by a digest
_ENOUGH = ("predict_proba", "decision_function")  # labels follow from these
_DENSE = 1 << 20  # entries of a sparse matrix that are looked at in their places
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_SINGLE = (bool, int, float, str, bytes, complex, np.float64)  # they hold nothing else
_CONTAINERS = (Mapping, np.ndarray, list, tuple, set, frozenset)
_CODED = (" is a", " is", " holds", " exactly")  # ends of names under which codes stand
_OF_ITEMS = ("[", "key ", "item", "metadata")  # names of attributes begin with a point

View = dict[str, NDArray[np.float64]]


class Parameters:
    """Public parameters of an estimator and of all estimators in it, before it is fitted."""

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
    found: View = {}
    look = _ModelWalk(found, given)
    look.at("warned", list(warned))
    look.at("raised", raised)
    if raised is not None:
        return found
    look.at("", model)
    for name in _ASKED:
        try:
            look.at(f"{name}()", getattr(model, name)(deepcopy(points)))
        except Exception as error:  # it has no such method, or the method refuses
            look.at(f"{name}() raised", said(error))
        else:
            if name in _ENOUGH:
                break
    return found


class _ModelWalk:
    """A walk through what a model holds: its numbers by name, and how they are arranged."""

    def __init__(self, found: View, given: Parameters) -> None:
        self._found, self._given = found, given
        self._seen: dict[int, tuple[Any, str]] = {}  # kept alive, or ids would recur

    def at(self, path: str, value: Any) -> None:
        """Note an object and all that it holds, each object once."""
        ahead = [(path, value, 0)]
        while ahead:
            path, value, depth = ahead.pop()
            if depth > _DEEPEST:
                raise RecursionError(
                    f"The fitted model is nested in more than {_DEEPEST} levels: a black box "
                    "cannot look through it."
                )
            try:
                parts = self._note(path, value)
            except Exception:  # of what the object does when it is asked
                parts = [unread_part(value)]
            ahead += [(path + name, part, depth + 1) for name, part in reversed(parts)]

    def _note(self, path: str, value: Any) -> list[tuple[str, Any]]:
        if isinstance(value, Unread):
            self._found[f"{UNREAD}{value.kind}"] = np.zeros(1)
            return []
        words, data, held = contents(value)
        self._found[f"{path} is a"] = _codes([" ".join(words)])
        if value is None:
            return []
        if id(value) in self._seen:
            self._found[f"{path} is"] = _codes([self._seen[id(value)][1]])
            return []
        numbers = _in_numbers(value, data)
        if numbers is not None:
            self._found[path] = numbers
            beyond = _of_inexact(value)
            if beyond.any():
                self._found[f"{path} exactly"] = beyond
            if type(value) in _SINGLE:
                return []
        self._seen[id(value)] = value, path
        parts = self._parts(value, held)
        self._found[f"{path} holds"] = _codes([" ".join(name for name, _ in parts)])
        return parts

    def _parts(self, value: Any, held: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Return what an object leads to, without parameters that are as they were given."""
        whole, parts = _in_places(value), list[tuple[str, Any]]()
        for name, part in held:
            if name == "class":
                parts += _by_digest(".class", part)
            elif not (_shows_all_of(value, name, part) or self._given.told(value, name[1:], part)):
                parts.append((name, part))
        if isinstance(value, _SETS) or (whole and isinstance(value, np.ndarray)):
            parts = [part for part in parts if not part[0].startswith(_OF_ITEMS)]
        elif isinstance(value, list | tuple | np.ndarray) and len(parts) > _LONGEST:
            parts = [*_ends_of(parts), *_by_digest("[...]", value)]
        if isinstance(value, _SETS):  # its own numbers are a digest
            parts += [("", one) for one in examined(value)[1]]
        return [*whole, *parts]


def _shows_all_of(array: Any, name: str, part: Any) -> bool:
    """Return whether an array shows all of the memory that it is a view of."""
    is_base = isinstance(array, np.ndarray) and name == ".base"
    return is_base and getattr(part, "nbytes", None) == array.nbytes


def _in_places(value: Any) -> list[tuple[str, Any]]:
    """Return the numbers of a matrix, a frame, a record or a memory, in their places."""
    if sp.issparse(value):  # its attributes hold the numbers too, but not in their places
        return [("[:]", value.toarray())] if math.prod(value.shape) <= _DENSE else []
    if isinstance(value, np.ndarray | np.void):
        array = np.asarray(value)
        return [(f"[{name!r}]", array[name].copy()) for name in array.dtype.names or ()]
    if isinstance(value, (type, *_CONTAINERS)):
        return []
    found = []
    # Of a frame; its labels are among its attributes and states. Some have no such numbers, or want
    # more arguments.
    with suppress(Exception):
        found.append(("[:]", value.to_numpy()))
    with suppress(TypeError, ValueError):  # it shows no memory, or none that numpy knows
        found.append(("[:]", np.array(memoryview(value))))
    return found


def _by_digest(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return parts that stand for all of a value: its digest, and what cannot be read of it."""
    digest, unread = examined(value)
    return [(name, digest), *((name, one) for one in unread)]


def _in_numbers(value: Any, data: bytes) -> NDArray[np.float64] | None:
    """Return numbers that stand for all of a value; None where it is to be taken apart."""
    if isinstance(value, np.ndarray | np.generic | float | complex):
        return _of_array(np.asarray(value))
    if isinstance(value, int):
        return _of_integer(value)
    if isinstance(value, str):
        written = [float(one) for one in _NUMBER.findall(value)]
        return np.concatenate([_codes([value]), _ends_of(written)])
    if isinstance(value, _SETS):
        return _codes([fingerprint(value).hex()])
    return _of_bytes(data) if data else None


def _of_array(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return numbers, or codes of texts; of very many both ends, and a code of all."""
    kind = array.dtype.kind
    if kind not in "iufbcmM":
        if array.dtype.names:
            return None
        if kind in "SV":
            return _of_bytes(array.tobytes())
        texts = array.ravel().tolist()
        if not all(type(text) in (str, bytes) for text in texts):
            return None if kind == "O" else _codes([fingerprint(array).hex()])
        texts = [text if isinstance(text, str) else text.hex() for text in texts]
        return _codes([*_ends_of(texts), *(["".join(texts)] if len(texts) > _LONGEST else [])])
    values: NDArray[np.float64] = _real(array).astype(np.float64)
    if values.size <= _LONGEST:
        return values
    return np.array([*_ends_of(values), *_codes([fingerprint(array.tobytes()).hex()])])


def _of_bytes(data: bytes) -> NDArray[np.float64]:
    """Return a code of all bytes, and those at both ends: of a date they are its year and so on."""
    return np.array([*_codes([fingerprint(data).hex()]), *_ends_of(data)], dtype=np.float64)


def _real(array: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of an array in one row: parts of complex ones, integers of dates."""
    row = array.ravel()
    if array.dtype.kind == "c":
        return np.concatenate([row.real, row.imag])
    return row.view(np.int64) if array.dtype.kind in "mM" else row


def _of_integer(value: int) -> NDArray[np.float64]:
    """Return a whole number as a double; of one that no double tells from its neighbours, bytes."""
    if abs(int(value)) <= _EXACT:
        return np.array([int.__float__(value)])
    size = 32 * (int.bit_length(value) // 255 + 1)  # of most, the same
    return _of_bytes(int.to_bytes(value, size, "little", signed=True))


def _of_inexact(value: Any) -> NDArray[np.float64]:
    """Return a code of each number of an array that a double, or a comparison, does not tell."""
    numbers = isinstance(value, np.ndarray | np.generic | float | complex)
    array = np.asarray(value if numbers else ())
    if array.dtype.kind not in "iufcmM":
        return np.zeros(0)
    row = _real(array)
    if row.dtype.kind == "f":
        odd = np.isnan(row) | ((row == 0.0) & np.signbit(row))
        if row.itemsize > 8:
            odd |= row.astype(np.float64) != row
    else:
        odd = np.abs(row.astype(np.float64)) >= _EXACT
    places = np.array(_ends_of(np.flatnonzero(odd)), dtype=int)
    codes = np.zeros(row.size)
    # Beyond double precision memory has gaps, which hold anything.
    texts = [repr(one) if row.itemsize > 8 else one.tobytes().hex() for one in row[places]]
    codes[places] = _codes(texts) + 1.0
    return np.array(_ends_of(codes))


def _ends_of(values: Any) -> list[Any]:
    half = _LONGEST // 2
    return list(values) if len(values) <= _LONGEST else [*values[:half], *values[-half:]]


def _codes(texts: Sequence[str]) -> NDArray[np.float64]:
    coded = (zlib.crc32(str.encode(text, errors="surrogatepass")) for text in texts)
    return np.array([float(code % _CODES) for code in coded])


class Layout:
    # Of what changes its size, and of all that stands under names which hardly any fit has (keys
    # that are noise), a row holds the size and some of the numbers.

    def __init__(self, views: Sequence[View]) -> None:
        sizes: defaultdict[str, list[int]] = defaultdict(list)
        for name, values in (item for one in views for item in one.items()):
            sizes[name].append(values.size)
        rare = max(1.0, _RARE * len(views))
        common = sorted(name for name, met in sizes.items() if len(met) > rare)
        self.fixed = {name: sizes[name][0] for name in common if len(set(sizes[name])) == 1}
        self.loose = [name for name in common if name not in self.fixed]

    def table(self, views: Sequence[View]) -> NDArray[np.float64]:
        """Return one row for each view: values, 0 where there is none, and sizes."""
        rows, known = [], {*self.fixed, *self.loose}
        for one in views:
            parts = [
                one[name] if name in one and one[name].size == size else np.full(size, np.nan)
                for name, size in self.fixed.items()
            ]
            parts += [_some_of(one.get(name)) for name in self.loose]
            rest = {name: values for name, values in one.items() if name not in known}
            for codes in (False, True):
                others = [rest[name] for name in rest if name.endswith(_CODED) == codes]
                parts.append(_some_of(np.concatenate([*others, []])))
            rows.append(np.concatenate(parts))
        values = np.array(rows)
        odd = ~np.isfinite(values)
        # Whether a number is missing tells something too.
        telling = odd.any(axis=0) if odd.size else np.zeros(0, dtype=bool)
        self.telling = getattr(self, "telling", telling)
        return np.hstack([np.where(odd, 0.0, values), odd[:, self.telling].astype(np.float64)])


def _some_of(values: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the size of an array, and numbers of it; a size of -1 where there is none."""
    found = np.full(8, np.nan)
    found[0] = -1.0 if values is None else values.size
    finite = np.zeros(0) if values is None else values[np.isfinite(values)]
    if finite.size:
        ends = finite[0], finite[-1], finite.min(), finite.max()
        found[1:] = *ends, *np.quantile(finite, [0.25, 0.5, 0.75])
    return found
