"""Warnings before or after a fit whose guarantee holds, but promises less than it seems to.

What they look at is public: parameters, and the number of records as far as it is known.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import floor, log10
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.context import Said, context, within
from skdpnoise._utils.warnings import Once, PrivacyWarning
from skdpnoise.base.steps import private_parts
from skdpnoise.data.computed import is_part
from skdpnoise.sampling.words import SEEDED, is_seeded

SEE_TARGET = "More records, a larger epsilon or public bounds (target_bounds) would help."
_WEAK_EPSILON = 10.0
_NAMED = 8  # columns that a warning names
_INSIDE = ("skdpnoise", "sklearn", "joblib", "contextlib", "threading")
# Python forgets what it has shown whenever any warning filter changes, which scikit-learn does in
# every fit: its own "once for each place" would be once for each fit.
_shown = Once()


def advise(estimator: Any) -> None:
    """Warn, before anything is spent, of a seed and of a large ε."""
    if is_part(estimator):
        return
    name, epsilon = type(estimator).__name__, float(estimator.epsilon)
    if is_seeded(estimator.random_state):
        warn_once(
            f"{SEEDED} in {name}. Whoever knows or guesses the seed can compute the noise and "
            "subtract it. Leave random_state at None, except for tests and public data."
        )
    if epsilon > _WEAK_EPSILON:
        warn_once(
            f"The 'epsilon' parameter of {name} is {epsilon:g}, above {_WEAK_EPSILON:g}: one "
            f"record may make a result e^{epsilon:g} times as probable, which is hardly any "
            "protection. Pass epsilon=1 or less for a strong guarantee, and at most 10."
        )


def advise_on_public_number(estimator: Any, n_rows: int, n_groups: int | None = None) -> None:
    """Warn, before anything is spent, of a δ above 1/n where the number of records is public."""
    if estimator.adjacency != "add_remove":
        n = n_rows if n_groups is None else n_groups
        _advise_on_delta(estimator, n, warn_once, grouped=n_groups is not None)


def advise_on_estimated_number(estimator: Any, n_records: float | None, *, grouped: bool) -> None:
    """Warn of a δ above 1/n for the released number of records: post-processing of that release."""
    if n_records is not None:
        _advise_on_delta(estimator, n_records, warn_last, grouped=grouped)


def estimated_number(model: Any) -> float | None:
    """Return the largest noisy number of records that the private parts of a model released."""
    found = [part.estimator.privacy_.n_records for part in private_parts(model, fitted=True)]
    return max((n for n in found if n is not None), default=None)


def _advise_on_delta(
    estimator: Any, n: float, warn: Callable[[str, str], None], *, grouped: bool
) -> None:
    """Warn of a δ above 1/n: publishing one of n records by chance is (0, 1/n)-private."""
    name, delta = type(estimator).__name__, float(estimator.delta)
    if delta * n <= 1.0 or is_part(estimator):
        return
    unit, better = "group" if grouped else "record", 10.0 ** floor(-log10(10.0 * n))
    warn(
        f"The 'delta' parameter of {name} is {delta:g}, above 1/n for about "
        f"{float(f'{n:.2g}'):,.0f} {unit}s: a mechanism that publishes the data of one {unit}, "
        f"chosen at random, would pass. Pass delta={better:.0e} or less.",
        f"delta={delta} of {name}",  # a noisy number differs in every fit
    )


def left_to(known: list[Said]) -> AbstractContextManager[None]:
    """Add what :func:`warn_last` says to a list, and give no warning."""
    return within(held_warnings=known)


@contextmanager
def held_back() -> Iterator[None]:
    """Hold back what :func:`warn_last` says until a fit has stored what it was charged for."""
    # Where warnings are errors, the first one would else end a fit that is paid for without a
    # result. A fit within another leaves what it says to the outer one; a fit that fails says
    # nothing.
    known: list[Said] = []
    with left_to(known):
        yield
    try:
        for one in known:
            warn_last(*one)
    except PrivacyWarning as warning:
        warning.add_note("What the fit was charged stays spent; its result is stored.")
        raise


def warn_last(text: str, topic: str | None = None, first: bool = False) -> None:
    """Give a PrivacyWarning of what was released at the end of the fit, perhaps before others."""
    known = context().held_warnings
    if known is None:
        warn_once(text, topic)
    else:
        place = sum(before for *_, before in known) if first else len(known)
        known.insert(place, (text, topic, first))


def warn_of_hidden_target(said: str, epsilon: float) -> None:
    """Say of a fit what a location means that noise hides: a released fact."""
    warn_last(
        f"{said}: at epsilon={epsilon:g} the noise hides where the target is, so that 0, or the "
        f"middle of two public bounds, stands for its mean. {SEE_TARGET}",
        first=True,
    )


@contextmanager
def dry_run() -> Iterator[None]:
    """Say nothing of what is only tried."""
    with within(held_warnings=[], hidden=None):
        yield


def note_hidden(owner: str, hidden: NDArray[np.bool_]) -> None:
    """Tell a plan which columns of a step noise hid: a released fact."""
    found = context().hidden
    if found is not None:
        found.append((owner, hidden))


def named(estimator: Any, hidden: NDArray[np.bool_]) -> str:
    """Return how many columns are hidden, and which: of many the first."""
    names, places = getattr(estimator, "feature_names_in_", None), np.flatnonzero(hidden)
    shown = [str(k) if names is None else repr(str(names[k])) for k in places[:_NAMED]]
    more = f" and {places.size - _NAMED} more" if places.size > _NAMED else ""
    return f"{places.size} of {hidden.size} columns ({', '.join(shown)}{more})"


def cause_of_hiding(epsilon: float, *, typical_found: bool) -> str:
    """Return why columns were not found: what they are, or noise that would hide any."""
    if typical_found:
        return "each is constant, or missing, but for few of its values"
    return f"the noise at epsilon={epsilon:g} hides the scale of any column of so few records"


def warn_once(text: str, topic: str | None = None) -> None:
    """Give a PrivacyWarning at the line that called the library, once for each line and topic."""
    # Filters are obeyed: with "always" and "error" it is given each time.
    level, frame = 1, sys._getframe(1)
    while _module(frame).partition(".")[0] in _INSIDE and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    # Equal code of two files is equal to Python.
    place = topic or text, frame.f_code.co_filename, frame.f_lineno
    every_time = _action(text, frame) not in ("default", "module", "once")
    if not every_time and not _shown.is_new(frame.f_code, place):
        return
    warnings.warn(text, PrivacyWarning, stacklevel=level + 1)


def _action(text: str, frame: FrameType) -> str:
    """Return what Python's filters say of a warning in that frame."""
    module = _module(frame)
    for action, message, category, where, line in warnings.filters:
        if (
            issubclass(PrivacyWarning, category)
            and _matches(message, text)
            and _matches(where, module)
            and line in (0, frame.f_lineno)
        ):
            return action
    return "default"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "<unknown>"))


def _matches(pattern: Any, text: str) -> bool:
    """Return whether a filter's pattern, of which Python has three kinds, is for a text."""
    if pattern is None or isinstance(pattern, str):
        return pattern in (None, text)
    return bool(pattern.match(text))
