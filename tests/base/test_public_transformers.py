"""What is fitted counts, also where parameters say something else since."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdpnoise import DPCoordinateDescentRegressor, DPStandardScaler
from skdpnoise.base.compositions import CHANGED
from skdpnoise.compose import UnpaidStepError, total_guarantee
from tests._cases import each_value
from tests.compose.test_public_register import CASES

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("the_same_words")]

rng = np.random.default_rng(0)
X = np.round(np.abs(rng.normal(size=(300, 2))), 1)
Y = X[:, 0]
KNOTS = np.linspace([0.0, 0.0], [1.0, 2.0], 5)
GIVEN = [[0.0, 1.0]] * 2
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}

# A step that learns something in its fit, and parameters that are set afterwards
LEARNT = {
    "categories": (
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        {"categories": GIVEN},
    ),
    "one category": (
        OneHotEncoder(categories=[[0.0, 2.0]] * 2, handle_unknown="ignore", sparse_output=False),
        {"categories": GIVEN},
    ),
    "counts": (
        OneHotEncoder(
            categories=GIVEN,
            handle_unknown="infrequent_if_exist",
            min_frequency=5,
            sparse_output=False,
        ),
        {"min_frequency": None},
    ),
    "dropped": (
        OneHotEncoder(categories=GIVEN, drop="first", handle_unknown="ignore", sparse_output=False),
        {"drop": None},
    ),
    "codes": (OrdinalEncoder(**UNKNOWN), {"categories": GIVEN}),
    "means": (
        SimpleImputer(strategy="mean", keep_empty_features=True),
        {"strategy": "constant", "fill_value": 0.5},
    ),
    "means for zero": (
        SimpleImputer(strategy="mean", keep_empty_features=True),
        {"strategy": "constant"},
    ),
    "which are missing": (MissingIndicator(features="missing-only"), {"features": "all"}),
    "knots": (SplineTransformer(knots="quantile"), {"knots": KNOTS}),
    "width": (RBFSampler(gamma="scale"), {"gamma": 0.5}),
    "number of records": (GaussianRandomProjection("auto", eps=0.99), {"n_components": 1}),
    "sparse": (SparseRandomProjection("auto", eps=0.99), {"n_components": 1}),
}


@pytest.mark.parametrize("case", LEARNT.values(), ids=LEARNT)
def test_parameters_that_are_set_after_a_fit_do_not_make_a_step_public(case):
    step, later = case
    table = np.repeat(X, 300, axis=1) if "RandomProjection" in type(step).__name__ else X
    fitted = clone(step).fit(table).set_params(**later)
    front = make_pipeline(fitted, DPStandardScaler().fit(X))
    with pytest.raises(UnpaidStepError) as caught:
        total_guarantee(front)
    assert CHANGED in str(caught.value)


def test_weights_of_words_are_learnt_too():
    texts = ["some words", "other words"] * 20
    words = make_pipeline(HashingVectorizer(n_features=4, decode_error="replace"))
    weights = TfidfTransformer().fit(words.transform(texts)).set_params(use_idf=False)
    with pytest.raises(UnpaidStepError, match="not those of its fit"):
        total_guarantee(make_pipeline(weights, DPStandardScaler().fit(X)))


@pytest.mark.parametrize("case", CASES[::2], ids=lambda case: type(case[0]).__name__)
def test_a_step_that_was_fitted_as_it_stands_learns_nothing(case):
    """Each in the data of the register's own tests."""
    step, tables = case
    private = DPStandardScaler().fit(X)
    for table in tables:
        total = total_guarantee(make_pipeline(clone(step).fit(table), private))
        assert total.basic.epsilon == 1.0


@each_value(1)
@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("extrapolation", ["constant", "linear", "periodic"])
def test_given_knots_are_recognised_whatever_is_added_to_them(degree, extrapolation):
    step = SplineTransformer(degree=degree, knots=np.r_[KNOTS, KNOTS[-1:] + 1.0])
    fitted = step.set_params(extrapolation=extrapolation).fit(X)
    assert total_guarantee(make_pipeline(fitted, DPStandardScaler().fit(X))).basic.epsilon == 1.0


REGRESSOR = DPCoordinateDescentRegressor()


def test_a_transformer_of_the_target_counts_as_it_was_fitted():
    target = TransformedTargetRegressor(
        REGRESSOR, transformer=StandardScaler(), check_inverse=False
    ).fit(X, Y)
    for later in (None, FunctionTransformer(np.log1p), DPStandardScaler()):
        with pytest.raises(UnpaidStepError, match="StandardScaler"):
            total_guarantee(target.set_params(transformer=later))


def test_a_private_transformer_of_the_target_is_counted_whatever_stands_there_now():
    target = TransformedTargetRegressor(
        REGRESSOR, transformer=DPStandardScaler(), check_inverse=False
    ).fit(X, Y)
    assert total_guarantee(target.set_params(transformer=None)).basic.epsilon == 2.0


def test_functions_of_the_target_count_as_they_were_fitted():
    options = {"inverse_func": np.expm1, "check_inverse": False}
    target = TransformedTargetRegressor(REGRESSOR, func=np.log1p, **options).fit(X, Y)
    assert total_guarantee(target).basic.epsilon == 1.0
    assert total_guarantee(target).free == ()
    learnt = TransformedTargetRegressor(REGRESSOR, func=lambda y: y - y.mean(), **options)
    learnt = learnt.fit(X, Y).set_params(func=np.log1p)
    with pytest.raises(UnpaidStepError, match="numpy's functions"):
        total_guarantee(learnt)


def test_columns_count_as_they_were_fitted():
    listed = [("scale", StandardScaler(), [0]), ("private", DPStandardScaler(), [1])]
    columns = ColumnTransformer(listed, sparse_threshold=0).fit(X)
    with pytest.raises(UnpaidStepError, match="StandardScaler"):
        total_guarantee(columns.set_params(transformers=listed[1:]))
    encoder = OneHotEncoder(categories=[[0.0]], handle_unknown="ignore")
    sparse = ColumnTransformer([("few", encoder, [0]), listed[1]], sparse_threshold=1.0).fit(X)
    with pytest.raises(UnpaidStepError, match="not those of its fit"):
        total_guarantee(sparse.set_params(sparse_threshold=0))
