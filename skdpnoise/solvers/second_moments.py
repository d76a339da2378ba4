"""Second moments of clipped rows, as exact sums of integers, streamed over blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.solvers._rows import norms_of_rows, sum_products, sum_rows

__all__ = ["clipped_row_sums", "row_norms", "second_moments"]

# Entries of one tile, which fits the second-level cache, and bounds on its number of rows.
_TILE = 1 << 14
_FEWEST_ROWS, _MOST_ROWS = 128, 512
# Below this many entries, handing work to a thread costs more than it saves.
_ENTRIES_PER_THREAD = 1 << 18
# Integers up to here, and their sums in any order, are exact in double precision.
_EXACT = 2**53
# What sums may reach: below 2**63 by enough for any noise that fits 61 bits.
_LARGEST_SUM = 2**63 - 2**61


def second_moments(
    X: NDArray[Any],
    *,
    row_quantum: ArrayLike,
    norm: float,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    columns: ArrayLike | None = None,
    l1_norm: float | None = None,
    targets: NDArray[Any] | None = None,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    r"""Return the second moments of rows that are clipped and rounded to integers.

    .. math:: S = \sum_i k_i k_i^\top, \qquad |k_{ij}|\, q_j \le c_j, \quad
              \sum_j (k_{ij} q_j)^2 \le R^2, \quad \sum_j |k_{ij}|\, q_j \le R_1

    Row x is read as z = (x - center)/scale, clipped to ±limit and to the box ±c, shrunk by
    :math:`\min(1, R/|z|_2, R_1/|z|_1)`, and k is z/q rounded to nearest integers, or towards zero
    if these would break a bound. That is a function of the row alone, and the sums are exact: the
    result is the same bit for bit whatever the blocks, threads, memory layout and order of rows,
    and replacing one row changes S by :math:`k k^\top - k' k'^\top` with both within the bounds.
    Whatever a row holds, its integers obey them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite values of any real dtype; C or Fortran order is read in place, block by block.
    row_quantum : float or array-like of shape (p,)
        q, the unit of the integers of each column, positive; p is n_features plus the number of
        targets.
    norm : float
        R.
    center, scale : float or array-like of shape (p,), default=None
        0 and 1 by default.
    limit : float or array-like of shape (p,), default=None
        Bound on the magnitude of each standardised entry, before the row is shrunk.
    columns : float or array-like of shape (p,), default=None
        c; a box, applied as `limit` is.
    l1_norm : float, default=None
        R_1.
    targets : ndarray of shape (n_samples,) or (n_samples, m), default=None
        Columns to put after those of X.
    block_rows : int, default=None
        Rows taken at a time; it changes speed and memory only.
    n_threads : int, default=1
        Threads to use when there are enough rows. Each keeps a matrix of p x p.

    Returns
    -------
    ndarray of int64 of shape (p, p)
        S, symmetric, in units of q_j q_k.

    Raises
    ------
    ValueError
        If a quantum is so small that integers or their sums would not be exact.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.5, 0.25], [3.0, 4.0]])  # the second row is shrunk to (0.6, 0.8)
    >>> second_moments(X, row_quantum=2.0**-10, norm=1.0) / 2.0**20
    array([[0.6095314 , 0.60457039],
           [0.60457039, 0.70218754]])
    """
    rows = _Rows(
        X, targets, row_quantum, norm, center, scale, limit, columns, l1_norm, block_rows, n_threads
    )
    total = rows.sum(sum_products, rows.largest**2)[: rows.n_columns, : rows.n_columns]
    return total + np.triu(total, 1).T


def clipped_row_sums(
    X: NDArray[Any],
    *,
    row_quantum: ArrayLike,
    norm: float,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    columns: ArrayLike | None = None,
    l1_norm: float | None = None,
    targets: NDArray[Any] | None = None,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    r"""Return the sum of rows that are clipped and rounded to integers.

    .. math:: s = \sum_i k_i

    with k as in :func:`second_moments`: for private means of rows in a ball around a public centre.

    Parameters
    ----------
    X, row_quantum, norm, center, scale, limit, columns, l1_norm, targets, block_rows, n_threads
        As for :func:`second_moments`.

    Returns
    -------
    ndarray of int64 of shape (p,)
        s, in units of q.

    Raises
    ------
    ValueError
        If a quantum is so small that integers or their sums would not be exact.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.5, 0.25], [3.0, 4.0]])  # the second row is shrunk to (0.6, 0.8)
    >>> (clipped_row_sums(X, row_quantum=2.0**-20, norm=1.0) / 2.0**20).round(5)
    array([1.1 , 1.05])
    """
    rows = _Rows(
        X, targets, row_quantum, norm, center, scale, limit, columns, l1_norm, block_rows, n_threads
    )
    return rows.sum(sum_rows, rows.largest)


def row_norms(
    X: NDArray[Any],
    *,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    targets: NDArray[Any] | None = None,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    r"""Return the Euclidean norm of every standardised row, without a copy of X.

    .. math:: |z_i|_2, \qquad z_i = \mathrm{clip}((x_i - center)/scale, \pm limit)

    Parameters
    ----------
    X, center, scale, limit, targets, block_rows, n_threads
        As for :func:`second_moments`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> row_norms(np.array([[3.0, 4.0], [0.0, 0.0]]), center=[0.0, 0.0])
    array([5., 0.])
    """
    rows = _Rows(X, targets, 1.0, 1.0, center, scale, limit, None, None, block_rows, n_threads)
    norms = np.empty(rows.n_rows)
    rows.write_norms(norms)
    return norms


class _Rows:
    """Rows of X and of the targets, with how they are clipped and rounded."""

    def __init__(
        self,
        X: NDArray[Any],
        targets: NDArray[Any] | None,
        row_quantum: ArrayLike,
        norm: float,
        center: ArrayLike | None,
        scale: ArrayLike | None,
        limit: ArrayLike | None,
        columns: ArrayLike | None,
        l1_norm: float | None,
        block_rows: int | None,
        n_threads: int,
    ) -> None:
        data = np.asarray(X)
        extra = np.empty((len(data), 0)) if targets is None else np.asarray(targets)
        self.parts = _readable(data), _readable(extra[:, None] if extra.ndim == 1 else extra)
        self.n_rows = len(data)
        self.n_columns = p = sum(part.shape[1] for part in self.parts)
        self.quantum = _vector(row_quantum, 1.0, p)
        self.norms = float(norm), math.inf if l1_norm is None else float(l1_norm)
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1.0 / _vector(scale, 1.0, p)
        largest = np.finfo(np.float64).max  # instead of infinity, of which 0 times is NaN
        box = np.minimum(_vector(limit, largest, p), _vector(columns, largest, p))
        self.standard = _vector(center, 0.0, p), np.minimum(inverse, largest), box
        if not ((self.quantum > 0.0).all() and min(self.norms) > 0.0):
            raise ValueError(f"row_quantum and norm must be positive, got norm={norm!r}.")
        with np.errstate(over="ignore"):
            self.most = np.floor(np.minimum(box, min(self.norms)) / self.quantum)
        if not (self.most < _EXACT).all():
            raise ValueError(f"row_quantum is too small: norm={norm!r} is above 2**53 quanta.")
        self.largest = int(self.most.max(initial=0.0))
        self.block_rows = max(1, block_rows or min(_MOST_ROWS, max(_FEWEST_ROWS, _TILE // p)))
        self.n_threads = n_threads

    def sum(self, kernel: Callable[..., NDArray[np.int64]], largest: int) -> NDArray[np.int64]:
        """Return a sum over all rows of integers up to `largest`, refused if it may overflow."""
        if largest > _EXACT or largest * self.n_rows > _LARGEST_SUM:
            raise ValueError(
                f"row_quantum is too small for norm={self.norms[0]:g} and {self.n_rows} rows: "
                "integer sums could overflow. Use a larger quantum or a smaller norm."
            )
        at_once = _EXACT // max(largest, 1)
        block = min(self.block_rows, at_once)
        settings = (block, at_once, *self.standard, self.quantum, self.most, self.norms)
        parts = self.run(lambda rows: kernel(*self.parts, rows, *settings))
        return sum(parts[1:], start=parts[0])

    def write_norms(self, out: NDArray[np.float64]) -> None:
        """Write the norm of every standardised row."""
        settings = (self.block_rows, *self.standard, out)
        self.run(lambda rows: norms_of_rows(*self.parts, rows, *settings))

    def run(self, task: Callable[[tuple[int, int]], Any]) -> list[Any]:
        """Return what a function returns for every range of rows, one range for each thread.

        The kernels release the lock of the interpreter, and plain threads work under joblib and
        after a fork, which the threading layers of numba do not.
        """
        most = self.n_rows * self.n_columns // _ENTRIES_PER_THREAD
        n_ranges = max(1, min(self.n_threads, most))
        edges = [self.n_rows * i // n_ranges for i in range(n_ranges + 1)]
        first, *others = pairwise(edges)
        if not others:
            return [task(first)]
        with ThreadPoolExecutor(len(others)) as pool:
            waiting = [pool.submit(task, rows) for rows in others]
            return [task(first), *(future.result() for future in waiting)]


def _readable(part: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view that compiled code can read, copied only if it is of another kind."""
    if part.dtype not in (np.float64, np.float32):
        part = part.astype(np.float64)
    view = part.view()
    view.flags.writeable = False  # one compiled kernel, whether or not the data can be written to
    return view


def _vector(value: ArrayLike | None, default: float, size: int) -> NDArray[np.float64]:
    array = np.asarray(default if value is None else value, dtype=np.float64)
    return np.ascontiguousarray(np.broadcast_to(array, size))
