"""Pure privacy for vectors that one record moves within a ball: K-norms, and l1 staircases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from skdpnoise._utils.checks import complaint
from skdpnoise._utils.sealed import stated
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.grid_sizes import check_precision, norm_of_rounding
from skdpnoise.mechanisms.requests import number_of
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.privacy import (
    LossBudget,
    PrivacyGuarantee,
    PrivacyLoss,
    PureLoss,
    check_count,
    check_real,
)
from skdpnoise.sampling import RandomWords, balls
from skdpnoise.sampling.lazy import CAPACITY
from skdpnoise.sensitivity import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

_STEPS = 24  # rounding the value costs at most 2**-24 of the guarantee, or of the shells' width
_FEWEST_BITS, _MOST_BITS = 16, 44
_MOST_ADDITIVE_BITS = 52
_GAMMA_BITS = 32  # gamma is a multiple of 2**-32
_MOST_LEVELS = 1 << 16
_MOST_COORDINATES = 1 << 12
_MARGIN = 1e-12  # floating-point error of a quotient, with room to spare
_SMALLEST, _LARGEST = 1e-280, 1e280


@shared_texts
@dataclass(frozen=True, slots=True, repr=False)
class KNormMechanism(VectorMechanism):
    r"""Release a vector with noise whose density falls with its Euclidean or largest-entry norm.

    .. math:: f(x) \propto e^{-|x|_q / b}, \qquad q \in \{2, \infty\}

    The error of one coordinate is

    .. math:: E|X_j|^p = b^p \, E\chi_{K+1}^p \, E|G|^p \;(q = 2), \qquad
              b^p \, \frac{\Gamma(K + 1 + p)}{(p + 1) \, \Gamma(K + 1)} \;(q = \infty)

    so the total variance is K (K + 1) b² or K (K + 1)(K + 2) b²/3.

    **Guarantee.** Neighbours are data sets whose values differ by at most Δ in the q-norm, *as
    computed*. Rounding both to integer grid steps adds at most one grid step per coordinate,
    K^{1/q} in the norm. So by the triangle inequality no density changes by more than the factor
    :math:`e^{(\Delta + K^{1/q} 2^{-B} b)/b}`; rounding the noise as well is post-processing. The
    charge covers ``n_releases`` adaptive releases, by basic composition.

    Parameters
    ----------
    norm : float
        q, 2 or infinity.
    radius : float
        Δ, in the units of the value.
    %(mechanisms: n_coordinates)s
    scale : float
        b, in the units of the value.
    bits : int
        B: the scale spans 2**bits grid steps.
    %(mechanisms: n_releases)s

    References
    ----------
    Hardt and Talwar, "On the geometry of differential privacy", STOC 2010, Section 4. Awan and
    Slavković, "Structure and sensitivity in differential privacy: comparing K-norm mechanisms",
    JASA 2021.

    Examples
    --------
    >>> mechanism = k_norm(2, 1.0, 10, PrivacyGuarantee(epsilon=1.0))
    >>> round(mechanism.expected_error(), 3)
    110.0
    """

    norm: float
    radius: float
    n_coordinates: int
    scale: float = field()
    bits: int
    n_releases: int = 1

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if self.norm not in (2.0, math.inf):
            raise ValueError(complaint(owner, "norm", "be 2 or inf", repr(self.norm)))
        n_coordinates = check_count(owner, "n_coordinates", self.n_coordinates)
        stated(self, norm=float(self.norm), n_coordinates=n_coordinates)
        _check_units(self, "scale", _most_bits(n_coordinates))

    noise = "k_norm"

    @property
    def sensitivity(self) -> SensitivityProfile:
        """Bounds on one record's change: Δ per coordinate, and in the Euclidean norm for q = 2."""
        l2 = self.radius if self.norm == 2.0 else None
        return SensitivityProfile(np.full(self.n_coordinates, self.radius), l2=l2)

    @property
    def grid_size(self) -> NDArray[np.float64]:
        return np.full(self.n_coordinates, math.ldexp(self.scale, -self.bits))

    @property
    def standard_deviation(self) -> NDArray[np.float64]:
        """Standard deviation of the noise of each coordinate, in the units of the value."""
        return np.sqrt(self._moments(2.0))

    def privacy_loss(self) -> PureLoss:
        rounding = norm_of_rounding(self.norm, self.n_coordinates, self.bits)
        each = rounded_up(self.radius / self.scale + rounding)
        return PureLoss(rounded_up(each * self.n_releases))

    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        draw = balls.rounded_euclidean if self.norm == 2.0 else balls.rounded_cube
        return draw(rng, count, self.n_coordinates, self.bits)

    def _moments(self, p: float) -> NDArray[np.float64]:
        size = self.n_coordinates + 1
        if self.norm == 2.0:
            log_moment = _log_chi_moment(p, size) + _log_chi_moment(p, 1)
        else:
            log_moment = math.lgamma(size + p) - math.lgamma(size) - math.log1p(p)
        return np.full(self.n_coordinates, self.scale**p * math.exp(log_moment))

    def _facts(self) -> str:
        return (
            f"norm={self.norm:g}, radius={self.radius:.6g}, n_coordinates={self.n_coordinates}, "
            f"scale={self.scale:.6g}"
        )


