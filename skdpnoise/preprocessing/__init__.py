"""Scaling that protects every record of the data it learns from, and public clipping."""

from skdpnoise.preprocessing._clipper import BoundsClipper
from skdpnoise.preprocessing._scalers import DPMinMaxScaler, DPRobustScaler, DPStandardScaler

__all__ = ["BoundsClipper", "DPMinMaxScaler", "DPRobustScaler", "DPStandardScaler"]
