"""What all estimators share: the one way into a private fit, and how it is charged.

Messages never show a value of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Generic, TypeVar

from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning

from skdpnoise._utils.numbers import BUDGET, check_grouped
from skdpnoise._utils.parameters import check_parameters, check_size
from skdpnoise._utils.redaction import silence
from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.accounting import Account, Ledger
from skdpnoise.accounting.declared import COLUMNS, LABELS
from skdpnoise.base import advice
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.over_parts import OverPartsMixin
from skdpnoise.base.surroundings import clone_with_ledger, warn_of_company
from skdpnoise.data.groups import GroupedRows, SpreadRows, group_codes
from skdpnoise.data.rows import noting_guesses
from skdpnoise.data.spread_tables import Survey, is_spread, read_spread
from skdpnoise.data.table import Partitioned
from skdpnoise.data.tables import read_table
from skdpnoise.ledger import LedgerWarning
from skdpnoise.planning.mixin import PlanMixin
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee
from skdpnoise.queries.ranges import COUNT_SHARE, release_record_count
from skdpnoise.sampling import RandomWords

Budget = TypeVar("Budget")


@dataclass(frozen=True, slots=True)
class PrivateRun(Generic[Budget]):
    """What every stage of a fit needs that releases something."""

    account: Account  # where every release is charged for before it is drawn
    rng: RandomWords  # source of all randomness
    n_samples: float  # number of records, public or estimated privately
    budget: Budget  # what the stages may cost


def known_records(
    n_rows: int, account: Account, rng: RandomWords, noise: str, total: LossBudget
) -> float:
    """Return the number of records: public under replace-one, bought under add/remove."""
    if account.guarantee.adjacency == "replace_one":
        return float(n_rows)
    part = total.share(COUNT_SHARE)
    found = release_record_count(n_rows, part, noise, rng, account.charge)
    account.n_records = max(2.0, found)
    return account.n_records


@dataclass(frozen=True, slots=True, eq=False)
class FitRows:
    """The rows that a fit reads, whole or in parts, of which so many of each group are used."""

    table: Any  # an array; in parts what a first look found
    rows: Any  # GroupedRows; in parts SpreadRows
    n_columns: int

    def keep(self, rng: RandomWords) -> Any:
        """Return the rows that are used: an array, or a Partitioned of such."""
        if isinstance(self.table, Survey):
            return self.rows.keep(rng).map(self.table.table, self.n_columns)
        (kept,) = self.rows.keep(rng, self.table)
        return kept


@constructor_of_fields
class PrivateEstimator(OverPartsMixin, PlanMixin):
    """Parameters and conduct of every estimator whose ``fit`` spends privacy."""

    # It stands left of scikit-learn's mixins: what `transform` returns is wrapped by them first.

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    noise: str = "auto"
    adjacency: Adjacency = "replace_one"
    rows_per_group: int = 1
    ledger: Ledger | None = None
    random_state: Any = None
    _parameter_constraints: ClassVar[Constraints] = BUDGET
    _declares: ClassVar[tuple[str, ...]] = ()  # parameters that are code of the user's
    _reads_labels: ClassVar[bool] = False  # of each column, as its type says

    __sklearn_clone__ = clone_with_ledger

    def _validate_params(self) -> None:
        """Raise what is wrong with any single parameter: more than scikit-learn's constraints."""
        check_parameters(self)

    def _vouched(self) -> list[str]:
        """Return what a fit reads without paying for it, public by the word of the user."""
        found = [name for name in self._declares if getattr(self, name) is not None]
        if is_classifier(self) and getattr(self, "classes", None) is None:
            found.append(LABELS)
        if self._reads_labels or hasattr(self, "feature_names_in_"):
            found.append(COLUMNS)
        return found

    @contextmanager
    def _private_fit(self, groups: Any, params: dict[str, Any]) -> Iterator[Account]:
        """Check the parameters; give the account of the fit: the one way into a private fit."""
        # Within, a fit reads all of its data, checks its plans, pays, and only then lets a private
        # value meet noise. No warning but our own is heard from the first look at the data on: what
        # warns, and whether, may depend on a single record. Whatever is raised leaves the estimator
        # as it was, with an earlier fit intact, and says what stays spent. Warnings of what was
        # released come last, when the fit is stored.
        warn_of_company(self)
        check_unpaid_arguments(self, params)
        self._validate_params()
        check_grouped(self, groups)
        guarantee = PrivacyGuarantee(self.epsilon, self.delta, self.adjacency)
        most_rows = None if groups is None else int(self.rows_per_group)
        account = Account(guarantee, rows_per_group=most_rows, ledger=self.ledger, estimator=self)
        heard = (PrivacyWarning, LedgerWarning, DataConversionWarning)  # the last of a shape
        advice.advise(self)
        with advice.held_back(), noting_guesses() as account.declared:
            with unchanged_on_failure(self), silence(*heard), account.noted():
                yield account
            advice.advise_on_bought_number(self, account.n_records, grouped=groups is not None)

    def _read_rows(self, X: Any, groups: Any, n_jobs: int | None = None, **options: Any) -> FitRows:
        """Check X and the groups: an array or a frame by `read_table`, or rows in parts."""
        # This looks at the private data and is not charged: whether a fit is refused tells that a
        # value is missing or infinite. See "sharp edges" in the documentation.
        options["ensure_min_samples"] = 2
        if not (is_spread(X) or is_spread(groups)):
            table = read_table(self, X, **options)
            check_size(self, *table.shape)
            return FitRows(table, self._grouped(groups, len(table)), table.shape[1])
        found = read_spread(self, X, groups=groups, n_jobs=n_jobs, **options)
        n_columns = found.columns.n_columns
        check_size(self, len(found.rows), n_columns)
        return FitRows(found, self._grouped_parts(found.rows), n_columns)

    def _grouped(self, groups: Any, n_rows: int) -> GroupedRows:
        """Check the groups; return which rows belong together."""
        name = type(self).__name__
        codes = None if groups is None else group_codes(f"{name}.fit", groups, n_rows)
        rows = GroupedRows(codes, int(self.rows_per_group), n_rows)
        if codes is not None and rows.n_kept < 2:
            raise ValueError(
                f"{name}.fit needs 2 rows at least, but rows_per_group={self.rows_per_group} keeps "
                f"{rows.n_kept} of these 'groups'. Give data of more groups, or keep more rows."
            )
        advice.advise_on_public_number(self, n_rows, rows.n_groups)
        return rows

    def _grouped_parts(self, rows: Partitioned[Any]) -> SpreadRows:
        """Check the groups of rows in parts; return which rows belong together."""
        name = type(self).__name__
        found = SpreadRows.of(f"{name}.fit", rows, int(self.rows_per_group))
        if found.n_kept < 2:
            raise ValueError(
                f"{name}.fit needs 2 rows at least, but rows_per_group={self.rows_per_group} keeps "
                f"{found.n_kept} of these. Give more rows or groups, or keep more rows."
            )
        advice.advise_on_public_number(self, found.n_rows, found.n_groups)
        return found


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was, with an earlier fit intact, if a fit within fails."""
    before = {name: one for name, one in vars(estimator).items() if "callback" not in name}
    try:
        yield
    except BaseException:
        now = vars(estimator)
        for name in [name for name in now if "callback" not in name]:  # callbacks need to end
            del now[name]
        now.update(before)
        raise


def check_unpaid_arguments(estimator: Any, arguments: dict[str, Any], method: str = "fit") -> None:
    """Refuse what fit cannot take, sample weights above all; ``sample_weight=None`` is none."""
    arguments = dict(arguments)
    owner = f"{type(estimator).__name__}.{method}"
    if arguments.pop("sample_weight", None) is not None:
        raise TypeError(
            f"{owner} does not support 'sample_weight': a record's weight multiplies what it can "
            "change, and no sensitivity with weights is proven yet. Fit without weights."
        )
    if arguments:
        names = ", ".join(repr(name) for name in arguments)
        raise TypeError(f"{owner} got unexpected arguments: {names}.")
