"""What may be asked of a ledger, and what it answers where it may not."""

from __future__ import annotations

import math
from typing import Any

from skdpnoise._utils.checks import check_option, check_type, complaint
from skdpnoise.accounting.composition import Composition
from skdpnoise.ledger._room import LossAt, asked_in_words, in_words, largest_epsilon
from skdpnoise.ledger.storage.memory import Facts
from skdpnoise.mechanisms.charging import loss_at
from skdpnoise.privacy import Adjacency, PrivacyGuarantee, PrivacyLoss, check_adjacency, check_real

UNITS = ("record", "group")


def checked(
    epsilon: object, delta: object, adjacency: object, unit: object, adaptive: object
) -> dict[str, Any]:
    """Return what is wanted of a data set, or say what is allowed."""
    owner = "PrivacyLedger"
    wanted = {"unit": unit, "adaptive": adaptive}
    if (epsilon is None) != (delta is None):
        missing = "epsilon" if epsilon is None else "delta"
        must = (
            "be given along with the other half of the budget, or both left out to open a data set"
        )
        raise ValueError(complaint(owner, missing, must, "None"))
    if unit is not None:
        check_option(owner, "unit", unit, UNITS)
    if adaptive is not None:
        check_type(owner, "adaptive", adaptive, bool)
    if epsilon is not None:
        wanted["epsilon"] = check_real(owner, "epsilon", epsilon)
        wanted["delta"] = check_real(owner, "delta", delta, high=1.0, low_closed=True)
    if adjacency is not None:
        wanted["adjacency"] = check_adjacency(owner, adjacency)
    return wanted


def checked_name(name: str, value: object) -> str:
    owner = "PrivacyLedger" if name == "dataset" else "PrivacyLedger.charge"
    allowed = f"The {name!r} parameter of {owner} must be a str of 1 to 255 characters"
    text = _storable(allowed, value)
    if not 1 <= len(text) <= 255:
        raise ValueError(f"{allowed}. Got one of {len(text)} instead.")
    return text


def checked_text(name: str, value: object, owner: str = "PrivacyLedger.charge") -> str | None:
    """Return None or a text that every storage can keep."""
    if value is None:
        return None
    return _storable(f"The {name!r} parameter of {owner} must be None or a str", value)


def _storable(allowed: str, text: object) -> str:
    """Return a text that can be written as UTF-8 and has no NUL, which ends a text elsewhere."""
    if not isinstance(text, str):
        raise TypeError(f"{allowed}. Got {text!r} of type {type(text).__name__} instead.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"with half of a surrogate pair at position {error.start}"
    else:
        if "\0" not in text:
            return str(text)
        found = f"with a NUL at position {text.index(chr(0))}"
    raise ValueError(f"{allowed} that can be written as UTF-8, without NUL. Got one {found}.")


def loss_of(
    cost: Any, owner: str = "PrivacyLedger.charge", name: str = "cost"
) -> tuple[PrivacyLoss, str | None]:
    """Return the loss of a cost, and the name of its noise."""
    if isinstance(cost, PrivacyLoss):
        return cost, None
    for method in ("own_loss", "privacy_loss"):
        if callable(getattr(cost, method, None)) and not isinstance(cost, type):
            return getattr(cost, method)(), getattr(cost, "noise", None)
    must = "be a PrivacyLoss or a mechanism"
    raise TypeError(complaint(owner, name, must, type(cost).__name__))


def recalibrated(
    cost: Any, guarantee: PrivacyGuarantee | tuple[float, float] | None
) -> LossAt | None:
    """Return the loss by ε of a mechanism that was made for what is stated; None of any other."""
    recipe = getattr(cost, "recipe", None)
    if recipe is None:
        return None
    asked = recipe.guarantee
    known = guarantee in (asked, (asked.epsilon, asked.delta))
    return loss_at(asked, recipe.loss) if known else None


def refusal(
    loss: PrivacyLoss,
    guarantee: tuple[float, float],
    spent: Composition,
    facts: Facts,
    loss_at: LossAt | None,
) -> tuple[str, float]:
    """Say what was asked, what is spent and what is left; and the largest ε that would fit."""
    after = spent.with_one_more(loss, (0.0, 0.0)).counted(facts.delta, adaptive=facts.adaptive)
    # Rounding up must not say more than what was checked.
    before = min(spent.counted(facts.delta, adaptive=facts.adaptive), facts.epsilon)
    largest = largest_epsilon(loss, guarantee, spent, facts, loss_at)
    found = in_words(largest, loss, guarantee, calibrated=loss_at is not None)
    remedy = f"{found}; what is promised here does not change."
    if facts.adaptive and after == math.inf:
        remedy = (
            "A ledger with adaptive=True takes pure and Gaussian losses only: use a noise with "
            "such a loss, or a ledger with adaptive=False if losses are fixed in advance."
        )
    text = (
        f"asks for {asked_in_words(loss, guarantee)}, with which the total would be "
        f"epsilon={after:.4g} at delta={facts.delta:g}: {spent.count} "
        f"charge{'' if spent.count == 1 else 's'} spent {before:.4g} of the budget "
        f"epsilon={facts.epsilon:g}, and {facts.epsilon - before:.4g} is left. "
        f"Nothing was charged. {remedy}"
    )
    return text, largest


def check_kind(facts: Facts, dataset: str, adjacency: Adjacency | None, unit: str | None) -> None:
    """Refuse a cost that is stated for other neighbours than those of the ledger."""
    owner = "PrivacyLedger.charge"
    if adjacency is not None and adjacency != facts.adjacency:
        must = f"be {facts.adjacency!r}, that of the data set {dataset!r}"
        remedy = f"Fit with adjacency={facts.adjacency!r}."
        raise ValueError(complaint(owner, "adjacency", must, repr(adjacency), remedy))
    if unit is not None:
        check_option(owner, "unit", unit, UNITS)
    if unit == "group" and facts.unit == "record" and facts.adjacency == "add_remove":
        raise ValueError(
            "The 'unit' parameter of PrivacyLedger.charge must be 'record', since the data set "
            f"{dataset!r} protects single records that come and go: one more in a group may push "
            "another out of those that are used. Got 'group' instead. Fit without groups=, or "
            "create the ledger with unit='group'."
        )
    if unit == "record" and facts.unit == "group":
        must = f"be 'group', since the data set {dataset!r} protects all records of a group"
        remedy = "Pass groups= to fit, and rows_per_group to the estimator."
        raise ValueError(complaint(owner, "unit", must, "'record'", remedy))


def stated(
    loss: PrivacyLoss, guarantee: PrivacyGuarantee | tuple[float, float] | None, delta: float
) -> tuple[float, float]:
    """Return ε and δ for the basic sums: what is stated, or else what the loss implies."""
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
