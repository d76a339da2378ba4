"""Costs of results: a report of its own, or a loss with its neighbours."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss

__all__ = ["carries_loss", "cost_of", "result_remedy"]

_SOME_DELTA = 1e-6  # of a loss that is not pure, where no guarantee was asked for
_DEPTH = 4  # of objects in objects
_STATED = ("privacy_", "privacy", "loss")


def cost_of(result: Any) -> PrivacyReport | None:
    """Return the report of a result that states its cost in `privacy`; None of anything else."""
    if isinstance(result, PrivacyReport):
        return result
    stated = None if isinstance(result, type) else getattr(result, "privacy", None)
    if isinstance(stated, PrivacyLoss) and getattr(result, "adjacency", None) is not None:
        return _as_report(result, stated)
    return stated if isinstance(stated, PrivacyReport) else None


def _as_report(result: Any, loss: PrivacyLoss) -> PrivacyReport:
    """Return the report of one loss, stated as a guarantee as it was asked for."""
    asked = getattr(result, "guarantee", None)
    if asked is None:
        delta = 0.0 if math.isfinite(loss.epsilon(0.0)) else _SOME_DELTA
        asked = PrivacyGuarantee(loss.epsilon(delta), delta)
    made = getattr(result, "mechanism", None)
    size, scale = (1, 1), (math.nan, math.nan)
    if made is not None:
        size = made.n_releases, made.sensitivity.n_coordinates
        scale = float(made.scale.min()), float(made.scale.max())
    name = str(getattr(result, "name", type(result).__name__))
    release = Release(name, getattr(made, "noise", "several"), *size, scale, loss)
    guarantee = replace(asked, adjacency=result.adjacency)
    secure = bool(getattr(result, "secure", True))
    return PrivacyReport(*(name, guarantee, (release,), loss, secure), observed=False, planned=loss)


def carries_loss(thing: Any, depth: int = _DEPTH) -> bool:
    """Return whether an object, or anything that it holds, says that privacy was spent."""
    if isinstance(thing, PrivacyLoss | PrivacyReport | PrivacyGuarantee):
        return True
    if isinstance(thing, type | str | bytes | int | float | None) or depth == 0:
        return False
    if _charges(thing) or callable(getattr(thing, "privacy_loss", None)):
        return True
    return any(carries_loss(one, depth - 1) for one in _held(thing))


def _charges(thing: Any) -> bool:
    return callable(getattr(thing, "charge", None))


def _held(thing: Any) -> Iterable[Any]:
    """Return what an object holds, or states of itself."""
    if isinstance(thing, dict):
        return thing.values()
    if isinstance(thing, list | tuple | set | frozenset):
        return thing
    # Frames and columns of objects; of numbers there is nothing to look at.
    values = thing if isinstance(thing, np.ndarray) else getattr(thing, "values", None)
    if isinstance(values, np.ndarray):
        return values.ravel().tolist() if values.dtype == object else ()
    if isinstance(thing, FunctionType):
        return [cell.cell_contents for cell in thing.__closure__ or () if cell != CellType()]
    if isinstance(thing, MethodType):
        return [thing.__self__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    names = [*getattr(thing, "__dict__", {}), *_STATED]
    if is_dataclass(thing):
        names += [one.name for one in fields(thing)]
    return [getattr(thing, name, None) for name in names]


def result_remedy(thing: Any) -> str:
    """Return why what is no estimator cannot be counted, and what to do instead."""
    if _charges(thing):
        return "is a ledger, which adds up by itself: see its total()"
    if callable(getattr(thing, "privacy_loss", None)):
        return (
            "is a mechanism, which says neither how often nor for which neighbours it was used: "
            "pass ledger= where it is made, and see the total of the ledger"
        )
    if not carries_loss(thing):
        return (
            "does not say what it cost: where it was computed from private data, pass ledger= "
            "there, and see the total of the ledger"
        )
    return (
        "carries a loss and does not say for which neighbours: give results of this package, "
        "fitted estimators or their reports; nobody can vouch for what was spent"
    )
