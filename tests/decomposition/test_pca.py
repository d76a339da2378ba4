"""Private principal components: the limit without noise, units, bounds, bad input, the budget."""

from __future__ import annotations

import pickle
from contextlib import suppress
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.data.table import InMemory
from skdpnoise.decomposition import DPPCA, DPCovariance
from skdpnoise.decomposition import _budget as budget_rules
from skdpnoise.decomposition.moments import Locator, _numbers_beyond, _subset, denoised
from skdpnoise.inspection.auditing._costs import TOLERANCE
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.mechanisms import SECOND_MOMENT_NOISES, SymmetricMatrixMechanism
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.queries.ranges import COUNT_SHARE
from tests._cases import each_value, every_pair, quick
from tests._replay import two_runs
from tests._session import session_of

NOISES = [noise for noise in SECOND_MOMENT_NOISES if noise not in CHOICES]
PURE = [noise for noise in NOISES if not noise.endswith("gaussian")]


def problem(n=4000, seed=0):
    """Rows far from the origin with variances 25, 9, 1, .25 in rotated directions."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    return rng.normal(size=(n, 4)) * [5.0, 3.0, 1.0, 0.5] @ turn + [50.0, -3.0, 0.0, 900.0]


def captured(model, X, k):
    """Variance that k components keep, relative to the best."""
    C = np.cov(X.T)
    V = model.components_[:k]
    return np.trace(V @ C @ V.T) / np.linalg.eigvalsh(C)[-k:].sum()


# The limit without noise


@pytest.fixture
def no_noise(monkeypatch):
    """Let every release of sums and second moments be exact."""
    for owner in (SymmetricMatrixMechanism, VectorMechanism):
        sample = owner.sample
        monkeypatch.setattr(owner, "sample", lambda self, words, f=sample: 0 * f(self, words))


def exact_rows(n, p, seed=0):
    """Rows that are whole grid steps of the mechanism that will release their second moments.

    They come in pairs about a centre, so that this is their mean, and lie in a ball of radius 100.
    """
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, p)) * np.linspace(8.0, 1.0, p)
    return np.concatenate([rows, -rows])


@each_value(1)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("k", [None, 3, 0.9])
def test_without_noise_the_components_are_those_of_scikit_learn(center, k, no_noise, monkeypatch):
    rows = exact_rows(300, 6)
    middle = np.array([3.0, -1.0, 0.5, 20.0, 0.0, 7.0])[: rows.shape[1]] * center
    settings = {"epsilon": 1e7, "row_norm": 100.0, "center": center, "random_state": 0}
    seen = []
    sample = SymmetricMatrixMechanism.sample

    def noted(self, words):
        seen.append(self.row_grid_size)
        return sample(self, words)

    monkeypatch.setattr(SymmetricMatrixMechanism, "sample", noted)
    DPPCA(**settings).fit(rows + middle)
    # The same budget and bounds give the same grid steps; rows of whole grid steps are not rounded.
    whole = np.rint(rows / seen[0]) * seen[0]
    X = whole + middle
    private = DPPCA(k, **settings).fit(X)
    assert np.array_equal(seen[0], seen[1])
    if not center:
        # about the origin, scikit-learn centres nothing: rows in pairs have mean zero
        X = whole
    public = PCA(k, svd_solver="full").fit(X)
    scale = 1.0 if center else (len(X) - 1) / len(X)
    np.testing.assert_allclose(private.mean_, middle, atol=1e-7)
    np.testing.assert_allclose(private.components_, public.components_, atol=1e-8)
    variance = public.explained_variance_ * scale
    np.testing.assert_allclose(private.explained_variance_, variance, rtol=1e-8)
    np.testing.assert_allclose(
        private.explained_variance_ratio_, public.explained_variance_ratio_, rtol=1e-8
    )
    np.testing.assert_allclose(private.singular_values_, public.singular_values_, rtol=1e-8)
    noise = public.noise_variance_ * scale
    assert private.noise_variance_ == pytest.approx(noise, rel=1e-8, abs=1e-12)
    assert private.n_components_ == public.n_components_
    shift = (private.mean_ - public.mean_) @ public.components_.T
    np.testing.assert_allclose(private.transform(X) + shift, public.transform(X), atol=1e-7)


def test_transform_and_back_is_scikit_learns_and_clips_nothing():
    X = problem()
    for whiten in (False, True):
        model = DPPCA(3, 5.0, whiten=whiten, random_state=0).fit(X)
        other = PCA(3, whiten=whiten).fit(X)
        for name in ("mean_", "components_", "explained_variance_"):
            setattr(other, name, getattr(model, name))
        far = np.vstack([X, 1e6 * X])
        np.testing.assert_allclose(model.transform(far), other.transform(far), rtol=1e-6, atol=1e-6)
        Z = model.transform(far)
        np.testing.assert_allclose(
            model.inverse_transform(Z), other.inverse_transform(Z), rtol=1e-9, atol=1e-6
        )
    # of all components, nothing is lost
    model = DPPCA(epsilon=5.0, random_state=0).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-12)


def test_whitened_components_have_about_unit_variance():
    X = problem(40_000)
    settings = {"epsilon": 10.0, "row_norm": 40.0, "random_state": 0}
    Z = DPPCA(2, whiten=True, **settings).fit(X).transform(X)
    np.testing.assert_allclose(Z.std(axis=0), 1.0, atol=0.05)


# Accuracy, units, bounds


@each_value(1)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_every_noise_finds_the_directions_under_both_relations(noise, adjacency):
    X = problem(20_000)
    delta = 0.0 if noise in PURE else 1e-6
    model = DPPCA(2, 3.0, delta, noise=noise, adjacency=adjacency, random_state=0).fit(X)
    assert captured(model, X, 2) > 0.99
    assert {r.noise for r in model.privacy_.releases if r.label == "second moments"} == {noise}
    assert model.privacy_.total.delta(3.0) <= delta
    if adjacency == "add_remove":
        assert model.privacy_.releases[0].label == "number of records"
        assert model.n_samples_ == pytest.approx(20_000, rel=0.05)
    else:
        assert model.n_samples_ == 20_000


@each_value(1)
@pytest.mark.parametrize("factor", [1e-30, 1e-6, 1e4, 1e40])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e5])
def test_units_and_offsets_hardly_matter(factor, offset):
    X = (problem(20_000) + offset) * factor
    model = DPPCA(2, 3.0, random_state=0).fit(X)
    assert captured(model, X, 2) > (0.99 if offset < 1e5 else 0.97)
    assert np.linalg.norm(model.mean_ - X.mean(axis=0)) < 2.0 * factor


def test_public_bounds_and_norms_save_releases():
    X = problem()
    bounds = (X.min(axis=0), X.max(axis=0))

    def labels(**settings):
        model = DPPCA(2, 5.0, random_state=0, **settings).fit(X)
        assert captured(model, X, 2) > (0.97 if settings.get("center", True) else 0.0)
        return [release.label for release in model.privacy_.releases]

    radius = ["magnitude of norms", "norm quantile"]
    far = "rows beyond radii"
    steps = [*radius, "coarse mean", *radius, "mean", *radius, far, "second moments"]
    assert labels(feature_bounds=bounds) == steps
    assert labels(feature_bounds=bounds, row_norm=20.0) == [*steps[:6], steps[9]]
    # Far from the origin more coarse means are looked for: how many, the noise decides.
    more = [
        [*steps[:3] * rounds, *steps[3:]] for rounds in range(2, budget_rules.COARSE_ROUNDS + 1)
    ]
    assert labels() in more
    assert labels(center=False) == [*radius, far, "second moments"]
    assert labels(center=False, row_norm=1000.0) == ["second moments"]


@quick(
    "1e-20-1e+100-DPCovariance",
    "1.0-1e+100-DPCovariance",
    "1e-90-1e+100-DPPCA",
    "1e-60-1e+100-DPPCA",
)
@every_pair
@pytest.mark.parametrize("estimator", [DPPCA(1), DPCovariance()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("row_norm", [1e-100, 1e-30, 1e-20, 1.0, 1e30, 1e100])
@pytest.mark.parametrize("width", [1e-90, 1e-60, 1e-20, 1.0])
def test_bounds_and_norms_of_any_size_are_refused_before_the_charge_or_fitted(
    estimator, row_norm, width
):
    X = problem(500)[:, :2]
    for bounds in ((0.0, width), ([0.0, -np.inf], [width, np.inf])):
        ledger = PrivacyLedger("patients", 50.0, 1e-3)
        model = clone(estimator).set_params(
            feature_bounds=bounds, row_norm=row_norm, ledger=ledger, random_state=0
        )
        with suppress(ValueError):
            model.fit(X)
        assert len(ledger.charges()) == hasattr(model, "privacy_")
    # The radius that is found is as small as the columns without bounds.
    model.set_params(row_norm=None).fit(problem(5_000)[:, :2] * 1e-20)


@pytest.mark.usefixtures("the_same_words")
def test_narrow_public_bounds_put_less_noise_on_their_columns():
    X = problem() - [50.0, -3.0, 0.0, 900.0]
    bounds = ([-40.0, -40.0, -0.1, -40.0], [40.0, 40.0, 0.1, 40.0])
    model = DPPCA(2, 5.0, feature_bounds=bounds, center=False, row_norm=60.0).fit(X)
    (moments,) = model.privacy_.releases
    assert moments.scale[0] < 0.01 * moments.scale[1]


def test_the_number_of_components_may_be_a_share_or_what_stands_out():
    X = problem(50_000)
    for wanted, expected in ((0.5, 1), (0.9, 2), (1, 1), (None, 4)):
        model = DPPCA(wanted, 5.0, random_state=0).fit(X)
        assert model.components_.shape == (expected, 4)
        assert model.n_components_ == expected
        assert model.get_feature_names_out().tolist() == [f"dppca{i}" for i in range(expected)]
    counts = [
        DPPCA("auto", epsilon, random_state=0).fit(X[:3000]).n_components_
        for epsilon in (0.01, 1.0, 50.0)
    ]
    assert counts[0] == 1 <= counts[1] <= counts[2] == 4


def test_explained_variance_is_right_where_nothing_is_shrunk():
    X = problem(20_000)
    model = DPPCA(3, 2.0, row_norm=40.0, random_state=0).fit(X)
    public = PCA(3).fit(X)
    np.testing.assert_allclose(model.explained_variance_, public.explained_variance_, rtol=0.25)
    assert (np.diff(model.explained_variance_) <= 0.0).all()
    assert 0.9 < model.explained_variance_ratio_.sum() <= 1.0 + 1e-12


@pytest.mark.slow
def test_denoising_takes_off_what_noise_adds():
    rng = np.random.default_rng(0)
    p, strength = 400, np.array([5.0, 3.0, 2.0])
    noise = rng.normal(size=(p, p))
    noise = (noise + noise.T) / np.sqrt(2.0 * p)  # κ = 1
    noise[np.arange(3), np.arange(3)] += strength
    values = np.linalg.eigvalsh(noise)[::-1]
    np.testing.assert_allclose(values[:3], strength + 1.0 / strength, rtol=0.06)
    np.testing.assert_allclose(denoised(values, 1.0)[:3], strength, rtol=0.09)
    assert (denoised(values, 1.0) >= 0.0).all()
    np.testing.assert_array_equal(denoised(np.array([3.0, 0.0, -1.0]), 0.0), [3.0, 0.0, 0.0])
    grid = denoised(np.linspace(-1.0, 5.0, 1000), 1.0)
    assert (np.diff(grid) >= 0.0).all()


# Rows beyond a radius


def heavy(n=40_000, share=0.01):
    """Rows of which a small share is far, in one direction that has most of the variance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) * [1.0, 1.5, 1.0, 0.5]
    X[rng.random(n) < share, 0] *= 40.0
    return X


