r"""Calibration of noise whose shape, not scale, follows the budget.

Coordinate j gets the *ratio* :math:`r_j = \lambda_j / s_j` of its sensitivity to a nominal scale,
as Laplace noise would. Which shape that is says the family: see ``for_ratio`` in
:class:`~skdpnoise.noises.Noise`. Continuous noise then has the scale λ_j, noise on the integers 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms._scale_search import Request, least_factor
from skdpnoise.mechanisms.additive import AdditiveMechanism, least_epsilon, least_mu
from skdpnoise.mechanisms.allocation import allocate, refuse_groups, worst_case_norm
from skdpnoise.mechanisms.grid_sizes import check_whole_steps
from skdpnoise.mechanisms.requests import number_of
from skdpnoise.noises import Noise, get_noise
from skdpnoise.noises.registry import ForRatio, shape_rule
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss
from skdpnoise.privacy.numeric.loss import Group
from skdpnoise.sensitivity import SensitivityProfile

Vector = NDArray[np.float64]

_BITS = 25  # the unit of continuous noise spans 2**25 grid steps
_LEAST_RATIO = 1e-9  # that 64 bits can draw with so many; smaller ones get fewer bits
_SMALLEST_RATIO = 1e-13
_SMALL_PART = 1e-3  # of the budget
_FEW = 128  # distinct shapes that are composed one by one


def by_shape(noise: str, request: Request, *, rough: bool = False) -> AdditiveMechanism:
    """Return the best mechanism among a few allocations of the ratios."""
    refuse_groups(noise, request.sensitivity)
    rule, _, name = noise.partition("_")
    limit, family = request.sensitivity.per_coordinate, get_noise(name)
    for_ratio = shape_rule(name)
    if for_ratio is None:
        raise ValueError(
            f"The 'noise' parameter of calibrate is {noise!r}, a family that is neither "
            "log-concave nor one whose shape calibrate knows how to choose. Choose another."
        )
    if family.lattice:
        check_whole_steps("calibrate", limit)
    steps = limit
    if rule == "iid" and not family.lattice:
        steps = np.full(limit.size, limit.max())  # the same noise everywhere
    search = _RatioSearch(noise, family, for_ratio, request, steps)
    proposals = [
        (search.mechanism(ratio), ratio, promise)
        for nominal in islice(search.nominal_scales(), 1 if rough else None)
        for ratio, promise in search.ratios(nominal)
    ]
    found, ratio, promise = min(proposals, key=lambda proposal: request.expected(proposal[0]))
    part = 1e-6
    while not meets(found, request.target):  # the search composes on lattices of its own
        ratio, part = ratio * (1.0 - part), 2.0 * part
        found = search.mechanism(ratio)
    return found if promise is None else replace(found, promise=promise)


def meets(mechanism: AdditiveMechanism, target: PrivacyGuarantee | LossBudget) -> bool:
    """Return whether all releases together cost no more than the target."""
    if isinstance(target, GaussianLoss):
        return least_mu(mechanism) <= target.mu
    if least_epsilon(mechanism) <= number_of(target):
        return True
    if isinstance(target, PureLoss):
        return False
    return mechanism.own_loss().delta(target.epsilon) <= target.delta


def raised(
    mechanism: AdditiveMechanism, target: PrivacyGuarantee | LossBudget
) -> AdditiveMechanism:
    """Return the mechanism with its scales raised, by little at a time, until it meets a target."""
    more = 1e-6
    while not meets(mechanism, target):
        mechanism, more = replace(mechanism, scale=mechanism.scale * (1.0 + more)), 2.0 * more
    return mechanism


@dataclass(frozen=True, slots=True, eq=False)
class _RatioSearch:
    noise: str
    family: Noise
    for_ratio: ForRatio
    request: Request
    steps: Vector  # the change that each coordinate's noise is made for

    def nominal_scales(self) -> Iterator[Vector]:
        """Yield the scales that Laplace noise would have, for the box and for the joint bounds."""
        rule, request = self.noise.partition("_")[0], self.request
        box = SensitivityProfile(request.sensitivity.per_coordinate)
        tried = [(rule, 1.0)]
        if rule == "inid":
            tried += [(rule, 1.5), (rule, 2.0), ("spr", 1.0), ("iid", 1.0)]
        for bounds in (box, request.sensitivity)[: 1 + self.family.lattice]:
            for each, order in tried:
                yield allocate(each, bounds, order=order, weights=request.mean_weights, p=request.p)

    def ratios(self, nominal: Vector) -> Iterator[tuple[Vector, LossBudget | None]]:
        """Yield ratios that meet the target, by the sum of the largest losses and numerically."""
        request, target, lattice = self.request, self.request.target, self.family.lattice
        moving = request.sensitivity.per_coordinate > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(moving, self.steps / nominal, 0.0)
        # A tiny ratio would cost the others bits: all ratios are raised by a negligible floor.
        most = float(ratio.size * request.n_releases)
        floor = 0.0 if lattice else min(_LEAST_RATIO, _SMALL_PART * number_of(target) / most)
        if self.family.supports_pure and not isinstance(target, GaussianLoss):
            epsilon, total = number_of(target), float(ratio.sum())
            if lattice:
                total = worst_case_norm(nominal, request.sensitivity, 1.0)
            each = epsilon / request.n_releases * (1.0 - 1e-12 * ratio.size)
            part = (each - floor * ratio.size) / total
            yield np.where(moving, ratio * part + floor, 0.0), PureLoss(epsilon)
        if isinstance(target, PureLoss):
            return
        # changes, in grid steps
        steps = self.steps if lattice else np.ones(ratio.size)
        pairs, times = np.unique(
            np.stack([ratio[moving], steps[moving]]), axis=1, return_counts=True
        )
        if times.size > _FEW and self.family.supports_pure:
            return
        counts = times * float(request.n_releases)

        def excess(factor: float) -> float:
            groups: list[Group] = []
            for r, step, count in zip(*pairs, counts, strict=True):
                family = self.for_ratio(r / factor + floor, step, request.p)
                groups.append((family, np.array([step]), np.array([count])))
            return request.excess(groups)

        start = math.sqrt(float(counts @ pairs[0] ** 2)) / request.mu
        promise = target if isinstance(target, GaussianLoss) else None
        factor = least_factor(excess, start, 1e-7) * (1.0 + 1e-6)
        yield np.where(moving, ratio / factor + floor, 0.0), promise

    def mechanism(self, ratio: Vector) -> AdditiveMechanism:
        rule, _, name = self.noise.partition("_")
        sensitivity, bits = self.request.sensitivity, 0
        spare = float(ratio[ratio > 0.0].min())
        if self.family.lattice:
            largest = float((self.steps[ratio > 0.0] / ratio[ratio > 0.0]).max())
            families = tuple(
                self.for_ratio(r, s, self.request.p) if r > 0.0 else get_noise(name, largest)
                for r, s in zip(ratio, self.steps, strict=True)
            )
            scale = np.where((self.steps > 0.0) | (rule == "iid"), 1.0, 0.0)
        elif spare < _SMALLEST_RATIO:
            raise ValueError(
                f"The guarantee asked of calibrate is too small for {self.noise!r}: a coordinate "
                f"may lose {spare:.3g}, but 64 bits need at least {_SMALLEST_RATIO:g}. Ask for a "
                "larger epsilon, for fewer releases, or for Laplace noise."
            )
        else:
            known = {
                r: self.for_ratio(r or spare, 1.0, self.request.p) for r in set(ratio.tolist())
            }
            families = tuple(known[r] for r in ratio.tolist())
            # The density falls by a factor of e over 1/ratio units, and no draw is 2**6 of those.
            bits = _BITS - max(0, math.ceil(math.log2(_LEAST_RATIO / spare)))
            # room for the rounding of the value
            scale = self.steps / (1.0 - 2.0**-bits * (1.0 + 2e-5))
            sensitivity = SensitivityProfile(sensitivity.per_coordinate)
        families = families if len(set(families)) > 1 else families[:1]
        return AdditiveMechanism(
            self.noise, scale, bits, sensitivity, self.request.n_releases, families=families
        )
