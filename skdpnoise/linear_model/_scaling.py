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
    """Centres, scales and which columns are used; features first, then the target if there is one.

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

    def __getitem__(self, columns: slice) -> Standardisation:
        return Standardisation(self.center[columns], self.scale[columns], self.used[columns])

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
) -> Standardisation:
    """Buy locations and scales; public bounds save most of the work."""
    found = private_location_scale(
        list(columns),
        budget.scaling,
        noise=budget.noise,
        adjacency=account.guarantee.adjacency,
        bounds=(bounds[0], bounds[1]),
        n_samples=n_samples,
        random_state=words,
        charge=account.charge,
    )
    if not found.found.all():
        warnings.warn(
            f"{type(estimator).__name__} leaves out {np.count_nonzero(~found.found)} of "
            f"{found.found.size} columns: they are constant, or the noise at epsilon="
            f"{estimator.epsilon:g} hides their scale. More records, a larger epsilon or public "
            "bounds (feature_bounds, target_bounds) would help.",
            PrivacyWarning,
            stacklevel=4,
        )
    standard = Standardisation(found.location, found.scale, found.found)
    return standard if estimator.fit_intercept else standard.through_origin()
