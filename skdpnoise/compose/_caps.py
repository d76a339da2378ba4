"""A guard that the parts of a composition spend what was charged for the whole, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from skdpnoise.ledger import BudgetExceededError, PrivacyReport
from skdpnoise.privacy import LossBudget, NumericLoss, PrivacyLoss, PureLoss

__all__ = ["Cap", "Rehearsed"]


class Rehearsed(Exception):
    """Raised by a closed cap: all checks are passed, and nothing is drawn yet."""


class Cap:
    """Stands where a ledger would, and lets the parts of one run spend no more than it may cost.

    Every part charges before it draws; so that the run is within the loss for which it is
    accounted, or does not happen. Costs add up, of adaptive parts too, in ε (pure) or in μ²
    (Gaussian). A cap is one object: a copy is the cap itself, and it cannot be sent to another
    process, where what is charged would be lost.

    Parameters
    ----------
    limit : PureLoss, GaussianLoss or None
        What the run may cost; None closes the cap: the first charge ends the fit.
    adjacency : str
        Neighbouring relation of the run.
    """

    def __init__(self, limit: LossBudget | None, adjacency: str) -> None:
        self.limit, self.adjacency = limit, adjacency
        self.n_charges = 0
        self._spent = 0.0
        self._lock = Lock()
        self._fits: dict[str, list[tuple[float, float]]] = {}

    def part(self, label: str) -> PartCap:
        """Return what one part charges, so that it is known which part it was."""
        return PartCap(self, label)

    def charge(self, label: str, cost: Any, *, adjacency: str | None = None, **facts: Any) -> None:
        """Allow a charge, or refuse it."""
        self._charge("", label, cost, adjacency, facts.get("guarantee"))

    def settle(self, reports: Iterable[tuple[str, PrivacyReport]]) -> None:
        """Raise unless what was charged is what the parts report, fit by fit.

        A difference means that a part was fitted more than once, or somewhere where it could not
        charge, so that the run may have cost more than is accounted for.
        """
        reported: dict[str, list[tuple[float, float]]] = {}
        for label, report in reports:
            if report.releases:
                guarantee = (report.guarantee.epsilon, report.guarantee.delta)
                reported.setdefault(label, []).append(guarantee)
        for label in sorted(self._fits.keys() | reported.keys()):
            charged, told = self._fits.get(label, []), reported.get(label, [])
            if sorted(charged) != sorted(told):
                raise RuntimeError(
                    f"The step {label!r} charged for {len(charged)} fits ({_pairs(charged)}), but "
                    f"reports {len(told)} ({_pairs(told)}): it was fitted more than once, or where "
                    "it could not charge. No guarantee can be stated."
                )

    def _charge(self, part: str, label: str, cost: Any, adjacency: str | None, stated: Any) -> None:
        if self.limit is None:
            raise Rehearsed
        if adjacency not in (None, self.adjacency):
            raise ValueError(f"{label!r} has adjacency {adjacency!r}, not {self.adjacency!r}.")
        loss = cost if isinstance(cost, PrivacyLoss) else cost.privacy_loss()
        if isinstance(self.limit, PureLoss):
            pure = isinstance(loss, PureLoss | NumericLoss)
            amount, most = loss.pure_epsilon if pure else np.inf, self.limit.pure_epsilon
        else:
            amount, most = getattr(loss, "mu", np.inf) ** 2, self.limit.mu**2
        with self._lock:
            if self._spent + amount > most:
                raise BudgetExceededError(
                    f"{label!r} would cost {loss}, more than is left of {self.limit} for one run."
                )
            self._spent += amount
            self.n_charges += 1
            if stated is not None:  # the first charge of a fit states the guarantee of all of it
                self._fits.setdefault(part, []).append((float(stated[0]), float(stated[1])))

    def __copy__(self) -> Cap:
        return self

    def __deepcopy__(self, memo: Any) -> Cap:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(_STAYS)


class PartCap:
    """What one part of a run charges: the cap of the run, by the name of the part."""

    dataset = "one run"  # what errors call a ledger

    def __init__(self, cap: Cap, label: str) -> None:
        self.cap, self.label = cap, label

    def charge(self, label: str, cost: Any, *, adjacency: str | None = None, **facts: Any) -> None:
        """Allow a charge, or refuse it."""
        self.cap._charge(self.label, label, cost, adjacency, facts.get("guarantee"))

    def __copy__(self) -> PartCap:
        return self

    def __deepcopy__(self, memo: Any) -> PartCap:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(_STAYS)


_STAYS = (
    "The budget of a run cannot be copied to another process, where what is charged would be lost. "
    "Set n_jobs=None in what is fitted."
)


def _pairs(guarantees: list[tuple[float, float]]) -> str:
    return ", ".join(f"epsilon={e:g}, delta={d:g}" for e, d in guarantees) or "nothing"
