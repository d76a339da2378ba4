"""From the user's units to standardised columns, privately or by public bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpnoise.estimators.private_fit import warn_last
from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import Budget
from skdpnoise.mechanisms import calibrate
from skdpnoise.queries import private_location_scale
from skdpnoise.queries.searched_location import SearchedLocation, search_location
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import clipped_sum, histogram_counts

__all__ = ["LIMIT", "Standardisation", "release_log_odds", "standardise", "standardise_target"]

LIMIT = 3.0  # standardised values are clipped to this many scales
# And to this many where public bounds are wider: a value farther off has more leverage on second
# moments than it deserves. A column of two values loses nothing, however rare the rarer one is.
FARTHEST = 20.0
# A target within bounds is hidden if the noise of its mean is more than this part of its scale;
# bounds that are wide, in units of ±3 scales, make the noise of the model as large.
_HIDDEN, _HIDDEN_BETWEEN_TIGHT_BOUNDS, _WIDE = 0.25, 0.3, 2.0
_NOISY = 0.15  # the noise of a location that is worth a warning, in scales


@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """Centres, scales and which columns are used.

    Parameters
    ----------
    center, scale : ndarray of shape (n_columns,)
        In the units of the columns.
    used : ndarray of bool of shape (n_columns,)
        False for columns that are constant or drowned in noise.
    limit : ndarray of shape (n_columns,)
        Standardised values are clipped to ± this.
    """

    center: np.ndarray
    scale: np.ndarray
    used: np.ndarray
    limit: np.ndarray

    @property
    def reach(self) -> np.ndarray:
        """The limit in units of ±3: above 1 where bounds are wide for the spread of the column."""
        return self.limit / LIMIT

    def widened(self) -> Standardisation:
        """Return a standardisation with scales so large that the limit is ±3 everywhere."""
        three = np.full_like(self.limit, LIMIT)
        return Standardisation(self.center, self.scale * self.reach, self.used, three)

    def capped(self) -> Standardisation:
        """Return a standardisation that clips what is far from all the rest of its column."""
        limit = np.minimum(self.limit, FARTHEST)
        return Standardisation(self.center, self.scale, self.used, limit)

    def through_origin(self) -> Standardisation:
        """Return a standardisation that leaves 0 where it is, for models without an intercept."""
        scale = np.hypot(self.center, self.scale)
        widest = np.hypot(self.center, self.scale * self.reach)
        return Standardisation(np.zeros_like(self.center), scale, self.used, LIMIT * widest / scale)

    def beside(self, other: Standardisation) -> Standardisation:
        """Return the standardisation of these columns followed by those of another."""
        fields = ("center", "scale", "used", "limit")
        return Standardisation(
            *(np.concatenate([getattr(self, f), getattr(other, f)]) for f in fields)
        )

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the values in standard units, clipped; columns that are not used become 0."""
        standard = (np.asarray(values, dtype=np.float64) - self.center) / self.scale
        return np.where(self.used, np.clip(standard, -self.limit, self.limit), 0.0)

    @property
    def range(self) -> np.ndarray:
        """The interval that is not clipped, of shape (2, n_columns)."""
        reach = np.where(self.used, self.limit * self.scale, np.inf)
        return np.stack([self.center - reach, self.center + reach])


def standardise(
    estimator: Any,
    columns: Sequence[np.ndarray],
    bounds: np.ndarray,
    budget: Budget,
    account: Account,
    words: RandomWords,
    n_samples: float,
    *,
    target: bool = False,
) -> Standardisation:
    """Buy locations and scales of the features, or of the target; public bounds save most of it.

    Nothing within public bounds is clipped yet: a rare value may be what a column is about.
    """
    found = private_location_scale(
        list(columns),
        budget.target if target else budget.features,
        noise=budget.noise,
        adjacency=account.guarantee.adjacency,
        bounds=(bounds[0], bounds[1]),
        n_samples=n_samples,
        random_state=words,
        charge=lambda label, mechanism: account.charge(
            f"target: {label}" if target else label, mechanism
        ),
    )
    if not found.found.all():
        _warn(estimator, found.found)
    widest = np.maximum(bounds[1] - found.location, found.location - bounds[0]) / LIMIT
    wide = np.where(np.isfinite(widest), np.maximum(found.scale, widest), found.scale)
    limit = LIMIT * wide / found.scale
    standard = Standardisation(found.location, found.scale, found.found, limit)
    return standard if estimator.fit_intercept else standard.through_origin()


