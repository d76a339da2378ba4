"""Private quantiles: one record moves the release as stated; they are right and never NaN."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.accounting.session import Drawn
from skdpnoise.data.table import InMemory
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import private_quantiles
from skdpnoise.queries.quantiles import (
    SQUARE_ROOT,
    _change,
    _edges,
    _histograms,
    _invert,
    prefix_strategy,
)
from tests._audit import resource
from tests._cases import each_value, every_pair, quick

QUARTILES = [0.25, 0.5, 0.75]
BRANCHINGS = (SQUARE_ROOT, 2, 4, 8, 64)
CLEAR = PrivacyGuarantee(1e4, 1e-6)


def normal(n=4000, seed=0):
    return np.random.default_rng(seed).normal([10.0, -3e-4], [2.0, 5e-5], size=(n, 2))


@pytest.fixture
def without_noise(monkeypatch):
    """Mechanisms that draw zeros, however they are calibrated."""

    def zeros(self, rng, n_releases=None, *, first=None):
        return np.zeros((n_releases or self.n_releases, self.sensitivity.n_coordinates), np.int64)

    monkeypatch.setattr(AdditiveMechanism, "sample", zeros)


class TestStrategies:
    @pytest.mark.parametrize("branching", BRANCHINGS)
    def test_cumulative_sums_are_estimated_exactly_without_noise(self, branching):
        counts = np.random.default_rng(0).integers(0, 1000, 50)
        strategy = prefix_strategy(50, branching, "replace_one")
        sums = strategy.cumulative(strategy.answers(counts), counts.sum())
        np.testing.assert_allclose(sums, np.cumsum(counts), rtol=1e-9)

    @pytest.mark.parametrize("branching", BRANCHINGS)
    def test_the_stated_variance_is_that_of_the_estimate(self, branching):
        strategy = prefix_strategy(40, branching, "replace_one")
        # All noise patterns of one unit at a time: the estimate is linear.
        columns = [strategy.cumulative(unit, 0.0) for unit in np.eye(len(strategy.rows))]
        variance = np.square(columns).sum(axis=0)
        assert variance[-1] < 1e-12  # the total is known
        assert strategy.mean_variance() == pytest.approx(variance[:-1].mean(), rel=1e-9)

    @quick("replace_one-8")
    @each_value(1)
    @pytest.mark.parametrize("branching", BRANCHINGS)
    @pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
    def test_one_record_changes_the_answers_by_what_is_stated_and_by_no_less(
        self, branching, adjacency
    ):
        strategies = [prefix_strategy(n_bins, branching, adjacency) for n_bins in (30, 12)]
        profile = _change(strategies)
        rng = np.random.default_rng(1)
        worst = np.zeros(3)
        places = [(a, b) for a in range(30) for b in range(12)]
        for _ in range(3000):
            old, new = rng.integers(len(places), size=2)
            changes = []
            for k, (strategy, n_bins) in enumerate(zip(strategies, (30, 12), strict=True)):
                before = rng.integers(1, 9, n_bins)
                after = before.copy()
                after[places[new][k]] += 1
                if adjacency == "replace_one":
                    after[places[old][k]] -= 1
                changes.append(strategy.answers(after) - strategy.answers(before))
            change = np.abs(np.concatenate(changes))
            assert (change <= profile.per_coordinate).all()
            worst = np.maximum(worst, [change.max(), change.sum(), np.sqrt(change @ change)])
        assert worst[1] <= profile.l1
        assert worst[2] <= profile.l2
        stated = [profile.per_coordinate.max(), profile.l1, profile.l2]
        assert (worst > 0.97 * np.array(stated)).all()

    def test_the_square_root_errs_far_less_than_a_histogram_under_gaussian_noise(self):
        strategies = [prefix_strategy(256, b, "replace_one") for b in (SQUARE_ROOT, 256)]
        error = [strategy.l2 * np.sqrt(strategy.mean_variance()) for strategy in strategies]
        assert error[0] < 0.4 * error[1]

    def test_answers_are_exact_for_more_records_than_fit_in_memory(self):
        strategy = prefix_strategy(64, SQUARE_ROOT, "add_remove")
        counts = np.zeros(64, dtype=np.int64)
        counts[0] = 2**32 - 1
        more = counts + np.eye(64, dtype=np.int64)[5]
        change = strategy.answers(more) - strategy.answers(counts)
        np.testing.assert_array_equal(change * 2.0**20, strategy.rows[:, 5])


@every_pair
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("bounds", [None, (-50.0, 50.0)])
@pytest.mark.parametrize("guarantee", [PureLoss(1.0), GaussianLoss(0.3)], ids=str)
def test_integers_that_meet_the_noise_move_by_what_is_charged(
    monkeypatch, adjacency, bounds, guarantee
):
    """The transcript of the last release of neighbours, with the ranges of the first data set."""
    released = []
    on = Drawn.on

    def noted(self, values):
        steps = np.rint(np.asarray(values) / self.mechanism.grid_size)
        released.append((self.mechanism, steps))
        return on(self, values)

    monkeypatch.setattr(Drawn, "on", noted)
    rng = np.random.default_rng(0)
    X = rng.normal(0.0, 1.0, size=(3000, 2))
    for extreme in (1e9, -1e9, 0.0):
        released.clear()
        other = np.vstack([X, [[extreme, -extreme]]])
        base = X if adjacency == "add_remove" else np.vstack([X, [[-extreme, 0.1]]])
        settings = {"adjacency": adjacency, "n_samples": 3000, "bounds": bounds}
        for data in (base, other):
            private_quantiles(data, QUARTILES, guarantee, random_state=0, **settings)
        half = len(released) // 2
        mechanism, first = released[half - 1]
        second = released[-1][1]
        if first.shape == second.shape:  # the same columns were found
            change = (first - second) * 2.0**-mechanism.bits
            order = mechanism.family.norm_order
            assert np.linalg.norm(change, order) <= resource(mechanism)


@each_value(1)
@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(1.0, 1e-6), PrivacyGuarantee(1.0)])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_what_is_charged_is_within_the_guarantee(guarantee, adjacency):
    for bounds, labels in ((None, 4), ((0.0, 20.0), 1)):
        charged = []
        private_quantiles(
            normal(),
            QUARTILES,
            guarantee,
            adjacency=adjacency,
            bounds=bounds,
            random_state=0,
            charge=lambda label, mechanism, charged=charged: charged.append((label, mechanism)),
        )
        total = sum((m.privacy_loss() for _, m in charged[1:]), charged[0][1].privacy_loss())
        assert 0.9 * guarantee.epsilon < total.epsilon(guarantee.delta) <= guarantee.epsilon
        names = [label for label, _ in charged]
        assert names[-1] == "cumulative counts"
        assert len(set(names)) <= labels + (adjacency == "add_remove")
        assert ("number of records" in names) == (adjacency == "add_remove")


def shapes(n=6000):
    rng = np.random.default_rng(0)
    return {
        "normal": rng.normal(size=n),
        "uniform": rng.uniform(-2, 2, n),
        "heavy tails": rng.standard_t(2, n),
        "skewed": rng.exponential(size=n),
        "two bumps": rng.normal(rng.choice([-2.0, 2.0], n, p=[0.6, 0.4]), 0.5),
    }


@each_value(1)
@pytest.mark.parametrize("name", shapes())
@pytest.mark.parametrize("bounds", [None, (-40.0, 40.0)])
def test_quantiles_are_within_a_bin_without_noise(name, bounds, without_noise):
    x = shapes()[name]
    found = private_quantiles(x, QUARTILES, CLEAR, bounds=bounds, random_state=0)
    assert found.found.all()
    # Bins grow with the distance from the location; two of the narrowest are one of the widest.
    np.testing.assert_allclose(
        found.values[:, 0], np.quantile(x, QUARTILES), atol=2.0 * found.resolution[0]
    )


@quick("0.0")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_defaults_are_useful_and_more_budget_means_less_error(delta):
    errors = []
    for epsilon in (1.0, 50.0):
        X = normal(8000)
        truth, spread = np.quantile(X, QUARTILES, axis=0), X.std(axis=0)
        runs = [
            private_quantiles(X, QUARTILES, PrivacyGuarantee(epsilon, delta), random_state=seed)
            for seed in range(8)
        ]
        errors.append(np.sqrt(np.mean([((r.values - truth) / spread) ** 2 for r in runs])))
    assert errors[1] < 0.03
    assert errors[1] < errors[0] < 0.1


@pytest.mark.parametrize("power", [-60, 40])
def test_powers_of_two_change_the_units_and_nothing_else(power):
    X = normal()
    one = private_quantiles(X, QUARTILES, CLEAR, random_state=3)
    other = private_quantiles(np.ldexp(X, power), QUARTILES, CLEAR, random_state=3)
    np.testing.assert_allclose(np.ldexp(one.values, power), other.values, rtol=1e-12)
    np.testing.assert_allclose(np.ldexp(one.resolution, power), other.resolution, rtol=1e-12)


def test_quantiles_never_decrease_and_stay_in_range_whatever_the_noise():
    rng = np.random.default_rng(0)
    edges = np.linspace(-1.0, 1.0, 65)
    ranks = 100.0 * np.linspace(0.0, 1.0, 21)
    for _ in range(200):
        found = _invert(np.cumsum(rng.normal(0.0, 50.0, 64)), edges, ranks, 100.0)
        assert (np.diff(found) >= 0.0).all()
        assert found[0] >= -1.0
        assert found[-1] <= 1.0


def test_counts_hold_every_record_and_bins_are_closed_on_the_left():
    edges = _edges(0.0, 4.0, None)
    values = np.array([-1e300, -4.0, 0.0, np.nextafter(0.0, -1.0), 4.0, 1e300])
    sweep = _histograms(np.array([0]), [edges], values.size)
    (counts,) = InMemory.of(values[:, np.newaxis]).total(sweep)
    assert counts.sum() == 6
    assert counts[[0, 127, 128, 255]].tolist() == [2, 1, 1, 2]


@every_pair
@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(1.0, 1e-6), PrivacyGuarantee(1.0)])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("bounds", [None, (-5.0, 5.0), ([0.0, -np.inf], [1.0, np.inf])])
def test_few_constant_or_huge_values_are_no_error_and_never_nan(guarantee, adjacency, n, bounds):
    for X in (np.ones((n, 2)), np.random.default_rng(n).normal(size=(n, 2)) * 1e100):
        found = private_quantiles(
            X, QUARTILES, guarantee, adjacency=adjacency, bounds=bounds, random_state=n
        )
        assert np.isfinite(found.values).all()
        assert (found.resolution > 0.0).all()
        assert (np.diff(found.values, axis=0) >= 0.0).all()


def test_integers_booleans_and_one_column_are_understood():
    x = np.random.default_rng(0).integers(0, 100, 5000)
    for values in (x, x.astype(np.uint8), x.astype(np.float32), x[:, np.newaxis], x.tolist()):
        found = private_quantiles(values, 0.5, CLEAR, random_state=0)
        assert found.values.shape == (1, 1)
        assert found.values[0, 0] == pytest.approx(np.median(x), abs=4.0)
    assert private_quantiles(x > 50, 0.9, CLEAR, bounds=(0, 1), random_state=0).found.all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": 1.5}, "'probabilities' parameter"),
        ({"values": []}, "'values' parameter"),
        ({"values": [np.nan, 1.0]}, "finite in every entry"),
        ({"bounds": (1.0, 0.0)}, "'bounds' parameter"),
        ({"noise": "inid_gaussian", "guarantee": PrivacyGuarantee(1.0)}, "pure privacy"),
        ({"n_samples": 0.0}, "'n_samples' parameter"),
    ],
    ids=str,
)
def test_mistakes_are_named(change, message):
    settings = {"values": [1.0, 2.0], "probabilities": 0.5, "guarantee": CLEAR, **change}
    with pytest.raises(ValueError, match=message):
        private_quantiles(**settings)


@pytest.mark.slow
def test_all_noises_of_estimators_can_be_asked_for():
    for noise in ("iid_gaussian", "spr_laplace", "inid_flipped_huber"):
        guarantee = PrivacyGuarantee(5.0, 1e-6)
        found = private_quantiles(normal(), QUARTILES, guarantee, noise=noise, random_state=0)
        assert found.found.all()
        assert np.abs(found.values[1] / [10.0, -3e-4] - 1.0).max() < 0.2
