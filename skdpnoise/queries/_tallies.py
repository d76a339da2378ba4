"""Exact counts of records, and of values in public bins or of public categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.queries._aggregation import as_table

__all__ = ["count_bins", "count_categories", "count_records"]


def count_records(owner: str, records: ArrayLike) -> int:
    """Return how many records there are."""
    if type(records) is int and records >= 0:
        return records  # of any size
    mask = np.asarray(records)
    if mask.dtype.kind == "b" and mask.ndim == 1:
        return int(np.count_nonzero(mask))
    if mask.ndim != 0 or mask.dtype.kind not in "iu":
        raise TypeError(
            f"The 'records' parameter of {owner} must be an int or a one-dimensional array of "
            f"bool. Got an array of dtype {mask.dtype} and shape {mask.shape} instead."
        )
    if int(mask) < 0:
        raise ValueError(
            f"The 'records' parameter of {owner} must not be negative if it is a count."
        )
    return int(mask)


def count_bins(owner: str, values: ArrayLike, bins: ArrayLike) -> NDArray[np.int64]:
    """Return how many values fall in each bin."""
    edges = np.asarray(bins)
    if edges.ndim != 1 or edges.size < 2 or edges.dtype.kind not in "iuf":
        raise ValueError(
            f"The 'bins' parameter of {owner} must be a one-dimensional array of at least two "
            f"edges. Got an array of dtype {edges.dtype} and shape {edges.shape} instead. For "
            "equal bins between public ends use numpy.linspace(low, high, n_bins + 1)."
        )
    edges = edges.astype(np.float64)
    if not (edges[1:] > edges[:-1]).all():
        raise ValueError(f"The 'bins' parameter of {owner} must increase strictly.")
    table, _ = as_table(owner, values, one_column=True)
    # As doubles, whatever the others are: in which bin a value falls is a function of it alone.
    with np.errstate(over="ignore"):  # a warning would tell of a single record
        column = table[:, 0].astype(np.float64)
    places = np.searchsorted(edges, column, side="right") - 1
    places[column == edges[-1]] = edges.size - 2
    within = places[(places >= 0) & (places < edges.size - 1)]
    counts: NDArray[np.int64] = np.bincount(within, minlength=edges.size - 1)
    return counts


def count_categories(
    owner: str, values: ArrayLike, categories: ArrayLike | None
) -> NDArray[np.int64]:
    """Return how many values equal each category."""
    labels = _one_by_one(owner, "categories", categories)
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"The 'categories' parameter of {owner} must hold distinct values.")
    tally = Counter(_one_by_one(owner, "values", values))
    return np.array([tally[label] for label in labels], dtype=np.int64)


def _one_by_one(owner: str, name: str, given: Any) -> list[Hashable]:
    """Return labels as they are: numpy would make strings of all numbers beside one string."""
    if isinstance(given, list | tuple):
        shape = (len(given),)
        labels = [label.item() if isinstance(label, np.generic) else label for label in given]
    else:
        shape, labels = np.shape(given), np.asarray(given).tolist()
    if len(shape) != 1 or not all(isinstance(label, Hashable) for label in labels):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be one-dimensional, with labels that can be "
            f"hashed. Got an array of shape {shape} instead."
        )
    return labels
