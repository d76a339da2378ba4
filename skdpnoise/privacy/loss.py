"""The one currency of accounting: how much privacy a release costs, and how costs add."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from skdpnoise.privacy.checks import check_count, check_real
from skdpnoise.privacy.conversions import gdp_delta, gdp_epsilon
from skdpnoise.privacy.curves import NormalShift, RandomisedResponse
from skdpnoise.privacy.numeric import NumericLoss

__all__ = ["GaussianLoss", "LossBudget", "PrivacyLoss", "PureLoss"]

# Keeps a computed loss, or the sum of several shares, on the safe side of its rounding error.
_MARGIN, _FEW_ULPS = 1e-12, 2.0**-49


@runtime_checkable
class PrivacyLoss(Protocol):
    """What a release costs: the curve δ(ε), and its composition with other costs.

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
        ...

    def epsilon(self, delta: float) -> float:
        """Return an ε for which the loss implies (ε, δ)-privacy."""
        ...

    def compose(self, count: int) -> PrivacyLoss:
        """Return the loss of ``count`` adaptive releases of this loss each."""
        ...

    def __add__(self, other: Any) -> PrivacyLoss:
        """Return the loss of this release followed by the other."""
        ...

    def numeric(self) -> NumericLoss:
        """Return the same loss in the form in which losses of different kinds compose."""
        ...


