"""A budget of ε and δ, for parts whose losses are known in no closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdpnoise.privacy import (
    LossBudget,
    NumericLoss,
    PrivacyGuarantee,
    PrivacyLoss,
    Promised,
    PureLoss,
)

__all__ = ["ApproximateBudget", "Budget", "as_loss", "pure_part"]

_ROOM = 1.0 - 1e-9  # for what rounding adds to sums of shares
_LARGEST = 700.0  # whose exponential is a number


@dataclass(frozen=True, slots=True)
class ApproximateBudget:
    """What parts that are (ε, δ)-private each share: both numbers add up."""

    # Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    # (sums) and Theorem 2.2 (groups). Steps that sample records would lose most of what sampling
    # gives if Gaussian losses were shared out: their tail is that of a step without sampling.

    epsilon: float
    delta: float

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee) -> ApproximateBudget:
        """Return a guarantee as a budget, rounded down."""
        return cls(guarantee.epsilon * _ROOM, guarantee.delta * _ROOM)

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.3g})-DP"

    def share(self, fraction: float) -> ApproximateBudget:
        """Return a part of both, rounded down."""
        room = 1.0 if fraction == 1.0 else _ROOM
        return ApproximateBudget(self.epsilon * fraction * room, self.delta * fraction * room)

    def per_row(self, rows: int) -> ApproximateBudget:
        """Return what makes this the budget of groups of so many rows, if each row has it."""
        each = self.epsilon / rows * _ROOM
        if rows * each > _LARGEST:
            raise ValueError(
                f"The 'epsilon' parameter must be at most {_LARGEST:g} where groups of {rows} rows "
                f"share epsilon and delta. Got {self.epsilon:g}."
            )
        return ApproximateBudget(each, self.delta / (rows * math.exp((rows - 1) * each)) * _ROOM)

    def for_group(self, rows: int) -> NumericLoss:
        """Return the loss for groups of so many rows, if this is that of a row."""
        delta = rows * math.exp((rows - 1) * self.epsilon) * self.delta
        return NumericLoss(((Promised(delta), rows * self.epsilon, 1),))

    def numeric(self) -> NumericLoss:
        """Return the loss of all that has this budget."""
        return self.for_group(1)


Budget = LossBudget | ApproximateBudget
"""What a composition divides among its parts."""


def as_loss(budget: Budget) -> PrivacyLoss:
    """Return the loss of all that has a budget."""
    return budget.numeric() if isinstance(budget, ApproximateBudget) else budget


def pure_part(budget: Budget) -> LossBudget:
    """Return what a release that is not a part's own may cost: of an (ε, δ) its ε."""
    return PureLoss(budget.epsilon) if isinstance(budget, ApproximateBudget) else budget
