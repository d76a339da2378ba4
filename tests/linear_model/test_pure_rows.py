"""Whole gradients at δ = 0: noise of the K-norm of the ball that holds a record's gradient."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
)
from skdpnoise.accounting.queries import ClippedVectors
from skdpnoise.mechanisms import KNormMechanism
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import random_words
from tests._replay import two_runs

BOUNDS = np.array([[0.0, -1.0, 2.0, 0.0], [1.0, 3.0, 4.0, 100.0]])
MODELS = {
    "logistic": (DPLogisticRegression, {}),
    "SVC": (DPLinearSVC, {}),
    "Huber": (DPHuberRegressor, {}),
    "quantile": (DPQuantileRegressor, {"quantile": 0.8}),
    "Poisson": (DPPoissonRegressor, {"solver": "joint"}),
    "least squares": (DPCoordinateDescentRegressor, {"solver": "joint"}),
}
EACH_MODEL = pytest.mark.parametrize("name", MODELS)
EACH_RELATION = pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])


def made(name, n=200, n_classes=2):
    rng = np.random.default_rng(0)
    X = BOUNDS[0] + rng.random((n, 4)) * (BOUNDS[1] - BOUNDS[0])
    signal = X[:, 0] + X[:, 1] - X[:, 2]
    if name in ("logistic", "SVC"):
        order = np.argsort(np.argsort(signal + 0.1 * rng.normal(size=n)))
        return X, order * n_classes // n
    return X, (rng.poisson(2.0, n).astype(float) if name == "Poisson" else signal)


def model(name, epsilon=20.0, **settings):
    kind, own = MODELS[name]
    if name in ("logistic", "SVC"):
        own = own | {"classes": settings.pop("classes", [0, 1])}
    return kind(epsilon, 0.0, **({"feature_bounds": BOUNDS, "random_state": 0} | own | settings))


class Notebook:
    """A ledger that writes down what is reserved."""

    def __init__(self):
        self.costs = []

    def charge(self, label, cost, **facts):
        self.costs.append(cost)


def quietly(fit, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*data)


@EACH_RELATION
def test_noise_for_a_ball_follows_the_kind_of_loss(adjacency):
    query, width = ClippedVectors(1.5, 7), 2.0 if adjacency == "replace_one" else 1.0
    pure = query.calibrated("inid_laplace", PureLoss(0.5), adjacency, n_releases=3)
    assert isinstance(pure, KNormMechanism)
    assert pure.radius == width * 1.5
    assert pure.privacy_loss().pure_epsilon <= 0.5
    assert pure.scale == pytest.approx(3 * width * 1.5 / 0.5, rel=1e-6)
    deviations = pure.sample(random_words(0), 3) * pure.grid_size
    assert pure.standard_deviation == pytest.approx(pure.scale * math.sqrt(8.0))
    assert np.abs(deviations).max() < 20.0 * pure.standard_deviation[0]
    normal = query.calibrated("inid_gaussian", GaussianLoss(0.5), adjacency)
    assert normal.noise == "inid_gaussian"


def test_no_density_changes_by_more_than_e_to_the_epsilon():
    # Of all integer vectors within the ball, and outputs around it: ln f(o - a) - ln f(o - b).
    mechanism = ClippedVectors(3.0, 2).calibrated("", PureLoss(0.7), "replace_one")
    inside = [v for v in itertools.product(range(-3, 4), repeat=2) if math.hypot(*v) <= 3.0]
    outputs = list(itertools.product(range(-9, 10), repeat=2))
    losses = [
        abs(math.dist(out, here) - math.dist(out, there)) / mechanism.scale
        for here, there in itertools.product(inside, repeat=2)
        for out in outputs
    ]
    assert max(losses) <= 0.7
    assert max(losses) > 0.69


@EACH_RELATION
@EACH_MODEL
def test_all_is_charged_for_and_no_more_than_is_reserved(name, adjacency):
    X, y = made(name)
    ledger = Notebook()
    fitted = quietly(model(name, adjacency=adjacency, ledger=ledger).fit, X, y)
    report = fitted.privacy_
    charges = [release.loss.pure_epsilon for release in report.releases]
    assert 0.9 * 20.0 < math.fsum(charges) <= 20.0 * (1.0 + 1e-9)
    gradients = [one for one in report.releases if one.label == "gradients"]
    assert [one.noise for one in gradients] == ["k_norm"]
    labels = {one.label for one in report.releases}
    assert ("class shares" in labels) == (name in ("logistic", "SVC"))
    (reserved,) = ledger.costs
    assert math.fsum(charges) * (1.0 - 1e-9) <= reserved.epsilon(0.0) <= 20.0 * (1.0 + 1e-9)


@EACH_RELATION
@EACH_MODEL
def test_one_record_moves_every_release_by_what_is_charged_for_at_most(name, adjacency):
    X, y = made(name, 60)
    largest = {}
    for seed in range(9):
        one, other = X.copy(), X.copy()
        one[-1] = 1e100 if seed % 3 else BOUNDS[0]
        other[-1] = -one[-1] if seed % 2 else X[3]
        first, second = y.copy(), y.copy()
        first[-1], second[-1] = y.min(), y.max()
        near = (other, second) if adjacency == "replace_one" else (one[:-1], first[:-1])
        ours = model(name, adjacency=adjacency, n_passes=3).set_params(random_state=seed)
        runs = two_runs(
            lambda X, y, ours=ours: quietly(ours.fit, X, y).coef_, (one, first), near, seed
        )
        runs.check_same()
        for moved in runs.moved:
            largest[moved.label] = max(largest.get(moved.label, 0.0), moved.share)
    assert max(largest.values()) <= 1.0 + 1e-9
    assert largest["gradients"] > 0.5


@EACH_RELATION
def test_a_label_moves_the_gain_over_the_largest_class_by_what_is_charged_for(adjacency):
    X, y = made("logistic", 60, 3)
    largest = 0.0
    for seed, (one, other) in enumerate(6 * [*itertools.permutations(range(3), 2)]):
        first, second = y.copy(), y.copy()
        first[-1], second[-1] = one, other
        near = (X, second) if adjacency == "replace_one" else (X[:-1], first[:-1])
        ours = model("logistic", 5.0, adjacency=adjacency, classes=[0, 1, 2], random_state=seed)
        runs = two_runs(
            lambda X, y, ours=ours: quietly(ours.fit, X, y).coef_, (X, first), near, seed
        )
        assert max(moved.share for moved in runs.moved) <= 1.0 + 1e-9
        gain = "gain over the largest class"
        largest = max([largest, *(moved.share for moved in runs.moved if moved.label == gain)])
    assert largest > 0.9


@EACH_RELATION
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 9.0}])
def test_no_weight_lets_a_record_count_for_more(class_weight, adjacency):
    X, y = made("logistic", 60)
    for seed in range(6):
        other, others = X.copy(), y.copy()
        other[-1], others[-1] = BOUNDS[seed % 2], 1 - y[-1]
        near = (other, others) if adjacency == "replace_one" else (X[:-1], y[:-1])
        ours = model("logistic", adjacency=adjacency, class_weight=class_weight)
        runs = two_runs(
            lambda X, y, ours=ours: quietly(ours.fit, X, y).intercept_, (X, y), near, seed
        )
        runs.check_same()
        assert all(one.share <= 1.0 + 1e-9 for one in runs.moved)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 9.0}])
def test_weights_find_more_of_the_rare_class(class_weight):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(4000, 4)), np.zeros(4000, dtype=int)
    y[:400], X[:400, 0] = 1, X[:400, 0] + 1.0
    wide = {"epsilon": 10.0, "feature_bounds": (-4.0, 4.0)}
    found = [
        quietly(model("logistic", class_weight=one, **wide).fit, X, y).predict(X)[:400].mean()
        for one in (None, class_weight)
    ]
    assert found[1] > found[0] + 0.3


def test_sparse_rows_are_read():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 30)) * (rng.random((2000, 30)) < 0.1)
    y = (X[:, :3].sum(axis=1) > 0.1).astype(int)
    within = {"epsilon": 30.0, "feature_bounds": (0.0, 1.0)}
    sparse = quietly(model("logistic", **within).fit, csr_array(X), y)
    assert sparse.score(csr_array(X), y) > 0.85


def test_of_three_classes_few_passes_learn():
    X, y = made("logistic", 3000, 3)
    ours = quietly(model("logistic", 5.0, classes=[0, 1, 2]).fit, X, y)
    assert ours.solver_ == "joint"
    assert ours.n_passes_ <= 20
    assert ours.score(X, y) > 0.6


def test_passes_are_as_many_as_the_budget_bears():
    X, y = load_breast_cancer(return_X_y=True)
    settings = {"feature_bounds": (X.min(0), X.max(0)), "random_state": 0}
    passes = [
        quietly(DPLogisticRegression(epsilon, 0.0, **settings).fit, X, y).n_passes_
        for epsilon in (0.01, 3.0, 10.0, 1000.0)
    ]
    assert passes[0] == 1
    assert passes[-1] == 20
    assert sorted(passes) == passes
    assert quietly(DPLogisticRegression(9.0, 0.0, n_passes=7, **settings).fit, X, y).n_passes_ == 7


@pytest.mark.parametrize("name", ["Huber", "quantile"])
def test_many_columns_of_noise_are_no_worse_than_a_constant(name):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(3000, 100)), rng.normal(size=3000)
    for seed in range(3):
        ours = MODELS[name][0](1.0, 0.0, random_state=seed)
        assert quietly(ours.fit, X[:2000], y[:2000]).score(X[2000:], y[2000:]) > -0.05


@EACH_MODEL
def test_results_have_the_same_bits_however_rows_are_stored(name):
    X, y = made(name, 500)
    ours = quietly(model(name).fit, X, y)
    for other in (np.asfortranarray(X), pd.DataFrame(X)):
        again = quietly(model(name, n_jobs=2).fit, other, y)
        assert np.array_equal(again.coef_, ours.coef_)
        assert np.array_equal(again.intercept_, ours.intercept_)
