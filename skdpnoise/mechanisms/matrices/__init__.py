"""Noise on symmetric matrices: second moments of bounded rows."""

from skdpnoise.mechanisms.matrices.calibrate import (
    SECOND_MOMENT_NOISES,
    SymmetricMatrixMechanism,
    calibrate_second_moments,
)

__all__ = ["SECOND_MOMENT_NOISES", "SymmetricMatrixMechanism", "calibrate_second_moments"]
