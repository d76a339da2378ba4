"""Poisson regression with default settings beside scikit-learn's: D2 on visits to doctors.

80/20 splits of statsmodels' `randhie` (20,190 people and years; the target is `mdvis`). The noise has
no seed. No bounds are given and nothing is tuned. The bar is a loss of .01 at (1, 1e-6) to the
better of scikit-learn's model with its own settings and without a penalty on scaled columns.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import DPPoissonRegressor, PrivacyWarning

MOST_LOST, SPLITS = 0.01, 15


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return features and numbers of visits."""
    from statsmodels.datasets import randhie

    data = randhie.load_pandas().data
    return data.drop(columns="mdvis").to_numpy(), data["mdvis"].to_numpy()


def scores(X: np.ndarray, y: np.ndarray, split: int, epsilons: Sequence[float]) -> list[float]:
    """Return the test scores of the private models, then of the two public ones."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=split)
    plain = make_pipeline(StandardScaler(), PoissonRegressor(alpha=0.0))
    models = [DPPoissonRegressor(epsilon) for epsilon in epsilons]
    models += [PoissonRegressor(max_iter=1000), plain]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return [model.fit(X_train, y_train).score(X_test, y_test) for model in models]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = add_common_arguments(
        argparse.ArgumentParser("benchmarks poisson", description=__doc__)
    )
    args = parser.parse_args(argv)
    epsilons = (1.0,) if args.quick else (0.3, 1.0, 3.0, 10.0)
    X, y = load()
    n_splits = 5 if args.quick else SPLITS
    table = np.array([scores(X, y, split, epsilons) for split in range(n_splits)])
    best = float(np.median(table[:, -2:], axis=0).max())
    names = [f"DPPoissonRegressor({epsilon:g})" for epsilon in epsilons]
    names += ["PoissonRegressor()", "PoissonRegressor(alpha=0), scaled columns"]
    rows = []
    for name, column in zip(names, table.T, strict=True):
        median = float(np.median(column))
        reached = "reached" if median >= best - MOST_LOST else "MISSED"
        bar = [best - MOST_LOST, reached] if name == "DPPoissonRegressor(1)" else [None, None]
        rows.append([name, median, column.min(), column.max(), *bar])
    headers = ["model", "median", "min", "max", "bar", ""]
    print_table(headers, rows, title=f"D2 on test rows, {n_splits} splits")
    save_json(args.out, "poisson", {"models": names, "scores": table})
    return 0
