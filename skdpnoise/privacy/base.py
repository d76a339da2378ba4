"""The base of all losses: arguments are checked, and losses compose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from skdpnoise._utils.checks import check_count, check_real


class BaseLoss(ABC):
    """A curve δ(ε) that composes, given by the private methods of a subclass."""

    __slots__ = ()

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of the smallest δ at ``epsilon`` ≥ 0, tight to a few tenths of a %.

        It is 0 from the ε of pure privacy on, if there is one.

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss, PureLoss
        >>> round(GaussianLoss(1.0).delta(1.0), 4), round(PureLoss(1.0).delta(0.0), 4)
        (0.1269, 0.4621)
        """
        owner = f"{type(self).__name__}.delta"
        return self._delta_at(check_real(owner, "epsilon", epsilon, low_closed=True))

    def epsilon(self, delta: float) -> float:
        """Return an ε that goes with ``delta`` in [0, 1), rounded up.

        At δ = 0 it is the ε of pure privacy; it is infinite if no ε goes with ``delta``.

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss, PureLoss
        >>> round(PureLoss(1.0).epsilon(0.1), 4), GaussianLoss(1.0).epsilon(0.0)
        (0.8529, inf)
        """
        owner = f"{type(self).__name__}.epsilon"
        return self._epsilon_at(check_real(owner, "delta", delta, high=1.0, low_closed=True))

    def compose(self, count: int) -> Self:
        """Return the loss of ``count`` ≥ 1 adaptive releases: pure ε adds, as does a squared μ."""
        return self._times(check_count(f"{type(self).__name__}.compose", "count", count))

    @abstractmethod
    def _delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""

    @abstractmethod
    def _epsilon_at(self, delta: float) -> float:
        """Return ε(δ), rounded up."""

    @abstractmethod
    def _times(self, count: int) -> Self:
        """Return the loss of ``count`` releases."""
