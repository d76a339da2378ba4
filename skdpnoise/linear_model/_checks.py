"""Checks of training data whose messages never show a value of the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdpnoise.estimators.parameters import check_memory, check_size, check_within
from skdpnoise.estimators.tables import read_table
from skdpnoise.estimators.targets import read_labels, read_numbers
from skdpnoise.linear_model._defaults import MOST_PASSES
from skdpnoise.linear_model._descent import error_weights
from skdpnoise.linear_model._records import Settings

__all__ = ["check_training_data"]

_MATRICES = 8  # of p by p that are held at once
_SUM, _QUANTA = 2.0**62, 2.0**26
_LARGEST_GROWTH = 16.0  # as a logarithm: more than what is refused for itself


def check_training_data(
    estimator: Any, settings: Settings, X: Any, y: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return X in column-major order, float32 or float64, and y; refuse what cannot be fitted."""
    # These checks look at the private data and are not paid for: whether a fit is refused tells
    # that a value is missing, infinite or out of range. See "sharp edges" in the documentation.
    X = read_table(estimator, X, order="F", ensure_min_samples=2)
    n_rows, n_columns = X.shape
    check_size(estimator, n_rows, n_columns)
    _check_plan(estimator, n_columns)
    _check_sums(settings, n_rows, n_columns)
    if is_classifier(estimator):
        return X, read_labels(settings.owner, y, n_rows)
    return X, read_numbers(estimator, y, n_rows)


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


def _check_sums(settings: Settings, n_rows: int, n_columns: int) -> None:
    """Refuse noise scales so far apart that sums of integers would leave 64 bits."""
    # All scales span the same number of grid steps, chosen so that the largest one is no fewer than
    # 2**24 of what a record can change (`mechanisms.calibrate`); the smallest is then as many more
    # as it is smaller. Scales fall as the cube root of weights, or more slowly, and at most as the
    # budget of the passes grows.
    weights = error_weights(settings, n_columns)
    growth = 1.0 if settings.budget_growth == "auto" else float(settings.budget_growth)
    n_passes = MOST_PASSES if settings.n_passes == "auto" else int(settings.n_passes)
    growing = min(n_passes * math.log(growth), _LARGEST_GROWTH)
    apart = float(np.cbrt(weights.max() / weights.min())) * math.exp(growing)
    most = _SUM / (n_rows * _QUANTA)
    if apart > most:
        raise ValueError(
            f"The 'error_weights' or the 'budget_growth' parameter of {settings.owner} "
            f"makes noise scales {apart:.3g} times as large as others, too far apart for {n_rows} "
            f"rows: sums of their integers would leave 64 bits. Use at most {most:.3g}."
        )
