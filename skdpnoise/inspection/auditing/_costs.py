"""Costs of what one record moved, release by release, beside what was declared for it."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting import PrivacyReport
from skdpnoise.inspection.auditing.transcript import Meeting, Transcript
from skdpnoise.mechanisms import (
    AdditiveMechanism,
    KNormMechanism,
    SampledMechanism,
    SymmetricMatrixMechanism,
)
from skdpnoise.mechanisms.allocation import worst_case_norm
from skdpnoise.mechanisms.categories import CategoryMechanism
from skdpnoise.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    range_mu,
)
from skdpnoise.privacy import (
    GaussianLoss,
    NormalShift,
    NumericLoss,
    PrivacyLoss,
    Promised,
    PureLoss,
    poisson_sampled,
)
from skdpnoise.sensitivity import GroupedProfile

TOLERANCE = 1.0 + 1e-9  # floating-point error of norms
_SELECTIONS = (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax)
_FARTHEST = 700.0  # scales: beyond it exp of a loss is not a double
_SURE = 1.0 - 2.0**-53  # the largest chance that is not 1

Changes = Sequence[NDArray[Any]]
Pairs = list[tuple[Meeting, Meeting]]


Share = tuple[float, str]
"""A change in units of a bound that is declared, and which bound that is."""


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """The changes that the noise of one mechanism had to hide, in all its releases together."""

    mechanism: Any  # what sampled the noise
    label: str | None  # what it was charged for as; None if it was not
    share: float  # the largest change in units of what is declared
    bound: str  # which of the declared bounds that is, in words
    # what the change costs under the noise of the mechanism, whatever was declared; None: not known
    loss: PrivacyLoss | None
    n_releases: float  # vectors that were released
    # a loss that contains it, of fewer terms, which rounding raises less; None: there is none
    joint: PrivacyLoss | None = None

    @property
    def name(self) -> str:
        return repr(self.label) if self.label else f"an uncharged {type(self.mechanism).__name__}"

    @property
    def is_covered(self) -> bool:
        """Return whether the charge is for so many releases, and for changes as large as these."""
        return self.share <= TOLERANCE and self.label is not None and not self.is_repeated

    @property
    def is_repeated(self) -> bool:
        return self.n_releases > getattr(self.mechanism, "n_releases", 1)


def moved(first: Transcript, second: Transcript) -> list[Moved]:
    groups: dict[int, list[Pairs]] = {}  # meetings that one charge is for, of each mechanism
    for here, there in zip(second.meetings, first.meetings, strict=False):
        mechanism = here.mechanism
        known = groups.setdefault(id(mechanism), [[]])
        room = getattr(mechanism, "n_releases", 1) * _size(mechanism, here)
        if _numbers(known[-1]) >= room and len(known) < second.n_charges(mechanism):
            known.append([])  # one mechanism that was charged for twice
        known[-1].append((here, there))
    return [_moved(group, second) for known in groups.values() for group in known]


def total_moved(found: Sequence[Moved], *, joint: bool = False) -> PrivacyLoss | None:
    """Return the loss of all changes together; None where that of one is not known."""
    losses = [one.joint if joint and one.joint is not None else one.loss for one in found]
    known = [loss for loss in losses if loss is not None]
    if len(known) < len(losses):
        return None
    return reduce(operator.add, known) if known else PureLoss(0.0)


def quick_epsilon(loss: PrivacyLoss, delta: float) -> float:
    """Return a quick upper bound of ε(δ): exact of normal shifts, and of all else what is sure."""
    if not isinstance(loss, NumericLoss):
        return float(loss.epsilon(delta))
    normal = [mu for curve, mu, _ in loss.terms if isinstance(curve, NormalShift)]
    rest = NumericLoss(tuple(term for term in loss.terms if not isinstance(term[0], NormalShift)))
    return rest.pure_epsilon + (float(GaussianLoss(*normal).epsilon(delta)) if normal else 0.0)


def exact_epsilon(loss: PrivacyLoss, delta: float) -> float:
    """Return ε(δ) of a loss, by composition of all its terms where there are several kinds."""
    quick = quick_epsilon(loss, delta)
    if not isinstance(loss, NumericLoss) or delta == 0.0:
        return quick
    if max((shift for _, shift, _ in loss.terms), default=0.0) > _FARTHEST:
        return quick
    return min(quick, float(loss.epsilon(delta)))


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


def _moved(meetings: Pairs, transcript: Transcript) -> Moved:
    mechanism = meetings[0][0].mechanism
    label, charged = transcript.charged(mechanism) or (None, mechanism)
    n_releases = _numbers(meetings) / max(1, _size(mechanism, meetings[0][0]))
    loss: PrivacyLoss | None = None
    joint: PrivacyLoss | None = None
    shares: list[Share]
    if type(mechanism) is CategoryMechanism:
        loss, shares = _of_cells(mechanism, meetings)
    elif any(here.integers.shape != there.integers.shape for here, there in meetings):
        shares = [(np.inf, "in its shape")]
    else:
        # Python's integers: differences of two that are far apart do not overflow.
        changes = [
            np.asarray(here.integers.astype(object) - there.integers.astype(object))
            for here, there in meetings
        ]
        loss, shares = _of_changes(mechanism, charged, changes)
        if isinstance(loss, NumericLoss) and type(mechanism) is AdditiveMechanism:
            joint = _joint_loss(mechanism, changes)
    share, bound = max(shares)
    return Moved(mechanism, label, share, bound, loss, n_releases, joint)


def _numbers(meetings: Pairs) -> int:
    return sum(1 if here.kind == "cells" else here.integers.size for here, _ in meetings)


def _size(mechanism: Any, meeting: Meeting) -> int:
    if type(mechanism) is CategoryMechanism:
        return mechanism.n_columns
    if type(mechanism) is AdditiveMechanism:
        # A coordinate without noise is released as it is, and does not meet any.
        return int(np.count_nonzero(np.atleast_2d(mechanism.scale)[0]))
    return meeting.integers.size


def _of_changes(
    mechanism: Any, charged: Any, changes: Changes
) -> tuple[PrivacyLoss | None, list[Share]]:
    """Return what changes cost, and how large each is beside what is declared."""
    if type(mechanism) is AdditiveMechanism:
        return _shift_loss(mechanism, changes), _shares_of_sums(mechanism, changes)
    if type(mechanism) is SymmetricMatrixMechanism:
        return _of_matrices(mechanism, changes)
    if type(mechanism) is KNormMechanism:
        return _of_balls(mechanism, changes)
    if type(mechanism) in _SELECTIONS:
        return _of_choices(mechanism, charged, changes)
    if type(mechanism) is SampledMechanism:
        return _of_samples(mechanism, changes)
    raise TypeError(
        f"The replay does not know what a change costs under a {type(mechanism).__name__}: audit "
        "with method='black_box'."
    )


# Sums with noise


def _shift_loss(mechanism: AdditiveMechanism, changes: Changes) -> PrivacyLoss | None:
    """Return the loss of the noise moved by integers k: each by 2**-B |k| scales."""
    # That of real noise: rounding it, which is post-processing, can only lose less.
    rows = [_rows(mechanism, change) for change in changes]
    families = np.array(mechanism.families, dtype=object)
    if len(families) > 1:
        if any(one is None for one in rows):
            return None  # which coordinate was released is not known
        families = families[_noisy(mechanism)]
    flat = np.concatenate([change.ravel() for change in changes]).astype(np.float64)
    sizes = np.abs(flat) * 2.0**-mechanism.bits
    if all(family.norm_order == 2.0 for family in families):
        return GaussianLoss(float(np.linalg.norm(sizes)))
    shifts = Counter(zip(np.resize(families, sizes.size).tolist(), sizes.tolist(), strict=True))
    curves = {f: NormalShift() if f.norm_order == 2.0 else f for f in families}
    return NumericLoss(tuple((curves[f], size, n) for (f, size), n in shifts.items() if size > 0.0))


def _joint_loss(mechanism: AdditiveMechanism, changes: Changes) -> PrivacyLoss | None:
    """Return the loss of one number for each release, moved by the sum of all its shifts."""
    # It contains that of log-concave noise on all of them: see the guarantee of AdditiveMechanism.
    family, *others = mechanism.families or ()
    if others or family.lattice or not family.log_concave:
        return None
    shifts: list[float] = []
    for change in changes:
        rows = _rows(mechanism, change)
        sums = [float(np.abs(change).sum())] if rows is None else rows.sum(axis=1).tolist()
        shifts += [size * 2.0**-mechanism.bits for size in sums]
    return NumericLoss(tuple((family, shift, 1) for shift in shifts if shift > 0.0))


def _noisy(mechanism: AdditiveMechanism) -> NDArray[np.intp]:
    return np.flatnonzero(np.atleast_2d(mechanism.scale)[0] > 0.0)


def _rows(mechanism: AdditiveMechanism, change: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the sizes of changes, a row for each release; None if released one by one."""
    n_noisy = _noisy(mechanism).size
    if not n_noisy or change.size % n_noisy:
        return None
    return np.abs(change.reshape(-1, n_noisy).astype(np.float64))


