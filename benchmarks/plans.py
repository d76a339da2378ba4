"""Scores that a plan simulates, beside those of fits to real records, at several epsilon.

The plan knows the numbers of rows and columns and one more fact, the signal: what the model scores
with hardly any noise. A plan made before anything is spent would have to guess it. Real fits are to
80 % of the records and are judged by the others; median, lowest and highest of ten.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, PrivacyWarning
from skdpnoise.datasets import fetch_california, fetch_electricity

EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
NO_NOISE = 100.0  # ε of the fit that says what the signal is
CASES = {
    "california": (fetch_california, DPCoordinateDescentRegressor, lambda score: score),
    # Of two classes of equal size; see skdpnoise.planning.synthetic.
    "electricity": (
        fetch_electricity,
        DPLogisticCD,
        lambda score: np.sin(np.pi * (score - 0.5)) ** 2,
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table, and save it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks plans", description=__doc__)
    args = add_common_arguments(parser).parse_args(argv)
    warnings.simplefilter("ignore", PrivacyWarning)
    seeds = range(2 if args.quick else 10)
    epsilons = (0.1, 1.0) if args.quick else EPSILONS
    rows = []
    for name, (fetch, make, signal_of) in CASES.items():
        X, y = fetch(data_home=args.data_dir, return_X_y=True)
        real: dict[float, list[float]] = {epsilon: [] for epsilon in (*epsilons, NO_NOISE)}
        for seed in seeds:
            train, test, y_train, y_test = train_test_split(
                X, y, test_size=0.2, random_state=seed, stratify=None if y.dtype.kind == "f" else y
            )
            for epsilon, scores in real.items():
                model = make(epsilon=epsilon, random_state=seed).fit(train, y_train)
                scores.append(model.score(test, y_test))
        signal = float(signal_of(np.median(real[NO_NOISE])))
        options = {"signal": signal, "epsilons": epsilons, "n_fits": len(seeds)}
        plan = make().plan(len(train), X.shape[1], **options)
        for one in plan.scores:
            found = real[one.epsilon]
            simulated = (one.median, one.lowest, one.highest)
            rows.append((name, one.epsilon, *simulated, np.median(found), min(found), max(found)))
    headers = ("data", "epsilon", "plan", "lowest", "highest", "real", "lowest ", "highest ")
    print_table(headers, rows, title="simulated and real scores")
    found = [dict(zip(headers, row, strict=True)) for row in rows]
    save_json(args.out, "plans", {"scores": found})


if __name__ == "__main__":
    main()
