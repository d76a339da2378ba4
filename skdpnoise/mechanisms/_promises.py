"""What a mechanism states of itself is checked when it is made."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms._losses import merges, shifts, worst_shift
from skdpnoise.mechanisms._numeric import gaussian_mu
from skdpnoise.mechanisms._requests import MIXTURE, fits_gaussian
from skdpnoise.mechanisms.allocation import RULES, worst_case_norm
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, LossBudget, PureLoss, check_count
from skdpnoise.privacy.sealed import sealed
from skdpnoise.sensitivity import SensitivityProfile

if TYPE_CHECKING:
    from skdpnoise.mechanisms.additive import AdditiveMechanism

__all__ = ["check_covered", "check_fields", "check_promise", "check_type", "noted", "promised"]

_MOST_BITS = 52
_SMALLEST, _LARGEST = 1e-290, 1e280  # of quanta and scales: far from the limits of doubles


def check_type(owner: str, name: str, value: object, *kinds: type) -> None:
    """Refuse what is not exactly of one of these classes: a subclass may do anything.

    Parameters
    ----------
    owner, name : str
        The class, and its parameter, to name in the message.
    value : object
        What the caller gave.
    *kinds : type
        What is allowed.

    Examples
    --------
    >>> check_type("AdditiveMechanism", "promise", PureLoss(1.0), PureLoss, GaussianLoss)
    """
    if type(value) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"The {name!r} parameter of {owner} must be of type {names}. Got an object of type "
            f"{type(value).__name__} instead."
        )


def check_fields(mechanism: AdditiveMechanism) -> None:
    """Check the fields of a mechanism against one another, and store them in their own types."""
    owner = "AdditiveMechanism"
    check_type(owner, "sensitivity", mechanism.sensitivity, SensitivityProfile)
    n_releases = check_count(owner, "n_releases", mechanism.n_releases)
    n_coordinates = mechanism.sensitivity.n_coordinates
    families = _checked_families(mechanism.noise, mechanism.families, n_coordinates)
    bits = check_count(owner, "bits", mechanism.bits, low=0)
    lattice = families[0].lattice
    if bits > (0 if lattice else _MOST_BITS):
        allowed = "0 for noise on the integers" if lattice else f"at most {_MOST_BITS}"
        raise ValueError(f"The 'bits' parameter of {owner} must be {allowed}. Got {bits} instead.")
    scale = np.array(mechanism.scale, dtype=np.float64)
    if scale.shape not in ((n_coordinates,), (n_releases, n_coordinates)):
        raise ValueError(
            f"The 'scale' parameter of {owner} must be of shape (n_coordinates,) = "
            f"({n_coordinates},) or (n_releases, n_coordinates) = ({n_releases}, {n_coordinates}). "
            f"Got shape {scale.shape} instead."
        )
    _check_scale(scale, mechanism.sensitivity, bits, lattice=lattice)
    for name, value in (
        ("scale", sealed(scale)),
        ("families", families),
        ("n_releases", n_releases),
    ):
        object.__setattr__(mechanism, name, value)


def check_promise(mechanism: AdditiveMechanism) -> None:
    """Refuse a promise that does not contain the loss that follows from the scales."""
    promise = mechanism.promise
    if promise is None:
        return
    check_type("AdditiveMechanism", "promise", promise, PureLoss, GaussianLoss)
    if isinstance(promise, PureLoss):
        least, most = _least_epsilon(mechanism), promise.pure_epsilon
    else:
        least, most = _least_mu(mechanism), promise.mu
    if not least <= most:
        kind = "no such loss does"
        if math.isfinite(least):
            kind = f"{type(promise)(least)} does"
        raise ValueError(
            "The 'promise' parameter of AdditiveMechanism must contain the loss that follows from "
            f"its scales, for all n_releases={mechanism.n_releases} together: {kind}. Got "
            f"{promise} instead. Let calibrate choose the scales for a promise, or leave it out."
        )


def promised(mechanism: AdditiveMechanism, promise: LossBudget | None) -> AdditiveMechanism:
    """Return a mechanism just made, with a promise that the caller has just proved."""
    object.__setattr__(mechanism, "promise", promise)
    return mechanism


def noted(mechanism: Any, considered: tuple[tuple[str, float | str], ...]) -> Any:
    """Return a mechanism just made, with a note of what it was compared with."""
    object.__setattr__(mechanism, "considered", considered)
    return mechanism


def check_covered(
    owner: str, additive: AdditiveMechanism, needed: SensitivityProfile, what: str
) -> None:
    """Refuse a mechanism that is calibrated to less than what one record can do.

    Parameters
    ----------
    owner : str
        Class to name in the message.
    additive : AdditiveMechanism
        Has the same noise in all releases.
    needed : SensitivityProfile
        What one record can do to what it releases.
    what : str
        The fields that this follows from.
    """
    has = additive.sensitivity
    limit = needed.per_coordinate
    covered = (
        additive.scale.ndim == 1
        and has.n_coordinates == needed.n_coordinates
        and bool((has.per_coordinate >= limit).all())
    )
    for order, bound, least in ((1.0, has.l1, needed.l1), (2.0, has.l2, needed.l2)):
        if covered and bound is not None:
            within = float(np.linalg.norm(limit, order)) if least is None else least
            covered = bound >= within
    if not covered:
        raise ValueError(
            f"The 'additive' parameter of {owner} must have one scale for each coordinate, and be "
            f"calibrated to at least {needed}, which follows from {what}. Got {has} instead."
        )


def _checked_families(
    noise: object, families: tuple[Noise, ...] | None, n_coordinates: int
) -> tuple[Noise, ...]:
    """Return the families, which go with the name."""
    owner = "AdditiveMechanism"
    if not isinstance(noise, str):
        raise TypeError(
            f"The 'noise' parameter of {owner} must be a str. Got {noise!r} of type "
            f"{type(noise).__name__} instead."
        )
    rule, _, name = noise.partition("_")
    if families is None:
        families = (get_noise(name),)
    if not isinstance(families, tuple) or len(families) not in (1, n_coordinates):
        raise ValueError(
            f"The 'families' parameter of {owner} must be a tuple of one noise, or of one for each "
            f"of n_coordinates={n_coordinates}. Got {type(families).__name__} of length "
            f"{len(families)} instead."
        )
    kinds = {type(family) for family in families}
    known = _known_families(tuple(noise_names()))
    # A family of one's own has the rights of its author until it is registered.
    strangers = [family for family in families if type(family) not in known]
    if not all(isinstance(family, Noise) for family in strangers):
        raise TypeError(
            f"The 'families' parameter of {owner} must hold noise families. Got objects of type "
            f"{sorted(kind.__name__ for kind in kinds)}."
        )
    allowed = {"gaussian", "laplace"} if noise == MIXTURE else {name}
    named = {known.get(kind, name if name not in noise_names() else "") for kind in kinds}
    if rule not in RULES or not named <= allowed:
        raise ValueError(
            f"The 'noise' parameter of {owner} must be '<rule>_<family>' with a rule among "
            f"{list(RULES)} and the name of the families. Got {noise!r} and families "
            f"{sorted(kind.__name__ for kind in kinds)} instead."
        )
    if len({family.lattice for family in families}) > 1:
        raise ValueError(
            f"The 'families' parameter of {owner} must live on the integers, or on the real "
            "numbers, in all coordinates alike."
        )
    return families


@lru_cache(maxsize=8)
def _known_families(names: tuple[str, ...]) -> dict[type, str]:
    return {type(get_noise(name)): name for name in names}


def _check_scale(
    scale: NDArray[np.float64], sensitivity: SensitivityProfile, bits: int, *, lattice: bool
) -> None:
    limit = sensitivity.per_coordinate
    allowed = "The 'scale' parameter of AdditiveMechanism must be"
    if not (np.isfinite(scale).all() and (scale >= 0.0).all()):
        raise ValueError(f"{allowed} finite and not negative in every entry.")
    positive = scale[scale > 0.0]
    if (scale[..., limit > 0.0] == 0.0).any() or positive.size == 0:
        raise ValueError(f"{allowed} positive in every coordinate that a record can move.")
    if not (positive.max() <= _LARGEST and positive.min() * 2.0**-bits >= _SMALLEST):
        raise ValueError(
            f"{allowed} within double precision, quanta included. Choose units in which its "
            "entries are nearer to one."
        )
    if lattice and (positive != 1.0).any():
        raise ValueError(f"{allowed} 1 for noise on the integers, whose shape says how wide it is.")
    if lattice and (limit != np.rint(limit)).any():
        raise ValueError(
            "The 'sensitivity' parameter of AdditiveMechanism must be integer in every entry for "
            "noise on the integers. Choose another noise, or express the query in whole units."
        )


def _least_epsilon(mechanism: AdditiveMechanism) -> float:
    """Return an ε of pure privacy that all releases together have."""
    families, scale, sensitivity = _parts(mechanism)
    n_releases, bits = mechanism.n_releases, mechanism.bits
    if len(families) == 1 and families[0].norm_order == 1.0:
        return worst_shift(scale, sensitivity, n_releases, bits, 1.0)
    whole = sum(float(n @ family.max_loss(a)) for family, a, n in _groups(mechanism))
    if families[0].lattice:
        # A change by d is d changes by one: no more than d times the loss of one.
        per_step = np.array([float(family.max_loss(1.0)) for family in families])
        if np.isfinite(per_step).all():
            nominal = np.broadcast_to(1.0 / per_step, sensitivity.n_coordinates)
            whole = min(whole, n_releases * worst_case_norm(nominal, sensitivity, 1.0))
    return whole * (1.0 + 4.0 * sensitivity.n_coordinates * float(np.finfo(np.float64).eps))


def _least_mu(mechanism: AdditiveMechanism) -> float:
    """Return a μ of Gaussian privacy that all releases together have."""
    families, scale, sensitivity = _parts(mechanism)
    if len(families) == 1 and families[0].norm_order == 2.0:
        return worst_shift(scale, sensitivity, mechanism.n_releases, mechanism.bits, 2.0)
    if not all(map(fits_gaussian, set(families))):
        return math.inf
    squares = sum(float(n @ gaussian_mu(family, a) ** 2) for family, a, n in _groups(mechanism))
    return math.sqrt(squares)


def _groups(
    mechanism: AdditiveMechanism,
) -> list[tuple[Noise, NDArray[np.float64], NDArray[np.float64]]]:
    """Return families, increasing shifts in their units, and how often each is composed."""
    families, scale, sensitivity = _parts(mechanism)
    if families[0].lattice:
        values = np.broadcast_to(sensitivity.per_coordinate, scale.shape)
        counts = np.full(values.shape, float(mechanism.n_releases if scale.ndim == 1 else 1))
    else:
        merged = merges(sensitivity, families)
        values, counts = shifts(
            scale, sensitivity, mechanism.n_releases, mechanism.bits, merged=merged
        )
    groups = []
    numbers = {family: k for k, family in enumerate(dict.fromkeys(families))}
    of_coordinate = np.array([numbers[family] for family in families])
    for family, k in numbers.items():
        chosen = slice(None) if len(families) == 1 else of_coordinate == k
        unique, inverse = np.unique(values[..., chosen].ravel(), return_inverse=True)
        totals = np.bincount(inverse, weights=counts[..., chosen].ravel()).astype(np.float64)
        moving = unique > 0.0
        if moving.any():
            groups.append((family, unique[moving], totals[moving]))
    return groups


def _parts(
    mechanism: AdditiveMechanism,
) -> tuple[tuple[Noise, ...], NDArray[np.float64], SensitivityProfile]:
    assert mechanism.families is not None
    return mechanism.families, mechanism.scale, mechanism.sensitivity
