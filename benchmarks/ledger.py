"""Opening a ledger with 10,000 charges, asking for its total, and charging once more, on SQLite."""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyLoss, PureLoss
from skdpnoise.sensitivity import SensitivityProfile

STATEMENT = (
    "Seconds of wall time, on a file in the folder for temporary files. The ledger is filled to "
    "98 % of its budget by ordinary charges that do not wait for the disk; 'fill' is their mean. "
    "'warm' is the median, and the largest, of charges after that which do wait, as a ledger "
    "does. 'fresh' is the first charge of a new process that has imported the packages and "
    "opened the ledger, the median of several processes. 'disk' is the median of the smallest "
    "transaction of SQLite itself on such a file, with the same settings: the part of a charge "
    "that is waiting. 'open + total' is measured in a new process too; 'from all rows' without "
    "the sum that a ledger keeps of its older charges."
)
BARS = {"open_total": 1.0, "open_total_rows": 1.0, "warm": 0.020, "fresh": 0.020, "fill": 0.020}
DELTA = 1e-6

FRESH = """
import json, sys, time
import numpy, scipy.fft, sqlalchemy.dialects.sqlite
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.accounting.encoding import decode_loss
clock = time.perf_counter
start = clock()
ledger = PrivacyLedger.open("data", sys.argv[1])
opened = clock()
if sys.argv[2]:
    loss = decode_loss(sys.argv[2])
    before = clock()
    ledger.charge("fresh", loss)
else:
    before = opened
    total = ledger.total()
print(json.dumps([opened - start, clock() - before]))
"""


def equal_pure(n: int) -> Iterator[PrivacyLoss]:
    """Return n times the same promise."""
    return (PureLoss(0.01) for _ in range(n))


def distinct_laplace(n: int) -> Iterator[PrivacyLoss]:
    """Return n losses of Laplace mechanisms, no two of which are equal."""
    laplace = get_noise("laplace")
    for shift in np.random.default_rng(0).uniform(0.001, 0.02, n):
        yield NumericLoss(((laplace, float(shift), 1),))


def mixed(n: int) -> Iterator[PrivacyLoss]:
    """Return pure promises, Laplace mechanisms and Gaussian ones, none of them equal."""
    laplace = get_noise("laplace")
    for k, shift in enumerate(np.random.default_rng(1).uniform(0.001, 0.02, n)):
        size = float(shift)
        yield (PureLoss(size), GaussianLoss(size), NumericLoss(((laplace, size, 1),)))[k % 3]


KINDS: dict[str, Callable[[int], Iterator[PrivacyLoss]]] = {
    "equal pure": equal_pure,
    "distinct Laplace": distinct_laplace,
    "pure, Laplace, Gaussian": mixed,
}


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def budget_of(losses: Sequence[PrivacyLoss]) -> float:
    """Return an ε of which the losses take 98 percent."""
    terms = tuple(term for loss in losses for term in loss.numeric().terms)
    return NumericLoss(terms).epsilon(DELTA) / 0.98


