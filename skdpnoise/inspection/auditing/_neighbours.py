"""Neighbouring data sets: given, or made of records that tell the most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import get_tags, indexable

from skdpnoise.inspection.auditing._tables import (
    as_table,
    column_name,
    names_of,
    numbers,
    numeric_columns,
    odd_values,
    rows_of,
    stacked,
    taken,
    with_cell,
    with_numbers,
)
from skdpnoise.privacy import Adjacency

__all__ = [
    "Data",
    "Neighbours",
    "Oddity",
    "append_rows",
    "as_data",
    "bounds_of",
    "candidates",
    "given_pair",
]

_FAR = 1e3  # times the largest value of a column: outside of all sensible bounds
_FARTHEST = 1e99  # our estimators refuse what is beyond 1e100, and a refusal is no finding
_ELSEWHERE = 2  # records that are tried in other places than the last, too
_IN_PLACE = ", in the "  # before the name of a place, at the end of a label
_FEATURE_BOUNDS = ("feature_bounds", "bounds_X", "bounds")
_TARGET_BOUNDS = ("target_bounds", "bounds_y")

Data = tuple[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Two data sets that differ in one record."""

    label: str  # in what they differ
    # first, second: under "add_remove" the first has one record more
    first: Data
    second: Data
    odd: Oddity | None = None  # what an estimator may refuse by its documentation; None: nothing
    place: int = -1  # the row of the first in which they differ; -1: the last

    @property
    def comes_and_goes(self) -> bool:
        """True if one has a record more, with other records behind it."""
        size = len(self.first[0])
        return size != len(self.second[0]) and self.place % size != size - 1

    def with_it_last(self) -> Neighbours:
        """Return these data sets with the record that one has more at the end of it."""
        label = self.label.partition(_IN_PLACE)[0]
        return Neighbours(label, _last(self.first, self.place), self.second, self.odd)


@dataclass(frozen=True, slots=True, eq=False)
class Oddity:
    """A cell that is missing, or holds an unseen category."""

    # kind, column: what it is, and where
    kind: str
    column: str
    data: Data  # the one of the neighbours that has it
    # the data with such a cell in another record: who refuses it by a check of the input refuses it
    # there, too
    elsewhere: Data


def as_data(X: Any, y: Any) -> Data:
    """Return X and y as they can be taken apart by rows."""
    X, y = indexable(X, y)
    X = as_table(X)
    if len(X.shape) != 2 or X.shape[0] < 4:
        raise ValueError(
            f"The 'X' parameter of audit must be two-dimensional, with 4 rows at least. Got shape "
            f"{tuple(X.shape)}."
        )
    return X, None if y is None else np.asarray(y)


def given_pair(data: Data, pair: Any, adjacency: Adjacency) -> Neighbours:
    """Check that a data set is a neighbour of another; return them, and where they differ."""
    expected = (
        "The 'neighbours' parameter of audit must be 'worst' or a pair (X, y), y None without a "
        "target, that is a neighbour of the data: "
    )
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise ValueError(f"{expected}got an object of type {type(pair).__name__}.")
    other = as_data(*pair)
    if (other[1] is None) != (data[1] is None) or other[0].shape[1] != data[0].shape[1]:
        raise ValueError(f"{expected}the columns of the two are not the same.")
    sizes = [len(data[0]), len(other[0])]
    if adjacency == "replace_one":
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"{expected}as many rows with one of them replaced. Got {sizes[1]} rows for "
                f"{sizes[0]}."
            )
        (differ,) = np.nonzero([a != b for a, b in zip(_rows(data), _rows(other), strict=True)])
        if differ.size > 1:
            raise ValueError(f"{expected}one row may differ, but {differ.size} do.")
        place = int(differ[0]) if differ.size else sizes[0] - 1
        return Neighbours("as given", data, other, place=place)
    if abs(sizes[0] - sizes[1]) != 1:
        raise ValueError(f"{expected}one row more or less. Got {sizes[1]} rows for {sizes[0]}.")
    more, fewer = (data, other) if sizes[0] > sizes[1] else (other, data)
    rows = zip(_rows(more), _rows(fewer), strict=False)
    place = next((k for k, (a, b) in enumerate(rows) if a != b), len(fewer[0]))
    if _rows(_last(more, place))[:-1] != _rows(fewer):
        raise ValueError(f"{expected}without the row that one of them has more, they differ.")
    return Neighbours("as given", more, fewer, place=place)


