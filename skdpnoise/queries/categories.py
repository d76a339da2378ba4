r"""Which categories occur in private columns: those whose noisy counts reach a public threshold.

.. math:: \{x : c_x \ge 1,\ c_x + Z_x \ge \tau\}

Categories that nobody has are not looked at, so that their number, which may be infinite, costs
nothing. What that costs is a chance: one record that has a category for itself shows it with
probability :math:`p_1 = P(1 + Z \ge \tau)`, which is a part of δ.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.checks import check_type, complaint
from skdpnoise._utils.sealed import stated
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.limits import CHANCE_SHARE
from skdpnoise.accounting.session import Counts, Session
from skdpnoise.accounting.terms import OfOne, Terms, takes_terms
from skdpnoise.data.cells import (
    Contents,
    are_plain,
    cells_of,
    check_labels_of,
    contents_of,
    contents_of_objects,
    kinds_of,
    n_columns_of,
    of_truth_values,
    together,
)
from skdpnoise.data.kinds import OBJECTS, Kind
from skdpnoise.data.redaction import check_collected
from skdpnoise.data.table import Table, scanned
from skdpnoise.mechanisms.base import Recipe
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.categories import CategoryMechanism
from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.noises import noise_names
from skdpnoise.privacy import (
    Adjacency,
    GaussianLoss,
    LossBudget,
    PrivacyGuarantee,
    PrivacyLoss,
    PureLoss,
    gdp_mu,
)
from skdpnoise.sampling.observer import is_observed
from skdpnoise.sampling.words import with_caveat
from skdpnoise.sensitivity import SensitivityProfile

_QUICK = ("iid_laplace", "iid_gaussian")
_MOST_BITS = 64  # of a whole number, as numpy has them; longer ones may be too long to print
_SHOWN = 8  # categories of a column that are printed

Label = str | int | float  # of all categories that are equal one stands for them: 1, 1.0, True


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class PrivateCategories:
    """Categories that were found, column by column: all of it public.

    Parameters
    ----------
    categories : tuple of tuple
        Those of each column, sorted.
    counts : tuple of ndarray
        How many records have each, with noise; at least the threshold.
    mechanism : CategoryMechanism
        What chose them: its ``chance(m)`` is the probability that a category of m records is shown,
        its ``privacy_loss`` what they cost.
    secure : bool, default=True
        Whether the noise came from the operating system's cryptographic source.
    %(results: guarantee)s

    Examples
    --------
    >>> colours = ["red"] * 300 + ["blue"] * 200 + ["Ann's own"]
    >>> private_categories(colours, PrivacyGuarantee(1.0, 1e-6)).categories
    (('blue', 'red'),)
    """

    categories: tuple[tuple[Any, ...], ...]
    counts: tuple[NDArray[np.float64], ...]
    mechanism: CategoryMechanism
    secure: bool = True
    guarantee: PrivacyGuarantee | None = None

    @property
    def privacy(self) -> PrivacyLoss:
        """Loss of the categories by themselves."""
        return self.mechanism.privacy_loss()

    @property
    def adjacency(self) -> Adjacency:
        """Neighbouring relation of the records."""
        return self.mechanism.adjacency

    @property
    def threshold(self) -> float:
        """The least noisy count that is shown."""
        return self.mechanism.threshold

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise on each count; those shown are the larger ones."""
        return float(self.mechanism.additive.standard_deviation[0])

    def __str__(self) -> str:
        lines = []
        for number, names in enumerate(self.categories):
            some = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
            lines.append(f"column {number}: {len(names)} categories: {some}")
        known = (
            f"shown from {self.threshold:.4g} records on, with noise; a category of one record "
            f"with probability {self.mechanism.chance(1):.2g}"
        )
        return with_caveat("\n".join([*lines, known]), secure=self.secure)


