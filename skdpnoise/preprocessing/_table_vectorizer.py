"""A table of any columns as numbers, by what is public of it and one budget for the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.limits import ChanceBudget
from skdpnoise.accounting.session import FitSession
from skdpnoise.base.advice import cause_of_hiding, note_hidden, warn_last
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.public_output import PublicOutput
from skdpnoise.base.register import register_private
from skdpnoise.base.tags import PrivateTags
from skdpnoise.data.cells import cells_of
from skdpnoise.data.computed import asked_epsilon
from skdpnoise.data.reading import AnyColumns, CellSchema
from skdpnoise.data.table import Table
from skdpnoise.data.tables import read_any_table
from skdpnoise.mechanisms.allocation import RULES
from skdpnoise.preprocessing._blocks import ColumnBlock, NumberFacts, assembled, numbers_of
from skdpnoise.preprocessing._number_facts import found_numbers
from skdpnoise.preprocessing._schema import (
    PlannedColumn,
    kinds_by_schema,
    planned_columns,
    unique_names,
)
from skdpnoise.preprocessing._transformers import (
    Facts,
    PrivateTransformer,
    ReleasePlan,
    found_in,
    output_of,
)
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.queries.categories import category_mechanism
from skdpnoise.queries.quantiles import quantiles_budget
from skdpnoise.queries.ranges import STEPS, stage_losses
from skdpnoise.reporting.cards import card, table

_ROOM = 1.0 - 1e-3  # of pure losses beside a chance, whose sum is rounded up
_SHOWN = 6  # columns that a warning names
_NOISES = {"auto"} | {f"{rule}_{law}" for rule in RULES for law in ("gaussian", "laplace")}


@constructor_of_fields
class SchemaParameter:
    """The parameter that DPTableVectorizer has first: what all share follows."""

    schema: dict[str, Any] | None = None


@register_private
@constructor_of_fields
class DPTableVectorizer(PrivateTransformer, SchemaParameter):
    r"""Turn a table of numbers, categories and dates into columns for a model.

    The private counterpart of skrub's ``TableVectorizer``. What a column is, is said by `schema` or
    by its declared type, **never by its values**. What is left open is estimated from one budget:
    medians, scales and bins of numbers, and which categories there are.

    =========== ===================================================================================
    column      becomes
    =========== ===================================================================================
    number      distance from the median in scales, within ±2; what is beyond, up to 30 scales, as
                a part of ±1; and ones for the bin it is in
    category    ones for each category that is public or found, and for all others
    ordinal     the place among its categories, from -1 to 1
    date        the same as a number, of its days; and ones for month, weekday and hour
    =========== ===================================================================================

    Every column gets an indicator of missing values, whatever it holds, unless the schema says
    "nullable": False or the declared type excludes them (a field of a Parquet file that is not
    null). What is missing all the same counts as the median, or as another category. Equal values
    are one category, whatever holds them: 1, 1.0 and True; text "1" is another.

    Parameters
    ----------
    schema : dict or None, default=None
        **Public** knowledge by the names of columns ("x0", "x1", ... of arrays); what it leaves out
        is chosen by type. It must not be read from the data. Entries are

        - ``(low, high)``: numbers with these bounds;
        - ``[...]``: these categories;
        - ``"number"``, ``"category"``, ``"date"``; ``"log"``, numbers whose logarithm
          :math:`\operatorname{sign}(x) \ln(1 + |x|)` is taken; ``"drop"``, left out;
        - a dict with "kind" ("number", "category", "ordinal", "date", "drop") and "bounds", "log",
          "categories", "buckets" (a number of buckets into which categories are hashed, at no cost)
          or "nullable" (whether missing values get a column; true by default).
    %(parameters)s
    delta : float, default=1e-6
        The guarantee's δ in [0, 1). Half of it is the chance to show a category that a single
        record has; with 0 all categories must be given, or hashed.
    n_bins : int, default=8
        Bins of each number, 0 or 2 to 100; 0 leaves them out.
    add_indicator : bool, default=True
        Whether what may be missing gets a column for that; else no column does.
    noise : str, default="auto"
        "gaussian" or "laplace" after a rule, such as "inid_gaussian"; counts of categories take it
        with one scale. "auto" is Gaussian noise, or Laplace noise where delta is 0.

    Attributes
    ----------
    columns_ : TableColumns
        What each column became; a table in notebooks.
    %(estimators: category_mechanism_)s
    public_output_ : PublicOutput
        Bounds and one-hot groups of what is returned, which a :class:`~skdpnoise.DPPipeline` hands
        to the next step.
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPOneHotEncoder : For columns of categories alone.

    Notes
    -----
    **Privacy.** Categories are those of one :class:`~skdpnoise.queries.CategoryMechanism`, numbers
    those of one call of :func:`~skdpnoise.queries.private_quantiles`; they compose. Where there are
    fewer records, by a public or released number, than 60 times the noise on a count of each
    column, its loss goes to locations and scales as of
    :func:`~skdpnoise.queries.private_location_scale` instead, with no bins: what is missing counts
    as the location, and as a typical deviation, within the same bounds.

    Names and types of columns are declared public, as the report says. Where none is declared,
    columns of objects, text and missing values are categories; truth values, dates, or numbers
    beside anything else are refused, as one of them would decide. What :meth:`transform` returns of
    a private record is not private.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009. Henzinger, Upadhyay and Upadhyay, SODA 2023.
    Zhu, Dong and Wang, AISTATS 2022, Theorem 10 (composition).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(
    ...     {"age": rng.integers(17, 91, 20_000), "town": rng.choice(["A", "B"], 20_000)}
    ... )
    >>> vectorizer = DPTableVectorizer({"age": (17, 90)}, n_bins=4).fit(people)
    >>> print(*vectorizer.get_feature_names_out())
    age age_beyond age_bin0 age_bin1 age_bin2 age_bin3 age_missing town_A town_B town_other
    town_missing
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "schema": [None, dict],
        "n_bins": [Interval(Integral, 0, 100, closed="both")],
        "add_indicator": ["boolean"],
        "noise": [StrOptions(_NOISES)],
    }

    _: KW_ONLY
    n_bins: int = 8
    add_indicator: bool = True

    def __private_tags__(self) -> PrivateTags:
        chance = self.delta != 0.0
        return PrivateTags(reads_labels=True, reveals_by_chance=chance, weight=0.25)

    def _check_own_params(self) -> None:
        if self.n_bins == 1:
            raise ValueError(
                "The 'n_bins' parameter of DPTableVectorizer must be 0 or 2 at least. Got 1."
            )

    def _form(self) -> AnyColumns:
        return AnyColumns(partial(kinds_by_schema, self.schema), dates=True, finite=True)

    def _vouched(self) -> list[str]:
        return [*super()._vouched(), *(["schema"] if self.schema else [])]

    def _plan(self, schema: CellSchema, session: FitSession) -> ReleasePlan:
        columns = planned_columns(type(self).__name__, self.schema, schema)
        if not self.add_indicator:
            columns = [replace(column, nullable=False) for column in columns]
        n_open = sum(column.is_open for column in columns)
        n_numbers = sum(column.is_numeric for column in columns)
        guarantee, rows = session.guarantee, session.rows_per_group
        noise = self.noise
        if noise == "auto":
            noise = "iid_gaussian" if guarantee.delta > 0.0 else "iid_laplace"
        share = 0.0 if n_open == 0 else HALF if n_numbers else 1.0
        pure = not noise.endswith("_gaussian") or guarantee.delta == 0.0
        made, numbers, stages = None, None, list[PrivacyLoss]()
        if n_open:
            facts = n_open, guarantee.adjacency, _part(guarantee, share, pure=pure), rows
            # Counts of categories are of one scale.
            made = category_mechanism(type(self).__name__, f"iid_{noise.split('_')[1]}", *facts)
            stages.append(made.privacy_loss())
        if n_numbers:
            searches = any(column.is_searched for column in columns)
            size = n_numbers, guarantee.adjacency, STEPS if searches else 1
            _, numbers = quantiles_budget(
                noise, _rest(guarantee, 1.0 - share, pure=pure).per_row(rows), *size
            )
            stages += stage_losses(numbers, guarantee.adjacency, searches=searches)
        return ReleasePlan(
            columns=columns,
            noise=noise,
            numbers=numbers,
            categories=made,
            stages=stages,
            of_groups=[0] if n_open else [],
        )

    def _release(self, plan: ReleasePlan, rows: Table[Any], session: FitSession) -> Facts:
        categories, facts = found_in(plan, rows, session), dict[int, NumberFacts]()
        if plan.numbers is not None:
            wanted = {k: column for k, column in enumerate(plan.columns) if column.is_numeric}
            values = rows.map(partial(_numbers, wanted), len(wanted))
            inner = np.linspace(0.0, 1.0, max(int(self.n_bins), 1) + 1)[1:-1]
            ends = _bounds_in_units([*wanted.values()])
            found = found_numbers(values, ends, inner, plan, session)
            facts = dict(zip(wanted, found, strict=True))
        blocks = [
            ColumnBlock(column, facts.get(place), kinds)
            for place, (column, kinds) in enumerate(zip(plan.columns, categories, strict=True))
        ]
        return {
            "columns_": TableColumns(tuple(replace(one, column=one.column.kept) for one in blocks)),
            "category_mechanism_": plan.categories,
            "_kinds": tuple(block.fitted_kind(self.schema or {}) for block in blocks),
        }

    @property
    def public_output_(self) -> PublicOutput:
        """Bounds and one-hot groups of the columns that :meth:`transform` returns."""
        check_is_fitted(self)
        blocks = self.columns_.blocks
        return output_of(
            one for block in blocks for one in zip(block.sizes, block.reaches, strict=True)
        )

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        facts: dict[str, Any] = {"dates": True, "finite": True, "expected": self._kinds}
        X = read_any_table(self, X, reset=False, **facts)
        kept = [(k, block) for k, block in enumerate(self.columns_.blocks) if block.sizes]
        columns = (column for k, block in kept for column in block.encoded(cells_of(X, k)))
        return assembled(len(X), columns, [size for _, block in kept for size in block.sizes])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return names such as "age", "age_beyond", "age_bin0", "town_A" and "town_other".

        Parameters
        ----------
        input_features : Ignored
            The names are those of the columns that were fitted.

        Returns
        -------
        ndarray of str of shape (n_encoded_features,)
        """
        check_is_fitted(self)
        return unique_names(name for block in self.columns_.blocks for name in block.names)

    def _warn_of_hidden(self) -> None:
        hidden: dict[str, list[str]] = {}
        blocks, epsilon = self.columns_.blocks, asked_epsilon(self)
        for block in blocks:
            facts, name = block.facts, block.column.name
            if facts is not None and facts.scale == 0.0:
                cause = cause_of_hiding(epsilon, typical_found=facts.typical_found)
                hidden.setdefault(cause, []).append(name)
            elif block.column.is_open and not block.categories:
                assert self.category_mechanism_ is not None
                least = math.ceil(self.category_mechanism_.threshold)
                cause = (
                    f"each is too rare, as no category reaches {least} records with its noise at "
                    f"epsilon={epsilon:g}"
                )
                hidden.setdefault(cause, []).append(name)
        if hidden:
            names = {name for some in hidden.values() for name in some}
            note_hidden(type(self).__name__, np.array([b.column.name in names for b in blocks]))
            found = "; ".join(f"{_listed(some)}: {cause}" for cause, some in hidden.items())
            less = ""
            if len(names) == sum(bool(block.sizes) for block in blocks):
                less = " Of these columns a model behind it predicts one constant."
            warn_last(
                f"DPTableVectorizer leaves out {found}.{less} More records, a larger epsilon, or "
                "bounds and categories in 'schema' would help.",
                first=bool(less),
            )


@dataclass(frozen=True, slots=True, eq=False)
class TableColumns:
    """The columns that each column of a table became; all of it is public or released.

    Parameters
    ----------
    blocks : tuple of ColumnBlock
        One for each column.

    Examples
    --------
    >>> vectorizer = DPTableVectorizer({"x0": ["a", "b"]}).fit([["a"], ["b"], ["z"]])
    >>> print(vectorizer.columns_)
    x0: category, 2 given -> 4 columns
    """

    blocks: tuple[ColumnBlock, ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{name}: {what} -> {count} column{'' if count == '1' else 's'}"
            for name, what, count in self._rows()
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body = table(("column", "what it is", "columns"), self._rows())
        return card("DPTableVectorizer", "what each column became", body)

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(b.column.name, _in_words(b), str(len(b.names))) for b in self.blocks]


def _in_words(block: ColumnBlock) -> str:
    column, facts = block.column, block.facts
    if column.kind == "category":
        if column.buckets:
            return f"category, hashed into {column.buckets}"
        how = "found" if column.categories is None else "given"
        return f"category, {len(block.categories)} {how}"
    if facts is None:
        return {"drop": "left out"}.get(
            column.kind, f"{column.kind}, {len(block.categories)} given"
        )
    if facts.scale == 0.0:
        hidden = "constant, but for few values" if facts.typical_found else "hidden by the noise"
        return f"{column.kind}, {hidden}"
    unit = "log of " if column.log else ""
    return f"{unit}{column.kind}, median {facts.center:.4g}, scale {facts.scale:.3g}"


def _numbers(wanted: dict[int, PlannedColumn], table: Any) -> NDArray[np.float64]:
    return np.column_stack([numbers_of(one, cells_of(table, k)) for k, one in wanted.items()])


def _bounds_in_units(columns: Sequence[PlannedColumn]) -> tuple[Any, Any]:
    """Return the public ends of columns as their numbers are scaled, infinite where none is."""
    given = np.array([column.bounds for column in columns])
    ends = np.array([numbers_of(column, np.array(column.bounds)) for column in columns])
    low, high = np.where(np.isfinite(given), ends, given).T
    return low, high


def _part(guarantee: PrivacyGuarantee, share: float, *, pure: bool) -> PrivacyGuarantee:
    """Return what categories may cost, of what a table may."""
    if pure:
        return replace(guarantee, epsilon=share * guarantee.epsilon)
    whole = ChanceBudget.of(guarantee)
    epsilon, delta = replace(whole.share(share), chance=whole.chance).guarantee()
    return replace(guarantee, epsilon=epsilon, delta=delta)


def _rest(guarantee: PrivacyGuarantee, share: float, *, pure: bool) -> LossBudget:
    if pure:
        return PureLoss(share * guarantee.epsilon * (1.0 if share == 1.0 else _ROOM))
    return GaussianLoss(ChanceBudget.of(guarantee).share(share).mu)


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(map(repr, names[:_SHOWN]))
    more = len(names) - _SHOWN
    return f"{some} and {more} more columns" if more > 0 else some
