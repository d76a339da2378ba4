"""Charging a ledger for a release, before anything is sampled."""

from __future__ import annotations

from typing import Any, Protocol, TypedDict, Unpack

from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling.words import HIDDEN_SEED

__all__ = ["LedgerLike", "check_adaptive", "check_ledger", "spend"]


class ChargeFacts(TypedDict, total=False):
    """What a ledger notes beside a cost."""

    guarantee: tuple[float, float] | None
    adjacency: Any
    unit: str | None
    mechanism: str | None
    parameters: dict[str, Any] | None


class LedgerLike(Protocol):
    """What can be charged, such as :class:`~skdpnoise.ledger.PrivacyLedger`."""

    def charge(self, label: str, cost: Any, **facts: Unpack[ChargeFacts]) -> Any:
        """Record the cost, or raise and record nothing."""
        ...


def check_ledger(owner: str, ledger: object) -> None:
    """Refuse what cannot be charged.

    Examples
    --------
    >>> check_ledger("private_mean", None)
    """
    if ledger is not None and not callable(getattr(ledger, "charge", None)):
        raise TypeError(
            f"The 'ledger' parameter of {owner} must be None or an object that implements 'charge',"
            f" such as a PrivacyLedger. Got {type(ledger).__name__} instead."
        )


def spend(
    ledger: LedgerLike | None,
    owner: str,
    cost: PrivacyLoss,
    asked: PrivacyGuarantee | LossBudget,
    *,
    secure: bool = True,
    **facts: Unpack[ChargeFacts],
) -> None:
    """Charge a ledger, if there is one, after all checks and before anything is sampled."""
    if ledger is None:
        return
    facts["unit"] = "record"
    if isinstance(asked, PrivacyGuarantee):
        facts["guarantee"] = (asked.epsilon, asked.delta)
    if not secure:
        facts["parameters"] = {"random_state": HIDDEN_SEED}
    ledger.charge(owner, cost, **facts)


def check_adaptive(owner: str, noise: object) -> None:
    """Refuse noise that the later releases of a series could not take.

    Examples
    --------
    >>> check_adaptive("private_moments", "auto")
    """
    allowed = noise_options(adaptive=True)
    if noise not in allowed:
        raise ValueError(
            f"The 'noise' parameter of {owner} must be among {allowed}, which all of its releases "
            f"can take. Got {noise!r} instead."
        )
