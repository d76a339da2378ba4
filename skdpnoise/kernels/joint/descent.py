r"""Descent along whole gradients of all outputs, each record clipped by one norm, in integers.

.. math:: G = \sum_i k_i \otimes m_i, \qquad
          m_i = \mathrm{round}\Bigl(\frac{1}{b}\min\Bigl(1, \frac{C'}{|z_i||q_i|}\Bigr) q_i\Bigr)

with :math:`z_i = a k_i` the row on its grid (:mod:`~skdpnoise.kernels.joint.rows`), q_i the slopes
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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.kernels.joint.rows import Block, GridRows
from skdpnoise.kernels.losses import Loss, in_turn, softmax
from skdpnoise.kernels.threads import enough_threads, threads

__all__ = ["SOFTMAX", "Clip", "GroupedClip", "clipped_gradient_sums", "descend", "joint_descent"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# It has several outputs at once, and so no branch in the kernels of coordinate descent.
SOFTMAX = Loss(
    "softmax", -1, 0.5, softmax, lambda y: (np.zeros_like(y), np.asarray(y)), link=softmax
)
r"""Multinomial loss, :math:`\ell(s, t) = \log \sum_k e^{s_k} - t^\top s`, of one class in K."""

_EXACT = 2.0**53  # integers up to here, and their sums in any order, are exact in double precision
_LARGEST_SUM = 2.0**62  # leaves room for noise in 64 bits
_SCORES = 2.0**51  # norm of a row times that of a model, in integers
_ROOM = 1.0 - 2.0**-40  # of clip factors, for what rounding does to them
_ULP = 2.0**-52
_GROWTH = 1.5  # of a step from one pass to the next, at most
_FLAT = 1e-300  # curvature that is none
_FEW = 16.0  # roundings of a squared bound and of a product, besides those of a sum of K squares


@dataclass(frozen=True, slots=True)
class Clip:
    """The most that one record may add to the sum of gradients.

    Parameters
    ----------
    norm : float
        C, its Euclidean norm.
    grid_size : float
        g, the unit of the sums.

    Examples
    --------
    >>> Clip(1.0, 2.0**-24).largest
    16777216.0
    """

    norm: float
    grid_size: float

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
    factor = np.minimum(np.maximum(room, 0.0) / np.sqrt(in_turn(wanted * wanted)) * _ROOM, 1.0)
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
