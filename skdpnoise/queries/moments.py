"""Private means and variances of columns, from one release, with or without bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_option
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.session import Drawn
from skdpnoise.accounting.terms import OfSeveral, Terms, WithCost, takes_terms
from skdpnoise.data.table import Table
from skdpnoise.kernels.sweeps import Sweep
from skdpnoise.kernels.tiles import DIGIT, LIMB, STEPS, Floats, Places
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate, shared_budget
from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PureLoss, check_real
from skdpnoise.queries.ranges import LEAST_MAGNITUDES, REACH, TYPICAL, Ranges
from skdpnoise.queries.values import as_floats, as_table
from skdpnoise.sensitivity import clipped_sum
from skdpnoise.sensitivity.bounds import FREE_L1, FREE_L2, clipped_moments

_TOLERATED = 0.03  # standard error of a second moment, in squared magnitudes, that is widened up to
_CLEAR = 2.0  # a variance below so many standard errors may as well be 0


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class Moments(WithCost):
    """Private means and variances of columns, all of it public.

    Parameters
    ----------
    mean : ndarray of shape (n_columns,)
        In the units of the columns; 0 where the column was not found.
    deviation : ndarray of shape (n_columns,)
        Standard deviations, in the units of the columns; positive: not below what the noise can
        hide. 1 where the column was not found.
    found : ndarray of bool of shape (n_columns,)
        False where a column without bounds is constant, or the noise drowned it.
    clear : ndarray of bool of shape (n_columns,)
        False where the variance is only what the noise can hide.
    n_samples : float
        Number of records: public, or estimated privately under "add_remove".
    %(results: typical_found, privacy, adjacency, secure, guarantee)s

    Examples
    --------
    >>> Moments(np.zeros(1), np.full(1, 3.0), np.ones(1, bool), np.ones(1, bool), 10.0).variance
    array([9.])
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    found: NDArray[np.bool_]
    clear: NDArray[np.bool_]
    n_samples: float
    typical_found: bool = True

    @property
    def variance(self) -> NDArray[np.float64]:
        """Squares of the standard deviations."""
        return np.asarray(self.deviation**2)


@takes_terms
@shared_texts
def private_moments(
    values: ArrayLike | Table[Any],
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    noise: str = "auto",
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    second: bool = True,
    n_samples: float | None = None,
    **terms: Unpack[OfSeveral],
) -> Moments:
    r"""Find means and variances of columns clipped to their ranges, which are public or estimated
    privately.

    .. math:: \hat m_j = c_j + h_j \tilde S_j/n, \qquad
              \hat v_j = h_j^2 \bigl(\tilde Q_j/n - (\tilde S_j/n)^2\bigr), \qquad
              S_j = \sum_i u_{ij}, \; Q_j = \sum_i u_{ij}^2

    with u the values less the centre c, over the half width h of the range, clipped to ±1. For a
    column with public bounds they are the range; the others are searched for a magnitude and a
    location (:func:`~skdpnoise.queries.private_location_scale`, steps 1 and 2), and reach 4 to
    16 magnitudes to either side: the more, the less noise there is. All S and Q are one release.

    **Privacy.** u is rounded to k/2^34 with an integer k first. So one record moves
    :math:`(a_j S_j, b_j Q_j)` within
    :func:`~skdpnoise.sensitivity.bounds.clipped_moments`; under "replace_one" with b/a such that
    Q comes for nothing beside S. Σk and Σk² are exact integers, from which the released vector is
    computed by exact arithmetic. Adaptive composition is as in
    :func:`~skdpnoise.queries.private_location_scale`.

    **Allocation.** With b_j = t a_j the joint bound is that of the sums alone, a sum over columns.
    The error of a mean counts relative to a typical standard deviation s_j of its column, that of a
    second moment as the error of the standard deviation that it makes. "inid" noise is then least
    for :math:`a_j \propto H_j^{1/2}` (Laplace noise: :math:`H_j^{2/3}`), H_j = h_j/s_j, and scales
    that do not depend on j, as in Theorems 4 and 5 for :math:`\lambda_j = 2 H_j`.

    Large data are read by ``NUMBA_NUM_THREADS`` threads; no result depends on their number.

    Parameters
    ----------
    values : array-like or RowSource of shape (n_samples,) or (n_samples, n_columns)
        The private values, finite.
    %(queries: guarantee)s
    noise : str, default="auto"
        A noise that adaptive releases can share (:func:`~skdpnoise.mechanisms.noise_options`).
    %(queries: bounds)s
    second : bool, default=True
        Whether variances are wanted; without them, means are better.
    %(queries: n_samples, epsilon, delta, adjacency, random_state, ledger, charge)s

    Returns
    -------
    Moments
        Standard deviations are all 1 if they are not wanted.

    Raises
    ------
    %(queries: TypeError)s
    ValueError
        If they are not finite, bounds are not ordered, or the noise cannot give the guarantee.
    %(queries: SpreadError)s

    References
    ----------
    Karwa and Vadhan, "Finite sample differentially private confidence intervals", ITCS 2018.
    Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5. That squares come for nothing is
    ours.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, -3e-5], [5.0, 2e-6], size=(20_000, 2))
    >>> found = private_moments(X, PrivacyGuarantee(1.0, 1e-6), random_state=0)
    >>> bool(np.all(np.abs(found.mean - [50.0, -3e-5]) < [0.5, 2e-7]))
    True
    >>> bool(np.all(np.abs(found.deviation / [5.0, 2e-6] - 1.0) < 0.1))
    True
    """
    session = Terms.of("private_moments", guarantee, terms, several=True)
    if n_samples is not None:
        n_samples = check_real(session.owner, "n_samples", n_samples)
    check_option(session.owner, "noise", noise, noise_options(adaptive=True))
    table, _ = as_table(session.owner, values, fewest=1, each=as_floats)
    ranges = Ranges(session.owner, table.tail[0], bounds)
    size, n_releases = ranges.low.size, ranges.n_releases
    chosen, budget = moments_budget(noise, session.guarantee, size, session.adjacency, n_releases)
    session.reserve(budget, chosen)
    session.answer(ranges.find(session, chosen, budget, n_samples), table)
    n = ranges.n_samples
    kept = np.flatnonzero(ranges.found)
    mean, deviation = np.zeros(ranges.found.size), np.ones(ranges.found.size)
    clear, typical_found = ranges.found.copy(), ranges.typical_found
    result = Moments(mean, deviation, ranges.found, clear, n, typical_found, privacy=budget)
    if kept.size == 0:
        return session.stated(result)
    bounded = ranges.bounded[kept]
    reach = np.where(bounded, 1.0, _reach(ranges, kept.size, second=second))
    half = reach * ranges.unit[kept]
    typical = np.where(bounded, TYPICAL, 1.0)
    factors, mechanism = _calibrated(ranges, reach / typical, second=second)
    label = "means and mean squares" if second else "means"
    drawn = ranges.session.draw(label, mechanism)
    totals = _exact_sums(table, kept, ranges.center[kept], half)
    released, error = _noisy(drawn, totals, factors)
    m = np.clip(released[0] / n, -1.0, 1.0)
    mean[kept] = ranges.center[kept] + half * m
    if second:
        # What the variance of a constant column would not exceed; at most that of a uniform law.
        hidden = _CLEAR * error[1] / n + (_CLEAR * error[0] / n) ** 2
        v = released[1] / n - m**2
        clear[kept] = v > hidden
        floor = np.where(bounded, np.minimum(hidden, 1.0 / 3.0), (LEAST_MAGNITUDES / reach) ** 2)
        deviation[kept] = half * np.sqrt(np.clip(v, floor, 1.0))
    return session.stated(result)


