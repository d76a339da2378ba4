"""Compositions that were once taken for private, by ordinary code: each is refused or warned of.

One table for every place where the register is asked: ``total_guarantee``, ``DPPipeline``, ordinary
pipelines and meta-estimators, searches; and for models that charge when they are fitted again.
"""

from __future__ import annotations

import warnings
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import HuberRegressor, LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder, scale
from sklearn.svm import SVR

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLassoPath,
    DPLogisticCD,
    DPPipeline,
    DPRandomizedSearchCV,
    DPStandardScaler,
    PrivacyWarning,
    total_guarantee,
)
from skdpnoise.compose import UnpaidStepError, taken_apart
from tests._cases import each_value, quick

pytestmark = pytest.mark.usefixtures("the_same_words")


rng = np.random.default_rng(0)
X = rng.integers(0, 4, size=(400, 3)).astype(float)
Y = (X[:, 0] > 1.0).astype(int)
BOUNDS = {"feature_bounds": (-4.0, 4.0)}


def _classifier():
    return DPLogisticCD(10.0, classes=[0, 1], **BOUNDS)


def _regressor():
    return DPCoordinateDescentRegressor(**BOUNDS, target_bounds=(-4.0, 4.0))


def _two():
    return Pipeline([("scale", DPStandardScaler(**BOUNDS)), ("model", _classifier())])


def _watched():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 or newer")
    return _classifier().set_callbacks(callback.ScoringMonitor(scoring="accuracy"))


def _winner(ledger):
    return DPGridSearchCV(_classifier(), {"alpha": [0.0]}, ledger=ledger).fit(X, Y).best_estimator_


class TableVectorizer(TransformerMixin, BaseEstimator):
    """As skrub's: fits scikit-learn's steps to columns, and keeps them in a dict by name."""

    def fit(self, X, y=None):
        self.transformers_ = {"x0": StandardScaler().fit(X)}
        return self

    def transform(self, X):
        return self.transformers_["x0"].transform(X)


