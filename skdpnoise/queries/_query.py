"""What a query is asked for: its values, its terms, and the ledger that is charged first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.checks import check_adjacency, check_collected
from skdpnoise.data.kinds import OBJECTS, kinds_of
from skdpnoise.data.missing import Missing, with_gaps
from skdpnoise.data.rows import is_spread
from skdpnoise.data.table import Partitioned, looked_at
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.charging import Ledger, LossFor, to_name_the_largest
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss, check_real
from skdpnoise.queries._sweeps import all_finite
from skdpnoise.queries._tiles import Floats
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.words import HIDDEN_SEED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paid:
    """Costs of a result of several releases, which totals count."""

    privacy: PrivacyLoss | None = None  # all three are known of what a query returns
    adjacency: Adjacency | None = None
    secure: bool = True
    guarantee: PrivacyGuarantee | None = None  # as it was asked for; None where a loss was


@dataclass(frozen=True, slots=True)
class Query:
    """What a query is asked for beside its values."""

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

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that a result states of the query: neighbours, randomness, and the guarantee."""
        asked = self.guarantee if isinstance(self.guarantee, PrivacyGuarantee) else None
        return {"adjacency": self.adjacency, "secure": self.rng.secure, "guarantee": asked}

    def spend(
        self,
        cost: PrivacyLoss,
        mechanism: str,
        loss_for: LossFor | None = None,
    ) -> None:
        """Charge the ledger, if there is one, after all checks and before anything is sampled."""
        # loss_for: what the query would cost for another guarantee
        if self.ledger is None:
            return
        facts: dict[str, Any] = {"adjacency": self.adjacency, "unit": "record"}
        facts |= to_name_the_largest(self.ledger, self.guarantee, loss_for)
        if isinstance(self.guarantee, PrivacyGuarantee):
            facts["guarantee"] = (self.guarantee.epsilon, self.guarantee.delta)
        if not self.rng.secure:
            facts["parameters"] = {"random_state": HIDDEN_SEED}
        self.ledger.charge(self.owner, cost, mechanism=mechanism, **facts)

    def spend_for(self, mechanism: AdditiveMechanism) -> None:
        """Charge the ledger by what the noise of a mechanism discloses."""
        if self.ledger is not None:
            recipe = mechanism.recipe
            known = recipe is not None and recipe.guarantee == self.guarantee
            loss_for = recipe.loss if recipe is not None and known else None
            self.spend(mechanism.own_loss(), mechanism.noise, loss_for)


def ends(owner: str, low: Any, high: Any, bounds: Any) -> tuple[Any, Any]:
    """Return public bounds that are given one by one, or as a pair."""
    one_by_one = low is not None and high is not None
    if bounds is None and one_by_one:
        return low, high
    if bounds is None or not (low is None and high is None):
        raise TypeError(f"{owner} needs public bounds: pass 'bounds' as (low, high), once.")
    if not (isinstance(bounds, list | tuple) and len(bounds) == 2):
        raise TypeError(
            f"The 'bounds' parameter of {owner} must be (low, high). Got "
            f"{type(bounds).__name__} instead."
        )
    return bounds[0], bounds[1]


def as_table(
    owner: str,
    values: Any,
    *,
    name: str = "values",
    n_dims: tuple[int, ...] = (1, 2),
    missing: Missing | None = None,
) -> tuple[Any, Callable[[Floats], Any]]:
    """Return the values as columns, and what gives a result per column the shape of the input."""
    # What is missing is NaN in the columns, where it is skipped.
    # The columns of rows in parts are doubles or floats, whatever the values are.
    if isinstance(values, Partitioned) or is_spread(values):
        parts = values
        if not isinstance(values, Partitioned):  # else they were looked at
            check = partial(_n_columns, owner, name, n_dims, missing)
            parts = spread_values(owner, values, check)
        shape = np.asarray if parts.tail else _first
        table = parts.map(partial(_float_columns, missing), *(parts.tail or (1,)))
        return (table if len(table) else np.empty(table.shape)), shape
    array = _checked_values(owner, name, n_dims, missing, values)
    return (array, np.asarray) if array.ndim > 1 else (array[:, np.newaxis], _first)


def spread_values(owner: str, values: Any, check: Callable[[Any], int | None]) -> Partitioned[Any]:
    """Look at values in parts; a check returns how many columns there are, None of a vector."""
    rows = looked_at(partial(_of_values, check), values=values)
    widths = {width for facts in rows.rows.facts for width in facts.found}
    if len(widths) > 1:
        raise ValueError(f"{owner} needs the same columns in all parts of the rows.")
    tail = values.shape[1:] if not widths else () if widths == {None} else tuple(widths)
    return rows.map(_values_of, *tail)


def _of_values(check: Callable[[Any], int | None], tables: dict[str, Any]) -> int | None:
    return check(tables["values"])


def _values_of(tables: dict[str, Any]) -> Any:
    return tables["values"]


def _n_columns(
    owner: str, name: str, n_dims: tuple[int, ...], missing: Missing | None, values: Any
) -> int | None:
    array = _checked_values(owner, name, n_dims, missing, values)
    return array.shape[1] if array.ndim > 1 else None


def _as_array(values: Any, missing: Missing | None = None) -> NDArray[Any]:
    """Return values as an array: of a frame of floats as they lie in memory, in no time."""
    frame = hasattr(values, "iloc")
    if missing != "skip":
        # Not of all that has the method: arrays of pyarrow refuse what they would have to copy.
        array = np.asarray(values.to_numpy() if frame else values)
        # pandas makes objects of numbers of its own types where one is missing.
        if array.dtype.kind != "O" or not frame or OBJECTS in kinds_of(values):
            return array
    found = with_gaps(values)
    return np.asarray(values) if found is None else found


def _float_columns(missing: Missing | None, values: Any) -> Floats:
    """Return some checked values as columns of floating-point numbers."""
    array = _as_array(values, missing)
    floats = array if array.dtype.kind == "f" else array.astype(np.float64)
    return floats if floats.ndim > 1 else floats[:, np.newaxis]


def _first(result: Floats) -> float:
    return float(result[0])


def _checked_values(
    owner: str, name: str, n_dims: tuple[int, ...], missing: Missing | None, values: Any
) -> NDArray[Any]:
    """Return values as an array, or say what is wrong with them."""
    check_collected(owner, name, values)
    shapes = " or ".join(["(n_records,)", "(n_records, n_columns)"][n - 1] for n in n_dims)
    allowed = f"The {name!r} parameter of {owner} must be an array of real numbers, shape {shapes}"
    if np.ma.isMaskedArray(values) and missing != "skip":
        raise TypeError(f"{allowed}. Got a masked array, whose mask would be lost, instead.")
    array = _as_array(values, missing)
    skip = "" if missing is None else ", or give missing='skip' to leave out what is missing"
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{allowed}. Got an array of dtype {array.dtype} instead.")
    if array.ndim not in n_dims or 0 in array.shape[1:]:
        raise ValueError(f"{allowed}. Got an array of shape {array.shape} instead.")
    if missing == "skip":
        if np.isinf(array).any():
            raise ValueError(f"{allowed}, finite or missing in every entry: clip infinity first.")
    elif not all_finite(array):
        raise ValueError(
            f"{allowed}, finite in every entry: remove or replace NaN and infinity first{skip}."
        )
    return array
