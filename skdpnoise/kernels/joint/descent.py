r"""Descent along whole gradients of all outputs, each record clipped by one norm, in integers.

.. math:: G = \sum_i k_i \otimes m_i, \qquad
          m_i = \mathrm{round}\Bigl(\frac{1}{b}\min\Bigl(1, \frac{C'}{|z_i||q_i|}\Bigr) q_i\Bigr)

with :math:`z_i = a k_i` the row on its grid (:class:`GridRows`), q_i the slopes
of the loss over the outputs and b = g/a, so that G counts in units of g. C' is C less what rounding
m may add to the norm, and afterwards every record is held to

.. math:: |k_i|^2 |m_i|^2 \le (C / g)^2

on the integers: a record that is beyond it counts as nothing. So one record moves g G by at most C
in Euclidean norm, whatever it holds and however its factor was rounded. What it adds depends on no
other record, to the last bit: scores are exact products of integers, links are made of operations
that IEEE 754 defines, and sums are of integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from skdpnoise.kernels.columns import per_column
from skdpnoise.kernels.losses import Loss, in_turn, softmax
from skdpnoise.kernels.sizes import BLOCK, FEWEST_ROWS, LARGE_FILE, TILE, rows_at_once
from skdpnoise.kernels.threads import enough_threads, threads

__all__ = ["SOFTMAX", "Clip", "GridRows", "GroupedClip", "clipped_gradient_sums", "columns_of"]
__all__ += ["descend", "hold_parts", "joint_descent"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Groups = Sequence[NDArray[np.intp]]
"""The columns of each group, in ascending order."""

# It has several outputs at once, and so no branch in the kernels of coordinate descent.
SOFTMAX = Loss(
    "softmax",
    -1,
    0.5,
    softmax,
    lambda y: (np.zeros_like(y), np.asarray(y)),
    link=softmax,
    labels=True,
)
r"""Multinomial loss, :math:`\ell(s, t) = \log \sum_k e^{s_k} - t^\top s`, of one class in K."""

_SINGLE = 2.0**24  # integers up to here are exact in single precision
_LONGEST_ROW = 2.0**26  # norm of integers: its square is exact in double precision
_EXACT = 2.0**53  # integers up to here, and their sums in any order, are exact in double precision
_LARGEST_SUM = 2.0**62  # leaves room for noise in 64 bits
_SCORES = 2.0**51  # norm of a row times that of a model, in integers
_ROOM = 1.0 - 2.0**-40  # of factors, for what rounding does to them
_ULP = 2.0**-52
_GROWTH = 1.5  # of a step from one pass to the next, at most
_FLAT = 1e-300  # curvature that is none
_FEW = 16.0  # roundings of a squared bound and of a product, besides those of a sum of K squares


@dataclass(frozen=True, slots=True, eq=False)
class SparseParts:
    """Rows of integers of which the columns of groups are sparse, but for an offset."""

    columns: tuple[NDArray[np.intp], NDArray[np.intp]]  # those without a group, and the others
    plain: Floats
    parts: csr_array
    across: Any  # the parts transposed
    offset: Floats  # of each column of a group, what is subtracted from all rows

    def __matmul__(self, model: Floats) -> Floats:
        alone, grouped = (model[columns] for columns in self.columns)
        return np.asarray(self.plain @ alone + (self.parts @ grouped - self.offset @ grouped))

    def products(self, residuals: Floats) -> Floats:
        """Return the sums of all products of a row with its residuals, shape (p, K)."""
        alone, grouped = self.columns
        total = np.empty((alone.size + grouped.size, residuals.shape[1]))
        total[alone] = self.plain.T @ residuals
        total[grouped] = self.across @ residuals - np.outer(self.offset, residuals.sum(axis=0))
        return total

    def toarray(self) -> Floats:
        alone, grouped = self.columns
        whole = np.empty((len(self.plain), alone.size + grouped.size))
        whole[:, alone], whole[:, grouped] = self.plain, self.parts.toarray() - self.offset
        return whole


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows as integers in double precision."""

    begin: int
    end: int
    integers: Any  # ndarray, sparse array or SparseParts of shape (n_rows, n_columns)
    constant: float  # the integer of the constant, which every row has besides
    squares: Floats  # squared norm of every row, the constant included

    def sums(self, residuals: Floats) -> Floats:
        """Return the sums of all products of a row with its residuals, shape (K, p + 1); exact."""
        sparse_parts = isinstance(self.integers, SparseParts)
        sums_of = self.integers.products if sparse_parts else self.integers.T.__matmul__
        of_constant = self.constant * residuals.sum(axis=0)
        return np.column_stack([np.asarray(sums_of(residuals)).T, of_constant])

    def part(self, inside: NDArray[np.bool_]) -> Block:
        """Return some columns of the rows, and the constant where the last entry says so."""
        sparse_parts = isinstance(self.integers, SparseParts)
        table = self.integers.toarray() if sparse_parts else self.integers
        whole = table[:, np.flatnonzero(inside[:-1])]
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
        Whether integers are kept for the next pass, if they fit; columns of groups that hold few
        values are kept sparse.

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
        self._center = per_column(center, 0.0, n_columns)
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1.0 / per_column(scale, 1.0, n_columns)
        self._inverse = np.minimum(inverse, np.finfo(np.float64).max)
        self._limit = per_column(limit, 0.0, n_columns)
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
        if not self.largest_norm < _LONGEST_ROW:
            raise ValueError(
                f"grid_size={self.grid_size:g} is too small: rows of integers could have a norm of "
                f"{self.largest_norm:.3g}, and squared norms are exact up to {_LONGEST_ROW:g} only."
            )
        per_row = max(n_columns, 1)
        if self.is_sparse:  # that are stored; blocks change no bit
            per_row = X.nnz // max(self.n_rows, 1) + 1
        wished = block_rows or rows_at_once(per_row, BLOCK)
        self.block_rows = max(1, min(wished, self.n_rows))
        largest = most + np.abs(self._offset)
        self._dtype = np.float32 if float(largest.max(initial=0.0)) < _SINGLE else np.float64
        base = X
        while isinstance(base, np.ndarray):
            base = base.base
        is_large_file = isinstance(base, mmap) and X.nbytes > LARGE_FILE
        self._kept: dict[int, Any] | None = {} if keep and not is_large_file else None
        self._halves = None
        if self._kept is not None and self._has_sparse_parts(grouped):
            self._halves = np.flatnonzero(~grouped), np.flatnonzero(grouped)
            self._groups = columns_of(numbers[grouped])
            entries = self._halves[0].size + len(self._groups)
            # What a row has one of, as its slope, is a number of the cache for each.
            wished = block_rows or max(FEWEST_ROWS, min(TILE, BLOCK // entries))
            self.block_rows = max(1, min(wished, self.n_rows))

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
                whole = stored.astype(np.float64) if self._halves is None else stored
                yield Block(begin, end, whole, self.constant, squares)
                continue
            whole = self._rounded(begin, end)
            squares = _squares(whole) + self.constant**2
            if kept is not None:
                try:
                    stored = whole.astype(self._dtype) if self._halves is None else whole
                    kept[begin] = stored, squares
                except MemoryError:  # after the charge: each pass rounds them anew
                    self._kept = None
            yield Block(begin, end, whole, self.constant, squares)

    def _has_sparse_parts(self, grouped: NDArray[np.bool_]) -> bool:
        """Return whether rows are smaller with sparse parts, whose sums are as exact as others."""
        # A sum of what is stored, and one of the offset, are as small as that of the constant.
        largest = max(1.0 / self.grid_size, float(np.abs(self._offset).max(initial=0.0)))
        if self.is_sparse or not (self._groups and self.n_rows) or largest > self.constant:
            return False
        first = self.X[: self.block_rows]
        # A stored entry has a value and the number of its column.
        stored = (np.float64().nbytes + np.int32().nbytes) * np.count_nonzero(first[:, grouped])
        plain = np.float64().nbytes * first[:, ~grouped].size
        return bool(stored + plain < first.size * np.dtype(self._dtype).itemsize)

    def _rounded(self, begin: int, end: int) -> Any:
        """Return rows standardised, clipped and rounded; what is not a number becomes a bound."""
        if self._halves is not None:
            alone, grouped = self._halves
            across = self.X[begin:end].T
            plain = self._on_grid(across[alone].T.astype(np.float64), alone, ())
            parts = _stored(np.ascontiguousarray(across[grouped], dtype=np.float64))
            parts = self._on_grid(parts, grouped, self._groups)
            return SparseParts(self._halves, plain, parts, parts.T, self._offset[grouped])
        rows = self.X[begin:end].astype(np.float64)
        if self.is_sparse:
            rows.sum_duplicates()  # an entry that is stored in parts is clipped as a whole
        rows = self._on_grid(rows, np.arange(self.n_columns), self._groups)
        if self._groups and not self.is_sparse:
            rows -= self._offset
        return rows

    @np.errstate(all="ignore")
    def _on_grid(self, rows: Any, columns: NDArray[np.intp], groups: Groups) -> Any:
        """Return some columns of rows as integers, changed in place."""
        values = rows
        if not isinstance(rows, np.ndarray):
            values, columns = rows.data, columns[rows.indices]
        if groups:
            hold_parts(rows, groups)
        limit = self._limit[columns]
        values -= self._center[columns]
        values *= self._inverse[columns]
        np.fmax(values, -limit, out=values)
        np.fmin(values, limit, out=values)
        values *= 1.0 / self.grid_size
        np.rint(values, out=values)
        if groups:
            _hold_integers(rows, groups, 1.0 / self.grid_size)
        return rows


def _stored(across: Floats) -> csr_array:
    """Return the entries of a table, which is given by columns, that are not 0."""
    places = np.flatnonzero(across != 0.0)
    pairs = np.divmod(places, across.shape[1])
    column, row = (one.astype(np.int32) for one in pairs)  # of some rows at a time
    return csr_array((across.ravel()[places], (row, column)), shape=across.shape[::-1])


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
    for values, at, places, n_parts in _parts(rows, groups):
        part = values[at]
        if (_sums(part * part, places, n_parts) <= 1.0).all():  # as those of categories
            continue
        part = part / np.maximum(_largest(part, places, n_parts), 1.0)[places]
        norms = np.sqrt(_sums(part * part, places, n_parts))
        values[at] = part / np.maximum(norms, 1.0)[places]


@np.errstate(all="ignore")
def _hold_integers(rows: Any, groups: Groups, most: float) -> None:
    """Scale parts of integers down to a norm, towards zero; one that would not obey counts as 0."""
    for values, at, places, n_parts in _parts(rows, groups):
        part = values[at]
        squares = _sums(part * part, places, n_parts)
        if (squares <= most * most).all():
            continue
        norms = np.sqrt(squares)
        factor = np.where(norms > most, most / norms * _ROOM, 1.0)
        part = np.trunc(part * factor[places])
        inside = _sums(part * part, places, n_parts) <= most * most
        values[at] = np.where(inside[places], part, 0.0)


def _parts(rows: Any, groups: Groups) -> Iterator[tuple[Floats, Any, Any, int]]:
    """Yield values, where parts are in them, the part of each value, and the number of parts."""
    if isinstance(rows, np.ndarray):
        for columns in groups:
            first, last = columns[0], columns[-1] + 1
            side_by_side = slice(first, last) if last - first == columns.size else columns
            yield rows, (slice(None), side_by_side), (slice(None), np.newaxis), len(rows)
        return
    group_of = np.full(rows.shape[1], -1)
    for number, columns in enumerate(groups):
        group_of[columns] = number
    numbers = group_of[rows.indices]
    inside = np.flatnonzero(numbers >= 0)
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[inside]
    keys = row_of * len(groups) + numbers[inside]
    order = np.argsort(keys, kind="stable")  # most rows have their parts in turn
    is_first = np.diff(keys[order], prepend=-1) > 0
    yield rows.data, inside[order], np.cumsum(is_first) - 1, int(is_first.sum())


def _largest(values: Floats, places: Any, n_parts: int) -> Floats:
    """Return the largest magnitude of every part."""
    if values.ndim == 2:
        return np.asarray(np.abs(values).max(axis=1))
    largest = np.zeros(n_parts)
    np.maximum.at(largest, places, np.abs(values))
    return largest


def _sums(values: Floats, places: Any, n_parts: int) -> Floats:
    """Return the sum of every part, in the order of its columns."""
    if values.ndim == 2:
        return in_turn(values)
    return np.asarray(np.bincount(places, weights=values, minlength=n_parts), dtype=np.float64)


def _squares(whole: Any) -> Floats:
    """Return the squared norm of every row of integers, exact in any order of addition."""
    if isinstance(whole, SparseParts):
        parts, offset = _squares(whole.parts), whole.offset
        parts += offset @ offset - 2.0 * (whole.parts @ offset)
        return _squares(whole.plain) + parts
    if isinstance(whole, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", whole, whole))
    return np.asarray(whole.multiply(whole).sum(axis=1), dtype=np.float64).ravel()


@dataclass(frozen=True, slots=True)
class Clip:
    r"""The most that one record may add to the sum of gradients.

    Parameters
    ----------
    norm : float
        C, its Euclidean norm.
    grid_size : float
        g, the unit of the sums.
    least : float, default=0.0
        q_0, the norm that slopes count as, at least: a record is shortened by
        :math:`\min(1, C' / (|z_i| \max(|q_i|, q_0)))`, by its row alone where no slopes are
        longer. It adds no more by that.

    Examples
    --------
    >>> Clip(1.0, 2.0**-24).largest
    16777216.0
    """

    norm: float
    grid_size: float
    least: float = 0.0

    @property
    def unit(self) -> float:
        """The unit of the sums, g."""
        return self.grid_size

    @property
    def largest(self) -> float:
        """C/g, the largest norm of what one record adds, in integers; and of each entry."""
        return self.norm / self.grid_size


@dataclass(frozen=True, slots=True, eq=False)
class GroupedClip:
    r"""The most that one record may add to the sum of gradients in each group of columns.

    .. math:: m_{ig} = \mathrm{round}\Bigl(\frac{1}{b_g}
              \min\Bigl(1, \frac{C'_g}{|z_{ig}| |q_i|}\Bigr) q_i\Bigr), \qquad
              |k_{ig}|^2 |m_{ig}|^2 \le (C_g / g_g)^2

    with z_g and k_g the parts of a row in group g: the change of one record lies in a product of
    balls, which :class:`~skdpnoise.sensitivity.GroupedProfile` describes, so that noise may differ
    between groups. The bounds are verified on the integers, as that of :class:`Clip` is.

    Parameters
    ----------
    groups : ndarray of int of shape (n_columns + 1,)
        The number of the group of each column, and last of the constant, from 0 on.
    clips : tuple of Clip, one for each group
        C_g and g_g.
    joint : float or None, default=None
        C, the Euclidean norm of all that a record adds; gradients beyond it are made smaller first.

    Examples
    --------
    >>> clip = GroupedClip(np.array([0, 0, 1]), (Clip(1.0, 2.0**-20), Clip(3.0, 2.0**-19)))
    >>> clip.largest, clip.unit * 2**20
    (1572864.0, array([1., 1., 2.]))
    """

    groups: NDArray[np.intp]
    clips: tuple[Clip, ...]
    joint: float | None = None

    @property
    def largest(self) -> float:
        """The largest entry of what one record adds, in integers."""
        return max(clip.largest for clip in self.clips)

    @property
    def unit(self) -> Floats:
        """The unit of the sums of each column, the constant's last."""
        return np.array([clip.grid_size for clip in self.clips])[self.groups]


def clipped_gradient_sums(
    rows: GridRows,
    targets: NDArray[Any],
    coef: Floats,
    *,
    loss: Loss,
    clip: Clip | GroupedClip | None = None,
    weights: Floats | None = None,
    n_threads: int = 1,
) -> Floats | Integers:
    """Return the sums of all gradients, shape (n_outputs, n_columns + 1), the intercepts' last.

    Parameters
    ----------
    rows : GridRows
        The rows, on their grid.
    targets : ndarray of shape (n_rows, n_outputs)
        The targets of the rows.
    coef : ndarray of shape (n_outputs, n_columns + 1)
        Coefficients, those of the constant last.
    loss : Loss
        Of which :meth:`~skdpnoise.kernels.losses.Loss.slopes` is used.
    clip : Clip, GroupedClip or None, default=None
        The bound of one record's gradient, and the unit of the sums; None sums in floating point.
    weights : ndarray of shape (n_rows,), default=None
        What gradients are multiplied by once they are clipped, in [0, 1].
    n_threads : int, default=1
        Threads to use when there are enough rows.

    Returns
    -------
    ndarray of int64, or of float64 without a clip
        Integers are in units of ``clip.unit``.

    Raises
    ------
    ValueError
        If the grid is so fine that sums would not be exact.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.kernels.losses import SQUARED
    >>> rows = GridRows(np.array([[0.5], [1.0]]), grid_size=2.0**-10, limit=1.0)
    >>> y = np.array([[1.0], [3.0]])
    >>> clip = Clip(1.0, 2.0**-20)  # the second gradient, -3, is clipped
    >>> sums = clipped_gradient_sums(
    ...     rows, y, np.zeros((1, 2)), loss=SQUARED, clip=clip
    ... )
    >>> (sums * clip.grid_size).round(3)
    array([[-1.499,  0.   ]])
    """
    if clip is not None and not clip.largest * rows.n_rows <= _LARGEST_SUM:
        raise ValueError(
            f"grid_size={_said(clip)[1]} is too small for norm={_said(clip)[0]} and {rows.n_rows} "
            "rows: sums of integers could leave 64 bits. Use a larger grid."
        )
    if clip is not None and not clip.largest * rows.block_rows <= _EXACT:
        raise ValueError(
            f"grid_size={_said(clip)[1]} is too small for norm={_said(clip)[0]} and blocks of "
            f"{rows.block_rows} rows: sums of a block would not be exact. Use fewer rows a block."
        )
    model, unit = _on_grid(coef, rows.largest_norm, rows.grid_size)

    @np.errstate(all="ignore")  # whatever a row holds: `_clipped` bounds what it adds
    def summed(some: tuple[int, int]) -> Any:
        total: Any = 0
        for block in rows.blocks(*some):
            product = np.asarray(block.integers @ model[:, :-1].T)  # exact
            scores = (product + block.constant * model[:, -1]) * unit
            slopes = loss.slopes(scores, targets[block.begin : block.end])
            weight = None if weights is None else weights[block.begin : block.end]
            if clip is None:
                slopes = slopes if weight is None else slopes * weight[:, np.newaxis]
                total = total + block.sums(slopes) * rows.grid_size
            elif isinstance(clip, GroupedClip):
                total = total + _sums_by_groups(block, slopes, rows.grid_size, clip, weight)
            else:
                whole = _clipped(slopes, block.squares, rows.grid_size, clip, weight)
                total = total + block.sums(whole).astype(np.int64)
        return total

    n_ranges = enough_threads(rows.n_rows, n_threads)
    if n_ranges == 1:
        return np.asarray(summed((0, rows.n_rows)))
    with threads(rows.n_rows, n_ranges, rows.block_rows) as run:
        return np.asarray(sum(run(summed)))


def joint_descent(
    rows: GridRows,
    targets: NDArray[Any],
    *,
    loss: Loss,
    n_outputs: int,
    n_samples: float | None = None,
    weights: Floats | None = None,
    coef_init: Floats | None = None,
    n_threads: int = 1,
    **options: Any,
) -> Iterator[Floats]:
    """Yield the coefficients after every pass over rows: :func:`descend` on their gradients.

    Parameters
    ----------
    rows, targets, loss
        As for :func:`clipped_gradient_sums`.
    n_outputs : int
        Number of outputs K.
    n_samples : float, default=None
        Divisor n; the number of rows by default.
    weights : ndarray, default=None
        As for :func:`clipped_gradient_sums`.
    coef_init : ndarray of shape (n_outputs, n_columns + 1), default=None
        Where to start; zero by default.
    n_threads : int, default=1
        Threads to use when there are enough rows.
    **options : dict
        Those of :func:`descend`.

    Yields
    ------
    coef : ndarray of shape (n_outputs, n_columns + 1)
        Those of the constant last.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.kernels.losses import SQUARED
    >>> X = np.array([[1.0], [-1.0], [2.0]])
    >>> rows = GridRows(X, grid_size=2.0**-16, limit=2.0, constant=1.0)
    >>> y = np.array([[3.0], [-1.0], [5.0]])
    >>> passes = joint_descent(
    ...     rows, y, loss=SQUARED, n_outputs=1, n_passes=300, step=0.2
    ... )
    >>> [*passes][-1].round(3)
    array([[2., 1.]])
    """
    shape = n_outputs, rows.n_columns + 1
    coef = np.zeros(shape) if coef_init is None else np.array(coef_init, dtype=np.float64)

    def gradient(coef: Floats, clip: Clip | GroupedClip | None) -> Any:
        facts: dict[str, Any] = {"clip": clip, "weights": weights, "n_threads": n_threads}
        return clipped_gradient_sums(rows, targets, coef, loss=loss, **facts)

    divisor = float(rows.n_rows if n_samples is None else n_samples)
    yield from descend(gradient, coef, n_samples=divisor, **options)


def descend(
    gradient: Callable[[Floats, Clip | GroupedClip | None], Any],
    coef: Floats,
    *,
    n_passes: int,
    step: float,
    longest_step: float | None = None,
    steps: list[float] | None = None,
    clip: Sequence[Clip | GroupedClip] | None = None,
    noise: Integers | None = None,
    add: Callable[[Any, Any], Any] = np.add,
    n_samples: float,
    momentum: float = 0.9,
    l1: ArrayLike = 0.0,
    l2: ArrayLike = 0.0,
) -> Iterator[Floats]:
    r"""Yield the coefficients after every pass of a proximal gradient method with momentum.

    .. math:: v \leftarrow \beta v + \frac{g (G + N)}{n}, \qquad
              w \leftarrow \frac{S_{\eta' \lambda_1}(w - \eta v)}{1 + \eta' \lambda_2}, \qquad
              \eta' = \frac{\eta}{1 - \beta}

    with S the soft threshold, so that no ridge penalty is too large for the step. Steps grow, by a
    half from pass to pass at most, to

    .. math:: \eta = (1 + \beta) / \Lambda, \qquad
              \Lambda = \max_t \frac{|g_t - g_{t-1}|}{|w_t - w_{t-1}|}

    over the released mean gradients so far, of which noise makes Λ larger: post-processing.

    Parameters
    ----------
    gradient : callable
        From coefficients and the clip of a pass to the sum of the gradients of all records.
    coef : ndarray of shape (n_outputs, n_columns + 1)
        Where to start.
    n_passes : int
        Number of passes T.
    step : float
        η, of the first pass at least.
    longest_step : float, default=None
        η grows up to this where the gradients so far, which are released, show no curvature that
        forbids it; `step` by default.
    steps : list of float, default=None
        Where the step of every pass is appended.
    clip : sequence of Clip or GroupedClip, one for each pass, or None
        Bounds and grids; None neither clips nor rounds.
    noise : ndarray of int64 of shape (n_passes, n_outputs, n_columns + 1), default=None
        N, in units of the grid of its pass; None is none.
    add : callable, default=numpy.add
        Adds noise to the sums.
    n_samples : float
        Divisor n.
    momentum : float, default=0.9
        β, in [0, 1).
    l1, l2 : float or array-like of shape (n_columns + 1,), default=0.0
        Penalties λ_1 and λ_2.

    Yields
    ------
    coef : ndarray of shape (n_outputs, n_columns + 1)
        Those of the constant last.

    References
    ----------
    Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Computational
    Mathematics and Mathematical Physics 4(5), 1964 (momentum).

    Examples
    --------
    >>> passes = descend(
    ...     lambda coef, clip: coef - 3.0, np.zeros((1, 2)), n_passes=300, step=0.2, n_samples=1.0
    ... )
    >>> [*passes][-1].round(3)
    array([[3., 3.]])
    """
    longest = step if longest_step is None else longest_step
    descent = Descent(coef, step, longest, momentum, l1, l2)
    for t in range(n_passes):
        bound = None if clip is None else clip[t]
        sums = gradient(descent.coef, bound)
        if noise is not None:
            sums = add(sums, noise[t])
        descent.moved(np.asarray(sums * (1.0 if bound is None else bound.unit) / n_samples))
        if steps is not None:
            steps.append(descent.step)
        yield descent.coef.copy()


class Descent:
    """The coefficients of :func:`descend`, which mean gradients move."""

    def __init__(
        self,
        coef: Floats,
        step: float,
        longest_step: float,
        momentum: float,
        l1: ArrayLike,
        l2: ArrayLike,
    ) -> None:
        self.coef, self.step = coef, float(step)
        self._steps, self._momentum = (float(step), longest_step), momentum
        self._l1, self._l2 = (np.asarray(one, dtype=np.float64) for one in (l1, l2))
        self._before, self._mean, self._velocity = coef, np.zeros_like(coef), np.zeros_like(coef)
        self._steepest = 0.0

    def moved(self, mean: Floats) -> Floats:
        """Move the coefficients along a mean gradient, and return them."""
        (first, longest), momentum = self._steps, self._momentum
        moved = float(np.linalg.norm(self.coef - self._before))
        if moved > 0.0:
            slope = float(np.linalg.norm(mean - self._mean)) / moved
            self._steepest = max(self._steepest, slope)
            flattest = (1.0 + momentum) / max(self._steepest, _FLAT)
            self.step = min(max(first, flattest), longest, _GROWTH * self.step)
        self._before, self._mean = self.coef, mean
        self._velocity = momentum * self._velocity + mean
        coef = self.coef - self.step * self._velocity
        # Where they rest, the velocity is the gradient over 1 - β, and so must the penalties be.
        reach = self.step / (1.0 - momentum)
        most = np.maximum(np.abs(coef) - reach * self._l1, 0.0)
        self.coef = np.sign(coef) * most / (1.0 + reach * self._l2)
        return self.coef


@np.errstate(all="ignore")
def _clipped(
    slopes: Floats, squares: Floats, unit: float, clip: Clip, weights: Floats | None = None
) -> Floats:
    """Return the integers of the slopes of all rows, each row within the bound."""
    # Rounding to nearest adds at most half a unit to each of K integers: with that much less room a
    # record that is not clipped is not biased.
    step, most = clip.grid_size / unit, clip.largest
    wanted = slopes * (1.0 / step)
    room = most / np.sqrt(squares) - 0.5 * math.sqrt(slopes.shape[1])
    sizes = np.maximum(np.sqrt(in_turn(wanted * wanted)), clip.least / step)
    factor = np.minimum(np.maximum(room, 0.0) / sizes * _ROOM, 1.0)
    if weights is not None:
        factor *= weights
    whole = np.rint(wanted * factor[:, np.newaxis])
    safe = most * most * (1.0 - (_FEW + slopes.shape[1]) * _ULP)
    inside = squares * in_turn(whole * whole) <= safe
    # What is not a number is not inside.
    return np.where(inside[:, np.newaxis], whole, 0.0)


@np.errstate(all="ignore")
def _sums_by_groups(
    block: Block, slopes: Floats, unit: float, clip: GroupedClip, weights: Floats | None
) -> Integers:
    """Return the sums of products of a row with the integers of its slopes, which groups bound."""
    parts = [block.part(clip.groups == number) for number in range(len(clip.clips))]
    pairs = list(zip(parts, clip.clips, strict=True))
    n_outputs = slopes.shape[1]
    if clip.joint is not None:
        # Rounding to nearest adds at most half a unit to each integer, here too.
        # All in units of the joint bound, whose square may not be a double.
        steps = sum(part.squares * (one.grid_size / clip.joint) ** 2 for part, one in pairs)
        room = np.maximum(1.0 - 0.5 * np.sqrt(n_outputs * steps), 0.0)
        sizes = np.sqrt(block.squares) * np.sqrt(in_turn(slopes * slopes)) * (unit / clip.joint)
        slopes = slopes * np.minimum(room / sizes * _ROOM, 1.0)[:, np.newaxis]
    whole = [_clipped(slopes, part.squares, unit, one, weights) for part, one in pairs]
    if clip.joint is not None:
        total = np.zeros(len(slopes))
        for (part, one), some in zip(pairs, whole, strict=True):
            total += part.squares * in_turn(some * some) * (one.grid_size / clip.joint) ** 2
        inside = total <= 1.0 - (2.0 * _FEW + n_outputs + len(parts)) * _ULP
        whole = [np.where(inside[:, np.newaxis], some, 0.0) for some in whole]
    sums = np.zeros((n_outputs, clip.groups.size), dtype=np.int64)
    for number, (part, some) in enumerate(zip(parts, whole, strict=True)):
        inside_group = clip.groups == number
        found = part.sums(some)
        sums[:, inside_group] = (found if inside_group[-1] else found[:, :-1]).astype(np.int64)
    return sums


def _said(clip: Clip | GroupedClip) -> tuple[str, str]:
    """Return the norms and grids of a clip for a message."""
    clips = clip.clips if isinstance(clip, GroupedClip) else (clip,)
    norms, grids = (sorted({one.norm for one in clips}), sorted({one.grid_size for one in clips}))
    return " to ".join(f"{x:g}" for x in norms[:: max(1, len(norms) - 1)]), f"{grids[0]:g}"


def _on_grid(coef: Floats, largest_norm: float, grid_size: float) -> tuple[Floats, float]:
    """Return coefficients as integers, and what a product of integers stands for."""
    # The grid follows the coefficients, which are released, and the largest row that there may be.
    largest = max(math.sqrt(math.fsum(row * row)) for row in coef)
    if largest == 0.0:
        return np.zeros_like(coef), 1.0
    exponent = math.ceil(math.log2(largest * largest_norm / _SCORES))
    return np.rint(np.ldexp(coef, -exponent)), math.ldexp(grid_size, exponent)
