"""From a guarantee to the noise that meets it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms._geometry import moving_coordinates
from skdpnoise.mechanisms._quanta import rounding_cost
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.allocation import RULES, allocate
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss, check_count, check_real
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["calibrate", "noise_options"]

_STEPS = 24  # one record's bound spans at least 2**24 quanta
_FEWEST_BITS, _MOST_BITS = 16, 52
_RANGE = 1e150  # squares of ratios up to this stay within double precision
_MARGIN = 1e-12  # floating-point error of a worst case, with room to spare


def noise_options() -> list[str]:
    """Return the names that the ``noise`` parameter accepts.

    Returns
    -------
    list of str
        ``"auto"`` and every ``"<rule>_<family>"``.

    Examples
    --------
    >>> {"auto", "inid_gaussian", "iid_laplace"} <= set(noise_options())
    True
    """
    return ["auto", *(f"{rule}_{family}" for rule in RULES for family in noise_names())]


def calibrate(
    noise: str,
    sensitivity: SensitivityProfile,
    guarantee: PrivacyGuarantee | PrivacyLoss,
    *,
    n_releases: int = 1,
    weights: ArrayLike | None = None,
    p: float = 2.0,
) -> AdditiveMechanism:
    r"""Return the least noise of a kind that meets a guarantee.

    .. math:: \min_s \sum_{t,j} w_{tj} \, s_{tj}^p \, E|Z|^p \quad\text{s.t.}\quad
              \sum_t \max_{d_t} \sum_j (d_{tj}/s_{tj})^q \le R^q

    where d_t runs over all that one record can do to release t, q is the order in which the
    family's costs add (Gaussian 2, Laplace 1), and R is the resource that the guarantee allows:
    μ*(ε, δ) for Gaussian, ε for Laplace noise. The rule "inid" solves this exactly; "spr" fixes the
    scales proportional to λ, and "iid" makes them equal, within each release. Whatever the shape,
    the scales are set by its exact worst case, the rounding of the value included, and rounded up.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"`` with rule "iid", "spr" or "inid", or ``"auto"``: among all families
        that can give the guarantee, the one whose "inid" has the smallest expected error, decided
        by public facts alone.
    sensitivity : SensitivityProfile
        What one record can do to one release, under the neighbouring relation wanted.
    guarantee : PrivacyGuarantee or PrivacyLoss
        What all the releases together may cost.
    n_releases : int, default=1
        Number of releases, which may be chosen adaptively.
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
    TypeError
        If an argument is of the wrong kind.
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
    'inid_laplace'
    """
    _check_types(noise, sensitivity, guarantee)
    n_releases = check_count("calibrate", "n_releases", n_releases)
    p = check_real("calibrate", "p", p)
    checked = None
    if weights is not None:
        checked = _check_weights(weights, sensitivity.n_coordinates, n_releases)
    if noise != "auto":
        return _calibrate(noise, sensitivity, guarantee, n_releases, checked, p)
    candidates, refusals = [], []
    for family in noise_names():
        try:
            candidates.append(
                _calibrate(f"inid_{family}", sensitivity, guarantee, n_releases, checked, p)
            )
        except ValueError as refusal:
            refusals.append(str(refusal))
    if not candidates:
        raise ValueError("No noise family can give the guarantee. " + " ".join(refusals))
    return min(candidates, key=lambda mechanism: mechanism.expected_error(p, checked))


def _calibrate(
    noise: str,
    sensitivity: SensitivityProfile,
    guarantee: PrivacyGuarantee | PrivacyLoss,
    n_releases: int,
    weights: NDArray[np.float64] | None,
    p: float,
) -> AdditiveMechanism:
    rule, _, name = noise.partition("_")
    family = get_noise(name)
    resource, order = family.resource(guarantee), family.norm_order
    unit = allocate(rule, sensitivity, order=order, n_releases=n_releases, weights=weights, p=p)
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
    mechanism = AdditiveMechanism(noise, scale, bits, sensitivity, n_releases)
    while mechanism.resource > resource:
        scale = scale * (1.0 + _MARGIN)
        mechanism = AdditiveMechanism(noise, scale, bits, sensitivity, n_releases)
    return mechanism


def _bits(scale: NDArray[np.float64], sensitivity: SensitivityProfile) -> int:
    """Return the fewest bits for which every λ_j spans 2**24 quanta, between 16 and 52."""
    moving = moving_coordinates(sensitivity)
    coarsest = float((scale[..., moving] / sensitivity.per_coordinate[moving]).max())
    needed = math.ceil(_STEPS + math.log2(coarsest) + 1e-6)
    return min(max(needed, _FEWEST_BITS), _MOST_BITS)


def _check_types(noise: object, sensitivity: object, guarantee: object) -> None:
    if not isinstance(sensitivity, SensitivityProfile):
        raise TypeError(
            "The 'sensitivity' parameter of calibrate must be a SensitivityProfile. Got an object "
            f"of type {type(sensitivity).__name__} instead."
        )
    if not isinstance(guarantee, PrivacyGuarantee | PrivacyLoss):
        raise TypeError(
            "The 'guarantee' parameter of calibrate must be a PrivacyGuarantee or a PrivacyLoss. "
            f"Got an object of type {type(guarantee).__name__} instead."
        )
    options = noise_options()
    allowed = f"The 'noise' parameter of calibrate must be a str among {options}"
    if not isinstance(noise, str):
        raise TypeError(f"{allowed}. Got {noise!r} of type {type(noise).__name__} instead.")
    if noise not in options:
        raise ValueError(f"{allowed}. Got {noise!r} instead.")


def _check_weights(weights: ArrayLike, n_coordinates: int, n_releases: int) -> NDArray[np.float64]:
    array = np.asarray(weights)
    if array.dtype.kind not in "iuf":
        raise TypeError(
            "The 'weights' parameter of calibrate must be an array of real numbers. Got an array "
            f"of dtype {array.dtype} instead."
        )
    if array.shape not in ((n_coordinates,), (n_releases, n_coordinates)):
        raise ValueError(
            "The 'weights' parameter of calibrate must be of shape (n_coordinates,) = "
            f"({n_coordinates},) or (n_releases, n_coordinates) = ({n_releases}, {n_coordinates})."
            f" Got shape {array.shape} instead."
        )
    values = array.astype(np.float64)
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise ValueError(
            "The 'weights' parameter of calibrate must be positive and finite in every entry: give "
            "a coordinate that does not matter a small weight."
        )
    if values.max() / _RANGE > values.min():
        raise ValueError(
            "The entries of the 'weights' parameter of calibrate must lie within a factor of "
            f"{_RANGE:g} of each other. Raise the smallest."
        )
    return values


def _check_magnitude(scale: NDArray[np.float64], bits: int) -> None:
    """Refuse scales whose quanta, or whose large multiples, are not normal doubles."""
    positive = scale if scale.min() > 0.0 else scale[scale > 0.0]
    if not (positive.max() <= 1e280 and positive.min() * 2.0**-bits >= 1e-290):
        raise ValueError(
            "The noise scales that sensitivity.per_coordinate asks for, "
            f"{positive.min():g} to {positive.max():g}, are beyond double precision. Choose units "
            "in which its entries are nearer to one."
        )
