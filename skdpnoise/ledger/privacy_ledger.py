"""The privacy budget of a data set, kept in a storage, and the charges against it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from skdpnoise._utils.checks import pandas_for
from skdpnoise._utils.context import context
from skdpnoise.accounting.account import BudgetExceededError
from skdpnoise.accounting.composition import Composition, compact
from skdpnoise.accounting.encoding import decode_loss, encode_loss
from skdpnoise.accounting.reservation import LossAt, Reservation, calibrated_loss, loss_at_epsilon
from skdpnoise.ledger import checks
from skdpnoise.ledger._verified import VerifiedCharges
from skdpnoise.ledger.charge import (
    REASON,
    Charge,
    LedgerTotal,
    columns_of,
    spent_after_each,
    stored_parameters,
    with_returns,
)
from skdpnoise.ledger.refusal import refusal
from skdpnoise.ledger.storage import reading, reopened, storage_of
from skdpnoise.ledger.storage.base import (
    Row,
    Storage,
    StoredBudget,
    checked_budget,
    checked_name,
    checked_text,
    digest_of,
)
from skdpnoise.privacy import Adjacency, PrivacyGuarantee, PrivacyLoss
from skdpnoise.privacy.sampled import check_relation
from skdpnoise.reporting.sheet import Sheet, Shown, sheet_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PrivacyLedger"]

T = TypeVar("T")

_SHOWN = 5  # charges on a card
_SOME_DELTA = 1e-6  # of the guarantee of a charge that is not written down


class PrivacyLedger(Shown):
    """The budget of a data set, kept for as long as its storage is.

    Every charge is one transaction: what is new is read, the composed total is checked, and the
    charge is written, or :class:`BudgetExceededError` is raised and nothing is. Processes that
    charge at once wait for one another. Copies and clones are the same object; a pickle opens the
    same data set again, also in another process.

    Parameters
    ----------
    dataset : str
        Name of the data: the people whose privacy this budget protects.
    epsilon, delta : float, default=None
        The budget: needed for a new data set; else left out, or what was set.
    storage : str, default=None
        ``"memory"``, a file such as ``"sqlite:///budget.db"``, whose path is resolved once, or
        another URL of SQLAlchemy, such as ``"postgresql+psycopg://user@host/database"``; both need
        ``pip install skdpnoise[ledger]``. None is the URL in the environment variable
        ``SKDPNOISE_LEDGER``, and memory if that is not set or empty.
    adjacency : {"replace_one", "add_remove"}, default=None
        Which data sets are neighbours; None is ``"replace_one"`` for a new data set.
    unit : {"record", "group"}, default=None
        What is protected: a record, or all of a group; None is ``"record"`` for a new data set.
    adaptive : bool, default=None
        Whether budgets of fits may be chosen by looking at what earlier fits released, by stricter
        rules (proofs: :mod:`skdpnoise.accounting.composition`). None is False for a new data set.
    most_returned : int, default=None
        How many reservations may be returned, after which a pipeline or search that fails for its
        data is charged; None is any number for a new data set, else what was set.
    who : str, default=None
        Who charges; written beside each charge.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> ledger = PrivacyLedger("trips", epsilon=1.0, delta=1e-6, storage="memory")
    >>> print(ledger.charge("a first look", PureLoss(0.75)))
    1. a first look: 0.75-DP
    >>> ledger.charge("a second look", PureLoss(0.75))
    Traceback (most recent call last):
    ...
    skdpnoise...BudgetExceededError: 'a second look' asks for 0.75-DP, with which ...
    """

    _budget: StoredBudget | None

    def __init__(
        self,
        dataset: str,
        epsilon: float | None = None,
        delta: float | None = None,
        storage: str | None = None,
        *,
        adjacency: Adjacency | None = None,
        unit: str | None = None,
        adaptive: bool | None = None,
        most_returned: int | None = None,
        who: str | None = None,
    ) -> None:
        wanted = checked_budget(epsilon, delta, adjacency, unit, adaptive, most_returned)
        self._start(dataset, who, storage_of(storage))
        self._budget = self._storage.open(dataset, wanted)

    @classmethod
    def open(
        cls, dataset: str, storage: str | None = None, who: str | None = None
    ) -> PrivacyLedger:
        """Open a data set that exists; never create one.

        Parameters
        ----------
        dataset, storage, who : str
            As for the class.

        Returns
        -------
        PrivacyLedger

        Raises
        ------
        UnknownDatasetError
            If there is no such data set.
        """
        ledger = cls.__new__(cls)
        ledger._start(dataset, who, storage_of(storage))
        ledger._opened()
        return ledger

    def _start(self, dataset: str, who: str | None, storage: Storage) -> None:
        self.dataset = checked_name("dataset", dataset)
        self.who = checked_text("who", who, "PrivacyLedger")
        self._storage, self._budget = storage, None
        self._known: dict[int, VerifiedCharges] = {}

    def _opened(self) -> StoredBudget:
        if self._budget is None:
            self._budget = self._storage.open(self.dataset, {})
        return self._budget

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """The budget."""
        return self._opened().guarantee

    @property
    def unit(self) -> str:
        """The unit that is protected: ``"record"`` or ``"group"``."""
        return self._opened().unit

    @property
    def adaptive(self) -> bool:
        """True if losses may be chosen by looking at results."""
        return self._opened().adaptive

    @property
    def most_returned(self) -> int | None:
        """How many reservations may be returned; None if any number."""
        return self._opened().most_returned

    @property
    def storage(self) -> str | None:
        """URL of the storage, with absolute paths and without its password; None in memory."""
        return self._storage.shown

    def charge(
        self,
        label: str,
        cost: Any,
        *,
        guarantee: PrivacyGuarantee | tuple[float, float] | None = None,
        adjacency: Adjacency | None = None,
        unit: str | None = None,
        mechanism: str | None = None,
        estimator: str | None = None,
        parameters: dict[str, Any] | None = None,
        loss_at: LossAt | None = None,
    ) -> Charge:
        """Charge for a release, before it is made.

        Parameters
        ----------
        label : str
            What is charged for.
        cost : PrivacyLoss or mechanism
            A loss, or a mechanism: what its noise discloses then.
        guarantee : PrivacyGuarantee or tuple of float, default=None
            What the release states, for the basic sums; None is what the loss implies.
        adjacency, unit : str, default=None
            Those of the cost; None states that they are the ledger's.
        mechanism, estimator : str, default=None
            Names to write down.
        parameters : dict, default=None
            Parameters to write down: never data. Seeds are left out, long arrays too.
        loss_at : callable, default=None
            Returns the loss of the same release for a smaller ε of its guarantee: a refusal names
            the largest one that fits. None asks the calibration of a mechanism that was made for
            this guarantee, and widens other noise by a factor.

        Returns
        -------
        Charge

        Raises
        ------
        BudgetExceededError
            If the budget does not cover it; nothing is charged then.
        """
        if context().is_audited:
            return _unwritten(label, cost, guarantee)
        checks.check_kind(self._opened(), self.dataset, adjacency, unit)
        loss, noise = checks.loss_of(cost)
        if loss_at is None and (loss_for := calibrated_loss(cost, guarantee)) is not None:
            loss_at = loss_at_epsilon(cost.recipe.guarantee, loss_for)
        check_relation("PrivacyLedger.charge", loss, self.guarantee.adjacency)
        epsilon, delta = checks.stated(loss, guarantee, self._opened().delta)
        row = Row(
            number=0,
            token=uuid.uuid4().hex,
            time="",
            label=checked_name("label", label),
            mechanism=checked_text("mechanism", mechanism or noise),
            estimator=checked_text("estimator", estimator),
            loss=encode_loss(compact(loss)),
            epsilon=epsilon,
            delta=delta,
            who=self.who,
            parameters=stored_parameters(parameters),
        )
        with self._locked() as known:
            if known.number == 0:  # adding up older charges need not hold the lock of a writer
                self._read()
            return self._storage.attempt(
                lambda k: self._charge(known, row, loss, loss_at, retry=k > 0)
            )

    def reserve(self, label: str, cost: Any, **facts: Any) -> Reservation:
        """Charge for a fit before its data are read; it may be returned until noise is drawn.

        Parameters
        ----------
        label, cost, **facts : see :meth:`charge`

        Returns
        -------
        Reservation
            Alone able to return the charge, which stays listed, with the reason.

        Raises
        ------
        BudgetExceededError
            If the budget does not cover it; nothing is charged then.

        Examples
        --------
        >>> from skdpnoise.privacy import PureLoss
        >>> ledger = PrivacyLedger("trips", epsilon=1.0, delta=1e-6, storage="memory")
        >>> ledger.reserve("a fit", PureLoss(0.75)).give_back("X contains NaN")
        True
        >>> ledger.covers(PureLoss(1.0)), len(ledger.charges())
        (True, 2)
        """
        charge = self.charge(label, cost, **facts)
        return Reservation(partial(self._return, charge)) if charge.token else Reservation()

    def _return(self, charge: Charge, reason: str) -> bool:
        """Write the line that returns a charge, unless there are as many as there may be."""
        token = digest_of("returned", charge.token)[: len(charge.token)]  # so that there is one
        with self._locked() as known:
            return self._storage.attempt(lambda _: self._written(known, charge, token, reason))

    def _written(self, known: VerifiedCharges, charge: Charge, token: str, reason: str) -> bool:
        most = self.most_returned
        with self._storage.transaction(self.dataset, write=True) as transaction:
            reserved, written = transaction.find(charge.token), transaction.find(token)
            known.read(transaction, self._opened())
            if written is not None or reserved is None:
                return written is not None
            if most is not None and known.n_returned >= most:
                return False
            row = reserved._replace(
                number=known.number + 1,
                token=token,
                time=known.next_time(),
                who=self.who,
                parameters=stored_parameters({REASON: reason}),
                returned=reserved.number,
            )
            total = known.without(row)
            digest = known.write(transaction, row, total)
        known.add(total, row, digest)
        return True

    def covers(
        self, *costs: Any, adjacency: Adjacency | None = None, unit: str | None = None
    ) -> bool:
        """Return whether charges for all of these would be accepted now; nothing is charged.

        Parameters
        ----------
        *costs, adjacency, unit : see :meth:`charge`

        Raises
        ------
        ValueError
            If they are stated for other neighbours than those of the ledger.

        Examples
        --------
        >>> from skdpnoise.privacy import PureLoss
        >>> ledger = PrivacyLedger("trips", epsilon=1.0, delta=1e-6, storage="memory")
        >>> ledger.covers(PureLoss(0.75)), ledger.covers(PureLoss(0.75), PureLoss(0.75))
        (True, False)
        """
        total = self._composed_with(costs, adjacency, unit)
        return not costs or total.fits(self.guarantee, adaptive=self.adaptive)

    def left_after(
        self, *costs: Any, adjacency: Adjacency | None = None, unit: str | None = None
    ) -> float:
        """Return the ε of the budget that would be left after charges for these.

        Parameters
        ----------
        *costs, adjacency, unit : see :meth:`charge`

        Returns
        -------
        float
            Below 0 where more would be spent than there is; -infinity if no ε goes with its δ.

        Raises
        ------
        ValueError
            If they are stated for other neighbours than those of the ledger.

        Examples
        --------
        >>> from skdpnoise.privacy import PureLoss
        >>> ledger = PrivacyLedger("trips", epsilon=1.0, delta=1e-6, storage="memory")
        >>> round(ledger.left_after(PureLoss(0.75)), 3), round(ledger.left_after(PureLoss(1.5)), 3)
        (0.25, -0.5)
        """
        total = self._composed_with(costs, adjacency, unit)
        budget = self.guarantee
        return budget.epsilon - total.counted(budget.delta, adaptive=self.adaptive)

    def _composed_with(
        self, costs: tuple[Any, ...], adjacency: Adjacency | None, unit: str | None
    ) -> Composition:
        checks.check_kind(self._opened(), self.dataset, adjacency, unit)
        total = self._read().composition
        for cost in costs:
            loss, _ = checks.loss_of(cost, "PrivacyLedger", "costs")
            check_relation("PrivacyLedger", loss, self.guarantee.adjacency)
            total = total.with_one_more(loss, (0.0, 0.0))
        return total

    def _charge(
        self,
        known: VerifiedCharges,
        row: Row,
        loss: PrivacyLoss,
        loss_at: LossAt | None,
        *,
        retry: bool,
    ) -> Charge:
        with self._storage.transaction(self.dataset, write=True) as transaction:
            # The answer of a commit may be lost on the way, and not the charge.
            written = transaction.find(row.token) if retry else None
            known.read(transaction, self._opened())
            if written is not None:
                return Charge.of(written)
            kind = (row.loss, row.epsilon, row.delta, "" if loss_at is None else row.parameters)
            total, reason = None, known.refused.get(kind)
            if reason is None:
                row, total = self._fitting(known.composition, row, loss)
                if total is not None:
                    # All that may raise comes before the commit: what is spent is answered for.
                    row = row._replace(number=known.number + 1, time=known.next_time())
                    charge = Charge.of(row)
                    digest = known.write(transaction, row, total)
        if total is None:
            if reason is None:  # the lock is free already: this takes a while
                reason = refusal(loss, kind[1:3], known.composition, self._opened(), loss_at)
                known.refused[kind] = reason
            text, largest = reason
            raise BudgetExceededError(f"{row.label!r} {text}", largest)
        known.add(total, row, digest)
        return charge

    def _fitting(
        self, spent: Composition, row: Row, loss: PrivacyLoss
    ) -> tuple[Row, Composition | None]:
        # What the short form was rounded up by may be what is missing.
        for form in dict.fromkeys((row.loss, encode_loss(loss))):
            total = spent.with_one_more(decode_loss(form), (row.epsilon, row.delta))
            if total.fits(self.guarantee, adaptive=self.adaptive):
                return row._replace(loss=form), total
        return row, None

    def total(self) -> LedgerTotal:
        """Return what all charges guarantee together.

        Raises
        ------
        LedgerStorageError
            If a charge cannot be read, or was changed, removed or added by something else.
        """
        budget = self.guarantee
        known = self._read(full=True)
        total = known.composition
        with reading.readable("The total", self._where):
            epsilon = total.epsilon(budget.delta)
            return LedgerTotal(
                guarantee=budget,
                n_charges=total.count,
                loss=total.loss(epsilon),
                epsilon=epsilon,
                basic=total.basic,
                adaptive_epsilon=total.adaptive_epsilon(budget.delta),
                adaptive=self.adaptive,
                secure=known.secure,
                declared=known.declared,
                n_returned=known.n_returned,
            )

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges in their order, also ones that cannot be read: see `Charge`."""
        return self._over_charges(with_returns)

    def _over_charges(self, work: Callable[[Iterable[Charge]], T], after: int | None = None) -> T:
        """Return ``work(charges)`` of the charges with larger numbers, which come one by one."""
        self._opened()

        def read(_: int) -> T:
            with self._storage.transaction(self.dataset, write=False) as transaction:
                return work(map(Charge.shown, transaction.rows(after)))

        return self._storage.attempt(read)

    def history(self) -> pd.DataFrame:
        """Return all charges as a frame, with what had been spent after each.

        Returns
        -------
        pandas.DataFrame
            ``spent`` is the ε of tight composition; of many charges it is computed after some, and
            the others state the next computed value. ``returned`` is the reason for which a charge
            was returned, which counts nothing: beside it, and beside the line that returned it.

        Raises
        ------
        ImportError
            If pandas is not installed: it comes with the extra ``pandas``.
        """
        pandas = pandas_for("PrivacyLedger.history")
        columns, losses = self._over_charges(columns_of)
        # By now the storage is free again: this takes a while.
        columns["spent"] = spent_after_each(losses, self.guarantee.delta)
        times = pandas.Series(columns["time"], dtype="datetime64[us, UTC]")
        return pandas.DataFrame({**columns, "time": times})

    def _read(self, *, full: bool = False) -> VerifiedCharges:
        self._opened()

        def read(_: int) -> None:
            with self._storage.transaction(self.dataset, write=False) as transaction:
                known.read(transaction, self._opened())
                if full:
                    known.look_through(transaction)

        with self._locked() as known:
            self._storage.attempt(read)
            return known

    @property
    def _where(self) -> str:
        return f"the data set {self.dataset!r} in {self.storage or 'memory'}"

    @contextmanager
    def _locked(self) -> Iterator[VerifiedCharges]:
        """Lock what this process has read; a fork begins anew, its parent may hold the lock."""
        seal = self._opened().seal(self.dataset)
        known = self._known.setdefault(os.getpid(), VerifiedCharges(self._where, seal))
        with known.lock:
            yield known

    def __repr__(self) -> str:
        b, where = self._budget, self.storage or "memory"
        budget = "" if b is None else f", epsilon={b.epsilon:g}, delta={b.delta:g}"
        return f"<PrivacyLedger of {self.dataset!r}{budget}, in {where}>"

    def _sheet(self) -> Sheet:
        total, after = self.total(), max(0, self._read().number - _SHOWN)
        losses = "may be chosen by looking at results" if self.adaptive else "are fixed in advance"
        rows = [
            (
                *(str(one.number), f"{one.time:%Y-%m-%d %H:%M}", one.label, one.mechanism or ""),
                *(one.cost if one.returned is None else "returned", one.who or ""),
            )
            for one in self._over_charges(with_returns, after)
        ]
        return replace(
            sheet_of(total),
            kind="Ledger",
            title=self.dataset,
            promise=total.headline,
            head=("last charges", "time (UTC)", "label", "mechanism", "cost", "who"),
            rows=rows,
            facts=[*total.facts(), ("losses", losses), ("protected", f"one {self.unit}")],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyLedger):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, object]:
        return self.dataset, self._storage.address or id(self)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> PrivacyLedger:
        return self

    # A copy that counted for itself would overspend.
    __copy__ = __sklearn_clone__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.dataset, self._storage.address, self.who)


def _unwritten(label: str, cost: Any, guarantee: Any) -> Charge:
    loss, noise = checks.loss_of(cost)
    stated, label = checks.stated(loss, guarantee, _SOME_DELTA), checked_name("label", label)
    return Charge(0, datetime.now(UTC), label, None, noise, loss, stated, None, {}, token="")


def _again(dataset: str, url: str | None, who: str | None) -> PrivacyLedger:
    """Return the ledger of a pickle; it is opened when it is used."""
    ledger = PrivacyLedger.__new__(PrivacyLedger)
    ledger._start(dataset, who, reopened(url))
    return ledger
