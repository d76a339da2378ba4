"""Facts of columns, as their user or their types state them, and never their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.numbers import NUMBERS
from skdpnoise.data.cells import Contents, check_labels_of, of_truth_values
from skdpnoise.data.fitted_kinds import NUMBER, kind_of_labels
from skdpnoise.data.kinds import OBJECTS, Kind
from skdpnoise.data.reading import CellSchema
from skdpnoise.data.tables import Kinds
from skdpnoise.queries.categories import label_of

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
_LISTS = (list, tuple, np.ndarray)


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """Public facts of a column."""

    name: str
    kind: str  # "number", "category", "ordinal", "date" or "drop"
    nullable: bool  # whether what is missing gets a column of its own
    declared: Kind  # its type
    bounds: tuple[float, float] = _OPEN
    log: bool = False
    categories: tuple[Any, ...] | None = None
    buckets: int = 0  # into which categories are hashed; 0 are none
    truth: bool = False  # whether its categories are truth values

    @property
    def hours(self) -> bool:
        return not self.declared.days

    @property
    def kept(self) -> PlannedColumn:
        """Return what a fit keeps, which no single value of the column decides."""
        # What objects held says no more than the categories that are shown.
        return replace(self, truth=False, declared=replace(OBJECTS, days=self.declared.days))

    @property
    def is_numeric(self) -> bool:
        """Return whether it is one of numbers, or of dates, whose days are numbers."""
        return self.kind in ("number", "date")

    @property
    def is_searched(self) -> bool:
        return self.is_numeric and not np.isfinite(self.bounds).all()

    @property
    def is_open(self) -> bool:
        return self.kind == "category" and self.categories is None and not self.buckets


def planned_columns(owner: str, schema: Any, known: CellSchema) -> list[PlannedColumn]:
    names = known.columns
    given = {} if schema is None else schema
    for name in given:
        if name not in names:
            shown = repr(name) if isinstance(name, str) else type(name).__name__
            raise ValueError(
                f"The 'schema' parameter of {owner} must be a dict by the names of columns of X. "
                f"Got {shown}, which is none of them."
            )
    planned = []
    for name, kind, contents in zip(names, known.kinds, known.contents, strict=True):
        entry = given.get(name)
        plan = _undeclared if entry is None else partial(_column, given=entry)
        column = plan(owner, name, kind, contents)
        if name in known.guessed and (entry is None or not _says_the_type(column)):
            raise ValueError(
                f"{owner} would have to guess the type of column {name!r} of X, which was found by "
                f"reading its file. Say it there: scan_csv(..., dtypes={{{name!r}: ...}})."
            )
        if column.kind in ("category", "ordinal"):
            check_labels_in(owner, column, contents)
            if column.buckets and kind.name == "objects" and contents - {"text", "missing"}:
                raise ValueError(
                    f"{owner} hashes columns of objects that are text, and column {name!r} of X "
                    "has others: nobody would know later what was hashed. Give it a type of its "
                    "own, as in .astype('Int64') or .astype('boolean')."
                )
        planned.append(column)
    return planned


def check_labels_in(owner: str, column: PlannedColumn, contents: Contents) -> None:
    """Refuse a column of which one value would decide how others are read or shown."""
    held = contents | {"odd"} if column.declared.name == "other" else contents
    held = held if column.is_open else held & {"wide", "odd"}
    check_labels_of(owner, f"column {column.name!r} of X", held)


def _says_the_type(column: PlannedColumn) -> bool:
    """Return whether an entry of the schema leaves nothing of a column's type open."""
    return column.kind in ("number", "drop") or column.categories is not None


def _undeclared(owner: str, name: str, kind: Kind, contents: Contents) -> PlannedColumn:
    """Return a column of which its declared type alone says what it is."""
    if kind == OBJECTS and contents - {"missing"} != {"text"} and contents != {"number"}:
        raise ValueError(
            f"{owner} cannot tell what column {name!r} of X is: it is declared to hold objects, "
            "and one of them would decide. Convert it to a type of its own, as in "
            f".astype('boolean'), pandas.to_numeric(X[{name!r}]) or pandas.to_datetime(X[{name!r}])"
            ", or say in 'schema' what it is."
        )
    if kind.name == "other":
        raise _unreadable(owner, name)
    category = kind.category or kind.name in ("text", "objects")
    what = "date" if kind.name == "date" else "category" if category else "number"
    binary = (0.0, 1.0) if kind.name == "boolean" else _OPEN
    truth = of_truth_values(kind, contents)
    return PlannedColumn(name, what, not kind.never_missing, kind, binary, truth=truth)


def _unreadable(owner: str, name: str) -> ValueError:
    return ValueError(
        f"{owner} takes numbers, truth values, text and dates, and column {name!r} of X is of "
        f"another type. Convert it first, or leave it out: schema={{{name!r}: 'drop'}}."
    )


