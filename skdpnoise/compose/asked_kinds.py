"""The kinds of columns that the parameters of public steps ask for, of the table of the user.

scikit-learn's steps compare any object with their public categories, and say nothing where none is
ever equal. What a composition may ask of its columns follows from parameters alone: a column that
is compared with listed numbers holds numbers, in the fit and later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from skdpnoise.data.fitted_kinds import kind_of_labels
from skdpnoise.data.kinds import Kind

__all__ = ["asked_of"]

Kinds = list[Kind | None]


def asked_of(compositions: Sequence[Any], names: list[Any]) -> Kinds:
    """Return the kinds of columns that all compositions ask for; None of those that may be any."""
    each = zip(*(_asked(one, names) for one in compositions), strict=True)
    return [ones[0] if len(set(ones)) == 1 else None for ones in each]


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
