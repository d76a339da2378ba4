"""The columns that a column of a table becomes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import murmurhash3_32

from skdpnoise.data.cells import are_plain, is_missing
from skdpnoise.data.fitted_kinds import NUMBER, kind_of_labels
from skdpnoise.data.kinds import Kind
from skdpnoise.preprocessing._schema import PlannedColumn, kind_asked, kind_of_dates
from skdpnoise.queries.categories import Label, label_of

__all__ = ["ColumnBlock", "NumberFacts", "assembled", "code_of", "numbered", "numbers_of"]

Code = Callable[[Label | None], float]
"""From a label to its number; the label is None where a value is no category."""

REACH = 2.0  # scales to either side of the median, at which numbers end
FAR = 30.0  # and those at which what is beyond ends, in a column of its own
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
        beyond = "" if column.kind == "ordinal" else f"{name}_beyond"
        parts = [part for part in (name, beyond, group + absent) if part]
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
    def reaches(self) -> list[float]:
        """The largest magnitude of each column that is a number, or of a one-hot group."""
        first = 1.0 if self.column.kind in ("ordinal", "category") else REACH
        return [first, *[1.0] * (len(self.sizes) - 1)][: len(self.sizes)]

    @property
    def sizes(self) -> list[int]:
        """Numbers of columns: of each that is a number 0, of one-hot groups their size."""
        return [0 if isinstance(part, str) else len(part) for part in self._parts]

    @property
    def names(self) -> list[str]:
        lists = ([part] if isinstance(part, str) else part for part in self._parts)
        return [name for names in lists for name in names]

    def encoded(self, cells: Any) -> list[NDArray[Any]]:
        """Return numbers, and places in one-hot groups, in the order of the sizes."""
        column = self.column
        facts = self.facts or NumberFacts(0.0, 1.0, np.empty(0))  # places lie within ±1
        if column.kind == "category":
            return [numbered(cells, *self._codes())]
        if column.kind == "date":
            cells = as_dates(cells)
        if column.kind == "ordinal":
            places = numbered(cells, code_of(self.categories, np.nan), np.nan)
            values = 2.0 * places / max(len(self.categories) - 1, 1) - 1.0
        else:
            values = numbers_of(column, cells)
        absent = np.isnan(values)
        known = np.where(absent, facts.center, values)
        moved = np.zeros(values.size)
        if facts.scale > 0.0:
            with np.errstate(over="ignore"):
                moved = np.clip((known - facts.center) / facts.scale, -FAR, FAR)
        near = np.clip(moved, -REACH, REACH)
        found = [near] if column.kind == "ordinal" else [near, (moved - near) / (FAR - REACH)]
        if facts.edges.size or column.nullable:
            last = self.sizes[len(found)] - 1 if column.nullable else -1
            bins = np.searchsorted(facts.edges, known, side="right") if facts.edges.size else -1
            found.append(np.where(absent, last, bins))
        return found + ([] if column.kind != "date" else self._calendar_of(cells))

    def _codes(self) -> tuple[Code, float]:
        """Return what gives the place of each label, and the place of what is missing."""
        column, last = self.column, self.sizes[0] - 1
        if column.buckets:
            absent = last if column.nullable else -1
            return partial(_bucket, column.buckets, absent), absent
        return code_of(self.categories, last - column.nullable), last

    def _calendar_of(self, dates: NDArray[Any]) -> list[NDArray[np.int64]]:
        absent = np.isnat(dates)
        safe = np.where(absent, _EPOCH, dates)
        whole = safe.astype("datetime64[D]")
        found = {
            "month": safe.astype("datetime64[M]").astype(np.int64) % 12,
            "weekday": (whole.astype(np.int64) + 3) % 7,  # 1 January 1970 was a Thursday
            "hour": (safe - whole).astype("timedelta64[h]").astype(np.int64),
        }
        return [np.where(absent, -1, found[part]) for part in self._calendar]


def assembled(
    n_rows: int, columns: Iterable[NDArray[Any]], sizes: Sequence[int], dtype: Any = np.float64
) -> NDArray[Any]:
    """Return numbers, of size 0, and for places in groups a one each; none where one is below 0."""
    # By columns, as they are written and as passes over columns read them.
    shape, start = (n_rows, sum(max(1, size) for size in sizes)), 0
    encoded = np.zeros(shape, dtype=dtype, order="F")
    for column, size in zip(columns, sizes, strict=True):
        if size:
            rows = np.flatnonzero(column >= 0)
            encoded[rows, start + column[rows].astype(np.intp)] = 1.0
        else:
            encoded[:, start] = column
        start += max(1, size)
    return encoded


def numbers_of(column: PlannedColumn, cells: Any) -> NDArray[np.float64]:
    """Return numbers within bounds, perhaps their logarithms, or days since 1970; NaN of none."""
    if column.kind == "date":
        dates = as_dates(cells)
        return np.where(np.isnat(dates), np.nan, (dates - _EPOCH).astype(np.float64) / _DAY)
    if not (isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf"):
        cells = [_double(cell) for cell in cells]
    low, high = column.bounds
    values = np.clip(np.array(cells, dtype=np.float64), max(low, -_LARGEST), min(high, _LARGEST))
    return np.sign(values) * np.log1p(np.abs(values)) if column.log else values


def numbered(cells: Any, code: Code, missing: float) -> NDArray[np.float64]:
    """Return a number for every value by its label, and another for what is missing."""
    if isinstance(cells, np.ndarray):  # of numbers, or dates, of which equal ones are one
        different, places = np.unique(cells, return_inverse=True)
        return numbered(different.tolist(), code, missing)[places]

    def number(value: Any) -> float:
        return missing if is_missing(value) else code(label_of(value))

    if are_plain(cells):
        numbers = {value: number(value) for value in set(cells)}
        return np.fromiter(map(numbers.__getitem__, cells), np.float64, len(cells))
    return np.fromiter(map(number, cells), np.float64, len(cells))


def code_of(categories: Iterable[Any], other: float) -> Code:
    """Return what gives the place of a label among the categories, or of none another number."""
    known = {label_of(one): float(place) for place, one in enumerate(categories)}
    return lambda label: known.get(label, other)


def _bucket(buckets: int, other: float, label: Label | None) -> float:
    """Return the bucket of a label, the same in every process."""
    if label is None:
        return other
    text = f"{type(label).__name__}:{label!r}".encode("utf-8", "surrogatepass")
    return float(murmurhash3_32(text, positive=True) % buckets)


def _double(cell: Any) -> float:
    if is_missing(cell) or not isinstance(cell, Real | np.number | np.bool_ | Decimal):
        return np.nan
    try:
        return float(cell)
    except Exception:  # of a number that says so itself, which may quote it
        return np.nan


def as_dates(cells: Any) -> NDArray[Any]:
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