@dataclass(frozen=True, slots=True)
class PureLoss:
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
    >>> PureLoss(0.5) + PureLoss(0.25)
    PureLoss(pure_epsilon=0.75)
    >>> PureLoss(0.5).epsilon(delta=0.0)
    0.5
    >>> print(PureLoss(0.5).compose(3))
    1.5-DP
    """

    pure_epsilon: float

    def __post_init__(self) -> None:
        value = check_real("PureLoss", "pure_epsilon", self.pure_epsilon, low_closed=True)
        object.__setattr__(self, "pure_epsilon", value)

    def __str__(self) -> str:
        return f"{self.pure_epsilon:.6g}-DP"

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ that ε-privacy promises at ``epsilon``, rounded up.

        Parameters
        ----------
        epsilon : float
            A value ≥ 0.

        Returns
        -------
        float
            0 from ``pure_epsilon`` on.

        Examples
        --------
        >>> round(PureLoss(1.0).delta(0.0), 4)  # the total variation distance
        0.4621
        """
        epsilon = check_real("PureLoss.delta", "epsilon", epsilon, low_closed=True)
        if epsilon >= self.pure_epsilon:
            return 0.0
        value = -math.expm1(epsilon - self.pure_epsilon) / (1.0 + math.exp(-self.pure_epsilon))
        return math.nextafter(min(value * (1.0 + _FEW_ULPS), 1.0), 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that goes with ``delta``, rounded up.

        Parameters
        ----------
        delta : float
            A value in [0, 1).

        Returns
        -------
        float
            ``pure_epsilon`` at 0, less for a larger δ.

        Examples
        --------
        >>> round(PureLoss(1.0).epsilon(0.1), 4)
        0.8529
        """
        delta = check_real("PureLoss.epsilon", "delta", delta, high=1.0, low_closed=True)
        saved = delta * (1.0 + math.exp(-self.pure_epsilon))
        if delta == 0.0 or saved >= 1.0:
            return self.pure_epsilon if delta == 0.0 else 0.0
        smaller = self.pure_epsilon + math.log1p(-saved)
        room = 4.0 * _MARGIN * max(self.pure_epsilon, saved)  # for the error of the difference
        return min(self.pure_epsilon, max(0.0, smaller + room))

    def compose(self, count: int) -> PureLoss:
        """Return the loss of ``count`` releases: ε adds.

        Parameters
        ----------
        count : int
            At least 1.

        Returns
        -------
        PureLoss

        Examples
        --------
        >>> PureLoss(0.5).compose(4)
        PureLoss(pure_epsilon=2.0)
        """
        return PureLoss(self.pure_epsilon * check_count("PureLoss.compose", "count", count))

    def share(self, fraction: float) -> PureLoss:
        """Return the loss that a part of the budget may have.

        Parameters
        ----------
        fraction : float
            In (0, 1].

        Returns
        -------
        PureLoss
            ``fraction`` times ε, rounded down.

        Examples
        --------
        >>> print(PureLoss(1.0).share(0.25))
        0.25-DP
        """
        fraction = _fraction("PureLoss", fraction)
        return PureLoss(self.pure_epsilon * _rounded_down(fraction))

    def per_row(self, rows: int) -> PureLoss:
        """Return the loss with respect to one row that makes this one for groups of rows.

        Parameters
        ----------
        rows : int
            The most rows of a group, at least 1.

        Returns
        -------
        PureLoss
            ε over the number of rows, rounded down.

        Examples
        --------
        >>> print(PureLoss(1.0).per_row(5))
        0.2-DP
        """
        rows = check_count("PureLoss.per_row", "rows", rows)
        return PureLoss(self.pure_epsilon * _rounded_down(1.0 / rows))

    def for_group(self, rows: int) -> PureLoss:
        """Return the loss for groups of so many rows, if this one is with respect to one row.

        Neighbours that differ in a group are so many steps apart, and each step multiplies a
        probability by at most exp(ε) (Dwork and Roth 2014, Theorem 2.2).

        Parameters
        ----------
        rows : int
            The most rows of a group, at least 1.

        Returns
        -------
        PureLoss

        Examples
        --------
        >>> PureLoss(0.5).for_group(4)
        PureLoss(pure_epsilon=2.0)
        """
        return PureLoss(self.pure_epsilon * check_count("PureLoss.for_group", "rows", rows))

    def numeric(self) -> NumericLoss:
        """Return the same loss in the form in which losses of different kinds compose.

        Its composition is tight: 400 losses of ε = 0.05 make ε = 4.86 at δ = 1e-6, not 20.

        Returns
        -------
        NumericLoss

        Examples
        --------
        >>> round(PureLoss(0.05).numeric().compose(400).epsilon(1e-6), 2)
        4.86
        """
        return NumericLoss(((RandomisedResponse(), self.pure_epsilon, 1),))

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if isinstance(other, PureLoss):
            return PureLoss(self.pure_epsilon + other.pure_epsilon)
        if isinstance(other, PrivacyLoss):
            return self.numeric() + other.numeric()
        return NotImplemented


@dataclass(frozen=True, slots=True)
class GaussianLoss:
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
    Dong, Roth and Su, "Gaussian differential privacy", arXiv:1905.02383, Definition 2.6,
    Corollaries 2.13 and 3.3.

    Examples
    --------
    >>> GaussianLoss(3.0) + GaussianLoss(4.0)
    GaussianLoss(mu=5.0)
    >>> print(GaussianLoss(0.25).compose(4))
    0.5-GDP
    >>> round(GaussianLoss(0.236704381).epsilon(delta=1e-6), 6)
    1.0
    """

    mu: float

    def __post_init__(self) -> None:
        mu = check_real("GaussianLoss", "mu", self.mu, low_closed=True)
        object.__setattr__(self, "mu", mu)

    def __str__(self) -> str:
        return f"{self.mu:.6g}-GDP"

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ at ``epsilon``, rounded up.

        Parameters
        ----------
        epsilon : float
            A value ≥ 0.

        Returns
        -------
        float

        Examples
        --------
        >>> round(GaussianLoss(1.0).delta(1.0), 6)
        0.126937
        """
        return gdp_delta(self.mu, epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that goes with ``delta``, rounded up.

        Parameters
        ----------
        delta : float
            A value in [0, 1).

        Returns
        -------
        float
            Infinity at δ = 0, which no Gaussian noise can promise.

        Examples
        --------
        >>> GaussianLoss(1.0).epsilon(0.0)
        inf
        """
        owner = "GaussianLoss.epsilon"
        if check_real(owner, "delta", delta, high=1.0, low_closed=True) == 0.0:
            return math.inf if self.mu else 0.0
        return gdp_epsilon(self.mu, delta)

    def compose(self, count: int) -> GaussianLoss:
        """Return the loss of ``count`` releases: μ² adds.

        Parameters
        ----------
        count : int
            At least 1.

        Returns
        -------
        GaussianLoss

        Examples
        --------
        >>> GaussianLoss(0.5).compose(4)
        GaussianLoss(mu=1.0)
        """
        count = check_count("GaussianLoss.compose", "count", count)
        return GaussianLoss(self.mu * math.sqrt(count))

    def share(self, fraction: float) -> GaussianLoss:
        """Return the loss that a part of the budget may have.

        Parameters
        ----------
        fraction : float
            In (0, 1].

        Returns
        -------
        GaussianLoss
            ``fraction`` times μ², rounded down.

        Examples
        --------
        >>> print(GaussianLoss(1.0).share(0.25))
        0.5-GDP
        """
        fraction = _fraction("GaussianLoss", fraction)
        return GaussianLoss(self.mu * _rounded_down(math.sqrt(fraction)))

    def per_row(self, rows: int) -> GaussianLoss:
        """Return the loss with respect to one row that makes this one for groups of rows.

        Parameters
        ----------
        rows : int
            The most rows of a group, at least 1.

        Returns
        -------
        GaussianLoss
            μ over the number of rows, rounded down.

        Examples
        --------
        >>> print(GaussianLoss(1.0).per_row(5))
        0.2-GDP
        """
        rows = check_count("GaussianLoss.per_row", "rows", rows)
        return GaussianLoss(self.mu * _rounded_down(1.0 / rows))

    def for_group(self, rows: int) -> GaussianLoss:
        """Return the loss for groups of so many rows, if this one is with respect to one row.

        Neighbours that differ in a group are so many steps apart, and trade-off functions of
        successive steps compose: those of N(0, 1) against N(μ, 1) to one of N(0, 1) against
        N(mμ, 1) (Dong, Roth and Su, Theorem 2.14).

        Parameters
        ----------
        rows : int
            The most rows of a group, at least 1.

        Returns
        -------
        GaussianLoss

        Examples
        --------
        >>> GaussianLoss(0.5).for_group(4)
        GaussianLoss(mu=2.0)
        """
        return GaussianLoss(self.mu * check_count("GaussianLoss.for_group", "rows", rows))

    def numeric(self) -> NumericLoss:
        """Return the same loss in the form in which losses of different kinds compose.

        Returns
        -------
        NumericLoss

        Examples
        --------
        >>> round(GaussianLoss(1.0).numeric().delta(1.0), 6)
        0.126937
        """
        return NumericLoss(((NormalShift(), self.mu, 1),))

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if isinstance(other, GaussianLoss):
            return GaussianLoss(math.hypot(self.mu, other.mu))
        if isinstance(other, PrivacyLoss):
            return self.numeric() + other.numeric()
        return NotImplemented


LossBudget = PureLoss | GaussianLoss
"""Losses that can be divided into shares: what adaptive releases are charged in."""


def _fraction(owner: str, value: object) -> float:
    return check_real(owner + ".share", "fraction", value, high=1.0, high_closed=True)


def _rounded_down(factor: float) -> float:
    return factor if factor == 1.0 else factor * (1.0 - _MARGIN)
