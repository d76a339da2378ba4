"""Helpers that attack a fit: numbers of thousands of runs, judged by the package's own audit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.inspection._attack import choose_attack
from skdpnoise.inspection._bounds import epsilon_bound
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.mechanisms.allocation import worst_shift
from tests._statistics import FALSE_ALARM


def audit(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    delta: float,
    false_alarm: float = FALSE_ALARM,
) -> float:
    """Return a lower bound on epsilon from runs on two neighbouring data sets, a row for each run.

    The first quarter of the runs chooses a score and a threshold; the other runs, which had no part
    in the choice, count how often it is hit, so that the bound exceeds the true epsilon with
    probability at most `false_alarm`.
    """
    quarter = len(first) // 4
    trials = len(first) - quarter
    attack = choose_attack(first[:quarter], second[:quarter], trials, delta, false_alarm)
    scores = attack.score(first[quarter:]), attack.score(second[quarter:])
    counts = attack.for_epsilon.hits(*scores)
    return max(0.0, float(epsilon_bound(*counts, trials, delta, false_alarm)))


def released(model: Any) -> NDArray[np.float64]:
    """Return all numbers that a fitted model holds as one vector; infinite ranges count as 0."""
    features, standard, center, scale = model._standardised
    parts = (
        *(model.coef_path_, model.intercept_path_, model.clip_range_),
        *(features.center, features.scale, standard, center, scale),
    )
    flat = np.concatenate([np.ravel(part) for part in parts])
    return np.where(np.isfinite(flat), flat, 0.0)


def resource(mechanism: AdditiveMechanism) -> float:
    """Return the worst norm of change over scale that a mechanism's loss covers."""
    return worst_shift(
        mechanism.scale,
        mechanism.sensitivity,
        mechanism.n_releases,
        mechanism.bits,
        mechanism.family.norm_order,
    )
