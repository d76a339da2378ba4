r"""Weights of classes, public or from released numbers of records.

A record's slopes are multiplied by the weight of its class, in units of the largest weight, and so
is the bound C that its gradient is clipped to:

.. math:: u_k = w_k / \max_l w_l \le 1, \qquad
          \sum_i u_i \min\Bigl(1, \frac{C}{|x_i| |q_i|}\Bigr) \, x_i \otimes q_i

No record moves the sum by more than C, whatever its class. Were the bound the same for all classes,
weights would mean nothing wherever both classes are clipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from skdpnoise.data.table import Table
from skdpnoise.linear_model._records import ClassWeights, Rows
from skdpnoise.linear_model._scaling import Run, release_class_counts

__all__ = ["public_weights", "release_balance"]

_LARGEST_WEIGHT = 100.0  # of "balanced"
_FROM, _TO = 1e-6, 1e6  # weights that are given
_LEAST_SHARE = 0.5  # of the records, that public weights are thought to leave at least


def public_weights(owner: str, class_weight: Any, classes: np.ndarray) -> ClassWeights | None:
    """Return the weight of every class; None where all are alike, or released numbers say it."""
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
    # Steps are at most twice as long as planned, whatever share of the records is of a class.
    return ClassWeights(weights, max(_LEAST_SHARE, float(weights.mean() / weights.max())))


def release_balance(run: Run, table: Table[Rows], n_outputs: int) -> ClassWeights:
    r"""Release how many records each class has; return the weights :math:`n / (K n_k)`."""
    # Noisy numbers are no smaller than their noise is wide, and no weight is above the largest.
    counts = release_class_counts(run, table, n_outputs)
    weights = np.minimum(counts.sum() / (len(counts) * counts), _LARGEST_WEIGHT)
    return ClassWeights(weights, float(weights @ counts / counts.sum() / weights.max()))
