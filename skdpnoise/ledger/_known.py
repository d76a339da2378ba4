"""What a process has read of a ledger so far, so that a charge reads only what is new."""

from __future__ import annotations

import json
import threading
import warnings
from datetime import datetime, timedelta
from typing import cast

from skdpnoise.ledger.charge import Charge
from skdpnoise.ledger.composition import Composition, agree
from skdpnoise.ledger.errors import LedgerStorageError, LedgerWarning
from skdpnoise.ledger.storage.memory import Facts, Head, Row, Summary, Transaction, now
from skdpnoise.ledger.storage.reading import (
    check_texts,
    digest_after,
    parameters_in,
    read_cost,
    readable,
    time_in,
)
from skdpnoise.privacy import PrivacyLoss
from skdpnoise.sampling.words import HIDDEN_SEED

__all__ = ["Known", "summarise"]

_SUMMARISE = 64  # charges that a newcomer must read one by one, at most
_SKEW = timedelta(seconds=10)  # by which the clocks of two machines may disagree in silence


class Known:
    """The composition of the charges up to a number."""

    # A storage has beside its charges the digest of all of them, each of which goes into it with
    # all that was written down. What is new to a process must lead to it from what the process
    # knows.

    def __init__(self, where: str) -> None:
        self.lock = threading.RLock()
        self.number, self.token, self.time, self.digest = 0, "", "", ""
        self.composition = Composition()
        # What did not fit, why, and how much would have, until more is charged.
        self.refused: dict[tuple[str, float, float], tuple[str, float]] = {}
        self.secure, self._looked = True, Head(0, "")
        self._where = where

    def read(self, transaction: Transaction, budget: Facts) -> None:
        """Read the charges since the last time, from within a transaction."""
        # What is charged must fit the budget that is stored, not one that this process remembers.
        if transaction.facts != budget:
            raise LedgerStorageError(
                f"The budget of {self._where} is no longer the one that was opened: something "
                "other than skdpnoise changed it, or the storage was replaced. Nothing was "
                "charged. Find out who can write to the storage, and open the ledger again to go "
                "on with what is there now."
            )
        if self.number == 0:
            self._begin(transaction)
        rows = transaction.rows(self.number - 1 if self.number else None)
        if self.number:
            # The last known charge is read again: whatever came before it is still there then.
            if not rows or rows[0].token != self.token:
                raise LedgerStorageError(
                    f"Charge {self.number}, which the ledger has read before, is no longer in "
                    f"{self._where}: the storage was replaced, perhaps by an older copy of it. "
                    "Nothing was charged. Open the ledger again to go on with what is there now."
                )
            rows = rows[1:]
        total, digest = self.composition.copy(), self.digest
        for number, row in enumerate(rows, self.number + 1):
            with readable(f"Charge {number}", self._where):
                loss = Charge.of(row).loss
                total.add(cast(PrivacyLoss, loss), (row.epsilon, row.delta))
            total.unsummarised += 1
            digest = digest_after(digest, row)
        last = rows[-1].number if rows else self.number
        in_order = all(row.number == n for n, row in enumerate(rows, self.number + 1))
        if not in_order or transaction.head != (last, digest):
            raise self._changed(f"after number {self.number}")
        if not rows:
            return
        if self._looked == (self.number, self.digest):  # these were read in full now
            self._looked = Head(last, digest)
            self.secure &= not any(HIDDEN_SEED in row.parameters for row in rows)
        self.extend(total, rows[-1], digest)

    def _begin(self, transaction: Transaction) -> None:
        """Add up the charges that a summary covers, and compare it with them."""
        # Nothing is taken from the summary, which whoever may charge may also write. It bears
        # witness: of charges that were removed, or changed, it still has the sums.
        summary = transaction.summary()
        if summary is None:
            return
        total = Composition()
        for loss, epsilon, delta, count, number in transaction.counted(summary.number):
            with readable(f"Charge {number}", self._where):
                total.add(read_cost(loss, epsilon, delta), (epsilon, delta), count)
        last = transaction.rows(summary.number - 1)[:1]
        intact = last and (last[0].number, last[0].token) == (summary.number, summary.token)
        if not intact or not agree(total, summary.text):
            raise self._changed(f"up to number {summary.number}")
        with readable(f"Charge {summary.number}", self._where):
            time_in(last[0].time)
        self.composition = total
        self.number, self.token, self.time = summary.number, summary.token, last[0].time
        self.digest = summary.digest

    def look_through(self, transaction: Transaction) -> None:
        """Read every charge in full, once: are all as written, and does one have a seed?"""
        # A charge of a newcomer is judged by the sums of the older ones. Here is more time.
        digest, number, secure = self._looked.digest, self._looked.number, self.secure
        for row in transaction.rows(number or None):
            digest, number = digest_after(digest, row), row.number
            with readable(f"Charge {number}", self._where):
                check_texts(row)
                parameters_in(row.parameters)
            secure &= HIDDEN_SEED not in row.parameters
        if (number, digest) != (self.number, self.digest):
            raise self._changed(f"up to number {self.number}")
        self._looked, self.secure = Head(number, digest), secure

    def _changed(self, which: str) -> LedgerStorageError:
        return LedgerStorageError(
            f"The charges {which} of {self._where} are not those that the ledger wrote: charges, "
            "or what it keeps to check them by, were changed, removed or added by something other "
            "than skdpnoise. Nothing was charged. Find out who can write to the storage, and "
            "restore it from a copy; charges() and history() still show what is there."
        )

    def extend(self, total: Composition, row: Row, digest: str) -> None:
        """Go on to a composition that ends with a charge."""
        self.composition, self.digest = total, digest
        self.number, self.token, self.time = row.number, row.token, row.time
        self.refused.clear()

    def warn_of_the_clock(self) -> None:
        """Warn if the time is earlier than that of the last charge, which is written then."""
        # That is before the commit: who makes warnings errors gets one, and nothing is spent.
        behind = _behind(self.time)
        if behind > _SKEW:
            warnings.warn(
                f"The clock is {behind} behind the last charge of the ledger. This charge "
                "gets the time of that one. The guarantee does not depend on the clock. Set the "
                "clock of this machine.",
                LedgerWarning,
                stacklevel=6,
            )


def summarise(
    transaction: Transaction, row: Row, digest: str, total: Composition, before: Composition
) -> None:
    """Write down the composition now and then, and at once where computing it took long."""
    if total.unsummarised >= _SUMMARISE or total.anchor is not before.anchor:
        total.unsummarised = 0
        text = json.dumps(total.to_json())
        transaction.write_summary(Summary(row.number, row.token, row.time, text, digest))


def _behind(last: str) -> timedelta:
    if not last:
        return timedelta(0)
    return datetime.fromisoformat(last) - datetime.fromisoformat(now())
