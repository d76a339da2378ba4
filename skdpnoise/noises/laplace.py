"""Laplace noise: pure privacy, and the cheapest when a few coordinates carry the sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, log_ndtr

from skdpnoise.noises._registry import register
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.sampling import RandomWords, rounded_laplace

# Floating-point error of the conversion from mu to epsilon stays far below this.
_RELATIVE_ERROR = 1e-13


@dataclass(frozen=True, slots=True)
class Laplace:
    r"""Laplace noise of scale 1.

    .. math:: f(z) = \tfrac12 e^{-|z|}

    Neighbouring data sets move the released vector by at most :math:`d`; noise of scales
    :math:`b_j` then is :math:`\varepsilon`-differentially private with

    .. math:: \varepsilon = |d / b|_1,

    the largest logarithm of the ratio of the two output densities, by the triangle inequality.
    The resource of this family is :math:`\varepsilon`. Its privacy is pure: a target with
    delta > 0 is met with delta = 0, which is safe and, over many coordinates, not tight.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data
    analysis", Proposition 3.3.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> get_noise("laplace").resource(PrivacyGuarantee(epsilon=0.5))
    0.5
    """

    norm_order: ClassVar[float] = 1.0
    supports_pure: ClassVar[bool] = True

    @property
    def variance(self) -> float:
        """Variance at unit scale: 2."""
        return 2.0

    def logpdf(self, z: ArrayLike) -> NDArray[np.float64]:
        r"""Return :math:`-|z| - \log 2`, of the shape of `z`."""
        return np.asarray(-np.abs(np.asarray(z, dtype=np.float64)) - math.log(2.0))

    def sf(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return P(Z > z), of the shape of `z`, with full relative accuracy in the upper tail."""
        z = np.asarray(z, dtype=np.float64)
        tail = 0.5 * np.exp(-np.abs(z))
        return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail))

    def isf(self, q: ArrayLike) -> NDArray[np.float64]:
        """Return z with P(Z > z) = q, of the shape of `q`, the inverse of `sf`."""
        q = np.asarray(q, dtype=np.float64)
        with np.errstate(divide="ignore"):  # q of 0 and 1 is at infinity
            magnitude = -np.log(2.0 * np.minimum(q, 1.0 - q))
        return np.asarray(np.copysign(magnitude, 0.5 - q))

    def absolute_moment(self, p: float) -> float:
        r"""Return :math:`E|Z|^p = \Gamma(p + 1)` for p > -1."""
        return math.gamma(p + 1.0)

    def sample_rounded(
        self, words: RandomWords, size: int | tuple[int, ...], bits: int
    ) -> NDArray[np.int64]:
        """Return exact draws of round(2**bits * Z); see `skdpnoise.sampling.rounded_laplace`."""
        return rounded_laplace(words, size, bits)

    def resource(self, target: PrivacyGuarantee | PrivacyLoss) -> float:
        r"""Return an epsilon that meets the target, rounded down.

        Parameters
        ----------
        target : PrivacyGuarantee or PrivacyLoss
            A guarantee or a `PureLoss` is met with its own epsilon; delta is not used. A
            `GaussianLoss` of :math:`\mu` is met with the epsilon of
            :math:`\mu = 2 \Phi^{-1}(e^\varepsilon / (1 + e^\varepsilon))`, which no
            epsilon-differentially private release exceeds.

        Returns
        -------
        epsilon : float

        Raises
        ------
        TypeError
            If the target is of another type.

        References
        ----------
        Dong, Roth and Su (2022), "Gaussian differential privacy", JRSS B: epsilon-differential
        privacy implies mu-Gaussian differential privacy with the mu above.
        """
        if isinstance(target, PrivacyGuarantee):
            return target.epsilon
        if isinstance(target, PureLoss):
            return target.pure_epsilon
        if isinstance(target, GaussianLoss):
            return _pure_epsilon(target.mu)
        raise TypeError(
            "The 'target' parameter must be a PrivacyGuarantee, a PureLoss or a GaussianLoss, got "
            f"an instance of {type(target).__name__!r}."
        )

    def loss(self, resource: float) -> PrivacyLoss:
        """Return the `PureLoss` of epsilon = `resource`."""
        return PureLoss(resource)


def _pure_epsilon(mu: float) -> float:
    r"""Return :math:`\log(\Phi(\mu/2) / \Phi(-\mu/2))`, rounded down."""
    if mu < 1.0:
        # The difference of logarithms would cancel: use 2 artanh(2 Phi(mu/2) - 1).
        epsilon = 2.0 * math.atanh(float(erf(mu / math.sqrt(8.0))))
    else:
        epsilon = float(log_ndtr(0.5 * mu) - log_ndtr(-0.5 * mu))
    return epsilon * (1.0 - _RELATIVE_ERROR)


register("laplace", Laplace)
