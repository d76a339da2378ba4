"""What a search may cost: every way around its guarantee is refused before the charge."""

from __future__ import annotations

import itertools
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
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
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPPoissonRegressor,
    DPRandomizedSearchCV,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
)
from skdpnoise.model_selection import _runs, dp_cross_validate
from skdpnoise.privacy import TruncatedNegativeBinomial
from tests._cases import each_value, quick
from tests.contracts._bad_parameters import SPECIAL
from tests.model_selection._searches import (
    CLASSIFIER,
    LABELS,
    REGRESSOR,
    SCORE,
    TWO,
    Door,
    Reached,
    Untouched,
    X,
    both,
)

pytestmark = pytest.mark.usefixtures("the_same_words")


ONE = DPPipeline([("s", DPStandardScaler()), ("clf", DPLogisticCD())])


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
    "a step of one guarantee": (ONE, {"s": [StandardScaler()]}, "StandardScaler"),
    "a class": (TWO, {"clf": [DPLogisticCD]}, "not their classes"),
    "a frozen model": (FrozenEstimator(DPLogisticCD()), {}, "FrozenEstimator"),
    "a frozen candidate": (TWO, {"clf": [FrozenEstimator(DPLogisticCD())]}, "FrozenEstimator"),
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
    "own budgets of steps of one guarantee": (ONE, {"clf__epsilon": [9.0]}, "clf__epsilon"),
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
}


@quick(
    "means of the target",
    "one against the rest",
    "models with unlike classes",
    "an own budget",
    "a parameter called epsilon",
)
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_before_the_charge(name):
    estimator, grid, text = ATTACKS[name]
    y = SCORE if "Regressor" in repr(estimator) else LABELS
    for search in both(estimator, grid, ledger=Untouched()):
        with pytest.raises((TypeError, ValueError), match=text):
            search.fit(X, y)
        assert not hasattr(search, "best_estimator_")


def test_a_budget_that_a_later_step_cannot_keep_is_refused_before_the_charge():
    estimator = Pipeline([("s", DPStandardScaler()), ("clf", DPLogisticCD(noise="iid_gaussian"))])
    for search in both(estimator, {"clf__alpha": [0.0]}, delta=0.0, ledger=Untouched()):
        with pytest.raises(ValueError, match="noise"):
            search.fit(X, LABELS)


# Every composition, and every swap of one of its steps, decides by the steps that result.
SAFE = {
    "private": DPStandardScaler(),
    "robust": DPRobustScaler(),
    "bounds": BoundsClipper((-1.0, 1.0)),
    "rows": Normalizer(),
    "powers": PolynomialFeatures(2, include_bias=False),
    "nothing": "passthrough",
    "filled": SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
}
UNSAFE = {
    "means": StandardScaler(),
    "medians": SimpleImputer(strategy="median", keep_empty_features=True),
    "code": FunctionTransformer(np.sort),
    "labels": TargetEncoder(),
    "dropped": SimpleImputer(strategy="constant", fill_value=0.0),
}
STEPS = {**SAFE, **UNSAFE}
FORMS = {
    "pipeline": (lambda step: step, "s"),
    "columns": (lambda step: ColumnTransformer([("t", step, [0, 1, 2])]), "s__t"),
    "union": (lambda step: FeatureUnion([("u", step)]), "s__u"),
    "nested": (lambda step: Pipeline([("n", ColumnTransformer([("t", step, [0])]))]), "s__n__t"),
}


@pytest.mark.slow
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(
    first=st.sampled_from(sorted(STEPS)),
    others=st.lists(st.sampled_from(sorted(STEPS)), max_size=3),
    form=st.sampled_from(sorted(FORMS)),
    drawn=st.booleans(),
)
def test_a_search_reaches_its_charge_if_and_only_if_every_candidate_is_safe(
    first, others, form, drawn
):
    wrap, name = FORMS[form]
    estimator = Pipeline([("s", wrap(STEPS[first])), ("clf", DPLogisticCD())])
    grid = {name: [STEPS[other] for other in others]} if others else {}
    found = others if others else [first]
    search = list(both(estimator, grid, ledger=Door()))[int(drawn and bool(others))]
    if drawn and others:
        search.set_params(n_iter=len(others))
    expected = (TypeError, ValueError) if set(found) & set(UNSAFE) else Reached
    with pytest.raises(expected):
        search.fit(X[:40], LABELS[:40])


