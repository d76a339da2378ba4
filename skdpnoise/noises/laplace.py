"""Laplace noise: pure privacy, and the cheapest when a few coordinates carry the sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.noises import _threshold
from skdpnoise.noises.registry import register
from skdpnoise.sampling import RandomWords, rounded_laplace


@dataclass(frozen=True, slots=True)
class Laplace:
    r"""Laplace noise of scale 1.

    .. math:: f(z) = \tfrac12 e^{-|z|}

    Neighbouring data sets move the released vector by at most :math:`d`; noise of scales
    :math:`b_j` then is :math:`\varepsilon`-differentially private with

    .. math:: \varepsilon = |d / b|_1,

    the largest logarithm of the ratio of the two output densities, by the triangle inequality. Over
    many coordinates and with delta > 0 the composed loss is far smaller than that.

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

    norm_order: ClassVar[float | None] = 1.0
    supports_pure: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True
    lattice: ClassVar[bool] = False
    shape_range: ClassVar[tuple[float, float] | None] = None

    @property
    def variance(self) -> float:
        """Variance at unit scale: 2."""
        return 2.0

    @property
    def fisher_information(self) -> float:
        """Expectation of the squared slope of the log-density: 1."""
        return 1.0

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
        self, rng: RandomWords, size: int | tuple[int, ...], bits: int
    ) -> NDArray[np.int64]:
        """Sample exactly round(2**bits * Z); see `skdpnoise.sampling.rounded_laplace`."""
        return rounded_laplace(rng, size, bits)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
        r"""Return the smallest delta at each epsilon for a change of at most `shift`.

        .. math:: \delta = \left(1 - e^{(\varepsilon - \Delta)/2}\right)_+
        """
        epsilon, shift = _threshold.pairs(epsilon, shift)
        return np.asarray(-np.expm1(0.5 * np.minimum(epsilon - shift, 0.0)))

    def max_loss(self, shift: ArrayLike) -> NDArray[np.float64]:
        """Return the shift itself."""
        return np.array(shift, dtype=np.float64)


register("laplace", Laplace)
