"""The charges that a process has read and checked, so that another one reads only new ones."""

from __future__ import annotations

import json
import threading
import warnings
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal

from skdpnoise.accounting.composition import SUM_NAMES, Composition
from skdpnoise.accounting.declared import declared_in
from skdpnoise.accounting.encoding import decode_loss
from skdpnoise.ledger.charge import Charge
from skdpnoise.ledger.errors import LedgerStorageError, LedgerWarning
from skdpnoise.ledger.storage import base, reading
from skdpnoise.ledger.storage.base import Head, Row, StoredBudget, Summary, Transaction
from skdpnoise.sampling.words import HIDDEN_SEED

__all__ = ["VerifiedCharges"]

_SUMMARISE = 64  # charges that a newcomer must read one by one, at most
_SUMS = ("count", *SUM_NAMES)
_SKEW = timedelta(seconds=10)  # by which the clocks of two machines may disagree in silence
_ALIKE = Decimal("1e-25")  # sums round up, in whatever order they are made, in the fortieth place


class VerifiedCharges:
    """The composition of the charges up to a number."""

    # A storage has beside its charges the digest of all of them, each of which goes into it with
    # all that was written down. It begins with the seal of the budget. What is new to a process
    # must lead to it from what the process knows. A newcomer that begins with a summary has not
    # seen that beginning: so the digest that is kept at the end has the seal in it once more.

    def __init__(self, where: str, seal: str) -> None:
        self.lock = threading.RLock()
        self.number, self.token, self.time, self.digest = 0, "", "", seal
        self.composition = Composition()
        # How many charges of each loss, ε and δ are not returned: what is returned is taken out of
        # these, since sums that were rounded, or are infinite, cannot be made smaller again.
        self.kept: Counter[tuple[str, float, float]] = Counter()
        self.n_returned = 0
        # What did not fit, why, and how much would have, until more is charged.
        self.refused: dict[tuple[str, float, float, str], tuple[str, float]] = {}
        # Which charges have a seed, and what they declare, of those that were read in full and are
        # not returned: a fit that drew nothing needs no secure noise.
        self._told: dict[int, tuple[bool, tuple[str, ...]]] = {}
        self._looked = Head(0, seal)
        self._where, self._seal = where, seal

    def read(self, transaction: Transaction, budget: StoredBudget) -> None:
        """Read the charges since the last time, from within a transaction."""
        self._check_budget(transaction, budget)
        if self.number == 0:
            self._begin(transaction)
        rows = [*transaction.rows(self.number - 1 if self.number else None)]
        if self.number:
            # The last known charge is read again: whatever came before it is still there then.
            if not rows or rows[0].token != self.token:
                known = f"Charge {self.number}, which the ledger has read before,"
                raise self._replaced(f"{known} is no longer in {self._where}")
            rows = rows[1:]
        last, digest = self.number + len(rows), self.digest
        if [row.number for row in rows] != [*range(self.number + 1, last + 1)]:
            raise self._changed(f"The charges after number {self.number}")
        for number, row in enumerate(rows, self.number + 1):
            with reading.readable(f"Charge {number}", self._where):
                Charge.of(row)
            digest = reading.digest_after(digest, row)
        if transaction.head != (last, self.sealed(digest)):
            raise self._changed(f"The charges after number {self.number}")
        if not rows:
            return
        total = self._with(rows, budget)
        if self._looked == (self.number, self.digest):  # these were read in full now
            self._looked = Head(last, digest)
            for row in rows:
                self._look_at(row)
        self.extend(total, rows[-1], digest)

    def _with(self, rows: list[Row], budget: StoredBudget) -> Composition:
        """Return the composition with new charges, and without those that new lines return."""
        total, kept, n_returned = self.composition.copy(), self.kept.copy(), self.n_returned
        for row in rows:
            kept[_cost_of(row)] += 1 if row.returned is None else -1
            n_returned += row.returned is not None
            if row.returned is None:
                with reading.readable(f"Charge {row.number}", self._where):
                    total.add(decode_loss(row.loss), (row.epsilon, row.delta))
            elif not (type(row.returned) is int and 0 < row.returned < row.number):
                raise self._changed(f"The charge that line {row.number} returns")
        if budget.most_returned is not None and n_returned > budget.most_returned:
            raise self._changed("More lines that return a charge than there may be")
        if n_returned > self.n_returned:
            total = self._composed(kept)
        self.kept, self.n_returned = kept, n_returned
        return total

    def without(self, row: Row) -> Composition:
        kept = self.kept.copy()
        kept[_cost_of(row)] -= 1
        return self._composed(kept)

    def _composed(self, kept: Counter[tuple[str, float, float]]) -> Composition:
        total = Composition()
        for (loss, epsilon, delta), count in kept.items():
            if count < 0:
                raise self._changed("Lines that return more than was charged")
            if count:
                total.add(decode_loss(loss), (epsilon, delta), count)
        return total

    def _check_budget(self, transaction: Transaction, budget: StoredBudget) -> None:
        # What is charged must fit the budget that is stored, not one that this process remembers.
        if transaction.budget != budget:
            raise self._replaced(
                f"The budget of {self._where} is no longer the one that was opened"
            )
        if transaction.seal != self._seal:
            raise self._changed("The budget", "is not the one", "it, its name")

    def _begin(self, transaction: Transaction) -> None:
        """Add up the charges that a summary covers, and compare it with them."""
        # Nothing is taken from the summary, which whoever may charge may also write. It bears
        # witness: of charges that were removed, or changed, it still has the sums.
        found = transaction.summarised()
        if found is None:
            return
        summary, charges = found
        for one in charges:
            with reading.readable(f"Charge {one.number}", self._where):
                Composition().add(reading.read_cost(*one[:3]), one[1:3])
        self.kept = Counter({one[:3]: one.n_kept for one in charges})
        self.n_returned = sum(one.n_returned for one in charges)
        total = self._composed(self.kept)
        last = next(transaction.rows(summary.number - 1), None)
        there = last is not None and (last.number, last.token) == summary[:2]
        if last is None or not there or not _agree(total, summary.text):
            raise self._changed(f"The charges up to number {summary.number}")
        with reading.readable(f"Charge {summary.number}", self._where):
            reading.time_in(last.time)
        self.extend(total, last, summary.digest)

    def look_through(self, transaction: Transaction) -> None:
        """Read every charge in full, once, and note whether one has a seed."""
        # A charge of a newcomer is judged by the sums of the older ones. Here is more time.
        number, digest = self._looked
        for row in transaction.rows(number or None):
            digest, number = reading.digest_after(digest, row), row.number
            with reading.readable(f"Charge {number}", self._where):
                reading.check_texts(row)
                self._look_at(row)
        if (number, digest) != (self.number, self.digest):
            raise self._changed(f"The charges up to number {self.number}")
        self._looked = Head(number, digest)

    def _look_at(self, row: Row) -> None:
        if row.returned is not None:
            self._told.pop(row.returned, None)
            return
        steps = declared_in(reading.parameters_in(row.parameters))
        seeded = HIDDEN_SEED in row.parameters
        if steps or seeded:
            self._told[row.number] = seeded, steps

    @property
    def secure(self) -> bool:
        """True if no charge that was read in full has a seed."""
        return not any(seeded for seeded, _ in self._told.values())

    @property
    def declared(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step for _, steps in self._told.values() for step in steps))

    def _replaced(self, what: str) -> LedgerStorageError:
        return LedgerStorageError(
            f"{what}: the storage was replaced, perhaps by an older copy of it, or changed by "
            "something other than skdpnoise. Nothing was charged. Find out who can write to the "
            "storage, and open the ledger again to go on with what is there now."
        )

    def _changed(
        self, what: str, differs: str = "are not those", part: str = "charges"
    ) -> LedgerStorageError:
        return LedgerStorageError(
            f"{what} of {self._where} {differs} that the ledger wrote: {part}, or what it keeps to "
            "check them by, were changed, removed or added by something other than skdpnoise. "
            "Nothing was charged. Find out who can write to the storage, and restore it from a "
            "copy; charges() and history() still show what is there."
        )

    def sealed(self, digest: str) -> str:
        return base.digest_of(self._seal, digest)

    def write(self, transaction: Transaction, row: Row, total: Composition) -> str:
        """Write the next line, after which the composition is another one; return the digest."""
        digest = reading.digest_after(self.digest, row)
        summary = None
        if row.number % _SUMMARISE == 0:
            text = json.dumps({name: str(getattr(total, name)) for name in _SUMS})
            summary = Summary(row.number, row.token, row.time, text, digest)
        transaction.write(row, self.sealed(digest), summary)
        return digest

    def add(self, total: Composition, row: Row, digest: str) -> None:
        """Go on to a composition that ends with a line that was just written."""
        self.kept[_cost_of(row)] += 1 if row.returned is None else -1
        self.n_returned += row.returned is not None
        self.extend(total, row, digest)

    def extend(self, total: Composition, row: Row, digest: str) -> None:
        self.composition, self.digest = total, digest
        self.number, self.token, self.time = row.number, row.token, row.time
        self.refused.clear()

    def next_time(self) -> str:
        """Return the time of a new charge: never before the last one, with a warning if need be."""
        # That is before the commit: who makes warnings errors gets one, and nothing is spent.
        time = base.now()
        behind = datetime.fromisoformat(self.time or time) - datetime.fromisoformat(time)
        if behind > _SKEW:
            warnings.warn(
                f"The clock is {behind} behind the last charge of the ledger. This charge "
                "gets the time of that one. The guarantee does not depend on the clock. Set the "
                "clock of this machine.",
                LedgerWarning,
                stacklevel=6,
            )
        return max(time, self.time)


def _cost_of(row: Row) -> tuple[str, float, float]:
    return row.loss, row.epsilon, row.delta


def _agree(total: Composition, text: str) -> bool:
    try:
        stored = json.loads(text)
        pairs = [(Decimal(getattr(total, name)), Decimal(stored[name])) for name in _SUMS]
        return all(a == b or (a.is_finite() and abs(a - b) <= _ALIKE * abs(a)) for a, b in pairs)
    except reading.FAULTS:
        return False
