"""Columns that share one unit of norm in every row: which they are, by number or by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

NO_GROUP = -1


def numbered_groups(estimator: Any, n_columns: int) -> np.ndarray:
    """Return the number of every column's group, -1 without one; refuse what is no partition."""
    numbers, groups = np.full(n_columns, NO_GROUP), getattr(estimator, "column_groups", None)
    if groups is None:
        return numbers
    start = (
        f"The 'column_groups' parameter of {type(estimator).__name__} must be a list of lists of "
        "columns, or a dict of them, each column a number or the name of a column, none twice. "
    )
    named = getattr(estimator, "feature_names_in_", None)
    places = {} if named is None else {name: place for place, name in enumerate(named)}
    if _is_one(groups):
        raise ValueError(f"{start}Got {type(groups).__name__} instead.")
    for number, group in enumerate(groups.values() if isinstance(groups, Mapping) else groups):
        if _is_one(group):
            raise ValueError(f"{start}Got {type(group).__name__} as group {number}.")
        columns = [*group]
        if not columns:
            raise ValueError(f"{start}Group {number} is empty.")
        for column in columns:
            place = _place(column, places, n_columns)
            if place is None:
                raise ValueError(f"{start}Got {column!r}, which is not a column of X.")
            if numbers[place] != NO_GROUP:
                raise ValueError(f"{start}Got {column!r} twice.")
            numbers[place] = number
    return numbers


def _is_one(value: Any) -> bool:
    """Return True if a value has no members."""
    alone = isinstance(value, str | bytes) or getattr(value, "shape", None) == ()
    return alone or not isinstance(value, Iterable)


def _place(column: Any, places: dict[Any, int], n_columns: int) -> int | None:
    if isinstance(column, str):
        return places.get(column)
    if isinstance(column, Integral) and not isinstance(column, bool | np.bool_):
        return int(column) if 0 <= int(column) < n_columns else None
    return None
