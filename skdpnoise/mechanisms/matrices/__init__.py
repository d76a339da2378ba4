"""Noise on symmetric matrices: second moments of bounded rows."""

from skdpnoise.mechanisms.matrices.calibrate import SECOND_MOMENT_NOISES, calibrate_second_moments
from skdpnoise.mechanisms.matrices.mechanism import SymmetricMatrixMechanism

__all__ = ["SECOND_MOMENT_NOISES", "SymmetricMatrixMechanism", "calibrate_second_moments"]
