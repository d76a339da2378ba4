"""Jobs on partitions of the rows, wherever these lie, and how their sums come together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.fingerprints import Marker, Marks
from skdpnoise.data.kinds import Kind
from skdpnoise.data.partition_cache import at
from skdpnoise.data.sizes import BATCH, FEWEST_ROWS

Tables = dict[str, Any]
"""Some rows of X, and if they are read of y and of the labels of groups, by these names."""

Opened = Callable[[frozenset[str]], Iterable[Tables]]
"""Reads one part, some rows at a time: of the tables with these names."""

Keep = Callable[[Any, int], NDArray[np.bool_]]
"""From the labels of groups in a part, and the number of its first row, to the rows to keep."""

Choose = Callable[[int, int], NDArray[np.bool_]]
"""From the numbers of the first row, and of the one after the last, to which of them are taken."""

ENDINGS = KeyboardInterrupt, SystemExit, GeneratorExit
"""Errors that are meant to end a fit: all else that is raised, as by Rust, may quote values."""

_LIMB = 32  # bits of the lower limb of a sum
_MASK = (1 << _LIMB) - 1
_CHANGED = (
    "The rows changed while they were read: part {part} is not what it was in the first pass. A "
    "sum over different rows in each pass has no guarantee. Read from what nobody writes to; what "
    "was charged stays charged."
)
_FAILED = (
    "{kind} in part {part} of the rows. Its message may quote values of the data and is not shown; "
    "nothing of this pass was released, and what was charged stays charged."
)


class SpreadError(RuntimeError):
    """Raised where a pass over rows in parts ends without its sum."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Task:
    """A function of the rows of every partition."""

    loads: tuple[Callable[[Any], Any], ...]  # make a leaf of tables
    function: Callable[..., Any]
    needs: frozenset[str]  # names of the tables that are read
    collects: bool = False  # whether values are wanted, in order, instead of a sum of integers
    whole: bool = False  # whether the rows of a part are wanted all at once

    def leaf(self, tables: Tables) -> Any:
        value: Any = tables
        for load in self.loads:
            value = load(value)
        return value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionFacts:
    """Facts that the scan of a partition found; they stay in memory while a fit runs."""

    n_rows: int
    marks: Marks  # fingerprints of the tables
    found: list[Any]  # what a check returned for each batch of rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Job:
    """A task for one part."""

    task: Task
    part: int  # its number
    marks: Marks  # that the tables must have
    first: int  # number of its first row, of all rows
    first_kept: int  # the same, of the rows that are kept
    first_taken: int  # the same, of the rows that are taken among these by their numbers
    keep: Keep | None = None
    choose: Choose | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Failure:
    """The message of a partition that failed."""

    text: str
    kind: type[Exception] = SpreadError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Partial:
    """Result of partitions from `begin` up to `end`: a sum in two limbs, values, or a failure."""

    begin: int
    end: int
    value: Any


class Runner(Protocol):
    """Does jobs where the rows are."""

    @property
    def n_parts(self) -> int: ...

    def scan(self, task: Task) -> list[PartitionFacts | Failure]: ...

    def run(self, jobs: Sequence[Job], label: str) -> Partial:
        """Return the sum over all jobs."""
        ...

    def collect(self, jobs: Sequence[Job], finish: Callable[[list[Any]], Any], label: str) -> Any:
        """Return what a function makes of the values of all jobs, or a failure."""
        ...


class RowReader(ABC):
    """Reads parts of a table."""

    __slots__ = ()
    columns: tuple[str, ...] | None  # their names; None for arrays
    n_columns: int  # 0 for vectors
    kinds: dict[str, Kind] | None = None  # declared, by the names of columns; None if not known
    guessed: frozenset[str] = frozenset()  # columns whose types were found by reading values
    may_prefetch: bool = False  # whether a thread may read

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Number of parts."""

    @abstractmethod
    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        """Yield some rows of a part at a time, of columns with these names: frames or arrays."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def first(self, function: Callable[[Any], Any], columns: Sequence[str] | None) -> Any:
        """Return what a function makes of the rows that are read first, where they are."""

    @abstractmethod
    def sifted(self, selection: Any) -> RowReader:
        """Return what reads the rows that a selection leaves."""

    @abstractmethod
    def runner(self, tables: dict[str, Any], n_jobs: int | None) -> Runner:
        """Return what does jobs on tables, all of which this reader and its like read."""


def scan(task: Task, part: int, opened: Opened) -> PartitionFacts | Failure:
    """Scan a partition, raising nothing."""
    try:
        marker, found = Marker(), []
        for tables in opened(task.needs):
            _check_lengths(tables, part)
            marker.add(tables)
            if not _length(tables):
                continue
            try:
                found.append(task.function(task.leaf(tables)))
            except (TypeError, ValueError) as error:
                # Checks of ours, which never show a value: what reads and maps rows may.
                kind = TypeError if isinstance(error, TypeError) else ValueError
                return Failure(str(error), kind)
        return PartitionFacts(marker.n_rows, marker.marks(), found)
    except ENDINGS:
        raise
    except BaseException as error:
        return _failure(error, part)


