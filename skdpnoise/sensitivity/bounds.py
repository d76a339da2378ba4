"""Bounds on what one record can change, one function per query.

Each function states its neighbouring relation and its proof; the tests change one record in
thousands of ways and check that the bound holds and is reached.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy import Adjacency, check_adjacency, check_count
from skdpnoise.privacy.checks import check_array, check_order
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sensitivity.profile import SensitivityProfile

__all__ = ["clipped_gradient", "clipped_sum", "histogram_counts", "paired_histogram"]


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

    Returns
    -------
    SensitivityProfile
        λ of shape (n_coordinates,).

    Raises
    ------
    ValueError
        If a clip is not positive and finite, or the mean is asked for under "add_remove": there the
        number of records is private. Release the sum, and the count beside it.

    References
    ----------
    Mangold, Bellet, Salmon and Tommasi, "Differentially private coordinate descent for composite
    empirical risk minimization", arXiv:2110.11688, Section 3.1.

    Examples
    --------
    >>> clipped_gradient([0.5, 2.0]).per_coordinate
    array([1., 4.])
    >>> clipped_gradient([0.5, 2.0], adjacency="add_remove").per_coordinate
    array([0.5, 2. ])
    """
    adjacency = check_adjacency("clipped_gradient", adjacency)
    values = check_array(
        "clipped_gradient", "clip", np.atleast_1d(np.asarray(clip)), sign="positive"
    )
    divisor = 1
    if n_samples is not None:
        if adjacency == "add_remove":
            raise ValueError(
                "The 'n_samples' parameter of clipped_gradient must be None when "
                "adjacency='add_remove': the number of records is then private. Release the sum, "
                f"and the number of records beside it. Got {n_samples!r} instead."
            )
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

    Returns
    -------
    SensitivityProfile
        λ of shape (n_coordinates,).

    Raises
    ------
    ValueError
        If an end is not finite, or low is not below high everywhere.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Definition 3.1.

    Examples
    --------
    >>> clipped_sum(-1.0, [3.0, 1.0]).per_coordinate
    array([4., 2.])
    >>> clipped_sum(-1.0, [3.0, 1.0], adjacency="add_remove").per_coordinate
    array([3., 1.])
    """
    adjacency = check_adjacency("clipped_sum", adjacency)
    left, right = np.broadcast_arrays(
        as_vector("clipped_sum", "low", low), as_vector("clipped_sum", "high", high)
    )
    check_order("clipped_sum", "low", left, right)
    if adjacency == "replace_one":
        return SensitivityProfile(_difference_at_least(right, left))
    return SensitivityProfile(np.maximum(np.abs(left), np.abs(right)))


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

    Returns
    -------
    SensitivityProfile
        λ of shape (n_columns * n_bins,), column after column.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.2.

    Examples
    --------
    >>> histogram_counts(100)
    SensitivityProfile(n_coordinates=100, largest=1, l1=2, l2=1.41421)
    """
    adjacency = check_adjacency("histogram_counts", adjacency)
    return _one_count_per_column("histogram_counts", n_bins, n_columns, adjacency == "replace_one")


def paired_histogram(n_bins: int, n_columns: int = 1) -> SensitivityProfile:
    r"""Bound a histogram of a function of disjoint pairs of records, matched at random.

    .. math:: \lambda_j = 1, \qquad \Delta_1 = 2p, \qquad \Delta_2 = \sqrt{2p}

    for p columns, under **both** neighbouring relations. The matching is a uniformly random one of
    the records (one stays out if their number is odd), is the same for all columns, and is never
    released.

    *Replace one.* For any fixed matching, the record sits in at most one pair, so each column
    loses at most one count and gains at most one.

    *Add or remove one.* Let D' = D ∪ {x} and draw the matching M' of D'. If D has even size, one
    record z of D' stays out: if z = x, M' is a uniform matching of D, and nothing changes; else x
    is paired with some y, and replacing {x, y} by {y, z} gives, by symmetry, a uniform matching
    of D, with one pair different. If it is odd, x is paired with some y, and dropping the pair
    gives a uniform matching of D without y: one count less. So the two random matchings can be
    drawn together such that the histograms always obey the bound. For each joint draw the noisy
    outputs are then (ε, δ)-close; the outputs themselves are the same mixture of these on both
    sides, and the hockey-stick divergence is jointly convex, so the mixtures are (ε, δ)-close too.

    Parameters
    ----------
    n_bins : int
        Number of bins of each column.
    n_columns : int, default=1
        Number p of columns.

    Returns
    -------
    SensitivityProfile
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


def _difference_at_least(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return the smallest doubles that are not below the differences."""
    # The error of a rounded difference is a double, and found without error (Knuth, "The art of
    # computer programming", volume 2, section 4.2.2, Theorem B).
    near = high - low
    taken = high - near
    error = (high - (near + taken)) + (taken - low)
    rounded_up: np.ndarray = np.where(error > 0.0, np.nextafter(near, np.inf), near)
    return rounded_up


def as_vector(owner: str, name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return a number, or a vector of them, as a vector."""
    return check_array(owner, name, np.atleast_1d(np.asarray(values)))
