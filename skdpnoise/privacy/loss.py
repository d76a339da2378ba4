"""The one currency of accounting: the cost of a release in privacy, and how costs add."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from skdpnoise._utils.checks import Adjacency, check_adjacency, check_count, check_real
from skdpnoise.privacy.base import BaseLoss
from skdpnoise.privacy.conversions import gdp_delta, gdp_epsilon
from skdpnoise.privacy.curves import NormalShift, RandomisedResponse
from skdpnoise.privacy.guarantee import PrivacyGuarantee
from skdpnoise.privacy.numeric.loss import NumericLoss

# Keeps a computed loss, or the sum of several shares, on the safe side of its rounding error.
_MARGIN, _FEW_ULPS = 1e-12, 2.0**-49


@runtime_checkable
class PrivacyLoss(Protocol):
    """The cost of a release: the curve δ(ε), and its composition with other costs.

    A mechanism with this loss is (ε, δ(ε))-differentially private for every ε ≥ 0 at once, and
    releases may be chosen adaptively: the composition rules below hold then too. The neighbouring
    relation is that of the sensitivity the mechanism was calibrated to.

    Examples
    --------
    >>> isinstance(PureLoss(1.0), PrivacyLoss)
    True
    """

    def delta(self, epsilon: float) -> float:
        """Return a δ for which the loss implies (ε, δ)-privacy."""

    def epsilon(self, delta: float) -> float:
        """Return an ε for which the loss implies (ε, δ)-privacy."""

    def compose(self, count: int) -> PrivacyLoss:
        """Return the loss of ``count`` adaptive releases of this loss each."""

    def __add__(self, other: Any) -> PrivacyLoss:
        """Return the loss of this release followed by the other."""

    def numeric(self) -> NumericLoss:
        """Return the same loss in the form in which losses of different kinds compose."""


class _Divisible(BaseLoss):
    """The loss of a budget: one number, which can be multiplied."""

    __slots__ = ()

    def share(self, fraction: float) -> Self:
        """Return the loss of a ``fraction`` in (0, 1] of the budget: of ε, or of μ², rounded down.

        Examples
        --------
        >>> print(PureLoss(1.0).share(0.25), GaussianLoss(1.0).share(0.25))
        0.25-DP 0.5-GDP
        """
        owner = f"{type(self).__name__}.share"
        fraction = check_real(owner, "fraction", fraction, high=1.0, high_closed=True)
        return self._scaled(_rounded_down(self._of_releases(fraction)))

    def per_row(self, rows: int) -> Self:
        """Return the loss per row, if this one is per group: ε or μ over ``rows``, rounded down."""
        rows = check_count(f"{type(self).__name__}.per_row", "rows", rows)
        return self._scaled(_rounded_down(1.0 / rows))

    def for_group(self, rows: int) -> Self:
        """Return the loss per group, if this one is per row: ε or μ times the most ``rows``.

        Neighbours that differ in a group are so many steps apart. Each step multiplies a
        probability by at most exp(ε) (Dwork and Roth 2014, Theorem 2.2), and trade-off functions of
        successive shifts by μ compose to that of their sum (Dong, Roth and Su, Theorem 2.14).
        """
        return self._scaled(check_count(f"{type(self).__name__}.for_group", "rows", rows))

    @abstractmethod
    def numeric(self) -> NumericLoss:
        """Return the same loss in the form in which losses of different kinds compose."""

    def _times(self, count: int) -> Self:
        return self._scaled(self._of_releases(count))

    @abstractmethod
    def _of_releases(self, count: float) -> float:
        """Return the factor by which ``count`` releases multiply the number."""

    @abstractmethod
    def _scaled(self, factor: float) -> Self: ...


@dataclass(frozen=True, slots=True)
class PureLoss(_Divisible):
    r"""The loss of an ε-differentially private release, with δ = 0.

    .. math:: \delta(e) = \max\left(0, \frac{e^{\varepsilon} - e^{e}}{1 + e^{\varepsilon}}\right)

    is the exact curve of all that ε-privacy alone promises (that of randomised response).

    Parameters
    ----------
    pure_epsilon : float
        ε ≥ 0, finite.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    (composition). Kairouz, Oh and Viswanath, "The composition theorem for differential privacy",
    arXiv:1311.0776, Section 3 (the curve).

    Examples
    --------
    >>> PureLoss(0.5) + PureLoss(0.25), PureLoss(0.5).compose(4)
    (PureLoss(pure_epsilon=0.75), PureLoss(pure_epsilon=2.0))

    The numeric form composes tightly: 400 losses of ε = 0.05 make ε = 4.86 at δ = 1e-6, not 20.

    >>> round(PureLoss(0.05).numeric().compose(400).epsilon(1e-6), 2)
    4.86
    """

    pure_epsilon: float

    def __post_init__(self) -> None:
        value = check_real("PureLoss", "pure_epsilon", self.pure_epsilon, low_closed=True)
        object.__setattr__(self, "pure_epsilon", value)

    def __str__(self) -> str:
        return f"{self.pure_epsilon:.6g}-DP"

    def numeric(self) -> NumericLoss:
        return NumericLoss(((RandomisedResponse(), self.pure_epsilon, 1),))

    def _delta_at(self, epsilon: float) -> float:
        if epsilon >= self.pure_epsilon:
            return 0.0
        value = -math.expm1(epsilon - self.pure_epsilon) / (1.0 + math.exp(-self.pure_epsilon))
        return math.nextafter(min(value * (1.0 + _FEW_ULPS), 1.0), 1.0)

    def _epsilon_at(self, delta: float) -> float:
        saved = delta * (1.0 + math.exp(-self.pure_epsilon))
        if delta == 0.0 or saved >= 1.0:
            return self.pure_epsilon if delta == 0.0 else 0.0
        smaller = self.pure_epsilon + math.log1p(-saved)
        room = 4.0 * _MARGIN * max(self.pure_epsilon, saved)  # for the error of the difference
        return min(self.pure_epsilon, max(0.0, smaller + room))

    def _of_releases(self, count: float) -> float:
        return count

    def _scaled(self, factor: float) -> Self:
        return type(self)(self.pure_epsilon * factor)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if isinstance(other, PureLoss):
            return PureLoss(self.pure_epsilon + other.pure_epsilon)
        return self.numeric() + other


@dataclass(frozen=True, slots=True)
class GaussianLoss(_Divisible):
    r"""The loss of a μ-Gaussian-private release.

    .. math:: \delta(e) = Q(e/\mu - \mu/2) - e^{e} Q(e/\mu + \mu/2)

    Telling neighbours apart is as hard as telling N(0, 1) from N(μ, 1). Normal noise of standard
    deviations σ_j on a query that moves by d_j has exactly this loss with μ² = Σ d_j²/σ_j².
    Composition is exact: squares add.

    Added to a loss of another kind it makes a :class:`NumericLoss`, which is tight.

    Parameters
    ----------
    mu : float
        μ ≥ 0, finite.

    References
    ----------
    Dong, Roth and Su, arXiv:1905.02383, Definition 2.6, Corollaries 2.13 and 3.3.

    Examples
    --------
    >>> GaussianLoss(3.0) + GaussianLoss(4.0)
    GaussianLoss(mu=5.0)
    >>> round(GaussianLoss(0.236704381).epsilon(delta=1e-6), 6)
    1.0
    """

    mu: float

    def __post_init__(self) -> None:
        mu = check_real("GaussianLoss", "mu", self.mu, low_closed=True)
        object.__setattr__(self, "mu", mu)

    def __str__(self) -> str:
        return f"{self.mu:.6g}-GDP"

    def numeric(self) -> NumericLoss:
        return NumericLoss(((NormalShift(), self.mu, 1),))

    def _delta_at(self, epsilon: float) -> float:
        return gdp_delta(self.mu, epsilon)

    def _epsilon_at(self, delta: float) -> float:
        if delta == 0.0:
            return math.inf if self.mu else 0.0
        return gdp_epsilon(self.mu, delta)

    def _of_releases(self, count: float) -> float:
        return math.sqrt(count)

    def _scaled(self, factor: float) -> Self:
        return type(self)(self.mu * factor)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if isinstance(other, GaussianLoss):
            return GaussianLoss(math.hypot(self.mu, other.mu))
        return self.numeric() + other


LossBudget = PureLoss | GaussianLoss
"""Losses that can be divided into shares: what adaptive releases are charged in."""


Asked = TypeVar("Asked", bound=LossBudget)  # what a query takes beside a guarantee


def promised(
    owner: str,
    guarantee: PrivacyGuarantee | Asked | None,
    epsilon: float | None,
    delta: float | None,
    adjacency: Adjacency | None = None,
) -> PrivacyGuarantee | Asked:
    """Return the guarantee that is asked for, as an object or by its numbers."""
    if epsilon is None:
        if guarantee is None or delta is not None:
            raise TypeError(
                f"{owner} needs a guarantee: pass 'epsilon', and 'delta' if it is not 1e-6."
            )
        return guarantee
    if guarantee is not None:
        raise TypeError(f"{owner} takes a guarantee, or 'epsilon' and 'delta', and got both.")
    numbers = (
        check_real(owner, "epsilon", epsilon),
        check_real(owner, "delta", 1e-6 if delta is None else delta, high=1.0, low_closed=True),
    )
    return PrivacyGuarantee(*numbers, check_adjacency(owner, adjacency or "replace_one"))


def checked_relation(
    owner: str,
    adjacency: Adjacency | None,
    guarantee: PrivacyGuarantee | LossBudget,
    otherwise: Adjacency | None = None,
) -> Adjacency:
    """Return the neighbouring relation that is asked for; None takes that of a guarantee."""
    stated = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else otherwise
    if adjacency is None:
        if stated is None:
            raise ValueError(
                f"The 'adjacency' parameter of {owner} must be given when the guarantee is a loss, "
                "which does not name a neighbouring relation."
            )
        return stated
    relation = check_adjacency(owner, adjacency)
    if isinstance(guarantee, PrivacyGuarantee) and relation != stated:
        raise ValueError(
            f"The 'adjacency' parameter of {owner} must be None or that of the guarantee, "
            f"{stated!r}. Got {adjacency!r} instead."
        )
    return relation


def _rounded_down(factor: float) -> float:
    return factor if factor == 1.0 else factor * (1.0 - _MARGIN)