def do(job: Job, opened: Opened) -> Partial:
    """Do a job, raising nothing: the one function that runs where the rows are."""
    # What is raised here may quote a value, in its message or in the frames behind it, and a
    # traceback would travel to the client: so it ends here.
    try:
        value: Any = _collected(job, opened) if job.task.collects else _summed(job, opened)
    except ENDINGS:
        raise
    except BaseException as error:
        value = _failure(error, job.part)
    return Partial(job.part, job.part + 1, value)


def quietly(read: Callable[[], Any]) -> Any:
    """Return what a function reads here; its error may quote values, and is told by its kind."""
    try:
        return read()
    except (SpreadError, *ENDINGS):
        raise
    except BaseException as error:
        kind = type(error).__name__
    raise SpreadError(
        f"{kind} where rows were read. Its message may quote values of the data and is not shown; "
        "what was charged stays charged."
    )


def _failure(error: BaseException, part: int) -> Failure:
    """Return what is told of an error: of one that is not ours its kind alone."""
    if isinstance(error, SpreadError):
        return Failure(str(error))
    return Failure(_FAILED.format(kind=type(error).__name__, part=part))


def _summed(job: Job, opened: Opened) -> Any:
    limbs: Any = 0
    for leaf, _ in _leaves(job, opened):
        limbs = _added(limbs, _in_limbs(job.task.function(leaf)))
    return limbs


def _collected(job: Job, opened: Opened) -> list[Any]:
    return [job.task.function(leaf, first) for leaf, first in _leaves(job, opened)]


def kept_of(keep: Keep, labels: Sequence[Any], first: int) -> NDArray[np.bool_]:
    """Return which rows of a part are kept, by the labels of all of them, in pieces."""
    return keep(_together([*labels]), first) if labels else np.zeros(0, dtype=bool)


class RowMask:
    """Says of the rows of a part, read one after the other, which are taken."""

    def __init__(
        self, kept: NDArray[np.bool_] | None, choose: Choose | None, first_kept: int
    ) -> None:
        # Of all rows of the part whether they are kept of their groups, or None; and the number of
        # the first that is kept.
        self._kept, self._choose = kept, choose
        self._begin, self._n_kept = 0, first_kept

    def __call__(self, n_rows: int) -> NDArray[np.bool_] | None:
        """Return which of the next rows are taken; None if all are."""
        if self._kept is None and self._choose is None:
            return None
        chosen = np.ones(n_rows, dtype=bool)
        if self._kept is not None:
            chosen = self._kept[self._begin : self._begin + n_rows].copy()
            if len(chosen) != n_rows:
                raise SpreadError(
                    "The rows changed while they were read: there are more of them than there were "
                    "labels of groups. Nothing of this pass was released, and what was charged "
                    "stays charged."
                )
        n_kept = int(np.count_nonzero(chosen))
        if self._choose is not None:
            chosen[chosen] = self._choose(self._n_kept, self._n_kept + n_kept)
        self._begin += n_rows
        self._n_kept += n_kept
        return chosen


def _leaves(job: Job, opened: Opened) -> Iterator[tuple[Any, int]]:
    """Yield leaves with the numbers of their first rows; at last the rows must be the same."""
    mask = RowMask(None, job.choose, job.first_kept)
    if job.keep is not None:
        labels = [held(tables["groups"]) for tables in _unchanged(job, opened, {"groups"})]
        mask = RowMask(kept_of(job.keep, labels, job.first), job.choose, job.first_kept)
    begin, taken = 0, job.first_taken
    batches = _unchanged(job, opened, job.task.needs)
    for tables in _at_once(batches) if job.task.whole else batches:
        place, n_rows = (job.part, begin, _length(tables)), _length(tables)
        begin += n_rows
        chosen = mask(n_rows)
        if chosen is not None:
            tables = {name: rows_of(table, chosen) for name, table in tables.items()}
        if _length(tables):
            at(*place)
            yield job.task.leaf(tables), taken
        taken += _length(tables)


def _unchanged(job: Job, opened: Opened, needs: Set[str]) -> Iterator[Tables]:
    """Yield some rows at a time; raise at last, if they are not those of the first pass."""
    marker = Marker(job.marks)
    for tables in opened(frozenset(needs)):
        marker.add(tables)
        if _length(tables):
            yield tables
    marks = marker.marks()
    if any(marks.get(name) != job.marks.get(name) for name in needs):
        raise SpreadError(_CHANGED.format(part=job.part))


def combined(partials: Sequence[Partial]) -> Partial:
    ordered = sorted(partials, key=lambda partial: partial.begin)
    for one, other in pairwise(ordered):
        if one.end != other.begin:
            raise SpreadError("A part of the rows was lost or counted twice; nothing is released.")
    for partial in ordered:
        if isinstance(partial.value, Failure):
            return Partial(ordered[0].begin, ordered[-1].end, partial.value)
    value: Any = reduce(_added, (partial.value for partial in ordered))
    return Partial(ordered[0].begin, ordered[-1].end, value)


