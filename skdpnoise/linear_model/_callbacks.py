"""scikit-learn's callbacks where the installed version has them, nothing where it has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["CallbackSupportMixin", "each_pass", "with_callbacks"]

T = TypeVar("T")

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn below 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin; offers no ``set_callbacks``."""

    def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return fit


def each_pass(
    estimator: Any,
    passes: Iterable[T],
    n_passes: int,
    attributes: Callable[[T], dict[str, Any]],
    X: Any,
    y: Any,
) -> Iterator[T]:
    """Yield every pass, telling the estimator's callbacks when it begins and ends.

    A callback's wish to stop early is not followed: the number of passes is fixed before the data
    are seen, since a stopping rule that looks at private data would have to be paid for.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield from passes
        return
    context = estimator._init_callback_context(max_subtasks=n_passes)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata={})
    iterator = iter(passes)
    for number in range(n_passes):
        step = context.subcontext(task_name=f"pass {number + 1}")
        step.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata={})
        item = next(iterator)
        step.call_on_fit_task_end(
            estimator=estimator,
            X=X,
            y=y,
            metadata={},
            reconstruction_attributes=lambda item=item: attributes(item),
        )
        yield item
    context.call_on_fit_task_end(
        estimator=estimator, X=X, y=y, metadata={}, reconstruction_attributes={}
    )
