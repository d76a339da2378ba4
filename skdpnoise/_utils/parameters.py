"""Parameters are checked before anything is spent, and so is what the machine will bear."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._set_output import _get_output_config

from skdpnoise._utils.checks import complaint, pandas_for
from skdpnoise._utils.numbers import NUMBERS, check_numbers, plain

_LARGEST, _SMALLEST = 1e100, 1e-290
# The largest contribution of a record, in grid steps: 2**24 or 2**16 times what one noise scale is
# of it (``mechanisms.calibrate``), with room for how the budget is shared.
_STEPS, _STEPS_PER_EPSILON = 2.0**26, 2.0**18
_SUM = 2.0**62
_MOST_ROWS = 2**30  # of which squares of row integers sum to less than 2**63
# Rounding to grid steps of 2**-52 noise scales may cost so much of ε for every column.
_EPSILON_PER_COLUMN = 1e-9


def check_parameters(estimator: Any) -> None:
    check_numbers(estimator)  # first: intervals cannot hold every kind of number
    BaseEstimator._validate_params(estimator)
    # Before the charge: scikit-learn misses the library only when a transform returns.
    output = _get_output_config("transform", estimator)["dense"]
    if output == "default" or not hasattr(estimator, "transform"):
        return
    asked = f"{_name(estimator)}.set_output(transform={output!r})"
    if output == "pandas":
        pandas_for(asked)
    elif find_spec(output) is None:
        raise ImportError(f"{asked} needs {output}, which is not installed: pip install {output}")


def check_within(estimator: Any, name: str, low: float, high: float) -> None:
    """Refuse a number beyond what double precision bears; other kinds of values pass."""
    value = getattr(estimator, name)
    if type(value) in NUMBERS and not low <= plain(value) <= high:
        must, remedy = f"be between {low:g} and {high:g}", "Choose other units."
        raise ValueError(complaint(_name(estimator), name, must, repr(value), remedy))


def check_size(estimator: Any, n_rows: int, n_columns: int) -> None:
    """Refuse an ε that is too large for 64-bit sums of the rows, or too small for the columns."""
    if n_rows > _MOST_ROWS:
        raise ValueError(
            f"{_name(estimator)}.fit takes at most {_MOST_ROWS} rows, for sums of their integers "
            f"to stay within 64 bits. Got {n_rows}: fit to a part of them."
        )
    epsilon = float(estimator.epsilon)
    steps = max(_STEPS, _STEPS_PER_EPSILON * epsilon)
    if n_rows * steps > _SUM:
        raise ValueError(
            f"The 'epsilon' parameter of {_name(estimator)} is too large for {n_rows} rows: sums "
            f"of their integers would leave 64 bits. Got {epsilon:g}; use at most "
            f"{_SUM / (n_rows * _STEPS_PER_EPSILON):.3g}."
        )
    least = _EPSILON_PER_COLUMN * (10.0 + n_columns) * int(estimator.rows_per_group)
    if epsilon < least:
        raise ValueError(
            f"The 'epsilon' parameter of {_name(estimator)} is too small for {n_columns} columns "
            f"and rows_per_group={estimator.rows_per_group}: the rounding of sums would cost more. "
            f"Got {epsilon:g}; use at least {least:.3g}."
        )


def check_memory(owner: str, n_bytes: float, reason: str, remedy: str) -> None:
    try:
        available = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this platform
        return
    if n_bytes > available:
        raise MemoryError(
            f"{owner} would need about {n_bytes / 2**30:.3g} GiB of memory for {reason}, and this "
            f"machine has {available / 2**30:.3g} GiB. {remedy}"
        )


def number_pair(
    estimator: Any, name: str, expected: str, least: float = -_LARGEST, most: float = _LARGEST
) -> tuple[float, float]:
    """Return a parameter that is a pair of numbers, the larger one last, or say what is wrong."""
    value = getattr(estimator, name)
    if isinstance(value, tuple | list) and len(value) == 2:
        ends = [float(end) for end in value if type(end) in NUMBERS and least <= plain(end) <= most]
        if len(ends) == 2 and ends[0] < ends[1]:
            return ends[0], ends[1]
    raise ValueError(complaint(_name(estimator), name, f"be {expected}", repr(value)))


def number_vector(owner: str, name: str, values: Any, expected: str) -> NDArray[np.float64]:
    """Return a parameter that is a sequence of numbers as a float array of any shape."""
    array = _doubles(values)
    if array is None:
        got = f"{_shapes([values])} that are no numbers"
        raise ValueError(complaint(owner, name, f"be {expected}", got))
    return array


def as_bounds(bounds: Any, n_columns: int, name: str, estimator: Any) -> NDArray[np.float64]:
    """Return (low, high), of shape (2, n_columns), infinite where no bound is given."""
    if bounds is None:
        return np.tile([[-np.inf], [np.inf]], n_columns)
    expected = (
        f"The {name!r} parameter of {_name(estimator)} must be a pair (low, high) of numbers or of "
        f"arrays of shape ({n_columns},), or a dict of pairs of numbers by the names of columns, "
        "public and with low < high"
    )
    ends = _ends(bounds, n_columns)
    if isinstance(bounds, dict):
        ends = _ends_by_name(bounds, getattr(estimator, "feature_names_in_", None), expected)
    if ends is None:
        raise ValueError(f"{expected}. Got {_shapes(bounds)}.")
    if np.isnan(ends).any():
        raise ValueError(f"{expected}. Got NaN; use -inf and inf where there is no public bound.")
    low, high = ends
    if not (low < high).all():
        column = int(np.argmin(low < high))
        raise ValueError(
            f"{expected}. Got low={low[column]:g}, high={high[column]:g} in column {column}: check "
            "whether they are swapped."
        )
    with np.errstate(over="ignore"):
        narrowest = float((high - low).min())
    largest = np.abs(ends[np.isfinite(ends)]).max(initial=0.0)
    if largest > _LARGEST or narrowest < _SMALLEST:
        raise ValueError(f"{expected}, within ±{_LARGEST:g} and not closer than {_SMALLEST:g}.")
    return ends


def _ends(bounds: Any, n_columns: int) -> NDArray[np.float64] | None:
    """Return both ends of bounds, one number for each column; None if they are nothing like it."""
    try:
        low, high = map(_doubles, bounds)
        if low is None or high is None or isinstance(bounds, np.ma.MaskedArray):
            return None
        return np.stack([np.broadcast_to(end, n_columns) for end in (low, high)])
    except (TypeError, ValueError):
        return None


def _ends_by_name(
    bounds: dict[Any, Any], names: Sequence[str] | None, expected: str
) -> NDArray[np.float64]:
    """Return both ends of the bounds of each column, infinite where a name is not given."""
    if names is None:
        raise ValueError(
            f"{expected}. Got names, and none are known of X: fit to a frame whose columns have "
            "text as names, or give bounds for all columns in their order."
        )
    unknown = [name for name in bounds if not isinstance(name, str) or name not in names]
    if unknown:
        shown = f"{unknown[0]!r}" if isinstance(unknown[0], str) else type(unknown[0]).__name__
        raise ValueError(f"{expected}. Got {shown}, which is not the name of a column of X.")
    ends = np.full((2, len(names)), [[-np.inf], [np.inf]])
    for place, name in enumerate(names):
        if name in bounds:
            pair = _ends(bounds[name], 1)
            if pair is None:
                raise ValueError(f"{expected}. Got {_shapes(bounds[name])} for column {name!r}.")
            ends[:, place] = pair[:, 0]
    return ends


def _doubles(values: Any) -> NDArray[np.float64] | None:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        return None
    masked = isinstance(values, np.ma.MaskedArray)
    return None if masked or array.dtype.kind not in "iuf" else array.astype(np.float64)


def _shapes(bounds: Any) -> str:
    try:
        return f"shapes {[np.shape(end) for end in bounds]}"
    except (TypeError, ValueError):
        return f"an object of type {type(bounds).__name__}"


def _name(estimator: Any) -> str:
    return type(estimator).__name__
