"""Noise on sums over Poisson samples of the records, step after step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.checks import check_type, complaint
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.base import Mechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.noises import get_noise
from skdpnoise.privacy import (
    GaussianLoss,
    LossCurve,
    NormalShift,
    NumericLoss,
    PrivacyGuarantee,
    PrivacyLoss,
    PureLoss,
    check_count,
    check_real,
    largest_sampled_shift,
    poisson_sampled,
)
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile

__all__ = ["SampledMechanism", "calibrate_sampled"]

FAMILIES: dict[str, LossCurve] = {"gaussian": NormalShift(), "laplace": get_noise("laplace")}
"""Families of noise whose loss in many dimensions is that of one number."""

_LEAST_SHIFT = 1e-9  # of a step: below, noise would be more than what is computed
_KNOWN = "be normal or Laplace noise, such as 'inid_gaussian' or 'inid_laplace'"
_NOT_PROVEN = "How sampling changes the loss of others in many dimensions is not proven."


@dataclass(frozen=True, slots=True, eq=False)
class SampledMechanism(Mechanism):
    """Noise on T sums, each over a fresh Poisson sample of the records.

    **Guarantee.** For neighbours with and without one record, if every record enters each sample
    with probability `rate` at most, independently of all else, and the sensitivity of `step` bounds
    the addition of one record in the sample. Sums must not be divided by the size of a sample.

    Parameters
    ----------
    step : AdditiveMechanism
        The noise of one step, for one release: normal or Laplace noise in all coordinates.
    rate : float
        q, in (0, 1].
    n_releases : int
        T.

    References
    ----------
    Those of :func:`~skdpnoise.privacy.poisson_sampled`, and of :class:`AdditiveMechanism`, which
    proves that Laplace noise on groups is dominated by one number that moves by the sum of all
    shifts: Dong, Roth and Su, arXiv:1905.02383, Lemma A.5 (pairs in a row) and Proposition A.3
    (log-concave noise). Normal noise is one number by whitening.

    Examples
    --------
    >>> step = calibrate("iid_gaussian", GroupedProfile([1.0], [0, 0, 0]), GaussianLoss(1.0))
    >>> round(SampledMechanism(step, 0.01, 1000).privacy_loss().epsilon(1e-5), 2)
    1.83
    """

    step: AdditiveMechanism
    rate: float
    n_releases: int = field()

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_type(owner, "step", self.step, AdditiveMechanism)
        if self.step.n_releases != 1:
            remedy = "'n_releases' says how many steps there are."
            given = f"that of {self.step.n_releases}"
            raise ValueError(complaint(owner, "step", "be the noise of one release", given, remedy))
        check_real(owner, "rate", self.rate, high=1.0, high_closed=True)
        check_count(owner, "n_releases", self.n_releases)
        self.privacy_loss()

    @property
    def noise(self) -> str:
        return self.step.noise

    @property
    def sensitivity(self) -> SensitivityProfile:
        return self.step.sensitivity

    @property
    def scale(self) -> NDArray[np.float64]:
        return self.step.scale

    @property
    def grid_size(self) -> NDArray[np.float64]:
        return self.step.grid_size

    def privacy_loss(self) -> PrivacyLoss:
        loss = self.step.own_loss()
        if not isinstance(loss, GaussianLoss):
            numeric = loss.numeric()
            curves = {type(curve) for curve, _, _ in numeric.terms}
            if curves != {type(FAMILIES["laplace"])}:
                owner, given = type(self).__name__, repr(self.noise)
                raise ValueError(complaint(owner, "noise", _KNOWN, given, _NOT_PROVEN))
            loss = NumericLoss(((FAMILIES["laplace"], numeric.pure_epsilon, 1),))
        return poisson_sampled(loss, self.rate).compose(self.n_releases)

    def sample(self, rng: RandomWords) -> NDArray[np.int64]:
        """Return the noise of one step, in grid steps."""
        return np.asarray(self.step.sample(rng)[0])


def calibrate_sampled(
    noise: str,
    sensitivity: GroupedProfile,
    guarantee: PrivacyGuarantee,
    *,
    rate: float,
    n_releases: int,
    beside: PrivacyLoss | None = None,
) -> SampledMechanism:
    r"""Return the least noise on sums over Poisson samples within a guarantee.

    One step on gradients clipped in groups has the loss of one number that moves by a shift (Notes
    of :func:`~skdpnoise.privacy.poisson_sampled`). The largest such shift is found for rate and
    steps, and shared among the groups as for any other release.

    Parameters
    ----------
    noise : str
        ``"<rule>_gaussian"`` or ``"<rule>_laplace"`` with rule "iid", "spr" or "inid".
    sensitivity : GroupedProfile
        Bounds on the addition of one record in the sample.
    guarantee : PrivacyGuarantee
        Of the relation ``"add_remove"``, with something left for each step.
    rate : float
        q, in (0, 1].
    n_releases : int
        T, the number of steps.
    beside : PrivacyLoss or None, default=None
        Other losses within the guarantee.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5, and Section VI-C.

    Examples
    --------
    >>> profile = GroupedProfile([1.0, 1.0], [0, 0, 0, 1])
    >>> guarantee = PrivacyGuarantee(2.0, 1e-5, "add_remove")
    >>> made = calibrate_sampled("inid_gaussian", profile, guarantee, rate=0.01, n_releases=1000)
    >>> made.scale.round(3)
    array([1.205, 1.205, 1.205, 1.585])
    """
    family = noise.partition("_")[2]
    if family not in FAMILIES:
        given = repr(noise)
        raise ValueError(complaint("calibrate_sampled", "noise", _KNOWN, given, _NOT_PROVEN))
    base = FAMILIES[family]
    shift = largest_sampled_shift(guarantee, rate=rate, steps=n_releases, base=base, beside=beside)
    if not shift > _LEAST_SHIFT:
        must = f"leave {n_releases} samples of rate {rate:g} more than nothing"
        raise ValueError(complaint("calibrate_sampled", "guarantee", must, str(guarantee)))
    loss = GaussianLoss(shift) if family == "gaussian" else PureLoss(shift)
    return SampledMechanism(calibrate(noise, sensitivity, loss), float(rate), n_releases)
