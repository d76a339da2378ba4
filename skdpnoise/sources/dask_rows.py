"""Arrays and frames of dask as sources of rows: each chunk of rows is a part.

Jobs run where the chunks are, by whatever scheduler dask is told to use. Sums of neighbouring parts
are added there, too, in a tree; one sum comes back for each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from skdpnoise.sources.chosen import Selection
from skdpnoise.sources.parts import (
    Facts,
    Failure,
    Job,
    Partial,
    SpreadError,
    Task,
    combined,
    do,
    look,
    rows_of,
)

__all__ = ["DaskReader", "DaskRunner", "kinds"]

_BRANCHES = 8  # sums that are added at once
_passes = count()


def kinds() -> tuple[type, ...]:
    """Return the classes of dask that are read."""
    import dask.array
    import dask.dataframe

    return dask.array.Array, dask.dataframe.DataFrame, dask.dataframe.Series


@dataclass(frozen=True, slots=True, eq=False)
class DaskReader:
    """The chunks of rows of one array or frame."""

    chunks: tuple[Any, ...]  # delayed
    columns: tuple[str, ...] | None
    n_columns: int

    @classmethod
    def of(cls, table: Any) -> DaskReader:
        """Return the reader of an array, a frame or a series."""
        if not hasattr(table, "chunks"):
            columns = tuple(map(str, table.columns)) if hasattr(table, "columns") else None
            width = 0 if columns is None else len(columns)
            return cls(tuple(table.to_delayed()), columns, width)
        if table.ndim not in (1, 2):
            raise TypeError(f"Arrays of dask must have 1 or 2 dimensions. Got {table.ndim}.")
        if table.ndim == 2 and len(table.chunks[1]) > 1:
            table = table.rechunk({1: -1})  # a row lies in one chunk
        width = int(table.shape[1]) if table.ndim == 2 else 0
        return cls(tuple(table.to_delayed().ravel()), None, width)

    @property
    def n_parts(self) -> int:
        """Number of chunks of rows."""
        return len(self.chunks)

    def count(self) -> int:
        """Return the number of rows, which is computed."""
        dask = _dask()
        return sum(dask.compute(*(dask.delayed(len)(chunk) for chunk in self.chunks)))

    def read(self, part: int, columns: Sequence[str] | None) -> Iterator[Any]:
        """Yield a part, here."""
        yield self.chunks[part].compute()

    def first(self, function: Callable[[Any], Any], columns: Sequence[str] | None) -> Any:
        """Return what a function makes of the rows that are read first, where they are."""
        (found,) = _computed([_dask().delayed(function, pure=False)(self.chunks[0])])
        return found

    def sifted(self, selection: Selection) -> DaskReader:
        """Return what reads the rows that are left, sifted where the chunks are."""
        # Chunks within a selection would be computed for each part.
        bare, sift = replace(selection, labels=None), _dask().delayed(_sifted, pure=False)
        labels = None if selection.keep is None else selection.labels
        taking = None if labels is None else labels.taking
        chunks = []
        for part, chunk in enumerate(self.chunks):
            beside = [] if labels is None else [_chunk(labels.reader, part)]
            chunks.append(sift(bare, part, taking, chunk, *beside))
        return replace(self, chunks=tuple(chunks))

    def runner(self, tables: dict[str, Any], n_jobs: int | None) -> DaskRunner:
        """Return what does jobs on tables."""
        counts = {name: source.reader.n_parts for name, source in tables.items()}
        if not all(isinstance(source.reader, DaskReader) for source in tables.values()):
            raise ValueError(
                f"{' and '.join(tables)} must all be arrays or frames of dask if one of them is. "
                "Read files by dask, or all of them by skdpnoise.sources."
            )
        if len(set(counts.values())) > 1:
            raise ValueError(
                "Arrays and frames of dask must have the same chunks of rows. Got so many chunks: "
                f"{counts}. Use rechunk or repartition."
            )
        return DaskRunner(tables)


@dataclass(frozen=True, slots=True, eq=False)
class DaskRunner:
    """Does jobs where dask has the chunks."""

    tables: dict[str, Any]

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return int(next(iter(self.tables.values())).reader.n_parts)

    def look(self, task: Task) -> list[Facts | Failure]:
        """Return what a first look at every part finds."""
        jobs = [self._job(_look, task, part, part, "first look") for part in range(self.n_parts)]
        return list(_computed(jobs))

    def run(self, jobs: Sequence[Job], label: str) -> Partial:
        """Return the sum over all jobs."""
        dask = _dask()
        sums = [self._job(_do, job, job.part, job.task, label) for job in jobs]
        add = dask.delayed(combined, pure=False)
        while len(sums) > 1:
            sums = [add(sums[i : i + _BRANCHES]) for i in range(0, len(sums), _BRANCHES)]
        (found,) = _computed(sums)
        assert isinstance(found, Partial)
        if (found.begin, found.end) != (0, self.n_parts):
            raise SpreadError("A part of the rows was lost; nothing is released.")
        return found

    def collect(self, jobs: Sequence[Job], finish: Callable[[list[Any]], Any], label: str) -> Any:
        """Return what a function makes of the values of all jobs, or a failure."""
        dask = _dask()
        values = [self._job(_do, job, job.part, job.task, label) for job in jobs]
        (found,) = _computed([dask.delayed(_finished, pure=False)(finish, values)])
        return found

    def _job(self, function: Any, what: Any, part: int, task: Any, label: str) -> Any:
        """Return a delayed job for one part, with the chunks that it needs."""
        dask = _dask()
        needs = task.needs if isinstance(task, Task) else what.needs
        wanted = {name: one for name, one in self.tables.items() if name in needs}
        if getattr(what, "keep", None) is not None:
            wanted["groups"] = self.tables["groups"]
        takings = {name: source.taking for name, source in wanted.items()}
        chunks = [_chunk(source.reader, part) for source in wanted.values()]
        name = f"{label.replace(' ', '_').replace('-', '_')}-{next(_passes)}"
        return dask.delayed(function, pure=False)(what, part, takings, *chunks, dask_key_name=name)


def _dask() -> Any:
    """Return the library, whose functions have no types."""
    import dask

    return dask


def _chunk(reader: Any, part: int) -> Any:
    return reader.chunks[part]


def _do(job: Job, part: int, takings: dict[str, Any], *chunks: Any) -> Partial:
    return do(job, _opened(takings, chunks))


def _look(task: Task, part: int, takings: dict[str, Any], *chunks: Any) -> Facts | Failure:
    return look(task, part, _opened(takings, chunks))


def _opened(takings: dict[str, Any], chunks: Sequence[Any]) -> Any:
    def opened(needs: frozenset[str]) -> list[dict[str, Any]]:
        pairs = zip(takings.items(), chunks, strict=True)
        tables = {name: taking(chunk) for (name, taking), chunk in pairs if name in needs}
        return [tables] if len(next(iter(tables.values()))) else []

    return opened


def _sifted(selection: Selection, part: int, taking: Any, rows: Any, *labels: Any) -> Any:
    """Return what is left of a chunk."""
    sieve = selection.sieve(part, [taking(one) for one in labels])
    chosen = sieve(len(rows))
    return rows if chosen is None else rows_of(rows, chosen)


def _finished(finish: Callable[[list[Any]], Any], partials: Sequence[Partial]) -> Any:
    """Return what is made of the values of all parts, in order: where they are."""
    values: list[Any] = []
    for partial in sorted(partials, key=lambda one: one.begin):
        if isinstance(partial.value, Failure):
            return partial.value
        values += partial.value
    try:
        return finish(values)
    except Exception as error:
        return Failure(f"{type(error).__name__} where parts of the rows came together.")


def _computed(jobs: Sequence[Any]) -> tuple[Any, ...]:
    """Compute jobs; an error that is raised on the way may quote rows, and is not shown."""
    dask = _dask()
    try:
        return tuple(dask.compute(*jobs))
    except Exception as error:
        kind = type(error).__name__
    raise SpreadError(
        f"{kind} while dask computed chunks of the rows. Its message may quote values of the data "
        "and is not shown; nothing of this pass was released, and what was charged stays charged."
    )
