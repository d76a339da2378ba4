"""The ledger that a release is charged to, and how it asks for the cost of another guarantee."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss

__all__ = ["Ledger", "LossFor", "loss_at", "to_name_the_largest"]

LossFor = Callable[[PrivacyGuarantee], PrivacyLoss]
"""The loss of a release for another guarantee, as its calibration finds it."""


class Ledger(Protocol):
    """An account of many releases, such as :class:`~skdpnoise.ledger.PrivacyLedger`.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> class Printed:
    ...     def charge(self, label, cost, **facts):
    ...         print(label, cost)
    >>> ledger: Ledger = Printed()
    >>> ledger.charge("fit", PureLoss(0.5))
    fit 0.5-DP
    """

    def charge(
        self,
        label: str,
        cost: Any,
        *,
        guarantee: tuple[float, float] | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        mechanism: str | None = None,
        estimator: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> Any:
        """Record the cost, or raise BudgetExceededError and record nothing."""


def loss_at(guarantee: PrivacyGuarantee, loss_for: LossFor) -> Callable[[float], PrivacyLoss]:
    """Return the loss by ε alone, as a ledger asks for it."""
    return lambda epsilon: loss_for(replace(guarantee, epsilon=epsilon))


def to_name_the_largest(ledger: Ledger, guarantee: Any, loss_for: LossFor | None) -> dict[str, Any]:
    """Return what a ledger needs to name the largest ε that fits; nothing if it does not ask."""
    if loss_for is None or not isinstance(guarantee, PrivacyGuarantee):
        return {}
    asks = "loss_at" in inspect.signature(ledger.charge).parameters
    return {"loss_at": loss_at(guarantee, loss_for)} if asks else {}
