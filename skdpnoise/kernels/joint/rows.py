"""Rows of a table as integers, block by block: what passes over all columns at once read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.kernels.links import in_turn
from skdpnoise.kernels.sizes import BLOCK, LARGE_FILE, rows_at_once

__all__ = ["GridRows", "columns_of", "hold_parts"]

Floats = NDArray[np.float64]
Groups = Sequence[NDArray[np.intp]]
"""The columns of each group, in ascending order."""

_SINGLE = 2.0**24  # integers up to here are exact in single precision
_LARGEST = 2.0**26  # norm of a row of integers: its square is exact in double precision
_ROOM = 1.0 - 2.0**-40  # of factors, for what rounding does to them


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows as integers in double precision."""

    begin: int
    end: int
    integers: Any  # ndarray or sparse array of shape (n_rows, n_columns)
    constant: float  # the integer of the constant, which every row has besides
    squares: Floats  # squared norm of every row, the constant included

    def scores(self, model: Floats) -> Floats:
        """Return the products of all rows with integer vectors, one per output; exact."""
        product = np.asarray(self.integers @ model[:, :-1].T)
        return product + self.constant * model[:, -1]

    def sums(self, residuals: Floats) -> Floats:
        """Return the sums of all products of a row with its residuals, shape (K, p + 1); exact."""
        total = np.empty((residuals.shape[1], self.integers.shape[1] + 1))
        total[:, :-1] = np.asarray(self.integers.T @ residuals).T
        total[:, -1] = self.constant * residuals.sum(axis=0)
        return total

    def part(self, inside: NDArray[np.bool_]) -> Block:
        """Return some columns of the rows, and the constant where the last entry says so."""
        whole = self.integers[:, np.flatnonzero(inside[:-1])]
        constant = self.constant if inside[-1] else 0.0
        squares = _squares(whole) + constant**2
        return Block(self.begin, self.end, whole, constant, squares)


