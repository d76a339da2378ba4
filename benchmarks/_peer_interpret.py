"""Private explainable boosting of interpret, in an environment of its own: class defaults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

from benchmarks._peer_runs import REGRESSION, TWO_CLASSES, Predict, Problem, serve


def frame(problem: Problem, X: np.ndarray) -> pd.DataFrame:
    """Return numbers as they are, and each category as one column of text, which it takes."""
    n_numbers = len(problem.low) - sum(map(len, problem.groups))
    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(n_numbers)}
    for number, group in enumerate(problem.groups):
        known = X[:, group].any(axis=1)
        texts = np.where(known, X[:, group].argmax(axis=1).astype(str), "none")
        columns[f"kind{number}"] = texts.astype(object)
    return pd.DataFrame(columns)


def _settings(problem: Problem, epsilon: float, delta: float) -> dict[str, Any]:
    names = frame(problem, problem.X[:1]).columns
    numbers = [name for name in names if name.startswith("x")]
    bounds = zip(problem.low.tolist(), problem.high.tolist(), strict=True)
    return {
        "epsilon": epsilon,
        "delta": delta,
        "n_jobs": 1,
        "feature_names": list(names),
        "feature_types": ["continuous" if name in numbers else "nominal" for name in names],
        "privacy_bounds": dict(zip(numbers, bounds, strict=False)),
    }


def regression(problem: Problem, epsilon: float, delta: float) -> Predict:
    """Boost towards a number."""
    low, high = problem.ends
    model = DPExplainableBoostingRegressor(
        **_settings(problem, epsilon, delta), privacy_target_min=low, privacy_target_max=high
    )
    model.fit(frame(problem, problem.X), problem.y)
    return lambda X: model.predict(frame(problem, X))


def classification(problem: Problem, epsilon: float, delta: float) -> Predict:
    """Boost towards one of two classes; it takes no more."""
    model = DPExplainableBoostingClassifier(**_settings(problem, epsilon, delta))
    model.fit(frame(problem, problem.X), problem.y)
    return lambda X: model.predict(frame(problem, X))


if __name__ == "__main__":
    serve(
        {"interpret DP-EBM": {REGRESSION: regression, TWO_CLASSES: classification}},
        {
            "interpret DPExplainableBoostingClassifier": DPExplainableBoostingClassifier(
                epsilon=1e3
            ),
            "interpret DPExplainableBoostingRegressor": DPExplainableBoostingRegressor(epsilon=1e3),
        },
    )
