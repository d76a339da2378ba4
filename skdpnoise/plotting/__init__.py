"""Pictures of noise and of what it costs, in scikit-learn's convention for displays."""

from skdpnoise.plotting.allocation_display import AllocationDisplay
from skdpnoise.plotting.noise_display import NoiseDisplay
from skdpnoise.plotting.privacy_loss_display import PrivacyLossDisplay

__all__ = ["AllocationDisplay", "NoiseDisplay", "PrivacyLossDisplay"]
