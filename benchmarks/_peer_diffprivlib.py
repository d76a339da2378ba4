"""Estimators of diffprivlib, in an environment of its own: class defaults, bounds given."""

from __future__ import annotations

from diffprivlib.models import (
    GaussianNB,
    LinearRegression,
    LogisticRegression,
    RandomForestClassifier,
)

from benchmarks._peer_runs import MORE_CLASSES, REGRESSION, TWO_CLASSES, Predict, Problem, serve


def linear(problem: Problem, epsilon: float, _delta: float) -> Predict:
    """Fit noisy coefficients of the squared loss."""
    bounds = (problem.low, problem.high)
    model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=problem.ends)
    return model.fit(problem.X, problem.y).predict


def logistic(problem: Problem, epsilon: float, _delta: float) -> Predict:
    """Fit a perturbed objective, on columns mapped to [0, 1]: it asks for the norm of a row."""
    model = LogisticRegression(epsilon=epsilon, data_norm=problem.norm)
    model.fit(problem.unit(problem.X), problem.y)
    return lambda X: model.predict(problem.unit(X))


def naive_bayes(problem: Problem, epsilon: float, _delta: float) -> Predict:
    """Fit noisy means and variances of each class."""
    model = GaussianNB(epsilon=epsilon, bounds=(problem.low, problem.high))
    return model.fit(problem.X, problem.y).predict


def forest(problem: Problem, epsilon: float, _delta: float) -> Predict:
    """Fit random trees whose leaves vote with noise."""
    classes = sorted({*problem.y.tolist()})
    model = RandomForestClassifier(
        epsilon=epsilon, bounds=(problem.low, problem.high), classes=classes
    )
    return model.fit(problem.X, problem.y).predict


def _classify(fit):
    return {TWO_CLASSES: fit, MORE_CLASSES: fit}


if __name__ == "__main__":
    serve(
        {
            "diffprivlib LinearRegression": {REGRESSION: linear},
            "diffprivlib LogisticRegression": _classify(logistic),
            "diffprivlib GaussianNB": _classify(naive_bayes),
            "diffprivlib RandomForestClassifier": _classify(forest),
        },
        {
            "diffprivlib LinearRegression": LinearRegression(epsilon=1e3),
            "diffprivlib LogisticRegression": LogisticRegression(epsilon=1e3),
            "diffprivlib GaussianNB": GaussianNB(epsilon=1e3),
            "diffprivlib RandomForestClassifier": RandomForestClassifier(epsilon=1e3),
        },
    )
