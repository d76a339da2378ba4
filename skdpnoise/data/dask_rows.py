"""Arrays and frames of dask as sources of rows: each chunk of rows is a part.

Jobs run where the chunks are, by whatever scheduler dask is told to use. Sums of neighbouring parts
are added there, too, in a tree; one sum comes back for each pass. No function that dask runs for us
raises: a worker would write what it was called with, rows or sums, to its log.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from skdpnoise.data.cells import kinds_of
from skdpnoise.data.kinds import Kind
from skdpnoise.data.partitions import (
    ENDINGS,
    Choose,
    Failure,
    Job,
    Keep,
    Partial,
    PartitionFacts,
    RowReader,
    SpreadError,
    Task,
    between,
    combined,
    complete,
    do,
    finished,
    in_order,
    raised,
    rows_at_once,
    rows_of,
    scan,
)
from skdpnoise.data.selection import RowSelection
from skdpnoise.data.sizes import SUMS

_AT_ONCE = 1 << 12  # parts
_NOTHING = Task((), len, frozenset())


def kinds() -> tuple[type, ...]:
    """Return the classes of dask that are read."""
    found: list[type] = []
    with suppress(ImportError):
        import dask.array

        found.append(dask.array.Array)
    with suppress(ImportError):
        import dask.dataframe

        found += [dask.dataframe.DataFrame, dask.dataframe.Series]
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DaskReader(RowReader):
    """The chunks of rows of one array or frame."""

    chunks: tuple[Any, ...]  # delayed
    columns: tuple[str, ...] | None
    n_columns: int
    kinds: dict[str, Kind] | None = None

    @classmethod
    def of(cls, table: Any) -> DaskReader:
        if not hasattr(table, "chunks"):
            names = tuple(table.columns) if table.ndim == 2 else ()
            named = bool(names) and all(isinstance(name, str) for name in names)
            # Partitions may have other types, as pandas makes of them; what counts is declared.
            kinds = dict(zip(names, kinds_of(table._meta), strict=True)) if named else None
            return cls(tuple(table.to_delayed()), names if named else None, len(names), kinds)
        if table.ndim not in (1, 2):
            raise TypeError(f"Arrays of dask must have 1 or 2 dimensions. Got {table.ndim}.")
        if table.ndim == 2 and len(table.chunks[1]) > 1:
            table = table.rechunk({1: -1})  # a row lies in one chunk
        width = int(table.shape[1]) if table.ndim == 2 else 0
        return cls(tuple(table.to_delayed().ravel()), None, width)

    @property
    def n_parts(self) -> int:
        return len(self.chunks)

    def count(self) -> int:
        return sum(_computed([_dask().delayed(len)(chunk) for chunk in self.chunks]))

    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        yield from _computed([self.chunks[part]])

    def first(self, function: Callable[[Any], Any], columns: Sequence[str] | None) -> Any:
        first = _dask().delayed(_first, pure=False)
        for chunk in self.chunks:
            ((found,),) = _computed([first(function, chunk)])
            if found is not None:
                return raised(found[0])
        raise ValueError("There are no rows to read.")

    def sifted(self, selection: RowSelection) -> DaskReader:
        labels = None if selection.keep is None else selection.labels
        taking = None if labels is None else labels.taking
        bare = replace(selection, labels=None)
        common = _dask().delayed(bare, name=_name("rows left", 0), traverse=False)
        sift, chunks = _dask().delayed(_sifted, pure=False), []
        for part, chunk in enumerate(self.chunks):
            beside = [] if labels is None else [labels.reader.chunks[part]]
            chunks.append(sift(common, part, taking, chunk, *beside))
        return replace(self, chunks=tuple(chunks))

    def runner(self, tables: dict[str, Any], n_jobs: int | None) -> DaskRunner:
        counts = {name: source.reader.n_parts for name, source in tables.items()}
        if {type(source.reader) for source in tables.values()} != {type(self)}:
            raise ValueError(
                f"{' and '.join(tables)} must all be arrays or frames of dask if one of them is. "
                "Read files by dask, or all of them by skdpnoise.data."
            )
        if len(set(counts.values())) > 1:
            raise ValueError(
                "Arrays and frames of dask must have the same chunks of rows. Got so many chunks: "
                f"{counts}. Use rechunk or repartition."
            )
        return DaskRunner(tables)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DaskRunner:
    """Does jobs where dask has the chunks."""

    tables: dict[str, Any]

    @property
    def n_parts(self) -> int:
        return int(next(iter(self.tables.values())).reader.n_parts)

    def scan(self, task: Task) -> list[PartitionFacts | Failure]:
        some, found = self._some(task), list[PartitionFacts | Failure]()
        for parts in _waves(range(self.n_parts)):
            jobs = self._jobs(_scan_chunks, some, [(part, part) for part in parts], "scan")
            found += _computed(jobs)
        return found

    def run(self, jobs: Sequence[Job], label: str) -> Partial:
        found = [self._sum(some, label) for some in _waves(jobs)]
        return complete(combined(found), self.n_parts)

    def _sum(self, jobs: Sequence[Job], label: str) -> Partial:
        sums, add = self._done(jobs, label), _dask().delayed(_combined, pure=False)
        while len(sums) > 1:
            some = [sums[i : i + SUMS] for i in range(0, len(sums), SUMS)]
            sums = [
                add(*one, dask_key_name=_name(f"{label} added", i)) for i, one in enumerate(some)
            ]
        (found,) = _computed(sums)
        assert isinstance(found, Partial)
        return found

    def collect(self, jobs: Sequence[Job], finish: Callable[[list[Any]], Any], label: str) -> Any:
        join = _dask().delayed(_finished, pure=False)
        values, name = self._done(jobs, label), _name(f"{label} joined", 0)
        (found,) = _computed([join(self.n_parts, finish, *values, dask_key_name=name)])
        return found

    def _done(self, jobs: Sequence[Job], label: str) -> list[Any]:
        """Return delayed jobs."""
        one = jobs[0]
        some = self._some(one.task, one.keep, one.choose)
        # As bytes, which dask does not search for collections.
        bare = (replace(job, task=_NOTHING, keep=None, choose=None) for job in jobs)
        own = [(job.part, pickle.dumps(job)) for job in bare]
        return self._jobs(_do, some, own, label)

    def _some(self, task: Task, keep: Keep | None = None, choose: Choose | None = None) -> _Shared:
        needs = task.needs if keep is None else {*task.needs, "groups"}
        takings = {name: one.taking for name, one in self.tables.items() if name in needs}
        return _Shared(task, takings, keep, choose)

    def _jobs(self, function: Any, shared: _Shared, own: Sequence[Any], label: str) -> list[Any]:
        """Return delayed jobs of parts by their numbers, with the chunks that they need."""
        dask = _dask()
        # It goes to each worker once, and not to each part: it may hold coefficients, or the
        # numbers of many rows.
        common = dask.delayed(shared, name=_name(f"{label} shared", 0), traverse=False)
        readers: list[Any] = [self.tables[name].reader for name in shared.takings]
        job = dask.delayed(function, pure=False)
        return [
            job(common, one, *(r.chunks[part] for r in readers), dask_key_name=_name(label, part))
            for part, one in own
        ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Shared:
    """Facts that the jobs of all partitions share."""

    task: Task
    takings: dict[str, Any]
    keep: Keep | None
    choose: Choose | None


def _waves(jobs: Sequence[Any]) -> list[Sequence[Any]]:
    """Return jobs that are told to dask at once: it holds some kilobytes for each here."""
    return [jobs[begin : begin + _AT_ONCE] for begin in range(0, len(jobs), _AT_ONCE)]


def _name(label: str, number: int) -> str:
    """Return a name that shows a pass where progress is shown, and that no other task has."""
    # Two tasks of one name would be one to a scheduler, also if they come from two processes.
    return f"{label.replace(' ', '_').replace('-', '_')}-{number}-{uuid4().hex}"


def _dask() -> Any:
    """Return the library, whose functions have no types."""
    import dask

    return dask


def _do(shared: _Shared, job: bytes, *chunks: Any) -> Partial:
    whole = replace(pickle.loads(job), task=shared.task, keep=shared.keep, choose=shared.choose)
    return do(whole, _opened(shared.takings, chunks))


def _scan_chunks(shared: _Shared, part: int, *chunks: Any) -> PartitionFacts | Failure:
    return scan(shared.task, part, _opened(shared.takings, chunks))


def _first(function: Callable[[Any], Any], chunk: Any) -> list[Any]:
    """Return what a function makes of a chunk with rows, or a failure, in a list; else None."""
    try:
        return [[function(chunk)] if len(chunk) else None]
    except ENDINGS:
        raise
    except BaseException as error:
        return [[Failure(f"{type(error).__name__} in the first rows.")]]


def _combined(*partials: Partial) -> Partial:
    try:
        return combined(partials)
    except SpreadError as error:
        text = str(error)
    except ENDINGS:
        raise
    except BaseException as error:
        text = f"{type(error).__name__} where sums came together; nothing is released."
    return Partial(partials[0].begin, partials[-1].end, Failure(text))


def _opened(takings: dict[str, Any], chunks: Sequence[Any]) -> Any:
    def opened(needs: frozenset[str]) -> Generator[dict[str, Any]]:
        pairs = zip(takings.items(), map(raised, chunks), strict=True)
        wanted = [(name, chunk, taking.placed(chunk)) for (name, taking), chunk in pairs]
        wanted = [one for one in wanted if one[0] in needs]
        # Some rows at a time, as of files: what is made of them stays in the cache.
        n = rows_at_once(sum(chunk.shape[1] if chunk.ndim > 1 else 1 for _, chunk, _ in wanted))
        for begin in range(0, max(len(chunk) for _, chunk, _ in wanted), n):
            yield {name: take(between(chunk, begin, begin + n)) for name, chunk, take in wanted}

    return opened


def _sifted(selection: RowSelection, part: int, taking: Any, rows: Any, *labels: Any) -> Any:
    """Return what is left of a chunk, or a failure."""
    try:
        rows = raised(rows)
        mask = selection.mask(part, [taking(raised(one)) for one in labels])
        chosen = mask(len(rows))
        return rows if chosen is None else rows_of(rows, chosen)
    except ENDINGS:
        raise
    except BaseException as error:
        return Failure(f"{type(error).__name__} where rows of part {part} were chosen.")


def _finished(n_parts: int, finish: Callable[[list[Any]], Any], *partials: Partial) -> Any:
    """Return what is made of the values of all parts, in order: where they are."""
    return finished(finish, in_order(partials, n_parts))


def _computed(jobs: Sequence[Any]) -> tuple[Any, ...]:
    """Compute jobs; an error that is raised on the way may quote rows, and is not shown."""
    dask = _dask()
    try:
        return tuple(dask.compute(*jobs))
    except ENDINGS:
        raise
    except BaseException as error:
        kind = type(error).__name__
    raise SpreadError(
        f"{kind} while dask computed chunks of the rows. Its message may quote values of the data "
        "and is not shown; nothing of this pass was released, and what was charged stays charged."
    )