WARNS, RAISES, CHARGES = "its fit warns", "its search raises", "its refit charges"
# What it is, what has to happen, how it is made, and which class the message or charge has to name.
TABLE = {
    "an ordinary model after a private step": (
        WARNS,
        lambda: make_pipeline(DPStandardScaler(**BOUNDS), LogisticRegression()),
        "LogisticRegression",
    ),
    "an ordinary scaler before a private model": (
        WARNS,
        lambda: make_pipeline(StandardScaler(), _classifier()),
        "StandardScaler",
    ),
    "a parameter called epsilon: SVR": (
        WARNS,
        lambda: VotingRegressor([("dp", _regressor()), ("svr", SVR())]),
        "VotingRegressor",
    ),
    "a parameter called epsilon: SGDClassifier": (
        WARNS,
        lambda: make_pipeline(DPStandardScaler(**BOUNDS), SGDClassifier()),
        "SGDClassifier",
    ),
    "a parameter called epsilon: HuberRegressor": (
        WARNS,
        lambda: make_pipeline(DPStandardScaler(**BOUNDS), HuberRegressor()),
        "HuberRegressor",
    ),
    "a parameter called epsilon: MLPClassifier": (
        WARNS,
        lambda: make_pipeline(DPStandardScaler(**BOUNDS), MLPClassifier((2,), max_iter=2)),
        "MLPClassifier",
    ),
    "given categories, and target means": (
        WARNS,
        lambda: make_pipeline(TargetEncoder(categories=[[0.0, 1.0, 2.0, 3.0]] * 3), _classifier()),
        "TargetEncoder",
    ),
    "a model that stores all rows": (
        WARNS,
        lambda: make_pipeline(DPStandardScaler(**BOUNDS), GaussianProcessRegressor()),
        "GaussianProcessRegressor",
    ),
    "a function that learns": (
        WARNS,
        lambda: make_pipeline(FunctionTransformer(scale), _classifier()),
        "FunctionTransformer",
    ),
    "steps under keys that nobody looks at": (
        WARNS,
        lambda: make_pipeline(TableVectorizer(), _classifier()),
        "TableVectorizer",
    ),
    "probabilities calibrated on private data": (
        WARNS,
        lambda: CalibratedClassifierCV(_classifier(), cv=2),
        "CalibratedClassifierCV",
    ),
    "a threshold tuned on private data": (
        WARNS,
        lambda: TunedThresholdClassifierCV(_classifier(), cv=2),
        "TunedThresholdClassifierCV",
    ),
    "a model of private models": (
        WARNS,
        lambda: StackingClassifier([("dp", _classifier())], LogisticRegression(), cv=2),
        "StackingClassifier",
    ),
    "one fit for each class": (
        WARNS,
        lambda: OneVsRestClassifier(DPLogisticCD(**BOUNDS)),
        "OneVsRestClassifier",
    ),
    "rows seen several times": (
        WARNS,
        lambda: BaggingClassifier(_classifier(), n_estimators=2),
        "BaggingClassifier",
    ),
    "an ordinary search around a private model": (
        WARNS,
        lambda: GridSearchCV(_classifier(), {"alpha": [0.0, 1.0]}, cv=2),
        "GridSearchCV",
    ),
    "an ordinary step deep within": (
        WARNS,
        lambda: Pipeline(
            [
                ("in", FeatureUnion([("a", make_pipeline(StandardScaler(), "passthrough"))])),
                ("dp", _classifier()),
            ]
        ),
        "StandardScaler",
    ),
    "a grid that swaps in an ordinary model": (
        RAISES,
        lambda: DPGridSearchCV(_two(), {"model": [_classifier(), LogisticRegression()]}),
        "LogisticRegression",
    ),
    "a grid that swaps in exact means": (
        RAISES,
        lambda: DPGridSearchCV(_two(), {"scale": [DPStandardScaler(), StandardScaler()]}),
        "StandardScaler",
    ),
    "distributions that swap in an ordinary model": (
        RAISES,
        lambda: DPRandomizedSearchCV(_two(), {"model": [LogisticRegression()]}, n_iter=1),
        "LogisticRegression",
    ),
    "a cap copied into other processes": (
        RAISES,
        lambda: DPGridSearchCV(OneVsRestClassifier(_classifier(), n_jobs=2), {}),
        "OneVsRestClassifier",
    ),
    "a candidate that copies a cap": (
        RAISES,
        lambda: DPGridSearchCV(_two(), {"model": [OneVsRestClassifier(_classifier(), n_jobs=2)]}),
        "OneVsRestClassifier",
    ),
    "a search over rows seen several times": (
        RAISES,
        lambda: DPGridSearchCV(BaggingClassifier(_classifier()), {}),
        "BaggingClassifier",
    ),
    "a callback of an inner estimator": (
        RAISES,
        lambda: DPGridSearchCV(_watched(), {"alpha": [0.0]}),
        "DPLogisticCD: has callbacks",
    ),
    "a callback of a step": (
        RAISES,
        lambda: DPGridSearchCV(_two().set_params(model=_watched()), {"model__alpha": [0.0]}),
        "DPLogisticCD.: has callbacks",
    ),
    "a callback of a candidate": (
        RAISES,
        lambda: DPGridSearchCV(_two(), {"model": [_classifier(), _watched()]}),
        "DPLogisticCD.: has callbacks",
    ),
    "a winner fitted again": (CHARGES, lambda ledger: _winner(ledger), "DPLogisticCD"),
    "a clone of a winner": (CHARGES, lambda ledger: clone(_winner(ledger)), "DPLogisticCD"),
    "a copy of a winner": (CHARGES, lambda ledger: deepcopy(_winner(ledger)), "DPLogisticCD"),
    "a model of a path": (
        CHARGES,
        lambda ledger: DPLassoPath(alphas=2, ledger=ledger).fit(X, Y).model(alpha=0.1),
        "DPCoordinateDescentRegressor",
    ),
    "a clone of a model of a path": (
        CHARGES,
        lambda ledger: clone(DPLassoPath(alphas=2, ledger=ledger).fit(X, Y).model(alpha=0.1)),
        "DPCoordinateDescentRegressor",
    ),
}
COMPOSITIONS = {name: row[1:] for name, row in TABLE.items() if row[0] == WARNS}
OTHERS = {name: row for name, row in TABLE.items() if row[0] != WARNS}
some_compositions = pytest.mark.parametrize(
    ("make", "named"), [*COMPOSITIONS.values()][::2], ids=[*COMPOSITIONS][::2]
)
every_composition = pytest.mark.parametrize(
    ("make", "named"), COMPOSITIONS.values(), ids=list(COMPOSITIONS)
)


class NoCharge:
    """A ledger that fails the test where something is charged."""

    def charge(self, label, cost, **facts):
        raise AssertionError(f"charged for {label}")


class Notebook:
    """A ledger that keeps the labels of its charges."""

    def __init__(self):
        self.labels = []

    def charge(self, label, cost, **facts):
        self.labels.append(label)

    def __deepcopy__(self, memo):
        return self


@pytest.fixture
def told():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(w.message) for w in caught if w.category is PrivacyWarning]


@quick("a copy of a winner")
@pytest.mark.parametrize(("outcome", "make", "named"), OTHERS.values(), ids=list(OTHERS))
def test_what_does_not_warn_raises_or_charges(outcome, make, named):
    if outcome == RAISES:
        with pytest.raises((TypeError, ValueError), match=named):
            make().set_params(ledger=NoCharge()).fit(X, Y)
    else:
        ledger = Notebook()
        model = make(ledger)
        assert len(ledger.labels) == 1
        model.fit(X, Y)
        assert ledger.labels[1:] == [f"{named}.fit"]


@some_compositions
def test_no_total_is_stated(make, named):
    composition = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        composition.fit(X, Y)
    with pytest.raises(UnpaidStepError, match=rf"total_guarantee.*Refused: .*{named}"):
        total_guarantee(composition)


