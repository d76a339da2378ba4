r"""What "auto" proposes for δ > 0 beside noise with a formula: a few evaluations, no search.

Two kinds of noise come close to what a search finds: noise of a shape between Laplace and normal,
where the two of them do about equally well; and Laplace noise on the coordinates that dominate with
normal noise on the others. A proposal is not a claim: calibrate raises its scales until the loss of
the finished mechanism meets the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from skdpnoise.mechanisms._numeric import Proposal, Request, prepared_mixture
from skdpnoise.noises import Noise, get_noise
from skdpnoise.privacy import LossCurve, NormalShift, PrivacyGuarantee, gdp_mu
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["quick_mixture", "quick_shape"]

Vector = NDArray[np.float64]
Group = tuple[LossCurve, tuple[float, ...], tuple[float, ...]]

# Best shapes by the logarithm of how much larger the error of normal noise is than that of Laplace
# noise; beyond these one of the two is within a few percent of the best shape.
_LOG_RATIOS = (-0.8, -0.6, -0.1, 0.2, 0.7)
_SHAPES = (1.75, 1.7, 1.48, 1.27, 1.12)
_ORDER = 1.5  # of the costs, between those of the two
_STEP = 0.15  # log ratio of neighbouring shifts: a few are composed faster, and lose .1 %
_ROOM = 2e-4  # of the factor, so that the first check of the finished mechanism passes
_KEPT = 256  # factors that are remembered
_SPLITS, _LOG_LEVELS = 3, np.linspace(-2.4, 2.4, 9)  # mixtures that are compared
_HALVINGS = 16  # of the logarithm of a factor
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def quick_shape(request: Request) -> Proposal:
    """Return Subbotin noise of a shape that follows from the errors of Laplace and normal noise."""
    target = _approximate(request)
    limit = request.sensitivity.per_coordinate
    box = SensitivityProfile(limit)
    request = replace(request, weights=request.mean_weights)

    def moment(family: Noise) -> float:
        return family.absolute_moment(request.p)

    def log_error(name: str, order: float, resource: float) -> float:
        scale = request.scales("inid", order, box) / resource
        return math.log(request.error(scale, moment(get_noise(name))))

    log_ratio = log_error("gaussian", 2.0, request.mu) - log_error("laplace", 1.0, target.epsilon)
    if not _LOG_RATIOS[0] < log_ratio < _LOG_RATIOS[-1]:
        raise ValueError("Normal or Laplace noise is about as good as any shape between them.")
    family = get_noise("subbotin", round(float(np.interp(log_ratio, _LOG_RATIOS, _SHAPES)), 2))
    moving = limit > 0.0
    shifts = limit[moving] / request.scales("inid", _ORDER, box)[moving]
    steps = np.round(np.log(shifts / shifts.max()) / _STEP)
    factor = _factor((_group(family, np.exp(_STEP * steps), request),), target)
    scale = np.zeros_like(limit)
    scale[moving] = limit[moving] * np.exp(-_STEP * steps) * factor
    return Proposal(scale, (family,), box, request.error(scale, moment(family)))


def quick_mixture(request: Request) -> Proposal:
    """Return the best of some mixtures, by the curve of one Laplace and one normal number."""
    # For that, the Laplace coordinates count as one that is moved by the sum of their shifts, and
    # the normal ones as one that is moved by the root of the sum of squares.
    target = _approximate(request)
    search, splits = prepared_mixture(request)
    tried = [search.scales(m, level) for m in splits[:_SPLITS] for level in _LOG_LEVELS]
    shifts, mu = np.array([search.joint_shifts(*one) for one in tried]).T
    # Normal noise alone would need `low`; with half of epsilon for each kind `high` is enough.
    half_mu = gdp_mu(0.5 * target.epsilon, target.delta)
    low = np.log(mu / request.mu)
    high = np.log(np.maximum(2.0 * shifts / target.epsilon, mu / half_mu))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        factor = np.exp(middle)
        met = delta_of_both(target.epsilon, shifts / factor, mu / factor) <= target.delta
        low, high = np.where(met, low, middle), np.where(met, middle, high)
    errors = [
        search.proposal(scale * factor, laplace).error
        for (scale, laplace), factor in zip(tried, np.exp(high), strict=True)
    ]
    scale, laplace = tried[int(np.argmin(errors))]
    values, root = search.shifts(scale, laplace)
    normal = (NormalShift(), (root,), (1,))
    factor = _factor((_group(get_noise("laplace"), values, request), normal), target)
    return search.proposal(scale * factor, laplace)


def _group(curve: Noise, shifts: Vector, request: Request) -> Group:
    """Return the shifts of one release, as often as there are releases."""
    values, counts = np.unique(shifts, return_counts=True)
    return curve, tuple(values.tolist()), tuple((counts * request.n_releases).tolist())


@lru_cache(maxsize=_KEPT)
def _factor(groups: tuple[Group, ...], target: PrivacyGuarantee) -> float:
    """Return about the least c for which the shifts divided by c meet the target, and a bit."""
    composed = [(curve, np.array(a), np.array(n, dtype=np.float64)) for curve, a, n in groups]
    request = Request(SensitivityProfile([1.0]), 1, None, 2.0, target)
    start = math.sqrt(sum(float(n @ a**2) for _, a, n in composed)) / request.mu
    return request.factor(composed, start, rough=True) * (1.0 + _ROOM)


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


def _approximate(request: Request) -> PrivacyGuarantee:
    """Return the target, or refuse one that needs no proposal."""
    if not isinstance(request.target, PrivacyGuarantee):
        raise ValueError("A loss, or delta = 0, leaves this noise to a search.")
    return request.target
