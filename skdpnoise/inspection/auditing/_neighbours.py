"""Neighbouring data sets: given, or made of records that tell the most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import get_tags, indexable

from skdpnoise._utils.parameters import as_bounds
from skdpnoise.inspection.auditing._tables import (
    as_table,
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

_FAR = 1e3  # times the largest value of a column: outside of all sensible bounds
_FARTHEST = 1e99  # our estimators refuse what is beyond 1e100, and a refusal is no finding
_ELSEWHERE = 2  # records that are tried in other places than the last, too
_IN_PLACE = ", in the "  # before the name of a place, at the end of a label
_FEATURE_BOUNDS = ("feature_bounds", "bounds_X", "bounds")
_TARGET_BOUNDS = ("target_bounds", "bounds_y")

_ROWS = (
    *("a far corner", "the opposite far corner", "a corner", "the opposite corner", "zeros"),
    *("far along the first column", "far along the last column", "a duplicate"),
)
# Records that are added, or that take the place of others: a row and its target, first those that
# tell the most.
_ADDED = (
    *(((row, "high"),) for row in _ROWS),
    *(((row, "low"),) for row in (_ROWS[0], _ROWS[2], _ROWS[3], _ROWS[7])),
)
_REPLACED = (
    (("a far corner", "high"), ("the opposite far corner", "high")),
    *(((row, "low"), (row, "high")) for row in (_ROWS[2], _ROWS[0], _ROWS[7], _ROWS[5])),
    (("a corner", "high"), ("the opposite corner", "high")),
    (("far along the first column", "high"), ("far along the last column", "high")),
    (("a corner", "high"), ("zeros", "high")),
    (("a far corner", "high"), ("zeros", "high")),
    (("a duplicate", "high"), ("a far corner", "high")),
    (("zeros", "low"), ("a corner", "high")),
)

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
        """Return these data sets with the record in which they differ at the end."""
        label, second = self.label.partition(_IN_PLACE)[0], self.second
        if len(second[0]) == len(self.first[0]):
            second = _last(second, self.place)
        return Neighbours(label, _last(self.first, self.place), second, self.odd)


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
    more, fewer = sorted((data, other), key=lambda one: -len(one[0]))
    gone = len(more[0]) - len(fewer[0])
    comes = adjacency == "add_remove"
    if gone != comes:
        must = "one row more or less" if comes else "as many rows with one of them replaced"
        raise ValueError(f"{expected}{must}. Got {len(other[0])} rows for {len(data[0])}.")
    rows, others = _rows(more), _rows(fewer)
    differ = (k for k, (a, b) in enumerate(zip(rows, others, strict=False)) if a != b)
    place = next(differ, len(rows) - 1)
    if rows[place + 1 :] != others[place + 1 - gone :]:
        raise ValueError(f"{expected}but for one row, they differ.")
    return Neighbours("as given", more, fewer, place=place)


def candidates(estimator: Any, data: Data, adjacency: Adjacency) -> list[Neighbours]:
    """Return pairs of neighbours that differ in records which tell much of most estimators."""
    rows, targets = _records(estimator, data)
    replaces = adjacency == "replace_one"
    rest = _take(data, np.arange(len(data[0]) - 1)) if replaces else data
    known, ends_of = set(targets) or {"high"}, _REPLACED if replaces else _ADDED
    tried = [ends for ends in ends_of if {target for _, target in ends} <= known]
    pairs = []
    for where, place in places(len(rest[0])):
        for ends in tried[: _ELSEWHERE if where else None]:
            names = [f"{row} with the {target} target" if targets else row for row, target in ends]
            made = [placed(rest, rows[row], targets.get(target), place) for row, target in ends]
            label = " replaced by ".join(names) if replaces else f"{names[0]} added"
            first, second = made if replaces else (*made, data)
            pairs.append(Neighbours(f"{label}{where}", first, second, place=place))
    pairs += _odd_pairs(data, adjacency)
    if not replaces:
        return pairs
    return [
        pair for pair in pairs if _rows(pair.first)[pair.place] != _rows(pair.second)[pair.place]
    ]


def places(size: int) -> list[tuple[str, int]]:
    return [("", size), (f"{_IN_PLACE}first row", 0), (f"{_IN_PLACE}middle", size // 2)]


def placed(data: Data, row: Any, target: Any, place: int) -> Data:
    size = len(data[0])
    return _take(append_rows(data, row, target), np.insert(np.arange(size), place, size))


def _odd_pairs(data: Data, adjacency: Adjacency) -> Iterator[Neighbours]:
    """Yield neighbours of which one has a duplicate with a missing or unseen value in a column."""
    X, y = data
    target, replaces = None if y is None else y[0], adjacency == "replace_one"
    for column, odd in ((k, odd) for k in range(X.shape[1]) for odd in odd_values(X, k)):
        # A type that cannot hold the value after all has no such neighbour.
        with suppress(TypeError, ValueError):
            table, usual = (odd.table, y), taken(odd.table, [0])
            (name,) = map(repr, names_of(X, [column]) or [column])
            record = with_cell(usual, 0, column, odd.value)
            rest = _take(table, np.arange(len(X) - 1)) if replaces else table
            text = f"with {odd.kind} in column {name}"
            label = (
                f"a duplicate replaced by one {text}" if replaces else f"a duplicate {text} added"
            )
            for where, place in places(len(rest[0])):
                changed = placed(rest, record, target, place)
                apart = 0 if len(X) // 2 == place else len(X) // 2
                other = with_cell(odd.table, apart, column, odd.value)
                note = Oddity(odd.kind, name, changed, (other, y))
                first, second = changed, table
                if replaces:
                    first, second = placed(rest, usual, target, place), changed
                yield Neighbours(f"{label}{where}", first, second, note, place)


def _records(estimator: Any, data: Data) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return rows that tell much, and the ends of the targets; none without a target."""
    X, y = data
    numeric = list(numeric_columns(X))
    values = numbers(X, numeric)
    low, high = bounds_of(estimator, values, columns=names_of(X, numeric))
    axis, other = np.zeros((2, values.shape[1]))
    axis[:1] = other[-1:] = 1.0
    far = _beyond(values)
    found = (far, -far, high, low, 0.0 * far, axis * far, other * far, values[0])
    row = taken(X, [0])
    rows = {
        name: with_numbers(row, dict(zip(numeric, numbers, strict=True)))
        for name, numbers in zip(_ROWS, found, strict=True)
    }
    if y is None:
        return rows, {}
    return rows, dict(zip(("low", "high"), target_ends(estimator, y, far=True), strict=True))


