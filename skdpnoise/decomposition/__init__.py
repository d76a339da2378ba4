"""Private principal components and covariance matrices."""

from skdpnoise.decomposition._covariance import DPCovariance
from skdpnoise.decomposition._pca import DPPCA

__all__ = ["DPPCA", "DPCovariance"]
