"""Public bounds on one row: a ball, a box, and what is largest within them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy import check_count, check_real
from skdpnoise.privacy.checks import check_array
from skdpnoise.privacy.sealed import Sealed, sealed
from skdpnoise.sensitivity.worst_cases import largest_norm, rounded_up

__all__ = ["RowBounds", "checked_scale", "spread_l1_norm"]

Vector = NDArray[np.float64]

_SPREAD = 0.73


@dataclass(frozen=True, slots=True, eq=False)
class RowBounds(Sealed):
    r"""Public bounds that every row obeys: a ball, and where there are better ones a box and more.

    .. math:: |x|_2 \le R, \qquad |x_j| \le c_j, \qquad |x|_1 \le R_1

    They must not be chosen from the data; rows are made to obey them by clipping. (Or they are
    privately found, and charged.)

    Parameters
    ----------
    n_columns : int
        p.
    norm : float
        R, positive, in the units of the rows.
    columns : float or array-like of shape (n_columns,) or None, default=None
        c, positive. None stands for R in every column.
    l1_norm : float or None, default=None
        R_1.

    Raises
    ------
    ValueError
        If a bound is not positive and finite, or of the wrong shape.

    Examples
    --------
    >>> bounds = RowBounds(3, norm=1.0, columns=[0.5, 1.0, 1.0])
    >>> bounds
    RowBounds(n_columns=3, norm=1, columns=0.5 to 1)
    """

    n_columns: int
    norm: float
    columns: Vector | None = None
    l1_norm: float | None = None

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "n_columns", check_count(owner, "n_columns", self.n_columns))
        object.__setattr__(self, "norm", check_real(owner, "norm", self.norm))
        if self.l1_norm is not None:
            object.__setattr__(self, "l1_norm", check_real(owner, "l1_norm", self.l1_norm))
        if self.columns is not None:
            values = check_array(
                owner,
                "columns",
                self.columns,
                (),
                (self.n_columns,),
                sign="positive",
                remedy="Leave out columns that are always zero.",
            )
            values = np.broadcast_to(values, self.n_columns)
            object.__setattr__(self, "columns", sealed(values))

    @property
    def radius(self) -> float:
        """The largest Euclidean norm that the balls allow: R, or R_1 if that is smaller."""
        return self.norm if self.l1_norm is None else min(self.norm, self.l1_norm)

    @property
    def limits(self) -> Vector:
        """The largest magnitude of each entry that the bounds allow, shape (n_columns,)."""
        if self.columns is None:
            return np.full(self.n_columns, self.radius)
        return np.minimum(self.columns, self.radius)

    def largest_square(self, scale: ArrayLike) -> float:
        r"""Return the largest :math:`\sum_j x_j^2 / s_j^2` of a row in the box and the ball.

        In :math:`x_j^2` it is a fractional knapsack: the columns of smallest scale are filled
        first. It is rounded up. A bound on :math:`|x|_1` is not used beyond the box, so with one
        the result is an upper bound.

        Parameters
        ----------
        scale : float or array-like of shape (n_columns,)
            s, positive.

        Returns
        -------
        float

        Examples
        --------
        >>> round(RowBounds(2, norm=1.0, columns=[0.6, 1.0]).largest_square([0.5, 1.0]), 12)
        2.08
        """
        s = checked_scale("RowBounds.largest_square", scale, self.n_columns)
        norm = largest_norm(1.0 / s, self.limits, self.radius, order=2.0)
        return rounded_up(norm * norm)

    def largest_sum(self, scale: ArrayLike) -> float:
        r"""Return the largest :math:`\sum_j |x_j| / s_j` of a row, or a little more.

        Over the box and the l2 ball, :math:`x_j = \min(c_j, t/s_j)` with t such that the row lies
        on the ball. With a bound on :math:`|x|_1` as well, for every price θ ≥ 0

        .. math:: \sum_j \frac{|x_j|}{s_j} \le \theta R_1
                  + \max_{|x|_2 \le R} \sum_j |x_j| \Bigl(\frac1{s_j} - \theta\Bigr)_+

        and the least of these bounds is sought: it is tight up to the precision of the search,
        and valid whatever θ the search ends at. Either is rounded up.

        Parameters
        ----------
        scale : float or array-like of shape (n_columns,)
            s, positive.

        Returns
        -------
        float

        Examples
        --------
        >>> round(RowBounds(4, norm=1.0).largest_sum(1.0), 12)
        2.0
        >>> round(RowBounds(4, norm=1.0, l1_norm=1.5).largest_sum(1.0), 12)
        1.5
        """
        weight = 1.0 / checked_scale("RowBounds.largest_sum", scale, self.n_columns)
        limits, radius = self.limits, self.radius
        in_ball = largest_norm(weight, limits, radius)
        l1_norm = self.l1_norm
        highest = float(weight.max())
        if l1_norm is None or float(limits.sum()) <= l1_norm or highest == math.inf:
            return in_ball
        if float(weight.min()) == highest:
            return min(in_ball, rounded_up(highest * l1_norm))

        def bound(price: float) -> float:
            rest = np.maximum(weight - price, 0.0)
            return price * l1_norm + largest_norm(rest, limits, radius)

        return min(in_ball, rounded_up(_least(bound, 0.0, highest)))

    def __repr__(self) -> str:
        parts = [f"n_columns={self.n_columns}", f"norm={self.norm:.6g}"]
        if self.columns is not None:
            parts.append(f"columns={self.columns.min():.6g} to {self.columns.max():.6g}")
        if self.l1_norm is not None:
            parts.append(f"l1_norm={self.l1_norm:.6g}")
        return f"{type(self).__name__}({', '.join(parts)})"


def spread_l1_norm(n_columns: int, norm: float) -> float:
    r"""Return an l1 bound that hardly any row spread over many columns in an l2 ball exceeds.

    .. math:: R_1 = R \sqrt{\max(1, \, 0.73 \, p)}

    For a uniformly distributed direction, :math:`|x|_1^2 / |x|_2^2` is near 2p/π = 0.64 p. It
    lowers Laplace noise under "add_remove"; other noises have no use for it, and under
    "replace_one" a bound by Cauchy and Schwarz does better.

    Parameters
    ----------
    n_columns : int
        p.
    norm : float
        R.

    Returns
    -------
    float

    Examples
    --------
    >>> spread_l1_norm(100, 1.0)  # instead of 10
    8.54400374531753
    """
    n_columns = check_count("spread_l1_norm", "n_columns", n_columns)
    norm = check_real("spread_l1_norm", "norm", norm)
    return norm * math.sqrt(max(1.0, _SPREAD * n_columns))


def checked_scale(owner: str, scale: ArrayLike, n_columns: int) -> Vector:
    values = check_array(owner, "scale", scale, (), (n_columns,), sign="positive")
    return np.broadcast_to(values, n_columns)


def _least(bound: Callable[[float], float], low: float, high: float) -> float:
    """Return about the least value of a convex function on an interval, by golden sections."""
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = bound(a), bound(b)
    least = min(bound(low), bound(high))
    for _ in range(50):  # to 4e-11 of the interval
        least = min(least, at_a, at_b)
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = bound(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = bound(b)
    return least
