"""What had been spent after each charge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from skdpnoise.ledger.charge import Charge
from skdpnoise.ledger.composition import Composition
from skdpnoise.privacy import PrivacyLoss

__all__ = ["past", "spent_after_each"]

_POINTS, _POINTS_OF_MANY, _MANY = 200, 50, 16  # fewer where there are many different losses


def past(charges: Sequence[Charge], delta: float) -> dict[str, list[Any]]:
    """Return the columns of a history: all charges, with what had been spent after each."""
    return {
        "number": [c.number for c in charges],
        "time": [c.time for c in charges],
        "label": [c.label for c in charges],
        "estimator": [c.estimator for c in charges],
        "mechanism": [c.mechanism for c in charges],
        "epsilon": [c.guarantee[0] for c in charges],
        "delta": [c.guarantee[1] for c in charges],
        "loss": [c.cost for c in charges],
        "spent": spent_after_each(charges, delta),
        "who": [c.who for c in charges],
        "parameters": [c.parameters for c in charges],
    }


def spent_after_each(charges: Sequence[Charge], delta: float) -> list[float]:
    """Return the tight ε after each charge; between computed ones that of the next."""
    losses = [charge.loss for charge in charges]
    if None in losses:
        first = losses.index(None)
        return spent_after_each(charges[:first], delta) + [math.inf] * (len(charges) - first)
    points = min(_POINTS if len(set(losses)) <= _MANY else _POINTS_OF_MANY, len(charges))
    ends = np.unique(np.linspace(1, len(charges), points).round().astype(int)).tolist()
    total, last = Composition(), 0.0
    spent: list[float] = []
    for start, end in pairwise([0, *ends]):
        for charge in charges[start:end]:
            total.add(cast(PrivacyLoss, charge.loss), charge.guarantee)
        # A later one may be computed more tightly.
        last = max(last, total.epsilon(delta, near=max(last, 0.1)))
        spent += [last] * (end - start)
    return spent
