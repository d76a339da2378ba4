"""What the scripts of peers share: a question on standard input, the answer on the last line.

Runs in the environments of peers, which hold numpy and scikit-learn, and not this library.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

REGRESSION, TWO_CLASSES, MORE_CLASSES = "regression", "two classes", "more classes"


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from and to be judged on, and bounds that count as public."""

    name: str
    kind: str
    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray
    low: np.ndarray
    high: np.ndarray
    # The columns of 0 and 1 of each category; numbers come before them.
    groups: list[list[int]] = field(default_factory=list)

    @property
    def ends(self) -> tuple[float, float]:
        """Return the bounds of a numeric target."""
        return float(self.y.min()), float(self.y.max())

    def unit(self, X: np.ndarray) -> np.ndarray:
        """Return rows whose columns are mapped to [0, 1] by the bounds."""
        return (np.clip(X, self.low, self.high) - self.low) / (self.high - self.low)

    @property
    def norm(self) -> float:
        """Return the norm of the longest mapped row, which counts as public, too."""
        return float(np.linalg.norm(self.unit(self.X), axis=1).max())

    def centred_target(self) -> np.ndarray:
        """Return a numeric target mapped to [-1, 1]."""
        low, high = self.ends
        return 2.0 * (self.y - low) / (high - low) - 1.0

    def target(self, centred: np.ndarray) -> np.ndarray:
        """Return predictions mapped back to the units of the target."""
        low, high = self.ends
        return low + (centred + 1.0) * (high - low) / 2.0

    def score(self, predicted: np.ndarray) -> float:
        """Return R² or accuracy on the test rows."""
        if self.kind != REGRESSION:
            return float(np.mean(predicted == self.y_test))
        with np.errstate(over="ignore", invalid="ignore"):
            rest = np.sum((predicted - self.y_test) ** 2)
        return float(1.0 - rest / np.sum((self.y_test - self.y_test.mean()) ** 2))


Predict = Callable[[np.ndarray], np.ndarray]
# A fit at ε and δ.
Fit = Callable[[Problem, float, float], Predict]


def measured(problem: Problem, fit: Fit, epsilon: float, delta: float) -> dict[str, Any]:
    """Return the score and the seconds of one fit, or what it raised."""
    start = time.perf_counter()
    try:
        predict = fit(problem, epsilon, delta)
        seconds = time.perf_counter() - start
        score = problem.score(predict(problem.X_test))
    except Exception as error:  # a failure is a result, too
        return {"error": f"{type(error).__name__}: {error}".partition("\n")[0][:200]}
    if not math.isfinite(score):
        return {"error": "predictions that are not finite"}
    return {"score": score, "seconds": seconds}


def checked(estimator: Any) -> dict[str, Any]:
    """Return how many of scikit-learn's checks an estimator passes, and which it fails."""
    from sklearn.utils.estimator_checks import check_estimator

    found = check_estimator(estimator, on_skip=None, on_fail=None)
    names = sorted({one["check_name"] for one in found if one["status"] in ("failed", "xfail")})
    states = [one["status"] for one in found]
    failed = states.count("failed") + states.count("xfail")
    return {"passed": states.count("passed"), "failed": failed, "names": names}


def serve(methods: Mapping[str, Mapping[str, Fit]], estimators: Mapping[str, Any]) -> None:
    """Answer one question: scores at every ε, or the checks of scikit-learn.

    `methods` has, for each name, a fit for each kind of problem that it can solve.
    """
    question = json.load(sys.stdin)
    answers: Any
    if question["ask"] == "checks":
        answers = {name: checked(one) for name, one in estimators.items()}
    else:
        with np.load(question["file"]) as arrays:
            problem = Problem(**question["problem"], **arrays)
        answers = [
            {
                "method": name,
                "epsilon": epsilon,
                **measured(problem, fits[problem.kind], epsilon, question["delta"]),
            }
            for name, fits in methods.items()
            for epsilon in question["epsilons"]
            if problem.kind in fits
        ]
    print(f"\n{json.dumps(answers)}")
