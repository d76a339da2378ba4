"""Pipelines over rows in parts: public steps are applied when parts are read.

A step that learns nothing is fitted to the rows that are read first, where they are, and what it
makes of a row is made whenever that row is read. Private steps read parts themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skdpnoise.compose.columns import made_up
from skdpnoise.compose.parts import private_parts
from skdpnoise.compose.register import is_private
from skdpnoise.sources.rows import as_sources, is_spread

__all__ = ["OverParts", "over_parts", "stand_in_for"]


class OverParts(BaseEstimator):
    """A step that learns nothing, over rows in parts."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def fit(self, X: Any, y: Any = None) -> OverParts:
        """Fit the step to the rows that are read first."""
        self.fitted_, self.width_ = as_sources(X=X)["X"].first(partial(_fitted, self.step))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and transform the same data."""
        return self.fit(X, y).transform(X)

    def transform(self, X: Any) -> Any:
        """Return what the step makes of the rows, when they are read."""
        return as_sources(X=X)["X"].map(self.fitted_.transform, self.width_)


def _fitted(step: Any, rows: Any) -> tuple[Any, int]:
    """Return the step, fitted to some rows, and how many columns it makes."""
    made = step.fit(rows).transform(rows)
    return step, int(np.shape(made)[1])


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


def stand_in_for(X: Any) -> Any:
    """Return a made-up table of the types of rows in parts, of which none is looked at here."""
    if not is_spread(X):
        return X
    return made_up(as_sources(X=X)["X"].first(_without_rows), n_categories=2)


def _without_rows(rows: Any) -> Any:
    return rows[:0]
