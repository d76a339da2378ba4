"""Gaussian noise: the cheapest when many coordinates share one guarantee with delta > 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtr, ndtri

from skdpnoise.noises._registry import noise_names, register
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PrivacyLoss, PureLoss, gdp_mu
from skdpnoise.sampling import RandomWords, rounded_gaussian


@dataclass(frozen=True, slots=True)
class Gaussian:
    r"""Standard normal noise.

    .. math:: f(z) = e^{-z^2/2} / \sqrt{2\pi}

    Neighbouring data sets move the released vector by at most :math:`d`; noise of standard
    deviations :math:`\sigma_j` then costs exactly a Gaussian privacy loss with

    .. math:: \mu = |d / \sigma|_2

    because the two output distributions are normal with equal covariances, and rotating and
    scaling them leaves one coordinate with means :math:`\mu` apart. The resource of this family is
    :math:`\mu`.

    References
    ----------
    Dong, Roth and Su (2022), "Gaussian differential privacy", JRSS B, Theorem 2.7 and
    Corollary 3.3. Balle and Wang (2018), "Improving the Gaussian mechanism for differential
    privacy", Theorem 8.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> noise = get_noise("gaussian")
    >>> round(noise.resource(PrivacyGuarantee(epsilon=1.0, delta=1e-6)), 9)
    0.236704381
    """

    norm_order: ClassVar[float] = 2.0
    supports_pure: ClassVar[bool] = False

    @property
    def variance(self) -> float:
        """Variance at unit scale: 1."""
        return 1.0

    def logpdf(self, z: ArrayLike) -> NDArray[np.float64]:
        r"""Return :math:`-z^2/2 - \tfrac12 \log 2\pi`, of the shape of `z`."""
        z = np.asarray(z, dtype=np.float64)
        return np.asarray(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi))

    def sf(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return P(Z > z), of the shape of `z`, with full relative accuracy in the upper tail."""
        return np.asarray(ndtr(-np.asarray(z, dtype=np.float64)))

    def isf(self, q: ArrayLike) -> NDArray[np.float64]:
        """Return z with P(Z > z) = q, of the shape of `q`, the inverse of `sf`."""
        return np.asarray(-ndtri(np.asarray(q, dtype=np.float64)))

    def absolute_moment(self, p: float) -> float:
        r"""Return :math:`E|Z|^p = 2^{p/2} \Gamma((p+1)/2) / \sqrt\pi` for p > -1."""
        log_moment = 0.5 * p * math.log(2.0) + gammaln(0.5 * (p + 1.0)) - gammaln(0.5)
        return math.exp(log_moment)

    def sample_rounded(
        self, words: RandomWords, size: int | tuple[int, ...], bits: int
    ) -> NDArray[np.int64]:
        """Return exact draws of round(2**bits * Z); see `skdpnoise.sampling.rounded_gaussian`."""
        return rounded_gaussian(words, size, bits)

    def resource(self, target: PrivacyGuarantee | PrivacyLoss) -> float:
        """Return the largest mu that meets the target, rounded down.

        Parameters
        ----------
        target : PrivacyGuarantee or PrivacyLoss
            A guarantee with delta > 0, or a `GaussianLoss`, which is met exactly.

        Returns
        -------
        mu : float

        Raises
        ------
        ValueError
            If the target is pure (delta = 0), which no normal noise can give.
        TypeError
            If the target is of another type.
        """
        if isinstance(target, GaussianLoss):
            return target.mu
        if isinstance(target, PureLoss) or (
            isinstance(target, PrivacyGuarantee) and target.delta == 0.0
        ):
            names = ", ".join(repr(name) for name in noise_names(pure=True))
            raise ValueError(
                "The 'noise' parameter must name a family that can give pure privacy (delta=0) "
                f"for this guarantee, one of {names}; got 'gaussian'. Choose one of those or a "
                "delta > 0."
            )
        if isinstance(target, PrivacyGuarantee):
            return gdp_mu(target.epsilon, target.delta)
        raise TypeError(
            "The 'target' parameter must be a PrivacyGuarantee, a PureLoss or a GaussianLoss, got "
            f"an instance of {type(target).__name__!r}."
        )

    def loss(self, resource: float) -> PrivacyLoss:
        """Return the `GaussianLoss` of mu = `resource`, which is exact."""
        return GaussianLoss(resource)


register("gaussian", Gaussian)
