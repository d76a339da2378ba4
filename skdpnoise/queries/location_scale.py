"""Private locations and scales of columns, without any bounds on the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_option
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.session import Search, Session
from skdpnoise.accounting.terms import OfSeveral, Terms, WithCost, takes_terms
from skdpnoise.data.table import Table
from skdpnoise.kernels.tiles import Floats, Places
from skdpnoise.mechanisms.calibrate import shared_budget
from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.privacy import LossBudget, PrivacyGuarantee
from skdpnoise.queries.ranges import (
    DIGIT_BITS,
    LEAST_MAGNITUDES,
    MOST_DIGITS,
    REACH,
    SEARCH_SHARES,
    TYPICAL,
    ColumnSums,
    Ranges,
)
from skdpnoise.queries.values import MISSING, as_floats, as_table
from skdpnoise.sensitivity import clipped_sum

_STEPS = 5  # releases: magnitude, coarse and fine location, mean, deviation
LEAST_SCALE = 0.02  # in halves of public bounds
LIMIT = 3.0  # scales to which a fit clips values without public bounds
TO_SIGMA = 1.25  # standard deviation over mean absolute deviation of a normal law


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class LocationScale(WithCost):
    """Private locations and scales of columns.

    Parameters
    ----------
    location : ndarray of shape (n_columns,)
        Centre of each column, in the units of the column.
    scale : ndarray of shape (n_columns,)
        About one standard deviation of the bulk of each column, in its units; positive.
    found : ndarray of bool of shape (n_columns,)
        False where the noise drowned the column, or it is constant: its location and scale mean
        nothing. Where all columns should be left out, one is found with a probability of about 2 %,
        however many there are.
    %(results: typical_found, privacy, adjacency, secure, guarantee)s

    Examples
    --------
    >>> LocationScale(np.zeros(1), np.ones(1), np.array([True])).found.all()
    np.True_
    """

    location: NDArray[np.float64]
    scale: NDArray[np.float64]
    found: NDArray[np.bool_]
    typical_found: bool = True


@takes_terms
@shared_texts
def private_location_scale(
    columns: ArrayLike | Sequence[NDArray[np.floating]] | Table[Any],
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    noise: str = "auto",
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    n_samples: float | None = None,
    pooled: bool = False,
    **terms: Unpack[OfSeveral],
) -> LocationScale:
    r"""Find the location and scale of every column under one guarantee, with or without bounds.

    1. *Magnitude.* Records are paired by a secret uniform permutation. A histogram of
       :math:`\lfloor\log_2|x_i - x_j|\rfloor` over the pairs that differ is released per column;
       its fullest bin k gives the magnitude :math:`s = 2^k`. Columns are guarded together against
       bins that only noise fills, by the procedure of Benjamini and Hochberg; magnitudes near 1
       need less than those that hardly any unit has.
    2. *Location.* The bin index :math:`\lfloor x/(2s) \rfloor` is found digit by digit: first its
       sign and number of bits, then digits of 11 bits, each from the fullest bin of a histogram.
    3. *Refinement.* Values are clipped to 8 s around the location, or to the public bounds where
       there are some; a noisy mean moves the location, then a noisy mean absolute deviation times
       1.25 is the scale.

    Where the noise would hide the magnitudes of normal values in these histograms, and losses are
    Gaussian, all of the budget goes into noisy bisections of all columns side by side
    (``skdpnoise.queries.bisected_columns``): of :math:`|x_i - x_j|`, then of the values. Where it
    would hide those of single columns, `pooled` ones are searched for one location and one scale of
    them all first, by a small part of the budget; columns that are alike are refined by the rest.

    Means and deviations of four columns or more are shrunk towards their common value by the
    James-Stein estimator with the known noise variance, which is post-processing.

    **Privacy.** Sensitivities are those of :func:`~skdpnoise.sensitivity.paired_histogram`,
    :func:`~skdpnoise.sensitivity.histogram_counts` and :func:`~skdpnoise.sensitivity.clipped_sum`.
    Contributions are rounded to integer grid steps, so that their sums are exact. Later releases
    depend on earlier ones only through released numbers, and the shares of the budget that they use
    never add up to more than the whole, whatever was released: fully adaptive composition then
    costs no more than the whole budget, for pure and for Gaussian loss.

    Large data are read by ``NUMBA_NUM_THREADS`` threads; no result depends on their number.

    Parameters
    ----------
    columns : array-like or RowSource of shape (n_samples, n_columns), or sequence of arrays
        The private values, finite. There may be none under "add_remove". An array of floats is read
        in place; several arrays are copied into one.
    %(queries: guarantee)s
    noise : str, default="auto"
        A noise of :func:`~skdpnoise.mechanisms.calibrate`; "auto" chooses one for all releases.
    %(queries: bounds)s
    n_samples : float or None, default=None
        Divisor of the means. None takes the number of rows; a private one must be given under
        "add_remove".
    pooled : bool, default=False
        Give columns whose own magnitude the noise hides the one that most of them have, from the
        sum of their noisy histograms, and the location 0 where none is found: post-processing. It
        is right for columns of one kind, such as counts of words.
    %(queries: epsilon, delta, adjacency, random_state, ledger, charge)s

    Returns
    -------
    LocationScale

    Raises
    ------
    ValueError
        If `n_samples` is missing under "add_remove", bounds are not ordered, or the noise cannot
        give the guarantee.
    %(queries: SpreadError)s

    References
    ----------
    Karwa and Vadhan, "Finite sample differentially private confidence intervals", ITCS 2018,
    Algorithm 1 (a histogram finds an unbounded location). Efron and Morris, "Stein's estimation
    rule and its competitors", JASA 1973, equation 1.7. Benjamini and Hochberg, "Controlling the
    false discovery rate", JRSS B 1995. Smith and Thakurta, "Fully adaptive
    composition for Gaussian differential privacy", arXiv:2210.17520, Theorem 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([1000.0, -3e-5], [5.0, 2e-6], size=(20_000, 2))
    >>> found = private_location_scale(X, PrivacyGuarantee(1.0, 1e-6), random_state=0)
    >>> bool(np.all(np.abs(found.location - [1000.0, -3e-5]) < [0.5, 2e-7])), found.found.all()
    (True, np.True_)
    """
    session = Terms.of("private_location_scale", guarantee, terms, several=True)
    check_option(session.owner, "noise", noise, noise_options(adaptive=True))
    facts: dict[str, Any] = {"n_dims": (2,), "fewest": int(session.adjacency == "replace_one")}
    table, _ = as_table(session.owner, _stacked(columns), each=as_floats, **facts)
    n_samples = session.public_count(n_samples, table.n_rows)
    ranges = Ranges(session.owner, table.tail[0], bounds, pooled=pooled)
    # One family for all steps: that for a few sums.
    sums = clipped_sum(-np.ones(table.tail[0]), 1.0, session.adjacency)
    noise, total = shared_budget(noise, sums, session.guarantee, _STEPS)
    session.reserve(total, noise)
    found = session.answer(locate(ranges, session, noise, total, n_samples), table)
    return session.stated(replace(found, privacy=total))


def finest_histogram(n_columns: int) -> tuple[float, int]:
    """Return the smallest part of a loss that one histogram may get, and the bins that it has.

    Examples
    --------
    >>> finest_histogram(3)
    (0.01, 2048)
    """
    return SEARCH_SHARES[2] / (n_columns * MOST_DIGITS), 1 << DIGIT_BITS


def locate(
    ranges: Ranges, session: Session, noise: str, total: LossBudget, n_samples: float
) -> Search[LocationScale]:
    """Find locations and scales by all of a loss."""
    found, left = yield from locate_first(ranges, session, noise, total, n_samples)
    if not left:
        return found
    columns, loss = np.flatnonzero(~ranges.bounded), total.share(left)
    location, scale = found.location.copy(), found.scale.copy()
    location[columns], scale[columns] = yield from _refine(ranges, columns, REACH, loss, "")
    return replace(found, location=location, scale=scale)


def locate_first(
    ranges: Ranges, session: Session, noise: str, total: LossBudget, n_samples: float
) -> Search[tuple[LocationScale, float]]:
    """Find locations and scales; return also the part that is left where columns are alike."""
    yield from ranges.find(session, noise, total, n_samples, refined=True)
    after = 1.0 - ranges.spent
    location, scale, found = ranges.center.copy(), ranges.unit.copy(), ranges.found
    open_columns = np.flatnonzero(~ranges.bounded)
    bounded = np.flatnonzero(ranges.bounded)
    # with public bounds the whole budget is there for it
    refinement = 1.0 - sum(SEARCH_SHARES) if open_columns.size else 1.0
    groups, n_refined = {" of bounded columns": bounded}, ranges.bounded.size
    if not ranges.bisected:
        groups[""] = open_columns[found[open_columns]]
        n_refined = int(np.count_nonzero(found))
    for label, group in groups.items():
        if group.size:
            loss = total.share(after * refinement * group.size / n_refined)
            reach = 1.0 if group is bounded else REACH
            suffix = label if open_columns.size else ""
            refined = yield from _refine(ranges, group, reach, loss, suffix)
            location[group], scale[group] = refined
    facts = LocationScale(location, scale, found, ranges.typical_found)
    left = after * (1.0 - refinement * bounded.size / ranges.bounded.size)
    return facts, left if ranges.common else 0.0


def _refine(
    ranges: Ranges, columns: Places, reach: float, loss: LossBudget, suffix: str
) -> Search[tuple[Floats, Floats]]:
    """Return locations and scales from the values clipped to a reach in units of the locations."""
    # What is missing counts as the location, and as a deviation that says nothing new.
    location, unit, missing = ranges.center[columns], ranges.unit[columns], ranges.missing
    ones, half = np.ones(columns.size), loss.share(HALF)
    typical = (1.0 if reach > 1.0 else TYPICAL) / TO_SIGMA

    def clipped(loops: Any, tile: Floats, n: int, _: Any, which: Places) -> None:
        absent = tile[:, :n] == MISSING if missing else False
        loops.clip(tile, n, location[which], unit[which], reach)
        np.copyto(tile[:, :n], 0.0, where=absent)

    def deviation(loops: Any, tile: Floats, n: int, _: Any, which: Places) -> None:
        absent = tile[:, :n] == MISSING if missing else False
        loops.clip(tile, n, location[which], unit[which], reach)
        loops.clip(tile, n, mean[which], ones[which], reach)
        np.abs(tile[:, :n], out=tile[:, :n])
        np.copyto(tile[:, :n], typical, where=absent)

    sums = ColumnSums(ranges.n_samples, columns, clipped, -reach, reach)
    means, noise = ranges.averaged((yield ranges.ask("means" + suffix, sums, half)))
    mean = np.clip(_james_stein(means, noise), -reach, reach)
    sums = ColumnSums(ranges.n_samples, columns, deviation, 0.0, reach)
    label = "mean absolute deviations" + suffix
    means, noise = ranges.averaged((yield ranges.ask(label, sums, half)))
    # The floor keeps a scale that the noise made tiny, or negative, from blowing values up.
    floor = LEAST_MAGNITUDES if reach > 1.0 else min(max(LEAST_SCALE, noise), 1.0)
    scale = np.maximum(TO_SIGMA * _james_stein(means, noise), floor) * unit
    return location + mean * unit, scale


def _james_stein(estimates: Floats, noise: float) -> Floats:
    """Draw noisy estimates towards their mean (Efron and Morris 1973, positive part)."""
    n_estimates = estimates.size
    if n_estimates < 4:
        return estimates
    centred = estimates - estimates.mean()
    square = float(centred @ centred)
    keep = max(0.0, 1.0 - (n_estimates - 3) * noise**2 / square) if square > 0.0 else 0.0
    return np.asarray(estimates.mean() + keep * centred)


def _stacked(columns: Any) -> Any:
    """Return a sequence of vectors as one table, and anything else as it is."""
    if not isinstance(columns, list | tuple) or not all(
        isinstance(c, np.ndarray) and c.ndim == 1 for c in columns
    ):
        return columns
    if len({c.size for c in columns}) != 1:
        raise ValueError(
            "The 'columns' parameter of private_location_scale must be a table, or a sequence of "
            "arrays of one length."
        )
    # Only one column needs no copy.
    return columns[0][:, np.newaxis] if len(columns) == 1 else np.column_stack(columns)
