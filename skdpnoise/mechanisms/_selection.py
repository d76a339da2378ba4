"""What all selections share: utilities as integers, the charge, and the checks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms._exact import (
    are_finite,
    are_real,
    exact_floor,
    exact_numbers,
    has_large_integers,
)
from skdpnoise.privacy import PureLoss, check_count, check_real
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.observer import chosen

__all__ = ["Selection", "check_name", "whole_quanta"]

_STEPS = 24  # the sensitivity spans at least 2**24 quanta
_FEWEST_BITS, _MOST_BITS = 10, 52
_RANGE_BITS = 61  # utilities are held within ±2**61 quanta
_COARSE_BITS = 31


@dataclass(frozen=True, slots=True)
class Selection(ABC):
    """A choice among candidates; what :class:`ExponentialMechanism` says of integers holds for all.

    Parameters
    ----------
    sensitivity, epsilon, monotonic
        See there.
    """

    sensitivity: float
    epsilon: float
    monotonic: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        sensitivity = check_real(owner, "sensitivity", self.sensitivity, low=1e-280, high=1e280)
        epsilon = check_real(owner, "epsilon", self.epsilon, low=1e-12, high=1e9)
        if not isinstance(self.monotonic, bool):
            raise TypeError(
                f"The 'monotonic' parameter of {owner} must be a bool. Got {self.monotonic!r} of "
                f"type {type(self.monotonic).__name__} instead."
            )
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "epsilon", epsilon)

    @property
    def bits(self) -> int:
        """B: the unit of the exponent, 2Δ/ε (Δ/ε if monotonic), spans 2**bits quanta."""
        needed = _STEPS - math.floor(math.log2(self._exponent))
        return min(max(needed, _FEWEST_BITS), _MOST_BITS)

    @property
    def quantum(self) -> float:
        """Size q of one integer step of the utilities, in their units."""
        steps = self._steps
        quantum = self.sensitivity / steps
        while Fraction(quantum) * steps < Fraction(self.sensitivity):
            quantum = math.nextafter(quantum, math.inf)
        return quantum

    def privacy_loss(self) -> PureLoss:
        """Return what one selection costs: ε, less up to one part in 2**24.

        Returns
        -------
        PureLoss

        Examples
        --------
        >>> from skdpnoise.mechanisms.selection import PermuteAndFlip
        >>> print(PermuteAndFlip(sensitivity=1.0, epsilon=0.5).privacy_loss())
        0.5-DP
        """
        return PureLoss(math.ldexp(self._steps, (0 if self.monotonic else 1) - self.bits))

    def select(self, utilities: ArrayLike, random_state: Any = None) -> int:
        """Return the index of the chosen candidate: what may be made public.

        Parameters
        ----------
        utilities : array-like of shape (n_candidates,)
            u, larger is better. Candidates, and their number, are public; the utilities are not.
        random_state : None, int, numpy generator or RandomWords, default=None
            None draws from the operating system's cryptographic source. Anything else is
            reproducible, and gives no privacy against those who know it.

        Returns
        -------
        int

        Raises
        ------
        TypeError
            If the utilities are not an array of real numbers of double precision or less.
        ValueError
            If they are not a non-empty vector, or not finite.

        Notes
        -----
        Nothing is remembered: each call is another release, to be charged for again. The time that
        a call takes depends on the utilities; do not make it public.

        Examples
        --------
        >>> from skdpnoise.mechanisms.selection import ExponentialMechanism
        >>> ExponentialMechanism(sensitivity=1.0, epsilon=1.0).select([3, 40, 5], random_state=0)
        1
        """
        quanta = self._quanta(utilities)

        def draw(words: RandomWords) -> int:
            return int(self._draws(words, quanta, 1)[0])

        return chosen(self, quanta, random_words(random_state), draw)

    def check(self, utilities: ArrayLike) -> None:
        """Refuse what :meth:`select` would refuse, without choosing.

        Parameters
        ----------
        utilities : array-like of shape (n_candidates,)
            u.

        Raises
        ------
        TypeError
            If the utilities are not an array of real numbers of double precision or less.
        ValueError
            If they are not a non-empty vector, or not finite.

        Examples
        --------
        >>> from skdpnoise.mechanisms.selection import PermuteAndFlip
        >>> PermuteAndFlip(sensitivity=1.0, epsilon=1.0).check([3, 40, 5])
        """
        _check_utilities(type(self).__name__, utilities)

    def probabilities(self, utilities: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each candidate, for analysis and tests.

        They reveal the utilities: **never publish them for private ones**.

        Parameters
        ----------
        utilities : array-like of shape (n_candidates,)
            u.

        Returns
        -------
        ndarray of shape (n_candidates,)

        Examples
        --------
        >>> from skdpnoise.mechanisms.selection import ExponentialMechanism
        >>> ExponentialMechanism(sensitivity=1.0, epsilon=2.0).probabilities([0.0, 1.0]).round(4)
        array([0.2689, 0.7311])
        """
        quanta = self._quanta(utilities)
        # Integers below 2**62: their rounding to double precision is relative to the gap.
        return self._law(np.ldexp((quanta.max() - quanta).astype(np.float64), -self.bits))

    def expected_loss(self, utilities: ArrayLike) -> float:
        """Return the expected gap between the best utility and the chosen one, for analysis.

        It reveals something of the utilities: **never publish it for private ones**.

        Parameters
        ----------
        utilities : array-like of shape (n_candidates,)
            u.

        Returns
        -------
        float
            In the units of the utilities.

        Examples
        --------
        >>> from skdpnoise.mechanisms.selection import ExponentialMechanism
        >>> mechanism = ExponentialMechanism(sensitivity=1.0, epsilon=2.0)
        >>> round(mechanism.expected_loss([0.0, 1.0]), 4)
        0.2689
        """
        quanta = self._quanta(utilities)
        gaps = (quanta.max() - quanta).astype(np.float64) * self.quantum
        return float(self.probabilities(utilities) @ gaps)

    def error_bound(self, n_candidates: int) -> float:
        r"""Return a bound on the expected gap, whatever the utilities.

        .. math:: E[u_{\max} - u_r] \le \frac{2 \Delta}{\varepsilon} \log n + q

        and half the first term if monotonic. (The exponential mechanism's expected gap is T times
        the entropy of its law less a positive number, T = 2Δ/ε; permute-and-flip is never worse;
        for Laplace noise the bound is T (log n + 1).)

        Parameters
        ----------
        n_candidates : int
            n.

        Returns
        -------
        float
            In the units of the utilities; public.

        References
        ----------
        McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007, Theorem 8.

        Examples
        --------
        >>> from skdpnoise.mechanisms.selection import PermuteAndFlip
        >>> PermuteAndFlip(sensitivity=1.0, epsilon=1.0).error_bound(100) < 9.3
        True
        """
        count = check_count(type(self).__name__ + ".error_bound", "n_candidates", n_candidates)
        temperature = math.ldexp(self.quantum, self.bits)
        return temperature * (math.log(count) + self._excess) + self.quantum

    @property
    def _excess(self) -> float:
        """What a bound on the expected gap has beside log n, in units of 2**bits quanta."""
        return 0.0

    @property
    def _exponent(self) -> float:
        return self.epsilon if self.monotonic else 0.5 * self.epsilon

    @property
    def _steps(self) -> int:
        """The integer sensitivity D: the most with D/2**bits at most ε/2 (ε if monotonic)."""
        return math.floor(math.ldexp(self._exponent, self.bits))

    def _quanta(self, utilities: ArrayLike) -> NDArray[np.int64]:
        checked = _check_utilities(type(self).__name__, utilities)
        if has_large_integers(checked):
            return exact_floor(checked, self.quantum, 2**_RANGE_BITS)
        return whole_quanta(checked.astype(np.float64), self.quantum)

    @abstractmethod
    def _draws(
        self, words: RandomWords, utilities: NDArray[np.int64], size: int
    ) -> NDArray[np.int64]:
        """Return the chosen candidates of independent selections; utilities are in quanta."""

    @abstractmethod
    def _law(self, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each candidate, by its gap to the best in units of 2**bits."""


def whole_quanta(utilities: NDArray[np.float64], quantum: float) -> NDArray[np.int64]:
    """Return floor(u/q), exactly, clipped to ±2**61.

    The remainder of a division is exact, and so is the quotient of what is left if it is below
    2**51, once rounded; hence two digits of base 2**31.
    """
    limit = math.ldexp(quantum, _RANGE_BITS)
    coarse = math.ldexp(quantum, _COARSE_BITS)
    clipped = np.clip(utilities, -limit, limit)
    rest = np.fmod(clipped, coarse)
    last = np.fmod(rest, quantum)
    high = np.rint((clipped - rest) / coarse).astype(np.int64)
    low = np.rint((rest - last) / quantum).astype(np.int64)
    quanta: NDArray[np.int64] = (high << _COARSE_BITS) + low - (last < 0.0)
    return quanta


def _check_utilities(owner: str, utilities: ArrayLike) -> NDArray[Any]:
    array = exact_numbers(utilities)
    allowed = (
        f"The 'utilities' parameter of {owner} must be a non-empty one-dimensional array of finite "
        "numbers"
    )
    if array.dtype.kind == "b" or not are_real(array):
        raise TypeError(
            f"{allowed}, of double precision or less. Got an array of dtype {array.dtype} instead."
        )
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{allowed}. Got an array of shape {array.shape} instead.")
    if not are_finite(array):
        raise ValueError(f"{allowed}: remove or replace NaN and infinity first.")
    return array


def check_name(owner: str, name: str, value: object, options: tuple[str, ...]) -> None:
    allowed = f"The {name!r} parameter of {owner} must be a str among {list(options)}"
    if not isinstance(value, str):
        raise TypeError(f"{allowed}. Got {value!r} of type {type(value).__name__} instead.")
    if value not in options:
        raise ValueError(f"{allowed}. Got {value!r} instead.")