@every_composition
def test_a_private_pipeline_refuses_it_before_anything_is_fitted_or_charged(
    make, named, monkeypatch
):
    def fail(*args, **kwargs):
        raise AssertionError("something was fitted")

    for cls in (DPStandardScaler, DPLogisticCD, DPCoordinateDescentRegressor, StandardScaler):
        monkeypatch.setattr(cls, "fit", fail)
    composition = make()
    steps = composition.steps if type(composition) is Pipeline else [("step", composition)]
    pipeline = DPPipeline(steps, ledger=NoCharge())
    with pytest.raises(UnpaidStepError, match=rf"'steps'.*DPPipeline.*Refused: .*{named}"):
        pipeline.fit(X, Y)
    assert not hasattr(pipeline, "steps_")


@quick("one fit for each class", "rows seen several times")
@every_composition
def test_an_ordinary_fit_warns_once_and_names_step_and_remedy(make, named, told):
    composition = make()
    search = isinstance(composition, GridSearchCV)
    for _ in range(2):
        composition.fit(X, Y)
        assert any(named in text for text in told())
        (text,) = (t for t in told() if ("scores" if search else "is fitted within") in t)
        assert ("DPGridSearchCV" if search else named) in text
        assert search or "DPPipeline" in text


@some_compositions
def test_every_refused_step_is_told_at_once(make, named):
    both = Pipeline([("one", make()), ("two", TargetEncoder())])
    with pytest.raises(UnpaidStepError) as caught:
        taken_apart(both, owner="Test", parameter="steps")
    assert len(caught.value.refused) == 2
    assert named in caught.value.refused[0]
    assert "OneHotEncoder with categories=" in caught.value.refused[1]


def test_compositions_that_pay_warn_of_nothing(told):
    composition = make_pipeline(DPStandardScaler(**BOUNDS), "passthrough", _classifier())
    composition.fit(X, Y)
    assert not [text for text in told() if "is fitted within" in text]
    assert len(total_guarantee(composition).steps) == 2


def test_a_private_pipeline_answers_for_its_own_steps_and_not_for_what_is_before_it(told):
    steps = [("known", StandardScaler()), ("model", _classifier())]
    model = DPPipeline(steps, public=["known"]).fit(X, Y)
    assert not [text for text in told() if "is fitted within" in text]
    make_pipeline(StandardScaler(), model).fit(X, Y)
    (text,) = (text for text in told() if "is fitted within" in text)
    assert text.startswith("DPPipeline is fitted within Pipeline")
    assert "'standardscaler' (StandardScaler)" in text
    assert "'known'" not in text


def test_a_warning_comes_again_if_other_steps_are_unpaid(told):
    composition = make_pipeline(StandardScaler(), _classifier()).fit(X, Y)
    composition.set_params(standardscaler=FunctionTransformer(scale)).fit(X, Y)
    assert len([text for text in told() if "is fitted within" in text]) == 2


# Ordinary searches and validations, without a ledger.


VALIDATIONS = {
    "GridSearchCV": lambda model: GridSearchCV(model, {}, cv=2).fit(X, Y),
    "RandomizedSearchCV": lambda model: RandomizedSearchCV(model, {}, n_iter=1, cv=2).fit(X, Y),
    "cross_val_score": lambda model: cross_val_score(model, X, Y, cv=2),
    "cross_validate": lambda model: cross_validate(model, X, Y, cv=2),
    "cross_val_predict": lambda model: cross_val_predict(model, X, Y, cv=2),
    "learning_curve": lambda model: learning_curve(model, X, Y, cv=2, train_sizes=[0.5, 1.0]),
    "validation_curve": lambda model: validation_curve(
        model, X, Y, param_name=_alpha(model), param_range=[0.0, 1.0], cv=2
    ),
    "permutation_test_score": lambda model: permutation_test_score(
        model, X, Y, cv=2, n_permutations=2
    ),
}
MODELS = {
    "alone": _classifier,
    "in a pipeline": lambda: make_pipeline(DPStandardScaler(**BOUNDS), _classifier()),
    "in a private pipeline": lambda: DPPipeline(
        [("scale", DPStandardScaler(**BOUNDS)), ("dplogisticcd", _classifier())]
    ),
}


def _alpha(model):
    return next(name for name in model.get_params() if name.endswith("alpha"))


@quick("RandomizedSearchCV-in a pipeline")
@each_value(1)
@pytest.mark.parametrize("make", MODELS.values(), ids=list(MODELS))
@pytest.mark.parametrize("validate", VALIDATIONS.values(), ids=list(VALIDATIONS))
def test_an_ordinary_validation_warns_once_that_its_scores_are_not_private(validate, make, told):
    validate(make())
    (text,) = (text for text in told() if "scores" in text)
    assert "not private" in text
    assert "DPGridSearchCV" in text
    assert not [text for text in told() if "is fitted within" in text]
