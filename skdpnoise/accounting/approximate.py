"""Budgets of parts whose losses are no Gaussian ones: of ε and δ, or of a μ and a chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdpnoise.privacy import (
    GaussianLoss,
    LossBudget,
    NumericLoss,
    PrivacyGuarantee,
    PrivacyLoss,
    Promised,
    PureLoss,
    gdp_epsilon,
    gdp_mu,
)
from skdpnoise.privacy.curves import NormalShift

__all__ = [
    "CHANCE_SHARE",
    "ApproximateBudget",
    "Budget",
    "ChanceBudget",
    "SearchBudget",
    "as_loss",
    "pure_part",
    "stated_epsilon",
]


CHANCE_SHARE = 0.5  # of δ, for the chance that a record shows a category of its own

_ROOM = 1.0 - 1e-9  # for what rounding adds to sums of shares
_LARGEST = 700.0  # whose exponential is a number
_NOTHING = 1e-100  # the shift that a numeric loss makes of 0


@dataclass(frozen=True, slots=True)
class ApproximateBudget:
    """Budget of steps that are (ε, δ)-private each: both numbers add up."""

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


@dataclass(frozen=True, slots=True)
class ChanceBudget:
    r"""What parts with normal noise share, some of which may show by chance what one record has.

    .. math:: L = L_{\mu} + L_p, \qquad \mu^2 = \sum_k \mu_k^2, \quad p = \sum_k p_k

    Reference: Dong, Roth and Su, arXiv:1905.02383, Theorem 3.2 (squares of μ). Zhu, Dong and Wang,
    AISTATS 2022, Theorem 10 (chances beside them).
    """

    # L_p is infinite with probability p, and else 0. A step of its own that shows by chance keeps
    # the same division of its (ε, δ): half of δ is for chances.

    mu: float
    chance: float

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee) -> ChanceBudget:
        """Return a guarantee as a budget, rounded down."""
        chance = CHANCE_SHARE * guarantee.delta * _ROOM
        return cls(gdp_mu(guarantee.epsilon, guarantee.delta - chance) * _ROOM, chance)

    @classmethod
    def spent(cls, loss: PrivacyLoss) -> ChanceBudget | None:
        """Return a loss as a budget; None if it is of another kind."""
        if type(loss) is GaussianLoss:
            return cls(loss.mu, 0.0)
        if type(loss) is PureLoss and loss.pure_epsilon == 0.0:
            return cls(0.0, 0.0)
        squares, chance = 0.0, 0.0
        for curve, shift, count in loss.terms if type(loss) is NumericLoss else ((None, 0.0, 1),):
            if type(curve) is NormalShift:
                squares += count * shift**2
            elif type(curve) is Promised and shift <= _NOTHING:
                chance += count * curve.delta
            else:
                return None
        return cls(math.sqrt(squares), chance)

    def __str__(self) -> str:
        return f"{self.mu:.6g}-GDP and a chance of {self.chance:.3g}"

    def share(self, fraction: float) -> ChanceBudget:
        """Return a part of both: of the square of μ, and of the chance."""
        return ChanceBudget(self.mu * math.sqrt(fraction), self.chance * fraction)

    def guarantee(self) -> tuple[float, float]:
        """Return the ε and δ of a step that shows by chance and has this budget."""
        delta = self.chance / CHANCE_SHARE
        return stated_epsilon(self.mu, delta - self.chance), delta

    def numeric(self) -> NumericLoss:
        """Return the loss of all that has this budget."""
        terms = ((NormalShift(), self.mu, 1), (Promised(self.chance), 0.0, 1))
        return NumericLoss(tuple(term for term in terms if term[1] or self.chance))


def stated_epsilon(mu: float, delta: float) -> float:
    """Return an ε that stands for at most μ at δ."""
    epsilon = gdp_epsilon(mu, delta)
    while epsilon > 0.0 and gdp_mu(epsilon, delta) > mu:
        epsilon *= 1.0 - 1e-9
    return epsilon


SearchBudget = LossBudget | ApproximateBudget
"""Budgets that a search divides among its fits, whatever these divide in turn."""

Budget = SearchBudget | ChanceBudget
"""Budgets that a composition divides among its steps."""


def as_loss(budget: Budget) -> PrivacyLoss:
    """Return the loss of all that has a budget."""
    return budget.numeric() if isinstance(budget, ApproximateBudget | ChanceBudget) else budget


def pure_part(budget: Budget) -> LossBudget:
    """Return what a release that is not a part's own may cost: of an (ε, δ) its ε, else the μ."""
    if isinstance(budget, ChanceBudget):
        return GaussianLoss(budget.mu)
    return PureLoss(budget.epsilon) if isinstance(budget, ApproximateBudget) else budget
