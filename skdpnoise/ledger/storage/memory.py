"""Ledgers that last as long as their process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from skdpnoise.ledger.errors import LedgerStorageError
from skdpnoise.ledger.storage import base
from skdpnoise.ledger.storage.base import Alike, Head, Row, StoredBudget, Summary

T = TypeVar("T")


class MemoryStorage:
    shown = address = None

    def __init__(self, process: int | None = None) -> None:
        self._process = os.getpid() if process is None else process
        self._datasets: dict[str, _ChargesInMemory] = {}

    def open(self, dataset: str, wanted: dict[str, Any]) -> StoredBudget:
        self._check_process()
        stored = self._datasets.get(dataset)
        known = None if stored is None else stored.budget
        budget = base.settled(dataset, known, wanted, self.names())
        self._datasets.setdefault(dataset, _ChargesInMemory(dataset, budget))
        return budget

    def names(self) -> list[str]:
        return sorted(self._datasets)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LedgerStorageError(
                "This ledger is kept in memory, in the process that made it: a copy of it in "
                "another process cannot see what is charged there. Make it with "
                "storage='sqlite:///budget.db', or another URL, to use it from several processes."
            )

    @contextmanager
    def transaction(self, dataset: str, *, write: bool) -> Iterator[_ChargesInMemory]:
        self._check_process()
        charges = self._datasets[dataset]
        count, head = len(charges.written), charges.head
        try:
            yield charges
        except BaseException:
            del charges.written[count:]
            charges.head = head
            raise

    def attempt(self, work: Callable[[int], T]) -> T:
        return work(0)


class _ChargesInMemory:
    """The charges of a data set; a transaction works on the list itself."""

    def __init__(self, dataset: str, budget: StoredBudget) -> None:
        self.budget, self.seal = budget, budget.seal(dataset)
        self.head, self.written = Head(0, base.digest_of(self.seal, self.seal)), list[Row]()

    def summarised(self) -> tuple[Summary, list[Alike]] | None:
        return None

    def rows(self, after: int | None = None) -> Iterator[Row]:
        return iter(self.written[after:])

    def find(self, token: str) -> Row | None:
        return next((row for row in self.written if row.token == token), None)

    def write(self, row: Row, digest: str, summary: Summary | None) -> None:
        self.written.append(row)
        self.head = Head(row.number, digest)
