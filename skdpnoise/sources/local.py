"""Jobs on parts that this machine reads, one after the other or by joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from joblib import Parallel, delayed

from skdpnoise.sources.parts import Facts, Failure, Job, Partial, Task, combined, do, look
from skdpnoise.sources.rows import Reader, RowSource, Taking

__all__ = ["LocalRunner"]


@dataclass(frozen=True, slots=True, eq=False)
class LocalRunner:
    """Does jobs in this process, or as joblib is told: in threads, processes, or by dask."""

    reader: Reader
    tables: dict[str, RowSource]
    n_jobs: int | None

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return self.reader.n_parts

    def look(self, task: Task) -> list[Facts | Failure]:
        """Return what a first look at every part finds."""
        jobs = (delayed(look)(task, part, self._opened(part)) for part in range(self.n_parts))
        return list(self._parallel()(jobs))

    def run(self, jobs: Sequence[Job], label: str) -> Partial:
        """Return the sum over all jobs."""
        sum_: Partial | None = None
        for one in self._done(jobs):
            sum_ = one if sum_ is None else combined([sum_, one])
        assert sum_ is not None
        return sum_

    def collect(self, jobs: Sequence[Job], finish: Callable[[list[Any]], Any], label: str) -> Any:
        """Return what a function makes of the values of all jobs, or a failure."""
        values: list[Any] = []
        for one in self._done(jobs):
            if isinstance(one.value, Failure):
                return one.value
            values += one.value
        return finish(values)

    def _done(self, jobs: Sequence[Job]) -> Iterator[Partial]:
        work = (delayed(do)(job, self._opened(job.part)) for job in jobs)
        return iter(self._parallel()(work))

    def _parallel(self) -> Any:
        return Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")

    def _opened(self, part: int) -> Any:
        takings = {name: source.taking for name, source in self.tables.items()}
        return partial(_batches, self.reader, takings, part)


def _batches(
    reader: Reader, takings: dict[str, Taking], part: int, needs: frozenset[str]
) -> Iterator[dict[str, Any]]:
    """Yield some rows of the tables at a time."""
    wanted = {name: taking for name, taking in takings.items() if name in needs}
    names: dict[str, None] | None = {}
    for taking in wanted.values():
        if taking.needed is None or names is None:
            names = None
        else:
            names |= dict.fromkeys(taking.needed)
    for rows in reader.read(part, None if names is None else list(names)):
        yield {name: taking(rows) for name, taking in wanted.items()}
