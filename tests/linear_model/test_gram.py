"""Linear models from one release of second moments: the zero-noise limit, paths, bad luck."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import ElasticNet, Ridge, lasso_path

from skdpnoise import DPCoordinateDescentRegressor, DPLassoPath
from skdpnoise.ledger import Account
from skdpnoise.linear_model._budget import split_budget
from skdpnoise.linear_model._records import Rows, Settings
from skdpnoise.linear_model._standard_units import plain_units
from skdpnoise.linear_model._tuned import choose_row_norm, prefers_moments
from skdpnoise.linear_model.solvers.moments import make_pseudo_data, plan_moments
from skdpnoise.mechanisms import SymmetricMatrixMechanism
from skdpnoise.privacy import PrivacyGuarantee
from tests._cases import each_value, quick
from tests.linear_model._public import public_schema

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

BOUNDS = {"feature_bounds": (-30.0, 40.0), "target_bounds": (-40.0, 120.0)}
ESTIMATORS = [DPCoordinateDescentRegressor(solver="gram"), DPLassoPath()]
BOTH = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def _problem(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([10.0, -3.0, 0.0], [2.0, 0.5, 1.0], size=(n, 3))
    y = 40.0 + 2.0 * X[:, 0] - 4.0 * X[:, 1] + rng.normal(size=n)
    return X, y


def _model(**settings):
    defaults = {"epsilon": 50.0, "random_state": 0, "solver": "gram"}
    return DPCoordinateDescentRegressor(**{**defaults, **settings})


def _moments(seed=0, n=400, p=4, constant=True):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + rng.normal(size=p)
    target = Z @ rng.normal(size=p) + rng.normal(size=n) + 2.0
    columns = [Z, target] + [np.ones(n)] * constant
    rows = np.column_stack(columns)
    return Z, target, rows.T @ rows / n


# No noise is scikit-learn's answer


@each_value(1)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 2.0])
def test_pseudo_data_give_the_answers_of_scikit_learn(alpha, ratio, intercept):
    Z, target, moments = _moments(constant=intercept)
    pseudo = make_pseudo_data(moments, np.ones(4, dtype=bool), 0.0)
    *coef, bias = pseudo.solve([alpha], ratio)[0]
    if ratio == 0.0:
        model = Ridge(alpha * len(Z), fit_intercept=intercept, solver="svd")
    else:
        model = ElasticNet(
            alpha, l1_ratio=ratio, fit_intercept=intercept, tol=1e-13, max_iter=10**6
        )
    model.fit(Z, target)
    np.testing.assert_allclose(coef, model.coef_, atol=1e-8)
    assert bias == pytest.approx(model.intercept_, abs=1e-8)


def _without_noise(monkeypatch, estimator, X, y):
    """Fit without noise on the second moments; return the model and the rows that it solves."""
    mechanisms = []
    charge = Account.charge

    def noted(self, label, mechanism):
        charge(self, label, mechanism)
        mechanisms.append(mechanism)

    monkeypatch.setattr(Account, "charge", noted)
    sample = SymmetricMatrixMechanism.sample
    monkeypatch.setattr(SymmetricMatrixMechanism, "sample", lambda self, w: 0 * sample(self, w))
    model = estimator.fit(X, y)
    features, _, center, scale = model._standardised
    grid_size = mechanisms[-1].row_grid_size
    rows = np.column_stack([features(X), (y - center) / scale])
    unit = grid_size[: rows.shape[1]]
    most = np.floor(np.append(features.limit, 60.0) / unit)  # whole steps within the limits
    return model, np.clip(np.rint(rows / unit), -most, most) * unit


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_without_noise_a_fit_is_scikit_learns_on_the_clipped_columns(monkeypatch, ratio):
    X, y = _problem(2000)
    # the noise level that shrinks is known from epsilon: none to speak of
    settings = {
        "epsilon": 1e7,
        "noise": "inid_gaussian",
        "delta": 0.1,
        "row_norm": 100.0,
        "alpha": 0.05,
    }
    model, rows = _without_noise(monkeypatch, _model(**settings, l1_ratio=ratio), X, y)
    features, standard, _, scale = model._standardised
    plain = ElasticNet(0.05, l1_ratio=ratio, tol=1e-13, max_iter=10**6)
    plain.fit(rows[:, :-1], rows[:, -1])
    np.testing.assert_allclose(standard[0, :-1], plain.coef_, atol=1e-8)
    assert standard[0, -1] == pytest.approx(plain.intercept_, abs=1e-8)
    np.testing.assert_allclose(model.coef_, scale * plain.coef_ / features.scale, atol=1e-8)


@pytest.mark.slow
def test_without_noise_a_path_is_that_of_lasso_path(monkeypatch):
    X, y = _problem(2000)
    settings = {"epsilon": 1e7, "noise": "iid_laplace", "row_norm": 100.0, "random_state": 0}
    path, rows = _without_noise(monkeypatch, DPLassoPath(**settings), X, y)
    centred = rows - rows.mean(axis=0)
    alphas, coefs, _ = lasso_path(
        centred[:, :-1], centred[:, -1], alphas=path.alphas_, tol=1e-13, max_iter=10**6
    )
    features, _, _, scale = path._standardised
    np.testing.assert_array_equal(path.alphas_, alphas)
    assert path.coefs_.shape == coefs.shape
    np.testing.assert_allclose(path.coefs_, scale * coefs / features.scale[:, None], atol=1e-7)
    # the first penalty is the least one that leaves nothing
    assert np.abs(path.coefs_[:, 0]).max() < 1e-9 < np.abs(path.coefs_[:, 1]).max()


# Noise


def test_little_noise_gives_nearly_least_squares_in_the_units_of_the_user():
    X, y = _problem(40_000)
    model = _model().fit(X, y)
    np.testing.assert_allclose(model.coef_, [2.0, -4.0, 0.0], atol=0.05)
    by_hand = np.clip(100.0 * X, *model.clip_range_) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(100.0 * X), by_hand, rtol=1e-9)
    assert not hasattr(model, "coef_path_")
    assert not hasattr(model, "n_passes_")


def test_repaired_moments_are_positive_definite_and_hardly_changed_where_noise_is_small():
    _, _, moments = _moments()
    noisy = moments - 1.5 * np.linalg.eigvalsh(moments)[0] * np.eye(len(moments))
    assert np.linalg.eigvalsh(noisy)[0] < 0.0
    used, level = np.ones(4, dtype=bool), 0.1
    pseudo = make_pseudo_data(noisy, used, level)
    second = pseudo.X.T @ pseudo.X / len(pseudo.y)
    assert np.linalg.eigvalsh(second)[0] > level / 4
    exact, repaired = (make_pseudo_data(moments, used, k).X for k in (0.0, 1e-3))
    np.testing.assert_allclose(repaired.T @ repaired, exact.T @ exact, atol=1e-4)


@pytest.mark.usefixtures("the_same_words")
def test_alpha_auto_is_a_ridge_of_half_the_noise_level():
    X, y = _problem()
    loud, quiet = (_model(epsilon=e, **BOUNDS).fit(X, y) for e in (1.0, 10.0))
    assert 0.0 < quiet.alpha_ < loud.alpha_
    given = _model(epsilon=1.0, alpha=loud.alpha_, l1_ratio=0.0, **BOUNDS).fit(X, y)
    np.testing.assert_array_equal(given.coef_, loud.coef_)
    assert _model(alpha=0.3).fit(X, y).alpha_ == 0.3
    assert DPCoordinateDescentRegressor(n_passes=2).fit(X, y).alpha_ == 0.0


@quick(
    "DPCoordinateDescentRegressor-replace_one-iid_gaussian", "DPLassoPath-replace_one-inid_laplace"
)
@each_value(1)
@pytest.mark.parametrize("noise", ["iid_gaussian", "inid_gaussian", "iid_laplace", "inid_laplace"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@BOTH
def test_every_noise_and_adjacency_fits_and_keeps_the_guarantee(estimator, adjacency, noise):
    X, y = _problem()
    delta = 0.0 if noise.endswith("laplace") else 1e-6
    settings = {"epsilon": 20.0, "delta": delta, "noise": noise, "adjacency": adjacency}
    model = type(estimator)(**{**estimator.get_params(), **settings, "random_state": 0}).fit(X, y)
    assert model.score(X, y) > 0.9
    used = {release.noise for release in model.privacy_.releases}
    assert used - {"permute_and_flip"} == {noise}
    assert model.privacy_.releases[-1].label == "second moments"
    assert model.privacy_.total.delta(20.0) <= delta
    assert (model.privacy_.releases[0].label == "number of records") == (adjacency == "add_remove")


def test_a_larger_ball_means_more_noise_up_to_the_longest_row():
    X, y = _problem()
    scales = [
        _model(row_norm=r, **BOUNDS).fit(X, y).privacy_.releases[-1].scale[1]
        for r in (1.0, 2.0, 1e3, 1e6)
    ]
    assert scales[1] == pytest.approx(4.0 * scales[0], rel=1e-6)
    assert scales[2] == scales[3]


def test_the_ball_follows_the_noise():
    radii = [choose_row_norm(10, 9.0, lambda r, k=k: k * r**2) for k in (1.0, 1e-4, 1e-9)]
    assert radii[0] == pytest.approx(0.8 * np.sqrt(10))
    assert radii[0] < radii[1] < radii[2] == 9.0


@each_value(1)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_memory_layout_and_order_of_records_do_not_change_a_bit(order, n_jobs):
    X, y = _problem(60_000)
    settings = {"feature_bounds": (-30.0, 40.0), "target_bounds": (-40.0, 120.0)}
    reference = _model(**settings).fit(X, y)
    other = _model(**settings, n_jobs=n_jobs).fit(np.asarray(X[::-1], order=order), y[::-1])
    np.testing.assert_array_equal(other.coef_, reference.coef_)


# The choice


def test_auto_takes_second_moments_where_their_noise_is_small():
    X, y = _problem()
    auto = {"solver": "auto", "random_state": 0}
    assert DPCoordinateDescentRegressor(20.0, **auto).fit(X, y).solver_ == "gram"
    assert DPCoordinateDescentRegressor(0.1, **auto).fit(X, y).solver_ == "gradient"
    reach = np.ones(3)
    assert prefers_moments(1e-3, reach)
    assert not prefers_moments(1.0, reach)
    # descent needs scales that hold all within the bounds
    assert prefers_moments(1.0, 10.0 * reach)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_passes": 3},
        {"clip": 1.0},
        {"budget_growth": 1.2},
        {"error_weights": "uniform"},
        {"error_weights": [1.0, 2.0, 1.0, 1.0]},
        {"noise": "spr_gaussian"},
    ],
    ids=str,
)
def test_auto_takes_descent_where_a_parameter_asks_for_it(settings):
    model = _model(solver="auto", **settings).fit(*_problem(1000))
    assert model.solver_ == "gradient"
    assert model.n_passes_ == len(model.coef_path_)


def test_a_noise_that_matrices_do_not_take_is_refused_before_anything_is_spent(monkeypatch):
    monkeypatch.setattr(Account, "charge", lambda *args: pytest.fail("charged"))
    with pytest.raises(ValueError, match=r"'noise' parameter .* solver='gram'. Got 'spr_gaussian'"):
        _model(noise="spr_gaussian").fit(*_problem(100))
    with pytest.raises(ValueError, match="laplace"):
        _model(noise="inid_gaussian", delta=0.0).fit(*_problem(100))


# The path


def test_every_model_of_a_path_costs_one_release():
    X, y = _problem()
    path = DPLassoPath(5.0, random_state=0).fit(X, y)
    one = _model(epsilon=5.0, alpha=0.1, l1_ratio=1.0).fit(X, y)
    assert str(path.privacy_.total) == str(one.privacy_.total)
    assert [r.label for r in path.privacy_.releases] == [r.label for r in one.privacy_.releases]
    from_path = path.model(0.1)
    np.testing.assert_array_equal(from_path.coef_, one.coef_)
    assert from_path.get_params() == {**one.get_params(), "alpha": 0.1}
    assert from_path.privacy_ is path.privacy_
    np.testing.assert_array_equal(path.predict(X, alpha=0.1), one.predict(X))
    ridge = path.model(0.2, l1_ratio=0.0)
    assert (ridge.coef_ != from_path.coef_).all()
    assert from_path.n_features_in_ == 3


def test_a_path_runs_from_nothing_to_everything():
    X, y = _problem()
    path = DPLassoPath(random_state=0).fit(X, y)
    assert path.coefs_.shape == (3, 100)
    assert path.intercepts_.shape == (100,)
    assert (np.diff(path.alphas_) < 0).all()
    assert path.alphas_[-1] == pytest.approx(1e-3 * path.alphas_[0])
    sizes = np.abs(path.coefs_ * X.std(axis=0)[:, None]).sum(axis=0)
    assert sizes[0] < 1e-6 < sizes[-1]
    k = 40
    np.testing.assert_allclose(
        path.predict(X, alpha=path.alphas_[k]),
        np.clip(X, *path.clip_range_) @ path.coefs_[:, k] + path.intercepts_[k],
        rtol=1e-6,
    )
    np.testing.assert_allclose(path.predict(X), path.predict(X, alpha=path.alpha_), rtol=1e-10)
    sparse = path.model(4.0 * path.alpha_).coef_  # a default penalty lets a little noise through
    assert sparse[2] == 0.0
    assert (sparse[:2] != 0.0).all()


def test_penalties_may_be_given():
    X, y = _problem()
    path = DPLassoPath(alphas=[0.01, 1.0, 0.1, 0.0], l1_ratio=0.5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(path.alphas_, [1.0, 0.1, 0.01, 0.0])
    assert path.coefs_.shape == (3, 4)
    for bad in ([[0.1]], [-1.0], [np.nan], []):
        with pytest.raises(ValueError, match="'alphas' parameter of DPLassoPath"):
            DPLassoPath(alphas=bad).fit(X, y)
    with pytest.raises(ValueError, match="'alpha'"):
        path.model(-1.0)


def test_names_of_features_are_handed_on():
    X, y = _problem(500)
    path = DPLassoPath(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert path.predict(pd.DataFrame(X, columns=list("abc")), alpha=0.1).shape == (500,)
    assert list(path.model(0.1).feature_names_in_) == list("abc")


# Bad luck


def _finite(model, X):
    parts = (model.coef_, model.intercept_, model.predict(X))
    parts += (model.coefs_, model.intercepts_) if hasattr(model, "coefs_") else ()
    return all(np.isfinite(part).all() for part in parts)


SETTINGS = [
    {},
    {"fit_intercept": False},
    {"delta": 0.0},
    {"adjacency": "add_remove"},
    {"feature_bounds": (-5.0, 5.0), "target_bounds": (-5.0, 5.0)},
    {"row_norm": 1e-3, "feature_bounds": (-5.0, 5.0), "target_bounds": (-5.0, 5.0)},
]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(
    "settings, epsilon", zip(SETTINGS, 2 * [1e-4, 1.0, 1e4], strict=True), ids=str
)
def test_whatever_the_noise_does_a_model_is_finite(estimator, settings, epsilon):
    rng = np.random.default_rng(0)
    tables = {
        "more columns than rows": rng.normal(size=(20, 40)),
        "constant columns": np.column_stack([rng.normal(size=200), np.ones(200), np.zeros(200)]),
        "all constant": np.full((50, 2), 3.0),
        "one column twice": np.repeat(rng.normal(size=(100, 1)), 2, axis=1),
        "all clipped": np.full((60, 2), 1e50) * rng.choice([-1.0, 1.0], size=(60, 2)),
    }
    made = type(estimator)(**{**estimator.get_params(), **settings, "epsilon": epsilon})
    for name, X in tables.items():
        for y in (X[:, 0] / max(1.0, np.abs(X[:, 0]).max()), np.zeros(len(X)), np.arange(len(X))):
            made.set_params(random_state=0)
            assert _finite(made.fit(X, np.asarray(y, dtype=float)), X), name


def test_no_penalty_at_all_is_still_sensible_when_the_noise_hides_a_direction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1)) + 1e-3 * rng.normal(size=(2000, 4))  # nearly one column
    y = X[:, 0] + 0.1 * rng.normal(size=2000)
    bounds = {"feature_bounds": (-5.0, 5.0), "target_bounds": (-5.0, 5.0)}
    scores = [
        _model(epsilon=1.0, alpha=0.0, random_state=s, **bounds).fit(X, y).score(X, y)
        for s in range(5)
    ]
    assert min(scores) > 0.5


@pytest.mark.parametrize(
    "name, value",
    [
        ("solver", "newton"),
        ("row_norm", 0.0),
        ("row_norm", np.inf),
        ("row_norm", "wide"),
        ("alpha", "best"),
    ],
)
def test_parameters_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=f"'{name}'"):
        _model(**{name: value}).fit(*_problem(50))


# Limits that are chosen


def _heavy(n=20_000, seed=0):
    """A column of which a tenth is far from the rest, and two others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 1] = np.where(rng.random(n) < 0.1, rng.exponential(10.0, n), X[:, 1])
    return X, X @ [1.0, 0.5, 0.0] + rng.normal(size=n)


