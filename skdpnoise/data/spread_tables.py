"""Rows that lie in parts, looked at for the first time: checked as whole tables are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from skdpnoise.data.computed import is_computed, reading
from skdpnoise.data.groups import check_labels
from skdpnoise.data.kinds import are_numbers, as_numbers
from skdpnoise.data.rows import as_sources, is_spread
from skdpnoise.data.table import Partitioned, survey
from skdpnoise.data.tables import read_table, surviving, within_limits
from skdpnoise.data.targets import check_present

__all__ = ["Columns", "Survey", "is_spread", "read_spread"]

_LIMITS = ("largest", "keeps_subnormal", "missing")  # options of read_table


@dataclass(frozen=True, slots=True)
class Columns:
    """What is public of the columns of a table in parts."""

    n_columns: int
    names: tuple[str, ...] | None
    dtype: Any  # of the numbers, float32 or float64


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Rows that were looked at: what they are, and how they become arrays."""

    rows: Partitioned[dict[str, Any]]  # tables by name
    columns: Columns
    found: list[Any]  # what a check of the target returned, of all batches
    survives: bool  # whether values that a step computed are replaced, and not refused
    limits: dict[str, Any]  # by which they are: options of `surviving`

    @property
    def table(self) -> Callable[[dict[str, Any]], NDArray[Any]]:
        """What makes an array of X."""
        return partial(array_of, self.columns.dtype, self.limits if self.survives else None)


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """Checks some rows, by a fresh estimator of the same class: parameters do not travel."""

    kind: type
    options: dict[str, Any]
    target: Callable[[Any, int], Any] | None
    computed: frozenset[str] = field(default_factory=frozenset)
    known: dict[Any, Columns] = field(default_factory=dict)  # of frames of floats, by their form

    def __call__(self, tables: dict[str, Any]) -> tuple[Columns, Any]:
        """Return what the rows are; refuse them as a whole table of such rows would be."""
        estimator = self.kind()
        with reading(self.computed):
            columns = self._columns(estimator, tables["X"])
            if self.target is not None and "y" not in self.computed:
                check_present(self.kind.__name__, tables["y"])
            found = None if self.target is None else self.target(tables["y"], len(tables["X"]))
        if "groups" in tables:
            check_labels(f"{self.kind.__name__}.fit", tables["groups"])
        return columns, found

    def _columns(self, estimator: Any, X: Any) -> Columns:
        form = _form(X)
        columns = self.known.get(form)
        if columns is not None:  # all but the values was checked in rows like these
            within_limits(estimator, as_numbers(X, columns.dtype), **limits_of(self.options))
            return columns
        table = read_table(estimator, X, **self.options)
        names = getattr(estimator, "feature_names_in_", None)
        columns = Columns(table.shape[1], None if names is None else tuple(names), table.dtype.str)
        if form is not None:
            self.known[form] = columns
        return columns


def _form(X: Any) -> Any:
    """Return the names and the types of a frame of numbers; None of other tables."""
    if not hasattr(X, "iloc") or getattr(X, "ndim", 0) != 2:
        return None
    import pandas as pd

    plain = type(X) is pd.DataFrame and are_numbers(X)
    return (tuple(X.columns), *X.dtypes) if plain else None


def limits_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of :func:`read_table` that limit values."""
    return {name: options[name] for name in _LIMITS if name in options}


def read_spread(
    estimator: Any,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    target: Callable[[Any, int], Any] | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Survey:
    """Look at all rows once, and set what an estimator knows of its columns."""
    fewest = options.pop("ensure_min_samples", 1)
    names = ("X", "y") if target is not None else ("X",)
    given = {name: table for name, table in (("X", X), ("y", y)) if name in names}
    if target is not None and y is None:
        target(None, 0)  # refuses it
    sources = as_sources(**given, groups=groups)
    computed = frozenset(name for name in names if is_computed(name, estimator))
    check = _Check(type(estimator), options, target, computed)
    runner = sources["X"].reader.runner(sources, n_jobs)
    rows = survey(runner, check, list(sources))
    found = [one for facts in rows.rows.facts for one in facts.found]
    if not found or len(rows) < fewest:
        shape = (len(rows), *sources["X"].tail)
        raise ValueError(
            f"Found array with {len(rows)} sample(s) (shape={shape}) while a minimum of "
            f"{fewest} is required by {type(estimator).__name__}."
        )
    return Survey(
        rows,
        _agreed(estimator, [one for one, _ in found]),
        [one for _, one in found],
        "X" in computed,
        limits_of(options),
    )


def array_of(dtype: str, limits: dict[str, Any] | None, tables: dict[str, Any]) -> NDArray[Any]:
    """Return X as an array; with limits, values beyond them are replaced."""
    X = tables["X"]
    if hasattr(X, "iloc") and are_numbers(X):
        table: NDArray[Any] = as_numbers(X, dtype)
    else:
        table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if table.dtype != dtype:  # as read_table reads it
        table = check_array(X, dtype=dtype, ensure_all_finite=False)
    return table if limits is None else surviving(table, **limits)


def _agreed(estimator: Any, columns: list[Columns]) -> Columns:
    """Return what all batches say of the columns, and tell the estimator."""
    first = columns[0]
    if any((one.n_columns, one.names) != (first.n_columns, first.names) for one in columns):
        raise ValueError(
            f"{type(estimator).__name__} needs the same columns in all parts of the rows."
        )
    estimator.n_features_in_ = first.n_columns
    if first.names is not None:
        estimator.feature_names_in_ = np.array(first.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    dtype = np.result_type(*{one.dtype for one in columns})
    return Columns(first.n_columns, first.names, dtype.str)
