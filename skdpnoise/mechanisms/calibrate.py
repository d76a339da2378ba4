"""From a guarantee to the noise that meets it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms._losses import merges, shifts, worst_shift
from skdpnoise.mechanisms._mixtures import propose_mixture
from skdpnoise.mechanisms._numeric import Criterion, Request, propose
from skdpnoise.mechanisms._shapes import by_shape
from skdpnoise.mechanisms.additive import AdditiveMechanism, compared, noted, promised
from skdpnoise.mechanisms.allocation import allocate
from skdpnoise.mechanisms.geometry import moving_coordinates
from skdpnoise.mechanisms.quanta import rounding_cost
from skdpnoise.mechanisms.requests import (
    MIXTURE,
    checked_request,
    fits_gaussian,
    mu_of,
    no_gaussian,
    no_pure,
    noise_options,
    pure_epsilon_of,
)
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["calibrate", "noise_options"]

Target = PrivacyGuarantee | LossBudget

_QUICK = ("inid_gaussian", "inid_laplace", "inid_staircase")
_FEW_SHAPES = 64  # of staircase noise, each of which takes a tenth of a millisecond
_LARGE = 0.25  # loss of a coordinate from which staircase noise is .3 % better than Laplace noise
_STEPS = 24  # one record's bound spans at least 2**24 grid steps
_FEWEST_BITS, _MOST_BITS = 16, 52
_MARGIN = 1e-12  # floating-point error of a worst case, with room to spare


@shared_texts
def calibrate(
    noise: str,
    sensitivity: SensitivityProfile,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    n_releases: int = 1,
    weights: ArrayLike | None = None,
    p: float = 2.0,
) -> AdditiveMechanism:
    r"""Return the least noise of a kind that meets a guarantee.

    .. math:: \min_s \sum_{t,j} w_{tj} \, s_{tj}^p \, E|Z|^p \quad\text{s.t.}\quad
              \sum_t \max_{d_t} \sum_j (d_{tj}/s_{tj})^q \le R^q

    where d_t runs over all that one record can do to release t, q is the order in which the
    family's costs add (normal noise 2, pure Laplace noise 1), and R is the resource that the
    guarantee allows: μ*(ε, δ), or ε. The rule "inid" solves this exactly; "spr" fixes the scales
    proportional to λ, and "iid" makes them equal, within each release. Whatever the shape, the
    scales are set by its exact worst case, the rounding of the value included, and rounded up.

    Where no norm decides (Laplace noise with δ > 0, and the other families), the constraint is that
    the numeric loss of all releases meets the guarantee. "inid" then searches q between 1 and 2,
    and the shape of the family, and takes "iid", "spr" or the box alone where they do better.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"`` with rule "iid", "spr" or "inid"; ``"inid_mixture"``, Laplace noise on
        the coordinates that dominate and normal noise on the others; ``"auto"``: of "inid" normal,
        Laplace and staircase noise by formulas alone the one with the smallest expected error, in
        milliseconds; or ``"search"``: the best of every "inid" family and of the mixture, in
        seconds. Both are decided by public facts alone.
    sensitivity : SensitivityProfile
        What one record can do to one release, under the neighbouring relation wanted.
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        What all the releases together may cost. A loss is also what the mechanism then promises
        and is charged.
    %(mechanisms: n_releases)s
    weights : array-like of shape (n_coordinates,) or (n_releases, n_coordinates), or None
        How much the error of each coordinate (in each release) matters: positive and public; None
        is all ones.
    p : float, default=2.0
        Exponent of the error.

    Returns
    -------
    AdditiveMechanism
        Its scale has shape (n_coordinates,), or (n_releases, n_coordinates) if the weights have.

    Raises
    ------
    %(mechanisms: TypeError)s
    ValueError
        If the noise is unknown or cannot give the guarantee, a weight is not positive and finite,
        or magnitudes are beyond double precision.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5. Balle and Wang, ICML 2018,
    Theorem 8 (μ*). Dwork et al., TCC 2006, Proposition 1 (Laplace).

    Examples
    --------
    >>> profile = SensitivityProfile([1.0, 4.0])
    >>> calibrate("inid_gaussian", profile, PrivacyGuarantee(1.0, 1e-6)).scale.round(3)
    array([ 9.447, 18.893])
    >>> calibrate("auto", profile, PrivacyGuarantee(1.0)).noise
    'inid_staircase'
    """
    request = checked_request(noise, sensitivity, guarantee, n_releases, weights, p)
    if noise == "auto":
        return _best(_QUICK, _by_formula, request, guarantee)
    if noise == "search":
        # Whether the query is integer cannot be seen from its sensitivity: no discrete noise.
        names = [f"inid_{name}" for name in noise_names() if not get_noise(name).lattice]
        return _best([*names, MIXTURE], _calibrate, request, guarantee)
    return _calibrate(noise, request, guarantee)


def _best(
    names: Sequence[str],
    make: Callable[[str, Request, Target], AdditiveMechanism],
    request: Request,
    guarantee: Target,
) -> AdditiveMechanism:
    """Return the mechanism of the smallest expected error, with all that was compared."""

    def error(found: AdditiveMechanism) -> float:
        return found.expected_error(request.p, request.weights)

    made, considered = compared(names, lambda noise: make(noise, request, guarantee), error)
    chosen: AdditiveMechanism = noted(min(made, key=error), considered)
    return chosen


def _by_formula(noise: str, request: Request, guarantee: Target) -> AdditiveMechanism:
    """Return noise whose scales are formulas of an allocation: normal or pure, or one number's."""
    family = get_noise(noise.partition("_")[2])
    single = request.sensitivity.n_coordinates == request.n_releases == 1
    if family.norm_order == 2.0 or (single and family.norm_order is not None):
        return _calibrate(noise, request, guarantee)
    if isinstance(guarantee, GaussianLoss):
        raise ValueError(f"{noise!r} fits a Gaussian loss by a search only.")
    epsilon = guarantee.pure_epsilon if isinstance(guarantee, PureLoss) else guarantee.epsilon
    laplace = _by_norm("inid_laplace", request, epsilon, PureLoss(epsilon))
    if family.norm_order is not None:
        return laplace
    largest = float((request.sensitivity.per_coordinate / laplace.scale).max())
    if largest < _LARGE or request.sensitivity.n_coordinates > _FEW_SHAPES:
        raise ValueError(f"{noise!r} is left to a search: it would gain little, or take long.")
    return by_shape(noise, request, PureLoss(epsilon), rough=True)