class GridRows:
    r"""Rows that are standardised, clipped to a box and rounded to integers, with a constant.

    .. math:: k_{ij} = \mathrm{round}\Bigl(\frac{1}{a}\,
              \mathrm{clip}\Bigl(\frac{x_{ij} - c_j}{s_j}, \pm l_j\Bigr)\Bigr), \qquad
              k_{i, p+1} = \mathrm{round}(v / a)

    which is a function of the row alone, by operations that IEEE 754 defines to the last bit.
    Products of such rows with integers are exact in double precision, so that they depend neither
    on the block that a row lies in nor on the order in which a library adds.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, p)
        Finite values. Dense arrays of any layout, or CSR, which is never made dense.
    grid_size : float
        a, a positive power of two.
    limit : float or array-like of shape (p,)
        l, finite: the box.
    center, scale : float or array-like of shape (p,), default=None
        c and s; 0 and 1 by default. c must be 0 for sparse rows.
    constant : float, default=0.0
        v, what multiplies the intercepts.
    groups : array-like of int of shape (p,), default=None
        Numbers of groups of columns, -1 for none. The part of a row in each group is held to the
        Euclidean norm 1 before its centre is subtracted: if it is longer, all of it is made
        smaller (:func:`hold_parts`), and what is beyond it still by rounding is cut to integers
        towards zero, so that the norm of integers is at most 1/a. Their scales must be 1.
    block_rows : int or None, default=None
        Rows taken at a time; it changes speed and memory only.
    keep : bool, default=True
        Whether integers are kept for the next pass, if they fit.

    Attributes
    ----------
    largest_norm : float
        The largest norm that a row of integers can have, by the box.

    Raises
    ------
    ValueError
        If the grid is so fine that squared norms are not exact, or sparse rows have a centre.

    Examples
    --------
    >>> rows = GridRows(np.array([[0.5, -3.0]]), grid_size=0.25, limit=2.0, constant=1.0)
    >>> [block.integers for block in rows.blocks()]
    [array([[ 2., -8.]])]
    """

    def __init__(
        self,
        X: Any,
        *,
        grid_size: float,
        limit: ArrayLike,
        center: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        constant: float = 0.0,
        groups: ArrayLike | None = None,
        block_rows: int | None = None,
        keep: bool = True,
    ) -> None:
        n_columns = X.shape[1]
        self.X, self.n_rows, self.n_columns = X, X.shape[0], n_columns
        self.grid_size = float(grid_size)
        if not (self.grid_size > 0.0 and math.frexp(self.grid_size)[0] == 0.5):
            raise ValueError(f"grid_size must be a positive power of two, got {grid_size!r}.")
        self._center = _vector(center, 0.0, n_columns)
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1.0 / _vector(scale, 1.0, n_columns)
        self._inverse = np.minimum(inverse, np.finfo(np.float64).max)
        self._limit = _vector(limit, 0.0, n_columns)
        self.constant = float(np.rint(constant / self.grid_size))
        self.is_sparse = not isinstance(X, np.ndarray)
        if self.is_sparse and self._center.any():
            raise ValueError("Sparse rows must have the centre 0, or they would not be sparse.")
        numbers = np.full(n_columns, -1) if groups is None else np.asarray(groups)
        self._groups, grouped = columns_of(numbers), numbers >= 0
        if grouped.any() and (self._inverse[grouped] != 1.0).any():
            raise ValueError("Columns of groups must have the scale 1, in which norms are meant.")
        # Of groups, centres are subtracted last, in whole steps.
        self._offset = np.where(grouped, np.rint(self._center / self.grid_size), 0.0)
        self._center = np.where(grouped, 0.0, self._center)
        most = np.rint(self._limit / self.grid_size)
        held = [1.0 / self.grid_size + math.dist(self._offset[c], 0.0 * c) for c in self._groups]
        self.largest_norm = math.hypot(*most[~grouped], *held, self.constant)
        if not self.largest_norm < _LARGEST:
            raise ValueError(
                f"grid_size={self.grid_size:g} is too small: rows of integers could have a norm of "
                f"{self.largest_norm:.3g}, and squared norms are exact up to {_LARGEST:g} only."
            )
        per_row = max(n_columns, 1)
        if self.is_sparse:  # that are stored; blocks change no bit
            per_row = X.nnz // max(self.n_rows, 1) + 1
        wished = block_rows or rows_at_once(per_row, BLOCK)
        self.block_rows = max(1, min(wished, self.n_rows))
        largest = most + np.abs(self._offset)
        self._dtype = np.float32 if float(largest.max(initial=0.0)) < _SINGLE else np.float64
        self._kept: dict[int, Any] | None = None
        if keep:
            self.keep()

    def keep(self) -> None:
        """Keep the integers of blocks for the next pass, unless X is a large mapped file."""
        base = self.X
        while isinstance(base, np.ndarray):
            base = base.base
        is_large_file = isinstance(base, mmap) and self.X.nbytes > LARGE_FILE
        self._kept = None if is_large_file else {}

    def blocks(self, first: int = 0, last: int | None = None) -> Iterator[Block]:
        """Yield rows, some at a time; their integers are kept for the next time if they fit.

        Parameters
        ----------
        first, last : int
            The first row, the beginning of a block, and the end; all rows by default.

        Yields
        ------
        block : Block
        """
        stop = self.n_rows if last is None else last
        for begin in range(first, stop, self.block_rows):
            end = min(begin + self.block_rows, stop)
            kept = self._kept  # which another thread may give up meanwhile
            if kept is not None and begin in kept:
                stored, squares = kept[begin]
                yield Block(begin, end, stored.astype(np.float64), self.constant, squares)
                continue
            whole = self._rounded(begin, end)
            squares = _squares(whole) + self.constant**2
            if kept is not None:
                try:
                    kept[begin] = whole.astype(self._dtype), squares
                except MemoryError:  # after the charge: each pass rounds them anew
                    self._kept = None
            yield Block(begin, end, whole, self.constant, squares)

    @np.errstate(all="ignore")
    def _rounded(self, begin: int, end: int) -> Any:
        """Return rows standardised, clipped and rounded; what is not a number becomes a bound."""
        rows = self.X[begin:end].astype(np.float64)
        values, columns = rows, slice(None)
        if self.is_sparse:
            rows.sum_duplicates()  # an entry that is stored in parts is clipped as a whole
            values, columns = rows.data, rows.indices
        if self._groups:
            hold_parts(rows, self._groups)
        limit = self._limit[columns]
        values -= self._center[columns]
        values *= self._inverse[columns]
        np.fmax(values, -limit, out=values)
        np.fmin(values, limit, out=values)
        values *= 1.0 / self.grid_size
        np.rint(values, out=values)
        if self._groups:
            _hold_integers(rows, self._groups, 1.0 / self.grid_size)
            if not self.is_sparse:
                rows -= self._offset
        return rows


