"""Of tests and examples: where the real data are, which words they draw, what runs do not share."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest

from benchmarks._compiled import cache_folder
from skdpnoise.sampling import words

ROOT = Path(__file__).parent
# What makes the site, and what it made of the examples, has no examples of its own.
collect_ignore_glob = ["docs/*.py"]
NO_DATA = "the real data are not here: set SKDPNOISE_DATA to the folder with the files"


PROCESS = os.getpid()


class UnaskedWords(BaseException):
    """A test is not the same in every run; no `except Exception` hides it."""


def _unasked(n_bytes: int) -> bytes:
    """Refuse the system's random words to what has not asked for the same ones in every run."""
    if os.getpid() != PROCESS:
        return os.urandom(n_bytes)
    raise UnaskedWords("words differ from run to run: set a seed or use the fixture the_same_words")


def _data_folder() -> Path | None:
    folder = os.environ.get("SKDPNOISE_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def pytest_configure() -> None:
    # No test, example or subprocess of one may charge the ledger of whoever runs them.
    os.environ.pop("SKDPNOISE_LEDGER", None)
    words.os = SimpleNamespace(urandom=_unasked)
    # numba gives a new specialisation the next free file name without a lock, so two processes
    # that compile float32 and float64 versions at once could store one under the other's name.
    mine = cache_folder(ROOT, os.environ.get("PYTEST_XDIST_WORKER", "main"))
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given is None or Path(given).parent == mine.parent:  # that of who started this process
        os.environ["NUMBA_CACHE_DIR"] = str(mine)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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


@pytest.fixture
def the_same_words(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Draw the system's random words from the name of the test; called, begin them again.

    What passes then passes in every run. Other processes have the system's words: those that a test
    forks must not repeat its own.
    """
    lock = threading.Lock()
    seed = crc32(request.node.nodeid.encode())
    source = np.random.Philox(seed)

    def urandom(n_bytes: int) -> bytes:
        if os.getpid() != PROCESS:
            return os.urandom(n_bytes)
        with lock:
            return source.random_raw(-(-n_bytes // 8)).tobytes()[:n_bytes]

    def begin_again() -> None:
        nonlocal source
        source = np.random.Philox(seed)

    monkeypatch.setattr(words, "os", SimpleNamespace(urandom=urandom))
    return begin_again


@pytest.fixture(autouse=True)
def examples_draw_the_same_words(request: pytest.FixtureRequest) -> None:
    """Ask for the same words where a reader is shown no seed."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("the_same_words")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the benchmark files; skips the test where there is none."""
    folder = _data_folder()
    if folder is None:
        pytest.skip(NO_DATA)
    return folder
