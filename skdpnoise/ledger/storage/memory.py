"""What a ledger needs of the place where it is kept, and the plainest such place: memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from skdpnoise.ledger.errors import BudgetChangedError, LedgerStorageError, UnknownDatasetError

T = TypeVar("T")

DETACHED = (
    "This ledger is kept in memory, in the process that made it: a copy of it in another process "
    "cannot see what is charged there. Make it with storage='sqlite:///budget.db', or another "
    "URL, to use it from several processes."
)


@dataclass(frozen=True)
class Facts:
    """What was set for a data set, once."""

    epsilon: float
    delta: float
    adjacency: str
    unit: str
    adaptive: bool


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
    """Number of the last charge, and the digest of all of them."""

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
    """All or nothing, and nobody else in between."""

    def summary(self) -> Summary | None:
        """Return what was last written by `write_summary`."""
        ...

    def rows(self, after: int | None) -> list[Row]:
        """Return the charges with larger numbers, in order; all if None."""
        ...

    def counted(self, up_to: int) -> list[tuple[str, float, float, int, int]]:
        """Return losses, ε and δ up to a number, how many are alike, and the first of them."""
        ...

    @property
    def head(self) -> Head:
        """What was last written by `write`."""
        ...

    @property
    def facts(self) -> Facts | None:
        """What is set for the data set now."""
        ...

    def find(self, token: str) -> Row | None:
        """Return the charge with a token."""
        ...

    def write(self, row: Row, digest: str) -> None:
        """Write a charge, and the digest of all charges up to it."""
        ...

    def write_summary(self, summary: Summary) -> None:
        """Write the composition of all charges up to a number."""
        ...


class Storage(Protocol):
    """A place with data sets."""

    def open(self, dataset: str, wanted: dict[str, Any], *, create: bool) -> Facts:
        """Return what was set for a data set, or set it."""
        ...

    def transaction(self, dataset: str, *, write: bool) -> AbstractContextManager[Transaction]:
        """Begin; commit at the end of the block, or undo everything if it raises."""
        ...

    def attempt(self, work: Callable[[int], T]) -> T:
        """Do ``work(k)`` for k = 0, 1, ... until no passing fault of the storage disturbs it."""
        ...


def agreed(dataset: str, stored: Facts, wanted: dict[str, Any]) -> Facts:
    """Return what is stored if all that is wanted is the same; None wants nothing."""
    for field in fields(Facts):
        asked, kept = wanted.get(field.name), getattr(stored, field.name)
        if asked is not None and asked != kept:
            raise BudgetChangedError(
                f"The {field.name!r} parameter of PrivacyLedger must be {kept!r}, as it was set "
                f"for the data set {dataset!r}. Got {asked!r} instead. What is promised for a "
                f"data set does not change: leave {field.name} out to open the ledger as it is, "
                "or choose another name for other data."
            )
    return stored


def new_facts(dataset: str, wanted: dict[str, Any], known: list[str], *, create: bool) -> Facts:
    """Return what is wanted for a new data set, or say that it is unknown."""
    if not create or wanted.get("epsilon") is None or wanted.get("delta") is None:
        names = ", ".join(map(repr, known[:20])) or "none yet"
        raise UnknownDatasetError(
            f"The 'dataset' parameter of PrivacyLedger must be the name of a data set in the "
            f"storage ({names}), or epsilon and delta must be given to create it. Got {dataset!r} "
            f"instead. To create it: PrivacyLedger({dataset!r}, epsilon=..., delta=..., "
            "storage=...)."
        )
    defaults = {"adjacency": "replace_one", "unit": "record", "adaptive": False}
    given = {name: value for name, value in wanted.items() if value is not None}
    return Facts(**{**defaults, **given})


def now() -> str:
    """Return the time in UTC; such texts sort as the times do."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class MemoryStorage:
    """One data set, for as long as the process lives."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._facts: Facts | None = None
        self._head = Head(0, "")
        self._process = os.getpid()

    def open(self, dataset: str, wanted: dict[str, Any], *, create: bool) -> Facts:
        if self._facts is None:
            self._facts = new_facts(dataset, wanted, [], create=create)
        return self._facts

    @contextmanager
    def transaction(self, dataset: str, *, write: bool) -> Iterator[Transaction]:
        if os.getpid() != self._process:
            raise LedgerStorageError(DETACHED)
        before, head = len(self._rows), self._head
        try:
            yield self
        except BaseException:
            del self._rows[before:]
            self._head = head
            raise

    def attempt(self, work: Callable[[int], T]) -> T:
        return work(0)

    def summary(self) -> Summary | None:
        return None

    def rows(self, after: int | None) -> list[Row]:
        return self._rows[after:]

    def counted(self, up_to: int) -> list[tuple[str, float, float, int, int]]:
        return [(row.loss, row.epsilon, row.delta, 1, row.number) for row in self._rows[:up_to]]

    @property
    def head(self) -> Head:
        return self._head

    @property
    def facts(self) -> Facts | None:
        return self._facts

    def find(self, token: str) -> Row | None:
        return next((row for row in self._rows if row.token == token), None)

    def write(self, row: Row, digest: str) -> None:
        self._rows.append(row)
        self._head = Head(row.number, digest)

    def write_summary(self, summary: Summary) -> None:
        pass


class DetachedStorage(MemoryStorage):
    """What arrives where a ledger in memory was sent to another process."""

    def open(self, dataset: str, wanted: dict[str, Any], *, create: bool) -> Facts:
        raise LedgerStorageError(DETACHED)