def columns_of(numbers: NDArray[Any]) -> Groups:
    """Return the columns of each group.

    Parameters
    ----------
    numbers : ndarray of int of shape (p,)
        The number of the group of each column, -1 for none.

    Returns
    -------
    list of ndarray of int
        The columns of each group that there is, in ascending order.

    Examples
    --------
    >>> columns_of(np.array([1, 0, -1, 1]))
    [array([1]), array([0, 3])]
    """
    return [np.flatnonzero(numbers == k) for k in np.unique(numbers[numbers >= 0])]


@np.errstate(all="ignore")
def hold_parts(rows: Any, groups: Groups) -> None:
    r"""Scale the part of every row in each group down to the norm 1, in place.

    .. math:: x_g \leftarrow \frac{x_g}{\max(1, |x_g|_2)}

    by way of the largest entry, so that no square overflows. A row is changed by operations that
    IEEE 754 defines, in the order of its columns, and so is a function of itself alone: the same
    bits in any block, and whether it is sparse or not.

    Parameters
    ----------
    rows : ndarray of float64, or CSR in canonical form, of shape (n_rows, p)
        Finite values.
    groups : sequence of ndarray of int
        The columns of each group, in ascending order.

    Examples
    --------
    >>> rows = np.array([[3.0, 4.0, 7.0], [0.0, 0.5, 7.0]])
    >>> hold_parts(rows, [np.array([0, 1])])
    >>> rows
    array([[0.6, 0.8, 7. ],
           [0. , 0.5, 7. ]])
    """

    def hold(part: Floats, places: Any, largest: Floats) -> Floats:
        part = part / np.maximum(largest, 1.0)[places]
        norms = np.sqrt(_sums(part * part, places, largest.size))
        return np.asarray(part / np.maximum(norms, 1.0)[places])

    _each_part(rows, groups, hold)


@np.errstate(all="ignore")
def _hold_integers(rows: Any, groups: Groups, most: float) -> None:
    """Scale parts of integers down to a norm, towards zero; one that would not obey counts as 0."""

    def hold(part: Floats, places: Any, largest: Floats) -> Floats:
        norms = np.sqrt(_sums(part * part, places, largest.size))
        factor = np.where(norms > most, most / norms * _ROOM, 1.0)
        part = np.trunc(part * factor[places])
        inside = _sums(part * part, places, largest.size) <= most * most
        return np.where(inside[places], part, 0.0)

    _each_part(rows, groups, hold)


def _each_part(rows: Any, groups: Groups, hold: Any) -> None:
    """Replace parts of rows by what is made of them, their places and their largest magnitudes."""
    if isinstance(rows, np.ndarray):
        every = slice(None), np.newaxis
        for columns in groups:
            whole = rows[:, columns]
            rows[:, columns] = hold(whole, every, np.abs(whole).max(axis=1))
        return
    group_of = np.full(rows.shape[1], -1)
    for number, columns in enumerate(groups):
        group_of[columns] = number
    numbers = group_of[rows.indices]
    inside = np.flatnonzero(numbers >= 0)
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[inside]
    keys, places = np.unique(row_of * len(groups) + numbers[inside], return_inverse=True)
    part, largest = rows.data[inside], np.zeros(keys.size)
    np.maximum.at(largest, places, np.abs(part))
    rows.data[inside] = hold(part, places, largest)


def _sums(values: Floats, places: Any, n_parts: int) -> Floats:
    """Return the sum of every part, in the order of its columns."""
    if values.ndim == 2:
        return in_turn(values)
    return np.asarray(np.bincount(places, weights=values, minlength=n_parts), dtype=np.float64)


def _squares(whole: Any) -> Floats:
    """Return the squared norm of every row of integers, exact in any order of addition."""
    if isinstance(whole, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", whole, whole))
    return np.asarray(whole.multiply(whole).sum(axis=1), dtype=np.float64).ravel()


def _vector(value: ArrayLike | None, default: float, size: int) -> Floats:
    return np.broadcast_to(np.asarray(default if value is None else value, dtype=np.float64), size)