def _calibrate(noise: str, request: Request, guarantee: Target) -> AdditiveMechanism:
    if noise == MIXTURE:
        return _mixture(request, guarantee)
    family = get_noise(noise.partition("_")[2])
    if family.norm_order == 2.0:
        return _by_norm(noise, request, mu_of(guarantee, noise), None)
    epsilon = pure_epsilon_of(guarantee)
    if epsilon is None:
        assert isinstance(guarantee, PrivacyGuarantee | GaussianLoss)
        return _by_loss(noise, request, guarantee)
    if not family.supports_pure:
        raise ValueError(no_pure(noise))
    if family.norm_order is None:
        return by_shape(noise, request, PureLoss(epsilon))
    return _by_norm(noise, request, epsilon, PureLoss(epsilon))


def _by_norm(
    noise: str, request: Request, resource: float, promise: PureLoss | None
) -> AdditiveMechanism:
    """Return a mechanism whose worst |d/s|_q is the resource."""
    rule, _, name = noise.partition("_")
    order = get_noise(name).norm_order
    assert order is not None
    sensitivity, n_releases = request.sensitivity, request.n_releases
    unit = allocate(
        rule,
        sensitivity,
        order=order,
        n_releases=n_releases,
        weights=request.weights,
        p=request.p,
    )
    bits = _bits(unit / resource, sensitivity)
    available = resource - rounding_cost(sensitivity, n_releases, bits, order)
    if available <= 0.0:
        raise ValueError(
            "The guarantee asked of calibrate is too small for double precision: the rounding of "
            f"the value alone would cost {resource - available:g} of {resource:g}. Ask for a "
            "larger epsilon, or for fewer releases."
        )
    # A cumulative sum over K coordinates can be off by K units in its last place.
    margin = _MARGIN + 4.0 * unit.size * np.finfo(np.float64).eps
    scale = unit / (available * (1.0 - margin))
    _check_magnitude(scale, bits)
    while worst_shift(scale, sensitivity, n_releases, bits, order) > resource:
        scale = scale * (1.0 + _MARGIN)
    return promised(AdditiveMechanism(noise, scale, bits, sensitivity, n_releases), promise)


