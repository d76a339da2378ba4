"""Private histograms of values, and of counts already made."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.account import Ledger
from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.accounting.session import Query
from skdpnoise.accounting.terms import OfOne, Terms, takes_terms
from skdpnoise.data.redaction import check_collected
from skdpnoise.data.table import Table
from skdpnoise.kernels.tiles import Floats, Integers, Places
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.grid_sizes import are_finite, are_integers, are_real, exact_numbers
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee
from skdpnoise.privacy.loss import checked_relation, promised
from skdpnoise.queries.aggregates import PrivateEstimate
from skdpnoise.queries.values import as_table, read_values
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import SensitivityProfile, histogram_counts


@shared_texts
def noisy_histogram(
    counts: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: Adjacency | None = None,
    sensitivity: SensitivityProfile | None = None,
    noise: str = "auto",
    random_state: Any = None,
    ledger: Ledger | None = None,
) -> tuple[NDArray[np.float64], AdditiveMechanism]:
    r"""Release the counts of a histogram with public bins.

    .. math:: \tilde c_{ij} = c_{ij} + z_{ij}

    **Guarantee.** One record is at most one count of each column
    (:func:`~skdpnoise.sensitivity.histogram_counts`); one mechanism, calibrated to that joint
    bound, releases all columns. What is computed from the result costs nothing more, such as the
    fullest bin, ``noisy.argmax(axis=-1)``, which is *report noisy max*.

    Parameters
    ----------
    counts : array-like of shape (n_bins,) or (n_columns, n_bins)
        Exact counts.
    %(queries: guarantee, epsilon, delta, adjacency)s
    sensitivity : SensitivityProfile or None, default=None
        Another bound for the flattened counts, such as
        :func:`~skdpnoise.sensitivity.paired_histogram`; excludes ``adjacency``.
    %(queries: noise, random_state, ledger)s

    Returns
    -------
    noisy : ndarray of the shape of ``counts``
        Noisy counts: real numbers, possibly negative.
    mechanism : AdditiveMechanism
        What sampled the noise, with its ``privacy_loss``.

    Raises
    ------
    ValueError
        If the counts are negative, not finite or of the wrong shape, or the neighbouring relation
        is given twice or not at all.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.2 and
    Claim 3.9.

    Examples
    --------
    >>> guarantee = PrivacyGuarantee(epsilon=1.0)
    >>> noisy, mechanism = noisy_histogram([500, 100, 200], guarantee, random_state=0)
    >>> int(noisy.argmax()), mechanism.noise
    (0, 'inid_laplace')
    """
    guarantee = promised("noisy_histogram", guarantee, epsilon, delta, adjacency)
    owner, array = "noisy_histogram", exact_numbers(counts)
    numbers = array.dtype.kind != "b" and are_real(array)
    if not numbers or array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            "The 'counts' parameter of noisy_histogram must be a non-empty array of numbers of "
            "shape (n_bins,) or (n_columns, n_bins). Got an array of shape "
            f"{array.shape} and dtype {array.dtype} instead."
        )
    if not (are_finite(array) and (array >= 0).all()):
        raise ValueError(
            "The 'counts' parameter of noisy_histogram must be finite and non-negative in every "
            "entry."
        )
    if sensitivity is None:
        if adjacency is None:
            adjacency = checked_relation("noisy_histogram", None, guarantee)
        sensitivity = histogram_counts(array.shape[-1], adjacency, array.size // array.shape[-1])
    elif adjacency is not None:
        raise ValueError(
            "The 'adjacency' parameter of noisy_histogram must be None when 'sensitivity' is "
            f"given, which has one already. Got {adjacency!r} instead."
        )
    mechanism, rng = calibrate(noise, sensitivity, guarantee), random_words(random_state)
    if array.size != sensitivity.n_coordinates or (
        mechanism.family.lattice and not are_integers(array)
    ):
        size, given = sensitivity.n_coordinates, f"shape {array.shape}, noise {mechanism.noise!r}"
        must = f"have {size} entries, those of the sensitivity, integer for noise on the integers"
        raise ValueError(complaint(owner, "counts", must, given))
    relation: Any = adjacency
    session = Terms(rng, relation, owner=owner, guarantee=guarantee, ledger=ledger).charging()
    return session.add("counts", mechanism, array), mechanism


@takes_terms
@shared_texts
def private_histogram(
    values: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    bins: ArrayLike | None = None,
    categories: ArrayLike | None = None,
    noise: str = "auto",
    **terms: Unpack[OfOne],
) -> PrivateEstimate:
    """Release how many values fall in each public bin, or equal each public category.

    **Guarantee.** One record is at most one count, as in :func:`noisy_histogram`, which releases
    counts already made. Values in no bin, and of no category, are not counted.

    Parameters
    ----------
    values : array-like or RowSource of shape (n_records,)
        The private values. There may be none.
    %(queries: guarantee)s
    bins : array-like of shape (n_bins + 1,) or None, default=None
        Public increasing edges; the first and last may be infinite. Bins are closed on the left,
        the last one on both sides. A number of bins is refused: their ends would be read from the
        data.
    categories : array-like of shape (n_categories,) or None, default=None
        Public distinct values to count, instead of bins.
    %(queries: noise, epsilon, delta, adjacency, random_state, ledger)s

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
    %(queries: SpreadError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.2.

    Examples
    --------
    >>> known = {"categories": ["red", "blue"], "noise": "iid_laplace"}
    >>> estimate = private_histogram(["red", "blue", "red"], PrivacyGuarantee(1.0), **known)
    >>> estimate.value.shape, estimate.standard_error.round(2)
    ((2,), array([2.83, 2.83]))
    """
    owner = "private_histogram"
    session = Terms.of(owner, guarantee, terms)
    if (bins is None) == (categories is None):
        raise ValueError(
            f"Exactly one of the 'bins' and 'categories' parameters of {owner} must be given."
        )
    table, query = (_bins if categories is None else _categories)(
        owner, values, bins if categories is None else categories
    )
    found = session.tally("histogram", query, table, session.guarantee, noise)
    return session.stated(PrivateEstimate(found.values, found.standard_deviation, found.mechanism))


@dataclass(frozen=True, slots=True, eq=False)
class _Histogram:
    """Counts of values in bins: faster than the codes of a :class:`GroupedSum`."""

    edges: Floats

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        return histogram_counts(self.edges.size - 1, adjacency)

    def step(self, grid_size: Floats) -> Callable[[Any], Integers]:
        return partial(_in_bins, self.edges, grid_size)


def _bins(owner: str, values: Any, bins: Any) -> tuple[Table[Any], Query]:
    edges = np.asarray(bins)
    if edges.ndim != 1 or edges.size < 2 or edges.dtype.kind not in "iuf":
        must = "be a one-dimensional array of at least two edges"
        given = f"an array of dtype {edges.dtype} and shape {edges.shape}"
        remedy = "For equal bins between public ends use numpy.linspace(low, high, n_bins + 1)."
        raise ValueError(complaint(owner, "bins", must, given, remedy))
    edges = edges.astype(np.float64)
    if not (edges[1:] > edges[:-1]).all():
        raise ValueError(f"The 'bins' parameter of {owner} must increase strictly.")
    table, _ = as_table(owner, values, n_dims=(1,))
    return table, _Histogram(edges)


def _in_bins(edges: Floats, grid_size: Floats, table: NDArray[Any]) -> Integers:
    # As doubles, whatever the others are: in which bin a value falls is a function of it alone.
    with np.errstate(over="ignore"):  # a warning would tell of a single record
        column = table[:, 0].astype(np.float64)
    return np.histogram(column, edges)[0] * np.rint(1.0 / grid_size).astype(np.int64)


def _categories(owner: str, values: Any, categories: Any) -> tuple[Table[Any], Query]:
    labels = _one_by_one(owner, "categories", categories)
    places = {label: place for place, label in enumerate(labels)}
    if not labels or len(places) < len(labels):
        raise ValueError(f"The 'categories' parameter of {owner} must hold distinct values.")
    table, _ = read_values(owner, values, partial(_one_by_one, owner, "values"))
    return table.or_else([]), GroupedSum(len(labels), partial(_places_of, places))


def _places_of(places: dict[Hashable, int], labels: list[Hashable]) -> Places:
    return np.array([places.get(label, -1) for label in labels], dtype=np.intp)


def _one_by_one(owner: str, name: str, given: Any) -> list[Hashable]:
    """Return labels as they are: numpy would make strings of all numbers beside one string."""
    check_collected(owner, name, type(given))
    if isinstance(given, list | tuple):
        shape = (len(given),)
        labels = [label.item() if isinstance(label, np.generic) else label for label in given]
    else:
        shape, labels = np.shape(given), np.asarray(given).tolist()
    if len(shape) != 1 or not all(isinstance(label, Hashable) for label in labels):
        must = "be one-dimensional, with labels that can be hashed"
        raise ValueError(complaint(owner, name, must, f"an array of shape {shape}"))
    return labels
