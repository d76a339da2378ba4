"""Private counts, sums, means and histograms: the mechanism that fits, and what it found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee
from skdpnoise.privacy.loss import checked_relation
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.queries._aggregation import (
    as_table,
    check_continuous,
    check_interval,
    check_weights,
    check_widths,
    noisy_sums,
    rounded_deviation,
    with_count,
)
from skdpnoise.queries._estimate import PrivateEstimate
from skdpnoise.queries._ledgers import LedgerLike, check_ledger, spend
from skdpnoise.queries._tallies import count_bins, count_categories, count_records
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sensitivity import SensitivityProfile, clipped_sum, histogram_counts

__all__ = [
    "PrivateEstimate",
    "private_count",
    "private_histogram",
    "private_mean",
    "private_sum",
]

# A count that comes at no more than this factor in the error of a sum is taken along.
_FREE = 1.0 + 1e-4


@shared_texts
def private_count(
    records: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    random_state: Any = None,
    ledger: LedgerLike | None = None,
) -> PrivateEstimate:
    r"""Release how many records there are, or how many have a property.

    .. math:: \mathrm{round}(n + z)

    **Guarantee.** Replacing a record, or adding or removing one, changes the count by at most one;
    the noise is that of :func:`~skdpnoise.mechanisms.calibrate` for a change by one, and rounding
    is post-processing. (The number of all records is public under "replace_one".)

    Parameters
    ----------
    records : int or array-like of bool of shape (n_records,)
        The count, or a mask: whether each record has the property.
    %(queries: guarantee, adjacency)s
        A loss has none, so it must be named here.
    %(queries: noise, random_state, ledger)s

    Returns
    -------
    PrivateEstimate
        An integer, possibly negative; unbiased.

    Raises
    ------
    TypeError
        If `records` is neither an integer nor a vector of booleans.
    ValueError
        If the count is negative, or the neighbouring relation is given twice or not at all.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.1.

    Examples
    --------
    >>> ages = np.array([31, 45, 62, 70])
    >>> estimate = private_count(ages > 40, PrivacyGuarantee(1.0), noise="iid_laplace")
    >>> type(estimate.value), estimate.standard_error < 1.5
    (<class 'int'>, True)
    """
    owner = "private_count"
    relation = checked_relation(owner, adjacency, guarantee)
    check_ledger(owner, ledger)
    n, rng = count_records(owner, records), random_words(random_state)
    mechanism = calibrate(noise, SensitivityProfile([1.0]), guarantee)
    _spend(ledger, owner, mechanism, guarantee, relation, rng)
    (released,) = noisy_sums(None, None, mechanism, rng, n)
    return PrivateEstimate(
        round(released), rounded_deviation(mechanism), mechanism, secure=rng.secure
    )


@shared_texts
def private_sum(
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    weights: ArrayLike | None = None,
    random_state: Any = None,
    ledger: LedgerLike | None = None,
) -> PrivateEstimate:
    r"""Release the sum of values clipped to public bounds.

    *Replace one.* The number n of records is public. :math:`\sum_i (x_i - c)` is released, c the
    centre of the bounds, and n c is added back: one record moves it by at most high − low.

    *Add or remove one.* The better of two, by the expected error, which is public:

    1. :math:`\sum_i x_i`, which one record moves by at most ``max(|low|, |high|)``;
    2. :math:`F = \sum_i (x_i - c)` and the number n together, which one record moves by at most
       ((high − low)/2, 1); the sum is :math:`\tilde F + c\,\tilde n`. For many columns bounded by
       [0, h] this has up to a quarter of the variance, and the count comes with it.

    **Guarantee.** The bounds above hold for the values as they are summed: each is clipped and
    rounded to an integer number of a public fine grid step, within integers that obey the bound;
    sums of integers are exact. All columns (and the count) are released by one mechanism of
    :func:`~skdpnoise.mechanisms.calibrate`.

    Parameters
    ----------
    values : array-like of shape (n_records,) or (n_records, n_columns)
        The private values, finite. There may be none.
    low, high : float or array-like of shape (n_columns,)
        Public bounds, low < high. They must not be read from the data.
    %(queries: guarantee, adjacency)s
        A loss has none, so it must be named here.
    %(queries: noise)s
        Noises that live on the integers are refused.
    %(queries: weights, random_state, ledger)s

    Returns
    -------
    PrivateEstimate
        Unbiased for the sum of the clipped values; with a count where that came at no cost.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If the values are not finite, the bounds not ordered, or the neighbouring relation is given
        twice or not at all.

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
    owner = "private_sum"
    relation = checked_relation(owner, adjacency, guarantee)
    check_continuous(owner, noise)
    check_ledger(owner, ledger)
    table, shape = as_table(owner, values)
    bounds = check_interval(owner, low, high, table.shape[1])
    importance = check_weights(owner, weights, table.shape[1])
    centre, half = bounds.centre, bounds.half_width
    rng = random_words(random_state)
    n: float | None = None
    if relation == "replace_one":
        mechanism = calibrate(noise, SensitivityProfile(2.0 * half), guarantee, weights=importance)
        check_widths(owner, bounds, mechanism)
        _spend(ledger, owner, mechanism, guarantee, relation, rng)
        sums = noisy_sums(table, bounds, mechanism, rng)
        sums = sums + len(table) * centre
        deviation = mechanism.standard_deviation
        return PrivateEstimate(shape(sums), shape(deviation), mechanism, secure=rng.secure)
    profile = clipped_sum(bounds.low, bounds.high, "add_remove")
    mechanism = calibrate(noise, profile, guarantee, weights=importance)
    if (centre != 0.0).any():
        joint = with_count(noise, half, guarantee, importance, float(importance @ centre**2))
        deviation = np.hypot(joint.standard_deviation[:-1], centre * joint.standard_deviation[-1])
        error = float(importance @ deviation**2)
        if error <= _FREE * mechanism.expected_error(weights=importance):
            check_widths(owner, bounds, joint)
            _spend(ledger, owner, joint, guarantee, relation, rng)
            *centred, n = noisy_sums(table, bounds, joint, rng, len(table)).tolist()
            return PrivateEstimate(
                shape(np.array(centred) + n * centre), shape(deviation), joint, n, rng.secure
            )
    bounds = bounds.uncentred()
    check_widths(owner, bounds, mechanism)
    _spend(ledger, owner, mechanism, guarantee, relation, rng)
    sums = noisy_sums(table, bounds, mechanism, rng)
    deviation = mechanism.standard_deviation
    return PrivateEstimate(shape(sums), shape(deviation), mechanism, secure=rng.secure)


