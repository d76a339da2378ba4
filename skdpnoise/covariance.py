"""Another name of :mod:`skdpnoise.decomposition`, from the second edition."""

from skdpnoise.decomposition import DPCovariance

__all__ = ["DPCovariance"]
