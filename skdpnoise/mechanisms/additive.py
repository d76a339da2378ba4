"""Independent noise of calibrated scales on the coordinates of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms._quanta import nearest_quanta, rounding_cost
from skdpnoise.mechanisms.allocation import worst_case_norm
from skdpnoise.noises import Noise, get_noise
from skdpnoise.privacy import PrivacyLoss, check_count
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["AdditiveMechanism", "Mechanism"]


@runtime_checkable
class Mechanism(Protocol):
    """Anything that both draws noise and says what it costs, so that the two cannot disagree.

    Examples
    --------
    >>> issubclass(AdditiveMechanism, Mechanism)
    True
    """

    def sample(self, words: RandomWords, n_draws: int | None = None) -> NDArray[np.int64]:
        """Return integer noise, in quanta."""
        ...

    def release(self, value: ArrayLike, random_state: Any = None) -> NDArray[np.float64]:
        """Return the value with noise added."""
        ...

    def privacy_loss(self) -> PrivacyLoss:
        """Return what all the releases cost together."""
        ...

    def expected_error(self, p: float = 2.0, weights: ArrayLike | None = None) -> float:
        """Return the expected weighted error of all the releases together."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdditiveMechanism:
    r"""Release a query with independent noise of one family, exactly, in integers.

    .. math:: M(D)_j = q_j \left(\mathrm{round}(f_j(D)/q_j) + \mathrm{round}(2^B Z_j)\right),
              \qquad q_j = 2^{-B} s_j

    with Z_j of unit scale, s the scales and B the bits. Made by
    :func:`~skdpnoise.mechanisms.calibrate`.

    **Guarantee.** Neighbours are those of the sensitivity profile: per release and coordinate, one
    record moves f by at most λ_j, and jointly within its l1 and l2 bounds. Clipping and rounding to
    integer quanta then moves the integer by at most λ_j/q_j + 1. Rounded noise on an integer is the
    rounding of real noise on it, which is post-processing, so the loss is that of the family for
    the worst |d/s|_q over all releases, where by Minkowski's inequality the rounding of the value
    adds at most (T K)^{1/q} 2^{-B}, for T releases and K coordinates that can move. Multiplying by
    q_j is post-processing. The charge covers ``n_releases`` releases, chosen adaptively.
    The profile must bound the value *as computed*: sum integers, or add the floating-point error of
    the sum to λ.

    A coordinate with scale 0 (under "spr" and "inid", one with λ_j = 0) is released unchanged: that
    is private only if the coordinate is truly constant.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"``; the family draws and is charged for.
    scale : ndarray of shape (n_coordinates,) or (n_releases, n_coordinates)
        s, in the units of the query.
    bits : int
        B: the standard unit of the noise spans 2**bits quanta.
    sensitivity : SensitivityProfile
        What one record can do to one release.
    n_releases : int, default=1
        Number of releases that are charged for.

    References
    ----------
    Mironov, "On significance of the least significant bits for differential privacy", CCS 2012 (why
    integers). Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5 (the scales).

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> profile = SensitivityProfile([1.0, 4.0])
    >>> mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(epsilon=1.0))
    >>> mechanism.release([10.0, 20.0], random_state=0).shape
    (2,)
    >>> print(mechanism.privacy_loss())
    1-DP
    """

    noise: str
    scale: NDArray[np.float64]
    bits: int
    sensitivity: SensitivityProfile
    n_releases: int = 1

    def __post_init__(self) -> None:
        scale = np.array(self.scale, dtype=np.float64)
        scale.flags.writeable = False
        object.__setattr__(self, "scale", scale)

    @property
    def family(self) -> Noise:
        """The noise family, of unit scale."""
        return get_noise(self.noise.partition("_")[2])

    @property
    def quantum(self) -> NDArray[np.float64]:
        """Size of one integer step of each coordinate, of the shape and in the units of scale."""
        return np.ldexp(self.scale, -self.bits)

    @property
    def standard_deviation(self) -> NDArray[np.float64]:
        """Standard deviation of the noise, of the shape and in the units of scale."""
        deviation: NDArray[np.float64] = self.scale * np.sqrt(self.family.variance)
        return deviation

    @property
    def resource(self) -> float:
        """The worst |d/s|_q of all releases, rounding included: what the loss is charged for."""
        order = self.family.norm_order
        worst = worst_case_norm(self.scale, self.sensitivity, order)
        if self.scale.ndim == 1:
            worst *= self.n_releases ** (1.0 / order)
        return worst + rounding_cost(self.sensitivity, self.n_releases, self.bits, order)

    def privacy_loss(self) -> PrivacyLoss:
        """Return what ``n_releases`` releases cost together.

        Returns
        -------
        PrivacyLoss

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import GaussianLoss
        >>> profile = SensitivityProfile([1.0, 4.0])
        >>> print(calibrate("inid_gaussian", profile, GaussianLoss(0.5)).privacy_loss())
        0.5-GDP
        """
        return self.family.loss(self.resource)

    def sample(self, words: RandomWords, n_draws: int | None = None) -> NDArray[np.int64]:
        """Return the noise of the first releases, in quanta.

        Parameters
        ----------
        words : RandomWords
            Source of randomness.
        n_draws : int or None, default=None
            Number of releases, at most ``n_releases``; None is all of them.

        Returns
        -------
        ndarray of int64, shape (n_draws, n_coordinates)

        Raises
        ------
        ValueError
            If more draws are asked for than are charged for.

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import GaussianLoss
        >>> from skdpnoise.sampling import random_words
        >>> profile = SensitivityProfile([1.0, 4.0])
        >>> mechanism = calibrate("inid_gaussian", profile, GaussianLoss(0.5), n_releases=3)
        >>> mechanism.sample(random_words(0), n_draws=2).shape
        (2, 2)
        """
        count = self.n_releases
        if n_draws is not None:
            count = check_count("AdditiveMechanism.sample", "n_draws", n_draws)
        self._check_charged("n_draws", count)
        draws = self.family.sample_rounded(
            words, (count, self.sensitivity.n_coordinates), self.bits
        )
        draws[np.broadcast_to(self._rows(self.scale, count) == 0.0, draws.shape)] = 0
        return draws

    def release(self, value: ArrayLike, random_state: Any = None) -> NDArray[np.float64]:
        """Return the value with noise added: what may be made public.

        Parameters
        ----------
        value : array-like of shape (n_coordinates,) or (m, n_coordinates)
            The query's value, or those of the first m ≤ ``n_releases`` releases.
        random_state : None, int, numpy generator or RandomWords, default=None
            None draws from the operating system's cryptographic source. Anything else is
            reproducible, and gives no privacy against those who know it.

        Returns
        -------
        ndarray of the shape of ``value``
            Whole multiples of ``quantum``.

        Raises
        ------
        TypeError
            If the value is not an array of real numbers.
        ValueError
            If it is not finite, or has the wrong shape.

        Notes
        -----
        Nothing is remembered: calling this again is another release, to be charged for again unless
        ``n_releases`` covers it.

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import GaussianLoss
        >>> mechanism = calibrate("iid_gaussian", SensitivityProfile([1.0]), GaussianLoss(0.5))
        >>> released = mechanism.release([10.0], random_state=0)
        >>> bool((np.rint(released / mechanism.quantum) * mechanism.quantum == released).all())
        True
        """
        array = np.asarray(value)
        n_coordinates = self.sensitivity.n_coordinates
        if array.dtype.kind not in "iufb":
            raise TypeError(
                "The 'value' parameter of AdditiveMechanism.release must be an array of real "
                f"numbers. Got an array of dtype {array.dtype} instead."
            )
        if array.ndim not in (1, 2) or array.size == 0 or array.shape[-1] != n_coordinates:
            raise ValueError(
                "The 'value' parameter of AdditiveMechanism.release must be of shape "
                f"({n_coordinates},) or (n, {n_coordinates}) with n up to n_releases="
                f"{self.n_releases}. Got shape {array.shape} instead."
            )
        if not np.isfinite(array).all():
            raise ValueError(
                "The 'value' parameter of AdditiveMechanism.release must be finite in every entry: "
                "remove or replace NaN and infinity before the query is computed."
            )
        rows = array.reshape(-1, n_coordinates).astype(np.float64)
        self._check_charged("value", len(rows))
        draws = self.sample(random_words(random_state), len(rows))
        quantum = np.broadcast_to(self._rows(self.quantum, len(rows)), rows.shape)
        noisy = quantum > 0.0
        quanta = nearest_quanta(rows[noisy], quantum[noisy]) + draws[noisy]
        rows[noisy] = quanta * quantum[noisy]
        return rows.reshape(array.shape)

    def expected_error(self, p: float = 2.0, weights: ArrayLike | None = None) -> float:
        r"""Return the expected error of all releases together.

        .. math:: \sum_{t, j} w_{tj} \, s_{tj}^p \, E|Z|^p

        Parameters
        ----------
        p : float, default=2.0
            Error exponent; 2 gives the total variance, 1 the total absolute error.
        weights : array-like of shape (n_coordinates,) or (n_releases, n_coordinates), or None
            w; None is all ones.

        Returns
        -------
        float
            In the units of the query to the power p. The rounding of the value, below one part in
            2**20 of the noise, is not counted.

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import PureLoss
        >>> mechanism = calibrate("iid_laplace", SensitivityProfile([1.0, 1.0]), PureLoss(0.5))
        >>> round(mechanism.expected_error(p=1), 5)  # two coordinates of scale 2/0.5
        8.0
        """
        shape = (self.n_releases, self.sensitivity.n_coordinates)
        errors = np.broadcast_to(self.scale**p, shape)
        if weights is not None:
            errors = errors * np.asarray(weights, dtype=np.float64)
        return float(errors.sum()) * self.family.absolute_moment(p)

    @property
    def mean_squared_error(self) -> float:
        """Expected squared error per coordinate and release."""
        return self.expected_error() / (self.n_releases * self.sensitivity.n_coordinates)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(noise={self.noise!r}, scale={self.scale.min():.6g} to "
            f"{self.scale.max():.6g}, n_coordinates={self.sensitivity.n_coordinates}, "
            f"n_releases={self.n_releases}, loss={self.privacy_loss()})"
        )

    def _rows(self, values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        return values if values.ndim == 1 else values[:count]

    def _check_charged(self, name: str, count: int) -> None:
        if count > self.n_releases:
            raise ValueError(
                f"The {name!r} parameter asks for {count} releases, but this mechanism is charged "
                f"for {self.n_releases}: calibrate it with n_releases={count}."
            )