def _shares_of_sums(mechanism: AdditiveMechanism, changes: Changes) -> list[Share]:
    """Return the change of all releases in units of what is charged, and of each one's bounds."""
    order = mechanism.family.norm_order or 1.0
    flat = np.concatenate([change.ravel() for change in changes]).astype(np.float64)
    used = float(np.linalg.norm(flat, order)) * 2.0**-mechanism.bits
    shares = [(used / _covered(mechanism, order), "for all releases together")]
    number, places = 0, _noisy(mechanism)
    for change in changes:
        rows = _rows(mechanism, change)
        for row in () if rows is None else rows:
            scale = mechanism.grid_size
            grid_size = scale if scale.ndim == 1 else scale[min(number, len(scale) - 1)]
            number += 1
            size = np.zeros(mechanism.sensitivity.n_coordinates)
            size[places] = row
            shares += _declared(mechanism.sensitivity, size, grid_size)
    return shares


def _covered(mechanism: AdditiveMechanism, order: float) -> float:
    """Return the largest norm of change over scale, with one grid step for each rounding."""
    worst = worst_case_norm(mechanism.scale, mechanism.sensitivity, order)
    if mechanism.scale.ndim == 1:
        worst *= mechanism.n_releases ** (1.0 / order)
    moving = mechanism.n_releases * np.count_nonzero(mechanism.sensitivity.per_coordinate)
    return float(worst + moving ** (1.0 / order) * 2.0**-mechanism.bits)