def standardise_target(
    estimator: Any,
    y: np.ndarray,
    bounds: np.ndarray,
    budget: Budget,
    account: Account,
    words: RandomWords,
    n_samples: float,
) -> tuple[Standardisation, Budget]:
    """Buy location and scale of the target; return them and the budget of what comes after.

    A target without bounds is searched for. So is one whose bounds turn out to be much wider than
    its spread, from what was meant for features and model: whether that is so is decided by
    released numbers.
    """
    if budget.first == "scaling":
        common = (bounds, budget, account, words, n_samples)
        standard = standardise(estimator, [y], *common, target=True)
        # In halves of the interval: sums in units of very narrow bounds would leave the doubles.
        one_sum = clipped_sum(-1.0, 1.0, account.guarantee.adjacency)
        noise = calibrate(budget.noise, one_sum, budget.target.share(0.5)).standard_deviation
        half = 0.5 * (bounds[1] - bounds[0])
        hidden = _HIDDEN if standard.reach[0] > _WIDE else _HIDDEN_BETWEEN_TIGHT_BOUNDS
        if noise[0] / n_samples * half[0] <= hidden * standard.scale[0]:
            return standard, budget
        budget = budget.with_search(n_samples)
    found = search_location(
        y,
        budget.search,
        noise=budget.noise,
        adjacency=account.guarantee.adjacency,
        bounds=(float(bounds[0, 0]), float(bounds[1, 0])),
        n_samples=n_samples,
        random_state=words,
        charge=lambda label, mechanism: account.charge(f"target: {label}", mechanism),
    )
    _warn_of_constant(estimator, found)
    standard = Standardisation(
        np.array([found.location]),
        np.array([found.scale]),
        np.array([found.found]),
        np.array([LIMIT]),
    )
    return (standard if estimator.fit_intercept else standard.through_origin()), budget


def release_log_odds(
    outputs: Sequence[np.ndarray],
    budget: Budget,
    account: Account,
    words: RandomWords,
    n_samples: float,
) -> np.ndarray:
    """Release how many records are in each class; return the log-odds of every output.

    Without an intercept they are 0, and nothing is released. A record is one count
    (:func:`~skdpnoise.sensitivity.histogram_counts`): of two classes, the output's and the other;
    of more, its own. Shares are kept as far from 0 and 1 as the noise is wide.
    """
    if budget.first == "nothing":
        return np.zeros(len(outputs))
    adjacency = account.guarantee.adjacency
    positive = np.array([np.count_nonzero(output > 0) for output in outputs])
    if positive.size == 1:
        positive = np.array([outputs[0].size - positive[0], positive[0]])
    mechanism = calibrate(budget.noise, histogram_counts(positive.size, adjacency), budget.search)
    account.charge("class shares", mechanism)
    counts = mechanism.release(positive, words)
    least = max(0.5, float(mechanism.standard_deviation[0]))
    counts = np.maximum(counts, least)
    others = counts.sum() - counts
    return np.log(counts / others)[-len(outputs) :]


def _warn_of_constant(estimator: Any, found: SearchedLocation) -> None:
    """Say how noisy the location of the target is, by released numbers and public ones."""
    if found.found and found.error <= _NOISY * found.scale:
        return
    name = type(estimator).__name__
    about = (
        f"at epsilon={estimator.epsilon:g} the noise on the location of the target has a standard "
        f"deviation of about {found.error:.2g} in its units"
    )
    if found.found:
        about += f", of a scale of {found.scale:.2g}"
    elif estimator.fit_intercept:
        name += " predicts one constant: the target is constant, or its scale is hidden;"
    else:
        name += " predicts 0 everywhere: the target is constant, or its scale is hidden;"
    remedy = "More records, a larger epsilon or public bounds (target_bounds) would help."
    warn_last(f"{name} {about}. {remedy}")


def _warn(estimator: Any, found: np.ndarray) -> None:
    n_lost = np.count_nonzero(~found)
    text = (
        f"{type(estimator).__name__} leaves out {n_lost} of {found.size} columns: each is "
        f"constant, or the noise at epsilon={estimator.epsilon:g} hides the scale. More records, a "
        "larger epsilon or public bounds (feature_bounds) would help."
    )
    warn_last(text)
