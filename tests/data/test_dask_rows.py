"""Arrays and frames of dask: the same integers by any scheduler and through faults, no row here."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.sizeof import sizeof
from distributed import Client, LocalCluster, wait
from distributed.utils import key_split

from skdpnoise.data import dask_rows
from skdpnoise.data.dask_rows import DaskRunner
from skdpnoise.data.partitions import Partial
from skdpnoise.data.sources import as_sources
from tests._cases import quick
from tests.data._seen import SECRET, first_rows, refused, seen, targets, tenths, values

pytestmark = pytest.mark.usefixtures("the_same_words")

N_PARTS, N_ROWS = 12, 50


def part(k, n=N_ROWS):
    """Return rows that are made anew whenever they are asked for."""
    return np.random.default_rng(k).normal(size=(n, 3))


X = np.concatenate([part(k) for k in range(N_PARTS)])
FRAME = pd.DataFrame(X, columns=["a", "b", "y"])


def array(make=part):
    """Return an array of parts that are made where they are read."""
    return da.concatenate(
        [da.from_delayed(dask.delayed(make)(k), (N_ROWS, 3), float) for k in range(N_PARTS)]
    )


def tables():
    """Return arrays and frames of the same rows, cut in many ways, by name."""
    return {
        "an array": array(),
        "of uneven chunks": da.from_array(X, chunks=((1, 99, 400, 100), (2, 1))),
        "in one chunk": da.from_array(X, chunks=-1),
        "a frame": dd.from_pandas(FRAME, npartitions=7),
        "a persisted frame": dd.from_pandas(FRAME, npartitions=3).persist(),
        "a frame made of an array": dd.from_dask_array(array(), columns=["a", "b", "y"]),
        "of unknown chunks": da.concatenate([array(), array() + 100.0])[lambda_mask()],
    }


def lambda_mask():
    return da.concatenate([array(), array() + 100.0])[:, 0] < 50.0


SCHEDULERS = ["synchronous", "threads", pytest.param("processes", marks=pytest.mark.slow)]


@quick("synchronous")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_gives_the_same(scheduler):
    with dask.config.set(scheduler=scheduler, num_workers=2):
        for table in tables().values() if scheduler != "processes" else [array()]:
            rows = seen(X=table).map(values)
            assert np.array_equal(rows.total(tenths), tenths(X))
            places = rows.joined(first_rows, np.array)
            assert places[:, 0].tolist() == [0, *np.cumsum(places[:-1, 1]).tolist()]
            assert len(rows) == places[:, 1].sum() == len(X)


def test_columns_of_a_frame_and_vectors_are_read():
    frame = dd.from_pandas(FRAME, npartitions=5)
    rows = seen(X=frame[["a", "b"]], y=frame["y"])
    assert np.array_equal(rows.map(values).total(tenths), tenths(FRAME[["a", "b"]]))
    assert rows.map(targets).total(tenths) == tenths(FRAME["y"])
    (source,) = as_sources(X=frame).values()
    assert (source.columns, source.shape, source[["y"]].shape) == (tuple(FRAME), X.shape, (600, 1))
    (source,) = as_sources(X=array()[:, 0]).values()
    assert (source.columns, source.shape, source.ndim) == (None, (600,), 1)
    (source,) = as_sources(X=frame.rename(columns={"a": 0, "b": 1, "y": 2})).values()
    assert (source.columns, source.shape) == (None, X.shape)
    assert np.array_equal(np.concatenate(list(source.batches())), X)


INDICES = {
    "floats in order": np.arange(3000) * 1.0,
    "floats that are large": np.arange(3000) + 1e6,
    "floats in no order": np.arange(3000)[::-1] * 0.5,
    "numbers in no order": np.arange(3000)[::-1],
    "dates": pd.date_range("2026-01-01", periods=3000),
    "twice the same": np.repeat(np.arange(1500), 2),
}


@quick("floats in no order", "twice the same")
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_rows_are_read_by_their_places_whatever_the_index(index, monkeypatch):
    monkeypatch.setattr(dask_rows, "rows_at_once", lambda n_columns: 100)
    frame = pd.DataFrame({"a": np.arange(3000), "y": np.arange(3000)}, index=index)
    chunks = dd.from_pandas(frame, npartitions=2, sort=False)
    rows = seen(X=chunks[["a"]], y=chunks["y"])
    places = rows.joined(_numbers, np.concatenate)
    assert np.array_equal(places, np.arange(3000))


def _numbers(tables, first):
    assert np.array_equal(tables["X"]["a"], tables["y"])
    return np.array(tables["y"])


def test_an_array_of_three_dimensions_is_refused():
    with pytest.raises(TypeError, match=r"1 or 2 dimensions. Got 3"):
        seen(X=da.ones((3, 3, 3)))


def test_the_first_rows_are_those_of_the_first_chunk_that_has_some():
    table = da.concatenate([da.ones((0, 2)), da.ones((4, 2)), da.ones((9, 2))])
    (source,) = as_sources(X=table).values()
    assert source.first(np.shape) == (4, 2)
    assert "ValueError in the first rows" in refused(source.first, quotes)


def quotes(*rows):
    raise ValueError(SECRET)


def test_tables_of_other_chunks_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"'X': 12, 'y': 3.*rechunk or repartition"):
        seen(X=array(), y=da.from_array(X[:, 0], chunks=200))
    y = da.from_array(X[:, 0], chunks=((49, 51, *[N_ROWS] * (N_PARTS - 2)),))
    text = refused(lambda: seen(X=array(), y=y))
    assert "part 0" in text
    assert "'X': 50, 'y': 49" in text
    assert "rechunk" in text
    frame = dd.from_pandas(FRAME, npartitions=12)
    assert np.array_equal(seen(X=array(), y=frame["y"]).map(values).total(tenths), tenths(X))


def test_a_part_that_is_lost_or_done_twice_is_refused(monkeypatch):
    rows = seen(X=array()).map(values)
    done = DaskRunner._done
    for change in (
        lambda jobs: jobs[1:],
        lambda jobs: jobs[:-1],
        lambda jobs: [*jobs[:5], *jobs[6:]],
        lambda jobs: [*jobs, jobs[-1]],
        lambda jobs: [jobs[0], *jobs],
    ):
        monkeypatch.setattr(
            DaskRunner,
            "_done",
            lambda self, jobs, label, change=change: change(done(self, jobs, label)),
        )
        assert "lost" in refused(rows.total, tenths)
    monkeypatch.setattr(DaskRunner, "_done", lambda *those: done(*those)[1:])
    assert "lost" in refused(rows.joined, first_rows, np.array)
    monkeypatch.setattr(DaskRunner, "_done", lambda *those: done(*those)[:-1])
    assert "lost" in refused(rows.joined, first_rows, np.array)


def test_errors_show_no_value():
    rows = seen(X=array()).map(values)
    assert refused(rows.total, quotes).startswith("ValueError in part")
    assert refused(rows.joined, first_rows, quotes).startswith("ValueError where parts")
    changed = array(partial(failing, []))
    assert refused(lambda: seen(X=changed)).startswith("ValueError while dask")
    assert refused(lambda: as_sources(X=changed)["X"].shape).startswith("ValueError while dask")
    assert refused(lambda: list(as_sources(X=changed)["X"].batches())).startswith(
        "ValueError while"
    )


def failing(done, k):
    done.append(k)
    if len(done) > 3:
        quotes()
    return part(k)


def test_chunks_that_are_other_ones_in_the_next_pass_are_refused():
    rows = seen(X=da.random.default_rng().normal(size=(60, 2), chunks=(20, 2))).map(values)
    assert np.array_equal(rows.total(tenths), rows.total(tenths))  # of a seed that is kept
    rows = seen(X=array(partial(aging, []))).map(values)
    assert "is not what it was" in refused(rows.total, tenths)


def aging(done, k):
    done.append(k)
    return part(k) + (len(done) > N_PARTS)


@pytest.mark.slow
def test_sums_are_added_in_a_tree():
    largest = []

    def spied(partials):
        largest.append(len(partials))
        return combined(partials)

    combined = dask_rows.combined
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_rows, "combined", spied)
        table = da.from_array(np.ones((600, 1)), chunks=(1, 1))
        rows = seen(X=table).map(values)
        with dask.config.set(scheduler="synchronous"):
            assert rows.total(tenths).tolist() == [6000]
    assert max(largest) <= dask_rows.SUMS
    assert sum(largest) - len(largest) == 599


def test_many_parts_are_told_to_dask_some_at_a_time(monkeypatch):
    told = []
    monkeypatch.setattr(dask_rows, "_AT_ONCE", 5)
    computed = dask_rows._computed
    monkeypatch.setattr(
        dask_rows, "_computed", lambda jobs: told.append(len(jobs)) or computed(jobs)
    )
    rows = seen(X=array()).map(values)
    assert told == [5, 5, 2]
    assert np.array_equal(rows.total(tenths), tenths(X))
    assert told == [5, 5, 2, 1, 1, 1]
    assert "ValueError in part 11" in refused(rows.total, partial(quotes_of, part(11)))


def quotes_of(some, rows):
    return quotes() if np.array_equal(some, rows) else tenths(rows)


def test_what_all_parts_share_goes_to_a_worker_once():
    weights = np.random.default_rng(0).normal(size=50_000)
    rows = seen(X=array()).map(values)
    computed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_rows, "_computed", lambda jobs: computed.extend(jobs) or quotes())
        with pytest.raises(ValueError, match=SECRET):
            rows.total(partial(weighed, weights))
    graph = computed[0].__dask_graph__()
    sizes = [len(cloudpickle.dumps(graph[key])) for key in graph]
    assert weights.nbytes < sum(sizes) < 1.5 * weights.nbytes


def weighed(weights, rows):
    return np.array([len(rows) * weights.size])


def test_passes_have_names_that_no_other_process_has():
    names = [dask_rows._name("sums of columns", 3) for _ in range(2)]
    assert names[0] != names[1]
    assert {key_split(name) for name in names} == {"sums_of_columns"}


@pytest.fixture(scope="module")
def cluster():
    """Start two workers of one thread each; nothing listens to other machines."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    quiet = {"distributed.worker.daemon": False, "distributed.scheduler.allowed-failures": 1}
    with (
        dask.config.set(quiet),
        LocalCluster(host="127.0.0.1", dashboard_address=None, **options) as one,
        Client(one) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_cluster_gives_the_same_and_no_row_comes_here(cluster, monkeypatch):
    gathered = []
    gather = Client.gather

    def spied(self, *arguments, **options):
        found = gather(self, *arguments, **options)
        gathered.extend(flat(found))
        return found

    monkeypatch.setattr(Client, "gather", spied)
    rows = seen(X=array(), y=array()[:, 2]).map(values)
    looks = [len(cloudpickle.dumps(one)) for one in gathered]
    assert len(looks) == N_PARTS
    assert max(looks) < N_ROWS * 8  # fewer bytes than any column
    gathered.clear()
    assert np.array_equal(rows.total(tenths, "gradients"), tenths(X))
    assert [type(one) for one in gathered] == [Partial]
    assert sizeof(gathered[0].value) < 500
    gathered.clear()
    assert rows.joined(rows_and_place, total_of, "pairs of rows").tolist() == tenths(X).tolist()
    assert sizeof(gathered) < 500
    names = cluster.run_on_scheduler(known_names)
    assert {"scan", "gradients", "gradients_added", "pairs_of_rows_joined"} <= names


def flat(found):
    return [one for some in found for one in flat(some)] if isinstance(found, list) else [found]


def rows_and_place(rows, first):
    return rows


def total_of(parts):
    return tenths(np.concatenate(parts))


def known_names(dask_scheduler):
    return {key_split(entry[0]) for entry in dask_scheduler.transition_log}


def killed_once(path, rows):
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return tenths(rows)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_pass_changes_no_bit(cluster, tmp_path):
    rows = seen(X=array()).map(values)
    assert np.array_equal(rows.total(partial(killed_once, tmp_path / "a")), tenths(X))
    assert (tmp_path / "a").exists()
    join = partial(finish_killed_once, tmp_path / "b")
    assert np.array_equal(rows.joined(rows_and_place, join), tenths(X))


def finish_killed_once(path, parts):
    return killed_once(path, np.concatenate(parts))


def killed(rows):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_workers_that_die_again_and_again_are_an_error_without_a_value(cluster):
    texts = da.from_array(np.array([[SECRET]] * 4, dtype=object), chunks=(1, 1))
    rows = seen(X=texts).map(values)
    assert refused(rows.total, killed).startswith("KilledWorker while dask")
    cluster.wait_for_workers(2, timeout=180)
    assert np.array_equal(seen(X=array()).map(values).total(tenths), tenths(X))


@pytest.mark.slow
def test_an_error_of_a_chunk_on_a_worker_shows_no_value_here(cluster):
    text = refused(lambda: seen(X=array(quotes)))
    assert text.startswith("ValueError while dask")


def failing_once(folder, k):
    if not (folder / str(k)).exists():
        (folder / str(k)).touch()
        quotes()
    return part(k)


@pytest.mark.slow
def test_chunks_that_are_tried_again_change_no_bit(cluster, tmp_path):
    with dask.annotate(retries=2):
        table = array(partial(failing_once, tmp_path))
        with dask.config.set({"optimization.fuse.active": False}):
            rows = seen(X=table.persist()).map(values)
    assert np.array_equal(rows.total(tenths), tenths(X))


def counted(folder, k):
    (folder / f"{k}-{time.time_ns()}").touch()
    return part(k)


@pytest.mark.slow
def test_persisted_chunks_are_read_where_they_are_and_made_anew_if_they_are_lost(cluster, tmp_path):
    table = array(partial(counted, tmp_path)).persist()
    wait(table)
    assert len(list(tmp_path.iterdir())) == N_PARTS
    rows = seen(X=table).map(values)
    for _ in range(2):
        assert np.array_equal(rows.total(tenths), tenths(X))
    assert len(list(tmp_path.iterdir())) == N_PARTS
    one, *_ = cluster.run(os.getpid).values()
    os.kill(one, signal.SIGKILL)
    assert np.array_equal(rows.total(tenths), tenths(X))
    assert N_PARTS < len(list(tmp_path.iterdir())) <= 2 * N_PARTS
    cluster.wait_for_workers(2, timeout=180)


@pytest.mark.slow
def test_chunks_that_nobody_can_make_anew_are_an_error(cluster):
    cluster.wait_for_workers(2, timeout=180)
    futures = cluster.scatter([part(k) for k in range(N_PARTS)])
    chunks = [da.from_delayed(dask.delayed(one), (N_ROWS, 3), float) for one in futures]
    rows = seen(X=da.concatenate(chunks)).map(values)
    assert np.array_equal(rows.total(tenths), tenths(X))
    holder = next(iter(cluster.who_has(futures).values()))[0]
    pid = cluster.run(os.getpid)[holder]
    os.kill(pid, signal.SIGKILL)
    assert "while dask computed" in refused(rows.total, tenths)
    cluster.wait_for_workers(2, timeout=180)


@pytest.mark.slow
def test_two_fits_at_once_do_not_take_sums_of_each_other(cluster):
    from concurrent.futures import ThreadPoolExecutor

    both = [seen(X=array()).map(values), seen(X=array(shifted)).map(values)]
    expected = [tenths(X), tenths(X + 1.0)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda k: both[k % 2].total(tenths), range(8)))
    assert all(np.array_equal(one, expected[k % 2]) for k, one in enumerate(found))


def shifted(k):
    return part(k) + 1.0


@pytest.mark.slow
def test_batches_without_rows_reach_no_step():
    def step(table):
        return np.array([len(table), len(table) == 0])

    rows = seen(X=dd.from_map(_some, [0, 2, 0, 3])).map(values)
    assert rows.total(step).tolist() == [5, 0]


def _some(n):
    return pd.DataFrame({"a": np.ones(n)})
