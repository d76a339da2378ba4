"""Models that predict a constant, or one label, say so first: by released numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpnoise.base.advice import warn_last
from skdpnoise.data.computed import asked_epsilon
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._standard_units import Standardisation

_MORE = "More records or a larger epsilon would help"
_LEAD = 2.0  # standard deviations of scores, beyond which one of 40 is


def warn_of_constant(model: Any, *, penalised: bool) -> None:
    """Say of a fitted model that it is a constant, or labels nearly all records alike."""
    features, coef, _, scale = model._standardised
    name, at = type(model).__name__, f"at epsilon={asked_epsilon(model):g}"
    if not (scale and features.used.any()):  # what did not find them has said it
        return
    if not coef[:, :-1].any():
        why, remedy = f"{at} its slopes are no larger than their noise", ""
        if penalised:
            why, remedy = f"{why}, or than their penalty", ", as would a smaller alpha"
        text = f"{name} {constant_of(model)}: {why}. {_MORE}, or fewer columns{remedy}."
        warn_last(text, first=True)
    elif hasattr(model, "classes_") and has_one_label(features, coef):
        warn_last(
            f"{name} predicts one label for nearly all rows: {at} the columns tell less of it than "
            f"how frequent it is. {_MORE}. Scores still put rows in order.",
            first=True,
        )


def constant_of(model: Any) -> str:
    """Return what a model says for all rows where it has no slopes."""
    return "predicts one constant" if model.fit_intercept else "predicts 0 everywhere"


def has_one_label(features: Standardisation, coef: np.ndarray) -> bool:
    """Return whether one output leads by more than two standard deviations of scores."""
    spread = np.broadcast_to(features.spread, features.used.shape)
    # Columns that share one unit of norm are not centred: they have about equal parts of it.
    grouped = 0.0 if features.groups is None else features.groups != NO_GROUP
    levels = coef[:, -1] + coef[:, :-1] @ (grouped * spread**2)
    outputs, slopes = levels, coef[:, :-1] * spread
    if outputs.size == 1:  # of two classes, whose other output is 0
        outputs, slopes = np.append(outputs, 0.0), np.vstack([slopes, 0.0 * slopes])
    first = int(np.argmax(outputs))
    others = np.arange(outputs.size) != first
    lead = outputs[first] - outputs[others]
    return bool((lead > _LEAD * np.linalg.norm(slopes[first] - slopes[others], axis=1)).all())
