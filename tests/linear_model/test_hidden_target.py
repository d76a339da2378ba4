"""A target that noise hides is still predicted sensibly, and the fit says how noisy it is."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPLassoPath,
    DPLogisticCD,
    DPPoissonRegressor,
    PrivacyWarning,
)
from skdpnoise.accounting.session import Session
from tests._cases import each_value, quick
from tests.contracts._register import MODELS

quiet = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")


def diabetes():
    return load_diabetes(return_X_y=True)


def made(seed=0, n=3000):
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(n, 6))
    return X, X[:, 0] + rng.gumbel(size=n) + 40.0


FITS = {
    "auto": (DPCoordinateDescentRegressor, {}),
    "gradient": (DPCoordinateDescentRegressor, {"solver": "gradient"}),
    "gram": (DPCoordinateDescentRegressor, {"solver": "gram"}),
    "path": (DPLassoPath, {}),
    "pure": (DPCoordinateDescentRegressor, {"delta": 0.0}),
    "add_remove": (DPCoordinateDescentRegressor, {"adjacency": "add_remove"}),
    "pure, add_remove": (DPCoordinateDescentRegressor, {"delta": 0.0, "adjacency": "add_remove"}),
    "pure path, add_remove": (DPLassoPath, {"delta": 0.0, "adjacency": "add_remove"}),
}


@each_value(1)
@pytest.mark.slow
@quiet
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("data", [diabetes, made])
def test_regression_is_hardly_worse_than_the_mean_where_n_epsilon_is_300(name, data):
    X, y = data()
    Estimator, settings = FITS[name]
    scores = [
        Estimator(300.0 / len(y), random_state=seed, **settings).fit(X, y).score(X, y)
        for seed in range(8)
    ]
    assert np.sort(scores)[1] >= -0.2


@quick("0.01-1e-06-DPPoissonRegressor")
@each_value(1)
@pytest.mark.parametrize("Estimator", [DPCoordinateDescentRegressor, DPPoissonRegressor])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("ratio", [-0.5, 0.01, 0.3, 0.7, 1.3, 1.8])
def test_a_number_of_records_that_is_released_wrong_is_no_harm_or_is_said(
    Estimator, delta, ratio, monkeypatch
):
    X, y = made()
    y = np.round(np.maximum(y, 0.0))
    monkeypatch.setattr(Session, "count", lambda *_: ratio * len(y))
    for seed in range(6):
        model = Estimator(300.0 / len(y), delta, adjacency="add_remove", random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            score = model.fit(X, y).score(X, y)
        assert score >= -0.2 or any("target" in str(w.message) for w in caught)


@quiet
def test_a_shift_of_the_target_shifts_predictions_and_nothing_else():
    X, y = made()
    plain, shifted = (
        DPCoordinateDescentRegressor(0.5, random_state=0).fit(X, values) for values in (y, y + 1e5)
    )
    assert plain.score(X, y) > 0.4
    assert shifted.score(X, y + 1e5) > 0.4


@quick("100.0")
@quiet
@pytest.mark.parametrize("high", [1.0, 100.0])
def test_bounds_of_the_target_may_be_far_wider_than_its_spread(high):
    X, y = diabetes()
    width = np.ptp(y) * high
    bounds = (y.min() - width, y.max() + width)
    scores = [
        DPCoordinateDescentRegressor(
            1.0, target_bounds=bounds, feature_bounds=(-0.2, 0.2), random_state=seed
        )
        .fit(X, y)
        .score(X, y)
        for seed in range(8)
    ]
    assert np.sort(scores)[1] >= -0.2


@quick("replace_one-False-load_breast_cancer")
@each_value(1)
@quiet
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_iris])
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_classification_is_hardly_worse_than_the_largest_class(load, public, adjacency):
    X, y = load(return_X_y=True)
    bounds = (X.min(axis=0), X.max(axis=0)) if public else None
    share = np.bincount(y).max() / len(y)
    scores = [
        DPLogisticCD(300.0 / len(y), feature_bounds=bounds, adjacency=adjacency, random_state=seed)
        .fit(X, y)
        .score(X, y)
        for seed in range(8)
    ]
    assert np.sort(scores)[1] >= share - 0.03


@quiet
def test_a_rare_class_is_not_predicted_from_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 20)), (np.arange(1000) < 100).astype(int)
    for seed in range(10):
        model = DPLogisticCD(0.3, feature_bounds=(-4.0, 4.0), random_state=seed).fit(X, y)
        assert model.score(X, y) >= 0.87


def test_a_fit_of_too_few_records_says_how_noisy_its_constant_is():
    X, y = made()
    model = DPCoordinateDescentRegressor(0.02, random_state=0)
    with pytest.warns(PrivacyWarning, match=r"constant.* standard\s+deviation of about [\d.e+-]+"):
        predictions = model.fit(X, y).predict(X)
    assert np.ptp(predictions) == 0.0
    assert predictions[0] != 0.0


def test_the_warning_follows_from_released_numbers():
    X, y = made()
    messages = []
    for values in (y, np.r_[y[:-1], 1e9]):
        model = DPCoordinateDescentRegressor(0.001, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, values)
        messages.append([str(w.message) for w in caught])
    assert messages[0] == messages[1]


def test_enough_records_give_no_warning_about_the_target():
    X, y = made()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPCoordinateDescentRegressor(2.0, random_state=0).fit(X, y)
    assert not [w for w in caught if "target" in str(w.message)]


@each_value(1)
@quiet
@pytest.mark.parametrize("value", [0.0, 7.5, -1e100, 1e100])
@pytest.mark.parametrize("solver", ["gradient", "gram"])
def test_a_constant_target_is_predicted(value, solver):
    X, _ = made(n=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = DPCoordinateDescentRegressor(1.0, solver=solver, random_state=0)
        predictions = model.fit(X, np.full(2000, value)).predict(X)
    assert np.abs(predictions - value).max() <= max(1e-3 * abs(value), 1e-3)


@quick("0.0")
@quiet
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_comes_first_is_charged_first_and_all_stages_are_fixed_in_advance(delta):
    class Notes:
        def __init__(self):
            self.costs = []

        def charge(self, label, cost, **facts):
            self.costs.append(cost)

    X, y = made()
    for Estimator, target, first in (
        (DPCoordinateDescentRegressor, y, "target: median"),
        (DPLassoPath, y, "target: median"),
        (partial(DPLogisticCD, solver="coordinate"), y > np.median(y), "class shares"),
    ):
        costs = []
        for seed in range(2):
            notes = Notes()
            model = Estimator(0.5, delta, ledger=notes, random_state=seed).fit(X, target)
            (cost,) = notes.costs
            costs.append(cost.delta(0.5))
            assert model.privacy_.releases[0].label == first
        assert costs[0] == costs[1] <= delta


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_targets_that_are_mostly_zero_have_a_mean_that_is_found(delta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = np.where(rng.random(3000) < 0.2, rng.integers(1, 6, 3000), 0).astype(float)
    scores = [
        DPCoordinateDescentRegressor(0.6, delta, random_state=s).fit(X, y).score(X, y)
        for s in range(8)
    ]
    assert (y.mean() / y.std()) ** 2 > 0.15  # that of the median, 0
    assert np.sort(scores)[1] >= -0.05


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_classifier_that_gains_nothing_predicts_the_largest_class(adjacency):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(1000, 5)), (rng.random(1000) < 0.43).astype(int)
    constant = 0
    for seed in range(12):
        settings = {"adjacency": adjacency, "feature_bounds": (-4.0, 4.0), "random_state": seed}
        constant += np.ptp(DPLogisticCD(1.0, **settings).fit(X, y).predict(X)) == 0
        model = DPLogisticCD(1.0, **settings).fit(X, X[:, 0] > 0.0)
        assert model.score(X, X[:, 0] > 0.0) > 0.8
    assert constant >= 9


@pytest.mark.slow
@quiet
def test_second_moments_that_are_noise_give_a_constant_model():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(1000, 6)), rng.normal(size=1000)
    settings = {"solver": "gram", "feature_bounds": (-4.0, 4.0), "target_bounds": (-4.0, 4.0)}
    for seed in range(6):
        model = DPCoordinateDescentRegressor(0.5, random_state=seed, **settings).fit(X, y)
        assert model.score(X, y) >= -0.2
        model = DPCoordinateDescentRegressor(50.0, random_state=seed, **settings).fit(X, X[:, 0])
        assert model.score(X, X[:, 0]) >= 0.95


@quick("8", "5", "2", "10", "9")
@pytest.mark.parametrize("seed", range(12))
def test_a_target_around_zero_has_a_scale_however_near_to_zero_its_median_is_found(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4000, 2))
    y = X @ [1.0, 0.5] + rng.normal(size=4000)
    y -= np.median(y)
    model = DPCoordinateDescentRegressor(0.5, delta=0.0, random_state=seed).fit(X, y)
    assert "target: mean square" in {release.label for release in model.privacy_.releases}
    assert model.score(X, y) > -0.2


REGRESSORS = [entry for entry in MODELS if entry.target != "labels"]


@quick("DPRidge-add_remove-1e-06")
@each_value(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("entry", REGRESSORS, ids=lambda entry: entry.name)
def test_a_target_that_noise_hides_is_0_or_the_middle_of_its_bounds_and_that_is_said(
    entry, adjacency, delta
):
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = X[:, 0] + 13.0
    terms = {"delta": delta, "adjacency": adjacency, "random_state": 0}
    for bounds, low, high in ((None, 0.0, 0.3), ((0.0, 20.0), 10.0, 10.0)):
        for epsilon in (1e-6, 1e-3):
            model = entry.estimator(epsilon=epsilon, target_bounds=bounds, **terms)
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found = model.fit(X, y).predict(X)
            if entry.target == "counts":  # of which the logarithm is a number: a count stands for 0
                assert low - 1e-12 <= found.min() <= found.max() <= high + 1e-12
            else:
                assert (found == low).all()
            said = next(str(one.message) for one in heard if "hides where" in str(one.message))
            assert said.startswith(type(model).__name__)
            assert f"epsilon={epsilon:g}" in said
            assert "larger epsilon or public bounds (target_bounds)" in said
    # What it advises: a larger epsilon, or more records.
    for n, epsilon in ((100, 9.0), (20_000, 0.2)):
        rows = np.resize(X, (n, 3))
        model = entry.estimator(epsilon=epsilon, **terms)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            found = model.fit(rows, rows[:, 0] + 13.0).predict(rows)
        assert not any("hides where" in str(one.message) for one in heard)
        assert abs(np.median(found) - 13.0) < 4.0


@quiet
def test_a_location_that_is_told_apart_from_nothing_is_kept():
    X = np.random.default_rng(0).normal(size=(100, 3))
    for seed in range(5):
        model = DPCoordinateDescentRegressor(0.35, random_state=seed).fit(X, X[:, 0] + 13.0)
        assert 9.0 < model.predict(X).mean() < 17.0
