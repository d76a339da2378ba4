"""Public facts of a step's output go to the next step, so that nobody writes lists."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from skdpnoise._utils.checks import check_order
from skdpnoise._utils.context import context, within
from skdpnoise.mechanisms.requests import CHOICES

__all__ = ["PublicOutput", "route_output", "routing_output"]


@dataclass(frozen=True, slots=True, eq=False)
class PublicOutput:
    """Public facts of the columns that a fitted transformer returns.

    It hangs on parameters and on released numbers alone. What comes next clips to it all the same,
    so that a guarantee never hangs on whether it is true.

    Parameters
    ----------
    low, high : ndarray of shape (n_columns,)
        Bounds of each column.
    column_groups : tuple of tuple of int, default=()
        Groups of columns of which each row has Euclidean norm 1 at most: one-hot columns.

    Raises
    ------
    ValueError
        If bounds are not ordered.

    Examples
    --------
    >>> from skdpnoise import DPOneHotEncoder
    >>> encoder = DPOneHotEncoder(categories=[["a", "b"]]).fit([["a"], ["b"], ["z"]])
    >>> encoder.public_output_.high, encoder.public_output_.column_groups
    (array([1., 1., 1.]), ((0, 1, 2),))
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    column_groups: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        check_order(type(self).__name__, "low", self.low, self.high)

    @property
    def feature_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The bounds as estimators take them."""
        return self.low, self.high


def routing_output(pipeline: Pipeline) -> AbstractContextManager[None]:
    """Let the steps of a pipeline tell the next one what is public of their output."""
    steps = [step for _, step in pipeline.steps if step is not None and not isinstance(step, str)]
    return within(next_steps=dict(zip(map(id, steps[:-1]), steps[1:], strict=True)))


def route_output(transformer: Any, output: PublicOutput) -> None:
    """Tell the step behind a transformer what is public, where its user has not said it."""
    after = (context().next_steps or {}).get(id(transformer))
    if after is None or not hasattr(after, "get_params"):
        return
    given = after.get_params(deep=False)
    told: dict[str, Any] = {"feature_bounds": output.feature_bounds}
    if _clips_groups(given):
        told["column_groups"] = output.column_groups
    if not any(given.get(name) is not None for name in ("feature_bounds", "column_groups")):
        known = {name: value for name, value in told.items() if name in given and len(value)}
        after.set_params(**known)


def _clips_groups(given: Mapping[str, Any]) -> bool:
    """Return whether a model of these parameters can clip groups of columns: by normal noise."""
    noise, solver = str(given.get("noise")), given.get("solver")
    normal = noise in CHOICES or noise.endswith("_gaussian")
    return normal and solver in ("auto", "joint") and float(given.get("delta", 0.0)) > 0.0
