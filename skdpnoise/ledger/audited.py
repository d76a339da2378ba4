"""What stands for a charge that an audit, or a plan, lets nobody write down."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skdpnoise.ledger.charge import Charge
from skdpnoise.ledger.requests import checked_name, loss_of, stated

__all__ = ["unwritten"]

_DELTA = 1e-6  # of what an unwritten charge states, where nothing else does


def unwritten(label: Any, cost: Any, guarantee: Any) -> Charge:
    """Return a charge of number 0, which is written nowhere."""
    loss, noise = loss_of(cost)
    pair = stated(loss, guarantee, _DELTA)
    shown = checked_name("label", label)
    return Charge(0, datetime.now(UTC), shown, None, noise, loss, pair, None, {}, "")
