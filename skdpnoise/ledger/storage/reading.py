"""Careful decoding of stored values, since others may write to a storage too."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from skdpnoise.accounting.encoding import decode_loss
from skdpnoise.ledger.errors import LedgerStorageError
from skdpnoise.ledger.storage.base import Head, Row, StoredBudget, digest_of
from skdpnoise.privacy import PrivacyLoss

FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that decoding raises where the text was not written by a ledger."""

TEXTS = ("token", "label", "mechanism", "estimator", "who")
"""Names of the texts of a charge, of which all but the first two may be missing."""

_LONG = 300  # characters of a text


@contextmanager
def readable(what: str, where: str) -> Iterator[None]:
    """Turn every fault of decoding into an error that names the place and the remedy."""
    try:
        yield
    except LedgerStorageError:
        raise
    except FAULTS as error:
        raise LedgerStorageError(
            f"{what} of {where} cannot be read ({reason_of(error)}). Nothing was charged. If a "
            "newer version of skdpnoise wrote it, or one with a noise family of your own, install "
            "or register that. Else find out who can write to the storage, and restore it from a "
            "copy; charges() and history() still show what is there."
        ) from error


def reason_of(error: Exception) -> str:
    return shortened(" ".join(f"{type(error).__name__}: {error}".split()))


def shortened(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


def read_cost(loss: object, epsilon: object, delta: object) -> PrivacyLoss:
    """Return a stored loss, and check the ε and δ that are stored beside it."""
    _check_number("epsilon", epsilon, math.inf)
    _check_number("delta", delta, 1.0)
    return decode_loss(_text("loss", loss))


def time_in(stored: object) -> datetime:
    time = datetime.fromisoformat(_text("time", stored))
    if time.utcoffset() != timedelta(0):
        raise ValueError(f"the time is not in UTC: {stored!r}")
    return time


def parameters_in(stored: object) -> dict[str, Any]:
    found = json.loads(_text("parameters", stored))
    if not isinstance(found, dict):
        raise TypeError(f"the parameters are not named, but of type {type(found).__name__}")
    return found


def check_texts(row: Row) -> None:
    if type(row.number) is not int or row.number < 1:
        raise ValueError("the number is not a whole number above 0")
    for name in TEXTS:
        if name in ("token", "label") or getattr(row, name) is not None:
            _text(name, getattr(row, name))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is not a text, but of type {type(value).__name__}")
    return value


def budget_in(row: Any) -> StoredBudget:
    """Return the budget of a row, unchecked."""
    adaptive = row.adaptive == 1 if row.adaptive in (0, 1) else row.adaptive
    most = getattr(row, "most_returned", None)  # since version 5
    return StoredBudget(row.epsilon, row.delta, row.adjacency, row.unit, adaptive, most)


def _check_number(name: str, value: object, high: float) -> None:
    if not isinstance(value, float | int) or isinstance(value, bool):
        raise TypeError(f"{name} is not a number, but of type {type(value).__name__}")
    if not 0.0 <= value < high:
        raise ValueError(f"{name} must be in the range [0, {high:g}), and is {value!r}")


def head_in(text: object) -> Head:
    """Return the stored head; if it cannot be read, one that fits no charge."""
    try:
        return Head(*json.loads(str(text)))
    except FAULTS:
        return Head(-1, "")


def digest_after(digest: str, row: Row) -> str:
    """Return the digest of all charges up to one from that of all before it."""
    # It begins with `StoredBudget.seal`, so that it has the budget and every column of every charge
    # in it: none of them can be changed, removed, added or moved without another digest at the end.
    costs: Any = {
        name: float(value)
        for name, value in (("epsilon", row.epsilon), ("delta", row.delta))
        if isinstance(value, int | float)
    }
    facts = row._replace(**costs)
    return digest_of(digest, *(facts[:-1] if row.returned is None else facts))
