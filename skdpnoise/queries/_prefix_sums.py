"""What to release of a histogram so that its cumulative sums are known well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdpnoise.queries._tiles import Floats, Integers

SQUARE_ROOT = 0  # in place of a tree's branching

_UNIT = 2.0**20  # entries are whole multiples of its inverse
_MARGIN = 1e-12  # floating-point error of a norm, with room to spare


@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """Linear functions A x of the counts x, and cumulative sums estimated from them."""

    rows: Integers  # A, in units of 2**-20; not negative
    # shape (n_bins, n_rows): from noisy A x to the cumulative sums, by least squares
    estimate: Floats
    # shape (n_bins, n_bins): of these estimates, for noise of variance one
    covariance: Floats
    # moved_l1, moved_l2: the most that |A x|_1 and |A x|_2 change when one count moves to another
    # bin
    moved_l1: float
    moved_l2: float
    # added_l1, added_l2: the same when one count is added
    added_l1: float
    added_l2: float
    largest: float  # largest entry of A: the most that one entry of A x changes

    def answers(self, counts: Integers) -> Floats:
        """Return A x, exactly for fewer than 2**32 records."""
        exact: Integers = self.rows @ counts
        return exact / _UNIT

    def mean_variance(self) -> float:
        """Return the mean variance of cumulative sums whose last is known."""
        last = self.covariance[:, -1]
        known = np.diag(self.covariance) - last**2 / last[-1]
        return float(known[:-1].mean())

    def cumulative(self, noisy: Floats, total: float) -> Floats:
        """Return estimates of all cumulative sums, the last of which is known."""
        sums = self.estimate @ noisy
        sums -= self.covariance[:, -1] / self.covariance[-1, -1] * (sums[-1] - total)
        return sums


@lru_cache(maxsize=64)
def prefix_strategy(n_bins: int, branching: int) -> Strategy:
    """Return the square-root strategy, or a tree of a branching; one level is a histogram.

    Reference: Henzinger, Upadhyay and Upadhyay, "Almost tight error bounds on differentially
    private continual counting", SODA 2023, Theorem 2 (the square root). Qardaji, Yang and Li,
    "Understanding hierarchical methods for differentially private histograms", VLDB 2013 (trees).
    """
    # The matrix P of cumulative sums (ones on and below the diagonal) has the square root C,
    # Toeplitz with c_0 = 1, c_k = c_{k-1} (2k - 1)/(2k). Releasing C x with noise z and multiplying
    # by C gives P x + C z: for many bins and Gaussian noise within a vanishing fraction of the
    # least error that any matrix can give.
    # A tree releases the counts of all nodes of all levels below the root: a record is one count of
    # each level.
    if branching == SQUARE_ROOT:
        k = np.arange(1.0, n_bins)
        c = np.concatenate([[1.0], np.cumprod((2.0 * k - 1.0) / (2.0 * k))])
        lag = np.subtract.outer(np.arange(n_bins), np.arange(n_bins))
        real = np.where(lag >= 0, c[np.maximum(lag, 0)], 0.0)
    else:
        levels, width = [], 1
        while width < n_bins:
            nodes = np.arange(n_bins) // width
            levels.append(np.equal.outer(np.arange(nodes[-1] + 1), nodes).astype(float))
            width *= branching
        real = np.vstack(levels)
    rows = np.rint(real * _UNIT).astype(np.int64)
    matrix = rows / _UNIT
    inverse = np.linalg.inv(matrix.T @ matrix)
    prefix = np.tri(n_bins)
    moved_l1 = moved_l2 = 0.0
    for column in matrix.T:
        change = np.abs(matrix.T - column)
        moved_l1 = max(moved_l1, float(change.sum(axis=1).max()))
        moved_l2 = max(moved_l2, float(np.sqrt((change**2).sum(axis=1).max())))
    up = 1.0 + _MARGIN
    return Strategy(
        rows,
        prefix @ inverse @ matrix.T,
        prefix @ inverse @ prefix.T,
        moved_l1 * up,
        moved_l2 * up,
        float(matrix.sum(axis=0).max()) * up,
        float(np.sqrt((matrix**2).sum(axis=0).max())) * up,
        float(matrix.max()),
    )