@each_value(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n_components", [1, None])
def test_a_radius_grows_to_rows_that_have_much_variance(delta, adjacency, n_components):
    X = heavy()
    settings = {"adjacency": adjacency, "random_state": 0}
    model = DPPCA(n_components, 10.0, delta, **settings).fit(X)
    assert captured(model, X, 1) > 0.98
    assert 20.0 < model.row_norm_ < 200.0
    (counts,) = [r for r in model.privacy_.releases if r.label == "rows beyond radii"]
    assert counts.noise == ("iid_gaussian" if delta else "iid_laplace")
    assert model.privacy_.total.delta(10.0) <= delta


@each_value(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_row_moves_counts_of_far_rows_by_what_is_charged_for(delta, adjacency):
    X, largest = heavy(n=500), 0.0
    for seed, there in enumerate([0.0, 5.0, 30.0, 1e6]):
        first, second = (np.vstack([X, np.full(4, x)]) for x in (300.0, there))
        near = second if adjacency == "replace_one" else X
        model = DPPCA(1, 30.0, delta, adjacency=adjacency, random_state=seed)
        runs = two_runs(lambda rows, model=model: model.fit(rows), (first,), (near,), seed)
        runs.check_same()
        assert all(one.share <= TOLERANCE for one in runs.moved)
        counts = [one.share for one in runs.moved if one.label == "rows beyond radii"]
        largest = max([largest, *counts])
    assert largest > 0.9


def test_a_radius_grows_for_no_axis_that_its_noise_would_hide():
    far, none = heavy(), heavy(share=0.0)
    assert DPPCA(1, 10.0, random_state=0).fit(none).row_norm_ < 8.0
    # Where more than a third is shrunk, nothing is paid for counts.
    labels = {r.label for r in DPPCA(1, 0.01, random_state=0).fit(far).privacy_.releases}
    assert "rows beyond radii" not in labels
    # All axes, whose noise is larger, ask for more than one of them does.
    one, two = (DPPCA(k, 1.0, random_state=0).fit(far).row_norm_ for k in (1, None))
    assert two <= one


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_record_moves_counts_beyond_radii_by_no_more_than_their_sensitivity(adjacency):
    radii = np.array([1.0, 2.0, 4.0])
    norms = [0.0, 1.0, np.nextafter(1.0, 2.0), 2.0, 3.0, 4.0, 1e300, np.inf]
    query = GroupedSum(3, partial(_numbers_beyond, radii))
    profile = query.sensitivity(adjacency)
    step = query.step(np.ones(3))
    rest = np.array([0.5, 1.5, 3.0, 9.0])
    others = [np.append(rest, norm) for norm in norms]
    counts = [step(rows) for rows in others]
    assert [int(one.sum()) - 3 for one in counts] == [0, 0, 1, 1, 1, 1, 1, 1]
    pairs = product(counts, counts if adjacency == "replace_one" else [step(rest)])
    changes = np.array([one - other for one, other in pairs])
    assert np.abs(changes).sum(axis=1).max() == profile.l1
    assert np.linalg.norm(changes, axis=1).max() == pytest.approx(profile.l2)


def test_the_widest_radius_that_is_worth_its_noise():
    radii = 3.0 * np.exp2(np.arange(13) / 2.0)
    counts = np.zeros(12)
    counts[6] = 100.0  # squares of about 2**6.5, of the first radius
    worth = budget_rules.widest_worth
    assert worth(counts, 0.0, radii, 1e-9) == radii[7]
    assert worth(counts, 0.0, radii, 99.0) == radii[6]
    assert worth(counts, 0.0, radii, 101.0) == radii[0]
    assert worth(counts, 51.0, radii, 1e-9) == radii[0]
    assert worth(-counts, 0.0, radii, 1e-9) == radii[0]
    assert worth(counts, 10.0, radii * 1e100, 1.0) == pytest.approx(1e100 * radii[6])


# Subsets of large data


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_subsets_of_neighbours_are_neighbours(adjacency):
    rng = np.random.default_rng(0)
    for seed in range(40):
        n = int(rng.integers(50, 90))
        X = rng.normal(size=(n, 1))
        other = X.copy()
        other[-1] = 9.0
        if adjacency == "add_remove":
            other = other[:-1]
        tables = [InMemory.of(table) for table in (X, other)]
        taken = [_subset(rows, 10.0, session_of(seed, adjacency)) for rows in tables]
        here, there = (set(rows.leaf.ravel().tolist()) for rows, _ in taken)
        assert len(here - there) <= 1
        assert len(there - here) <= 1
        assert taken[0][1] == taken[1][1]  # what the sums are divided by is public
    everything, count = _subset(tables[0], 40.0, session_of(0, adjacency))
    assert everything is tables[0]
    assert count == 60.0


def test_large_data_are_located_by_a_subset(monkeypatch):
    monkeypatch.setattr(budget_rules, "_FEWEST_ROWS", 2000)
    monkeypatch.setattr(budget_rules, "_FEW", 1.0)
    sizes = []
    init = Locator.__init__

    def noted(self, *args, **settings):
        init(self, *args, **settings)
        sizes.append(len(self._rows))

    monkeypatch.setattr(Locator, "__init__", noted)
    X = problem(50_000)
    for adjacency in ("replace_one", "add_remove"):
        model = DPPCA(2, 2.0, adjacency=adjacency, random_state=0).fit(X)
        assert captured(model, X, 2) > 0.99
    assert all(1500 < size < 3500 for size in sizes)


# The budget


@every_pair
@pytest.mark.parametrize(
    "total", [GaussianLoss(1e-6), GaussianLoss(5.0), PureLoss(1e-6), PureLoss(9)]
)
@pytest.mark.parametrize("n_rows", [1.0, 100.0, 3000.0, 1e5, 1e9])
@pytest.mark.parametrize("keeps_rows", [False, True])
def test_shares_leave_enough_for_the_second_moments_whatever_happens(total, n_rows, keeps_rows):
    shares = budget_rules.share_out(total, n_rows, keeps_rows=keeps_rows)
    rounds = budget_rules.COARSE_ROUNDS
    worst = (1 + rounds) * shares.radius + shares.mean + shares.last
    levels = [budget_rules.row_level(total, shares, n_rows, noise) for noise in (0.0, 1.0)]
    assert 0.25 < min(levels) <= max(levels) < 1.0
    if not keeps_rows and budget_rules.may_widen(max(levels)):
        worst += shares.coarse
    assert worst + COUNT_SHARE < 0.85
    assert shares.mean > rounds * shares.coarse
    assert 0.5 < budget_rules.mean_level(total, shares, n_rows) < 1.0


@quick("add_remove-settings1", "replace_one-settings2")
@each_value(1)
@pytest.mark.parametrize("settings", [{}, {"delta": 0.0}, {"row_norm": 40.0}, {"center": False}])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_the_whole_budget_is_used_and_no_more(settings, adjacency):
    for offset in (0.0, 1e4):
        for epsilon in (0.01, 1.0, 20.0):
            model = DPPCA(None, epsilon, adjacency=adjacency, random_state=0, **settings)
            total = model.fit(problem(300) + offset).privacy_.total
            assert total.delta(epsilon) <= model.delta
            assert total.epsilon(model.delta) >= (0.7 if "delta" in settings else 0.8) * epsilon


# Bad input


def is_sensible(model, X):
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "mean_"):
        assert np.isfinite(getattr(model, name)).all()
    assert (model.explained_variance_ >= 0.0).all()
    assert model.explained_variance_ratio_.sum() <= 1.0 + 1e-9
    assert 0.0 <= model.noise_variance_ < np.inf
    k = len(model.components_)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(k), atol=1e-10)
    assert np.isfinite(model.transform(X)).all()


