"""Private counts, sums and means: the mechanism that fits, and what it found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, check_option, check_order, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.session import Drawn
from skdpnoise.accounting.terms import OfOne, Terms, takes_terms
from skdpnoise.data.missing import Missing, present
from skdpnoise.data.redaction import check_collected
from skdpnoise.data.table import Table
from skdpnoise.kernels.sweeps import Sweep
from skdpnoise.kernels.tiles import HALF_SUM, Floats, Integers, Places
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.queries.values import as_table, ends, read_values
from skdpnoise.sampling.words import with_caveat
from skdpnoise.sensitivity import SensitivityProfile, clipped_sum

# Contributions are rounded to 2**-16 of the grid step of the noise, and their sum to the grid step:
# so rounding adds up to nothing that shows, even over 10**9 records.
_FINE_BITS = 16
_LARGEST = 1e60  # squares of bounds, and their ratios, stay within double precision
_MOST = 1 << 900  # records that are counted: within double precision, in grid steps too
_SHOWN = 6  # numbers of a vector that are printed
# The number that stands for one value in a count beside its sum, where a record may be replaced: so
# that the l1 norm (1), or the l2 norm (just below the root of 3), is that of the sum alone.
_STEPS_OF_ONE = (1.0, 1.732)
# A count that comes at no more than this factor in the error of a sum is taken along.
_FREE = 1.0 + 1e-4


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class PrivateEstimate:
    """A released number, or vector of numbers, with its standard error: all of it public.

    Parameters
    ----------
    value : float, int or ndarray of shape (n_columns,)
        The estimate.
    standard_error : float or ndarray of shape (n_columns,)
        Of the noise, from public facts and released numbers; what clipping to the bounds does to
        the data is not in it.
    mechanism : AdditiveMechanism
        What sampled the noise; its ``privacy_loss`` is what the estimate cost.
    count : float, ndarray of shape (n_columns,) or None, default=None
        Noisy number of records, or of the values of each column, where that was released, too.
    secure : bool, default=True
        Whether the noise came from the operating system's cryptographic source. If not, the first
        line of what is printed says so.
    %(results: adjacency, guarantee)s

    Examples
    --------
    >>> estimate = private_sum([0.2], 0.0, 1.0, PrivacyGuarantee(1.0), noise="iid_laplace")
    >>> print("about", estimate)
    about ... ± 1.41 (1-DP)
    """

    value: Any
    standard_error: Any
    mechanism: AdditiveMechanism
    count: Any = None
    secure: bool = True
    adjacency: Adjacency | None = None
    guarantee: PrivacyGuarantee | None = None

    @property
    def privacy(self) -> PrivacyLoss:
        """Loss of the estimate by itself."""
        return self.mechanism.privacy_loss()

    def __str__(self) -> str:
        values, errors = np.atleast_1d(self.value), np.atleast_1d(self.standard_error)
        text = _listed([f"{v:.6g} ± {e:.3g}" for v, e in zip(values, errors, strict=True)])
        count = ""
        if self.count is not None:
            count = f"; count {_listed([f'{n:.6g}' for n in np.atleast_1d(self.count)])}"
        stated = f"{text} ({self.privacy}{count})"
        return with_caveat(stated, secure=self.secure)


def _listed(texts: list[str]) -> str:
    shown = ", ".join(texts[:_SHOWN])
    return f"[{shown}{', ...' if len(texts) > _SHOWN else ''}]" if len(texts) > 1 else shown


@takes_terms
@shared_texts
def private_count(
    records: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    missing: Missing = "error",
    noise: str = "auto",
    **terms: Unpack[OfOne],
) -> PrivateEstimate:
    r"""Release how many records there are, or how many have a property or a value.

    .. math:: \mathrm{round}(n + z)

    **Guarantee.** Replacing a record, or adding or removing one, changes the count by at most one;
    rounding is post-processing. (The number of all records is public under "replace_one"; how many
    of them have a value is not, since the value that replaces another one may be missing.)

    Parameters
    ----------
    records : int, or array-like or RowSource of shape (n_records,)
        The count, or a mask: whether each record has the property. With ``missing="skip"`` a column
        of any other type: numbers, text, dates, categories.
    %(queries: guarantee)s
    missing : {"error", "skip"}, default="error"
        "skip" counts the values of a column that are not missing (None, NaN, NaT, or what pandas,
        polars and Arrow call so), as ``count`` of pandas does. A mask is refused then.
    %(queries: noise, epsilon, delta, adjacency, random_state, ledger)s

    Returns
    -------
    PrivateEstimate
        An integer, possibly negative; unbiased.

    Raises
    ------
    TypeError
        If `records` is neither an integer nor a vector of booleans, or with "skip" no column of
        another type.
    ValueError
        If the count is negative, or the neighbouring relation is given twice or not at all.
    %(queries: SpreadError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.1.

    Examples
    --------
    >>> ages = np.array([31, 45, 62, 70])
    >>> estimate = private_count(ages > 40, PrivacyGuarantee(1.0), noise="iid_laplace")
    >>> type(estimate.value), estimate.standard_error < 1.5
    (<class 'int'>, True)
    >>> answers = ["yes", None, "no"] * 400
    >>> given = private_count(answers, PrivacyGuarantee(1.0), missing="skip", random_state=0)
    >>> given.value
    800
    """
    session = Terms.of("private_count", guarantee, terms)
    check_option(session.owner, "missing", missing, get_args(Missing))
    n = _count(session.owner, _mask if missing == "error" else _present, records)
    mechanism = calibrate(noise, SensitivityProfile([1.0]), session.guarantee)
    drawn = session.draw("count", mechanism)
    # No number fails after the charge: what is cut off moves no two counts further apart.
    (number,) = _with_noise([min(n, _MOST) * _count_steps(mechanism)], drawn)
    return session.stated(PrivateEstimate(round(number), _rounded_deviation(mechanism), mechanism))


@takes_terms
@shared_texts
def private_sum(
    values: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    missing: Missing = "error",
    noise: str = "auto",
    weights: ArrayLike | None = None,
    **terms: Unpack[OfOne],
) -> PrivateEstimate:
    r"""Release the sum of values clipped to public bounds.

    *Replace one.* :math:`\sum_i (x_i - c)` is released, c the centre of the bounds, and n c is
    added, n the public number of records: one record moves it by at most high − low.

    *Add or remove one.* The better of two, by the expected error, which is public:

    1. :math:`\sum_i x_i`, which one record moves by at most ``max(|low|, |high|)``;
    2. :math:`F = \sum_i (x_i - c)` and n together, which one record moves by at most
       ((high − low)/2, 1); the sum is :math:`\tilde F + c\,\tilde n`. For many columns bounded by
       [0, h] this has up to a quarter of the variance, and the count comes with it.

    *Missing values skipped.* Zero stands for what is missing, after the others are clipped: the sum
    of all records between ``min(low, 0)`` and ``max(high, 0)`` is released as above. A record whose
    value is missing in one of two neighbours moves it by no more than these bounds allow, and how
    many values there are is not told. (A count, where it comes along, is of all records.)

    **Guarantee.** The bounds hold for the values as they are summed: each is clipped and rounded to
    an integer number of public fine grid steps that obeys the bound. Sums of integers are exact.
    All columns (and the count) are released by one mechanism.

    Parameters
    ----------
    values : array-like or RowSource of shape (n_records,) or (n_records, n_columns)
        The private values, finite, or missing with "skip". There may be none.
    low, high : float or array-like of shape (n_columns,)
        Public bounds, low < high. They must not be read from the data. Or give `bounds`.
    %(queries: guarantee)s
    bounds : tuple (low, high) or None, default=None
        Both at once.
    %(queries: missing, noise)s
        Noises that live on the integers are refused.
    %(queries: weights, epsilon, delta, adjacency, random_state, ledger)s

    Returns
    -------
    PrivateEstimate
        Unbiased for the sum of the clipped values; with a count where that came at no cost.

    Raises
    ------
    %(queries: TypeError)s
    ValueError
        If the values are not finite, the bounds not ordered, or the neighbouring relation is given
        twice or not at all.
    %(queries: SpreadError)s

    References
    ----------
    Lebeda, "Better Gaussian mechanism using correlated noise", arXiv:2408.06853, Algorithm 1 (the
    count beside the centred sum). Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5.

    Examples
    --------
    >>> X = np.full((1000, 8), 0.75)
    >>> guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove")
    >>> estimate = private_sum(X, 0.0, 1.0, guarantee, noise="inid_gaussian", random_state=0)
    >>> bool(abs(estimate.value - 750.0).max() < 5 * estimate.standard_error.max())
    True
    >>> estimate.mechanism.sensitivity.n_coordinates  # eight centred sums, and the count
    9
    """
    session = Terms.of("private_sum", guarantee, terms)
    pair = ends(session.owner, low, high, bounds)
    table, shape, within = _check_summands(session.owner, noise, values, pair, weights, missing)
    if missing == "skip":
        table = table.map(partial(_with_zeros, within.low, within.high), within.low.size)
        low, high = np.minimum(within.low, 0.0), np.maximum(within.high, 0.0)
        within = replace(within, low=low, high=high)
    centre, importance = within.centre, within.weights
    if session.adjacency == "add_remove":
        profile = clipped_sum(within.low, within.high, "add_remove")
    else:
        profile = SensitivityProfile(2.0 * within.half_width)
    mechanism = calibrate(noise, profile, session.guarantee, weights=importance)
    deviation, counted = mechanism.standard_deviation, False
    if session.adjacency == "add_remove" and centre.any():
        joint = _with_count(session, noise, within, float(importance @ centre**2))
        combined = np.hypot(joint.standard_deviation[:-1], centre * joint.standard_deviation[-1])
        error = float(importance @ combined**2)
        counted = error <= _FREE * mechanism.expected_error(weights=importance)
    if counted:
        mechanism, deviation = joint, combined
    elif session.adjacency == "add_remove":
        within = replace(within, centred=False)
    sums, count = _release(session, table, within, mechanism)
    sums = sums + (len(table) if count is None else count) * within.centre
    return session.stated(PrivateEstimate(shape(sums), shape(deviation), mechanism, count))


@takes_terms
@shared_texts
def private_mean(
    values: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    missing: Missing = "error",
    noise: str = "auto",
    weights: ArrayLike | None = None,
    **terms: Unpack[OfOne],
) -> PrivateEstimate:
    r"""Release the mean of values clipped to public bounds.

    *Replace one.* The sum of :func:`private_sum` over the public number of records.

    *Add or remove one.* The centred sum :math:`F = \sum_i (x_i - c)` and the number n of records
    together, which one record moves by at most ((high − low)/2, 1); then

    .. math:: c + \tilde F / \tilde n

    Its error is about :math:`(\sigma_F^2 + m^2 \sigma_n^2)/n^2`, m the distance of the mean from
    the centre. The noise is shared between the two so that this is least on average over means
    uniform within the bounds, :math:`m^2 = h^2/3` with h half their width. The ratio has a bias of
    about :math:`m \sigma_n^2/n^2`, a fraction :math:`\sigma_n/n` of the standard error or less.

    *Missing values skipped.* How many values a column has is private under either relation: the
    record that replaces another one may have none. So each column has a count :math:`N` of its own
    beside its sum :math:`F = \sum (x_i - c)/h`, both over the values that there are, and all
    columns are released by one mechanism. Adding or removing a record moves (F, N) by at most
    (1, 1) in each column. Replacing it moves them by (2, 0) at most where both values are there,
    and by (1, 1) where one is missing. With Laplace noise the count then comes at no cost beside
    the sum: :math:`|F| + |N|` moves by 2 either way. With Gaussian noise it does if
    :math:`\sqrt 3 N` is released, by :math:`F^2 + 3 N^2`. The mean is
    :math:`c + h \tilde F / \tilde N`, with errors as above.

    The result is clipped to the bounds. This is post-processing; it lowers the error, and biases a
    mean that is within the noise of a bound.

    **Guarantee.** As :func:`private_sum`: integers, exact sums, one mechanism.

    Parameters
    ----------
    values : array-like or RowSource of shape (n_records,) or (n_records, n_columns)
        The private values, finite, or missing with "skip". There may be no record under
        "add_remove".
    low, high : float or array-like of shape (n_columns,)
        Public bounds, low < high. They must not be read from the data. Or give `bounds`.
    %(queries: guarantee)s
    bounds : tuple (low, high) or None, default=None
        Both at once.
    %(queries: missing, noise)s
        Noises that live on the integers are refused.
    %(queries: weights, epsilon, delta, adjacency, random_state, ledger)s

    Returns
    -------
    PrivateEstimate
        Under "add_remove" with the noisy count; with "skip" with that of each column's values.

    Raises
    ------
    %(queries: TypeError)s
    ValueError
        If the values are not finite, there is none under "replace_one", the bounds are not ordered,
        or the neighbouring relation is given twice or not at all.
    %(queries: SpreadError)s

    References
    ----------
    Lebeda, arXiv:2408.06853, Algorithm 1. Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4
    and 5.

    Examples
    --------
    >>> ages = np.full(1000, 42.0)
    >>> guarantee = PrivacyGuarantee(1.0, adjacency="add_remove")
    >>> estimate = private_mean(ages, 0, 100, guarantee, noise="inid_laplace", random_state=0)
    >>> bool(abs(estimate.value - 42.0) < 0.5), bool(abs(estimate.count - 1000) < 20)
    (True, True)
    >>> ages[::5] = np.nan  # a fifth of the records has no age
    >>> estimate = private_mean(
    ...     ages, 0, 100, guarantee, missing="skip", noise="inid_laplace", random_state=0
    ... )
    >>> bool(abs(estimate.value - 42.0) < 0.5), bool(abs(estimate.count - 800) < 20)
    (True, True)
    """
    session = Terms.of("private_mean", guarantee, terms)
    pair = ends(session.owner, low, high, bounds)
    table, shape, within = _check_summands(session.owner, noise, values, pair, weights, missing)
    half, n = within.half_width, len(table)
    if session.adjacency == "replace_one" and n == 0:
        raise ValueError(
            "The 'values' parameter of private_mean must not be empty under 'replace_one', where "
            "the number of records is public: an empty table has no mean."
        )
    if missing == "skip":
        return _mean_of_present(session, noise, table, shape, within)
    if session.adjacency == "add_remove":
        mechanism = _with_count(session, noise, within, float(within.weights @ half**2) / 3)
    else:
        profile = SensitivityProfile(2.0 * half)
        mechanism = calibrate(noise, profile, session.guarantee, weights=within.weights)
    sums, count = _release(session, table, within, mechanism)
    divisor = float(n) if count is None else max(count, 1.0)
    distance = np.clip(sums / divisor, -half, half)
    deviation = mechanism.standard_deviation
    if count is not None:
        deviation = np.hypot(deviation[:-1], distance * deviation[-1])
    mean = np.clip(within.centre + distance, within.low, within.high)
    # Between two bounds no estimate errs by more than their distance.
    error = np.minimum(deviation / divisor, 2.0 * half)
    return session.stated(PrivateEstimate(shape(mean), shape(error), mechanism, count))


def _count(owner: str, tell: Callable[[str, Any], NDArray[np.bool_]], records: Any) -> int:
    """Return how many records there are, or of how many a function tells that they count."""
    if tell is _mask and (type(records) is int or _is_whole(records)):
        if records < 0:
            raise ValueError(
                f"The 'records' parameter of {owner} must not be negative if it is a count."
            )
        return int(records)  # of any size
    rows, _ = read_values(owner, records, partial(tell, owner))
    return int(rows.or_else(np.zeros(0, dtype=bool)).total(_count_true, "count"))


def _is_whole(records: Any) -> bool:
    return np.ndim(records) == 0 and np.asarray(records).dtype.kind in "iu"


def _mask(owner: str, records: Any) -> NDArray[np.bool_]:
    check_collected(owner, "records", type(records))
    mask = np.asarray(records)
    if mask.dtype.kind == "b" and mask.ndim == 1 and not np.ma.isMaskedArray(records):
        return mask
    must = "be an int or a one-dimensional array of bool"
    remedy = (
        "If a mask has missing values, fill them with False. To count the values of a column that "
        "are there, set missing='skip'."
    )
    shown = f"an array of dtype {mask.dtype} and shape {mask.shape}"
    raise TypeError(complaint(owner, "records", must, shown, remedy))


def _present(owner: str, records: Any) -> NDArray[np.bool_]:
    check_collected(owner, "records", type(records))
    shape = records.shape if hasattr(records, "shape") else np.shape(records)
    there = None if len(shape) == 0 else present(records)
    if there is not None:
        return there
    must = "be a column of values, some of which may be missing, and no mask, with missing='skip'"
    remedy = "Of a mask, fill what is missing with False, and set missing='error'."
    raise TypeError(complaint(owner, "records", must, f"{type(records).__name__}", remedy))


def _count_true(mask: NDArray[np.bool_]) -> Integers:
    return np.asarray(np.count_nonzero(mask))


@dataclass(frozen=True, slots=True, eq=False)
class _Bounds:
    """Public facts of the columns: bounds, and the point that contributions are measured from."""

    # all of shape (n_columns,); low, high, centre in the units of the values
    low: Floats
    high: Floats
    weights: Floats  # of the squared errors
    centred: bool = True  # else contributions are measured from zero

    @property
    def centre(self) -> Floats:
        # Halves are taken before the sum, so that the widest bounds do not overflow.
        return 0.5 * self.low + 0.5 * self.high if self.centred else np.zeros_like(self.low)

    @property
    def half_width(self) -> Floats:
        """The most that a contribution can be away from the centre."""
        if self.centred:
            return 0.5 * self.high - 0.5 * self.low
        return np.maximum(np.abs(self.low), np.abs(self.high))


def _release(
    session: Terms, table: Table[NDArray[Any]], bounds: _Bounds, mechanism: AdditiveMechanism
) -> tuple[Floats, float | None]:
    """Charge the ledger; return noisy sums, from the centre, and a noisy count if there is one."""
    # A contribution is at most floor(half_width/u) steps of u = 2**-16 grid steps to either side,
    # so that the exact sum moves by at most half_width/u (twice that if a record is replaced), and
    # its rounding to grid steps by one more at most: what the mechanism is charged for.
    n_columns = bounds.half_width.size
    unit = np.ldexp(mechanism.grid_size[:n_columns], -_FINE_BITS)
    if np.floor(bounds.half_width / unit).max() >= 2.0**62:
        raise ValueError(
            f"The bounds of {session.owner} are too wide in some columns for the noise that others "
            "need: choose units, or weights, in which the columns are nearer to each other."
        )
    drawn = session.draw("sums", mechanism)
    totals = _exact_sums(table, bounds, unit)
    if mechanism.grid_size.size == n_columns:
        return _with_noise(totals, drawn), None
    totals.append(len(table) * _count_steps(mechanism))
    noisy = _with_noise(totals, drawn)
    return noisy[:-1], float(noisy[-1])


def _exact_sums(table: Table[NDArray[Any]], bounds: _Bounds, unit: Floats) -> list[int]:
    # As two digits each, so that no number of records overflows.
    limit = np.floor(bounds.half_width / unit)
    facts = np.stack([bounds.low, bounds.high, bounds.centre, unit, limit])
    sweep = Sweep(np.arange(limit.size), (2,), partial(_visit, facts), table.n_rows)
    found = table.total(sweep, "sums of columns")
    return [(high << HALF_SUM) + low for high, low in found.tolist()]


def _visit(
    facts: Floats, loops: Any, tile: Floats, n: int, counts: Integers, which: Places
) -> None:
    loops.add_digits(tile, n, facts[:, which], counts)


def _count_steps(mechanism: AdditiveMechanism) -> int:
    return math.floor(1.0 / math.ldexp(mechanism.grid_size[-1], -_FINE_BITS))


def _with_noise(totals: list[int], drawn: Drawn) -> Floats:
    half = 1 << (_FINE_BITS - 1)
    # Python's integers: a sum may be larger than any of numpy's.
    steps = np.array([t + half >> _FINE_BITS for t in totals], dtype=object)
    return drawn.in_units(steps)


def _with_count(session: Terms, noise: str, bounds: _Bounds, weight: float) -> AdditiveMechanism:
    """Return the mechanism for centred sums and, as the last coordinate, the number of records."""
    profile = SensitivityProfile(np.append(bounds.half_width, 1.0))
    weights = np.append(bounds.weights, weight)
    return calibrate(noise, profile, session.guarantee, weights=weights)


def _mean_of_present(
    session: Terms,
    noise: str,
    table: Table[NDArray[Any]],
    shape: Callable[[Floats], Any],
    bounds: _Bounds,
) -> PrivateEstimate:
    """Return noisy sums of the values that there are over noisy numbers of them, by column."""
    half, n_columns = bounds.half_width, bounds.half_width.size
    steps = _STEPS_OF_ONE if session.adjacency == "replace_one" else (1.0,)
    made = (_jointly(session, noise, bounds, step) for step in steps)
    _, step, mechanism = min(made, key=itemgetter(0))
    facts = bounds.centre, half, step
    shares = table.map(partial(_shares_and_presence, *facts), 2 * n_columns)
    reach = np.repeat([1.0, step], n_columns)
    sums, _ = _release(session, shares, _Bounds(-reach, reach, np.ones_like(reach)), mechanism)
    deviation = mechanism.standard_deviation
    count = sums[n_columns:] / step
    divisor = np.maximum(count, 1.0)
    distance = np.clip(sums[:n_columns] / divisor, -1.0, 1.0)
    mean = np.clip(bounds.centre + half * distance, bounds.low, bounds.high)
    deviation = np.hypot(deviation[:n_columns], distance * deviation[n_columns:] / step)
    error = half * np.minimum(deviation / divisor, 2.0)
    return session.stated(PrivateEstimate(shape(mean), shape(error), mechanism, shape(count)))


def _jointly(
    session: Terms, noise: str, bounds: _Bounds, step: float
) -> tuple[float, float, AdditiveMechanism]:
    """Return the mechanism for sums of shares and counts of values, and the error of the means."""
    n_columns = bounds.half_width.size
    if session.adjacency == "replace_one":
        # In units of half widths, of each column: (2, 0) of two values, (1, step) of one and none.
        l1, l2 = max(2.0, 1.0 + step), math.sqrt(n_columns * max(4.0, 1.0 + step**2))
        each = np.repeat([2.0, step], n_columns)
        profile = SensitivityProfile(each, n_columns * l1, np.nextafter(l2, np.inf))
    else:
        profile = SensitivityProfile(np.repeat([1.0, step], n_columns))
    importance = bounds.weights * bounds.half_width**2
    weights = np.append(importance, importance / (3.0 * step**2))
    mechanism = calibrate(noise, profile, session.guarantee, weights=weights)
    return mechanism.expected_error(weights=weights), step, mechanism


def _shares_and_presence(centre: Floats, half: Floats, step: float, table: Floats) -> Floats:
    """Return the distance of each value from the centre, in half widths, and a step if it is."""
    there = ~np.isnan(table)
    with np.errstate(over="ignore"):
        shares = np.clip((table - centre) / half, -1.0, 1.0)
    return np.concatenate([np.where(there, shares, 0.0), step * there], axis=1)


def _with_zeros(low: Floats, high: Floats, table: Floats) -> Floats:
    return np.where(np.isnan(table), 0.0, np.clip(table, low, high))


def _rounded_deviation(mechanism: AdditiveMechanism) -> float:
    r"""Return the standard deviation of the noise of one coordinate, rounded to integers.

    .. math:: E[K^2] = \sum_{k \ge 1} (2k - 1) \Pr(|K| \ge k), \qquad K = \mathrm{round}(s Z)
    """
    scale, family = float(mechanism.scale[0]), mechanism.family
    if family.lattice:
        return float(mechanism.standard_deviation[0])
    if scale > 64.0:  # the noise is smooth on the scale of one: Sheppard's correction
        return math.sqrt(scale**2 * family.variance + 1.0 / 12.0)
    k = np.arange(1.0, math.ceil(scale * float(family.isf(1e-20))) + 2.0)
    return math.sqrt(float(np.sum((2.0 * k - 1.0) * 2.0 * family.sf((k - 0.5) / scale))))


def _check_summands(
    owner: str,
    noise: str,
    values: ArrayLike,
    pair: tuple[ArrayLike, ArrayLike],
    weights: ArrayLike | None,
    missing: Missing,
) -> tuple[Any, Callable[[Floats], Any], _Bounds]:
    """Return what `as_table` does and the bounds of every column, or say what is wrong."""
    family = str(noise).partition("_")[2]
    if family in noise_names() and get_noise(family).lattice:
        must = "name a noise on the real numbers, since sums of real numbers are not integer"
        raise ValueError(complaint(owner, "noise", must, repr(noise)))
    check_option(owner, "missing", missing, get_args(Missing))
    table, shape = as_table(owner, values, missing=missing)
    columns = table.tail
    remedy = "Values without bounds cannot be protected by noise."
    left, right = (
        np.broadcast_to(check_array(owner, name, end, (), columns, remedy=remedy), columns)
        for name, end in zip(("low", "high"), pair, strict=True)
    )
    check_order(owner, "low", left, right)
    half = 0.5 * right - 0.5 * left
    if not (half.min() >= 1.0 / _LARGEST and np.abs([left, right]).max() <= _LARGEST):
        raise ValueError(
            f"The bounds of {owner} are beyond {_LARGEST:g}, or closer than its inverse: choose "
            "units in which they are nearer to one."
        )
    remedy = "Give a column that does not matter a small weight."
    given = np.ones(columns) if weights is None else weights
    importance = check_array(owner, "weights", given, columns, sign="positive", remedy=remedy)
    return table, shape, _Bounds(left, right, importance)
