"""Budgets of the parts of a composition, and a guard that they spend no more.

Budgets of parts are ε (pure), μ (Gaussian), an (ε, δ) whose numbers add up, or a μ and a chance.
Every part charges before it samples noise; so that the run is within the loss for which it is
accounted, or does not happen. Costs add up, of adaptive parts too, in ε or in μ², and so do chances
of what is shown. A copy of a limit could be spent a second time, and what another process charges
would be lost: there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting import BudgetExceededError, PrivacyReport
from skdpnoise.accounting.budget import HALF
from skdpnoise.data.computed import Allowance
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

CHANCE_SHARE = HALF  # of δ, for the chance that a record shows a category of its own

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
        return cls(guarantee.epsilon * _ROOM, guarantee.delta * _ROOM)

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.3g})-DP"

    def share(self, fraction: float) -> ApproximateBudget:
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
        delta = rows * math.exp((rows - 1) * self.epsilon) * self.delta
        return NumericLoss(((Promised(delta), rows * self.epsilon, 1),))

    def numeric(self) -> NumericLoss:
        return self.for_group(1)


@dataclass(frozen=True, slots=True)
class ChanceBudget:
    r"""The budget that parts with normal noise share, some of which may show a record by chance.

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
        chance = CHANCE_SHARE * guarantee.delta * _ROOM
        return cls(gdp_mu(guarantee.epsilon, guarantee.delta - chance) * _ROOM, chance)

    @classmethod
    def spent(cls, loss: PrivacyLoss) -> ChanceBudget | None:
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
        delta = self.chance / CHANCE_SHARE
        return stated_epsilon(self.mu, delta - self.chance), delta

    def numeric(self) -> NumericLoss:
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
    return budget.numeric() if isinstance(budget, ApproximateBudget | ChanceBudget) else budget


def pure_part(budget: Budget) -> LossBudget:
    """Return what a release that is not a part's own may cost: of an (ε, δ) its ε, else the μ."""
    if isinstance(budget, ChanceBudget):
        return GaussianLoss(budget.mu)
    return PureLoss(budget.epsilon) if isinstance(budget, ApproximateBudget) else budget


_ROUNDING = 1e-9  # relative, between charges and reports; the limit itself is kept exactly
_NO_AMOUNT, _TOO_MUCH = np.zeros(2), np.full(2, np.inf)
_EXACT = 1e-12  # relative, of a numeric loss of exactly some ε, which is rounded up


class NothingDrawnError(Exception):
    """Raised by a closed limit: all checks are passed, and nothing is drawn yet."""


class UnsettledError(RuntimeError):
    """Raised where the parts of a run do not report what they charged: no guarantee holds."""


