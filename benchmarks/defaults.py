"""Accuracy with default settings, beside the non-private model and the bars to reach.

Medians on the test rows of 80/20 splits: 40 of them, and 400 of tables with fewer than 1,000 rows,
whose medians of ten splits differ by .2. On California housing and Electricity no
bounds are given and nothing is tuned: locations and scales are bought from (epsilon, delta=1e-6).
On breast cancer and diabetes the smallest and largest value of each column are taken for public
bounds, as in published comparisons; that they come from the data is not charged for.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._kept import resumed
from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, PrivacyWarning
from skdpnoise.datasets import fetch_california, fetch_electricity

SEEDS, SEEDS_OF_SMALL = 40, 400


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    data: str
    epsilon: float
    bar: float | None
    options: dict[str, Any] = field(default_factory=dict)
    rescaled: bool = False


CASES = (
    Case("california", 5.0, None),
    Case("california", 1.0, 0.657),
    Case("california", 0.5, None),
    Case("california", 0.2, 0.64),
    Case("california", 0.1, 0.61),
    Case("california", 0.05, None),
    Case("california", 1.0, 0.657, rescaled=True),
    Case("california", 0.1, 0.61, rescaled=True),
    Case("california", 1.0, 0.60, {"delta": 0.0}),
    Case("california", 1.0, None, {"adjacency": "add_remove"}),
    *(
        Case("california", epsilon, None, {"solver": solver})
        for epsilon in (1.0, 0.1)
        for solver in ("gradient", "gram")
    ),
    Case("electricity", 1.0, 0.755),
    Case("electricity", 0.5, None),
    Case("electricity", 0.1, 0.745),
    Case("electricity", 1.0, 0.755, rescaled=True),
    Case("electricity", 0.1, 0.745, rescaled=True),
    Case("electricity", 1.0, 0.745, {"delta": 0.0}),
    Case("electricity", 1.0, None, {"adjacency": "add_remove"}),
    Case("breast cancer", 1.0, 0.92, {"bounds": True}),
    Case("breast cancer", 5.0, 0.95, {"bounds": True}),
    Case("diabetes", 1.0, 0.34, {"bounds": True}),
    Case("diabetes", 5.0, 0.42, {"bounds": True}),
)


def load(name: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of a data set."""
    loaders: dict[str, Callable[[], Any]] = {
        "california": lambda: fetch_california(data_home=data_dir, return_X_y=True),
        "electricity": lambda: fetch_electricity(data_home=data_dir, return_X_y=True),
        "breast cancer": lambda: load_breast_cancer(return_X_y=True),
        "diabetes": lambda: load_diabetes(return_X_y=True),
    }
    return loaders[name]()


def rescale(X: np.ndarray, seed: int) -> np.ndarray:
    """Multiply columns by random powers of ten from 1e-6 to 1e6, and shift them."""
    rng = np.random.default_rng(seed)
    powers = 10.0 ** rng.integers(-6, 7, size=X.shape[1])
    return X * powers + rng.normal(size=X.shape[1]) * 100.0 * powers


def private_model(case: Case, X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """Return the estimator of a case, not fitted."""
    options = dict(case.options)
    classify = y.dtype.kind not in "f"
    if options.pop("bounds", False):
        options["feature_bounds"] = (X.min(axis=0), X.max(axis=0))
        if not classify:
            options["target_bounds"] = (y.min(), y.max())
    estimator = DPLogisticCD if classify else DPCoordinateDescentRegressor
    return estimator(epsilon=case.epsilon, random_state=seed, **options)


def public_model(y: np.ndarray) -> Any:
    """Return the non-private model of the same kind."""
    if y.dtype.kind == "f":
        return make_pipeline(StandardScaler(), LinearRegression())
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def scores(case: Case, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float]:
    """Return the test scores of the private and the non-private model."""
    if case.rescaled:
        X = rescale(X, seed)
    labels = None if y.dtype.kind == "f" else y
    split = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=labels)
    X_train, X_test, y_train, y_test = split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        private = clone(private_model(case, X, y, seed)).fit(X_train, y_train)
    public = public_model(y).fit(X_train, y_train)
    return private.score(X_test, y_test), public.score(X_test, y_test)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = add_common_arguments(
        argparse.ArgumentParser("benchmarks defaults", description=__doc__)
    )
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed")
    args = parser.parse_args(argv)
    data = {name: load(name, args.data_dir) for name in {case.data: None for case in CASES}}
    measure = resumed(args.out, scores)
    rows, records = [], []
    for case in CASES:
        X, y = data[case.data]
        n_seeds = SEEDS_OF_SMALL if len(y) < 1000 else SEEDS
        seeds = range(args.first_seed, args.first_seed + (3 if args.quick else n_seeds))
        results = Parallel(n_jobs=2)(delayed(measure)(case, X, y, seed) for seed in seeds)
        private, public = np.array(results).T
        median = float(np.median(private))
        verdict = None if case.bar is None else "reached" if median >= case.bar else "MISSED"
        notes = [f"{k}={v}" for k, v in case.options.items() if k != "bounds"]
        notes += ["public bounds"] if "bounds" in case.options else []
        notes += ["columns rescaled and shifted"] if case.rescaled else []
        rows.append(
            [
                case.data,
                case.epsilon,
                ", ".join(notes),
                median,
                *np.quantile(private, (0.05, 0.95)),
                float(np.median(public)),
                case.bar,
                verdict,
            ]
        )
        records.append(
            {
                "data": case.data,
                "epsilon": case.epsilon,
                "notes": notes,
                "seeds": list(seeds),
                "private": private,
                "non_private": public,
                "bar": case.bar,
                "verdict": verdict,
            }
        )
    headers = ["data", "epsilon", "settings", "median", "5 %", "95 %", "non-private", "bar", ""]
    print_table(headers, rows, title="R2 or accuracy on test rows")
    save_json(args.out, "defaults", {"cases": records})
    return 0