@shared_texts
def k_norm(
    norm: float,
    radius: float,
    n_coordinates: int,
    guarantee: PrivacyGuarantee | PureLoss,
    *,
    n_releases: int = 1,
) -> KNormMechanism | AdditiveMechanism:
    r"""Return the K-norm mechanism for vectors that one record moves by at most Δ in a norm.

    .. math:: f(x) \propto e^{-\varepsilon |x|_q / \Delta}

    with the rounding of the value included in ε. For q = 1 it is independent Laplace noise. With
    bounds per coordinate "inid_laplace" may be better.

    Parameters
    ----------
    norm : {1, 2, inf}
        q of the bound on the change.
    radius : float
        Δ, positive and public, under the neighbouring relation wanted.
    %(mechanisms: n_coordinates)s
    guarantee : PrivacyGuarantee or PureLoss
        Most that all releases together may cost. A δ is not used: the result has δ = 0.
    %(mechanisms: n_releases)s

    Returns
    -------
    KNormMechanism or AdditiveMechanism
        The latter for q = 1.

    Examples
    --------
    >>> k_norm(2, 1.0, 100, PrivacyGuarantee(epsilon=1.0))
    KNormMechanism(norm=2, radius=1, n_coordinates=100, scale=1, n_releases=1, loss=1-DP)
    """
    norm = check_real("k_norm", "norm", norm, high_closed=True)
    if norm not in (1.0, 2.0, math.inf):
        remedy = "A ball of another norm lies within one of these."
        raise ValueError(complaint("k_norm", "norm", "be 1, 2 or inf", repr(norm), remedy))
    radius = check_real("k_norm", "radius", radius)
    n_coordinates = check_count("k_norm", "n_coordinates", n_coordinates)
    n_releases = check_count("k_norm", "n_releases", n_releases)
    epsilon = _epsilon_of_each("k_norm", guarantee, n_releases)
    if norm == 1.0:
        profile = SensitivityProfile(np.full(n_coordinates, radius), l1=radius)
        whole = PureLoss(epsilon * n_releases)
        return calibrate("iid_laplace", profile, whole, n_releases=n_releases)
    needed = math.ceil(_STEPS + math.log2(n_coordinates) / norm - math.log2(epsilon))
    bits = min(max(needed, _FEWEST_BITS), _most_bits(n_coordinates))
    available = epsilon - norm_of_rounding(norm, n_coordinates, bits)
    if available <= 0.0:
        raise ValueError(
            "The guarantee asked of k_norm is too small for its integers: the rounding of the "
            f"value alone would cost {epsilon - available:g} of {epsilon:g}. Ask for a larger "
            "epsilon, or for fewer releases."
        )
    scale = radius / available
    mechanism = KNormMechanism(norm, radius, n_coordinates, scale, bits, n_releases)
    while mechanism.privacy_loss().pure_epsilon > epsilon * n_releases:
        mechanism = replace(mechanism, scale=mechanism.scale * (1.0 + 1e-12))
    return mechanism


def calibrate_ball(
    noise: str,
    sensitivity: SensitivityProfile,
    radius: float,
    loss: LossBudget,
    *,
    n_releases: int = 1,
) -> KNormMechanism | AdditiveMechanism:
    """Return noise for sums in a ball: that of the name, or for pure losses of the K-norm."""
    if isinstance(loss, PureLoss):
        return k_norm(2, radius, sensitivity.n_coordinates, loss, n_releases=n_releases)
    return calibrate(noise, sensitivity, loss, n_releases=n_releases)


def with_more_bits(
    mechanism: KNormMechanism | AdditiveMechanism, bits: int
) -> KNormMechanism | AdditiveMechanism:
    """Return the mechanism on a grid that is finer, if bits are more, as far as 64 bits allow."""
    most = _MOST_ADDITIVE_BITS
    if isinstance(mechanism, KNormMechanism):
        most = _most_bits(mechanism.n_coordinates)
    return replace(mechanism, bits=min(max(bits, mechanism.bits), most))


def _most_bits(n_coordinates: int) -> int:
    """Return the most binary places at which samples fit 64 bits."""
    return min(_MOST_BITS, balls.most_places(n_coordinates + 1) - 1)


