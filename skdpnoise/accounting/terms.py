"""The terms on which a public function releases, and the ledger that is charged first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skdpnoise._utils.checks import check_adjacency
from skdpnoise.accounting.account import Ledger
from skdpnoise.accounting.reservation import facts_for
from skdpnoise.accounting.session import Charge, Session, no_charge
from skdpnoise.mechanisms.charging import LossFor
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss, check_real
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.words import HIDDEN_SEED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithCost:
    """Costs of a result of several releases, which totals count."""

    privacy: PrivacyLoss | None = None  # all three are known of what a query returns
    adjacency: Adjacency | None = None
    secure: bool = True
    guarantee: PrivacyGuarantee | None = None  # as it was asked for; None where a loss was


@dataclass(frozen=True, slots=True)
class Terms:
    """The parameters that all public functions have beside their values."""

    owner: str  # name of the function
    guarantee: PrivacyGuarantee | LossBudget
    adjacency: Any  # the neighbouring relation; None where only the caller knows it
    ledger: Ledger | None
    rng: RandomWords

    def __post_init__(self) -> None:
        if self.ledger is not None and not callable(getattr(self.ledger, "charge", None)):
            raise TypeError(
                f"The 'ledger' parameter of {self.owner} must be None or an object that implements "
                f"'charge', such as a PrivacyLedger. Got {type(self.ledger).__name__} instead."
            )

    @classmethod
    def adaptive(
        cls,
        owner: str,
        guarantee: PrivacyGuarantee | LossBudget,
        adjacency: Adjacency | None,
        ledger: Ledger | None,
        random_state: Any,
    ) -> Terms:
        """Return terms whose relation, if none is named, is that of the guarantee; else any."""
        stated = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else "replace_one"
        relation = check_adjacency(owner, stated if adjacency is None else adjacency)
        return cls(owner, guarantee, relation, ledger, random_words(random_state))

    def session(self, charge: Charge | None = None) -> Session:
        """Return the session that releases on these terms."""
        return Session(self.rng, self.adjacency, charge or no_charge)

    def count(self, n_samples: float | None, n_records: int, low: float = 0.0) -> float:
        """Return the number of records that was given, or else is public."""
        if n_samples is None:
            if self.adjacency == "add_remove":
                raise ValueError(
                    f"The 'n_samples' parameter of {self.owner} must be given when "
                    "adjacency='add_remove': the number of records is then private. Release a "
                    "noisy count and pass it."
                )
            n_samples = n_records
        return check_real(self.owner, "n_samples", n_samples, low=low)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that a result states of the terms: neighbours, randomness, and the guarantee."""
        asked = self.guarantee if isinstance(self.guarantee, PrivacyGuarantee) else None
        return {"adjacency": self.adjacency, "secure": self.rng.secure, "guarantee": asked}

    def reserve(self, cost: PrivacyLoss, mechanism: str, loss_for: LossFor | None = None) -> None:
        """Charge the ledger, if there is one, after all checks and before anything is sampled."""
        # `loss_for` returns what the releases would cost for another guarantee.
        if self.ledger is None:
            return
        facts = facts_for(
            self.ledger,
            self.guarantee,
            loss_for,
            adjacency=self.adjacency,
            unit="record",
            mechanism=mechanism,
        )
        if not self.rng.secure:
            facts["parameters"] = {"random_state": HIDDEN_SEED}
        self.ledger.charge(self.owner, cost, **facts)

    def spend_for(self, label: str, mechanism: Any) -> None:
        """Charge the ledger by the loss of the noise of the only release."""
        if self.ledger is not None:
            recipe = mechanism.recipe
            known = recipe is not None and recipe.guarantee == self.guarantee
            loss_for = recipe.loss if recipe is not None and known else None
            self.reserve(mechanism.own_loss(), mechanism.noise, loss_for)
