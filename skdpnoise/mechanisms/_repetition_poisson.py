"""A Poisson number of repetitions, drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from skdpnoise.mechanisms._repetition_sampling import SPARE_DIGITS, draw_count
from skdpnoise.privacy._checks import check_real
from skdpnoise.sampling import RandomWords

__all__ = ["PoissonRepetitions"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PoissonRepetitions:
    r"""A Poisson number of repetitions; it may be 0, and then nothing is chosen.

    .. math:: \Pr[K = k] = e^{-m} m^k / k!

    Parameters
    ----------
    mean : float
        m in (0, 1e5].

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022,
    Theorem 6.

    Examples
    --------
    >>> PoissonRepetitions(3.0).pmf([0, 3]).round(4)
    array([0.0498, 0.224 ])
    """

    mean: float

    def __post_init__(self) -> None:
        mean = check_real(type(self).__name__, "mean", self.mean, high=1e5, high_closed=True)
        object.__setattr__(self, "mean", mean)

    @classmethod
    def with_coverage(cls, share: float, coverage: float) -> PoissonRepetitions:
        """Return the law that tries one of the best `share` with this probability.

        Parameters
        ----------
        share : float
            Share of candidates, in (0, 1).
        coverage : float
            In (0, 1).

        Returns
        -------
        PoissonRepetitions

        Examples
        --------
        >>> PoissonRepetitions.with_coverage(share=0.1, coverage=0.9).mean.__round__(4)
        23.0259
        """
        share = check_real(cls.__name__, "share", share, high=1.0)
        coverage = check_real(cls.__name__, "coverage", coverage, high=1.0)
        return cls(-math.log1p(-coverage) / share)

    @np.errstate(under="ignore")
    def pmf(self, k: ArrayLike) -> Vector:
        """Return Pr[K = k].

        Parameters
        ----------
        k : array-like of int

        Returns
        -------
        ndarray
        """
        k = np.asarray(k, dtype=np.float64)
        counts = np.maximum(k, 0.0)
        logs = counts * math.log(self.mean) - self.mean - gammaln(counts + 1.0)
        return np.where((k >= 0.0) & (k == np.floor(k)), np.exp(logs), 0.0)

    def coverage(self, share: float) -> float:
        """Return the probability that some run falls among a `share` of what runs may do.

        Parameters
        ----------
        share : float
            In [0, 1].

        Returns
        -------
        float
        """
        share = check_real(
            type(self).__name__, "share", share, high=1.0, low_closed=True, high_closed=True
        )
        return -math.expm1(-self.mean * share)

    def log_derivative(self, u: ArrayLike) -> Vector:
        """Return the log of the derivative of the generating function at 1 - u: log m - m u.

        Parameters
        ----------
        u : array-like
            In [0, 1].

        Returns
        -------
        ndarray
        """
        logs: Vector = math.log(self.mean) - self.mean * np.asarray(u, dtype=np.float64)
        return logs

    def log_slope(self, u: ArrayLike) -> Vector:
        """Return the derivative of :meth:`log_derivative` by u: -m.

        Parameters
        ----------
        u : array-like
            In [0, 1].

        Returns
        -------
        ndarray
        """
        return np.full_like(np.asarray(u, dtype=np.float64), -self.mean)

    def pure_excess(self, epsilon: float) -> float:
        """Return what the repetition adds to a pure ε: m tanh(ε/2).

        Parameters
        ----------
        epsilon : float
            ε ≥ 0.

        Returns
        -------
        float
        """
        return self.mean * math.tanh(0.5 * epsilon)

    def sample(self, words: RandomWords) -> int:
        """Draw K exactly; see :meth:`TruncatedNegativeBinomial.sample`.

        Parameters
        ----------
        words : RandomWords
            Source of randomness.

        Returns
        -------
        int
            At least 0.
        """
        return draw_count(words, self, 0)

    def _ratio(self, k: int) -> tuple[int, int]:
        """Return Pr[K = k + 1]/Pr[K = k], m/(k + 1), exactly, as a fraction."""
        mean, unit = self.mean.as_integer_ratio()
        return mean, unit * (k + 1)

    def _inverse_first(self, digits: int) -> Decimal:
        """Return 1/Pr[K = 0] to so many digits."""
        return Context(prec=digits + SPARE_DIGITS).exp(Decimal(self.mean))
