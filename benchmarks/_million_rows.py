"""Fits of a million rows beside scikit-learn's: time, extra memory, and growth with the rows."""

from __future__ import annotations

import itertools
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numba import config
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import RobustScaler, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table
from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPLogisticCD,
    DPRobustScaler,
    DPStandardScaler,
)

N_FEATURES, N_THREADS, BOUND = 50, 2, 60.0
_BLOCK = 10_000  # rows that are made at a time
_MOST_MEMORY = 0.05  # as a share of X
_MOST_BYTES = 24.0  # per row, of fits that hold a score and a target, beside blocks of rows
_BLOCKS = 64e6  # bytes
_MOST_GROWTH = 1.3  # of the time per row, from the fewest rows to the most
_SHARE_OF_X = ("standard scaler", "robust scaler", "PCA")  # the others hold bytes for every row

Fit = Callable[[NDArray[Any], NDArray[np.float64]], object]


def fits() -> dict[str, tuple[Fit, Fit, float]]:
    """Return what is compared: our fit, scikit-learn's, and the most that their ratio may be."""
    bounds = (np.full(N_FEATURES, -BOUND), np.full(N_FEATURES, BOUND))
    jobs = {"n_jobs": N_THREADS, "random_state": 0}

    def ridge(X: NDArray[Any], y: NDArray[np.float64]) -> object:
        return Ridge(solver="cholesky").fit(X, y)

    def standard(X: NDArray[Any], _: object) -> object:
        return StandardScaler().fit(X)

    return {
        "regressor": (lambda X, y: DPCoordinateDescentRegressor(**jobs).fit(X, y), ridge, 2.5),
        "regressor, bounds": (
            lambda X, y: DPCoordinateDescentRegressor(
                feature_bounds=bounds, target_bounds=(-BOUND, BOUND), **jobs
            ).fit(X, y),
            ridge,
            1.4,
        ),
        "classifier": (
            lambda X, y: DPLogisticCD(**jobs).fit(X, y > 0.0),
            lambda X, y: LogisticRegression().fit(X, y > 0.0),
            1.5,
        ),
        "standard scaler": (lambda X, y: DPStandardScaler(random_state=0).fit(X), standard, 2.0),
        "standard scaler, bounds": (
            lambda X, y: DPStandardScaler(feature_bounds=bounds, random_state=0).fit(X),
            standard,
            1.2,
        ),
        "robust scaler": (
            lambda X, y: DPRobustScaler(random_state=0).fit(X),
            lambda X, y: RobustScaler().fit(X),
            1.0,
        ),
        "PCA": (
            lambda X, y: DPPCA(10, **jobs).fit(X),
            lambda X, y: PCA(10, svd_solver="covariance_eigh").fit(X),
            1.3,
        ),
    }


def fill(X: NDArray[Any], y: NDArray[np.float64]) -> None:
    """Write columns of several units, and a target that they explain in part."""
    rng = np.random.default_rng(0)
    unit, middle = np.exp(rng.normal(0.0, 1.0, N_FEATURES)), rng.normal(0.0, 3.0, N_FEATURES)
    for start in range(0, len(X), _BLOCK):
        z = rng.standard_normal((len(X[start : start + _BLOCK]), N_FEATURES))
        X[start : start + _BLOCK] = middle + unit * z
        y[start : start + _BLOCK] = 0.2 * z.sum(axis=1) + rng.standard_normal(len(z))


