"""Parameters that some linear models have in common."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from skdpnoise.base.constructors import constructor_of_fields

__all__ = ["CoordinateParameters", "DescentParameters"]


@constructor_of_fields
class DescentParameters:
    """Parameters of models that descend along noisy gradients."""

    _: KW_ONLY
    alpha: Any = 0.0
    l1_ratio: float = 0.5
    n_passes: int | str = "auto"
    clip: float | str = "auto"
    column_groups: Any = None


@constructor_of_fields
class CoordinateParameters(DescentParameters):
    """Parameters of models that may clip gradients in each coordinate by itself."""

    _: KW_ONLY
    budget_growth: float | str = "auto"
    error_weights: Any = "curvature"