@each_value(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", UNSAFE)
def test_every_unsafe_step_is_refused_wherever_it_is_in_a_candidate(form, step):
    wrap, name = FORMS[form]
    estimator = Pipeline([("s", wrap(DPStandardScaler())), ("clf", DPLogisticCD())])
    for search in both(estimator, {name: [DPStandardScaler(), STEPS[step]]}, ledger=Untouched()):
        with pytest.raises(ValueError, match=type(STEPS[step]).__name__):
            search.fit(X[:40], LABELS[:40])


def bad(**changes):
    return {"X": X, "y": LABELS, "match": "", **changes}


SECRET = "Ms Secret"
MISSING = LABELS.astype(object)
MISSING[3] = None
MIXED = LABELS.astype(object)
MIXED[3] = 7
WITH_SECRET = LABELS.astype(object)
WITH_SECRET[3] = SECRET
TEXT = X.astype(object)
TEXT[3, 1] = SECRET
HOLE = X.copy()
HOLE[3, 1] = np.nan
# Data and settings with which nothing can be searched: what the message says.
BAD = {
    "no X": bad(X=None, match="needs X"),
    "no y": bad(y=None, match="requires y"),
    "complex labels": bad(y=SCORE + 1j, match="Complex"),
    "labels that are missing": bad(y=MISSING, match="missing"),
    "labels of two kinds": bad(y=MIXED, match="one kind"),
    "labels of a frame with NA": bad(y=pd.Series(MISSING, dtype="string"), match="missing"),
    "masked labels": bad(y=np.ma.masked_equal(SCORE > 0, True), match="masked"),
    "masked features": bad(X=np.ma.masked_less(X, 0.5), match="masked"),
    "sparse columns": bad(X=pd.DataFrame(X).astype(pd.SparseDtype(float)), match="sparse"),
    "a target for a classifier": bad(y=SCORE, match="continuous"),
    "labels in two columns": bad(y=np.c_[LABELS, LABELS], match="1d"),
    "labels of unequal length": bad(y=[["a"], ["a", "b"]] * 150, match="no labels"),
    "labels that are dates": bad(y=np.full(300, "2020-01-01", "M8[D]"), match="dates"),
    "objects": bad(y=np.array([{SECRET}] * 300), match="no labels"),
    "fewer labels": bad(y=LABELS[:-1], match="inconsistent"),
    "three rows": bad(X=X[:3], y=LABELS[:3], match="minimum of 4"),
    "one label": bad(y=np.full(300, SECRET), match="class"),
    "text in a column": bad(X=TEXT, match="numbers"),
    "a hole": bad(X=HOLE, match="NaN"),
    "weights": bad(sample_weight=np.ones(300), match="sample_weight"),
    "no processes": bad(n_jobs=0, match="n_jobs"),
    "half a process": bad(n_jobs=0.5, match="n_jobs"),
    "no fraction": bad(validation_fraction=1.5, match="validation_fraction"),
    "nothing to fit": bad(validation_fraction=0.999, match="2 rows"),
    "another score": bad(scoring="r2", match="scoring"),
    "a score of one's own": bad(scoring=lambda *args: 1.0, match="scoring"),
    "a law of one's own": bad(
        repetitions=type("Law", (TruncatedNegativeBinomial,), {})(1.0, 0.5), match="repetitions"
    ),
    "no budget": bad(epsilon=0.0, match="epsilon"),
    "a delta that covers a fit alone": bad(
        delta=0.5, epsilon=0.1, strategy="noisy_max", match="'delta' parameter, 0.5, is so large"
    ),
    "labels that are not possible": bad(
        estimator=DPLogisticCD(classes=["no", "yes"]), y=WITH_SECRET, match="every label"
    ),
    "no relation": bad(adjacency="other", match="adjacency"),
    "an empty grid": bad(grid=[], match="one candidate"),
}


@quick("a hole")
@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_searched_is_refused_before_the_charge_and_nothing_is_quoted(name):
    case = dict(BAD[name])
    data = {key: case.pop(key) for key in ("X", "y", "sample_weight") if key in case}
    match, estimator = case.pop("match"), case.pop("estimator", CLASSIFIER)
    grid = case.pop("grid", {"alpha": [0.0, 0.1]})
    below = {f"m__{key}": values for key, values in grid.items()} if grid else grid
    pipeline = Pipeline([("s", DPStandardScaler()), ("m", estimator)])
    for model, names in ((estimator, grid), (pipeline, below)):
        search = DPGridSearchCV(model, names, ledger=Untouched(), **case)
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            search.fit(**data)
        error = caught.value
        while error is not None:
            assert SECRET not in str(error)
            assert "0.1257" not in str(error)  # the first value of X
            error = error.__cause__ or error.__context__


@quick("list", "str", "list_iterator")
@pytest.mark.parametrize("labels", SPECIAL["classes"], ids=lambda one: type(one).__name__)
def test_public_labels_of_a_candidate_are_checked_before_they_are_compared(labels):
    good = DPLogisticCD(classes=["no", "yes"])
    for candidates in ([DPLogisticCD(classes=labels)], [good, DPLogisticCD(classes=labels)]):
        for search in both(TWO, {"clf": candidates}, ledger=Untouched()):
            with pytest.raises((TypeError, ValueError), match="'classes'") as caught:
                search.fit(X, LABELS)
            assert len(candidates) > 1 or "the same" not in str(caught.value)
            assert caught.value.__cause__ is caught.value.__context__ is None


KINDS = ["a", "b", 1, 2, 5.0, True, np.int8(3), np.float32(4), None, np.nan, 2**60, b"a"]


@pytest.mark.slow
@pytest.mark.parametrize("form", [list, partial(pd.Series, dtype=object)], ids=["list", "series"])
def test_searches_take_the_labels_that_estimators_take(form):
    def outcome(estimator, y):
        try:
            estimator.set_params(ledger=Door()).fit(X[:40], y)
        except Reached:
            return "charged"
        except (TypeError, ValueError) as error:
            return str(error).replace("DPGridSearchCV", "DPLogisticCD")

    model, n_charged = DPLogisticCD(n_passes=1), 0
    for first, other in itertools.combinations(KINDS, 2):
        y = form([first] * 37 + [other] * 3)
        found = outcome(DPGridSearchCV(model, {"alpha": [0.0]}), y)
        assert found == outcome(clone(model), y)
        n_charged += found == "charged"
    assert 8 <= n_charged <= 30


class Counted:
    """A ledger that counts its charges."""

    def __init__(self):
        self.count = 0

    def charge(self, label, cost, **facts):
        self.count += 1


@each_value(1)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_a_search_of_few_rows_or_groups_fails_before_the_charge_or_not_at_all(
    n_groups, most, adjacency
):
    own = {"adjacency": adjacency}
    regressor = DPCoordinateDescentRegressor(**own)
    cases = [
        (regressor, {"alpha": [0.0, 0.1]}, SCORE),
        (DPPoissonRegressor(n_passes=1, **own), {"alpha": [0.0, 0.1]}, np.arange(300) % 3),
        (Pipeline([("s", DPPCA(3, **own)), ("m", regressor)]), {"m__alpha": [0.0]}, SCORE),
        (DPLogisticCD(classes=["no", "yes"], n_passes=1, **own), {"alpha": [0.0, 0.1]}, LABELS),
    ]
    for n, (estimator, grid, y), seed in itertools.product((4, 30), cases, range(2)):
        options = {"rows_per_group": most, "random_state": seed, "delta": 1e-3, **own}
        search = DPGridSearchCV(estimator, grid, ledger=Counted(), **options)
        with suppress(ValueError):  # never SearchStopped, which is raised after the charge
            search.fit(X[:n], y[:n], groups=np.arange(n) % n_groups)
        assert search.ledger.count == hasattr(search, "best_estimator_")


@pytest.mark.slow
def test_every_candidate_reads_every_row_once(monkeypatch):
    seen = []

    def noted(problem, owner, candidate, budget, records):
        seen.append(len(records))

    monkeypatch.setattr(_runs.SearchProblem, "read", noted)
    for estimator, y in ((REGRESSOR, SCORE), (CLASSIFIER, LABELS)):
        with pytest.raises(Reached):
            DPGridSearchCV(estimator, {"alpha": [0.0, 0.1]}, ledger=Door()).fit(X, y)
    assert seen == [300, 300, 300]


def test_text_and_weights_that_say_nothing_are_taken():
    search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1]}, random_state=0)
    search.fit(X, list(LABELS), sample_weight=None)
    assert search.score(X, LABELS, sample_weight=None) == search.score(X, LABELS)
    with pytest.raises(TypeError, match="'sample_weight'"):
        search.score(X, LABELS, sample_weight=np.ones(300))
    assert list(search.classes_) == ["no", "yes"]
    numbers = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0]}, random_state=0)
    numbers.fit(X, np.array([1, 2], dtype=object)[(SCORE > 0).astype(int)])
    assert list(numbers.classes_) == [1, 2]


def test_labels_of_one_class_are_named_as_the_cause_before_the_charge():
    y = np.zeros(300, dtype=int)
    for scoring in (None, "roc_auc"):
        for search in (
            DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1]}, scoring=scoring, ledger=Door()).fit,
            partial(dp_cross_validate, CLASSIFIER, scoring=scoring, ledger=Door()),
        ):
            with pytest.raises(ValueError, match=r"needs two classes or more, got 1.*'classes'"):
                search(X, y)
    given = clone(CLASSIFIER).set_params(classes=[0, 1])
    with pytest.raises(Reached):
        DPGridSearchCV(given, {"alpha": [0.0, 0.1]}, ledger=Door()).fit(X, y)
