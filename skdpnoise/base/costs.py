"""Costs of results: a report of its own, or a loss with its neighbours."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from skdpnoise.accounting import PrivacyReport, Release
from skdpnoise.base.contents import is_sealed, reached
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss

__all__ = ["carries_loss", "cost_of", "hides", "result_remedy"]

_SOME_DELTA = 1e-6  # of a loss that is not pure, where no guarantee was asked for
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
    n_releases, n_coordinates, scale = 1, 1, (math.nan, math.nan)
    if made is not None:
        n_releases, n_coordinates = made.n_releases, made.sensitivity.n_coordinates
        scale = float(made.scale.min()), float(made.scale.max())
    name = str(getattr(result, "name", type(result).__name__))
    release = Release(
        name, getattr(made, "noise", "several"), n_releases, n_coordinates, scale, loss
    )
    guarantee = replace(asked, adjacency=result.adjacency)
    secure = bool(getattr(result, "secure", True))
    return PrivacyReport(name, guarantee, (release,), loss, secure, observed=False, planned=loss)


def carries_loss(thing: Any) -> bool:
    """Return whether an object, or anything that it holds, says that privacy was spent."""
    return any(map(_says_a_loss, reached(thing, _STATED)))


def hides(thing: Any) -> str | None:
    """Return the type of what an object holds into which nobody can look; None if it has none."""
    sealed = (type(one).__name__ for one in reached(thing, _STATED) if is_sealed(one))
    return next(sealed, None)


def _says_a_loss(thing: Any) -> bool:
    if isinstance(thing, type):
        return False
    stated = isinstance(thing, PrivacyLoss | PrivacyReport | PrivacyGuarantee)
    return stated or _charges(thing) or callable(getattr(thing, "privacy_loss", None))


def _charges(thing: Any) -> bool:
    return callable(getattr(thing, "charge", None))


def result_remedy(thing: Any) -> str:
    """Return why what is no estimator cannot be counted, and what to do instead."""
    if _charges(thing):
        return "is a ledger, which adds up by itself: see its total()"
    if callable(getattr(thing, "privacy_loss", None)):
        return (
            "is a mechanism, which says neither how often nor for which neighbours it was used: "
            "pass ledger= where it is made, and see the total of the ledger"
        )
    if (sealed := hides(thing)) is not None:
        return (
            f"holds an object of type {sealed}, into which nobody can look: give what is in it, as "
            "numbers, text or fitted estimators"
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
