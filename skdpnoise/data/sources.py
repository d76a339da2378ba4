"""Tables that are read in parts, as often as passes need, and never held as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from skdpnoise._utils.context import context, within
from skdpnoise.data.kinds import Kind
from skdpnoise.data.partitions import RowReader, quietly

Made = TypeVar("Made")
FOUND_BY_READING = "types of columns, which were found by reading the file"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taking:
    """Columns that are taken of rows as a reader gives them, and functions of these."""

    names: tuple[str, ...] | str | None = None  # of columns; None for all
    maps: tuple[Callable[[Any], Any], ...] = ()  # functions of single rows, one after the other

    def __call__(self, rows: Any) -> Any:
        if self.names is not None:
            rows = rows[self.names if isinstance(self.names, str) else list(self.names)]
        for function in self.maps:
            rows = function(rows)
        return rows

    def placed(self, rows: Any) -> Callable[[Any], Any]:
        """Return the same for rows with these columns: of those side by side without a copy."""
        if isinstance(self.names, str) or not self.names or self.maps:  # which may write to them
            return self
        columns = tuple(rows.columns)
        if columns == self.names:
            return _whole
        begin = columns.index(self.names[0])
        end = begin + len(self.names)
        return partial(_beside, begin, end) if columns[begin:end] == self.names else self

    @property
    def needed(self) -> tuple[str, ...] | None:
        """Names of the columns that are read; None for all."""
        return (self.names,) if isinstance(self.names, str) else self.names


def _whole(rows: Any, *_: Any) -> Any:
    return rows


def _beside(begin: int, end: int, rows: Any) -> Any:
    return rows.iloc[:, begin:end]


class RowSource:
    """Rows that lie in parts: what estimators take in place of an array or a frame.

    Made by :func:`scan_parquet`, :func:`scan_csv`, :func:`scan_dataset` and :func:`scan_batches`,
    and by estimators from the arrays and frames of dask. Nothing is read before a fit asks for it,
    and then in passes, some rows at a time. Columns are selected as those of a frame are.

    Parameters
    ----------
    reader : RowReader
        What reads the parts.
    taking : Taking, default=None
        The columns that are taken, all by default, and what is made of them.
    tail : tuple of int, default=None
        The shape of one row; by default that of the columns.

    Attributes
    ----------
    columns : tuple of str or None
        Names of the columns; None where there are none.
    shape : tuple of int
        Number of rows, for which some sources are read once, and of columns.

    Examples
    --------
    >>> from skdpnoise.data import scan_batches
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1]})
    >>> rows = scan_batches(lambda: [frame[:1], frame[1:]])
    >>> rows.columns, rows.shape
    (('a', 'b', 'y'), (2, 3))
    >>> X, y = rows.drop("y"), rows["y"]
    >>> X.shape, y.shape
    ((2, 2), (2,))
    """

    __slots__ = ("columns", "reader", "tail", "taking")

    def __init__(
        self, reader: RowReader, taking: Taking | None = None, tail: tuple[int, ...] | None = None
    ) -> None:
        self.reader, self.taking = reader, Taking() if taking is None else taking
        names = self.taking.names
        known = reader.columns if names is None else names
        self.columns = None if self.taking.maps or isinstance(known, str) else known
        if tail is None:
            width = reader.n_columns if names is None else len(names)
            tail = (width,) if width and not isinstance(names, str) else ()
        self.tail = tail

    def __len__(self) -> int:
        return int(quietly(self.reader.count))

    @property
    def kinds(self) -> tuple[Kind, ...] | None:
        """Declared kinds of columns, if their reader knows; None of what was made of them."""
        known, names = self.reader.kinds, self.taking.needed
        if known is None or self.taking.maps:
            return None
        return tuple(known.values() if names is None else (known[name] for name in names))

    @property
    def guessed(self) -> tuple[str, ...]:
        """Names of the columns whose types were found by reading values."""
        names = self.taking.needed
        return tuple(sorted(self.reader.guessed.intersection(names or self.reader.guessed)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and, of a table, of columns."""
        return len(self), *self.tail

    @property
    def ndim(self) -> int:
        """1 for a column, 2 for a table."""
        return 1 + len(self.tail)

    def __getitem__(self, columns: str | list[str]) -> RowSource:
        """Return one column by its name, or a table of some."""
        if isinstance(columns, str):
            self._check([columns])
            return RowSource(self.reader, Taking(columns))
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise TypeError(
                "Rows in parts are selected by the name of a column or a list of names; there is "
                f"no selection of rows. Got {type(columns).__name__}."
            )
        self._check(columns)
        return RowSource(self.reader, Taking(tuple(columns)))

    def drop(self, columns: str | list[str]) -> RowSource:
        """Return the table without some columns.

        Parameters
        ----------
        columns : str or list of str
            Their names.

        Returns
        -------
        RowSource
        """
        dropped = [columns] if isinstance(columns, str) else list(columns)
        self._check(dropped)
        assert self.columns is not None
        left = tuple(name for name in self.columns if name not in dropped)
        return RowSource(self.reader, Taking(left))

    def map(self, function: Callable[[Any], Any], *tail: int) -> RowSource:
        """Return what a function of single rows makes of them, when they are read.

        Parameters
        ----------
        function : callable
            From a frame or an array to one of as many rows, each made of the same row alone. It
            may run in another process.
        *tail : int
            The shape of one row of the result: its number of columns, or nothing for a vector.

        Returns
        -------
        RowSource
        """
        taking = Taking(self.taking.names, (*self.taking.maps, function))
        return RowSource(self.reader, taking, tail)

    def first(self, function: Callable[[Any], Any]) -> Any:
        """Return what a function makes of the rows that are read first, where they are.

        Parameters
        ----------
        function : callable
            From a frame or an array to what comes back. It may run on another machine.

        Returns
        -------
        object
        """
        taking = Taking(self.taking.names, (*self.taking.maps, function))
        return self.reader.first(taking, taking.needed)

    def batches(self) -> Iterator[Any]:
        """Yield some rows at a time, here and in their order: arrays, frames or series."""
        for part in range(self.reader.n_parts):
            yield from map(self.taking, self.reader.read(part, self.taking.needed))

    def __repr__(self) -> str:
        named = "" if self.columns is None else f", columns={list(self.columns)}"
        return f"RowSource({self.reader.n_parts} parts{named})"

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        raise TypeError(
            "Rows in parts are not an array: what is called here reads all of them at once. Give "
            "it numpy.concatenate([*rows.batches()]) if they fit in memory."
        )

    def __reduce__(self) -> Any:
        return RowSource, (self.reader, self.taking, self.tail)

    def _check(self, columns: Sequence[str]) -> None:
        missing = [name for name in columns if name not in (self.columns or ())]
        if missing:
            raise KeyError(
                f"There is no column {missing[0]!r} in these rows, whose attribute 'columns' has "
                "the names."
            )


