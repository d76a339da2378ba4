"""What a search may cost: every way around its guarantee is refused before the charge."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import HuberRegressor, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVR

from skdpnoise import (
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPRandomizedSearchCV,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
)
from skdpnoise.mechanisms import TruncatedNegativeBinomial

CLASSIFIER = DPLogisticCD(feature_bounds=(-4.0, 4.0))
REGRESSOR = DPCoordinateDescentRegressor(feature_bounds=(-4.0, 4.0), target_bounds=(-8.0, 8.0))
TWO = Pipeline([("s", DPStandardScaler()), ("clf", DPLogisticCD())])
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(300, 3))
SCORE = X[:, 0] + 0.3 * RNG.normal(size=300)
LABELS = np.where(SCORE > 0, "yes", "no")


class Untouched:
    """A ledger that fails the test if anything is charged."""

    def charge(self, label, cost, **facts):
        raise AssertionError(f"{label} was charged")


class Notebook:
    """A ledger that writes down what is charged."""

    def __init__(self):
        self.charges = []

    def __sklearn_clone__(self):
        return self

    def charge(self, label, cost, **facts):
        self.charges.append((label, cost, facts))


class Drawn:
    """A distribution of whatever it is given."""

    def __init__(self, *values):
        self.values = values
        self.count = 0

    def rvs(self, random_state=None):
        self.count += 1
        return self.values[self.count % len(self.values)]


def both(estimator, grid, **options):
    """The same search over a grid, and over distributions."""
    yield DPGridSearchCV(estimator, grid, **options)
    drawn = {name: Drawn(*values) for name, values in grid.items()}
    yield DPRandomizedSearchCV(estimator, drawn, n_iter=4, **options)


class Alpha(float):
    """A number that is more than a number."""


def renamed_clone(estimator):
    """An estimator whose clone is not what it seems."""
    found = clone(estimator)
    found.__sklearn_clone__ = lambda: other
    other = clone(estimator)
    other.fit = lambda X, y: None
    return found


def with_own_ledger():
    return DPLogisticCD(ledger=PrivacyLedger("other", 9.0, 1e-3))


class Derived(DPLogisticCD):
    """A subclass that its author has not registered."""

    def fit(self, X, y):
        self.means_ = X.mean(axis=0)
        return super().fit(X, y)


def columns(step, **options):
    return Pipeline(
        [("c", ColumnTransformer([("t", step, [0, 1])], **options)), ("clf", DPLogisticCD())]
    )


encoder = OneHotEncoder(categories=[[0.0, 1.0]] * 2, handle_unknown="ignore", sparse_output=False)

# estimator, values of parameters, what is raised, what it says
ATTACKS = {
    # candidates that are not private
    "an ordinary model": (TWO, {"clf": [DPLogisticCD(), LogisticRegression()]}, "LogisticReg"),
    "exact means": (TWO, {"s": [DPStandardScaler(), StandardScaler()]}, "StandardScaler"),
    "means of the target": (TWO, {"s": [TargetEncoder(categories=[[0.0]] * 3)]}, "TargetEncoder"),
    "a function": (TWO, {"s": [FunctionTransformer(lambda X: X - X.mean())]}, "func may be None"),
    "a parameter called epsilon": (
        Pipeline([("m", DPCoordinateDescentRegressor())]),
        {"m": [SVR(epsilon=0.1), HuberRegressor(epsilon=1.5), DPCoordinateDescentRegressor()]},
        "SVR|HuberRegressor",
    ),
    "a model that keeps all rows": (
        Pipeline([("m", DPCoordinateDescentRegressor())]),
        {"m": [GaussianProcessRegressor()]},
        "GaussianProcessRegressor",
    ),
    "learnt categories": (
        columns(encoder, sparse_threshold=0),
        {"c__t__categories": [[[0.0, 1.0]] * 2, "auto"]},
        "give categories=",
    ),
    "an error that quotes": (
        columns(encoder, sparse_threshold=0),
        {"c__t__handle_unknown": ["ignore", "error"]},
        "handle_unknown='ignore'",
    ),
    "an estimator inside a composition": (
        columns(DPStandardScaler()),
        {"c__t": [DPStandardScaler(), StandardScaler()]},
        "c__t",
    ),
    "another list of columns": (
        columns(DPStandardScaler()),
        {"c__transformers": [[("t", DPStandardScaler(), make_column_selector())]]},
        "must name its columns",
    ),
    "the rest of the columns": (
        columns(DPStandardScaler()),
        {"c__remainder": ["drop", StandardScaler()]},
        "remainder",
    ),
    "other steps": (
        TWO,
        {"steps": [[("s", StandardScaler()), ("clf", DPLogisticCD())]]},
        "StandardScaler",
    ),
    "a cache": (TWO, {"memory": [None, "cache"]}, "memory"),
    "a union": (
        make_pipeline(FeatureUnion([("a", DPStandardScaler())]), DPLogisticCD()),
        {"featureunion__a": [StandardScaler()]},
        "StandardScaler",
    ),
    "a function of the target": (
        TransformedTargetRegressor(DPCoordinateDescentRegressor(), check_inverse=False),
        {"func": [np.frompyfunc(abs, 1, 1)], "inverse_func": [np.abs]},
        "numpy's functions",
    ),
    "a scaler of the target": (
        TransformedTargetRegressor(DPCoordinateDescentRegressor(), check_inverse=False),
        {"transformer": [None, StandardScaler()]},
        "StandardScaler",
    ),
    "a derived class": (TWO, {"clf": [Derived()]}, "Derived"),
    # compositions that learn or fit copies themselves
    "one against the rest": (OneVsRestClassifier(CLASSIFIER, n_jobs=2), {}, "OneVsRest"),
    "rows that repeat": (BaggingClassifier(CLASSIFIER), {}, "BaggingClassifier"),
    "labels anew": (VotingClassifier([("a", CLASSIFIER)]), {}, "VotingClassifier"),
    "a stack": (StackingClassifier([("a", CLASSIFIER)]), {}, "StackingClassifier"),
    "an ordinary search": (GridSearchCV(CLASSIFIER, {"alpha": [0.0]}), {}, "GridSearchCV"),
    "any of them as a candidate": (
        TWO,
        {"clf": [OneVsRestClassifier(CLASSIFIER), BaggingClassifier(CLASSIFIER)]},
        "Refused",
    ),
    "SGD": (Pipeline([("clf", DPLogisticCD())]), {"clf": [SGDClassifier()]}, "SGDClassifier"),
    # what the search sets
    "an own budget": (CLASSIFIER, {"epsilon": [9.0]}, "must not be among"),
    "an own budget below": (TWO, {"clf__epsilon": [9.0]}, "clf__epsilon"),
    "an own delta": (TWO, {"s__delta": [0.1]}, "s__delta"),
    "an own relation": (TWO, {"clf__adjacency": ["add_remove"]}, "clf__adjacency"),
    "an own ledger": (TWO, {"clf__ledger": [None]}, "clf__ledger"),
    "an own seed": (TWO, {"clf__random_state": [0]}, "clf__random_state"),
    "own classes": (TWO, {"clf__classes": [["no", "yes"]]}, "clf__classes"),
    "rows of groups": (TWO, {"clf__rows_per_group": [2]}, "clf__rows_per_group"),
    "a model with a ledger": (TWO, {"clf": [with_own_ledger()]}, "Give the ledger to"),
    "a model with a relation": (TWO, {"clf": [DPLogisticCD(adjacency="add_remove")]}, "adjacency"),
    "a model with groups": (TWO, {"clf": [DPLogisticCD(rows_per_group=2)]}, "rows_per_group"),
    "models with unlike classes": (
        TWO,
        {"clf": [DPLogisticCD(classes=["no", "yes"]), DPLogisticCD(classes=["a", "no", "yes"])]},
        "'classes' parameter must be the same",
    ),
    "models of unlike kind": (
        TWO,
        {"clf": [DPLogisticCD(), DPCoordinateDescentRegressor()]},
        "all classifiers or all regressors",
    ),
    "losses of unlike kind": (
        TWO,
        {"clf": [DPLogisticCD(), DPLogisticCD(noise="iid_laplace")]},
        "same kind of loss",
    ),
    "no model": (TWO, {"clf": ["passthrough"]}, "must have the method 'predict'"),
    # searches inside searches
    "a search": (DPGridSearchCV(CLASSIFIER, {"alpha": [0.0]}), {}, "must not contain a search"),
    "a search as a step": (
        make_pipeline(DPStandardScaler(), DPGridSearchCV(CLASSIFIER, {"alpha": [0.0]})),
        {},
        "must not contain a search",
    ),
    "a search as a candidate": (
        TWO,
        {"clf": [DPRandomizedSearchCV(CLASSIFIER, {"alpha": [0.0]})]},
        "must not contain a search",
    ),
    # values that change or act
    "a number that is more": (CLASSIFIER, {"alpha": [Alpha(0.1)]}, "of type Alpha"),
    "an object in a list": (CLASSIFIER, {"feature_bounds": [[-1.0, Alpha(1.0)]]}, "type Alpha"),
    "an array of objects": (
        CLASSIFIER,
        {"error_weights": [np.array([Alpha(1.0)] * 3, dtype=object)]},
        "of type Alpha",
    ),
    "a clone that is another": (renamed_clone(CLASSIFIER), {}, "fit"),
    # what has no value
    "a value out of range": (CLASSIFIER, {"alpha": [0.0, -1.0]}, "alpha"),
    "a value out of range behind": (TWO, {"clf__alpha": [0.0, -1.0]}, "alpha"),
    "a parameter that is not there": (TWO, {"clf__beta": [0.0]}, "beta"),
    "bounds of a wrong width behind": (
        TWO,
        {"clf__feature_bounds": [(np.zeros(5), np.ones(5))]},
        "shape",
    ),
    "a setting that cannot be met behind": (
        Pipeline([("s", DPStandardScaler()), ("clf", DPCoordinateDescentRegressor())]),
        {"clf__row_norm": [0.1], "clf__solver": ["gram"]},
        "row_norm",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_before_the_charge(name):
    estimator, grid, text = ATTACKS[name]
    y = SCORE if "Regressor" in repr(estimator) else LABELS
    for search in both(estimator, grid, ledger=Untouched()):
        with pytest.raises((TypeError, ValueError), match=text):
            search.fit(X, y)
        assert not hasattr(search, "best_estimator_")
