"""Time and memory of a private fit beside scikit-learn's."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from skdpnoise.decomposition import DPPCA


def best_time(function: Callable[[], Any], repetitions: int) -> float:
    """Return the shortest of several times, in seconds, after one to warm up."""
    function()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory(function: Callable[[], Any]) -> int:
    """Return the most bytes that were allocated at once on top of what was there."""
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def compare(X: NDArray[np.float64], k: int, repetitions: int, n_jobs: int | None) -> dict[str, Any]:
    """Return times, their ratio, and the extra memory relative to X."""
    private = DPPCA(k, 1.0, 1e-9, n_jobs=n_jobs)
    public = PCA(k, svd_solver="covariance_eigh")
    ours = best_time(lambda: private.fit(X), repetitions)
    theirs = best_time(lambda: public.fit(X), repetitions)
    return {
        "n": X.shape[0],
        "p": X.shape[1],
        "n_jobs": n_jobs,
        "seconds": ours,
        "scikit_learn_seconds": theirs,
        "ratio": ours / theirs,
        "extra_memory": peak_memory(lambda: private.fit(X)) / X.nbytes,
    }
