"""Jobs on parts that this machine reads, one after the other or by joblib."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from skdpnoise.data.partitions import (
    ENDINGS,
    Failure,
    Job,
    Opened,
    Partial,
    PartitionFacts,
    RowReader,
    SpreadError,
    Task,
    combined,
    complete,
    do,
    finished,
    scan,
)
from skdpnoise.data.prefetch import Prefetcher
from skdpnoise.data.sizes import SUMS
from skdpnoise.data.sources import RowSource, Taking


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LocalRunner:
    """Does jobs in this process, or as joblib is told: in threads, processes, or by dask."""

    reader: RowReader
    tables: dict[str, RowSource]
    n_jobs: int | None

    @property
    def n_parts(self) -> int:
        return self.reader.n_parts

    def scan(self, task: Task) -> list[PartitionFacts | Failure]:
        with self._opening() as opened:
            jobs = (delayed(scan)(task, part, opened(part)) for part in range(self.n_parts))
            return list(self._computed(jobs))

    def run(self, jobs: Sequence[Job], label: str) -> Partial:
        # Joblib makes no pause where results come faster than they are added: so there are few.
        n_runs = SUMS * effective_n_jobs(self.n_jobs)
        size = -(-len(jobs) // n_runs)
        with self._opening() as opened:
            work = [(job, opened(job.part)) for job in jobs]
            runs = (delayed(_summed)(work[i : i + size]) for i in range(0, len(work), max(size, 1)))
            with closing(self._computed(runs)) as found:
                sum_ = _added(found)
        return complete(Partial(0, 0, 0) if sum_ is None else sum_, self.n_parts)

    def collect(self, jobs: Sequence[Job], finish: Callable[[list[Any]], Any], label: str) -> Any:
        values: list[Any] = []
        with self._opening() as opened:
            work = (delayed(do)(job, opened(job.part)) for job in jobs)
            with closing(self._computed(work)) as done:
                for one in done:
                    if isinstance(one.value, Failure):
                        return one.value
                    values += one.value
        return finished(finish, values)

    def _computed(self, work: Iterable[Any]) -> Generator[Any]:
        """Yield what is found in each part, in order, of which few are held at a time."""
        options = {"n_jobs": self.n_jobs, "prefer": "threads"}
        try:
            parallel = Parallel(return_as="generator", **options)
        except ValueError:
            parallel = Parallel(**options)  # a backend that gives all at once
        try:
            yield from parallel(work)
            return
        except ENDINGS:
            raise
        except BaseException as error:  # joblib: a process ended, or was not told what to do
            kind = type(error).__name__
        raise SpreadError(
            f"{kind} while joblib did what parts of the rows need. Processes need memory, and all "
            "that is done with rows must be picklable; threads share both. Nothing of this pass "
            "was released, and what was charged stays charged."
        )

    @contextmanager
    def _opening(self) -> Iterator[Callable[[int], Opened]]:
        """Give what opens parts, while a pass runs."""
        takings = {name: source.taking for name, source in self.tables.items()}
        # Reading ahead makes use of a second processor, where no other part does.
        if self.reader.may_prefetch and effective_n_jobs(self.n_jobs) == 1:
            with closing(Prefetcher(self.reader)) as prefetcher:
                yield partial(partial, _batches, prefetcher, takings)
        else:
            yield partial(partial, _batches, self.reader, takings)


def _summed(work: Sequence[tuple[Job, Any]]) -> Partial | None:
    return _added(do(job, opened) for job, opened in work)


def _added(partials: Iterable[Partial | None]) -> Partial | None:
    """Return the sum of what neighbouring parts gave, or the first failure."""
    sum_: Partial | None = None
    for one in partials:
        if one is None or isinstance(one.value, Failure):
            return one
        sum_ = one if sum_ is None else combined([sum_, one])
    return sum_


def _batches(
    reader: RowReader | Prefetcher, takings: dict[str, Taking], part: int, needs: frozenset[str]
) -> Iterator[dict[str, Any]]:
    wanted = {name: taking for name, taking in takings.items() if name in needs}
    names: dict[str, None] | None = {}
    for taking in wanted.values():
        if taking.needed is None or names is None:
            names = None
        else:
            names |= dict.fromkeys(taking.needed)
    take: dict[str, Callable[[Any], Any]] = {}
    for rows in reader.read(part, None if names is None else list(names)):
        take = take or {name: taking.placed(rows) for name, taking in wanted.items()}
        yield {name: function(rows) for name, function in take.items()}
