"""How far the automatic passes and clip are from the best of a grid, over many data sets.

The rules of ``skdpnoise/linear_model/_defaults.py`` were fitted to such grids. The best of a grid
is chosen by its scores on the private data and is not charged for: it is a yardstick, not a method.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_regression
from sklearn.model_selection import train_test_split

from benchmarks._kept import resumed
from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, PrivacyWarning
from skdpnoise.datasets import fetch_california, fetch_electricity

GRID = tuple(itertools.product((3, 6, 10, 20, 30), (0.15, 0.3, 0.5, 0.8, 1.2)))
AUTO = ("auto", "auto")
Problem = tuple[np.ndarray, np.ndarray, dict[str, Any]]


def problems(data_dir: str | None) -> dict[str, Problem]:
    """Return X, y and settings by name."""
    california = fetch_california(data_home=data_dir, return_X_y=True)
    electricity = fetch_electricity(data_home=data_dir, return_X_y=True)
    made = make_regression(5000, 20, n_informative=8, noise=100.0, random_state=0)
    rows = np.random.default_rng(0).permutation(len(california[1]))[:4000]
    found: dict[str, Problem] = {
        "california": (*california, {}),
        "california, pure": (*california, {"delta": 0.0}),
        "california, 4000 rows": (california[0][rows], california[1][rows], {}),
        "electricity": (*electricity, {}),
        "generated": (*made, {}),
    }
    for name, load in {"breast cancer": load_breast_cancer, "wine": load_wine}.items():
        X, y = load(return_X_y=True)
        found[name] = (X, y, {"feature_bounds": (X.min(axis=0), X.max(axis=0))})
    X, y = load_diabetes(return_X_y=True)
    bounds = {"feature_bounds": (X.min(axis=0), X.max(axis=0)), "target_bounds": (y.min(), y.max())}
    found["diabetes"] = (X, y, bounds)
    return found


def median_score(
    problem: Problem, epsilon: float, passes: int | str, clip: float | str, n_seeds: int
) -> float:
    """Return the median test score over splits."""
    X, y, settings = problem
    estimator = DPCoordinateDescentRegressor if y.dtype.kind == "f" else DPLogisticCD
    scores = []
    for seed in range(n_seeds):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
        model = estimator(epsilon, random_state=seed, n_passes=passes, clip=clip, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            scores.append(model.fit(X_train, y_train).score(X_test, y_test))
    return float(np.median(scores))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = add_common_arguments(argparse.ArgumentParser("benchmarks rules", description=__doc__))
    args = parser.parse_args(argv)
    epsilons, n_seeds = ((1.0,), 3) if args.quick else ((0.3, 1.0, 5.0), 5)
    measure = resumed(args.out, median_score)
    rows, records = [], []
    for (name, problem), epsilon in itertools.product(problems(args.data_dir).items(), epsilons):
        scores = Parallel(n_jobs=2)(
            delayed(measure)(problem, epsilon, passes, clip, n_seeds)
            for passes, clip in (AUTO, *GRID)
        )
        best = int(np.argmax(scores[1:]))
        rows.append([name, epsilon, scores[0], scores[1 + best], *GRID[best]])
        records.append({"data": name, "epsilon": epsilon, "scores": scores})
    headers = ["data", "epsilon", "automatic", "best of grid", "its passes", "its clip"]
    print_table(headers, rows, title=f"R2 or accuracy on test rows, median of {n_seeds} splits")
    save_json(args.out, "rules", {"grid": GRID, "cases": records})
    return 0
