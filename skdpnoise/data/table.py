"""Rows in parts, of which nothing is asked for but sums of integers.

A sum of integers depends neither on the order of the rows nor on how they are divided, if what a
row adds is a function of that row alone. So one part on a laptop and ten thousand on a cluster give
the same bits.

**A row alone.** A table has columns with names and declared types, which are public. For the sums
to have the sensitivity that they are charged for, two maps must exist that know nothing but these:

1. *reading*: each cell of a row becomes a value that is a function of this cell and of the declared
   type of its column: not of other rows, nor of the part, the batch or the place in it where the
   row lies. Names, number and types of the columns that are read are functions of the names and
   declared types of the table;
2. *adding*: what a row adds to a sum is a vector of integers, a function of the values of this row
   and of what was released before, within the bound that is declared.

Then neighbours, which differ in one row, give sums that differ by the integers of this row, and by
nothing else. The second holds for the steps of this package, bit by bit (``tests/contracts``), and
is asked of functions that a user gives to ``map``. The first is asked of every reader
(``tests/data/test_row_alone.py``).

For every sum:

- *Each part counts once.* What a part gave is known by its number, and only neighbours are added: a
  part that is lost, or there twice, leaves a gap or an overlap, and the sum is refused. A part that
  is done again, by whatever worker, gives equal integers in the same place.
- *Nothing is partial.* A part that fails ends the sum with an error, in which no value of the rows
  is.
- *Each pass sees the same rows.* Fingerprints of the first pass are compared where a part is read.
  They are held in memory while a fit runs, and are neither stored nor published.
- *Sums do not overflow.* They are added in two limbs of 64 bits.

No part draws noise: integers meet their noise where all of them have come together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from threading import Lock
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.partition_cache import cache, new_token, scratch
from skdpnoise.data.partitions import (
    Choose,
    Job,
    Keep,
    PartitionFacts,
    Runner,
    Task,
    from_limbs,
    raised,
)
from skdpnoise.data.ranks import CountedRanks, Ranks, SortedRanks
from skdpnoise.data.selection import selected_rows
from skdpnoise.data.sizes import FEW_COLUMNS, HELD
from skdpnoise.data.sources import RowSource, as_sources, is_spread

Leaf = TypeVar("Leaf")
Other = TypeVar("Other")
State = TypeVar("State")
Update = TypeVar("Update")
Integers = NDArray[Any]
"""Of int64; Python's own where 64 bits would not do."""

Gathered = Callable[[NDArray[Any], NDArray[Any], NDArray[np.intp], NDArray[np.intp]], Integers]
"""From an array, places of rows in it, its columns, and their places among all that are asked for,
to integers for each of these columns."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScannedRows:
    """All partitions of the rows, after a scan of each."""

    runner: Runner
    sources: dict[str, RowSource]
    facts: tuple[PartitionFacts, ...]
    n_kept: tuple[int, ...]  # rows of each part that are kept
    keep: Keep | None = None
    choose: Choose | None = None
    n_chosen: tuple[int, ...] | None = None  # rows of each part that it takes

    def jobs(self, task: Task) -> list[Job]:
        sizes = self.n_rows, self.n_kept, self.n_taken
        first, kept, taken = ([0, *accumulate(counts)] for counts in sizes)
        return [
            Job(task, k, facts.marks, first[k], kept[k], taken[k], self.keep, self.choose)
            for k, facts in enumerate(self.facts)
        ]

    @property
    def n_taken(self) -> tuple[int, ...]:
        """Rows of each part that are kept, and taken by their numbers."""
        return self.n_kept if self.n_chosen is None else self.n_chosen

    @property
    def n_rows(self) -> tuple[int, ...]:
        """Rows of each part."""
        return tuple(facts.n_rows for facts in self.facts)


Places = NDArray[np.intp]


class SecretCoins(Protocol):
    """Secret coins, which see no data, by which each row falls to one of so many places."""

    @property
    def n_places(self) -> int: ...

    def of_numbers(self, begin: int, end: int) -> Places: ...

    def of_labels(self, labels: Any) -> Places:
        """Return the places of rows by the labels of their groups."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Division(Generic[Leaf]):
    """Rows that fell to places."""

    sizes: tuple[int, ...]  # how many fell to each
    take: Callable[[frozenset[int]], Table[Leaf]]

    def at(self, *places: int) -> Table[Leaf]:
        """Return the rows of some places, in their order; in memory a copy."""
        return self.take(frozenset(places))