def compare(n: int, repetitions: int) -> list[dict[str, Any]]:
    """Return seconds and ratios of all fits, ours and scikit-learn's taking turns."""
    X, y = np.empty((n, N_FEATURES)), np.empty(n)
    fill(X, y)
    threads, config.NUMBA_NUM_THREADS = config.NUMBA_NUM_THREADS, N_THREADS
    results = []
    try:
        with threadpool_limits(N_THREADS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, (ours, theirs, bar) in fits().items():
                ours(X, y)  # compiles
                seconds = [
                    [seconds_of(fit, X, y) for fit in (ours, theirs)] for _ in range(repetitions)
                ]
                ratio = float(np.median([a / b for a, b in seconds]))
                ours_seconds, theirs_seconds = np.median(seconds, axis=0).tolist()
                results.append(
                    {
                        "fit": name,
                        "seconds": ours_seconds,
                        "scikit_learn_seconds": theirs_seconds,
                        "ratio": ratio,
                        "bar": bar,
                    }
                )
    finally:
        config.NUMBA_NUM_THREADS = threads
    return results


def seconds_of(fit: Fit, X: NDArray[Any], y: NDArray[np.float64]) -> float:
    """Return how long one fit takes."""
    start = time.perf_counter()
    fit(X, y)
    return time.perf_counter() - start


def _measure(name: str, folder: str, n: int, pipe: Any) -> None:
    """Send seconds of a fit, and the growth of the peak memory in bytes."""
    from benchmarks.speed import memory

    warnings.simplefilter("ignore")
    fit = fits()[name][0]
    n_small = 800_000  # enough for loops that are compiled once they pay
    small, target = np.zeros((n_small, N_FEATURES), dtype=np.float32), np.empty(n_small)
    fill(small, target)
    fit(small, target)  # compiles
    X = np.load(Path(folder) / "X.npy", mmap_mode="r")[:n]
    y = np.load(Path(folder) / "y.npy")[:n]
    for start in range(0, n, _BLOCK):  # what is read of the file counts as memory of the process
        X[start : start + _BLOCK].sum()
    before = memory()[0]
    first = seconds_of(fit, X, y)
    extra = memory()[1] - before
    pipe.send((min(first, seconds_of(fit, X, y)), extra))  # the first may have compiled


def growth(names: Sequence[str], rows: list[int]) -> list[dict[str, Any]]:
    """Return time per row and extra memory of fits of a file in single precision, by rows."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        shape = (max(rows), N_FEATURES)
        path = Path(folder) / "X.npy"
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        y = np.empty(max(rows))
        fill(X, y)
        np.save(Path(folder) / "y.npy", y)
        del X, y
        context = multiprocessing.get_context("spawn")
        for name, n in itertools.product(names, rows):
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=_measure, args=(name, folder, n, send))
            process.start()
            send.close()  # so that a process that fails ends the wait
            seconds, extra = receive.recv()
            process.join()
            results.append(
                {
                    "fit": name,
                    "n": n,
                    "microseconds per row": 1e6 * seconds / n,
                    "extra memory / X": extra / (4.0 * N_FEATURES * n),
                    "extra bytes per row": extra / n,
                }
            )
    return results


def _grown(few: dict[str, Any], many: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Return what the growth of a fit is judged by: what, figure and bar."""
    time_per_row = "microseconds per row"
    judged = [("time per row, many / few", many[time_per_row] / few[time_per_row], _MOST_GROWTH)]
    if few["fit"] in _SHARE_OF_X:
        judged.append(("extra memory / X", many["extra memory / X"], _MOST_MEMORY))
    else:
        most = _MOST_BYTES + _BLOCKS / many["n"]
        judged.append(("extra bytes per row", many["extra bytes per row"], most))
    return judged


def report(*, quick: bool, large: bool) -> dict[str, Any]:
    """Measure and print all of it."""
    n, repetitions = (20_000, 1) if quick else (1_000_000, 3)
    compared = compare(n, repetitions)
    print_table(
        ["fit", "seconds", "scikit-learn", "ratio", "bar"],
        [
            [
                *(r[key] for key in ("fit", "seconds", "scikit_learn_seconds", "ratio")),
                f"<= {r['bar']:g} {'held' if r['ratio'] <= r['bar'] else 'MISSED'}",
            ]
            for r in compared
        ],
        title=f"Fits of {n:,} x {N_FEATURES} float64, {N_THREADS} threads, taking turns",
    )
    rows = [10_000, 40_000] if quick else [1_000_000, 20_000_000 if large else 4_000_000]
    names = [name for name in fits() if "bounds" not in name]
    grown = growth(names, rows)
    print_table(
        list(grown[0]),
        [list(r.values()) for r in grown],
        title="Fits of a memory-mapped file of float32",
    )
    by_name = {name: [r for r in grown if r["fit"] == name] for name in names}
    judged = [(name, *one) for name, fit in by_name.items() for one in _grown(*fit)]
    print_table(
        ["fit", "what", "figure", "bar"],
        [
            [name, what, figure, f"<= {bar:.4g} {'held' if figure <= bar else 'MISSED'}"]
            for name, what, figure, bar in judged
        ],
        title=f"Growth from {rows[0]:,} to {rows[1]:,} rows; blocks of {_BLOCKS / 1e6:g} MB",
    )
    return {"beside_scikit_learn": compared, "growth": grown, "judged": judged}
