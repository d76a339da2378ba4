"""Made-up records of the same columns as private ones, to try on them what may not fail later."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

__all__ = ["VALUES", "StandIn", "stand_in"]

VALUES = (0.25, 0.5, 0.75)  # where roots, logarithms and powers are harmless
_TEXT = "?"


class StandIn(NamedTuple):
    """Made-up records, and whether all columns are numbers, which every step can expect."""

    X: Any
    numeric: bool


def stand_in(X: Any, n_rows: int) -> StandIn | None:
    """Return made-up records in the form of X; None where its form is not known.

    Nothing of X is used but the names and types of its columns.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    n_rows : int
    """
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        values = np.resize(VALUES, (n_rows, X.shape[1])) if X.dtype.kind == "f" else 1
        return StandIn(np.full((n_rows, X.shape[1]), values, dtype=X.dtype), True)
    for library, column in (("pandas", _of_pandas), ("polars", _of_polars)):
        module = sys.modules.get(library)
        if module is None or type(X) is not module.DataFrame:
            continue
        made = [column(module, dtype, n_rows) for dtype in X.dtypes]
        if any(values is None for values, _ in made):
            return None
        frame = module.DataFrame({str(k): values for k, (values, _) in enumerate(made)})
        frame.columns = X.columns
        return StandIn(frame, all(numeric for _, numeric in made))
    return None


def _of_pandas(pandas: Any, dtype: Any, n_rows: int) -> tuple[Any, bool]:
    """Return a column of made-up values, and whether they are numbers."""
    kinds = pandas.api.types
    if kinds.is_numeric_dtype(dtype):  # truth values too
        values = np.resize(VALUES, n_rows) if kinds.is_float_dtype(dtype) else np.ones(n_rows, int)
        return pandas.Series(values).astype(dtype), True
    if isinstance(dtype, pandas.CategoricalDtype):
        return pandas.Series([_TEXT] * n_rows, dtype="category"), False
    if kinds.is_object_dtype(dtype) or kinds.is_string_dtype(dtype):
        return pandas.Series([_TEXT] * n_rows, dtype=dtype), False
    return None, False


def _of_polars(polars: Any, dtype: Any, n_rows: int) -> tuple[Any, bool]:
    """Return a column of made-up values, and whether they are numbers."""
    if dtype.is_numeric() or dtype == polars.Boolean:
        values = np.resize(VALUES, n_rows) if dtype.is_float() else np.ones(n_rows, int)
        return polars.Series(values).cast(dtype), True
    if dtype in (polars.String, polars.Categorical):
        return polars.Series([_TEXT] * n_rows).cast(dtype), False
    return None, False
