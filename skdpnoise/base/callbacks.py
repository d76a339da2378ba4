"""scikit-learn's callbacks where the installed version has them, nothing where it has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

__all__ = ["CallbackSupportMixin", "collect_passes", "follow_epochs", "is_followed"]
__all__ += ["with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn below 1.9: stand-ins of the same names, hence the redefinition

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin; offers no ``set_callbacks``."""

    def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
        return fit


def is_followed(estimator: Any) -> bool:
    return bool(getattr(estimator, "_skl_callbacks", None))


def collect_passes(
    estimator: Any,
    passes: Iterable[np.ndarray],
    n_passes: int,
    attributes: Callable[[np.ndarray], dict[str, Any]],
    data: tuple[Any, Any],
    finish: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return all iterates, stacked, and tell the estimator's callbacks of the passes."""
    # `data` are X and y; `finish` makes the iterates that are returned, and that the end of the fit
    # shows, from those of the passes.
    # `attributes` makes the fitted attributes from the iterates so far, for callbacks that ask for
    # a fitted estimator. A callback's wish to stop early is not followed: the number of passes is
    # fixed before the data are seen, since a stopping rule that looks at private data would have to
    # be charged for.
    X, y = data
    common = {"estimator": estimator, "X": X, "y": y, "metadata": {}}
    fit = estimator._init_callback_context(max_subtasks=n_passes)
    fit.call_on_fit_task_begin(**common)
    iterator = iter(passes)
    for number in range(n_passes):
        task = fit.subcontext(task_name=f"pass {number + 1}")
        task.call_on_fit_task_begin(**common)
        iterate = next(iterator)
        if number == 0:
            path = np.empty((n_passes, *iterate.shape))
        path[number] = iterate
        rebuild = partial(attributes, path[: number + 1])
        task.call_on_fit_task_end(**common, reconstruction_attributes=rebuild)
    finished = finish(path)
    fit.call_on_fit_task_end(**common, reconstruction_attributes=lambda: attributes(finished))
    return finished


def follow_epochs(
    estimator: Any,
    epochs: Iterable[Any],
    n_epochs: int,
    attributes: Callable[[Any], dict[str, Any]],
    data: tuple[Any, Any],
) -> dict[str, Any]:
    """Run a training, tell the estimator's callbacks of its epochs, and return what is fitted."""
    # As above: `attributes` makes the fitted attributes from the state after an epoch, and no
    # callback stops a training.
    if not is_followed(estimator):
        for state in epochs:
            last = state
        return attributes(last)
    common = {"estimator": estimator, "X": data[0], "y": data[1], "metadata": {}}
    fit = estimator._init_callback_context(max_subtasks=n_epochs)
    fit.call_on_fit_task_begin(**common)
    iterator = iter(epochs)
    for number in range(n_epochs):
        task = fit.subcontext(task_name=f"epoch {number + 1}")
        task.call_on_fit_task_begin(**common)
        last = next(iterator)
        rebuild = partial(attributes, last)
        task.call_on_fit_task_end(**common, reconstruction_attributes=rebuild)
    fitted = attributes(last)
    fit.call_on_fit_task_end(**common, reconstruction_attributes=lambda: fitted)
    return fitted
