"""The private classifier: labels, classes, probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdpnoise import DPLogisticCD
from tests._cases import quick

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")


def _problem(n=6000, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    centers = 5.0 * rng.normal(size=(n_classes, 3))
    y = rng.integers(n_classes, size=n)
    return centers[y] + rng.normal(size=(n, 3)), y


def _model(**settings):
    return DPLogisticCD(**{"epsilon": 50.0, "random_state": 0, **settings})


def test_little_noise_gives_nearly_the_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal([3.0, 50.0], [1.0, 10.0], size=(40_000, 2))
    y = rng.random(40_000) < expit(1.0 + (X[:, 0] - 3.0) - 0.05 * (X[:, 1] - 50.0))
    private = _model(n_passes=40, clip=5.0).fit(X, y)
    public = LogisticRegression(C=np.inf).fit(X, y)
    np.testing.assert_allclose(private.coef_, public.coef_, atol=0.06, rtol=0.05)
    # values beyond three scales are clipped, which the plain model does not do
    assert np.mean(private.predict(X) == public.predict(X)) > 0.98


@quick("[0, 1]")
@pytest.mark.parametrize(
    "labels",
    [[0, 1], [-1, 1], ["no", "yes"], [False, True], [2.0, 7.0], ["a", "b", "c"], [10, 20, 30, 40]],
    ids=str,
)
def test_labels_of_any_type_come_back_as_they_were(labels):
    X, y = _problem(n_classes=len(labels))
    model = _model().fit(X, np.asarray(labels)[y])
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert model.score(X, np.asarray(labels)[y]) > 0.8
    n_outputs = 1 if len(labels) == 2 else len(labels)
    assert model.coef_.shape == (n_outputs, 3)
    assert model.intercept_.shape == (n_outputs,)
    assert model.coef_path_.shape == (model.n_passes_, n_outputs, 3)


def test_all_classes_share_one_guarantee():
    X, y = _problem(n_classes=5)
    report = _model(epsilon=1.0).fit(X, y).privacy_
    gradients = report.releases[-1]
    assert (gradients.label, gradients.n_coordinates) == ("gradients", 5 * 4)
    assert report.total.delta(1.0) <= 1e-6


def test_a_classifier_is_doubted_where_noise_may_have_made_it():
    X, y = _problem()
    for solver, label, size in (
        ("coordinate", "gain over the largest class", 1),
        ("joint", "labels by score", 12),
    ):
        few = _model(epsilon=0.1, solver=solver).fit(X, y).privacy_
        assert few.releases[-1].label == label
        assert few.releases[-1].n_coordinates == size
        assert few.total.delta(0.1) <= 1e-6
    much = _model(epsilon=8.0, solver="coordinate").fit(X, y).privacy_
    assert much.releases[-1].label == "gradients"


@pytest.mark.parametrize("solver", ["coordinate", "joint"])
def test_a_classifier_in_doubt_keeps_the_order_of_records_where_one_class_is_rare(solver):
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(8000, 3)), -3.0, 3.0)
    y = rng.random(8000) < 1.0 / (1.0 + np.exp(5.0 - 1.5 * X[:, 0]))  # about two in a hundred
    model = _model(epsilon=0.4, feature_bounds=(-3.0, 3.0), solver=solver).fit(X, y)
    last = {"coordinate": "gain over the largest class", "joint": "labels by score"}
    assert model.privacy_.releases[-1].label == last[solver]
    assert roc_auc_score(y, model.decision_function(X)) > 0.7
    assert model.coef_[0, 0] > 0.2


@pytest.mark.slow
def test_public_classes_may_include_one_without_a_record():
    X, y = _problem()
    model = _model(classes=[2, 1, 0]).fit(X, y)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.predict_proba(X).shape == (6000, 3)
    assert model.score(X, y) > 0.8


def test_a_single_label_is_fitted_when_the_classes_are_public():
    X, _ = _problem()
    model = _model(classes=["no", "yes"]).fit(X, np.full(6000, "no"))
    assert np.mean(model.predict(X) == "no") > 0.99


@quick("4")
@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_sum_to_one_and_agree_with_decisions(n_classes):
    X, y = _problem(n_classes=n_classes)
    model = _model().fit(X, y)
    chances, scores = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.log(chances), model.predict_log_proba(X))
    if n_classes == 2:
        moderate = np.abs(scores) < 15
        np.testing.assert_allclose(chances[moderate, 1], expit(scores[moderate]))


@quick("1e+100")
@pytest.mark.parametrize("size", [1.0, 30.0, 1e3, 1e8, 1e100])
def test_however_certain_a_model_is_it_predicts_what_it_says_is_likeliest(size):
    X, y = _problem(n_classes=3)
    model = _model().fit(X, y)
    features, _, center, scale = model._standardised
    rng = np.random.default_rng(0)
    coefficients = size * (1.0 + 1e-9 * rng.normal(size=(3, 4))) + rng.normal(size=(3, 4))
    model._standardised = (features, coefficients, center, scale)
    chances = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert 0.0 < chances.min() <= chances.max() < 1.0


def test_certain_models_give_no_probability_of_zero_or_one():
    model = _model(n_passes=1).fit(*_problem())
    features, _, center, scale = model._standardised
    model._standardised = (features, np.full((1, 4), 1e3), center, scale)
    chances = model.predict_proba(_problem()[0])
    assert chances.min() > 0.0
    assert chances.max() < 1.0
    assert np.isfinite(model.predict_log_proba(_problem()[0])).all()


def test_decisions_are_the_linear_function_of_clipped_features():
    X, y = _problem(n_classes=3)
    model = _model().fit(X, y)
    by_hand = np.clip(X * 9.0, *model.clip_range_) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X * 9.0), by_hand, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_penalties_shrink():
    X, y = _problem()
    norms = [
        np.abs(_model(alpha=a, l1_ratio=r).fit(X, y).coef_).sum()
        for a, r in [(0.0, 0.5), (0.05, 0.0), (0.3, 1.0)]
    ]
    assert norms[0] > norms[1] > norms[2]
    assert 0.0 in _model(alpha=0.3, l1_ratio=1.0).fit(X, y).coef_


def test_pure_privacy_and_add_remove_go_together():
    X, y = _problem()
    report = _model(delta=0.0, adjacency="add_remove").fit(X, y).privacy_
    assert report.releases[0].label == "number of records"
    assert report.total.pure_epsilon <= 50.0
