"""Numbers among the parameters of an estimator are what they seem once they are doubles."""

from __future__ import annotations

import sys
from collections.abc import Collection
from fractions import Fraction
from inspect import getattr_static
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skdpnoise._utils.checks import complaint, with_type

BUDGET: dict[str, list[Any]] = {
    "epsilon": [Interval(Real, 0, 1e8, closed="right")],  # sums with more would leave 64 bits
    "delta": [Interval(Real, 0, 1, closed="left")],
    "adjacency": [StrOptions({"replace_one", "add_remove"})],
    "ledger": [None, HasMethods("charge")],
    "rows_per_group": [Interval(Integral, 1, 2**31, closed="both")],
    "random_state": ["random_state", np.random.Generator],
}
"""Constraints of the parameters of all that spends a budget."""

JOBS = [
    None,
    Interval(Integral, 1, 2**15, closed="both"),  # Linux numbers no more processes
    Interval(Integral, None, -1, closed="right"),
]
"""Constraints of numbers of threads and processes."""

# Doubles, and what becomes one without a change worth a word; no fractions, no longer floats. Exact
# classes: the number that a subclass is may be another one each time it is asked.
NUMBERS = frozenset(
    {int, float, np.float16, np.float32, np.float64}
    | {np.dtype(code).type for code in np.typecodes["AllInteger"]}
)

# By identity, since a metaclass may call two classes equal.
_PLAIN = frozenset(
    id(kind)
    for kind in (
        *(type(None), bool, int, float, complex, str, bytes, range, slice, Fraction, type),
        *(np.ufunc, np.random.RandomState, np.random.Generator),
        *np.sctypeDict.values(),
    )
)
_OF_PANDAS = ("Index", "RangeIndex", "Series")


def check_grouped(estimator: Any, groups: Any) -> None:
    owner, rows = type(estimator).__name__, estimator.rows_per_group
    if groups is None and rows != 1:
        must, request = "be 1 where fit gets no 'groups'", "set_fit_request(groups=True)"
        remedy = f"Pass groups= to fit; in a pipeline or a search, request them by {request}."
        raise ValueError(complaint(owner, "rows_per_group", must, repr(rows), remedy))


def check_numbers(estimator: Any) -> None:
    """Refuse numbers and texts of other kinds, and truth values where a number is meant."""
    owner = type(estimator).__name__
    for name, value in estimator.get_params(deep=False).items():
        computed = isinstance(getattr_static(type(estimator), name, None), property)
        if name not in vars(estimator) and not computed:
            # Else the default of a class above would be read, such as that there is no ledger.
            raise AttributeError(
                f"{owner} has no attribute {name!r} of its own: its __init__ must store every "
                "parameter. A model pickled by an older version must be made anew."
            )
        if isinstance(value, bool | np.bool_):
            if "boolean" not in estimator._parameter_constraints.get(name, ["boolean"]):
                must = "be a number, not a truth value"
                raise TypeError(complaint(owner, name, must, repr(value)))
        elif isinstance(value, Real) and type(value) not in NUMBERS:
            must, remedy = "be an int or a float", "Pass float(...) of it."
            raise TypeError(complaint(owner, name, must, with_type(value), remedy))
        elif isinstance(value, Real) and not abs(plain(value)) <= 1e300:
            shown = "a longer integer" if isinstance(value, Integral) else repr(value)
            raise ValueError(complaint(owner, name, "be a finite number within ±1e+300", shown))
        elif isinstance(value, str) and type(value) not in (str, np.str_):
            got = f"one of type {type(value).__name__}"
            remedy = "Pass str(...) of it: a subclass may override comparisons."
            raise TypeError(complaint(owner, name, "be a str", got, remedy))


def plain(value: Any) -> int | float:
    """Return a number of Python's own: numpy would compare in the precision of its number."""
    return int(value) if isinstance(value, Integral) else float(value)


def strange_type(value: Any, known: Collection[int] = ()) -> str | None:
    """Return the name of the first type in a value that is not plain data; None if all are."""
    # `known` are the identities of objects that may be in it all the same.
    if id(type(value)) in _PLAIN or isinstance(value, np.dtype) or id(value) in known:
        return None
    inner: Any
    if any(type(value) is kind for kind in (list, tuple, set, frozenset)):
        inner = value
    elif type(value) is dict:
        inner = [*value.keys(), *value.values()]
    elif type(value) is np.ndarray:
        inner = value.ravel() if value.dtype.hasobject else ()
    elif _is_of_pandas(value):
        inner = np.asarray(value) if value.dtype.kind == "O" else ()
    else:
        return type(value).__name__
    return next((found for one in inner if (found := strange_type(one, known))), None)


def _is_of_pandas(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and any(type(value) is getattr(pandas, kind) for kind in _OF_PANDAS)
