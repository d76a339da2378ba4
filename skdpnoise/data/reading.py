"""Rows are read and checked once, in memory or in partitions, and become a table of leaves.

A *form* says what rows become. It checks whole rows in memory, or each batch where partitions are
scanned for the first time, and converts batches that were checked in every later pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from skdpnoise.data.cells import Contents, contents_of, together
from skdpnoise.data.computed import is_computed, reading
from skdpnoise.data.groups import Groups, check_labels
from skdpnoise.data.kinds import Kind, are_numbers, as_numbers
from skdpnoise.data.missing import check_present
from skdpnoise.data.partitions import Tables
from skdpnoise.data.schema import Schema
from skdpnoise.data.sources import RowSource, as_sources, is_spread
from skdpnoise.data.sparse_tables import read_sparse
from skdpnoise.data.table import InMemory, scan_partitions
from skdpnoise.data.tables import Expected, as_survivable, check_values, read_any_table, read_table
from skdpnoise.data.targets import (
    labels_of,
    labels_of_parts,
    missing_target,
    numbers_of,
    read_labels,
    read_numbers,
)

Leaf = TypeVar("Leaf")
Known = TypeVar("Known", bound=Schema)
_LIMITS = ("largest", "keeps_subnormal", "missing")  # options of read_table


class Form(ABC, Generic[Leaf, Known]):
    """How rows are checked, and converted to leaves."""

    fewest: int  # rows that a fit needs
    in_memory: bool = False  # whether partitions are refused

    @abstractmethod
    def read(self, estimator: Any, tables: Tables) -> tuple[InMemory[Leaf], Any]:
        """Check rows in memory; return them, and what is public of them."""

    def scan(self, estimator: Any, tables: Tables) -> Any:
        """Check one batch of a partition; return what is public of it."""
        return self.read(estimator, tables)[1]

    @abstractmethod
    def agreed(self, estimator: Any, found: list[Any], source: RowSource | None) -> Known:
        """Return what is public of all batches, and tell the estimator."""

    @abstractmethod
    def load(
        self, schema: Known, computed: frozenset[str]
    ) -> tuple[Callable[[Tables], Leaf], tuple[int, ...]]:
        """Return what converts a batch that was checked, and the shape of one row."""


def read(
    estimator: Any,
    form: Form[Leaf, Known],
    public: Callable[[Known, tuple[int, ...], int, int | None], Known] | None = None,
    *,
    groups: Any = None,
    n_jobs: int | None = None,
    **tables: Any,
) -> tuple[Known, Groups[Leaf]]:
    """Check all rows, and tell the estimator; return what is public, and which may be used."""
    # `public` gets a schema, the shape of the rows, and the numbers of those kept, and of groups.
    owner = f"{type(estimator).__name__}.fit"
    most = int(getattr(estimator, "rows_per_group", 1))
    if "y" in tables and tables["y"] is None:
        raise missing_target(type(estimator).__name__)
    if form.in_memory or not any(map(is_spread, map(type, (*tables.values(), groups)))):
        whole, found = form.read(estimator, tables)
        schema = form.agreed(estimator, [found], None)
        whole = replace(whole, n_threads=int(effective_n_jobs(n_jobs)))
        alone = groups is None
        used = (
            Groups(whole, whole.n_rows) if alone else Groups.of_labels(owner, whole, most, groups)
        )
    else:
        sources = as_sources(**tables, groups=groups)
        schema, used = _read_partitions(estimator, form, most, n_jobs, sources)
    if public is not None:
        schema = public(schema, (used.rows.n_rows, *used.rows.tail), used.n_kept, used.n_groups)
    return schema, used


def _read_partitions(
    estimator: Any,
    form: Form[Leaf, Known],
    most: int,
    n_jobs: int | None,
    sources: dict[str, RowSource],
) -> tuple[Known, Groups[Leaf]]:
    owner = type(estimator).__name__
    computed = frozenset(name for name in ("X", "y") if is_computed(name, estimator))
    scan = _Scan(type(estimator), form, computed)
    rows = scan_partitions(sources, scan, n_jobs)
    batches = [one for facts in rows.rows.facts for one in facts.found]
    if not batches or rows.n_rows < form.fewest:
        shape = (rows.n_rows, *sources["X"].tail)
        raise ValueError(
            f"Found array with {rows.n_rows} sample(s) (shape={shape}) while a minimum of "
            f"{form.fewest} is required by {owner}."
        )
    schema = form.agreed(estimator, batches, sources["X"])
    load, tail = form.load(schema, computed)
    kept: Groups[Any] = Groups.in_partitions(f"{owner}.fit", rows, most)
    return schema, replace(kept, rows=rows.map(load, *tail))


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """Checks some rows by a fresh estimator of the same class: parameters do not travel."""

    kind: type
    form: Form[Any, Any]
    computed: frozenset[str]

    def __call__(self, tables: Tables) -> Any:
        with reading(self.computed):
            found = self.form.scan(object.__new__(self.kind), tables)
        if "groups" in tables:
            check_labels(f"{self.kind.__name__}.fit", tables["groups"])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumns(Form[Any, Schema]):
    """X as an array of float32 or float64, or as a sparse one."""

    options: dict[str, Any] = field(default_factory=dict)  # of read_table
    fewest: int = 2
    sparse: bool = False  # whether sparse rows are taken
    known: dict[Any, Schema] = field(default_factory=dict)  # of frames of floats, by their columns

    def read(self, estimator: Any, tables: Tables) -> tuple[InMemory[Any], Schema]:
        X: Any = tables["X"]
        if self.sparse and issparse(X):
            table = read_sparse(estimator, X)
        else:
            options = self.options | {"ensure_min_samples": self.fewest}
            table = read_table(estimator, X, **options)
        names = getattr(estimator, "feature_names_in_", None)
        n_rows, *tail = table.shape
        schema = Schema(
            n_columns=tail[0],
            n_rows=None,
            names=None if names is None else tuple(names),
            dtype=table.dtype.str,
            sparse=issparse(table),
            row_shape=tuple(tail),
        )
        return InMemory(table, n_rows, schema.row_shape), schema

    def scan(self, estimator: Any, tables: Tables) -> Schema:
        X = tables["X"]
        columns = _columns_of_floats(X)
        schema = self.known.get(columns)
        if schema is not None:  # all but the values was checked in rows like these
            if not is_computed("X", estimator):
                owner, limits = type(estimator).__name__, _limits_of(self.options)
                check_values(owner, "X", as_numbers(X, schema.dtype), **limits)
            return schema
        schema = replace(self, fewest=1).read(estimator, tables)[1]
        if columns is not None:
            self.known[columns] = schema
        return schema

    def agreed(self, estimator: Any, found: list[Schema], source: RowSource | None) -> Schema:
        first = agree_on_columns(estimator, found)
        return replace(first, dtype=np.result_type(*{one.dtype for one in found}).str)

    def load(
        self, schema: Schema, computed: frozenset[str]
    ) -> tuple[Callable[[Tables], Any], tuple[int, ...]]:
        limits = _limits_of(self.options) if "X" in computed else None
        return partial(_array_of, schema.dtype, limits), (schema.n_columns,)


@dataclass(frozen=True, slots=True, eq=False)
class CellSchema(Schema):
    """Columns of any types: what they are declared to be, and what those of objects hold."""

    columns: tuple[str, ...] = ()  # their names, or "x0", "x1", ...
    kinds: tuple[Kind, ...] = ()
    contents: tuple[Contents, ...] = ()
    guessed: tuple[str, ...] = ()  # columns whose types were found by reading a file

    @property
    def identity(self) -> tuple[Any, ...]:
        return self.columns, self.names


@dataclass(frozen=True, slots=True, eq=False)
class AnyColumns(Form[Any, CellSchema]):
    """X as a frame or an array of any types."""

    expected: Expected = None
    dates: bool = False  # whether columns of dates are taken
    finite: bool = False  # whether numbers must be finite or missing
    fewest: int = 1

    def read(self, estimator: Any, tables: Tables) -> tuple[InMemory[Any], CellSchema]:
        facts: dict[str, Any] = {"dates": self.dates, "finite": self.finite}
        X = read_any_table(estimator, tables["X"], reset=True, expected=self.expected, **facts)
        n_rows, n_columns = X.shape
        names = getattr(estimator, "feature_names_in_", None)
        columns = [*map(str, X.columns)] if hasattr(X, "columns") else range(n_columns)
        schema = CellSchema(
            n_columns=n_columns,
            n_rows=None,
            names=None if names is None else tuple(names),
            columns=tuple(one if isinstance(one, str) else f"x{one}" for one in columns),
            kinds=estimator._kinds,
            contents=tuple(contents_of(X, place) for place in range(n_columns)),
        )
        return InMemory(X, n_rows, (n_columns,)), schema

    def agreed(
        self, estimator: Any, found: list[CellSchema], source: RowSource | None
    ) -> CellSchema:
        first = agree_on_columns(estimator, found)
        declared = None if source is None else source.kinds
        kinds, contents = [], []
        for k, name in enumerate(first.columns):
            held = [(one.kinds[k], one.contents[k]) for one in found]
            known = None if declared is None else declared[k]
            kind, holds = together(type(estimator).__name__, f"column {name!r} of X", held, known)
            kinds.append(kind)
            contents.append(holds)
        estimator._kinds = tuple(kinds)
        guessed = () if source is None else source.guessed
        facts: dict[str, Any] = {"kinds": tuple(kinds), "contents": tuple(contents)}
        return replace(first, guessed=guessed, **facts)

    def load(
        self, schema: CellSchema, computed: frozenset[str]
    ) -> tuple[Callable[[Tables], Any], tuple[int, ...]]:
        return itemgetter("X"), (schema.n_columns,)


@dataclass(frozen=True, slots=True, eq=False)
class Supervised(Form[dict[str, Any], Schema]):
    """X and y by name: y has labels, or what a function reads as numbers."""

    features: Form[Any, Schema]
    labels: bool = False  # which are public
    numbers: Callable[[Any, Any, int], NDArray[Any]] = read_numbers
    fewest: int = 2
    in_memory: bool = False

    def read(self, estimator: Any, tables: Tables) -> tuple[InMemory[dict[str, Any]], Any]:
        rows, schema = self.features.read(estimator, tables)
        owner, y = type(estimator).__name__, tables["y"]
        if self.labels:
            y = read_labels(owner, y, rows.n_rows)
        else:
            y = self.numbers(estimator, y, rows.n_rows)
        found = schema, np.unique(y) if self.labels else None
        return InMemory({"X": rows.leaf, "y": y}, rows.n_rows, rows.tail), found

    def scan(self, estimator: Any, tables: Tables) -> Any:
        schema = self.features.scan(estimator, tables)
        if not is_computed("y"):
            check_present(type(estimator).__name__, tables["y"])
        owner, y, n_rows = type(estimator).__name__, tables["y"], len(tables["X"])
        if self.labels:
            return schema, np.unique(read_labels(owner, y, n_rows))
        self.numbers(estimator, y, n_rows)
        return schema, None

    def agreed(self, estimator: Any, found: list[Any], source: RowSource | None) -> Schema:
        schema = self.features.agreed(estimator, [one for one, _ in found], source)
        if not self.labels:
            return schema
        labels = labels_of_parts(type(estimator).__name__, [one for _, one in found])
        return replace(schema, classes=labels)

    def load(
        self, schema: Schema, computed: frozenset[str]
    ) -> tuple[Callable[[Tables], dict[str, Any]], tuple[int, ...]]:
        features, tail = self.features.load(schema, computed)
        return partial(_both, features, labels_of if self.labels else numbers_of), tail


def agree_on_columns(estimator: Any, found: list[Known]) -> Known:
    """Tell the estimator the columns of all batches, and return the first; refuse others."""
    first = found[0]
    if any(one.identity != first.identity for one in found):
        raise ValueError(
            f"{type(estimator).__name__} needs the same columns in all parts of the rows."
        )
    estimator.n_features_in_ = first.n_columns
    if first.names is not None:
        estimator.feature_names_in_ = np.array(first.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return first


def _columns_of_floats(X: Any) -> Any:
    """Return the names and the types of a frame of numbers; None of other tables."""
    if not hasattr(X, "iloc") or getattr(X, "ndim", 0) != 2:
        return None
    import pandas as pd

    plain = type(X) is pd.DataFrame and are_numbers(X)
    return (tuple(X.columns), *X.dtypes) if plain else None


def _limits_of(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _LIMITS if name in options}


def _array_of(dtype: str, limits: dict[str, Any] | None, tables: Tables) -> NDArray[Any]:
    """Return X as an array; with limits, values beyond them are replaced."""
    X = tables["X"]
    if hasattr(X, "iloc") and are_numbers(X):
        table: NDArray[Any] = as_numbers(X, dtype)
    else:
        table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if table.dtype != dtype:  # as read_table reads it
        table = check_array(X, dtype=dtype, ensure_all_finite=False)
    return table if limits is None else as_survivable(table, **limits)


def _both(
    features: Callable[[Tables], Any], target: Callable[[Any], NDArray[Any]], tables: Tables
) -> dict[str, Any]:
    return {"X": features(tables), "y": target(tables["y"])}
