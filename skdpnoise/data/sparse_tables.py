"""Sparse tables of private data: rows in compressed form, checked and never made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import validate_data

from skdpnoise._utils.silence import silence
from skdpnoise.data.computed import is_computed
from skdpnoise.data.redaction import without_values
from skdpnoise.data.tables import FLOATS, LARGEST, check_values, survivable


def read_sparse(estimator: Any, X: Any, *, reset: bool = True) -> Any:
    """Return a sparse X as a new CSR array of float32 or float64, finite, each entry once."""
    owner = type(estimator).__name__
    refusal = (
        f"{owner} cannot read the sparse X as rows of numbers: convert it with '.tocsr()', and "
        "check its numbers, its indices and its shape."
    )
    with silence(), without_values(refusal):
        _check_places(X)
        table = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=FLOATS,
            accept_sparse="csr",
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
        # Whether it is canonical is looked at, not believed.
        rows = csr_array((table.data, table.indices, table.indptr), shape=table.shape)
        rows.check_format(full_check=True)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
    largest = LARGEST if reset else np.inf
    if is_computed("X", estimator):
        rows = rows.copy()
        survivable(rows.data, largest=largest, keeps_subnormal=not reset)
    elif rows.data.size:
        check_values(owner, "X", rows.data, largest=largest, keeps_subnormal=not reset)
    return rows


def _check_places(X: Any) -> None:
    """Fail where indices are not those of a table, before compiled loops trust them."""
    if X.format != "coo":
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        return
    for places, size in zip(X.coords, X.shape, strict=True):
        if places.size and not 0 <= places.min() <= places.max() < size:
            raise IndexError
