"""Candidates that are post-processing of one release: every penalty from one noisy matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdpnoise.linear_model import DPCoordinateDescentRegressor, DPLassoPath
from skdpnoise.model_selection._candidates import Candidate

__all__ = ["find_release", "model_of"]

_FREE = ("alpha", "l1_ratio")  # functions of released second moments


def find_release(candidates: Sequence[Candidate]) -> Any:
    """Return an estimator whose one fit makes all candidates; None if they need their own."""
    first = candidates[0].estimator
    final = _final(first)
    if type(final) is not DPCoordinateDescentRegressor:
        return None
    if final.solver == "gradient" or final._asks_for_descent():
        return None
    prefix = "" if final is first else f"{first.steps[-1][0]}__"
    free = {prefix + name for name in _FREE}
    if not all(set(candidate.parameters) <= free for candidate in candidates):
        return None
    names = set(DPLassoPath().get_params()) & set(final.get_params())
    settings = {name: clone(getattr(final, name), safe=False) for name in names}
    path: Any = DPLassoPath(**settings, alphas=1)
    return Pipeline([*clone(first).steps[:-1], (prefix[:-2], path)]) if prefix else path


def model_of(fitted: Any, candidate: Any) -> Any:
    """Return the fitted estimator of a candidate, as the unfitted one says; costs nothing."""
    final = _final(candidate)
    settings = {name: getattr(final, name) for name in _FREE}
    if type(fitted) is not Pipeline:
        return fitted.model(**settings)
    name, path = fitted.steps[-1]
    return Pipeline([*fitted.steps[:-1], (name, path.model(**settings))])


def _final(estimator: Any) -> Any:
    """Return the last step of a pipeline; of anything else, itself."""
    return estimator.steps[-1][1] if type(estimator) is Pipeline else estimator
