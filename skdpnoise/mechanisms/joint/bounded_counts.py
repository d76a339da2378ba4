"""Correlated Gaussian noise for counts to which a record adds a bounded number of ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from skdpnoise.mechanisms.additive import AdditiveMechanism, stated
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.joint._mixed import MixedMechanism
from skdpnoise.noises import get_noise
from skdpnoise.privacy import LossBudget, PrivacyGuarantee
from skdpnoise.privacy.checks import Adjacency, check_adjacency, check_count, check_real, check_type
from skdpnoise.privacy.loss import checked_relation
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sensitivity.bounds import bounded_ones, support_sizes

__all__ = ["BoundedCountsMechanism", "bounded_counts"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundedCountsMechanism(MixedMechanism):
    r"""Release counts to which a record adds zeros and ones, with at most k ones.

    .. math:: y = (I - c 1 1^\top) f + z, \qquad
              \hat f = (I - c 1 1^\top)^{-1} y = y + \frac{c}{1 - c d} \, 1 1^\top y

    with independent Gaussian z of one scale. Made by :func:`bounded_counts`. A count's error is

    .. math:: E|\hat f_j - f_j|^p = E|Z|^p \, v^{p/2}, \qquad
              v = \sigma^2 \left(1 + 2 e + d e^2\right), \quad e = \frac{c}{1 - c d}

    **Guarantee.** Neighbours are those of the adjacency; records have at most k ones. The additive
    mechanism within releases y, by exact rational arithmetic, and is calibrated to its l2
    sensitivity, :func:`~skdpnoise.sensitivity.bounded_ones`; the rest is post-processing.

    Parameters
    ----------
    max_ones : int
        k.
    adjacency : {"replace_one", "add_remove"}
        The neighbouring relation.
    mixing : float
        c.
    additive : AdditiveMechanism
        Releases y.

    Raises
    ------
    TypeError
        If a field is of the wrong kind.
    ValueError
        If one is out of range, or the additive mechanism is calibrated to less.

    References
    ----------
    Joseph and Yu, "Some constructions of private, efficient, and optimal K-norm and elliptic
    Gaussian noise", arXiv:2309.15790 (add/remove). Mixing exactly before the noise is ours.

    Examples
    --------
    >>> from skdpnoise.privacy import GaussianLoss
    >>> mechanism = bounded_counts(20, 5, GaussianLoss(1.0))
    >>> round(mechanism.expected_error() / 20, 3)  # independent noise: 5
    4.569
    """

    max_ones: int
    adjacency: Adjacency
    mixing: float
    additive: AdditiveMechanism

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_type(owner, "additive", self.additive, AdditiveMechanism)
        size = self.additive.sensitivity.n_coordinates
        check_adjacency(owner, self.adjacency)
        mixing = check_real(owner, "mixing", self.mixing, low=-math.inf)
        if self.additive.noise != "iid_gaussian" or mixing * size == 1.0:
            raise ValueError(
                f"The 'additive' parameter of {owner} must have 'iid_gaussian' noise, and 'mixing' "
                f"must not be 1/{size}, where it cannot be undone. Got {self.additive.noise!r} and "
                f"{self.mixing!r} instead."
            )
        stated(self, mixing=mixing, max_ones=check_count(owner, "max_ones", self.max_ones))
        needed = bounded_ones(size, self.max_ones, self.adjacency, mixing=mixing)
        self._check_covered(needed, "'max_ones', 'adjacency' and 'mixing'")

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of the noise of one release."""
        size = self.additive.sensitivity.n_coordinates
        inverse = np.eye(size) + self._spread
        return inverse @ inverse * self.additive.standard_deviation**2

    def _mixed(self, row: list[Fraction]) -> list[Fraction]:
        shared = Fraction(self.mixing) * sum(row)
        return [count - shared for count in row]

    def _unmixed(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        noisy += self._spread * noisy.sum(axis=1, keepdims=True)
        return noisy

    def _moments(self, p: float) -> NDArray[np.float64]:
        size = self.additive.sensitivity.n_coordinates
        factor = 1.0 + 2.0 * self._spread + size * self._spread**2
        deviation = float(self.additive.standard_deviation[0]) * math.sqrt(factor)
        return np.full(size, deviation**p * get_noise("gaussian").absolute_moment(p))

    @property
    def _spread(self) -> float:
        return self.mixing / (1.0 - self.mixing * self.additive.sensitivity.n_coordinates)

    def _facts(self) -> str:
        size = self.additive.sensitivity.n_coordinates
        return f"n_coordinates={size}, max_ones={self.max_ones}"


@shared_texts
def bounded_counts(
    n_coordinates: int,
    max_ones: int,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    adjacency: Adjacency | None = None,
    n_releases: int = 1,
) -> BoundedCountsMechanism:
    r"""Return the least Gaussian noise for counts of records that have at most k ones.

    .. math:: \min_c \; \max_t \left(S(t) - (2 c - d c^2) \, t^2\right)
              \left(1 + 2 e + d e^2\right), \qquad e = \frac{c}{1 - c d}

    is the variance of one count for μ = 1: the squared sensitivity of y times what undoing the
    mixing adds; S is that of :func:`~skdpnoise.sensitivity.bounded_ones`. In
    :math:`(1 - c d)^2` the maximum is convex. c = 0 is independent noise, so this is never worse.
    It is the best of all covariances Σ: the constraint v' Σ^{-1} v ≤ μ² is convex in Σ, and the
    mean over all permutations of the counts, under which the changes are symmetric, is aI + b11'.

    Parameters
    ----------
    n_coordinates : int
        d.
    max_ones : int
        k, public, from 1 to d. Records with more ones must be cut first.
    guarantee : PrivacyGuarantee or LossBudget
        What all the releases together may cost: δ > 0, or a Gaussian loss.
    adjacency : {"replace_one", "add_remove"} or None, default=None
        Neighbouring relation; None takes that of the guarantee, or "add_remove" for a loss.
    %(mechanisms: n_releases)s

    Returns
    -------
    BoundedCountsMechanism

    Raises
    ------
    ValueError
        If max_ones exceeds n_coordinates, the adjacency contradicts the guarantee, or Gaussian
        noise cannot give it.

    References
    ----------
    That of :class:`BoundedCountsMechanism`; Lebeda, arXiv:2408.06853 (k = d). The maximum over
    integers t and "replace_one" are ours.

    Examples
    --------
    >>> bounded_counts(20, 10, PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove"))
    BoundedCountsMechanism(n_coordinates=20, max_ones=10, n_releases=1, loss=0.236704-GDP)
    """
    owner = "bounded_counts"
    relation = checked_relation(owner, adjacency, guarantee, "add_remove")
    bounded_ones(n_coordinates, max_ones, relation)  # checks the counts
    mixing = _best_mixing(int(n_coordinates), int(max_ones), relation)
    additive = calibrate(
        "iid_gaussian",
        bounded_ones(n_coordinates, max_ones, relation, mixing=mixing),
        guarantee,
        n_releases=check_count(owner, "n_releases", n_releases),
    )
    return BoundedCountsMechanism(int(max_ones), relation, mixing, additive)


def _best_mixing(n_coordinates: int, max_ones: int, adjacency: Adjacency) -> float:
    """Return c of the least variance, or 0 if none is below that of independent noise."""
    d = n_coordinates
    sums, sizes = np.array(list(support_sizes(d, max_ones, adjacency).items()), dtype=np.float64).T

    def variance(z: float) -> float:
        # z = (1 - c d)^2: 2c - d c^2 = (1 - z)/d and 1 + 2e + d e^2 = 1 + (1/z - 1)/d.
        squared: float = (sizes - (1.0 - z) / d * sums**2).max()
        return squared * (1.0 + (1.0 / z - 1.0) / d)

    best = minimize_scalar(variance, bounds=(1e-9, 1.0 + d), options={"xatol": 1e-12})
    if best.fun > variance(1.0) * (1.0 - 1e-9):
        return 0.0
    return (1.0 - math.sqrt(float(best.x))) / d
