"""Sums that are mixed exactly, get independent noise, and are unmixed."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.vectors import VectorMechanism, exact_release
from skdpnoise.privacy import PrivacyLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile

Vector = NDArray[np.float64]


class MixedMechanism(VectorMechanism):
    """Release :math:`A^{-1} (A f + z)`: an additive mechanism releases A f, and is charged for."""

    # A f is computed and rounded to grid steps by exact rational arithmetic; the rest is
    # post-processing.

    __slots__ = ()

    additive: AdditiveMechanism

    @property
    def n_releases(self) -> int:
        """Number of releases that are charged for."""
        return self.additive.n_releases

    @property
    def grid_size(self) -> Vector:
        """Size of one integer step of what is drawn: of A f, shape (n_coordinates,)."""
        return self.additive.grid_size

    def privacy_loss(self) -> PrivacyLoss:
        return self.additive.privacy_loss()

    @abstractmethod
    def _mixed(self, row: list[Fraction]) -> list[Fraction]:
        """Return A f."""

    @abstractmethod
    def _unmixed(self, noisy: Vector) -> Vector:
        r"""Return :math:`A^{-1} y` of every row y."""

    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        return self.additive.sample(rng, count, first=start)

    def _released(self, rows: NDArray[Any], random_state: Any, first: int | None) -> Vector:
        return self._unmixed(exact_release(self.additive, rows, self._mixed, random_state, first))

    def _check_covered(self, needed: SensitivityProfile, what: str) -> None:
        """Refuse an additive mechanism that is calibrated to less than what one record can do."""
        has, limit = self.additive.sensitivity, needed.per_coordinate
        covered = (
            self.additive.scale.ndim == 1
            and has.n_coordinates == needed.n_coordinates
            and bool((has.per_coordinate >= limit).all())
        )
        for order, bound, least in ((1.0, has.l1, needed.l1), (2.0, has.l2, needed.l2)):
            if covered and bound is not None:
                within = float(np.linalg.norm(limit, order)) if least is None else least
                covered = bound >= within
        if not covered:
            raise ValueError(
                f"The 'additive' parameter of {type(self).__name__} must have one scale for each "
                f"coordinate, and be calibrated to at least {needed}, which follows from {what}. "
                f"Got {has} instead."
            )
