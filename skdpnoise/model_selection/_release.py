"""Candidates that are post-processing of one release: every penalty from one noisy matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdpnoise.linear_model import DPCoordinateDescentRegressor, DPLassoPath

__all__ = ["SharedRelease", "find_release"]

_FREE = ("alpha", "l1_ratio")  # functions of released second moments


@dataclass(frozen=True, slots=True, eq=False)
class SharedRelease:
    """An estimator whose one fit makes all candidates.

    Parameters
    ----------
    estimator : DPLassoPath, or Pipeline that ends in one
    prefix : str
        Of the final step's parameters.
    defaults : dict
        The free parameters of a candidate that does not set them.
    """

    estimator: Any
    prefix: str
    defaults: dict[str, Any]

    def model(self, fitted: Any, candidate: Mapping[str, Any]) -> Any:
        """Return the fitted estimator of a candidate; this costs nothing."""
        given = {name[len(self.prefix) :]: value for name, value in candidate.items()}
        settings = {**self.defaults, **given}
        if not isinstance(fitted, Pipeline):
            return fitted.model(**settings)
        name, path = fitted.steps[-1]
        return Pipeline([*fitted.steps[:-1], (name, path.model(**settings))])


def find_release(estimator: Any, candidates: Sequence[Mapping[str, Any]]) -> SharedRelease | None:
    """Return the shared release of all candidates, or None if they need fits of their own."""
    final, prefix = estimator, ""
    if isinstance(estimator, Pipeline):
        name, final = estimator.steps[-1]
        prefix = f"{name}__"
    if not isinstance(final, DPCoordinateDescentRegressor):
        return None
    if final.solver == "gradient" or final._asks_for_descent():
        return None
    free = {prefix + name for name in _FREE}
    if not all(set(candidate) <= free for candidate in candidates):
        return None
    names = set(DPLassoPath().get_params()) & set(final.get_params())
    settings = {name: clone(getattr(final, name), safe=False) for name in names}
    path: Any = DPLassoPath(**settings, alphas=1)
    defaults = {name: getattr(final, name) for name in _FREE}
    if prefix:
        path = Pipeline([*clone(estimator).steps[:-1], (prefix[:-2], path)])
    return SharedRelease(path, prefix, defaults)
