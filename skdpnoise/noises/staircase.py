"""Staircase noise: the best pure noise for one coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaincc

from skdpnoise.noises._shared import reflect, reflect_inverse
from skdpnoise.noises.base import Noise, Size, register
from skdpnoise.privacy import check_real, half_lines
from skdpnoise.privacy.half_lines import Array
from skdpnoise.sampling import Exponent, RandomWords, rounded_piecewise

# Shifts beyond so many steps lose no more than their last 2**-53 to the centre.
_NEGLIGIBLE = 45.0
_LEAST = 1e-15  # a smaller gamma is far below the grid step of any release
_FIRST = 20  # terms of a slow series that are added one by one
# Smaller steps have no sampler in 64 bits; in larger ones all that is left is rounding.
_SMALLEST_STEP, _LARGEST_STEP = 1e-13, 64.0
_FLAT = 1e-8  # below it the best gamma is that of a density which does not fall


@dataclass(frozen=True, slots=True)
class Staircase(Noise):
    r"""Noise whose density falls in steps of epsilon on steps of width one.

    .. math:: f(z) = \begin{cases} a\,e^{-k\epsilon} & |z| \in [k, k + \gamma) \\
              a\,e^{-(k+1)\epsilon} & |z| \in [k + \gamma, k + 1) \end{cases} \qquad
              a = \frac{1 - e^{-\epsilon}}{2 (\gamma + (1 - \gamma) e^{-\epsilon})}

    Neighbouring data sets move the released number by at most d; with steps of width d the release
    is epsilon-differentially private, and among all that are none has a smaller expected error
    for the right gamma. At other scales, with :math:`d/s = n + u`, the loss of a change takes
    the values :math:`k\epsilon`, and its curve is a sum over them (see `hockey_stick`).

    Parameters
    ----------
    shape : float, default=1.0
        epsilon, the loss of one step, in [1e-13, 64].
    gamma : float or None, default=None
        Share of a step that is on the higher level, in [1e-15, 1). None is the best for the
        expected absolute error, :math:`1/(1 + e^{\epsilon/2})`; see :func:`optimal_gamma`.

    References
    ----------
    Geng and Viswanath, "The optimal mechanism in differential privacy", arXiv:1212.1186. Geng,
    Kairouz, Oh and Viswanath, "The staircase mechanism in differential privacy", IEEE Journal of
    Selected Topics in Signal Processing (2015).

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> round(get_noise("staircase", 3.0).absolute_moment(1.0), 4)  # Laplace noise: 0.3333
    0.2348
    """

    supports_pure = True
    shape_range = (0.01, 50.0)

    shape: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _check_epsilon("Staircase", "shape", self.shape))
        if self.gamma is not None:
            gamma = check_real(
                "Staircase", "gamma", self.gamma, low=_LEAST, high=1.0, low_closed=True
            )
            object.__setattr__(self, "gamma", gamma)

    @classmethod
    def for_ratio(cls, ratio: float, step: float, p: float) -> Staircase:
        """Return the noise that loses the ratio in a step, whatever its width; see `Noise`."""
        epsilon = min(float(ratio), _LARGEST_STEP)
        return cls(epsilon, optimal_gamma(epsilon, p))

    @property
    def share(self) -> float:
        """The gamma in use."""
        return optimal_gamma(self.shape) if self.gamma is None else float(self.gamma)

    @property
    def _top(self) -> float:
        """The density a at 0."""
        r = math.exp(-self.shape)
        return -0.5 * math.expm1(-self.shape) / (self.share + (1.0 - self.share) * r)

    def _level(self, x: Array) -> Array:
        """Return how many steps the density has fallen at x >= 0."""
        k = np.floor(x)
        return np.asarray(k + (x - k >= self.share))

    def logpdf(self, z: ArrayLike) -> Array:
        x = np.abs(np.asarray(z, dtype=np.float64))
        return np.asarray(math.log(self._top) - self.shape * self._level(x))

    def sf(self, z: ArrayLike) -> Array:
        a, gamma, corner = self._top, self.share, self._corner

        def upper(x: Array) -> Array:
            k = np.floor(np.minimum(x, 1e300))
            u = x - k
            # P(Z > k) is exp(-k epsilon) / 2.
            high = a * (gamma - u) + corner
            low = math.exp(-self.shape) * (0.5 + a * (1.0 - np.minimum(u, 1.0)))
            return np.exp(-self.shape * k) * np.where(u < gamma, high, low)

        return reflect(upper, z)

    @property
    def _corner(self) -> float:
        """The probability of Z > gamma."""
        return math.exp(-self.shape) * (0.5 + self._top * (1.0 - self.share))

    def isf(self, q: ArrayLike) -> Array:
        a, gamma, corner = self._top, self.share, self._corner

        def inverse(q: Array) -> Array:
            steps = -np.log(2.0 * q) / self.shape
            k = np.floor(np.minimum(steps, 1e300))
            rest = 0.5 * np.exp(-self.shape * (steps - k))
            high = np.where(k == 0.0, 0.5 - q, 0.5 - rest) / a
            low = 1.0 - (rest * math.exp(self.shape) - 0.5) / a
            u = np.where(rest >= corner, np.minimum(high, gamma), np.clip(low, gamma, 1.0))
            return np.where(q > 0.0, k + u, np.inf)

        return reflect_inverse(inverse, q)

    def absolute_moment(self, p: float) -> float:
        r"""Return :math:`E|Z|^p` for p > -1, by a series.

        .. math:: E|Z|^p = \frac{2a (1 - e^{-\epsilon})}{p + 1}
                  \sum_{k \ge 0} e^{-k\epsilon} (k + \gamma)^{p+1}
        """
        series = _series(self.shape, self.share, p + 1.0)
        return 2.0 * self._top * -math.expm1(-self.shape) / (p + 1.0) * series

    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        epsilon = float(self.shape)
        levels = ((0.0, 0.0, 0.0, 0.0), (epsilon, 0.0, 0.0, 0.0))
        exponent = Exponent((0.0, self.share), levels, period=(1.0, epsilon))
        return rounded_piecewise(rng, size, bits, exponent)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        r"""Return the smallest delta at each epsilon for a change of at most `shift`.

        The density falls on both sides of 0, so a larger change costs more (the module
        ``half_lines`` has the proof; it needs no log-concavity). For a shift n + u with u < 1, and
        r the factor of one step, the loss is

        * (n + 1) steps with probability :math:`a [\min(u, \gamma) + u r/(1 - r)]` and n steps with
          the rest of 1/2, where Z is on the far side of 0,
        * what the levels of Z and of its distance from the shift say, where Z is between the two,
        * negative beyond the shift.

        For a shift of at most 1 the whole curve is
        :math:`a [\min(\Delta, 2\gamma) + \Delta r/(1 - r)] (1 - e^{\varepsilon - \epsilon})_+`.
        """
        epsilon, shift = half_lines.pairs(epsilon, shift)
        a, gamma, r = self._top, self.share, math.exp(-self.shape)
        odds = r / -math.expm1(-self.shape)

        def gain(steps: Array) -> Array:
            return np.asarray(-np.expm1(np.minimum(epsilon - self.shape * steps, 0.0)))

        n = np.floor(shift)
        u = shift - n
        more = a * (np.minimum(u, gamma) + u * odds)
        delta = more * gain(n + 1.0) + (0.5 - more) * gain(n)
        # Between 0 and the shift: levels are [0, gamma), then [gamma + i - 1, gamma + i).
        finite = shift[np.isfinite(shift)]
        deepest = min(0.5 * float(finite.max(initial=0.0)), _NEGLIGIBLE / self.shape)
        for i in range(math.ceil(deepest) + 1):
            left, right = (0.0, gamma) if i == 0 else (gamma + i - 1.0, gamma + i)
            # Seen from the shift, this piece covers (shift - right, shift - left]: where the level
            # there is j, j - i steps are lost; it meets three levels at most.
            first = np.maximum(np.floor(shift - right - gamma) + 1.0, 0.0)
            for j in (first, first + 1.0, first + 2.0):
                near = np.where(j == 0.0, 0.0, gamma + j - 1.0)
                width = np.minimum(right, shift - near) - np.maximum(left, shift - (gamma + j))
                delta += a * r**i * np.maximum(width, 0.0) * gain(j - i)
        return np.where(shift > 0.0, delta, 0.0)

    def max_loss(self, shift: ArrayLike) -> Array:
        return np.asarray(self.shape * np.ceil(np.asarray(shift, dtype=np.float64)))


def optimal_gamma(epsilon: float, p: float = 1.0) -> float:
    """Return the gamma of the smallest :math:`E|Z|^p`.

    Reference: Geng and Viswanath, "The optimal mechanism in differential privacy", arXiv:1212.1186:
    the staircase mechanism for the amplitude (p = 1) and for the power (p = 2) of the noise.
    """
    epsilon = _check_epsilon("optimal_gamma", "epsilon", epsilon)
    p = check_real("optimal_gamma", "p", p)
    if p == 1.0:
        return 1.0 / (1.0 + math.exp(0.5 * epsilon))
    if p == 2.0:
        # The cube root of r (1 + r) / 2 less r, over 1 - r, without the cancellation.
        rise = 0.5 * epsilon + math.log1p(2.0 * math.sinh(0.25 * epsilon) ** 2) / 3.0
        return math.expm1(rise) / math.expm1(epsilon)
    epsilon = max(epsilon, _FLAT)
    r, fall = math.exp(-epsilon), -math.expm1(-epsilon)

    def slope(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)
        level = fall * gamma + r
        series = _series(epsilon, gamma, p), _series(epsilon, gamma, p + 1.0)
        return (p + 1.0) * level * series[0] - fall * series[1]

    return max(_LEAST, math.exp(brentq(slope, -epsilon - 5.0, 0.0, xtol=1e-13)))


def _check_epsilon(owner: str, name: str, value: object) -> float:
    ends = {"low_closed": True, "high_closed": True}
    return check_real(owner, name, value, low=_SMALLEST_STEP, high=_LARGEST_STEP, **ends)


def _series(epsilon: float, gamma: float, power: float) -> float:
    """Return the sum of exp(-k epsilon) (k + gamma)**power over k >= 0."""
    # A slow series is its first terms and Euler and Maclaurin's formula for the others.
    slow = epsilon < 1e-3
    k = np.arange(_FIRST if slow else math.ceil((60.0 + 2.0 * power) / epsilon) + 1)
    total = float((np.exp(-epsilon * k) * (k + gamma) ** power).sum())
    if not slow:
        return total
    y = _FIRST + gamma
    order = power + 1.0
    log_scale = epsilon * gamma + math.lgamma(order) - order * math.log(epsilon)
    integral = math.exp(log_scale) * float(gammaincc(order, epsilon * y))
    slope = power / y - epsilon
    third = slope**3 + (power / y**2) * (2.0 / y - 3.0 * slope)
    last = math.exp(-epsilon * _FIRST) * y**power
    return float(total + integral + last * (0.5 - slope / 12.0 + third / 720.0))


register("staircase", Staircase)
