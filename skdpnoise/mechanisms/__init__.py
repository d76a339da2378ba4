"""What is released: calibrated noise on vectors and histograms."""

from skdpnoise.mechanisms.additive import AdditiveMechanism, Mechanism
from skdpnoise.mechanisms.allocation import allocate, capped_profile, worst_case_norm
from skdpnoise.mechanisms.calibrate import calibrate, noise_options
from skdpnoise.mechanisms.histogram import noisy_histogram
from skdpnoise.mechanisms.location_scale import LocationScale, private_location_scale

__all__ = [
    "AdditiveMechanism",
    "LocationScale",
    "Mechanism",
    "allocate",
    "calibrate",
    "capped_profile",
    "noise_options",
    "noisy_histogram",
    "private_location_scale",
    "worst_case_norm",
]