HARD = {
    "zeros": np.zeros((40, 3)),
    "constant columns": np.full((40, 3), 7.0) + np.eye(3)[0] * np.arange(40)[:, None],
    "all the same": np.full((40, 3), 1e9),
    "more columns than rows": np.random.default_rng(0).normal(size=(5, 30)),
    "one column": np.arange(40.0)[:, None],
    "two rows": np.array([[1.0, 2.0], [3.0, 5.0]]),
    "huge and tiny": np.array([[1e99, 1e-99, 1.0], [-1e99, 1e-99, 0.0]] * 9),
    "tiny": np.full((9, 2), 1e-200) * np.arange(9)[:, None],
}


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("whiten", [False, True])
def test_hard_data_give_a_sensible_model(name, whiten):
    X = HARD[name]
    for settings in ({}, {"delta": 0.0}, {"adjacency": "add_remove"}, {"center": False}):
        for epsilon in (1e-3, 1.0, 1e3):
            model = DPPCA(None, epsilon, whiten=whiten, random_state=0, **settings).fit(X)
            is_sensible(model, X)
            assert model.components_.shape == (X.shape[1], X.shape[1])


def test_rows_that_are_all_clipped_keep_their_directions():
    X = problem(20_000)
    model = DPPCA(2, 5.0, row_norm=1e-3, random_state=0).fit(X)
    is_sensible(model, X)
    assert captured(model, X, 2) > 0.9
    assert model.explained_variance_.sum() < 1e-5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 5}, "'n_components' parameter of DPPCA must be at most .* 4. Got 5"),
        ({"n_components": 0}, "'n_components'"),
        ({"n_components": 1.0}, "'n_components'"),
        ({"n_components": "mle"}, "'n_components'"),
        ({"row_norm": -1.0}, "'row_norm'"),
        ({"noise": "inid_cauchy"}, "'noise'"),
        ({"noise": "iid_gaussian", "delta": 0.0}, "'noise'"),
        ({"feature_bounds": (1.0, -1.0)}, "'feature_bounds'.*swapped"),
        ({"epsilon": 0.0}, "'epsilon'"),
    ],
)
def test_wrong_parameters_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DPPCA(**settings).fit(problem(50))


