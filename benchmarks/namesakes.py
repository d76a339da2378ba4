"""Every linear model with default settings beside its scikit-learn namesake, on real data.

Medians over 80/20 splits (Adult: the published division), replace-one and δ = 1e-6, no bounds and
no seed. Both have the same penalty, threshold, quantile or C; the namesake of a model whose penalty
is of standardised columns gets standardised columns. Wages are predicted by schooling, experience,
sex and age, in dollars, which have a long tail. Spambase is hard for every private model: 57
columns, most of them 0 for most of its 3,680 messages.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn import linear_model as ordinary
from sklearn.metrics import (
    accuracy_score,
    d2_absolute_error_score,
    d2_pinball_score,
    d2_tweedie_score,
    r2_score,
)
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import skdpnoise as private
from benchmarks._kept import resumed
from benchmarks._report import add_common_arguments, print_table, save_json
from benchmarks.many import adult, table
from benchmarks.poisson import load as visits
from skdpnoise.datasets import fetch_california

EPSILONS = (0.3, 1.0, 3.0)
SPLITS = 11
_QUANTILE = 0.9
_MIXED = {"alpha": 0.01, "l1_ratio": 0.5}


class Pair(NamedTuple):
    """A private model and its namesake, and where they meet."""

    model: Callable[..., Any]
    settings: dict[str, Any]
    namesake: Any
    data: str
    measure: str
    score: Callable[..., float]


def _scaled(model: Any) -> Any:
    """Return an ordinary model of standardised columns."""
    return make_pipeline(StandardScaler(), model)


_R2, _ACCURACY = ("R²", r2_score), ("accuracy", accuracy_score)
_PINBALL = ("D², pinball", partial(d2_pinball_score, alpha=_QUANTILE))
_ABSOLUTE = ("D², absolute", d2_absolute_error_score)
_DEVIANCE = ("D², deviance", partial(d2_tweedie_score, power=1))
PAIRS = [
    Pair(
        *(private.DPCoordinateDescentRegressor, {}, ordinary.LinearRegression()),
        *("California", *_R2),
    ),
    Pair(private.DPRidge, {}, ordinary.Ridge(), "California", *_R2),
    Pair(private.DPLasso, {"alpha": 0.01}, ordinary.Lasso(alpha=0.01), "California", *_R2),
    Pair(private.DPElasticNet, _MIXED, ordinary.ElasticNet(**_MIXED), "California", *_R2),
    Pair(
        *(private.DPHuberRegressor, {}, _scaled(ordinary.HuberRegressor(alpha=0.0, max_iter=1000))),
        *("wages", *_ABSOLUTE),
    ),
    Pair(
        *(private.DPQuantileRegressor, {"quantile": _QUANTILE}),
        _scaled(ordinary.QuantileRegressor(quantile=_QUANTILE, alpha=0.0)),
        *("wages", *_PINBALL),
    ),
    Pair(
        *(private.DPPoissonRegressor, {}, _scaled(ordinary.PoissonRegressor(alpha=0.0))),
        *("visits to doctors", *_DEVIANCE),
    ),
    Pair(private.DPLogisticCD, {}, _scaled(ordinary.LogisticRegression()), "Adult", *_ACCURACY),
    Pair(private.DPLinearSVC, {}, _scaled(LinearSVC()), "Adult", *_ACCURACY),
    Pair(private.DPLogisticCD, {}, _scaled(ordinary.LogisticRegression()), "Spambase", *_ACCURACY),
    Pair(private.DPLinearSVC, {}, _scaled(LinearSVC()), "Spambase", *_ACCURACY),
]


def divided(name: str, data_dir: Any, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return train and test rows, and their targets."""
    if name == "Adult":
        return adult(data_dir)[:4]
    if name == "California":
        X, y = fetch_california(data_home=data_dir, return_X_y=True)
    elif name == "wages":
        file = Path(data_dir or os.environ["SKDPNOISE_DATA"]) / "cps_asec_2024_wages.csv.gz"
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
        X, y = rows[:, [1, 2, 4, 7]], rows[:, 5]
    else:
        X, y = visits() if name == "visits to doctors" else table(name, data_dir)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    return X, X_test, y, y_test


def scores(number: int, data_dir: Any, epsilons: Sequence[float], seed: int) -> list[float]:
    """Return the test scores of a private model at each ε, and of its namesake."""
    pair = PAIRS[number]
    X, X_test, y, y_test = divided(pair.data, data_dir, seed)
    models = [pair.model(epsilon, **pair.settings) for epsilon in epsilons]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictions = [model.fit(X, y).predict(X_test) for model in (*models, pair.namesake)]
    return [float(pair.score(y_test, one)) for one in predictions]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = add_common_arguments(
        argparse.ArgumentParser("benchmarks namesakes", description=__doc__)
    )
    args = parser.parse_args(argv)
    epsilons, n_splits = (EPSILONS[1:2], 3) if args.quick else (EPSILONS, SPLITS)
    measure = resumed(args.out, scores)
    tasks = [
        delayed(measure)(number, args.data_dir, epsilons, seed)
        for number in range(len(PAIRS))
        for seed in range(n_splits)
    ]
    found = np.array(Parallel(n_jobs=2)(tasks)).reshape(len(PAIRS), n_splits, -1)
    medians = np.median(found, axis=1)
    rows = [
        [pair.model.__name__, pair.data, pair.measure, *row]
        for pair, row in zip(PAIRS, medians, strict=True)
    ]
    headers = ["model", "data", "score", *(f"ε = {one:g}" for one in epsilons), "scikit-learn"]
    print_table(headers, rows, title=f"Test scores, medians of {n_splits} splits")
    save_json(args.out, "namesakes", {"epsilons": epsilons, "rows": rows, "scores": found})
    return 0
