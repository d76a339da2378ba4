"""Tables of any types, whole or in parts: looked at once, and then read column by column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdpnoise.compose.charged import is_computed, reading
from skdpnoise.compose.columns import by_declared_type
from skdpnoise.estimators.parameters import check_size
from skdpnoise.estimators.tables import check_infinite
from skdpnoise.preprocessing._labels import Expected, cells_of, read_any_table, taken
from skdpnoise.queries.groups import GroupedRows, SpreadRows, check_labels
from skdpnoise.sampling import RandomWords
from skdpnoise.sources.parts import between
from skdpnoise.sources.rows import as_sources, is_spread
from skdpnoise.sources.spread import Spread, survey

__all__ = ["SpreadTable", "WholeTable", "read_cells"]

_OBJECT = np.dtype(object)


@dataclass(frozen=True, slots=True, eq=False)
class WholeTable:
    """A table in memory."""

    types: Any  # the table
    rows: GroupedRows

    def kept(self, rng: RandomWords) -> Any:
        """Return the numbers of the rows that are kept."""
        return self.rows.keep(rng, np.arange(self.rows.n_rows))[0]

    def cells(self, kept: Any, place: int) -> Any:
        """Return the cells of one column of the rows that are kept."""
        return taken(cells_of(self.types, place), kept)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadTable:
    """A table in parts after a first look."""

    types: Any  # a table without rows, with the names and types that all parts have together
    rows: SpreadRows
    owner: str

    def kept(self, rng: RandomWords) -> Spread[dict[str, Any]]:
        """Return the rows that are kept, as tables by name."""
        return self.rows.keep(rng)

    def cells(self, rows: Spread[dict[str, Any]], place: int) -> Spread[Any]:
        """Return the cells of one column of some of the rows, as they come from a whole table."""
        kinds = list(self.types.dtypes) if hasattr(self.types, "dtypes") else None
        load = partial(_cells, self.owner, place, None if kinds is None else kinds[place])
        return rows.map(load)


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """Checks some rows by a fresh estimator of the same class."""

    kind: type
    dates: bool
    finite: bool
    expected: Expected
    computed: frozenset[str]

    def __call__(self, tables: dict[str, Any]) -> Any:
        """Return a table without rows of the same columns."""
        estimator = self.kind()
        with reading(self.computed):
            options: dict[str, Any] = {"dates": self.dates, "expected": self.expected}
            table = read_any_table(estimator, tables["X"], reset=True, **options)
            if self.finite:
                columns = (cells_of(table, place) for place in range(table.shape[1]))
                check_infinite(estimator, columns)
        if "groups" in tables:
            check_labels(f"{self.kind.__name__}.fit", tables["groups"])
        return between(table, 0, 0).copy()  # which holds none of the rows


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
            check_infinite(estimator, (cells_of(X, place) for place in range(X.shape[1])))
        check_size(estimator, *X.shape)
        return WholeTable(X, estimator._grouped(groups, len(X)))
    sources = as_sources(X=X, groups=groups)
    computed = frozenset({"X"}) if is_computed("X", estimator) else frozenset()
    check = _Check(type(estimator), dates, finite, expected, computed)
    rows = survey(sources["X"].reader.runner(sources, None), check, list(sources))
    owner = type(estimator).__name__
    found = [one for facts in rows.rows.facts for one in facts.found]
    types = _together(owner, found)
    read_any_table(estimator, _with_one_row(types), reset=True, dates=dates)
    check_size(estimator, len(rows), types.shape[1])
    return SpreadTable(types, estimator._grouped_parts(rows), owner)


def _cells(owner: str, place: int, kind: Any, tables: dict[str, Any]) -> Any:
    """Return the cells of a column, of the type that it has in all parts together."""
    table = by_declared_type(owner, tables["X"])
    if kind is not None and table.dtypes.iloc[place] != kind:
        table = table.iloc[:, [place]].astype(kind)
        place = 0
    return cells_of(table, place)


def _together(owner: str, found: list[Any]) -> Any:
    """Return a table without rows of the types that hold the values of all."""
    first = found[0]
    if not hasattr(first, "iloc"):
        if len({(one.shape[1], one.dtype) for one in found}) > 1:
            raise ValueError(f"{owner} needs the same columns and types in all parts of the rows.")
        return first
    import pandas as pd

    if any(list(one.columns) != list(first.columns) for one in found):
        raise ValueError(f"{owner} needs the same columns in all parts of the rows.")
    columns = {}
    for place in range(first.shape[1]):
        kinds = {one.dtypes.iloc[place] for one in found}
        columns[place] = pd.Series([], dtype=_common(kinds))
    table = pd.DataFrame(columns)
    table.columns = first.columns
    return table


def _common(kinds: set[Any]) -> Any:
    """Return a type that holds what columns of several types hold."""
    if len(kinds) == 1:
        return next(iter(kinds))
    numeric = all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds)
    return np.result_type(*kinds) if numeric else _OBJECT


def _with_one_row(types: Any) -> Any:
    """Return a table of one made-up row: numbers of numpy that are 0, and else what is missing."""
    if not hasattr(types, "iloc"):
        return np.zeros((1, types.shape[1]), dtype=types.dtype)
    return types.reindex([0]).astype(
        {name: kind for name, kind in types.dtypes.items() if kind.kind in "fO"}
    )