@takes_terms
@shared_texts
def private_categories(
    values: Any,
    guarantee: PrivacyGuarantee | None = None,
    *,
    noise: str = "auto",
    **terms: Unpack[OfOne],
) -> PrivateCategories:
    r"""Find the categories that many records have, without a public list of them.

    **Guarantee.** That of :class:`CategoryMechanism`. Half of δ is for the chance that a record
    shows a category that nobody else has, in every column and, under replace-one, also one that it
    leaves; the rest belongs to the noise. Equal values are one category, whatever holds them: 1,
    1.0 and True are shown as 1, or as True where all are truth values; text "1" is another. What is
    not exactly text, a number of Python or numpy (of 64 bits), or a truth value is not counted
    (None, NaN, enumerations). Refused are columns of dates, truth values beside numbers, and whole
    numbers from 2**53 on in columns of numpy's types, where one missing value would round all of
    them. Of rows in partitions the different values come together in one place, and only those that
    are shown leave it. The time it takes, which hangs on how many categories there are and how long
    they are, is not protected.

    Parameters
    ----------
    values : list, ndarray or RowSource of shape (n_records,) or (n_records, n_columns)
        The private values, also as a Series or frame of pandas, polars or pyarrow; a list is one
        column. There may be no records.
    guarantee : PrivacyGuarantee or None, default=None
        With δ > 0: without it, no category may ever be shown that only one record has.
    noise : str, default="auto"
        ``"iid_gaussian"``, ``"iid_laplace"`` or another noise of one scale; "auto" takes the one of
        these two with the lower threshold.
    %(queries: epsilon, delta, adjacency, random_state, ledger)s

    Returns
    -------
    PrivateCategories

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as described, δ is 0, or the values are no table.
    %(queries: SpreadError)s

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately", WWW
    2009. Balcer and Vadhan, "Differential privacy on finite computers", arXiv:1709.05396, Theorem
    4.5.

    Examples
    --------
    >>> colours = ["red"] * 300 + ["blue"] * 200 + ["Ann's own"]
    >>> found = private_categories(colours, PrivacyGuarantee(1.0, 1e-6), random_state=0)
    >>> found.categories, found.counts[0].round()
    ((('blue', 'red'),), array([200., 300.]))
    >>> found.mechanism.chance(1) <= 0.25e-6
    True
    """
    owner = "private_categories"
    if guarantee is not None:
        check_type(owner, "guarantee", guarantee, PrivacyGuarantee)
    session = Terms.of(owner, guarantee, terms)
    asked = session.guarantee
    assert isinstance(asked, PrivacyGuarantee)
    check_delta(owner, "guarantee", asked)
    columns, of_truth = _read(owner, values)
    mechanism = category_mechanism(owner, noise, len(columns), session.adjacency, asked)
    found = release_categories("categories", columns, mechanism, session)
    both = zip(found, of_truth, strict=True)
    categories = tuple(tuple(map(bool, one)) if truth else one for (one, _), truth in both)
    counts = tuple(counts for _, counts in found)
    return session.stated(PrivateCategories(categories, counts, mechanism))


def category_mechanism(
    owner: str,
    noise: str,
    n_columns: int,
    adjacency: Adjacency,
    guarantee: PrivacyGuarantee,
    rows_per_group: int = 1,
) -> CategoryMechanism:
    """Return the mechanism of the lowest threshold within a guarantee, or say what is wrong."""
    if noise not in category_noises():
        must = f"be one of {list(category_noises())}"
        raise ValueError(complaint(owner, "noise", must, f"{noise!r}"))
    check_delta(owner, "delta", guarantee)
    cells = n_columns * (2 if adjacency == "replace_one" else 1)
    profile = SensitivityProfile(np.ones(cells), l1=float(cells), l2=math.sqrt(cells))
    chance = CHANCE_SHARE * guarantee.delta / (cells * rows_per_group)
    found = []
    for name in _QUICK if noise == "auto" else (noise,):
        for budget in _for_rows(name, guarantee, rows_per_group):
            try:
                made = calibrate(name, profile, budget)
                above = made.scale[0] * float(made.family.isf(chance)) + 2.0 * made.grid_size[0]
                threshold = max(rows_per_group + above, 2.0)
                found.append(CategoryMechanism(made, threshold, adjacency, rows_per_group))
            except ValueError:  # this noise cannot meet it
                continue
    epsilon, delta = guarantee.epsilon, guarantee.delta  # which losses, rounded up, are within
    within = [one for one in found if one.privacy_loss().delta(epsilon) <= delta]
    if not within:
        must = f"be met by noise={noise!r} on {cells} counts"
        raise ValueError(complaint(owner, "guarantee", must, str(guarantee), "Raise delta."))
    again = partial(
        category_mechanism, owner, noise, n_columns, adjacency, rows_per_group=rows_per_group
    )
    best = min(within, key=lambda one: one.threshold)
    return stated(best, recipe=Recipe(guarantee, again))


