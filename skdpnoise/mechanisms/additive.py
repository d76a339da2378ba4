"""Independent noise of calibrated scales on the coordinates of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms._exact import are_integers
from skdpnoise.mechanisms._losses import explanation, own_loss
from skdpnoise.mechanisms._promises import check_fields, check_promise
from skdpnoise.mechanisms._values import checked_rows, checked_span, noisy_release
from skdpnoise.noises import Noise
from skdpnoise.privacy import LossBudget, PrivacyLoss
from skdpnoise.privacy.sealed import Sealed
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["AdditiveMechanism", "Mechanism"]

_NO_INDEX = (
    "The 'first' parameter of AdditiveMechanism.{method} must be given where the scales differ "
    "between releases and a call makes some of them: this one makes {count} of "
    "n_releases={n_releases}. Got None instead. Nothing is remembered between calls, and the noise "
    "of the wrong releases may be too small: number the releases 0, 1, ... and pass the index of "
    "the first one that this call makes, such as first=0."
)


@runtime_checkable
class Mechanism(Protocol):
    """Anything that both draws noise and says what it costs, so that the two cannot disagree.

    Examples
    --------
    >>> issubclass(AdditiveMechanism, Mechanism)
    True
    """

    def sample(
        self, words: RandomWords, n_draws: int | None = None, *, first: int | None = None
    ) -> NDArray[np.int64]:
        """Return integer noise, in quanta, of the releases from an index on."""
        ...

    def release(
        self, value: ArrayLike, random_state: Any = None, *, first: int | None = None
    ) -> NDArray[np.float64]:
        """Return the value of the releases from an index on with noise added."""
        ...

    def privacy_loss(self) -> PrivacyLoss:
        """Return what all the releases cost together."""
        ...

    def expected_error(self, p: float = 2.0, weights: ArrayLike | None = None) -> float:
        """Return the expected weighted error of all the releases together."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdditiveMechanism(Sealed):
    r"""Release a query with independent noise of one family, exactly, in integers.

    .. math:: M(D)_j = q_j \left(\mathrm{round}(f_j(D)/q_j) + \mathrm{round}(2^B Z_j)\right),
              \qquad q_j = 2^{-B} s_j

    with Z_j of unit scale, s the scales and B the bits. Made by
    :func:`~skdpnoise.mechanisms.calibrate`, which says why it chose this noise: :meth:`explain`.

    **Guarantee.** Neighbours are those of the sensitivity profile: per release and coordinate, one
    record moves f by at most λ_j, and jointly within its l1 and l2 bounds. Clipping and rounding to
    integer quanta then moves the integer by at most λ_j/q_j + 1, so in units of the noise by at
    most λ_j/s_j + 2^-B. (Noise on the integers has q_j = 1 and a query that is integer already.)
    Rounded noise on an integer is the rounding of real noise on it, which is post-processing, and
    multiplying by q_j is too. So the loss is that of the real noise for the worst change:

    - Normal noise: |d/s|_2 decides, and its worst case over box and balls is computed.
    - Without a joint bound, the worst case is the corner d = λ, since every coordinate's curve
      grows with its change, and the losses of the coordinates compose.
    - With one, and log-concave noise: d is no worse than one coordinate moved by |d/s|_1, whose
      worst case is computed. For log-concave noise T(F, F(. - a)) is α -> F(F^-1(1 - α) - a), so
      the trade-off functions of the shifts a and b compose, as for groups, to that of a + b; and
      the tensor product of two trade-off functions lies above that composition (go from (0, 0) to
      (a, b) by way of (a, 0)).

    The charge covers ``n_releases`` releases, chosen adaptively, each made once. Where scales
    differ between releases, release t must get the noise of row t: a call that makes some of them
    says which, by ``first``.

    What is stated is checked when the record is made, also by :func:`dataclasses.replace`: scales
    where a record can move something, a family that goes with the name, and a promise that contains
    the loss that follows from the scales.
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
    families : tuple of Noise or None, default=None
        The family of each coordinate, or one for all; None is that of the name.
    promise : PureLoss, GaussianLoss or None, default=None
        A loss that contains this mechanism's own, and is charged for in its place. Adaptive budgets
        are added up in it.
    considered : tuple of (str, float or str), default=()
        What was compared: names with their expected errors, or with the reason of their refusal.

    Raises
    ------
    TypeError
        If a field is of the wrong kind.
    ValueError
        If one is out of range, fields contradict one another, or the mechanism's own loss exceeds
        the promise.

    References
    ----------
    Mironov, "On significance of the least significant bits for differential privacy", CCS 2012 (why
    integers). Dong, Roth and Su, "Gaussian differential privacy", arXiv:1905.02383, Theorem 2.14
    and Lemma A.5 (groups, and the triangle inequality of trade-off functions). Muthukrishnan and
    Kalyani, arXiv:2302.03511, Theorems 4 and 5 (the scales).

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
    families: tuple[Noise, ...] | None = None
    promise: LossBudget | None = None
    considered: tuple[tuple[str, float | str], ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        check_promise(self)

    @property
    def family(self) -> Noise:
        """The noise family of the first coordinate."""
        assert self.families is not None
        return self.families[0]

    @property
    def quantum(self) -> NDArray[np.float64]:
        """Size of one integer step of each coordinate, of the shape and in the units of scale."""
        return np.ldexp(self.scale, -self.bits)

    @property
    def standard_deviation(self) -> NDArray[np.float64]:
        """Standard deviation of the noise, of the shape and in the units of scale."""
        deviation: NDArray[np.float64] = self.scale * np.sqrt(self._moments(2.0))
        return deviation

    def privacy_loss(self) -> PrivacyLoss:
        """Return what ``n_releases`` releases cost together.

        Returns
        -------
        PrivacyLoss
            The promise, if there is one, else :meth:`own_loss`.

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import GaussianLoss
        >>> profile = SensitivityProfile([1.0, 4.0])
        >>> print(calibrate("inid_gaussian", profile, GaussianLoss(0.5)).privacy_loss())
        0.5-GDP
        """
        return self.own_loss() if self.promise is None else self.promise

    def own_loss(self) -> PrivacyLoss:
        """Return the loss that follows from the scales, whatever was promised.

        Returns
        -------
        PrivacyLoss
            Gaussian if all noise is, else numeric.

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import PureLoss
        >>> profile = SensitivityProfile([1.0, 4.0])
        >>> calibrate("inid_laplace", profile, PureLoss(0.5)).own_loss()
        NumericLoss(2 x Laplace)
        """
        return own_loss(self)

    def sample(
        self, words: RandomWords, n_draws: int | None = None, *, first: int | None = None
    ) -> NDArray[np.int64]:
        """Return the noise of consecutive releases, in quanta.

        Parameters
        ----------
        words : RandomWords
            Source of randomness.
        n_draws : int or None, default=None
            Number of releases; None is all of them, from ``first`` on.
        first : int or None, default=None
            Index of the first release, counted from 0. It must be given if scales differ between
            releases and not all are drawn.

        Returns
        -------
        ndarray of int64, shape (n_draws, n_coordinates)

        Raises
        ------
        ValueError
            If draws are asked for that are not charged for, or it is not said which ones.

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
        start, count = checked_span("AdditiveMechanism", n_draws, first, self.n_releases)
        self._check_index("sample", first, count)
        draws = self._draws(words, count)
        scale = self.scale if self.scale.ndim == 1 else self.scale[start : start + count]
        draws[np.broadcast_to(scale == 0.0, draws.shape)] = 0
        return draws

    def release(
        self, value: ArrayLike, random_state: Any = None, *, first: int | None = None
    ) -> NDArray[np.float64]:
        """Return the value with noise added: what may be made public.

        Parameters
        ----------
        value : array-like of shape (n_coordinates,) or (m, n_coordinates)
            The query's value, or those of m consecutive releases. Integers stay exact, of whatever
            size.
        random_state : None, int, numpy generator or RandomWords, default=None
            None draws from the operating system's cryptographic source. Anything else is
            reproducible, and gives no privacy against those who know it.
        first : int or None, default=None
            Index of the first release that this call makes, counted from 0: release t has the noise
            of row t of the scales. It must be given if scales differ between releases and this
            call does not make all of them.

        Returns
        -------
        ndarray of the shape of ``value``
            Whole multiples of ``quantum``: the doubles nearest to the exact ones.

        Raises
        ------
        TypeError
            If the value is not an array of real numbers.
        ValueError
            If it is not finite, or has the wrong shape, or releases are asked for that are not
            charged for, or it is not said which ones.

        Notes
        -----
        Nothing is remembered: calling this again is another release, to be charged for again unless
        ``n_releases`` covers it. Making release t twice is charged for by nobody.

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import GaussianLoss
        >>> mechanism = calibrate("iid_gaussian", SensitivityProfile([1.0]), GaussianLoss(0.5))
        >>> released = mechanism.release([10.0], random_state=0)
        >>> bool((np.rint(released / mechanism.quantum) * mechanism.quantum == released).all())
        True

        Releases with scales of their own, one after the other:

        >>> weights = [[1.0], [9.0]]
        >>> mechanism = calibrate(
        ...     "iid_gaussian", SensitivityProfile([1.0]), GaussianLoss(0.5), n_releases=2,
        ...     weights=weights,
        ... )
        >>> answers = [mechanism.release([10.0], first=t) for t in range(2)]
        """
        owner, size = type(self).__name__, self.sensitivity.n_coordinates
        rows = checked_rows(owner, value, size, self.n_releases, first)
        if self.family.lattice and not are_integers(rows):
            raise ValueError(
                "The 'value' parameter of AdditiveMechanism.release must be integer in every entry "
                f"for noise={self.noise!r}, which lives on the integers. Use another noise."
            )
        self._check_index("release", first, len(rows))
        return noisy_release(self, rows, random_state, first).reshape(np.shape(value))

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
        errors = np.broadcast_to(self.scale**p * self._moments(p), shape)
        if weights is not None:
            errors = errors * np.asarray(weights, dtype=np.float64)
        return float(errors.sum())

    @property
    def mean_squared_error(self) -> float:
        """Expected squared error per coordinate and release."""
        return self.expected_error() / (self.n_releases * self.sensitivity.n_coordinates)

    def explain(self) -> str:
        """Say what was chosen, what it costs, and what else was considered; public facts only.

        Returns
        -------
        str
            One line for each noise that was compared, from the smallest expected error up.

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import PrivacyGuarantee
        >>> profile = SensitivityProfile([1.0, 4.0])
        >>> print(calibrate("inid_laplace", profile, PrivacyGuarantee(1.0)).explain())
        inid_laplace: scale 3.51984 to 5.5874, 2 coordinates, 1 release, 1-DP
        expected squared error 87.2167 in all
        """
        return explanation(self)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(noise={self.noise!r}, scale={self.scale.min():.6g} to "
            f"{self.scale.max():.6g}, n_coordinates={self.sensitivity.n_coordinates}, "
            f"n_releases={self.n_releases}, loss={self.privacy_loss()})"
        )

    def _moments(self, p: float) -> NDArray[np.float64]:
        """Return E|Z_j|^p, of shape (1,) or (n_coordinates,)."""
        assert self.families is not None
        known = {family: family.absolute_moment(p) for family in set(self.families)}
        return np.array([known[family] for family in self.families])

    def _draws(self, words: RandomWords, count: int) -> NDArray[np.int64]:
        assert self.families is not None
        n_coordinates = self.sensitivity.n_coordinates
        if len(self.families) == 1:
            return self.family.sample_rounded(words, (count, n_coordinates), self.bits)
        draws = np.empty((count, n_coordinates), dtype=np.int64)
        for family in dict.fromkeys(self.families):
            (members,) = np.nonzero([other == family for other in self.families])
            draws[:, members] = family.sample_rounded(words, (count, members.size), self.bits)
        return draws

    def _check_index(self, method: str, first: int | None, count: int) -> None:
        """Refuse to guess which releases a call makes, where it matters."""
        if first is None and self.scale.ndim == 2 and count < self.n_releases:
            raise ValueError(
                _NO_INDEX.format(method=method, count=count, n_releases=self.n_releases)
            )
