"""Private quantiles of many columns at once, from one release, with or without bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.spatial.distance import cdist

from skdpnoise._utils.checks import check_option, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.terms import OfSeveral, Terms, WithCost, takes_terms
from skdpnoise.data.missing import Missing
from skdpnoise.data.table import Table
from skdpnoise.kernels.sweeps import Sweep
from skdpnoise.kernels.tiles import Floats, Integers, Places
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate, shared_budget
from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.privacy import (
    Adjacency,
    GaussianLoss,
    LossBudget,
    PrivacyGuarantee,
    PureLoss,
    check_real,
)
from skdpnoise.queries.ranges import Ranges
from skdpnoise.queries.values import MISSING, as_floats, as_table
from skdpnoise.sensitivity import SensitivityProfile, histogram_counts

_BINS = 256  # of a column
_PURE_BINS = 64  # of one without bounds, where cumulative sums cost more
_REACH = 64.0  # magnitudes to either side of the location
_BRANCHINGS = (4, 8, 16, _BINS)  # of trees; the last is a plain histogram
SQUARE_ROOT = 0  # in place of a tree's branching
_UNIT = 2.0**20  # entries are whole multiples of its inverse
_MARGIN = 1e-12  # floating-point error of a norm, with room to spare
SURE = 3.0  # standard deviations of the noise, by which present values must stand out


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class Quantiles(WithCost):
    """Private quantiles of columns, all of it public.

    Parameters
    ----------
    values : ndarray of shape (n_probabilities, n_columns)
        In the units of the columns, never decreasing where the probabilities do not; 0 where the
        column was not found.
    resolution : ndarray of shape (n_columns,)
        Width of the narrowest bin: distances below it mean nothing. 1 where it was not found.
    found : ndarray of bool of shape (n_columns,)
        False where a column without bounds is constant, or the noise drowned it.
    n_samples : float
        Number of records: public, or estimated privately under "add_remove".
    n_present : ndarray of shape (n_columns,) or None, default=None
        With ``missing=True`` the number of records that have a value, estimated by the same
        release.
    error : float, default=0.0
        Standard deviation of the noise on how many records are below a value, about: of ranks that
        are not much farther from both ends nothing is known.
    %(results: typical_found, privacy, adjacency, secure, guarantee)s

    Examples
    --------
    >>> Quantiles(np.zeros((3, 1)), np.ones(1), np.ones(1, dtype=bool), 10.0).n_samples
    10.0
    """

    values: NDArray[np.float64]
    resolution: NDArray[np.float64]
    found: NDArray[np.bool_]
    n_samples: float
    n_present: NDArray[np.float64] | None = None
    error: float = 0.0
    typical_found: bool = True


@takes_terms
@shared_texts
def private_quantiles(
    values: ArrayLike | Table[Any],
    probabilities: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    noise: str = "auto",
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    n_samples: float | None = None,
    missing: bool = False,
    **terms: Unpack[OfSeveral],
) -> Quantiles:
    r"""Find quantiles of columns; their number does not change the cost.

    1. *Ranges.* Public bounds are one; columns without are searched for a magnitude s and a
       location c (:func:`~skdpnoise.queries.private_location_scale`, steps 1 and 2).
    2. *Bins.* 256 of equal width between public bounds; else 128 (64 for pure privacy) with edges
       :math:`c + s \sinh t_k`, about s/13 (s/7) wide near the location and reaching 64 s to either
       side. Values beyond are counted in the outermost bins.
    3. *One release* of all columns' cumulative counts: of x the counts in the bins, A x is released
       with noise. Gaussian noise takes for A the square root of the matrix of cumulative sums,
       which errs by :math:`\sqrt{1 + \ln(k)/\pi}` or so where a plain histogram errs by
       :math:`\sqrt k`, k the number of bins; other noises take the tree, or the plain histogram, of
       the smallest predicted error.
    4. *Quantiles.* Least squares with the known total, isotonic regression and linear
       interpolation: post-processing.

    **Privacy.** Bins depend on public numbers and released ones. A record is one count of each
    column. Replacing it changes A x by a difference of two columns of A, of which all pairs are
    tried; adding or removing it, by one column of A. Over the columns of the data l1 norms add, and
    squares of l2 norms do. No entry of A is negative, so that no entry of A x changes by more than
    the largest. A is held in whole multiples of 2^-20, so that A x is exact below 2^32 records.
    Adaptive composition as in :func:`~skdpnoise.queries.private_location_scale`.

    A missing value counts as one beyond all bins, in a bin of its own, and in no histogram that
    looks for ranges: a number that is there or not changes no more than one that is replaced. For
    magnitudes each column pairs the records that have a value in it, so that those of a column that
    is mostly empty meet each other (:func:`~skdpnoise.sensitivity.paired_histogram`, *Gaps*).

    Large data are read by ``NUMBA_NUM_THREADS`` threads; no result depends on their number.

    Parameters
    ----------
    values : array-like or RowSource of shape (n_samples,) or (n_samples, n_columns)
        The private values, finite.
    probabilities : float or array-like of shape (n_probabilities,)
        Which quantiles: from 0 to 1. Noise hides those next to 0 and 1 first.
    %(queries: guarantee)s
    noise : str, default="auto"
        A noise that adaptive releases can share (:func:`~skdpnoise.mechanisms.noise_options`);
        "auto" takes Gaussian or Laplace noise, by the predicted error.
    %(queries: bounds, n_samples)s
    missing : bool, default=False
        Whether values may be missing (NaN, None, or the like of pandas, polars and Arrow), in any
        column: quantiles are then of the others. **Public.**
    %(queries: epsilon, delta, adjacency, random_state, ledger, charge)s

    Returns
    -------
    Quantiles

    Raises
    ------
    %(queries: TypeError)s
    ValueError
        If they are not finite, a probability is not in [0, 1], bounds are not ordered, or the noise
        cannot give the guarantee.
    %(queries: SpreadError)s

    References
    ----------
    Henzinger, Upadhyay and Upadhyay, "Almost tight error bounds on differentially private continual
    counting", SODA 2023, Theorem 2. Li, Miklau, Hay, McGregor and Rastogi, "The matrix mechanism",
    VLDB Journal 2015, Proposition 3 (release A x, estimate by least squares). Hay, Rastogi, Miklau
    and Suciu, "Boosting the accuracy of differentially private histograms through consistency",
    VLDB 2010 (isotonic regression).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, -3e-5], [5.0, 2e-6], size=(20_000, 2))
    >>> found = private_quantiles(X, [0.25, 0.5], PrivacyGuarantee(1.0, 1e-6), random_state=0)
    >>> error = found.values - np.quantile(X, [0.25, 0.5], axis=0)
    >>> bool(np.all(np.abs(error) < [0.5, 2e-7]))
    True
    """
    session = Terms.of("private_quantiles", guarantee, terms, several=True)
    wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    if wanted.ndim != 1 or not ((wanted >= 0.0) & (wanted <= 1.0)).all():
        must = "be a number or a one-dimensional array of numbers in the range [0, 1]"
        raise ValueError(complaint(session.owner, "probabilities", must, repr(probabilities)))
    if n_samples is not None:
        n_samples = check_real(session.owner, "n_samples", n_samples)
    check_option(session.owner, "noise", noise, noise_options(adaptive=True))
    kind: Missing | None = "skip" if missing else None
    each = partial(as_floats, fills=missing)
    table, _ = as_table(session.owner, values, missing=kind, fewest=1, each=each)
    ranges = Ranges(session.owner, table.tail[0], bounds, missing=missing)
    size, n_releases = ranges.low.size, ranges.n_releases
    chosen, total = quantiles_budget(noise, session.guarantee, size, session.adjacency, n_releases)
    session.reserve(total, chosen)
    session.answer(ranges.find(session, chosen, total, n_samples), table)
    found = ranges.found
    quantiles, resolution = np.zeros((wanted.size, found.size)), np.ones(found.size)
    present = np.full(found.size, ranges.n_samples)
    kept, error = np.flatnonzero(found), 0.0
    if kept.size:
        n_bins = _PURE_BINS if isinstance(ranges.budget, PureLoss) else _BINS
        edges = [
            _edges(ranges.center[j], ranges.unit[j], None if ranges.bounded[j] else n_bins)
            for j in kept.tolist()
        ]
        counted = [_with_missing(ends) for ends in edges] if missing else edges
        sizes = [ends.size - 1 for ends in counted]
        variance, strategies, mechanism = _plan(chosen, ranges.budget, sizes, session.adjacency)
        error = math.sqrt(variance)
        drawn = session.draw("cumulative counts", mechanism)
        counts = table.total(_histograms(kept, counted, len(table)), "sums of columns")
        pairs = zip(strategies, counts, strict=True)
        answers = [s.answers(count[: s.rows.shape[1]]) for s, count in pairs]
        noisy = drawn.on(np.concatenate(answers))
        parts = np.split(noisy, np.cumsum([a.size for a in answers])[:-1])
        least = SURE * float(mechanism.standard_deviation.max())
        for j, ends, strategy, part in zip(kept, edges, strategies, parts, strict=True):
            sums, n = strategy.cumulative(part, ranges.n_samples), ranges.n_samples
            if missing:
                sums, n = _without_missing(sums, n)
                present[j], found[j] = n, n > least
            if found[j]:
                quantiles[:, j] = _invert(sums, ends, wanted * n, n)
                resolution[j] = np.diff(ends).min()
    made = Quantiles(
        quantiles,
        resolution,
        found,
        ranges.n_samples,
        n_present=present if missing else None,
        error=error,
        typical_found=ranges.typical_found,
        privacy=total,
    )
    return session.stated(made)


def quantiles_budget(
    noise: str,
    guarantee: PrivacyGuarantee | LossBudget,
    n_columns: int,
    adjacency: Adjacency,
    n_releases: int,
    rows_per_group: int = 1,
) -> tuple[str, LossBudget]:
    """Return the noise and the loss that :func:`private_quantiles` shares out."""
    counts = histogram_counts(_PURE_BINS, adjacency, n_columns)
    if noise != "auto" or n_releases > 1 or not isinstance(guarantee, PrivacyGuarantee):
        return shared_budget(noise, counts, guarantee, n_releases, rows_per_group)
    # One release: its own predicted error decides.
    options = []
    for name in ("inid_gaussian", "inid_laplace"):
        if guarantee.delta > 0.0 or name == "inid_laplace":
            _, budget = shared_budget(name, counts, guarantee, n_releases, rows_per_group)
            error, *_ = _plan(name, budget, [_BINS] * n_columns, adjacency)
            options.append((error, name, budget))
    return min(options, key=lambda option: option[0])[1:]


def _edges(center: float, unit: float, n_open: int | None) -> Floats:
    """Return edges between public bounds, or of so many bins around a location."""
    if n_open is None:
        steps = np.linspace(-1.0, 1.0, _BINS + 1)
    else:
        steps = np.sinh(np.linspace(-1.0, 1.0, n_open + 1) * math.asinh(_REACH))
    return np.asarray(center + unit * steps)


def _with_missing(ends: Floats) -> Floats:
    return np.concatenate([ends[:-1], [MISSING, np.inf]])


def _without_missing(sums: Floats, total: float) -> tuple[Floats, float]:
    rising = np.clip(isotonic_regression(sums[:-1]).x, 0.0, total)
    return rising, float(rising[-1])


def _histograms(columns: Places, edges: list[Floats], n_records: int) -> Sweep:
    """Return what counts values in bins closed on the left; the outermost hold all beyond them."""
    n_bins = 1 << (max(ends.size for ends in edges) - 2).bit_length()
    inner = np.full((columns.size, n_bins - 1), np.inf)
    for row, ends in zip(inner, edges, strict=True):
        row[: ends.size - 2] = ends[1:-1]

    def visit(loops: Any, tile: Floats, n: int, counts: Any, which: Any) -> None:
        loops.count_bins(tile, n, inner[which], counts)

    return Sweep(columns, (n_bins,), visit, n_records)


class PrefixStrategy:
    """Linear functions A x of the counts x, and cumulative sums estimated from them.

    Reference: Henzinger, Upadhyay and Upadhyay, "Almost tight error bounds on differentially
    private continual counting", SODA 2023, Theorem 2 (the square root). Qardaji, Yang and Li,
    "Understanding hierarchical methods for differentially private histograms", VLDB 2013 (trees).
    """

    def __init__(self, n_bins: int, branching: int, adjacency: Adjacency) -> None:
        # A is the square root, or a tree of a branching; one level is a histogram.
        # The matrix P of cumulative sums (ones on and below the diagonal) has the square root C,
        # Toeplitz with c_0 = 1, c_k = c_{k-1} (2k - 1)/(2k). Releasing C x with noise z and
        # multiplying by C gives P x + C z: for many bins and Gaussian noise within a vanishing
        # fraction of the least error that any matrix can give.
        # A tree releases the counts of all nodes of all levels below the root: a record is one
        # count of each level.
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
        self.rows = np.rint(real * _UNIT).astype(np.int64)  # A, in units of 2**-20; not negative
        matrix = self.rows / _UNIT
        inverse = np.linalg.inv(matrix.T @ matrix)
        prefix = np.tri(n_bins)
        # The most that |A x|_1 and |A x|_2 change when one count moves to another bin, or is added.
        # Entries are whole multiples of 2**-20: both sums are exact.
        others = matrix.T if adjacency == "replace_one" else np.zeros((1, len(matrix)))
        l1 = float(cdist(matrix.T, others, "cityblock").max())
        l2 = float(np.sqrt(cdist(matrix.T, others, "sqeuclidean").max()))
        self.l1, self.l2 = l1 * (1.0 + _MARGIN), l2 * (1.0 + _MARGIN)
        self.largest = float(matrix.max())
        # by least squares: from noisy A x to the cumulative sums, and their covariance for noise of
        # variance one
        self.estimate = prefix @ inverse @ matrix.T
        self.covariance = prefix @ inverse @ prefix.T

    def answers(self, counts: Integers) -> Floats:
        """Return A x, exactly for fewer than 2**32 records."""
        return np.asarray(self.rows @ counts / _UNIT)

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


prefix_strategy = lru_cache(maxsize=64)(PrefixStrategy)


def _plan(
    noise: str, budget: LossBudget, n_bins: list[int], adjacency: Adjacency
) -> tuple[float, list[PrefixStrategy], AdditiveMechanism]:
    """Return the least predicted error, and each column's strategy and all noise that have it."""
    if isinstance(budget, GaussianLoss) and noise.endswith("_gaussian"):
        branchings: tuple[int, ...] = (SQUARE_ROOT,)
    elif isinstance(budget, PureLoss):
        branchings = _BRANCHINGS
    else:  # calibration is slow, and a plain histogram never bad
        branchings = _BRANCHINGS[-1:]
    plans = []
    for branching in branchings:
        strategies = [prefix_strategy(b, branching, adjacency) for b in n_bins]
        mechanism = calibrate(noise, _change(strategies), budget)
        variance = float(np.mean([s.mean_variance() for s in strategies]))
        variance *= float(mechanism.standard_deviation.max()) ** 2
        plans.append((variance, strategies, mechanism))
    return min(plans, key=lambda plan: plan[0])


def _change(strategies: list[PrefixStrategy]) -> SensitivityProfile:
    """Bound the change of all A x together; see the proof of :func:`private_quantiles`."""
    box = np.concatenate([np.full(len(s.rows), s.largest) for s in strategies])
    l1 = sum(s.l1 for s in strategies)
    l2 = math.hypot(*(s.l2 for s in strategies))
    return SensitivityProfile(box, l1=l1 * (1.0 + _MARGIN), l2=l2 * (1.0 + _MARGIN))


def _invert(sums: Floats, edges: Floats, ranks: Floats, total: float) -> Floats:
    """Return the values at which the cumulative counts reach the ranks."""
    rising = np.clip(isotonic_regression(sums[:-1]).x, 0.0, total)
    counts = np.concatenate([[0.0], rising, [total]])
    # A slope too small to matter decides where the counts are flat.
    counts = counts + np.linspace(0.0, 1e-9 * total, counts.size)
    return np.asarray(np.interp(ranks * (1.0 + 1e-9), counts, edges))