@shared_texts
def private_mean(
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    weights: ArrayLike | None = None,
    random_state: Any = None,
    ledger: LedgerLike | None = None,
) -> PrivateEstimate:
    r"""Release the mean of values clipped to public bounds.

    *Replace one.* The sum of :func:`private_sum` over the public number of records.

    *Add or remove one.* The centred sum :math:`F = \sum_i (x_i - c)` and the number n of records
    together, which one record moves by at most ((high − low)/2, 1); then

    .. math:: c + \tilde F / \tilde n

    Its error is that of F/n, about :math:`(\sigma_F^2 + m^2 \sigma_n^2)/n^2` with m the distance of
    the mean from the centre: the noise of the count hardly matters. The noise is shared between
    the two so that this is least on average over means that are uniform within the bounds,
    :math:`m^2 = h^2/3` with h half their width. The ratio has a bias of about
    :math:`m \sigma_n^2/n^2`, a fraction :math:`\sigma_n/n` of the standard error or less:
    negligible wherever the mean is of any use.

    The result is clipped to the bounds, which is post-processing; this only lowers the error, and
    biases a mean that is within the noise of a bound.

    **Guarantee.** As :func:`private_sum`: integers, exact sums, one mechanism.

    Parameters
    ----------
    values : array-like of shape (n_records,) or (n_records, n_columns)
        The private values, finite. There may be none under "add_remove".
    low, high : float or array-like of shape (n_columns,)
        Public bounds, low < high. They must not be read from the data.
    %(queries: guarantee, adjacency)s
        A loss has none, so it must be named here.
    %(queries: noise)s
        Noises that live on the integers are refused.
    %(queries: weights, random_state, ledger)s

    Returns
    -------
    PrivateEstimate
        Under "add_remove" with the noisy count.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If the values are not finite, there is none under "replace_one", the bounds are not ordered,
        or the neighbouring relation is given twice or not at all.

    References
    ----------
    Lebeda, "Better Gaussian mechanism using correlated noise", arXiv:2408.06853, Algorithm 1 (the
    count beside the centred sum). Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5.

    Examples
    --------
    >>> ages = np.full(1000, 42.0)
    >>> guarantee = PrivacyGuarantee(1.0, adjacency="add_remove")
    >>> estimate = private_mean(ages, 0, 100, guarantee, noise="inid_laplace", random_state=0)
    >>> bool(abs(estimate.value - 42.0) < 0.5), bool(abs(estimate.count - 1000) < 20)
    (True, True)
    """
    owner = "private_mean"
    relation = checked_relation(owner, adjacency, guarantee)
    check_continuous(owner, noise)
    check_ledger(owner, ledger)
    table, shape = as_table(owner, values)
    bounds = check_interval(owner, low, high, table.shape[1])
    importance = check_weights(owner, weights, table.shape[1])
    centre, half = bounds.centre, bounds.half_width
    rng = random_words(random_state)
    count: float | None = None
    if relation == "replace_one":
        if len(table) == 0:
            raise ValueError(
                f"The 'values' parameter of {owner} must not be empty under 'replace_one', where "
                "the number of records is public: an empty table has no mean."
            )
        mechanism = calibrate(noise, SensitivityProfile(2.0 * half), guarantee, weights=importance)
        divisor = float(len(table))
        check_widths(owner, bounds, mechanism)
        _spend(ledger, owner, mechanism, guarantee, relation, rng)
        sums = noisy_sums(table, bounds, mechanism, rng)
        deviation = mechanism.standard_deviation
        distance = np.clip(sums / divisor, -half, half)
    else:
        mechanism = with_count(noise, half, guarantee, importance, float(importance @ half**2) / 3)
        check_widths(owner, bounds, mechanism)
        _spend(ledger, owner, mechanism, guarantee, relation, rng)
        *released, count = noisy_sums(table, bounds, mechanism, rng, len(table)).tolist()
        divisor = max(count, 1.0)
        distance = np.clip(np.array(released) / divisor, -half, half)
        deviation = np.hypot(
            mechanism.standard_deviation[:-1], distance * mechanism.standard_deviation[-1]
        )
    mean = np.clip(centre + distance, bounds.low, bounds.high)
    # Between two bounds no estimate errs by more than their distance.
    error = np.minimum(deviation / divisor, 2.0 * half)
    return PrivateEstimate(shape(mean), shape(error), mechanism, count, rng.secure)


