"""Sums that are mixed exactly, get independent noise and are unmixed: the noise is correlated."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from skdpnoise._utils.checks import Adjacency, check_adjacency, check_array, check_type, complaint
from skdpnoise._utils.sealed import sealed, stated
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms.additive import AdditiveMechanism, compared
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.grid_sizes import exact_integers
from skdpnoise.mechanisms.requests import candidates
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.noises import get_noise
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, PrivacyLoss, check_count, check_real
from skdpnoise.privacy.loss import checked_relation
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import SensitivityProfile
from skdpnoise.sensitivity.bounds import bounded_ones, shifted_sums, support_sizes

Vector = NDArray[np.float64]

_REAL = "be continuous: sums less a multiple of the count are not integers"
_LEAST_WEIGHT = 1e-16  # of the count, beside the sums, where nothing depends on it


class MixedMechanism(VectorMechanism):
    """Release :math:`A^{-1} (A f + z)`: an additive mechanism releases A f, and is charged for."""

    # A f is computed and rounded to grid steps by exact rational arithmetic; the rest is
    # post-processing.

    __slots__ = ()

    additive: AdditiveMechanism

    @property
    def noise(self) -> str:
        return self.additive.noise

    @property
    def n_releases(self) -> int:
        return self.additive.n_releases

    @property
    def sensitivity(self) -> SensitivityProfile:
        """How far one record can move A f."""
        return self.additive.sensitivity

    @property
    def scale(self) -> Vector:
        """Noise scales of A f."""
        return self.additive.scale

    @property
    def grid_size(self) -> Vector:
        """Size of one integer step of A f, shape (n_coordinates,)."""
        return self.additive.grid_size

    def privacy_loss(self) -> PrivacyLoss:
        return self.additive.privacy_loss()

    @abstractmethod
    def _mixed(self, row: list[Fraction]) -> list[Fraction]:
        """Return A f."""

    @abstractmethod
    def _unmixed(self, noisy: Vector) -> Vector:
        r"""Return :math:`A^{-1} y` of every row y."""

    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        return self.additive.sample(rng, count, first=start)

    def _released(self, rows: NDArray[Any], random_state: Any, first: int | None) -> Vector:
        draws = self.sample(random_words(random_state), len(rows), first=first)
        mixed = [self._mixed([Fraction(entry) for entry in row]) for row in rows.tolist()]
        steps = self.grid_size.tolist()
        integers = np.array([exact_integers(row, steps) for row in mixed])
        noisy = plus_noise(self.additive, integers, draws) * self.grid_size
        return self._unmixed(np.asarray(noisy, dtype=np.float64))

    def _check_covered(self, needed: SensitivityProfile, what: str) -> None:
        """Refuse an additive mechanism that is calibrated to less than ``needed``."""
        has, limit = self.additive.sensitivity, needed.per_coordinate
        covered = (
            self.additive.scale.ndim == 1
            and type(has) is SensitivityProfile  # of groups, more than these fields is true
            and has.n_coordinates == needed.n_coordinates
            and bool((has.per_coordinate >= limit).all())
        )
        for order, bound, least in ((1.0, has.l1, needed.l1), (2.0, has.l2, needed.l2)):
            if covered and bound is not None:
                within = float(np.linalg.norm(limit, order)) if least is None else least
                covered = bound >= within
        if not covered:
            must = "have one scale for each coordinate, and be calibrated to at least "
            must += f"{needed}, which follows from {what}"
            raise ValueError(complaint(type(self).__name__, "additive", must, str(has)))


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
    sensitivity, :func:`~skdpnoise.sensitivity.bounds.bounded_ones`; the rest is post-processing.

    Parameters
    ----------
    max_ones : int
        k.
    adjacency : {"replace_one", "add_remove"}
        The neighbouring relation.
    mixing : float
        c.
    additive : AdditiveMechanism
        Releases y; calibrated to no less than the guarantee says.

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
            must = (
                f"have 'iid_gaussian' noise, and 'mixing' not be 1/{size}, which cannot be undone"
            )
            given = f"{self.additive.noise!r} and {self.mixing!r}"
            raise ValueError(complaint(owner, "additive", must, given))
        stated(self, mixing=mixing, max_ones=check_count(owner, "max_ones", self.max_ones))
        needed = bounded_ones(size, self.max_ones, self.adjacency, mixing=mixing)
        self._check_covered(needed, "'max_ones', 'adjacency' and 'mixing'")

    @property
    def covariance(self) -> Vector:
        """Covariance of the noise of one release."""
        size = self.additive.sensitivity.n_coordinates
        inverse = np.eye(size) + self._spread
        return inverse @ inverse * self.additive.standard_deviation**2

    def _mixed(self, row: list[Fraction]) -> list[Fraction]:
        shared = Fraction(self.mixing) * sum(row)
        return [count - shared for count in row]

    def _unmixed(self, noisy: Vector) -> Vector:
        noisy += self._spread * noisy.sum(axis=1, keepdims=True)
        return noisy

    def _moments(self, p: float) -> Vector:
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
    mixing adds; S is that of :func:`~skdpnoise.sensitivity.bounds.bounded_ones`. In
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
        Most that all releases together may cost: δ > 0, or a Gaussian loss.
    adjacency : {"replace_one", "add_remove"} or None, default=None
        Neighbouring relation; None takes that of the guarantee, or "add_remove" for a loss.
    %(mechanisms: n_releases)s

    References
    ----------
    That of :class:`BoundedCountsMechanism`; Lebeda, arXiv:2408.06853 (k = d). The rest is ours.

    Examples
    --------
    >>> bounded_counts(20, 10, PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove"))
    BoundedCountsMechanism(n_coordinates=20, max_ones=10, n_releases=1, loss=0.236704-GDP)
    """
    owner = "bounded_counts"
    relation = checked_relation(owner, adjacency, guarantee, "add_remove")
    bounded_ones(n_coordinates, max_ones, relation)  # checks the counts
    mixing = _best_mixing(int(n_coordinates), int(max_ones), relation)
    needed = bounded_ones(n_coordinates, max_ones, relation, mixing=mixing)
    n_releases = check_count(owner, "n_releases", n_releases)
    additive = calibrate("iid_gaussian", needed, guarantee, n_releases=n_releases)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CorrelatedSumMechanism(MixedMechanism):
    r"""Release sums of contributions in an interval, and the number of records, by add/remove.

    .. math:: \hat n = n + \xi, \qquad \hat f_j = (f_j - n c_j + z_j) + c_j \hat n
              = f_j + z_j + c_j \xi

    Made by :func:`correlated_sum`. The value of a release is the sums followed by the number of
    records. Errors are those of the sums; for noise neither Gaussian nor Laplace p must be 2.

    **Guarantee.** Neighbours differ by one record more or fewer, whose contribution to sum j lies
    in [low_j, high_j]. The additive mechanism within releases (f - n c, n), is calibrated to
    :func:`~skdpnoise.sensitivity.bounds.shifted_sums`, and is charged for; the rest is
    post-processing. :math:`f_j - n c_j` is computed and rounded to grid steps by exact rational
    arithmetic. The sums must be exact: sum integers or add the error of the sum to the interval.

    Parameters
    ----------
    low, high : ndarray of shape (n_sums,)
        The interval of every contribution.
    shift : ndarray of shape (n_sums,)
        c: the centre of the interval, or 0 where a sum is released as it is.
    additive : AdditiveMechanism
        Releases (f - n c, n); calibrated to no less than the intervals imply.

    References
    ----------
    Lebeda, "Better Gaussian mechanism using correlated noise", arXiv:2408.06853 (contributions of 0
    or 1). Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5 (scales of the parts).

    Examples
    --------
    >>> from skdpnoise.privacy import GaussianLoss
    >>> mechanism = correlated_sum(np.ones(4), GaussianLoss(1.0))
    >>> round(mechanism.expected_error(), 4)  # ((4 + 2) / 2)**2; independent noise: 16
    9.0
    """

    low: Vector
    high: Vector
    shift: Vector
    additive: AdditiveMechanism

    def __post_init__(self) -> None:
        stated(self, low=sealed(self.low), high=sealed(self.high), shift=sealed(self.shift))
        owner = type(self).__name__
        check_type(owner, "additive", self.additive, AdditiveMechanism)
        if self.additive.family.lattice:
            raise ValueError(complaint(owner, "noise", _REAL, repr(self.additive.noise)))
        if not self.low.shape == self.high.shape == self.shift.shape:
            given = f"{self.low.shape}, {self.high.shape} and {self.shift.shape}"
            must = "be of one shape, (n_sums,), with 'high' and 'shift'"
            raise ValueError(complaint(owner, "low", must, given))
        needed = shifted_sums(self.low, self.high, self.shift)
        self._check_covered(needed, "'low', 'high' and 'shift'")

    @property
    def covariance(self) -> Vector:
        """Covariance of the noise of the sums and, last, of the count of one release."""
        variance = self.additive.standard_deviation**2
        shared = np.append(self.shift, 1.0)
        own = np.diag(np.append(variance[:-1], 0.0))
        return np.asarray(variance[-1] * np.outer(shared, shared) + own)

    def _mixed(self, row: list[Fraction]) -> list[Fraction]:
        centres = map(Fraction, self.shift.tolist())
        return [*(f - row[-1] * c for f, c in zip(row, centres, strict=False)), row[-1]]

    def _unmixed(self, noisy: Vector) -> Vector:
        noisy[:, :-1] += noisy[:, -1:] * self.shift
        return noisy

    @property
    def _variance(self) -> Vector:
        deviation = self.additive.standard_deviation
        return np.asarray(deviation[:-1] ** 2 + (self.shift * deviation[-1]) ** 2, dtype=np.float64)

    def _moments(self, p: float) -> Vector:
        if p == 2.0:
            return self._variance
        name = self.additive.noise.partition("_")[2]
        if name == "gaussian":
            return self._variance ** (0.5 * p) * get_noise(name).absolute_moment(p)
        if name != "laplace":
            must = "be 2 for noise other than Gaussian or Laplace"
            raise ValueError(complaint(f"{type(self).__name__}.expected_error", "p", must, repr(p)))
        scale = self.additive.scale
        own, shared = scale[:-1], np.abs(self.shift) * scale[-1]
        # The density of the sum is a difference of two Laplace densities; scales that are all but
        # equal are told apart a little, which moves the result by less than one part in 1e4.
        small, large = np.minimum(own, shared), np.maximum(own, shared)
        ratio = np.minimum(small / large, 1.0 - 1e-5)
        factor = (1.0 - ratio ** (p + 2.0)) / (1.0 - ratio**2)
        return np.asarray(large**p * factor * math.gamma(p + 1.0), dtype=np.float64)

    def _facts(self) -> str:
        return f"noise={self.additive.noise!r}, n_sums={self.shift.size}"


