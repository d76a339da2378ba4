"""The columns that a column of a table becomes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import murmurhash3_32

from skdpnoise.data.cells import is_missing
from skdpnoise.data.fitted_kinds import NUMBER, kind_of_labels
from skdpnoise.data.kinds import Kind
from skdpnoise.preprocessing._labels import numbered
from skdpnoise.preprocessing._schema import PlannedColumn, kind_asked, kind_of_dates
from skdpnoise.queries.categories import label_of

__all__ = ["ColumnBlock", "NumberFacts", "in_units", "numbers_of"]

REACH = 2.0  # scales to either side of the median, at which numbers end
_LARGEST = 1e100
_EPOCH = np.datetime64(0, "s")
_DAY = 86_400.0  # seconds
_CALENDAR = {"month": 12, "weekday": 7, "hour": 24}


@dataclass(frozen=True, slots=True, eq=False)
class NumberFacts:
    """Public or released numbers of a column."""

    center: float
    scale: float  # 0 where the column is hidden
    edges: NDArray[np.float64]  # inner edges of bins
    typical_found: bool = True  # whether the noise would hide any column of so few records


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBlock:
    """A column, what is known of it, and how it is encoded."""

    column: PlannedColumn
    facts: NumberFacts | None = None  # of numbers, and of the days of dates
    categories: tuple[Any, ...] = ()

    @property
    def _parts(self) -> list[str | list[str]]:
        """The name of each column that is a number, and the names of each one-hot group."""
        column, name = self.column, self.column.name
        absent = [f"{name}_missing"] if column.nullable else []
        if column.kind == "drop":
            return []
        if column.kind == "category":
            labels = [*self.categories, "other"]
            if column.buckets:
                labels = [f"hash{k}" for k in range(column.buckets)]
            return [[*(f"{name}_{label}" for label in labels), *absent]]
        n_edges = 0 if self.facts is None else self.facts.edges.size
        group = [f"{name}_bin{k}" for k in range(n_edges + 1)] if n_edges else []
        parts = [part for part in (name, group + absent) if part]
        if column.kind == "date":
            calendar = self._calendar.items()
            parts += [[f"{name}_{part}{k}" for k in range(size)] for part, size in calendar]
        return parts

    @property
    def _calendar(self) -> dict[str, int]:
        kept = _CALENDAR.items() if self.column.hours else [*_CALENDAR.items()][:2]
        return dict(kept)

    def fitted_kind(self, schema: Mapping[str, Any]) -> Kind:
        column, kind = self.column, self.column.declared
        asked = kind_asked(schema.get(column.name), kind)
        if asked is not None or column.kind == "drop":
            return asked or kind
        if column.kind == "number":
            return kind if kind.name == "boolean" else NUMBER
        if column.kind == "date":
            return kind_of_dates(kind)
        if column.buckets and kind.name == "objects":  # of which only text is hashed
            return Kind("text")
        return (None if column.buckets else kind_of_labels(self.categories)) or kind

    @property
    def reach(self) -> float:
        """The largest magnitude of what is returned as a number."""
        return 1.0 if self.column.kind == "ordinal" else REACH

    @property
    def sizes(self) -> list[int]:
        """Numbers of columns: of each that is a number 0, of one-hot groups their size."""
        return [0 if isinstance(part, str) else len(part) for part in self._parts]

    @property
    def names(self) -> list[str]:
        lists = ([part] if isinstance(part, str) else part for part in self._parts)
        return [name for names in lists for name in names]

    def encoded(self, cells: Any) -> NDArray[np.float64]:
        kind = self.column.kind
        if kind == "category":
            return self._categories(cells)
        if kind == "ordinal":
            return self._ordinal(cells)
        if kind == "number":
            return self._numbers(numbers_of(self.column, cells))
        return self._dates(as_dates(cells))

    def _categories(self, cells: Any) -> NDArray[np.float64]:
        width, nullable = self.sizes[0], self.column.nullable
        other = width - 1 - nullable
        if self.column.buckets:
            places = hashed(cells, self.column.buckets, missing=width - 1 if nullable else -1)
        else:
            absent = width - 1 if nullable else other
            places = numbered(cells, self.categories, other, absent).astype(np.intp)
        return one_hot(places, width)

    def _ordinal(self, cells: Any) -> NDArray[np.float64]:
        last = max(len(self.categories) - 1, 1)
        places = numbered(cells, self.categories, np.nan, np.nan)
        absent = np.isnan(places)
        value = np.where(absent, 0.0, 2.0 * places / last - 1.0)[:, np.newaxis]
        return np.hstack([value, absent[:, np.newaxis]]) if self.column.nullable else value

    def _numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        facts, nullable = self.facts, self.column.nullable
        assert facts is not None
        absent = np.isnan(values)
        known = np.where(absent, facts.center, values)
        moved = np.zeros(values.size)
        if facts.scale > 0.0:
            with np.errstate(over="ignore"):
                moved = np.clip((known - facts.center) / facts.scale, -REACH, REACH)
        parts = [moved[:, np.newaxis]]
        if facts.edges.size:
            width = facts.edges.size + 1 + nullable
            places = np.searchsorted(facts.edges, known, side="right")
            parts.append(one_hot(np.where(absent, width - 1 if nullable else -1, places), width))
        elif nullable:
            parts.append(absent[:, np.newaxis].astype(np.float64))
        return np.hstack(parts)

    def _dates(self, dates: NDArray[Any]) -> NDArray[np.float64]:
        parts = [self._numbers(days(dates))]
        absent = np.isnat(dates)
        safe = np.where(absent, _EPOCH, dates)
        whole = safe.astype("datetime64[D]")
        found = {
            "month": safe.astype("datetime64[M]").astype(np.int64) % 12,
            "weekday": (whole.astype(np.int64) + 3) % 7,  # 1 January 1970 was a Thursday
            "hour": (safe - whole).astype("timedelta64[h]").astype(np.int64),
        }
        for part, size in self._calendar.items():
            parts.append(one_hot(np.where(absent, -1, found[part]), size))
        return np.hstack(parts)


def numbers_of(column: PlannedColumn, cells: Any) -> NDArray[np.float64]:
    """Return the single values of a column of numbers in its units, or of dates in days."""
    return days(as_dates(cells)) if column.kind == "date" else in_units(column, as_doubles(cells))


def in_units(column: PlannedColumn, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers in the units in which they are scaled: within bounds, perhaps logarithms."""
    low, high = column.bounds
    values = np.clip(values, max(low, -_LARGEST), min(high, _LARGEST))  # NaN stays
    return np.sign(values) * np.log1p(np.abs(values)) if column.log else values


