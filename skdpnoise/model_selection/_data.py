"""The data of a search, read as compositions read X and estimators read y."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.compose.columns import read_features
from skdpnoise.compose.data import check_data
from skdpnoise.compose.lists import read_once
from skdpnoise.estimators.targets import read_labels, read_numbers

_FEWEST = 4  # rows: two to fit, one to score, one to learn the units of the target


def checked_data(
    search: Any, X: Any, y: Any, *, classifier: bool
) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
    """Return X, y as an array, and the sorted labels of a classifier, which are public."""
    owner = type(search).__name__
    X, y = read_features(owner, X), read_once(owner, y)
    n_rows = check_data(owner, X, y)
    if n_rows < _FEWEST:
        raise ValueError(
            f"Found array with {n_rows} sample(s) while a minimum of {_FEWEST} is required by "
            f"{owner}."
        )
    if not classifier:
        return X, read_numbers(search, y, n_rows), None
    y = read_labels(owner, y, n_rows)
    return X, y, np.unique(y)
