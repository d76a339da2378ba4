"""The terms on which a public function releases, and the ledger that is charged first."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar

import numpy as np

from skdpnoise._utils.checks import check_adjacency
from skdpnoise.accounting.reservation import Ledger, LossFor, calibrated_loss, facts_for
from skdpnoise.accounting.session import Charge, Session, no_charge
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss, check_real
from skdpnoise.privacy.loss import checked_relation, promised
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.words import HIDDEN_SEED

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithCost:
    """Costs of a result of several releases, which totals count."""

    privacy: PrivacyLoss | None = None  # all three are known of what a query returns
    adjacency: Adjacency | None = None
    secure: bool = True
    guarantee: PrivacyGuarantee | None = None  # as it was asked for; None where a loss was


class OfOne(TypedDict, total=False):
    """Parameters that all queries of one release have beside their guarantee and their own."""

    epsilon: float | None
    delta: float | None
    adjacency: Adjacency | None
    random_state: int | np.random.RandomState | np.random.Generator | RandomWords | None
    ledger: Ledger | None


class OfSeveral(OfOne, total=False):
    """The same of queries that make several releases."""

    charge: Charge | None


def takes_terms(query: Function, terms: Any = None, **defaults: Any) -> Function:
    """Show the keywords of a query, which it takes as one dict, one by one in its signature."""
    signature = inspect.signature(query)
    *own, keywords = signature.parameters.values()
    if terms is None:
        terms = OfSeveral if keywords.annotation == "Unpack[OfSeveral]" else OfOne
    shown = [  # with their types as they are written
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(name),
            annotation=hint.__forward_arg__,
        )
        for name, hint in terms.__annotations__.items()
    ]
    vars(query)["__signature__"] = signature.replace(parameters=[*own, *shown])
    return query


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms(Session):
    """The session of a public function, whose whole cost a ledger is charged before it samples."""

    owner: str  # name of the function
    guarantee: PrivacyGuarantee | LossBudget
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        if self.ledger is not None and not callable(getattr(self.ledger, "charge", None)):
            raise TypeError(
                f"The 'ledger' parameter of {self.owner} must be None or an object that implements "
                f"'charge', such as a PrivacyLedger. Got {type(self.ledger).__name__} instead."
            )

    @classmethod
    def of(
        cls,
        owner: str,
        guarantee: PrivacyGuarantee | LossBudget | None,
        asked: Mapping[str, object],
        *,
        several: bool = False,
    ) -> Terms:
        """Return the terms of one release, which the ledger is charged for, or of several."""
        # Of several the whole cost is reserved first, and a loss is one of any relation.
        given: dict[str, Any] = dict(asked)
        if unknown := given.keys() - (OfSeveral if several else OfOne).__annotations__.keys():
            raise TypeError(f"{owner}() got an unexpected keyword argument {min(unknown)!r}")
        relation = given.get("adjacency")
        promise = promised(owner, guarantee, given.get("epsilon"), given.get("delta"), relation)
        if several:
            stated = promise.adjacency if isinstance(promise, PrivacyGuarantee) else "replace_one"
            relation = check_adjacency(owner, stated if relation is None else relation)
        else:
            relation = checked_relation(owner, relation, promise)
        found = cls(
            rng=random_words(given.get("random_state")),
            adjacency=relation,
            charge=given.get("charge") or no_charge,
            owner=owner,
            guarantee=promise,
            ledger=given.get("ledger"),
        )
        return found if several else found.charging()

    def charging(self) -> Terms:
        """Return the terms of one release, at which the ledger is charged for the noise."""
        return replace(self, charge=self._charge_for)

    def _charge_for(self, label: str, mechanism: Any) -> None:
        loss_for = calibrated_loss(mechanism, self.guarantee)
        self.reserve(mechanism.own_loss(), mechanism.noise, loss_for)

    def public_count(self, n_samples: float | None, n_records: int, low: float = 0.0) -> float:
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

    def stated(self, result: Result) -> Result:
        """Return a result that says its neighbours, its randomness and the guarantee asked for."""
        asked = self.guarantee if isinstance(self.guarantee, PrivacyGuarantee) else None
        facts = {"adjacency": self.adjacency, "secure": self.rng.secure, "guarantee": asked}
        made: Any = result
        known = {name: fact for name, fact in facts.items() if name in made.__dataclass_fields__}
        stated: Result = replace(made, **known)
        return stated

    def reserve(self, cost: PrivacyLoss, noise: str, loss_for: LossFor | None = None) -> None:
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
            mechanism=noise,
        )
        if not self.rng.secure:
            facts["parameters"] = {"random_state": HIDDEN_SEED}
        self.ledger.charge(self.owner, cost, **facts)
