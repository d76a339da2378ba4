"""Checks of the data of a search; no message shows a value, and no warning depends on one."""

from __future__ import annotations

import sys
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skdpnoise.compose.columns import read_features
from skdpnoise.estimators.seal import silence, without_values

_DOUBLE = 8  # bytes
_FEWEST = 4  # rows: two to fit, one to score, one to learn the units of the target
_KINDS = {"O", "U", "S", "T", "b", "i", "u", "f"}


def checked_data(
    owner: str, X: Any, y: Any, *, classifier: bool
) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
    """Return X, y as an array, and the public labels of a classifier."""
    if X is None:
        raise ValueError(f"{owner}.fit needs the features X, got None.")
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    for name, data in (("X", X), ("y", y)):
        _check_container(owner, name, data)
    rows = read_features(owner, X)
    X, y = without_values(
        lambda: indexable(rows, y),
        f"{owner}.fit needs X of shape (n_samples, n_features) and y of shape (n_samples,), got an "
        "object that has no rows.",
    )
    y = _as_vector(owner, y)
    if len(y) < _FEWEST:
        raise ValueError(
            f"Found array with {len(y)} sample(s) while a minimum of {_FEWEST} is required by "
            f"{owner}."
        )
    if not classifier:
        return X, _as_numbers(owner, y), None
    return X, y, _labels(owner, y)


def _check_container(owner: str, name: str, data: Any) -> None:
    """Refuse containers in which values are hidden or missing."""
    if isinstance(data, np.ma.MaskedArray):
        raise ValueError(
            f"{owner}.fit does not take masked arrays: hidden values would be used as if they were "
            f"not. Got a masked {name}: fill it with a public value, {name}.filled(...)."
        )
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.DataFrame | pandas.Series):
        return
    dtypes = [data.dtype] if isinstance(data, pandas.Series) else list(data.dtypes)
    if any(isinstance(dtype, pandas.SparseDtype) for dtype in dtypes):
        raise ValueError(
            f"{owner}.fit does not take sparse columns. Got a sparse {name}: make it dense, "
            f"{name}.sparse.to_dense()."
        )


def _as_vector(owner: str, y: Any) -> NDArray[Any]:
    """Return y as a vector of labels or numbers none of which is missing."""
    pandas = sys.modules.get("pandas")
    absent = pandas is not None and isinstance(y, pandas.Series) and bool(y.isna().any())
    values = _one_dimensional(owner, y)
    if values.dtype.kind not in _KINDS:
        raise ValueError(
            f"Unknown label type: {owner}.fit needs y of numbers, text or booleans, got dtype "
            f"{values.dtype}."
        )
    kinds = {_kind(value) for value in values} if values.dtype.kind == "O" else set()
    if absent or "missing" in kinds:
        raise ValueError(
            f"{owner}.fit needs a complete y, got missing values (None, NaN or NA). Leave out rows "
            "without a target, if which they are is public, or give them a label of their own."
        )
    if len(kinds) > 1 or "unknown" in kinds:
        raise ValueError(
            f"Unknown label type: {owner}.fit needs y of one kind, all text or all numbers. "
            "Convert it, for example by y.astype(str)."
        )
    if kinds == {"number"}:
        values = np.array(values.tolist())
    if values.dtype.kind == "f" and values.dtype.itemsize > _DOUBLE:
        with silence():  # of values beyond double precision, which are refused below
            values = values.astype(np.float64)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "infinity"
        raise ValueError(f"Input y contains {what}; {owner}.fit needs a finite y.")
    return values


def _one_dimensional(owner: str, y: Any) -> NDArray[Any]:
    """Return y as an array of one dimension; the message of a failure shows no value."""
    shape: tuple[int, ...] | str = "that differs between rows"
    kind: str = ""
    with suppress(TypeError, ValueError):
        shape, kind = np.shape(y), np.asarray(y).dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported by {owner}: y must be labels or numbers.")
    try:
        values: NDArray[Any] = column_or_1d(y, warn=True)  # of a column vector
    except (TypeError, ValueError):
        pass
    else:
        return values
    raise ValueError(
        f"y should be a 1d array, got an array of shape {shape} instead: {owner}.fit needs one "
        "target or label for each row."
    )


def _kind(value: Any) -> str:
    """Return what an element of an array of objects is."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, Real | np.bool):
        return "number" if value == value else "missing"
    pandas = sys.modules.get("pandas")
    absent = (None,) if pandas is None else (None, pandas.NA, pandas.NaT)
    return "missing" if any(value is nothing for nothing in absent) else "unknown"


def _as_numbers(owner: str, y: NDArray[Any]) -> NDArray[np.float64]:
    """Return a target as numbers; the message of a failure does not show it."""
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"Unknown label type: {owner} needs y of numbers for a regressor, got text, or integers "
        "that double precision cannot hold."
    )


def _labels(owner: str, y: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted labels, which are public."""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError(
            f"Unknown label type: continuous. {owner} searches for a classifier, which needs "
            "labels. Use a regressor for a target of numbers."
        )
    with silence():  # of labels that are nearly all different
        check_classification_targets(y)
    return np.unique(y)