class SpendingLimit:
    """Lets the parts of one run spend no more than it may cost."""

    def __init__(self, limit: Budget | None, adjacency: str, epsilon: float | None = None) -> None:
        self.limit, self.adjacency = limit, adjacency
        self.epsilon = epsilon  # that the user gave, of which the limit may be a part
        self.asked = self.refused = False
        self._spent: dict[str, NDArray[np.float64]] = {}
        self._fits: dict[str, list[tuple[float, float]]] = {}
        self._lock = Lock()

    def part(self, label: str) -> StepLimit:
        return StepLimit(self, label)

    def settle(self, reports: Iterable[tuple[str, Any]]) -> None:
        """Raise unless what was charged is what the parts report, fit by fit."""
        # A difference means that a part was fitted more than once, or somewhere where it could not
        # charge, so that the run may have cost more than is accounted for. A part may have released
        # less than it charged, after a look at what it had released before; never more. Nor may a
        # run go on after a charge that was refused.
        if self.refused:
            raise UnsettledError("A charge was refused, but the run went on. No guarantee holds.")
        told: dict[str, list[PrivacyReport]] = {}
        for label, report in reports:
            if type(report) is not PrivacyReport:
                raise UnsettledError(
                    f"The step {label!r} was fitted, but has no privacy report. No guarantee holds."
                )
            # A DPPipeline charges as a whole, also where none of its steps releases anything.
            if report.releases or label in self._spent:
                told.setdefault(label, []).append(report)
        for label in sorted(self._spent.keys() | told.keys()):
            self._settle_part(label, told.get(label, []))

    def _settle_part(self, label: str, reports: list[PrivacyReport]) -> None:
        charged = sorted(self._fits.get(label, []))
        stated = sorted((r.guarantee.epsilon, r.guarantee.delta) for r in reports)
        if charged != stated:
            raise UnsettledError(
                f"The step {label!r} charged for {len(charged)} fits ({_pairs(charged)}), but "
                f"reports {len(stated)} ({_pairs(stated)}): it was fitted more than once, or where "
                "it could not charge. No guarantee holds."
            )
        if isinstance(self.limit, ApproximateBudget):
            return  # a report is within its guarantee, which is what was counted
        spent = self._spent.get(label, _NO_AMOUNT)
        released = sum((self._amount(report.total) for report in reports), start=_NO_AMOUNT)
        allowed = sum(map(self._allowed, reports), start=_NO_AMOUNT)
        most = 1.0 + _ROUNDING
        if (released > spent * most).any() or (spent > allowed * most).any():
            raise UnsettledError(
                f"The charge of the step {label!r} does not cover what it reports as released, "
                "or exceeds what it was allowed. No guarantee holds."
            )

    def charge(self, part: str, label: str, cost: Any, adjacency: Any, stated: Any) -> None:
        """Allow the charge of a part for one fit, which states its guarantee, or refuse it."""
        self.asked = True
        if self.limit is None:
            raise NothingDrawnError
        with self._lock:
            amount = self._price(cost, stated)
            whole = sum(self._spent.values(), start=amount)
            if adjacency != self.adjacency or not (whole <= self._amount(self.limit)).all():
                self.refused = True
                raise BudgetExceededError(
                    f"{label!r} would cost {cost} with adjacency {adjacency!r}: more than is left "
                    f"of {self.limit} with adjacency {self.adjacency!r} for one run."
                )
            self._spent[part] = self._spent.get(part, _NO_AMOUNT) + amount
            self._fits.setdefault(part, []).append((float(stated[0]), float(stated[1])))

    def _price(self, cost: Any, stated: Any) -> NDArray[np.float64]:
        """Return a charge in the currency of the limit: of an (ε, δ) what the fit states."""
        if stated is None:
            return _TOO_MUCH
        if not isinstance(self.limit, ApproximateBudget):
            return self._amount(cost)
        epsilon, delta = float(stated[0]), float(stated[1])
        known = epsilon >= 0.0 and type(cost) in (PureLoss, GaussianLoss, NumericLoss)
        within = known and cost.delta(epsilon * (1.0 + _EXACT)) <= delta
        return np.array([epsilon, delta]) if within else _TOO_MUCH

    def _allowed(self, report: PrivacyReport) -> NDArray[np.float64]:
        """Return what a fit may charge; a whole that releases less charges all the same."""
        # Of nothing at all, or nothing by chance: that was not known when it was charged.
        stated = report.guarantee
        if report.releases:
            allowed = report.allowed
        elif type(self.limit) is PureLoss:
            allowed = PureLoss(stated.epsilon)
        else:
            allowed = GaussianLoss(gdp_mu(stated.epsilon, stated.delta))
        if not isinstance(self.limit, ChanceBudget):
            return self._amount(allowed)
        return np.maximum(self._amount(allowed), self._amount(ChanceBudget.of(stated)))

    def _amount(self, cost: Any) -> NDArray[np.float64]:
        """Return a cost in the currency of the limit: ε or μ², and a δ or chance; else infinity."""
        if isinstance(cost, ApproximateBudget):
            return np.array([cost.epsilon, cost.delta])
        if type(cost) is PureLoss and cost.pure_epsilon == 0.0:
            return _NO_AMOUNT
        if type(self.limit) is PureLoss:
            known = type(cost) in (PureLoss, NumericLoss)
            return np.array([cost.pure_epsilon if known else np.inf, 0.0])
        found = cost if isinstance(cost, ChanceBudget) else ChanceBudget.spent(cost)
        return _TOO_MUCH if found is None else np.array([found.mu**2, found.chance])


class StepLimit(Allowance):
    """Stands where the ledger of a step would, and charges the limit of the run under its name."""

    dataset = "one run"  # what errors call a ledger

    def __init__(self, limit: SpendingLimit, label: str) -> None:
        self.limit, self.label = limit, label

    @property
    def is_open(self) -> bool:
        """True where there is a limit: the whole run was charged."""
        return self.limit.limit is not None

    @property
    def asked_epsilon(self) -> float | None:
        return self.limit.epsilon

    def charge(self, label: str, cost: Any, *, adjacency: str | None = None, **facts: Any) -> None:
        self.limit.charge(self.label, label, cost, adjacency, facts.get("guarantee"))

    def __sklearn_clone__(self) -> StepLimit:
        return self

    def _refuse_copies(self, *_: Any) -> NoReturn:
        raise TypeError(
            "The budget of a run cannot be copied or pickled: a copy could be spent a second time, "
            "and what is charged in another process would be lost. Set n_jobs=None in what is "
            "fitted."
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copies


def _pairs(guarantees: list[tuple[float, float]]) -> str:
    return ", ".join(f"epsilon={e:g}, delta={d:g}" for e, d in guarantees) or "nothing"