def fill(url: str, epsilon: float, losses: Sequence[PrivacyLoss]) -> float:
    """Make a ledger with charges that do not wait for the disk; return seconds for each."""
    import sqlalchemy as sa

    ledger = PrivacyLedger("data", epsilon, DELTA, url)
    engine = ledger._storage._engine()

    @sa.event.listens_for(engine, "connect")
    def hurry(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    parameters = {"alpha": 0.1, "max_iter": 100, "noise": "iid_laplace"}
    start = time.perf_counter()
    for loss in losses:
        ledger.charge("fit", loss, estimator="DPLogisticCD", parameters=parameters)
    return (time.perf_counter() - start) / len(losses)


def disk(folder: Path, repetitions: int) -> float:
    """Return seconds of a small transaction of SQLite that is waited for."""
    path = folder / "disk.db"
    taken = []
    for number in range(repetitions):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = PERSIST")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("CREATE TABLE IF NOT EXISTS numbers (number INTEGER)")
        start = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        connection.execute("COMMIT")
        taken.append(time.perf_counter() - start)
        connection.close()
    return float(np.median(taken))


def fresh(url: str, loss: str = "") -> tuple[float, float]:
    """Return seconds to open, and to charge or to ask for the total, in a new process."""
    command = [sys.executable, "-c", FRESH, url, loss]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    opened, asked = json.loads(answer.stdout)
    return float(opened), float(asked)


def forget_sums(url: str) -> None:
    """Remove what a ledger keeps so as not to read its older charges again."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    with connection:
        connection.execute("UPDATE skdpnoise_datasets SET summary = NULL")
    connection.close()


def measure(folder: Path, kind: str, n: int, repetitions: int) -> dict[str, Any]:
    """Return all figures of one kind of charges."""
    from skdpnoise.ledger import encode_loss

    url = f"sqlite:///{folder / kind.replace(' ', '_').replace(',', '')}.db"
    losses = list(KINDS[kind](n))
    figures: dict[str, Any] = {"kind": kind, "n_charges": n}
    figures["fill"] = fill(url, budget_of(losses), losses)
    more = list(KINDS[kind](n + 10 * repetitions))[n:]
    ledger = PrivacyLedger.open("data", url)
    ledger.total()
    warm = [seconds_of(lambda loss=loss: ledger.charge("fit", loss)) for loss in more]
    figures["warm"], figures["warm_largest"] = float(np.median(warm)), max(warm)
    firsts = [fresh(url, encode_loss(loss)) for loss in more[:repetitions]]
    figures["open"], figures["fresh"] = (
        float(np.median(column)) for column in zip(*firsts, strict=True)
    )
    totals = [sum(fresh(url)) for _ in range(repetitions)]
    figures["open_total"] = float(np.median(totals))
    forget_sums(url)
    totals = [sum(fresh(url)) for _ in range(repetitions)]
    figures["open_total_rows"] = float(np.median(totals))
    total = PrivacyLedger.open("data", url).total()
    figures["epsilon"], figures["basic"] = total.epsilon, total.basic[0]
    figures["disk"] = disk(folder, 10 * repetitions)
    figures["history"] = seconds_of(PrivacyLedger.open("data", url).history)
    return figures


def tight() -> dict[str, float]:
    """Return totals of 400 fits at ε = 0.05."""
    mechanism = calibrate("iid_laplace", SensitivityProfile([1.0]), PureLoss(0.05))
    found = {}
    for name, cost in (("Laplace noise", mechanism), ("any pure loss", PureLoss(0.05))):
        ledger = PrivacyLedger("data", 20.0, DELTA, "memory")
        for _ in range(400):
            ledger.charge("fit", cost, guarantee=(0.05, 0.0))
        total = ledger.total()
        found[name], found["basic composition"] = total.epsilon, total.basic[0]
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if all bars are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks ledger", description=__doc__)
    add_common_arguments(parser)
    args = parser.parse_args(argv)
    n, repetitions = (1_000, 3) if args.quick else (10_000, 7)
    results = []
    with tempfile.TemporaryDirectory(prefix="skdpnoise-ledger-") as folder:
        for kind in KINDS:
            print(f"filling a ledger: {kind}", file=sys.stderr, flush=True)
            results.append(measure(Path(folder), kind, n, repetitions))
    rows = [
        [
            r["kind"],
            *(1e3 * r[name] for name in ("fill", "warm", "warm_largest", "open", "fresh", "disk")),
            *(1e3 * r[name] for name in ("open_total", "open_total_rows", "history")),
            r["epsilon"],
            r["basic"],
            "met" if all(r[name] <= bar for name, bar in BARS.items()) else "MISSED",
        ]
        for r in results
    ]
    headers = ["charges", "fill", "warm", "largest", "open", "fresh", "disk"]
    headers += ["open + total", "from all rows", "history", "ε", "basic ε", "bars"]
    print_table(headers, rows, title=f"Milliseconds with {n:,} charges in the file")
    totals = tight()
    print_table(
        ["400 fits at ε = 0.05, δ = 1e-6", "ε in all"],
        [[name, value] for name, value in totals.items()],
    )
    print(STATEMENT)
    payload = {"statement": STATEMENT, "bars": BARS, "results": results, "totals": totals}
    save_json(args.out, "ledger", payload)
    return 0 if all(r[name] <= bar for r in results for name, bar in BARS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
