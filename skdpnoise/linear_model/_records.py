"""What the stages of a fit hand to each other, beside what they release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdpnoise.linear_model._scaling import Standardisation, Target
from skdpnoise.queries.groups import GroupedRows
from skdpnoise.sampling import RandomWords

__all__ = ["Data", "Problem"]


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Checked training data, and what is public of them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        In column-major order, float32 or float64.
    y : ndarray of shape (n_rows,)
        As it came.
    rows : GroupedRows
        Which rows belong together.
    bounds : ndarray of shape (2, n_features)
        Public bounds of the features, infinite where there are none.
    outputs : list of ndarray of shape (n_rows,)
        The target of every linear function: numbers, or labels -1 and +1.
    target_bounds : ndarray of shape (2, 1) or None
        Public bounds of the target; None for labels.
    attributes : dict
        Fitted attributes that are public beforehand.
    """

    X: np.ndarray
    y: np.ndarray
    rows: GroupedRows
    bounds: np.ndarray
    outputs: list[np.ndarray]
    target_bounds: np.ndarray | None
    attributes: dict[str, Any]

    def kept(self, words: RandomWords) -> Data:
        """Return the data without the rows of groups that have too many."""
        X, y, *outputs = self.rows.keep(words, self.X, self.y, *self.outputs)
        return replace(self, X=X, y=y, outputs=outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is minimised.

    Parameters
    ----------
    data : Data
        The rows that are kept.
    features : Standardisation
        Of the features.
    target : Target
        What was released of the target.
    """

    data: Data
    features: Standardisation
    target: Target

    @property
    def columns(self) -> Standardisation:
        """The scaling of the features and, last, of a target of numbers."""
        assert self.target.scaling is not None
        return self.features.beside(self.target.scaling)
