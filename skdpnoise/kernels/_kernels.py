"""Compiled sweeps over the rows: move the scores, then sum the next coordinate's gradient.

A loss is known by its integer code; its scores are what its ``start`` makes of the target: the
residual ``x.w - y`` for the squared loss and ``x.w`` for the others. One sweep reads the column
that has just changed and the one that comes next. The intercept's is one block of ones, which is
read again for every block of rows.

Everything done to one row is compiled without fast-math flags, and the only fused multiply-adds are
the explicit ones. The number of grid steps of a record is therefore the same bit for bit in any
block, thread or vector lane, and the integers are summed exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from skdpnoise.kernels.losses import LOGISTIC

Vector = NDArray[np.float64]
Scaling = tuple[float, float, float, float, float, float] | None  # of two columns

# Adding 1.5 * 2^52 to a float64 of magnitude at most 2^51 rounds it to the nearest integer (ties to
# even, as rint) and leaves that integer, in two's complement, in the low bits of the result.
_ROUNDING = 1.5 * 2.0**52
_ROUNDING_BITS = int(np.float64(_ROUNDING).view(np.int64))
MOST_STEPS = 2**50

_LOGISTIC = LOGISTIC.code
_LOG2_E = float(1.0 / np.log(2.0))
_LN_2 = float(np.log(2.0))
_SATURATED = 40.0  # from here on the sigmoid is within 1e-17 of 0 or 1
# exp(-r) = 1 + r q(r), q interpolating at the Chebyshev points of [-ln(2)/2, ln(2)/2].
_EXP: tuple[float, ...] = (2.486784350453597e-05, -1.990756865403116e-04, 1.388883916601555e-03)
_EXP += (-8.333283539883310e-03, 4.166666678593399e-02, -1.666666678630334e-01)
_EXP += (4.999999999995560e-01, -9.999999999955095e-01, 1.0)  # the highest power first


@intrinsic
def _fused_multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once: one instruction, and by IEEE 754 one result everywhere."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), lower


@njit(cache=True, nogil=True, error_model="numpy")
def decay(t: float) -> float:
    r"""Exponential of -t without a branch or a library call, so that loops over it vectorise.

    .. math:: e^{-t} = 2^m e^{-r}, \quad m = \operatorname{round}(-t / \ln 2),
              \quad r = t + m \ln 2
    """
    # A polynomial of degree 8 gives the exponential of -r with relative error below 3e-12; the
    # power of two is added to its exponent bits (Cody and Waite 1980).
    # Arguments beyond 40 in magnitude count as 40.
    t = t if t > -_SATURATED else -_SATURATED
    t = t if t < _SATURATED else _SATURATED
    shifted = _fused_multiply_add(t, -_LOG2_E, _ROUNDING)  # the integer m, in its low bits
    r = _fused_multiply_add(shifted - _ROUNDING, _LN_2, t)
    power = 0.0
    for coefficient in _EXP:
        power = _fused_multiply_add(power, r, coefficient)
    bits = np.float64(power).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


@njit(cache=True, nogil=True, error_model="numpy")
def sigmoid(t: float) -> float:
    """Logistic function, within 1e-12 of the exact one."""
    return 1.0 / (1.0 + decay(t))


@njit(cache=True, nogil=True, error_model="numpy")
def _standardised(x: float, center: float, inverse_scale: float, limit: float) -> float:
    # Written as comparisons so that a NaN becomes a bound, as in _grid_steps.
    z = (x - center) * inverse_scale
    z = z if z > -limit else -limit
    return z if z < limit else limit


# The branch on the code of a loss does not depend on the row, so that the compiler makes one loop
# for each. Losses whose targets are numbers have a kernel of their own, since with a third branch
# there would be one loop for all; numba makes that choice when it specialises a kernel. It compares
# the annotations of these functions: they must be the same.
def _slope(code: Any, score: Any, target: Any, i: Any) -> Any:
    """Derivative of the loss of record i in its linear function, from its score."""


@overload(_slope, jit_options={"nogil": True, "error_model": "numpy"})
def _slope_by_targets(code: Any, score: Any, target: Any, i: Any) -> Any:
    """The losses of one type of targets."""
    if isinstance(target.dtype, types.Float):
        return _slope_of_counts
    return _slope_of_labels


def _slope_of_labels(code: Any, score: Any, target: Any, i: Any) -> Any:
    if code == _LOGISTIC:
        return sigmoid(score) - target[i]
    return score  # squared: the residual


def _slope_of_counts(code: Any, score: Any, target: Any, i: Any) -> Any:
    return decay(-score) - target[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _grid_steps(gradient: float, inverse_grid_size: float, bound: float) -> np.int64:
    """Bits of ``1.5 * 2^52 + round(clip(gradient, -bound, bound) / grid_size)``."""
    # The bound is c grid steps up to one rounding, and so is the product: off by less than 3/8 for
    # c at most 2^50, so the nearest integer is at most c. A NaN fails the first comparison and
    # becomes the lower bound: whatever a record holds, it adds at most c grid steps.
    v = gradient if gradient > -bound else -bound
    v = v if v < bound else bound
    return np.float64(_fused_multiply_add(v, inverse_grid_size, _ROUNDING)).view(np.int64)


@njit(cache=True, nogil=True, error_model="numpy")
def _rows(column: NDArray[Any], begin: int, end: int, full: int) -> NDArray[Any]:
    """Rows begin to end of a column; of one repeated block, its first end - begin entries."""
    if column.shape[0] == full:
        return column[begin:end]
    return column[: end - begin]


@njit(cache=True, nogil=True, error_model="numpy")
def _moved(
    i: int, previous: Vector, following: Vector, score: Vector, change: float, scaling: Scaling
) -> tuple[float, float]:
    """Move the score of row i; return it and the entry of the next column."""
    old: float = np.float64(previous[i])
    new: float = np.float64(following[i])
    if scaling is not None:
        old = _standardised(old, scaling[0], scaling[1], scaling[2])
        new = _standardised(new, scaling[3], scaling[4], scaling[5])
    score[i] = _fused_multiply_add(change, old, score[i])
    return score[i], new


@njit(cache=True, nogil=True, error_model="numpy")
def private_sweep(
    rows: tuple[int, int],
    block: int,
    code: int,
    previous: NDArray[Any],
    following: NDArray[Any],
    score: Vector,
    target: NDArray[Any],
    change: float,
    scaling: Scaling,
    inverse_grid_size: float,
    bound: float,
) -> np.int64:
    r"""Apply the last change to the scores and sum the next clipped, rounded gradient.

    .. math:: s_i \leftarrow s_i + \Delta\, x_{ij}, \qquad
              S = \sum_i \operatorname{round}\Bigl(
                  \operatorname{clip}\bigl(\ell'(s_i)\, x_{ik},\; -cq,\; cq\bigr) / q\Bigr)
    """
    # `rows` is the first one and the one after the last; `previous` and `following` are the columns
    # j and k. The `start` of the loss made `score`, which is changed in place, and `target`.
    # `change` is Δ. `scaling` is centre, inverse scale and limit of column j, then of column k. The
    # last two are 1/q and cq, with an integer c at most `MOST_STEPS` and n c below 2^63.
    total = np.int64(0)
    for begin in range(rows[0], rows[1], block):
        end = min(begin + block, rows[1])
        old = _rows(previous, begin, end, score.shape[0])
        new = _rows(following, begin, end, score.shape[0])
        part, known = score[begin:end], target[begin:end]
        for i in range(end - begin):
            moved, entry = _moved(i, old, new, part, change, scaling)
            gradient = _slope(code, moved, known, i) * entry
            total += _grid_steps(gradient, inverse_grid_size, bound)
    # Sums of int64 wrap, so the surplus of the rounding constant cancels exactly.
    return total - np.int64(rows[1] - rows[0]) * np.int64(_ROUNDING_BITS)


# The flags let the sum run in vector lanes; the instructions of the inlined functions keep their
# own, strict, ones.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def plain_sweep(
    rows: tuple[int, int],
    block: int,
    code: int,
    previous: NDArray[Any],
    following: NDArray[Any],
    score: Vector,
    target: NDArray[Any],
    change: float,
    scaling: Scaling,
    sums: Vector,
) -> None:
    r"""The same sweep without clipping and rounding; one float sum for each block of rows.

    .. math:: s_i \leftarrow s_i + \Delta\, x_{ij}, \qquad S_b = \sum_{i \in b} \ell'(s_i)\, x_{ik}
    """
    # The first row is a multiple of block; the order in which sums of blocks are added does not
    # depend on threads.
    for begin in range(rows[0], rows[1], block):
        end = min(begin + block, rows[1])
        old = _rows(previous, begin, end, score.shape[0])
        new = _rows(following, begin, end, score.shape[0])
        part, known = score[begin:end], target[begin:end]
        total = 0.0
        for i in range(end - begin):
            moved, entry = _moved(i, old, new, part, change, scaling)
            total += _slope(code, moved, known, i) * entry
        sums[begin // block] = total
