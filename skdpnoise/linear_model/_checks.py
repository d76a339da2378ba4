"""Checks of training data whose messages never show a value of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpnoise.estimators.parameters import as_bounds, check_memory, check_size, check_within
from skdpnoise.estimators.tables import read_table
from skdpnoise.estimators.targets import read_labels, read_numbers

__all__ = ["as_bounds", "check_training_data"]

_MATRICES = 8  # of p by p that are held at once


def check_training_data(
    estimator: Any, X: Any, y: Any, *, y_numeric: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return X in column-major order, float32 or float64, and y; refuse what cannot be fitted.

    These checks look at the private data and are not paid for: whether a fit is refused tells that
    a value is missing, infinite or out of range. See "sharp edges" in the documentation.
    """
    X = read_table(estimator, X, order="F", ensure_min_samples=2)
    n_rows, n_columns = X.shape
    check_size(estimator, n_rows, n_columns)
    _check_plan(estimator, n_columns)
    if y_numeric:
        return X, read_numbers(estimator, y, n_rows)
    return X, read_labels(type(estimator).__name__, y, n_rows)


def _check_plan(estimator: Any, n_columns: int) -> None:
    """Refuse parameters and sizes that a later step would not bear."""
    # Of standardised records: what is beyond these only takes digits from double precision.
    for name, low in (("clip", 1e-100), ("row_norm", 1e-50), ("alpha", 0.0)):
        if hasattr(estimator, name):
            check_within(estimator, name, low, 1e100)
    if getattr(estimator, "solver", "gram") != "gradient" and hasattr(estimator, "row_norm"):
        check_memory(
            type(estimator).__name__,
            8.0 * _MATRICES * (n_columns + 2) ** 2,
            f"second moments of {n_columns} columns",
            "Choose fewer columns, or solver='gradient' of DPCoordinateDescentRegressor.",
        )
