"""Private choice of the best of several public candidates, exactly, in integers.

A candidate r has a utility u_r computed from the data; one record moves every utility by at most Δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_option, check_type, complaint
from skdpnoise._utils.sealed import stated
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms import grid_sizes
from skdpnoise.mechanisms._choice_laws import KINDS, ChoiceLaw, range_epsilon, range_mu
from skdpnoise.mechanisms.base import Mechanism
from skdpnoise.mechanisms.repetition import (
    approximate_base,
    base_budget,
    choose_repetitions,
    repeated_loss,
)
from skdpnoise.privacy import GaussianLoss, LossBudget, PureLoss, check_count, check_real
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.observer import chosen
from skdpnoise.sensitivity import SensitivityProfile

__all__ = [
    "ExponentialMechanism",
    "NormQuantileMechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "Selection",
    "SelectionMechanism",
    "approximate_base",
    "base_budget",
    "choose_repetitions",
    "range_epsilon",
    "range_mu",
    "repeated_loss",
    "whole_steps",
]

_STEPS = 24  # the sensitivity spans at least 2**24 grid steps
_FEWEST_BITS, _MOST_BITS = 10, 52
_RANGE_BITS = 61  # utilities are held within ±2**61 grid steps
_COARSE_BITS = 31


@shared_texts
@dataclass(frozen=True, slots=True)
class SelectionMechanism(Mechanism):
    """A choice among candidates, with the fields of :class:`ExponentialMechanism`."""

    sensitivity: float = field()
    epsilon: float
    monotonic: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        sensitivity = check_real(owner, "sensitivity", self.sensitivity, low=1e-280, high=1e280)
        epsilon = check_real(owner, "epsilon", self.epsilon, low=1e-12, high=1e9)
        check_type(owner, "monotonic", self.monotonic, bool)
        stated(self, sensitivity=sensitivity, epsilon=epsilon)

    @property
    def bits(self) -> int:
        """B: the unit of the exponent, 2Δ/ε (Δ/ε if monotonic), spans 2**bits grid steps."""
        needed = _STEPS - math.floor(math.log2(self._exponent))
        return min(max(needed, _FEWEST_BITS), _MOST_BITS)

    @property
    def scale(self) -> float:
        """2Δ/ε (Δ/ε if monotonic): so much more utility makes a candidate e times as likely."""
        return self.sensitivity / self._exponent

    @property
    def grid_size(self) -> float:
        """Size q of one integer step of the utilities, in their units."""
        steps = self._steps
        grid_size = self.sensitivity / steps
        while Fraction(grid_size) * steps < Fraction(self.sensitivity):
            grid_size = math.nextafter(grid_size, math.inf)
        return grid_size

    def privacy_loss(self) -> PureLoss:
        """Return the cost of one selection: ε, less up to one part in 2**24."""
        return PureLoss(math.ldexp(self._steps, (0 if self.monotonic else 1) - self.bits))

    def select(self, utilities: ArrayLike, random_state: Any = None) -> int:
        """Return the index of the chosen candidate, which may be made public.

        Each call is another release, to be charged for again. The time that a call takes depends on
        the utilities; do not make it public.

        Parameters
        ----------
        utilities : array-like of shape (n_candidates,)
            u, finite; larger is better. Candidates and their number are public; utilities are not.
        %(queries: random_state)s
        """
        integers = self._integers(utilities)

        def draw(rng: RandomWords) -> int:
            return int(self._kind.draw(rng, integers, self.bits, 1)[0])

        return chosen(self, integers, random_words(random_state), draw)

    def check(self, utilities: ArrayLike) -> None:
        """Raise the errors of :meth:`select` for these utilities, without choosing."""
        _check_utilities(type(self).__name__, utilities)

    def probabilities(self, utilities: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each candidate: **never publish it of private utilities**."""
        integers = self._integers(utilities)
        # Integers below 2**62: their rounding to double precision is relative to the gap.
        return self._kind.law(np.ldexp((integers.max() - integers).astype(np.float64), -self.bits))

    def expected_loss(self, utilities: ArrayLike) -> float:
        """Return the expected gap to the best utility: **never publish it of private ones**."""
        integers = self._integers(utilities)
        gaps = (integers.max() - integers).astype(np.float64) * self.grid_size
        return float(self.probabilities(utilities) @ gaps)

    def error_bound(self, n_candidates: int) -> float:
        r"""Return a bound on the expected gap, whatever the utilities.

        .. math:: E[u_{\max} - u_r] \le \frac{2 \Delta}{\varepsilon} \log n + q

        for n candidates, and half the first term if monotonic. (The exponential mechanism's
        expected gap is T times the entropy of its law less a positive number, T = 2Δ/ε;
        permute-and-flip is never worse; for Laplace noise the bound is T (log n + 1).)

        References
        ----------
        McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007, Theorem 8.
        """
        count = check_count(type(self).__name__ + ".error_bound", "n_candidates", n_candidates)
        temperature = math.ldexp(self.grid_size, self.bits)
        return temperature * (math.log(count) + self._kind.excess) + self.grid_size

    @property
    def _exponent(self) -> float:
        return self.epsilon if self.monotonic else 0.5 * self.epsilon

    @property
    def _steps(self) -> int:
        """The integer sensitivity D: the most with D/2**bits at most ε/2 (ε if monotonic)."""
        return math.floor(math.ldexp(self._exponent, self.bits))

    def _integers(self, utilities: ArrayLike) -> NDArray[np.int64]:
        checked = _check_utilities(type(self).__name__, utilities)
        if grid_sizes.are_large(checked).any():
            steps = [self.grid_size] * checked.size
            return grid_sizes.exact_integers(checked.tolist(), steps, math.floor, 2**_RANGE_BITS)
        return whole_steps(checked.astype(np.float64), self.grid_size)

    @property
    def _kind(self) -> ChoiceLaw:
        return KINDS[self.noise]


