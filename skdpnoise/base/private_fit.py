"""The one way into a private fit, which all estimators share, and how it is charged.

Messages never show a value of the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, TypeVar

from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning

from skdpnoise._utils.numbers import BUDGET, check_grouped
from skdpnoise._utils.parameters import check_parameters, check_size
from skdpnoise._utils.silence import silence
from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.accounting import Account, Ledger
from skdpnoise.accounting.declared import COLUMNS, LABELS
from skdpnoise.accounting.session import FitSession
from skdpnoise.base import advice
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.misuse_warnings import clone_with_ledger, warn_of_misuse
from skdpnoise.base.partitioned import OverPartsMixin
from skdpnoise.base.tags import PrivateTags, tags_of
from skdpnoise.data.schema import Schema
from skdpnoise.data.sources import noting_guesses
from skdpnoise.ledger import LedgerWarning
from skdpnoise.planning.mixin import PlanMixin
from skdpnoise.privacy import Adjacency, PrivacyGuarantee
from skdpnoise.sampling import random_words

Known = TypeVar("Known", bound=Schema)


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

    __sklearn_clone__ = clone_with_ledger

    def __private_tags__(self) -> PrivateTags:
        return PrivateTags()

    def _validate_params(self) -> None:
        """Raise what is wrong with any single parameter: more than scikit-learn's constraints."""
        check_parameters(self)

    def _vouched(self) -> list[str]:
        """Return what a fit reads without paying for it, public by the word of the user."""
        found = [name for name in tags_of(self).declares if getattr(self, name) is not None]
        if is_classifier(self) and getattr(self, "classes", None) is None:
            found.append(LABELS)
        if tags_of(self).reads_labels or hasattr(self, "feature_names_in_"):
            found.append(COLUMNS)
        return found

    @contextmanager
    def _session(self, groups: Any, params: dict[str, Any]) -> Iterator[FitSession]:
        """Check the parameters; give the session of the fit: the one way into a private fit."""
        # Within, a fit reads all of its data, checks its plans, pays, and only then lets a private
        # value meet noise. No warning but our own is heard from the first scan of the data on: what
        # warns, and whether, may depend on a single record. Whatever is raised leaves the estimator
        # as it was, with an earlier fit intact, and says what stays spent. Warnings of what was
        # released come last, when the fit is stored.
        warn_of_misuse(self)
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
                rng = random_words(self.random_state)
                yield FitSession.charging(account, rng)
            advice.advise_on_estimated_number(self, account.n_records, grouped=groups is not None)

    def _known(
        self, schema: Known, shape: tuple[int, ...], n_kept: int, n_groups: int | None
    ) -> Known:
        """Refuse too many rows, and too few; return what is public of them."""
        # The private data were looked at, which is not charged: whether a fit is refused tells that
        # a value is missing or infinite. See "sharp edges" in the documentation.
        check_size(self, shape[0], math.prod(shape[1:]))
        if n_groups is not None and n_kept < 2:
            raise ValueError(
                f"{type(self).__name__}.fit needs 2 rows at least, but rows_per_group="
                f"{self.rows_per_group} keeps {n_kept} of these 'groups'. Give data of more "
                "groups, or keep more rows."
            )
        advice.advise_on_public_number(self, shape[0], n_groups)
        return replace(schema, n_rows=n_kept) if self.adjacency == "replace_one" else schema


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
