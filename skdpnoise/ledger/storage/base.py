"""The protocol of storages, and the records that cross it: budgets, charges and summaries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from skdpnoise._utils.checks import check_option, check_type, complaint, with_type
from skdpnoise.ledger.errors import BudgetChangedError, UnknownDatasetError
from skdpnoise.privacy import Adjacency, PrivacyGuarantee, check_adjacency, check_real

T = TypeVar("T")

UNITS = ("record", "group")
_OWNER = "PrivacyLedger"


class Alike(NamedTuple):
    """Charges of one loss, ε and δ."""

    loss: str
    epsilon: float
    delta: float
    n_kept: int  # that were not returned
    number: int  # of the first of them
    n_returned: int


@dataclass(frozen=True)
class StoredBudget:
    """The budget of a data set and its rules, as they were set once."""

    epsilon: float
    delta: float
    adjacency: Adjacency = "replace_one"
    unit: str = "record"
    adaptive: bool = False
    most_returned: int | None = None  # reservations; None for any number

    @property
    def guarantee(self) -> PrivacyGuarantee:
        return PrivacyGuarantee(self.epsilon, self.delta, self.adjacency)

    def check(self) -> PrivacyGuarantee:
        """Return the budget; raise if no ledger would have set it."""
        checked_budget(**asdict(self))
        return self.guarantee

    def seal(self, dataset: str) -> str:
        """Return the digest of the name of a data set and of all that was set for it."""
        # Without a limit it is that of ledgers from before there were limits.
        facts = [*asdict(self).values()]
        return digest_of(dataset, *(facts[:-1] if self.most_returned is None else facts))


class Row(NamedTuple):
    number: int
    token: str
    time: str
    label: str
    mechanism: str | None
    estimator: str | None
    loss: str
    epsilon: float
    delta: float
    who: str | None
    parameters: str
    returned: int | None = None  # number of the reservation that this line returns


class Head(NamedTuple):
    """Number of the last charge, and the digest of the seal and of that of all charges."""

    number: int
    digest: str


class Summary(NamedTuple):
    """The composition of the first charges, so that they need not be read one by one."""

    number: int
    token: str
    time: str
    text: str
    digest: str


class Transaction(Protocol):
    """One data set of a storage, read or written all at once."""

    budget: StoredBudget
    seal: str
    head: Head

    def summarised(self) -> tuple[Summary, list[Alike]] | None:
        """Return the summary that was last written, and the charges that it covers."""

    def rows(self, after: int | None = None) -> Iterator[Row]:
        """Return the charges with larger numbers in order, one by one; all if None."""

    def find(self, token: str) -> Row | None:
        """Return the charge with a token."""

    def write(self, row: Row, digest: str, summary: Summary | None) -> None:
        """Write a charge, the digest of all charges up to it, and perhaps their summary."""


class Storage(Protocol):
    """Keeps the budgets and charges of data sets; a charge is written wholly or not at all."""

    @property
    def shown(self) -> str | None:
        """The URL without its password; None in memory."""

    @property
    def address(self) -> str | None:
        """The URL with its password; None in memory."""

    def open(self, dataset: str, wanted: dict[str, Any]) -> StoredBudget:
        """Return the budget of a data set, or set it to what is wanted."""

    def names(self) -> list[str]:
        """Return the names of all data sets, sorted."""

    def transaction(self, dataset: str, *, write: bool) -> AbstractContextManager[Transaction]:
        """Begin; commit at the end of the block, or undo everything if it raises."""

    def attempt(self, work: Callable[[int], T]) -> T:
        """Do ``work(k)`` for k = 0, 1, ... until no passing fault of the storage disturbs it."""


def checked_budget(
    epsilon: object,
    delta: object,
    adjacency: object,
    unit: object,
    adaptive: object,
    most_returned: object,
) -> dict[str, Any]:
    wanted = {"unit": unit, "adaptive": adaptive, "most_returned": most_returned}
    if (epsilon is None) != (delta is None):
        missing = "epsilon" if epsilon is None else "delta"
        must = (
            "be given along with the other half of the budget, or both left out to open a data set"
        )
        raise ValueError(complaint(_OWNER, missing, must, "None"))
    if unit is not None:
        check_option(_OWNER, "unit", unit, UNITS)
    if adaptive is not None:
        check_type(_OWNER, "adaptive", adaptive, bool)
    if most_returned is not None and (type(most_returned) is not int or most_returned < 0):
        must = "be None or a whole number from 0 on"
        raise ValueError(complaint(_OWNER, "most_returned", must, repr(most_returned)))
    if epsilon is not None:
        wanted["epsilon"] = check_real(_OWNER, "epsilon", epsilon)
        wanted["delta"] = check_real(_OWNER, "delta", delta, high=1.0, low_closed=True)
    if adjacency is not None:
        wanted["adjacency"] = check_adjacency(_OWNER, adjacency)
    return wanted


def settled(
    dataset: str, stored: StoredBudget | None, wanted: dict[str, Any], known: Sequence[str] = ()
) -> StoredBudget:
    """Return the stored budget if nothing wanted differs from it, else a new one."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if stored is None and "epsilon" not in wanted:
        names = ", ".join(map(repr, known[:20])) or "none yet"
        must = (
            f"be the name of a data set in the storage ({names}), or epsilon and delta must be "
            "given to create it"
        )
        remedy = f"To create it: {_OWNER}({dataset!r}, epsilon=..., delta=..., storage=...)."
        raise UnknownDatasetError(complaint(_OWNER, "dataset", must, repr(dataset), remedy))
    facts = StoredBudget(**wanted) if stored is None else stored
    for name, kept in asdict(facts).items():
        asked = wanted.get(name, kept)
        if asked != kept:
            must = f"be {kept!r}, as it was set for the data set {dataset!r}"
            remedy = (
                f"What is promised for a data set does not change: leave {name} out to open the "
                "ledger as it is, or choose another name for other data."
            )
            raise BudgetChangedError(complaint(_OWNER, name, must, repr(asked), remedy))
    return facts


def checked_name(name: str, value: object) -> str:
    owner = _OWNER if name == "dataset" else f"{_OWNER}.charge"
    text = _storable(owner, name, "be a str of 1 to 255 characters", value)
    if not 1 <= len(text) <= 255:
        must = "be a str of 1 to 255 characters"
        raise ValueError(complaint(owner, name, must, f"one of {len(text)}"))
    return text


def checked_text(name: str, value: object, owner: str = f"{_OWNER}.charge") -> str | None:
    return None if value is None else _storable(owner, name, "be None or a str", value)


def _storable(owner: str, name: str, must: str, text: object) -> str:
    """Return a text that every database can keep: UTF-8 without NUL."""
    if not isinstance(text, str):
        raise TypeError(complaint(owner, name, must, with_type(text)))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"one with half of a surrogate pair at position {error.start}"
    else:
        if "\0" not in text:
            return str(text)
        found = f"one with a NUL at position {text.index(chr(0))}"
    must += " that can be written as UTF-8, without NUL"
    raise ValueError(complaint(owner, name, must, found))


def digest_of(*values: object) -> str:
    """Return the SHA-256 of values as a storage gives them back."""
    # Every database gives back 1 as 1.0, and -0.0 as 0.0.
    text = json.dumps([x + 0.0 if isinstance(x, float) else x for x in values], default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> str:
    """Return the time in UTC as a text; such texts sort by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
