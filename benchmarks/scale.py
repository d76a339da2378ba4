"""Rows past one machine: time and memory over rows, beside plain reading; workers; a plan of many.

Files of normal columns are written for each number of rows, and removed after it. Each fit runs in
a process of its own, which has fitted half a million rows before, as loops are compiled once.
*Memory* is the anonymous memory of that process beyond what it holds after its imports (of pandas,
pyarrow and numba, with a first compiled loop, among them), sampled every two milliseconds; pages of
files that the system may take back are none of it.

*Plain* is the time to read the same columns as often as the fit does, and to sum them, by pyarrow
and numpy in one thread. *In memory* is the time of the same fit where all rows are an array: most
fits do more with a row than to add it. The bar of `sums` is against plain reading and summing, that
of models against plain reading and the fit in memory together. The time of scikit-learn is one
epoch of `partial_fit` over the same batches.

Workers keep memory that they will need again, and compute in one thread: `ENVIRON`. Dask's own
setting gives it back to the system at once, and passes take about twice as long.

The last table is a simulation, from costs per row and per part that were measured here: nobody ran
it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._report import add_common_arguments, print_table, save_json

N_FEATURES, BOUND = 20, 6.0
COLUMNS = [f"x{k}" for k in range(N_FEATURES)]
BATCH_ROWS = 1 << 15
GROUP_ROWS = 1 << 18
WARM_ROWS = 500_000  # so many that loops are compiled
FEWEST, MOST = 100_000, 10_000_000
FILE_ROWS = 10_000_000
LARGEST_TABLE = FILE_ROWS  # of an array in memory: a gigabyte
MODELS = ("sums", "ridge, bounds", "ridge", "logistic", "scaler", "PCA")
BARS = {"exponent": 1.05, "out of core": 1.5, "memory": 100.0, "two workers": 1.4}
# A plan: rows of a part, workers, and the seconds that a sum travels up one level of the tree.
PART_ROWS, N_WORKERS, HOP = 1_000_000, 1_000, 0.01
ENVIRON = {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1, "MKL_NUM_THREADS": 1}
PLANNED = (10**9, 10**10, 10**11)


def models() -> dict[str, Callable[[Any, Any], object]]:
    """Return fits of X and a target, by name."""
    from skdpnoise import DPPCA, DPLogisticCD, DPRidge, DPStandardScaler, PrivacyGuarantee
    from skdpnoise.data.sources import by_storage
    from skdpnoise.queries import private_sum

    loss = PrivacyGuarantee(1.0, 1e-6, adjacency="replace_one")
    bounds = (np.full(N_FEATURES, -BOUND), np.full(N_FEATURES, BOUND))
    given: dict[str, Any] = {"random_state": 0}
    both = {"feature_bounds": bounds, "target_bounds": (-9.0, 9.0), **given}
    return {
        "sums": lambda X, y: private_sum(X, -BOUND, BOUND, loss, random_state=0),
        "ridge, bounds": lambda X, y: DPRidge(solver="gram", **both).fit(X, y),
        "ridge": lambda X, y: DPRidge(solver="gram", **given).fit(X, y),
        "logistic": lambda X, y: DPLogisticCD(n_passes=10, **given).fit(
            X, by_storage(y, labels, lambda source: source.map(labels))
        ),
        "scaler": lambda X, y: DPStandardScaler(**given).fit(X),
        "PCA": lambda X, y: DPPCA(5, **given).fit(X),
    }


def labels(y: Any) -> NDArray[np.int64]:
    """Return classes of a target."""
    return (np.asarray(y) > 0.0).astype(np.int64)


def write(path: Path, n: int) -> list[Path]:
    """Write rows to files of which each has so many at most; return these."""
    files = [path.with_suffix(f".{k}.parquet") for k in range(-(-n // FILE_ROWS))]
    for k, file in enumerate(files):
        _write(file, min(FILE_ROWS, n - k * FILE_ROWS), k)
    return files


def _write(path: Path, n: int, seed: int) -> None:
    """Write rows, in groups, of which few are held at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float32()) for name in (*COLUMNS, "y")])
    rng = np.random.default_rng(seed)
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for begin in range(0, n, GROUP_ROWS):
            X = rng.standard_normal((N_FEATURES, min(GROUP_ROWS, n - begin)), dtype=np.float32)
            noise = rng.standard_normal(X.shape[1], dtype=np.float32)
            y = 0.5 * X[0] - 0.25 * X[1] + noise
            writer.write_table(pa.table([*X, y], schema=schema))


