"""Passes over all columns and outputs at once, each record held by one norm, exact in integers."""

from skdpnoise.kernels.joint.descent import (
    SOFTMAX,
    Clip,
    GridRows,
    GroupedClip,
    clipped_gradient_sums,
    columns_of,
    descend,
    hold_parts,
    joint_descent,
)
from skdpnoise.kernels.joint.parts import ClippedParts

__all__ = [
    "SOFTMAX",
    "Clip",
    "ClippedParts",
    "GridRows",
    "GroupedClip",
    "clipped_gradient_sums",
    "columns_of",
    "descend",
    "hold_parts",
    "joint_descent",
]
