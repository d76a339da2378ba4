"""Generalised Gaussian noise: every power between Laplace (1) and Gaussian (2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammaincc, gammainccinv

from skdpnoise.noises._shared import keep_shape, log_density, reflect, reflect_inverse
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import half_lines
from skdpnoise.privacy.half_lines import Array
from skdpnoise.sampling import Exponent, RandomWords, rounded_piecewise

_FRACTION_FROM, _FRACTION_TERMS = 20.0, 24  # the continued fraction then has full precision
_MOST_STEPS = 100
_FAR = 1e90  # no density is left there
_NODES, _WEIGHTS = (0.5 * rule for rule in np.polynomial.legendre.leggauss(10))
_NODES += 0.5


@dataclass(frozen=True, slots=True)
class Subbotin(Noise):
    r"""Noise whose exponent is a power.

    .. math:: f(z) = \frac{e^{-|z|^p / p}}{2 p^{1/p} \Gamma(1 + 1/p)}

    The density is symmetric and log-concave, so the divergence is that of a half-line; where the
    loss :math:`L(t) = (|t|^p - |t - \Delta|^p)/p` of a shift Δ reaches epsilon is found by Newton's
    method, which converges from the left because L is concave beyond the middle.

    Parameters
    ----------
    shape : float, default=1.5
        The power p, 1 or in [1.01, 2]: 1 is the Laplace, 2 the standard normal distribution.

    References
    ----------
    Liu, "Generalized Gaussian mechanism for differential privacy", arXiv:1602.06028. Subbotin,
    "On the law of frequency of error" (1923).

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> [round(get_noise("subbotin", p).variance, 4) for p in (1.0, 1.5, 2.0)]
    [2.0, 1.268, 1.0]
    """

    log_concave = True
    shape_range = (1.01, 2.0)

    shape: float = 1.5

    def __post_init__(self) -> None:
        # Between, double precision does not keep the curve.
        keep_shape(self, 1.0 if self.shape == 1.0 else self.shape_range[0], 2.0)

    @property
    def fisher_information(self) -> float:
        r"""Expectation of the squared slope, :math:`E|Z|^{2p - 2}`."""
        return self.absolute_moment(2.0 * self.shape - 2.0)

    @property
    def _total(self) -> float:
        inverse = 1.0 / self.shape
        return 2.0 * math.pow(self.shape, inverse) * math.gamma(1.0 + inverse)

    def _exponent(self, x: Array) -> Array:
        return np.asarray(x**self.shape / self.shape)

    def logpdf(self, z: ArrayLike) -> Array:
        return log_density(self._exponent, self._total, z)

    def sf(self, z: ArrayLike) -> Array:
        return reflect(lambda x: 0.5 * gammaincc(1.0 / self.shape, self._exponent(x)), z)

    def isf(self, q: ArrayLike) -> Array:
        p = self.shape
        return reflect_inverse(lambda q: (p * gammainccinv(1.0 / p, 2.0 * q)) ** (1.0 / p), q)

    def absolute_moment(self, p: float) -> float:
        r"""Return :math:`E|Z|^q = p^{q/p}\,\Gamma((q + 1)/p) / \Gamma(1/p)` for q > -1, q = `p`."""
        inverse = 1.0 / self.shape
        log_moment = math.lgamma((p + 1.0) * inverse)
        return math.exp(p * inverse * math.log(self.shape) + log_moment - math.lgamma(inverse))

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        """Sample exactly round(2**bits * Z); see `skdpnoise.sampling.rounded_piecewise`.

        The sampler takes 1/p as the nearest double, a relative error of the scale below 2**-53.
        """
        exponent = Exponent((0.0,), ((0.0, 0.0, 0.0, 1.0 / self.shape),), power=float(self.shape))
        return rounded_piecewise(rng, size, bits, exponent)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        epsilon, shift = half_lines.pairs(epsilon, shift)
        if self.shape == 1.0:
            return np.asarray(-np.expm1(0.5 * np.minimum(epsilon - shift, 0.0)))
        point = self._point(epsilon, np.where(shift > 0.0, shift, 1.0))
        return half_lines.threshold_delta(point, shift, self._exponent, self._fall, self._total)

    def max_loss(self, shift: ArrayLike) -> Array:
        if self.shape == 1.0:
            return np.array(shift, dtype=np.float64)
        return half_lines.unbounded_loss(shift)

    def _point(self, epsilon: Array, shift: Array) -> Array:
        """Return the point t >= s / 2 where the loss rho(t) - rho(t - s) reaches epsilon."""
        p = self.shape
        # Both are left of t: L lies below its tangent at s / 2, and, as rho' is concave, below
        # s rho'(t - s / 2).
        with np.errstate(over="ignore"):
            steps = np.maximum(
                0.5 * epsilon * (0.5 * shift) ** (1.0 - p),
                half_lines.ratio(epsilon, shift) ** (1.0 / (p - 1.0)),
            )
        point = np.array(0.5 * shift + np.minimum(steps, 1e100))
        moving = np.asarray(point < _FAR)
        for _ in range(_MOST_STEPS):
            t, s = point[moving], shift[moving]
            start = np.abs(t - s)
            power, start_power = t ** (p - 1.0), start ** (p - 1.0)
            # For a short shift rho(t) - rho(t - s) would cancel.
            short = -np.expm1(p * np.log1p(-np.minimum(s / t, 0.5)))
            loss = np.where(s < 0.5 * t, t * power * short, t * power - start * start_power) / p
            slope_short = power * -np.expm1((p - 1.0) * np.log1p(-np.minimum(s / t, 0.5)))
            slope = np.where(s < 0.5 * t, slope_short, power - np.sign(t - s) * start_power)
            step = (epsilon[moving] - loss) / slope
            point[moving] = np.maximum(t + step, 0.5 * s)
            moving[moving] = (np.abs(step) > 1e-14 * t) & (t < _FAR)
            if not moving.any():
                break
        return point

    def _fall(self, start: Array, width: Array) -> Array:
        """Return m(x) - m(x + w) of the ratio m = sf / f, for x, w >= 0."""
        # Where rho grows by less than 1 the difference would cancel; it is also \int_x^{x+w}
        # e^{ρ(x) - ρ(u)} du - m(x + w) (1 - e^{ρ(x) - ρ(x+w)}).
        p, stop = self.shape, start + width
        far = self._ratio(stop)
        near = np.asarray((stop ** (p - 1.0) * width < 1.0) & (width > 0.0))
        fall = np.empty_like(far)
        fall[~near] = self._ratio(start[~near]) - far[~near]
        smooth = width < start
        for part, integral in ((near & smooth, self._by_gauss), (near & ~smooth, self._by_gammas)):
            if part.any():
                area, growth = integral(start[part], width[part])
                fall[part] = area + far[part] * np.expm1(-growth)
        return fall

    def _by_gauss(self, x: Array, w: Array) -> tuple[Array, Array]:
        """Return the integral of e^{ρ(x) - ρ(u)} from x to x + w < 2x, and ρ(x + w) - ρ(x)."""
        steps = np.append(_NODES, 1.0)[:, None] * (w / x)
        growth = self._exponent(x) * np.expm1(self.shape * np.log1p(steps))
        return w * (_WEIGHTS @ np.exp(-growth[:-1])), growth[-1]

    def _by_gammas(self, x: Array, w: Array) -> tuple[Array, Array]:
        """Return the same near 0, where ρ is not smooth."""
        rho, beyond = self._exponent(x), self._exponent(x + w)
        area = gammainc(1.0 / self.shape, beyond) - gammainc(1.0 / self.shape, rho)
        return area * 0.5 * self._total * np.exp(np.minimum(rho, 1.0)), beyond - rho

    def _ratio(self, t: Array) -> Array:
        """Return m = sf / f at t >= 0, by a continued fraction of the incomplete gamma function."""
        # Abramowitz and Stegun, "Handbook of mathematical functions", 6.5.31.
        a = 1.0 / self.shape
        x = self._exponent(t)
        ratio = np.empty_like(x)
        beyond = x > _FRACTION_FROM
        near = x[~beyond]
        ratio[~beyond] = 0.5 * self._total * np.exp(near) * gammaincc(a, near)
        if beyond.any():
            y = x[beyond]
            rest = np.zeros_like(y)
            for k in range(_FRACTION_TERMS, 0, -1):
                rest = (k - a) / (1.0 + k / (y + rest))
            # m = p**(a - 1) e**x Gamma(a, x), and the last factors are x**a / (x + rest).
            ratio[beyond] = t[beyond] / self.shape / (y + rest)
        return ratio


register("subbotin", Subbotin)
