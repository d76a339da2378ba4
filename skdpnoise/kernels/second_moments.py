"""Second moments of clipped rows, as exact sums of integers, streamed over blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.kernels._row_kernels import kernels
from skdpnoise.kernels.columns import Tables, load, per_column, side_by_side
from skdpnoise.kernels.sizes import rows_at_once
from skdpnoise.kernels.threads import enough_threads, threads

__all__ = ["clipped_row_sums", "row_norms", "second_moments"]

Floats = NDArray[np.float64]

_LANES = 4  # columns that are multiplied at once
# Integers up to here, and their sums in any order, are exact in double precision.
_EXACT = 2**53
# What sums may reach: below 2**63 by enough for any noise that fits 61 bits.
_LARGEST_SUM = 2**63 - 2**61


def second_moments(
    X: Tables,
    *,
    row_grid_size: ArrayLike,
    norm: float,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    beyond: ArrayLike | None = None,
    columns: ArrayLike | None = None,
    l1_norm: float | None = None,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    r"""Return the second moments of rows that are clipped and rounded to integers.

    .. math:: S = \sum_i k_i k_i^\top, \qquad |k_{ij}|\, q_j \le c_j, \quad
              \sum_j (k_{ij} q_j)^2 \le R^2, \quad \sum_j |k_{ij}|\, q_j \le R_1

    Row x is read as z = (x - center)/scale, clipped to ±limit and to the box ±c, shrunk by
    :math:`\min(1, R/|z|_2, R_1/|z|_1)`, and k is z/q rounded to nearest integers, or towards zero
    if these would break a bound. That is a function of the row alone, within the bounds whatever
    the row holds, and the sums are exact: the result is the same bit for bit for any blocks,
    threads, memory layout and order of rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, p), or list of ndarrays
        Finite values of any real dtype. All layouts are read in place, block by block; arrays of a
        list, of shape (n_samples, ...) or (n_samples,), are side by side.
    row_grid_size : float or array-like of shape (p,)
        q, the unit of the integers of each column, positive.
    norm : float
        R.
    center, scale : float or array-like of shape (p,), default=None
        0 and 1 by default.
    limit : float or array-like of shape (p,), default=None
        Bound on the magnitude of each standardised entry, before the row is shrunk.
    beyond : float or array-like of shape (p,), default=None
        Standardised entries count by how far they are beyond ± this, before they are clipped.
    columns : float or array-like of shape (p,), default=None
        c; a box, applied as `limit` is.
    l1_norm : float, default=None
        R_1.
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
        If a grid step is so small that integers or their sums would not be exact.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.5, 0.25], [3.0, 4.0]])  # the second row is shrunk to (0.6, 0.8)
    >>> second_moments(X, row_grid_size=2.0**-10, norm=1.0) / 2.0**20
    array([[0.6095314 , 0.60457039],
           [0.60457039, 0.70218754]])
    """
    standard = center, scale, beyond, limit
    bounds = row_grid_size, norm, columns, l1_norm
    upper = np.triu(_Rows(X, standard, bounds, block_rows, n_threads).sums(of_products=True))
    return upper + np.triu(upper, 1).T


def clipped_row_sums(
    X: Tables,
    *,
    row_grid_size: ArrayLike,
    norm: float,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    beyond: ArrayLike | None = None,
    columns: ArrayLike | None = None,
    l1_norm: float | None = None,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    r"""Return the sum of rows that are clipped and rounded to integers.

    .. math:: s = \sum_i k_i

    with k as in :func:`second_moments`: for private means of rows in a ball around a public centre.

    Parameters
    ----------
    X, row_grid_size, norm, center, scale, limit, beyond, columns, l1_norm, block_rows, n_threads
        As for :func:`second_moments`.

    Returns
    -------
    ndarray of int64 of shape (p,)
        s, in units of q.

    Raises
    ------
    ValueError
        If a grid step is so small that integers or their sums would not be exact.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.5, 0.25], [3.0, 4.0]])  # the second row is shrunk to (0.6, 0.8)
    >>> (clipped_row_sums(X, row_grid_size=2.0**-20, norm=1.0) / 2.0**20).round(5)
    array([1.1 , 1.05])
    """
    standard = center, scale, beyond, limit
    bounds = row_grid_size, norm, columns, l1_norm
    return _Rows(X, standard, bounds, block_rows, n_threads).sums(of_products=False)


def row_norms(
    X: Tables,
    *,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    r"""Return the Euclidean norm of every standardised row, without a copy of X.

    .. math:: |z_i|_2, \qquad z_i = \mathrm{clip}((x_i - center)/scale, \pm limit)

    Parameters
    ----------
    X, center, scale, limit, block_rows, n_threads
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
    standard, bounds = (center, scale, None, limit), (1.0, 1.0, None, None)
    return _Rows(X, standard, bounds, block_rows, n_threads).norms_of_rows()