def is_spread(kind: type) -> bool:
    """Return whether tables of a type lie in parts: a RowSource, an array or a frame of dask.

    Examples
    --------
    >>> is_spread(np.ndarray)
    False
    """
    return issubclass(kind, RowSource) or _of_dask(kind)


def _of_dask(kind: type) -> bool:
    if kind.__module__.partition(".")[0] not in ("dask", "dask_expr"):
        return False
    from skdpnoise.data.dask_rows import kinds

    return issubclass(kind, kinds())


def for_storage(kind: type, in_memory: Any, in_partitions: Any) -> Any:
    """Return the first for tables of a type that lie in memory, the second for those in parts.

    Examples
    --------
    >>> for_storage(np.ndarray, "whole", "in parts")
    'whole'
    """
    return in_partitions if is_spread(kind) else in_memory


def by_storage(
    rows: Any,
    in_memory: Callable[..., Made],
    in_partitions: Callable[..., Made],
    *others: Any,
    **options: Any,
) -> Made:
    """Return what one function makes of rows in memory, or another of a source in partitions.

    Examples
    --------
    >>> by_storage(np.zeros(3), len, repr)
    3
    """
    read = for_storage(type(rows), in_memory, partial(_of_source, in_partitions))
    found: Made = read(rows, *others, **options)
    return found


def _of_source(read: Callable[..., Made], table: Any, *others: Any, **options: Any) -> Made:
    """Return what a function makes of a table in parts as a source; note types that were found."""
    source = table
    if _of_dask(type(table)):
        from skdpnoise.data.dask_rows import DaskReader

        source = RowSource(DaskReader.of(table))
    if source.guessed and (noted := context().guesses) is not None:
        noted.append(FOUND_BY_READING)
    return read(source, *others, **options)


def method_by_storage(
    in_memory: Callable[..., Any], in_partitions: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a method that takes rows in memory, or a source in partitions, after `self`."""

    @wraps(in_memory)
    def run(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        return by_storage(
            X, partial(in_memory, self), partial(in_partitions, self), *args, **options
        )

    return run


def as_sources(**tables: Any) -> dict[str, RowSource]:
    """Return tables in parts as sources; refuse one that is not in parts beside others."""
    given = {name: table for name, table in tables.items() if table is not None}
    return {name: by_storage(one, _refused, _whole, name) for name, one in given.items()}


def _refused(table: Any, name: str) -> RowSource:
    raise TypeError(
        f"{name} must lie in the same parts as the other tables, of which some lie in parts. Got "
        f"{type(table).__name__}: give a column of the same source, or an array or a series of "
        "dask."
    )


@contextmanager
def noting_guesses() -> Iterator[list[str]]:
    """Give what a report says of types that nobody declared, of all tables that are read within."""
    found: list[str] = []
    with within(guesses=found):
        yield found
