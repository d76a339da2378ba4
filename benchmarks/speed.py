"""Ratios: calibrations, cold starts, fits beside scikit-learn, private passes beside plain ones."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks import _calibrations, _million_rows, _table_pipelines, cold
from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.kernels import LOSSES, coordinate_descent

N_FEATURES = 20
CLIP, QUANTUM, LIMIT = 1.0, 1e-7, 3.0
BARS = {
    "private / plain": ("<=", 1.15),
    "numpy / private": (">=", 3.5),
    "1 thread / 2 threads": (">=", 1.5),
    "extra memory / X": ("<=", 0.2),
}


@njit(nogil=True)
def triad(a, b, c, factor):
    """STREAM's triad, the measure of memory bandwidth (McCalpin 1995)."""
    for i in range(a.shape[0]):
        a[i] = b[i] + factor * c[i]


def make_data(n: int, dtype: str, loss: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Normal features in column-major order, filled in place, and a target or labels."""
    rng = np.random.default_rng(0)
    X, y = np.empty((n, N_FEATURES), dtype=dtype, order="F"), np.empty(n)
    for start in range(0, n, 10_000):  # in pieces, for the sake of the peak memory
        rows = slice(start, min(start + 10_000, n))
        X[rows] = rng.standard_normal((rows.stop - start, N_FEATURES), dtype=dtype)
        y[rows] = 0.1 * X[rows].sum(axis=1) + rng.standard_normal(rows.stop - start)
    if loss == "logistic":
        np.sign(y, out=y)
    return X, y


def solver(
    X: NDArray[Any], y: NDArray[Any], loss: str, standardise: bool, private: bool, n_threads: int
) -> Iterator[NDArray[np.float64]]:
    """Passes of ours, without end."""
    keywords: dict[str, Any] = {}
    if private:
        keywords |= {"clip": CLIP, "grid_size": QUANTUM}
    if standardise:
        keywords |= {"center": 0.0, "scale": 1.0, "limit": LIMIT}
    step = np.full(N_FEATURES, 1.0 / LOSSES[loss].curvature)
    return coordinate_descent(
        X, y, loss=LOSSES[loss], n_passes=10**9, step=step, n_threads=n_threads, **keywords
    )


def numpy_solver(
    X: NDArray[Any], y: NDArray[Any], loss: str, standardise: bool
) -> Iterator[NDArray[np.float64]]:
    """The same private passes in numpy: contiguous columns, no temporaries."""
    n = X.shape[0]
    score = -y if loss == "squared" else np.zeros(n)
    positive = (y > 0).astype(np.float64)
    gradient, column = np.empty(n), np.empty(n)
    theta = np.zeros(N_FEATURES)
    bound = np.rint(CLIP / QUANTUM)
    step = 1.0 / LOSSES[loss].curvature
    while True:
        for j in range(N_FEATURES):
            x = X[:, j]
            if standardise:
                np.subtract(x, 0.0, out=column)
                np.multiply(column, 1.0, out=column)
                x = np.clip(column, -LIMIT, LIMIT, out=column)
            if loss == "squared":
                np.multiply(score, x, out=gradient)
            else:
                expit(score, out=gradient)
                np.subtract(gradient, positive, out=gradient)
                np.multiply(gradient, x, out=gradient)
            np.multiply(gradient, 1.0 / QUANTUM, out=gradient)
            np.clip(gradient, -bound, bound, out=gradient)
            np.rint(gradient, out=gradient)
            change = -step * QUANTUM * int(gradient.sum()) / n
            theta[j] += change
            np.multiply(x, change, out=gradient)
            np.add(score, gradient, out=score)
        yield theta.copy()


def interleaved_seconds(
    runs: dict[str, Callable[[], object]], repetitions: int
) -> dict[str, list[float]]:
    """Seconds of every run, interleaved, so that a busy machine disturbs all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def measure(n: int, dtype: str, loss: str, standardise: bool, repetitions: int) -> dict[str, Any]:
    """Times of one pass in nanoseconds per row and coordinate, and their ratios."""
    X, y = make_data(n, dtype, loss)
    passes = {
        "private": solver(X, y, loss, standardise, True, 1),
        "plain": solver(X, y, loss, standardise, False, 1),
        "private, 2 threads": solver(X, y, loss, standardise, True, 2),
        "numpy": numpy_solver(X, y, loss, standardise),
    }
    first = {name: next(run) for name, run in passes.items()}  # compiles, and touches every page
    if not np.array_equal(first["private"], first["private, 2 threads"]):
        raise AssertionError("one and two threads disagree")
    np.testing.assert_allclose(first["private"], first["numpy"], atol=1e-8)

    a, b, c = np.zeros((3, n))
    triad(a, b, c, 0.5)
    with ThreadPoolExecutor(2) as pool:

        def triad_twice() -> None:
            """Two halves at once: what two threads can gain on this machine."""
            halves = [
                pool.submit(triad, a[rows], b[rows], c[rows], 0.5)
                for rows in (slice(n // 2), slice(n // 2, n))
            ]
            for half in halves:
                half.result()

        runs: dict[str, Callable[[], object]] = {
            name: (lambda run=run: next(run)) for name, run in passes.items()
        }
        runs["triad"] = lambda: triad(a, b, c, 0.5)
        runs["triad, 2 threads"] = triad_twice
        seconds = interleaved_seconds(runs, repetitions)
    work = {name: n if name.startswith("triad") else n * N_FEATURES for name in runs}
    ns = {name: float(np.median(seconds[name])) / work[name] * 1e9 for name in runs}
    return {
        "loss": loss,
        "dtype": dtype,
        "standardised": standardise,
        "nanoseconds": ns,
        "fastest_nanoseconds": {k: min(seconds[k]) / work[k] * 1e9 for k in runs},
        "private / plain": ratio(seconds, "private", "plain"),
        "numpy / private": ratio(seconds, "numpy", "private"),
        "1 thread / 2 threads": ratio(seconds, "private", "private, 2 threads"),
        "triad, 1 thread / 2 threads": ratio(seconds, "triad", "triad, 2 threads"),
    }


def ratio(seconds: dict[str, list[float]], above: str, below: str) -> float:
    """Median over the repetitions of the ratio of two neighbours in time."""
    return float(np.median(np.divide(seconds[above], seconds[below])))


def memory() -> tuple[int, int]:
    """Bytes this process holds, and the most it has held; without /proc the latter twice."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would report the size of the parent at the fork as well
        sizes = dict(line.split(":", 1) for line in status.read_text().splitlines())
        now, peak = (int(sizes[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))
        return now, peak
    import resource  # here, since Windows has none, and can measure all but this

    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return peak, peak


def _extra_memory(n: int, dtype: str, loss: str, standardise: bool, pipe: Any) -> None:
    next(solver(*make_data(100, dtype, loss), loss, standardise, True, 1))  # compile
    X, y = make_data(n, dtype, loss)
    before = memory()[0]
    next(solver(X, y, loss, standardise, True, 1))
    pipe.send((memory()[1] - before) / X.nbytes)


def extra_memory(n: int, dtype: str, loss: str, standardise: bool) -> float:
    """Growth of the peak memory in a pass, as a share of X, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_extra_memory, args=(n, dtype, loss, standardise, send))
    process.start()
    send.close()  # so that a process that fails ends the wait
    share = receive.recv()
    process.join()
    return float(share)


def holds(name: str, value: float) -> bool:
    """Whether a figure keeps its bar."""
    sign, bar = BARS[name]
    return value <= bar if sign == "<=" else value >= bar


def main(argv: list[str] | None = None) -> int:
    """Measure, print the tables and save ``speed.json``."""
    parser = add_common_arguments(argparse.ArgumentParser("benchmarks speed", description=__doc__))
    parser.add_argument("--repetitions", type=int, default=7, help="interleaved repetitions")
    parser.add_argument("--large", action="store_true", help="let files grow to 20,000,000 rows")
    parser.add_argument("--tables", action="store_true", help="pipelines of a table alone")
    args = parser.parse_args(argv)
    if args.tables:
        found = _table_pipelines.report(quick=args.quick)
        protocol = _table_pipelines.__doc__
        save_json(args.out, "table_pipelines", {"protocol": protocol, "results": found})
        return 0
    calibrated = _calibrations.report(quick=args.quick)
    started = cold.report(1 if args.quick else 5, quick=args.quick)
    fitted = _million_rows.report(quick=args.quick, large=args.large)
    n = 200_000 if args.quick else 2_000_000
    results = []
    for standardise in (False, True):
        for loss in ("squared", "logistic"):
            for dtype in ("float64", "float32"):
                print(f"measuring {loss}, {dtype}, {standardise=}", file=sys.stderr, flush=True)
                share = extra_memory(n, dtype, loss, standardise)
                result = measure(n, dtype, loss, standardise, args.repetitions)
                results.append(result | {"extra memory / X": share})

    def label(r: dict[str, Any]) -> list[str]:
        return [r["loss"], r["dtype"], "yes" if r["standardised"] else "no"]

    what = ["loss", "dtype", "standardised"]
    columns = list(results[0]["nanoseconds"])
    print_table(
        what + columns,
        [label(r) + [r["nanoseconds"][name] for name in columns] for r in results],
        title=f"ns per row and coordinate (triad: per row), n={n:,}, p={N_FEATURES}, "
        f"median of {args.repetitions} interleaved repetitions",
    )
    print_table(
        [
            *what,
            *(f"{name} ({sign} {bar:g})" for name, (sign, bar) in BARS.items()),
            "bars",
            "triad, 1 thread / 2 threads",
        ],
        [
            label(r)
            + [r[name] for name in BARS]
            + ["held" if all(holds(name, r[name]) for name in BARS) else "MISSED"]
            + [r["triad, 1 thread / 2 threads"]]
            for r in results
        ],
        title="Ratios within this run, and their bars",
    )
    passes = {"n": n, "p": N_FEATURES, "bars": BARS, "results": results}
    parts = {
        "calibrations": {
            r["what"]: (r["milliseconds"], r["bar"]) for r in calibrated if r["bar"] is not None
        },
        "cold start": {
            f"{r['what']}, {r['unit'].partition(' (')[0]}": (r["figure"], r["bar"])
            for r in started
            if r["bar"] is not None
        },
        "fits": {r["fit"]: (r["ratio"], r["bar"]) for r in fitted["beside_scikit_learn"]},
        "growth": {f"{name}, {what}": pair for name, what, *pair in fitted["judged"]},
    }
    whole = passes | fitted | {"calibrations": calibrated, "cold": started, "parts": parts}
    save_json(args.out, "speed", whole)
    return 0


if __name__ == "__main__":
    sys.exit(main())
