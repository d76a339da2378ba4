"""Charges of a ledger, their total, and the spending after each."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np

from skdpnoise.accounting.composition import Composition
from skdpnoise.accounting.declared import declared_in
from skdpnoise.accounting.encoding import decode_loss
from skdpnoise.accounting.report import DECLARED
from skdpnoise.ledger.storage import reading
from skdpnoise.ledger.storage.base import Row
from skdpnoise.privacy import NumericLoss, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.reporting.cards import bar
from skdpnoise.reporting.sheet import Sheet, Shown
from skdpnoise.sampling.words import HIDDEN_SEED, with_caveat

T = TypeVar("T")

_COLUMNS = (
    *("number", "time", "label", "estimator", "mechanism", "epsilon", "delta"),
    *("loss", "spent", "who", "parameters", "returned"),
)
REASON = "reason"
"""The name under which a line that returns a reservation says why."""

_POINTS, _POINTS_OF_MANY, _MANY = 200, 50, 16  # fewer where there are many different losses
_LONG = 64  # entries of an array that are still written down
_DEPTH = 6  # of lists in lists; what contains itself has no end
_BITS = 1024  # of a whole number


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger; it holds public facts only.

    Parameters
    ----------
    number : int
        1 for the first charge of the data set.
    time : datetime
        When it was charged, in UTC.
    label : str
        What was charged for.
    estimator, mechanism : str or None
        Class of the estimator, and name of the noise.
    loss : PrivacyLoss or None
        What it costs, as the tight total counts it.
    guarantee : tuple of float
        ε and δ as basic composition counts them.
    who : str or None
        Who charged, if that was said.
    parameters : dict
        Parameters of the estimator; long arrays by their shape.
    token : str
        Unlike that of every other charge.
    unreadable : str or None, default=None
        Why the charge cannot be read as it is stored, if so. Then `loss` is None, and the rest what
        could be read; a time that could not is that of year 1.
    returned : str or None, default=None
        Why it was returned, if it was: neither the charge nor the line that says so counts then.
    returns : int or None, default=None
        Of a line that returns a charge, the number of that charge.

    Examples
    --------
    >>> from skdpnoise.ledger import PrivacyLedger
    >>> from skdpnoise.privacy import PureLoss
    >>> charge = PrivacyLedger("trips", 1.0, 0.0, "memory").charge("counts", PureLoss(0.25))
    >>> print(charge)
    1. counts: 0.25-DP
    """

    number: int
    time: datetime
    label: str
    estimator: str | None
    mechanism: str | None
    loss: PrivacyLoss | None
    guarantee: tuple[float, float]
    who: str | None
    parameters: dict[str, Any] = field(hash=False)
    token: str
    unreadable: str | None = None
    returned: str | None = None
    returns: int | None = None

    @property
    def cost(self) -> str:
        """The loss in a few words, without computing."""
        if self.unreadable is not None:
            return f"unreadable ({self.unreadable})"
        pure = isinstance(self.loss, NumericLoss) and self.loss.pure_epsilon == math.inf
        return repr(self.loss) if pure else str(self.loss)

    def __str__(self) -> str:
        by = f" ({self.estimator})" if self.estimator else ""
        steps = f"; {DECLARED}: {', '.join(self.declared)}" if self.declared else ""
        returned = "" if self.returned is None else f"; returned: {self.returned}"
        text = f"{self.number}. {self.label}{by}: {self.cost}{steps}{returned}"
        return with_caveat(text, secure=self.secure)

    @property
    def declared(self) -> tuple[str, ...]:
        """Steps and facts that the user declared public, as far as the charge says."""
        return declared_in(self.parameters)

    @property
    def secure(self) -> bool:
        """True if no seed was set, as far as the charge says."""
        seeded = self.parameters.get("random_state") is not None
        return not seeded and HIDDEN_SEED not in repr(self.parameters)

    @classmethod
    def of(cls, row: Row) -> Charge:
        """Return the charge of a stored row; raise if it cannot be read."""
        reading.check_texts(row)
        parameters = reading.parameters_in(row.parameters)
        return cls(
            number=row.number,
            time=reading.time_in(row.time),
            loss=reading.read_cost(row.loss, row.epsilon, row.delta),
            guarantee=(row.epsilon, row.delta),
            parameters=parameters,
            returned=None if row.returned is None else str(parameters.get(REASON, "")),
            returns=row.returned,
            **{name: getattr(row, name) for name in reading.TEXTS},
        )

    @classmethod
    def shown(cls, row: Row) -> Charge:
        """Return the charge of a stored row, or what can be read of it."""
        try:
            charge = cls.of(row)
            _check_composes(row.loss)
            return charge
        except reading.FAULTS as error:
            reason = reading.reason_of(error)
        stored = {name: getattr(row, name) for name in reading.TEXTS}
        texts: dict[str, Any] = {k: one if one is None else str(one) for k, one in stored.items()}
        return cls(
            number=row.number if type(row.number) is int else 0,
            time=_readable_or(reading.time_in, row.time, datetime.min.replace(tzinfo=UTC)),
            loss=None,
            guarantee=(_number(row.epsilon), _number(row.delta)),
            parameters=_readable_or(reading.parameters_in, row.parameters, {}),
            unreadable=reason,
            **texts,
        )


