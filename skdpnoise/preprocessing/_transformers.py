"""The one fit of all private transformers, and what is public of the columns that they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Never, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.session import FitSession
from skdpnoise.base.private_fit import PrivateEstimator
from skdpnoise.base.public_output import PublicOutput, route_output
from skdpnoise.data.cells import cells_of
from skdpnoise.data.reading import Form, read
from skdpnoise.data.table import Table
from skdpnoise.mechanisms.categories import CategoryMechanism
from skdpnoise.preprocessing._blocks import assembled
from skdpnoise.preprocessing._schema import unique_names
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.queries.categories import release_categories

Facts = dict[str, Any]
"""Fitted attributes by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """The releases of a fit, on public facts alone."""

    columns: Any  # what is public of them
    noise: str = "auto"
    numbers: LossBudget | None = None  # for one row
    categories: CategoryMechanism | None = None
    stages: Sequence[PrivacyLoss] = ()  # none where the only mechanism says best what it costs
    of_groups: Sequence[int] = ()  # stages whose cost is that of a whole group
    # returns the stages for another guarantee; None: they are the same noise, only wider
    stages_for: Callable[[PrivacyGuarantee], Sequence[PrivacyLoss]] | None = None


@shared_texts
class PrivateTransformer(PrivateEstimator, TransformerMixin, BaseEstimator, ABC):
    """A transformer that releases what it needs to know of the columns."""

    _takes_cells: ClassVar[bool] = True  # of any kind; else numbers
    _takes_missing: ClassVar[bool] = False  # whether NaN stands for no value

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Self:
        """Release what is not public of the columns, spending the guarantee.

        Large data are read by as many threads as ``NUMBA_NUM_THREADS`` says, to the same result.

        Parameters
        ----------
        X : array-like, frame or RowSource of shape (n_samples, n_features)
            The private rows: finite numbers; of encoders and vectorizers also text, truth values
            and what is missing, of imputers numbers and NaN.
        %(fits: y, groups, **params)s

        Returns
        -------
        self : object

        Raises
        ------
        %(fits: ValueError, BudgetExceededError, TypeError)s
        """
        with self._session(groups, params) as session:
            self._check_own_params()
            schema, rows = read(self, self._form(), self._known, X=X, groups=groups)
            plan = self._plan(schema, session)
            if plan.stages:
                session.reserve(
                    plan.stages, plan.noise, of_groups=plan.of_groups, stages_for=plan.stages_for
                )
            fitted = self._release(plan, rows.kept(session.rng).rows, session)
            report = session.report(empty=True)
            self.__dict__.update(fitted, privacy_=report)
            self._warn_of_hidden()
            if hasattr(self, "public_output_"):
                route_output(self, self.public_output_)
        return self

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Transform every row by itself.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With the columns of the fit: finite numbers, and NaN for an imputer; any values for
            encoders and vectorizers.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features_out)
            Finite numbers, in the order of :meth:`get_feature_names_out`. Float32 stays float32,
            but for encoders and vectorizers.
        """

    def _check_own_params(self) -> None:
        """Check what the constraints cannot say."""

    @abstractmethod
    def _form(self) -> Form[Any, Any]:
        """Return how X is read."""

    @abstractmethod  # whose classes take the schema of their form
    def _plan(self, schema: Never, session: FitSession) -> ReleasePlan:
        """Return what is released of these columns, or say what is wrong with the parameters."""

    @abstractmethod
    def _release(self, plan: ReleasePlan, rows: Table[Any], session: FitSession) -> Facts:
        """Return the fitted attributes; all but public facts must come from charged releases."""

    def _warn_of_hidden(self) -> None:
        """Name the columns of which too little is known, once the fit is stored."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = self._takes_cells
        tags.input_tags.allow_nan = self._takes_cells or self._takes_missing
        kept = [] if self._takes_cells else ["float64", "float32"]
        tags.transformer_tags.preserves_dtype = kept
        return tags


class OneHotMixin:
    """Columns of zeros and ones, of which each feature has a single one."""

    @property
    @abstractmethod
    def _labels(self) -> list[list[str]]:
        """Endings of the names of the columns of each feature."""

    @property
    def _widths(self) -> list[int]:
        return [len(labels) for labels in self._labels]

    def _encoded(self, places: Iterable[NDArray[np.intp]], dtype: Any) -> NDArray[Any]:
        """Return the columns of the places of all values, those of the last places negative."""
        columns = [one % width for one, width in zip(places, self._widths, strict=True)]
        return assembled(len(columns[0]), columns, self._widths, dtype)

    def _places(self, table: NDArray[Any]) -> list[NDArray[np.intp]]:
        parts = np.split(table, np.cumsum(self._widths)[:-1], axis=1)
        return [part.argmax(axis=1) for part in parts]

    @property
    def public_output_(self) -> PublicOutput:
        """Bounds and one-hot groups of what is returned."""
        check_is_fitted(self)
        return output_of((width, 1.0) for width in self._widths)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return names such as "colour_red", "colour_other" and "age_0".

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None are those seen in fit, or "x0", "x1", ...

        Returns
        -------
        ndarray of str of shape (n_encoded_features,)
        """
        check_is_fitted(self)
        pairs = zip(_check_feature_names_in(self, input_features), self._labels, strict=True)
        return unique_names(f"{name}_{label}" for name, labels in pairs for label in labels)


def output_of(parts: Iterable[tuple[int, float]]) -> PublicOutput:
    """Return bounds and groups of numbers, of size 0, and of one-hot columns, each with a reach."""
    high: list[float] = []
    low: list[float] = []
    groups = []
    for size, reach in parts:
        if size:
            groups.append(tuple(range(len(low), len(low) + size)))
        low += [0.0] * size or [-reach]
        high += [1.0] * size or [reach]
    return PublicOutput(np.array(low), np.array(high), tuple(groups))


def found_in(plan: ReleasePlan, rows: Table[Any], session: FitSession) -> list[tuple[Any, ...]]:
    """Return the categories of columns, releasing those that are open; truth values as such."""
    categories = [column.categories or () for column in plan.columns]
    if plan.categories is not None:
        places = [place for place, column in enumerate(plan.columns) if column.is_open]
        # One by one: lists of cells are large.
        cells = (rows.map(partial(cells_of, place=place)) for place in places)
        found = release_categories("categories", cells, plan.categories, session.of_groups())
        for place, (shown, _) in zip(places, found, strict=True):
            truth = plan.columns[place].truth
            categories[place] = tuple(map(bool, shown)) if truth else shown
    return categories
