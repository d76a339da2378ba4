"""Mechanisms: calibrated noise on vectors and matrices, and private selection."""

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.allocation import allocate, capped_profile, worst_case_norm
from skdpnoise.mechanisms.balls import KNormMechanism, L1StaircaseMechanism, k_norm, l1_staircase
from skdpnoise.mechanisms.base import Mechanism
from skdpnoise.mechanisms.calibrate import calibrate, shared_budget
from skdpnoise.mechanisms.matrices import (
    SECOND_MOMENT_NOISES,
    SymmetricMatrixMechanism,
    calibrate_second_moments,
)
from skdpnoise.mechanisms.mixed import (
    BoundedCountsMechanism,
    CorrelatedSumMechanism,
    bounded_counts,
    correlated_sum,
)
from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.mechanisms.sampled import SampledMechanism, calibrate_sampled
from skdpnoise.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    approximate_base,
    base_budget,
    choose_repetitions,
    repeated_loss,
)

__all__ = [
    "SECOND_MOMENT_NOISES",
    "AdditiveMechanism",
    "BoundedCountsMechanism",
    "CorrelatedSumMechanism",
    "ExponentialMechanism",
    "KNormMechanism",
    "L1StaircaseMechanism",
    "Mechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "SampledMechanism",
    "SymmetricMatrixMechanism",
    "allocate",
    "approximate_base",
    "base_budget",
    "bounded_counts",
    "calibrate",
    "calibrate_sampled",
    "calibrate_second_moments",
    "capped_profile",
    "choose_repetitions",
    "correlated_sum",
    "k_norm",
    "l1_staircase",
    "noise_options",
    "repeated_loss",
    "shared_budget",
    "worst_case_norm",
]