@shared_texts
def correlated_sum(
    high: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    noise: str = "inid_gaussian",
    *,
    low: ArrayLike = 0.0,
    weights: ArrayLike | None = None,
    count_weight: float = 0.0,
    n_releases: int = 1,
) -> CorrelatedSumMechanism:
    r"""Return the least noise for sums of contributions in [low_j, high_j], under add/remove.

    For contributions in [0, λ_j] and Gaussian noise

    .. math:: \sigma_j^2 = \frac{\lambda_j S}{2 \mu^2}, \quad
              S = \frac{|\lambda|_1 + |\lambda|_2}{2}, \quad
              \sum_j E(\hat f_j - f_j)^2 = \frac{S^2}{\mu^2},

    down to a quarter of what independent noise needs; the number of records comes with it for
    nothing. For Laplace noise the total is
    :math:`\tfrac12 (\sum \lambda^{2/3} + |\lambda|_2^{2/3})^3 / \varepsilon^2`. Sums that it
    does not pay to shift, by public facts alone, are released as they are.

    Parameters
    ----------
    high : float or array-like of shape (n_sums,)
        Public upper ends of every record's contributions.
    guarantee : PrivacyGuarantee or LossBudget
        Most that all releases together may cost, for "add_remove"; a loss is taken to be for it.
        Under "replace_one" the count is public and centring gains nothing.
    noise : str, default="inid_gaussian"
        A name that :func:`~skdpnoise.mechanisms.calibrate` accepts, or "auto" for the better of
        "inid_gaussian" and "inid_laplace", or "search" for the best of every "inid" family.
    low : float or array-like of shape (n_sums,), default=0.0
        Public lower ends.
    weights : array-like of shape (n_sums,) or None, default=None
        How much the squared error of each sum matters: positive and public; None is all ones.
    count_weight : float, default=0.0
        How much the squared error of the count matters by itself.
    %(mechanisms: n_releases)s

    Examples
    --------
    >>> guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove")
    >>> correlated_sum(np.ones(20), guarantee)
    CorrelatedSumMechanism(noise='inid_gaussian', n_sums=20, n_releases=1, loss=0.236704-GDP)
    """
    owner = "correlated_sum"
    if isinstance(guarantee, PrivacyGuarantee) and guarantee.adjacency != "add_remove":
        remedy = "Under 'replace_one' nothing is gained: use calibrate with clipped_sum(low, high)."
        must = "be for adjacency='add_remove'"
        raise ValueError(complaint(owner, "guarantee", must, repr(guarantee), remedy))
    count_weight = check_real(owner, "count_weight", count_weight, low_closed=True)
    plain = shifted_sums(low, high, 0.0)
    n_sums = plain.n_coordinates - 1
    left, right = (
        np.broadcast_to(np.asarray(end, dtype=np.float64), n_sums) for end in (low, high)
    )
    centre = 0.5 * left + 0.5 * right
    each = np.ones(n_sums)
    if weights is not None:
        each = check_array(owner, "weights", weights, (n_sums,), sign="positive")
    reaches = plain.per_coordinate, shifted_sums(left, right, centre).per_coordinate

    def make(name: str) -> CorrelatedSumMechanism:
        # The order in which costs add: of other noises near 2 if there are many sums. Whatever is
        # shifted, the guarantee holds.
        order = 1.0 if str(name).endswith("_laplace") else 2.0
        before, after = ((each * reach[:-1] ** 2) ** (order / (order + 2.0)) for reach in reaches)
        worth = _worth_shifting(before - after, each * centre**2, count_weight, order)
        shift = np.where(worth, centre, 0.0)
        of_count = max(float(each @ shift**2) + count_weight, _LEAST_WEIGHT * float(each.sum()))
        needed, importance = shifted_sums(left, right, shift), np.append(each, of_count)
        additive = calibrate(name, needed, guarantee, n_releases=n_releases, weights=importance)
        if additive.family.lattice:
            raise ValueError(complaint(owner, "noise", _REAL, repr(name)))
        return CorrelatedSumMechanism(left, right, shift, additive)

    def error(mechanism: CorrelatedSumMechanism) -> float:
        of_count = count_weight * mechanism.additive.standard_deviation[-1] ** 2
        return mechanism.expected_error(weights=each) / n_releases + float(of_count)

    return min(compared(candidates(noise), make, error)[0], key=error)


def _worth_shifting(
    saved: Vector, cost: Vector, count_weight: float, order: float
) -> NDArray[np.bool_]:
    """Return which sums to shift: the best of those that cost the count least."""
    # The least total squared error grows with Σ_i (w_i λ_i^2)^{q/(q+2)}, the count included.
    ranked = np.argsort(cost, kind="stable")
    gained = np.concatenate(([0.0], np.cumsum(saved[ranked])))
    spent = np.concatenate(([0.0], np.cumsum(cost[ranked]))) + count_weight
    # The last of equal choices shifts more sums, which lowers the error of the count.
    better = gained - spent ** (order / (order + 2.0))
    n_shifted = cost.size - int(np.argmax(better[::-1]))
    worth = np.zeros(cost.size, dtype=np.bool_)
    worth[ranked[:n_shifted]] = True
    return worth
