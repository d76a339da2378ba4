"""Bounds on what one record can change, one function per query.

Each function states its neighbouring relation and its proof; tests change one record in thousands
of ways and check that the bound holds and is reached.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, check_order, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.privacy import Adjacency, check_adjacency, check_count, check_real
from skdpnoise.sensitivity.profile import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

__all__ = [
    "FREE_L1",
    "FREE_L2",
    "bounded_ones",
    "clipped_gradient",
    "clipped_moments",
    "clipped_sum",
    "grouped_sum",
    "histogram_counts",
    "paired_histogram",
    "shifted_sums",
]

Vector = NDArray[np.float64]

FREE_L2 = 0.5 * ((1.0 + math.sqrt(5.0)) / 2.0) ** 2.5
"""Largest b/a for which sums of squares add nothing to the l2 bound of the sums beside them."""

FREE_L1 = 0.5
"""The same for the l1 bound."""


@shared_texts
def clipped_gradient(
    clip: ArrayLike, adjacency: Adjacency = "replace_one", n_samples: int | None = None
) -> SensitivityProfile:
    r"""Bound the sum, or the mean, of per-record gradients clipped to [−C_j, C_j].

    .. math:: \lambda_j = 2 C_j \text{ (replace one)}, \qquad \lambda_j = C_j \text{ (add, remove)}

    and 2 C_j/n for the mean, rounded up. Replacing a record takes one value in [−C_j, C_j] out of
    the sum and puts another in; adding or removing it changes the sum by that one value.

    Parameters
    ----------
    clip : float or array-like of shape (n_coordinates,)
        C, public, positive, in the units of the gradient. It must not be chosen from the data.
    %(mechanisms: adjacency)s
    n_samples : int or None, default=None
        If given, bound the mean over this public number of records instead of the sum.
    %(profiles: Returns)s
        λ of shape (n_coordinates,).

    Raises
    ------
    ValueError
        If the mean is asked for under "add_remove", where the number of records is private. Release
        the sum, and the count beside it.

    References
    ----------
    Mangold, Bellet, Salmon and Tommasi, "Differentially private coordinate descent for composite
    empirical risk minimization", arXiv:2110.11688, Section 3.1.

    Examples
    --------
    >>> clipped_gradient([0.5, 2.0]).per_coordinate  # half of these under "add_remove"
    array([1., 4.])
    """
    adjacency = check_adjacency("clipped_gradient", adjacency)
    values = _vector("clipped_gradient", "clip", clip, positive=True)
    divisor = 1
    if n_samples is not None:
        if adjacency == "add_remove":
            must = "be None when adjacency='add_remove': the number of records is then private"
            remedy = "Release the sum, and the number of records beside it."
            given = repr(n_samples)
            raise ValueError(complaint("clipped_gradient", "n_samples", must, given, remedy))
        divisor = check_count("clipped_gradient", "n_samples", n_samples)
    width = 2.0 if adjacency == "replace_one" else 1.0
    reach = width * values
    return SensitivityProfile(reach if divisor == 1 else np.nextafter(reach / divisor, np.inf))


@shared_texts
def clipped_sum(
    low: ArrayLike, high: ArrayLike, adjacency: Adjacency = "replace_one"
) -> SensitivityProfile:
    r"""Bound the sum of values clipped to [low_j, high_j].

    .. math:: \lambda_j = h_j - l_j \text{ (replace one)}, \qquad
              \lambda_j = \max(|l_j|, |h_j|) \text{ (add, remove)}

    Replacing a record moves one value within its interval; adding or removing it changes the sum by
    the value itself. The difference is rounded up.

    Parameters
    ----------
    low, high : float or array-like of shape (n_coordinates,)
        Public ends of the interval, low < high, in the units of the values.
    %(mechanisms: adjacency)s
    %(profiles: Returns)s
        λ of shape (n_coordinates,).
    %(dwork_roth: References)s
    Definition 3.1.

    Examples
    --------
    >>> bounds = (-1.0, [3.0, 1.0])
    >>> clipped_sum(*bounds).per_coordinate, clipped_sum(*bounds, "add_remove").per_coordinate
    (array([4., 2.]), array([3., 1.]))
    """
    adjacency = check_adjacency("clipped_sum", adjacency)
    left, right = _interval("clipped_sum", low, high)
    if adjacency == "replace_one":
        return SensitivityProfile(_difference_at_least(right, left))
    return SensitivityProfile(np.maximum(np.abs(left), np.abs(right)))


@shared_texts
def grouped_sum(
    low: ArrayLike, high: ArrayLike, n_groups: int, adjacency: Adjacency = "replace_one"
) -> SensitivityProfile:
    r"""Bound sums, one for each public group, of rows that are clipped to [low_j, high_j].

    .. math:: \lambda_{gj} = \max(h_j - l_j, m_j), \quad \Delta_1 = 2 \sum_j m_j, \quad
              \Delta_2^2 = \max\Bigl(\sum_j (h_j - l_j)^2, \, 2 \sum_j m_j^2\Bigr)
              \text{ (replace one)}

    with :math:`m_j = \max(|l_j|, |h_j|)`, and :math:`\lambda_{gj} = m_j`, :math:`\Delta_1 =
    \sum_j m_j`, :math:`\Delta_2^2 = \sum_j m_j^2` if a record is added or removed. A record is in
    one group, or in none. Replacing it within its group moves that group's sums by a difference of
    two rows; replacing it by one of another group takes a row out of one and adds a row to the
    other, which moves disjoint coordinates.

    Parameters
    ----------
    low, high : float or array-like of shape (n_columns,)
        Public ends of the interval, low <= high, in the units of the values; of counts both 1.
    n_groups : int
        Number of groups.
    %(mechanisms: adjacency)s
    %(profiles: Returns)s
        λ of shape (n_groups * n_columns,), group after group.

    Raises
    ------
    ValueError
        If an end is not finite, or low is above high anywhere.
    %(dwork_roth: References)s
    Definition 3.1.

    Examples
    --------
    >>> grouped_sum(-1.0, [3.0, 1.0], n_groups=2, adjacency="add_remove").per_coordinate
    array([3., 1., 3., 1.])
    >>> grouped_sum(0.0, [3.0, 1.0], n_groups=2)
    SensitivityProfile(n_coordinates=4, largest=3, l1=8, l2=4.47214)
    """
    owner = "grouped_sum"
    adjacency = check_adjacency(owner, adjacency)
    left, right = _interval(owner, low, high, constant=True)
    groups = check_count(owner, "n_groups", n_groups)
    largest = np.maximum(np.abs(left), np.abs(right))
    # Out of one group and into another, or into none where there is no other.
    moved = 2.0 if adjacency == "replace_one" and groups > 1 else 1.0
    l1, square = moved * largest.sum(), moved * (largest**2).sum()
    if adjacency == "replace_one":
        width = _difference_at_least(right, left)
        l1, square = max(l1, width.sum()), max(square, (width**2).sum())
        largest = np.maximum(largest, width)
    size = largest.size
    l2 = rounded_up(math.sqrt(rounded_up(float(square), size)))
    return SensitivityProfile(np.tile(largest, groups), l1=rounded_up(float(l1), size), l2=l2)


@shared_texts
def histogram_counts(
    n_bins: int, adjacency: Adjacency = "replace_one", n_columns: int = 1
) -> SensitivityProfile:
    r"""Bound the counts of a histogram in which one record is one count.

    .. math:: \lambda_j = 1, \quad \Delta_1 = 2p, \; \Delta_2 = \sqrt{2p} \text{ (replace one)},
              \quad \Delta_1 = p, \; \Delta_2 = \sqrt{p} \text{ (add, remove)}

    for p columns. Replacing a record takes one count out of a bin and puts one into another, in
    each column; adding or removing it changes one bin of each column. A record may also fall in no
    bin. Bins must be public.

    Parameters
    ----------
    n_bins : int
        Number of bins of each column.
    %(mechanisms: adjacency)s
    n_columns : int, default=1
        Number p of columns whose histograms, with ``n_bins`` bins each, are released together.
    %(profiles: Returns)s
        λ of shape (n_columns * n_bins,), column after column.
    %(dwork_roth: References)s
    Example 3.2.

    Examples
    --------
    >>> histogram_counts(100)
    SensitivityProfile(n_coordinates=100, largest=1, l1=2, l2=1.41421)
    """
    adjacency = check_adjacency("histogram_counts", adjacency)
    return _one_count_per_column("histogram_counts", n_bins, n_columns, adjacency == "replace_one")


@shared_texts
def paired_histogram(n_bins: int, n_columns: int = 1) -> SensitivityProfile:
    r"""Bound a histogram of a function of disjoint pairs of records, sampled at random.

    .. math:: \lambda_j = 1, \qquad \Delta_1 = 2p, \qquad \Delta_2 = \sqrt{2p}

    for p columns, under **both** neighbouring relations. From n records a *matching* is sampled: of
    :math:`k(n) = \min(\lfloor n/2 \rfloor, m)` disjoint pairs, m public, uniformly among all of
    that size. It is the same for all columns, and is never released.
    :func:`~skdpnoise.sampling.secret_pairs` samples it.

    *Replace one.* In any fixed matching the record is in at most one pair, so each column loses at
    most one count and gains at most one.

    *Add or remove one.* Let D have n records, D' = D ∪ {x}, and draw the matching M' of D'. Make a
    matching M of D of it as follows. (1) If x is in no pair, M = M'. (2) If x is paired with y and
    some other record is in no pair, draw one of those, z, and replace {x, y} by {z, y}. (3) If x is
    paired and all records are, drop its pair. In (1) and (2) M has k(n + 1) pairs, and so has n
    records at least twice as many: k(n + 1) = k(n). In (3) all of D' is matched, so that
    k(n + 1) = (n + 1)/2 and k(n) is one less, as M has. So M always has k(n) pairs. M' and z favour
    no record of D over another, and therefore M does not; and any two matchings of D of the same
    size differ by the names of records only. So M is uniformly distributed. Each column loses one
    count at most from M' to M, and gains at most one. For each joint draw the noisy outputs are
    (ε, δ)-close, and so are their mixtures, as the hockey-stick divergence is jointly convex.

    *Gaps.* Where values may be missing, 2m records, or all of fewer, are sampled uniformly, the
    same for all columns; then each column matches those of them that have a value in it, by a
    uniform matching of its own, as many pairs as there can be. The bound is the same. First let
    neighbours sample together. Replace one: the same places. Add or remove one: D' samples S'; if x
    is not in it, S = S', else S has in place of x one of the records that S' left out, drawn
    uniformly, or nothing if there is none; S is uniform as above. So S and S' differ by one record
    that is replaced, added or removed, and so do, column by column, those of them that have a
    value, or not at all. In each column the couplings above leave one pair lost and one gained at
    most. Matchings of different columns are independent under D and under D', so that their
    couplings may be, too: all columns have this bound at once.

    Parameters
    ----------
    n_bins : int
        Number of bins of each column.
    n_columns : int, default=1
        Number p of columns.
    %(profiles: Returns)s
        λ of shape (n_columns * n_bins,), column after column.

    References
    ----------
    Karwa and Vadhan, "Finite sample differentially private confidence intervals",
    arXiv:1711.03908, Algorithm 3 (pairs). Balle, Barthe and Gaboardi, "Privacy amplification by
    subsampling", arXiv:1807.01647, Section 2 (joint convexity).

    Examples
    --------
    >>> paired_histogram(201, n_columns=2)
    SensitivityProfile(n_coordinates=402, largest=1, l1=4, l2=2)
    """
    return _one_count_per_column("paired_histogram", n_bins, n_columns, moves=True)


def _one_count_per_column(
    owner: str, n_bins: int, n_columns: int, moves: bool
) -> SensitivityProfile:
    """Return the profile of one count moved, or else added, in each column."""
    bins = check_count(owner, "n_bins", n_bins)
    columns = check_count(owner, "n_columns", n_columns)
    # A count can only move to another bin where there is another bin.
    changed = columns * (2 if moves and bins > 1 else 1)
    return SensitivityProfile(
        np.ones(bins * columns), l1=float(changed), l2=math.nextafter(math.sqrt(changed), math.inf)
    )


def clipped_moments(
    first: ArrayLike, second: ArrayLike, adjacency: Adjacency = "replace_one"
) -> SensitivityProfile:
    r"""Bound weighted sums and sums of squares of values u in [−1, 1], a pair for each column.

    .. math:: f = \Bigl(a_j \sum_i u_{ij}, \; b_j \sum_i u_{ij}^2\Bigr)_j

    .. math:: \Delta_1 = \max_{0 \le d \le 2} d \, (a + b (2 - d)), \qquad
              \Delta_2^2 = \max_{0 \le d \le 2} d^2 (a^2 + b^2 (2 - d)^2)
    """
    # Replace one. Each pair moves by (a (u - v), b (u^2 - v^2)), at most 2a and b, which with
    # d = |u - v| and |u + v| <= 2 - d is the second equation. Values at opposite ends move the sum
    # most and the sum of squares not at all: for b <= a/2, the l1 bound is 2a, and for
    # b <= phi^(5/2) a/2 with the golden ratio phi (b <= 1.665 a), the l2 bound is 2a: squares come
    # for nothing. Beyond, the inner maximum is at d = (a + 2b)/(2b), respectively
    # d = (3 - sqrt(1 - 2 a^2/b^2))/2. Columns move independently, so that l1 bounds add, and
    # squares of l2 bounds do. Add or remove one: each pair moves by (a u, b u^2), whose corner
    # (a, b) is reached: there is no better joint bound. (The joint bound is ours.)
    adjacency = check_adjacency("clipped_moments", adjacency)
    a = _vector("clipped_moments", "first", first, positive=True)
    b = _vector("clipped_moments", "second", second, a.shape, positive=True)
    if adjacency == "add_remove":
        return SensitivityProfile(np.concatenate([a, b]))
    inner = np.minimum((a + 2.0 * b) / (2.0 * b), 2.0)
    largest = np.maximum(2.0 * a, inner * (a + b * (2.0 - inner)))
    l1 = rounded_up(float(np.sum(largest)), a.size)
    inner = 0.5 * (3.0 - np.sqrt(np.maximum(1.0 - 2.0 * (a / b) ** 2, 0.0)))
    at_inner = inner**2 * (a**2 + b**2 * (2.0 - inner) ** 2)
    square = rounded_up(float(np.sum(np.maximum(4.0 * a**2, at_inner))), a.size)
    return SensitivityProfile(np.concatenate([2.0 * a, b]), l1=l1, l2=rounded_up(math.sqrt(square)))


@shared_texts
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
    %(profiles: Returns)s
        λ of shape (n_coordinates + 1,), the count last.

    References
    ----------
    Lebeda, "Better Gaussian mechanism using correlated noise", arXiv:2408.06853 (for 0 and 1).

    Examples
    --------
    >>> shifted_sums(0.0, [2.0, 6.0], [1.0, 3.0]).per_coordinate
    array([1., 3., 1.])
    """
    left, right = _interval("shifted_sums", low, high)
    centre = _vector("shifted_sums", "shift", shift)
    reach = np.maximum(_difference_at_least(right, centre), _difference_at_least(centre, left))
    return SensitivityProfile(np.append(reach, 1.0))