def _declared(
    profile: Any, row: NDArray[np.float64], grid_size: NDArray[np.float64]
) -> list[Share]:
    """Return the change of one release in units of each bound that is declared for it."""
    # Rounding to grid steps adds one at most.
    steps = grid_size if (grid_size != 1.0).any() else np.zeros_like(grid_size)
    size, steps = row * grid_size, np.broadcast_to(steps, row.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(size > 0.0, size / (profile.per_coordinate + steps), 0.0)
    shares = [(float(parts.max(initial=0.0)), "for one number")]
    bounds: list[tuple[Any, float, Any, str]]
    bounds = [(slice(None), 1, profile.l1, "in l1"), (slice(None), 2, profile.l2, "in l2")]
    if isinstance(profile, GroupedProfile):
        for g, reach in enumerate(profile.bounds):
            bounds.append((profile.groups == g, profile.order, reach, f"for group {g}"))
    for members, order, most, words in bounds:
        change = float(np.linalg.norm(size[members], order))
        if most is not None:
            limit = float(most + np.linalg.norm(steps[members], order))
            shares.append((change / limit if change > 0.0 else 0.0, words))
    return shares


def _of_samples(
    mechanism: SampledMechanism, changes: Changes
) -> tuple[PrivacyLoss | None, list[Share]]:
    """Return what changes of sums over samples cost, by the same coins in both fits."""
    # A step whose sample does not hold the record says nothing of how far it would have moved: the
    # largest of those that do stands for all of them.
    steps = [np.asarray(change, dtype=np.float64) for change in changes]
    shares = [share for one in steps for share in _shares_of_sums(mechanism.step, [one])]
    order = mechanism.step.family.norm_order or 1.0
    shift = max(float(np.linalg.norm(one, order)) for one in steps) * 2.0**-mechanism.step.bits
    if shift == 0.0:
        return PureLoss(0.0), shares
    family = mechanism.step.family
    loss = GaussianLoss(shift) if order == 2.0 else NumericLoss(((family, shift, 1),))
    return poisson_sampled(loss, mechanism.rate).compose(mechanism.n_releases), shares


# Others


def _of_matrices(
    mechanism: SymmetricMatrixMechanism, changes: Changes
) -> tuple[PrivacyLoss, list[Share]]:
    used = [moved_by_matrix(mechanism, change) for change in changes]
    paid = mechanism.privacy_loss()
    if isinstance(paid, PureLoss):
        return PureLoss(sum(used)), [(max(used) / paid.pure_epsilon, "for second moments")]
    loss = GaussianLoss(float(np.linalg.norm(used)))
    return loss, [(max(used) / paid.mu, "for second moments")]


def _of_balls(mechanism: KNormMechanism, changes: Changes) -> tuple[PrivacyLoss, list[Share]]:
    rows = [change.reshape(-1, mechanism.n_coordinates).astype(np.float64) for change in changes]
    norms = np.linalg.norm(np.concatenate(rows), mechanism.norm, axis=1)
    size = mechanism.radius / float(np.max(mechanism.grid_size))
    # Rounding to grid steps adds one to each coordinate at most.
    rounding = mechanism.n_coordinates ** (1.0 / mechanism.norm)
    share = (float(norms.max()) / (size + rounding), "in its norm")
    return PureLoss(float(norms.sum()) * 2.0**-mechanism.bits), [share]


def _of_choices(mechanism: Any, charged: Any, changes: Changes) -> tuple[PrivacyLoss, list[Share]]:
    """Return what changes d of utilities, in grid steps, cost: 2**-B (max d - min d)."""
    # A change of all utilities by the same number changes no choice. What is left is at least 0 and
    # at most the range of d, and moves the threshold that decides a choice by no more.
    steps = round(mechanism.sensitivity / mechanism.grid_size)
    shares, losses = [], []
    for change in changes:
        values = change.astype(np.float64)
        shares.append((float(np.max(np.abs(values))) / steps, "for one utility"))
        if mechanism.monotonic and (values > 0.0).any() and (values < 0.0).any():
            shares.append((np.inf, "for utilities that move in one direction"))
        losses.append(float(np.ptp(values)) * 2.0**-mechanism.bits)
    total = charged.total if isinstance(charged, PrivacyReport) else charged.privacy_loss()
    if type(mechanism) is ExponentialMechanism and isinstance(total, GaussianLoss):
        return GaussianLoss(float(np.linalg.norm([range_mu(one) for one in losses]))), shares
    return PureLoss(sum(losses)), shares


def _of_cells(mechanism: CategoryMechanism, meetings: Pairs) -> tuple[PrivacyLoss, list[Share]]:
    r"""Return what changes of counts of categories cost, those that one data set lacks included.

    .. math:: L = \sum_{\text{in both}} L_{\text{noise}}(2^{-B} |k|)
              + \sum_{\text{in one}} L_{\mathrm{Promised}(p_c)}
    """
    # A cell of c records that one data set lacks is shown with probability p_c in the other, and
    # never there: the pair of Promised(p_c). A cell that both have is a number with noise.
    made, rows = mechanism.additive, mechanism.rows_per_group
    curve = NormalShift() if made.family.norm_order == 2.0 else made.family
    grid_size = mechanism.grid_size
    terms: list[tuple[Any, float, int]] = []
    shares = [(0.0, "for one count")]
    for here, there in meetings:
        first = dict(zip(there.names, there.integers.tolist(), strict=True))
        second = dict(zip(here.names, here.integers.tolist(), strict=True))
        sizes = []
        for name in {**first, **second}:
            size = abs(second.get(name, 0) - first.get(name, 0))
            if size:
                sizes.append(size * grid_size)
            if (name in first) != (name in second):
                chance = mechanism.chance(max(1, round(size * grid_size)))
                terms.append((Promised(min(chance, _SURE)), 0.0, 1))
            elif size:
                terms.append((curve, size * 2.0**-made.bits, 1))
        if sizes:
            shares.append((max(sizes) / (rows + grid_size), "for one count"))
            most = rows * made.scale.size / mechanism.n_columns + len(sizes) * grid_size
            shares.append((sum(sizes) / most, "for the counts of one column"))
    return NumericLoss(tuple(terms)), shares
