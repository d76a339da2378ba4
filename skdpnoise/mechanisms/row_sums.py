"""Noise on sums of rows that are held in a ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.joint.balls import KNormMechanism, k_norm
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import RowBounds, SensitivityProfile, clipped_rows

__all__ = ["RowSum", "row_sum"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RowSum:
    """Noise on a sum of rows that are held in a ball, and the facts that a report names."""

    mechanism: AdditiveMechanism | KNormMechanism  # what draws
    noise: str
    scale: Floats  # shape (n_columns,)
    sensitivity: SensitivityProfile  # what one record can do to the sum
    n_releases: int = 1

    def privacy_loss(self) -> PrivacyLoss:
        """Return what the release costs."""
        return self.mechanism.privacy_loss()

    def sample(self, rng: RandomWords) -> NDArray[np.int64]:
        """Return the noise in grid steps, shape (n_columns,)."""
        return np.asarray(self.mechanism.sample(rng)[0])


def row_sum(n_columns: int, radius: float, loss: LossBudget, adjacency: Any) -> RowSum:
    """Calibrate the noise of a sum of rows of norm at most `radius`."""
    # Under a pure budget its density falls with the Euclidean norm: for p columns, half the
    # variance of Laplace noise.
    profile = clipped_rows(RowBounds(n_columns, radius), adjacency)
    if isinstance(loss, GaussianLoss):
        additive = calibrate("iid_gaussian", profile, loss)
        return RowSum(additive, additive.noise, additive.scale, profile)
    assert profile.l2 is not None
    ball = k_norm(2, profile.l2, n_columns, loss)
    return RowSum(ball, "k_norm", np.full(n_columns, ball.scale), profile)
