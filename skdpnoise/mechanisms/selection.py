"""Private choice of the best of several public candidates, exactly, in integers.

A candidate r has a utility u_r computed from the data; one record moves every utility by at most Δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

from skdpnoise.mechanisms._ledgers import LedgerLike, check_ledger, pay
from skdpnoise.mechanisms._selection import Selection, check_name
from skdpnoise.mechanisms._selection_laws import (
    laplace_law,
    permute_and_flip_law,
    proportional_law,
)
from skdpnoise.mechanisms._selection_sampling import (
    draw_exponential,
    draw_laplace,
    draw_permute_and_flip,
)
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss
from skdpnoise.sampling import RandomWords, random_words

__all__ = ["ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax", "private_argmax"]

_MARGIN = 1e-11  # relative error of normal quantiles, with room to spare
_METHODS = ("auto", "permute_and_flip", "exponential", "report_noisy_max")
_RNM_NOISES = ("exponential", "laplace", "gumbel")


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(Selection):
    r"""Choose a candidate with probability exponential in its utility.

    .. math:: \Pr[r] \propto \exp\!\left(\frac{\varepsilon u_r}{2 \Delta}\right), \qquad
              \Pr[r] \propto \exp\!\left(\frac{\varepsilon u_r}{\Delta}\right)
              \text{ if monotonic}

    **Guarantee.** For neighbours D, D' with :math:`|u_r(D) - u_r(D')| \le \Delta` for all r, the
    choice is ε-differentially private (McSherry and Talwar), and its loss ranges over an interval
    of length ε (Dong, Durfee and Rogers), which :meth:`gaussian_loss` uses. *Monotonic*: between
    neighbours all utilities move in the same direction, as do counts when a record is added.

    **Exactness.** The utilities are rounded down to integers k of a public quantum q, and Δ/q ≤ D
    for an integer D: since floor is monotone and floor(x + D) = floor(x) + D, one record moves k by
    at most D, so that the rounding costs nothing. (Δ must bound the utilities *as computed*.) The
    exponent is k/2^B with D/2^B ≤ ε/2 and ε is charged as 2D/2^B. A candidate is drawn uniformly
    and accepted with probability exp((k − max k)/2^B), by coins of exactly that probability,
    until one is accepted: this is the mechanism itself, without floating-point numbers. Utilities
    beyond ±2^61 q, at least 2^36 Δ for ε up to 10^4, are clipped, which moves no two further apart.

    Parameters
    ----------
    sensitivity : float
        Δ, public: the most that one record moves any utility; in their units.
    epsilon : float
        ε, what one selection may cost.
    monotonic : bool, default=False
        Whether a record moves all utilities in the same direction.

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
    >>> print(mechanism.privacy_loss())
    1-DP
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

        Returns
        -------
        GaussianLoss

        References
        ----------
        Dong, Durfee and Rogers, ICML 2020, Section 3 (bounded range). Van Zwet, "Convex
        transformations of random variables", 1964 (the order of the two laws). Dong, Roth and Su,
        "Gaussian differential privacy", arXiv:1905.02383, Definition 2.6.

        Examples
        --------
        >>> print(ExponentialMechanism(sensitivity=1.0, epsilon=1.0).gaussian_loss())
        0.623893-GDP
        """
        return GaussianLoss(_range_mu(self.privacy_loss().pure_epsilon))

    def _draws(
        self, words: RandomWords, utilities: NDArray[np.int64], size: int
    ) -> NDArray[np.int64]:
        return draw_exponential(words, utilities, self.bits, size)

    def _law(self, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
        return proportional_law(gaps)


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Selection):
    r"""Visit candidates in random order, and take the first whose coin falls heads.

    .. math:: \Pr[\text{heads}_r] = \exp\!\left(\frac{\varepsilon (u_r - u_{\max})}{2\Delta}\right)

    without the 2 if monotonic. The expected utility is never below that of the exponential
    mechanism of the same ε, and up to half as far from the best; the choice has the law of report
    noisy max with exponential noise.

    **Guarantee.** ε-differential privacy for neighbours between whom no utility moves by more than
    Δ (McKenna and Sheldon). Exactness as in :class:`ExponentialMechanism`: utilities rounded down
    to integers, a uniform order, and coins of exactly the stated probability.

    Parameters
    ----------
    sensitivity : float
        Δ, public: the most that one record moves any utility; in their units.
    epsilon : float
        ε, what one selection may cost.
    monotonic : bool, default=False
        Whether a record moves all utilities in the same direction.

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
    >>> print(mechanism.privacy_loss())
    1-DP
    """

    def _draws(
        self, words: RandomWords, utilities: NDArray[np.int64], size: int
    ) -> NDArray[np.int64]:
        return draw_permute_and_flip(words, utilities, self.bits, size)

    def _law(self, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
        return permute_and_flip_law(gaps)


@dataclass(frozen=True, slots=True)
class ReportNoisyMax(Selection):
    r"""Add independent noise to every utility, and name the largest.

    .. math:: r = \arg\max_r \; u_r + \frac{2\Delta}{\varepsilon} Z_r

    without the 2 if monotonic. Exponential noise has the law of :class:`PermuteAndFlip`, and Gumbel
    noise that of :class:`ExponentialMechanism`; they are drawn as such. For Gaussian or any other
    noise of :func:`~skdpnoise.mechanisms.calibrate`, release the noisy vector
    (:func:`~skdpnoise.mechanisms.noisy_histogram`), pay for that, and take its argmax.

    **Guarantee.** ε-differential privacy for neighbours between whom no utility moves by more than
    Δ. For Laplace noise: given the noise of the others, candidate r wins iff its own noise reaches
    a threshold, which one record moves by at most 2Δ (by Δ if monotonic); and a Laplace tail falls
    by at most e^{-2Δ/b} over 2Δ. In integers: the threshold is one, and the noise is rounded, which
    makes its tail that of Laplace noise half a step lower; ties go to the first.

    Parameters
    ----------
    sensitivity : float
        Δ, public: the most that one record moves any utility; in their units.
    epsilon : float
        ε, what one selection may cost.
    monotonic : bool, default=False
        Whether a record moves all utilities in the same direction.
    noise : {"exponential", "laplace", "gumbel"}, default="exponential"
        Law of Z. Exponential noise is the best of the three.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Claim 3.9. Ding et
    al., arXiv:2105.07260, Theorem 1 (exponential noise).

    Examples
    --------
    >>> mechanism = ReportNoisyMax(sensitivity=1.0, epsilon=1.0, noise="laplace")
    >>> mechanism.select([500, 100, 200], random_state=0)
    0
    """

    noise: str = "exponential"

    def __post_init__(self) -> None:
        Selection.__post_init__(self)
        check_name("ReportNoisyMax", "noise", self.noise, _RNM_NOISES)

    @property
    def _excess(self) -> float:
        return 1.0 if self.noise == "laplace" else 0.0

    def _draws(
        self, words: RandomWords, utilities: NDArray[np.int64], size: int
    ) -> NDArray[np.int64]:
        draw = {
            "exponential": draw_permute_and_flip,
            "laplace": draw_laplace,
            "gumbel": draw_exponential,
        }[self.noise]
        return draw(words, utilities, self.bits, size)

    def _law(self, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
        law = {
            "exponential": permute_and_flip_law,
            "laplace": laplace_law,
            "gumbel": proportional_law,
        }[self.noise]
        return law(gaps)


def private_argmax(
    utilities: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    method: str = "auto",
    random_state: Any = None,
    ledger: LedgerLike | None = None,
) -> tuple[int, ExponentialMechanism | PermuteAndFlip | ReportNoisyMax]:
    r"""Choose the best candidate privately.

    Under (ε, δ) the choice is by permute-and-flip with ε, which no exponential mechanism beats.
    Under a :class:`~skdpnoise.privacy.GaussianLoss` μ it is by the exponential mechanism, whose
    bounded range allows twice the ε that pure privacy allows, ε = 2 logit Φ(μ/2) (see
    :meth:`ExponentialMechanism.gaussian_loss`).

    **Guarantee.** For neighbours between whom no utility moves by more than Δ, what the guarantee
    says. The neighbouring relation is that for which the sensitivity was computed.

    Parameters
    ----------
    utilities : array-like of shape (n_candidates,)
        u, larger is better. Candidates, and their number, are public; the utilities are not.
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        What the choice may cost.
    sensitivity : float, default=1.0
        Δ, public: the most that one record moves any utility; in their units.
    monotonic : bool, default=False
        Whether a record moves all utilities in the same direction, as counts under "add_remove".
    method : {"auto", "permute_and_flip", "exponential", "report_noisy_max"}, default="auto"
        "report_noisy_max" is that with Laplace noise.
    random_state : None, int, numpy generator or RandomWords, default=None
        None is the operating system's cryptographic source.
    ledger : PrivacyLedger or None, default=None
        Charged before anything is drawn, after all checks: None charges nobody, and the caller does
        the accounting.

    Returns
    -------
    index : int
        The chosen candidate.
    mechanism : ExponentialMechanism, PermuteAndFlip or ReportNoisyMax
        What chose it, with its ``privacy_loss``. An exponential mechanism that was chosen for a
        GaussianLoss is to be charged by its ``gaussian_loss``.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If the utilities are not finite or the method is unknown.

    References
    ----------
    McKenna and Sheldon, NeurIPS 2020, Theorem 2. Dong, Durfee and Rogers, ICML 2020.

    Examples
    --------
    >>> index, mechanism = private_argmax([500, 100, 200], PrivacyGuarantee(1.0), random_state=0)
    >>> index, mechanism
    (0, PermuteAndFlip(sensitivity=1.0, epsilon=1.0, monotonic=False))
    >>> _, mechanism = private_argmax([500, 100, 200], GaussianLoss(0.5), random_state=0)
    >>> print(mechanism.gaussian_loss())
    0.5-GDP
    """
    check_name("private_argmax", "method", method, _METHODS)
    ranged = isinstance(guarantee, GaussianLoss) and method in ("auto", "exponential")
    if isinstance(guarantee, PrivacyGuarantee):
        epsilon = guarantee.epsilon
    elif isinstance(guarantee, PureLoss):
        epsilon = guarantee.pure_epsilon
    elif isinstance(guarantee, GaussianLoss):
        # ε-DP is the case of a range from −ε to ε: 2 logit Φ(μ/2) of range, half of it for ε.
        epsilon = range_epsilon(guarantee.mu) * (1.0 if ranged else 0.5)
    else:
        raise TypeError(
            "The 'guarantee' parameter of private_argmax must be a PrivacyGuarantee, a PureLoss or "
            f"a GaussianLoss. Got an object of type {type(guarantee).__name__} instead."
        )
    mechanism: ExponentialMechanism | PermuteAndFlip | ReportNoisyMax
    if method == "report_noisy_max":
        mechanism = ReportNoisyMax(sensitivity, epsilon, monotonic, noise="laplace")
    elif ranged or method == "exponential":
        mechanism = ExponentialMechanism(sensitivity, epsilon, monotonic)
    else:
        mechanism = PermuteAndFlip(sensitivity, epsilon, monotonic)
    check_ledger("private_argmax", ledger)
    words = random_words(random_state)
    mechanism.check(utilities)
    chosen = method
    if method == "auto":
        chosen = "exponential" if ranged else "permute_and_flip"
    cost: LossBudget = mechanism.privacy_loss()
    if ranged and isinstance(mechanism, ExponentialMechanism):
        cost = mechanism.gaussian_loss()
    relation = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else None
    owner, secure = "private_argmax", words.secure
    pay(ledger, owner, cost, guarantee, adjacency=relation, noise=chosen, secure=secure)
    return mechanism.select(utilities, words), mechanism


def _range_mu(epsilon: float) -> float:
    """Return 2 Φ^{-1}(expit(ε/2)), rounded up."""
    if epsilon < 1e-3:
        # Φ^{-1}(1/2 + x) = √(2π) x (1 + π x²/3 + ...) with x < ε/8: the cubic term is below ε².
        return math.sqrt(2.0 * math.pi) * epsilon / 4.0 * (1.0 + epsilon**2 + _MARGIN)
    # The smaller tail keeps its relative accuracy.
    return -2.0 * float(ndtri_exp(-float(np.logaddexp(0.0, 0.5 * epsilon)))) * (1.0 + _MARGIN)


def range_epsilon(mu: float) -> float:
    """Return the ε of a range that makes μ: 2 logit Φ(μ/2), rounded down."""
    epsilon = 2.0 * float(log_ndtr(0.5 * mu) - log_ndtr(-0.5 * mu)) * (1.0 - 1e-9)
    while epsilon > 0.0 and _range_mu(epsilon) > mu:
        epsilon *= 1.0 - 1e-9
    return epsilon
