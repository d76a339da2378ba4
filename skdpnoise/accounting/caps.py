"""A guard that the parts of a composition spend what was charged for the whole, and no more.

Every part charges before it samples noise; so that the run is within the loss for which it is
accounted, or does not happen. Costs add up, of adaptive parts too, in ε (pure) or in μ² (Gaussian),
and so do chances of what is shown.
A copy could be spent a second time, and what another process charges would be lost: there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting import BudgetExceededError, PrivacyReport
from skdpnoise.accounting.approximate import ApproximateBudget, Budget, ChanceBudget
from skdpnoise.data.computed import Allowance
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyLoss, PureLoss, gdp_mu

_ROUNDING = 1e-9  # relative, between charges and reports; the limit itself is kept exactly
_NOTHING = np.zeros(2)
_EXACT = 1e-12  # relative, of a numeric loss of exactly some ε, which is rounded up


class Rehearsed(Exception):
    """Raised by a closed cap: all checks are passed, and nothing is drawn yet."""


class UnsettledError(RuntimeError):
    """Raised where the parts of a run do not report what they charged: no guarantee holds."""


class _OneObject(Allowance):
    """Something that cannot be copied, so that it is spent once; clones of estimators share it."""

    def __sklearn_clone__(self) -> Any:
        return self

    def __copy__(self) -> NoReturn:
        _no_copy()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        _no_copy()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        _no_copy()


class Cap(_OneObject):
    """Stands where a ledger would, and lets the parts of one run spend no more than it may cost."""

    def __init__(self, limit: Budget | None, adjacency: str) -> None:
        self.limit, self.adjacency = limit, adjacency
        self.n_charges = 0
        self.asked = self.refused = False
        self._spent: dict[str, NDArray[np.float64]] = {}
        self._fits: dict[str, list[tuple[float, float]]] = {}
        self._last: dict[str, PrivacyLoss] = {}  # of the last fit of a part, charged so far
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """True where there is a limit: the whole run was charged."""
        return self.limit is not None

    def part(self, label: str) -> PartCap:
        """Return what one part charges, so that it is known which part it was."""
        return PartCap(self, label)

    def charge(self, label: str, cost: Any, *, adjacency: str | None = None, **facts: Any) -> None:
        """Allow a charge, or refuse it."""
        self._charge("", label, cost, adjacency, facts.get("guarantee"))

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
        spent = self._spent.get(label, _NOTHING)
        released = sum((self._amount(report.total) for report in reports), start=_NOTHING)
        allowed = sum(map(self._allowed, reports), start=_NOTHING)
        most = 1.0 + _ROUNDING
        if (released > spent * most).any() or (spent > allowed * most).any():
            raise UnsettledError(
                f"The charge of the step {label!r} does not cover what it reports as released, "
                "or exceeds what it was allowed. No guarantee holds."
            )

    def _charge(self, part: str, label: str, cost: Any, adjacency: Any, stated: Any) -> None:
        self.asked = True
        if self.limit is None:
            raise Rehearsed
        with self._lock:
            amount = _NOTHING
            if isinstance(self.limit, ApproximateBudget):
                within = self._is_promised(part, cost, stated)
            else:
                amount = self._amount(cost)
                whole = sum(self._spent.values(), start=amount)
                within = bool((whole <= self._amount(self.limit)).all())
            if adjacency != self.adjacency or not within:
                self.refused = True
                raise BudgetExceededError(
                    f"{label!r} would cost {cost} with adjacency {adjacency!r}: more than is left "
                    f"of {self.limit} with adjacency {self.adjacency!r} for one run."
                )
            self._spent[part] = self._spent.get(part, _NOTHING) + amount
            self.n_charges += 1
            if stated is not None:  # the first charge of a fit states the guarantee of all of it
                self._fits.setdefault(part, []).append((float(stated[0]), float(stated[1])))

    def _is_promised(self, part: str, cost: Any, stated: Any) -> bool:
        """Return whether a charge is within its fit's (ε, δ), and these are within the limit."""
        # Fits are counted by the guarantees that they state, which add up; what a fit charges after
        # the first charge must be within the guarantee that this one stated.
        if type(cost) not in (PureLoss, GaussianLoss, NumericLoss):
            return False
        if stated is None and part not in self._fits:
            return False
        found = [pair for pairs in self._fits.values() for pair in pairs]
        if stated is not None:
            epsilon, delta = float(stated[0]), float(stated[1])
            found.append((epsilon, delta))
            charged = cost
        else:
            epsilon, delta = self._fits[part][-1]
            charged = self._last[part] + cost
        if not charged.delta(epsilon * (1.0 + _EXACT)) <= delta:
            return False
        self._last[part] = charged
        sums = (math.fsum(one) for one in zip(*found, strict=True))
        limit = self.limit
        assert isinstance(limit, ApproximateBudget)
        return all(a <= b for a, b in zip(sums, (limit.epsilon, limit.delta), strict=True))

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
        """Return a cost in the currency of the limit: ε or μ², and a chance; infinite if none."""
        if type(cost) is PureLoss and cost.pure_epsilon == 0.0:
            return _NOTHING
        if type(self.limit) is PureLoss:
            known = type(cost) in (PureLoss, NumericLoss)
            return np.array([cost.pure_epsilon if known else np.inf, 0.0])
        found = cost if isinstance(cost, ChanceBudget) else ChanceBudget.spent(cost)
        if found is None:
            return np.array([np.inf, 0.0])
        return np.array([found.mu**2, found.chance])


class PartCap(_OneObject):
    """Charges of one step of a run, which go to the cap of the run under the name of the step."""

    dataset = "one run"  # what errors call a ledger

    def __init__(self, cap: Cap, label: str) -> None:
        self.cap, self.label = cap, label

    @property
    def is_open(self) -> bool:
        """True where the cap of the run has a limit."""
        return self.cap.is_open

    def charge(self, label: str, cost: Any, *, adjacency: str | None = None, **facts: Any) -> None:
        """Allow a charge, or refuse it."""
        self.cap._charge(self.label, label, cost, adjacency, facts.get("guarantee"))


def _no_copy() -> NoReturn:
    raise TypeError(
        "The budget of a run cannot be copied or pickled: a copy could be spent a second time, and "
        "what is charged in another process would be lost. Set n_jobs=None in what is fitted."
    )


def _pairs(guarantees: list[tuple[float, float]]) -> str:
    return ", ".join(f"epsilon={e:g}, delta={d:g}" for e, d in guarantees) or "nothing"
