"""Checks of data and bounds that all estimators share; messages never show a value of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

__all__ = ["as_bounds", "check_range", "check_unpaid_arguments", "validated"]

_LARGEST = 1e100  # squares and sums of more rows than fit in memory stay finite
_SMALLEST = np.finfo(np.float64).tiny
# scikit-learn's messages that quote the data, and what is said instead
_QUOTING = {
    "could not convert": (
        "{name} needs numbers, got text that is not a number. Encode categories first, with public "
        "categories: for example OneHotEncoder(categories=...)."
    ),
    "Complex data not supported": (
        "Complex data not supported by {name}. Give the real and the imaginary part as two columns."
    ),
    "Expected 2D array, got": (
        "Expected 2D array, got an array with fewer dimensions in {name}. Reshape your data with "
        "X.reshape(-1, 1) if it has one feature, or X.reshape(1, -1) if it is one sample."
    ),
}


def check_unpaid_arguments(estimator: Any, arguments: dict[str, Any]) -> None:
    """Refuse what fit cannot take, sample weights above all."""
    if "sample_weight" in arguments:
        raise TypeError(
            f"{type(estimator).__name__}.fit does not support 'sample_weight': a record's weight "
            "multiplies what it can change, and no sensitivity with weights is proven yet. Fit "
            "without weights."
        )
    if arguments:
        names = ", ".join(repr(name) for name in arguments)
        raise TypeError(f"{type(estimator).__name__}.fit got unexpected arguments: {names}.")


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """Call scikit-learn's ``validate_data`` and take values of the data out of its messages."""
    problem: ValueError | TypeError
    try:
        return validate_data(estimator, *data, **options)
    except (ValueError, TypeError) as error:
        text = next((new for old, new in _QUOTING.items() if old in str(error)), None)
        if text is None:
            raise
        problem = type(error)(text.format(name=type(estimator).__name__))
    raise problem  # outside the handler, so that the quoting error is not attached to it


def check_range(values: np.ndarray, name: str, estimator: Any) -> None:
    """Refuse values whose sums would overflow, or that have lost their digits."""
    for column in np.atleast_2d(values.T):  # one at a time: no temporary of the size of X
        magnitude = np.abs(column)
        if float(magnitude.max()) > _LARGEST:
            raise ValueError(
                f"Input {name} of {type(estimator).__name__} contains values beyond "
                f"{_LARGEST:g} in magnitude, which sums would not survive. Rescale {name}."
            )
        if np.any((magnitude > 0) & (magnitude < _smallest(values.dtype))):
            raise ValueError(
                f"Input {name} of {type(estimator).__name__} contains subnormal values (not zero, "
                f"but below {_smallest(values.dtype):.3g}), which have lost their digits. Rescale "
                f"{name}, or set them to zero."
            )


def _smallest(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).tiny)


def _shape(bounds: Any) -> str:
    try:
        return f"shapes {[np.shape(end) for end in bounds]}"
    except (TypeError, ValueError):
        return f"an object of type {type(bounds).__name__}"


def as_bounds(bounds: Any, n_columns: int, name: str, estimator: Any) -> np.ndarray:
    """Return (low, high), of shape (2, n_columns), infinite where no bound is given."""
    if bounds is None:
        return np.tile([[-np.inf], [np.inf]], n_columns)
    owner = type(estimator).__name__
    expected = (
        f"The {name!r} parameter of {owner} must be a pair (low, high) of numbers or of arrays of "
        f"shape ({n_columns},), public and with low < high"
    )
    try:
        low, high = bounds
        low = np.broadcast_to(np.asarray(low, dtype=np.float64), n_columns)
        high = np.broadcast_to(np.asarray(high, dtype=np.float64), n_columns)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}. Got {_shape(bounds)}.") from None
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError(f"{expected}. Got NaN; use -inf and inf where there is no public bound.")
    if not (low < high).all():
        column = int(np.argmin(low < high))
        raise ValueError(
            f"{expected}. Got low={low[column]:g}, high={high[column]:g} in column {column}: check "
            "whether they are swapped."
        )
    if (
        np.abs(np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])).max(initial=0.0)
        > _LARGEST
        or (high - low).min() < _SMALLEST / 1e-16
    ):
        raise ValueError(f"{expected}, within ±{_LARGEST:g} and not closer than 1e-290.")
    return np.stack([low, high])
