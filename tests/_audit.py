"""Helpers that attack a fit: an audit by thousands of runs, and an exact replay on a neighbour."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn import config_context

from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.mechanisms._losses import worst_shift
from skdpnoise.privacy import PrivacyLoss
from tests._statistics import FALSE_ALARM

# The package exports a function of the same name as the module.
_SOLVER = importlib.import_module("skdpnoise.solvers.coordinate_descent")


def clopper_pearson(hits: float, trials: float, error: float) -> tuple[float, float]:
    """Return exact bounds on a probability; each is wrong with probability at most `error`."""
    low = beta.ppf(error, hits, trials - hits + 1) if hits > 0 else 0.0
    high = beta.isf(error, hits + 1, trials - hits) if hits < trials else 1.0
    return float(low), float(high)


def epsilon_lower_bound(
    hits: float, false_hits: float, trials: float, delta: float, false_alarm: float = FALSE_ALARM
) -> float:
    """Return what epsilon must be at least, if an event was hit so often on each data set.

    (epsilon, delta)-privacy says P(event) <= exp(epsilon) P'(event) + delta.
    """
    low = clopper_pearson(hits, trials, false_alarm / 2)[0]
    high = clopper_pearson(false_hits, trials, false_alarm / 2)[1]
    return max(0.0, float(np.log((low - delta) / high))) if low > delta else 0.0


def audit(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    delta: float,
    false_alarm: float = FALSE_ALARM,
) -> float:
    """Return a lower bound on epsilon from runs on two neighbouring data sets, a row for each run.

    The first quarter of the runs chooses a half-space: the direction is Fisher's linear
    discriminant, which for Gaussian noise is the likelihood ratio; the threshold and its side are
    those with the largest bound. The other runs, which had no part in the choice, count how often
    it is hit, so that the bound exceeds the true epsilon with probability at most `false_alarm`.
    """
    quarter = len(first) // 4
    direction = _discriminant(first[:quarter], second[:quarter])
    scores = first @ direction, second @ direction
    trials = len(first) - quarter
    thresholds = np.quantile(np.concatenate([s[:quarter] for s in scores]), np.arange(1, 100) / 100)
    best, chosen = -1.0, (1.0, 0.0)
    for side in (1.0, -1.0):  # above the threshold points to the first data set, below to the other
        for threshold in thresholds:
            rates = [np.mean(side * s[:quarter] > side * threshold) for s in scores]
            hits, false_hits = (trials * rate for rate in rates[:: int(side)])
            bound = epsilon_lower_bound(hits, false_hits, trials, delta, false_alarm)
            if bound > best:
                best, chosen = bound, (side, threshold)
    side, threshold = chosen
    counts = [np.count_nonzero(side * s[quarter:] > side * threshold) for s in scores]
    return epsilon_lower_bound(*counts[:: int(side)], trials, delta, false_alarm)


def _discriminant(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    center, size = first.mean(axis=0), first.std(axis=0) + second.std(axis=0)
    varies = size > 1e-9 * np.abs(center)
    size = np.where(varies, size, np.inf)  # what does not vary tells nothing
    standard = [(runs - center) / size for runs in (first, second)]
    pooled = sum(np.atleast_2d(np.cov(runs.T)) for runs in standard) + 1e-6 * np.eye(size.size)
    return np.linalg.solve(pooled, standard[0].mean(axis=0) - standard[1].mean(axis=0)) / size


def released(model: Any) -> NDArray[np.float64]:
    """Return all numbers that a fitted model holds as one vector; infinite ranges count as 0."""
    features, standard, center, scale = model._standardised
    parts = (
        *(model.coef_path_, model.intercept_path_, model.clip_range_),
        *(features.center, features.scale, standard, center, scale),
    )
    flat = np.concatenate([np.ravel(part) for part in parts])
    return np.where(np.isfinite(flat), flat, 0.0)


@contextmanager
def calibrations_remembered() -> Iterator[None]:
    """Compute pure functions of public facts once: they take most of the time of a tiny fit.

    These are the calibration, what a mechanism costs, and scikit-learn's look at parameters.
    """
    memory: dict[tuple[Any, ...], AdditiveMechanism] = {}
    privacy_loss = AdditiveMechanism.privacy_loss
    losses: dict[AdditiveMechanism, PrivacyLoss] = {}

    def remembered_loss(mechanism: AdditiveMechanism) -> PrivacyLoss:
        if mechanism not in losses:
            losses[mechanism] = privacy_loss(mechanism)
        return losses[mechanism]

    def remembered(
        noise: str, sensitivity: Any, guarantee: Any, n_releases: int = 1, weights: Any = None
    ) -> AdditiveMechanism:
        bounds = (sensitivity.per_coordinate.tobytes(), sensitivity.l1, sensitivity.l2)
        given = None if weights is None else (np.shape(weights), np.asarray(weights).tobytes())
        key = (noise, bounds, guarantee, n_releases, given)
        if key not in memory:
            memory[key] = calibrate(
                noise, sensitivity, guarantee, n_releases=n_releases, weights=weights
            )
        return memory[key]

    with config_context(skip_parameter_validation=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdditiveMechanism, "privacy_loss", remembered_loss)
        replace_everywhere(patch, calibrate, remembered)
        yield


def replace_everywhere(patch: pytest.MonkeyPatch, function: Any, other: Any) -> None:
    """Replace a function in every module of the library that has imported it."""
    for module_name, module in sorted(sys.modules.items()):
        if module_name.startswith("skdpnoise."):
            for name in [n for n, value in vars(module).items() if value is function]:
                patch.setattr(module, name, other)


class Meeting(NamedTuple):
    """Where integers meet their noise: a released vector, or one sweep of the descent."""

    mechanism: AdditiveMechanism | None
    integers: NDArray[np.int64]
    swept: bool


class Transcript:
    """The integers of every release of a fit before noise is added, and how to replay them.

    Noise meets its integer at two places: where an array of draws is added to an array of integers
    (counts and sums), and in the descent, after a sweep. Both are hooked. With `replay`, the
    integers of this fit are noted, but those of the replayed transcript are used: then every
    released number is the same as there, as if the noise had made up for the difference. What the
    noise had to make up for is exactly what privacy must pay for.
    """

    def __init__(self, replay: Transcript | None = None) -> None:
        self.meetings: list[Meeting] = []
        self._replay = replay

    def meet(self, mechanism: AdditiveMechanism | None, integers: Any, swept: bool = False) -> Any:
        """Note the integers of one release, and return those to use."""
        self.meetings.append(Meeting(mechanism, np.array(integers, dtype=np.int64).ravel(), swept))
        if self._replay is None:
            return integers
        return self._replay.meetings[len(self.meetings) - 1].integers.reshape(np.shape(integers))

    @contextmanager
    def recording(self) -> Iterator[Transcript]:
        """Note all releases while the context lasts."""
        sample, sweep = AdditiveMechanism.sample, _SOLVER.private_sweep
        last: list[AdditiveMechanism | None] = [None]

        def hooked_sample(mechanism: AdditiveMechanism, *args: Any) -> NDArray[np.int64]:
            last[:] = [mechanism]
            draws = sample(mechanism, *args).view(_Draws)
            draws.meet = lambda integers: self.meet(mechanism, integers)
            return draws

        def hooked_sweep(*args: Any) -> int:
            return int(self.meet(last[0], sweep(*args), swept=True))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AdditiveMechanism, "sample", hooked_sample)
            patch.setattr(_SOLVER, "private_sweep", hooked_sweep)
            yield self

    def costs(self) -> list[tuple[AdditiveMechanism, float]]:
        """Return for each mechanism what this fit, against the replayed one, used of its resource.

        A quantum is 2**-bits of the scale, whatever the coordinate, so that the norm of the
        changes in units of the scale is that of the integers.
        """
        assert self._replay is not None
        assert len(self.meetings) == len(self._replay.meetings)
        changes: dict[AdditiveMechanism, list[NDArray[np.float64]]] = {}
        for here, there in zip(self.meetings, self._replay.meetings, strict=True):
            change = (here.integers - there.integers) * 2.0**-here.mechanism.bits
            changes.setdefault(here.mechanism, []).append(change)
        return [
            (mechanism, float(np.linalg.norm(np.concatenate(parts), mechanism.family.norm_order)))
            for mechanism, parts in changes.items()
        ]


def resource(mechanism: AdditiveMechanism) -> float:
    """Return the worst norm of change over scale that a mechanism's loss covers."""
    return worst_shift(
        mechanism.scale,
        mechanism.sensitivity,
        mechanism.n_releases,
        mechanism.bits,
        mechanism.family.norm_order,
    )


class _Draws(np.ndarray):
    """Noise that reports the integers that it is added to."""

    meet: Any

    def __array_finalize__(self, source: Any) -> None:
        self.meet = getattr(source, "meet", None)

    def __add__(self, integers: Any) -> Any:
        return self.meet(integers) + np.asarray(self)

    __radd__ = __add__
