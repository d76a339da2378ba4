"""Records read one by one, counted, and released: what scores and curves share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, check_collected, complaint
from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.accounting.terms import Terms
from skdpnoise.data.fitted_kinds import NUMBER, kind_of_labels
from skdpnoise.data.kinds import Kind
from skdpnoise.data.table import Table, scanned
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.metrics._kinds import Held, check_kinds, kinds_held, plain_entry
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee
from skdpnoise.privacy.loss import checked_relation
from skdpnoise.queries import noisy_histogram, private_mean
from skdpnoise.queries.aggregates import PrivateEstimate
from skdpnoise.queries.categories import label_columns
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.words import with_caveat

Vector = NDArray[np.float64]
Both = tuple[NDArray[Any], NDArray[Any]]
"""True values of some records, and predictions of them."""
Cells = Callable[[Both], tuple[NDArray[np.intp], NDArray[np.intp]]]
"""From records to the row and the column of the cell of each, negative of none."""

_HUGE = 1e300
# Standard deviations of its noise that a number of records must reach; ratios to fewer are hidden.
SEEN = 3.0
_N_BINS, _LOG_ODDS = 48, 6.0  # of scores: equally wide in log-odds, between ends


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters that all scores have beside their data."""

    owner: str
    guarantee: PrivacyGuarantee | LossBudget
    adjacency: Adjacency | None
    noise: str
    same_rows: bool
    rng: RandomWords
    ledger: Any

    @property
    def relation(self) -> Adjacency:
        """The neighbouring relation."""
        return checked_relation(self.owner, self.adjacency, self.guarantee)

    @property
    def _terms(self) -> dict[str, Any]:
        return {"adjacency": self.relation, "random_state": self.rng, "ledger": self.ledger}

    def mean(self, values: Any, low: Any, high: Any, **weights: Any) -> PrivateEstimate:
        """Return the noisy mean of values between two ends, by one release."""
        terms = {"noise": self.noise, **self._terms, **weights}
        return private_mean(values, low, high, self.guarantee, **terms)

    def counts(
        self, records: Table[Both], cells: Cells, shape: tuple[int, int]
    ) -> tuple[Vector, AdditiveMechanism]:
        """Return noisy counts of cells in rows and columns, of which one record is in one."""
        session = Terms.of("noisy_histogram", self.guarantee, self._terms)
        query = GroupedSum(shape[0] * shape[1], partial(_cell_numbers, cells, shape[1]))
        found = session.tally("cells", query, records, self.guarantee, self.noise)
        made: AdditiveMechanism = found.mechanism
        return found.values.reshape(shape), made

    def sums(self, sums: Vector) -> tuple[Vector, AdditiveMechanism]:
        """Return noisy sums by cells, between which one record is divided."""
        noisy, made = noisy_histogram(
            sums.reshape(-1), self.guarantee, noise=self.noise, **self._terms
        )
        return noisy.reshape(sums.shape), made

    def public_total(self, records: Table[Both]) -> int | None:
        """Return the number of records if it is public."""
        return len(records) if self.relation == "replace_one" else None

    @property
    def facts(self) -> tuple[Adjacency, bool, bool, PrivacyGuarantee | None]:
        """Facts that every result states beside its numbers."""
        asked = self.guarantee if isinstance(self.guarantee, PrivacyGuarantee) else None
        return self.relation, bool(self.same_rows), self.rng.secure, asked


def _cell_numbers(cells: Cells, n_columns: int, both: Both) -> NDArray[np.intp]:
    rows, columns = cells(both)
    return np.where((rows < 0) | (columns < 0), -1, rows * n_columns + columns)


def one_column(owner: str, name: str, values: ArrayLike) -> NDArray[Any]:
    """Return one entry for each record; no entry decides how the others are read."""
    check_collected(owner, name, values)
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
    check_collected(owner, name, values)
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
    """Return what is true and what is said of records, as pairs."""
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
    """Return the label of positive records, or say what is wrong with it."""
    wanted = plain_entry(pos_label)
    if wanted != wanted:
        must = "be the label of positive records: text, a number or a truth value"
        raise ValueError(complaint(owner, "pos_label", must, type(pos_label).__name__))
    return wanted