def _beyond(values: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = np.maximum(np.abs(values).max(axis=0, initial=0.0), 1.0)
    return np.asarray(np.minimum(_FAR * largest, np.maximum(largest, _FARTHEST)))


def target_ends(estimator: Any, y: NDArray[Any], *, far: bool = False) -> NDArray[Any]:
    """Return the first and the last label, or bounds of a target of numbers."""
    if is_classifier(estimator) or y.dtype.kind not in "iuf":
        return np.unique(y)[[0, -1]]
    return np.ravel(bounds_of(estimator, y[:, np.newaxis].astype(float), target=True, far=far))


def append_rows(data: Data, rows: Any, targets: Any) -> Data:
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
    far: bool = False,
    columns: Sequence[Any] = (),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return public bounds, or, where there are none, the range of the data."""
    low, high = values.min(axis=0), values.max(axis=0)
    if far:
        low, high = -_beyond(values), _beyond(values)
    names = _TARGET_BOUNDS if target else _FEATURE_BOUNDS
    table = SimpleNamespace(feature_names_in_=columns or None)
    for name, given in estimator.get_params(deep=True).items():
        if name.rpartition("__")[2] in names:
            with suppress(TypeError, ValueError):  # of another step, with other columns
                ends = as_bounds(given, low.size, name, table)
                low, high = np.where(np.isfinite(ends), ends, (low, high))
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
    rows = np.arange(len(data[0]))
    return _take(data, np.append(np.delete(rows, place), place))
