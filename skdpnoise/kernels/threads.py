"""Plain threads that run compiled kernels on ranges of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any

from skdpnoise.kernels.sizes import PER_THREAD


def enough_threads(n_rows: int, n_threads: int) -> int:
    return max(1, min(n_threads, n_rows // PER_THREAD))


@contextmanager
def threads(n_rows: int, n_ranges: int, block: int = 1) -> Iterator[Callable[..., list[Any]]]:
    """Give a function that runs a kernel on every range of blocks of rows, in their order."""
    # The kernels release the lock of the interpreter. Plain threads work under joblib and after a
    # fork, which the threading layers of numba do not; a queue wakes them in a fraction of the time
    # that a pool of futures takes, which counts when a sweep lasts a millisecond.
    n_blocks = -(-n_rows // block)
    edges = [min(n_rows, block * (n_blocks * i // n_ranges)) for i in range(n_ranges + 1)]
    first, *others = pairwise(edges)
    tasks: list[SimpleQueue[Any]] = [SimpleQueue() for _ in others]
    results: list[SimpleQueue[Any]] = [SimpleQueue() for _ in others]

    def run(kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
        for queue in tasks:
            queue.put((kernel, arguments))
        own = kernel(first, *arguments)
        answers = [queue.get() for queue in results]
        for _, error in answers:
            if error is not None:
                raise error
        return [own, *(value for value, _ in answers)]

    facts = zip(others, tasks, results, strict=True)
    started = [Thread(target=_work, args=one, daemon=True) for one in facts]
    for thread in started:
        thread.start()
    try:
        yield run
    finally:
        for queue in tasks:
            queue.put(None)
        for thread in started:
            thread.join()


def _work(rows: tuple[int, int], tasks: SimpleQueue[Any], results: SimpleQueue[Any]) -> None:
    """Run the kernels that come by a queue on a range of rows, until None comes."""
    while (task := tasks.get()) is not None:
        kernel, arguments = task
        try:
            results.put((kernel(rows, *arguments), None))
        except BaseException as error:  # handed to the thread that asked
            results.put((None, error))
