r"""Calibration of noise whose shape, not scale, follows the budget.

Coordinate j gets the *ratio* :math:`r_j = \lambda_j / s_j` of its sensitivity to a nominal scale,
as Laplace noise would. Which shape that is says the family: see ``for_ratio`` in
:class:`~skdpnoise.noises.Noise`. Continuous noise then has the scale λ_j, noise on the integers 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms._losses import shifts
from skdpnoise.mechanisms._numeric import Criterion, Request, least_factor
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.allocation import allocate, worst_case_norm
from skdpnoise.noises import Noise, get_noise
from skdpnoise.noises.registry import ForRatio, shape_rule
from skdpnoise.privacy import GaussianLoss, LossBudget, LossCurve, PrivacyGuarantee, PureLoss
from skdpnoise.sensitivity import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

__all__ = ["by_shape"]

Vector = NDArray[np.float64]

_BITS = 25  # the unit of continuous noise spans 2**25 grid steps
_LEAST_RATIO = 1e-9  # that 64 bits can draw with so many; smaller ones get fewer bits
_SMALLEST_RATIO = 1e-13
_SMALL_PART = 1e-3  # of the budget
_FEW = 128  # distinct shapes that are composed one by one


def by_shape(
    noise: str,
    request: Request,
    target: PrivacyGuarantee | GaussianLoss | PureLoss,
    *,
    rough: bool = False,
) -> AdditiveMechanism:
    """Return the best mechanism among a few allocations of the ratios."""
    rule, _, name = noise.partition("_")
    sensitivity, weights = request.sensitivity, request.weights
    limit = sensitivity.per_coordinate
    for_ratio = shape_rule(name)
    if for_ratio is None:
        raise ValueError(
            f"The 'noise' parameter of calibrate is {noise!r}, a family that is neither "
            "log-concave nor one whose shape calibrate knows how to choose. Choose another."
        )
    if get_noise(name).lattice and (limit != np.rint(limit)).any():
        raise ValueError(
            f"The 'noise' parameter of calibrate is {noise!r}, which is for integer-valued queries:"
            " sensitivity.per_coordinate must then be integer in every entry. Choose another "
            "noise, or express the query in whole units."
        )
    if weights is not None and weights.ndim == 2:
        weights = weights.mean(axis=0)
    box = SensitivityProfile(limit)
    proposals = [
        (_build(noise, for_ratio, request, ratio), ratio, promise)
        for bounds in (box, sensitivity)[: 1 + get_noise(name).lattice]
        for nominal in islice(
            _nominal_scales(rule, bounds, weights, request.p), 1 if rough else None
        )
        for ratio, promise in _ratios(noise, for_ratio, nominal, request, target)
    ]
    found, ratio, promise = min(
        proposals, key=lambda proposal: proposal[0].expected_error(request.p, request.weights)
    )
    part = 1e-6
    while not _meets(found, target):  # the search composes on lattices of its own
        ratio, part = ratio * (1.0 - part), 2.0 * part
        found = _build(noise, for_ratio, request, ratio)
    return found if promise is None else replace(found, promise=promise)


def _meets(
    mechanism: AdditiveMechanism, target: PrivacyGuarantee | GaussianLoss | PureLoss
) -> bool:
    """Return whether the loss of a finished mechanism meets the target."""
    if isinstance(target, GaussianLoss):
        return Criterion(target).excess(_groups(mechanism)) <= 0.0
    if isinstance(target, PureLoss):
        return _pure_loss(mechanism) <= target.pure_epsilon
    if target.delta == 0.0 or _pure_loss(mechanism) <= target.epsilon:
        return _pure_loss(mechanism) <= target.epsilon
    return mechanism.own_loss().delta(target.epsilon) <= target.delta


def _groups(mechanism: AdditiveMechanism) -> list[tuple[LossCurve, Vector, Vector]]:
    """Return curve, shift and count of each coordinate that can move."""
    assert mechanism.families is not None
    limit = mechanism.sensitivity.per_coordinate
    values = limit
    if not mechanism.family.lattice:
        values, _ = shifts(mechanism.scale, mechanism.sensitivity, 1, mechanism.bits, merged=False)
    families = mechanism.families * (limit.size if len(mechanism.families) == 1 else 1)
    count = np.array([float(mechanism.n_releases)])
    return [
        (family, np.array([value]), count)
        for family, value in zip(families, values, strict=True)
        if value > 0.0
    ]


def _pure_loss(mechanism: AdditiveMechanism) -> float:
    """Return an ε of pure privacy, rounded up: infinity if there is none."""
    losses = [n[0] * float(curve.max_loss(a)[0]) for curve, a, n in _groups(mechanism)]
    total = rounded_up(math.fsum(losses))
    joint = mechanism.sensitivity
    if not mechanism.family.lattice or (joint.l1 is None and joint.l2 is None) or total == math.inf:
        return total
    # A change by d steps is d changes by one step, each of which loses no more than the first.
    assert mechanism.families is not None
    scale = np.array([1.0 / float(family.max_loss(1.0)) for family in mechanism.families])
    worst = worst_case_norm(np.broadcast_to(scale, joint.n_coordinates), joint, 1.0)
    return min(total, rounded_up(worst * mechanism.n_releases))


def _nominal_scales(
    rule: str, sensitivity: SensitivityProfile, weights: Vector | None, p: float
) -> Iterator[Vector]:
    orders = (1.0, 1.5, 2.0) if rule == "inid" else (1.0,)
    for order in orders:
        yield allocate(rule, sensitivity, order=order, weights=weights, p=p)
    if rule == "inid":
        yield allocate("spr", sensitivity, order=1.0)
        yield allocate("iid", sensitivity, order=1.0)


def _ratios(
    noise: str,
    for_ratio: ForRatio,
    nominal: Vector,
    request: Request,
    target: PrivacyGuarantee | GaussianLoss | PureLoss,
) -> Iterator[tuple[Vector, LossBudget | None]]:
    """Yield ratios that meet the target, by the sum of the largest losses and numerically."""
    rule, _, name = noise.partition("_")
    limit = _steps(name, rule, request.sensitivity)
    moving = request.sensitivity.per_coordinate > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(moving, limit / nominal, 0.0)
    # A tiny ratio takes bits from the others; what all of them get more, the others hardly miss.
    most = float(limit.size * request.n_releases)
    floor = (
        0.0 if get_noise(name).lattice else min(_LEAST_RATIO, _SMALL_PART * _total(target) / most)
    )
    epsilon = None
    if isinstance(target, PureLoss):
        epsilon = target.pure_epsilon
    elif isinstance(target, PrivacyGuarantee):
        epsilon = target.epsilon
    pure = get_noise(name).supports_pure
    if epsilon is not None and pure:
        total = float(ratio.sum())
        if get_noise(name).lattice:
            total = worst_case_norm(nominal, request.sensitivity, 1.0)
        each = epsilon / request.n_releases * (1.0 - 1e-12 * ratio.size)
        part = (each - floor * ratio.size) / total
        yield np.where(moving, ratio * part + floor, 0.0), PureLoss(epsilon)
    if isinstance(target, PureLoss) or (
        isinstance(target, PrivacyGuarantee) and target.delta == 0.0
    ):
        return
    # changes, in grid steps or steps
    steps = limit if get_noise(name).lattice else np.ones(limit.size)
    pairs, times = np.unique(np.stack([ratio[moving], steps[moving]]), axis=1, return_counts=True)
    unique: Vector = pairs[0]
    if unique.size > _FEW and pure:
        return
    criterion = Criterion(target)
    counts = times * float(request.n_releases)

    def excess(factor: float) -> float:
        groups: list[tuple[LossCurve, Vector, Vector]] = []
        for r, step, count in zip(*pairs, counts, strict=True):
            family: LossCurve = for_ratio(r / factor + floor, step, request.p)
            groups.append((family, np.array([step]), np.array([count])))
        return criterion.excess(groups)

    start = math.sqrt(float(counts @ unique**2)) / criterion.mu
    promise = target if isinstance(target, GaussianLoss) else None
    factor = least_factor(excess, start, 1e-7) * (1.0 + 1e-6)
    yield np.where(moving, ratio / factor + floor, 0.0), promise


def _total(target: PrivacyGuarantee | GaussianLoss | PureLoss) -> float:
    """Return the epsilon or the μ of a target."""
    if isinstance(target, PrivacyGuarantee):
        return target.epsilon
    return target.mu if isinstance(target, GaussianLoss) else target.pure_epsilon


def _steps(name: str, rule: str, sensitivity: SensitivityProfile) -> Vector:
    """Return the change that each coordinate's noise is made for."""
    limit = sensitivity.per_coordinate
    if rule == "iid" and not get_noise(name).lattice:
        return np.full(limit.size, limit.max())  # the same noise everywhere
    return limit