class Table(ABC, Generic[Leaf]):
    """Private rows: one partition in memory, or many anywhere."""

    # Nothing is asked of them but sums of integers, and of few rows by their numbers. A *leaf* is
    # what a function of whole tables takes: an array, a record of arrays, or a dict of tables.

    __slots__ = ()
    n_rows: int
    tail: tuple[int, ...]  # what follows the number of rows in the shape of leaves
    n_threads: int  # that may work on a leaf: one where jobs read partitions
    lasts: ClassVar[bool]  # whether a leaf is the same in each pass, and not read anew

    def __len__(self) -> int:
        return self.n_rows

    @abstractmethod
    def map(self, function: Callable[[Leaf], Other], *tail: int) -> Table[Other]:
        """Return what a function of single rows makes of them, and the shape of one row."""

    @abstractmethod
    def total(self, step: Callable[[Leaf], Integers], label: str = "sums") -> Integers:
        """Return the sum of what a function returns for the rows, or for some at a time."""

    @abstractmethod
    def joined(
        self,
        take: Callable[[Leaf, int], Any],
        finish: Callable[[list[Any]], Any],
        label: str = "sums",
        *,
        by_part: bool = False,
    ) -> Any:
        """Return what a function makes of something from all partitions."""
        # `take` gets a leaf and the number of its first row.

    @abstractmethod
    def chosen(self, choose: Choose) -> Table[Leaf]:
        """Return the rows that are chosen by their numbers alone."""

    @abstractmethod
    def divided(self, coins: SecretCoins, labels: Any = None) -> Division[Leaf]:
        """Return the rows by the places to which they fall: by number, or label of a group."""
        # The labels of rows in memory; partitions have a table "groups" if there are any.

    @abstractmethod
    def undivided(self) -> Division[Leaf]:
        """Return all rows as those of one place."""

    @abstractmethod
    def tables(self) -> dict[str, Any]:
        """Return the tables of the rows by name, as a fit takes them."""

    @abstractmethod
    def travelling(self, value: Other, prepared: Callable[[Other], Other]) -> Other:
        """Return what goes where the rows are: in memory a value itself, else a prepared one."""

    @abstractmethod
    def or_else(self, leaf: Leaf) -> Table[Leaf]:
        """Return the rows; if there are none, a leaf that has none."""

    @abstractmethod
    def gathered(
        self, numbers: NDArray[Any], columns: NDArray[np.intp], step: Gathered, label: str = "sums"
    ) -> Integers:
        """Return the integers that a step finds for columns of some rows of arrays together."""

    @abstractmethod
    def ranked(self) -> Ranks:
        """Return the values of a table of vectors, of which is asked how many are smaller."""

    @abstractmethod
    def folded(
        self,
        start: Callable[[Leaf], State],
        advance: Callable[[State, Leaf, Update], Integers],
        label: str = "sums",
    ) -> Fold[Update]:
        """Return sums of a state that each partition keeps with its rows."""
        # `advance` changes a state in place by an update, which is public, and returns the integers
        # of its rows. A state is a function of the rows and of the updates so far: one that is lost
        # is made anew.


