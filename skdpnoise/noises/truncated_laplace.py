"""Truncated Laplace noise: never beyond a bound, at the price of a chance of total disclosure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc

from skdpnoise.noises._shared import reflect, reflect_inverse
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import check_real, half_lines
from skdpnoise.privacy.half_lines import Array
from skdpnoise.sampling import Exponent, RandomWords, rounded_piecewise


@dataclass(frozen=True, slots=True)
class TruncatedLaplace(Noise):
    r"""Laplace noise of scale 1, conditioned on staying within a bound.

    .. math:: f(z) = \frac{e^{-|z|}}{2 (1 - e^{-A})}, \qquad |z| < A

    **Its delta is a chance of total disclosure**: a value outside the support of the neighbouring
    data set tells the two apart with certainty, and however large epsilon becomes, delta does not
    fall below the probability of that.

    The density is symmetric and log-concave, so a half-line is the worst event: with a shift Δ and
    :math:`v = (\Delta - \varepsilon)/2`,

    .. math:: \delta = \frac{2 (1 - e^{-v_+}) + e^{-A} (e^{\min(\varepsilon, \Delta)} - 1)}
                       {2 (1 - e^{-A})}

    as long as :math:`A \ge (\Delta + \varepsilon)/2` and :math:`A \ge \Delta`. For
    :math:`(\varepsilon, \delta)` at scale :math:`d / \varepsilon` A must be :math:`\log(1 + c)`,
    :math:`c = (e^\varepsilon - 1)/(2\delta)`; then :math:`E|Z| = 1 - \log(1 + c)/c`.

    Parameters
    ----------
    shape : float, default=10.0
        A, half the width of the support in units of the scale, in (0, 700].

    References
    ----------
    Geng, Ding, Guo and Kumar, "Tight analysis of privacy and utility tradeoff in approximate
    differential privacy", arXiv:1810.00877.

    Examples
    --------
    >>> from skdpnoise.noises.truncated_laplace import TruncatedLaplace
    >>> noise = TruncatedLaplace(TruncatedLaplace.half_width(epsilon=0.5, delta=1e-6))
    >>> round(noise.shape, 4), round(float(noise.hockey_stick(0.5, 0.5)) * 1e6, 9)
    (12.6896, 1.0)
    """

    log_concave = True
    shape_range = (0.5, 60.0)

    shape: float = 10.0

    def __post_init__(self) -> None:
        shape = check_real("TruncatedLaplace", "shape", self.shape, high=700.0, high_closed=True)
        object.__setattr__(self, "shape", shape)

    @staticmethod
    def half_width(epsilon: float, delta: float) -> float:
        r"""Return the A that gives (epsilon, delta) at scale :math:`\Delta / \varepsilon`."""
        epsilon = check_real("TruncatedLaplace.half_width", "epsilon", epsilon, high=700.0)
        delta = check_real("TruncatedLaplace.half_width", "delta", delta, high=1.0)
        return math.log1p(math.expm1(epsilon) / (2.0 * delta))

    @property
    def _mass(self) -> float:
        """Twice the probability that an exponential variable stays within A."""
        return -2.0 * math.expm1(-self.shape)

    def logpdf(self, z: ArrayLike) -> Array:
        x = np.abs(np.asarray(z, dtype=np.float64))
        return np.asarray(np.where(x < self.shape, -x - math.log(self._mass), -np.inf))

    def sf(self, z: ArrayLike) -> Array:
        return reflect(
            lambda x: np.exp(-x) * -np.expm1(np.minimum(x - self.shape, 0.0)) / self._mass, z
        )

    def isf(self, q: ArrayLike) -> Array:
        mass = self._mass

        def inverse(q: Array) -> Array:
            # exp(-z) = mass q + exp(-A) = 1 - mass (1/2 - q)
            near = -np.log1p(-mass * (0.5 - q))
            middle = -np.log(mass * q + math.exp(-self.shape))
            share = mass * q * math.exp(self.shape)
            edge = self.shape - np.log1p(share)
            return np.select([share < 1.0, q < 0.25], [edge, middle], near)

        return reflect_inverse(inverse, q)

    def absolute_moment(self, p: float) -> float:
        return math.gamma(p + 1.0) * float(gammainc(p + 1.0, self.shape)) * 2.0 / self._mass

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        exponent = Exponent((0.0,), ((0.0, 1.0, 0.0, 0.0),), end=float(self.shape))
        return rounded_piecewise(rng, size, bits, exponent)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        epsilon, shift = half_lines.pairs(epsilon, shift)
        # From here on only what the support gives away is left.
        last = np.maximum(np.minimum(shift, 2.0 * self.shape - shift), 0.0)
        e = np.minimum(epsilon, last)
        inside = -2.0 * np.expm1(0.5 * (e - shift)) - np.exp(e - self.shape) * np.expm1(-e)
        return np.where(shift < 2.0 * self.shape, inside / self._mass, 1.0)


register("truncated_laplace", TruncatedLaplace)
