"""Weights of classes: public, or balanced by paid numbers of records."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score

from skdpnoise import DPLogisticCD
from skdpnoise.privacy import gdp_mu
from tests._cases import each_value
from tests._replay import two_runs
from tests.contracts._register import Forbidden

BOUNDS = -3.0, 3.0


def made(n=4000, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 3)), *BOUNDS)
    scores = 2.0 * X[:, :1] * np.arange(n_classes) - [0.0, 3.5, 4.0][:n_classes]
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def fitted(X, y, epsilon=1.0, **keywords):
    keywords = {"random_state": 0, "feature_bounds": BOUNDS} | keywords
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPLogisticCD(epsilon, **keywords).fit(X, y)


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.5, 1: 3.0}])
def test_boundless_epsilon_gives_the_weights_of_scikit_learn(n_classes, class_weight):
    X, y = made(6000, n_classes)
    model = fitted(X, y, 1e6, class_weight=class_weight, alpha=1e-3, l1_ratio=0.0)
    unit = X.std(axis=0)
    ordinary = LogisticRegression(
        C=1.0 / (1e-3 * len(X)), class_weight=class_weight, tol=1e-10, max_iter=10_000
    ).fit(X / unit, y)
    found = model.coef_ * unit
    found = found - (found.mean(axis=0) if n_classes > 2 else 0.0)
    assert np.linalg.norm(found - ordinary.coef_) <= 0.02 * np.linalg.norm(ordinary.coef_)


def test_balanced_classes_find_more_of_the_rare_one():
    X, y = made()
    found = [recall_score(y, fitted(X, y, class_weight=w).predict(X)) for w in (None, "balanced")]
    assert found[1] > found[0] + 0.2


def test_weights_mean_something_where_all_gradients_are_clipped():
    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.05).astype(int)
    X = np.clip(rng.normal(size=(20_000, 4)) + 0.8 * np.eye(2, 4)[y], -4.0, 4.0)
    keywords = {"feature_bounds": (-4.0, 4.0), "class_weight": "balanced"}
    found = fitted(X, y, 0.5, **keywords).predict(X)
    ordinary = LogisticRegression(class_weight="balanced").fit(X, y).predict(X)
    for label in (0, 1):
        wanted = recall_score(y, ordinary, pos_label=label)
        assert recall_score(y, found, pos_label=label) == pytest.approx(wanted, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 4.0}])
def test_large_penalties_are_beside_the_mean_of_weighted_losses(class_weight):
    X, y = made(20_000)
    alpha, unit = 0.05, X.std(axis=0)
    ordinary = LogisticRegression(class_weight=class_weight, C=1.0 / (alpha * len(y)))
    model = fitted(X, y, 1e6, class_weight=class_weight, alpha=alpha, l1_ratio=0.0)
    slopes = ordinary.fit(X / unit, y).coef_
    np.testing.assert_allclose(model.coef_ * unit, slopes, rtol=0.03, atol=0.01)


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("bounds", [BOUNDS, None])
def test_numbers_of_records_are_charged_for(adjacency, bounds):
    X, y = made(n_classes=3)
    settings = {"adjacency": adjacency, "feature_bounds": bounds}
    report = fitted(X, y, class_weight="balanced", **settings).privacy_
    labels = [release.label for release in report.releases]
    assert labels.count("class shares") == 1
    assert report.releases[labels.index("class shares")].n_coordinates == 3
    total = np.sqrt(sum(release.loss.mu**2 for release in report.releases))
    assert (
        (0.97 if bounds else 0.95) * gdp_mu(1.0, 1e-6) < total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)
    )
    public = fitted(X, y, class_weight={1: 3.0}, **settings).privacy_
    assert "class shares" not in [release.label for release in public.releases]


@each_value(1)
@pytest.mark.parametrize("n_rare", [0, 1, 2, 3])
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_a_class_without_records_has_a_weight_that_is_finite(n_rare, classes):
    X, y = made(500)
    y = np.zeros(500, dtype=int)
    y[:n_rare] = classes[-1]
    for seed in range(5):
        model = fitted(X, y, 0.5, classes=classes, class_weight="balanced", random_state=seed)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_proba(X)).all()


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 30.0, 1: 1e6}])
def test_no_weight_lets_a_record_count_for_more(adjacency, class_weight):
    X, y = made(40)
    largest = {}
    for seed in range(10):
        y[-1] = seed // 2 % 2  # of the class that moves sums by all of the bound, or by less
        other, others = X.copy(), y.copy()
        other[-1], others[-1] = 1e100 * (-1.0) ** seed, 1 - y[-1]
        near = (other, others) if adjacency == "replace_one" else (X[:-1], y[:-1])
        settings = {"adjacency": adjacency, "classes": [0, 1], "n_passes": 3}
        model = DPLogisticCD(
            100.0, feature_bounds=BOUNDS, class_weight=class_weight, random_state=seed, **settings
        )

        def fit(X, y, model=model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(X, y).coef_

        runs = two_runs(fit, (X, y), near, seed)
        assert (runs.first == runs.second).all()
        for moved in runs.moved:
            largest[moved.label] = max(largest.get(moved.label, 0.0), moved.share)
    assert max(largest.values()) <= 1.0 + 1e-9
    assert largest["gradients"] > 0.45


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"class_weight": {5: 1.0}}, "label 5"),
        ({"class_weight": {1: 0.0}}, "'class_weight'.*0.0"),
        ({"class_weight": {1: np.nan}}, "'class_weight'.*nan"),
        ({"class_weight": {1: True}}, "'class_weight'.*True"),
        ({"class_weight": "even"}, "'class_weight'"),
        ({"class_weight": "balanced", "solver": "coordinate"}, "solver='auto'"),
        ({"class_weight": {1: 2.0}, "noise": "inid_laplace"}, "'noise' parameter"),
        ({"class_weight": {1: 2.0}, "delta": 0.0, "noise": "inid_gaussian"}, "positive delta"),
    ],
)
def test_what_cannot_be_weighed_is_refused_before_the_charge(settings, match):
    with pytest.raises(ValueError, match=match):
        fitted(*made(100), ledger=Forbidden(), **settings)
