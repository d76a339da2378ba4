"""How far one record can move a query: profiles, and one bound per query."""

from skdpnoise.sensitivity.bounds import (
    clipped_gradient,
    clipped_sum,
    histogram_counts,
    paired_histogram,
)
from skdpnoise.sensitivity.joint import bounded_ones, shifted_sums
from skdpnoise.sensitivity.profile import SensitivityProfile

__all__ = [
    "SensitivityProfile",
    "bounded_ones",
    "clipped_gradient",
    "clipped_sum",
    "histogram_counts",
    "paired_histogram",
    "shifted_sums",
]
