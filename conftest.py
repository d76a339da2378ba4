"""Of tests and examples: where the real data are, which words they draw, what runs do not share."""

from __future__ import annotations

import gc
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest

from skdpnoise.sampling import words

_PAGES = Path(__file__).parent / "docs"  # whose examples `make test` leaves out
_QUICK = 1  # cases of a test that `make test` runs, if the test does not say otherwise
# What makes the site, and what it made of the examples, has no examples of its own.
collect_ignore_glob = ["docs/*.py"]
NO_DATA = "the real data are not here: set SKDPNOISE_DATA to the folder with the files"


def _data_folder() -> Path | None:
    folder = os.environ.get("SKDPNOISE_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def pytest_configure(config: pytest.Config) -> None:
    # No test, example or subprocess of one may charge the ledger of whoever runs them.
    os.environ.pop("SKDPNOISE_LEDGER", None)
    # numba gives a new specialisation the next free file name without a lock, so two processes
    # that compile float32 and float64 versions at once could store one under the other's name.
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(config.cache.mkdir(f"numba-{worker}"))


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _leave_cases_to_test_all(items)
    # What networks compute needs torch: `make test-torch` has an environment with it.
    if find_spec("torch") is None:
        for item in items:
            if "skdpnoise/neural_network/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason="torch is not installed"))
    # Documentation may show the real data; without them its examples would try a download.
    if _data_folder() is not None:
        return
    for item in items:
        test = getattr(item, "dtest", None)
        if test is not None and any("fetch_" in example.source for example in test.examples):
            item.add_marker(pytest.mark.skip(reason=NO_DATA))


def pytest_collection_finish() -> None:
    # Ten thousand cases are there to the end: every full collection would look at each again.
    gc.collect()
    gc.freeze()


def _leave_cases_to_test_all(items: list[pytest.Item]) -> None:
    """Mark cases as slow, but _QUICK of each test, or as many as its marker `quick` says.

    Those are evenly spread, from another one on in each test, so that every estimator of a register
    is in some. Examples of the pages are all slow.
    """
    tests = defaultdict(list)
    for item in items:
        if _PAGES in item.path.parents:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") is None:
            marker = item.get_closest_marker("quick")
            n_quick = _QUICK if marker is None else marker.args[0]
            tests[item.nodeid.partition("[")[0], n_quick].append(item)
    for (name, n_quick), cases in tests.items():
        first = crc32(name.encode())
        kept = {(len(cases) * k // n_quick + first) % len(cases) for k in range(n_quick)}
        for number, case in enumerate(cases):
            if number not in kept:
                case.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def the_same_words(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Replace the system's random words by those of the test's name; called, begin them again.

    What passes then passes in every run. Other processes have the system's words: those that a test
    forks must not repeat its own.
    """
    process, lock = os.getpid(), threading.Lock()
    seed = crc32(request.node.nodeid.encode())
    source = np.random.Philox(seed)

    def urandom(n_bytes: int) -> bytes:
        if os.getpid() != process:
            return os.urandom(n_bytes)
        with lock:
            return source.random_raw(-(-n_bytes // 8)).tobytes()[:n_bytes]

    def begin_again() -> None:
        nonlocal source
        source = np.random.Philox(seed)

    monkeypatch.setattr(words, "os", SimpleNamespace(urandom=urandom))
    return begin_again


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the benchmark files; skips the test where there is none."""
    folder = _data_folder()
    if folder is None:
        pytest.skip(NO_DATA)
    return folder
