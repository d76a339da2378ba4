"""Correlated noise for sums of one-sided contributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism, compared
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.joint._mixed import MixedMechanism
from skdpnoise.mechanisms.requests import CHOICES, noise_options
from skdpnoise.noises import get_noise
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, check_real
from skdpnoise.privacy.checks import check_array, check_type
from skdpnoise.privacy.sealed import sealed
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sensitivity.bounds import shifted_sums

__all__ = ["CorrelatedSumMechanism", "correlated_sum"]

_AUTO = ("inid_gaussian", "inid_laplace")
_NOT_INTEGER = (
    "The 'noise' parameter of {owner} must be continuous: sums less a multiple of the count are "
    "not integers. Got {noise!r} instead."
)
_LEAST_WEIGHT = 1e-16  # of the count, beside the sums, where nothing depends on it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CorrelatedSumMechanism(MixedMechanism):
    r"""Release sums of contributions in an interval, and the number of records, by add/remove.

    .. math:: \hat n = n + \xi, \qquad \hat f_j = (f_j - n c_j + z_j) + c_j \hat n
              = f_j + z_j + c_j \xi

    Made by :func:`correlated_sum`. The value of a release is the sums followed by the number of
    records. Errors are those of the sums; for noise neither Gaussian nor Laplace p must be 2.

    **Guarantee.** Neighbours differ by one record more or fewer, whose contribution to sum j lies
    in [low_j, high_j]. The additive mechanism within releases (f - n c, n), is calibrated to
    :func:`~skdpnoise.sensitivity.shifted_sums`, and is charged for; the rest is
    post-processing. :math:`f_j - n c_j` is computed and rounded to grid steps by exact rational
    arithmetic. The sums must be exact: sum integers or add the error of the sum to the interval.

    Parameters
    ----------
    low, high : ndarray of shape (n_sums,)
        The interval of every contribution.
    shift : ndarray of shape (n_sums,)
        c: the centre of the interval, or 0 where a sum is released as it is.
    additive : AdditiveMechanism
        Releases (f - n c, n).

    Raises
    ------
    TypeError
        If a field is of the wrong kind.
    ValueError
        If intervals are not of one shape or not ordered, or the additive mechanism is calibrated to
        less than they imply.

    References
    ----------
    Lebeda, "Better Gaussian mechanism using correlated noise", arXiv:2408.06853
    (contributions of 0 or 1). Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5 (scales
    of the parts).

    Examples
    --------
    >>> from skdpnoise.privacy import GaussianLoss
    >>> mechanism = correlated_sum(np.ones(4), GaussianLoss(1.0))
    >>> mechanism.release([10.0, 20.0, 30.0, 200.0, 100.0], random_state=0).shape
    (5,)
    >>> round(mechanism.expected_error(), 4)  # ((4 + 2) / 2)**2; independent noise: 16
    9.0
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    shift: NDArray[np.float64]
    additive: AdditiveMechanism

    def __post_init__(self) -> None:
        for name in ("low", "high", "shift"):
            object.__setattr__(self, name, sealed(getattr(self, name)))
        owner = type(self).__name__
        check_type(owner, "additive", self.additive, AdditiveMechanism)
        if self.additive.family.lattice:
            raise ValueError(_NOT_INTEGER.format(owner=owner, noise=self.additive.noise))
        if not self.low.shape == self.high.shape == self.shift.shape:
            raise ValueError(
                f"The 'low', 'high' and 'shift' parameters of {owner} must be of one shape, "
                f"(n_sums,). Got {self.low.shape}, {self.high.shape} and {self.shift.shape} "
                "instead."
            )
        needed = shifted_sums(self.low, self.high, self.shift)
        self._check_covered(needed, "'low', 'high' and 'shift'")

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of the noise of the sums and, last, of the count of one release."""
        variance = self.additive.standard_deviation**2
        shared = np.append(self.shift, 1.0)
        shared_part: NDArray[np.float64] = variance[-1] * np.outer(shared, shared)
        return shared_part + np.diag(np.append(variance[:-1], 0.0))

    def _mixed(self, row: list[Fraction]) -> list[Fraction]:
        centres = map(Fraction, self.shift.tolist())
        return [*(f - row[-1] * c for f, c in zip(row, centres, strict=False)), row[-1]]

    def _unmixed(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        noisy[:, :-1] += noisy[:, -1:] * self.shift
        return noisy

    @property
    def _variance(self) -> NDArray[np.float64]:
        deviation = self.additive.standard_deviation
        return np.asarray(deviation[:-1] ** 2 + (self.shift * deviation[-1]) ** 2, dtype=np.float64)

    def _moments(self, p: float) -> NDArray[np.float64]:
        if p == 2.0:
            return self._variance
        name = self.additive.noise.partition("_")[2]
        if name == "gaussian":
            return self._variance ** (0.5 * p) * get_noise(name).absolute_moment(p)
        if name != "laplace":
            raise ValueError(
                "The 'p' parameter of CorrelatedSumMechanism.expected_error must be 2 for noise "
                f"other than Gaussian or Laplace. Got {p!r} instead."
            )
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
    :math:`\tfrac12 (\sum \lambda^{2/3} + |\lambda|_2^{2/3})^3 / \varepsilon^2`. Sums whose
    shift by the centre of the interval would cost the count more than it saves are released as they
    are; which ones is decided by public facts alone.

    Parameters
    ----------
    high : float or array-like of shape (n_sums,)
        Public upper ends of every record's contributions.
    guarantee : PrivacyGuarantee or LossBudget
        What all the releases together may cost. A guarantee must be for "add_remove"; a loss is
        taken to be.
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

    Returns
    -------
    CorrelatedSumMechanism

    Raises
    ------
    ValueError
        If the guarantee is for "replace_one", under which the count is public and centring gains
        nothing, an end is not finite, or the noise cannot give the guarantee.

    References
    ----------
    Those of :class:`CorrelatedSumMechanism`; their combination is ours.

    Examples
    --------
    >>> guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove")
    >>> correlated_sum(np.ones(20), guarantee)
    CorrelatedSumMechanism(noise='inid_gaussian', n_sums=20, n_releases=1, loss=0.236704-GDP)
    """
    owner = "correlated_sum"
    if isinstance(guarantee, PrivacyGuarantee) and guarantee.adjacency != "add_remove":
        raise ValueError(
            f"The 'guarantee' parameter of {owner} must be for adjacency='add_remove'. Got "
            f"{guarantee!r} instead. Under 'replace_one' nothing is gained: use calibrate with "
            "clipped_sum(low, high)."
        )
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
        additive = calibrate(
            name,
            shifted_sums(left, right, shift),
            guarantee,
            n_releases=n_releases,
            weights=np.append(each, of_count),
        )
        if additive.family.lattice:
            raise ValueError(_NOT_INTEGER.format(owner=owner, noise=name))
        return CorrelatedSumMechanism(left, right, shift, additive)

    def error(mechanism: CorrelatedSumMechanism) -> float:
        of_count = count_weight * mechanism.additive.standard_deviation[-1] ** 2
        return mechanism.expected_error(weights=each) / n_releases + float(of_count)

    if noise not in CHOICES:
        return make(noise)
    names = [name for name in noise_options(adaptive=True) if name.startswith("inid_")]
    return min(compared(_AUTO if noise == "auto" else names, make, error)[0], key=error)


def _worth_shifting(
    saved: NDArray[np.float64], cost: NDArray[np.float64], count_weight: float, order: float
) -> NDArray[np.bool_]:
    """Return which sums to shift: the best of those that cost the count least."""
    # The least total squared error grows with Σ_i (w_i λ_i^2)^{q/(q+2)}, the count included.
    ranked = np.argsort(cost, kind="stable")
    gained = np.concatenate(([0.0], np.cumsum(saved[ranked])))
    spent = np.concatenate(([0.0], np.cumsum(cost[ranked]))) + count_weight
    # Of equal choices the last: the more is shifted, the better the count.
    better = gained - spent ** (order / (order + 2.0))
    n_shifted = cost.size - int(np.argmax(better[::-1]))
    worth = np.zeros(cost.size, dtype=np.bool_)
    worth[ranked[:n_shifted]] = True
    return worth