def test_weights_and_missing_values_are_refused_and_no_value_is_shown():
    X = problem(50)
    with pytest.raises(TypeError, match="sample_weight"):
        DPPCA().fit(X, sample_weight=np.ones(50))
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        DPPCA().fit(X)
    model = DPPCA()
    with pytest.raises(ValueError, match="needs numbers"):
        model.fit(np.array([["secret", "1"], ["2", "3"]], dtype=object))
    assert not hasattr(model, "components_")


# Company


def test_frames_keep_names_and_outputs_can_be_frames():
    frame = pd.DataFrame(problem(), columns=list("abcd"))
    model = DPPCA(2, 5.0, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == list("abcd")
    assert list(model.transform(frame).columns) == ["dppca0", "dppca1"]
    plain = DPPCA(2, 5.0, random_state=0).fit(frame.to_numpy())
    np.testing.assert_array_equal(plain.components_, model.components_)


@pytest.mark.slow
def test_layout_threads_and_precision_of_the_data_do_not_matter():
    X = np.round(problem(40_000), 2).astype(np.float32)
    reference = DPPCA(3, 5.0, random_state=0).fit(X)
    for other in (np.asfortranarray(X), X.astype(np.float64), X[::1]):
        for n_jobs in (1, 2):
            model = DPPCA(3, 5.0, random_state=0, n_jobs=n_jobs).fit(other)
            np.testing.assert_array_equal(model.components_, reference.components_)
            np.testing.assert_array_equal(model.mean_, reference.mean_)


@pytest.mark.usefixtures("the_same_words")
def test_pipelines_clones_and_pickles():
    X = problem()
    pipeline = make_pipeline(DPPCA(2, 5.0, random_state=0), PCA(1)).fit(X)
    assert pipeline.transform(X).shape == (len(X), 1)
    model = pipeline[0]
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))
    assert str(copy.privacy_) == str(model.privacy_)
    assert not hasattr(clone(model), "components_")
    first, second = (DPPCA(2).fit(X).components_ for _ in range(2))
    assert (first != second).any()
