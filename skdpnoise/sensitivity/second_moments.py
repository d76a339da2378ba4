"""What one bounded row can change: sums of rows, and sums of their second moments."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy import Adjacency, check_adjacency, check_real
from skdpnoise.privacy.checks import check_option
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sensitivity._row_bounds import RowBounds, checked_scale, spread_l1_norm
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

_UP = 1.0 + 16.0 * float(np.finfo(np.float64).eps)  # above the rounding of a few operations
_PLAIN: tuple[ChangeNorm, ChangeNorm] = ("l1", "l2")


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
    bounds : RowBounds
        What every row obeys.
    %(mechanisms: adjacency)s
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

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014, Section 3 (the same noise on the
    upper triangle). Muthukrishnan and Kalyani, arXiv:2302.03511, Theorem 4. The division between
    diagonal and the rest, and the factor √2 for Laplace noise, are ours; the tests try to pass
    them by optimisation.

    Examples
    --------
    >>> bounds = RowBounds(20, norm=1.0)
    >>> round(second_moment_change(bounds, "add_remove"), 6)
    1.0
    >>> round(second_moment_change(bounds, off_diagonal=0.5**0.5), 6)
    1.414214
    >>> round(second_moment_change(bounds, "add_remove", norm="l1"), 6)
    10.5
    """
    owner = "second_moment_change"
    adjacency = check_adjacency(owner, adjacency)
    r = check_real(owner, "off_diagonal", off_diagonal)
    s = checked_scale(owner, scale, bounds.n_columns)
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
            raise ValueError(
                f"The 'off_diagonal' parameter of {owner} must be at least sqrt(1/2) for "
                f"norm='l2'. Got {off_diagonal!r} instead."
            )
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
    :math:`x_j^2` may not. Joint bounds are those of :func:`second_moment_change`. All are rounded
    up.

    Parameters
    ----------
    bounds : RowBounds
        What every row obeys.
    %(mechanisms: adjacency)s

    Returns
    -------
    SensitivityProfile
        λ of shape (p (p + 1)/2,).

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014, Section 3.

    Examples
    --------
    >>> second_moments_profile(RowBounds(2, norm=1.0)).per_coordinate.round(12)
    array([1., 1., 1.])
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
    bounds : RowBounds
        What every row obeys.
    %(mechanisms: adjacency)s

    Returns
    -------
    SensitivityProfile
        λ of shape (n_columns,).

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Definition 3.8.

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
