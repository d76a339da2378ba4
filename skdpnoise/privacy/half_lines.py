r"""Hockey-stick divergences of shifted noise, and the normal tails that they are made of.

For a symmetric log-concave density :math:`f = e^{-\rho} / N` the loss of a shift s > 0,
:math:`L(t) = \rho(t) - \rho(t - s)`, never falls, so the worst event is one of Neyman and Pearson's
half-lines, :math:`Z > t - s` against :math:`Z > t` with :math:`L(t) = \varepsilon`. With Mills'
ratio m = sf / f and :math:`f(t - s) = e^{\varepsilon} f(t)`,

.. math:: \delta = P(Z > t - s) - e^{\varepsilon} P(Z > t) = f(t - s)\,[m(t - s) - m(t)]

where nothing large is left to cancel if the fall of m is known by itself. The divergence grows with
s for every symmetric density that falls on both sides of 0: its derivative is
:math:`e^{\varepsilon} \int_S f'(z - s)\,dz` over :math:`S = \{f(z) > e^{\varepsilon} f(z - s)\}`,
and in S z is nearer to 0 than z - s, so z < s/2, z - s < 0, and f rises there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx

Array = NDArray[np.float64]

SQRT_2PI = math.sqrt(2.0 * math.pi)
_FARTHEST = 1e150  # its square is finite; no density is left there
_GONE = 760.0  # exp(-760) is below the smallest double
_NODES, _WEIGHTS = (0.5 * rule for rule in np.polynomial.legendre.leggauss(6))
# Asymptotic series of the slope of Mills' ratio: 1, -3, 3 * 5, ... over powers of y**2.
_SERIES_FROM = 15.0
_SERIES = np.cumprod([1.0, *(-(2.0 * k + 1.0) for k in range(1, 14))])[::-1]


def pairs(epsilon: ArrayLike, shift: ArrayLike) -> tuple[Array, Array]:
    one, other = np.broadcast_arrays(
        np.asarray(epsilon, dtype=np.float64), np.asarray(shift, dtype=np.float64)
    )
    return one, other


def unbounded_loss(shift: ArrayLike) -> Array:
    """Return infinity for every change but none."""
    return np.where(np.asarray(shift, dtype=np.float64) > 0.0, np.inf, 0.0)


def ratio(numerator: Array, denominator: Array) -> Array:
    """Return the quotient, huge but with a finite square instead of infinity or 0 / 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.nan_to_num(np.minimum(numerator / denominator, _FARTHEST), nan=_FARTHEST)


@np.errstate(under="ignore")
def threshold_delta(
    point: Array,
    shift: Array,
    exponent: Callable[[Array], Array],
    fall: Callable[[Array, Array], Array],
    total: float,
) -> Array:
    """Return f(t - s) [m(t - s) - m(t)] with t ≥ s/2, where the loss is ε; 0 for no shift."""
    # `exponent` is ρ on [0, inf), `total` the integral N of exp(-ρ), and `fall` gives m(x) - m(x +
    # w). Behind the centre, at -b < 0, symmetry gives f(b) m(-b) = 1 - e^{-ρ(b)} + f(b) [2 m(0) -
    # m(b)]: sums of positive terms again.
    start = point - shift
    exponents = exponent(np.abs(start))
    alive = (exponents < _GONE) | (start < 0.0)
    if not alive.all():
        delta = np.zeros(start.shape)
        if alive.any():
            delta[alive] = threshold_delta(point[alive], shift[alive], exponent, fall, total)
        return delta
    behind = np.maximum(-start, 0.0)
    drop = np.array(fall(np.maximum(start, 0.0), np.where(start >= 0.0, shift, point)))
    reflected = behind > 0.0
    if reflected.any():
        drop[reflected] += fall(np.zeros_like(behind[reflected]), behind[reflected])
    delta = np.exp(-exponents) * drop / total - np.expm1(-exponent(behind))
    return np.where(shift > 0.0, np.minimum(delta, 1.0), 0.0)


def mills(y: ArrayLike) -> Array:
    """Return Mills' ratio Q(y) / phi(y) of the standard normal distribution."""
    return np.asarray(0.5 * SQRT_2PI * erfcx(np.divide(y, math.sqrt(2.0))))


def mills_fall(start: Array, width: Array) -> Array:
    """Return mills(y) - mills(y + w) for y, w >= 0 without cancellation."""
    fall = np.array(mills(start) - mills(start + width))
    near = width < 0.1 * np.maximum(start, 1.0)
    if near.any():
        points = start[near] + np.multiply.outer(_NODES + 0.5, width[near])
        fall[near] = width[near] * np.tensordot(_WEIGHTS, mills_descent(points), 1)
    return fall


def mills_descent(y: ArrayLike) -> Array:
    """Return 1 - y mills(y), minus the slope of Mills' ratio, for y >= 0."""
    y = np.asarray(y, dtype=np.float64)
    descent = np.array(1.0 - y * mills(y))
    beyond = y > _SERIES_FROM
    far = 1.0 / np.square(y[beyond])
    descent[beyond] = far * np.polyval(_SERIES, far)
    return descent
