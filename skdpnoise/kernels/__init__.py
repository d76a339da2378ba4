"""Compiled loops over arrays. They know nothing of privacy and own no randomness."""

from __future__ import annotations

from skdpnoise.kernels.coordinate_descent import coordinate_descent
from skdpnoise.kernels.losses import LOGISTIC, LOSSES, POISSON, SQUARED, Loss, hinge, huber, pinball
from skdpnoise.kernels.products import row_products
from skdpnoise.kernels.second_moments import clipped_row_sums, row_norms, second_moments

__all__ = [
    "LOGISTIC",
    "LOSSES",
    "POISSON",
    "SQUARED",
    "Loss",
    "clipped_row_sums",
    "coordinate_descent",
    "hinge",
    "huber",
    "pinball",
    "row_norms",
    "row_products",
    "second_moments",
]