def moments_budget(
    noise: str,
    guarantee: PrivacyGuarantee | LossBudget,
    n_columns: int,
    adjacency: Adjacency,
    n_releases: int,
    rows_per_group: int = 1,
) -> tuple[str, LossBudget]:
    """Return the noise and the loss that :func:`private_moments` shares out, from public facts."""
    sums = clipped_sum(-np.ones(n_columns), 1.0, adjacency)
    return shared_budget(noise, sums, guarantee, n_releases, rows_per_group)


def _reach(ranges: Ranges, n_columns: int, *, second: bool) -> float:
    """Return how many magnitudes columns without bounds reach: less where there is noise."""
    factors, mechanism = _calibrated(ranges, np.ones(n_columns), second=second)
    deviation, n = mechanism.standard_deviation, ranges.n_samples
    if not second:
        wide = _TOLERATED * n * float(factors[0, 0] / deviation[0])
    else:
        wide = float(np.sqrt(_TOLERATED * n * factors[1, 0] / deviation[-1]))
    return min(max(wide, 0.5 * REACH), 2.0 * REACH)


def _calibrated(ranges: Ranges, half: Floats, *, second: bool) -> tuple[Floats, AdditiveMechanism]:
    """Return rows a and b, and the mechanism, for half widths in typical standard deviations."""
    noise, adjacency, budget = ranges.noise, ranges.session.adjacency, ranges.budget
    pure = isinstance(budget, PureLoss)
    power = 1.0 / 3.0 if pure else 0.5
    first = half ** (1.0 - power) if noise.startswith("inid") else half.copy()
    weights = (half / first) ** 2
    if not second:
        sums = clipped_sum(-first, first, adjacency)
        return first[np.newaxis], calibrate(noise, sums, budget, weights=weights)
    # Under "add_remove" nothing is free; the squares then count like the sums.
    free = (FREE_L1 if pure else FREE_L2) if adjacency == "replace_one" else 1.0
    square = free * first
    weights = np.concatenate([weights, (half**2 / (2.0 * square)) ** 2])
    profile = clipped_moments(first, square, adjacency)
    return np.stack([first, square]), calibrate(noise, profile, budget, weights=weights)


def _exact_sums(
    table: Table[NDArray[Any]], columns: Places, center: Floats, half: Floats
) -> list[tuple[int, int]]:
    """Return Σ k and Σ k² of the values' roundings k to 2**-34 of the half width, exactly."""

    def visit(loops: Any, tile: Floats, n: int, counts: Any, which: Any) -> None:
        loops.round_to_steps(tile, n, center[which], half[which])
        loops.add_powers(tile, n, counts)

    digit, totals = int(DIGIT), []
    sweep = Sweep(columns, (8,), visit, table.n_rows)
    for limbs in table.total(sweep, "sums of columns").tolist():
        pairs = zip(limbs[::2], limbs[1::2], strict=True)
        total, high, mixed, low = ((above << LIMB) + below for above, below in pairs)
        totals.append((total, (high * digit + 2 * mixed) * digit + low))
    return totals


def _noisy(drawn: Drawn, totals: list[tuple[int, int]], factors: Floats) -> tuple[Floats, Floats]:
    units = [Fraction(1, int(STEPS)), Fraction(1, int(STEPS) ** 2)][: len(factors)]
    exact = [unit * total[part] for part, unit in enumerate(units) for total in totals]
    weighted = [Fraction(f) * value for f, value in zip(factors.flat, exact, strict=True)]
    released, deviation = drawn.on_fractions(weighted), drawn.mechanism.standard_deviation
    deviation = np.broadcast_to(deviation, factors.size).reshape(factors.shape)
    return released.reshape(factors.shape) / factors, deviation / factors
