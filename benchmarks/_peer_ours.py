"""Our own models, and the ordinary ones, measured in the same way as the peers."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._peer_runs import (
    MORE_CLASSES,
    REGRESSION,
    TWO_CLASSES,
    Fit,
    Predict,
    Problem,
    serve,
)
from benchmarks.tables import CLASSES, NUMBERS
from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPLogisticRegression,
    DPPipeline,
    DPTableVectorizer,
)
from skdpnoise.datasets import ADULT_CATEGORIES, fetch_adult


def without_bounds(problem: Problem, epsilon: float, delta: float) -> Predict:
    """Fit with default settings; Adult as a frame with a schema of what is public."""
    if problem.name == "Adult":
        return _table(epsilon, delta)
    regress = problem.kind == REGRESSION
    model = (DPCoordinateDescentRegressor if regress else DPLogisticRegression)(epsilon, delta)
    return model.fit(problem.X, problem.y).predict


@cache
def _adult(subset: str) -> Any:
    return fetch_adult(subset=subset, as_frame=True, return_X_y=True)


def _table(epsilon: float, delta: float) -> Predict:
    schema = NUMBERS | {name: list(kinds) for name, kinds in ADULT_CATEGORIES.items()}
    steps = [
        ("table", DPTableVectorizer(schema)),
        ("model", DPLogisticRegression(classes=CLASSES)),
    ]
    model = DPPipeline(steps, epsilon=epsilon, delta=delta).fit(*_adult("train"))
    return lambda _X: (model.predict(_adult("test")[0]) == CLASSES[1]).astype(int)


def with_bounds(
    problem: Problem, epsilon: float, delta: float, adjacency: str = "replace_one"
) -> Predict:
    """Fit with the bounds that peers are given."""
    settings = {"feature_bounds": (problem.low, problem.high), "adjacency": adjacency}
    if problem.kind == REGRESSION:
        settings["target_bounds"] = problem.ends
        model = DPCoordinateDescentRegressor(epsilon, delta, **settings)
    else:
        model = DPLogisticRegression(epsilon, delta, **settings)
    return model.fit(problem.X, problem.y).predict


def pure(problem: Problem, epsilon: float, _delta: float) -> Predict:
    """Fit with bounds, and without δ."""
    return with_bounds(problem, epsilon, 0.0)


def ordinary(problem: Problem, _epsilon: float, _delta: float) -> Predict:
    """Fit without privacy."""
    regress = problem.kind == REGRESSION
    model = LinearRegression() if regress else LogisticRegression(max_iter=1000)
    return make_pipeline(StandardScaler(), model).fit(problem.X, problem.y).predict


def _all(fit: Fit) -> dict[str, Fit]:
    return dict.fromkeys((REGRESSION, TWO_CLASSES, MORE_CLASSES), fit)


if __name__ == "__main__":
    serve(
        {
            "non-private": _all(ordinary),
            "skdpnoise": _all(without_bounds),
            "skdpnoise, bounds": _all(with_bounds),
            "skdpnoise, bounds, add/remove": _all(partial(with_bounds, adjacency="add_remove")),
            "skdpnoise, bounds, δ = 0": _all(pure),
        },
        {
            "skdpnoise DPCoordinateDescentRegressor": DPCoordinateDescentRegressor(1e3),
            "skdpnoise DPLogisticRegression": DPLogisticRegression(1e3),
        },
    )
