"""Reading the next rows while those before are used."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from queue import SimpleQueue
from threading import Thread, get_ident
from typing import Any

from skdpnoise.data.partitions import RowReader, SpreadError
from skdpnoise.data.sizes import FEW_COLUMNS

_END, _OVER = object(), object()  # of a part, and of all


class Prefetcher:
    """Reads parts in their order as a reader does, a batch ahead: also over the end of a part."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._stream: Generator[Any] = prefetched(_nothing())
        self._follows: tuple[int, Sequence[str] | None] | None = None  # what the stream gives next
        self._thread = get_ident()

    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        # One stream is for one thread: others, which joblib may start all the same, read alone.
        few = columns is not None and len(columns) < FEW_COLUMNS
        if few or get_ident() != self._thread:
            yield from self._reader.read(part, columns)
            return
        if self._follows != (part, columns):
            self._stream.close()
            self._stream = prefetched(_from(self._reader, part, columns))
        self._follows = None
        for batch in self._stream:
            if batch is _END:
                self._follows = part + 1, columns
                return
            yield batch
            del batch
        raise SpreadError(
            "The rows of one part were not read to their end before those of another; nothing of "
            "this pass was released, and what was charged stays charged."
        )

    def close(self) -> None:
        """End the thread."""
        self._stream.close()

    def __reduce__(self) -> Any:
        return _unchanged, (self._reader,)  # a thread does not travel


def _unchanged(reader: RowReader) -> RowReader:
    return reader


def _from(reader: RowReader, part: int, columns: Sequence[str] | None) -> Generator[Any]:
    for one in range(part, reader.n_parts):
        yield from reader.read(one, columns)
        yield _END


def _nothing() -> Generator[Any]:
    yield from ()


def prefetched(batches: Generator[Any]) -> Generator[Any]:
    """Yield what a generator gives, of which a thread makes the next while one is used."""
    found: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    wanted: SimpleQueue[bool] = SimpleQueue()

    def read() -> None:
        error: BaseException | None = None
        try:
            for batch in batches:
                found.put((batch, None))
                del batch  # one that is used no more takes no memory while the next is made
                if not wanted.get():
                    break
            batches.close()
        except BaseException as raised:
            error = raised
        found.put((_OVER, error))

    thread = Thread(target=read, name="prefetch", daemon=True)
    thread.start()
    try:
        while (one := found.get())[0] is not _OVER:
            wanted.put(True)
            batch, one = one[0], (None, None)
            yield batch
            del batch
        if one[1] is not None:
            raise one[1]
    finally:
        wanted.put(False)
        thread.join()
