"""Checks of training data whose messages never show a value of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpnoise._validation import as_bounds, check_range, validated

__all__ = ["as_bounds", "check_training_data", "validated"]


def check_training_data(
    estimator: Any, X: Any, y: Any, *, y_numeric: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return X in column-major order, float32 or float64, and y; refuse what cannot be fitted.

    These checks look at the private data and are not paid for: whether a fit is refused tells that
    a value is missing, infinite or out of range. See "sharp edges" in the documentation.
    """
    X, y = validated(
        estimator,
        X,
        y,
        dtype=[np.float64, np.float32],
        order="F",
        ensure_min_samples=2,
        y_numeric=y_numeric,
    )
    check_range(X, "X", estimator)
    if y_numeric:
        y = y.astype(np.float64, copy=False)
        check_range(y, "y", estimator)
    return X, y
