"""Helpers that attack a fit: numbers of thousands of runs, judged by the package's own audit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdpnoise.inspection.auditing._attack import choose_attack
from skdpnoise.inspection.auditing._bounds import epsilon_bound
from skdpnoise.ledger import Account
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.mechanisms.allocation import worst_shift
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sensitivity import SensitivityProfile
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


class Histogram(BaseEstimator):
    """Counts the records in forty bins; declares for one bin, and for all, what it is told to.

    Replacing a record moves two bins by one.
    """

    def __init__(
        self,
        single: float = 0.5,
        joint: float = 1.0,
        noise: str = "iid_gaussian",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace_one",
    ) -> None:
        self.single = single
        self.joint = joint
        self.noise = noise
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency

    def fit(self, X: Any, y: Any = None) -> Histogram:
        """Release the counts of the first column."""
        l1, l2 = (2.0 * self.joint, None) if "laplace" in self.noise else (None, 2.0**0.5)
        bounds = {"l1": l1, "l2": None if l2 is None else self.joint * l2}
        profile = SensitivityProfile(np.full(40, self.single), **bounds)
        guarantee = PrivacyGuarantee(self.epsilon, self.delta)
        mechanism = calibrate(self.noise, profile, guarantee)
        Account(guarantee).charge("counts", mechanism)
        bins = np.digitize(np.asarray(X)[:, 0], np.linspace(-3.0, 3.0, 39))
        self.counts_ = mechanism.release(np.bincount(bins, minlength=40))
        return self