def _log_chi_moment(p: float, size: int) -> float:
    return 0.5 * p * math.log(2.0) + math.lgamma(0.5 * (size + p)) - math.lgamma(0.5 * size)


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

    It is a mixture of uniform balls: that of radius (j + γ) w has weight
    :math:`\propto e^{-j\varepsilon} (j + \gamma)^K`. The error of one coordinate is

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
    %(mechanisms: n_releases)s

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
        step = check_real(owner, "step", self.step)
        n_coordinates = check_count(owner, "n_coordinates", self.n_coordinates)
        gamma = check_real(owner, "gamma", self.gamma, high=1.0, high_closed=True)
        if not math.ldexp(gamma, _GAMMA_BITS).is_integer():
            must = f"be a multiple of 2**-{_GAMMA_BITS}"
            raise ValueError(complaint(owner, "gamma", must, repr(self.gamma)))
        _check_table(owner, n_coordinates, step)
        stated(self, n_coordinates=n_coordinates, step=step, gamma=gamma)
        _check_units(self, "width", _bits(_MOST_COORDINATES))

    noise = "l1_staircase"

    @property
    def sensitivity(self) -> SensitivityProfile:
        """Bounds on one record's change: Δ per coordinate and in the l1 norm."""
        return SensitivityProfile(np.full(self.n_coordinates, self.radius), l1=self.radius)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise of the same ε and width: w/ε."""
        return self.width / self.step

    @property
    def grid_size(self) -> NDArray[np.float64]:
        return np.full(self.n_coordinates, math.ldexp(self.width, -self.bits))

    def privacy_loss(self) -> PureLoss:
        rounding = norm_of_rounding(1.0, self.n_coordinates, self.bits)
        widths = math.ceil(rounded_up(self.radius / self.width + rounding))
        return PureLoss(self.step * widths).compose(self.n_releases)

    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        least = int(self.gamma * 2**_GAMMA_BITS)
        radii = balls.Radii(_cumulative(self.n_coordinates, self.step, least), least, _GAMMA_BITS)
        return balls.rounded_simplex_levels(rng, count, self.n_coordinates, self.bits, radii)

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
    less, if all that is known of a change is its l1 norm. The gain over independent Laplace noise
    grows with ε and shrinks with K.

    Parameters
    ----------
    n_coordinates : int
        K, at most 4096.
    radius : float
        Δ, positive and public, under the neighbouring relation wanted.
    guarantee : PrivacyGuarantee or PureLoss
        Most that all releases together may cost. A δ is not used: the result has δ = 0.
    gamma : float or None, default=None
        γ in (0, 1], rounded to a positive multiple of 2**-32.
    %(mechanisms: n_releases)s

    Raises
    ------
    ValueError
        If the table of radii would be too long (ε very small: nothing to gain over Laplace noise).

    Examples
    --------
    >>> l1_staircase(2, 1.0, PrivacyGuarantee(epsilon=1.0))
    L1StaircaseMechanism(n_coordinates=2, radius=1, gamma=0.667084, n_releases=1, loss=1-DP)
    """
    owner = "l1_staircase"
    n_coordinates = check_count(owner, "n_coordinates", n_coordinates)
    radius = check_real(owner, "radius", radius)
    n_releases = check_count(owner, "n_releases", n_releases)
    step = _epsilon_of_each(owner, guarantee, n_releases)
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


def _epsilon_of_each(owner: str, guarantee: object, n_releases: int) -> float:
    """Return an ε of one release of which ``n_releases`` are at most the guarantee, with δ = 0."""
    whole = 0.0
    if isinstance(guarantee, PrivacyGuarantee | PureLoss):
        whole = number_of(guarantee)
    if whole == 0.0:
        kind = ValueError if isinstance(guarantee, PrivacyLoss) else TypeError
        must = "be a PrivacyGuarantee or a PureLoss with a positive epsilon"
        remedy = "Calibrate Gaussian noise to another loss." if kind is ValueError else ""
        raise kind(complaint(owner, "guarantee", must, repr(guarantee), remedy))
    each = whole / n_releases
    while each * n_releases > whole:
        each *= 1.0 - _MARGIN
    return each


def _check_units(
    mechanism: KNormMechanism | L1StaircaseMechanism, name: str, most_bits: int
) -> None:
    """Check and keep the fields that both have; the unit of that name must fit doubles."""
    owner = type(mechanism).__name__
    radius = check_real(owner, "radius", mechanism.radius)
    unit = check_real(owner, name, getattr(mechanism, name))
    n_releases = check_count(owner, "n_releases", mechanism.n_releases)
    bits = check_count(owner, "bits", mechanism.bits, low=0, high=most_bits)
    check_precision(owner, name, unit, bits, (_SMALLEST, _LARGEST))
    stated(mechanism, radius=radius, n_releases=n_releases, bits=bits, **{name: unit})