def candidates(estimator: Any, data: Data, adjacency: Adjacency) -> list[Neighbours]:
    """Return pairs of neighbours that differ in records which tell much of most estimators."""
    records = _Records(estimator, data)
    if adjacency == "add_remove":
        added = [
            Neighbours(f"{label} added{where}", placed(data, *record, place), data, place=place)
            for where, place in places(len(data[0]))
            for label, record in records.single()[: None if not where else _ELSEWHERE]
        ]
        return [*added, *_odd_pairs(data, adjacency)]
    rest = _take(data, np.arange(len(data[0]) - 1))
    pairs = [
        Neighbours(
            f"{one} replaced by {other}{where}",
            placed(rest, *a, place),
            placed(rest, *b, place),
            place=place,
        )
        for where, place in places(len(rest[0]))
        for one, a, other, b in records.pairs()[: None if not where else _ELSEWHERE]
    ]
    pairs += _odd_pairs(data, adjacency)
    return [
        pair for pair in pairs if _rows(pair.first)[pair.place] != _rows(pair.second)[pair.place]
    ]


def places(size: int) -> list[tuple[str, int]]:
    """Return where one record can be put among so many, and how a label says so."""
    return [("", size), (f"{_IN_PLACE}first row", 0), (f"{_IN_PLACE}middle", size // 2)]


def placed(data: Data, row: Any, target: Any, place: int) -> Data:
    """Return data with one more record, in some place."""
    size = len(data[0])
    return _take(append_rows(data, row, target), np.insert(np.arange(size), place, size))


def _odd_pairs(data: Data, adjacency: Adjacency) -> Iterator[Neighbours]:
    """Yield neighbours of which one has a duplicate with a missing or unseen value in a column."""
    X, y = data
    target = None if y is None else y[0]
    for column in range(X.shape[1]):
        for odd in odd_values(X, column):
            # A type that cannot hold the value after all has no such neighbour.
            with suppress(TypeError, ValueError):
                usual = taken(odd.table, [0])
                record = with_cell(usual, 0, column, odd.value)
                rest = table = (odd.table, y)
                if adjacency == "replace_one":
                    rest = _take(table, np.arange(len(X) - 1))
                name = column_name(X, column)
                for where, place in places(len(rest[0])):
                    changed = placed(rest, record, target, place)
                    apart = 0 if len(X) // 2 == place else len(X) // 2
                    other = with_cell(odd.table, apart, column, odd.value)
                    note = Oddity(odd.kind, name, changed, (other, y))
                    text = f"with {odd.kind} in column {name}"
                    if adjacency == "replace_one":
                        label = f"a duplicate replaced by one {text}{where}"
                        first = placed(rest, usual, target, place)
                        yield Neighbours(label, first, changed, note, place)
                    else:
                        label = f"a duplicate {text} added{where}"
                        yield Neighbours(label, changed, table, note, place)


Record = tuple[Any, Any]


class _Records:
    """Corners of the bounds, far outliers, zeros and duplicates, with one target or the other."""

    def __init__(self, estimator: Any, data: Data) -> None:
        X, y = data
        self._X = X
        self._numeric = list(numeric_columns(X))
        values = numbers(X, self._numeric)
        largest = np.maximum(np.abs(values).max(axis=0, initial=0.0), 1.0)
        low, high = bounds_of(estimator, values, columns=names_of(X, self._numeric))
        axis, other = np.zeros((2, values.shape[1]))
        axis[:1] = other[-1:] = 1.0
        far = np.minimum(_FAR * largest, np.maximum(largest, _FARTHEST))
        self.places = {
            "a far corner": far,
            "the opposite far corner": -far,
            "a corner": high,
            "the opposite corner": low,
            "zeros": np.zeros(values.shape[1]),
            "far along the first column": axis * far,
            "far along the last column": other * far,
            "a duplicate": values[0],
        }
        self.low: Any = None
        self.high: Any = None
        if y is None:
            return
        if is_classifier(estimator) or y.dtype.kind not in "iuf":
            self.low, self.high = np.unique(y)[[0, -1]]
        else:
            ends = bounds_of(estimator, y[:, np.newaxis].astype(float), target=True, far=_FAR)
            (self.low,), (self.high,) = ends

    def single(self) -> list[tuple[str, Record]]:
        """Return records to be added, first those that tell the most."""
        found = [(f"{p}{self._and('high')}", self._record(p, self.high)) for p in self.places]
        if self.low is None:
            return found
        lower = ("a far corner", "a corner", "the opposite corner", "a duplicate")
        return found + [(f"{p}{self._and('low')}", self._record(p, self.low)) for p in lower]

    def pairs(self) -> list[tuple[str, Record, str, Record]]:
        """Return records and those that take their place, first those that tell the most."""
        high, low = self.high, self.low
        turned = [
            ("a far corner", "the opposite far corner"),
            ("a corner", "the opposite corner"),
            ("far along the first column", "far along the last column"),
            ("a corner", "zeros"),
            ("a far corner", "zeros"),
            ("a duplicate", "a far corner"),
        ]
        found = [
            (one, self._record(one, high), other, self._record(other, high))
            for one, other in turned
        ]
        if self.low is None:
            return found
        same = [
            (
                f"{place}{self._and('low')}",
                self._record(place, low),
                "that with the high target",
                self._record(place, high),
            )
            for place in ("a corner", "a far corner", "a duplicate", "far along the first column")
        ]
        zeros = f"zeros{self._and('low')}", self._record("zeros", low)
        corner = f"a corner{self._and('high')}", self._record("a corner", high)
        return [found[0], *same, *found[1:], (*zeros, *corner)]

    def _and(self, target: str) -> str:
        return "" if self.low is None else f" with the {target} target"

    def _record(self, place: str, target: Any) -> Record:
        row = taken(self._X, [0])
        return with_numbers(row, dict(zip(self._numeric, self.places[place], strict=True))), target


def append_rows(data: Data, rows: Any, targets: Any) -> Data:
    """Return data with more records, at the end; a single target may stand for all of them."""
    X, y = data
    X = stacked(X, rows)
    if y is None:
        return X, None
    return X, np.append(y, np.broadcast_to(np.asarray(targets), len(rows)).astype(y.dtype))


def bounds_of(
    estimator: Any,
    values: NDArray[np.float64],
    *,
    target: bool = False,
    far: float = 1.0,
    columns: Sequence[Any] = (),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return public bounds, or, where there are none, the range of the data."""
    low, high = values.min(axis=0), values.max(axis=0)
    if far > 1.0:
        largest = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1.0)
        high = np.minimum(far * largest, np.maximum(largest, _FARTHEST))
        low = -high
    names = _TARGET_BOUNDS if target else _FEATURE_BOUNDS
    for name, given in estimator.get_params(deep=True).items():
        if name.rpartition("__")[2] not in names or given is None:
            continue
        try:
            if isinstance(given, dict):
                pairs = [given.get(column, (-np.inf, np.inf)) for column in columns]
                given = tuple(np.array(pairs, dtype=float).reshape(-1, 2).T)
            public = [np.broadcast_to(np.asarray(end, float), low.shape) for end in given]
        except (TypeError, ValueError):  # of another step, with other columns
            continue
        low = np.where(np.isfinite(public[0]), public[0], low)
        high = np.where(np.isfinite(public[1]), public[1], high)
    if target and get_tags(estimator).target_tags.positive_only:
        low = np.maximum(low, 0.0)
    return low, high


def _rows(data: Data) -> list[tuple[Any, ...]]:
    X, y = data
    rows = rows_of(X)
    return rows if y is None else [(*row, t) for row, t in zip(rows, y.tolist(), strict=True)]


def _take(data: Data, rows: NDArray[np.intp]) -> Data:
    X, y = data
    return taken(X, rows), None if y is None else y[rows]


def _last(data: Data, place: int) -> Data:
    """Return the data with one row moved to the end."""
    rows = np.arange(len(data[0]))
    return _take(data, np.append(np.delete(rows, place), place))
