"""One fit replayed on a neighbour with its releases frozen: all that differs must be charged."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from textwrap import shorten
from typing import Any

import numpy as np

from skdpnoise.inspection.auditing._claims import check_fits, clone_for_audit, fit_quietly
from skdpnoise.inspection.auditing._costs import (
    TOLERANCE,
    Moved,
    exact_epsilon,
    moved,
    quick_epsilon,
    total_moved,
)
from skdpnoise.inspection.auditing._fingerprint import differences
from skdpnoise.inspection.auditing._neighbours import Data, Neighbours
from skdpnoise.inspection.auditing.report import ReplayResult
from skdpnoise.inspection.auditing.transcript import Transcript
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss

_MOST_DIFFERENCES = 5  # that are named
_KEPT = 4  # pairs of neighbours that cost most
_LONG = 120  # characters of a reason


_Cost = tuple[str, PrivacyLoss | None, Sequence[Moved]]
"""In what two neighbours differ, the loss of what moved between them, and this."""


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    model: Any
    transcript: Transcript
    warned: list[str]
    raised: str | None


def replay(
    estimator: Any,
    pairs: Sequence[Neighbours],
    claim: PrivacyGuarantee,
    seeds: np.random.SeedSequence,
    n_replays: int,
    tell: Callable[[int], None],
) -> ReplayResult | None:
    """Replay so many fits for each pair, two fits each; None if no release of ours was seen."""
    problems: dict[str, str] = {}
    broken: dict[tuple[str, str], tuple[float, str]] = {}
    raised: list[str | None] = []
    shares: dict[str, float] = {}
    costs: list[_Cost] = []
    n_releases = 0
    for pair in pairs:
        for seed in seeds.spawn(1)[0].generate_state(n_replays).tolist():
            runs, label = _two_runs(estimator, pair, seed)
            tell(2)
            raised += [run.raised for run in runs]
            if runs[0].raised is None and not any(run.transcript.meetings for run in runs):
                return None
            n_releases += len(runs[0].transcript.meetings)
            found = moved(*(run.transcript for run in runs))
            for one in found:
                name = one.label or "without a charge"
                shares[name] = max(shares.get(name, 0.0), one.share)
                largest, _ = broken.get((one.name, one.bound), (TOLERANCE, ""))
                if one.share > largest:
                    broken[one.name, one.bound] = one.share, label
            # The best of a random number of runs is not the sum of its parts: it has a theorem.
            repeated = getattr(runs[0].model, "strategy_", None) == "repeated"
            costs.append((label, None if repeated else total_moved(found), found))
            for trouble in [*_control_flow(*runs), *_unpaid(found)]:
                problems.setdefault(trouble, label)
    check_fits(type(estimator).__name__, raised)
    used, label = _most_used(costs, claim)
    if used is not None and used > claim.epsilon * TOLERANCE:
        text = f"all releases together move by epsilon = {used:.4g}, more than is claimed"
        problems.setdefault(text, label)
    unknown = any(loss is None for _, loss, _ in costs)
    return ReplayResult(
        claim=claim,
        epsilon=None if unknown else used,
        n_checks=len(costs),
        n_releases=n_releases,
        shares=tuple(shares.items()),
        problems=tuple(f"{text} ({label})" for text, label in problems.items()),
        broken=tuple(
            f"{name}: one record moves it by {share:.3g} times what is declared {bound} ({label})"
            for (name, bound), (share, label) in broken.items()
        ),
    )


def _most_used(costs: Sequence[_Cost], claim: PrivacyGuarantee) -> tuple[float | None, str]:
    known = [
        (quick_epsilon(loss, claim.delta), label, loss, found)
        for label, loss, found in costs
        if loss is not None
    ]
    worst: tuple[float | None, str] = (None, "")
    for quick, label, loss, found in sorted(known, key=lambda one: -one[0]):
        if worst[0] is not None and quick <= worst[0]:
            break  # composing all terms could only give less
        used = exact_epsilon(loss, claim.delta)
        if used > claim.epsilon:
            # Compositions are rounded up. That refutes nothing which another bound shows to hold.
            used = min([used, *(exact_epsilon(one, claim.delta) for one in _containing(found))])
        if worst[0] is None or used > worst[0]:
            worst = used, label
    return worst


def _containing(found: Sequence[Moved]) -> Iterator[PrivacyLoss]:
    """Yield other losses that contain that of what moved."""
    joint = total_moved(found, joint=True)
    if joint is not None:
        yield joint
    if found and all(one.is_covered for one in found):
        yield reduce(operator.add, [one.mechanism.privacy_loss() for one in found])


def ranked(
    estimator: Any, pairs: Sequence[Neighbours], claim: PrivacyGuarantee
) -> list[Neighbours]:
    """Return the pairs that cost most, by one replay each, where releases of ours are seen."""
    if len(pairs) <= _KEPT:
        return list(pairs)
    costs = []
    for pair in pairs:
        runs, _ = _two_runs(estimator, pair, 0)
        if not runs[0].transcript.meetings:
            return list(pairs)
        try:
            used = total_moved(moved(*(run.transcript for run in runs)))
        except TypeError:  # a mechanism whose costs no replay knows
            return list(pairs)
        costs.append(0.0 if used is None else quick_epsilon(used, claim.delta))
    return [pairs[k] for k in np.argsort(costs, kind="stable")[::-1][:_KEPT]]


def _two_runs(estimator: Any, pair: Neighbours, seed: int) -> tuple[tuple[_Run, _Run], str]:
    def run(data: Data, earlier: Transcript | None) -> _Run:
        transcript = Transcript(seed, earlier, pair.place if pair.comes_and_goes else -1)
        # The same public coins for both, such as a random projection in front of the model.
        copy = clone_for_audit(estimator, seed)
        model, warned, raised = transcript.watch(fit_quietly, copy, *data)
        return _Run(model, transcript, warned, raised)

    first = run(pair.first, None)
    if first.transcript.of_present:  # among those that have a value its place is known as the last
        pair = pair.with_it_last()
        first = run(pair.first, None)
    elif pair.comes_and_goes:
        # Rows behind it have other numbers in the neighbour, and would have other secret words; in
        # a part of the rows it is not known which of them it is.
        known = first.transcript.sizes <= {len(pair.first[0])}
        if first.transcript.counts_rows or not known:
            pair = pair.with_it_last()
            first = run(pair.first, None)
    return (first, run(pair.second, first.transcript)), pair.label


def _unpaid(found: Sequence[Moved]) -> list[str]:
    problems = [f"{one.name} released something" for one in found if one.label is None]
    repeated = (one.name for one in found if one.is_repeated and one.label is not None)
    return problems + [f"{name}: more is released than is charged for" for name in repeated]


def _control_flow(first: _Run, second: _Run) -> list[str]:
    """Return what beside the released numbers tells the data sets apart."""
    problems = []
    here, there = first.transcript, second.transcript
    if first.raised != second.raised:
        problems.append("one of the fits raises an error that the other does not")
    elif there.diverged is not None:
        problems.append(f"the sequence of releases depends on the data: {there.diverged}")
    elif len(here.meetings) != len(there.meetings):
        problems.append("the number of releases depends on the data")
    charges = [
        [(label, one.facts(mechanism)) for label, mechanism in one.charges] for one in (here, there)
    ]
    if charges[0] != charges[1]:
        problems.append("the charges depend on the data")
    if first.warned != second.warned:
        problems.append("the warnings depend on the data")
    if first.raised is None and second.raised is None and there.diverged is None:
        paths = differences(first.model, second.model)
        if paths:
            more = len(paths) - _MOST_DIFFERENCES
            named = ", ".join(paths[:_MOST_DIFFERENCES]) + (f" and {more} more" if more > 0 else "")
            problems.append(f"what is published depends on more than the releases: {named}")
    return problems


# Refusals


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
    return shorten(here, _LONG, placeholder="...")


def _raised_for_nothing(estimator: Any, data: Data) -> str | None:
    """Return what a fit raises before it charges or releases anything."""
    transcript = Transcript()
    _, _, raised = transcript.watch(fit_quietly, clone_for_audit(estimator, 0), *data)
    return None if transcript.charges or transcript.meetings else raised
