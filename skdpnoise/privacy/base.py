"""What every loss does alike: it checks what it is asked, and is composed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from skdpnoise._utils.checks import check_count, check_real


class Loss(ABC):
    """A curve δ(ε) that composes: a kind of loss says how by its private methods."""

    __slots__ = ()

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of the smallest δ at ``epsilon``, tight to a fraction of a percent.

        Parameters
        ----------
        epsilon : float
            A value ≥ 0.

        Returns
        -------
        float
            0 from the ε of pure privacy on, if there is one.

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss, PureLoss
        >>> round(GaussianLoss(1.0).delta(1.0), 6)
        0.126937
        >>> round(PureLoss(1.0).delta(0.0), 4)  # the total variation distance
        0.4621
        """
        owner = f"{type(self).__name__}.delta"
        return self._delta_at(check_real(owner, "epsilon", epsilon, low_closed=True))

    def epsilon(self, delta: float) -> float:
        """Return an ε that goes with ``delta``, rounded up.

        Parameters
        ----------
        delta : float
            A value in [0, 1).

        Returns
        -------
        float
            At δ = 0 the ε of pure privacy. Infinity if no ε goes with ``delta``.

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss, PureLoss
        >>> round(PureLoss(1.0).epsilon(0.1), 4)
        0.8529
        >>> GaussianLoss(1.0).epsilon(0.0)
        inf
        """
        owner = f"{type(self).__name__}.epsilon"
        return self._epsilon_at(check_real(owner, "delta", delta, high=1.0, low_closed=True))

    def compose(self, count: int) -> Self:
        """Return the loss of ``count`` adaptive releases: pure ε adds, as does the square of a μ.

        Parameters
        ----------
        count : int
            At least 1.

        Examples
        --------
        >>> from skdpnoise.privacy import GaussianLoss, PureLoss
        >>> PureLoss(0.5).compose(4)
        PureLoss(pure_epsilon=2.0)
        >>> GaussianLoss(0.5).compose(4)
        GaussianLoss(mu=1.0)
        """
        return self._times(check_count(f"{type(self).__name__}.compose", "count", count))

    @abstractmethod
    def _delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""

    @abstractmethod
    def _epsilon_at(self, delta: float) -> float:
        """Return ε(δ), rounded up."""

    @abstractmethod
    def _times(self, count: int) -> Self:
        """Return the loss of so many releases."""
