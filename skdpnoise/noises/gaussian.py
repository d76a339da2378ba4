"""Gaussian noise: the cheapest when many coordinates share one guarantee with delta > 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtr, ndtri

from skdpnoise.noises._shared import log_density
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import NormalShift
from skdpnoise.privacy.half_lines import SQRT_2PI, Array
from skdpnoise.sampling import RandomWords, rounded_gaussian


@dataclass(frozen=True, slots=True)
class Gaussian(Noise):
    r"""Standard normal noise.

    .. math:: f(z) = e^{-z^2/2} / \sqrt{2\pi}

    For a vector that one record moves by at most d, noise of standard deviations :math:`\sigma_j`
    costs exactly a Gaussian privacy loss with :math:`\mu = |d / \sigma|_2`, because the two output
    distributions are normal with equal covariances, and rotating and scaling them leaves one
    coordinate with means μ apart.

    References
    ----------
    Dong, Roth and Su (2022), "Gaussian differential privacy", JRSS B, Theorem 2.7 and Corollary
    3.3. Balle and Wang, ICML 2018, Theorem 8.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> round(float(get_noise("gaussian").hockey_stick(1.0, 0.236704381)), 9)
    1e-06
    """

    norm_order = 2.0
    log_concave = True

    @property
    def variance(self) -> float:
        return 1.0

    @property
    def fisher_information(self) -> float:
        return 1.0

    def logpdf(self, z: ArrayLike) -> Array:
        return log_density(lambda x: 0.5 * x * x, SQRT_2PI, z)

    def sf(self, z: ArrayLike) -> Array:
        return np.asarray(ndtr(-np.asarray(z, dtype=np.float64)))

    def isf(self, q: ArrayLike) -> Array:
        return np.asarray(-ndtri(np.asarray(q, dtype=np.float64)))

    def absolute_moment(self, p: float) -> float:
        r"""Return :math:`E|Z|^p = 2^{p/2} \Gamma((p+1)/2) / \sqrt\pi` for p > -1."""
        log_moment = 0.5 * p * math.log(2.0) + gammaln(0.5 * (p + 1.0)) - gammaln(0.5)
        return math.exp(log_moment)

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        return rounded_gaussian(rng, size, bits)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        return NormalShift().hockey_stick(epsilon, shift)


register("gaussian", Gaussian)
