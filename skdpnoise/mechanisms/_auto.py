"""Proposals of "auto" for δ > 0 beside noise with a formula: a few evaluations, no search.

Two kinds of noise come close to the result of a search: a shape between Laplace and normal, where
these do about equally well; and Laplace noise on the coordinates that dominate, normal on others.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from skdpnoise.mechanisms._scale_search import WIDE, Proposal, Request, prepared_mixture
from skdpnoise.mechanisms._shape_search import raised
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.allocation import box_of, over_groups
from skdpnoise.noises import get_noise
from skdpnoise.privacy import PrivacyGuarantee, gdp_mu
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile

__all__ = ["quick_mixture", "quick_shape", "settled"]

Vector = NDArray[np.float64]

# Best shapes by the logarithm of how much larger the error of normal noise is than that of Laplace
# noise; beyond these one of the two is within a few percent of the best shape.
_LOG_RATIOS = (-0.8, -0.6, -0.1, 0.2, 0.7)
_SHAPES = (1.75, 1.7, 1.48, 1.27, 1.12)
# Where one shift is more than this share of all, roughly, Laplace noise on the many small ones says
# little: unless they are too many, the shape is at most that of this log ratio.
_SHARE, _MANY, _DOMINATED = 0.28, -2.5, -0.35
_ORDER = 1.5  # of the costs, between those of the two
_STEP = 0.15  # log ratio of neighbouring shifts: a few are composed faster, and lose .1 %
_LEAST, _MOST = 1e-40, 0.1  # of delta: beyond these a quick bound is not that of the own loss
_MOST_CORRECTIONS, _FAR = 8, 8.0  # of scales, and of how far off an epsilon they may start from
_CLOSE, _ROOM = 5e-4, 1e-4  # of epsilon that may be left, and of the scales added to get there
_LEVELS = 9  # of mixtures that are compared, for each split
_HALVINGS = 10  # of the logarithm of a factor
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def quick_shape(request: Request) -> Proposal:
    """Return Subbotin noise of a shape that follows from the errors of Laplace and normal noise."""
    target, groups = _target(request), request.sensitivity
    request = replace(request, weights=request.mean_weights)
    if isinstance(groups, GroupedProfile):
        # Of groups, the norms are the numbers; then each coordinate gets what its group has.
        quotient, summed, spread = over_groups(groups, 1.0, request.weights, request.p)
        found = quick_shape(replace(request, sensitivity=quotient, weights=summed))
        scale = (found.scale * spread)[groups.members]
        return replace(found, scale=scale, sensitivity=box_of(groups))
    limit = request.sensitivity.per_coordinate
    box = SensitivityProfile(limit)

    def log_error(name: str, order: float, resource: float) -> float:
        scale = request.scales("inid", order, box) / resource
        return math.log(request.error(scale, get_noise(name).absolute_moment(request.p)))

    moving = limit > 0.0
    shifts = limit[moving] / request.scales("inid", _ORDER, box)[moving]
    log_ratio = log_error("gaussian", 2.0, request.mu) - log_error("laplace", 1.0, target.epsilon)
    if log_ratio > _MANY and shifts.max() > _SHARE * np.linalg.norm(shifts):
        log_ratio = max(log_ratio, _DOMINATED)
    if not _LOG_RATIOS[0] < log_ratio < _LOG_RATIOS[-1]:
        raise ValueError("Normal or Laplace noise is about as good as any shape between them.")
    family = get_noise("subbotin", round(float(np.interp(log_ratio, _LOG_RATIOS, _SHAPES)), 2))
    steps = np.round(np.log(shifts / shifts.max()) / _STEP)
    total = math.sqrt(request.n_releases * float(np.exp(2.0 * _STEP * steps).sum()))
    scale = np.zeros_like(limit)
    scale[moving] = limit[moving] * np.exp(-_STEP * steps) * (total / request.mu)
    return Proposal(scale, (family,), box, request.error(scale, family.absolute_moment(request.p)))


def quick_mixture(request: Request) -> Proposal:
    """Return the best of some mixtures, by the curve of one Laplace and one normal number."""
    # For that, the Laplace coordinates count as one that is moved by the sum of their shifts, and
    # the normal ones as one that is moved by the root of the sum of squares.
    target = _target(request)
    search, splits = prepared_mixture(request)
    levels = np.linspace(-WIDE, WIDE, _LEVELS)
    tried = [search.scales(m, level) for m in splits for level in levels]
    apart = [search.shifts(*one) for one in tried]
    shifts, mu = np.array([(request.n_releases * float(a.sum()), mu) for a, mu in apart]).T
    # Normal noise alone would need `low`; with half of epsilon for each kind `high` is enough.
    half_mu = gdp_mu(0.5 * target.epsilon, target.delta)
    low = np.log(mu / request.mu)
    high = np.log(np.maximum(2.0 * shifts / target.epsilon, mu / half_mu))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        factor = np.exp(middle)
        met = delta_of_both(target.epsilon, shifts / factor, mu / factor) <= target.delta
        low, high = np.where(met, low, middle), np.where(met, middle, high)
    found = [(scale * c, laplace) for (scale, laplace), c in zip(tried, np.exp(high), strict=True)]
    return search.proposal(*min(found, key=lambda one: search.error(*one)))


def settled(mechanism: AdditiveMechanism, request: Request) -> AdditiveMechanism:
    """Return about the least multiple of a proposal's scales whose loss meets the guarantee."""
    target = _target(request)
    epsilon, delta = target.epsilon, target.delta
    for _ in range(_MOST_CORRECTIONS):
        at, near = mechanism.own_loss().numeric().bounds_near(epsilon, delta)
        if at <= delta and near >= (1.0 - _CLOSE) * epsilon:
            if near != epsilon:
                return mechanism
            near = 0.5 * epsilon  # the loss ends somewhere below
        # The μ of normal noise of the same ε falls nearly as the scales rise, whatever the noise.
        near = min(max(near, epsilon / _FAR), _FAR * epsilon)
        more = gdp_mu(near, delta) / request.mu * (1.0 + _ROOM)
        mechanism = replace(mechanism, scale=mechanism.scale * more)
    return raised(mechanism, target)