def plain(files: Sequence[Path], columns: Sequence[str]) -> float:
    """Return the seconds to read columns and sum them."""
    import pyarrow.parquet as pq

    start, sums = time.perf_counter(), np.zeros(len(columns))
    for path in files:
        with pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=False):
                table = np.stack([column.to_numpy() for column in batch.columns])
                sums += table.sum(axis=1, dtype=np.float64)
    assert np.isfinite(sums).all()
    return time.perf_counter() - start


@contextmanager
def counted_passes() -> Iterator[Counter[frozenset[str]]]:
    """Count the passes over rows, by the names of the tables that they read."""
    from skdpnoise.data.local import LocalRunner

    passes: Counter[frozenset[str]] = Counter()
    known = {name: getattr(LocalRunner, name) for name in ("scan", "run", "collect")}

    def counting(method: Any) -> Any:
        def wrapped(self: Any, what: Any, *rest: Any) -> Any:
            passes[(what[0].task if isinstance(what, list) else what).needs] += 1
            return method(self, what, *rest)

        return wrapped

    for name, method in known.items():
        setattr(LocalRunner, name, counting(method))
    try:
        yield passes
    finally:
        for name, method in known.items():
            setattr(LocalRunner, name, method)


class Memory:
    """Samples the anonymous memory of this process, in MB."""

    def __init__(self) -> None:
        self.peak, self._ended = held(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.002):
            self.peak = max(self.peak, held())


def held() -> float:
    """Return the anonymous memory of this process in MB; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def _fit(name: str, files: Sequence[Path], small: Sequence[Path], pipe: Any) -> None:
    """Send what a fit of a file took, in this process."""
    warnings.simplefilter("ignore")
    from skdpnoise.data import scan_parquet

    fit = models()[name]
    tile_loops = import_module("skdpnoise.kernels.tile_loops")  # numba's, and a compiled loop
    tile_loops.clip(np.zeros((1, 1)), 1, np.zeros(1), np.ones(1), 1.0)
    for library in ("pandas", "pyarrow.parquet"):
        import_module(library)
    imported = held()

    def run(paths: Sequence[Path]) -> float:
        start = time.perf_counter()
        rows = scan_parquet(paths)
        fit(rows.drop("y"), rows["y"])
        return time.perf_counter() - start

    run(small)
    kinds = {"X": COLUMNS, "values": COLUMNS, "y": ["y"]}
    with counted_passes() as passes, Memory() as memory:
        seconds = run(files)
    columns = {needs: [name for kind in sorted(needs) for name in kinds[kind]] for needs in passes}
    once = {needs: plain(files, names) for needs, names in columns.items()}
    read = sum(count * once[needs] for needs, count in passes.items())
    in_memory = _in_memory(fit, files)
    alike = read if name == "sums" else None if in_memory is None else read + in_memory
    pipe.send(
        {
            "passes": sum(passes.values()),
            "seconds": seconds,
            "plain": read,
            "in memory": in_memory,
            "fit / plain": seconds / read,
            "out of core": None if alike is None else seconds / alike,
            "memory above imports": memory.peak - imported,
        }
    )


def _in_memory(fit: Callable[[Any, Any], object], files: Sequence[Path]) -> float | None:
    """Return the seconds of a fit to the same rows in an array, if that is not too large."""
    import pyarrow.parquet as pq

    if sum(pq.read_metadata(path).num_rows for path in files) > LARGEST_TABLE:
        return None
    (path,) = files
    rows = pq.read_table(path)
    X, y = np.column_stack([rows[name] for name in COLUMNS]), rows["y"].to_numpy()
    start = time.perf_counter()
    fit(X, y)
    return time.perf_counter() - start


def _partial_fit(name: str, files: Sequence[Path], pipe: Any) -> None:
    """Send the seconds of an epoch of scikit-learn over a file, and the memory."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    from skdpnoise.data import scan_parquet

    model = SGDClassifier(loss="log_loss") if name == "logistic" else SGDRegressor()
    imported, start = held(), time.perf_counter()
    with Memory() as memory:
        for rows in scan_parquet(files).batches():
            X, y = rows[COLUMNS].to_numpy(), rows["y"].to_numpy()
            if name == "logistic":
                model.partial_fit(X, labels(y), classes=[0, 1])
            else:
                model.partial_fit(X, y)
    pipe.send({"seconds": time.perf_counter() - start, "memory": memory.peak - imported})


