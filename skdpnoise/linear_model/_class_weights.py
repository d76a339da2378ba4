"""Weights of classes, public or from paid numbers of records."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from skdpnoise.linear_model._scaling import Run, release_class_counts

__all__ = ["public_weights", "release_balance"]

_LARGEST_WEIGHT = 100.0  # of "balanced"
_FROM, _TO = 1e-6, 1e6  # weights that are given


def public_weights(owner: str, class_weight: Any, classes: np.ndarray) -> np.ndarray | None:
    """Return the weight of every class; None where all are alike, or numbers of records say it."""
    if class_weight is None or class_weight == "balanced":
        return None
    text = f"must be None, 'balanced' or a dict from labels to weights from {_FROM:g} to {_TO:g}"
    start = f"The 'class_weight' parameter of {owner} {text}. "
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"{start}Got {type(class_weight).__name__} instead.")
    known = dict(zip(classes.tolist(), range(len(classes)), strict=True))
    weights = np.ones(len(classes))
    for label, weight in class_weight.items():
        if label not in known:
            raise ValueError(f"{start}Got the label {label!r}, which is not among the classes.")
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not (number and _FROM <= float(weight) <= _TO):
            raise ValueError(f"{start}Got {weight!r} for the label {label!r}.")
        weights[known[label]] = weight
    return weights


def release_balance(run: Run, outputs: list[np.ndarray]) -> np.ndarray:
    r"""Release how many records each class has; return the weights :math:`n / (K n_k)`."""
    # Noisy numbers are no smaller than their noise is wide, and no weight is above the largest.
    counts = release_class_counts(run, outputs)
    return np.asarray(np.minimum(counts.sum() / (len(counts) * counts), _LARGEST_WEIGHT))