def with_returns(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    """Return charges of which those that were returned say so, as do the lines that did it."""
    found = tuple(charges)
    reasons = {one.returns: one.returned for one in found if one.returns is not None}
    return tuple(
        replace(one, returned=reasons[one.number]) if one.number in reasons else one
        for one in found
    )


@lru_cache(maxsize=4096)
def _check_composes(text: str) -> None:
    Composition().add(decode_loss(text), (0.0, 0.0))


def _readable_or(read: Callable[[object], T], stored: object, otherwise: T) -> T:
    try:
        return read(stored)
    except reading.FAULTS:
        return otherwise


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


@dataclass(frozen=True, repr=False)
class LedgerTotal(Shown):
    r"""The guarantee of all charges of a ledger together.

    Prints as text, and as a card in notebooks.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        The budget.
    n_charges : int
        How many charges there are.
    loss : PrivacyLoss
        Their composition.
    epsilon : float
        By tight composition, at the δ of the budget.
    basic : tuple of float
        Sums of ε and of δ of the charges.
    adaptive_epsilon : float
        The ε that counts against the budget if losses were chosen by looking at results; infinity
        if no rule fits. What is guaranteed then is the budget, since when to stop and read this
        number may have been chosen by looking, too.
    adaptive : bool, default=False
        Whether the ledger counts so.
    secure : bool, default=True
        Whether no charge was for a fit with a seed; else the first line says so.
    declared : tuple of str, default=()
        What users declared public: steps, and facts of the data that were read unpaid.
    n_returned : int, default=0
        How many reservations were returned, which count nothing.

    Examples
    --------
    >>> from skdpnoise.ledger import PrivacyLedger
    >>> from skdpnoise.privacy import PureLoss
    >>> ledger = PrivacyLedger("trips", epsilon=2.0, delta=1e-6, storage="memory")
    >>> for _ in range(100):
    ...     charge = ledger.charge("counts", PureLoss(0.03))
    >>> print(ledger.total())
    100 charges of the budget (epsilon=2, delta=1e-06), replace_one
      tight composition: epsilon=1.269, left 0.7309
      losses chosen by looking: counts as epsilon=1.65
      basic composition: epsilon=3, delta=0
    """

    guarantee: PrivacyGuarantee
    n_charges: int
    loss: PrivacyLoss
    epsilon: float
    basic: tuple[float, float]
    adaptive_epsilon: float
    adaptive: bool = False
    secure: bool = True
    declared: tuple[str, ...] = ()
    n_returned: int = 0

    @property
    def left(self) -> float:
        """ε of the budget that is left, at least 0."""
        return max(0.0, self.guarantee.epsilon - self.spent)

    @property
    def spent(self) -> float:
        """ε that counts against the budget: of tight composition, or of the adaptive rule."""
        return self.adaptive_epsilon if self.adaptive else self.epsilon

    def _sheet(self) -> Sheet:
        share = min(1.0, self.spent / self.guarantee.epsilon)
        above = bar([("spent", share)], f"{share:.0%} spent")
        return Sheet(title=self.headline, facts=self.facts(), above=above, secure=self.secure)

    @property
    def headline(self) -> str:
        """Number of the charges, and the budget."""
        g = self.guarantee
        budget = f"the budget (epsilon={g.epsilon:.6g}, delta={g.delta:.6g}), {g.adjacency}"
        return f"{self.n_charges} charge{'' if self.n_charges == 1 else 's'} of {budget}"

    def facts(self) -> list[tuple[str, str]]:
        """Return the three totals as names and texts."""
        tight = f"epsilon={self.epsilon:.4g}"
        looking = f"counts as epsilon={self.adaptive_epsilon:.4g}"
        left = f", left {self.left:.4g}"
        epsilon, delta = self.basic
        return [
            ("tight composition", tight if self.adaptive else tight + left),
            ("losses chosen by looking", looking + left if self.adaptive else looking),
            ("basic composition", f"epsilon={epsilon:.4g}, delta={delta:.4g}"),
            *([(DECLARED, ", ".join(self.declared))] if self.declared else []),
            *([("returned, and not counted", str(self.n_returned))] if self.n_returned else []),
        ]


def history_columns(charges: Iterable[Charge], delta: float) -> dict[str, list[Any]]:
    columns, losses = columns_of(charges)
    return columns | {"spent": spent_after_each(losses, delta)}


def columns_of(charges: Iterable[Charge]) -> tuple[dict[str, list[Any]], list[PrivacyLoss | None]]:
    """Return the columns of a history, with "spent" still empty, and all losses."""
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    told = [column for name, column in columns.items() if name != "spent"]
    losses: list[PrivacyLoss | None] = []
    costs: dict[int, str] = {}  # of losses that were decoded once, and are kept in the list
    same: dict[str, str] = {}  # one object for equal texts
    reasons: dict[int | None, str | None] = {}
    for charge in charges:
        losses.append(charge.loss)
        reasons[charge.returns] = charge.returned
        if charge.loss is None or id(charge.loss) not in costs:
            costs[id(charge.loss)] = charge.cost
        names = (charge.label, charge.estimator, charge.mechanism)
        facts = (costs[id(charge.loss)], charge.who, charge.parameters, charge.returned)
        values = (charge.number, charge.time, *names, *charge.guarantee, *facts)
        for column, value in zip(told, values, strict=True):
            column.append(same.setdefault(value, value) if isinstance(value, str) else value)
    for place, number in enumerate(columns["number"]):
        reason = columns["returned"][place] = reasons.get(number, columns["returned"][place])
        if reason is not None:
            losses[place] = PureLoss(0.0)
    return columns, losses


def spent_after_each(losses: Sequence[PrivacyLoss | None], delta: float) -> list[float]:
    """Return the tight ε after each loss, computed at some; others have that of the next."""
    if None in losses:
        first = losses.index(None)
        return spent_after_each(losses[:first], delta) + [math.inf] * (len(losses) - first)
    unlike = {id(loss): cast(PrivacyLoss, loss) for loss in losses}
    points = min(_POINTS if len(set(unlike.values())) <= _MANY else _POINTS_OF_MANY, len(losses))
    ends = np.unique(np.linspace(1, len(losses), points).round().astype(int)).tolist()
    total, last = Composition(), 0.0
    spent: list[float] = []
    for start, end in pairwise([0, *ends]):
        for key, count in Counter(map(id, losses[start:end])).items():
            total.add(unlike[key], (0.0, 0.0), count)
        # A later one may be computed more tightly.
        last = max(last, total.epsilon(delta, near=max(last, 0.1)))
        spent += [last] * (end - start)
    return spent


def stored_parameters(parameters: Mapping[str, Any] | None) -> str:
    """Return constructor parameters as JSON, without seeds and arrays that may hold data."""
    given = {_key(name): value for name, value in (parameters or {}).items()}
    kept = {name: value for name, value in given.items() if name.rpartition("__")[2] != "ledger"}
    return json.dumps(_named(kept, _DEPTH))


def _key(name: object) -> str:
    return str(name) if isinstance(name, str | int | float | None) else type(name).__name__


def _named(values: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    stored = {_key(name): _stored(value, depth) for name, value in values.items()}
    for name, value in values.items():
        if _key(name).endswith("random_state") and not isinstance(value, bool | None):
            stored[_key(name)] = HIDDEN_SEED
    return stored


def _stored(value: Any, depth: int) -> Any:
    """Return a plain value as JSON has it, and the name of the class of any other."""
    # A repr may hold anything: the seed of an estimator, or data.
    if isinstance(value, np.generic) and isinstance(value.item(), int | str):
        value = value.item()
    if value is None or isinstance(value, bool | str | int | float | np.floating):
        return _plain(value)
    if isinstance(value, type):
        return value.__name__
    if isinstance(getattr(value, "shape", None), tuple) and not isinstance(value, np.generic):
        return _stored_array(value, depth)
    if isinstance(value, list | tuple | set | frozenset | dict):
        if len(value) > _LONG:
            return f"{type(value).__name__} of {len(value)}"
        if depth and isinstance(value, dict):
            return _named(value, depth - 1)
        if depth:
            return [_stored(item, depth - 1) for item in value]
    return type(value).__name__


def _stored_array(value: Any, depth: int) -> Any:
    kind, dtype = type(value).__name__, getattr(value, "dtype", None)
    if getattr(value, "size", _LONG + 1) > _LONG or not hasattr(value, "tolist"):
        return f"{kind} of shape {value.shape}" + (f", {dtype}" if dtype is not None else "")
    return _stored(value.tolist(), depth - 1) if depth else kind


def _plain(value: Any) -> Any:
    """Return None, a bool, a number or a text, shortened if it is long."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return reading.shortened(value)
    if isinstance(value, int):
        bits = int(value).bit_length()
        return int(value) if bits <= _BITS else f"int of {bits} bits"
    number = float(value)
    return number if math.isfinite(number) else repr(number)
