"""Offset symmetric Gaussian tails: the tails of a normal distribution, joined at a peak."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

from skdpnoise.noises._shared import keep_shape, log_density, reflect, reflect_inverse
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import half_lines
from skdpnoise.privacy.half_lines import Array
from skdpnoise.sampling import Exponent, RandomWords, rounded_piecewise


@dataclass(frozen=True, slots=True)
class Osgt(Noise):
    r"""Noise with the density of a normal tail beyond theta, on both sides.

    .. math:: f(z) = \frac{\varphi(|z| + \theta)}{2 Q(\theta)} \propto e^{-\theta |z| - z^2/2}

    Between the normal (theta = 0) and the Laplace distribution (theta large, scale 1 / theta). The
    density is symmetric and log-concave, so the divergence is that of the half-line where the loss

    .. math:: L(t) = \begin{cases} (2t - \Delta)(\theta + \Delta/2) & \Delta/2 \le t \le \Delta \\
                     \Delta (t + \theta) - \Delta^2/2 & t \ge \Delta \end{cases}

    exceeds epsilon, for a shift Δ.

    Parameters
    ----------
    shape : float, default=1.0
        theta (over the paper's rho, which is the unit), in [0, 1000].

    References
    ----------
    Sadeghi and Korki, "Offset-symmetric Gaussians for differential privacy", arXiv:2110.06412.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> noise = get_noise("osgt", 2.0)
    >>> round(noise.variance, 6), round(float(noise.hockey_stick(1.0, 0.3)), 6)
    (0.253569, 0.001206)
    """

    log_concave = True
    shape_range = (0.01, 100.0)

    shape: float = 1.0

    def __post_init__(self) -> None:
        keep_shape(self, 0.0, 1e3)

    @property
    def fisher_information(self) -> float:
        r"""Expectation of the squared slope, :math:`1 + \theta / m(\theta)`."""
        return 1.0 + 2.0 * self.shape / self._total

    @property
    def _total(self) -> float:
        """The integral of exp(-rho): twice Mills' ratio at theta."""
        return 2.0 * float(half_lines.mills(self.shape))

    def _exponent(self, x: Array) -> Array:
        return x * (self.shape + 0.5 * x)

    def logpdf(self, z: ArrayLike) -> Array:
        return log_density(self._exponent, self._total, z)

    def sf(self, z: ArrayLike) -> Array:
        return reflect(self._upper, z)

    def _upper(self, x: Array) -> Array:
        return np.exp(-self._exponent(x)) * half_lines.mills(x + self.shape) / self._total

    def isf(self, q: ArrayLike) -> Array:
        def inverse(q: Array) -> Array:
            log_tail = np.log(2.0 * q)
            z = -ndtri_exp(np.minimum(log_tail + log_ndtr(-self.shape), math.log(0.5)))
            z = np.maximum(z - self.shape, 0.0)
            # One step of Newton's method on log P(Z > z) takes back what the difference lost.
            reached = np.minimum(z, 1e4)
            ratio = half_lines.mills(reached + self.shape)
            log_reached = np.log(2.0 * ratio / self._total) - self._exponent(reached)
            return np.where(q > 0.0, z + (log_reached - log_tail) * ratio, np.inf)

        return reflect_inverse(inverse, q)

    def absolute_moment(self, p: float) -> float:
        r"""Return :math:`E|Z|^p` for p > -1.

        By the trapezoidal rule in log z: the integrand is analytic and falls at both ends, so the
        error is below :math:`10^{-14}`.
        """
        u = np.arange(-45.0 / (p + 1.0) - math.log1p(self.shape), math.log(40.0 + 4.0 * p), 0.05)
        log_terms = (p + 1.0) * u - self._exponent(np.exp(u))
        return 0.1 * float(np.exp(log_terms).sum()) / self._total

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        exponent = Exponent((0.0,), ((0.0, float(self.shape), 0.5, 0.0),))
        return rounded_piecewise(rng, size, bits, exponent)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        epsilon, shift = half_lines.pairs(epsilon, shift)
        behind = 0.5 * shift + half_lines.ratio(epsilon, 2.0 * self.shape + shift)
        # ε/Δ and θ cancel where θ is large, which the steep density would make much of.
        beyond = epsilon - self.shape * shift
        ahead = 0.5 * shift + half_lines.ratio(np.maximum(beyond, 0.0), shift)
        point = np.where(behind < shift, behind, np.maximum(ahead, shift))
        return half_lines.threshold_delta(point, shift, self._exponent, self._fall, self._total)

    def _fall(self, start: Array, width: Array) -> Array:
        return half_lines.mills_fall(start + self.shape, width)


register("osgt", Osgt)