def _column(owner: str, name: str, kind: Kind, contents: Contents, given: Any) -> PlannedColumn:
    """Return one column by what its user says of it, and by its type as far as this is silent."""
    words = as_words(given)
    what = words.pop("kind", None)
    if what is None or what not in _KEYS or set(words) - _KEYS[what]:
        raise _wrong(owner, name, given)
    if kind.name == "other" and what != "drop":
        raise _unreadable(owner, name)
    if kind.name == "date" and what not in ("date", "drop"):
        raise ValueError(
            f"{_START.format(owner, name)} 'date' or 'drop', as its type is that of dates. Got "
            f"{what!r}: convert it first, as in frame[{name!r}].dt.year."
        )
    nullable = words.get("nullable", not kind.never_missing)
    if not isinstance(nullable, bool):
        raise _wrong(owner, name, given)
    column = PlannedColumn(name, what, nullable, kind, truth=of_truth_values(kind, contents))
    if what == "number":
        return replace(column, bounds=_bounds(owner, name, words), log=words.get("log") is True)
    if "categories" in words:
        expected = f"{_START.format(owner, name)} a list of different categories"
        return replace(column, categories=checked_categories(words["categories"], expected))
    if what == "category":
        buckets = words.get("buckets", 0)
        if not (type(buckets) in (int, np.int64) and 0 <= buckets <= _MOST_BUCKETS):
            raise _wrong(owner, name, given)
        return replace(column, buckets=buckets)
    if what == "ordinal":
        raise _wrong(owner, name, given)
    return column


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
    if isinstance(given, _LISTS):
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


def kinds_by_schema(
    schema: Mapping[str, Any] | None, names: Sequence[Any], kinds: Sequence[Kind]
) -> list[Kind | None]:
    """Return the kinds that a schema asks of columns; None where any will do."""
    entries = schema or {}
    names = [name if isinstance(name, str) else f"x{name}" for name in names]
    return [kind_asked(entries.get(name), kind) for name, kind in zip(names, kinds, strict=True)]


def kind_asked(entry: Any, kind: Kind) -> Kind | None:
    words = as_words(entry)
    what = words.get("kind")
    if what == "number":
        return NUMBER
    if what == "date":
        return kind_of_dates(kind)
    listed: Any = words.get("categories")
    asked = what in ("category", "ordinal") and isinstance(listed, _LISTS)
    return kind_of_labels(listed) if asked else None


def kind_of_dates(kind: Kind) -> Kind:
    """Return the kind of dates of a column: objects do not declare whether they have hours."""
    return kind if kind.name == "date" else Kind("date", days=True)


def given_categories(
    estimator: Any, n_columns: int, names: Sequence[str] | None
) -> list[tuple[Any, ...] | None]:
    """Return the public categories of each column, None where they are to be found."""
    given = estimator.categories
    expected = (
        f"The 'categories' parameter of {type(estimator).__name__} must be 'auto', a list of "
        "'auto' or a list of different public categories (text, numbers or truth values) for each "
        "column, or a dict of such by the names of columns"
    )
    if isinstance(given, str):
        return [None] * n_columns
    if isinstance(given, Mapping):
        known = [] if names is None else [*names]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"{expected}. Got a name that is not that of a column of X.")
        given = [given.get(name, "auto") for name in known]
    if len(given) != n_columns:
        raise ValueError(f"{expected}. Got {len(given)} entries for {n_columns} columns.")
    return [None if isinstance(one, str) else checked_categories(one, expected) for one in given]


def kinds_given(given: Any, names: Sequence[Any], kinds: Sequence[Kind]) -> Kinds:
    """Return the kinds of columns that have these categories; None where any kind may be found."""
    if isinstance(given, Mapping):
        given = [given.get(name) for name in names]
    if not isinstance(given, list | tuple) or len(given) != len(kinds):
        return [None] * len(kinds)
    return [kind_of_labels(one if isinstance(one, _LISTS) else ()) for one in given]


def checked_categories(given: Any, expected: str) -> tuple[Any, ...]:
    """Return public categories as plain values, or say what is wrong."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    labels = [label_of(one) for one in listed] if isinstance(listed, list | tuple) else []
    if not labels or None in labels or len(set(labels)) < len(labels):
        raise ValueError(f"{expected}. Got an object of type {type(given).__name__}.")
    truth = [isinstance(one, bool | np.bool_) for one in listed]
    return tuple(bool(one) if true else one for one, true in zip(labels, truth, strict=True))


def as_categories(found: Sequence[Any]) -> NDArray[Any]:
    """Return categories as an array, of objects where they are not all numbers or truth values."""
    kinds = {type(one) for one in found}
    if found and (kinds == {bool} or kinds <= {int, float}):
        array = np.asarray(found)
        if array.dtype.kind in "ifb" and array.tolist() == [*found]:
            return array
    objects: NDArray[Any] = np.empty(len(found), dtype=object)
    objects[:] = found
    return objects


def named(category: Any) -> str:
    return str(category if isinstance(category, bool) else label_of(category))


def unique_names(wanted: Iterable[str]) -> NDArray[Any]:
    """Return names of columns, those that occur again with a number: 1 and "1" are different."""
    taken: set[str] = set()
    names = []
    for name in wanted:
        new, number = name, 1
        while new in taken:
            number += 1
            new = f"{name}_{number}"
        taken.add(new)
        names.append(new)
    return np.array(names, dtype=object)
