"""Private scalers: scikit-learn's numbers without noise, charged with it, sensible on bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from skdpnoise import (
    BoundsClipper,
    DPMinMaxScaler,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyWarning,
)
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.preprocessing._scalers import LinearScaler, PrivateScaler, QuantileScaler
from skdpnoise.queries.quantiles import Quantiles
from tests._cases import each_value, quick

pytestmark = pytest.mark.usefixtures("the_same_words")


SCALERS = [DPStandardScaler, DPRobustScaler, DPMinMaxScaler]
GUARANTEES = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 0.0}, {"adjacency": "add_remove"}]


def table(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal([100.0, -3e-4, 7.0], [5.0, 2e-5, 1.0], size=(n, 3))


def bounds(X):
    """Bounds that hold; a test may read them from its own data."""
    margin = 0.1 * np.ptp(X, axis=0)
    return X.min(axis=0) - margin, X.max(axis=0) + margin


@pytest.fixture
def without_noise(monkeypatch):
    """Mechanisms that draw zeros, however they are calibrated."""

    def zeros(self, rng, n_releases=None, *, first=None):
        return np.zeros((n_releases or self.n_releases, self.sensitivity.n_coordinates), np.int64)

    monkeypatch.setattr(AdditiveMechanism, "sample", zeros)


HOOKS = {"_find": PrivateScaler, "_probabilities": QuantileScaler, "_steps": LinearScaler}


@pytest.mark.parametrize(("hook", "kind"), HOOKS.items(), ids=HOOKS)
def test_a_scaler_that_lacks_one_of_its_functions_cannot_be_made(hook, kind):
    others = dict.fromkeys(kind.__abstractmethods__ - {hook})
    with pytest.raises(TypeError, match=f"abstract .*{hook}"):
        type("Bare", (kind,), others)()


class TestWithoutNoise:
    @each_value(1)
    @pytest.mark.parametrize("settings", GUARANTEES, ids=str)
    @pytest.mark.parametrize("noise", ["auto", "iid_laplace"])
    @pytest.mark.parametrize("n", [500, 20_000])
    def test_standard_scaler_is_that_of_scikit_learn(self, settings, noise, n, without_noise):
        X = table(n)
        ours = DPStandardScaler(
            **{**settings, "epsilon": 20.0}, noise=noise, feature_bounds=bounds(X)
        ).fit(X)
        theirs = StandardScaler().fit(X)
        spread = theirs.scale_
        np.testing.assert_allclose(ours.mean_ / spread, theirs.mean_ / spread, atol=1e-8, rtol=0)
        np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-8)
        np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-8)
        np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-7)

    def test_standard_scaler_of_columns_whose_ranges_were_found(self, without_noise):
        X = np.random.default_rng(0).uniform([3.0, -1e6], [5.0, 2e6], size=(5000, 2))
        ours, theirs = DPStandardScaler(5.0, random_state=0).fit(X), StandardScaler().fit(X)
        np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-8)
        np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-8)

    @each_value(1)
    @pytest.mark.parametrize("settings", [{}, {"quantile_range": (10.0, 80.0)}], ids=str)
    @pytest.mark.parametrize("unit_variance", [True, False])
    def test_robust_scaler_is_within_a_bin(self, settings, unit_variance, without_noise):
        X = table()
        theirs = RobustScaler(unit_variance=unit_variance, **settings).fit(X)
        for public in (None, bounds(X)):
            ours = DPRobustScaler(
                5.0, unit_variance=unit_variance, feature_bounds=public, random_state=0, **settings
            ).fit(X)
            small = 0.02 * X.std(axis=0)  # interpolation makes it far less than a bin
            assert (np.abs(ours.center_ - theirs.center_) < small).all()
            assert (np.abs(ours.scale_ - theirs.scale_) < small).all()

    def test_min_max_scaler_with_bounds_at_the_ends_is_that_of_scikit_learn(self):
        X = table()
        public = X.min(axis=0), X.max(axis=0)
        for interval in ((0, 1), (-3.0, 5.0)):
            ours = DPMinMaxScaler(interval, feature_bounds=public).fit(X)
            theirs = MinMaxScaler(interval).fit(X)
            for name in ("data_min_", "data_max_", "data_range_", "scale_", "min_"):
                np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12)
            np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12)
            assert ours.privacy_.releases == ()


@each_value(1)
@pytest.mark.parametrize("Scaler", SCALERS)
@pytest.mark.parametrize("settings", GUARANTEES, ids=str)
def test_defaults_scale_columns_of_any_units(Scaler, settings):
    X = table()
    scaler = Scaler(**settings, random_state=0).fit(X)
    Z = scaler.transform(X)
    expected = {DPStandardScaler: (0.0, 1.0), DPRobustScaler: (0.0, 1.0 / 1.349)}
    center, spread = expected.get(Scaler, (0.5, 0.23))
    assert np.abs(np.median(Z, axis=0) - center).max() < 0.15
    assert np.abs(np.log(Z.std(axis=0) / spread)).max() < 0.35
    np.testing.assert_allclose(scaler.inverse_transform(Z), X, rtol=1e-9)


@pytest.mark.parametrize(
    ("Scaler", "label", "asks"),
    [
        (DPStandardScaler, "means and mean squares", True),
        (DPRobustScaler, "cumulative counts", True),
        (DPMinMaxScaler, "cumulative counts", False),
    ],
)
def test_everything_is_charged_and_the_last_release_is_one(Scaler, label, asks):
    X = table()
    report = Scaler(epsilon=1.0, delta=1e-6).fit(X).privacy_
    assert 0.9 < report.total.epsilon(1e-6) <= 1.0
    *search, last = report.releases
    assert {r.label for r in search} == {"magnitudes", "locations, coarse", "locations, digits"}
    assert last.n_releases == 1
    assert last.label == label
    shares = Scaler(adjacency="add_remove").fit(X).privacy_.releases
    assert shares[0].label == "number of records"
    if asks:  # with bounds too
        (only,) = Scaler(feature_bounds=bounds(X)).fit(X).privacy_.releases
        assert only.label == label


@pytest.mark.parametrize("Scaler", SCALERS)
def test_the_number_of_records_is_private_under_add_remove(Scaler):
    X = table()
    assert Scaler().fit(X).n_samples_seen_ == len(X)
    noisy = Scaler(adjacency="add_remove", random_state=0).fit(X).n_samples_seen_
    assert noisy != len(X)
    assert abs(noisy - len(X)) < 500
    public = DPMinMaxScaler(adjacency="add_remove", feature_bounds=bounds(X)).fit(X)
    assert not hasattr(public, "n_samples_seen_")


def test_bounds_may_be_known_for_some_columns_only():
    X = table()
    public = ([50.0, -np.inf, 0.0], [150.0, np.inf, np.inf])
    for Scaler in SCALERS:
        scaler = Scaler(feature_bounds=public, random_state=0).fit(X)
        magnitudes = scaler.privacy_.releases[0]
        assert (magnitudes.label, magnitudes.n_coordinates) == ("magnitudes", 2 * 201)
        assert 0.1 < scaler.transform(X)[:, 1].std() < 10.0
    assert scaler.data_min_[0] == 50.0
    assert scaler.data_min_[2] >= 0.0


def test_allocation_follows_the_ranges():
    """A column that is searched reaches further than one with bounds: more noise in its units."""
    X = table()
    public = ([80.0, -np.inf, 0.0], [120.0, np.inf, 14.0])
    scaler = DPStandardScaler(noise="inid_gaussian", feature_bounds=public).fit(X)
    low, high = scaler.privacy_.releases[-1].scale
    assert high > 1.02 * low
    uniform = DPStandardScaler(noise="iid_gaussian", feature_bounds=public).fit(X)
    low, high = uniform.privacy_.releases[-1].scale
    assert high == low


class TestParameters:
    def test_steps_can_be_left_out(self):
        X = table(2000)
        Z = DPStandardScaler(with_mean=False, random_state=0).fit(X)
        np.testing.assert_allclose(Z.transform(X), X / Z.scale_, rtol=1e-12)
        Z = DPStandardScaler(with_std=False, random_state=0).fit(X)
        assert Z.scale_ is None and Z.var_ is None
        assert Z.privacy_.releases[-1].label == "means"
        np.testing.assert_allclose(Z.transform(X), X - Z.mean_, rtol=1e-12)
        Z = DPRobustScaler(with_centering=False, random_state=0).fit(X)
        assert Z.center_ is None
        Z = DPRobustScaler(with_scaling=False, random_state=0).fit(X)
        assert Z.scale_ is None
        for Z in (
            DPStandardScaler(with_mean=False, with_std=False),
            DPRobustScaler(with_centering=False, with_scaling=False),
        ):
            assert Z.fit(X).privacy_.releases == ()
            np.testing.assert_array_equal(Z.transform(X), X)
            np.testing.assert_array_equal(Z.inverse_transform(X), X)

    def test_unit_variance_divides_by_the_range_of_a_normal_law(self):
        X = table(2000)
        plain = DPRobustScaler(random_state=0).fit(X).scale_
        unit = DPRobustScaler(unit_variance=True, random_state=0).fit(X).scale_
        np.testing.assert_allclose(plain / unit, ndtri(0.75) - ndtri(0.25), rtol=1e-12)

    def test_clip_keeps_the_range(self):
        X = table(2000)
        scaler = DPMinMaxScaler((-1, 2), clip=True, random_state=0).fit(X)
        Z = scaler.transform(np.vstack([X, 1e9 * X, -1e9 * X]))
        assert Z.min() == -1.0
        assert Z.max() == 2.0

    def test_clipper_clips_and_learns_nothing(self):
        clipper = BoundsClipper(([-1.0, -np.inf], [1.0, 2.0]))
        X = np.array([[-5.0, -5.0], [5.0, 5.0]])
        np.testing.assert_array_equal(clipper.transform(X), [[-1.0, -5.0], [1.0, 2.0]])
        assert X[0, 0] == -5.0
        assert not hasattr(clipper, "n_features_in_")
        np.testing.assert_array_equal(BoundsClipper().fit_transform(X), X)

    @pytest.mark.parametrize("estimator", [*(S() for S in SCALERS), BoundsClipper((0.0, 1.0))])
    def test_without_a_copy_the_data_are_changed_in_place(self, estimator):
        X = table(2000)
        kept = X.copy()
        estimator.set_params(copy=False).fit(X)
        np.testing.assert_array_equal(X, kept)
        Z = estimator.transform(X)
        assert Z is X or np.shares_memory(Z, X)
        estimator.set_params(copy=True).transform(kept)
        np.testing.assert_array_equal(kept, table(2000))

    @pytest.mark.parametrize(
        ("scaler", "message"),
        [
            (DPStandardScaler(0.0), "'epsilon' parameter of DPStandardScaler"),
            (DPRobustScaler(delta=1.0), "'delta' parameter of DPRobustScaler"),
            (DPRobustScaler(noise="magic"), "'noise' parameter of DPRobustScaler"),
            (DPRobustScaler(quantile_range=(75.0, 25.0)), "'quantile_range' parameter of DPRobust"),
            (DPRobustScaler(quantile_range=(0.0, 50.0), unit_variance=True), "strictly between"),
            (DPMinMaxScaler((1, 0)), "'feature_range' parameter of DPMinMaxScaler"),
            (DPMinMaxScaler(quantile_range=(-1.0, 50.0)), "'quantile_range' parameter of DPMinMax"),
            (DPStandardScaler(feature_bounds=(1.0, 0.0)), "swapped"),
            (DPStandardScaler(delta=0.0, noise="inid_gaussian"), "pure privacy"),
            (BoundsClipper((0.0, [1.0, 2.0])), "'feature_bounds' parameter of BoundsClipper"),
        ],
        ids=str,
    )
    def test_mistakes_are_named_and_leave_it_unfitted(self, scaler, message):
        with pytest.raises(ValueError, match=message):
            scaler.fit(table(100))
        assert not hasattr(scaler, "privacy_")

    def test_sample_weights_are_refused(self):
        for Scaler in SCALERS:
            with pytest.raises(TypeError, match="does not support 'sample_weight'"):
                Scaler().fit(table(100), sample_weight=np.ones(100))


@pytest.mark.parametrize("Scaler", SCALERS)
class TestBadInput:
    @quick("5000")
    @each_value(1)
    @pytest.mark.parametrize("settings", GUARANTEES, ids=str)
    @pytest.mark.parametrize("n", [2, 50, 5000])
    @pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")
    def test_constant_columns_and_equal_rows_are_finite(self, Scaler, settings, n):
        mixed = np.column_stack([np.full(n, 7.0), table(n)[:, 0]])
        for X in (mixed, np.tile([3.0, -1e30], (n, 1)), np.zeros((n, 2))):
            for public in (None, (-2e30, 1e31)):
                scaler = Scaler(**settings, feature_bounds=public, random_state=0).fit(X)
                Z = scaler.transform(X)
                assert np.isfinite(Z).all()
                assert np.isfinite(scaler.inverse_transform(Z)).all()
                assert (scaler.scale_ > 0.0).all()

    def test_columns_that_do_not_stand_out_are_left_as_they_are_with_a_warning(self, Scaler):
        X = np.column_stack([np.full(5000, 7.0), table(5000)[:, 0]])
        with pytest.warns(PrivacyWarning, match="1 of 2 columns"):
            scaler = Scaler(epsilon=50.0, random_state=0).fit(X)
        np.testing.assert_array_equal(scaler.transform(X)[:, 0], X[:, 0])
        assert scaler.scale_[1] != 1.0

    @each_value(1)
    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, 1e-310])
    def test_values_that_are_not_finite_or_out_of_range_are_refused(self, Scaler, value):
        X = table(100)
        X[3, 1] = value
        with pytest.raises(ValueError, match=r"NaN|infinity|Rescale"):
            Scaler().fit(X)

    def test_fewer_than_two_rows_no_columns_and_text_are_refused(self, Scaler):
        for X, message in (
            (table(1), "minimum of 2"),
            (np.empty((10, 0)), "0 feature"),
            ([["secret"], ["text"]], "needs numbers"),
        ):
            with pytest.raises(ValueError, match=message) as error:
                Scaler().fit(X)
            assert "secret" not in str(error.value)

    @pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")
    def test_other_numbers_of_columns_are_refused_in_transform(self, Scaler):
        scaler = Scaler().fit(table(100))
        with pytest.raises(ValueError, match="expecting 3 features"):
            scaler.transform(table(10)[:, :2])


@pytest.mark.parametrize("Scaler", SCALERS)
def test_values_far_beyond_narrow_bounds_do_not_overflow(Scaler):
    X = 1e97 * table(1000)[:, :1]
    scaler = Scaler(epsilon=50.0, feature_bounds=(0.0, 1e-280), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        scale = scaler.fit(X).scale_
    assert np.isfinite(scale).all()
    assert (scale > 0.0).all()


def test_an_unclear_scale_with_public_bounds_is_said():
    X = np.full((1000, 1), 0.5)
    with pytest.warns(PrivacyWarning, match="only an upper limit of the scale of 1 of 1 columns"):
        for seed in range(5):
            DPStandardScaler(feature_bounds=(0.0, 1.0), random_state=seed).fit(X)


def test_a_bin_too_narrow_for_its_digits_still_makes_a_positive_scale(monkeypatch):
    # What noise alone may find: a magnitude of 2**-100 far from zero.
    def found_by_noise(values, probabilities, loss, **settings):
        return Quantiles(np.full((3, 1), -7.0), np.zeros(1), np.ones(1, dtype=bool), 500.0)

    monkeypatch.setattr("skdpnoise.preprocessing._scalers.private_quantiles", found_by_noise)
    X = table(500)[:, :1]
    monkeypatch.setattr("skdpnoise.ledger.Account.report", lambda *args, **kwargs: None)
    scaler = DPRobustScaler().fit(X)
    assert (scaler.scale_ > 0.0).all()
    assert np.isfinite(scaler.transform(X)).all()
