"""Columns are of the kinds that they had at the fit, or are refused by their name.

A column that means something else at predict than at fit would give wrong numbers without a word:
numbers that arrive as text are no categories that anybody knows, and noon in Tokyo is no noon in
London. What is compared are declared types; only columns of objects, which declare none, are asked
for the types of their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from skdpnoise.data.cells import column_of, contents_of_objects, kinds_of
from skdpnoise.data.columns import by_declared_type, first_read, is_polars, read_once
from skdpnoise.data.computed import is_computed
from skdpnoise.data.kinds import Kind, KindName
from skdpnoise.data.sources import RowSource, by_storage

NUMBER = Kind("number")
AS_PARAMETERS_SAY = "as its parameters say (or mend those)"
_WORDS = {
    "number": "numbers",
    "boolean": "truth values",
    "text": "text",
    "date": "dates",
    "objects": "objects",
    "other": "values of a type that is not read",
}
_LIKE_NUMBERS = ("number", "boolean")  # True is 1
_CONVERSIONS = {
    "pandas": {
        "number": "pandas.to_numeric(X[{name!r}])",
        "boolean": "X[{name!r}].astype('str').str.lower() == 'true'",
        "text": "X[{name!r}].astype('str')",
        "date": "pandas.to_datetime(X[{name!r}])",
        "objects": "X[{name!r}].astype('str').astype(object)",  # text, before pandas 3
        "zoned": "X[{name!r}].dt.tz_localize({zone!r}, ambiguous='NaT', nonexistent='NaT')",
        "naive": "X[{name!r}].dt.tz_convert('UTC').dt.tz_localize(None)",
        "days": "(X[{name!r}] - pandas.Timestamp(0)).dt.days",
        "moment": "pandas.to_datetime(X[{name!r}], unit='s'), by the unit of these numbers",
        "times": "X[{name!r}].astype('datetime64[s]')",
        "dense": "X[{name!r}].sparse.to_dense()",
    },
    "polars": {
        "number": "polars.col({name!r}).cast(polars.Float64)",
        "boolean": "polars.col({name!r}).str.to_lowercase() == 'true'",
        "text": "polars.col({name!r}).cast(polars.String)",
        "date": "polars.col({name!r}).str.to_datetime()",
        "objects": "polars.col({name!r}).cast(polars.String)",
        "zoned": "polars.col({name!r}).dt.replace_time_zone({zone!r}, ambiguous='null', "
        "non_existent='null')",
        "naive": "polars.col({name!r}).dt.replace_time_zone(None)",
        "days": "polars.col({name!r}).dt.epoch('d')",
        "moment": "polars.from_epoch(polars.col({name!r}), 's'), by the unit of these numbers",
        "times": "polars.col({name!r}).cast(polars.Datetime)",
    },
    "numpy": {
        "number": "X.astype(float)",
        "boolean": "X == 'True'",
        "text": "X.astype(str)",
        "date": "X.astype('datetime64[s]')",
        "objects": "X.astype(object)",
        "zoned": "a frame of pandas, with pandas.Series(...).dt.tz_localize({zone!r})",
        "naive": "X.astype('datetime64[s]')",
        "days": "X.astype('datetime64[D]').astype(float)",
        "moment": "X.astype(int).astype('datetime64[s]'), by the unit of these numbers",
        "times": "X.astype('datetime64[s]')",
    },
}


@dataclass(frozen=True, slots=True)
class FittedColumns:
    """Names and kinds of the columns that a composition was fitted to."""

    names: tuple[Any, ...] | None
    kinds: tuple[Kind, ...]  # none where no types are declared

    def read(self, owner: str, X: Any, *, values: bool = True) -> Any:
        """Return a table with dates in the zones of the fit; refuse columns of another kind."""
        # By their names: a step that takes columns by name takes them in any order, beside others.
        names, fitted = _names(X), self.kinds
        if not (fitted and self.names and names) or names == self.names:
            return as_fitted(owner, X, differing(fitted, kinds_of(X)), values=values)
        textual = all(isinstance(name, str) for name in self.names)
        if not textual and set(names) == set(self.names):  # which scikit-learn does not compare
            raise ValueError(
                f"{owner} needs the columns of X in the order of the fit. Got another one: bring "
                "them into it, as in X[X_of_the_fit.columns]."
            )
        known = dict(zip(self.names, fitted, strict=True))
        differences = differing([*map(known.get, names)], kinds_of(X))
        return as_fitted(owner, X, differences, values=values)

    def check(self, owner: str, X: Any) -> None:
        self.read(owner, X)


def _names(X: Any) -> tuple[Any, ...] | None:
    """Return the names of the columns of a frame; None of what has none, or is refused."""
    return tuple(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None


_UNKNOWN = FittedColumns(None, ())


def read_as_fitted(fitted: Any, X: Any) -> Any:
    """Return features for a fitted composition, as its fit read them; in parts, when they are."""
    owner, known = type(fitted).__name__, getattr(fitted, "_columns", _UNKNOWN)

    def in_memory(X: Any) -> Any:
        X, values = read_once(owner, X), not is_computed("X", fitted)
        return by_declared_type(owner, known.read(owner, X, values=values))

    def in_partitions(rows: RowSource) -> RowSource:
        # By the name of a column, before any row is read for good.
        first_read(rows, partial(known.check, owner))
        return rows.map(partial(known.read, owner), *rows.tail) if known.kinds else rows

    return by_storage(X, in_memory, in_partitions)


def kind_of_labels(labels: Iterable[Any]) -> Kind | None:
    """Return the kind of a column that holds these categories; None of several kinds, or none."""
    names = _names_in(labels)
    names = [name for name in names if name != "boolean" or "number" not in names]
    return Kind(names[0]) if len(names) == 1 and names != ["other"] else None


Differences = Mapping[int, tuple[Kind, Kind]]
"""The kinds of the fit and those that are given, of columns of which they differ, by place."""


def differing(fitted: Sequence[Kind | None] | None, given: Sequence[Kind]) -> Differences:
    """Return which columns are of another kind than they were; every kind will do for None."""
    if not fitted or len(given) != len(fitted):
        return {}
    pairs = enumerate(zip(fitted, given, strict=True))
    return {place: (old, new) for place, (old, new) in pairs if old is not None and old != new}


def as_fitted(
    owner: str, X: Any, differences: Differences, *, why: str = "as in fit", values: bool = True
) -> Any:
    """Return a table with dates in the zones of the fit; refuse columns of another kind."""
    # Values of objects are looked at unless a step computed them, of which none may be refused.
    zones = {}
    for place, (expected, kind) in differences.items():
        if kind.name == "objects" and values:
            held = expected if expected.holds is None else Kind(expected.holds)
            found = _stranger([*column_of(X, place)], held)
            if found is not None:
                raise _of_another_kind(owner, X, place, (held, Kind(found)), why)
        elif not _agree(expected, kind):
            raise _of_another_kind(owner, X, place, (expected, kind), why)
        if expected.name == "date" and kind.zone != expected.zone:
            zones[place] = expected.zone
    return _in_zones(X, zones) if zones else X


def _agree(expected: Kind, given: Kind) -> bool:
    """Return whether values of one kind mean the same in a column of another."""
    if given.name == "objects":  # which a step computed
        return True
    if expected.name == "objects":
        return given.name == "text" and expected.holds in (None, "text")
    if {expected.name, given.name} <= {*_LIKE_NUMBERS}:
        return True
    same = expected.name == given.name
    return same and (expected.name != "date" or _agree_on_times(expected, given))


def _agree_on_times(expected: Kind, given: Kind) -> bool:
    """Return whether dates have a zone where others have one, and a time of day at least there."""
    return (expected.zone is None) == (given.zone is None) and (expected.days or not given.days)


def _stranger(cells: Sequence[Any], expected: Kind) -> KindName | None:
    """Return the kind of some value that is not of the kind that is expected; None if all are."""
    if expected.name == "objects":
        return None
    aware = (getattr(cell, "tzinfo", None) is not None for cell in cells)
    if expected.name == "date" and (expected.zone is not None or any(aware)):
        return "objects"  # which may be of several zones
    return next((name for name in _names_in(cells) if not _agree(expected, Kind(name))), None)


def _names_in(values: Iterable[Any]) -> list[KindName]:
    """Return the kinds of single values, those that stand for none left out."""
    contents = contents_of_objects(values)
    return [name for name in get_args(KindName) if name in contents]


def _of_another_kind(
    owner: str, X: Any, place: int, kinds: tuple[Kind, Kind], why: str
) -> TypeError:
    expected, given = kinds
    named = hasattr(X, "columns")
    name = X.columns[place] if named else f"x{place}"
    library = "polars" if is_polars(X) else "pandas" if named else "numpy"
    form: str = expected.name
    if given.name == "date" and form == "number":
        form = "days"
    elif given.name in _LIKE_NUMBERS and form == "date":
        form = "moment"
    words, found = _WORDS[expected.name], _WORDS[given.name]
    if library == "pandas" and str(X.dtypes.iloc[place]).startswith("Sparse"):
        form, found = "dense", "a sparse column"
    if form == "date" == given.name and (expected.zone is None) == (given.zone is None):
        form, words, found = "times", "dates with a time of day", "days"
    elif form == "date" == given.name:
        form = "naive" if expected.zone is None else "zoned"
        words = f"dates {'without a' if expected.zone is None else 'with a'} time zone"
        found = f"dates {'without one' if given.zone is None else 'with one'}"
    remedy = _CONVERSIONS[library][form].format(name=name, zone=expected.zone)
    return TypeError(
        f"{owner} needs {words} in column {name!r} of X, {why}. Got {found}: convert it first, as "
        f"in {remedy}."
    )


def _in_zones(X: Any, zones: dict[int, str | None]) -> Any:
    """Return a frame whose dates are the same moments in other time zones."""
    if is_polars(X):
        moved = [X.to_series(k).dt.convert_time_zone(zone) for k, zone in zones.items()]
        return X.with_columns(moved)
    X = X.copy(deep=False)
    for place, zone in zones.items():
        X.isetitem(place, X.iloc[:, place].dt.tz_convert(zone))
    return X
