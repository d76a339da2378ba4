"""The private regressor: units, bounds, penalties, budget."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, PrivacyWarning
from skdpnoise.accounting import session
from skdpnoise.kernels import sizes
from skdpnoise.linear_model._standard_units import LIMIT, Standardisation
from skdpnoise.linear_model.solvers import final_steps
from tests._cases import quick

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")


def _problem(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([10.0, -3.0, 0.0], [2.0, 0.5, 1.0], size=(n, 3))
    y = 40.0 + 2.0 * X[:, 0] - 4.0 * X[:, 1] + rng.normal(size=n)
    return X, y


def _model(**settings):
    return DPCoordinateDescentRegressor(**{"epsilon": 50.0, "random_state": 0, **settings})


def test_little_noise_gives_nearly_least_squares_in_the_units_of_the_user():
    X, y = _problem(40_000)
    private, public = _model(n_passes=40, clip=5.0).fit(X, y), LinearRegression().fit(X, y)
    np.testing.assert_allclose(private.coef_, public.coef_, atol=0.05)
    assert private.intercept_ == pytest.approx(public.intercept_, abs=0.7)


def test_predictions_are_the_linear_function_of_clipped_features():
    X, y = _problem()
    model = _model().fit(X, y)
    far = np.vstack([X, X * 100.0])
    by_hand = np.clip(far, *model.clip_range_) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(far), by_hand, rtol=1e-9)


@quick("-7")
@pytest.mark.parametrize("power", [-20, -7, 6, 20])
def test_a_column_in_other_units_by_a_power_of_two_gives_the_same_predictions(power):
    X, y = _problem()
    factor = np.array([2.0**power, 1.0, 1.0])
    plain, scaled = _model(epsilon=2.0).fit(X, y), _model(epsilon=2.0).fit(X * factor, y)
    np.testing.assert_allclose(scaled.predict(X * factor), plain.predict(X), rtol=1e-9)
    np.testing.assert_allclose(scaled.coef_ * factor, plain.coef_, rtol=1e-9)


@quick("1000000.0--30000000.0")
@pytest.mark.parametrize("factor, shift", [(1e6, -3e7), (1e-6, 4e-3), (10.0, 1e6), (1.0, -1e9)])
def test_rescaled_and_shifted_columns_and_targets_fit_as_well(factor, shift):
    X, y = _problem()
    model = _model(epsilon=5.0)
    reference = model.fit(X, y).score(X, y)
    moved = X * factor + shift
    assert model.fit(moved, y * factor + shift).score(moved, y * factor + shift) == pytest.approx(
        reference, abs=0.02
    )


def test_the_path_has_an_iterate_for_each_pass_and_ends_in_the_average():
    X, y = _problem()
    model = _model(n_passes=10).fit(X, y)
    assert model.coef_path_.shape == (10, 3)
    assert model.intercept_path_.shape == (10,)
    np.testing.assert_allclose(model.coef_path_[-2:].mean(axis=0), model.coef_)
    assert model.n_passes_ == 10


def test_an_l1_penalty_makes_zeros_and_an_l2_penalty_shrinks():
    X, y = _problem()
    plain = _model().fit(X, y)
    lasso = _model(alpha=0.2, l1_ratio=1.0).fit(X, y)
    ridge = _model(alpha=1.0, l1_ratio=0.0).fit(X, y)
    assert lasso.coef_[2] == 0.0
    assert (lasso.coef_[:2] != 0.0).all()
    assert (np.abs(ridge.coef_[:2]) < 0.8 * np.abs(plain.coef_[:2])).all()


@pytest.mark.slow
def test_without_an_intercept_the_function_goes_through_the_origin():
    rng = np.random.default_rng(0)
    X = rng.normal([5.0, 1.0], 1.0, size=(5000, 2))
    model = _model(fit_intercept=False, n_passes=30).fit(X, X @ [1.0, 2.0])
    assert model.intercept_ == 0.0
    assert model.predict(np.zeros((1, 2)))[0] == 0.0
    np.testing.assert_allclose(model.coef_, [1.0, 2.0], atol=0.2)


def test_public_bounds_save_the_releases_that_would_find_them():
    X, y = _problem()
    bounds = {"feature_bounds": ([0.0, -6.0, -5.0], [20.0, 0.0, 5.0]), "target_bounds": (40, 120)}
    bounds["solver"] = "gradient"
    private, bounded = _model().fit(X, y), _model(**bounds).fit(X, y)
    labels = [[r.label for r in m.privacy_.releases] for m in (private, bounded)]
    search, steps = (
        ["median", "spread", "mean square", "mean"],
        ["means", "mean absolute deviations"],
    )
    found = ["magnitudes", "locations, coarse", "locations, digits", *steps]
    assert labels[0][:9] == [f"target: {step}" for step in [*search, *found]]
    assert labels[0][9:11] == ["magnitudes", "locations, coarse"]
    model = ["gradients", "residuals"]
    assert labels[1] == [*(f"target: {step}" for step in steps), *steps, *model]
    assert bounded.score(X, y) > 0.9


def test_bounds_may_be_known_for_some_columns_only():
    X, y = _problem()
    model = _model(feature_bounds=([0.0, -np.inf, -5.0], [20.0, np.inf, 5.0])).fit(X, y)
    labels = [release.label for release in model.privacy_.releases]
    magnitudes = model.privacy_.releases[labels.index("magnitudes")]
    assert magnitudes.n_coordinates == 201  # of one column
    assert {"means", "means of bounded columns"} < set(labels)
    assert model.score(X, y) > 0.9


def test_add_remove_buys_the_number_of_records():
    X, y = _problem()
    model = _model(adjacency="add_remove").fit(X, y)
    assert model.privacy_.releases[0].label == "number of records"
    assert model.privacy_.guarantee.adjacency == "add_remove"
    assert model.score(X, y) > 0.9


@pytest.mark.slow
def test_pure_privacy_uses_laplace_noise_and_chooses_where_the_target_is():
    X, y = _problem()
    report = _model(delta=0.0, solver="gradient").fit(X, y).privacy_
    found = [(release.label, release.noise) for release in report.releases]
    choices = [("target: median", "permute_and_flip"), ("target: spread", "permute_and_flip")]
    assert found[:2] == choices
    assert {noise for _, noise in found[2:]} == {"inid_laplace"}
    assert report.total.pure_epsilon <= 50.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["iid_gaussian", "spr_laplace", "inid_laplace", "spr_gaussian"])
def test_every_noise_fits(noise):
    X, y = _problem()
    model = _model(noise=noise).fit(X, y)
    used = {release.noise for release in model.privacy_.releases}
    assert used - {"permute_and_flip"} == {noise}
    assert ("permute_and_flip" in used) == noise.endswith("laplace")
    assert model.score(X, y) > 0.9


def test_the_budget_of_the_passes_grows_by_the_factor_asked_for():
    X, y = _problem()
    passes = {}
    for growth in (1.0, 1.5):
        model = _model(budget_growth=growth, n_passes=5).fit(X, y)
        (passes[growth],) = [r for r in model.privacy_.releases if r.label == "gradients"]
    assert passes[1.0].scale[0] == passes[1.0].scale[1]
    assert passes[1.5].scale[1] / passes[1.5].scale[0] == pytest.approx(1.5**2)  # mu ~ g^(t/2)
    assert passes[1.0].loss.mu == pytest.approx(passes[1.5].loss.mu, rel=1e-6)


def test_error_weights_put_the_noise_where_it_is_asked_to_be():
    X, y = _problem()
    weights = [16.0, 1.0, 1.0, 1.0]
    model = _model(error_weights=weights, budget_growth=1.0).fit(X, y)
    (gradients,) = [r for r in model.privacy_.releases if r.label == "gradients"]
    assert gradients.scale[1] / gradients.scale[0] == pytest.approx(16**0.25)  # w^(-1/4)


@pytest.mark.slow
def test_less_epsilon_fits_worse():
    X, y = _problem(2000)
    scores = [
        np.median([_model(epsilon=e, random_state=s).fit(X, y).score(X, y) for s in range(5)])
        for e in (0.5, 3.0, 20.0)
    ]
    assert scores[0] < scores[1] < scores[2]


def test_drowned_columns_are_left_out_with_a_warning_that_says_what_helps():
    X, y = _problem(200)
    with pytest.warns(
        PrivacyWarning, match=r"leaves out 3 of 3 columns \(0, 1, 2\): .*epsilon=0.01 .*bounds"
    ):
        model = _model(epsilon=0.01).fit(X, y)
    with pytest.warns(PrivacyWarning, match=r"one constant, .*hides where .*target_bounds"):
        predictions = model.fit(X, y).predict(X)
    assert np.ptp(predictions) == 0.0
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert np.isinf(model.clip_range_).all()


def test_enough_data_gives_no_warning():
    X, y = _problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "NOT PRIVATE")
        _model(epsilon=3.0).fit(X, y)


def test_a_seed_repeats_a_fit_and_another_seed_does_not():
    X, y = _problem()
    for solver in ("gradient", "gram"):
        first, again, other = (_model(random_state=s, solver=solver).fit(X, y) for s in (1, 1, 2))
        np.testing.assert_array_equal(first.coef_, again.coef_)
        assert (first.coef_ != other.coef_).any()


def test_generators_are_seeds_too():
    X, y = _problem()
    one, two = (_model(random_state=np.random.default_rng(3)).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_a_rare_indicator_within_public_bounds_keeps_its_coefficient():
    rng = np.random.default_rng(0)
    X = (rng.random((20_000, 1)) < 0.02).astype(float)
    y = 2.0 * X[:, 0] + 0.1 * rng.normal(size=20_000)
    bounds = {"feature_bounds": (0, 1), "target_bounds": (-1, 3)}
    model = _model(n_passes=200, budget_growth=1.0, **bounds).fit(X, y)
    assert model.coef_[0] == pytest.approx(2.0, abs=0.2)
    assert model.clip_range_[1, 0] >= 1.0 - 1e-12


def test_descents_between_public_bounds_that_are_far_beyond_the_columns_are_of_use():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(10_000, 4))
    y = X @ [1.0, -1.0, 0.5, 0.25] + 0.3 * rng.normal(size=10_000)
    scores = []
    for far in (15, 100):  # no value is beyond 12
        bounds = {"feature_bounds": (0, far), "target_bounds": (-far, far)}
        model = _model(epsilon=5.0, solver="gradient", **bounds).fit(X, y)
        # Columns that drown in their bounds are searched, and clipped as without any.
        assert (model.clip_range_[1] >= far * (1.0 - 1e-12)).all() == (far == 15)
        scores.append(model.score(X, y))
    assert scores[0] > 0.94
    assert scores[1] > 0.5
    labels = y > np.median(y)
    for far in (15, 100):
        model = DPLogisticCD(5.0, 0.0, feature_bounds=(0, far), random_state=0).fit(X, labels)
        assert model.score(X, labels) > 0.89


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_columns_that_drown_in_wide_bounds_are_searched_within_the_guarantee(adjacency):
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 1.0, size=(20_000, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=20_000)
    bounds = ([-2.0, -1e5, -2.0], [6.0, 1e5, 6.0])
    model = _model(
        epsilon=1.0,
        adjacency=adjacency,
        feature_bounds=bounds,
        target_bounds=(-15.0, 15.0),
    ).fit(X, y)
    labels = [release.label for release in model.privacy_.releases]
    assert labels.index("magnitudes") > labels.index("mean absolute deviations")
    assert model.privacy_.guarantee.epsilon <= 1.0 + 1e-9
    low, high = model.clip_range_
    assert high[0] > 4.0 and -10.0 < low[1] < 0.0 and 4.0 < high[1] < 300.0
    assert model.coef_[:2] == pytest.approx([1.0, -1.0], abs=0.35)
    facts = {"feature_bounds": bounds, "target_bounds": (-15.0, 15.0)}
    pure = _model(epsilon=1.0, delta=0.0, **facts).fit(X, y)
    assert "magnitudes" not in [release.label for release in pure.privacy_.releases]


@pytest.mark.parametrize("n", [1000, 20_000])
@pytest.mark.parametrize("beside", ["open target", "open column"])
def test_columns_that_are_searched_leave_half_of_the_model(n, beside):
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 1.0, size=(n, 12))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    low, high = np.full(12, -1e5), np.full(12, 1e5)
    facts = {"target_bounds": (-15.0, 15.0)} if beside == "open column" else {}
    if facts:
        low[0], high[0] = -np.inf, np.inf
    for epsilon in (0.3, 3.0):
        model = _model(epsilon=epsilon, feature_bounds=(low, high), **facts).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert model.privacy_.guarantee.epsilon <= epsilon + 1e-9


def test_units_between_those_of_columns_and_bounds_clip_at_the_same_values():
    center, scale, used = np.array([1.0, -2.0]), np.array([0.5, 3.0]), np.ones(2, dtype=bool)
    given = Standardisation(center, scale, used, np.array([LIMIT, 16.0 * LIMIT]))
    softened = given.softened()
    np.testing.assert_allclose(softened.range, given.range)
    np.testing.assert_allclose(softened.scale, [0.5, 12.0])
    np.testing.assert_allclose(softened.spread, [1.0, 0.25])
    # A value at a bound in one row of p, and at the centre elsewhere: the scale is its mean
    # magnitude, and the mean square at most what the limit is in scales of these units.
    for p in (0.3, 0.01, 1e-4):
        one = Standardisation(np.zeros(1), np.full(1, p), np.ones(1, dtype=bool), np.full(1, 1 / p))
        assert p * one.softened()(np.ones((1, 1)))[0, 0] ** 2 <= LIMIT * (1.0 + 1e-9)


@pytest.mark.parametrize("solver", ["gradient", "gram"])
def test_a_penalty_means_nearly_the_same_however_wide_public_bounds_are(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=20_000)
    facts = {"solver": solver, "alpha": 0.2, "l1_ratio": 0.0, "random_state": 0}
    for far in (4.0, 40.0):
        model = DPCoordinateDescentRegressor(50.0, feature_bounds=(-far, far), **facts).fit(X, y)
        # Of a mean square of 1 the penalty leaves 1 / 1.2; far bounds take more passes.
        assert 0.6 < model.coef_[0] < 0.9


def with_a_last_release(monkeypatch, residuals=final_steps.Recentre.contributions):
    """Return a fit at whose end residuals are released, and how many rows were taken at a time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X @ [1.0, -1.0, 0.5] + 1.0 + rng.normal(size=2000)
    taken = []

    def counted(step, path, plan, rows):
        for some in residuals(step, path, plan, rows):
            taken.append(len(some))
            yield some

    model = DPCoordinateDescentRegressor(2.0, solver="gradient", random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(final_steps.Recentre, "contributions", counted)
        return model.fit(X, y), taken


def test_every_row_counts_once_in_the_last_release_whatever_the_blocks(monkeypatch):
    models = []
    for n_rows in (8192, 7, 1999):
        monkeypatch.setattr(sizes, "MOST_ROWS", n_rows)
        model, taken = with_a_last_release(monkeypatch)
        assert sum(taken) == 2000
        assert max(taken) == min(n_rows, 2000)
        models.append(model)
    for model in models[1:]:
        assert (model.coef_ == models[0].coef_).all()
        assert model.intercept_ == models[0].intercept_


@pytest.mark.slow
def test_the_noise_of_the_last_release_is_what_is_charged_for(monkeypatch):
    added, add = [], session.plus_noise

    def adding(mechanism, integers, noise):
        unit = mechanism.grid_size.flat[0] / mechanism.standard_deviation.flat[0]
        added.append(np.ravel(noise)[0] * unit)
        return add(mechanism, integers, noise)

    monkeypatch.setattr(session, "plus_noise", adding)
    X, last = np.random.default_rng(0).normal(size=(2000, 1)), []
    for seed in range(40):
        model = DPCoordinateDescentRegressor(5.0, solver="gradient", random_state=seed)
        model.set_params(feature_bounds=(-3, 3), target_bounds=(-3, 3)).fit(X, X[:, 0])
        assert "residuals" in [one.label for one in model.privacy_.releases]
        last.append(added[-1])
    # Of 40 normal numbers: a false alarm of 1e-9 or less.
    assert 0.4 < np.std(last) < 1.75


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_row_that_is_no_number_by_the_end_of_a_fit_counts_as_one_row(value, monkeypatch):
    # The user's memory may change after it was checked: the guarantee may not rest on it.
    residuals = final_steps.Recentre.contributions

    def poisoned(*facts):
        for values in residuals(*facts):
            values[5] = value
            yield values

    plain, changed = (with_a_last_release(monkeypatch, one) for one in (residuals, poisoned))
    assert changed[1] == plain[1] != []
    # One row of 2,000 moves a mean by a few thousandths.
    assert abs(changed[0].intercept_ - plain[0].intercept_) < 0.05


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_a_fit_without_memory_for_a_copy_is_what_it_would_have_been(dtype, monkeypatch):
    # What is short of memory after the charge is slow, and no error: the fit is paid for.
    rng, empty = np.random.default_rng(0), np.empty
    X = (100.0 * rng.normal(size=(400, 3))).astype(dtype)
    y = X @ [1.0, -1.0, 0.5]
    model = DPCoordinateDescentRegressor(2.0, solver="gradient", random_state=0)
    expected, refused = clone(model).fit(X, y), []

    def refuse_tables(shape, *args, **kinds):
        if shape == X.shape:
            refused.append(shape)
            raise MemoryError
        return empty(shape, *args, **kinds)

    monkeypatch.setattr(np, "empty", refuse_tables)
    found = model.fit(X, y)
    # Whole numbers are converted to what is read, before the charge, and not copied once more.
    assert bool(refused) == (dtype != np.int16)
    assert (found.coef_ == expected.coef_).all()
    assert found.intercept_ == expected.intercept_
