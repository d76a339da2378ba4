"""Private covariance matrices."""

from skdpnoise.covariance._covariance import DPCovariance

__all__ = ["DPCovariance"]
