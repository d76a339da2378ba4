"""Reading the next rows while those before are used."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Any

__all__ = ["read_ahead"]

_END = object()


def read_ahead(batches: Generator[Any]) -> Iterator[Any]:
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
        except BaseException as raised:
            error = raised
        batches.close()
        found.put((_END, error))

    thread = Thread(target=read, name="read-ahead", daemon=True)
    thread.start()
    try:
        while (one := found.get())[0] is not _END:
            wanted.put(True)
            batch, one = one[0], (None, None)
            yield batch
            del batch
        if one[1] is not None:
            raise one[1]
    finally:
        wanted.put(False)
        thread.join()
