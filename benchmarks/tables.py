"""Tables in five lines: accuracy and area under the curve on Adult, and categories of few people.

The schema gives bounds or a logarithm for five numbers, and the lists of the data's description for
all categories; then no schema at all. Seeds are of the noise, on the published division. A category
that one, two or five people have alone is looked for in many fits, at a δ so large that chances can
be counted; the mechanism states how often it is shown.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

from benchmarks._kept import resumed
from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import DPLogisticRegression, DPOneHotEncoder, DPPipeline, DPTableVectorizer
from skdpnoise.datasets import ADULT_CATEGORIES, fetch_adult
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries.categories import category_mechanism

DELTA = 1e-6
# ε: accuracy and area with the schema, and accuracy without.
BARS: dict[float, tuple[float, float, float | None]] = {
    0.1: (0.80, 0.85, None),
    0.5: (0.838, 0.885, None),
    1.0: (0.843, 0.892, 0.83),
    5.0: (0.847, 0.898, None),
}
NUMBERS: dict[str, Any] = {
    "age": (17, 90),
    "hours-per-week": (0, 100),
    "education-num": (1, 16),
    "capital-gain": "log",
    "capital-loss": "log",
}
CLASSES = ["<=50K", ">50K"]
GROUPS, CHANCES, FITS = (1, 2, 5), 0.2, 4000


def scores(data_dir: Any, epsilon: float, seed: int, *, schema: bool) -> tuple[float, float]:
    """Return test accuracy and area under the curve of one fit."""
    common = {"data_home": data_dir, "as_frame": True, "return_X_y": True}
    X, y = fetch_adult(subset="train", **common)
    X_test, y_test = fetch_adult(subset="test", **common)
    known = {name: list(kinds) for name, kinds in ADULT_CATEGORIES.items()}
    table = DPTableVectorizer(NUMBERS | known if schema else None)
    model = DPPipeline(
        [("table", table), ("model", DPLogisticRegression(classes=CLASSES))],
        epsilon=epsilon,
        delta=DELTA,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    area = roc_auc_score(y_test == CLASSES[1], model.predict_proba(X_test)[:, 1])
    return float(model.score(X_test, y_test)), float(area)


def shown(n_people: int, seed: int) -> bool:
    """Return whether one fit shows a category that so many people have alone."""
    column = np.array([["common"]] * 200 + [["own"]] * n_people, dtype=object)
    encoder = DPOneHotEncoder(1.0, CHANCES, adjacency="add_remove", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "own" in encoder.fit(column).categories_[0].tolist()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if all bars are reached."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tables", description=__doc__)
    args = add_common_arguments(parser).parse_args(argv)
    seeds = range(2 if args.quick else 10)
    measure = resumed(args.out, scores)
    rows, reached = [], True
    for schema in (True, False):
        for epsilon, (accuracy, area, alone) in BARS.items():
            found = Parallel(n_jobs=2)(
                delayed(measure)(args.data_dir, epsilon, seed, schema=schema) for seed in seeds
            )
            means = np.mean(found, axis=0)
            wanted = [accuracy, area] if schema else [alone, None]
            held = [
                one is None or mean >= one for one, mean in zip(wanted, means.tolist(), strict=True)
            ]
            reached = reached and all(held)
            rows.append(["yes" if schema else "no", epsilon, *means.tolist(), *map(str, wanted)])
    headers = ["schema", "ε", "accuracy", "area", "accuracy, at least", "area, at least"]
    print_table(headers, rows, title=f"Adult, test part, means of {len(seeds)} seeds")
    fits = FITS // 10 if args.quick else FITS
    made = category_mechanism("tables", "auto", 1, "add_remove", PrivacyGuarantee(1.0, CHANCES))
    chances = []
    for n_people in GROUPS:
        stated = made.chance(n_people)
        share = float(np.mean([shown(n_people, seed) for seed in range(fits)]))
        error = math.sqrt(stated * (1.0 - stated) / fits)
        reached = reached and abs(share - stated) <= 3.0 * error
        chances.append([n_people, stated, share, error])
    print_table(["people", "stated", "shown", "error"], chances, title=f"categories, {fits} fits")
    save_json(args.out, "tables", {"protocol": __doc__, "scores": rows, "chances": chances})
    print(f"all bars: {'reached' if reached else 'NOT REACHED'}")
    return 0 if reached else 1
