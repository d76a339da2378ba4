"""Compositions over rows in parts: public steps are applied when parts are read.

A step that learns nothing is fitted to the rows that are read first, where they are, and what it
makes of a row is made whenever that row is read. Private steps read parts themselves.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from skdpnoise._utils.silence import silence
from skdpnoise.base.register import is_private
from skdpnoise.base.steps import all_private
from skdpnoise.data.partitions import between
from skdpnoise.data.sources import RowSource, as_sources, by_storage

__all__ = ["OverParts", "answered", "without_rows", "without_seeds"]

_SETTINGS = ("assume_finite", "transform_output")
_METHODS = ("transform", "decision_function", "predict", "predict_proba", "predict_log_proba")


class OverParts(BaseEstimator):
    """A step that learns nothing, over rows in parts."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def fit(self, X: Any, y: Any = None) -> OverParts:
        """Fit the step to the rows that are read first."""
        self.fitted_ = as_sources(X=X)["X"].first(self.step.fit)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and transform the same data."""
        return self.fit(X, y).transform(X)

    def transform(self, X: Any) -> Any:
        """Return what the step makes of the rows, when they are read."""
        return _applied(self.fitted_, "transform", as_sources(X=X)["X"])


def answered(owner: str, model: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """Return what a method of a fitted model says; of rows in parts, when they are read."""
    X, *_ = (*args, kwargs.get("X"))
    return by_storage(
        X,
        lambda _: getattr(model, method)(*args, **kwargs),
        partial(_answered_in_parts, owner, model, method),
    )


def _answered_in_parts(owner: str, model: Any, method: str, rows: RowSource) -> Any:
    if method not in _METHODS:
        raise TypeError(
            f"{owner}.{method} needs all rows in memory: give an array or a frame. For scores of "
            "rows in parts give predict(X), which takes them, to a private score of "
            "skdpnoise.metrics."
        )
    steps = [step for _, step in model.steps] if type(model) is Pipeline else [model]
    for place, step in enumerate(steps):
        asked = method if place == len(steps) - 1 else "transform"
        if step is None or isinstance(step, str):
            continue
        rows = getattr(step, asked)(rows) if is_private(step) else _applied(step, asked, rows)
    return rows


def _applied(step: Any, method: str, rows: RowSource) -> RowSource:
    """Return what a step that is not private makes of rows, when they are read."""
    known = get_config()
    answer = _StepAnswer(without_seeds(step), method, {name: known[name] for name in _SETTINGS})
    return rows.map(answer, *rows.first(partial(_tail, answer)))


@dataclass(frozen=True, slots=True, eq=False)
class _StepAnswer:
    """A method of a step, called under the settings of scikit-learn that were given."""

    # Other threads and processes have settings of their own: there a step might refuse a value that
    # a private step computed, after the charge, or warn of one.
    step: Any
    method: str
    settings: dict[str, Any]

    def __call__(self, rows: Any) -> Any:
        with silence(), config_context(**self.settings):
            return getattr(self.step, self.method)(rows)


def _tail(answer: _StepAnswer, rows: Any) -> tuple[int, ...]:
    """Return the shape of what a step makes of one row."""
    return tuple(np.shape(answer(rows))[1:])


def without_rows(X: Any) -> Any:
    """Return a table as it is, and one without rows of the types of rows in parts."""
    return by_storage(X, lambda table: table, lambda rows: rows.first(_without_rows))


def _without_rows(rows: Any) -> Any:
    return between(rows, 0, 0)


def without_seeds(model: Any) -> Any:
    """Return a copy of a fitted model that knows neither seeds nor ledgers."""
    # From a seed everybody could draw the same noise.
    bare = deepcopy(model)
    for step in all_private(bare, fitted=None):
        for name in {"ledger", "random_state"} & set(vars(step)):
            setattr(step, name, None)
    return bare
