"""What a ledger writes down, and the plainest place where it may be kept: memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from skdpnoise.ledger.errors import BudgetChangedError, LedgerStorageError, UnknownDatasetError
from skdpnoise.privacy import Adjacency, PrivacyGuarantee

T = TypeVar("T")

Alike = tuple[str, float, float, int, int]
"""Loss, ε and δ of charges, how many have these, and the number of the first of them."""


@dataclass(frozen=True)
class Facts:
    """What was set for a data set, once."""

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
        """Return the digest of the name of a data set and of all that was set for it."""
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


def settled(
    dataset: str, stored: Facts | None, wanted: dict[str, Any], known: Sequence[str] = ()
) -> Facts:
    """Return what is stored, from which nothing wanted may differ, else what is wanted."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if stored is None and "epsilon" not in wanted:
        names = ", ".join(map(repr, known[:20])) or "none yet"
        raise UnknownDatasetError(
            f"The 'dataset' parameter of PrivacyLedger must be the name of a data set in the "
            f"storage ({names}), or epsilon and delta must be given to create it. Got {dataset!r} "
            f"instead. To create it: PrivacyLedger({dataset!r}, epsilon=..., delta=..., "
            "storage=...)."
        )
    facts = Facts(**wanted) if stored is None else stored
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


def digest_of(*values: object) -> str:
    """Return the SHA-256 of values as a storage gives them back."""
    # Every database gives back 1 as 1.0, and -0.0 as 0.0.
    text = json.dumps([x + 0.0 if isinstance(x, float) else x for x in values], default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> str:
    """Return the time in UTC; such texts sort as the times do."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class MemoryStorage:
    """One data set, for as long as the process lives; a transaction is the storage itself."""

    shown = address = None

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self.head, self.seal = Head(0, ""), ""
        self.facts: Facts | None = None
        self.process = os.getpid()

    def open(self, dataset: str, wanted: dict[str, Any]) -> Facts:
        """Return what was set for a data set, or set it."""
        self._check_process()
        self.facts = settled(dataset, None, wanted)
        self.seal = self.facts.seal(dataset)
        self.head = Head(0, digest_of(self.seal, self.seal))
        return self.facts

    def _check_process(self) -> None:
        if os.getpid() != self.process:
            raise LedgerStorageError(
                "This ledger is kept in memory, in the process that made it: a copy of it in "
                "another process cannot see what is charged there. Make it with "
                "storage='sqlite:///budget.db', or another URL, to use it from several processes."
            )

    @contextmanager
    def transaction(self, dataset: str, *, write: bool) -> Iterator[MemoryStorage]:
        """Begin; commit at the end of the block, or undo everything if it raises."""
        self._check_process()
        before, head = len(self._rows), self.head
        try:
            yield self
        except BaseException:
            del self._rows[before:]
            self.head = head
            raise

    def attempt(self, work: Callable[[int], T]) -> T:
        """Do ``work(k)`` for k = 0, 1, ... until no passing fault of the storage disturbs it."""
        return work(0)

    def summarised(self) -> tuple[Summary, list[Alike]] | None:
        """Return the summary that was last written, and the charges that it covers."""
        return None

    def rows(self, after: int | None) -> list[Row]:
        """Return the charges with larger numbers, in order; all if None."""
        return self._rows[after:]

    def each(self, after: int | None = None) -> Iterator[Row]:
        """Return the same one by one, so that they need not all be in memory."""
        return iter(self.rows(after))

    def find(self, token: str) -> Row | None:
        """Return the charge with a token."""
        return next((row for row in self._rows if row.token == token), None)

    def write(self, row: Row, digest: str, summary: Summary | None) -> None:
        """Write a charge, the digest of all charges up to it, and perhaps their summary."""
        self._rows.append(row)
        self.head = Head(row.number, digest)
