"""Checks of the arguments of a ledger."""

from __future__ import annotations

import math
from typing import Any

from skdpnoise._utils.checks import check_option, complaint
from skdpnoise.accounting.composition import Composition
from skdpnoise.ledger.storage.base import UNITS, StoredBudget
from skdpnoise.privacy import Adjacency, PrivacyGuarantee, PrivacyLoss, check_real


def loss_of(
    cost: Any, owner: str = "PrivacyLedger.charge", name: str = "cost"
) -> tuple[PrivacyLoss, str | None]:
    if isinstance(cost, PrivacyLoss):
        return cost, None
    for method in ("own_loss", "privacy_loss"):
        if callable(getattr(cost, method, None)) and not isinstance(cost, type):
            return getattr(cost, method)(), getattr(cost, "noise", None)
    must = "be a PrivacyLoss or a mechanism"
    raise TypeError(complaint(owner, name, must, type(cost).__name__))


def check_kind(
    budget: StoredBudget, dataset: str, adjacency: Adjacency | None, unit: str | None
) -> None:
    owner = "PrivacyLedger.charge"
    if adjacency is not None and adjacency != budget.adjacency:
        must = f"be {budget.adjacency!r}, that of the data set {dataset!r}"
        remedy = f"Fit with adjacency={budget.adjacency!r}."
        raise ValueError(complaint(owner, "adjacency", must, repr(adjacency), remedy))
    if unit is not None:
        check_option(owner, "unit", unit, UNITS)
    if unit == "group" and budget.unit == "record" and budget.adjacency == "add_remove":
        raise ValueError(
            "The 'unit' parameter of PrivacyLedger.charge must be 'record', since the data set "
            f"{dataset!r} protects single records that come and go: one more in a group may push "
            "another out of those that are used. Got 'group' instead. Fit without groups=, or "
            "create the ledger with unit='group'."
        )
    if unit == "record" and budget.unit == "group":
        must = f"be 'group', since the data set {dataset!r} protects all records of a group"
        remedy = "Pass groups= to fit, and rows_per_group to the estimator."
        raise ValueError(complaint(owner, "unit", must, "'record'", remedy))


def stated(
    loss: PrivacyLoss, guarantee: PrivacyGuarantee | tuple[float, float] | None, delta: float
) -> tuple[float, float]:
    """Return ε and δ for basic composition: as stated, or else as the loss implies."""
    if isinstance(guarantee, PrivacyGuarantee):
        return guarantee.epsilon, guarantee.delta
    owner = "PrivacyLedger.charge"
    if guarantee is not None:
        epsilon = check_real(owner, "guarantee", guarantee[0], low_closed=True)
        return epsilon, check_real(owner, "guarantee", guarantee[1], high=1.0, low_closed=True)
    pure = loss.epsilon(0.0)
    if pure < math.inf:
        return pure, 0.0
    single = Composition().with_one_more(loss, (0.0, 0.0))
    single.only = None  # for the sake of speed
    epsilon = single.epsilon(delta)
    if epsilon == math.inf:
        must = f"have a finite epsilon at the delta={delta:g} of the budget"
        raise ValueError(complaint(owner, "cost", must, str(loss)))
    return epsilon, delta
