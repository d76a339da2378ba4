"""Progress of a search for scikit-learn's callbacks, as far as it may be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress"]


@contextmanager
def progress(search: Any, n_tasks: int | None, X: Any, y: Any) -> Iterator[Callable[[str], None]]:
    """Tell callbacks that a search begins and ends; yield a function to call after each task.

    Parameters
    ----------
    search : estimator
        Whose callbacks are told, where scikit-learn has them.
    n_tasks : int or None
        How many tasks there are; None where that is secret, and none is told.
    X, y : array-like
        For callbacks that score.
    """
    if not hasattr(search, "_init_callback_context"):
        yield lambda name: None
        return
    common = {"estimator": search, "X": X, "y": y, "metadata": {}}
    # No model is handed out before the winner: what does not win is not paid for.
    nothing: dict[str, Any] = {"reconstruction_attributes": dict}
    whole = search._init_callback_context(max_subtasks=n_tasks or 0)
    whole.call_on_fit_task_begin(**common)

    def tell(name: str) -> None:
        if n_tasks:
            task = whole.subcontext(task_name=name)
            task.call_on_fit_task_begin(**common)
            task.call_on_fit_task_end(**common, **nothing)

    yield tell
    whole.call_on_fit_task_end(**common, **nothing)
