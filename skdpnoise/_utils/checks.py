"""Checks of the parameters of functions and records, in scikit-learn's wording.

Its own ``check_scalar`` lets NaN pass, and truth values as integers; what ``validate_params``
decorates is not checked inside scikit-learn's functions, which switch such checks off.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection
from importlib import import_module
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.shared_texts import shared_texts

Adjacency = Literal["replace_one", "add_remove"]
"""The neighbouring relation: one record is replaced, or there is one more or fewer."""

_ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)


def complaint(owner: str, name: str, must: str, got: str, remedy: str = "") -> str:
    """Return the text of an error: how a parameter must be, its value, and what to do."""
    return f"The {name!r} parameter of {owner} must {must}. Got {got} instead. {remedy}".rstrip()


def with_type(value: object) -> str:
    return f"{value!r} of type {type(value).__name__}"


@shared_texts
def check_real(
    owner: str,
    name: str,
    value: object,
    *,
    low: float = 0.0,
    high: float = math.inf,
    low_closed: bool = False,
    high_closed: bool = False,
) -> float:
    """Return ``value`` as a float of an interval, or raise an error; booleans are no numbers.

    Parameters
    ----------
    %(checks: owner, name, value)s
    low : float, default=0.0
        Lower end of the interval.
    high : float, default=inf
        Upper end.
    low_closed, high_closed : bool, default=False
        Whether each end belongs to the interval.

    Examples
    --------
    >>> check_real("PrivacyGuarantee", "epsilon", 1)
    1.0
    """
    left, right = "[" if low_closed else "(", "]" if high_closed else ")"
    must = f"be a float in the range {left}{low}, {high}{right}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(complaint(owner, name, must, with_type(value)))
    try:
        number = float(value)
    except OverflowError:  # of an int of more than 308 digits, which is not shown either
        got = "a number beyond double precision"
        raise ValueError(complaint(owner, name, must, got)) from None
    above = number >= low if low_closed else number > low
    below = number <= high if high_closed else number < high
    if not (above and below):
        raise ValueError(complaint(owner, name, must, repr(value)))
    return number


@shared_texts
def check_count(
    owner: str, name: str, value: object, *, low: int = 1, high: float = math.inf
) -> int:
    """Return ``value`` as an int from ``low`` to ``high``, or raise an error that states them.

    Parameters
    ----------
    %(checks: owner, name, value)s
    low : int, default=1
        Smallest count.
    high : float, default=inf
        Largest count.

    Examples
    --------
    >>> check_count("calibrate", "n_releases", 3)
    3
    """
    end = f"{high}]" if high < math.inf else "inf)"
    must = f"be an int in the range [{low}, {end}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(complaint(owner, name, must, with_type(value)))
    if not low <= int(value) <= high:
        raise ValueError(complaint(owner, name, must, repr(value)))
    return int(value)


@shared_texts
def check_adjacency(owner: str, value: object) -> Adjacency:
    """Return ``value`` if it names a neighbouring relation, or raise an error that names both.

    Parameters
    ----------
    %(checks: owner, value)s

    Examples
    --------
    >>> check_adjacency("PrivacyGuarantee", "add_remove")
    'add_remove'
    """
    check_option(owner, "adjacency", value, _ADJACENCIES)
    return cast(Adjacency, value)


def check_option(owner: str, name: str, value: object, options: Collection[str]) -> None:
    must = f"be a str among {list(options)}"
    # Exact classes: a subclass of str may equal whatever it is compared with.
    if type(value) not in (str, np.str_):
        raise TypeError(complaint(owner, name, must, with_type(value)))
    if value not in options:
        raise ValueError(complaint(owner, name, must, repr(value)))


def check_array(
    owner: str,
    name: str,
    values: ArrayLike,
    *shapes: tuple[int, ...],
    sign: Literal["", "positive", "non-negative"] = "",
    remedy: str = "",
) -> NDArray[np.float64]:
    """Return finite numbers of one of the shapes, or else any vector, as a new array of doubles."""
    array = np.asarray(values)
    shown = " or ".join(map(str, dict.fromkeys(shapes))) or "(n,) with n > 0"
    kind = f"{sign} finite".lstrip()
    must = f"be an array of {kind} numbers of shape {shown}"
    if array.dtype.kind not in "iuf":
        raise TypeError(complaint(owner, name, must, f"an array of dtype {array.dtype}"))
    if np.ma.isMaskedArray(values):
        raise TypeError(complaint(owner, name, must, "a masked array, whose mask would be lost,"))
    if array.shape not in shapes and (shapes or array.ndim != 1 or array.size == 0):
        raise ValueError(complaint(owner, name, must, f"shape {array.shape}"))
    array = array.astype(np.float64)
    least = {"": -math.inf, "positive": math.ulp(0.0), "non-negative": 0.0}[sign]
    if not (np.isfinite(array) & (array >= least)).all():
        raise ValueError(f"The {name!r} parameter of {owner} must {must}. {remedy}".rstrip())
    return array


def check_order(owner: str, name: str, low: ArrayLike, high: ArrayLike) -> None:
    if not np.less(low, high).all():
        must = "must have low < high in every entry: check whether the two are swapped."
        raise ValueError(f"The {name!r} parameter of {owner} {must}")


def needed(library: str, what: str, extra: str) -> Any:
    """Return an optional library, or say which extra installs it."""
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{what} needs {library}, which is not installed. Install it with: "
            f'pip install "skdpnoise[{extra}]"'
        ) from error


def pandas_for(what: str) -> Any:
    return needed("pandas", what, "pandas")


def check_type(owner: str, name: str, value: object, *kinds: type) -> None:
    """Refuse an object whose class is none of these: a subclass may do anything."""
    if type(value) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        given = f"an object of type {type(value).__name__}"
        raise TypeError(complaint(owner, name, f"be of type {names}", given))
