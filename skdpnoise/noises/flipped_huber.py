"""Laplace centre, Gaussian tails (Muthukrishnan and Kalyani, arXiv:2212.09657)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammaincc, ndtri_exp

from skdpnoise.noises._shared import log_density, reflect, reflect_inverse
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import check_real, half_lines
from skdpnoise.privacy.half_lines import Array
from skdpnoise.sampling import Exponent, RandomWords, rounded_piecewise


@dataclass(frozen=True, slots=True)
class FlippedHuber(Noise):
    r"""Noise whose exponent is linear near 0 and quadratic beyond alpha.

    .. math:: f(z) = \frac{e^{-\rho(z)}}{\kappa}, \qquad
              \rho(z) = \begin{cases} \alpha |z| & |z| \le \alpha \\
                        (z^2 + \alpha^2)/2 & |z| > \alpha \end{cases}

    The tails of a normal distribution (gamma = 1 in the paper) with the sharp peak of a Laplace
    distribution: for one coordinate and a small delta the variance is a small fraction of that of
    normal noise, and in many dimensions it is never worse, because alpha = 0 is one.

    The density is symmetric and log-concave, so the divergence is that of a half-line, in closed
    form: the loss L(t) is linear, quadratic or constant in t on at most four pieces.

    Parameters
    ----------
    shape : float, default=1.0
        alpha, in (0, 40]. It is rounded to 26 significant bits, so that its square, which the exact
        sampler needs, is a floating-point number.

    References
    ----------
    Muthukrishnan and Kalyani, "Grafting Laplace and Gaussian distributions: a new noise mechanism
    for differential privacy", arXiv:2212.09657. Balle and Wang, ICML 2018, Theorem 5 (delta).

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> f"{get_noise('flipped_huber', 3.1847).hockey_stick(0.5, 0.157):.1e}"  # Gaussian: 3.9e-05
    '1.0e-06'
    """

    log_concave = True
    shape_range = (0.05, 12.0)

    shape: float = 1.0

    def __post_init__(self) -> None:
        check_real("FlippedHuber", "shape", self.shape, high=40.0, high_closed=True)
        mantissa, power = math.frexp(self.shape)
        object.__setattr__(self, "shape", math.ldexp(round(mantissa * 2**26), power - 26))

    @property
    def fisher_information(self) -> float:
        r"""Expectation of the squared slope, :math:`(2/\kappa)(\alpha + e^{-\alpha^2} m(\alpha))`.

        m is Mills' ratio of the normal distribution.
        """
        alpha = self.shape
        return 2.0 * (alpha + math.exp(-alpha * alpha) * _mills(alpha)) / self._total

    @property
    def _total(self) -> float:
        r""":math:`\kappa = \int e^{-\rho}`."""
        alpha = self.shape
        centre = -math.expm1(-alpha * alpha) / alpha
        return 2.0 * (centre + math.exp(-alpha * alpha) * _mills(alpha))

    def _exponent(self, x: Array) -> Array:
        alpha = self.shape
        return np.where(x <= alpha, alpha * x, 0.5 * (x * x + alpha * alpha))

    def logpdf(self, z: ArrayLike) -> Array:
        return log_density(self._exponent, self._total, z)

    def sf(self, z: ArrayLike) -> Array:
        alpha = self.shape

        def upper(x: Array) -> Array:
            gap = np.maximum(alpha - x, 0.0)
            centre = -np.expm1(-alpha * gap) / alpha + np.exp(-alpha * gap) * _mills(alpha)
            ratio = np.where(x < alpha, centre, half_lines.mills(np.maximum(x, alpha)))
            return np.exp(-self._exponent(x)) * ratio / self._total

        return reflect(upper, z)

    def isf(self, q: ArrayLike) -> Array:
        alpha, total = self.shape, self._total
        corner = math.exp(-alpha * alpha) * _mills(alpha) / total

        def inverse(q: Array) -> Array:
            # Centre: exp(-alpha z) = 1 - alpha kappa (1/2 - q), which is also
            # alpha kappa q + exp(-alpha^2) (1 - alpha m(alpha)).
            fall = np.minimum(alpha * total * (0.5 - q), 0.5)
            rest = math.exp(-alpha * alpha) * float(half_lines.mills_descent(alpha))
            centre = np.where(fall < 0.5, -np.log1p(-fall), -np.log(alpha * total * q + rest))
            log_tail = np.log(q) + math.log(total / half_lines.SQRT_2PI) + 0.5 * alpha * alpha
            tail = -ndtri_exp(np.minimum(log_tail, math.log(0.5)))
            return np.where(q > corner, centre / alpha, tail)

        return reflect_inverse(inverse, q)

    def absolute_moment(self, p: float) -> float:
        alpha, half = self.shape, 0.5 * (p + 1.0)
        centre = math.gamma(p + 1.0) * alpha ** (-p - 1.0) * gammainc(p + 1.0, alpha * alpha)
        tail = 2.0 ** (half - 1.0) * math.gamma(half) * gammaincc(half, 0.5 * alpha * alpha)
        return float(2.0 * (centre + math.exp(-0.5 * alpha * alpha) * tail) / self._total)

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        alpha = self.shape
        pieces = ((0.0, alpha, 0.0, 0.0), (0.5 * alpha * alpha, 0.0, 0.5, 0.0))
        return rounded_piecewise(rng, size, bits, Exponent((0.0, alpha), pieces))

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        epsilon, shift = half_lines.pairs(epsilon, shift)
        point = self._point(epsilon, shift)
        return half_lines.threshold_delta(point, shift, self._exponent, self._fall, self._total)

    def zcdp(
        self, largest_shift: float, l2_shift: float, n_coordinates: int = 1
    ) -> tuple[float, float]:
        r"""Return (xi, rho) such that every Rényi divergence of order a is at most xi + rho a.

        .. math:: \xi = \tfrac12 K R, \quad \rho = \tfrac12 \Delta_2^2, \quad
                  R = \alpha^2 - (\alpha - \Delta_\infty)_+^2

        References
        ----------
        Bun and Steinke, "Concentrated differential privacy", TCC 2016, Definition 8.1 (for the
        notion). Muthukrishnan and Kalyani, arXiv:2212.09657 (for the constants).
        """
        alpha = self.shape
        reach = min(largest_shift, alpha)
        return 0.5 * n_coordinates * reach * (2.0 * alpha - reach), 0.5 * l2_shift * l2_shift

    def _fall(self, start: Array, width: Array) -> Array:
        """Return m(x) - m(x + w) of the ratio m = sf / f, for x, w >= 0."""
        alpha = self.shape
        inside = np.clip(alpha - start, 0.0, width)
        # Inside, m(x) = (1 - exp(-alpha (alpha - x)) (1 - alpha m(alpha))) / alpha.
        slope = float(half_lines.mills_descent(alpha)) / alpha
        left = np.maximum(alpha - start, 0.0) - inside
        centre = slope * np.exp(-alpha * left) * -np.expm1(-alpha * inside)
        return centre + half_lines.mills_fall(np.maximum(start, alpha), width - inside)

    def _point(self, epsilon: Array, shift: Array) -> Array:
        """Return the point t >= s / 2 where the loss rho(t) - rho(t - s) reaches epsilon."""
        alpha, s = self.shape, shift
        flat = alpha * s  # loss where both t and t - s are in the linear piece, t > s
        # Where t is in the tail, t - s in the centre: on its left half, then on its right half.
        left = np.sqrt(2.0 * (epsilon + flat)) - alpha
        right = alpha + np.sqrt(2.0 * np.maximum(epsilon - flat, 0.0))
        to_left = alpha * (2.0 * alpha - s)  # loss at t = alpha < s
        to_right = np.where(s < alpha, flat, 0.5 * (s * s + alpha * alpha))  # at t = max(s, alpha)
        to_tail = 0.5 * s * s + flat  # at t = s + alpha; from there on both are in the tail
        both = (epsilon >= to_tail) | (epsilon <= 0.5 * s * s - flat)
        return np.select(
            [both, epsilon >= to_right, (s >= alpha) & (epsilon >= to_left)],
            [half_lines.ratio(epsilon, s) + 0.5 * s, right, left],
            0.5 * (epsilon / alpha + s),
        )


def _mills(y: float) -> float:
    return float(half_lines.mills(y))


register("flipped_huber", FlippedHuber)
