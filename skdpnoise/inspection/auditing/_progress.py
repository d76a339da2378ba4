"""How an audit tells how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["telling"]

Tell = Callable[[int], None]
_LINES = 20  # of a plain progress bar


@contextmanager
def telling(progress: Any, total: int, name: str) -> Iterator[Tell]:
    """Give a function that is told of fits that are done, and shows or hands on their number."""
    done = 0
    show: Callable[[int], None]
    if callable(progress):

        def show(count: int) -> None:
            progress(count, total)

        bar = None
    else:
        bar = _rich_bar(name, total) if progress else None
        show = _plain_bar(name, total) if progress and bar is None else lambda count: None

    def tell(count: int) -> None:
        nonlocal done
        done += count
        if bar is not None:
            bar.update(0, completed=done)
        show(done)

    if bar is None:
        yield tell
        return
    with bar:
        yield tell


def _rich_bar(name: str, total: int) -> Any:
    """Return a progress bar of rich; None where it is not installed."""
    try:
        from rich.progress import Progress
    except ImportError:
        return None
    bar = Progress(transient=True)
    bar.add_task(f"audit of {name}", total=total)
    return bar


def _plain_bar(name: str, total: int) -> Callable[[int], None]:
    """Return a function that prints a line for each twentieth of the fits."""
    said = -1

    def show(count: int) -> None:
        nonlocal said
        part = _LINES * count // max(total, 1)
        if part > said:
            said = part
            print(f"audit of {name}: {count} of {total} fits", file=sys.stderr, flush=True)

    return show
