"""What the stages of a fit hand to each other, beside what they release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdpnoise.linear_model._scaling import Standardisation, Target
from skdpnoise.queries.groups import GroupedRows
from skdpnoise.sampling import RandomWords

__all__ = ["Data", "Problem", "in_user_units"]


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Checked training data, and what is public of them."""

    X: np.ndarray  # (n_rows, n_features), column-major, float32 or float64
    y: np.ndarray  # (n_rows,), as it came
    rows: GroupedRows
    bounds: np.ndarray  # (2, n_features), public, infinite where there are none
    outputs: list[np.ndarray]  # targets of the linear functions: numbers, or labels -1 and +1
    target_bounds: np.ndarray | None  # (2, 1), public; None for labels
    attributes: dict[str, Any]  # fitted ones that are public beforehand

    def kept(self, rng: RandomWords) -> Data:
        """Return the data without the rows of groups that have too many."""
        X, y, *outputs = self.rows.keep(rng, self.X, self.y, *self.outputs)
        return replace(self, X=X, y=y, outputs=outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is minimised: the rows that are kept, and what was released of their columns."""

    data: Data
    features: Standardisation
    target: Target

    @property
    def columns(self) -> Standardisation:
        """The scaling of the features and, last, of a target of numbers."""
        assert self.target.scaling is not None
        return self.features.beside(self.target.scaling)


def in_user_units(
    model: np.ndarray, features: Standardisation, units: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and intercepts from coefficients in standard units, the intercept last."""
    center, scale = units
    # a feature that is not used has coefficient 0, whatever its scale
    slopes = scale * model[..., :-1] / features.scale
    return slopes, center + scale * model[..., -1] - slopes @ features.center
