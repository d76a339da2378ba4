"""Checks that the fitted state of a step that learns nothing is that of its parameters.

The condition of a class is about parameters, and those may be set after a fit: an encoder that
found its categories in the data still has them, whatever `categories` says since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdpnoise.base.compositions import CHANGED
from skdpnoise.base.exact_classes import ExactClasses


def changed_since_fit(step: Any) -> str | None:
    """Return what to do where a fitted step has a state that its parameters do not give it."""
    explains = _STATES.get(type(step))
    if explains is None or not _is_fitted(step) or explains(step):
        return None
    return CHANGED


def _is_fitted(step: Any) -> bool:
    own = set(step.get_params(deep=False))
    return any(name.endswith("_") and name not in own for name in vars(step))


def _encoder(encoder: Any) -> bool:
    """Compare categories one by one: those of an encoder may have become another type."""
    pairs = zip(encoder.categories, encoder.categories_, strict=False)
    return (
        len(encoder.categories) == len(encoder.categories_)
        and all(_same(given, found) for given, found in pairs)
        and getattr(encoder, "drop_idx_", None) is None
        and not getattr(encoder, "_infrequent_enabled", False)
    )


def _imputer(imputer: SimpleImputer) -> bool:
    fills = (0, "missing_value") if imputer.fill_value is None else (imputer.fill_value,)
    found = imputer.statistics_
    given = any(_same([fill] * len(found), found) for fill in fills)
    return given and getattr(imputer, "indicator_", None) is None


def _indicator(indicator: MissingIndicator) -> bool:
    return np.array_equal(indicator.features_, np.arange(indicator.n_features_in_))


def _spline(transformer: SplineTransformer) -> bool:
    """Compare the knots between those that are added at both ends."""
    knots, degree = np.asarray(transformer.knots, dtype=np.float64), int(transformer.degree)
    found = [np.asarray(spline.t)[degree:] for spline in transformer.bsplines_]
    return knots.shape[1] == len(found) and all(
        np.array_equal(knots[:, column], inner[: len(inner) - degree])
        for column, inner in enumerate(found)
    )


def _kernel(sampler: RBFSampler) -> bool:
    return bool(sampler._gamma == sampler.gamma)


def _projection(projection: Any) -> bool:
    return bool(projection.n_components_ == projection.n_components)


def _weighted_text(transformer: TfidfTransformer) -> bool:
    return not {"idf_", "_idf_diag"} & set(vars(transformer))


def _same(given: Any, found: Any) -> bool:
    """Return whether lists hold equal values; what is not equal to itself is missing in both."""
    return len(given) == len(found) and all(
        one is other or one == other or (one != one and other != other)
        for one, other in zip(given, found, strict=True)
    )


_STATES: ExactClasses[Callable[[Any], bool]] = ExactClasses(
    {
        OneHotEncoder: _encoder,
        OrdinalEncoder: _encoder,
        SimpleImputer: _imputer,
        MissingIndicator: _indicator,
        SplineTransformer: _spline,
        RBFSampler: _kernel,
        GaussianRandomProjection: _projection,
        SparseRandomProjection: _projection,
        TfidfTransformer: _weighted_text,
    }.items()
)
