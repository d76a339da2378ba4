"""Where the real data are, and what two test processes must not share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Documentation may show the real data; without them its examples would try a download.
    if _data_folder() is not None:
        return
    for item in items:
        test = getattr(item, "dtest", None)
        if test is not None and any("fetch_" in example.source for example in test.examples):
            item.add_marker(pytest.mark.skip(reason=NO_DATA))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the benchmark files; skips the test where there is none."""
    folder = _data_folder()
    if folder is None:
        pytest.skip(NO_DATA)
    return folder
