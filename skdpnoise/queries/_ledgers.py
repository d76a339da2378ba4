"""Charging a ledger for a release, before anything is drawn."""

from __future__ import annotations

from typing import Any, Protocol

from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling.words import HIDDEN_SEED

__all__ = ["LedgerLike", "check_adaptive", "check_ledger", "pay"]


class LedgerLike(Protocol):
    """What can be charged, such as :class:`~skdpnoise.ledger.PrivacyLedger`."""

    def charge(
        self,
        label: str,
        cost: Any,
        *,
        guarantee: tuple[float, float] | None = None,
        adjacency: Any = None,
        unit: str | None = None,
        mechanism: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> Any:
        """Record the cost, or raise and record nothing."""
        ...


def check_ledger(owner: str, ledger: object) -> None:
    """Refuse what cannot be charged.

    Parameters
    ----------
    owner : str
        Function to name in a message.
    ledger : object
        What the caller gave.

    Examples
    --------
    >>> check_ledger("private_mean", None)
    """
    if ledger is not None and not callable(getattr(ledger, "charge", None)):
        raise TypeError(
            f"The 'ledger' parameter of {owner} must be None or an object that implements 'charge',"
            f" such as a PrivacyLedger. Got {type(ledger).__name__} instead."
        )


def pay(
    ledger: LedgerLike | None,
    owner: str,
    cost: PrivacyLoss,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    adjacency: Adjacency | None,
    noise: str,
    secure: bool = True,
) -> None:
    """Charge a ledger, if there is one: after all that can be refused, before anything is drawn.

    Parameters
    ----------
    ledger : LedgerLike or None
        Checked.
    owner : str
        Function that releases, the label of the charge.
    cost : PrivacyLoss
        Of all its releases together.
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        What was asked for; a guarantee is stated beside the cost.
    adjacency : {"replace_one", "add_remove"} or None
        The neighbouring relation; None vouches that it is the ledger's.
    noise : str
        Name of the mechanism.
    secure : bool, default=True
        Whether the noise comes from the operating system; else the ledger notes that it does not.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> pay(None, "private_sum", PureLoss(1.0), PureLoss(1.0), adjacency=None, noise="laplace")
    """
    if ledger is None:
        return
    stated = None
    if isinstance(guarantee, PrivacyGuarantee):
        stated = (guarantee.epsilon, guarantee.delta)
    ledger.charge(
        owner,
        cost,
        guarantee=stated,
        adjacency=adjacency,
        unit="record",
        mechanism=noise,
        **({} if secure else {"parameters": {"random_state": HIDDEN_SEED}}),
    )


def check_adaptive(owner: str, noise: object) -> None:
    """Refuse noise that the later releases of a series could not take.

    Parameters
    ----------
    owner : str
        Function to name in a message.
    noise : object
        What the caller gave.

    Examples
    --------
    >>> check_adaptive("private_moments", "auto")
    """
    allowed = noise_options(adaptive=True)
    if noise not in allowed:
        raise ValueError(
            f"The 'noise' parameter of {owner} must be a str among {allowed}. Got {noise!r} "
            "instead: not all of its releases can take other noise."
        )
