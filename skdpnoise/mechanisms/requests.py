"""What calibrate accepts: names of noises, guarantees, and weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms._numeric import Request
from skdpnoise.mechanisms.allocation import RULES
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.privacy import (
    GaussianLoss,
    LossBudget,
    PrivacyGuarantee,
    PureLoss,
    check_count,
    check_real,
    gdp_mu,
)
from skdpnoise.privacy.checks import check_array, check_option, check_type
from skdpnoise.sensitivity import SensitivityProfile

__all__ = [
    "CHOICES",
    "MIXTURE",
    "checked_request",
    "fits_gaussian",
    "mu_of",
    "no_gaussian",
    "no_pure",
    "noise_options",
    "pure_epsilon_of",
]

CHOICES = ("auto", "search")
"""What names no noise: the best of a few by formulas, and the best of all."""

MIXTURE = "inid_mixture"
"""Laplace noise on the coordinates that dominate, normal noise on the others."""

_RANGE = 1e150  # squares of ratios up to this stay within double precision


def noise_options(*, adaptive: bool = False) -> list[str]:
    """Return the names that the ``noise`` parameter accepts.

    Parameters
    ----------
    adaptive : bool, default=False
        Only those that can promise a loss that adaptive stages share, for queries that are not
        integer: the ones that estimators accept.

    Returns
    -------
    list of str
        ``"auto"``, ``"search"``, ``"inid_mixture"`` and every ``"<rule>_<family>"``.

    Examples
    --------
    >>> {"auto", "inid_gaussian", "iid_laplace"} <= set(noise_options())
    True
    """
    families = [
        name
        for name in noise_names()
        if not adaptive or (fits_gaussian(get_noise(name)) and not get_noise(name).lattice)
    ]
    names = [f"{rule}_{family}" for rule in RULES for family in families]
    return [*CHOICES, *names] if adaptive else [*CHOICES, MIXTURE, *names]


def checked_request(
    noise: object,
    sensitivity: SensitivityProfile,
    guarantee: object,
    n_releases: int,
    weights: ArrayLike | None,
    p: float,
) -> Request:
    """Return what a calibration is asked for, or say what is wrong with it."""
    _check_types(noise, sensitivity, guarantee)
    n_releases = check_count("calibrate", "n_releases", n_releases)
    p = check_real("calibrate", "p", p)
    checked = None
    if weights is not None:
        checked = _check_weights(weights, sensitivity.n_coordinates, n_releases)
    return Request(sensitivity, n_releases, checked, p)


def mu_of(guarantee: PrivacyGuarantee | LossBudget, noise: str) -> float:
    """Return the μ that a guarantee allows, or refuse the noise."""
    if isinstance(guarantee, GaussianLoss):
        return guarantee.mu
    if isinstance(guarantee, PureLoss) or guarantee.delta == 0.0:
        raise ValueError(no_pure(noise))
    return gdp_mu(guarantee.epsilon, guarantee.delta)


def pure_epsilon_of(guarantee: PrivacyGuarantee | LossBudget) -> float | None:
    """Return the ε of a guarantee with δ = 0; None for any other."""
    if isinstance(guarantee, PureLoss):
        return guarantee.pure_epsilon
    if isinstance(guarantee, PrivacyGuarantee) and guarantee.delta == 0.0:
        return guarantee.epsilon
    return None


def no_pure(noise: str) -> str:
    """Say that a noise cannot give δ = 0, and what can."""
    return (
        "The 'noise' parameter of calibrate must name a family that can give pure privacy "
        f"(delta=0) for this guarantee, one of {_names(lambda family: family.supports_pure)}. Got "
        f"{noise!r} instead. Choose one of those or a delta > 0."
    )


def no_gaussian(noise: str) -> str:
    """Say that a noise does not fit a Gaussian loss, and what does."""
    return (
        "The 'noise' parameter of calibrate must name a family whose loss a Gaussian loss can "
        f"contain, one of {_names(fits_gaussian)}, for a budget in mu. Got {noise!r} instead. "
        "Choose one of those, or give a PrivacyGuarantee."
    )


def fits_gaussian(family: Noise) -> bool:
    """Whether a Gaussian loss can contain the family's: no total disclosure, and a proof."""
    bounded = bool(np.isfinite(family.max_loss(1.0)))
    unbounded = family.log_concave and not family.lattice
    return bounded or (unbounded and float(family.hockey_stick(1e4, 1.0)) == 0.0)


def _names(suitable: Callable[[Noise], bool]) -> str:
    return ", ".join(repr(name) for name in noise_names() if suitable(get_noise(name)))


def _check_types(noise: object, sensitivity: object, guarantee: object) -> None:
    check_type("calibrate", "sensitivity", sensitivity, SensitivityProfile)
    # Other losses cannot be compared with the noise at every epsilon.
    check_type("calibrate", "guarantee", guarantee, PrivacyGuarantee, PureLoss, GaussianLoss)
    check_option("calibrate", "noise", noise, noise_options())


def _check_weights(weights: ArrayLike, n_coordinates: int, n_releases: int) -> NDArray[np.float64]:
    values = check_array(
        "calibrate",
        "weights",
        weights,
        (n_coordinates,),
        (n_releases, n_coordinates),
        sign="positive",
        remedy="Give a coordinate that does not matter a small weight.",
    )
    if values.max() / _RANGE > values.min():
        raise ValueError(
            "The entries of the 'weights' parameter of calibrate must lie within a factor of "
            f"{_RANGE:g} of each other. Raise the smallest."
        )
    return values
