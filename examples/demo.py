"""Private models beside ordinary ones, on data that need no network: what ``make demo`` runs.

Breast cancer and diabetes come with scikit-learn; their few hundred records need public bounds. The
third table is generated, larger, in units from thousandths to millions, and gets no bounds at all.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, PrivacyWarning

EPSILONS = (0.1, 0.5, 1.0, 5.0)
SPLITS = 5

# What a domain expert would say without a look at the records. Breast cancer: ten measurements of
# cell nuclei, each as a mean over nuclei, its standard error, and its mean over the worst three.
HIGHEST = [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1]
HIGHEST_ERROR = [3, 5, 25, 500, 0.03, 0.15, 0.4, 0.06, 0.1, 0.03]
HIGHEST_WORST = [40, 50, 260, 4500, 0.25, 1, 1.2, 0.3, 0.7, 0.2]
CANCER = {"feature_bounds": (0, HIGHEST + HIGHEST_ERROR + HIGHEST_WORST)}
# Diabetes: age (years), sex (coded 1 and 2), body mass index (kg/m²), blood pressure (mmHg), then
# six blood values; the target is a score of progression after a year.
DIABETES = {
    "feature_bounds": (
        [18, 1, 15, 60, 80, 30, 15, 1.5, 3, 50],
        [80, 2, 45, 140, 320, 250, 110, 10, 6.5, 130],
    ),
    "target_bounds": (0, 350),
}


def raw_units(n_samples: int = 50_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Generate columns whose units differ by factors of a million, and a target in thousands."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n_samples, 6))
    z[:, 5] = np.exp(z[:, 5])  # one column with a long tail
    y = 50_000 + 9_000 * (z @ [1.0, -0.8, 0.5, 0.3, 0.0, 0.1] + 0.8 * rng.normal(size=n_samples))
    return z * [1e-3, 1.0, 40.0, 1e3, 1e6, 20.0] + [0.02, 300.0, 0.0, -5e3, 4e6, 0.0], y


def scores(private, ordinary, X, y) -> list[str]:
    """Return the median test score over the splits: one for each epsilon, then the ordinary one."""
    table = []
    for split in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=split)
        models = [clone(private).set_params(epsilon=e) for e in EPSILONS]
        with warnings.catch_warnings():
            # Of some hundred records the noise leaves little at ε=0.1, and fits say so.
            warnings.simplefilter("ignore", PrivacyWarning)
            fitted = [m.fit(X_train, y_train) for m in (*models, ordinary)]
        table.append([m.score(X_test, y_test) for m in fitted])
    return [f"{score:.3f}" for score in np.median(table, axis=0)]


def show(headers: list[str], rows: list[list[str]]) -> None:
    """Print a table, by rich where it is installed."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
        for row in (headers, ["-" * width for width in widths], *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
        return
    table = Table(*headers[:3], box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for header in headers[3:]:
        table.add_column(header, justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    """Print the table and one privacy report."""
    start = time.perf_counter()
    classify = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    regress = make_pipeline(StandardScaler(), LinearRegression())
    cancer = load_breast_cancer(return_X_y=True)
    diabetes = load_diabetes(return_X_y=True, scaled=False)
    generated = raw_units()
    rows = [
        ["breast cancer", "public", "accuracy", *scores(DPLogisticCD(**CANCER), classify, *cancer)],
        [
            "diabetes",
            "public",
            "R²",
            *scores(DPCoordinateDescentRegressor(**DIABETES), regress, *diabetes),
        ],
        ["generated", "none", "R²", *scores(DPCoordinateDescentRegressor(), regress, *generated)],
    ]
    show(["data", "bounds", "score", *(f"ε={e:g}" for e in EPSILONS), "ordinary"], rows)
    print(
        f"Medians on the test rows of {SPLITS} splits, {len(cancer[1])}, {len(diabetes[1])} and "
        f"{len(generated[1]):,} records;\nordinary: the same kind of model without privacy. The "
        "noise is drawn anew in each run,\nso the figures vary."
    )
    print("\nThe privacy report of one fit to the generated data:\n")
    print(DPCoordinateDescentRegressor(epsilon=1.0).fit(*generated).privacy_)
    print(f"\n{time.perf_counter() - start:.0f} seconds, compiling included.")


if __name__ == "__main__":
    main()
