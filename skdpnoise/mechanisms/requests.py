"""The arguments of calibrate: names of noises, and guarantees as losses."""

from __future__ import annotations

import numpy as np

from skdpnoise.mechanisms.allocation import RULES
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss, gdp_mu

CHOICES = ("auto", "search")
"""Choices of a noise: the best of a few by formulas, and the best of all."""

MIXTURE = "inid_mixture"
"""Laplace noise on the coordinates that dominate, normal noise on the others."""


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


def candidates(noise: str) -> list[str]:
    """Return the name, or those that "auto" and "search" try where stages share a loss."""
    if noise == "auto":
        return ["inid_gaussian", "inid_laplace"]
    if noise == "search":
        return [name for name in noise_options(adaptive=True) if name.startswith("inid_")]
    return [noise]


def budget_of(guarantee: PrivacyGuarantee | LossBudget, *, pure: bool) -> LossBudget | None:
    if not isinstance(guarantee, PrivacyGuarantee):
        return guarantee if isinstance(guarantee, PureLoss) == pure else None
    if pure:
        return PureLoss(guarantee.epsilon)
    if guarantee.delta == 0.0:
        return None
    return GaussianLoss(gdp_mu(guarantee.epsilon, guarantee.delta))


def number_of(target: PrivacyGuarantee | LossBudget) -> float:
    if isinstance(target, GaussianLoss):
        return target.mu
    return target.pure_epsilon if isinstance(target, PureLoss) else target.epsilon


def fits_gaussian(family: Noise) -> bool:
    """Return whether a Gaussian loss provably contains the family's: no total disclosure."""
    bounded = bool(np.isfinite(family.max_loss(1.0)))
    unbounded = family.log_concave and not family.lattice
    return bounded or (unbounded and float(family.hockey_stick(1e4, 1.0)) == 0.0)
