"""Records that scores and curves read one by one: what is true of each, and what is said of it.

Text and numbers are never equal. A declared type says what a column is; a column of objects, or a
list, is of the kind of most of its entries. So one odd record decides nothing, unless kinds are
mixed by halves: it is wrong by itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, complaint
from skdpnoise.data.cells import cells_of, is_missing, kinds_of
from skdpnoise.data.fitted_kinds import NUMBER, kind_of_labels
from skdpnoise.data.kinds import OBJECTS, Kind, kind_of
from skdpnoise.data.redaction import check_collected
from skdpnoise.data.table import Table, scanned
from skdpnoise.queries.categories import label_columns

Vector = NDArray[np.float64]
Both = tuple[NDArray[Any], NDArray[Any]]
"""True values of some records, and predictions of them."""
_KINDS = {str: "text", bytes: "bytes", int: "number", float: "number", bool: "number"}
_DECLARED = {"text": "text", "number": "number", "boolean": "number"}
_WORDS = {"text": "text", "number": "numbers", "bytes": "bytes"}
_OTHER = "objects of another kind, such as dates,"
_CONVERSIONS = {
    "text": "numpy.asarray({0}).astype(str)",
    "number": "numpy.asarray({0}, dtype=float)",
    "bytes": "numpy.asarray({0}).astype(bytes)",
}

Held = dict[str, tuple[Counter[str], ...]]
"""How many entries are of each kind, by tables and their columns."""

_HUGE = 1e300
_N_BINS, _LOG_ODDS = 48, 6.0  # of scores: equally wide in log-odds, between ends


def one_column(owner: str, name: str, values: ArrayLike) -> NDArray[Any]:
    """Return one entry for each record; no entry decides how the others are read."""
    check_collected(owner, name, type(values))
    if isinstance(values, list | tuple):
        array = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            array[place] = plain_entry(value)
        return array
    if _may_be_missing(values):  # where one missing value would make floats of whole numbers
        columns = label_columns(owner, values)
        if len(columns) == 1:
            return one_column(owner, name, list(columns[0]))
    array = np.asarray(values)
    if array.ndim != 1:
        must = "be one-dimensional, with one entry for each record"
        raise ValueError(complaint(owner, name, must, f"shape {array.shape}"))
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # a warning would tell of a single record
            return array.astype(np.float64)
    return one_column(owner, name, array.tolist())


def _may_be_missing(values: Any) -> bool:
    """Return whether values are of a library whose types are not numpy's."""
    library = type(values).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    return library and not isinstance(getattr(values, "dtype", None), np.dtype)


def as_floats(values: NDArray[Any], otherwise: float) -> Vector:
    """Return numbers; what is none becomes another one, and no error shows it."""
    if values.dtype.kind == "O":
        # Integers of any size are compared exactly; what is beyond becomes the largest.
        known = (v if isinstance(v, int | float) else math.nan for v in values.tolist())
        values = np.array([float(min(max(v, -_HUGE), _HUGE)) for v in known], dtype=np.float64)
    return np.nan_to_num(np.asarray(values, dtype=np.float64), nan=otherwise)


def chance_table(n_columns: int, owner: str, name: str, values: Any) -> Vector:
    """Return a row of numbers for each record; zeros for a record that has none."""
    check_collected(owner, name, type(values))
    array = None if isinstance(values, list | tuple) else np.asarray(values)
    if array is not None and array.ndim == 2 and array.shape[1] != n_columns:
        must = f"have shape (n_records, {n_columns}), with as many records as 'y_true'"
        raise ValueError(complaint(owner, name, must, f"shape {array.shape}"))
    if array is not None and array.ndim == 2 and array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            return np.nan_to_num(array.astype(np.float64))
    if array is not None and (array.ndim != 2 or array.dtype.kind != "O"):
        must = "hold numbers, a row for each record"
        raise TypeError(complaint(owner, name, must, f"dtype {array.dtype}, shape {array.shape}"))
    rows = values if array is None else array.tolist()
    found = np.zeros((len(rows), n_columns))
    for place, row in enumerate(one.tolist() if type(one) is np.ndarray else one for one in rows):
        if isinstance(row, list | tuple) and len(row) == n_columns:
            found[place] = as_floats(one_column(owner, name, list(row)), 0.0)
    return found


