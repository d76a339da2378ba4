"""scikit-learn's common checks: each class as it is, and other settings, which take turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPCovariance,
    DPGridSearchCV,
    DPKBinsDiscretizer,
    DPLassoPath,
    DPLogisticCD,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPPipeline,
    DPPoissonRegressor,
    DPQuantileTransformer,
    DPRandomizedSearchCV,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
)
from skdpnoise.privacy import TruncatedNegativeBinomial
from tests.compose._pipelines import private_pipeline
from tests.contracts._register import ENTRIES

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

CLASSIFIER = DPLogisticCD(feature_bounds=(-4.0, 4.0))
REGRESSOR = DPCoordinateDescentRegressor(feature_bounds=(-4.0, 4.0), target_bounds=(-8.0, 8.0))
LAW = TruncatedNegativeBinomial(eta=1.0, gamma=0.3)
ALONE = [entry for entry in ENTRIES if entry.alone and not entry.by_torch]
# Classes whose checks `make test` runs, by name.
QUICK = [
    "DPCoordinateDescentRegressor",
    "DPLogisticCD",
    "DPPCA",
    "DPStandardScaler",
    "DPTableVectorizer",
]
CLASSES = list(dict.fromkeys(entry.make for entry in ALONE))
# Checks of a class, of what it holds before a fit and of what every reader refuses: no setting
# changes these.
WHATEVER_THE_SETTINGS = {
    "check_complex_data",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_empty_data_messages",
    "check_estimators_partial_fit_n_features",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_fit2d_predict1d",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_non_transformer_estimators_n_iter",
    "check_parameters_default_constructible",
    "check_positive_only_tag_during_fit",
    "check_regressors_no_decision_function",
    "check_requires_y_none",
    "check_set_params",
    "check_supervised_y_no_nan",
    "check_transformer_n_iter",
    "check_transformers_unfitted",
    "check_valid_tag_types",
}
OTHERS = [
    DPCoordinateDescentRegressor(
        epsilon=5.0,
        delta=0.0,
        noise="inid_laplace",
        alpha=0.1,
        l1_ratio=1.0,
        feature_bounds=(-5.0, 5.0),
        target_bounds=(-500.0, 500.0),
        n_jobs=2,
    ),
    DPCoordinateDescentRegressor(
        noise="spr_gaussian",
        adjacency="add_remove",
        fit_intercept=False,
        n_passes=3,
        clip=0.5,
        budget_growth=1.0,
        error_weights="uniform",
    ),
    DPCoordinateDescentRegressor(solver="gram"),
    DPCoordinateDescentRegressor(
        epsilon=3.0,
        delta=0.0,
        solver="gram",
        alpha=0.01,
        l1_ratio=1.0,
        adjacency="add_remove",
        fit_intercept=False,
        row_norm=2.0,
        feature_bounds=(-5.0, 5.0),
        n_jobs=2,
    ),
    DPLassoPath(),
    DPLassoPath(epsilon=20.0, delta=0.0, noise="inid_laplace", alphas=[0.1, 0.01], l1_ratio=0.5),
    DPLogisticCD(
        epsilon=0.5,
        noise="iid_gaussian",
        adjacency="add_remove",
        alpha=0.01,
        l1_ratio=0.0,
        feature_bounds=(-10.0, 10.0),
        n_passes=2,
    ),
    DPLogisticCD(epsilon=20.0, delta=0.0, fit_intercept=False, clip=1.0, budget_growth=1.5),
    DPPoissonRegressor(
        epsilon=5.0,
        delta=0.0,
        adjacency="add_remove",
        alpha=0.01,
        l1_ratio=1.0,
        feature_bounds=(-5.0, 5.0),
        target_bounds=(0.0, 1000.0),
        error_weights="uniform",
        n_jobs=2,
    ),
    DPPoissonRegressor(fit_intercept=False, n_passes=3, clip=2.0, noise="spr_gaussian"),
    DPStandardScaler(5.0, 0.0, noise="inid_laplace", feature_bounds=(-9.0, 9.0)),
    DPStandardScaler(adjacency="add_remove", noise="spr_gaussian", with_mean=False),
    DPStandardScaler(with_std=False),
    DPRobustScaler(0.5, 0.0, adjacency="add_remove", unit_variance=True),
    DPRobustScaler(noise="iid_gaussian", with_centering=False, feature_bounds=(-99.0, 99.0)),
    DPMinMaxScaler((-1, 1), 2.0, feature_bounds=(-50.0, 50.0), clip=True),
    DPMinMaxScaler((-1, 1), adjacency="add_remove", clip=True, quantile_range=(5.0, 95.0)),
    DPSimpleImputer(),
    DPSimpleImputer(strategy="most_frequent", add_indicator=True, adjacency="add_remove"),
    DPSimpleImputer(strategy="constant", fill_value=3),
    DPSimpleImputer(0.5, 0.0, strategy="median", feature_bounds=(-99.0, 99.0)),
    DPOneHotEncoder(),
    DPOneHotEncoder(handle_missing="indicator", adjacency="add_remove", dtype="float32"),
    DPOrdinalEncoder(noise="iid_gaussian"),
    DPOrdinalEncoder(unknown_value=-5, encoded_missing_value=7.5, adjacency="add_remove"),
    DPKBinsDiscretizer(),
    DPKBinsDiscretizer(7, encode="ordinal", adjacency="add_remove"),
    DPKBinsDiscretizer(strategy="uniform", feature_bounds=(-99.0, 99.0)),
    DPQuantileTransformer(),
    DPQuantileTransformer(11, 2.0, 0.0, output_distribution="normal"),
    DPTableVectorizer(),
    DPTableVectorizer(n_bins=0, adjacency="add_remove"),
    DPTableVectorizer(noise="iid_laplace", n_bins=3),
    DPPCA(),
    DPPCA("auto", 5.0, 0.0, adjacency="add_remove", whiten=True),
    DPPCA(0.5, noise="inid_laplace", center=False, delta=0.0, n_jobs=2),
    DPPCA(2, noise="iid_gaussian", feature_bounds=(-10.0, 10.0), row_norm=5.0),
    DPCovariance(),
    DPCovariance(3.0, 0.0, adjacency="add_remove", assume_centered=True, store_precision=False),
    DPCovariance(noise="iid_gaussian", feature_bounds=(-10.0, 10.0), n_jobs=2),
    private_pipeline(),
    DPPipeline([("scale", DPStandardScaler()), ("model", DPCoordinateDescentRegressor())]),
    DPPipeline([("scale", DPStandardScaler())]),
    DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1, 0.2]}, repetitions=LAW),
    DPGridSearchCV(
        DPLogisticCD(delta=0.0, adjacency="add_remove"),
        {"alpha": [0.0, 0.1, 0.2]},
        delta=0.0,
        epsilon=20.0,
        scoring="neg_log_loss",
        adjacency="add_remove",
        repetitions=LAW,
    ),
    DPGridSearchCV(REGRESSOR, {"alpha": [0.0, 0.1, 1.0]}),
    DPRandomizedSearchCV(
        REGRESSOR,
        {"alpha": [1e-3, 1e-2, 0.1, 1.0]},
        n_iter=3,
        strategy="noisy_max",
        refit=True,
        scoring="neg_mean_squared_error",
        target_bounds=(-300.0, 300.0),
    ),
    DPLogisticCD(feature_bounds=(-20.0, 20.0), n_passes=2, solver="joint"),  # of sparse rows too
    DPLogisticCD(feature_bounds=(-10.0, 10.0)),
]


def name(check: Any) -> str:
    if isinstance(check, partial):
        settings = [
            f"{key}={value}" for key, value in check.keywords.items() if key != "estimator_orig"
        ]
        return ",".join([check.func.__name__, *settings])
    return check.__name__


def way_through(cls: type) -> type:
    """Return the class whose `fit` it has."""
    return next(owner for owner in cls.__mro__ if "fit" in vars(owner))


def cases() -> Iterator[Any]:
    """Each check of each way through a fit, with one of its classes and settings, in turn."""
    found: dict[Any, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    as_they_are = {way_through(cls) for cls in CLASSES}
    for estimator in OTHERS:
        way = way_through(type(estimator))
        for case in estimator_checks_generator(estimator):
            if way in as_they_are and name(case[1]) in WHATEVER_THE_SETTINGS:
                continue  # which each class has passed as it is
            found[way][name(case[1])].append(case)
    for checks in found.values():
        for turn, (check, settings) in enumerate(checks.items()):
            case = settings[turn % len(settings)]
            kind = type(case[0]).__name__
            if "array_api" not in check:  # which would be skipped
                marks = [] if kind in QUICK else [pytest.mark.slow]
                yield pytest.param(*case, id=f"{kind}-{check}", marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [*CLASSES, pytest.param(partial(BoundsClipper, (-1.0, 1.0)), id="BoundsClipper with bounds")],
)
def test_every_class_passes_all_checks_as_it_is(make):
    check_estimator(make())


@pytest.mark.parametrize(("estimator", "check"), list(cases()))
def test_each_check_is_passed_by_other_settings_too(estimator, check):
    if getattr(estimator, "delta", 1.0) == 0.0 and "check_class_weight_classifiers" in str(check):
        with pytest.raises(ValueError, match="delta positive"):  # for weights of classes
            check(estimator)
        return
    check(estimator)
