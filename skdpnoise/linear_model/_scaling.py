"""From the user's units to standardised columns, privately or by public bounds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import Budget
from skdpnoise.mechanisms import private_location_scale
from skdpnoise.sampling import RandomWords

__all__ = ["LIMIT", "PrivacyWarning", "Standardisation", "standardise"]

LIMIT = 3.0  # standardised values are clipped to this many scales


class PrivacyWarning(UserWarning):
    """Warns that the noise hides what the model would need.

    Examples
    --------
    >>> issubclass(PrivacyWarning, UserWarning)
    True
    """


@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """Centres, scales and which columns are used.

    Parameters
    ----------
    center, scale : ndarray of shape (n_columns,)
        In the units of the columns.
    used : ndarray of bool of shape (n_columns,)
        False for columns that are constant or drowned in noise.
    """

    center: np.ndarray
    scale: np.ndarray
    used: np.ndarray

    def through_origin(self) -> Standardisation:
        """Return a standardisation that leaves 0 where it is, for models without an intercept."""
        return Standardisation(
            np.zeros_like(self.center), np.hypot(self.center, self.scale), self.used
        )

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the values in standard units, clipped; columns that are not used become 0."""
        standard = (np.asarray(values, dtype=np.float64) - self.center) / self.scale
        return np.where(self.used, np.clip(standard, -LIMIT, LIMIT), 0.0)

    @property
    def range(self) -> np.ndarray:
        """The interval that is not clipped, of shape (2, n_columns)."""
        reach = np.where(self.used, LIMIT * self.scale, np.inf)
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
    """Buy locations and scales of the features, or of the target; public bounds save most of it."""
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
        _warn(estimator, found.found, target=target)
    # Nothing within public bounds is clipped: a rare value may be what a column is about.
    widest = np.maximum(bounds[1] - found.location, found.location - bounds[0]) / LIMIT
    scale = np.where(np.isfinite(widest), np.maximum(found.scale, widest), found.scale)
    standard = Standardisation(found.location, scale, found.found)
    return standard if estimator.fit_intercept else standard.through_origin()


def _warn(estimator: Any, found: np.ndarray, *, target: bool) -> None:
    reason = (
        f"constant, or the noise at epsilon={estimator.epsilon:g} hides the scale. More records, a "
        "larger epsilon or public bounds"
    )
    name = type(estimator).__name__
    if target:
        text = f"{name} predicts 0 everywhere: the target is {reason} (target_bounds) would help."
    else:
        n_lost = np.count_nonzero(~found)
        text = (
            f"{name} leaves out {n_lost} of {found.size} columns: each is {reason} (feature_bounds)"
            " would help."
        )
    warnings.warn(text, PrivacyWarning, stacklevel=5)
