"""Clipping to public bounds, which learns nothing from the data."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdpnoise._utils.documented import DocumentedMixin
from skdpnoise._utils.parameters import as_bounds, check_parameters
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.partitioned import OverPartsMixin
from skdpnoise.base.private_fit import check_unpaid_arguments, unchanged_on_failure
from skdpnoise.base.register import register_public
from skdpnoise.data.reading import NumberColumns, read
from skdpnoise.data.tables import read_table


@constructor_of_fields
class BoundsClipper(
    OverPartsMixin, DocumentedMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    r"""Clip every column to public bounds: no privacy cost.

    .. math:: z_j = \min(\max(x_j, l_j), h_j)

    It learns the names of the columns only: the step after it is as private as without it.

    Parameters
    ----------
    %(estimators: feature_bounds)s
        None clips nothing.
    copy : bool, default=True
        Whether to leave X as it is; otherwise it is clipped in place where possible.

    Attributes
    ----------
    %(estimators: n_features_in_, feature_names_in_)s

    See Also
    --------
    DPMinMaxScaler : Map public bounds to an interval.

    Examples
    --------
    >>> BoundsClipper((0.0, [10.0, 5.0])).fit_transform([[-1.0, 4.0], [20.0, 8.0]])
    array([[ 0.,  4.],
           [10.,  5.]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "feature_bounds": [None, tuple, list, dict, np.ndarray],
        "copy": ["boolean"],
    }

    feature_bounds: tuple[Any, Any] | dict[str, Any] | None = None
    _: KW_ONLY
    copy: bool = True

    def fit(self, X: Any, y: Any = None, **params: Any) -> BoundsClipper:
        """Check the parameters and remember the columns' names.

        Parameters
        ----------
        X : array-like or RowSource of shape (n_samples, n_features)
            Finite.
        %(fits: y, **params)s

        Returns
        -------
        self : BoundsClipper

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are not as described, or anything but X and y is passed.
        """
        check_unpaid_arguments(self, params)
        check_parameters(self)
        with unchanged_on_failure(self):
            read(self, NumberColumns({"largest": np.inf, "keeps_subnormal": True}, fewest=1), X=X)
            as_bounds(self.feature_bounds, self.n_features_in_, "feature_bounds", self)
        return self

    def transform(self, X: Any) -> Any:
        """Clip to the bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Within the bounds; float32 stays float32.
        """
        check_parameters(self)
        X = read_table(self, X, reset=False, copy=self.copy, force_writeable=True)
        low, high = as_bounds(self.feature_bounds, X.shape[1], "feature_bounds", self)
        return np.clip(X, low.astype(X.dtype), high.astype(X.dtype), out=X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


register_public(BoundsClipper, lambda clipper: None)
