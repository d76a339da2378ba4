"""How far one record can move a query: profiles, and one bound per query."""

from skdpnoise.sensitivity.bounds import (
    bounded_ones,
    clipped_gradient,
    clipped_sum,
    grouped_sum,
    histogram_counts,
    paired_histogram,
    shifted_sums,
)
from skdpnoise.sensitivity.groups import GroupedProfile
from skdpnoise.sensitivity.profile import SensitivityProfile
from skdpnoise.sensitivity.second_moments import (
    RowBounds,
    clipped_rows,
    second_moment_change,
    second_moments_profile,
    spread_l1_norm,
)

__all__ = [
    "GroupedProfile",
    "RowBounds",
    "SensitivityProfile",
    "bounded_ones",
    "clipped_gradient",
    "clipped_rows",
    "clipped_sum",
    "grouped_sum",
    "histogram_counts",
    "paired_histogram",
    "second_moment_change",
    "second_moments_profile",
    "shifted_sums",
    "spread_l1_norm",
]
