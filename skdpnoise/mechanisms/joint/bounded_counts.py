"""Correlated Gaussian noise for counts to which a record adds a bounded number of ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from skdpnoise.mechanisms.additive import AdditiveMechanism, check_covered
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.values import checked_rows, exact_release, total_weight
from skdpnoise.noises import get_noise
from skdpnoise.privacy import (
    Adjacency,
    LossBudget,
    PrivacyGuarantee,
    PrivacyLoss,
    check_adjacency,
    check_count,
    check_real,
)
from skdpnoise.privacy.checks import check_type
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity.joint import bounded_ones, support_sizes

__all__ = ["BoundedCountsMechanism", "bounded_counts"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundedCountsMechanism:
    r"""Release counts to which a record adds zeros and ones, with at most k ones.

    .. math:: y = (I - c 1 1^\top) f + z, \qquad
              \hat f = (I - c 1 1^\top)^{-1} y = y + \frac{c}{1 - c d} \, 1 1^\top y

    with independent Gaussian z of one scale. Made by :func:`bounded_counts`.

    **Guarantee.** Neighbours are those of the adjacency; records have at most k ones. The additive
    mechanism within releases y and is calibrated to the exact l2 sensitivity of y,
    :func:`~skdpnoise.sensitivity.joint.bounded_ones`; the rest is post-processing. y is
    computed and rounded to quanta by exact rational arithmetic.

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
    >>> mechanism = bounded_counts(3, 2, PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove"))
    >>> mechanism.release([10, 20, 30], random_state=0).shape
    (3,)
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
        needed = bounded_ones(size, self.max_ones, self.adjacency, mixing=mixing)
        check_covered(owner, self.additive, needed, "'max_ones', 'adjacency' and 'mixing'")

    @property
    def n_releases(self) -> int:
        """Number of releases that are charged for."""
        return self.additive.n_releases

    @property
    def quantum(self) -> NDArray[np.float64]:
        """Size of one integer step of what is drawn: of y, shape (n_coordinates,)."""
        return self.additive.quantum

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of the noise of one release."""
        size = self.additive.sensitivity.n_coordinates
        inverse = np.eye(size) + self._spread
        covariance: NDArray[np.float64] = inverse @ inverse * self.additive.standard_deviation**2
        return covariance

    def privacy_loss(self) -> PrivacyLoss:
        """Return what ``n_releases`` releases cost together.

        Returns
        -------
        PrivacyLoss

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss
        >>> print(bounded_counts(3, 2, GaussianLoss(0.5)).privacy_loss())
        0.5-GDP
        """
        return self.additive.privacy_loss()

    def sample(
        self, words: RandomWords, n_draws: int | None = None, *, first: int | None = None
    ) -> NDArray[np.int64]:
        """Return the noise z of consecutive releases, in quanta.

        Parameters
        ----------
        words : RandomWords
            Source of randomness.
        n_draws : int or None, default=None
            Number of releases; None is all of them, from ``first`` on.
        first : int or None, default=None
            Index of the first release, counted from 0. All releases have the same noise: it is
            only checked.

        Returns
        -------
        ndarray of int64, shape (n_draws, n_coordinates)

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss
        >>> from skdpnoise.sampling import random_words
        >>> bounded_counts(3, 2, GaussianLoss(0.5)).sample(random_words(0)).shape
        (1, 3)
        """
        return self.additive.sample(words, n_draws, first=first)

    def release(
        self, value: ArrayLike, random_state: Any = None, *, first: int | None = None
    ) -> NDArray[np.float64]:
        """Return the counts with noise added: what may be made public.

        Parameters
        ----------
        value : array-like of shape (n_coordinates,) or (m, n_coordinates)
            The counts of each of m ≤ ``n_releases`` releases.
        random_state : None, int, numpy generator or RandomWords, default=None
            None draws from the operating system's cryptographic source. Anything else is
            reproducible, and gives no privacy against those who know it.
        first : int or None, default=None
            Index of the first release that this call makes, counted from 0. All releases have the
            same noise: it is only checked.

        Returns
        -------
        ndarray of the shape of ``value``

        Raises
        ------
        TypeError
            If the value is not an array of real numbers.
        ValueError
            If it is not finite, or has the wrong shape, or is not charged for.

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss
        >>> bounded_counts(3, 2, GaussianLoss(0.5)).release([5, 7, 9], random_state=0).shape
        (3,)
        """
        size = self.additive.sensitivity.n_coordinates
        rows = checked_rows(type(self).__name__, value, size, self.n_releases, first)
        c = Fraction(self.mixing)

        def parts(row: list[Fraction]) -> list[Fraction]:
            shared = c * sum(row)
            return [count - shared for count in row]

        released = exact_release(self.additive, rows, parts, random_state, first)
        released += self._spread * released.sum(axis=1, keepdims=True)
        return released.reshape(np.shape(value))

    def expected_error(self, p: float = 2.0, weights: ArrayLike | None = None) -> float:
        r"""Return the expected error of all releases together.

        .. math:: E|\hat f_j - f_j|^p = E|Z|^p \, v^{p/2}, \qquad
                  v = \sigma^2 \left(1 + 2 e + d e^2\right), \quad e = \frac{c}{1 - c d}

        Parameters
        ----------
        p : float, default=2.0
            Error exponent.
        weights : array-like of shape (n_coordinates,) or (n_releases, n_coordinates), or None
            None is all ones.

        Returns
        -------
        float

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss
        >>> mechanism = bounded_counts(20, 5, GaussianLoss(1.0))
        >>> round(mechanism.expected_error() / 20, 3)  # independent noise: 5
        4.569
        """
        p = check_real("BoundedCountsMechanism.expected_error", "p", p)
        size = self.additive.sensitivity.n_coordinates
        factor = 1.0 + 2.0 * self._spread + size * self._spread**2
        deviation = float(self.additive.standard_deviation[0]) * math.sqrt(factor)
        moment: float = deviation**p * get_noise("gaussian").absolute_moment(p)
        return moment * total_weight(weights, self.n_releases, size)

    @property
    def _spread(self) -> float:
        return self.mixing / (1.0 - self.mixing * self.additive.sensitivity.n_coordinates)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_coordinates={self.additive.sensitivity.n_coordinates}, "
            f"max_ones={self.max_ones}, n_releases={self.n_releases}, loss={self.privacy_loss()})"
        )


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
    mixing adds; S is that of :func:`~skdpnoise.sensitivity.joint.bounded_ones`. In
    :math:`(1 - c d)^2` each term of the maximum is convex, and so is the maximum. c = 0 is
    independent noise, so this is never worse. It is the best of all covariances Σ: the constraint
    v' Σ^{-1} v ≤ μ² is convex in Σ, and averaging over all permutations of the counts, under which
    the changes are symmetric, leaves aI + b11'. For add/remove and c of the best
    covariance below 1/(2k), with :math:`s = \sqrt{(d - k)/(k (d - 1))}`, it is
    :math:`a I + b 1 1^\top`, :math:`a = k (1 - q k)`, :math:`b = a q / s`, :math:`q = (1 - s)/d`.

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
    n_releases : int, default=1
        Number of releases, which may be chosen adaptively.

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
    Joseph and Yu, arXiv:2309.15790 (at most k ones, add/remove); Lebeda, arXiv:2408.06853 (k = d).
    The maximum over integers t and "replace_one" are ours.

    Examples
    --------
    >>> bounded_counts(20, 10, PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove"))
    BoundedCountsMechanism(n_coordinates=20, max_ones=10, n_releases=1, loss=0.236704-GDP)
    """
    owner = "bounded_counts"
    stated = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else None
    relation = check_adjacency(
        owner, adjacency if adjacency is not None else stated or "add_remove"
    )
    if stated not in (None, relation):
        raise ValueError(
            f"The 'adjacency' parameter of {owner} must be None or that of the guarantee, "
            f"{stated!r}. Got {adjacency!r} instead."
        )
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
