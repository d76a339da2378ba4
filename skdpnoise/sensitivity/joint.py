"""Bounds on what one record can change in several coordinates jointly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise.privacy import Adjacency, check_adjacency, check_count, check_real
from skdpnoise.privacy.checks import check_order
from skdpnoise.sensitivity.bounds import as_vector
from skdpnoise.sensitivity.profile import SensitivityProfile

__all__ = ["bounded_ones", "shifted_sums"]


def shifted_sums(low: ArrayLike, high: ArrayLike, shift: ArrayLike) -> SensitivityProfile:
    r"""Bound sums less a multiple of the number of records, and that number, under add/remove.

    .. math:: (f - n c, \, n), \qquad \lambda_j = \max(h_j - c_j, \, c_j - l_j), \quad
              \lambda_{K+1} = 1

    A record whose contributions lie in [low_j, high_j] moves :math:`f_j - n c_j` by its
    contribution less c_j, and n by one. At the centre of the interval that is half its length.
    Bounds are rounded up. They hold for exact sums: release them by exact arithmetic.

    Parameters
    ----------
    low, high : float or array-like of shape (n_coordinates,)
        Public ends of the interval of every contribution, low < high.
    shift : float or array-like of shape (n_coordinates,)
        c, public.

    Returns
    -------
    SensitivityProfile
        λ of shape (n_coordinates + 1,), the count last.

    Raises
    ------
    ValueError
        If an entry is not finite, or low is not below high everywhere.

    References
    ----------
    Lebeda, "Better Gaussian mechanism using correlated noise", arXiv:2408.06853 (contributions
    of 0 or 1).

    Examples
    --------
    >>> shifted_sums(0.0, [2.0, 6.0], [1.0, 3.0]).per_coordinate
    array([1., 3., 1.])
    """
    left, right, centre = np.broadcast_arrays(
        as_vector("shifted_sums", "low", low),
        as_vector("shifted_sums", "high", high),
        as_vector("shifted_sums", "shift", shift),
    )
    check_order("shifted_sums", "low", left, right)
    reach = [
        _at_least(max(Fraction(b) - Fraction(c), Fraction(c) - Fraction(a)))
        for a, b, c in zip(left.tolist(), right.tolist(), centre.tolist(), strict=True)
    ]
    return SensitivityProfile([*reach, 1.0])


def bounded_ones(
    n_coordinates: int,
    max_ones: int,
    adjacency: Adjacency = "add_remove",
    *,
    mixing: float = 0.0,
) -> SensitivityProfile:
    r"""Bound counts to which a record contributes zeros and ones, with at most k ones.

    .. math:: \max |(I - c 1 1^\top) v|_2^2 = \max_t \left(S(t) - (2 c - d c^2) \, t^2\right)

    where v is a change, t the sum of its entries and S(t) the most non-zero entries that it can
    have. Adding or removing a record: S(t) = t for t = 0, ..., k. Replacing one: t = m - m' with
    m, m' ≤ k ones on disjoint sets of coordinates in the old and new records, and S(t) is the
    largest m + m' ≤ d for which that is so. Arithmetic is exact and results are rounded up.

    Parameters
    ----------
    n_coordinates : int
        d.
    max_ones : int
        k, public, from 1 to d. Records with more ones must be cut first.
    adjacency : {"replace_one", "add_remove"}, default="add_remove"
        The neighbouring relation.
    mixing : float, default=0.0
        c: bounds are for :math:`f_j - c \sum_i f_i`, computed exactly, instead of the counts f_j.

    Returns
    -------
    SensitivityProfile
        λ of shape (n_coordinates,) and Δ_2; Δ_1 without mixing.

    Raises
    ------
    ValueError
        If a record can have more ones than there are coordinates.

    References
    ----------
    Joseph and Yu, "Some constructions of private, efficient, and optimal K-norm and elliptic
    Gaussian noise", arXiv:2309.15790 (counts of records with at most k ones). The mixing is ours;
    the tests try all changes.

    Examples
    --------
    >>> bounded_ones(20, 4)
    SensitivityProfile(n_coordinates=20, largest=1, l1=4, l2=2)
    """
    owner = "bounded_ones"
    n_coordinates = check_count(owner, "n_coordinates", n_coordinates)
    max_ones = check_count(owner, "max_ones", max_ones, high=n_coordinates)
    adjacency = check_adjacency(owner, adjacency)
    c = Fraction(check_real(owner, "mixing", mixing, low=-math.inf))
    sizes = support_sizes(n_coordinates, max_ones, adjacency)
    squared = max(s - (2 * c - n_coordinates * c * c) * t * t for t, s in sizes.items())
    l2 = _at_least_root(squared)
    if c == 0:
        return SensitivityProfile(np.ones(n_coordinates), l1=float(max(sizes.values())), l2=l2)
    # An entry is v_i - c t; by symmetry t >= 0, and t is at most k.
    largest = max(abs(entry - c * t) for t in sizes for entry in (-1, 0, 1))
    return SensitivityProfile(np.full(n_coordinates, min(_at_least(largest), l2)), l2=l2)


def support_sizes(n_coordinates: int, max_ones: int, adjacency: Adjacency) -> dict[int, int]:
    """Return, for every sum t ≥ 0 of the entries of a change, the most non-zero entries."""
    if adjacency == "add_remove":
        return {t: t for t in range(max_ones + 1)}
    # m + m' = 2 m - t with m <= k and 2 m - t <= d.
    return {t: 2 * min(max_ones, (n_coordinates + t) // 2) - t for t in range(max_ones + 1)}


def _at_least(value: Fraction) -> float:
    """Return the smallest float that is not below the value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _at_least_root(value: Fraction) -> float:
    """Return a float not below the square root of the value, and next to it."""
    root = math.nextafter(math.sqrt(value), 0.0)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