Selection = SelectionMechanism


@shared_texts
@dataclass(frozen=True, slots=True)
class ExponentialMechanism(SelectionMechanism):
    r"""Choose a candidate with probability exponential in its utility.

    .. math:: \Pr[r] \propto \exp\!\left(\frac{\varepsilon u_r}{2 \Delta}\right), \qquad
              \Pr[r] \propto \exp\!\left(\frac{\varepsilon u_r}{\Delta}\right)
              \text{ if monotonic}

    **Guarantee.** For neighbours D, D' with :math:`|u_r(D) - u_r(D')| \le \Delta` for all r, the
    choice is ε-differentially private (McSherry and Talwar), and its loss ranges over an interval
    of length ε (Dong, Durfee and Rogers), which :meth:`gaussian_loss` uses. *Monotonic*: between
    neighbours all utilities move in the same direction, as do counts when a record is added.

    **Exactness.** The utilities are rounded down to integers k of a public grid step q, and Δ/q ≤ D
    for an integer D. Since floor is monotone and floor(x + D) = floor(x) + D, one record moves k by
    at most D. (Δ must bound the utilities *as computed*.) The exponent is k/2^B with D/2^B ≤ ε/2,
    and ε is charged as 2D/2^B. Candidates are sampled uniformly until one is accepted, with
    exactly the probability exp((k − max k)/2^B). Utilities beyond ±2^61 q, at least 2^36 Δ for ε up
    to 10^4, are clipped, which moves no two further apart.

    Parameters
    ----------
    %(mechanisms: sensitivity, epsilon, monotonic)s

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007, Theorem 6. Dong,
    Durfee and Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML
    2020 (bounded range). Canonne, Kamath and Steinke, arXiv:2004.00010, Algorithm 1 (the coins).

    Examples
    --------
    >>> mechanism = ExponentialMechanism(sensitivity=1.0, epsilon=1.0)
    >>> mechanism.select([500, 100, 200], random_state=0)
    0
    """

    def gaussian_loss(self) -> GaussianLoss:
        r"""Return the loss in terms of Gaussian privacy: half the μ that ε alone implies.

        .. math:: \mu = 2 \Phi^{-1}\!\left(\frac{e^{\varepsilon/2}}{1 + e^{\varepsilon/2}}\right)

        The loss lies in [t − ε, t] for some t, so that the pair of output laws is dominated by two
        laws on two points whose log-odds differ by ε (a convex function of the loss is largest at
        the ends). Such a pair is μ-Gaussian-private for μ the difference of the normal quantiles
        at its one kink, :math:`g(y + \varepsilon) - g(y)` with :math:`g = \Phi^{-1} \circ
        \mathrm{expit}`; g is odd, and concave on the positive side since logistic tails are heavier
        than normal ones (van Zwet), so the largest is at y = −ε/2.

        References
        ----------
        Dong, Durfee and Rogers, ICML 2020, Section 3 (bounded range). Van Zwet, "Convex
        transformations of random variables", 1964 (the order of the two laws).

        Examples
        --------
        >>> print(ExponentialMechanism(sensitivity=1.0, epsilon=1.0).gaussian_loss())
        0.623893-GDP
        """
        return GaussianLoss(range_mu(self.privacy_loss().pure_epsilon))

    noise = "gumbel"