@shared_texts
def private_histogram(
    values: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    bins: ArrayLike | None = None,
    categories: ArrayLike | None = None,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    random_state: Any = None,
    ledger: LedgerLike | None = None,
) -> PrivateEstimate:
    """Release how many values fall in each public bin, or equal each public category.

    **Guarantee.** One record is at most one count; see
    :func:`~skdpnoise.queries.noisy_histogram`, which releases counts already made. Values in no
    bin, and of no category, are not counted.

    Parameters
    ----------
    values : array-like of shape (n_records,)
        The private values. There may be none.
    %(queries: guarantee)s
    bins : array-like of shape (n_bins + 1,) or None, default=None
        Public increasing edges; the first and last may be infinite. Bins are closed on the left,
        the last one on both sides. A number of bins is refused: their ends would be read from the
        data.
    categories : array-like of shape (n_categories,) or None, default=None
        Public distinct values to count, instead of bins.
    %(queries: adjacency)s
        A loss has none, so it must be named here.
    %(queries: noise, random_state, ledger)s

    Returns
    -------
    PrivateEstimate
        Noisy counts: real numbers, possibly negative; unbiased.

    Raises
    ------
    TypeError
        If the values of a histogram with bins are not real numbers.
    ValueError
        If both or neither of `bins` and `categories` are given, edges do not increase, categories
        repeat, or values of a histogram with bins are not finite.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.2.

    Examples
    --------
    >>> colours = ["red", "blue", "red", "green"]
    >>> known = ["red", "green", "blue"]
    >>> estimate = private_histogram(
    ...     colours, PrivacyGuarantee(1.0), categories=known, noise="iid_laplace", random_state=0
    ... )
    >>> estimate.value.shape, estimate.standard_error.round(2)
    ((3,), array([2.83, 2.83, 2.83]))
    """
    owner = "private_histogram"
    relation = checked_relation(owner, adjacency, guarantee)
    check_ledger(owner, ledger)
    if (bins is None) == (categories is None):
        raise ValueError(
            f"Exactly one of the 'bins' and 'categories' parameters of {owner} must be given."
        )
    if bins is not None:
        counts = count_bins(owner, values, bins)
    else:
        counts = count_categories(owner, values, categories)
    sensitivity = histogram_counts(counts.size, relation)
    mechanism = calibrate(noise, sensitivity, guarantee)
    rng = random_words(random_state)
    _spend(ledger, owner, mechanism, guarantee, relation, rng)
    noisy = mechanism.release(counts, rng)
    return PrivateEstimate(noisy, mechanism.standard_deviation, mechanism, secure=rng.secure)


def _spend(
    ledger: LedgerLike | None,
    owner: str,
    mechanism: AdditiveMechanism,
    guarantee: PrivacyGuarantee | LossBudget,
    relation: Adjacency,
    rng: RandomWords,
) -> None:
    """Charge a ledger by what the noise discloses."""
    if ledger is not None:
        cost = mechanism.own_loss()
        name, secure = mechanism.noise, rng.secure
        spend(ledger, owner, cost, guarantee, adjacency=relation, mechanism=name, secure=secure)
