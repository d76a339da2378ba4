"""How often a search is repeated: laws with a tail of any weight, and Poisson's.

Letters: K the count, f(x) = E x^K its generating function, u the probability that one run beats a
given output, g(u) = f'(1 - u).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import exprel, gammaln

from skdpnoise._utils.checks import check_real, check_type

Vector = NDArray[np.float64]

_LEAST_LOG_GAMMA = -690.0  # γ is a normal double
_SPARE_DIGITS = 40  # for the rounding of a few operations
_WORD = 64
_SPARE_BITS = 32


class Words(Protocol):
    """A source of random words, such as :class:`~skdpnoise.sampling.RandomWords`."""

    def take(self, size: int) -> Any:
        """Return ``size`` independent uniform 64-bit words."""


class CountLaw(ABC):
    """An exactly sampled law of a count, whose weights a subclass gives by private methods."""

    __slots__ = ()

    _first: ClassVar[int]  # the smallest count

    @np.errstate(under="ignore")
    def pmf(self, k: ArrayLike) -> Vector:
        """Return Pr[K = k] for an array of k."""
        k = np.asarray(k, dtype=np.float64)
        logs = self._log_pmf(np.maximum(k, self._first))
        return np.where((k >= self._first) & (k == np.floor(k)), np.exp(logs), 0.0)

    def coverage(self, share: float) -> float:
        """Return 1 - f(1 - share): the probability that some run has one of the best outcomes.

        The ``share`` in [0, 1] is theirs, such as a tenth of the candidates if each run draws one.
        """
        owner = type(self).__name__
        return self._coverage(
            check_real(owner, "share", share, high=1.0, low_closed=True, high_closed=True)
        )

    @abstractmethod
    def log_derivative(self, u: ArrayLike) -> Vector:
        r"""Return the log of the derivative of the generating function at 1 - u, u in [0, 1].

        .. math:: \log f'(1 - u) = \log E[K] - (\eta + 1) \log(1 + u (1 - \gamma) / \gamma), \qquad
                  \log m - m u \text{ (Poisson)}
        """

    @abstractmethod
    def log_slope(self, u: ArrayLike) -> Vector:
        """Return the derivative of :meth:`log_derivative` by u."""

    @abstractmethod
    def pure_excess(self, epsilon: float) -> float:
        r"""Return the addition to a pure ε ≥ 0: less than (η + 1) ε, or m ε/2 (Poisson).

        .. math:: (\eta + 1) \log \frac{\gamma + e^{\varepsilon}}{1 + \gamma e^{\varepsilon}},
                  \qquad m \tanh(\varepsilon/2) \text{ (Poisson)}
        """

    def sample(self, rng: Words) -> int:
        """Sample K ≥ 1 (≥ 0 for Poisson's law) exactly, in integers, with no cap on it.

        A uniform number is drawn 64 bits at a time and compared with the distribution function,
        known to as many bits, until an interval of the function holds it. This takes about K
        steps, each much shorter than the run that it stands for.
        """
        value, bits = 0, 0
        while True:
            for word in rng.take(2):
                value, bits = value << _WORD | int(word), bits + _WORD
            found = self._search(value, bits)
            if found is not None:
                return found

    def _search(self, value: int, bits: int) -> int | None:
        """Return K for V in [value, value + 1]/2**bits, or None if V is not known well enough."""
        # Everything is in units of Pr[K = first]: weights begin with 1, and sum to 1/Pr[K = first].
        # Lower and upper bounds are integers, in units of 2**-places.
        places = bits + _SPARE_BITS
        digits = math.ceil(places * math.log10(2.0)) + 2
        total = Fraction(self._inverse_first(digits)) * 2**places
        error = total / 10**digits
        low = math.floor(value * (total - error) / 2**bits)
        high = math.ceil((value + 1) * (total + error) / 2**bits)
        weight_low = weight_high = sum_low = sum_high = 1 << places
        k = self._first
        while True:
            if high <= sum_low:
                return k
            if sum_high > low:
                return None
            top, bottom = self._ratio(k)
            weight_low = weight_low * top // bottom
            weight_high = -(-weight_high * top // bottom)
            sum_low, sum_high, k = sum_low + weight_low, sum_high + weight_high, k + 1

    @abstractmethod
    def _log_pmf(self, counts: Vector) -> Vector:
        """Return log Pr[K = k] of possible counts."""

    @abstractmethod
    def _coverage(self, share: float) -> float: ...

    @abstractmethod
    def _ratio(self, k: int) -> tuple[int, int]:
        """Return Pr[K = k + 1]/Pr[K = k], exactly, as a fraction."""

    @abstractmethod
    def _inverse_first(self, digits: int) -> Decimal:
        """Return 1/Pr[K = first] to so many digits: it errs by less than 10**-digits of itself."""


@dataclass(frozen=True, slots=True)
class TruncatedNegativeBinomial(CountLaw):
    r"""A number of repetitions K ≥ 1 with a heavy or a light tail.

    .. math:: \Pr[K = k] = \frac{(1-\gamma)^k}{\gamma^{-\eta} - 1}
              \prod_{l=0}^{k-1} \frac{l + \eta}{l + 1}, \qquad
              \Pr[K = k] = \frac{(1-\gamma)^k}{k \log(1/\gamma)} \text{ for } \eta = 0

    η = 1 is the geometric law, and η = 0 the logarithmic one. The closer γ is to 1, the more
    often K is 1. A smaller η costs less privacy for the same mean, but puts more of that mean into
    rare long searches: compare laws by :meth:`coverage` rather than by their means.

    Parameters
    ----------
    eta : float
        η in (-1, 1000).
    gamma : float
        γ in (0, 1).

    References
    ----------
    Papernot and Steinke, ICLR 2022, Definition 1.

    Examples
    --------
    >>> TruncatedNegativeBinomial(eta=1.0, gamma=0.05).pmf([1, 2]).round(4)
    array([0.05  , 0.0475])
    """

    eta: float
    gamma: float
    _first: ClassVar[int] = 1

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "eta", check_real(owner, "eta", self.eta, low=-1.0, high=1e3))
        gamma = check_real(owner, "gamma", self.gamma, low=math.exp(_LEAST_LOG_GAMMA), high=1.0)
        object.__setattr__(self, "gamma", gamma)

    @classmethod
    def with_mean(cls, eta: float, mean: float) -> TruncatedNegativeBinomial:
        """Return the law of this η > -1 whose mean is `mean` > 1."""
        mean = check_real(cls.__name__, "mean", mean, low=1.0)
        return cls._solved(eta, lambda law: math.log(law.mean / mean), f"a mean of {mean}")

    @classmethod
    def with_coverage(cls, eta: float, share: float, coverage: float) -> TruncatedNegativeBinomial:
        """Return the law of this η > -1 that tries one of the best `share` with a probability.

        The share lies in (0, 1) and the probability, `coverage`, in (`share`, 1). ValueError if γ
        would be below the smallest double.

        Examples
        --------
        >>> law = TruncatedNegativeBinomial.with_coverage(eta=1.0, share=0.1, coverage=0.9)
        >>> round(law.mean, 6)
        81.0
        """
        share = check_real(cls.__name__, "share", share, high=1.0)
        coverage = check_real(cls.__name__, "coverage", coverage, low=share, high=1.0)
        wish = f"a coverage of {coverage} of a share of {share}"
        return cls._solved(eta, lambda law: law.coverage(share) - coverage, wish)

    @classmethod
    def _solved(
        cls, eta: float, surplus: Callable[[TruncatedNegativeBinomial], float], wish: str
    ) -> TruncatedNegativeBinomial:
        def excess(log_gamma: float) -> float:
            return surplus(cls(eta, math.exp(log_gamma)))

        low, high = 0.999 * _LEAST_LOG_GAMMA, -1e-12
        if excess(low) < 0.0 or excess(high) > 0.0:
            raise ValueError(
                f"The 'eta' parameter of {cls.__name__} must be larger for {wish}. Got {eta!r} "
                "instead, for which gamma would be outside the range of doubles."
            )
        return cls(eta, math.exp(float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))))

    @property
    def mean(self) -> float:
        """E[K]."""
        log_gamma = math.log(self.gamma)
        odds = (1.0 - self.gamma) / self.gamma
        return odds / (-log_gamma * float(exprel(self.eta * log_gamma)))

    def _log_pmf(self, counts: Vector) -> Vector:
        logs: Vector = float(self.log_derivative(1.0)) + (counts - 1.0) * math.log1p(-self.gamma)
        logs = logs + gammaln(counts + self.eta) - gammaln(1.0 + self.eta) - gammaln(counts + 1.0)
        return logs

    def _coverage(self, share: float) -> float:
        # f = expm1(η left)/expm1(η total)
        total = -math.log(self.gamma)
        left = -math.log(self.gamma + (1.0 - self.gamma) * share)
        if self.eta > 0.0:
            scale = math.exp(self.eta * (left - total))
            ratio = exprel(-self.eta * left) / exprel(-self.eta * total)
        else:
            scale, ratio = 1.0, exprel(self.eta * left) / exprel(self.eta * total)
        return 1.0 - scale * float(ratio) * left / total

    def log_derivative(self, u: ArrayLike) -> Vector:
        odds = (1.0 - self.gamma) / self.gamma
        u = np.asarray(u, dtype=np.float64)
        return math.log(self.mean) - (self.eta + 1.0) * np.log1p(odds * u)

    def log_slope(self, u: ArrayLike) -> Vector:
        u = np.asarray(u, dtype=np.float64)
        return -(self.eta + 1.0) / (self.gamma / (1.0 - self.gamma) + u)

    def pure_excess(self, epsilon: float) -> float:
        fallen = math.exp(-epsilon)
        # log (1 + γ e^{-ε}) / (e^{-ε} + γ), without a difference of nearly equal numbers.
        logs = math.log1p(-math.expm1(-epsilon) * (1.0 - self.gamma) / (fallen + self.gamma))
        return (self.eta + 1.0) * min(logs, epsilon)

    def _ratio(self, k: int) -> tuple[int, int]:
        # (1 - γ) (k + η)/(k + 1)
        gamma, gamma_unit = self.gamma.as_integer_ratio()
        eta, eta_unit = self.eta.as_integer_ratio()
        return (gamma_unit - gamma) * (k * eta_unit + eta), gamma_unit * eta_unit * (k + 1)

    def _inverse_first(self, digits: int) -> Decimal:
        # (γ^{-η} - 1)/(η (1 - γ))
        lost = max(0, -Decimal(self.eta * math.log(self.gamma)).adjusted()) if self.eta else 0
        context = Context(prec=digits + lost + _SPARE_DIGITS)
        gamma, eta = Decimal(self.gamma), Decimal(self.eta)
        rest = context.subtract(Decimal(1), gamma)
        log = context.minus(context.ln(gamma))
        if self.eta == 0.0:
            return context.divide(log, rest)
        power = context.exp(context.multiply(eta, log))
        return context.divide(context.subtract(power, Decimal(1)), context.multiply(eta, rest))


@dataclass(frozen=True, slots=True)
class PoissonRepetitions(CountLaw):
    r"""A Poisson number of repetitions; it may be 0, and then nothing is chosen.

    .. math:: \Pr[K = k] = e^{-m} m^k / k!

    Parameters
    ----------
    mean : float
        m in (0, 1e5].

    References
    ----------
    Papernot and Steinke, ICLR 2022, Theorem 6.

    Examples
    --------
    >>> PoissonRepetitions(3.0).pmf([0, 3]).round(4)
    array([0.0498, 0.224 ])
    """

    mean: float
    _first: ClassVar[int] = 0

    def __post_init__(self) -> None:
        mean = check_real(type(self).__name__, "mean", self.mean, high=1e5, high_closed=True)
        object.__setattr__(self, "mean", mean)

    @classmethod
    def with_coverage(cls, share: float, coverage: float) -> PoissonRepetitions:
        """Return the law that tries one of the best `share` with probability `coverage` < 1."""
        share = check_real(cls.__name__, "share", share, high=1.0)
        coverage = check_real(cls.__name__, "coverage", coverage, high=1.0)
        return cls(-math.log1p(-coverage) / share)

    def _log_pmf(self, counts: Vector) -> Vector:
        return np.asarray(counts * math.log(self.mean) - self.mean - gammaln(counts + 1.0))

    def _coverage(self, share: float) -> float:
        return -math.expm1(-self.mean * share)

    def log_derivative(self, u: ArrayLike) -> Vector:
        return math.log(self.mean) - self.mean * np.asarray(u, dtype=np.float64)

    def log_slope(self, u: ArrayLike) -> Vector:
        return np.full_like(np.asarray(u, dtype=np.float64), -self.mean)

    def pure_excess(self, epsilon: float) -> float:
        return self.mean * math.tanh(0.5 * epsilon)

    def _ratio(self, k: int) -> tuple[int, int]:
        mean, unit = self.mean.as_integer_ratio()
        return mean, unit * (k + 1)

    def _inverse_first(self, digits: int) -> Decimal:
        return Context(prec=digits + _SPARE_DIGITS).exp(Decimal(self.mean))


RepetitionLaw = TruncatedNegativeBinomial | PoissonRepetitions


def check_law(owner: str, law: object) -> None:
    check_type(owner, "law", law, TruncatedNegativeBinomial, PoissonRepetitions)