def in_a_process(function: Callable[..., None], *arguments: Any) -> Any:
    """Return what a function sends from a process of its own."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=function, args=(*arguments, send))
    process.start()
    send.close()
    try:
        return receive.recv()
    finally:
        process.join()


def over_rows(names: Sequence[str], rows: Sequence[int], folder: Path) -> list[dict[str, Any]]:
    """Return what fits of files with so many rows take."""
    small, results = write(folder / "small.parquet", WARM_ROWS), []
    for n in rows:
        files = write(folder / "rows.parquet", n)
        epochs = {kind: in_a_process(_partial_fit, kind, files) for kind in ("ridge", "logistic")}
        for name in names:
            found = in_a_process(_fit, name, files, small)
            epoch = epochs.get(name.partition(",")[0])
            results.append(
                {
                    "model": name,
                    "n": n,
                    **found,
                    "partial_fit": None if epoch is None else epoch["seconds"],
                }
            )
            print(f"{name}, {n:,} rows: {found['seconds']:.3g} s", flush=True)
        for path in files:
            path.unlink()
    return results


def exponent(rows: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the power of the rows by which the time grows, by least squares of logarithms."""
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def judged(results: Sequence[dict[str, Any]]) -> list[tuple[str, str, float, float]]:
    """Return models, what is judged, figures and bars."""
    found: list[tuple[str, str, float, float]] = []
    for name in dict.fromkeys(one["model"] for one in results):
        own = [one for one in results if one["model"] == name]
        power = exponent([one["n"] for one in own], [one["seconds"] for one in own])
        found.append((name, "exponent", power, BARS["exponent"]))
        ratios = [one["out of core"] for one in own if one["out of core"] is not None]
        found.append((name, "out of core", ratios[-1], BARS["out of core"]))
        most = max(one["memory above imports"] for one in own)
        found.append((name, "memory above imports, MB", most, BARS["memory"]))
    return found


def chunk(n: int, k: int) -> NDArray[np.float64]:
    """Return rows that a worker makes."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((n, N_FEATURES + 1))
    X[:, -1] += 0.5 * X[:, 0]
    return X


def over_workers(n_chunks: int, chunk_rows: int, n_workers: int) -> dict[str, float]:
    """Return the seconds of a fit over local workers, and of a pass over parts of one row."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from skdpnoise import DPLogisticCD

    options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1"}
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": ENVIRON}),
        LocalCluster(n_workers=n_workers, dashboard_address=None, **options) as cluster,
        Client(cluster),
    ):

        def table(n_parts: int, n: int) -> Any:
            width = N_FEATURES + 1
            parts = [dask.delayed(chunk)(n, k) for k in range(n_parts)]
            return da.concatenate([da.from_delayed(one, (n, width), float) for one in parts])

        def fit(rows: Any) -> float:
            start = time.perf_counter()
            X, y = rows[:, :-1], (rows[:, -1] > 0.0).astype(int)
            DPLogisticCD(n_passes=10, feature_bounds=(-BOUND, BOUND), random_state=0).fit(X, y)
            return time.perf_counter() - start

        rows = table(n_chunks, chunk_rows).persist()
        wait(rows)
        fit(table(4, 1000))  # compiles
        return {"seconds": min(fit(rows) for _ in range(2)), "part": _seconds_of_a_part(table)}


