"""What is released: calibrated noise on vectors, sums, histograms, and private selection."""

from skdpnoise.mechanisms._sharing import shared_budget
from skdpnoise.mechanisms.additive import AdditiveMechanism, Mechanism
from skdpnoise.mechanisms.aggregates import (
    PrivateEstimate,
    private_count,
    private_histogram,
    private_mean,
    private_sum,
)
from skdpnoise.mechanisms.allocation import allocate, capped_profile, worst_case_norm
from skdpnoise.mechanisms.bounded_counts import BoundedCountsMechanism, bounded_counts
from skdpnoise.mechanisms.calibrate import calibrate, noise_options
from skdpnoise.mechanisms.correlated import CorrelatedSumMechanism, correlated_sum
from skdpnoise.mechanisms.histogram import noisy_histogram
from skdpnoise.mechanisms.k_norm import KNormMechanism, k_norm
from skdpnoise.mechanisms.l1_staircase import L1StaircaseMechanism, l1_staircase
from skdpnoise.mechanisms.location_scale import LocationScale, private_location_scale
from skdpnoise.mechanisms.moments import Moments, private_moments
from skdpnoise.mechanisms.norm_quantile import NormQuantileMechanism, private_norm_quantile
from skdpnoise.mechanisms.quantiles import Quantiles, private_quantiles
from skdpnoise.mechanisms.repetition import (
    PoissonRepetitions,
    Repetition,
    TruncatedNegativeBinomial,
    base_budget,
    choose_repetitions,
    repeated_loss,
)
from skdpnoise.mechanisms.second_moments import (
    SECOND_MOMENT_NOISES,
    SymmetricMatrixMechanism,
    calibrate_second_moments,
)
from skdpnoise.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    private_argmax,
)

__all__ = [
    "SECOND_MOMENT_NOISES",
    "AdditiveMechanism",
    "BoundedCountsMechanism",
    "CorrelatedSumMechanism",
    "ExponentialMechanism",
    "KNormMechanism",
    "L1StaircaseMechanism",
    "LocationScale",
    "Mechanism",
    "Moments",
    "NormQuantileMechanism",
    "PermuteAndFlip",
    "PoissonRepetitions",
    "PrivateEstimate",
    "Quantiles",
    "Repetition",
    "ReportNoisyMax",
    "SymmetricMatrixMechanism",
    "TruncatedNegativeBinomial",
    "allocate",
    "base_budget",
    "bounded_counts",
    "calibrate",
    "calibrate_second_moments",
    "capped_profile",
    "choose_repetitions",
    "correlated_sum",
    "k_norm",
    "l1_staircase",
    "noise_options",
    "noisy_histogram",
    "private_argmax",
    "private_count",
    "private_histogram",
    "private_location_scale",
    "private_mean",
    "private_moments",
    "private_norm_quantile",
    "private_quantiles",
    "private_sum",
    "repeated_loss",
    "shared_budget",
    "worst_case_norm",
]
