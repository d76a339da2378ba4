"""Laplace noise: pure privacy, and the cheapest when a few coordinates carry the sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.noises._shared import log_density, reflect, reflect_inverse
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy.half_lines import Array, pairs
from skdpnoise.sampling import RandomWords, rounded_laplace


@dataclass(frozen=True, slots=True)
class Laplace(Noise):
    r"""Laplace noise of scale 1.

    .. math:: f(z) = \tfrac12 e^{-|z|}

    For a vector that one record moves by at most d, noise of scales :math:`b_j` is ε-differentially
    private with :math:`\varepsilon = |d / b|_1`, the largest logarithm of the ratio of the two
    output densities, by the triangle inequality. Over many coordinates and with delta > 0 the
    composed loss is far smaller than that.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data
    analysis", Proposition 3.3.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> float(get_noise("laplace").max_loss(0.5))
    0.5
    """

    norm_order = 1.0
    supports_pure = True
    log_concave = True

    @property
    def fisher_information(self) -> float:
        return 1.0

    def logpdf(self, z: ArrayLike) -> Array:
        return log_density(lambda x: x, 2.0, z)

    def sf(self, z: ArrayLike) -> Array:
        return reflect(lambda x: 0.5 * np.exp(-x), z)

    def isf(self, q: ArrayLike) -> Array:
        return reflect_inverse(lambda q: -np.log(2.0 * q), q)

    def absolute_moment(self, p: float) -> float:
        r"""Return :math:`E|Z|^p = \Gamma(p + 1)` for p > -1."""
        return math.gamma(p + 1.0)

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        return rounded_laplace(rng, size, bits)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        r"""Return the smallest delta at each epsilon for a change of at most `shift`.

        .. math:: \delta = \left(1 - e^{(\varepsilon - \Delta)/2}\right)_+
        """
        epsilon, shift = pairs(epsilon, shift)
        return np.asarray(-np.expm1(0.5 * np.minimum(epsilon - shift, 0.0)))

    def max_loss(self, shift: ArrayLike) -> Array:
        return np.array(shift, dtype=np.float64)


register("laplace", Laplace)
