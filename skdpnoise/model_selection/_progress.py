"""Progress of a search for scikit-learn's callbacks, as far as it may be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

_HOOKS = ("on_fit_task_begin", "on_fit_task_end")
_SECRET = {"X", "y", "fitted_estimator"}


def check_callbacks(search: Any) -> None:
    """Refuse callbacks that ask for records or models, such as scikit-learn's ScoringMonitor."""
    owner = type(search).__name__
    for callback in getattr(search, "_skl_callbacks", ()):
        hooks = [getattr(callback, name) for name in _HOOKS]
        asked = sorted(_SECRET & {name for hook in hooks for name in signature(hook).parameters})
        if asked:
            raise ValueError(
                f"Callbacks of {owner} get neither records nor models: exact scores and "
                "models that do not win are not covered by the guarantee. Got a "
                f"{type(callback).__name__}, which asks for {', '.join(asked)}. Use one that does "
                "not, such as ProgressBar."
            )


@contextmanager
def progress(search: Any, n_tasks: int | None) -> Iterator[Callable[[str], None]]:
    """Tell callbacks that a search begins and ends; yield a function to call after each task."""
    if not hasattr(search, "_init_callback_context"):
        yield lambda name: None
        return
    # No records and no model are handed out: what does not win is not paid for, nor are scores.
    common: dict[str, Any] = {"estimator": search, "metadata": {}}
    whole = search._init_callback_context(max_subtasks=n_tasks or 0)
    whole.call_on_fit_task_begin(**common)

    def tell(name: str) -> None:
        if n_tasks:
            task = whole.subcontext(task_name=name)
            task.call_on_fit_task_begin(**common)
            task.call_on_fit_task_end(**common)

    yield tell
    whole.call_on_fit_task_end(**common)
