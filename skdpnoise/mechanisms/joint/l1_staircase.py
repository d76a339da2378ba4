"""Staircase noise on the l1 ball: density flat on shells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from skdpnoise.mechanisms.additive import stated
from skdpnoise.mechanisms.joint._pure import check_units, epsilon_of_each
from skdpnoise.mechanisms.quanta import norm_of_rounding
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.privacy import PrivacyGuarantee, PureLoss, check_count, check_real
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.balls import Radii, rounded_simplex_levels
from skdpnoise.sampling.lazy import CAPACITY
from skdpnoise.sensitivity.worst_cases import rounded_up

__all__ = ["L1StaircaseMechanism", "l1_staircase"]

_STEPS = 24  # rounding the value widens the shells by at most 2**-24
_GAMMA_BITS = 32  # gamma is a multiple of 2**-32
_MOST_LEVELS = 1 << 16
_MOST_COORDINATES = 1 << 12


@shared_texts
@dataclass(frozen=True, slots=True, repr=False)
class L1StaircaseMechanism(VectorMechanism):
    r"""Release a vector with noise whose density is flat on shells of the l1 ball.

    .. math:: f(x) \propto e^{-k \varepsilon} \;\text{ if } |x|_1 \in [k, k + \gamma) \, w, \qquad
              e^{-(k + 1)\varepsilon} \;\text{ if } |x|_1 \in [k + \gamma, k + 1) \, w

    for k = 0, 1, ... and the width w.

    **Guarantee.** Neighbours are data sets whose values differ by at most Δ in the l1 norm, *as
    computed*. Rounding both to integer grid steps adds at most one grid step per coordinate, K in
    all, and w is at least Δ plus that. The density is a non-increasing function of :math:`|x|_1`
    that falls by exactly :math:`e^{-\varepsilon}` over a width, so by the triangle inequality it
    changes by at most :math:`e^{\varepsilon}` between neighbours. Rounding the noise is
    post-processing. The charge covers ``n_releases`` adaptive releases, by basic composition.

    Such a density is a mixture of uniform balls: that of radius (j + γ) w has weight
    :math:`\propto e^{-j\varepsilon} (j + \gamma)^K`, computed to 256 binary places.

    The error of one coordinate is

    .. math:: E|X_i|^p = w^p \frac{\Gamma(p + 1) \, \Gamma(K + 1)}{\Gamma(K + 1 + p)}
              \frac{\sum_j e^{-j\varepsilon} (j + \gamma)^{K + p}}
                   {\sum_j e^{-j\varepsilon} (j + \gamma)^{K}}

    Parameters
    ----------
    %(mechanisms: n_coordinates)s
    radius : float
        Δ, in the units of the value.
    width : float
        w, in the same units.
    step : float
        ε of one release.
    gamma : float
        γ in (0, 1], a multiple of 2**-32.
    bits : int
        The width spans 2**bits grid steps.
    n_releases : int, default=1
        Number of releases that are charged for.

    Raises
    ------
    TypeError
        If a field is of the wrong kind.
    ValueError
        If one is out of range.

    References
    ----------
    Geng, Kairouz, Oh and Viswanath, "The staircase mechanism in differential privacy", IEEE Journal
    of Selected Topics in Signal Processing 2015 (the density). Kulesza, Suresh and Wang, "General
    staircase mechanisms for optimal differential privacy", AISTATS 2025 (optimal in any dimension).

    Examples
    --------
    >>> mechanism = l1_staircase(2, 1.0, PrivacyGuarantee(epsilon=3.0))
    >>> round(mechanism.expected_error(p=1), 4)  # independent Laplace noise: 0.6667
    0.5856
    """

    n_coordinates: int
    radius: float
    width: float
    step: float
    gamma: float
    bits: int
    n_releases: int = 1

    def __post_init__(self) -> None:
        owner = type(self).__name__
        facts: dict[str, float] = {
            name: check_real(owner, name, getattr(self, name))
            for name in ("radius", "width", "step")
        }
        for name in ("n_coordinates", "n_releases"):
            facts[name] = check_count(owner, name, getattr(self, name))
        gamma = check_real(owner, "gamma", self.gamma, high=1.0, high_closed=True)
        if not math.ldexp(gamma, _GAMMA_BITS).is_integer():
            raise ValueError(
                f"The 'gamma' parameter of {owner} must be a multiple of 2**-{_GAMMA_BITS}. Got "
                f"{self.gamma!r} instead."
            )
        bits = check_count(owner, "bits", self.bits, low=0, high=_bits(_MOST_COORDINATES))
        stated(self, **facts, gamma=gamma, bits=bits)
        _check_table(owner, self.n_coordinates, self.step)
        check_units(owner, "width", self.width, bits)

    @property
    def grid_size(self) -> NDArray[np.float64]:
        """Size of one integer step of each coordinate, shape (n_coordinates,)."""
        return np.full(self.n_coordinates, math.ldexp(self.width, -self.bits))

    def privacy_loss(self) -> PureLoss:
        rounding = norm_of_rounding(1.0, self.n_coordinates, self.bits)
        widths = math.ceil(rounded_up(self.radius / self.width + rounding))
        return PureLoss(self.step * widths).compose(self.n_releases)

    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        least = int(self.gamma * 2**_GAMMA_BITS)
        radii = Radii(_cumulative(self.n_coordinates, self.step, least), least, _GAMMA_BITS)
        return rounded_simplex_levels(rng, count, self.n_coordinates, self.bits, radii)

    def _moments(self, p: float) -> NDArray[np.float64]:
        size = self.n_coordinates
        spacing = math.lgamma(p + 1.0) + math.lgamma(size + 1.0) - math.lgamma(size + 1.0 + p)
        radius = _radius_moment(size, self.step, self.gamma, p)
        return np.full(size, math.exp(spacing) * radius * self.width**p)

    def _facts(self) -> str:
        return (
            f"n_coordinates={self.n_coordinates}, radius={self.radius:.6g}, gamma={self.gamma:.6g}"
        )


@shared_texts
def l1_staircase(
    n_coordinates: int,
    radius: float,
    guarantee: PrivacyGuarantee | PureLoss,
    *,
    gamma: float | None = None,
    n_releases: int = 1,
) -> L1StaircaseMechanism:
    r"""Return staircase noise for vectors that one record moves by at most Δ in the l1 norm.

    .. math:: \gamma^* = \arg\min_\gamma
              \frac{\sum_j e^{-j\varepsilon} (j + \gamma)^{K + 1}}
                   {\sum_j e^{-j\varepsilon} (j + \gamma)^{K}}

    unless γ is given, which is the least mean absolute error. No additive noise of the same ε has
    less, if all that is known of a change is its l1 norm; with bounds per coordinate
    "inid_laplace" may. The gain over independent Laplace noise grows with ε and shrinks with K.

    Parameters
    ----------
    n_coordinates : int
        K, at most 4096.
    radius : float
        Δ, the most that one record's change moves the value in the l1 norm, positive and public,
        under the neighbouring relation wanted.
    guarantee : PrivacyGuarantee or PureLoss
        What all the releases together may cost. A δ is not used: the result has δ = 0.
    gamma : float or None, default=None
        γ in (0, 1], rounded to a positive multiple of 2**-32.
    %(mechanisms: n_releases)s

    Returns
    -------
    L1StaircaseMechanism

    Raises
    ------
    %(mechanisms: TypeError)s
    ValueError
        If one is out of range, the table of radii would be too long (ε very small: there is then
        nothing to gain over Laplace noise), or magnitudes are beyond double precision.

    References
    ----------
    Those of :class:`L1StaircaseMechanism`.

    Examples
    --------
    >>> l1_staircase(2, 1.0, PrivacyGuarantee(epsilon=1.0))
    L1StaircaseMechanism(n_coordinates=2, radius=1, gamma=0.667084, n_releases=1, loss=1-DP)
    """
    owner = "l1_staircase"
    n_coordinates = check_count(owner, "n_coordinates", n_coordinates)
    radius = check_real(owner, "radius", radius)
    n_releases = check_count(owner, "n_releases", n_releases)
    step = epsilon_of_each(owner, guarantee, n_releases)
    _check_table(owner, n_coordinates, step)
    if gamma is None:
        gamma = _best_gamma(n_coordinates, step)
    else:
        gamma = check_real(owner, "gamma", gamma, high=1.0, high_closed=True)
    gamma = math.ldexp(max(1, round(math.ldexp(gamma, _GAMMA_BITS))), -_GAMMA_BITS)
    bits = _bits(n_coordinates)
    width = radius / (1.0 - norm_of_rounding(1.0, n_coordinates, bits)) * (1.0 + 1e-12)
    return L1StaircaseMechanism(n_coordinates, radius, width, step, gamma, bits, n_releases)


def _bits(n_coordinates: int) -> int:
    """Return the binary places of the width at which rounding the value costs next to nothing."""
    return _STEPS + math.ceil(math.log2(n_coordinates))


def _check_table(owner: str, n_coordinates: int, step: float) -> None:
    """Refuse noise whose table of radii would be too long."""
    if n_coordinates > _MOST_COORDINATES or _n_levels(n_coordinates, step) > _MOST_LEVELS:
        raise ValueError(
            f"The epsilon and the 'n_coordinates' parameter of {owner} ask for {step:g} per "
            f"release in {n_coordinates} coordinates, whose table of radii is too long. Use "
            "Laplace noise, k_norm(1, ...), which is as good there."
        )


def _log_weight(n_coordinates: int, step: float, radius: ArrayLike) -> NDArray[np.float64]:
    """Return log of e^{-radius ε} radius^K, which is that of a ball's weight up to a constant."""
    radius = np.asarray(radius, dtype=np.float64)
    return np.asarray(n_coordinates * np.log(radius) - radius * step, dtype=np.float64)


