"""Discrete Gaussian noise, for integer-valued queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bernoulli, ndtri

from skdpnoise.noises import _shared
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import half_lines
from skdpnoise.privacy.half_lines import Array
from skdpnoise.sampling import Exponent, RandomWords, integer_piecewise

_TABLE_UP_TO = 50.0  # beyond this sigma sums are integrals and nine corrections
_FEW = 8
# B_2j / (2j)!, the numbers of Euler and Maclaurin's formula, j = 1, ..., 9.
_EULER_MACLAURIN = [
    float(number) / math.factorial(2 * j)
    for j, number in enumerate(bernoulli(18)[2::2].tolist(), start=1)
]


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Noise):
    r"""Integer noise with the probabilities of the normal density.

    .. math:: P(Z = k) = \frac{e^{-k^2/(2\sigma^2)}}{\sum_i e^{-i^2/(2\sigma^2)}},
              \qquad k \in \mathbb{Z}

    For an integer-valued query that one record moves by at most the integer d, the release is
    :math:`d^2/(2\sigma^2)`-zero-concentrated private, as with the normal distribution, and its
    variance is at most :math:`\sigma^2`. It is not a Gaussian privacy loss: `hockey_stick` is its
    own curve, by sums over half-lines of integers.

    Its shape is the scale, and shifts are rounded down to integers, by which the query moves.

    Parameters
    ----------
    shape : float, default=1.0
        sigma, in [0.05, 1e9].

    References
    ----------
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy",
    arXiv:2004.00010, Theorem 4 (zCDP), Theorem 7 (delta), Corollary 9 (variance).

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> noise = get_noise("discrete_gaussian", 2.0)
    >>> round(noise.variance, 4), round(float(noise.hockey_stick(1.0, 1)), 4)
    (4.0, 0.0072)
    """

    log_concave = True
    lattice = True

    shape: float = 1.0

    def __post_init__(self) -> None:
        _shared.keep_shape(self, 0.05, 1e9)

    @classmethod
    def for_ratio(cls, ratio: float, step: float, p: float) -> DiscreteGaussian:
        """Return the noise with sigma = step / ratio, whatever p is; see `Noise`."""
        return cls(float(step / ratio))

    @property
    def rate(self) -> float:
        """1 / (2 sigma^2) as a floating-point number: exact in the sampler."""
        return 0.5 / (self.shape * self.shape)

    @property
    def _total(self) -> float:
        return 2.0 * float(self._ratio(np.zeros(1))[0]) - 1.0

    def _exponent(self, x: Array) -> Array:
        return self.rate * x * x

    def logpdf(self, z: ArrayLike) -> Array:
        return _shared.log_mass(self._exponent, self._total, z)

    def sf(self, z: ArrayLike) -> Array:
        return _shared.upper_tail(self._at_least, z)

    def _at_least(self, k: Array) -> Array:
        """Return P(Z >= k) for k >= 0."""
        k = np.minimum(k, 1e150)
        return np.exp(-self._exponent(k)) * self._ratio(k) / self._total

    def isf(self, q: ArrayLike) -> Array:
        q = np.asarray(q, dtype=np.float64)
        return _shared.smallest_integer(self.sf, -self.shape * ndtri(q) - 0.5, q)

    def absolute_moment(self, p: float) -> float:
        if p <= 0.0:
            return 1.0 if p == 0.0 else math.inf
        return 2.0 * _shared.power_sum(p, self.rate, 2) / self._total

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        _shared.only_whole(bits, "DiscreteGaussian")
        return integer_piecewise(rng, size, Exponent((0.0,), ((0.0, 0.0, self.rate, 0.0),)))

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        r"""Return the smallest delta at each epsilon for an integer change of at most `shift`.

        With t the smallest integer whose loss :math:`L(t) = n (2t - n)/(2\sigma^2)` exceeds
        epsilon, g the Gaussian exponential and :math:`m(k) = \sum_{i \ge k} g(i) / g(k)`,

        .. math:: \delta = P(Z \ge t - n) - e^{\varepsilon} P(Z \ge t) \propto
                  g(t - n)\,[m(t - n) - m(t) + (1 - e^{\varepsilon - L(t)})\,m(t)]
        """
        epsilon, shift = half_lines.pairs(epsilon, shift)
        n, rate, total = np.floor(shift), self.rate, self._total
        t = np.floor(half_lines.ratio(epsilon, 2.0 * rate * n) + 0.5 * n) + 1.0
        excess = np.minimum(epsilon - rate * n * (2.0 * t - n), 0.0)
        delta = half_lines.threshold_delta(t, n, self._exponent, self._fall, total)
        step = np.exp(-self._exponent(np.abs(t - n))) * -np.expm1(excess) * self._ratio(t) / total
        return np.where(n > 0.0, np.minimum(delta + step, 1.0), 0.0)

    def max_loss(self, shift: ArrayLike) -> Array:
        return half_lines.unbounded_loss(np.floor(np.asarray(shift, dtype=np.float64)))

    def _ratio(self, k: Array) -> Array:
        """Return the sum over i >= k of g(i) / g(k), for integers k >= 0."""
        if self.shape <= _TABLE_UP_TO:
            ratios = _table(self.rate)[0]
            return np.asarray(ratios[np.minimum(k, ratios.size - 1).astype(np.int64)])
        y = k / self.shape
        return np.asarray(0.5 + self.shape * half_lines.mills(y) + self._corrections(y))

    def _corrections(self, y: Array) -> Array:
        """Return the terms of Euler and Maclaurin's formula beyond the first two, over g."""
        y = np.minimum(y, 100.0)  # beyond, g is below the smallest float
        total, scale = np.zeros_like(y), 1.0 / self.shape
        previous, hermite = np.ones_like(y), y
        for j, number in enumerate(_EULER_MACLAURIN):
            total = total + number * hermite * scale ** (2 * j + 1)
            for order in (2 * j + 1, 2 * j + 2):
                previous, hermite = hermite, y * hermite - order * previous
        return total

    def _fall(self, start: Array, width: Array) -> Array:
        """Return m(k) - m(k + w) for integers k, w >= 0."""
        if self.shape > _TABLE_UP_TO:
            y, w = start / self.shape, width / self.shape
            change = self._corrections(y) - self._corrections(y + w)
            return np.asarray(self.shape * half_lines.mills_fall(y, w) + change)
        falls = _table(self.rate)[1]
        fall = self._ratio(start) - self._ratio(start + width)
        few = np.zeros_like(fall)
        for i in range(_FEW):
            index = np.minimum(start + i, falls.size - 1).astype(np.int64)
            few = few + np.where(i < width, falls[index], 0.0)
        return np.where(width <= _FEW, few, fall)


@lru_cache(maxsize=16)
def _table(rate: float) -> tuple[Array, Array]:
    r"""Return m(k) and m(k) - m(k + 1), by recurrences of positive terms from far out inwards.

    .. math:: m_k = 1 + q_k m_{k+1}, \qquad q_k = e^{-(2k + 1)/(2\sigma^2)}, \qquad
              m_k - m_{k+1} = q_k [(m_{k+1} - m_{k+2}) + (1 - e^{-1/\sigma^2})\,m_{k+2}]
    """
    size = math.ceil(40.0 / math.sqrt(2.0 * rate)) + 4
    ratios, falls = np.ones(size + 2), np.zeros(size + 2)
    rest = -math.expm1(-2.0 * rate)
    for k in range(size - 1, -1, -1):
        q = math.exp(-rate * (2.0 * k + 1.0))
        ratios[k] = 1.0 + q * ratios[k + 1]
        falls[k] = q * (falls[k + 1] + rest * ratios[k + 2])
    return ratios, falls


register("discrete_gaussian", DiscreteGaussian)
