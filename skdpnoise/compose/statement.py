"""The statements of a composition: one report, one entry in the ledger, shares by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from skdpnoise._utils.context import within
from skdpnoise._utils.numbers import NUMBERS
from skdpnoise.accounting import PrivacyReport
from skdpnoise.accounting.declared import FACTS, declared_below, said_public
from skdpnoise.accounting.limits import Budget, as_loss
from skdpnoise.accounting.reservation import Reservation, facts_for, reserve
from skdpnoise.base.advice import held_back
from skdpnoise.base.steps import Part, relation_of
from skdpnoise.base.tags import tags_of
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.sampling.words import HIDDEN_SEED, is_seeded


def reserve_whole(
    composition: Any,
    guarantee: PrivacyGuarantee,
    cost_of: Callable[[PrivacyGuarantee], PrivacyLoss],
    unit: str,
    noise: str,
    declared: Collection[str],
) -> Reservation:
    ledger, name = composition.ledger, type(composition).__name__
    if ledger is None:
        return Reservation()
    facts = facts_for(
        ledger,
        guarantee,
        cost_of,
        adjacency=guarantee.adjacency,
        unit=unit,
        mechanism=noise,
        estimator=name,
        parameters=_public_parameters(composition) | said_public(declared),
    )
    return reserve(ledger, f"{name}.fit", cost_of(guarantee), **facts)


@contextmanager
def drawing(composition: Any, reservation: Reservation, spent: Any) -> Iterator[None]:
    """Draw from what was reserved; whatever is raised within says what stays spent."""
    with within(reservation=reservation):
        try:
            with held_back():
                yield
        except BaseException as error:
            if composition.ledger is not None and reservation.state == "kept":
                error.add_note(f"The ledger was charged {spent}, which stays spent.")
            raise


def noises_of(parts: Collection[Part]) -> str:
    private = [part.estimator.get_params(deep=False) for part in parts if part.kind == "private"]
    return ", ".join(sorted({str(own.get("noise", "shared")) for own in private}))


def declared_of(parts: Collection[Part]) -> tuple[str, ...]:
    return tuple(part.label for part in parts if part.kind == "declared")


def in_order(declared: Iterable[str]) -> tuple[str, ...]:
    """Return what was declared, each once, steps before facts of the data."""
    return tuple(dict.fromkeys(sorted(declared, key=FACTS.__contains__)))


def whole_report(
    pipeline: Any,
    budget: Budget,
    fitted: Collection[Part],
    declared: Collection[str],
    rows_per_group: int | None,
) -> PrivacyReport:
    name = type(pipeline).__name__
    reports = [(part.label, part.estimator.privacy_) for part in fitted]
    unit = "record" if rows_per_group is None else "group"
    if any(report.unit != unit for _, report in reports if report.releases):
        raise RuntimeError(f"A step of {name} does not protect a {unit}, as the others do.")
    releases = tuple(
        replace(release, label=f"{label}: {release.label}")
        for label, report in reports
        for release in report.releases
    )
    spent = [report.total for _, report in reports if report.releases]
    total: PrivacyLoss = reduce(add, spent) if spent else PureLoss(0.0)
    if not isinstance(total, PureLoss | GaussianLoss):
        total = as_loss(budget)  # what was allowed is known in advance, and is more
    guarantee = PrivacyGuarantee(pipeline.epsilon, pipeline.delta, relation_of(pipeline))
    own = [name for label, one in reports for name in declared_below(label, one.declared)]
    estimated = [report.n_records for _, report in reports if report.n_records is not None]
    return PrivacyReport(
        estimator=name,
        guarantee=guarantee,
        releases=releases,
        total=total,
        secure=all(report.secure for _, report in reports),
        rows_per_group=rows_per_group,
        declared=in_order([*declared, *own]),
        n_records=max(estimated, default=None),
        planned=as_loss(budget),
    )


def _public_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of a composition for a ledger: classes, numbers, that it is seeded."""
    found: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=True).items():
        if name.rpartition("__")[2] in ("ledger", "random_state"):
            continue
        if hasattr(value, "get_params"):
            found[name] = type(value).__name__
        elif not _lists_steps(value):
            found[name] = value
    if is_seeded(estimator.random_state):
        found["random_state"] = HIDDEN_SEED
    return found


def _lists_steps(value: Any) -> bool:
    if hasattr(value, "get_params"):
        return True
    if isinstance(value, dict):
        return any(map(_lists_steps, value.values()))
    return isinstance(value, list | tuple) and any(map(_lists_steps, value))


def shares_by_name(given: Mapping[str, Any] | None, parts: Collection[Part]) -> dict[str, float]:
    labels = [part.label for part in parts if part.kind == "private"]
    if given is None:
        private = [part for part in parts if part.kind == "private"]
        return {part.label: tags_of(part.estimator).weight for part in private}
    below = {
        name: [label for label in labels if label == name or label.startswith(f"{name}__")]
        for name in given
    }
    covered = [label for found in below.values() for label in found]
    shares_valid = all(
        type(share) in NUMBERS and 0.0 < float(share) < np.inf for share in given.values()
    )
    if not shares_valid or sorted(covered) != sorted(labels) or not all(below.values()):
        raise ValueError(
            "The 'weights' parameter of DPPipeline must give a number above 0 for each private "
            f"step, by its name: {labels}. Got {dict(given)!r} instead."
        )
    return {
        label: float(given[name]) / len(found) for name, found in below.items() for label in found
    }