def _n_levels(n_coordinates: int, step: float) -> int:
    """Return a number of levels beyond which all weights together are below 2**-CAPACITY."""
    # The weights peak at K/ε. Where their logarithm falls with a slope of -ε/2 or more, those that
    # follow are a geometric series of at most 2/ε + 1 terms' worth.
    peak = max(n_coordinates / step, 1.0)
    highest = float(_log_weight(n_coordinates, step, peak))
    room = CAPACITY * math.log(2.0) + math.log(2.0 / step + 1.0) + 5.0
    level = 2.0 * peak + 1.0
    while float(_log_weight(n_coordinates, step, level)) > highest - room - step:
        level *= 1.25
    return math.ceil(min(level, 2.0**60))


def _radius_moment(n_coordinates: int, step: float, gamma: float, p: float) -> float:
    """Return the mean of (j + γ)^p under the weights of the balls."""
    radius = np.arange(_n_levels(n_coordinates, step)) + gamma
    weight = _log_weight(n_coordinates, step, radius)
    weight = np.exp(weight - weight.max())
    return float(weight @ radius**p / weight.sum())


@lru_cache(maxsize=256)
def _best_gamma(n_coordinates: int, step: float) -> float:
    """Return the γ of the least mean radius: the best of a grid, refined."""

    def mean(gamma: float) -> float:
        return _radius_moment(n_coordinates, step, gamma, 1.0)

    grid = np.linspace(0.0, 1.0, 17)[1:]
    best = float(grid[np.argmin([mean(gamma) for gamma in grid])])
    bounds = (max(best - 1.0 / 16.0, 2.0**-_GAMMA_BITS), min(best + 1.0 / 16.0, 1.0))
    return float(minimize_scalar(mean, bounds=bounds, method="bounded", options={"xatol": 1e-13}).x)