def check_delta(owner: str, name: str, guarantee: PrivacyGuarantee) -> None:
    """Refuse pure privacy, under which no category can be shown that somebody has alone."""
    if guarantee.delta == 0.0:
        must = "have delta > 0: with delta = 0 nobody's own category may ever be shown"
        remedy = "Give the categories, if they are public, or hash values into public buckets."
        raise ValueError(complaint(owner, name, must, "delta=0", remedy))


def category_noises() -> tuple[str, ...]:
    real = [name for name in noise_options() if name.startswith("iid_") and "discrete" not in name]
    return ("auto", *real)


def _for_rows(
    noise: str, guarantee: PrivacyGuarantee, rows_per_group: int
) -> list[PrivacyGuarantee | LossBudget]:
    """Return what the noise may cost one row, if a group has so many."""
    rest = replace(guarantee, delta=(1.0 - CHANCE_SHARE) * guarantee.delta)
    pure = noise.partition("_")[2] in noise_names(pure=True)
    if rows_per_group == 1:
        return [rest, PureLoss(guarantee.epsilon)] if pure else [rest]
    if pure:
        return [PureLoss(guarantee.epsilon).per_row(rows_per_group)]
    return [GaussianLoss(gdp_mu(rest.epsilon, rest.delta)).per_row(rows_per_group)]


def release_categories(
    label: str, columns: Iterable[Table[Any]], mechanism: CategoryMechanism, session: Session
) -> list[tuple[tuple[Any, ...], NDArray[np.float64]]]:
    """Return the categories of each column that are shown, sorted, and their noisy counts."""
    # Counts alone come to where the noise is, in the order of the labels, and the labels stay where
    # the rows are; then those that are shown are asked for. (In memory values are counted once.)
    held: list[Table[Any]] = []  # the column that is counted: values of one at a time

    def counts() -> Iterator[Counts]:
        for column in columns:
            held[:] = [column.map(_tallied)]
            taken = partial(held[0].joined, _taken)
            names = partial(taken, _names_of, label) if is_observed() else None
            yield taken(_counts_of, label), names

    return [
        (tuple(held[0].joined(_taken, partial(_labels_at, np.flatnonzero(shown)), label)), noisy)
        for shown, noisy in session.cells(label, mechanism, counts())
    ]


Tally = tuple[Any, Any]  # different values, and how often they occur


def _tallied(column: Any) -> Tally:
    if isinstance(column, np.ndarray):
        real = column[np.isfinite(column)] if column.dtype.kind == "f" else column
        return np.unique(real, return_counts=True)
    different = Counter(column).items() if are_plain(column) else ((value, 1) for value in column)
    tally: Counter[Label] = Counter()
    for value, count in different:
        label = label_of(value)
        if label is not None:
            tally[label] += count
    return [*tally], [*tally.values()]


def _taken(tally: Tally, first: int) -> Tally:
    return tally


def _merged(tallies: list[Tally]) -> Tally:
    types = {one.dtype if isinstance(one, np.ndarray) else None for one, _ in tallies}
    if len(types) == 1 and None not in types:
        values, places = np.unique(np.concatenate([one for one, _ in tallies]), return_inverse=True)
        counts = np.zeros(values.size, dtype=np.int64)
        np.add.at(counts, places, np.concatenate([count for _, count in tallies]))
        return values, counts.tolist()
    total: Counter[Label] = Counter()
    for ones, numbers in tallies:
        labels: Any = map(label_of, ones.tolist()) if isinstance(ones, np.ndarray) else ones
        total.update(dict(zip(labels, map(int, numbers), strict=True)))
    ordered = sorted(total, key=lambda label: (isinstance(label, str), label))
    return ordered, [total[label] for label in ordered]


def _counts_of(tallies: list[Tally]) -> NDArray[np.int64]:
    return np.array(_merged(tallies)[1], dtype=np.int64)


def _names_of(tallies: list[Tally]) -> list[Any]:
    return [*map(label_of, _merged(tallies)[0])]


def _labels_at(places: NDArray[np.intp], tallies: list[Tally]) -> list[Any]:
    labels = _merged(tallies)[0]
    return [label_of(labels[place]) for place in places.tolist()]


