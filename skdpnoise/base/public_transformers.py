"""scikit-learn's transformers that learn nothing, each with the whole condition under which.

A condition returns None where the transformer learns nothing from the data and says nothing of a
value, else what to change. Read beside `fit` and `transform` of scikit-learn 1.7 to 1.9; the tests
compare the fitted states, messages and outputs of unlike data sets for every class.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdpnoise.base.elementwise import function_remedy
from skdpnoise.base.exact_classes import Reads, Rule


def _always(estimator: Any) -> None:
    """Accept every parameter: outputs depend on single records and on parameters alone."""


def _first(*complaints: str | None) -> str | None:
    return next((complaint for complaint in complaints if complaint), None)


def _need(holds: bool, remedy: str) -> str | None:
    return None if holds else remedy


def _given_categories(encoder: Any) -> str | None:
    """Categories are listed, and none are counted."""
    given = type(encoder.categories) in (list, tuple) and all(
        type(column) in (list, tuple, np.ndarray) and len(column) > 0
        for column in encoder.categories
    )
    return _first(
        _need(
            given,
            "give categories=, a list of public categories for each column, or use "
            "DPOneHotEncoder or DPOrdinalEncoder",
        ),
        _need(
            encoder.min_frequency is None and encoder.max_categories is None,
            "leave min_frequency and max_categories at None: frequencies are counted in the data",
        ),
    )


def _one_hot(encoder: OneHotEncoder) -> str | None:
    return _first(
        _given_categories(encoder),
        _need(
            encoder.handle_unknown in ("ignore", "infrequent_if_exist"),
            "set handle_unknown='ignore': the error, or warning, tells of an unknown category",
        ),
        _need(encoder.drop is None, "set drop=None: with it unknown categories are warned of"),
        _need(
            type(encoder.feature_name_combiner) is str, "leave feature_name_combiner at 'concat'"
        ),
    )


def _ordinal(encoder: OrdinalEncoder) -> str | None:
    return _first(
        _given_categories(encoder),
        _need(
            encoder.handle_unknown == "use_encoded_value",
            "set handle_unknown='use_encoded_value' and unknown_value=-1: the error quotes the "
            "unknown category",
        ),
        _need(
            np.dtype(encoder.dtype).kind in "fiu",
            "set dtype to a type of numbers: errors tell of objects that are not finite",
        ),
    )


def _imputer(imputer: SimpleImputer) -> str | None:
    return _first(
        _need(
            not isinstance(imputer.missing_values, str),
            "set missing_values to NaN, None or a number: where a text is replaced, the next error "
            "tells whether it was the only one",
        ),
        _need(
            not _is_finite(imputer.missing_values) or _is_finite(imputer.fill_value),
            "set fill_value to a finite number, as missing_values is one: else the next error "
            "tells whether it occurs",
        ),
        _need(
            type(imputer.strategy) is str and imputer.strategy == "constant",
            "set strategy='constant' with a public fill_value, or use DPSimpleImputer: any other "
            "statistic is read from the data",
        ),
        _need(
            imputer.keep_empty_features is True,
            "set keep_empty_features=True: else a column is dropped where all of it is missing",
        ),
        _need(
            imputer.add_indicator is False,
            "set add_indicator=False, and use MissingIndicator(features='all'): it adds columns "
            "only where something is missing",
        ),
    )


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def _indicator(indicator: MissingIndicator) -> str | None:
    return _need(
        indicator.features == "all",
        "set features='all': else columns are kept by whether something is missing",
    )


def _spline(transformer: SplineTransformer) -> str | None:
    return _first(
        _need(
            type(transformer.knots) in (list, tuple, np.ndarray),
            "give knots=, an array of public knots for each column",
        ),
        _need(
            transformer.extrapolation != "error",
            "set extrapolation='constant': the error tells of values beyond the knots",
        ),
        _need(
            not transformer.sparse_output or transformer.extrapolation in ("constant", "linear"),
            "set sparse_output=False: with this extrapolation the error tells of infinite values",
        ),
    )


def _function(transformer: FunctionTransformer) -> str | None:
    names_out = transformer.feature_names_out
    both = transformer.func is not None and transformer.inverse_func is not None
    return _first(
        function_remedy("func", transformer.func),
        function_remedy("inverse_func", transformer.inverse_func),
        _need(
            not transformer.kw_args and not transformer.inv_kw_args,
            "leave kw_args and inv_kw_args at None: they may hold the data",
        ),
        _need(
            not (both and transformer.check_inverse),
            "set check_inverse=False: the warning depends on the data",
        ),
        _need(
            names_out is None or type(names_out) is str,
            "set feature_names_out='one-to-one', not a function",
        ),
    )


def _hashed_text(vectorizer: HashingVectorizer) -> str | None:
    functions = [vectorizer.preprocessor, vectorizer.tokenizer, vectorizer.strip_accents]
    functions.append(vectorizer.analyzer)
    return _first(
        _need(
            not any(callable(function) for function in functions),
            "use no functions of your own (preprocessor, tokenizer, analyzer, strip_accents): "
            "they may learn from the text",
        ),
        _need(vectorizer.input == "content", "set input='content': errors name missing files"),
        _need(
            vectorizer.decode_error != "strict",
            "set decode_error='replace': the error quotes what cannot be decoded",
        ),
    )


def _weighted_text(transformer: TfidfTransformer) -> str | None:
    return _first(
        _need(
            not transformer.use_idf,
            "set use_idf=False: frequencies of words are read from the data",
        ),
        _need(
            not (transformer.sublinear_tf and transformer.norm),
            "set sublinear_tf=False or norm=None: the logarithm of a negative value is refused",
        ),
    )


def _projection(projection: Any) -> str | None:
    return _first(
        _need(
            isinstance(projection.n_components, Integral),
            "give n_components= as a number: 'auto' depends on the number of records",
        ),
        _seed(projection),
    )


def _kernel(sampler: RBFSampler) -> str | None:
    return _first(
        _need(
            isinstance(sampler.gamma, Real),
            "give gamma= as a number: 'scale' is the variance of the data",
        ),
        _seed(sampler),
    )


def _seed(transformer: Any) -> str | None:
    return _need(
        transformer.random_state is None or isinstance(transformer.random_state, Integral),
        "set random_state to None or an integer: a generator may be shared with what has seen data",
    )


def _objects(estimator: Any) -> Reads:
    """Compare values, or hash them, and compute nothing with them."""
    return "objects"


def _read_by_function(transformer: FunctionTransformer) -> Reads:
    """numpy lets each object answer for itself: 1 / 0 is an error, 1.0 / 0.0 is not."""
    if transformer.validate:
        return "values"
    return "objects" if transformer.func is None else "types"


def _sparse_output(estimator: Any) -> bool:
    return bool(estimator.sparse_output)


def _sparse_mask(indicator: MissingIndicator) -> bool:
    return indicator.sparse is True


# Fitted states. A condition is about parameters, and those may be set after a fit: an encoder that
# found its categories in the data still has them, whatever `categories` says since.


def _fitted_encoder(encoder: Any) -> bool:
    """Compare categories one by one: those of an encoder may have become another type."""
    pairs = zip(encoder.categories, encoder.categories_, strict=False)
    return (
        len(encoder.categories) == len(encoder.categories_)
        and all(_same(given, found) for given, found in pairs)
        and getattr(encoder, "drop_idx_", None) is None
        and not getattr(encoder, "_infrequent_enabled", False)
    )


def _fitted_imputer(imputer: SimpleImputer) -> bool:
    fills = (0, "missing_value") if imputer.fill_value is None else (imputer.fill_value,)
    found = imputer.statistics_
    given = any(_same([fill] * len(found), found) for fill in fills)
    return given and getattr(imputer, "indicator_", None) is None


def _fitted_indicator(indicator: MissingIndicator) -> bool:
    return np.array_equal(indicator.features_, np.arange(indicator.n_features_in_))


def _fitted_spline(transformer: SplineTransformer) -> bool:
    """Compare the knots between those that are added at both ends."""
    knots, degree = np.asarray(transformer.knots, dtype=np.float64), int(transformer.degree)
    found = [np.asarray(spline.t)[degree:] for spline in transformer.bsplines_]
    return knots.shape[1] == len(found) and all(
        np.array_equal(knots[:, column], inner[: len(inner) - degree])
        for column, inner in enumerate(found)
    )


def _fitted_kernel(sampler: RBFSampler) -> bool:
    return bool(sampler._gamma == sampler.gamma)


def _fitted_projection(projection: Any) -> bool:
    return bool(projection.n_components_ == projection.n_components)


def _fitted_weighted_text(transformer: TfidfTransformer) -> bool:
    return not {"idf_", "_idf_diag"} & set(vars(transformer))


def _same(given: Any, found: Any) -> bool:
    """Return whether lists hold equal values; what is not equal to itself is missing in both."""
    return len(given) == len(found) and all(
        one is other or one == other or (one != one and other != other)
        for one, other in zip(given, found, strict=True)
    )


_PROJECTION = Rule(_projection, fitted=_fitted_projection)

RULES: tuple[tuple[type, Rule], ...] = (
    *((kind, Rule(_always)) for kind in (Normalizer, Binarizer, PolynomialFeatures)),
    *((kind, _PROJECTION) for kind in (GaussianRandomProjection, SparseRandomProjection)),
    (OneHotEncoder, Rule(_one_hot, _sparse_output, _objects, _fitted_encoder)),
    (OrdinalEncoder, Rule(_ordinal, reads=_objects, fitted=_fitted_encoder)),
    (SimpleImputer, Rule(_imputer, reads=_objects, fitted=_fitted_imputer)),
    (MissingIndicator, Rule(_indicator, _sparse_mask, _objects, _fitted_indicator)),
    (SplineTransformer, Rule(_spline, _sparse_output, fitted=_fitted_spline)),
    (FunctionTransformer, Rule(_function, reads=_read_by_function)),
    (HashingVectorizer, Rule(_hashed_text, lambda text: True, _objects)),
    (FeatureHasher, Rule(_always, lambda hasher: True, _objects)),
    (TfidfTransformer, Rule(_weighted_text, lambda text: True, fitted=_fitted_weighted_text)),
    (RBFSampler, Rule(_kernel, fitted=_fitted_kernel)),
    (PolynomialCountSketch, Rule(_seed)),
)
