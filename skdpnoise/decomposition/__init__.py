"""Private principal components."""

from skdpnoise.decomposition._pca import DPPCA

__all__ = ["DPPCA"]