@pytest.mark.parametrize("within", [False, True])
@BOTH
def test_a_column_whose_far_values_matter_gets_a_wide_limit_and_others_keep_theirs(
    estimator, within
):
    X, y = _heavy()
    bounds = {"feature_bounds": (-150.0, 150.0), "target_bounds": (-80.0, 80.0)} if within else {}
    settings = {**estimator.get_params(), "epsilon": 5.0, "random_state": 0, **bounds}
    model = type(estimator)(**settings).fit(X, y)
    widths = 0.5 * np.diff(model.clip_range_, axis=0)[0]
    assert widths[1] > 30.0
    assert widths[2] < 12.0
    assert model.coef_[1] == pytest.approx(0.5, abs=0.03)
    # What is fitted is what predicts.
    clipped = np.clip(X, *model.clip_range_)
    by_hand = clipped @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-9, atol=1e-9)
    assert model.score(X, y) > 0.8


def test_far_values_that_mean_nothing_keep_their_limit():
    X, y = _heavy()
    y -= 0.5 * X[:, 1] - 0.5 * np.clip(X[:, 1], -2.0, 2.0)
    for seed in range(5):
        model = _model(epsilon=2.0, random_state=seed).fit(X, y)
        assert (np.diff(model.clip_range_, axis=0) < 12.0).all()


