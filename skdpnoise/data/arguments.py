"""The data of compositions: of a form that steps can be fitted to, and never quoted."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _num_samples

from skdpnoise._utils.silence import silence
from skdpnoise.data.groups import group_codes
from skdpnoise.data.lists import read_once, target_without_lists
from skdpnoise.data.sources import by_storage


def read_beside(owner: str, X: Any, y: Any, groups: Any) -> tuple[Any, Any, int, int | None]:
    """Return y and groups as steps get them beside X, and how many rows and groups there are."""
    # Steps check rows in parts themselves.
    in_memory = partial(_read_in_memory, owner)
    return by_storage(X, in_memory, lambda rows, *others: (*others, len(rows), None), y, groups)


def _read_in_memory(owner: str, X: Any, y: Any, groups: Any) -> tuple[Any, Any, int, int | None]:
    target = target_without_lists(read_once(owner, y, name="y"))
    n_rows = check_data(owner, X, target)
    if groups is None:
        return target, None, n_rows, None
    with silence():
        codes = group_codes(f"{owner}.fit", groups, n_rows)
    return target, codes, n_rows, int(codes.max()) + 1


def check_data(owner: str, X: Any, y: Any) -> int:
    """Return the number of rows of data that steps can be fitted to."""
    if any(np.ma.isMaskedArray(data) for data in (X, y)):
        raise TypeError(
            f"{owner} does not support masked arrays: data would be read without their mask. Fill "
            "what is masked by a public constant, as in numpy.ma.filled(..., 0.0)."
        )
    if issparse(X):
        raise TypeError(
            f"Sparse data were passed to {owner}, but dense data are required: private steps read "
            "every value. Convert X with X.toarray()."
        )
    n_rows = _n_rows(owner, "X", X)
    if y is not None and _n_rows(owner, "y", y) != n_rows:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[n_rows, _n_rows(owner, 'y', y)]}"
        )
    return n_rows


def _n_rows(owner: str, name: str, data: Any) -> int:
    """Return the number of entries, or say of which data there is none."""
    try:
        with silence():
            return int(_num_samples(data))
    except Exception:
        kind = type(data).__name__
    raise TypeError(  # outside the handler, so that the quoting error is not attached to it
        f"{owner} needs {name} as an array, a frame or a list with an entry for each record. "
        f"Got an object of type {kind}, which has no length."
    )
