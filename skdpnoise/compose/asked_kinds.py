"""The kinds of columns that the parameters of public steps ask for, of the table of the user.

scikit-learn's steps compare any object with their public categories, and say nothing where none is
ever equal. What a composition may ask of its columns follows from parameters alone: a column that
is compared with listed numbers holds numbers, in the fit and later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from skdpnoise.accounting.declared import COLUMNS, declared_below
from skdpnoise.base.compositions import private_estimators
from skdpnoise.base.register import is_private
from skdpnoise.base.steps import all_ours
from skdpnoise.compose._reading import leaves
from skdpnoise.data.columns import by_declared_type, first_read, read_once, without_lists
from skdpnoise.data.computed import DATA, is_computed
from skdpnoise.data.fitted_kinds import FittedColumns, as_fitted, kind_of_labels, kinds_in
from skdpnoise.data.kinds import OBJECTS, Kind
from skdpnoise.data.sources import FOUND_BY_READING, RowSource, by_storage

__all__ = ["read_to_fit", "read_unpaid"]

Kinds = list[Kind | None]
_WHY = "as its parameters say (or mend those)"


def read_unpaid(composition: Any, X: Any, y: Any = None) -> list[str]:
    """Return what a fit reads of its data without paying, public by the word of the user."""
    found = []
    for label, one in private_estimators(composition):
        if hasattr(one, "_vouched"):
            found += declared_below(label, one._vouched())
    columns = getattr(X, "columns", None)
    if columns is not None and all(isinstance(name, str) for name in columns):
        found.append(COLUMNS)
    if any(getattr(table, "guessed", ()) for table in (X, y)):
        found.append(FOUND_BY_READING)
    return found


def read_to_fit(owner: Any, X: Any, compositions: Sequence[Any]) -> tuple[Any, FittedColumns]:
    """Return features as steps read them, and what their columns are from now on."""
    # Of rows in parts these are the columns of the rows that are read first.
    name, values = type(owner).__name__, not is_computed("X", owner)
    read = partial(_read, name, tuple(compositions))
    return by_storage(X, partial(read, values), partial(_read_in_parts, read))


def _read_in_parts(read: Callable[..., Any], rows: RowSource) -> tuple[Any, FittedColumns]:
    return rows, first_read(rows, partial(_columns_of, read))


def _columns_of(read: Callable[..., Any], X: Any) -> FittedColumns:
    columns: FittedColumns = read(True, X)[1]
    return columns


def _read(
    name: str, compositions: Sequence[Any], values: bool, X: Any
) -> tuple[Any, FittedColumns]:
    # Of several compositions, as a search has them, what all ask for.
    X = without_lists(name, read_once(name, X))
    kinds = kinds_in(X)
    if kinds is None or len(getattr(X, "shape", ())) != 2:
        return by_declared_type(name, X), FittedColumns.of(X, kinds)
    names = [*X.columns] if hasattr(X, "columns") else [*range(X.shape[1])]
    each = zip(*(_asked(one, names) for one in compositions), strict=True)
    asked = [ones[0] if len(set(ones)) == 1 else None for ones in each]
    X = as_fitted(name, X, asked, given=kinds, why=_WHY, values=values)
    kept = [_kept(*both) for both in zip(asked, kinds, strict=True)]
    typed = X if all(map(_reads_types, compositions)) else by_declared_type(name, X)
    return typed, FittedColumns.of(X, kept)


def _reads_types(composition: Any) -> bool:
    """Return whether only steps of ours get the columns: they read them by declared type."""
    # As floats, truth values that may be missing would have no bounds any more.
    reading = [one.step for one in leaves(composition, DATA) if "X" in one.passed]
    return all(
        is_private(step) and all_ours(step)
        for step in reading
        if type(step) is not TransformedTargetRegressor
    )


def _kept(asked: Kind | None, kind: Kind) -> Kind:
    """Return the kind that a column must have after the fit: that of the fit, and what it holds."""
    return kind if asked is None or kind != OBJECTS else replace(OBJECTS, holds=asked.name)


def _first(found: Kinds, others: Sequence[Kind | None]) -> Kinds:
    """Return the kinds that are found, and the others where there is none."""
    return [other if kind is None else kind for kind, other in zip(found, others, strict=True)]


def _asked(step: Any, names: list[Any]) -> Kinds:
    """Return the kinds of columns that a step asks for; None of those that may be of any."""
    nothing: Kinds = [None] * len(names)
    if isinstance(step, Pipeline):
        return _all_asked(_taking(step.steps), names)
    if type(step) is FeatureUnion:
        return _all_asked((one for _, one in step.transformer_list), names)
    if type(step) is TransformedTargetRegressor:
        return _asked(step.regressor, names)
    if type(step) is ColumnTransformer:
        return _of_columns(step, names)
    if type(step) in (OneHotEncoder, OrdinalEncoder):
        lists = step.categories
        if isinstance(lists, list | tuple) and len(lists) == len(names):
            return [kind_of_labels(np.asarray(one, dtype=object).tolist()) for one in lists]
    if type(step) is MissingIndicator:
        return [kind_of_labels([step.missing_values])] * len(names)
    return nothing


def _all_asked(steps: Iterable[Any], names: list[Any]) -> Kinds:
    nothing: Kinds = [None] * len(names)
    return reduce(_first, (_asked(step, names) for step in steps), nothing)


def _taking(steps: Sequence[tuple[str, Any]]) -> Iterable[Any]:
    """Yield the steps of a pipeline that take the columns as they are passed."""
    for _, step in steps:
        yield step
        plain = type(step) is FunctionTransformer and step.func is None
        if not (plain or step is None or isinstance(step, str) or type(step) is SimpleImputer):
            return


def _of_columns(columns: ColumnTransformer, names: list[Any]) -> Kinds:
    found: Kinds = [None] * len(names)
    taken = [(step, _places(where, names)) for _, step, where in columns.transformers]
    used = {place for _, places in taken for place in places}
    rest = [place for place in range(len(names)) if place not in used]
    for step, places in [*taken, (columns.remainder, rest)]:
        kinds = _asked(step, [names[k] for k in places])
        for place, kind in zip(places, kinds, strict=True):
            found[place] = kind if found[place] is None else found[place]
    return found


def _places(where: Any, names: list[Any]) -> list[int]:
    numbers = np.arange(len(names))
    try:
        if isinstance(where, slice):
            start, stop = where.start, where.stop
            start = names.index(start) if isinstance(start, str) else start
            stop = names.index(stop) + 1 if isinstance(stop, str) else stop
            return [int(k) for k in numbers[start : stop : where.step]]
        listed: Any = [where] if isinstance(where, str | int | np.integer) else list(where)
        listed = [names.index(one) if isinstance(one, str) else one for one in listed]
        return [int(k) for k in numbers[listed]]
    except (IndexError, TypeError, ValueError):
        return []  # which scikit-learn refuses
