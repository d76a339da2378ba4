"""Fits over a local cluster whose workers are killed at random: the same bits, charged once.

Each fit is repeated in memory with the same seed. A fit over a cluster gives its bits, or ends with
a `SpreadError` (a worker may die so often that dask gives up); a ledger must show every fit that
was begun once, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._report import add_common_arguments, print_table, save_json

N_FEATURES, N_CHUNKS, CHUNK_ROWS, BOUND = 5, 12, 2_000, 6.0
N_FITS, N_WORKERS = 100, 2
PAUSES = (1.0, 8.0)  # seconds between two deaths: a worker starts in about two
# A worker that is gone is noticed soon; a task may be unlucky often.
CONFIG = {"distributed.comm.timeouts.connect": "3s", "distributed.scheduler.allowed-failures": 20}
BARS = {"wrong bits": 0, "wrong charges": 0}


def chunk(k: int) -> NDArray[np.float64]:
    """Return rows that a worker makes, as often as they are lost."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((CHUNK_ROWS, N_FEATURES + 1))
    X[:, -1] += X[:, 0]
    return X


def estimators(ledger: Any) -> list[Any]:
    """Return the estimators that take turns."""
    from skdpnoise import DPPCA, DPCoordinateDescentRegressor, DPLogisticCD, DPStandardScaler

    shared: dict[str, Any] = {"epsilon": 0.1, "delta": 1e-9, "ledger": ledger}
    bounds: dict[str, Any] = {"feature_bounds": (-BOUND, BOUND), **shared}
    return [
        DPLogisticCD(n_passes=5, **bounds),
        DPCoordinateDescentRegressor(solver="gram", **shared),
        DPCoordinateDescentRegressor(
            solver="gradient", n_passes=3, target_bounds=(-9.0, 9.0), **bounds
        ),
        DPStandardScaler(**shared),
        DPPCA(2, **bounds),
    ]


def fitted(estimator: Any) -> dict[str, NDArray[np.float64]]:
    """Return the numbers that a fit gave, by name."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }


def kill_workers(client: Any, ended: threading.Event, deaths: Counter[str]) -> None:
    """Kill one worker after the other, after random pauses."""
    rng, pids = np.random.default_rng(0), dict[str, int]()
    while not ended.wait(rng.uniform(*PAUSES)):
        # Who died while it started would be given up by dask: whoever replaces it, asks here.
        client.cluster.scale(N_WORKERS)
        known = client.scheduler_info()["workers"]
        new = [address for address in known if address not in pids]
        pids |= client.run(os.getpid, workers=new, on_error="ignore") if new else {}
        alive = [address for address in pids if address in known]
        if alive:
            with suppress(ProcessLookupError):
                os.kill(pids.pop(rng.choice(alive)), signal.SIGKILL)
                deaths["workers"] += 1


def soak(n_fits: int) -> dict[str, Any]:
    """Return how fits ended."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster
    from sklearn.base import clone

    from skdpnoise import PrivacyLedger
    from skdpnoise.data.partitions import SpreadError

    warnings.simplefilter("ignore")
    rows = np.concatenate([chunk(k) for k in range(N_CHUNKS)])
    shape = (CHUNK_ROWS, N_FEATURES + 1)
    parts = [da.from_delayed(dask.delayed(chunk)(k), shape, float) for k in range(N_CHUNKS)]
    table, counts, deaths = da.concatenate(parts), Counter[str](), Counter[str]()
    options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1"}
    with (
        dask.config.set(CONFIG),
        LocalCluster(n_workers=N_WORKERS, dashboard_address=None, **options) as cluster,
        Client(cluster) as client,
    ):
        ended = threading.Event()
        killer = threading.Thread(target=kill_workers, args=(client, ended, deaths), daemon=True)
        killer.start()
        start = time.perf_counter()
        try:
            for k in range(n_fits):
                ledger = PrivacyLedger(epsilon=1.0, delta=1e-6, dataset=f"rows {k}")
                model = estimators(ledger)[k % 5].set_params(random_state=k)
                target = rows[:, -1], table[:, -1]
                if k % 5 == 0:
                    target = tuple((y > 0.0).astype(int) for y in target)
                reference = clone(model).set_params(ledger=None).fit(rows[:, :-1], target[0])
                counts["fits"] += 1
                try:
                    model.fit(table[:, :-1], target[1])
                except SpreadError:
                    counts["errors"] += 1
                else:
                    one, other = fitted(model), fitted(reference)
                    same = one.keys() == other.keys() and all(
                        np.array_equal(one[name], other[name]) for name in one
                    )
                    counts["wrong bits"] += not same
                print(f"{k + 1} fits, {deaths['workers']} workers killed", flush=True)
                n_charges = len(ledger.history())
                failed = counts["errors"] and not hasattr(model, "n_features_in_")
                counts["wrong charges"] += n_charges != 1 and not (failed and n_charges == 0)
        finally:
            ended.set()
            killer.join()
    seconds = time.perf_counter() - start
    found = {name: counts[name] for name in ("fits", "errors", "wrong bits", "wrong charges")}
    return {**found, "workers killed": deaths["workers"], "seconds": seconds}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak", description=__doc__)
    parser.add_argument("--fits", type=int, default=N_FITS)
    args = add_common_arguments(parser).parse_args(argv)
    found = soak(5 if args.quick else args.fits)
    print_table(list(found), [list(found.values())], title="Fits while workers die")
    held = all(found[name] <= bar for name, bar in BARS.items())
    print("held" if held else "MISSED", BARS)
    save_json(args.out, "soak", {"found": found, "bars": BARS})
    return 0
