"""A cost that is reserved before a value is read: kept from the first random word on.

Until then it may be returned, for reasons that are public or declared (the page "Reservations" of
the documentation has the rule and its proof). At most one of both happens: a word is taken, or the
reservation is returned.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from sklearn.exceptions import DataConversionWarning
from sklearn.utils._param_validation import InvalidParameterError

from skdpnoise._utils.context import within
from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss

Result = TypeVar("Result")

LossFor = Callable[[PrivacyGuarantee], PrivacyLoss]
"""The loss of a release for another guarantee, as its calibration finds it."""

LossAt = Callable[[float], PrivacyLoss]
"""The same for another ε."""

_DECLARED = (ValueError, TypeError, InvalidParameterError, PrivacyWarning, DataConversionWarning)


class Ledger(Protocol):
    """An account of many releases, such as :class:`~skdpnoise.ledger.PrivacyLedger`.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> class Printed:
    ...     def charge(self, label, cost, **facts):
    ...         print(label, cost)
    >>> ledger: Ledger = Printed()
    >>> ledger.charge("fit", PureLoss(0.5))
    fit 0.5-DP
    """

    def charge(
        self,
        label: str,
        cost: Any,
        *,
        guarantee: tuple[float, float] | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        mechanism: str | None = None,
        estimator: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> Any:
        """Record the cost, or raise BudgetExceededError and record nothing."""


class Reservation:
    """A cost that counts in full until it is returned, which a random word makes impossible.

    Parameters
    ----------
    returning : callable or None, default=None
        Writes down that it is returned, and why; returns whether it could. None: there is nothing
        to write.
    keeping : callable or None, default=None
        Called once, before the first random word: what charges a ledger that cannot reserve.

    Examples
    --------
    >>> reservation = Reservation()
    >>> reservation.keep()
    >>> reservation.give_back("too late"), reservation.state
    (False, 'kept')
    """

    def __init__(
        self,
        returning: Callable[[str], bool] | None = None,
        keeping: Callable[[], Any] | None = None,
    ) -> None:
        self.state: Literal["open", "kept", "refused", "returned"] = "open"
        self._returning, self._keeping = returning, keeping
        self._refusal: BaseException | None = None
        self._process, self._lock = os.getpid(), RLock()

    def keep(self) -> None:
        """Keep it for good: a random word is taken next.

        Raises
        ------
        RuntimeError
            If it was returned, or is open in the process that this one is a copy of. A refused
            charge is refused again, whoever caught it.
        """
        with self._lock:
            if self.state == "kept":
                return
            if self._refusal is not None:
                raise self._refusal
            if self.state != "open" or self._process != os.getpid():
                how = "was returned" if self.state == "returned" else "is another process's"
                raise RuntimeError(f"No random word is given out: the reservation {how}.")
            self.state = "kept"
            if self._keeping is None:
                return
            try:
                self._keeping()
            except BaseException as refusal:
                self.state, self._refusal = "refused", refusal
                raise

    def give_back(self, reason: str) -> bool:
        """Return it, if it is still open here; return whether it counts nothing from now on.

        Parameters
        ----------
        reason : str
            Which must be public, or declared as not protected.

        Returns
        -------
        bool
        """
        with self._lock:
            if self.state != "open" or self._process != os.getpid():
                return False
            self.state = "returned"  # before it is written: from here on no word is given out
            return self._returning is None or self._returning(reason)

    def _refuse_copies(self, *_: Any) -> NoReturn:
        raise TypeError("A reservation cannot be copied or pickled: each copy could return it.")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copies


def facts_for(
    ledger: Any, guarantee: Any, loss_for: LossFor | None = None, **facts: Any
) -> dict[str, Any]:
    """Return what a ledger is told beside a cost: the guarantee, and what names the largest ε."""
    if isinstance(guarantee, PrivacyGuarantee):
        facts["guarantee"] = guarantee.epsilon, guarantee.delta
        if loss_for is not None and "loss_at" in inspect.signature(ledger.charge).parameters:
            facts["loss_at"] = loss_at_epsilon(guarantee, loss_for)
    return facts


def loss_at_epsilon(guarantee: PrivacyGuarantee, loss_for: LossFor) -> LossAt:
    return lambda epsilon: loss_for(replace(guarantee, epsilon=epsilon))


def calibrated_loss(mechanism: Any, guarantee: Any) -> LossFor | None:
    """Return the loss of a mechanism that was calibrated for a guarantee; None for any other."""
    recipe: Any = getattr(mechanism, "recipe", None)
    if recipe is None:
        return None
    asked: PrivacyGuarantee = recipe.guarantee
    loss_for: LossFor = recipe.loss
    return loss_for if guarantee in (asked, (asked.epsilon, asked.delta)) else None


def reserve(ledger: Any, label: str, cost: Any, **facts: Any) -> Reservation:
    """Reserve a cost in a ledger; in one that can only charge, right before the first word."""
    if ledger is None:
        return Reservation()
    if hasattr(ledger, "reserve"):
        found: Reservation = ledger.reserve(label, cost, **facts)
        return found
    return Reservation(keeping=partial(ledger.charge, label, cost, **facts))


def returnable(reservation: Reservation, read: Callable[[], Result]) -> Result:
    """Return what a function reads and checks; its declared failures return the reservation."""
    # Whatever takes a random word within, noise or a choice of rows, keeps it first: the sources of
    # words look for it in the context.
    try:
        with within(reservation=reservation):
            return read()
    except BaseException as error:
        shown = _settled(reservation, error)
        if shown is error:
            raise
    raise shown  # outside the handler: what is not paid for is not attached to it


def _settled(reservation: Reservation, error: BaseException) -> BaseException:
    """Return or keep a reservation after a failure; return the error that is to be raised."""
    reason = reason_of(error)
    try:
        if reason is not None:
            reservation.give_back(reason)
        elif reservation.state == "open":
            reservation.keep()
    except Exception as failure:
        if reason is None:
            failure.__context__ = None
            return failure
        error.add_note(f"What was reserved could not be returned: {failure}")
    return error


def reason_of(error: BaseException) -> str | None:
    """Return the reason for which a reservation is returned; None if it is kept."""
    # Of these exact types are the errors of our own checks, whose texts hold public facts and
    # declared kinds alone, and what they make of errors of other libraries. Anything else, such as
    # a MemoryError, an interrupt or a subclass of somebody else's, may depend on any value.
    if type(error) not in _DECLARED:
        return None
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}"