def test_a_ridge_leaves_more_than_noisy_moments_say_by_its_optimism():
    columns, target, moments = _moments(seed=2)
    units = np.array([*columns.std(axis=0), target.std(), 1.0])
    moments = moments / np.outer(units, units)
    rng, deviation, more, stated = np.random.default_rng(0), 0.02, [], []
    level = deviation * np.sqrt(5.0)
    for _ in range(400):
        noise = np.triu(deviation * rng.normal(size=moments.shape))
        noisy = moments + noise + np.triu(noise, 1).T
        pseudo = make_pseudo_data(noisy, np.ones(4, dtype=bool), level)
        *slopes, intercept = pseudo.solve([0.5 * level], 0.0)[0]
        weights = np.array([*slopes, -1.0, intercept])
        more.append(weights @ (moments - noisy) @ weights)
        stated.append(pseudo.optimism)
    assert np.mean(stated) == pytest.approx(np.mean(more), rel=0.5)


def test_noise_chooses_no_limit():
    X, y = _problem(2000)
    for seed in range(20):
        model = _model(epsilon=0.5, random_state=seed).fit(X, y)
        assert (np.diff(model.clip_range_, axis=0)[0] < 40.0 * X.std(axis=0)).all()


def test_columns_of_two_values_keep_them_within_bounds_however_rare_one_is():
    rng = np.random.default_rng(0)
    X = (rng.random((20_000, 3)) < [0.5, 0.1, 0.02]).astype(float)
    y = X @ [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=20_000)
    bounds = {"feature_bounds": (0.0, 1.0), "target_bounds": (-2.0, 4.0)}
    model = _model(epsilon=10.0, **bounds).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, -1.0], atol=0.1)
    assert (model.clip_range_[1] >= 0.99).all()


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace"])
def test_no_record_moves_both_parts_of_rows_by_more_than_is_paid_for(adjacency, noise):
    delta = 0.0 if noise.endswith("laplace") else 1e-6
    model = _model(epsilon=1.0, delta=delta, noise=noise, adjacency=adjacency)
    settings, guarantee = Settings.of(model), PrivacyGuarantee(1.0, delta, adjacency)
    bounds = np.full((2, 3), [[-np.inf], [np.inf]])
    budget = split_budget(settings, 1, public_schema(bounds, bounds[:, :1]), guarantee)
    columns, wide = plain_units(4), np.array([60.0, 3.0, 12.0])
    release = plan_moments(settings, columns, 1e4, budget.for_records(1e4), wide=wide)
    assert release.two_parts.tolist() == [0, 2]
    rng, odd = np.random.default_rng(0), [-1e300, -30.0, -3.5, -1.0, 0.0, 1.0, 4.0, 20.0, np.inf]
    records = rng.normal(size=(400, 4)) * rng.choice([0.1, 1.0, 10.0, 100.0], size=(400, 1))
    records[::2] = rng.choice(odd, size=(200, 4))
    step = release.query.step(release.mechanism.grid_size)
    rows = (Rows(one[np.newaxis, :3], one[3:]) for one in records)
    upper = np.triu_indices(7)
    sums = np.array([step(release.tables(one))[upper] for one in rows])
    unit = release.mechanism.grid_size[upper]
    others = np.roll(sums, 1, axis=0) if adjacency == "replace_one" else 0
    moved = np.abs(sums - others) * unit
    profile = release.query.sensitivity(adjacency)
    assert (moved <= profile.per_coordinate).all()
    assert moved.sum(axis=1).max() <= profile.l1
    assert 0.6 * profile.l2 <= np.linalg.norm(moved, axis=1).max() <= profile.l2
    # Both parts are there, and far values are in the second.
    assert sums[:, -1].max() > 0
