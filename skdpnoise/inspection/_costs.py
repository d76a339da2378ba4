"""What one record moved, release by release, beside what was declared and charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.inspection.transcript import Meeting, Transcript
from skdpnoise.ledger import PrivacyReport
from skdpnoise.mechanisms import (
    AdditiveMechanism,
    KNormMechanism,
    SampledMechanism,
    SymmetricMatrixMechanism,
)
from skdpnoise.mechanisms.allocation import worst_case_norm
from skdpnoise.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from skdpnoise.privacy import GaussianLoss, PrivacyLoss, PureLoss
from skdpnoise.sensitivity import GroupedProfile

__all__ = ["TOLERANCE", "Moved", "moved", "moved_by_matrix", "total_moved"]

TOLERANCE = 1.0 + 1e-9  # floating-point error of norms
_SELECTIONS = (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax)


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """What the noise of one mechanism had to make up for, in all its releases together."""

    mechanism: Any  # what sampled the noise
    label: str | None  # what it was charged for as; None if it was not
    share: float  # the change in units of the largest that the mechanism is charged for
    # what that change costs; None where the mechanism's loss is of another kind
    loss: PrivacyLoss | None
    n_releases: float  # vectors that were released


@dataclass(slots=True)
class _Group:
    """The meetings that one charge is for."""

    meetings: list[tuple[Meeting, Meeting]] = field(default_factory=list)
    numbers: int = 0


def moved(first: Transcript, second: Transcript) -> list[Moved]:
    """Return what each mechanism's noise had to make up for between two fits."""
    groups: dict[int, list[_Group]] = {}
    for here, there in zip(second.meetings, first.meetings, strict=False):
        mechanism = here.mechanism
        known = groups.setdefault(id(mechanism), [_Group()])
        room = getattr(mechanism, "n_releases", 1) * _size(mechanism, here)
        if known[-1].numbers >= room and len(known) < second.n_charges(mechanism):
            known.append(_Group())  # one mechanism that was charged for twice
        known[-1].meetings.append((here, there))
        known[-1].numbers += here.integers.size
    return [_moved(group.meetings, second) for known in groups.values() for group in known]


def total_moved(found: Sequence[Moved]) -> PrivacyLoss | None:
    """Return the loss of all changes together; None where that of one is not known."""
    pure, squares = 0.0, 0.0
    for one in found:
        if one.loss is None:
            return None
        if isinstance(one.loss, PureLoss):
            pure += one.loss.pure_epsilon
        elif isinstance(one.loss, GaussianLoss):
            squares += one.loss.mu**2
    if not squares:
        return PureLoss(pure)
    normal = GaussianLoss(float(np.sqrt(squares)))
    return normal if not pure else normal + PureLoss(pure)


def moved_by_matrix(mechanism: SymmetricMatrixMechanism, change: NDArray[Any]) -> float:
    """Return what a change of second moments costs, in the currency of the mechanism's loss."""
    change = np.asarray(change, dtype=np.float64).reshape(mechanism.n_columns, -1)
    scaled = change * mechanism.grid_size / np.outer(mechanism.row_scale, mechanism.row_scale)
    if mechanism.noise == "wishart":
        return 0.5 * float(np.linalg.norm(scaled, "nuc"))
    if mechanism.noise == "k_norm":
        return float(np.linalg.norm(scaled))
    upper = np.triu_indices(mechanism.n_columns)
    order = 1 if mechanism.noise.endswith("laplace") else 2
    units = mechanism.scale[upper]
    return float(np.linalg.norm((change * mechanism.grid_size)[upper] / units, order))


def _moved(meetings: Sequence[tuple[Meeting, Meeting]], transcript: Transcript) -> Moved:
    mechanism = meetings[0][0].mechanism
    # Python's integers: differences of two that are far apart do not overflow.
    changes = [
        np.asarray(here.integers.astype(object) - there.integers.astype(object))
        if here.integers.shape == there.integers.shape
        else np.array([np.inf])
        for here, there in meetings
    ]
    flat = np.concatenate([change.ravel() for change in changes]).astype(np.float64)
    share = _share(mechanism, changes, flat)
    label, charged = transcript.charged(mechanism) or (None, mechanism)
    loss = _loss(mechanism, charged)
    used: PrivacyLoss | None = None
    if not np.isfinite(share):
        pass  # no loss of a kind that adds up
    elif isinstance(loss, PureLoss):
        used = PureLoss(share * loss.pure_epsilon)
    elif isinstance(loss, GaussianLoss):
        used = GaussianLoss(share * loss.mu)
    n_releases = sum(change.size for change in changes) / max(1, _size(mechanism, meetings[0][0]))
    return Moved(mechanism, label, share, used, n_releases)


def _loss(mechanism: Any, charged: Any) -> PrivacyLoss:
    """Return what a mechanism is charged for: a choice perhaps for the range of its loss."""
    reported = isinstance(charged, PrivacyReport)
    ranged = reported and isinstance(charged.total, GaussianLoss)
    if ranged and type(mechanism) is ExponentialMechanism:
        return mechanism.gaussian_loss()
    loss: PrivacyLoss = (mechanism if reported else charged).privacy_loss()
    return loss