class _Rows:
    """Rows of one or more tables, with how they are clipped and rounded."""

    def __init__(
        self,
        X: Tables,
        standard: tuple[ArrayLike | None, ...],
        bounds: tuple[ArrayLike, float, ArrayLike | None, float | None],
        block_rows: int | None,
        n_threads: int,
    ) -> None:
        center, scale, beyond, limit = standard
        row_grid_size, norm, columns, l1_norm = bounds
        self.tables = side_by_side(X)
        self.n_rows = len(self.tables[0])
        self.n_columns = p = sum(table.shape[1] for table in self.tables)
        self.grid_size = per_column(row_grid_size, 1.0, p)
        self.norms = float(norm), math.inf if l1_norm is None else float(l1_norm)
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1.0 / per_column(scale, 1.0, p)
        largest = np.finfo(np.float64).max  # instead of infinity, of which 0 times is NaN
        box = np.minimum(per_column(limit, largest, p), per_column(columns, largest, p))
        units = per_column(center, 0.0, p), np.minimum(inverse, largest)
        self.standard = *units, per_column(beyond, 0.0, p), box
        if not ((self.grid_size > 0.0).all() and min(self.norms) > 0.0):
            raise ValueError(f"row_grid_size and norm must be positive, got norm={norm!r}.")
        with np.errstate(over="ignore"):
            self.most = np.floor(np.minimum(box, min(self.norms)) / self.grid_size)
        if not (self.most < _EXACT).all():
            raise ValueError(
                f"row_grid_size is too small: norm={norm!r} is above 2**53 grid steps."
            )
        self.largest = int(self.most.max(initial=0.0))
        wished = block_rows or rows_at_once(p)
        self.block_rows = max(1, min(wished, self.n_rows))
        self.n_ranges = enough_threads(self.n_rows * p, n_threads)
        self.kernels: Any = kernels(self.n_rows * p)

    def sums(self, *, of_products: bool) -> NDArray[np.int64]:
        """Return the sums of all integers, or of products of columns, on and above the diagonal."""
        # With columns of zeros, for four are multiplied by four at once.
        p, padded = self.n_columns, -(-self.n_columns // _LANES) * _LANES
        shape = (padded, padded) if of_products else (padded,)
        largest = self.largest**2 if of_products else self.largest
        if largest > _EXACT or largest * self.n_rows > _LARGEST_SUM:
            raise ValueError(
                f"row_grid_size is too small for norm={self.norms[0]:g} and {self.n_rows} rows: "
                "integer sums could overflow. Use a larger grid_size or a smaller norm."
            )
        block = min(self.block_rows, _EXACT // max(largest, 1))
        grid = self.grid_size, self.most, *self.norms

        def task(rows: tuple[int, int]) -> NDArray[np.int64]:
            total, part, held = np.zeros(shape, dtype=np.int64), np.zeros(shape), 0
            # Eight rows more, so that the columns do not all fall on the same lines of the cache.
            integers = np.zeros((padded, block + 8))
            for tile, n, sums in self.tiles(rows, block):
                self.kernels.quantise(tile, n, grid, sums, integers)
                if (held + n) * largest > _EXACT:
                    total += part.astype(np.int64)
                    part[:], held = 0.0, 0
                if of_products:
                    self.kernels.add_products(integers, n, part)
                else:
                    part += integers[:, :n].sum(axis=1)
                held += n
            return total + part.astype(np.int64)

        with threads(self.n_rows, self.n_ranges) as run:
            return np.asarray(sum(run(task)))[(slice(p),) * len(shape)]

    def norms_of_rows(self) -> NDArray[np.float64]:
        """Return the norm of every standardised row."""
        norms = np.empty(self.n_rows)

        def task(rows: tuple[int, int]) -> None:
            begin = rows[0]
            for _, n, sums in self.tiles(rows, self.block_rows):
                norms[begin : begin + n] = sums[2, :n]
                begin += n

        with threads(self.n_rows, self.n_ranges) as run:
            run(task)
        return norms

    def tiles(self, rows: tuple[int, int], block: int) -> Iterator[tuple[Floats, int, Floats]]:
        """Yield a standardised tile, its number of rows, and their sums and norms."""
        tile, sums = np.empty((self.n_columns, block + 8)), np.empty((3, block))
        for begin in range(*rows, block):
            n = load(self.tables, begin, min(begin + block, rows[1]), tile)
            self.kernels.standardise(tile, n, self.standard, sums)
            yield tile, n, sums