def days(dates: NDArray[Any]) -> NDArray[np.float64]:
    """Return days since 1970; NaN where there is no date."""
    seconds = (dates - _EPOCH).astype(np.float64)
    return np.where(np.isnat(dates), np.nan, seconds / _DAY)


def one_hot(places: NDArray[Any], width: int) -> NDArray[np.float64]:
    """Return a one in each row at its place; none where the place is negative."""
    encoded = np.zeros((len(places), width))
    rows = np.flatnonzero(places >= 0)
    encoded[rows, places[rows].astype(np.intp)] = 1.0
    return encoded


def hashed(cells: Iterable[Any], buckets: int, missing: int) -> NDArray[np.intp]:
    """Return a bucket for every value, the same in every process."""
    if isinstance(cells, np.ndarray):  # of numbers, of which equal ones are one
        different, places = np.unique(cells, return_inverse=True)
        return hashed(different.tolist(), buckets, missing)[places]
    seen: dict[Any, int] = {None: missing}
    found = []
    for value in cells:
        label = label_of(value)
        if label not in seen:
            text = f"{type(label).__name__}:{label!r}".encode("utf-8", "surrogatepass")
            seen[label] = int(murmurhash3_32(text, positive=True) % buckets)
        found.append(seen[label])
    return np.array(found, dtype=np.intp)


def as_doubles(cells: Any) -> NDArray[np.float64]:
    """Return numbers in double precision; NaN for what is none."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    return np.array([_double(cell) for cell in cells], dtype=np.float64)


def _double(cell: Any) -> float:
    if is_missing(cell) or not isinstance(cell, Real | np.number | np.bool_ | Decimal):
        return np.nan
    try:
        return float(cell)
    except Exception:  # of a number that says so itself, which may quote it
        return np.nan


def as_dates(cells: Any) -> NDArray[Any]:
    """Return dates in seconds of local time; NaT for what is none."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return cells.astype("datetime64[s]")
    return np.array([_date(cell) for cell in cells], dtype="datetime64[s]")


def _date(cell: Any) -> Any:
    nothing = np.datetime64("NaT", "s")
    if type(cell).__name__ == "Period":  # of pandas
        cell = cell.start_time
    if is_missing(cell) or not isinstance(cell, datetime.date | np.datetime64):
        return nothing
    try:
        if isinstance(cell, datetime.datetime):  # pandas' as well; in local time
            cell = cell.replace(tzinfo=None)
        return np.datetime64(cell, "s")
    except Exception:  # of a date that says so itself, which may quote it
        return nothing
