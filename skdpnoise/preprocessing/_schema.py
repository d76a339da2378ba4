"""What each column of a table is: said by its user, or by its type, never by its values."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpnoise.compose.columns import is_polars
from skdpnoise.compose.numbers import NUMBERS
from skdpnoise.preprocessing._labels import checked_categories

__all__ = ["Column", "planned_columns"]

_WORDS = ("number", "log", "category", "date", "drop")
_KEYS = {
    "number": {"bounds", "log", "nullable"},
    "category": {"categories", "buckets", "nullable"},
    "ordinal": {"categories", "nullable"},
    "date": {"nullable"},
    "drop": set(),
}
_MOST_BUCKETS = 1 << 16
_OPEN = (-np.inf, np.inf)
_LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class Column:
    """What is public of a column."""

    name: str
    kind: str  # "number", "category", "ordinal", "date" or "drop"
    nullable: bool  # whether what is missing gets a column of its own
    declared: bool  # whether its user said so; else its type did
    bounds: tuple[float, float] = _OPEN
    log: bool = False
    categories: tuple[Any, ...] | None = None
    buckets: int = 0  # into which categories are hashed; 0 are none
    hours: bool = True  # whether a date has hours

    @property
    def is_open(self) -> bool:
        """Whether its categories are to be found."""
        return self.kind == "category" and self.categories is None and not self.buckets


def planned_columns(owner: str, schema: Any, X: Any) -> list[Column]:
    """Return what each column of a table is, or say what is wrong with the schema."""
    names, types = _declared_types(X)
    given = {} if schema is None else schema
    for name in given:
        if name not in names:
            shown = repr(name) if isinstance(name, str) else type(name).__name__
            raise ValueError(
                f"The 'schema' parameter of {owner} must be a dict by the names of columns of X. "
                f"Got {shown}, which is none of them."
            )
    return [
        _column(owner, name, given.get(name), kind, nullable)
        for name, (kind, nullable) in zip(names, types, strict=True)
    ]


def _column(owner: str, name: str, given: Any, kind: str, nullable: bool) -> Column:
    """Return one column by what its user says of it, and by its type as far as this is silent."""
    if given is None:
        binary = (0.0, 1.0) if kind == "flag" else _OPEN
        plain = {"flag": "number", "day": "date"}.get(kind, kind)
        return Column(name, plain, nullable, False, binary, hours=kind != "day")
    words = as_words(given)
    what = words.pop("kind", None)
    if what is None or what not in _KEYS or set(words) - _KEYS[what]:
        raise _wrong(owner, name, given)
    if kind in ("date", "day") and what not in ("date", "drop"):
        raise ValueError(
            f"{_START.format(owner, name)} 'date' or 'drop', as its type is that of dates. Got "
            f"{what!r}: convert it first, as in frame[{name!r}].dt.year."
        )
    facts: dict[str, Any] = {"nullable": words.get("nullable", nullable)}
    if not isinstance(facts["nullable"], bool):
        raise _wrong(owner, name, given)
    if what == "number":
        facts |= {"bounds": _bounds(owner, name, words), "log": words.get("log", False) is True}
    elif what in ("category", "ordinal") and "categories" in words:
        expected = f"{_START.format(owner, name)} a list of different categories"
        facts["categories"] = checked_categories(words["categories"], expected)
    elif what == "category":
        facts["buckets"] = words.get("buckets", 0)
        most = type(facts["buckets"]) in (int, np.int64) and 0 <= facts["buckets"] <= _MOST_BUCKETS
        if not most:
            raise _wrong(owner, name, given)
    elif what == "ordinal":
        raise _wrong(owner, name, given)
    return Column(name, what, declared=True, hours=kind != "day", **facts)


_START = "The 'schema' parameter of {} must give for {!r}"


def _wrong(owner: str, name: str, given: Any) -> ValueError:
    return ValueError(
        f"{_START.format(owner, name)} a pair (low, high) of numbers, a list of categories, one of "
        f"{list(_WORDS)}, or a dict with 'kind' (one of {list(_KEYS)}) and 'bounds', 'log', "
        f"'categories', 'buckets' (up to {_MOST_BUCKETS}) or 'nullable' where they make sense. Got "
        f"{type(given).__name__} {given if isinstance(given, str) else ''}".rstrip()
        + "."
    )


def as_words(given: Any) -> dict[str, Any]:
    """Return an entry of a schema in its longest form; empty if it is none."""
    if isinstance(given, str):
        if given not in _WORDS:
            return {}
        return {"kind": "number", "log": True} if given == "log" else {"kind": given}
    if isinstance(given, Mapping):
        words = dict(given)
        if "kind" not in words:
            words["kind"] = "category" if {"categories", "buckets"} & set(words) else "number"
        if words["kind"] == "log":
            words |= {"kind": "number", "log": True}
        return words
    if isinstance(given, tuple) and len(given) == 2 and all(type(end) in NUMBERS for end in given):
        return {"kind": "number", "bounds": given}
    if isinstance(given, list | np.ndarray | tuple):
        return {"kind": "category", "categories": given}
    return {}


def _bounds(owner: str, name: str, words: Mapping[str, Any]) -> tuple[float, float]:
    """Return public bounds in the units of the column, infinite where there are none."""
    given = words.get("bounds", _OPEN)
    pair = isinstance(given, tuple | list) and len(given) == 2
    if pair and all(type(end) in NUMBERS for end in given):
        low, high = map(float, given)
        if low < high and all(abs(end) <= _LARGEST or np.isinf(end) for end in (low, high)):
            return low, high
    raise _wrong(owner, name, dict(words))


def _declared_types(X: Any) -> tuple[list[str], list[tuple[str, bool]]]:
    """Return names of columns, and of each what its type says it is, and whether it has gaps."""
    if is_polars(X):
        return list(X.columns), [_of_polars(kind) for kind in X.dtypes]
    if hasattr(X, "iloc"):
        return [*map(str, X.columns)], [_of_pandas(kind) for kind in X.dtypes]
    return [f"x{k}" for k in range(X.shape[1])], [_of_numpy(X.dtype)] * X.shape[1]


def _of_numpy(kind: np.dtype[Any]) -> tuple[str, bool]:
    if kind.kind == "b":
        return "flag", False
    if kind.kind in "iuf":
        return "number", kind.kind == "f"
    if kind.kind == "M":
        return ("day" if np.datetime_data(kind)[0] in ("Y", "M", "W", "D") else "date"), True
    return "category", True


def _of_pandas(kind: Any) -> tuple[str, bool]:
    pandas = sys.modules["pandas"]
    if isinstance(kind, np.dtype):
        return _of_numpy(kind)
    types = pandas.api.types
    if isinstance(kind, pandas.CategoricalDtype):
        return "category", True
    if types.is_bool_dtype(kind):
        return "flag", True
    if types.is_numeric_dtype(kind):
        return "number", True
    return ("date" if types.is_datetime64_any_dtype(kind) else "category"), True


def _of_polars(kind: Any) -> tuple[str, bool]:
    if str(kind) == "Boolean":
        return "flag", True
    if kind.is_numeric():
        return "number", True
    if kind.is_temporal() and str(kind) != "Time" and not str(kind).startswith("Duration"):
        return ("day" if str(kind) == "Date" else "date"), True
    return "category", True


def undeclared(columns: Sequence[Column], X: Any) -> Iterator[str]:
    """Yield the names of columns whose type one record might decide: floats and objects."""
    kinds = X.dtypes if hasattr(X, "dtypes") else [X.dtype] * len(columns)
    for column, kind in zip(columns, kinds, strict=True):
        if not column.declared and getattr(kind, "kind", None) in ("f", "O"):
            yield column.name