def _build(
    noise: str,
    for_ratio: ForRatio,
    request: Request,
    ratio: Vector,
) -> AdditiveMechanism:
    rule, _, name = noise.partition("_")
    sensitivity = request.sensitivity
    steps = _steps(name, rule, sensitivity)
    lattice, bits = get_noise(name).lattice, 0
    spare = float(ratio[ratio > 0.0].min())
    if not lattice and spare < _SMALLEST_RATIO:
        raise ValueError(
            f"The guarantee asked of calibrate is too small for {noise!r}: a coordinate may lose "
            f"{spare:.3g}, but 64 bits need at least {_SMALLEST_RATIO:g}. Ask for a larger "
            "epsilon, for fewer releases, or for Laplace noise."
        )
    if lattice:
        largest = float((steps[ratio > 0.0] / ratio[ratio > 0.0]).max())
        families = tuple(
            for_ratio(r, s, request.p) if r > 0.0 else get_noise(name, largest)
            for r, s in zip(ratio, steps, strict=True)
        )
        noisy = (steps > 0.0) | (rule == "iid")
        scale = np.where(noisy, 1.0, 0.0)
    else:
        known: dict[float, Noise] = {}
        for r in ratio:
            known.setdefault(float(r), for_ratio(float(r) or spare, 1.0, request.p))
        families = tuple(known[float(r)] for r in ratio)
        # The density falls by a factor of e over 1/ratio units, and no draw is 2**6 of those.
        bits = _BITS - max(0, math.ceil(math.log2(_LEAST_RATIO / spare)))
        scale = steps / (1.0 - 2.0**-bits * (1.0 + 2e-5))  # room for the rounding of the value
    return AdditiveMechanism(
        noise,
        scale,
        bits,
        SensitivityProfile(sensitivity.per_coordinate) if not lattice else sensitivity,
        request.n_releases,
        families=families if len(set(families)) > 1 else families[:1],
    )