def _seconds_of_a_part(table: Callable[[int, int], Any]) -> float:
    """Return what one more part of one row adds to a pass."""
    from distributed import wait

    from skdpnoise.data.table import scan_tables

    def one_pass(n_parts: int) -> float:
        rows = table(n_parts, 1).persist()
        wait(rows)
        parts = scan_tables(len, X=rows)
        start = time.perf_counter()
        parts.total(partial(_ones, 1), "gradients")
        return time.perf_counter() - start

    few, many = 50, 450
    return (one_pass(many) - one_pass(few)) / (many - few)


def _ones(width: int, tables: dict[str, Any]) -> NDArray[np.int64]:
    return np.full(width, len(tables["X"]), dtype=np.int64)


def planned(
    passes: int, row: float, part: float, n: int, n_workers: int = N_WORKERS
) -> dict[str, float]:
    """Return the seconds of passes by costs of a row and of a part: a simulation."""
    # Each worker does its parts one after the other; the scheduler begins all parts of all workers;
    # and sums of eight parts at a time travel up a tree.
    n_parts = -(-n // PART_ROWS)
    busy = -(-n_parts // n_workers) * PART_ROWS * row
    scheduling = n_parts * part
    tree = HOP * np.ceil(np.log(max(n_parts, 2)) / np.log(8))
    seconds = passes * (max(busy, scheduling) + tree)
    return {"n": n, "parts": n_parts, "seconds": float(seconds), "of workers": passes * busy}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--most", type=lambda text: int(float(text)), default=MOST)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--scratch", type=Path, help="folder for files of rows, 84 bytes a row")
    args = add_common_arguments(parser).parse_args(argv)
    most = min(args.most, 2 * FEWEST) if args.quick else args.most
    rows = sorted({*(10**k for k in range(5, 12) if 10**k < most), most})
    names = args.models[:1] if args.quick else args.models
    folder = Path(tempfile.mkdtemp(prefix="scale-", dir=args.scratch))
    try:
        results = over_rows(names, rows, folder)
    finally:
        shutil.rmtree(folder)
    print_table(list(results[0]), [list(one.values()) for one in results], title="Fits of a file")
    bars = judged(results)
    print_table(
        ["model", "what", "figure", "bar"],
        [
            [name, what, figure, f"<= {bar:g} {'held' if figure <= bar else 'MISSED'}"]
            for name, what, figure, bar in bars
        ],
    )
    shape = (8, 2_000) if args.quick else (32, 100_000)
    workers = {n: over_workers(*shape, n) for n in (1, 2)}
    gain = workers[1]["seconds"] / workers[2]["seconds"]
    print_table(
        ["workers", "seconds", "seconds of one more part"],
        [[n, one["seconds"], one["part"]] for n, one in workers.items()],
        title=f"Fits over local workers: two are {gain:.2f} times one (>= {BARS['two workers']})",
    )
    plans = {}
    for name in names:
        last = [one for one in results if one["model"] == name][-1]
        row = last["seconds"] / last["n"] / last["passes"]
        plans[name] = [planned(last["passes"], row, workers[2]["part"], n) for n in PLANNED]
        print_table(
            list(plans[name][0]),
            [list(one.values()) for one in plans[name]],
            title=f"SIMULATED: {name}, {last['passes']} passes, {N_WORKERS:,} workers, "
            f"{row * 1e6:.2g} µs per row and pass",
        )
    found = {"rows": results, "bars": bars, "workers": workers, "gain": gain, "simulated": plans}
    save_json(args.out, "scale", found)
    return 0
