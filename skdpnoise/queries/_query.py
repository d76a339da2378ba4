"""What a query is asked for: its values, its terms, and the ledger that is charged first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss, check_real
from skdpnoise.privacy.checks import check_adjacency
from skdpnoise.queries._sweeps import all_finite
from skdpnoise.queries._tiles import Floats
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.words import HIDDEN_SEED


class LedgerLike(Protocol):
    """What can be charged, such as :class:`~skdpnoise.ledger.PrivacyLedger`."""

    @property
    def charge(self) -> Callable[..., Any]:
        """Record a label, a cost and facts about it, or raise and record nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """What a query is asked for beside its values."""

    owner: str  # name of the function
    guarantee: PrivacyGuarantee | LossBudget
    adjacency: Any  # the neighbouring relation; None where only the caller knows it
    ledger: LedgerLike | None
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
        ledger: LedgerLike | None,
        random_state: Any,
    ) -> Query:
        """Return a query whose relation, if none is named, is that of the guarantee; else any."""
        stated = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else "replace_one"
        relation = check_adjacency(owner, stated if adjacency is None else adjacency)
        return cls(owner, guarantee, relation, ledger, random_words(random_state))

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

    def spend(self, cost: PrivacyLoss, mechanism: str) -> None:
        """Charge the ledger, if there is one, after all checks and before anything is sampled."""
        if self.ledger is None:
            return
        facts: dict[str, Any] = {"adjacency": self.adjacency, "unit": "record"}
        if isinstance(self.guarantee, PrivacyGuarantee):
            facts["guarantee"] = (self.guarantee.epsilon, self.guarantee.delta)
        if not self.rng.secure:
            facts["parameters"] = {"random_state": HIDDEN_SEED}
        self.ledger.charge(self.owner, cost, mechanism=mechanism, **facts)

    def spend_for(self, mechanism: AdditiveMechanism) -> None:
        """Charge the ledger by what the noise of a mechanism discloses."""
        if self.ledger is not None:
            self.spend(mechanism.own_loss(), mechanism.noise)


def as_table(
    owner: str, values: ArrayLike, *, name: str = "values", n_dims: tuple[int, ...] = (1, 2)
) -> tuple[NDArray[Any], Callable[[Floats], Any]]:
    """Return the values as columns, and what gives a result per column the shape of the input."""
    array = np.asarray(values)
    shapes = " or ".join(["(n_records,)", "(n_records, n_columns)"][n - 1] for n in n_dims)
    allowed = f"The {name!r} parameter of {owner} must be an array of real numbers, shape {shapes}"
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{allowed}. Got an array of dtype {array.dtype} instead.")
    if array.ndim not in n_dims or 0 in array.shape[1:]:
        raise ValueError(f"{allowed}. Got an array of shape {array.shape} instead.")
    if not all_finite(array):
        raise ValueError(
            f"{allowed}, finite in every entry: remove or replace NaN and infinity first."
        )
    if array.ndim == 1:
        return array[:, np.newaxis], lambda result: float(result[0])
    return array, np.asarray
