"""Gradients of all columns and classes at once: what is chosen, charged, released and found."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skdpnoise import DPCoordinateDescentRegressor, DPLasso, DPLogisticCD
from skdpnoise.accounting import session
from skdpnoise.linear_model.solvers.gradient import GradientPlan
from skdpnoise.privacy import gdp_mu
from tests._cases import each_value, quick
from tests._replay import two_runs
from tests.contracts._register import Forbidden

quiet = pytest.mark.filterwarnings("ignore:.*leaves out")


def made(n=3000, p=5, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, p)) * [1.0, 10.0, 0.1, 1.0, 5.0][:p] + np.arange(p)
    scores = (X - np.arange(p)) / [1.0, 10.0, 0.1, 1.0, 5.0][:p] @ rng.normal(size=(p, n_classes))
    y = np.argmax(3.0 * scores + rng.gumbel(size=scores.shape), axis=1)
    return X, y


HALF = np.array([1.0, 10.0, 0.1, 1.0, 5.0])
BOUNDS = np.arange(5) - HALF, np.arange(5) + HALF


def fitted(X, y, epsilon=1.0, **keywords):
    keywords = {"random_state": 0, "feature_bounds": BOUNDS} | keywords
    return DPLogisticCD(epsilon, **keywords).fit(X, y)


@quick("2", "settings11")
@pytest.mark.parametrize(
    ("n_classes", "n_columns", "settings", "solver"),
    [
        (3, 5, {}, "joint"),
        (2, 5, {}, "joint"),
        (2, 60, {"epsilon": 0.1, "adjacency": "add_remove"}, "joint"),
        (2, 5, {"feature_bounds": None}, "joint"),
        (2, 5, {"feature_bounds": None, "epsilon": 0.3}, "coordinate"),  # few records for that
        (2, 5, {"feature_bounds": None, "epsilon": 0.3, "adjacency": "add_remove"}, "joint"),
        (3, 5, {"feature_bounds": None, "epsilon": 0.3}, "joint"),
        (2, 5, {"epsilon": 0.3}, "joint"),
        (2, 5, {"fit_intercept": False}, "joint"),
        (2, 5, {"solver": "coordinate"}, "coordinate"),
        (2, 5, {"delta": 0.0}, "joint"),
        (2, 5, {"delta": 0.0, "noise": "inid_laplace"}, "coordinate"),
        (2, 5, {"clip": 0.5}, "coordinate"),
        (3, 5, {"solver": "coordinate"}, "coordinate"),
        (3, 5, {"delta": 0.0}, "joint"),
        (3, 5, {"noise": "iid_laplace"}, "coordinate"),
        (3, 5, {"noise": "spr_gaussian"}, "joint"),
        (3, 5, {"clip": 0.5}, "coordinate"),
        (3, 5, {"budget_growth": 1.2}, "coordinate"),
        (3, 5, {"error_weights": np.ones(6)}, "coordinate"),
        (3, 5, {"n_passes": 3}, "joint"),
    ],
)
def test_auto_takes_whole_gradients_but_where_coordinates_are_asked_for(
    n_classes, n_columns, settings, solver
):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, size=(600, n_columns)), np.arange(600) % n_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(X, y, **({"feature_bounds": (-1.0, 1.0)} | settings))
    assert model.solver_ == solver
    assert model.coef_.shape == (1 if n_classes == 2 else n_classes, n_columns)


def test_what_whole_gradients_cannot_have_is_refused():
    for settings in ({"noise": "inid_laplace"}, {"delta": 0.0, "noise": "inid_gaussian"}):
        with pytest.raises(ValueError, match=r"'noise' parameter.*solver='joint'"):
            fitted(*made(), solver="joint", **settings)


def test_it_beats_one_against_the_rest_on_many_classes():
    X, y = load_digits(return_X_y=True)
    settings = {"feature_bounds": (0.0, 16.0), "epsilon": 1.0, "random_state": 0}
    joint = DPLogisticCD(**settings).fit(X[:1400], y[:1400]).score(X[1400:], y[1400:])
    settings["solver"] = "coordinate"
    apart = DPLogisticCD(**settings).fit(X[:1400], y[:1400]).score(X[1400:], y[1400:])
    assert joint > 0.75
    assert joint > apart + 0.1


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("bounds", [BOUNDS, None])
def test_all_is_charged_and_no_more_than_asked_for(adjacency, bounds):
    X, y = made()
    report = fitted(X, y, adjacency=adjacency, feature_bounds=bounds).privacy_
    labels = [release.label for release in report.releases]
    assert labels[-1] == "gradients"
    assert ("means and squares of rows" in labels) == (bounds is not None)
    assert ("number of records" in labels) == (adjacency == "add_remove")
    assert "class shares" not in labels
    total = np.sqrt(sum(release.loss.mu**2 for release in report.releases))
    assert total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)
    assert total > 0.97 * gdp_mu(1.0, 1e-6)


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_record_moves_every_release_by_what_is_charged_for_at_most(n_classes, adjacency):
    X, y = made(60, n_classes=n_classes)
    largest = {}
    rng = np.random.default_rng(1)
    for seed in range(30):
        one, other = X.copy(), X.copy()
        if seed % 3:
            one[-1] = 1e100 * rng.choice([-1.0, 1.0], size=5)
            other[-1] = -one[-1] if seed % 2 else X[3]
        else:  # well within the bounds, and larger than all others, or not
            one, other = BOUNDS[0] + HALF + 0.1 * HALF * rng.uniform(-1.0, 1.0, (2, 60, 5))
            other[:-1] = one[:-1]
            other[-1] = BOUNDS[0] + 1.8 * HALF
        labels, others = y.copy(), y.copy()
        labels[-1], others[-1] = rng.integers(n_classes, size=2)
        neighbour = (other, others) if adjacency == "replace_one" else (one[:-1], labels[:-1])
        model = DPLogisticCD(
            100.0,
            feature_bounds=BOUNDS,
            solver="joint",
            random_state=seed,
            adjacency=adjacency,
            classes=list(range(n_classes)),
            n_passes=4,
        )

        def fit(X, y, model=model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(X, y).coef_

        runs = two_runs(fit, (one, labels), neighbour, seed)
        assert (runs.first == runs.second).all()
        for moved in runs.moved:
            largest[moved.label] = max(largest.get(moved.label, 0.0), moved.share)
    assert max(largest.values()) <= 1.0 + 1e-9
    assert largest["gradients"] > 0.9
    assert largest["means and squares of rows"] > 0.9


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_what_is_released_after_the_passes_is_charged_for_too(kind, adjacency):
    X, y = made(300, n_classes=2)
    y = y if kind == "labels" else X[:, 0] - X[:, 3]
    largest = {}
    for seed in range(12):
        other, others = X.copy(), y.copy()
        other[-1] = BOUNDS[seed % 2] if seed % 3 else 1e100
        others[-1] = 1 - y[-1] if kind == "labels" else (-1.0) ** seed * 1e100
        near = (other, others) if adjacency == "replace_one" else (X[:-1], y[:-1])
        settings = {"feature_bounds": BOUNDS, "random_state": seed, "adjacency": adjacency}
        if kind == "labels":
            model = DPLogisticCD(2.0, classes=[0, 1], n_passes=3, **settings)
        else:
            model = DPCoordinateDescentRegressor(
                2.0, solver="joint", target_bounds=(-5.0, 5.0), n_passes=3, **settings
            )

        def fit(X, y, model=model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(X, y).coef_

        runs = two_runs(fit, (X, y), near, seed)
        assert (runs.first == runs.second).all()
        for moved in runs.moved:
            largest[moved.label] = max(largest.get(moved.label, 0.0), moved.share)
        charged = {release.label for release in model.privacy_.releases}
        assert {moved.label for moved in runs.moved} <= charged
        total = np.sqrt(sum(release.loss.mu**2 for release in model.privacy_.releases))
        assert 0.97 * gdp_mu(2.0, 1e-6) < total <= gdp_mu(2.0, 1e-6) * (1.0 + 1e-9)
    assert max(largest.values()) <= 1.0 + 1e-9
    last = "labels by score" if kind == "labels" else "second moments"
    assert largest[last] > 0.4


def test_the_last_release_is_charged_with_what_the_passes_left():
    X, y = made(300, n_classes=2)
    settings = {"feature_bounds": BOUNDS, "n_passes": 3, "random_state": 0, "solver": "joint"}
    of_labels = DPLogisticCD(2.0, classes=[0, 1], **settings).fit(X, y)
    of_numbers = DPCoordinateDescentRegressor(2.0, target_bounds=(-5.0, 5.0), **settings)
    of_numbers.fit(X, X[:, 0] - X[:, 3])
    for model, last in ((of_labels, "labels by score"), (of_numbers, "second moments")):
        charged = {release.label: release.loss.mu for release in model.privacy_.releases}
        assert last in charged
        total = np.sqrt(sum(mu**2 for mu in charged.values()))
        assert 0.97 * gdp_mu(2.0, 1e-6) < total <= gdp_mu(2.0, 1e-6) * (1.0 + 1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_plans_without_scales_depend_on_public_facts_alone(n_classes):
    X, y = made(100, n_classes=n_classes)
    one, other = (fitted(*data, 0.5) for data in ((X, y), (X[::-1] * 0.0, np.roll(y, 7))))
    for name in ("n_passes_", "solver_"):
        assert getattr(one, name) == getattr(other, name)
    pairs = [*zip(one.privacy_.releases, other.privacy_.releases, strict=True)]
    assert [a.label for a, _ in pairs] == ["gradients"]
    assert all(a.loss == b.loss and np.array_equal(a.scale, b.scale) for a, b in pairs)


def test_probabilities_are_those_of_a_multinomial_model():
    X, y = made()
    model = fitted(X, y, 3.0)
    expected = softmax(model.decision_function(X), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))


def test_the_paths_are_the_iterates_whose_last_ones_are_averaged():
    model = fitted(*made(), n_passes=10)
    assert model.coef_path_.shape == (10, 3, 5)
    np.testing.assert_allclose(model.coef_path_[-4:].mean(axis=0), model.coef_)
    np.testing.assert_allclose(model.intercept_path_[-4:].mean(axis=0), model.intercept_)


def test_units_of_the_columns_change_nothing():
    X, y = made()
    factor = 2.0 ** np.array([0.0, 20.0, -20.0, 3.0, -1.0])
    one = fitted(X, y)
    other = fitted(X * factor, y, feature_bounds=tuple(end * factor for end in BOUNDS))
    np.testing.assert_allclose(other.coef_ * factor, one.coef_, rtol=1e-12)
    np.testing.assert_array_equal(other.predict(X * factor), one.predict(X))


def test_columns_of_one_value_and_a_missing_intercept():
    X, y = made()
    low, high = BOUNDS[0].copy(), BOUNDS[1].copy()
    low[2] = high[2] = 2.0
    X[:, 2] = 2.0
    with pytest.raises(ValueError, match="feature_bounds"):
        fitted(X, y, feature_bounds=(low, high))
    model = fitted(X, y, fit_intercept=False)
    assert (model.intercept_ == 0.0).all()
    labels = [release.label for release in model.privacy_.releases]
    assert "means and squares of rows" not in labels
    assert model.score(X, y) > 0.5


@quiet
def test_where_no_column_is_used_the_classes_are_counted():
    X, y = np.zeros((400, 3)), np.repeat([0, 1, 2], [250, 100, 50])
    model = fitted(X, y, feature_bounds=None)
    assert [release.label for release in model.privacy_.releases][-1] == "class shares"
    assert (model.coef_ == 0.0).all()
    assert (model.predict(X) == 0).all()
    total = np.sqrt(sum(release.loss.mu**2 for release in model.privacy_.releases))
    assert total <= gdp_mu(1.0, 1e-6) * (1.0 + 1e-9)


def test_few_records_buy_no_mean():
    X, y = made(100)
    labels = [release.label for release in fitted(X, y, 0.1).privacy_.releases]
    assert labels == ["gradients"]


@pytest.mark.slow
def test_penalties_shrink():
    X, y = made()
    free, ridge = (fitted(X, y, 5.0, alpha=alpha, l1_ratio=0.0) for alpha in (0.0, 0.1))
    assert np.abs(ridge.coef_[:, 0]).max() < 0.7 * np.abs(free.coef_[:, 0]).max()
    lasso = fitted(X, y, 5.0, alpha=10.0, l1_ratio=1.0)
    assert (lasso.coef_ == 0.0).all()


def labels(kind, p, n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, p)), -3.0, 3.0)
    weights = rng.normal(size=(3, p))
    if kind == "three":
        return X, np.argmax(X @ weights.T + rng.gumbel(size=(n, 3)), axis=1)
    if kind == "rare":  # about one in a hundred
        scores = 1.2 / np.sqrt(p) * X.sum(axis=1) - 5.15
    else:
        scores = (7.2 / np.sqrt(p) if kind == "separable" else 1.0) * X @ weights[0]
    return X, (scores + rng.logistic(size=n) > 0.0).astype(int)


def mean_loss(slopes, intercepts, X, y, alpha):
    scores = X @ slopes.T + intercepts
    if len(intercepts) == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    each = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    return each.mean() + 0.5 * alpha * (slopes**2).sum()


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-3, 1e-4])
@pytest.mark.parametrize(
    ("kind", "p"), [("half", 3), ("rare", 3), ("three", 3), ("half", 100), ("separable", 100)]
)
def test_boundless_epsilon_is_the_ordinary_model(kind, p, alpha):
    X, y = labels(kind, p, 5000)
    bounds = (-3.0, 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(X, y, 1e6, alpha=alpha, l1_ratio=0.0, feature_bounds=bounds)
    # Penalties are of columns in units of their standard deviation, found with noise of 1e-6.
    unit = X.std(axis=0)
    ordinary = LogisticRegression(C=1.0 / (alpha * len(X)), max_iter=10_000, tol=1e-10)
    ordinary.fit(X / unit, y)
    found, right = model.coef_ * unit, ordinary.coef_
    apart = np.linalg.norm(found - found.mean(axis=0) * (len(found) > 1) - right)
    ours = mean_loss(found, model.intercept_, X / unit, y, alpha)
    theirs = mean_loss(right, ordinary.intercept_, X / unit, y, alpha)
    assert ours <= 1.001 * theirs
    if kind != "separable":
        assert apart <= 0.02 * np.linalg.norm(right)


def test_passes_whose_noise_would_fill_the_memory_are_refused():
    with pytest.raises(MemoryError, match="Use fewer passes"):
        fitted(*made(), n_passes=10**10)


@pytest.mark.parametrize(
    ("adjacency", "n_passes"),
    [("replace_one", 80), ("add_remove", 500)],  # where the number of records is not known
)
def test_so_are_the_most_passes_that_auto_may_make(monkeypatch, adjacency, n_passes):
    memory = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 40_000}
    monkeypatch.setattr("skdpnoise._utils.parameters.os.sysconf", memory.__getitem__)
    ledger = Forbidden()
    with pytest.raises(MemoryError, match=f"the noise of {n_passes} passes"):
        fitted(*made(), ledger=ledger, adjacency=adjacency)


def numbers(n, p, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n + 500, 5))
    X = 0.8 * factors @ rng.normal(size=(5, p)) / np.sqrt(5.0) + 0.6 * rng.normal(size=(n + 500, p))
    y = factors @ rng.normal(size=5) / np.sqrt(5.0) + 0.5 * rng.normal(size=n + 500)
    return X[:n], y[:n], X[n:], y[n:]


@each_value(1)
@pytest.mark.slow
@quiet
@pytest.mark.parametrize(("n", "p"), [(2000, 60), (2000, 500), (1000, 1500)])
@pytest.mark.parametrize("signal", [True, False])
def test_many_columns_do_not_drown_a_regression(n, p, signal):
    X, y, X_test, y_test = numbers(n, p)
    if not signal:
        y, y_test = (np.random.default_rng(1).normal(size=len(one)) for one in (y, y_test))
    model = DPCoordinateDescentRegressor(2000.0 / n, solver="joint", random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > (0.1 if signal else -0.05)


@quiet
@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_a_lasso_of_many_columns_goes_as_far_as_its_penalty_allows(alpha):
    # Passes come a part of the way. Means of columns are noisy, so that those of predictions are
    # not 0: the intercept follows from what is kept of the slopes.
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6000, 200))
        y = 10.0 * (2.0 * X[:, 0] - X[:, 1] + rng.normal(size=6000))
        model = DPLasso(1.0, alpha=alpha, random_state=seed).fit(X[:3000], y[:3000])
        assert model.solver_ == "joint"
        scores.append(model.score(X[3000:], y[3000:]))
    assert min(scores) > -0.02
    assert np.median(scores) > (0.5 if alpha == 1.0 else 0.15)


def test_whole_gradients_of_numbers_need_normal_noise():
    X, y, *_ = numbers(200, 5)
    for settings in ({"noise": "inid_laplace"}, {"delta": 0.0, "noise": "inid_gaussian"}):
        with pytest.raises(ValueError, match=r"'noise' parameter.*solver='joint'"):
            DPCoordinateDescentRegressor(solver="joint", **settings).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1e4])
def test_scores_are_drawn_in_by_the_noise_that_simulations_give_them(epsilon):
    X, y = made()
    seen, plans = [], []
    original = GradientPlan.slope_noise

    def spy(plan):
        plans.append(plan)
        return original(plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GradientPlan, "slope_noise", spy)
        fitted(X, y, epsilon, solver="joint")
    plan, steps = plans[0], plans[0].steps
    assert (np.ptp(steps) > 0.0) == (epsilon > 10.0)  # steps grow where there is little noise
    rng = np.random.default_rng(0)
    deviation = float(plan.mechanism.standard_deviation[0])
    for _ in range(2000):  # rows of zeros: nothing pulls the slopes back
        velocity, slope, path = 0.0, 0.0, []
        for draw, step in zip(rng.normal(0.0, deviation, plan.n_passes), steps, strict=True):
            velocity = 0.9 * velocity + draw / plan.n_samples
            slope -= step * velocity
            path.append(slope)
        seen.append(plan.average(np.array(path)))
    assert np.var(seen) == pytest.approx(plan.slope_noise(), rel=0.2)


@each_value(1)
@pytest.mark.parametrize("alpha", [0.05, 1.0, 10.0, 1e100])
@pytest.mark.parametrize("epsilon", [1.0, 100.0])
def test_no_ridge_is_too_large_for_the_step(alpha, epsilon):
    X, y = made()
    model = fitted(X, y, epsilon, alpha=alpha, l1_ratio=0.0)
    free = fitted(X, y, epsilon)
    assert np.abs(model.coef_path_).max() < np.abs(free.coef_path_).max()
    assert model.score(X, y) > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_of_passes_means_and_counts_is_what_is_charged_for(n_classes):
    passes, means, intercepts, counts = [], [], [], []

    def watched(mechanism, integers, draws):
        # In units of the deviation that is charged for.
        unit = mechanism.grid_size[0] / mechanism.standard_deviation[0]
        some = np.asarray(draws) * unit
        {10: means, 12: counts}.get(draws.size, passes).append(some.ravel())
        if draws.size in (6, 18):
            intercepts.append(some.reshape(-1, 6)[:, -1])
        return integers + draws

    X, y = made(1000, n_classes=n_classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "plus_noise", watched)
        for seed in range(60):
            fitted(X, y, solver="joint", n_passes=5, random_state=seed)
    assert (len(means), len(passes), len(counts)) == (60, 300, 60 * (n_classes == 2))
    for several in (means, passes, intercepts, counts)[: 3 + (n_classes == 2)]:
        draws = np.concatenate(several)
        assert abs(np.std(draws) - 1.0) < 6.2 / np.sqrt(2.0 * draws.size)  # a false alarm of 1e-9


def test_two_names_are_one_class():
    from skdpnoise import DPLogisticRegression
    from skdpnoise.linear_model import DPLogisticRegression as same

    assert DPLogisticRegression is same is DPLogisticCD
