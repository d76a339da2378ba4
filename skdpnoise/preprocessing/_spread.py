"""Tables of any types, whole or in parts: looked at once, and then read column by column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from skdpnoise._utils.parameters import check_size
from skdpnoise.data.cells import Contents, cells_of, contents_of, together
from skdpnoise.data.computed import is_computed, reading
from skdpnoise.data.groups import GroupedRows, SpreadRows, check_labels
from skdpnoise.data.kinds import Kind
from skdpnoise.data.parts import between
from skdpnoise.data.rows import RowSource, as_sources, is_spread
from skdpnoise.data.table import Partitioned, survey
from skdpnoise.data.tables import check_infinite
from skdpnoise.preprocessing._labels import Expected, no_rows, read_any_table, taken
from skdpnoise.sampling import RandomWords

__all__ = ["Columns", "SpreadTable", "WholeTable", "read_cells"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Declared kinds of columns, and what those of objects hold."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    contents: tuple[Contents, ...]
    guessed: tuple[str, ...] = ()  # those whose types were found by reading

    @classmethod
    def of(cls, X: Any, kinds: tuple[Kind, ...]) -> Columns:
        """Return what is known of the columns of a table."""
        names = [*map(str, X.columns)] if hasattr(X, "columns") else range(X.shape[1])
        named = tuple(name if isinstance(name, str) else f"x{name}" for name in names)
        return cls(named, kinds, contents_of(X))


@dataclass(frozen=True, slots=True, eq=False)
class WholeTable:
    """A table in memory."""

    table: Any
    columns: Columns
    rows: GroupedRows

    def kept(self, rng: RandomWords) -> Any:
        """Return the numbers of the rows that are kept."""
        return self.rows.keep(rng, np.arange(self.rows.n_rows))[0]

    def cells(self, kept: Any, place: int) -> Any:
        """Return the cells of one column of the rows that are kept."""
        return taken(cells_of(self.table, place), kept)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadTable:
    """A table in parts after a first look."""

    columns: Columns
    rows: SpreadRows

    def kept(self, rng: RandomWords) -> Partitioned[dict[str, Any]]:
        """Return the rows that are kept, as tables by name."""
        return self.rows.keep(rng)

    def cells(self, rows: Partitioned[dict[str, Any]], place: int) -> Partitioned[Any]:
        """Return the cells of one column of some of the rows."""
        return rows.map(partial(_cells, place))


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """Checks some rows by a fresh estimator of the same class."""

    kind: type
    dates: bool
    finite: bool
    expected: Expected
    computed: frozenset[str]

    def __call__(self, tables: dict[str, Any]) -> tuple[Any, Columns]:
        """Return a table without rows of the same columns, and what is known of them."""
        estimator = self.kind()
        with reading(self.computed):
            options: dict[str, Any] = {"dates": self.dates, "expected": self.expected}
            table = read_any_table(estimator, tables["X"], reset=True, **options)
            if self.finite:
                check_infinite(estimator, map(partial(cells_of, table), range(table.shape[1])))
        if "groups" in tables:
            check_labels(f"{self.kind.__name__}.fit", tables["groups"])
        # which holds none of the rows
        return between(table, 0, 0).copy(), Columns.of(table, estimator._kinds)


def read_cells(
    estimator: Any,
    X: Any,
    groups: Any,
    *,
    dates: bool = False,
    finite: bool = False,
    expected: Expected = None,
) -> WholeTable | SpreadTable:
    """Look at all rows once, and set what an estimator knows of its columns and groups."""
    if not is_spread(X):
        X = read_any_table(estimator, X, reset=True, dates=dates, expected=expected)
        if finite:
            check_infinite(estimator, map(partial(cells_of, X), range(X.shape[1])))
        check_size(estimator, *X.shape)
        columns = Columns.of(X, estimator._kinds)
        return WholeTable(X, columns, estimator._grouped(groups, len(X)))
    sources = as_sources(X=X, groups=groups)
    computed = frozenset({"X"}) if is_computed("X", estimator) else frozenset()
    check = _Check(type(estimator), dates, finite, expected, computed)
    rows = survey(sources["X"].reader.runner(sources, None), check, list(sources))
    found = [one for facts in rows.rows.facts for one in facts.found]
    if not found:
        raise ValueError(no_rows(type(estimator).__name__, (0, *sources["X"].tail)))
    columns = _together(estimator, found, sources["X"])
    check_size(estimator, len(rows), len(columns.names))
    return SpreadTable(columns, estimator._grouped_parts(rows))


def _cells(place: int, tables: dict[str, Any]) -> Any:
    return cells_of(tables["X"], place)


def _together(estimator: Any, found: list[tuple[Any, Columns]], source: RowSource) -> Columns:
    """Return what all parts say of the columns, and tell the estimator."""
    declared = source.kinds
    owner, empty, parts = type(estimator).__name__, found[0][0], [one for _, one in found]
    names = parts[0].names
    if any(one.names != names for one in parts):
        raise ValueError(f"{owner} needs the same columns in all parts of the rows.")
    validate_data(estimator, empty, reset=True, skip_check_array=True)
    kinds, contents = [], []
    for place, name in enumerate(names):
        held = [(one.kinds[place], one.contents[place]) for one in parts]
        known = None if declared is None else declared[place]
        both = together(owner, f"column {name!r} of X", held, known)
        kinds.append(both[0])
        contents.append(both[1])
    estimator._kinds = tuple(kinds)
    return Columns(names, tuple(kinds), tuple(contents), source.guessed)
