"""Encoders whose categories are public, or found privately: many records have them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from skdpnoise.accounting.session import FitSession
from skdpnoise.base.advice import warn_last
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.public_output import PublicOutput
from skdpnoise.base.register import register_private
from skdpnoise.base.tags import PrivateTags
from skdpnoise.data.cells import cells_of, of_truth_values
from skdpnoise.data.computed import asked_epsilon
from skdpnoise.data.fitted_kinds import kind_of_labels
from skdpnoise.data.reading import AnyColumns, CellSchema
from skdpnoise.data.table import Table
from skdpnoise.data.tables import read_any_table, read_projections
from skdpnoise.preprocessing._blocks import code_of, numbered
from skdpnoise.preprocessing._schema import (
    PlannedColumn,
    as_categories,
    check_labels_in,
    given_categories,
    kinds_given,
    named,
)
from skdpnoise.preprocessing._transformers import (
    Facts,
    OneHotMixin,
    PrivateTransformer,
    ReleasePlan,
    found_in,
)
from skdpnoise.queries.categories import category_mechanism, category_noises

_LARGEST = 1e100  # codes are numbers that the next fit takes


@constructor_of_fields
class PrivateEncoder(PrivateTransformer):
    """A transformer of columns of categories."""

    _parameter_constraints: ClassVar[Constraints] = {
        "noise": [StrOptions(set(category_noises()))],
        "categories": [StrOptions({"auto"}), list, tuple, dict],
    }

    _: KW_ONLY
    categories: Any = "auto"

    def __private_tags__(self) -> PrivateTags:
        given = self.categories
        lists = isinstance(given, list | tuple)  # a dict may leave out columns
        finds = not lists or any(isinstance(one, str) for one in given)
        return PrivateTags(reads_labels=True, reveals_by_chance=finds, normal_noise="iid_gaussian")

    def _form(self) -> AnyColumns:
        return AnyColumns(expected=partial(kinds_given, self.categories))

    def _plan(self, schema: CellSchema, session: FitSession) -> ReleasePlan:
        owner, columns = type(self).__name__, []
        given = given_categories(self, schema.n_columns, schema.names)
        facts = zip(schema.columns, schema.kinds, schema.contents, given, strict=True)
        for name, kind, contents, listed in facts:
            truth = of_truth_values(kind, contents)
            column = PlannedColumn(name, "category", False, kind, categories=listed, truth=truth)
            check_labels_in(owner, column, contents)
            columns.append(column)
        n_open = sum(column.is_open for column in columns)
        if not n_open:
            return ReleasePlan(columns=columns)
        make = partial(
            category_mechanism,
            *(owner, self.noise, n_open, session.adjacency),
            rows_per_group=session.rows_per_group,
        )
        made = make(session.guarantee)
        return ReleasePlan(
            columns=columns,
            noise=made.noise,
            categories=made,
            stages=[made.privacy_loss()],
            of_groups=[0],
            stages_for=lambda guarantee: [make(guarantee).privacy_loss()],
        )

    def _release(self, plan: ReleasePlan, rows: Table[Any], session: FitSession) -> Facts:
        categories = [as_categories(one) for one in found_in(plan, rows, session)]
        return {
            "categories_": categories,
            "category_mechanism_": plan.categories,
            "_kinds": tuple(map(kind_of_labels, categories)),
        }

    @abstractmethod
    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Undo :meth:`transform`, as far as what it returns tells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            What :meth:`transform` returns.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Of objects: categories, and None for other values.
        """

    def _warn_of_hidden(self) -> None:
        names, pairs = _check_feature_names_in(self), enumerate(self.categories_)
        # Lists that are given hold some category.
        none = [repr(str(names[k])) for k, found in pairs if not len(found)]
        if none:
            warn_last(
                f"{type(self).__name__} found no category of {', '.join(none)}: none "
                f"has enough records for the noise at epsilon={asked_epsilon(self):g} and delta="
                f"{self.delta:g}. All their values count as other. Public categories (categories=) "
                "cost nothing."
            )

    def _codes(self, X: Any, other: float, missing: float | None = None) -> NDArray[np.float64]:
        X = read_any_table(self, X, reset=False, expected=self._kinds)
        absent = other if missing is None else missing
        codes = [code_of(kinds.tolist(), other) for kinds in self.categories_]
        found = [numbered(cells_of(X, k), code, absent) for k, code in enumerate(codes)]
        return np.column_stack(found)

    def _chosen(self, places: Sequence[Any]) -> NDArray[Any]:
        """Return the categories at some places of each feature; None where there is none."""
        found = np.empty((len(places[0]), len(self.categories_)), dtype=object)
        for k, (kinds, column) in enumerate(zip(self.categories_, places, strict=True)):
            known: Mapping[float, Any] = {float(n): one for n, one in enumerate(kinds.tolist())}
            found[:, k] = [known.get(float(place)) for place in column]
        return found