def label_of(value: Any) -> Label | None:
    """Return one category for all values that are equal, as 1 for 1.0; None for no category."""
    if isinstance(value, np.generic):
        value = value.item() if value.dtype.kind in "biufU" else None  # and no date as a number
    if isinstance(value, np.longdouble):  # which no float of Python is equal to
        value = float(value)
    if type(value) is Decimal and value.is_finite():
        value = float(value)  # as a column of decimal numbers is read
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return int(value)
    if kind is float and math.isfinite(value):
        whole = value.is_integer() and abs(value) < 2.0**_MOST_BITS
        return int(value) if whole else value
    return value if kind is int and value.bit_length() <= _MOST_BITS else None


def label_columns(owner: str, values: Any) -> list[Any]:
    """Return the columns of a table as arrays or lists, each by its declared type alone."""
    check_collected(owner, "values", type(values))
    table = _table_of(values)
    if table is None:
        must = "be a list, an array of shape (n_records,) or (n_records, n_columns), or a frame"
        given = f"{type(values).__name__} of shape {getattr(values, 'shape', None)}"
        raise ValueError(complaint(owner, "values", must, given))
    if isinstance(table, list):
        return [table]
    if any(kind.name in ("date", "other") for kind in kinds_of(table)):
        must = "hold text, numbers or truth values"
        remedy = "Turn dates into text or numbers of a unit of your choice."
        raise ValueError(complaint(owner, "values", must, "columns of another type", remedy))
    return [cells_of(table, place) for place in range(n_columns_of(table))]


def _table_of(values: Any) -> Any:
    """Return a list, an array, or what a library holds; None of anything else."""
    if isinstance(values, list | tuple):
        return [*values]
    if isinstance(values, np.ma.MaskedArray):
        return None  # the mask would be lost
    if isinstance(values, np.ndarray):
        return np.asarray(values) if values.ndim in (1, 2) and n_columns_of(values) else None
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(values, pandas.Index):
        return pandas.Series(values)
    if arrow is not None and isinstance(values, arrow.Array | arrow.ChunkedArray):
        return arrow.table([values], names=["values"])
    kinds: list[type] = []
    kinds += [] if pandas is None else [pandas.DataFrame, pandas.Series]
    kinds += [] if polars is None else [polars.DataFrame, polars.Series]
    kinds += [] if arrow is None else [arrow.Table]
    return values if isinstance(values, tuple(kinds)) and n_columns_of(values) else None


def _read(owner: str, values: Any) -> tuple[list[Table[Any]], list[bool]]:
    """Return the columns of a table, and of which truth values are shown."""
    check = partial(_columns_and_facts, owner)
    rows, facts = scanned(check, partial(_columns, owner), values=values)
    n_columns = len(facts[0]) if facts else (*values.shape, 1)[1]
    columns = [rows.map(itemgetter(place)).or_else([]) for place in range(n_columns)]
    if not facts:
        return columns, [False] * n_columns
    if len({len(found) for found in facts}) > 1:
        raise ValueError(f"{owner} needs the same columns in all partitions of the rows.")
    shown = []
    for found in zip(*facts, strict=True):
        name = found[0][0]
        kind, contents = together(owner, name, [(one[1], one[2]) for one in found])
        check_labels_of(owner, name, contents, mixed=True)
        shown.append(of_truth_values(kind, contents))
    return columns, shown


def _columns(owner: str, tables: dict[str, Any]) -> list[Any]:
    return label_columns(owner, tables["values"])


def _columns_and_facts(
    owner: str, tables: dict[str, Any]
) -> tuple[list[Any], list[tuple[str, Kind, Contents]]]:
    return _columns(owner, tables), _facts(tables["values"])


def _facts(values: Any) -> list[tuple[str, Kind, Contents]]:
    """Return of each column what it is called, what it is declared to be, and what it holds."""
    table = _table_of(values)
    if isinstance(table, list):
        return [("the list", OBJECTS, contents_of_objects(table))]
    places = range(n_columns_of(table))
    named = hasattr(table, "iloc") and hasattr(table, "columns")
    names = [f"column {table.columns[k] if named else k!r}" for k in places]
    contents = (contents_of(table, k) for k in places)
    return [*zip(names, kinds_of(table), contents, strict=True)]
