"""Misuse warnings: a private estimator within an ordinary pipeline or search.

scikit-learn tells a step nothing of the pipeline around it: ``clone``, tags, metadata routing and
callbacks pass no reference, and none may be set on a user's object. What can be known exactly is
what is running: the code objects on the stack and the objects they were called with. So a pipeline
is recognised if the code of *its own class's* ``fit`` is running with *it* as first argument, and a
search if the code of scikit-learn's own search or validation is. Names play no part. Fits in other
processes are not seen.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, NamedTuple

from sklearn import model_selection
from sklearn.base import BaseEstimator

from skdpnoise._utils.warnings import Once, PrivacyWarning
from skdpnoise.base.compositions import holds_private
from skdpnoise.base.register import is_private
from skdpnoise.base.steps import UnpaidStepError, taken_apart
from skdpnoise.data.computed import is_part


def _code(function: Any) -> CodeType | None:
    return getattr(inspect.unwrap(function), "__code__", None)


_SEARCHES = {
    _code(function)
    for function in (
        model_selection.GridSearchCV.fit,  # of the base of all searches
        model_selection.cross_validate,
        model_selection.cross_val_score,
        model_selection.cross_val_predict,
        model_selection.learning_curve,
        model_selection.validation_curve,
        model_selection.permutation_test_score,
    )
}
_FITS = ("fit", "fit_transform", "fit_predict", "partial_fit")
_OURS = ("sklearn.", "joblib.", "skdpnoise.")  # whose lines a warning does not point at
_told = Once()


class _Level(NamedTuple):
    """A call on the stack: how far out it is, what it was called with first, and of what kind."""

    depth: int
    subject: Any
    is_search: bool


def warn_of_misuse(estimator: Any) -> None:
    """Warn once each of an ordinary search, or a composition without privacy, around a fit."""
    levels = _around(estimator)
    compositions = [level for level in levels if not level.is_search]
    if levels and levels[-1].is_search:  # else it is a part of what the composition does
        _warn_of_scores(estimator, levels[-1])
    if compositions:
        _warn_of_steps(estimator, compositions[-1], levels[-1])


def clone_with_ledger(estimator: Any) -> Any:
    """Return an unfitted copy with the same ledger, not with a copy of it."""
    # Where an ordinary search makes it, warn, once: its fits may run in other processes.
    levels = _around(estimator)
    if levels and levels[-1].is_search:
        _warn_of_scores(estimator, levels[-1])
    copy = BaseEstimator.__sklearn_clone__(estimator)
    copy.ledger = estimator.ledger
    return copy


def _around(estimator: Any) -> list[_Level]:
    """Return the searches and the compositions that are running around a fit, outwards."""
    # None are returned if another private estimator is among them: it answers for all that it runs.
    levels: list[_Level] = []
    for depth, frame in _stack() if not is_part(estimator) else ():
        code = frame.f_code
        subject = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if code in _SEARCHES:
            levels.append(_Level(depth, subject, is_search=True))
        elif subject is not estimator and _fits(subject, code):
            if is_private(subject):
                return []
            with suppress(Exception):  # of an object's own get_params: a warning breaks no fit
                if holds_private(subject):
                    levels.append(_Level(depth, subject, is_search=False))
    return levels


def _stack() -> Iterator[tuple[int, FrameType]]:
    depth = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield depth, frame
        depth, frame = depth + 1, frame.f_back


def _fits(subject: Any, code: CodeType) -> bool:
    """Return whether the code is that of a fit of the object's own class, or of one it inherits."""
    cls = type(subject)
    if not hasattr(cls, "fit") or not hasattr(cls, "get_params"):
        return False
    return any(_code(getattr(cls, name)) is code for name in _FITS if hasattr(cls, name))


def _warn_of_scores(estimator: Any, search: _Level) -> None:
    name, ledger = type(estimator).__name__, getattr(estimator, "ledger", None)
    spends = "charges every fit of this search or validation to its ledger"
    if ledger is None:
        spends = "spends its guarantee on every fit of this search or validation"
    text = (
        f"{name} {spends}, but the scores are computed from private data without noise. They are "
        "not private, and neither is a choice made by them. DPGridSearchCV and "
        "DPRandomizedSearchCV keep both private."
    )
    _warn(text, search.subject if ledger is None else ledger, "scores", search.depth)


def _warn_of_steps(estimator: Any, composition: _Level, outermost: _Level) -> None:
    name, around = type(estimator).__name__, type(composition.subject).__name__
    try:
        taken_apart(composition.subject, owner=around, parameter="steps")
    except UnpaidStepError as error:
        listed = "; ".join(error.refused)
        text = (
            f"{name} is fitted within {around}, which holds steps that may learn from the "
            f"data without privacy. {listed}. The guarantee of {name} does not cover them. "
            "DPPipeline refuses such steps before anything is fitted. If you know that a step "
            "learns nothing private, list its name in 'public'."
        )
        _warn(text, outermost.subject, listed, outermost.depth)
    except ValueError:
        return  # the composition's own fit says what is wrong with it


def _warn(text: str, subject: Any, said: str, depth: int) -> None:
    """Warn once of the same thing for the same object, at the caller of what is outermost."""
    if not _told.is_new(subject, said):
        return
    # This frame stands one further in than the one from which depths are counted.
    outside = (
        index
        for index, frame in list(_stack())
        if index > depth + 1 and not frame.f_globals.get("__name__", "").startswith(_OURS)
    )
    warnings.warn(text, PrivacyWarning, stacklevel=1 + next(outside, depth + 1))
