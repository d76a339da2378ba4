"""Noise on whole vectors: correlated, for bounded counts, and along a norm."""

from skdpnoise.mechanisms.joint.bounded_counts import BoundedCountsMechanism, bounded_counts
from skdpnoise.mechanisms.joint.correlated import CorrelatedSumMechanism, correlated_sum
from skdpnoise.mechanisms.joint.k_norm import KNormMechanism, k_norm
from skdpnoise.mechanisms.joint.l1_staircase import L1StaircaseMechanism, l1_staircase

__all__ = [
    "BoundedCountsMechanism",
    "CorrelatedSumMechanism",
    "KNormMechanism",
    "L1StaircaseMechanism",
    "bounded_counts",
    "correlated_sum",
    "k_norm",
    "l1_staircase",
]
