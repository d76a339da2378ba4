"""Where rows can lie: in memory, in parts, in files, on the machines of dask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from skdpnoise.data import scan_batches, scan_parquet


def in_memory(frame: pd.DataFrame, folder: Path) -> Any:
    return frame


def in_batches(frame: pd.DataFrame, folder: Path) -> Any:
    """Parts of unlike lengths, of which each comes in one or two batches."""
    ends = [0, 1, len(frame) // 3, len(frame) // 2, len(frame)]
    parts = [frame[a:b] for a, b in pairwise(ends)]
    return scan_batches([partial(_halves, part) for part in parts])


def _halves(part: pd.DataFrame) -> list[pd.DataFrame]:
    return [part] if len(part) < 9 else [part[:5], part[5:]]


def in_a_file(frame: pd.DataFrame, folder: Path) -> Any:
    path = folder / "rows.parquet"
    frame.to_parquet(path, row_group_size=max(1, len(frame) // 5))
    return scan_parquet(path, batch_rows=97)


def in_a_frame_of_dask(frame: pd.DataFrame, folder: Path) -> Any:
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(frame, npartitions=6, sort=False)


STORAGES = {
    "memory": in_memory,
    "batches": in_batches,
    "parquet": in_a_file,
    "dask": in_a_frame_of_dask,
}
every_storage = pytest.mark.parametrize("storage", STORAGES)
every_storage_of_parts = pytest.mark.parametrize("storage", [*STORAGES][1:])


@pytest.fixture
def stored(storage: str, tmp_path: Path) -> Callable[[pd.DataFrame], Any]:
    """Store a frame in the way of the case: of each one of `every_storage`."""
    return lambda frame: STORAGES[storage](frame, tmp_path)
