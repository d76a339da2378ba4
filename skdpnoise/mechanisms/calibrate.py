"""Calibration: the noise that meets a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import (
    check_array,
    check_count,
    check_option,
    check_real,
    check_type,
    complaint,
)
from skdpnoise._utils.sealed import stated
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms._auto import quick_mixture, quick_shape, settled
from skdpnoise.mechanisms._scale_search import Proposal, Request, propose, propose_mixture
from skdpnoise.mechanisms._shape_search import by_shape, raised
from skdpnoise.mechanisms.additive import AdditiveMechanism, compared
from skdpnoise.mechanisms.allocation import moving_coordinates, worst_shift
from skdpnoise.mechanisms.base import Recipe
from skdpnoise.mechanisms.grid_sizes import rounding_cost
from skdpnoise.mechanisms.requests import (
    MIXTURE,
    budget_of,
    candidates,
    fits_gaussian,
    noise_options,
    number_of,
)
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile

Vector = NDArray[np.float64]

_QUICK = ("inid_gaussian", "inid_laplace", "inid_staircase", "inid_subbotin", MIXTURE)
_PROPOSALS = {"inid_subbotin": quick_shape, MIXTURE: quick_mixture}
_FEW_SHAPES = 64  # of staircase noise, each of which takes a tenth of a millisecond
_FEW_COORDINATES = 8  # for which every allocation of the ratios is tried
_SOON, _LARGER, _FEW_DISTINCT = 20, 1.5, 3  # numbers, loss and shapes that decide what is composed
_LARGE = 0.25  # loss of a coordinate from which staircase noise is .3 % better than Laplace noise
_STEPS = 24  # one record's bound spans at least 2**24 grid steps
_FEWEST_BITS, _MOST_BITS = 16, 52
_RANGE = 1e150  # of weights: squares of ratios up to this stay within double precision
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

    where d_t is what one record can do to release t, q is the order in which the family's costs add
    (normal noise 2, pure Laplace noise 1), and R is what the guarantee allows: μ*(ε, δ), or ε. The
    rule "inid" solves this exactly; "spr" fixes the scales proportional to λ, and "iid" makes them
    equal, within each release. The scales are then set by their exact worst case, the rounding of
    the value included, and rounded up.

    Where no norm decides (Laplace noise with δ > 0, and the other families), the constraint is that
    the numeric loss of all releases meets the guarantee. "inid" then searches q between 1 and 2,
    and the shape of the family, and takes "iid", "spr" or the box alone where they do better.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"`` with rule "iid", "spr" or "inid"; ``"inid_mixture"``, Laplace noise on
        the coordinates that dominate and normal noise on the others; ``"auto"``: the one with the
        smallest expected error of "inid" normal, Laplace and staircase noise by formulas, and with
        δ > 0 of one Subbotin shape and one mixture, in milliseconds; or ``"search"``: the best of
        every "inid" family and of the mixture, in seconds. Both are decided by public facts alone.
    sensitivity : SensitivityProfile or GroupedProfile
        How far one record can move one release, for the wanted neighbouring relation. Groups have
        one scale each, of weights summed over the group (Theorem 4 with the norms of groups in
        place of λ), and need a log-concave family. One scale is best for normal noise, and for
        Laplace noise on l1 groups or equal weights.
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        Most that all releases together may cost. A loss is then also the promise of the mechanism.
    %(mechanisms: n_releases)s
    weights : array-like of shape (n_coordinates,) or (n_releases, n_coordinates), or None
        How much the error of each coordinate (in each release) matters: positive, public; None: 1.
    p : float, default=2.0
        Exponent of the error.

    Returns
    -------
    AdditiveMechanism
        Its scale has shape (n_coordinates,), or (n_releases, n_coordinates) if the weights have.

    Raises
    ------
    ValueError
        If the noise cannot give the guarantee, or magnitudes are beyond double precision.

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
    check_type("calibrate", "sensitivity", sensitivity, SensitivityProfile, GroupedProfile)
    # Other losses cannot be compared with the noise at every epsilon.
    check_type("calibrate", "guarantee", guarantee, PrivacyGuarantee, PureLoss, GaussianLoss)
    check_option("calibrate", "noise", noise, noise_options())
    n_releases = check_count("calibrate", "n_releases", n_releases)
    p = check_real("calibrate", "p", p)
    if weights is not None:
        weights = _checked_weights(weights, sensitivity.n_coordinates, n_releases)
    asked = guarantee if isinstance(guarantee, PrivacyGuarantee) else None
    if asked is not None and asked.delta == 0.0:
        guarantee = PureLoss(asked.epsilon)
    request = Request(sensitivity, n_releases, weights, p, guarantee)
    if noise == "search":
        # Whether the query is integer cannot be seen from its sensitivity: no discrete noise.
        names = [f"inid_{name}" for name in noise_names() if not get_noise(name).lattice]
        return _best([*names, MIXTURE], _calibrate, request)
    auto = noise == "auto"
    made = _best(_QUICK, _by_formula, request) if auto else _calibrate(noise, request)
    if asked is None:
        return made
    again = partial(calibrate, noise, sensitivity, n_releases=n_releases, weights=weights, p=p)
    return stated(made, recipe=Recipe(asked, again))


def shared_budget(
    noise: str,
    sensitivity: SensitivityProfile,
    guarantee: PrivacyGuarantee | LossBudget,
    n_releases: int,
    rows_per_group: int = 1,
) -> tuple[str, LossBudget]:
    """Return the noise of a series of stages, chosen if it has no name, and the loss they share.

    The cost of a stage may depend on earlier releases. So costs add up in a loss for which that is
    proved: pure for families that can be pure, else Gaussian. "auto" takes normal or Laplace noise,
    and "search" any family, whichever has the smallest expected error for a typical stage.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"``, ``"auto"`` or ``"search"``.
    sensitivity : SensitivityProfile
        Of the typical stage.
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        Most that all stages together may cost.
    n_releases : int
        Releases of the typical stage.
    rows_per_group : int, default=1
        Most rows of a group, if the guarantee is for groups; sensitivity and budget are per row.

    Returns
    -------
    noise : str
        ``"<rule>_<family>"``.
    budget : PureLoss or GaussianLoss
        A loss, with respect to one row, that meets the guarantee.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016 (pure loss).
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy",
    arXiv:2210.17520, Theorem 1 (Gaussian loss).

    Examples
    --------
    >>> noise, budget = shared_budget(
    ...     "auto", SensitivityProfile([1.0, 1.0]), PrivacyGuarantee(1.0, 1e-6), n_releases=20
    ... )
    >>> print(noise, budget, budget.share(0.25))
    inid_gaussian 0.236704-GDP 0.118352-GDP
    """
    names = candidates(noise)
    budgets: dict[str, LossBudget] = {}
    if isinstance(guarantee, PrivacyGuarantee):
        for name in names:
            pure = guarantee.delta == 0.0 or get_noise(name.partition("_")[2]).supports_pure
            budget = budget_of(guarantee, pure=pure)
            assert budget is not None
            budgets[name] = budget.per_row(rows_per_group)
    else:
        if noise == "auto":
            names = ["inid_laplace" if isinstance(guarantee, PureLoss) else "inid_gaussian"]
        budgets = dict.fromkeys(names, guarantee)

    def make(name: str) -> AdditiveMechanism:
        return calibrate(name, sensitivity, budgets[name], n_releases=n_releases)

    made, _ = compared(names, make, AdditiveMechanism.expected_error)
    best = min(made, key=AdditiveMechanism.expected_error).noise
    return best, budgets[best]


def _best(
    names: Sequence[str], make: Callable[[str, Request], AdditiveMechanism], request: Request
) -> AdditiveMechanism:
    made, considered = compared(names, lambda noise: make(noise, request), request.expected)
    return stated(min(made, key=request.expected), considered=considered)


def _by_formula(noise: str, request: Request) -> AdditiveMechanism:
    """Return noise whose scales are formulas of an allocation, or need a few evaluations only."""
    proposal = _PROPOSALS.get(noise)
    if proposal is not None:
        return settled(_proposed(noise, proposal(request), request), request)
    family = get_noise(noise.partition("_")[2])
    single = request.sensitivity.n_coordinates == request.n_releases == 1
    if family.norm_order == 2.0 or (single and family.norm_order is not None):
        return _calibrate(noise, request)
    if isinstance(request.target, GaussianLoss):
        raise ValueError(f"{noise!r} fits a Gaussian loss by a search only.")
    pure = replace(request, target=PureLoss(number_of(request.target)))
    laplace = _calibrate("inid_laplace", pure)
    if family.norm_order is not None:
        return laplace
    moving = moving_coordinates(request.sensitivity)
    ratios = request.sensitivity.per_coordinate[moving] / laplace.scale[..., moving]
    largest = float(ratios.max())
    size = request.sensitivity.n_coordinates
    if largest < _LARGE or size > _FEW_SHAPES:
        raise ValueError(f"{noise!r} is left to a search: it would gain little, or take long.")
    # Two or three shapes are composed within a tenth of a second, which gains where one number may
    # lose much; for few numbers a calibration should take milliseconds.
    composed = size > _SOON and largest > _LARGER and np.unique(ratios).size <= _FEW_DISTINCT
    return by_shape(noise, request if composed else pure, rough=size > _FEW_COORDINATES)


def _calibrate(noise: str, request: Request) -> AdditiveMechanism:
    """Return the mechanism of one noise, by the norm that decides or by its numeric loss."""
    if noise == MIXTURE:
        return _by_loss(noise, propose_mixture(request), request)
    rule, _, name = noise.partition("_")
    family, target = get_noise(name), request.target
    if isinstance(target, PureLoss) and not family.supports_pure:
        names = _names(lambda other: other.supports_pure)
        must = (
            f"name a family that can give pure privacy (delta=0) for this guarantee, one of {names}"
        )
        remedy = "Choose one of those or a delta > 0."
        raise ValueError(complaint("calibrate", "noise", must, repr(noise), remedy))
    if isinstance(target, GaussianLoss) and not fits_gaussian(family):
        names, must = (
            _names(fits_gaussian),
            "name a family whose loss a Gaussian loss can contain, ",
        )
        must += f"one of {names}, for a budget in mu"
        remedy = "Choose one of those, or give a PrivacyGuarantee."
        raise ValueError(complaint("calibrate", "noise", must, repr(noise), remedy))
    if family.norm_order == 2.0:
        return _by_norm(noise, request, request.mu)
    if isinstance(target, PureLoss) and family.norm_order is not None:
        return stated(_by_norm(noise, request, target.pure_epsilon), promise=target)
    if isinstance(target, PureLoss) or family.lattice or not family.log_concave:
        return by_shape(noise, request)
    found = _by_loss(noise, propose(rule, name, request), request)
    if family.norm_order is None or isinstance(target, GaussianLoss):
        return found
    # Pure privacy is more than what is asked for; a search may miss it by a hair.
    return min(found, _by_norm(noise, request, target.epsilon), key=request.expected)


def _by_norm(noise: str, request: Request, resource: float) -> AdditiveMechanism:
    """Return a mechanism whose worst |d/s|_q is the resource."""
    rule, _, name = noise.partition("_")
    order = get_noise(name).norm_order
    assert order is not None
    sensitivity, n_releases = request.sensitivity, request.n_releases
    unit = request.scales(rule, order, sensitivity)
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
    mechanism = AdditiveMechanism(noise, scale, bits, sensitivity, n_releases)
    while worst_shift(mechanism.scale, sensitivity, n_releases, bits, order) > resource:
        mechanism = replace(mechanism, scale=mechanism.scale * (1.0 + _MARGIN))
    return mechanism


def _by_loss(noise: str, proposal: Proposal, request: Request) -> AdditiveMechanism:
    """Return the mechanism of a proposal, its scales raised until its own loss meets the target."""
    target = request.target
    found = raised(_proposed(noise, proposal, request), target)
    return stated(found, promise=target) if isinstance(target, GaussianLoss) else found


def _proposed(noise: str, proposal: Proposal, request: Request) -> AdditiveMechanism:
    scale, sensitivity = proposal.scale * (1.0 + 1e-7), proposal.sensitivity
    bits, families = _bits(proposal.scale, sensitivity), proposal.families
    return AdditiveMechanism(noise, scale, bits, sensitivity, request.n_releases, families)


def _bits(scale: Vector, sensitivity: SensitivityProfile) -> int:
    """Return the fewest bits for which every λ_j spans 2**24 grid steps, between 16 and 52."""
    moving = moving_coordinates(sensitivity)
    coarsest = float((scale[..., moving] / sensitivity.per_coordinate[moving]).max())
    needed = math.ceil(_STEPS + math.log2(coarsest) + 1e-6)
    return min(max(needed, _FEWEST_BITS), _MOST_BITS)


def _checked_weights(weights: ArrayLike, n_coordinates: int, n_releases: int) -> Vector:
    one, all_of_them = (n_coordinates,), (n_releases, n_coordinates)
    remedy = "Give a coordinate that does not matter a small weight."
    values = check_array(
        "calibrate", "weights", weights, one, all_of_them, sign="positive", remedy=remedy
    )
    if values.max() / _RANGE > values.min():
        must = f"lie within a factor of {_RANGE:g} of each other"
        given = f"{values.min():g} to {values.max():g}"
        raise ValueError(complaint("calibrate", "weights", must, given, "Raise the smallest."))
    return values


def _names(suitable: Callable[[Noise], bool]) -> str:
    return ", ".join(repr(name) for name in noise_names() if suitable(get_noise(name)))
