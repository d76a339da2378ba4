"""Scaling that protects every record of the data it learns from, and public clipping."""

from skdpnoise.preprocessing._clipper import BoundsClipper
from skdpnoise.preprocessing._minmax import DPMinMaxScaler
from skdpnoise.preprocessing._robust import DPRobustScaler
from skdpnoise.preprocessing._standard import DPStandardScaler

__all__ = ["BoundsClipper", "DPMinMaxScaler", "DPRobustScaler", "DPStandardScaler"]
