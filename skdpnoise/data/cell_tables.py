"""Tables of any types, checked by declared types and read column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from skdpnoise._utils.silence import silence
from skdpnoise.data.cells import Contents, cells_of, contents_of, together
from skdpnoise.data.columns import by_declared_type, is_polars, objects_of, read_once
from skdpnoise.data.computed import is_computed
from skdpnoise.data.fitted_kinds import as_fitted, kinds_in
from skdpnoise.data.kinds import Kind
from skdpnoise.data.partitions import Tables
from skdpnoise.data.reading import Form, agree_on_columns
from skdpnoise.data.redaction import without_values
from skdpnoise.data.schema import Schema
from skdpnoise.data.sources import RowSource
from skdpnoise.data.table import InMemory
from skdpnoise.data.tables import (
    FLAT,
    check_form,
    check_infinite,
    check_types,
    complex_data,
    is_complex,
)

__all__ = ["AnyColumns", "CellSchema", "Expected", "Kinds", "read_any_table"]

Kinds = Sequence[Kind | None]
Expected = Kinds | Callable[[Sequence[Any], Sequence[Kind]], Kinds] | None


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
        facts: dict[str, Any] = {"dates": self.dates, "expected": self.expected}
        X = read_any_table(estimator, tables["X"], reset=True, **facts)
        n_rows, n_columns = X.shape
        if self.finite:
            check_infinite(estimator, map(partial(cells_of, X), range(n_columns)))
        names = getattr(estimator, "feature_names_in_", None)
        columns = [*map(str, X.columns)] if hasattr(X, "columns") else range(n_columns)
        schema = CellSchema(
            n_columns=n_columns,
            n_rows=None,
            names=None if names is None else tuple(names),
            columns=tuple(one if isinstance(one, str) else f"x{one}" for one in columns),
            kinds=estimator._kinds,
            contents=contents_of(X),
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
        return _X, (schema.n_columns,)


def _X(tables: Tables) -> Any:
    return tables["X"]


def read_any_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    dates: bool = False,
    expected: Expected = None,
) -> Any:
    """Return a frame or an array of which no single value decides how the others are read."""
    # `expected` are the kinds of the columns at the fit; or, in a fit, what makes them of names and
    # declared kinds, for what parameters say of the columns.
    owner = type(estimator).__name__
    X = rows_as_array(owner, X) if isinstance(X, list | tuple) else read_once(owner, X)
    X = check_form(owner, "X", X)
    if is_complex(X):
        raise complex_data(owner, "X")
    if len(getattr(X, "shape", ())) != 2:
        raise ValueError(FLAT.format(owner))
    if 0 in X.shape:
        raise ValueError(no_rows(owner, X.shape))
    with silence():
        without_values(
            partial(validate_data, estimator, X, reset=reset, skip_check_array=True),
            f"The names of the columns of X are not those that {owner} was fitted to.",
        )
    kinds = kinds_in(X)
    if callable(expected):
        names = [*map(str, X.columns)] if hasattr(X, "columns") else range(X.shape[1])
        expected = None if kinds is None else expected(names, kinds)
    if reset:
        estimator._kinds = kinds
    why = "as its parameters say (or mend those)" if reset else "as in fit"
    X = as_fitted(owner, X, expected, why=why, values=not is_computed("X", estimator))
    if not dates:  # else whoever reads dates says of each column what it can be
        _refuse_dates(owner, X)
        check_types(owner, "X", X)
    if not (isinstance(X, np.ndarray) or hasattr(X, "iloc") or is_polars(X)):
        return by_declared_type(owner, X)  # which refuses it
    return X


def no_rows(owner: str, shape: tuple[int, ...]) -> str:
    """Return what is said of a table without rows, or without columns."""
    which = ("sample", "feature")[shape.index(0)]
    return (
        f"Found array with 0 {which}(s) (shape={shape}) while a minimum of 1 is required by "
        f"{owner}."
    )


def _refuse_dates(owner: str, X: Any) -> None:
    """Refuse columns of dates, which are no categories, by their names."""
    dates = [k for k, kind in enumerate(kinds_in(X) or ()) if kind.name == "date"]
    if dates:
        name = X.columns[dates[0]] if hasattr(X, "columns") else f"x{dates[0]}"
        raise TypeError(
            f"{owner} takes categories, and column {name!r} of X has dates, of which nearly every "
            "record has its own. Use DPTableVectorizer, which takes dates; or make few categories "
            f"of them first, as in X[{name!r}].dt.year."
        )


def rows_as_array(owner: str, rows: Any) -> NDArray[Any]:
    """Return a list of rows as an array of objects: no value decides how the others are read."""
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in rows}
    if len(lengths) > 1 or -1 in lengths:
        raise ValueError(FLAT.format(owner))
    return objects_of(rows) if lengths else np.empty((0, 0), dtype=object)
