"""What a fresh process and a fresh installation wait for: imports, the command, the first fit."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks._report import ROOT, add_common_arguments, print_table, save_json

SKLEARN = "import sklearn.linear_model"
IMPORTS = {
    "import skdpnoise": "import skdpnoise",
    "from skdpnoise import DPLogisticCD": "from skdpnoise import DPLogisticCD",
    "from skdpnoise import *": "from skdpnoise import *",
}
HELP = "skdpnoise --help"
BARS = dict.fromkeys(IMPORTS, 1.15) | {HELP: 0.5, "first fit": 2.0}

# Rows and columns: what numpy does at once, and what compiled loops do.
SIZES = {"small": (20_000, 10), "large": (200_000, 20)}
MODELS = {
    "regressor": "DPCoordinateDescentRegressor().fit(X, y)",
    "classifier": "DPLogisticCD().fit(X, y > 0.0)",
    "PCA": "DPPCA(n_components=2).fit(X)",
}
# Prints the seconds of equal fits: what the first does not compile, a later one may. Nothing is
# imported for them beforehand but the estimators.
FITS = """
import time, warnings
import numpy as np
from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, DPPCA
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=({n}, {p}))
y = X.sum(axis=1) + rng.normal(size={n})
for _ in range(4):
    start = time.perf_counter()
    {fit}
    print(time.perf_counter() - start)
"""


def fresh(command: list[str], cache: str) -> tuple[float, str]:
    """Return the seconds and the output of a process of its own, which may write bytecode."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, done.stdout


def import_ratios(repetitions: int) -> dict[str, float]:
    """Medians of the ratios of imports to that of scikit-learn's linear models, interleaved."""
    commands = {name: [sys.executable, "-c", code] for name, code in IMPORTS.items()}
    commands[SKLEARN] = [sys.executable, "-c", SKLEARN]
    commands[HELP] = [sys.executable, "-m", "skdpnoise", "--help"]
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as cache:
        for repetition in range(-1, repetitions):  # the first, -1, writes the bytecode
            for name, command in commands.items():
                taken, _ = fresh(command, cache)
                if repetition >= 0:
                    seconds[name].append(taken)
    ratios = {
        name: float(np.median(np.divide(seconds[name], seconds[SKLEARN]))) for name in IMPORTS
    }
    return ratios | {name: float(np.median(seconds[name])) for name in (HELP, SKLEARN)}


def waiting(fit: str, n: int, p: int, repetitions: int) -> tuple[float, float, float]:
    """Medians of: first minus second fit, slowest minus fastest of four, fastest; in seconds."""
    code = FITS.format(n=n, p=p, fit=fit)
    found = []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as cache:  # empty: nothing has been compiled before
            _, printed = fresh([sys.executable, "-c", code], cache)
        seconds = [float(word) for word in printed.split()]
        fastest = min(seconds)
        found.append((seconds[0] - seconds[1], max(seconds) - fastest, fastest))
    more, most, fastest = np.median(found, axis=0).tolist()
    return more, most, fastest


def report(repetitions: int, *, quick: bool) -> list[dict[str, Any]]:
    """Measure and print all of it."""
    found = import_ratios(repetitions)
    results: list[dict[str, Any]] = [
        {"what": name, "unit": f"times {SKLEARN}", "figure": found[name], "bar": BARS[name]}
        for name in IMPORTS
    ]
    results.append({"what": SKLEARN, "unit": "seconds", "figure": found[SKLEARN], "bar": None})
    results.append({"what": HELP, "unit": "seconds", "figure": found[HELP], "bar": BARS[HELP]})
    for size, (n, p) in SIZES.items():
        if quick and size == "large":
            continue
        for name, fit in MODELS.items():
            print(f"measuring {name}, {n:,} x {p}", file=sys.stderr, flush=True)
            more, most, fastest = waiting(fit, n, p, min(repetitions, 3))
            what = f"{name}, {n:,} x {p}, empty cache"
            for unit, figure in {
                "seconds, first fit - second": more,
                f"seconds, slowest of 4 fits - fastest ({fastest:.2g})": most,
            }.items():
                bar = BARS["first fit"]
                results.append({"what": what, "unit": unit, "figure": figure, "bar": bar})
    for result in results:
        bar = result["bar"]
        result["held"] = "" if bar is None else "held" if result["figure"] <= bar else "MISSED"
    print_table(
        list(results[0]),
        [list(result.values()) for result in results],
        title=f"Cold start: medians of fresh processes, {repetitions} of each, interleaved",
    )
    return results


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table and save ``cold.json``."""
    parser = add_common_arguments(argparse.ArgumentParser("benchmarks cold", description=__doc__))
    parser.add_argument("--repetitions", type=int, default=7, help="of every fresh process")
    args = parser.parse_args(argv)
    results = report(1 if args.quick else args.repetitions, quick=args.quick)
    save_json(args.out, "cold", {"results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