@register_private
@constructor_of_fields
class DPOneHotEncoder(OneHotMixin, PrivateEncoder):
    r"""Turn each column into one of zeros and a single one for each of its categories.

    The private counterpart of :class:`sklearn.preprocessing.OneHotEncoder`. Categories are public,
    or found privately: those that many records have. A last column for each feature is for all
    others, rare and unseen ones alike, so that every row has exactly one 1 for each feature.

    Parameters
    ----------
    %(parameters)s
    handle_missing : {"other", "indicator"}, default="other"
        Whether missing values (None, NaN, NA) count as other ones, or get a column for each
        feature.
    dtype : {"float64", "float32"}, default="float64"
        Of what is returned, which is dense.

    Attributes
    ----------
    categories_ : list of ndarray
        Of each feature, sorted if they were found.
    %(estimators: category_mechanism_)s
    public_output_ : PublicOutput
        Bounds and groups of the columns that are returned, which a :class:`~skdpnoise.DPPipeline`
        hands to the next step.
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPOrdinalEncoder : One number for each category.
    DPTableVectorizer : Encodes whole tables.

    Notes
    -----
    **Privacy.** That of :class:`~skdpnoise.queries.CategoryMechanism`, on the columns whose
    categories are not given. What :meth:`transform` returns of a private record is not private.

    Equal values are one category, whatever holds them: 1, 1.0 and True; text "1" is another.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately", WWW
    2009.

    Examples
    --------
    >>> import numpy as np
    >>> colours = np.array(["red"] * 300 + ["blue"] * 200 + ["Ann's own"], dtype=object)
    >>> encoder = DPOneHotEncoder().fit(colours[:, np.newaxis])
    >>> encoder.categories_
    [array(['blue', 'red'], dtype=object)]
    >>> encoder.get_feature_names_out()
    array(['x0_blue', 'x0_red', 'x0_other'], dtype=object)
    >>> encoder.transform([["red"], ["green"]])
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "handle_missing": [StrOptions({"other", "indicator"})],
        "dtype": [StrOptions({"float64", "float32"})],
    }

    _: KW_ONLY
    handle_missing: Literal["other", "indicator"] = "other"
    dtype: Literal["float64", "float32"] = "float64"

    @property
    def _n_more(self) -> int:
        """Number of columns of a feature beside its categories."""
        return 2 if self.handle_missing == "indicator" else 1

    @property
    def _labels(self) -> list[list[str]]:
        more = ["missing", "other"][-self._n_more :]
        return [[*map(named, one.tolist()), *more] for one in self.categories_]

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        codes = self._codes(X, other=-1.0, missing=-self._n_more)
        return self._encoded(codes.T.astype(np.intp), self.dtype)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        table = read_projections(type(self).__name__, X, sum(self._widths))
        return self._chosen(self._places(table))


@register_private
@constructor_of_fields
class DPOrdinalEncoder(OneToOneFeatureMixin, PrivateEncoder):
    r"""Turn each category into its number.

    The private counterpart of :class:`sklearn.preprocessing.OrdinalEncoder`. Categories are public,
    in an order that means something, or found privately and sorted.

    Parameters
    ----------
    %(parameters)s
    unknown_value, encoded_missing_value : float, default=-1
        What other categories become, and missing values (None, NaN, NA).

    Attributes
    ----------
    categories_ : list of ndarray
        Of each feature, sorted if they were found.
    %(estimators: category_mechanism_)s
    public_output_ : PublicOutput
        Bounds of the columns that are returned, which a :class:`~skdpnoise.DPPipeline` hands to
        the next step.
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPOneHotEncoder : A column for each category.

    Notes
    -----
    **Privacy.** That of :class:`~skdpnoise.queries.CategoryMechanism`, on the columns whose
    categories are not given. What :meth:`transform` returns of a private record is not private.

    Examples
    --------
    >>> sizes = [["small"], ["large"], ["huge"]]
    >>> encoder = DPOrdinalEncoder(categories=[["small", "medium", "large"]]).fit(sizes)
    >>> encoder.transform(sizes)
    array([[ 0.],
           [ 2.],
           [-1.]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "unknown_value": [int, float],
        "encoded_missing_value": [int, float],
    }

    _: KW_ONLY
    unknown_value: float = -1
    encoded_missing_value: float = -1

    def _check_own_params(self) -> None:
        for name in ("unknown_value", "encoded_missing_value"):
            value = float(getattr(self, name))
            if not abs(value) <= _LARGEST:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be a finite number "
                    f"within ±{_LARGEST:g}. Got {value!r} instead."
                )

    @property
    def public_output_(self) -> PublicOutput:
        """The numbers from the least to the largest that there can be."""
        check_is_fitted(self)
        others = float(self.unknown_value), float(self.encoded_missing_value)
        tops = np.array([max(len(one) - 1.0, *others) for one in self.categories_])
        low = np.full(tops.size, min(0.0, *others))
        return PublicOutput(low, np.maximum(tops, low + 1.0))

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._codes(X, float(self.unknown_value), float(self.encoded_missing_value))

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        table = read_projections(type(self).__name__, X, len(self.categories_))
        return self._chosen([*table.T])
