"""Neighbours that an estimator refuses by a check of its input, which is no finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdpnoise.inspection.auditing._claims import clone_for_audit, fit_quietly
from skdpnoise.inspection.auditing._neighbours import Data, Neighbours
from skdpnoise.inspection.auditing.transcript import Transcript

__all__ = ["without_refused"]

_LONG = 120  # characters of a reason


def without_refused(
    estimator: Any, pairs: Sequence[Neighbours]
) -> tuple[list[Neighbours], tuple[str, ...]]:
    """Return the pairs that are to be looked at, and which others are left out, and why."""
    # A missing value or an unseen category may be refused, as documented: with the same words in
    # whichever record it stands, and before anything is charged or released. A refusal of another
    # kind says more than that there is such a value, and its neighbours stay.
    kept: list[Neighbours] = []
    columns: dict[tuple[str, str], dict[str, None]] = {}
    for pair in pairs:
        reason = _refusal(estimator, pair)
        if pair.odd is None or reason is None:
            kept.append(pair)
        else:
            columns.setdefault((pair.odd.kind, reason), {})[pair.odd.column] = None
    texts = [
        f"{kind} in columns {', '.join(names)}, refused before anything is charged, in whichever "
        f"record it stands ({reason})"
        for (kind, reason), names in columns.items()
    ]
    return kept, tuple(texts)


def _refusal(estimator: Any, pair: Neighbours) -> str | None:
    """Return in which words the input is refused; None if it is not, or not in every record."""
    if pair.odd is None:
        return None
    here = _raised_for_nothing(estimator, pair.odd.data)
    if here is None or here != _raised_for_nothing(estimator, pair.odd.elsewhere):
        return None
    reason = " ".join(here.split())
    return reason if len(reason) <= _LONG else reason[: _LONG - 3] + "..."


def _raised_for_nothing(estimator: Any, data: Data) -> str | None:
    """Return what a fit raises before it charges or releases anything."""
    transcript = Transcript()
    _, _, raised = transcript.watch(fit_quietly, clone_for_audit(estimator, 0), *data)
    return None if transcript.charges or transcript.meetings else raised
