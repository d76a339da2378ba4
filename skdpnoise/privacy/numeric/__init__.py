"""Losses without a closed form: compositions of curves, evaluated on a lattice, rounded up."""

from skdpnoise.privacy.numeric.loss import (
    NumericLoss,
    about_epsilon,
    bounds_near,
    composed_delta,
)

__all__ = ["NumericLoss", "about_epsilon", "bounds_near", "composed_delta"]