Read = Callable[[str, str, Any], NDArray[Any]]
"""From the names of a function and of a parameter, and values, to an entry for each record."""


def two_columns(
    owner: str,
    y_true: Any,
    given: Any,
    name: str = "y_pred",
    *,
    read: Read = one_column,
    kinds: tuple[Kind | None, Kind | None] | None = None,
) -> Table[Both]:
    # `kinds` are what parameters say that both are, None where they may be of several; where they
    # say nothing both must be alike.
    reads = partial(_both, owner, name, read)
    rows, held = scanned(partial(_both_and_kinds, reads), reads, **{"y_true": y_true, name: given})
    check_kinds(owner, held, kinds)
    return rows.or_else(reads({"y_true": [], name: []}))


def _both(owner: str, name: str, read: Read, tables: dict[str, Any]) -> Both:
    truth, found = one_column(owner, "y_true", tables["y_true"]), read(owner, name, tables[name])
    if len(truth) != len(found):
        must = "have as many entries as 'y_true'"
        raise ValueError(complaint(owner, name, must, f"{len(found)} and {len(truth)}"))
    return truth, found


def _both_and_kinds(
    reads: Callable[[dict[str, Any]], Both], tables: dict[str, Any]
) -> tuple[Both, Held]:
    return reads(tables), kinds_held(tables)


def checked_label(owner: str, pos_label: Any) -> Any:
    wanted = plain_entry(pos_label)
    if wanted != wanted:
        must = "be the label of positive records: text, a number or a truth value"
        raise ValueError(complaint(owner, "pos_label", must, type(pos_label).__name__))
    return wanted


def judged(wanted: Any, both: Both) -> tuple[NDArray[np.bool_], Vector]:
    truth, scores = both
    return places_of(truth, [wanted]) == 0, as_floats(scores, 0.0)


def scored(
    owner: str, y_true: Any, given: Any, name: str, pos_label: Any
) -> tuple[Table[Both], Any]:
    wanted = checked_label(owner, pos_label)
    kinds = kind_of_labels([wanted]), NUMBER
    return two_columns(owner, y_true, given, name, kinds=kinds), wanted


def inner_edges(owner: str, bins: ArrayLike | None) -> Vector:
    if bins is None:
        odds = np.linspace(-_LOG_ODDS, _LOG_ODDS, _N_BINS - 1)
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))
    edges = check_array(owner, "bins", bins, np.shape(bins) or (1,))
    if edges.ndim != 1 or edges.size < 1 or not (np.diff(edges) > 0.0).all():
        must = "be a vector of increasing edges between bins"
        raise ValueError(complaint(owner, "bins", must, f"shape {edges.shape}"))
    return edges


