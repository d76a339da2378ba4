"""Gaussian noise: the cheapest when many coordinates share one guarantee with delta > 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtr, ndtri

from skdpnoise.noises import _threshold
from skdpnoise.noises.registry import register
from skdpnoise.privacy import NormalShift
from skdpnoise.sampling import RandomWords, rounded_gaussian


@dataclass(frozen=True, slots=True)
class Gaussian:
    r"""Standard normal noise.

    .. math:: f(z) = e^{-z^2/2} / \sqrt{2\pi}

    Neighbouring data sets move the released vector by at most :math:`d`; noise of standard
    deviations :math:`\sigma_j` then costs exactly a Gaussian privacy loss with

    .. math:: \mu = |d / \sigma|_2

    because the two output distributions are normal with equal covariances, and rotating and
    scaling them leaves one coordinate with means :math:`\mu` apart.

    References
    ----------
    Dong, Roth and Su (2022), "Gaussian differential privacy", JRSS B, Theorem 2.7 and
    Corollary 3.3. Balle and Wang (2018), "Improving the Gaussian mechanism for differential
    privacy", Theorem 8.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> round(float(get_noise("gaussian").hockey_stick(1.0, 0.236704381)), 9)
    1e-06
    """

    norm_order: ClassVar[float | None] = 2.0
    supports_pure: ClassVar[bool] = False
    log_concave: ClassVar[bool] = True
    lattice: ClassVar[bool] = False
    shape_range: ClassVar[tuple[float, float] | None] = None

    @property
    def variance(self) -> float:
        """Variance at unit scale: 1."""
        return 1.0

    @property
    def fisher_information(self) -> float:
        """Expectation of the squared slope of the log-density: 1."""
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
        self, rng: RandomWords, size: int | tuple[int, ...], bits: int
    ) -> NDArray[np.int64]:
        """Sample exactly round(2**bits * Z); see `skdpnoise.sampling.rounded_gaussian`."""
        return rounded_gaussian(rng, size, bits)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
        r"""Return the smallest delta at each epsilon for a change of at most `shift`.

        .. math:: \delta = Q(\varepsilon/\Delta - \Delta/2)
                  - e^{\varepsilon} Q(\varepsilon/\Delta + \Delta/2)
        """
        return NormalShift().hockey_stick(epsilon, shift)

    def max_loss(self, shift: ArrayLike) -> NDArray[np.float64]:
        """Return infinity, but for no shift."""
        return _threshold.unbounded_loss(shift)


register("gaussian", Gaussian)