@shared_texts
@dataclass(frozen=True, slots=True)
class PermuteAndFlip(SelectionMechanism):
    r"""Visit candidates in random order, and take the first that is accepted.

    .. math:: \Pr[\text{heads}_r] = \exp\!\left(\frac{\varepsilon (u_r - u_{\max})}{2\Delta}\right)

    without the 2 if monotonic. The expected utility is never below that of the exponential
    mechanism of the same ε, and up to half as far from the best; the choice has the law of report
    noisy max with exponential noise.

    **Guarantee.** ε-differential privacy for neighbours between whom no utility moves by more than
    Δ (McKenna and Sheldon). Exactness as in :class:`ExponentialMechanism`, with a uniform order.

    Parameters
    ----------
    %(mechanisms: sensitivity, epsilon, monotonic)s

    References
    ----------
    McKenna and Sheldon, "Permute-and-flip: a new mechanism for differentially private selection",
    NeurIPS 2020, Algorithm 1, Theorems 1 and 2. Ding et al., "The permute-and-flip mechanism is
    identical to report-noisy-max with exponential noise", arXiv:2105.07260.

    Examples
    --------
    >>> mechanism = PermuteAndFlip(sensitivity=1.0, epsilon=1.0)
    >>> mechanism.select([500, 100, 200], random_state=0)
    0
    """

    noise = "exponential"


@shared_texts
@dataclass(frozen=True, slots=True)
class ReportNoisyMax(SelectionMechanism):
    r"""Add independent noise to every utility, and name the largest.

    .. math:: r = \arg\max_r \; u_r + \frac{2\Delta}{\varepsilon} Z_r

    without the 2 if monotonic. Exponential noise has the law of :class:`PermuteAndFlip`, and Gumbel
    noise that of :class:`ExponentialMechanism`; they are sampled as such. For Gaussian or any other
    noise of :func:`~skdpnoise.mechanisms.calibrate`, release the noisy vector
    (:func:`~skdpnoise.queries.noisy_histogram`) and take its argmax; the release is charged.

    **Guarantee.** ε-differential privacy for neighbours between whom no utility moves by more than
    Δ. For Laplace noise: given the noise of the others, candidate r wins iff its own noise reaches
    a threshold, which one record moves by at most 2Δ (by Δ if monotonic); and a Laplace tail falls
    by at most e^{-2Δ/b} over 2Δ. The threshold is an integer; rounded noise has the tail of Laplace
    noise half a step lower; ties go to the first.

    Parameters
    ----------
    %(mechanisms: sensitivity, epsilon, monotonic)s
    noise : {"exponential", "laplace", "gumbel"}, default="exponential"
        Law of Z. Exponential noise is the best of the three.
    %(dwork_roth: References)s
    Claim 3.9. Ding et al., arXiv:2105.07260, Theorem 1 (exponential noise).

    Examples
    --------
    >>> mechanism = ReportNoisyMax(sensitivity=1.0, epsilon=1.0, noise="laplace")
    >>> mechanism.select([500, 100, 200], random_state=0)
    0
    """

    noise: str = "exponential"

    def __post_init__(self) -> None:
        SelectionMechanism.__post_init__(self)
        check_option("ReportNoisyMax", "noise", self.noise, KINDS)


