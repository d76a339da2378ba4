"""Rows times a matrix, each by itself: the same bits beside whatever other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.kernels.columns import load
from skdpnoise.kernels.sizes import rows_at_once

__all__ = ["row_products"]


def row_products(
    X: NDArray[Any], matrix: ArrayLike, center: ArrayLike | None = None
) -> NDArray[np.float64]:
    r"""Return the products of rows with a matrix, in double precision.

    .. math:: y_{ik} = \sum_j (x_{ij} - c_j) M_{jk}

    Sums run over j in turn, and vector lanes are different rows. Libraries of linear algebra take
    other orders for other numbers of rows, so that one more row changes last digits of the others:
    what is learnt from the products would then hang on more than one row each.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Of any real dtype.
    matrix : array-like of shape (n_features, n_outputs)
        M.
    center : array-like of shape (n_features,) or None, default=None
        c; 0 by default.

    Returns
    -------
    ndarray of shape (n_samples, n_outputs)

    Examples
    --------
    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), [[1.0], [10.0]], center=[1.0, 1.0])
    array([[10.],
           [32.]])
    """
    factors = np.asarray(matrix, dtype=np.float64)
    middle = np.zeros(len(factors)) if center is None else np.asarray(center, dtype=np.float64)
    n_rows, n_outputs = len(X), factors.shape[1]
    found = np.empty((n_rows, n_outputs))
    block = max(1, min(n_rows, rows_at_once(n_outputs)))
    tile, sums, terms = (np.empty((size, block)) for size in (len(factors), n_outputs, n_outputs))
    for begin in range(0, n_rows, block):
        n = load([X], begin, min(begin + block, n_rows), tile)
        total, term = sums[:, :n], terms[:, :n]
        total[:] = 0.0
        for values, shift, row in zip(tile[:, :n], middle, factors, strict=True):
            np.multiply(row[:, np.newaxis], values - shift, out=term)
            total += term
        found[begin : begin + n] = total.T
    return found