def are_equal(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return np.array([bool(one == other) for one, other in pairs], dtype=np.bool_)


def label_list(owner: str, labels: Any) -> list[Any]:
    listed = isinstance(labels, list | tuple) or np.ndim(labels) == 1
    names = one_column(owner, "labels", labels).tolist() if listed else []
    if len(names) < 2 or len(set(names)) < len(names) or any(name != name for name in names):
        must = "be a vector of at least two different labels, which are public"
        raise ValueError(complaint(owner, "labels", must, type(labels).__name__))
    return names


def places_of(values: NDArray[Any], names: Sequence[Any]) -> NDArray[np.intp]:
    """Return the place of each value among the labels; -1 of what is none of them."""
    known = {name: place for place, name in enumerate(names)}
    return np.array([known.get(value, -1) for value in values.tolist()], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class TargetBounds:
    """Public bounds of a target, to which it and predictions are clipped."""

    low: float
    high: float

    @classmethod
    def within(cls, owner: str, bounds: tuple[float, float]) -> TargetBounds:
        low, high = check_array(owner, "target_bounds", bounds, (2,)).tolist()
        if not low < high:
            must = "be a pair of public numbers, low < high"
            raise ValueError(complaint(owner, "target_bounds", must, f"{bounds!r}"))
        return cls(low, high)

    @property
    def half(self) -> float:
        return 0.5 * self.high - 0.5 * self.low

    def distances(self, both: Both) -> Vector:
        truth, found = self._clipped(both)
        return np.abs(truth - found)

    def squares(self, both: Both) -> Vector:
        truth, found = self._clipped(both)
        return (truth - found) ** 2

    def of_variance(self, both: Both) -> Vector:
        """Return squared errors, targets about the middle, and their squares, for half width 1."""
        truth, found = self._clipped(both)
        centred = (truth - (0.5 * self.low + 0.5 * self.high)) / self.half
        return np.column_stack([((truth - found) / self.half) ** 2, centred, centred**2])

    def _clipped(self, both: Both) -> list[Vector]:
        # What is no number counts as the lower bound.
        return [np.clip(as_floats(one, self.low), self.low, self.high) for one in both]


def plain_entry(value: Any) -> Any:
    """Return a label or number of a record as a plain one; NaN of anything else."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if type(plain) in _KINDS else math.nan


def kinds_held(tables: dict[str, Any]) -> Held:
    return {name: _by_column(values) for name, values in tables.items()}


def _by_column(values: Any) -> tuple[Counter[str], ...]:
    if isinstance(values, list | tuple):
        rows = [one if isinstance(one, list | tuple | np.ndarray) else [one] for one in values]
        return tuple(map(_of_entries, zip_longest(*rows)))
    arrow = getattr(values, "type", None)  # of a column of Arrow
    kinds = kinds_of(values) if arrow is None else (kind_of(arrow),)
    return tuple(
        Counter({_DECLARED[kind.name]: len(values)})
        if kind.name in _DECLARED
        else _of_entries(cells_of(values, place))
        for place, kind in enumerate(kinds or (OBJECTS,))
    )


def _of_entries(entries: Any) -> Counter[str]:
    """Return how many entries are of each kind, missing ones left out."""
    listed = entries.tolist() if isinstance(entries, np.ndarray) else entries
    plain = (one.item() if isinstance(one, np.generic) else one for one in listed)
    return Counter(_KINDS.get(type(one), "other") for one in plain if not is_missing(one))


def check_kinds(
    owner: str, held: Sequence[Held], kinds: tuple[Kind | None, Kind | None] | None
) -> None:
    """Refuse what is true, or said of it, if it is of another kind than it is compared with."""
    # `kinds` are those that parameters ask for; where there are none both must be alike.
    found = {name: _kinds_of([one[name] for one in held]) for name in held[0]} if held else {}
    asked = [None if kind is None else _DECLARED.get(kind.name) for kind in kinds or (None, None)]
    if kinds is None and found:
        asked[1] = next(iter(next(iter(found.values()))), None)
    for (name, columns), wanted in zip(found.items(), asked, strict=False):
        for kind in columns:
            if kind == "other" or (wanted is not None and kind != wanted):
                must = f"hold {_WORDS[wanted or 'number']}, as what it is compared with"
                remedy = f"Convert it first, as in {_CONVERSIONS[wanted or 'number'].format(name)}."
                raise TypeError(complaint(owner, name, must, _WORDS.get(kind, _OTHER), remedy))


def _kinds_of(parts: Sequence[tuple[Counter[str], ...]]) -> list[str]:
    """Return the kind of most entries of each column, of those where there is one."""
    columns = (sum(some, Counter()) for some in zip_longest(*parts, fillvalue=Counter()))
    return [
        kind
        for held in columns
        for kind, number in held.most_common(1)
        if 2 * number > held.total()
    ]
