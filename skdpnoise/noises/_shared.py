"""Shared by families: the two halves of a symmetric density, and sums over the integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from skdpnoise._utils.checks import complaint
from skdpnoise.privacy import check_real
from skdpnoise.privacy.half_lines import Array


def keep_shape(noise: Any, low: float, high: float) -> None:
    ends = {"low_closed": True, "high_closed": True}
    shape = check_real(type(noise).__name__, "shape", noise.shape, low=low, high=high, **ends)
    object.__setattr__(noise, "shape", shape)


def reflect(upper: Callable[[Array], Array], z: ArrayLike) -> Array:
    """Return P(Z > z) of a symmetric density from its values at z >= 0."""
    z = np.asarray(z, dtype=np.float64)
    tail = upper(np.abs(z))
    return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail))


@np.errstate(divide="ignore", invalid="ignore")  # infinity, and infinity minus it, at q = 0
def reflect_inverse(lower_half: Callable[[Array], Array], q: ArrayLike) -> Array:
    """Return the inverse of P(Z > z) from its values at q <= 1/2; infinite at 0 and 1."""
    q = np.asarray(q, dtype=np.float64)
    magnitude = lower_half(np.minimum(q, 1.0 - q))
    return np.asarray(np.where(q == 0.5, 0.0, np.copysign(magnitude, 0.5 - q)))


def log_density(exponent: Callable[[Array], Array], total: float, z: ArrayLike) -> Array:
    """Return the logarithm of exp(-rho) / N, of the shape of `z`, from rho on [0, inf)."""
    return np.asarray(-exponent(np.abs(np.asarray(z, dtype=np.float64))) - math.log(total))


def upper_tail(tail: Callable[[Array], Array], z: ArrayLike) -> Array:
    """Return P(Z > z) of a symmetric integer variable from P(Z >= k), k >= 1."""
    next_integer = np.floor(np.asarray(z, dtype=np.float64)) + 1.0
    # P(Z > z) = 1 - P(Z >= 1 - k) for the next integer k <= 0.
    reached = tail(np.where(next_integer >= 1.0, next_integer, 1.0 - next_integer))
    return np.asarray(np.where(next_integer >= 1.0, reached, 1.0 - reached))


def smallest_integer(sf: Callable[[Array], Array], guess: Array, q: Array) -> Array:
    """Return the smallest integer k with P(Z > k) <= q, near a guess; infinite at 0 and 1."""
    inside = (q > 0.0) & (q < 1.0)
    k = np.where(inside, np.round(guess), 0.0)
    while np.any(low := inside & (sf(k) > q)):
        k = k + low
    while np.any(high := inside & (sf(k - 1.0) <= q)):
        k = k - high
    return np.where(inside, k, np.where(q > 0.0, -np.inf, np.inf))


def power_sum(power: float, rate: float, degree: int) -> float:
    r"""Return the sum of :math:`k^p e^{-c k^d}` over k >= 1, for degree d = 1 or 2 and p > 0.

    .. math:: \frac{\Gamma((p + 1)/d)}{d\,c^{(p+1)/d}} + \sum_{j \ge 0} \frac{(-c)^j}{j!}
              \zeta(-p - j d)
    """
    # A small rate c is that of the integral, by the expansion
    # (Zagier, "The Mellin transform and other useful analytic techniques", section 3), which for d
    # = 1 converges and for d = 2 has an error far below rounding.
    if rate > (1.0, 2e-4)[degree - 1]:
        last = ((60.0 + 2.0 * power) / rate) ** (1.0 / degree)
        k = np.arange(1.0, math.ceil(last) + 2.0)
        return float((k**power * np.exp(-rate * k**degree)).sum())
    order = (power + 1.0) / degree
    total = math.exp(math.lgamma(order) - order * math.log(rate)) / degree
    for j in range((30, 6)[degree - 1]):
        total += (-rate) ** j / math.factorial(j) * _zeta_of_negative(power + j * degree)
    return total


def _zeta_of_negative(s: float) -> float:
    """Return Riemann's zeta function at -s, for s > 0, by its functional equation."""
    sine = math.sin(-0.5 * math.pi * math.fmod(s, 4.0))
    scale = math.exp(math.lgamma(1.0 + s) - s * math.log(2.0 * math.pi)) / math.pi
    return scale * sine * float(zeta(1.0 + s))


def only_whole(bits: int, owner: str) -> None:
    """Refuse binary places: integers have none."""
    if bits != 0:
        must, remedy = "be 0 for integer noise", "For real values choose a continuous family."
        raise ValueError(complaint(f"{owner}.sample_rounded", "bits", must, repr(bits), remedy))


def log_mass(exponent: Callable[[Array], Array], total: float, z: ArrayLike) -> Array:
    """Return the logarithm of exp(-rho) / N at integers, minus infinity between them."""
    return np.where(np.equal(z, np.floor(z)), log_density(exponent, total, z), -np.inf)
