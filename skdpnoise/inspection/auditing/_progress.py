"""How an audit tells how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

_LINES = 20  # of a plain progress bar


@contextmanager
def telling(progress: Any, total: int, name: str) -> Iterator[Callable[[int], None]]:
    """Give a function that is told of fits that are done, and shows or hands on their number."""
    done, bar = 0, cast(Any, None)
    with ExitStack() as stack:
        if progress and not callable(progress):
            with suppress(ImportError):
                from rich.progress import Progress

                bar = stack.enter_context(Progress(transient=True))
                bar.add_task(f"audit of {name}", total=total)

        def tell(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            if callable(progress):
                progress(done, total)
            elif bar is not None:
                bar.update(0, completed=done)
            elif progress and (not before or _LINES * before // total < _LINES * done // total):
                print(f"audit of {name}: {done} of {total} fits", file=sys.stderr, flush=True)

        yield tell
