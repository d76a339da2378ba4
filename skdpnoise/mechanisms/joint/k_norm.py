"""Noise whose density falls with a norm of the whole vector: the K-norm mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism, stated
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.joint._pure import check_units, epsilon_of_each
from skdpnoise.mechanisms.quanta import norm_of_rounding
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.privacy import PrivacyGuarantee, PureLoss, check_count, check_real
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.balls import most_places, rounded_cube, rounded_euclidean
from skdpnoise.sensitivity import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

__all__ = ["KNormMechanism", "k_norm"]

_STEPS = 24  # rounding the value costs at most 2**-24 of the guarantee
_FEWEST_BITS, _MOST_BITS = 16, 44


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
    Hardt and Talwar, "On the geometry of differential privacy", STOC 2010, Section 4. Awan and
    Slavković, "Structure and sensitivity in differential privacy: comparing K-norm mechanisms",
    JASA 2021.

    Examples
    --------
    >>> mechanism = k_norm(2, 1.0, 10, PrivacyGuarantee(epsilon=1.0))
    >>> mechanism.release(np.zeros(10), random_state=0).shape
    (10,)
    >>> round(mechanism.expected_error(), 3)
    110.0
    """

    norm: float
    radius: float
    n_coordinates: int
    scale: float
    bits: int
    n_releases: int = 1

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if self.norm not in (2.0, math.inf):
            raise ValueError(
                f"The 'norm' parameter of {owner} must be 2 or inf. Got {self.norm!r} instead."
            )
        facts: dict[str, float] = {
            name: check_real(owner, name, getattr(self, name)) for name in ("radius", "scale")
        }
        for name in ("n_coordinates", "n_releases"):
            facts[name] = check_count(owner, name, getattr(self, name))
        most = _most_bits(int(facts["n_coordinates"]))
        bits = check_count(owner, "bits", self.bits, low=0, high=most)
        stated(self, **facts, norm=float(self.norm), bits=bits)
        check_units(owner, "scale", self.scale, bits)

    @property
    def grid_size(self) -> NDArray[np.float64]:
        """Size of one integer step of each coordinate, shape (n_coordinates,)."""
        return np.full(self.n_coordinates, math.ldexp(self.scale, -self.bits))

    def privacy_loss(self) -> PureLoss:
        rounding = norm_of_rounding(self.norm, self.n_coordinates, self.bits)
        each = rounded_up(self.radius / self.scale + rounding)
        return PureLoss(rounded_up(each * self.n_releases))

    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        draw = rounded_euclidean if self.norm == 2.0 else rounded_cube
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

    with the rounding of the value included in ε. For q = 1 it is independent Laplace noise.
    Compare with "inid_laplace" where there are bounds per coordinate: a box that is longer in some
    directions is not a ball.

    Parameters
    ----------
    norm : {1, 2, inf}
        q: what the change is bounded in.
    radius : float
        Δ, the most that one record's change moves the value in that norm, positive and public,
        under the neighbouring relation wanted.
    %(mechanisms: n_coordinates)s
    guarantee : PrivacyGuarantee or PureLoss
        What all the releases together may cost. A δ is not used: the result has δ = 0.
    %(mechanisms: n_releases)s

    Returns
    -------
    KNormMechanism or AdditiveMechanism
        The latter for q = 1.

    Raises
    ------
    %(mechanisms: TypeError)s
    ValueError
        If one is out of range, or magnitudes are beyond double precision.

    References
    ----------
    Those of :class:`KNormMechanism`.

    Examples
    --------
    >>> k_norm(2, 1.0, 100, PrivacyGuarantee(epsilon=1.0))
    KNormMechanism(norm=2, radius=1, n_coordinates=100, scale=1, n_releases=1, loss=1-DP)
    """
    norm = check_real("k_norm", "norm", norm, high_closed=True)
    if norm not in (1.0, 2.0, math.inf):
        raise ValueError(
            f"The 'norm' parameter of k_norm must be 1, 2 or inf. Got {norm!r} instead. A ball of "
            "another norm lies within one of these."
        )
    radius = check_real("k_norm", "radius", radius)
    n_coordinates = check_count("k_norm", "n_coordinates", n_coordinates)
    n_releases = check_count("k_norm", "n_releases", n_releases)
    epsilon = epsilon_of_each("k_norm", guarantee, n_releases)
    if norm == 1.0:
        profile = SensitivityProfile(np.full(n_coordinates, radius), l1=radius)
        return calibrate(
            "iid_laplace", profile, PureLoss(epsilon * n_releases), n_releases=n_releases
        )
    most = _most_bits(n_coordinates)
    needed = math.ceil(_STEPS + math.log2(n_coordinates) / norm - math.log2(epsilon))
    bits = min(max(needed, _FEWEST_BITS), most)
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


def _most_bits(n_coordinates: int) -> int:
    """Return the binary places at which draws fit 64 bits."""
    return min(_MOST_BITS, most_places(n_coordinates + 1) - 1)


def _log_chi_moment(p: float, size: int) -> float:
    """Return log E|N(0, I)|^p in so many dimensions."""
    return 0.5 * p * math.log(2.0) + math.lgamma(0.5 * (size + p)) - math.lgamma(0.5 * size)
