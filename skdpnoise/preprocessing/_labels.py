"""Columns of categories: read one value at a time, numbered, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from skdpnoise._utils.redaction import silence, without_values
from skdpnoise.data.cells import is_missing
from skdpnoise.data.columns import by_declared_type, is_polars
from skdpnoise.data.computed import is_computed
from skdpnoise.data.fitted_kinds import as_fitted, kind_of_labels, kinds_in
from skdpnoise.data.kinds import Kind
from skdpnoise.data.lists import read_once
from skdpnoise.data.tables import check_form, check_types, complex_data, is_complex
from skdpnoise.queries.categories import Label, label_of

Kinds = Sequence[Kind | None]
Expected = Kinds | Callable[[Sequence[Any], Sequence[Kind]], Kinds] | None

_PLAIN = (str, int, bool, float)  # whose values are compared without code of their own
FLAT = (
    "Expected 2D array, got an array with fewer dimensions in {}. Reshape your data with "
    "X.reshape(-1, 1) if it has one feature, or X.reshape(1, -1) if it is one sample."
)


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
            lambda: validate_data(estimator, X, reset=reset, skip_check_array=True),
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
    table = np.empty((len(rows), lengths.pop() if lengths else 0), dtype=object)
    for place, row in enumerate(rows):
        table[place] = list(row)
    return table


def taken(cells: Any, kept: NDArray[Any]) -> Any:
    """Return the cells of some rows, in their order; all of them as they are."""
    if len(kept) == len(cells):
        return cells
    return cells[kept] if isinstance(cells, np.ndarray) else [cells[row] for row in kept]


def given_categories(
    estimator: Any, n_columns: int, names: Sequence[str] | None
) -> list[tuple[Any, ...] | None]:
    """Return the public categories of each column, None where they are to be found."""
    given = estimator.categories
    expected = (
        f"The 'categories' parameter of {type(estimator).__name__} must be 'auto', a list of "
        "'auto' or a list of different public categories (text, numbers or truth values) for each "
        "column, or a dict of such by the names of columns"
    )
    if isinstance(given, str):
        return [None] * n_columns
    if isinstance(given, Mapping):
        known = [] if names is None else [*names]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"{expected}. Got a name that is not that of a column of X.")
        given = [given.get(name, "auto") for name in known]
    if len(given) != n_columns:
        raise ValueError(f"{expected}. Got {len(given)} entries for {n_columns} columns.")
    return [None if isinstance(one, str) else checked_categories(one, expected) for one in given]


def kinds_given(given: Any, names: Sequence[Any], kinds: Sequence[Kind]) -> Kinds:
    """Return the kinds of columns that have these categories; None where any kind may be found."""
    if isinstance(given, Mapping):
        given = [given.get(name) for name in names]
    if not isinstance(given, list | tuple) or len(given) != len(kinds):
        return [None] * len(kinds)
    lists = [one if isinstance(one, list | tuple | np.ndarray) else () for one in given]
    return [kind_of_labels(one.tolist() if hasattr(one, "tolist") else one) for one in lists]


def checked_categories(given: Any, expected: str) -> tuple[Any, ...]:
    """Return public categories as plain values, or say what is wrong."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    labels = [label_of(one) for one in listed] if isinstance(listed, list | tuple) else []
    if not labels or None in labels or len(set(labels)) < len(labels):
        raise ValueError(f"{expected}. Got an object of type {type(given).__name__}.")
    truth = [isinstance(one, bool | np.bool_) for one in listed]
    return tuple(bool(one) if true else one for one, true in zip(labels, truth, strict=True))


def numbered(
    column: Iterable[Any], categories: Iterable[Any], other: float, missing: float
) -> NDArray[np.float64]:
    """Return the place of every value among the categories, or the number of what is none."""
    if isinstance(column, np.ndarray):  # of numbers, or dates, of which equal ones are one
        different, places = np.unique(column, return_inverse=True)
        return numbered(different.tolist(), categories, other, missing)[places]
    known = {label_of(one): float(place) for place, one in enumerate(categories)}
    seen: dict[tuple[type, Any], float] = {}
    found = []
    for value in column:
        kind = type(value)
        if kind not in _PLAIN:
            found.append(_number(value, known, other, missing))
            continue
        key = kind, value
        if key not in seen:
            seen[key] = _number(value, known, other, missing)
        found.append(seen[key])
    return np.array(found, dtype=np.float64)


def _number(value: Any, known: Mapping[Label | None, float], other: float, missing: float) -> float:
    return missing if is_missing(value) else known.get(label_of(value), other)


def as_categories(found: Sequence[Any]) -> NDArray[Any]:
    """Return categories as an array, of objects where they are not all numbers or truth values."""
    kinds = {type(one) for one in found}
    if found and (kinds == {bool} or kinds <= {int, float}):
        array = np.asarray(found)
        if array.dtype.kind in "ifb" and array.tolist() == [*found]:
            return array
    objects: NDArray[Any] = np.empty(len(found), dtype=object)
    objects[:] = found
    return objects


def named(category: Any) -> str:
    """Return a category as a part of a name: 1 for 1.0."""
    return str(category if isinstance(category, bool) else label_of(category))


def unique_names(wanted: Iterable[str]) -> NDArray[Any]:
    """Return names of columns, those that occur again with a number: 1 and "1" are different."""
    taken: set[str] = set()
    names = []
    for name in wanted:
        new, number = name, 1
        while new in taken:
            number += 1
            new = f"{name}_{number}"
        taken.add(new)
        names.append(new)
    return np.array(names, dtype=object)
