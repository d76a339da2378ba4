"""Pipelines over rows in parts: public steps are applied when parts are read.

A step that learns nothing is fitted to the rows that are read first, where they are, and what it
makes of a row is made whenever that row is read. Private steps read parts themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator

from skdpnoise._utils.silence import silence
from skdpnoise.base.parts import private_parts
from skdpnoise.base.register import is_private
from skdpnoise.data.partitions import between
from skdpnoise.data.rows import as_sources

__all__ = ["OverParts", "answered", "over_parts", "without_rows"]

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
        return _applied(self.fitted_, X)


def answered(owner: str, steps: Sequence[tuple[str, Any]], method: str, X: Any) -> Any:
    """Return what a method of a fitted pipeline makes of rows in parts, when they are read."""
    if method not in _METHODS:
        raise TypeError(
            f"{owner}.{method} needs all rows in memory: give an array or a frame, or for scores "
            "the private ones of skdpnoise.metrics, which take rows in parts."
        )
    *before, (_, last) = steps
    for _, step in before:
        if step is not None and not isinstance(step, str):
            X = step.transform(X) if is_private(step) else _applied(step, X)
    if method == "transform" and not is_private(last):
        return X if last is None or isinstance(last, str) else _applied(last, X)
    return getattr(last, method)(X)


def _applied(step: Any, X: Any) -> Any:
    """Return what a public step makes of rows in parts, when they are read."""
    source, known = as_sources(X=X)["X"], get_config()
    transform = _Transform(step, {name: known[name] for name in _SETTINGS})
    return source.map(transform, int(source.first(partial(_width, transform))))


@dataclass(frozen=True, slots=True, eq=False)
class _Transform:
    """The rows that a public step returns, under the settings of scikit-learn that were given."""

    # Other threads and processes have settings of their own: there a step might refuse a value that
    # a private step computed, after the charge, or warn of one.
    step: Any
    settings: dict[str, Any]

    def __call__(self, rows: Any) -> Any:
        with silence(), config_context(**self.settings):
            return self.step.transform(rows)


def _width(transform: _Transform, rows: Any) -> int:
    """Return how many columns a step makes."""
    return int(np.shape(transform(rows))[1])


@contextmanager
def over_parts(owner: str, pipeline: Any, keeps: Callable[[Any], bool]) -> Iterator[None]:
    """Let the public steps of a pipeline take rows in parts; then put them back, fitted."""
    # `keeps` says of other steps that they read parts themselves.
    given = list(pipeline.steps)

    def reads_parts(step: Any) -> bool:
        return step is None or isinstance(step, str) or is_private(step) or keeps(step)

    for name, step in given:
        if reads_parts(step):
            continue
        if private_parts(step):
            raise TypeError(
                f"The step {name!r} of {owner} holds private steps beside others, which read whole "
                "tables. For rows in parts give private steps as steps of the pipeline, such as a "
                "DPTableVectorizer for columns of several kinds."
            )
    pipeline.steps = [
        (name, step if reads_parts(step) else OverParts(step)) for name, step in given
    ]
    try:
        yield
    finally:
        pipeline.steps = [
            (name, getattr(now, "fitted_", was) if isinstance(now, OverParts) else now)
            for (name, now), (_, was) in zip(pipeline.steps, given, strict=True)
        ]


def without_rows(X: Any) -> Any:
    """Return a table without rows, of the types of rows in parts."""
    return as_sources(X=X)["X"].first(_without_rows)


def _without_rows(rows: Any) -> Any:
    return between(rows, 0, 0)
