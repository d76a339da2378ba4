"""Made-up records follow the law that is stated, and hold public facts only."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPPoissonRegressor,
    DPStandardScaler,
)
from skdpnoise.planning.synthetic import kind_of, law_for
from tests._cases import each_value

N = 40_000
SCHEMA = {
    "age": (17, 90),
    "gain": "log",
    "job": ["clerk", "nurse", "cook"],
    "one": ["only"],
    "open": None,
}


def records(model, features, n=N, classes=None, signal=0.5, seed=0):
    law = law_for(model, n, features, classes, signal)
    return law, law.sampler(np.random.SeedSequence(seed))(n)


@each_value(1)
@pytest.mark.parametrize("signal", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_columns", [1, 7])
def test_a_linear_model_explains_the_signal(signal, n_columns):
    _, found = records(DPCoordinateDescentRegressor(), n_columns, signal=signal)
    r2 = LinearRegression().fit(found.X, found.y).score(found.X, found.y)
    assert r2 == pytest.approx(signal, abs=0.02)
    law, found = records(DPCoordinateDescentRegressor(), n_columns, signal=signal)
    assert law.best_score(found) == ("R²", pytest.approx(signal, abs=0.02))


@each_value(1)
@pytest.mark.parametrize("signal", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("n_columns", [1, 7])
def test_two_classes_are_told_apart_as_well_as_the_formulas_say(signal, n_columns):
    law, found = records(DPLogisticCD(), n_columns, signal=signal)
    model = LogisticRegression().fit(found.X, found.y)
    area = roc_auc_score(found.y, model.decision_function(found.X))
    accuracy = 0.5 + np.arcsin(np.sqrt(signal)) / np.pi
    assert area == pytest.approx(0.5 + 2.0 / np.pi * np.arcsin(np.sqrt(signal / 2.0)), abs=0.02)
    assert model.score(found.X, found.y) == pytest.approx(accuracy, abs=0.02)
    assert law.best_score(found) == ("accuracy", pytest.approx(accuracy, abs=0.02))


@pytest.mark.parametrize("shares", [{0: 0.5, 1: 0.5}, {"a": 9, "b": 1}, {1: 7, 2: 2, 3: 1}])
def test_classes_are_as_frequent_as_is_said(shares):
    _, found = records(DPLogisticCD(), 4, classes=shares)
    for label, share in shares.items():
        expected = share / sum(shares.values())
        assert np.mean(found.y == label) == pytest.approx(expected, abs=0.02)


def test_classes_are_those_that_the_estimator_names():
    pipeline = DPPipeline([("s", DPStandardScaler()), ("m", DPLogisticCD(classes=["no", "yes"]))])
    for model in (pipeline, DPGridSearchCV(pipeline, {})):
        _, found = records(model, 2, n=100)
        assert set(found.y) == {"no", "yes"}
    _, found = records(DPLogisticCD(), 2, n=1000, classes=4)
    assert set(found.y) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="'classes' parameter of plan must be 2, as many"):
        records(pipeline, 2, classes=3)
    with pytest.raises(ValueError, match="must be two classes at least"):
        records(DPLogisticCD(), 2, classes={"one": 1.0})


def test_counts_have_the_mean_that_is_stated():
    law, found = records(DPPoissonRegressor(), 5)
    assert found.y.mean() == pytest.approx(2.0, abs=0.1)
    assert (found.y == np.rint(found.y)).all()
    assert law.best_score(found)[0] == "D²"


def test_a_schema_becomes_a_frame_within_it():
    bounded = DPLogisticCD(feature_bounds={"open": (-1.0, 3.0), "age": (0.0, 1.0)})
    _, found = records(bounded, SCHEMA)
    X = found.X
    assert list(X.columns) == list(SCHEMA)
    assert (X["age"].min(), X["age"].max()) == (17.0, 90.0)  # the schema says more
    assert X["age"].mean() == pytest.approx(53.5, abs=0.5)
    assert (X["gain"] > 0.0).all()
    assert np.log(X["gain"]).std() == pytest.approx(1.0, abs=0.05)
    assert X["job"].value_counts(normalize=True).to_numpy() == pytest.approx([1 / 3] * 3, abs=0.02)
    assert set(X["one"]) == {"only"}
    assert (X["open"].min(), X["open"].max()) == (-1.0, 3.0)


def test_categories_are_a_part_of_the_signal():
    schema = {"job": ["clerk", "nurse", "cook"], "place": ["here", "there"]}
    _, found = records(DPCoordinateDescentRegressor(), schema, signal=0.8)
    means = found.X.assign(y=found.y).groupby(["job", "place"])["y"].transform("mean")
    assert np.var(means) / np.var(found.y) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ((-1.0, 3.0), [-1.0] * 2, [3.0] * 2),
        (([0.0, -5.0], [1.0, 5.0]), [0.0, -5.0], [1.0, 5.0]),
        ((0.0, np.inf), [0.0] * 2, [np.inf] * 2),
        ((-np.inf, 2.0), [-np.inf] * 2, [2.0] * 2),
    ],
)
def test_numbers_lie_within_the_bounds_of_what_reads_them_first(bounds, low, high):
    scaler = DPStandardScaler(feature_bounds=bounds)
    pipeline = DPPipeline([("s", scaler), ("m", DPLogisticCD(feature_bounds=(-9, 9)))])
    for model in (scaler, pipeline):
        _, found = records(model, 2)
        assert (found.X.min(axis=0) >= low).all()
        assert (found.X.max(axis=0) <= high).all()
        assert (found.X.std(axis=0) > 0.1).all()


def test_a_target_lies_within_its_bounds():
    _, found = records(DPCoordinateDescentRegressor(target_bounds=(10.0, 16.0)), 2)
    assert (found.y.min(), found.y.max()) == (10.0, 16.0)
    assert found.y.std() == pytest.approx(1.0, abs=0.05)


def test_weights_differ_between_seeds_and_not_within_one():
    law = law_for(DPCoordinateDescentRegressor(), N, 3, None, 1.0)
    slopes = []
    for seed in (0, 0, 1):
        sample = law.sampler(np.random.SeedSequence(seed))
        first, second = sample(100), sample(100)
        assert not np.array_equal(first.X, second.X)
        slopes += [LinearRegression().fit(one.X, one.y).coef_ for one in (first, second)]
    np.testing.assert_allclose(slopes[1:4], [slopes[0]] * 3)
    assert not np.allclose(slopes[4], slopes[0])


def test_what_predicts_nothing_has_no_target():
    law, found = records(DPPCA(), 3, n=50)
    assert (law.kind, found.y, law.best_score(found)) == (None, None, None)
    assert kind_of(DPPipeline([("s", DPStandardScaler())])) is None


@pytest.mark.parametrize(
    ("features", "kind", "said"),
    [
        (0, ValueError, "'features' parameter of plan must be an int"),
        (2.5, TypeError, "'features' parameter of plan must be an int"),
        ("age", TypeError, "'features' parameter of plan must be an int"),
        ([], ValueError, "at least one column"),
        (["a", "a"], ValueError, "none twice"),
        ([1, 2], TypeError, "name columns by str"),
        ({"a": (3, 1)}, ValueError, "Got tuple for 'a'"),
        ({"a": (True, False)}, ValueError, "Got tuple for 'a'"),
        ({"a": []}, ValueError, "Got list for 'a'"),
        ({"a": "other"}, ValueError, "a list of categories, or one of"),
    ],
)
def test_other_features_are_refused(features, kind, said):
    with pytest.raises(kind, match=said):
        law_for(DPLogisticCD(), 100, features, None, 0.5)


def test_other_signals_and_tables_that_are_too_large_are_refused():
    for signal in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="'signal' parameter of plan"):
            law_for(DPLogisticCD(), 100, 2, None, signal)
    with pytest.raises(ValueError, match="'n_samples' parameter of plan must be at most 134,217 "):
        law_for(DPLogisticCD(), 10**6, 1000, None, 0.5)
