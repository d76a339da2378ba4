"""One private choice that spends a pure or Gaussian budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_type
from skdpnoise.mechanisms.base import Mechanism
from skdpnoise.mechanisms.selection.choices import (
    ExponentialMechanism,
    PermuteAndFlip,
    range_epsilon,
)
from skdpnoise.privacy import GaussianLoss, LossBudget, PureLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["NormQuantileMechanism"]


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
            raise ValueError(
                "The 'bounded_range' parameter of NormQuantileMechanism must be True for an "
                "ExponentialMechanism, and False for PermuteAndFlip, whose loss has no bounded "
                f"range. Got {self.bounded_range!r} instead."
            )

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
        """Name of the mechanism, for reports."""
        return "exponential_mechanism" if self.bounded_range else "permute_and_flip"

    @property
    def sensitivity(self) -> SensitivityProfile:
        """How far one record can move a utility."""
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
        """Return what one choice costs."""
        if self.bounded_range:
            assert isinstance(self.selection, ExponentialMechanism)
            return self.selection.gaussian_loss()
        return self.selection.privacy_loss()

    def select(self, utilities: ArrayLike, rng: RandomWords) -> int:
        """Return the index of the chosen candidate, which may be made public.

        Utilities, of shape (n_candidates,), are in records; larger is better.
        """
        return self.selection.select(utilities, rng)
