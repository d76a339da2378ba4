"""Discrete Laplace (two-sided geometric) noise, for counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.noises import _shared
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import half_lines
from skdpnoise.privacy.half_lines import Array
from skdpnoise.sampling import Exponent, RandomWords, integer_piecewise


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Noise):
    r"""Integer noise that falls by the same factor with every step.

    .. math:: P(Z = k) = \tanh\!\left(\frac{1}{2b}\right) e^{-|k|/b}, \qquad k \in \mathbb{Z}

    For an integer-valued query that one record moves by at most the integer d, neighbouring data
    sets make densities whose ratio is at most :math:`e^{d/b}`: the release is d/b-differentially
    private. For counts and d = 1 it minimises the expectation of every symmetric loss that grows
    with the error, whatever prior belief its user has.

    Its shape is the scale, and shifts are rounded down to integers, by which the query moves.

    Parameters
    ----------
    shape : float, default=1.0
        b, in [0.002, 1e9].

    References
    ----------
    Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms", SIAM
    Journal on Computing (2012). Canonne, Kamath and Steinke, "The discrete Gaussian for
    differential privacy", arXiv:2004.00010.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> noise = get_noise("discrete_laplace", 2.0)
    >>> round(noise.variance, 4), float(noise.max_loss(1))
    (7.8354, 0.5)
    """

    supports_pure = True
    log_concave = True
    lattice = True

    shape: float = 1.0

    def __post_init__(self) -> None:
        _shared.keep_shape(self, 2e-3, 1e9)

    @classmethod
    def for_ratio(cls, ratio: float, step: float, p: float) -> DiscreteLaplace:
        """Return the noise with b = step / ratio, whatever p is; see `Noise`."""
        return cls(float(step / ratio))

    @property
    def rate(self) -> float:
        """The loss of one step, 1 / b as a floating-point number: exact in the sampler."""
        return 1.0 / self.shape

    @property
    def variance(self) -> float:
        r"""Variance, :math:`1 / (2 \sinh^2(1/(2b)))`."""
        return 0.5 / math.sinh(0.5 * self.rate) ** 2

    def logpdf(self, z: ArrayLike) -> Array:
        total = 1.0 / math.tanh(0.5 * self.rate)
        return _shared.log_mass(lambda x: self.rate * x, total, z)

    def sf(self, z: ArrayLike) -> Array:
        return _shared.upper_tail(lambda k: np.exp(-self.rate * k) / self._spread, z)

    @property
    def _spread(self) -> float:
        return 1.0 + math.exp(-self.rate)

    def isf(self, q: ArrayLike) -> Array:
        q = np.asarray(q, dtype=np.float64)
        less = np.clip(np.minimum(q, 1.0 - q), 1e-320, 0.5)
        steps = -np.log(less * self._spread) / self.rate
        guess = np.where(q <= 0.5, np.ceil(steps) - 1.0, -np.floor(steps))
        return _shared.smallest_integer(self.sf, guess, q)

    def absolute_moment(self, p: float) -> float:
        if p <= 0.0:
            return 1.0 if p == 0.0 else math.inf
        return 2.0 * math.tanh(0.5 * self.rate) * _shared.power_sum(p, self.rate, 1)

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        _shared.only_whole(bits, "DiscreteLaplace")
        return integer_piecewise(rng, size, Exponent((0.0,), ((0.0, self.rate, 0.0, 0.0),)))

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        r"""Return the smallest delta at each epsilon for an integer change of at most `shift`.

        With :math:`r = e^{-1/b}` and t the smallest integer with :math:`(2t - n)/b > \varepsilon`,

        .. math:: \delta = P(Z \ge t - n) - e^{\varepsilon} P(Z \ge t)
                  = \frac{1 - e^{\varepsilon - t/b} + r (1 - r^{n - t})}{1 + r}
        """
        epsilon, shift = half_lines.pairs(epsilon, shift)
        rate, n = self.rate, np.floor(shift)
        t = np.floor(0.5 * (epsilon / rate + n)) + 1.0
        t = np.minimum(t, n)
        first = -np.expm1(np.minimum(epsilon - rate * t, 0.0))
        second = -math.exp(-rate) * np.expm1(-rate * (n - t))
        return np.where(epsilon < rate * n, (first + second) / self._spread, 0.0)

    def max_loss(self, shift: ArrayLike) -> Array:
        return np.asarray(self.rate * np.floor(np.asarray(shift, dtype=np.float64)))


register("discrete_laplace", DiscreteLaplace)
