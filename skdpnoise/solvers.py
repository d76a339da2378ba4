"""Another name of :mod:`skdpnoise.kernels`, from the second edition."""

import sys

from skdpnoise.kernels import (
    LOGISTIC,
    LOSSES,
    POISSON,
    SQUARED,
    Loss,
    clipped_row_sums,
    coordinate_descent,
    hinge,
    huber,
    joint,
    pinball,
    row_norms,
    row_products,
    second_moments,
)

sys.modules[f"{__name__}.joint"] = joint  # so that it can be imported from

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
