"""Columns of categories: numbered, and named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.cells import is_missing
from skdpnoise.data.fitted_kinds import kind_of_labels
from skdpnoise.data.kinds import Kind
from skdpnoise.data.tables import Kinds
from skdpnoise.queries.categories import Label, label_of

_PLAIN = (str, int, bool, float)  # whose values are compared without code of their own


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
