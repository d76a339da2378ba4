"""Processor seconds of a search that a ledger refuses, and of one that it just accepts."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

from benchmarks._report import add_common_arguments, print_table, save_json

STATEMENT = (
    "Every search is the first of its kind in a new process, which has filled the ledger and made "
    "one search of another kind. 'accepted' is charged for the largest epsilon that the refusal "
    "names, and is stopped after the charge; 'refused' asks for more."
)
BAR = 1.0  # seconds that a refusal may take longer

SCRIPT = """
import json, sys, time
import numpy as np
from skdpnoise import DPGridSearchCV, DPLogisticCD, PrivacyLedger
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PureLoss

class Stopped(Exception):
    pass

before, strategy, delta, epsilon = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(2_000, 3))
y = X[:, 0] > 0.0
grid = {"alpha": [0.0, 0.01, 0.03, 0.1]}

def search(**settings):
    estimator = DPLogisticCD(feature_bounds=(-4.0, 4.0))
    return DPGridSearchCV(estimator, grid, random_state=0, **settings).fit(X, y)

ledger = PrivacyLedger("rows", 1.0, 1e-6, "memory")
for kind in before:
    if kind == "search":
        search(epsilon=0.4, ledger=ledger)
    else:
        ledger.charge(kind, {"pure": PureLoss(0.3), "normal": GaussianLoss(0.08)}[kind])
search(epsilon=0.33)
from skdpnoise.model_selection import _runs
def stopped(run):
    raise Stopped
_runs.without_traces = stopped
start = time.process_time()
try:
    search(epsilon=epsilon, delta=delta, strategy=strategy, ledger=ledger)
except Stopped:
    found = None
except BudgetExceededError as refusal:
    found = refusal.largest_epsilon
print(json.dumps([time.process_time() - start, found]))
"""


def seconds(*settings: object) -> tuple[float, float | None]:
    """Return the processor seconds of a search in a new process, and the ε that is named."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(settings)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    taken, found = json.loads(answer.stdout)
    return float(taken), found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if all bars are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks refusals", description=__doc__)
    add_common_arguments(parser)
    args = parser.parse_args(argv)
    ledgers: list[list[str]] = [[], ["search"], ["search", "normal"]]
    if not args.quick:
        ledgers += [["pure"], ["normal"], ["search", "search", "pure"]]
    strategies = ("auto",) if args.quick else ("auto", "noisy_max", "repeated")
    rows: list[list[object]] = []
    for before in ledgers:
        for strategy in strategies:
            for delta in (1e-6,) if args.quick else (1e-6, 0.0):
                refused, largest = seconds(before, strategy, delta, 1.5)
                accepted, none = seconds(before, strategy, delta, largest)
                more, still = seconds(before, strategy, delta, 1.01 * float(largest or 0.0))
                right = bool(largest) and none is None and still is not None
                name = ", ".join(before) or "nothing"
                rows.append([name, strategy, delta, largest, right, accepted, refused, more])
    headers = ["spent", "strategy", "δ", "largest ε", "right", "accepted", "refused", "1 % more"]
    print_table(headers, rows, title=STATEMENT)
    save_json(args.out, "refusals", {"statement": STATEMENT, "headers": headers, "rows": rows})
    met = [
        row[4] and max(float(str(x)) for x in row[6:]) <= float(str(row[5])) + BAR for row in rows
    ]
    return 0 if all(met) else 1
