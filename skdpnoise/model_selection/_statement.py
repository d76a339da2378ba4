"""What a search states and charges: the report of the whole, and the ledger's entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdpnoise.compose.statement import public_parameters
from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.metrics.scoring import BITS
from skdpnoise.model_selection._candidates import Candidate
from skdpnoise.model_selection._runs import score_noise
from skdpnoise.model_selection._strategies import Strategy
from skdpnoise.privacy import PrivacyGuarantee, PureLoss
from skdpnoise.sampling.observer import note_charge

__all__ = ["charge", "state"]

_RELEASED = {
    "release": "one release, the choice among its candidates, the score",
    "repeated": "the best of a random number of runs, each within {budget}, and its score",
    "noisy_max": "fits of all candidates, the choice among them, the score",
}


def state(
    search: Any,
    guarantee: PrivacyGuarantee,
    strategy: Strategy,
    candidates: Sequence[Candidate],
    secure: bool,
    rows_per_group: int | None,
) -> PrivacyReport:
    """Return the report of a search, known before it begins."""
    budget = strategy.fit_budget
    loss = strategy.loss(rows_per_group or 1)
    noise = "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"
    scale = score_noise(budget, guarantee.adjacency).scale / float(1 << BITS)
    line = Release(
        _RELEASED[strategy.name].format(budget=budget),
        noise,
        1,
        len(candidates),
        (float(scale.min()), float(scale.max())),
        loss,
    )
    name = type(search).__name__
    return PrivacyReport(
        name,
        guarantee,
        (line,),
        loss,
        secure,
        rows_per_group=rows_per_group,
        declared=tuple(sorted({label for one in candidates for label in one.declared})),
    )


def charge(search: Any, report: PrivacyReport) -> Any:
    """Charge the ledger of a search, if it has one, for all of it; return the ledger."""
    note_charge("choice and scores", report)
    ledger = search.ledger
    if ledger is None:
        return None
    line = report.releases[0]
    ledger.charge(
        f"{report.estimator}.fit",
        report.total,
        guarantee=(report.guarantee.epsilon, report.guarantee.delta),
        adjacency=report.guarantee.adjacency,
        unit=report.unit,
        mechanism=line.noise,
        estimator=report.estimator,
        parameters=public_parameters(search),
    )
    return ledger
