"""Calls in parallel, with joblib and whatever backend it is told to use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from joblib import Parallel


def in_order(calls: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """Yield the results of delayed calls, each as soon as it and those before it are there."""
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator", verbose=0)
    except ValueError:  # the backend has no generators, as multiprocessing: all come at the end
        parallel = Parallel(n_jobs=n_jobs, verbose=0)
    yield from parallel(calls)
