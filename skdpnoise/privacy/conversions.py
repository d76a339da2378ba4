"""Conversions between Gaussian, zero-concentrated and (ε, δ) differential privacy.

All work in logarithms, so that δ = 1e-300 and ε = 50 are ordinary numbers, and every number that is
solved for is the end of its bracket that keeps the promise: a smaller μ, a larger ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri

from skdpnoise._utils.checks import check_real
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.privacy.half_lines import SQRT_2PI, mills

# The computed delta errs by less than 1e-12 of itself wherever it is a normal double: what is
# returned is raised by this much. Solving for a delta that is smaller by twice as much keeps the
# solution on the safe side, and its own delta at most the one that was asked for.
_DELTA_UP = 2e-12
_DELTA_MARGIN = 2.0 * _DELTA_UP
_EPS = math.ulp(1.0)
_NODES, _NODE_WEIGHTS = (0.5 * rule for rule in np.polynomial.legendre.leggauss(16))
_TAIL = np.cumprod([1.0, -3.0, -5.0, -7.0, -9.0, -11.0, -13.0])[::-1]


def corollary6_epsilon(epsilon: float, delta: float) -> float:
    r"""Return the ε to which (ε, δ)-Laplace noise may be calibrated as if it were pure.

    .. math:: \varepsilon' = \varepsilon - \log(1 - \delta)

    Pure ε'-privacy implies (ε, δ)-privacy. It gains next to nothing: the composed loss
    (:class:`~skdpnoise.privacy.NumericLoss`) of :func:`~skdpnoise.mechanisms.calibrate` needs less.

    Parameters
    ----------
    epsilon, delta : float
        ε > 0 and δ in [0, 1).

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Corollary 6.

    Examples
    --------
    >>> corollary6_epsilon(0.5, 1e-6)
    0.5000010000005...
    """
    epsilon = check_real("corollary6_epsilon", "epsilon", epsilon)
    delta = check_real("corollary6_epsilon", "delta", delta, high=1.0, low_closed=True)
    return epsilon - math.log1p(-delta)


@shared_texts
def gdp_delta(mu: float, epsilon: float) -> float:
    r"""Return the smallest δ for which μ-Gaussian privacy implies (ε, δ)-privacy, rounded up.

    .. math:: F(\mu) = Q\!\left(\frac{\varepsilon}{\mu} - \frac{\mu}{2}\right)
              - e^{\varepsilon} Q\!\left(\frac{\varepsilon}{\mu} + \frac{\mu}{2}\right)

    Both terms carry the same density, so F is computed as φ(x) [m(x) − m(x + μ)] with
    x = ε/μ − μ/2 and Mills' ratio m = Q/φ: no large number is subtracted from another.

    Parameters
    ----------
    %(conversions: mu, epsilon)s

    Returns
    -------
    float
        δ in [0, 1]. It is 0 only for μ = 0: below the smallest double that double is returned.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
    Theorem 8. Dong, Roth and Su, "Gaussian differential privacy", arXiv:1905.02383, Corollary 2.13.

    Examples
    --------
    >>> round(gdp_delta(mu=1.0, epsilon=1.0), 6)
    0.126937
    """
    mu = check_real("gdp_delta", "mu", mu, low_closed=True)
    epsilon = check_real("gdp_delta", "epsilon", epsilon, low_closed=True)
    if mu == 0.0:
        return 0.0
    delta = math.exp(_log_gdp_delta(mu, epsilon)) * (1.0 + _DELTA_UP)
    return min(1.0, math.nextafter(delta, 1.0))


@shared_texts
def gdp_mu(epsilon: float, delta: float) -> float:
    r"""Return the largest μ for which μ-Gaussian privacy implies (ε, δ)-privacy, rounded down.

    .. math:: \mu^*(\varepsilon, \delta) = \max \{\mu : F(\mu) \le \delta\}, \qquad
              F'(\mu) = \varphi(\varepsilon/\mu - \mu/2) > 0

    Parameters
    ----------
    %(conversions: epsilon, delta)s

    Returns
    -------
    float
        The lower (safe) end of the bracket, within 1e-10 of μ* in relative terms for δ ≤ 0.9.

    References
    ----------
    Balle and Wang, ICML 2018, Theorem 8 and Algorithm 1.

    Examples
    --------
    >>> round(gdp_mu(epsilon=1.0, delta=1e-6), 9)
    0.236704381
    """
    epsilon = check_real("gdp_mu", "epsilon", epsilon, low_closed=True)
    delta = check_real("gdp_mu", "delta", delta, high=1.0)
    return _gdp_mu(epsilon, delta)


@lru_cache(maxsize=1024)
def _gdp_mu(epsilon: float, delta: float) -> float:
    target = math.log(delta) - _DELTA_MARGIN
    # F' <= φ(0) and F <= Q(ε/μ − μ/2) each bound F from above, hence μ* from below.
    kappa = -float(ndtri(delta))
    root = math.sqrt(kappa * kappa + 2.0 * epsilon)
    low = max(delta * SQRT_2PI, 2.0 * epsilon / (root + kappa) if epsilon > 0.0 else 0.0)
    low *= 1.0 - 1e-9
    high = 2.0 * low
    while _log_gdp_delta(high, epsilon) <= target:
        low, high = high, 2.0 * high
    return bisect(lambda mu: _log_gdp_delta(mu, epsilon) <= target, low, high)[0]


@shared_texts
def gdp_epsilon(mu: float, delta: float) -> float:
    r"""Return the smallest ε for which μ-Gaussian privacy implies (ε, δ)-privacy, rounded up.

    Parameters
    ----------
    %(conversions: mu, delta)s

    Returns
    -------
    float
        The upper (safe) end of the bracket; 0 if δ alone already covers the loss, infinity if the
        answer is beyond double precision.

    References
    ----------
    Balle and Wang, ICML 2018, Theorem 8.

    Examples
    --------
    >>> round(gdp_epsilon(mu=0.236704381, delta=1e-6), 6)
    1.0
    """
    mu = check_real("gdp_epsilon", "mu", mu, low_closed=True)
    delta = check_real("gdp_epsilon", "delta", delta, high=1.0)
    target = math.log(delta) - _DELTA_MARGIN
    if mu == 0.0 or _log_gdp_delta(mu, 0.0) <= target:
        return 0.0
    # F < Q(ε/μ − μ/2), which is δ at this ε.
    high = (mu * mu / 2.0 - mu * float(ndtri(delta))) * (1.0 + 1e-9)
    if not math.isfinite(high):
        return math.inf
    while _log_gdp_delta(mu, high) > target:
        high *= 2.0
    return bisect(lambda epsilon: _log_gdp_delta(mu, epsilon) > target, 0.0, high)[1]


@shared_texts
def zcdp_rho(mu: float) -> float:
    r"""Return the zero-concentrated parameter of μ-Gaussian privacy, ρ = μ²/2.

    Parameters
    ----------
    %(conversions: mu)s

    Returns
    -------
    float
        ρ: the Rényi divergence of every order α is at most ρ α.

    References
    ----------
    Bun and Steinke, "Concentrated differential privacy", TCC 2016, Proposition 1.6.

    Examples
    --------
    >>> zcdp_rho(0.5)
    0.125
    """
    mu = check_real("zcdp_rho", "mu", mu, low_closed=True)
    return mu * mu / 2.0


@shared_texts
def zcdp_delta(rho: float, epsilon: float) -> float:
    r"""Return a δ for which ρ-zero-concentrated privacy implies (ε, δ)-privacy.

    .. math:: \delta = \min_{\alpha > 1} \frac{e^{(\alpha - 1)(\alpha\rho - \varepsilon)}}{\alpha-1}
              \left(1 - \frac{1}{\alpha}\right)^{\alpha}

    Every α > 1 gives a valid δ, so an inexact minimum is still safe.

    Parameters
    ----------
    %(conversions: rho, epsilon)s

    Returns
    -------
    float
        δ in (0, 1].

    References
    ----------
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy",
    arXiv:2004.00010, Corollary 13.

    Examples
    --------
    >>> gdp_delta(0.5, 2.0) < zcdp_delta(zcdp_rho(0.5), 2.0) < 5 * gdp_delta(0.5, 2.0)
    True
    """
    rho = check_real("zcdp_delta", "rho", rho)
    epsilon = check_real("zcdp_delta", "epsilon", epsilon, low_closed=True)

    def slope(log_excess: float) -> float:
        # The logarithm of δ is convex in α: its derivative has one root.
        alpha = 1.0 + math.exp(log_excess)
        return (2.0 * alpha - 1.0) * rho - epsilon + log_excess - math.log(alpha)

    low, high = -1.0, 1.0
    while slope(low) > 0.0:
        low *= 2.0
    while slope(high) < 0.0:
        high *= 2.0
    log_excess = float(brentq(slope, low, high))
    excess = math.exp(log_excess)
    log_delta = (
        excess * ((1.0 + excess) * rho - epsilon)
        - excess * (math.log1p(1.0 / excess) if excess > 1e-300 else -log_excess)
        - math.log1p(excess)
    )
    # The first term is a difference of larger numbers.
    log_delta += 4.0 * _EPS * excess * ((1.0 + excess) * rho + epsilon)
    delta = math.exp(min(log_delta, 0.0)) * (1.0 + _DELTA_UP)
    return min(1.0, math.nextafter(delta, 1.0))


@shared_texts
def zcdp_epsilon(rho: float, delta: float) -> float:
    r"""Return an ε for which ρ-zero-concentrated privacy implies (ε, δ)-privacy.

    .. math:: \varepsilon = \min_{\alpha > 1} \alpha\rho + \log\!\left(1 - \frac{1}{\alpha}\right)
              + \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}

    Every α > 1 gives a valid ε, so an inexact minimum is still safe. For a Gaussian mechanism
    :func:`gdp_epsilon` is exact and smaller.

    Parameters
    ----------
    %(conversions: rho, delta)s

    Returns
    -------
    float
        ε ≥ 0.

    References
    ----------
    Canonne, Kamath and Steinke, arXiv:2004.00010, Corollary 13.

    Examples
    --------
    >>> gdp_epsilon(0.5, 1e-6) < zcdp_epsilon(zcdp_rho(0.5), 1e-6) < 1.1 * gdp_epsilon(0.5, 1e-6)
    True
    """
    rho = check_real("zcdp_epsilon", "rho", rho)
    delta = check_real("zcdp_epsilon", "delta", delta, high=1.0)
    log_inverse = -math.log(delta)

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        log_alpha = math.log1p(excess)
        return (1.0 + excess) * rho + log_excess - log_alpha + (log_inverse - log_alpha) / excess

    # A convex function over a positive linear one has one minimum, near sqrt(log(1/δ)/ρ).
    centre = 0.5 * math.log(log_inverse / rho)
    best = minimize_scalar(
        bound, bounds=(centre - 20.0, centre + 20.0), method="bounded", options={"xatol": 1e-9}
    )
    # It is a sum of terms of either sign, each off by a few units in the last place.
    excess = math.exp(float(best.x))
    size = (1.0 + excess) * rho + abs(float(best.x)) + math.log1p(excess)
    size += (log_inverse + math.log1p(excess)) / excess
    return max(0.0, float(best.fun) + 16.0 * _EPS * size)


def _log_gdp_delta(mu: float, epsilon: float) -> float:
    """Return log F(μ) for μ > 0, to about 1e-12 in F."""
    x = epsilon / mu - mu / 2.0
    log_density = -0.5 * x * x - math.log(SQRT_2PI)
    if x > 150.0:
        return log_density  # F < φ(x), far below the smallest double
    if mu <= 0.5:
        # m(x) − m(x + μ) as the integral of −m' = 1 − y m(y): a small μ cancels nothing.
        points = x + mu * (_NODES + 0.5)
        return log_density + math.log(mu * float(_NODE_WEIGHTS @ _mills_descent(points)))
    if x < 0.0:
        return math.log(float(ndtr(-x)) - math.exp(log_density) * float(mills(x + mu)))
    return log_density + math.log(float(mills(x)) - float(mills(x + mu)))


def _mills_descent(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return −m'(y) = 1 − y m(y), by its asymptotic series where the difference would cancel."""
    far = np.square(np.maximum(y, 30.0))
    return np.where(y > 30.0, np.polyval(_TAIL, 1.0 / far) / far, 1.0 - y * mills(y))


def bisect(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return neighbouring floats around the point where ``holds`` turns from true to false."""
    middle = 0.5 * (low + high)
    while low < middle < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
        middle = 0.5 * (low + high)
    return low, high
