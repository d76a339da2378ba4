"""Private scores of one model on Adult: how far they are from the exact ones, and stated errors.

A logistic regression without privacy is fitted to the training part, and scored on the first 16,000
rows of the test part at epsilon = 0.5, a thousand times with a seed each. The bars are those of the
area under the ROC curve: within .01 of the exact one (in all but 5 % of the runs), and value ± 1.96
standard errors covering it in 93 to 97 %, whether a record is replaced or removed. Errors are those
of the probability of the label 1, as for a regression.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn import metrics as ordinary
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import metrics
from skdpnoise.datasets import ADULT_CATEGORIES, fetch_adult
from skdpnoise.privacy import PrivacyGuarantee

ROWS, EPSILON, NEAR = 16_000, 0.5, 0.01
COVER, OFTEN = (0.93, 0.97), 0.95


def predictions(data_dir: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return labels 0 and 1 of test rows, and the probability of 1 that a model gives each."""
    common = {"data_home": data_dir, "as_frame": True, "return_X_y": True}
    X, y = fetch_adult(subset="train", **common)
    X_test, y_test = fetch_adult(subset="test", **common)
    numeric = [name for name in X.columns if name not in ADULT_CATEGORIES]
    categories = [list(known) for known in ADULT_CATEGORIES.values()]
    encoder = OneHotEncoder(categories=categories, handle_unknown="ignore")
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), numeric), ("kinds", encoder, list(ADULT_CATEGORIES))]
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=300)).fit(X, y)
    chances = model.predict_proba(X_test[:ROWS])[:, 1]
    return np.asarray(y_test[:ROWS] == model.classes_[1], dtype=int), chances


def cases(y: np.ndarray, chances: np.ndarray) -> dict[str, tuple[Callable[..., Any], float]]:
    """Return each score, waiting for its guarantee and seed, and the exact one."""
    found, two = (chances > 0.5).astype(int), {"labels": [0, 1]}
    both, bounds = np.column_stack([1.0 - chances, chances]), {"target_bounds": (0.0, 1.0)}
    makers = {
        "ROC AUC": (partial(metrics.private_roc_auc_score, y, chances), ordinary.roc_auc_score),
        "accuracy": (partial(metrics.private_accuracy_score, y, found), ordinary.accuracy_score),
        "balanced accuracy": (
            partial(metrics.private_balanced_accuracy_score, y, found, **two),
            ordinary.balanced_accuracy_score,
        ),
        "log loss": (partial(metrics.private_log_loss, y, both, **two), None),
        "R²": (partial(metrics.private_r2_score, y, chances, **bounds), ordinary.r2_score),
        "MAE": (
            partial(metrics.private_mean_absolute_error, y, chances, **bounds),
            ordinary.mean_absolute_error,
        ),
        "RMSE": (
            partial(metrics.private_root_mean_squared_error, y, chances, **bounds),
            ordinary.root_mean_squared_error,
        ),
    }
    exact = {}
    for name, (make, score) in makers.items():
        given = make.args
        if score is None:  # losses of single records are cut off at 4, which is public
            own = np.where(y == 1, chances, 1.0 - chances)
            exact[name] = make, float(np.minimum(-np.log(own), 4.0).mean())
        else:
            exact[name] = make, float(score(*given))
    return exact


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if the bars of the area are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scores", description=__doc__)
    args = add_common_arguments(parser).parse_args(argv)
    n_runs = 50 if args.quick else 1000
    rows, records = [], []
    for name, (make, exact) in cases(*predictions(args.data_dir)).items():
        for adjacency in ("replace_one", "add_remove"):
            guarantee = PrivacyGuarantee(EPSILON, adjacency=adjacency)
            runs = [make(guarantee, random_state=seed) for seed in range(n_runs)]
            errors = np.array([float(one) for one in runs]) - exact
            stated = np.array([one.standard_error for one in runs])
            cover = float(np.mean(np.abs(errors) <= 1.96 * stated))
            near = float(np.mean(np.abs(errors) <= NEAR))
            numbers = exact, float(errors.mean()), float(errors.std()), float(stated.mean())
            rows.append([name, adjacency, *numbers, near, cover])
            records.append(dict(zip(HEADERS, rows[-1], strict=True)))
    print_table(HEADERS, rows, title=f"Adult, {ROWS:,} rows, ε = {EPSILON:g}, {n_runs} runs")
    save_json(args.out, "scores", {"protocol": __doc__, "cases": records})
    areas = [row for row in rows if row[0] == "ROC AUC"]
    met = all(row[6] >= OFTEN and COVER[0] <= row[7] <= COVER[1] for row in areas)
    print(f"AUC within {NEAR:g} and covered in 93 to 97 %: {'yes' if met else 'NO'}")
    return 0 if met or args.quick else 1


HEADERS = ("score", "adjacency", "exact", "bias", "deviation", "stated", "within .01", "covered")
