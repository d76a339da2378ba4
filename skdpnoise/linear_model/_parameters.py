"""Parameters that some linear models have in common, and what these may be."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skdpnoise.base.constructors import Constraints, constructor_of_fields

STRENGTH = [Interval(Real, 0, None, closed="left")]
MIX = [Interval(Real, 0, 1, closed="both")]
ROW_NORM = [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")]
GROUPS = [None, dict, "array-like"]


@constructor_of_fields
class DescentParameters:
    """Parameters of models that descend along noisy gradients."""

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": STRENGTH,
        "l1_ratio": MIX,
        "n_passes": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "clip": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "column_groups": GROUPS,
    }

    _: KW_ONLY
    alpha: Any = 0.0
    l1_ratio: float = 0.5
    n_passes: int | str = "auto"
    clip: float | str = "auto"
    column_groups: Any = None


@constructor_of_fields
class CoordinateParameters(DescentParameters):
    """Parameters of models that may clip gradients in each coordinate by itself."""

    _parameter_constraints: ClassVar[Constraints] = {
        "budget_growth": [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
        "error_weights": [StrOptions({"curvature", "uniform"}), "array-like"],
    }

    _: KW_ONLY
    budget_growth: float | str = "auto"
    error_weights: Any = "curvature"


@constructor_of_fields
class TargetParameters:
    """The parameter of regression."""

    _parameter_constraints: ClassVar[Constraints] = {
        "target_bounds": [None, tuple, list, np.ndarray]
    }

    _: KW_ONLY
    target_bounds: tuple[float, float] | None = None


@constructor_of_fields
class EitherClipParameters(CoordinateParameters):
    """Parameters of models whose gradients are clipped as a whole, or in each coordinate."""

    _parameter_constraints: ClassVar[Constraints] = {
        "solver": [StrOptions({"auto", "coordinate", "joint"})]
    }

    _: KW_ONLY
    solver: str = "auto"