def complete(partial: Partial, n_parts: int) -> Partial:
    """Return a sum over all parts; refuse one over some of them."""
    if not isinstance(partial.value, Failure) and (partial.begin, partial.end) != (0, n_parts):
        raise SpreadError("A part of the rows was lost; nothing is released.")
    return partial


def in_order(partials: Sequence[Partial], n_parts: int) -> Any:
    """Return the values of all parts in order, or a failure."""
    ordered = sorted(partials, key=lambda one: one.begin)
    if [one.begin for one in ordered] != list(range(n_parts)):
        return Failure("A part of the rows was lost or counted twice; nothing is released.")
    failures = [one.value for one in ordered if isinstance(one.value, Failure)]
    return failures[0] if failures else [value for one in ordered for value in one.value]


def finished(finish: Callable[[list[Any]], Any], values: Any) -> Any:
    """Return what a function makes of the values of all parts, or a failure: it raises nothing."""
    if isinstance(values, Failure):
        return values
    try:
        return finish(values)
    except SpreadError as error:
        return Failure(str(error))
    except ENDINGS:
        raise
    except BaseException as error:
        return Failure(
            f"{type(error).__name__} where parts of the rows came together. Its message may quote "
            "values of the data and is not shown; what was charged stays charged."
        )


def raised(value: Any) -> Any:
    """Return a value; raise a failure as an error of its own, with nothing attached to it."""
    if isinstance(value, Failure):
        raise value.kind(value.text)
    return value


def _added(limbs: Any, others: Any) -> Any:
    """Return the sum of limbs; 0 stands for those of no rows."""
    if np.ndim(limbs) and np.ndim(others) and limbs.shape != others.shape:
        raise SpreadError(
            f"Sums of some rows have other shapes, {limbs.shape[1:]}, than those of others, "
            f"{others.shape[1:]}; nothing is released."
        )
    return limbs + others


def _in_limbs(integers: Any) -> NDArray[np.int64]:
    """Return integers as two limbs, whose sums of 2**31 parts fit 64 bits."""
    array = np.asarray(integers)
    if array.dtype.kind not in "iubO":
        raise SpreadError(
            f"A sum over parts must be one of integers. Got numbers of type {array.dtype}."
        )
    if array.dtype.kind != "O" and array.dtype != np.uint64:
        array = array.astype(np.int64)
    return np.stack([np.asarray(limb, dtype=np.int64) for limb in (array & _MASK, array >> _LIMB)])


def from_limbs(limbs: Any) -> NDArray[Any]:
    """Return the integers that limbs stand for, of int64 if they and noise fit."""
    if not np.ndim(limbs):
        raise SpreadError("There are no rows of which a sum could be taken.")
    low, high = limbs
    carried = np.asarray(high + (low >> _LIMB))
    rest = low & _MASK
    if carried.size == 0 or np.abs(carried).max() < 1 << 30:
        whole: NDArray[Any] = np.asarray((carried << _LIMB) + rest)
        return whole
    return np.asarray(carried.astype(object) * (1 << _LIMB) + np.asarray(rest).astype(object))


def _check_lengths(tables: Tables, part: int) -> None:
    counts = {name: len(table) for name, table in tables.items()}
    if len(set(counts.values())) > 1:
        raise SpreadError(
            f"All tables must have the same rows in each part. In part {part} their numbers are: "
            f"{counts}. Give arrays and frames of dask the same chunks, by rechunk or repartition."
        )


def rows_at_once(n_columns: int) -> int:
    """Return how many rows are read at a time: a power of two, as groups of rows often have."""
    wanted = max(BATCH // max(n_columns, 1), FEWEST_ROWS)
    return 1 << (wanted - 1).bit_length()


def _at_once(batches: Iterable[Tables]) -> Iterator[Tables]:
    """Yield all rows as one batch, if there are some."""
    listed = [{name: held(table) for name, table in tables.items()} for tables in batches]
    if listed:
        yield {name: _together([tables[name] for tables in listed]) for name in listed[0]}


def _length(tables: Tables) -> int:
    return len(next(iter(tables.values())))


def rows_of(table: Any, chosen: NDArray[np.bool_]) -> Any:
    """Return rows of an array, a frame or a series."""
    return table.loc[chosen] if hasattr(table, "loc") else table[chosen]


def between(table: Any, begin: int, end: int) -> Any:
    """Return rows by their places: pandas before 3 slices a frame by labels if they are floats."""
    return (table.iloc if hasattr(table, "iloc") else table)[begin:end]


def held(table: Any) -> Any:
    """Return rows to be kept while more are read: a source may write those to the same memory."""
    return table.copy() if hasattr(table, "copy") else np.array(table)


def _together(tables: list[Any]) -> Any:
    if len(tables) == 1:
        return tables[0]
    if getattr(tables[0], "ndim", 1) == 2 and hasattr(tables[0], "iloc"):
        import pandas as pd

        return pd.concat(tables, ignore_index=True)
    columns = [np.asarray(table) for table in tables]
    if {"i", "u"} <= {column.dtype.kind for column in columns}:
        # Together they would be floats, which are other labels and not all different.
        columns = [column.astype(object) for column in columns]
    return np.concatenate(columns)
