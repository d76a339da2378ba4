"""Huber, quantile and support vector models: descents along whole gradients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score
from sklearn.svm import LinearSVC

from skdpnoise import DPHuberRegressor, DPLinearSVC, DPQuantileRegressor
from skdpnoise.kernels import sizes
from skdpnoise.kernels.losses import hinge, huber, pinball
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._records import Rows
from skdpnoise.linear_model._standard_units import Standardisation
from skdpnoise.linear_model.solvers.final_steps import linear_functions
from skdpnoise.privacy import gdp_mu
from tests._cases import each_value
from tests._replay import two_runs
from tests.contracts._register import Forbidden

BOUNDS = {"feature_bounds": (-3.0, 3.0), "target_bounds": (-8.0, 8.0)}
MODELS = {
    "huber": (DPHuberRegressor, BOUNDS),
    "quantile": (DPQuantileRegressor, BOUNDS | {"quantile": 0.8}),
    "svc": (DPLinearSVC, {"feature_bounds": (-3.0, 3.0)}),
}
every_model = pytest.mark.parametrize("name", MODELS)


def made(name, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 3)), -3.0, 3.0)
    y = X @ [1.0, -0.5, 0.0] + 0.5 + rng.standard_t(3, size=n)
    return X, (y > 0.5).astype(int) if name == "svc" else np.clip(y, -8.0, 8.0)


def fitted(name, X, y, epsilon=1.0, **keywords):
    make, settings = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(epsilon, **({"random_state": 0} | settings | keywords)).fit(X, y)


@pytest.mark.parametrize("loss", [huber(1.35), pinball(0.8, 0.2), pinball(0.5, 0.1), hinge(0.7)])
def test_slopes_are_derivatives_and_a_row_has_the_same_bits_in_any_block(loss):
    rng = np.random.default_rng(0)
    scores = 3.0 * rng.normal(size=(1000, 2))
    targets = rng.integers(2, size=(1000, 2)).astype(float)
    whole = loss.slopes(scores, targets)
    parts = [loss.slopes(scores[k : k + 7], targets[k : k + 7]) for k in range(0, 1000, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert (np.diff(whole[np.lexsort((scores[:, 0], targets[:, 0])), 0]) >= 0.0).sum() >= 998
    apart = np.abs(
        np.diff(loss.slopes(np.linspace(-5, 5, 10_001)[:, None], np.ones((10_001, 1)))[:, 0])
    )
    assert apart.max() <= 1e-3 * loss.curvature * (1.0 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.3, 1.35, 5.0])
def test_boundless_epsilon_minimises_hubers_loss(threshold):
    X, y = made("huber", 6000)
    model = fitted("huber", X, y, 1e6, threshold=threshold)
    features, _, center, scale = model._standardised
    Z, t = features(X) * features.spread, (y - center) / scale

    def loss(w):
        r = np.abs(Z @ w[:3] + w[3] - t)
        return np.where(r <= threshold, 0.5 * r**2, threshold * (r - 0.5 * threshold)).mean()

    best = minimize(loss, np.zeros(4), tol=1e-12)
    ours = np.append(model.coef_ * features.scale / scale, 0.0) / np.append(features.spread, 1.0)
    ours[3] = (model.intercept_ + model.coef_ @ features.center - center) / scale
    assert loss(ours) <= 1.001 * best.fun


@pytest.mark.slow
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_boundless_epsilon_is_the_quantile_regression(quantile):
    X, y = made("quantile", 6000)
    model = fitted("quantile", X, y, 1e6, quantile=quantile, smoothing=0.05)
    ordinary = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.02)
    theirs = d2_pinball_score(y, ordinary.predict(X), alpha=quantile)
    assert model.score(X, y) > theirs - 0.002
    assert model.score(X, y) == d2_pinball_score(y, model.predict(X), alpha=quantile)


@pytest.mark.slow
@pytest.mark.parametrize("quantile", [0.1, 0.9])
def test_quantiles_cover_what_they_are_asked_for(quantile):
    X, y = made("quantile", 20_000)
    for bounds in (BOUNDS, {"feature_bounds": None, "target_bounds": None}):
        model = fitted("quantile", X, y, 2.0, quantile=quantile, **bounds)
        assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.04)


@pytest.mark.slow
def test_boundless_epsilon_is_the_support_vector_classifier():
    X, y = made("svc", 6000)
    model = fitted("svc", X, y, 1e6, smoothing=100.0, alpha=0.0)
    ordinary = LinearSVC(C=100.0).fit(X, y)  # a wide smooth hinge is the squared one
    assert np.mean(model.predict(X) == ordinary.predict(X)) > 0.99


@pytest.mark.slow
def test_several_classes_share_the_passes():
    X, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPLinearSVC(2.0, feature_bounds=(0.0, 16.0), random_state=0).fit(X, y)
    assert model.coef_.shape == (10, 64)
    assert model.decision_function(X).shape == (len(X), 10)
    assert model.score(X, y) > 0.8
    assert not hasattr(model, "predict_proba")


@each_value(1)
@every_model
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_all_is_charged_and_no_more_than_asked_for(name, adjacency):
    X, y = made(name)
    report = fitted(name, X, y, adjacency=adjacency).privacy_
    after = {"quantile": ["residuals: quantile"], "svc": ["labels by score"]}
    last = ["gradients", *after.get(name, [])]
    assert [release.label for release in report.releases][-len(last) :] == last
    total = np.sqrt(sum(release.loss.mu**2 for release in report.releases))
    assert 0.97 * gdp_mu(1.0, 1e-6) < total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)


@each_value(1)
@every_model
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_record_moves_every_release_by_what_is_charged_for_at_most(name, adjacency):
    X, y = made(name, 60)
    largest = {}
    for seed in range(15):
        other, others = X.copy(), y.copy()
        other[-1] = (1e100 if seed % 2 else 3.0) * (-1.0) ** (seed // 2)
        others[-1] = 1 - y[-1] if name == "svc" else (-1.0) ** seed * 1e90
        near = (other, others) if adjacency == "replace_one" else (X[:-1], y[:-1])
        make, settings = MODELS[name]
        extra = {"classes": [0, 1]} if name == "svc" else {}
        model = make(50.0, random_state=seed, adjacency=adjacency, n_passes=3, **settings, **extra)

        def fit(X, y, model=model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(X, y).coef_

        runs = two_runs(fit, (X, y), near, seed)
        assert (runs.first == runs.second).all()
        for moved in runs.moved:
            largest[moved.label] = max(largest.get(moved.label, 0.0), moved.share)
    assert max(largest.values()) <= 1.0 + 1e-9
    assert largest["gradients"] > 0.3
    assert name != "quantile" or largest["residuals: quantile"] > 0.99


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", ["huber", "quantile"])
def test_of_many_columns_all_is_charged_and_no_more_than_asked_for(name, adjacency):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-3.0, 3.0, size=(1000, 40)), rng.normal(size=1000)
    report = fitted(name, X, y, adjacency=adjacency).privacy_
    last = ["gradients", "second moments", "residuals: quantile"][: 3 if name == "quantile" else 2]
    assert [release.label for release in report.releases][-len(last) :] == last
    total = np.sqrt(sum(release.loss.mu**2 for release in report.releases))
    assert 0.97 * gdp_mu(1.0, 1e-6) < total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)


def test_without_an_intercept_no_level_is_searched_for():
    X, y = made("quantile", 500)
    model = fitted("quantile", X, y, fit_intercept=False)
    labels = [release.label for release in model.privacy_.releases]
    assert labels[-2:] == ["gradients", "second moments"]
    assert model.intercept_ == 0.0


def test_without_a_column_that_is_used_a_quantile_is_what_the_model_finds():
    _, y = made("quantile", 4000)
    X = np.zeros((4000, 2))
    model = fitted("quantile", X, y, feature_bounds=None, random_state=1)
    assert (model.coef_ == 0.0).all()
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.8, abs=0.02)
    total = np.sqrt(sum(release.loss.mu**2 for release in model.privacy_.releases))
    assert total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)


@each_value(2)
@pytest.mark.parametrize(("n", "p", "epsilon"), [(1000, 3, 1.0), (3000, 20, 1.0), (10_000, 3, 0.1)])
def test_a_far_quantile_has_its_share_below_and_is_better_than_a_constant(n, p, epsilon):
    scores, shares = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 3000, p))
        y = 2.0 * X[:, 0] + rng.normal(size=n + 3000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPQuantileRegressor(epsilon, quantile=0.9, random_state=seed)
            model.fit(X[:n], y[:n])
        scores.append(model.score(X[n:], y[n:]))
        shares.append(np.mean(y[n:] <= model.predict(X[n:])))
    assert np.median(scores) > 0.3
    assert min(scores) > -0.02
    assert np.abs(np.array(shares) - 0.9).max() < 0.06


@pytest.mark.parametrize("name", ["huber", "quantile"])
@pytest.mark.parametrize("signal", [True, False])
def test_many_columns_do_not_drown_a_model_of_numbers(name, signal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 200))
    y = (X @ rng.normal(size=200)) / np.sqrt(200.0) if signal else 0.0
    y = y + 0.7 * rng.normal(size=6000)
    public = {"feature_bounds": None, "target_bounds": None}
    public |= {"quantile": 0.5} if name == "quantile" else {}
    model = fitted(name, X[:3000], y[:3000], **public)
    assert model.score(X[3000:], y[3000:]) > (0.02 if signal else -0.02)


@each_value(1)
@every_model
@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"noise": "inid_laplace"}, "'noise' parameter"),
        ({"delta": 0.0, "noise": "inid_gaussian"}, "positive delta"),
        ({"smoothing": 0.0}, "'smoothing'"),
        ({"smoothing": np.nan}, "'smoothing'"),
        ({"threshold": -1.0}, "'threshold'"),
        ({"quantile": 1.0}, "'quantile'"),
    ],
)
def test_what_is_wrong_is_said_before_the_charge(name, settings, match):
    if not settings.keys() <= clone(MODELS[name][0]()).get_params().keys():
        return
    with pytest.raises(ValueError, match=match):
        fitted(name, *made(name, 100), ledger=Forbidden(), **settings)


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_bought_of_scores_reads_the_same_bits_of_a_row_in_any_block(sparse, monkeypatch):
    rng = np.random.default_rng(0)
    p, X = 61, rng.normal(size=(100, 61))
    facts = 0.0 * np.ones(p), np.ones(p), rng.random(p) < 0.9, 2.0 * np.ones(p), np.ones(p)
    groups = np.where(np.arange(p) < 5, 0, NO_GROUP)
    scaling, model = Standardisation(*facts, groups), rng.normal(size=(3, p + 1))

    def scores(X):
        rows = Rows(csr_array(X) if sparse else X, np.arange(len(X)))
        return np.concatenate([some for some, _ in linear_functions(model, rows, scaling)], axis=1)

    whole = scores(X)
    for size in (1, 2, 7, 64):
        parts = [scores(X[k : k + size]) for k in range(0, 100, size)]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    np.testing.assert_array_equal(scores(np.asfortranarray(X)), whole)
    monkeypatch.setattr(sizes, "MOST_ROWS", 7)
    np.testing.assert_array_equal(scores(X), whole)


@every_model
def test_a_clip_of_any_allowed_size_is_taken(name):
    X, y = made(name, n=200)
    for clip in (1e-100, 1e100):
        assert np.isfinite(fitted(name, X, y, clip=clip).coef_).all()
