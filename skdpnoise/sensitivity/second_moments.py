"""The most that one bounded row can change sums of rows, and sums of their second moments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, check_option, complaint
from skdpnoise._utils.sealed import Sealed, sealed, stated
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.privacy import Adjacency, check_adjacency, check_count, check_real
from skdpnoise.sensitivity.profile import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import largest_norm, rounded_up

__all__ = [
    "RowBounds",
    "clipped_rows",
    "second_moment_change",
    "second_moments_profile",
    "spread_l1_norm",
]

Vector = NDArray[np.float64]
ChangeNorm = Literal["l2", "l1", "nuclear"]

_SPREAD = 0.73
_UP = 1.0 + 16.0 * float(np.finfo(np.float64).eps)  # above the rounding of a few operations
_PLAIN: tuple[ChangeNorm, ChangeNorm] = ("l1", "l2")


@dataclass(frozen=True, slots=True, eq=False)
class RowBounds(Sealed):
    r"""Public bounds that every row obeys: a ball, and where there are better ones a box and more.

    .. math:: |x|_2 \le R, \qquad |x_j| \le c_j, \qquad |x|_1 \le R_1

    Clipping makes rows obey them. They must not be read from the data, unless that is charged.

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

    Examples
    --------
    >>> RowBounds(3, norm=1.0, columns=[0.5, 1.0, 1.0])
    RowBounds(n_columns=3, norm=1, columns=0.5 to 1)
    """

    n_columns: int
    norm: float
    columns: Vector | None = None
    l1_norm: float | None = None

    def __post_init__(self) -> None:
        owner = type(self).__name__
        n_columns = check_count(owner, "n_columns", self.n_columns)
        stated(self, n_columns=n_columns, norm=check_real(owner, "norm", self.norm))
        if self.l1_norm is not None:
            stated(self, l1_norm=check_real(owner, "l1_norm", self.l1_norm))
        if self.columns is not None:
            remedy = "Leave out columns that are always zero."
            values = _per_column(owner, "columns", self.columns, self.n_columns, remedy)
            stated(self, columns=sealed(values))

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

        In :math:`x_j^2` it is a fractional knapsack: the columns of smallest ``scale`` s > 0 are
        filled first. It is rounded up. A bound on :math:`|x|_1` is not used beyond the box, so with
        one the result is an upper bound.
        """
        s = _per_column("RowBounds.largest_square", "scale", scale, self.n_columns)
        norm = largest_norm(1.0 / s, self.limits, self.radius, order=2.0)
        return rounded_up(norm * norm)

    def largest_sum(self, scale: ArrayLike) -> float:
        r"""Return the largest :math:`\sum_j |x_j| / s_j` of a row, or a bit more; s is ``scale``.

        Over the box and the l2 ball, :math:`x_j = \min(c_j, t/s_j)` with t such that the row lies
        on the ball. With a bound on :math:`|x|_1` as well, for every price θ ≥ 0

        .. math:: \sum_j \frac{|x_j|}{s_j} \le \theta R_1
                  + \max_{|x|_2 \le R} \sum_j |x_j| \Bigl(\frac1{s_j} - \theta\Bigr)_+

        and the least of these bounds is sought: it is tight up to the precision of the search,
        and valid whatever θ the search ends at. Either is rounded up.
        """
        weight = 1.0 / _per_column("RowBounds.largest_sum", "scale", scale, self.n_columns)
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
    lowers Laplace noise under "add_remove"; Cauchy and Schwarz do better under "replace_one".

    Parameters
    ----------
    n_columns : int
        p.
    norm : float
        R.

    Examples
    --------
    >>> spread_l1_norm(100, 1.0)  # instead of 10
    8.54400374531753
    """
    n_columns = check_count("spread_l1_norm", "n_columns", n_columns)
    norm = check_real("spread_l1_norm", "norm", norm)
    return norm * math.sqrt(max(1.0, _SPREAD * n_columns))


@shared_texts
def second_moment_change(
    bounds: RowBounds,
    adjacency: Adjacency = "replace_one",
    *,
    norm: ChangeNorm = "l2",
    scale: ArrayLike = 1.0,
    off_diagonal: float = 1.0,
) -> float:
    r"""Bound what one row changes in the sum of :math:`x x^\top`, in units of the noise.

    A change is :math:`D_{jk} = (x_j x_k - y_j y_k) / (s_j s_k)`, with y = 0 if a row is added or
    removed. With noise that is r times as wide off the diagonal, what counts is

    .. math:: |D|_2^2 = \sum_j D_{jj}^2 + \sum_{j<k} \frac{D_{jk}^2}{r^2}, \qquad
              |D|_1 = \sum_j |D_{jj}| + \sum_{j<k} \frac{|D_{jk}|}{r}, \qquad
              |D|_* = \sum_i |\mathrm{eig}_i D|.

    **Adding or removing a row.** Write :math:`u_j = x_j^2/s_j^2`, :math:`A = \max \sum_j u_j`
    (:meth:`RowBounds.largest_square`) and :math:`B = \max \sum_j |x_j|/s_j`
    (:meth:`RowBounds.largest_sum`). The nuclear norm of :math:`x x^\top`, scaled, is
    :math:`\sum_j u_j \le A`. The others are

    .. math:: |D|_2^2 = \frac{1}{2 r^2} \Bigl(\sum_j u_j\Bigr)^2
                        + \Bigl(1 - \frac{1}{2 r^2}\Bigr) \sum_j u_j^2, \qquad
              |D|_1 = \frac{1}{2 r} \Bigl(\sum_j \sqrt{u_j}\Bigr)^2
                      + \Bigl(1 - \frac{1}{2 r}\Bigr) \sum_j u_j.

    At :math:`r^2 = 1/2`, half the variance off the diagonal, the first is at most :math:`A^2`,
    whatever the bounds. For :math:`r^2 > 1/2` both terms count: :math:`\sum u_j^2` is convex and
    symmetric, so of all u within their limits with sum up to A the most uneven one (the largest
    limits filled first) bounds it. The second is at most
    :math:`B^2/(2r) + (1 - 1/(2r)) A` if r ≥ 1/2; for smaller r, where its last term is
    negative, :math:`\sum u_j \ge (\sum \sqrt{u_j})^2 / p`.

    **Replacing a row.** With one column, u changes within [0, A]. With more,

    - Euclidean: the scalar product of the terms of x and of y is
      :math:`(a^\top b)^2/(2r^2) + (1 - 1/(2r^2)) \sum a_j^2 b_j^2 \ge 0` with a = x/s and b = y/s,
      so the factor is at most √2.
    - Nuclear: the triangle inequality gives a factor of 2, reached by orthogonal rows.
    - Manhattan: 2 for the same reason, and by Cauchy and Schwarz

      .. math:: |D|_1 \le |D|_F \sqrt{p + \frac{p (p - 1)}{4 r^2}}, \qquad |D|_F \le \sqrt2 A,

      about √2 times instead of twice for rows in a ball. The smaller one is returned.

    Parameters
    ----------
    %(mechanisms: bounds, adjacency)s
    norm : {"l2", "l1", "nuclear"}, default="l2"
        Which of the three.
    scale : float or array-like of shape (n_columns,), default=1.0
        s, positive, in the units of the rows.
    off_diagonal : float, default=1.0
        r, positive, and at least √(1/2) for "l2"; it does not matter for "nuclear".

    Returns
    -------
    float
        An upper bound, rounded up.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014, Section 3 (the same noise on the
    upper triangle). Muthukrishnan and Kalyani, arXiv:2302.03511, Theorem 4. The division between
    diagonal and rest, and √2 for Laplace noise, are ours; tests try to pass them by optimisation.

    Examples
    --------
    >>> bounds = RowBounds(20, norm=1.0)
    >>> [round(second_moment_change(bounds, "add_remove", norm=norm), 6) for norm in ("l2", "l1")]
    [1.0, 10.5]
    """
    owner = "second_moment_change"
    adjacency = check_adjacency(owner, adjacency)
    r = check_real(owner, "off_diagonal", off_diagonal)
    s = _per_column(owner, "scale", scale, bounds.n_columns)
    check_option(owner, "norm", norm, get_args(ChangeNorm))
    p = bounds.n_columns
    squares = bounds.largest_square(s)
    if squares == math.inf:
        return math.inf
    replaces = adjacency == "replace_one" and p > 1
    if norm == "nuclear":
        return 2.0 * squares if replaces else squares
    if norm == "l2":
        if r * r < 0.5 * (1.0 - 1e-12):
            must = "be at least sqrt(1/2) for norm='l2'"
            raise ValueError(complaint(owner, "off_diagonal", must, repr(off_diagonal)))
        share = 0.5 / (r * r)
        # In units of A², so that nothing is too small to be squared.
        fourth = _most_uneven((bounds.limits / s / math.sqrt(squares)) ** 2)
        single = squares * math.sqrt(share + max(0.0, 1.0 - share) * fourth)
        return rounded_up(math.sqrt(2.0) * single if replaces else single)
    share = 0.5 / r
    total = rounded_up(bounds.largest_sum(s) ** 2)
    if share <= 1.0:
        single = share * total + (1.0 - share) * squares
    else:
        single = total * (share * (p - 1) + 1.0) / p
    if not replaces:
        return rounded_up(single)
    joint = math.sqrt(2.0) * squares * math.sqrt(p + 0.25 * p * (p - 1) / (r * r))
    return rounded_up(min(2.0 * single, joint))


@shared_texts
def second_moments_profile(
    bounds: RowBounds, adjacency: Adjacency = "replace_one"
) -> SensitivityProfile:
    r"""Bound every entry of the sum of :math:`x x^\top`, upper triangle row by row.

    .. math:: \lambda_{jj} = c_j^2, \qquad \lambda_{jk} = \max_{x_j^2 + x_k^2 \le R^2} |x_j x_k|

    and twice the latter under "replace_one", where :math:`x_j x_k` may change its sign and
    :math:`x_j^2` may not. Joint bounds are those of :func:`second_moment_change`, rounded up, too.

    Parameters
    ----------
    %(mechanisms: bounds, adjacency)s
    %(profiles: Returns)s
        λ of shape (p (p + 1)/2,).

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014, Section 3.

    Examples
    --------
    >>> second_moments_profile(RowBounds(2, norm=1.0), "add_remove").per_coordinate.round(12)
    array([1. , 0.5, 1. ])
    """
    adjacency = check_adjacency("second_moments_profile", adjacency)
    radius = bounds.radius
    c = bounds.limits / radius
    rows, columns = np.triu_indices(bounds.n_columns)
    low = np.minimum(np.minimum(c[rows], c[columns]), math.sqrt(0.5))
    # Of two numbers on a circle the product is largest when they are most alike.
    other = np.sqrt(1.0 - low**2)
    largest = low * np.minimum(np.maximum(c[rows], c[columns]), other)
    if bounds.l1_norm is not None:
        largest = np.minimum(largest, 0.25 * (bounds.l1_norm / radius) ** 2)
    if adjacency == "replace_one":
        largest *= 2.0
    largest[rows == columns] = c**2
    largest = np.nextafter(largest * _UP * radius, np.inf)
    largest = np.nextafter(largest * radius, np.inf)
    top = float(largest.max())
    l1, l2 = (second_moment_change(bounds, adjacency, norm=norm) for norm in _PLAIN)
    return SensitivityProfile(largest, l1=max(l1, top), l2=max(l2, top))


@shared_texts
def clipped_rows(bounds: RowBounds, adjacency: Adjacency = "replace_one") -> SensitivityProfile:
    r"""Bound the sum of bounded rows.

    .. math:: \lambda_j = 2 c_j, \quad \Delta_2 = 2 \max |x|_2, \quad \Delta_1 = 2 \max |x|_1
              \text{ (replace one)}

    and half of that if a row is added or removed: replacing x by -x changes the sum by 2 x. For
    rows in a ball these are 2 R, 2 R and :math:`2 \sqrt p R`.

    Parameters
    ----------
    %(mechanisms: bounds, adjacency)s
    %(profiles: Returns)s
        λ of shape (n_columns,).
    %(dwork_roth: References)s
    Definition 3.8.

    Examples
    --------
    >>> clipped_rows(RowBounds(4, norm=1.0))
    SensitivityProfile(n_coordinates=4, largest=2, l1=4, l2=2)
    """
    adjacency = check_adjacency("clipped_rows", adjacency)
    width = 2.0 if adjacency == "replace_one" else 1.0
    limits = width * bounds.limits
    top = float(limits.max())
    l1 = width * bounds.largest_sum(1.0)
    l2 = width * largest_norm(np.ones(limits.size), bounds.limits, bounds.radius, order=2.0)
    return SensitivityProfile(limits, l1=max(l1, top), l2=max(l2, top))


def _most_uneven(limits: Vector) -> float:
    """Return the largest Σ u_j² with 0 ≤ u_j ≤ limit_j and Σ u_j ≤ 1, rounded up."""
    # Errors of n u in what is left, u the unit roundoff, move Σ u_j² by at most 2 n u of itself:
    # where the sum binds, it is at least the smallest limit that is filled.
    ranked = np.sort(limits)[::-1]
    before = np.cumsum(ranked) - ranked
    filled = np.clip(1.0 - before, 0.0, ranked)
    return rounded_up(float(filled @ filled), 4 * limits.size)


def _per_column(
    owner: str, name: str, values: ArrayLike, n_columns: int, remedy: str = ""
) -> Vector:
    """Return a positive number for every column."""
    array = check_array(owner, name, values, (), (n_columns,), sign="positive", remedy=remedy)
    return np.broadcast_to(array, n_columns)


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
