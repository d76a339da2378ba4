"""How mechanisms are made for a guarantee, so that a ledger can ask what another would cost."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss

__all__ = ["LossFor", "Recipe", "loss_at", "to_name_the_largest"]

LossFor = Callable[[PrivacyGuarantee], PrivacyLoss]
"""The loss of a release for another guarantee, as its calibration finds it."""


class Recipe(NamedTuple):
    """A guarantee, and what makes a mechanism for any."""

    guarantee: PrivacyGuarantee
    make: Callable[[PrivacyGuarantee], Any]

    def loss(self, guarantee: PrivacyGuarantee) -> PrivacyLoss:
        """Return what the noise discloses of the mechanism for another guarantee."""
        made = self.make(guarantee)
        found: PrivacyLoss = getattr(made, "own_loss", made.privacy_loss)()
        return found


def loss_at(guarantee: PrivacyGuarantee, loss_for: LossFor) -> Callable[[float], PrivacyLoss]:
    """Return the loss by ε alone, as a ledger asks for it."""
    return lambda epsilon: loss_for(replace(guarantee, epsilon=epsilon))


def to_name_the_largest(ledger: Any, guarantee: Any, loss_for: LossFor | None) -> dict[str, Any]:
    """Return what a ledger needs to name the largest ε that fits; nothing if it does not ask."""
    if loss_for is None or not isinstance(guarantee, PrivacyGuarantee):
        return {}
    asks = "loss_at" in inspect.signature(ledger.charge).parameters
    return {"loss_at": loss_at(guarantee, loss_for)} if asks else {}
