"""Parts are done by threads and processes with the same integers, and few of them are held."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from functools import partial

import joblib
import numpy as np
import pytest

from skdpnoise.data import local, prefetch, scan_batches, scan_parquet
from tests._same_bits import in_parts
from tests.data._seen import SECRET, first_rows, refused, seen, tenths, values

pytestmark = pytest.mark.usefixtures("the_same_words")

X = np.random.default_rng(0).normal(size=(700, 3))
BACKENDS = ["threading", "loky", "multiprocessing", "sequential"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_and_processes_give_the_same(backend):
    rows = seen(X=in_parts(X, 7)).map(values)
    expected = rows.joined(first_rows, np.array)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        rows = seen(X=in_parts(X, 7)).map(values)
        assert np.array_equal(rows.total(tenths), tenths(X))
        assert np.array_equal(rows.joined(first_rows, np.array), expected)


def test_n_jobs_are_threads_if_nothing_else_is_said():
    def thread(rows):
        barrier.wait(60.0)  # until another one is here
        return np.array([os.getpid()])

    barrier = threading.Barrier(2)
    rows = seen(2, X=scan_batches([partial(list, [X])] * 4)).map(values)
    assert rows.total(thread).tolist() == [4 * os.getpid()]


def wide(n, rows):
    return np.zeros(n, dtype=np.int64)


def begin(part):
    return [np.full((1, 1), float(part))]


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_few_results_are_held_at_a_time(n_jobs):
    n_parts, n = 600, 10_000
    rows = seen(n_jobs, X=scan_batches([partial(begin, k) for k in range(n_parts)])).map(values)
    rows.total(partial(wide, 1))
    gc.collect()
    tracemalloc.start()
    try:
        rows.total(partial(wide, n))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Two limbs of 8 bytes: as many as there are runs of parts, not as there are parts.
    assert peak < 16 * n * (local.SUMS * n_jobs + 10)


def test_nothing_is_done_after_a_part_that_failed():
    done = []

    def step(rows):
        done.append(int(rows[0, 0]))
        if done[-1] == 3:
            raise ValueError("of this part")
        return rows.astype(int)

    rows = seen(X=scan_batches([partial(begin, k) for k in range(50)])).map(values)
    assert "ValueError in part 3" in refused(rows.total, step)
    assert done == [0, 1, 2, 3]


def leave(rows):
    os._exit(1)


@pytest.mark.slow
def test_a_process_that_ends_is_an_error_of_its_own():
    rows = seen(X=in_parts(X, 7)).map(values)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert refused(rows.total, leave).startswith("TerminatedWorkerError while joblib")
        assert np.array_equal(rows.total(tenths), tenths(X))


def test_what_cannot_be_pickled_is_an_error_of_its_own():
    lock = threading.Lock()
    rows = seen(X=in_parts(X, 2)).map(values)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert "must be picklable" in refused(rows.total, lambda rows: lock and tenths(rows))


@pytest.mark.parametrize(("n_jobs", "in_a_thread"), [(None, True), (1, True), (2, False)])
def test_one_job_at_a_time_reads_files_ahead(tmp_path, monkeypatch, n_jobs, in_a_thread):
    import pandas as pd

    table = np.column_stack([X, X])
    frame = pd.DataFrame(table, columns=list("abcdef"))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    used = []

    def spied(batches):
        used.append(batches)
        return prefetched(batches)

    prefetched = prefetch.prefetched
    monkeypatch.setattr(prefetch, "prefetched", spied)
    rows = seen(n_jobs, X=scan_parquet(tmp_path / "rows.parquet")).map(values)
    used.clear()
    assert np.array_equal(rows.total(tenths), tenths(table))
    # One that reads nothing, and one for all parts.
    assert len(used) == (2 if in_a_thread else 0)


def test_parts_are_read_as_they_are_where_threads_were_not_expected(tmp_path, monkeypatch):
    import pandas as pd

    # A process of a pool is told that it has one job, and has threads all the same.
    monkeypatch.setattr(local, "effective_n_jobs", lambda n_jobs: 1)
    table = np.column_stack([X, X])
    pd.DataFrame(table).rename(columns=str).to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    rows = seen(2, X=scan_parquet(tmp_path / "rows.parquet", batch_rows=10)).map(values)
    assert len(rows) == len(table)
    assert np.array_equal(rows.total(tenths), tenths(table))
    assert np.array_equal(rows.joined(lambda part, first: part, np.concatenate), table)


def test_a_pass_that_fails_leaves_no_thread(tmp_path):
    import pandas as pd

    pd.DataFrame(np.column_stack([X, X])).rename(columns=str).to_parquet(
        tmp_path / "rows.parquet", row_group_size=100
    )
    rows = seen(X=scan_parquet(tmp_path / "rows.parquet")).map(values)

    def step(table):
        raise ValueError(SECRET)

    for done in (rows.total, lambda take: rows.joined(lambda table, first: take(table), len)):
        assert "ValueError in part 0" in refused(done, step)
        assert [one for one in threading.enumerate() if one.name == "prefetch"] == []


def test_functions_are_called_where_the_fit_runs():
    threads = set()

    def batches():
        threads.add(threading.get_ident())
        yield X

    seen(X=scan_batches(batches)).map(values).total(tenths)
    assert threads == {threading.get_ident()}
