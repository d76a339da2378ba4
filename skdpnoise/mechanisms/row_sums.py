"""Noise on sums of rows that are held in a ball."""

from __future__ import annotations

from typing import Any

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.joint.balls import KNormMechanism, k_norm
from skdpnoise.privacy import GaussianLoss, LossBudget
from skdpnoise.sensitivity import RowBounds, clipped_rows

__all__ = ["row_sum"]


def row_sum(
    n_columns: int, radius: float, loss: LossBudget, adjacency: Any
) -> AdditiveMechanism | KNormMechanism:
    """Calibrate the noise of a sum of rows of norm at most `radius`."""
    # Under a pure budget its density falls with the Euclidean norm: for p columns, half the
    # variance of Laplace noise.
    profile = clipped_rows(RowBounds(n_columns, radius), adjacency)
    if isinstance(loss, GaussianLoss):
        return calibrate("iid_gaussian", profile, loss)
    assert profile.l2 is not None
    return k_norm(2, profile.l2, n_columns, loss)