class Fold(ABC, Generic[Update]):
    """Sums of states that go with rows; in a ``with`` block, after which they are given up."""

    @abstractmethod
    def total(self, update: Update) -> Integers:
        """Advance the states of all rows by an update; return the sum of the integers."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InMemory(Table[Leaf]):
    """Rows in memory: one leaf, of which functions are called once, without a copy."""

    leaf: Leaf
    n_rows: int
    tail: tuple[int, ...] = ()
    n_threads: int = 1
    lasts = True

    @classmethod
    def of(cls, values: NDArray[Any]) -> InMemory[Any]:
        return InMemory(values, len(values), values.shape[1:])

    def map(self, function: Callable[[Leaf], Other], *tail: int) -> InMemory[Other]:
        return InMemory(function(self.leaf), self.n_rows, tail, self.n_threads)

    def total(self, step: Callable[[Leaf], Integers], label: str = "sums") -> Integers:
        return step(self.leaf)

    def joined(
        self,
        take: Callable[[Leaf, int], Any],
        finish: Callable[[list[Any]], Any],
        label: str = "sums",
        *,
        by_part: bool = False,
    ) -> Any:
        return finish([take(self.leaf, 0)])

    def chosen(self, choose: Choose) -> InMemory[Leaf]:
        return self.rows(np.flatnonzero(choose(0, self.n_rows)))

    def rows(self, numbers: NDArray[np.intp]) -> InMemory[Leaf]:
        found = rows_at(self.leaf, numbers)
        return InMemory(found, len(numbers), self.tail, self.n_threads)

    def divided(self, coins: SecretCoins, labels: Any = None) -> Division[Leaf]:
        places = coins.of_numbers(0, self.n_rows) if labels is None else coins.of_labels(labels)
        return self.at_places(places, coins.n_places)

    def undivided(self) -> Division[Leaf]:
        return self.at_places(np.zeros(self.n_rows, dtype=np.intp), 1)

    def at_places(self, places: Places, n_places: int) -> Division[Leaf]:
        sizes = np.bincount(places, minlength=n_places)
        return Division(tuple(sizes.tolist()), partial(_at_places, self, places))

    def tables(self) -> dict[str, Any]:
        found: Any = self.leaf
        return dict(found)

    def travelling(self, value: Other, prepared: Callable[[Other], Other]) -> Other:
        return value

    def or_else(self, leaf: Leaf) -> InMemory[Leaf]:
        return self

    def gathered(
        self, numbers: NDArray[Any], columns: NDArray[np.intp], step: Gathered, label: str = "sums"
    ) -> Integers:
        values: Any = self.leaf
        return step(values, numbers, columns, np.arange(columns.size))

    def ranked(self) -> Ranks:
        values: Any = self.leaf
        return SortedRanks.of(values)

    def folded(
        self,
        start: Callable[[Leaf], State],
        advance: Callable[[State, Leaf, Update], Integers],
        label: str = "sums",
    ) -> Fold[Update]:
        return _FoldInMemory(self.leaf, start(self.leaf), advance)


def _at_places(table: InMemory[Leaf], places: Places, which: frozenset[int]) -> InMemory[Leaf]:
    return table.rows(np.flatnonzero(np.isin(places, sorted(which))))


def rows_at(leaf: Any, numbers: NDArray[np.intp]) -> Any:
    """Return some rows of a leaf: of arrays in the layout that they have."""
    if isinstance(leaf, dict):
        return {name: rows_at(table, numbers) for name, table in leaf.items()}
    if is_dataclass(leaf) and not isinstance(leaf, type):
        found = {one.name: rows_at(getattr(leaf, one.name), numbers) for one in fields(leaf)}
        return replace(leaf, **found)
    if isinstance(leaf, list | tuple):
        return type(leaf)(rows_at(one, numbers) for one in leaf)
    if not isinstance(leaf, np.ndarray):
        return leaf.iloc[numbers] if hasattr(leaf, "iloc") else leaf[numbers]
    return np.asarray(leaf[numbers], order="F" if leaf.flags.f_contiguous else "C")


class _FoldInMemory(Fold[Update]):
    def __init__(self, leaf: Any, state: Any, advance: Callable[..., Integers]) -> None:
        self._leaf, self._state, self._advance = leaf, state, advance

    def total(self, update: Update) -> Integers:
        return self._advance(self._state, self._leaf, update)

    def __exit__(self, *_: object) -> None:
        self._leaf = self._state = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Partitioned(Table[Leaf]):
    """Rows in partitions, some at a time as leaves."""

    rows: ScannedRows
    loads: tuple[Callable[[Any], Any], ...]  # make a leaf; each a function of single rows
    needs: frozenset[str]  # names of the tables that the first of them reads
    tail: tuple[int, ...] = ()  # what follows the number of rows in the shape of leaves
    n_threads: int = 1
    lasts = False

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows that are taken."""
        return sum(self.rows.n_taken)

    def only(self, *names: str) -> Partitioned[dict[str, Any]]:
        """Return some of the tables alone, before anything is made of them."""
        return Partitioned(self.rows, (), frozenset(names))

    def map(self, function: Callable[[Leaf], Other], *tail: int) -> Partitioned[Other]:
        loads: Any = (*self.loads, function)
        return Partitioned(self.rows, loads, self.needs, tail)

    def total(self, step: Callable[[Leaf], Integers], label: str = "sums") -> Integers:
        jobs = self.rows.jobs(Task(self.loads, step, self.needs))
        return from_limbs(raised(self.rows.runner.run(jobs, label).value))

    def joined(
        self,
        take: Callable[[Leaf, int], Any],
        finish: Callable[[list[Any]], Any],
        label: str = "sums",
        *,
        by_part: bool = False,
    ) -> Any:
        task = Task(self.loads, take, self.needs, collects=True, whole=by_part)
        return raised(self.rows.runner.collect(self.rows.jobs(task), finish, label))

    def divided(self, coins: SecretCoins, labels: Any = None) -> Division[Leaf]:
        # A table is divided once: what falls among rows that were chosen by number is not known.
        n_kept, grouped = self.rows.n_kept, "groups" in self.rows.sources
        counts = np.zeros((len(n_kept), coins.n_places), dtype=np.int64)
        if grouped:
            take = partial(_count_by_label, coins)
            found = self.only("groups").joined(take, np.stack, "coins", by_part=True)
            counts[np.array(n_kept) > 0] = found
        else:  # by numbers alone, of some rows at a time
            for own, ends in zip(counts, pairwise([0, *accumulate(n_kept)]), strict=True):
                for begin, end in _at_once(*ends):
                    own += np.bincount(coins.of_numbers(begin, end), minlength=coins.n_places)
        sizes = tuple(counts.sum(axis=0).tolist())
        return Division(sizes, partial(_fallen, self, coins, counts, grouped))

    def undivided(self) -> Division[Leaf]:
        return Division((len(self),), partial(_all_or_none, self))

    def tables(self) -> dict[str, Any]:
        rows = self.rows
        if rows.keep is None and rows.choose is None:
            return rows.sources
        return selected_rows(rows.sources, rows)

    def travelling(self, value: Other, prepared: Callable[[Other], Other]) -> Other:
        return prepared(value)

    def or_else(self, leaf: Leaf) -> Table[Leaf]:
        return self if len(self) else InMemory(leaf, 0, self.tail)

    def gathered(
        self, numbers: NDArray[Any], columns: NDArray[np.intp], step: Gathered, label: str = "sums"
    ) -> Integers:
        # Rows come together where the partitions are, of some columns at a time.
        rows, places = np.unique(numbers, return_inverse=True)
        places = places.reshape(numbers.shape)
        n_columns = max(1, HELD // max(1, rows.size))
        found = []
        for begin in range(0, columns.size, n_columns):
            which = np.arange(begin, min(begin + n_columns, columns.size))
            finish = partial(_by_columns, step, places, which)
            found.append(self.joined(partial(_taken, rows, columns[which]), finish, label))
        return np.concatenate(found)

    def ranked(self) -> Ranks:
        return CountedRanks(self)

    def sampled(self, keep: Keep, n_kept: Sequence[int]) -> Partitioned[Leaf]:
        """Return the rows that are kept of groups with too many."""
        counts = tuple(int(number) for number in n_kept)
        return replace(self, rows=replace(self.rows, n_kept=counts, keep=keep))

    def chosen(self, choose: Choose, n_chosen: Sequence[int] | None = None) -> Partitioned[Leaf]:
        assert self.rows.choose is None
        if n_chosen is None:
            ends = [0, *accumulate(self.rows.n_kept)]
            n_chosen = [_count(choose, begin, end) for begin, end in pairwise(ends)]
        counts = tuple(int(number) for number in n_chosen)
        return replace(self, rows=replace(self.rows, choose=choose, n_chosen=counts))

    def folded(
        self,
        start: Callable[[Leaf], State],
        advance: Callable[[State, Leaf, Update], Integers],
        label: str = "sums",
    ) -> Fold[Update]:
        return _FoldOfPartitions(self, start, advance, label)


def _all_or_none(table: Partitioned[Leaf], which: frozenset[int]) -> Partitioned[Leaf]:
    return table if which else table.chosen(_none)


def _none(begin: int, end: int) -> NDArray[np.bool_]:
    return np.zeros(end - begin, dtype=bool)


def _count_by_label(coins: SecretCoins, tables: dict[str, Any], first: int) -> NDArray[np.int64]:
    return np.bincount(coins.of_labels(tables["groups"]), minlength=coins.n_places)


def _fallen(
    table: Partitioned[Leaf],
    coins: SecretCoins,
    counts: NDArray[np.int64],
    grouped: bool,
    which: frozenset[int],
) -> Partitioned[Leaf]:
    sizes = counts[:, sorted(which)].sum(axis=1)
    if grouped:
        return table.sampled(partial(_falls_by_label, coins, which, table.rows.keep), sizes)
    return table.chosen(partial(_falls_by_number, coins, which), sizes)


def _falls_by_number(
    coins: SecretCoins, which: frozenset[int], begin: int, end: int
) -> NDArray[np.bool_]:
    return np.isin(coins.of_numbers(begin, end), sorted(which))


def _falls_by_label(
    coins: SecretCoins, which: frozenset[int], keep: Keep | None, labels: Any, first: int
) -> NDArray[np.bool_]:
    falls = np.isin(coins.of_labels(labels), sorted(which))
    return falls if keep is None else falls & keep(labels, first)


def _taken(
    rows: NDArray[Any], columns: NDArray[np.intp], table: NDArray[Any], first: int
) -> NDArray[Any]:
    """Return the columns of a leaf of those of its rows that come together."""
    begin, end = np.searchsorted(rows, [first, first + len(table)])
    return np.asarray(table[np.ix_(rows[begin:end] - first, columns)])


def _by_columns(
    step: Gathered, places: NDArray[Any], which: NDArray[np.intp], tables: list[NDArray[Any]]
) -> Integers:
    """Return what a step finds for few columns at a time: a copy of all were twice the memory."""
    found = []
    for begin in range(0, which.size, FEW_COLUMNS):
        some = which[begin : begin + FEW_COLUMNS]
        rows = np.concatenate([one[:, begin : begin + some.size] for one in tables])
        found.append(step(rows, places, np.arange(some.size), some))
    return np.concatenate(found)


class _FoldOfPartitions(Fold[Update]):
    def __init__(
        self,
        table: Partitioned[Any],
        start: Callable[..., Any],
        advance: Callable[..., Integers],
        label: str,
    ) -> None:
        self._table, self._label, self._facts = table, label, (start, advance, new_token())
        self._history: list[Update] = []

    def total(self, update: Update) -> Integers:
        # All updates so far go along, of which a partition makes those that it has not made: what
        # it keeps may be lost, with the worker that kept it.
        self._history.append(update)
        step = partial(_advanced, self._facts, tuple(self._history))
        return self._table.total(step, self._label)

    def __exit__(self, *_: object) -> None:
        cache.forget(self._facts[2])


class _Kept:
    """A state after so many updates; -1 in the middle of one."""

    def __init__(self, start: Callable[[Any], Any], leaf: Any) -> None:
        self.lock = Lock()
        self.begin(start, leaf)

    def begin(self, start: Callable[[Any], Any], leaf: Any) -> None:
        """Return to what it is before the first update."""
        self.state, self.made = _own(start(leaf)), 0


def _own(state: Any) -> Any:
    """Return a state whose arrays are copies: leaves may lie in memory that is used again."""
    if isinstance(state, list | tuple):
        return type(state)(_own(one) for one in state)
    return scratch(state) if isinstance(state, np.ndarray) else state


def _advanced(facts: tuple[Any, ...], history: tuple[Any, ...], leaf: Any) -> Integers:
    """Return the integers of some rows after the last update."""
    start, advance, token = facts
    kept = cache.state(token, "fold", partial(_Kept, start, leaf))
    with kept.lock:
        if not 0 <= kept.made < len(history):  # an update that failed, or is done once more
            kept.begin(start, leaf)
        left, kept.made = history[kept.made :], -1
        for update in left:
            found: Integers = advance(kept.state, leaf, update)
        kept.made = len(history)
    return found


def scan_partitions(
    sources: dict[str, RowSource], check: Callable[[Any], Any], n_jobs: int | None = None
) -> Partitioned[Any]:
    """Scan all rows; return them as dicts from names to tables."""
    runner, names = next(iter(sources.values())).reader.runner(sources, n_jobs), frozenset(sources)
    facts = tuple(raised(one) for one in runner.scan(Task((), check, names)))
    kept = tuple(one.n_rows for one in facts)
    return Partitioned(ScannedRows(runner, sources, facts, kept), (), names)


def scan_tables(
    check: Callable[[dict[str, Any]], Any], **tables: Any
) -> Partitioned[dict[str, Any]]:
    """Scan tables in the same partitions; return them as dicts by name."""
    return scan_partitions(as_sources(**tables), check)


Tables = dict[str, Any]


def scanned(
    check: Callable[[Tables], tuple[Leaf, Any]], read: Callable[[Tables], Leaf], **tables: Any
) -> tuple[Table[Leaf], list[Any]]:
    """Look at tables for the first time; return their rows and what a check found of them."""
    # `check` returns the leaf of some rows and what it found, `read` the leaf alone. A table of
    # ours was checked by its reader: it comes back as it is.
    first = next(iter(tables.values()))
    if isinstance(first, Table):
        return first, []
    if any(map(is_spread, map(type, tables.values()))):
        rows = scan_tables(partial(_note, check), **tables)
        return rows.map(read), [found for part in rows.rows.facts for found in part.found]
    leaf, found = check(tables)
    n_rows = first.shape[0] if hasattr(first, "shape") else len(first)
    return InMemory(leaf, n_rows), [found]


def _note(check: Callable[[Tables], tuple[Any, Any]], tables: Tables) -> Any:
    return check(tables)[1]


def in_units(integers: Any, unit: Any) -> NDArray[np.float64]:
    """Return noisy sums in units of their grid, whether they fit 64 bits or not.

    Examples
    --------
    >>> in_units(np.array([3, 2**70], dtype=object), 0.5)
    array([1.5000000e+00, 5.9029581e+20])
    """
    return np.asarray(np.asarray(integers) * unit, dtype=np.float64)


def _count(choose: Choose, begin: int, end: int) -> int:
    """Return how many rows are chosen, of some at a time."""
    return sum(int(np.count_nonzero(choose(*ends))) for ends in _at_once(begin, end))


def _at_once(begin: int, end: int) -> Iterator[tuple[int, int]]:
    return pairwise([*range(begin, end, HELD), end])
