"""Encoders whose categories are public, or found privately: many records have them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from functools import partial
from itertools import chain, pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from skdpnoise.accounting.session import FitSession
from skdpnoise.base.advice import warn_last
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import PrivateEstimator
from skdpnoise.base.public_output import PublicOutput, hand_on
from skdpnoise.base.register import register_private
from skdpnoise.base.tags import PrivateTags
from skdpnoise.data.cell_tables import AnyColumns, CellSchema, read_any_table
from skdpnoise.data.cells import cells_of, check_labels_of, of_truth_values
from skdpnoise.data.fitted_kinds import kind_of_labels
from skdpnoise.data.tables import read_projections
from skdpnoise.preprocessing._labels import (
    as_categories,
    found_in,
    given_categories,
    kinds_given,
    named,
    numbered,
    unique_names,
)
from skdpnoise.queries.categories import CategoryMechanism, category_mechanism, category_noises

_LARGEST = 1e100  # codes are numbers that the next fit takes


@constructor_of_fields
class PrivateEncoder(PrivateEstimator, TransformerMixin, BaseEstimator, ABC):
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

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        """Find the categories that are not given, spending the guarantee.

        Parameters
        ----------
        X : array-like or RowSource of shape (n_samples, n_features)
            Frames, arrays or lists of text, numbers and truth values. Anything else, such as None
            or NaN, is no category.
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
            form = AnyColumns(expected=partial(kinds_given, self.categories))
            schema, rows = self._read_rows(form, X=X, groups=groups)
            given = given_categories(self, schema.n_columns, schema.names)
            _check_labels(type(self).__name__, schema, given)
            made = self._plan(given, session)
            categories = dict(enumerate(given))
            if made is not None:
                wanted = {
                    k: of_truth_values(schema.kinds[k], schema.contents[k])
                    for k, one in categories.items()
                    if one is None
                }
                categories |= found_in(rows.keep(session.rng), wanted, made, session)
            report = session.report(empty=True)
            self.categories_ = [as_categories(one or ()) for one in categories.values()]
            self.category_mechanism_ = made
            self._kinds = tuple(map(kind_of_labels, self.categories_))
            self.privacy_ = report
            self._warn_of_none([k for k, one in enumerate(given) if one is None])
            hand_on(self, self.public_output_)
        return self

    def _plan(
        self, given: Sequence[tuple[Any, ...] | None], session: FitSession
    ) -> CategoryMechanism | None:
        """Return what finds the categories that are not given, and charge a ledger for it."""
        n_open = sum(one is None for one in given)
        if not n_open:
            return None
        make = partial(
            category_mechanism,
            *(type(self).__name__, self.noise, n_open, session.adjacency),
            rows_per_group=session.rows_per_group,
        )
        made = make(session.guarantee)
        session.reserve(
            [made.privacy_loss()],
            made.noise,
            of_groups=[0],
            stages_for=lambda guarantee: [make(guarantee).privacy_loss()],
        )
        return made

    def _check_own_params(self) -> None:
        """Check what the constraints cannot say."""

    @property
    @abstractmethod
    def public_output_(self) -> PublicOutput:
        """Public facts of the columns that :meth:`transform` returns."""

    def _warn_of_none(self, bought: Sequence[int]) -> None:
        """Name the columns of which no category is known."""
        names = _check_feature_names_in(self)
        none = [str(names[k]) for k in bought if not len(self.categories_[k])]
        if none:
            warn_last(
                f"{type(self).__name__} found no category of {', '.join(map(repr, none))}: none "
                f"has enough records for the noise at epsilon={self.epsilon:g} and delta="
                f"{self.delta:g}. All their values count as other. Public categories (categories=) "
                "cost nothing."
            )

    def _codes(self, X: Any, other: float, missing: float | None = None) -> NDArray[np.float64]:
        """Return the place of each value among the categories of its column."""
        X = read_any_table(self, X, reset=False, expected=self._kinds)
        absent = other if missing is None else missing
        return np.column_stack(
            [
                numbered(cells_of(X, k), kinds, other, absent)
                for k, kinds in enumerate(self.categories_)
            ]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_labels(owner: str, schema: CellSchema, given: Sequence[tuple[Any, ...] | None]) -> None:
    """Refuse columns of which one value would decide how others are read or shown."""
    facts = zip(schema.columns, schema.kinds, schema.contents, given, strict=True)
    for name, kind, held, known in facts:
        held = held | {"odd"} if kind.name == "other" else held
        kept = held if known is None else held & {"wide", "odd"}
        check_labels_of(owner, f"column {name!r} of X", kept)


@register_private
@constructor_of_fields
class DPOneHotEncoder(PrivateEncoder):
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
    category_mechanism_ : CategoryMechanism or None
        What chose those that were bought: its ``chance(m)`` is the probability at most with which a
        category of m records is shown. None if all were given.
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
    def _widths(self) -> list[int]:
        return [len(one) + self._n_more for one in self.categories_]

    @property
    def public_output_(self) -> PublicOutput:
        """Zeros and ones, of which each feature has a single one."""
        check_is_fitted(self)
        ends = np.cumsum([0, *self._widths])
        groups = tuple(tuple(range(a, b)) for a, b in pairwise(ends.tolist()))
        return PublicOutput(np.zeros(ends[-1]), np.ones(ends[-1]), groups)

    def transform(self, X: Any) -> Any:
        """Encode every value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any values.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_encoded_features)
            Of zeros and ones: for each feature its categories, missing values if they are
            indicated, and all others.
        """
        check_is_fitted(self)
        codes = self._codes(X, other=-1.0, missing=-self._n_more)
        encoded = np.zeros((len(codes), sum(self._widths)), dtype=self.dtype)
        rows, start = np.arange(len(codes)), 0
        for column, width in zip(codes.T.astype(np.intp), self._widths, strict=True):
            encoded[rows, start + column % width] = 1.0
            start += width
        return encoded

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return the category of the largest column of each feature; None for other ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_encoded_features)
            What :meth:`transform` returns.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Of objects.
        """
        check_is_fitted(self)
        table = read_projections(type(self).__name__, X, sum(self._widths))
        found = np.empty((len(table), len(self.categories_)), dtype=object)
        start = 0
        for k, (kinds, width) in enumerate(zip(self.categories_, self._widths, strict=True)):
            largest = table[:, start : start + width].argmax(axis=1)
            found[:, k] = _chosen(kinds, largest)
            start += width
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return names such as "colour_red" and "colour_other".

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None are those seen in fit, or "x0", "x1", ...

        Returns
        -------
        ndarray of str of shape (n_encoded_features,)
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        more = ["missing", "other"][-self._n_more :]
        kinds = ([*map(named, one.tolist()), *more] for one in self.categories_)
        pairs = zip(names, kinds, strict=True)
        return unique_names(chain.from_iterable([f"{n}_{k}" for k in own] for n, own in pairs))


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
    category_mechanism_ : CategoryMechanism or None
        What chose those that were bought: its ``chance(m)`` is the probability at most with which a
        category of m records is shown. None if all were given.
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
        """Number every value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any values.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            0, 1, ... in the order of ``categories_``, or what stands for others.
        """
        check_is_fitted(self)
        return self._codes(X, float(self.unknown_value), float(self.encoded_missing_value))

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return the categories of numbers; None where there is none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What :meth:`transform` returns.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Of objects.
        """
        check_is_fitted(self)
        table = read_projections(type(self).__name__, X, len(self.categories_))
        found = np.empty(table.shape, dtype=object)
        for k, kinds in enumerate(self.categories_):
            found[:, k] = _chosen(kinds, table[:, k])
        return found


def _chosen(kinds: NDArray[Any], places: Any) -> list[Any]:
    """Return the categories at some places; None where there is none."""
    known: Mapping[float, Any] = {float(k): one for k, one in enumerate(kinds.tolist())}
    return [known.get(float(place)) for place in places]