@lru_cache(maxsize=16)
def _cumulative(n_coordinates: int, step: float, first: int) -> tuple[int, ...]:
    """Return P(0) + ... + P(j) out of 2**CAPACITY for every level but the last."""
    # In integers throughout: powers are exact, and exponentials have so many places that the
    # smallest weight that counts is known to 64 places more than are returned.
    n_levels = _n_levels(n_coordinates, step)
    places = CAPACITY + 96 + math.ceil(n_levels * step / math.log(2.0))
    with localcontext() as context:
        context.prec = math.ceil(places / 3.0) + 40
        ratio = int((-Decimal(step)).exp() * 2**places)
    decay, weights = 1 << places, []
    # Only ratios count: the largest weight keeps about 400 places.
    radius = np.arange(n_levels) + math.ldexp(first, -_GAMMA_BITS)
    largest = float(_log_weight(n_coordinates, step, radius).max()) / math.log(2.0)
    dropped = int(places + n_coordinates * _GAMMA_BITS + largest) - CAPACITY - 144
    for level in range(n_levels):
        weight = decay * ((level << _GAMMA_BITS) + first) ** n_coordinates
        weights.append(weight >> dropped if dropped > 0 else weight << -dropped)
        decay = decay * ratio >> places
    total = sum(weights)
    cumulative = [(partial << CAPACITY) // total for partial in accumulate(weights)]
    return tuple(cumulative[:-1])