def _by_loss(
    noise: str, request: Request, target: PrivacyGuarantee | GaussianLoss
) -> AdditiveMechanism:
    """Return a mechanism whose numeric loss meets the target."""
    rule, _, name = noise.partition("_")
    if isinstance(target, GaussianLoss) and not fits_gaussian(get_noise(name)):
        raise ValueError(no_gaussian(noise))
    if get_noise(name).lattice or not get_noise(name).log_concave:
        return by_shape(noise, request, target)
    proposal = propose(rule, name, request, target)
    found = _checked(
        noise, proposal.scale, (proposal.family,), proposal.sensitivity, request, target
    )
    if get_noise(name).norm_order is None or isinstance(target, GaussianLoss):
        return found
    # Pure privacy is more than what is asked for; a search may miss it by a hair.
    pure = _by_norm(noise, request, target.epsilon, None)
    return min(found, pure, key=lambda one: one.expected_error(request.p, request.weights))


def _mixture(request: Request, guarantee: Target) -> AdditiveMechanism:
    """Return Laplace noise on dominant coordinates and normal noise on the others."""
    if not isinstance(guarantee, PrivacyGuarantee) or guarantee.delta == 0.0:
        raise ValueError(
            f"The 'noise' parameter of calibrate is {MIXTURE!r}, which needs a PrivacyGuarantee "
            "with delta > 0. Give one, or choose a single family."
        )
    proposal = propose_mixture(request, guarantee)
    if proposal is None:
        raise ValueError(
            f"The 'noise' parameter of calibrate is {MIXTURE!r}, but no coordinate dominates "
            "sensitivity.per_coordinate. Choose a single family, or 'auto'."
        )
    scale, families = proposal
    box = SensitivityProfile(request.sensitivity.per_coordinate)
    return _checked(MIXTURE, scale, families, box, request, guarantee)


def _checked(
    noise: str,
    scale: NDArray[np.float64],
    families: tuple[Noise, ...],
    sensitivity: SensitivityProfile,
    request: Request,
    target: PrivacyGuarantee | GaussianLoss,
) -> AdditiveMechanism:
    """Return the mechanism of a proposal, its scales raised until its own loss meets the target."""
    bits = _bits(scale, sensitivity)
    promise = target if isinstance(target, GaussianLoss) else None
    scale, more = scale * (1.0 + 1e-7), 1e-6
    while True:
        _check_magnitude(scale, bits)
        mechanism = AdditiveMechanism(
            noise,
            scale,
            bits,
            sensitivity,
            request.n_releases,
            families=families,
        )
        if _meets(mechanism, target):
            return promised(mechanism, promise)
        scale, more = scale * (1.0 + more), 2.0 * more


def _meets(mechanism: AdditiveMechanism, target: PrivacyGuarantee | GaussianLoss) -> bool:
    if isinstance(target, PrivacyGuarantee):
        return mechanism.own_loss().delta(target.epsilon) <= target.delta
    merged = merges(mechanism.sensitivity, (mechanism.family,))
    values, counts = shifts(
        mechanism.scale, mechanism.sensitivity, mechanism.n_releases, mechanism.bits, merged=merged
    )
    group = (mechanism.family, values.ravel(), counts.ravel())
    return Criterion(target).excess([group]) <= 0.0


def _bits(scale: NDArray[np.float64], sensitivity: SensitivityProfile) -> int:
    """Return the fewest bits for which every λ_j spans 2**24 grid steps, between 16 and 52."""
    moving = moving_coordinates(sensitivity)
    coarsest = float((scale[..., moving] / sensitivity.per_coordinate[moving]).max())
    needed = math.ceil(_STEPS + math.log2(coarsest) + 1e-6)
    return min(max(needed, _FEWEST_BITS), _MOST_BITS)


def _check_magnitude(scale: NDArray[np.float64], bits: int) -> None:
    """Refuse scales whose grid steps, or whose large multiples, are not normal doubles."""
    positive = scale if scale.min() > 0.0 else scale[scale > 0.0]
    if not (positive.max() <= 1e280 and positive.min() * 2.0**-bits >= 1e-290):
        raise ValueError(
            "The noise scales that sensitivity.per_coordinate asks for, "
            f"{positive.min():g} to {positive.max():g}, are beyond double precision. Choose units "
            "in which its entries are nearer to one."
        )