def _target(request: Request) -> PrivacyGuarantee:
    """Return the target, or refuse one that quick bounds do not reach."""
    target = request.target
    if isinstance(target, PrivacyGuarantee) and _LEAST <= target.delta <= _MOST:
        return target
    raise ValueError("A loss, or a delta that is 0 or extreme, leaves this noise to a search.")


def delta_of_both(epsilon: float, shift: Vector, mu: Vector) -> Vector:
    r"""Return about δ(ε) of a Laplace number moved by a and a normal number moved by μ.

    .. math:: \delta(\varepsilon) = \tfrac12 \delta_\mu(\varepsilon - a)
              + \tfrac12 e^{-a} \delta_\mu(\varepsilon + a)
              + \int_{-a}^a \tfrac14 e^{(l - a)/2} \delta_\mu(\varepsilon - l) \, dl
    """
    losses = shift[:, None] * _NODES
    density = 0.25 * np.exp(0.5 * (losses - shift[:, None]))
    between = (density * _normal_delta(epsilon - losses, mu[:, None])) @ _WEIGHTS
    ends = _normal_delta(epsilon - shift, mu) + np.exp(-shift) * _normal_delta(epsilon + shift, mu)
    found: Vector = 0.5 * ends + shift * between
    return found


def _normal_delta(epsilon: Vector, mu: Vector) -> Vector:
    """Return δ(ε) of a normal number moved by μ (Balle and Wang, ICML 2018, Theorem 8)."""
    far = epsilon / mu
    found: Vector = ndtr(0.5 * mu - far) - np.exp(epsilon + log_ndtr(-0.5 * mu - far))
    return found
