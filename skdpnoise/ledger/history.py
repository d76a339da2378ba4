"""What had been spent after each charge, and the card of a ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from skdpnoise.ledger.charge import Charge, LedgerTotal, bar
from skdpnoise.ledger.composition import Composition
from skdpnoise.ledger.report import card, facts_in_html, table
from skdpnoise.privacy import PrivacyLoss

__all__ = ["ledger_card", "past", "spent_after_each"]

_POINTS, _POINTS_OF_MANY, _MANY = 200, 50, 16  # fewer where there are many different losses
_SHOWN = 5


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
        unknown = [math.inf] * (len(charges) - first)
        return spent_after_each(charges[:first], delta) + unknown
    if not charges:
        return []
    kinds = len({charge.loss for charge in charges})
    points = _POINTS if kinds <= _MANY else _POINTS_OF_MANY
    ends = np.unique(np.linspace(1, len(charges), min(points, len(charges))).round().astype(int))
    total, spent, last = Composition(), [], 0.0
    start = 0
    for end in ends:
        for charge in charges[start:end]:
            total.add(cast(PrivacyLoss, charge.loss), charge.guarantee)
        # A later one may be computed more tightly.
        last = max(last, total.epsilon(delta, near=max(last, 0.1)))
        spent += [last] * (int(end) - start)
        start = int(end)
    return spent


def ledger_card(name: str, total: LedgerTotal, unit: str, charges: Sequence[Charge]) -> str:
    """Return the card of a ledger, in HTML, with its last charges."""
    head = ("number", "time (UTC)", "label", "mechanism", "cost", "who")
    rows = [
        (
            str(c.number),
            f"{c.time:%Y-%m-%d %H:%M}",
            c.label,
            c.mechanism or "",
            c.cost,
            c.who or "",
        )
        for c in charges[-_SHOWN:]
    ]
    few = f"<div>the last {_SHOWN} charges:</div>" if len(charges) > _SHOWN else ""
    facts = facts_in_html([*total.facts(), ("protected", f"one {unit}")])
    share = min(1.0, total.spent / total.guarantee.epsilon)
    body = bar(share) + facts + (few + table(head, rows) if charges else "")
    return card(f"Ledger of {name}", total.headline, body, secure=total.secure)