def _size(mechanism: Any, meeting: Meeting) -> int:
    """Return how many numbers one release has."""
    if type(mechanism) is AdditiveMechanism:
        # A coordinate without noise is released as it is, and does not meet any.
        return int(np.count_nonzero(np.atleast_2d(mechanism.scale)[0]))
    return meeting.integers.size


def _share(mechanism: Any, changes: Sequence[NDArray[Any]], flat: NDArray[np.float64]) -> float:
    """Return a change in units of the worst one."""
    if not np.isfinite(flat).all():
        return np.inf
    if type(mechanism) is AdditiveMechanism:
        return _share_additive(mechanism, changes, flat)
    if type(mechanism) is SymmetricMatrixMechanism:
        loss = mechanism.privacy_loss()
        paid = loss.pure_epsilon if isinstance(loss, PureLoss) else loss.mu
        used = sum(moved_by_matrix(mechanism, change) for change in changes)
        return used / paid
    if type(mechanism) is KNormMechanism:
        norms = [np.linalg.norm(change.astype(float), mechanism.norm) for change in changes]
        size = mechanism.radius / float(np.max(mechanism.grid_size))
        # Rounding to grid steps adds one to each coordinate at most.
        rounding = mechanism.n_coordinates ** (1.0 / mechanism.norm)
        return float(sum(norms) / (mechanism.n_releases * (size + rounding)))
    if type(mechanism) in _SELECTIONS:
        return _share_of_choice(mechanism, changes)
    if type(mechanism) is SampledMechanism:  # by the same coins in both fits
        each = [change.astype(np.float64) for change in changes]
        return max(_share_additive(mechanism.step, [one], one.ravel()) for one in each)
    raise TypeError(
        f"The replay does not know what a change costs under a {type(mechanism).__name__}: audit "
        "with method='black_box'."
    )


def _share_additive(
    mechanism: AdditiveMechanism, changes: Sequence[NDArray[Any]], flat: NDArray[np.float64]
) -> float:
    """Return the larger of what the loss covers, and of what the profile declares."""
    order = mechanism.family.norm_order or 1.0
    # A grid step is 2**-bits of the scale, whatever the coordinate.
    used = float(np.linalg.norm(flat, order)) * 2.0**-mechanism.bits
    covered = _covered(mechanism, order)
    shares = [used / covered]
    profile, number = mechanism.sensitivity, 0
    for change in changes:
        if change.size % profile.n_coordinates:
            continue  # released one by one: the norm over all of them is what is known
        for row in change.reshape(-1, profile.n_coordinates).astype(np.float64):
            scale = mechanism.grid_size
            grid_size = scale if scale.ndim == 1 else scale[min(number, len(scale) - 1)]
            number += 1
            shares += _declared(profile, np.abs(row), grid_size)
    return max(shares)


def _covered(mechanism: AdditiveMechanism, order: float) -> float:
    """Return the largest norm of change over scale, with one grid step for each rounding."""
    worst = worst_case_norm(mechanism.scale, mechanism.sensitivity, order)
    if mechanism.scale.ndim == 1:
        worst *= mechanism.n_releases ** (1.0 / order)
    moving = mechanism.n_releases * np.count_nonzero(mechanism.sensitivity.per_coordinate)
    return float(worst + moving ** (1.0 / order) * 2.0**-mechanism.bits)


def _declared(
    profile: Any, row: NDArray[np.float64], grid_size: NDArray[np.float64]
) -> list[float]:
    """Return the change of one release in units of each bound that is declared for it."""
    whole = 1.0 if (grid_size != 1.0).any() else 0.0  # rounding to grid steps adds one at most
    limit = profile.per_coordinate + whole * grid_size
    size = row * grid_size
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [float(np.max(np.where(size > 0.0, size / limit, 0.0), initial=0.0))]
    for order, bound in ((1, profile.l1), (2, profile.l2)):
        if bound is not None:
            rounding = float(np.linalg.norm(whole * grid_size, order))
            shares.append(float(np.linalg.norm(size, order)) / (bound + rounding))
    if isinstance(profile, GroupedProfile):
        for g, reach in enumerate(profile.bounds):
            members = profile.groups == g
            steps = np.broadcast_to(whole * grid_size, size.shape)[members]
            change = float(np.linalg.norm(size[members], profile.order))
            most = float(reach + np.linalg.norm(steps, profile.order))
            shares.append(change / most if change > 0.0 else 0.0)
    return shares


def _share_of_choice(mechanism: Any, changes: Sequence[NDArray[Any]]) -> float:
    """Return the largest change of a utility in units of the sensitivity."""
    steps = round(mechanism.sensitivity / mechanism.grid_size)
    shares = []
    for change in changes:
        values = change.astype(np.float64)
        size = float(np.max(np.abs(values)))
        if mechanism.monotonic:  # then only the range of the changes may be as large
            same_way = (values >= 0.0).all() or (values <= 0.0).all()
            size = size if same_way else np.inf
        shares.append(float(size / steps))
    return max(shares)