@dataclass(frozen=True, slots=True)
class NormQuantileMechanism(Mechanism):
    r"""One private choice of a radius among public candidates.

    **Guarantee.** That of its selection, if one record moves every utility by at most
    ``selection.sensitivity``. Under a Gaussian budget it is the exponential mechanism, charged for
    its bounded range; under a pure one it is permute-and-flip.

    Parameters
    ----------
    selection : ExponentialMechanism or PermuteAndFlip
        What chooses.
    bounded_range : bool
        Whether it is charged for the range of its loss, as a Gaussian loss.

    References
    ----------
    Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential mechanisms",
    ICML 2020. McKenna and Sheldon, "Permute-and-flip", NeurIPS 2020, Theorem 1.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> mechanism = NormQuantileMechanism.within(GaussianLoss(0.5))
    >>> mechanism.select([500, 100, 200], SeededWords(0)), str(mechanism.privacy_loss())
    (0, '0.5-GDP')
    """

    selection: ExponentialMechanism | PermuteAndFlip
    bounded_range: bool

    def __post_init__(self) -> None:
        kinds = (ExponentialMechanism, PermuteAndFlip)
        check_type(type(self).__name__, "selection", self.selection, *kinds)
        if self.bounded_range != (type(self.selection) is ExponentialMechanism):
            must = "be True for an ExponentialMechanism, and False for PermuteAndFlip, whose loss "
            must += "has no bounded range"
            given = repr(self.bounded_range)
            raise ValueError(complaint(type(self).__name__, "bounded_range", must, given))

    @classmethod
    def within(
        cls, budget: LossBudget, *, monotonic: bool = False, sensitivity: float = 1.0
    ) -> NormQuantileMechanism:
        """Return the mechanism that spends a pure or Gaussian budget on utilities of a sensitivity.

        They are `monotonic` if a record moves all of them in the same direction.
        """
        if isinstance(budget, GaussianLoss):
            epsilon = range_epsilon(budget.mu)
            return cls(ExponentialMechanism(sensitivity, epsilon, monotonic), True)
        return cls(PermuteAndFlip(sensitivity, budget.pure_epsilon, monotonic), False)

    @property
    def noise(self) -> str:
        return "exponential_mechanism" if self.bounded_range else "permute_and_flip"

    @property
    def sensitivity(self) -> SensitivityProfile:
        return SensitivityProfile([self.selection.sensitivity])

    @property
    def scale(self) -> NDArray[np.float64]:
        """Records that make a candidate e times as likely, shape (1,)."""
        return np.array([self.selection.scale])

    @property
    def grid_size(self) -> float:
        """Size of one integer step of the utilities, in records."""
        return self.selection.grid_size

    def privacy_loss(self) -> PureLoss | GaussianLoss:
        if self.bounded_range:
            assert isinstance(self.selection, ExponentialMechanism)
            return self.selection.gaussian_loss()
        return self.selection.privacy_loss()

    def select(self, utilities: ArrayLike, rng: RandomWords) -> int:
        """Return the index of the chosen candidate, which may be made public.

        Utilities, of shape (n_candidates,), are in records; larger is better.
        """
        return self.selection.select(utilities, rng)


def whole_steps(utilities: NDArray[np.float64], grid_size: float) -> NDArray[np.int64]:
    """Return floor(u/q), exactly, clipped to ±2**61."""
    # The remainder of a division is exact, and so is the quotient of what is left if it is below
    # 2**51, once rounded; hence two digits of base 2**31.
    limit = math.ldexp(grid_size, _RANGE_BITS)
    coarse = math.ldexp(grid_size, _COARSE_BITS)
    clipped = np.clip(utilities, -limit, limit)
    rest = np.fmod(clipped, coarse)
    last = np.fmod(rest, grid_size)
    high = np.rint((clipped - rest) / coarse).astype(np.int64)
    low = np.rint((rest - last) / grid_size).astype(np.int64)
    return (high << _COARSE_BITS) + low - (last < 0.0)


def _check_utilities(owner: str, utilities: ArrayLike) -> NDArray[Any]:
    array = grid_sizes.exact_array(owner, "utilities", utilities)
    if array.dtype.kind == "b":
        given = f"an array of dtype {array.dtype}"
        raise TypeError(complaint(owner, "utilities", "be numbers", given))
    if array.ndim != 1 or array.size == 0:
        given = f"an array of shape {array.shape}"
        raise ValueError(complaint(owner, "utilities", "be a non-empty vector", given))
    return array
