"""The protocol of storages, and the records that cross it: budgets, charges and summaries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from skdpnoise.ledger.errors import BudgetChangedError, UnknownDatasetError
from skdpnoise.privacy import Adjacency, PrivacyGuarantee

T = TypeVar("T")

Alike = tuple[str, float, float, int, int]
"""Loss, ε and δ of charges, how many have these, and the number of the first of them."""


@dataclass(frozen=True)
class StoredBudget:
    """The budget of a data set and its rules, as they were set once."""

    epsilon: float
    delta: float
    adjacency: Adjacency = "replace_one"
    unit: str = "record"
    adaptive: bool = False

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """The budget."""
        return PrivacyGuarantee(self.epsilon, self.delta, self.adjacency)

    def seal(self, dataset: str) -> str:
        """Return the digest of the name of a data set and of its budget."""
        return digest_of(dataset, *asdict(self).values())


class Row(NamedTuple):
    """A charge as it is written down."""

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

    def rows(self, after: int | None) -> list[Row]:
        """Return the charges with larger numbers, in order; all if None."""

    def each(self, after: int | None = None) -> Iterator[Row]:
        """Return the same one by one, so that they need not all be in memory."""

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


def settled(
    dataset: str, stored: StoredBudget | None, wanted: dict[str, Any], known: Sequence[str] = ()
) -> StoredBudget:
    """Return the stored budget if nothing wanted differs from it, else a new one."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if stored is None and "epsilon" not in wanted:
        names = ", ".join(map(repr, known[:20])) or "none yet"
        raise UnknownDatasetError(
            f"The 'dataset' parameter of PrivacyLedger must be the name of a data set in the "
            f"storage ({names}), or epsilon and delta must be given to create it. Got {dataset!r} "
            f"instead. To create it: PrivacyLedger({dataset!r}, epsilon=..., delta=..., "
            "storage=...)."
        )
    facts = StoredBudget(**wanted) if stored is None else stored
    for name, kept in asdict(facts).items():
        asked = wanted.get(name, kept)
        if asked != kept:
            raise BudgetChangedError(
                f"The {name!r} parameter of PrivacyLedger must be {kept!r}, as it was set for the "
                f"data set {dataset!r}. Got {asked!r} instead. What is promised for a data set "
                f"does not change: leave {name} out to open the ledger as it is, or choose another "
                "name for other data."
            )
    return facts


def checked_name(name: str, value: object) -> str:
    owner = "PrivacyLedger" if name == "dataset" else "PrivacyLedger.charge"
    allowed = f"The {name!r} parameter of {owner} must be a str of 1 to 255 characters"
    text = _storable(allowed, value)
    if not 1 <= len(text) <= 255:
        raise ValueError(f"{allowed}. Got one of {len(text)} instead.")
    return text


def checked_text(name: str, value: object, owner: str = "PrivacyLedger.charge") -> str | None:
    if value is None:
        return None
    return _storable(f"The {name!r} parameter of {owner} must be None or a str", value)


def _storable(allowed: str, text: object) -> str:
    """Return a text that every database can keep: UTF-8 without NUL."""
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


def digest_of(*values: object) -> str:
    """Return the SHA-256 of values as a storage gives them back."""
    # Every database gives back 1 as 1.0, and -0.0 as 0.0.
    text = json.dumps([x + 0.0 if isinstance(x, float) else x for x in values], default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> str:
    """Return the time in UTC as a text; such texts sort by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