@shared_texts
def bounded_ones(
    n_coordinates: int, max_ones: int, adjacency: Adjacency = "add_remove", *, mixing: float = 0.0
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
    %(profiles: Returns)s
        λ of shape (n_coordinates,) and Δ_2; Δ_1 without mixing.

    References
    ----------
    Joseph and Yu, "Some constructions of private, efficient, and optimal K-norm and elliptic
    Gaussian noise", arXiv:2309.15790 (without mixing, which is ours; the tests try all changes).

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


def _vector(
    owner: str, name: str, values: ArrayLike, *shapes: tuple[int, ...], positive: bool = False
) -> Vector:
    vector = np.atleast_1d(np.asarray(values))
    return check_array(owner, name, vector, *shapes, sign="positive" if positive else "")


def _interval(
    owner: str, low: ArrayLike, high: ArrayLike, *, constant: bool = False
) -> tuple[Vector, Vector]:
    left, right = np.broadcast_arrays(_vector(owner, "low", low), _vector(owner, "high", high))
    check_order(owner, "low", left, np.nextafter(right, np.inf) if constant else right)
    return left, right


def _difference_at_least(high: Vector, low: Vector) -> Vector:
    # The error of a rounded difference is a double, and found without error (Knuth, "The art of
    # computer programming", volume 2, section 4.2.2, Theorem B).
    near = high - low
    taken = high - near
    error = (high - (near + taken)) + (taken - low)
    return np.where(error > 0.0, np.nextafter(near, np.inf), near)


def _at_least(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _at_least_root(value: Fraction) -> float:
    """Return a float not below the square root of the value, and next to it."""
    root = math.nextafter(math.sqrt(value), 0.0)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