def judged(wanted: Any, both: Both) -> tuple[NDArray[np.bool_], Vector]:
    """Return whether each record is positive, and its score."""
    truth, scores = both
    return places_of(truth, [wanted]) == 0, as_floats(scores, 0.0)


def scored(
    owner: str, y_true: Any, given: Any, name: str, pos_label: Any
) -> tuple[Table[Both], Any]:
    """Return what is true of records and their scores, and the label of positive ones."""
    wanted = checked_label(owner, pos_label)
    kinds = kind_of_labels([wanted]), NUMBER
    return two_columns(owner, y_true, given, name, kinds=kinds), wanted


def in_bins(wanted: Any, edges: Vector, both: Both) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return whether each record is positive, 1 or 0, and the bin of its score."""
    positive, scores = judged(wanted, both)
    return positive.astype(np.intp), np.searchsorted(edges, scores, side="right")


def inner_edges(owner: str, bins: ArrayLike | None) -> Vector:
    """Return public edges between bins of scores."""
    if bins is None:
        odds = np.linspace(-_LOG_ODDS, _LOG_ODDS, _N_BINS - 1)
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))
    edges = check_array(owner, "bins", bins, np.shape(bins) or (1,))
    if edges.ndim != 1 or edges.size < 1 or not (np.diff(edges) > 0.0).all():
        must = "be a vector of increasing edges between bins"
        raise ValueError(complaint(owner, "bins", must, f"shape {edges.shape}"))
    return edges


def are_equal(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether entries are equal, each pair by itself."""
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return np.array([bool(one == other) for one, other in pairs], dtype=np.bool_)


def label_list(owner: str, labels: Any) -> list[Any]:
    """Return public labels, each once."""
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
        """Return bounds, or say what is wrong with them."""
        low, high = check_array(owner, "target_bounds", bounds, (2,)).tolist()
        if not low < high:
            must = "be a pair of public numbers, low < high"
            raise ValueError(complaint(owner, "target_bounds", must, f"{bounds!r}"))
        return cls(low, high)

    @property
    def half(self) -> float:
        """Half their width."""
        return 0.5 * self.high - 0.5 * self.low

    def distances(self, both: Both) -> Vector:
        """Return absolute errors."""
        truth, found = self._clipped(both)
        return np.abs(truth - found)

    def squares(self, both: Both) -> Vector:
        """Return squared errors."""
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


def area_under(noisy: Vector, deviation: float, total: int | None) -> tuple[float, float]:
    """Return the area under the ROC curve of noisy counts by bin, and its standard error."""
    # Rows are other and positive records; where their total is public, its noise is taken out.
    if total is not None:
        noisy = noisy + (total - noisy.sum()) / noisy.size
    others, wanted = noisy
    n_others, n_wanted = max(others.sum(), 1.0), max(wanted.sum(), 1.0)
    below = (np.cumsum(others) - 0.5 * others) / n_others
    above = (wanted.sum() - np.cumsum(wanted) + 0.5 * wanted) / n_wanted
    area = float(np.clip(wanted @ below / n_wanted, 0.0, 1.0))
    slopes = np.concatenate([(above - area) / n_others, (below - area) / n_wanted])
    if total is not None:
        slopes = slopes - slopes.mean()
    if min(others.sum(), wanted.sum()) < SEEN * math.sqrt(wanted.size) * deviation:
        return area, 1.0
    return area, min(float(np.linalg.norm(slopes)) * deviation, 1.0)


def stated(found: str, result: Any) -> str:
    """Return what was found, what it cost, and whose records it is of."""
    where = (
        "the model was fitted to the same records: what it cost comes on top"
        if result.same_rows
        else "of records that the model was not fitted to"
    )
    text = f"{found} ({result.privacy}, {result.adjacency}; {where})"
    return with_caveat(text, secure=result.secure)
