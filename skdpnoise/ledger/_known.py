"""What a process has read of a ledger so far, so that a charge reads only what is new."""

from __future__ import annotations

import threading
import warnings
from datetime import datetime, timedelta

from skdpnoise.ledger._storage import Row, Transaction, now
from skdpnoise.ledger.composition import Composition, agree
from skdpnoise.ledger.encoding import decode_loss
from skdpnoise.ledger.errors import LedgerStorageError, LedgerWarning
from skdpnoise.sampling.words import HIDDEN_SEED

__all__ = ["Known"]

_SKEW = timedelta(seconds=10)  # by which the clocks of two machines may disagree in silence


class Known:
    """The composition of the charges up to a number."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.number, self.token, self.time = 0, "", ""
        self.composition = Composition()
        # What did not fit, why, and how much would have, until more is charged.
        self.refused: dict[tuple[str, float, float], tuple[str, float]] = {}
        self.secure, self._looked = True, 0

    def read(self, transaction: Transaction, shown: str | None) -> None:
        """Read the charges since the last time, from within a transaction."""
        if self.number == 0:
            self._begin(transaction, shown)
        rows = transaction.rows(max(self.number - 1, 0))
        if self.number:
            # The last known charge is read again: whatever came before it is still there then.
            if not rows or rows[0].token != self.token:
                raise LedgerStorageError(
                    f"Charge {self.number}, which the ledger has read before, is no longer in "
                    f"{shown}: the storage was replaced, perhaps by an older copy of it. Nothing "
                    "was charged. Open the ledger again to go on with what is there now."
                )
            rows = rows[1:]
        if not rows:
            return
        expected = range(self.number + 1, self.number + 1 + len(rows))
        if [row.number for row in rows] != list(expected):
            raise LedgerStorageError(
                f"The numbers of the charges in {shown} have gaps: they are not those that the "
                f"ledger wrote, and charges after number {self.number} were removed by something "
                "other than skdpnoise. Nothing was charged. Find out who can write to the "
                "storage, and restore it from a copy; charges() and history() still show what is "
                "there."
            )
        total = self.composition.copy()
        for row in rows:
            total.add(decode_loss(row.loss), (row.epsilon, row.delta))
            total.unsummarised += 1
        self.extend(total, rows[-1])

    def _begin(self, transaction: Transaction, shown: str | None) -> None:
        """Add up the charges that a summary covers, and compare it with them.

        Nothing is taken from the summary, which whoever may charge may also write. It bears
        witness: of charges that were removed, or changed, it still has the sums.
        """
        summary = transaction.summary()
        if summary is None:
            return
        total = Composition()
        for loss, epsilon, delta, count in transaction.counted(summary.number):
            total.add(decode_loss(loss), (epsilon, delta), count)
        last = transaction.rows(summary.number - 1)[:1]
        intact = last and (last[0].number, last[0].token) == (summary.number, summary.token)
        if not intact or not agree(total, summary.text):
            raise LedgerStorageError(
                f"The charges up to number {summary.number} in {shown} are not those that the "
                "ledger summed up when they were written: charges, or the summary, were changed "
                "or removed by something other than skdpnoise. Nothing was charged. Find out who "
                "can write to the storage, and restore it from a copy; charges() and history() "
                "still show what is there."
            )
        self.composition = total
        self.number, self.token, self.time = summary.number, summary.token, last[0].time

    def look_for_seeds(self, transaction: Transaction) -> None:
        """Note whether a charge since the last time was for a fit with a seed."""
        for row in transaction.rows(self._looked):
            self.secure &= HIDDEN_SEED not in row.parameters
            self._looked = row.number

    def extend(self, total: Composition, row: Row) -> None:
        """Go on to a composition that ends with a charge."""
        self.composition = total
        self.number, self.token, self.time = row.number, row.token, row.time
        self.refused.clear()

    def warn_of_the_clock(self) -> None:
        """Warn if the time is earlier than that of the last charge, which is written then.

        That is before the commit: who makes warnings errors gets one, and nothing is spent.
        """
        behind = _behind(self.time)
        if behind > _SKEW:
            warnings.warn(
                f"The clock is {behind} behind the last charge of the ledger. This charge "
                "gets the time of that one; what is promised does not depend on the clock. Set "
                "the clock of this machine.",
                LedgerWarning,
                stacklevel=6,
            )


def _behind(last: str) -> timedelta:
    if not last:
        return timedelta(0)
    return datetime.fromisoformat(last) - datetime.fromisoformat(now())
