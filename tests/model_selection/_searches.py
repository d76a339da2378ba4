"""Data, searches and ledgers that tests of searches share."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPRandomizedSearchCV,
    DPStandardScaler,
)

CLASSIFIER = DPLogisticCD(feature_bounds=(-4.0, 4.0))
REGRESSOR = DPCoordinateDescentRegressor(feature_bounds=(-4.0, 4.0), target_bounds=(-8.0, 8.0))
TWO = Pipeline([("s", DPStandardScaler()), ("clf", DPLogisticCD())])
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(300, 3))
SCORE = X[:, 0] + 0.3 * RNG.normal(size=300)
LABELS = np.where(SCORE > 0, "yes", "no")


class Untouched:
    """A ledger that fails the test if anything is charged."""

    def charge(self, label, cost, **facts):
        raise AssertionError(f"{label} was charged")


class Reached(Exception):
    """Raised by a ledger that is charged: everything before was allowed."""


class Door:
    """A ledger that ends the fit at the charge."""

    def charge(self, label, cost, **facts):
        raise Reached


class Drawn:
    """A distribution of whatever it is given."""

    def __init__(self, *values):
        self.values = values
        self.count = 0

    def rvs(self, random_state=None):
        self.count += 1
        return self.values[self.count % len(self.values)]


def both(estimator, grid, **options):
    """The same search over a grid, and over distributions."""
    yield DPGridSearchCV(estimator, grid, **options)
    drawn = {name: Drawn(*values) for name, values in grid.items()}
    yield DPRandomizedSearchCV(estimator, drawn, n_iter=4, **options)


def rows_at(problem, places, X):
    """The numbers of the rows of X, no two of which begin alike, that fell to some places."""
    return np.flatnonzero(np.isin(X[:, 0], problem.rows(places).tables()["X"][:, 0]))
