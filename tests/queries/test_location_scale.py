"""Private locations and scales: right without bounds, whatever the units, and never NaN."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from skdpnoise.accounting.session import Session
from skdpnoise.kernels import tile_loops, tiles
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.queries import private_location_scale
from tests._cases import each_value, every_pair
from tests._statistics import FALSE_ALARM

N = 6000
EXACT = PrivacyGuarantee(1e4, 1e-6)  # so much budget that the noise hardly matters


def shapes():
    """Columns of unit size around 0, and the standard deviation of the bulk of each."""
    rng = np.random.default_rng(0)
    return {
        "normal": rng.normal(size=N),
        "uniform": rng.uniform(-2, 2, N),
        "laplace": rng.laplace(size=N),
        "heavy tails": rng.standard_t(3, N),
        "skewed": rng.exponential(size=N),
        "integers": rng.poisson(3.0, N).astype(float),
        "two values": rng.choice([-1.0, 1.0], N),
        "two bumps": rng.normal(rng.choice([-2.0, 2.0], N), 0.5),
        "outliers": np.where(rng.random(N) < 0.02, 1e9, rng.normal(size=N)),
    }


@each_value(1)
@pytest.mark.parametrize("name", shapes())
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, -37.0, 1e4, -1e8, 1e12])
def test_location_and_scale_are_found_in_any_units(name, unit, shift):
    column = unit * (shift + shapes()[name])
    found = private_location_scale([column], EXACT, random_state=1)
    bulk = column[np.abs(column - np.median(column)) < 100 * unit]
    assert found.found.all()
    assert abs(found.location[0] - bulk.mean()) < 0.6 * bulk.std()
    assert 0.6 < found.scale[0] / bulk.std() < 1.7


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("end", [-1.0, 1.0])
@pytest.mark.parametrize("bounds", [None, (-8.0, 8.0)])
def test_no_record_adds_more_than_was_declared_whatever_earlier_releases_were(
    monkeypatch, end, bounds
):
    """Noise can make any earlier release anything: here every mean is at an end of its reach."""
    labels = []
    original = Session.released

    def released(self, label, query, table, mechanism):
        size = query.columns.size
        for loops in (tiles, tile_loops):
            tile = np.tile([-1e100, -1e3, -3.0, 0.0, 3.0, 1e3, 1e100], (size, 1))
            query.contribution(loops, tile, tile.shape[1], None, np.arange(size))
            assert query.low <= tile.min() <= tile.max() <= query.high
        labels.append(label)
        found = original(self, label, query, table, mechanism)
        at_the_end = np.full(size, len(X) * (query.high if end > 0.0 else query.low))
        return replace(found, values=at_the_end) if label.startswith("means") else found

    monkeypatch.setattr(Session, "released", released)
    X = np.random.default_rng(3).normal(size=(500, 2))
    private_location_scale(X, EXACT, bounds=bounds, random_state=0)
    assert {"means", "mean absolute deviations"} <= {label.partition(",")[0] for label in labels}


def test_more_budget_means_less_error_and_defaults_are_useful():
    rng, errors = np.random.default_rng(1), []
    X = rng.normal([5.0, -1e3, 1e6], [1.0, 20.0, 3.0], size=(4000, 3))
    for epsilon in (0.7, 50.0):
        runs = [
            private_location_scale(X, PrivacyGuarantee(epsilon, 1e-6), random_state=seed)
            for seed in range(10)
        ]
        errors.append(np.sqrt(np.mean([(r.location - X.mean(0)) ** 2 / X.var(0) for r in runs])))
        assert all(r.found.all() for r in runs)
        assert all((np.abs(np.log(r.scale / X.std(axis=0))) < 0.5).all() for r in runs)
    assert errors[1] < 0.1 < 0.5
    assert errors[1] < errors[0] < 0.5


@each_value(1)
@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(20.0, 1e-6), PrivacyGuarantee(20.0)])
@pytest.mark.parametrize("power", [-60, -1, 7, 40])
def test_powers_of_two_change_the_units_and_nothing_else(guarantee, power):
    X = np.random.default_rng(2).normal([3.0, -500.0], [1.0, 7.0], size=(1000, 2))
    one = private_location_scale(X, guarantee, random_state=3)
    other = private_location_scale(np.ldexp(X, power), guarantee, random_state=3)
    assert (np.ldexp(one.location, power) == other.location).all()
    assert (np.ldexp(one.scale, power) == other.scale).all()
    assert (one.found == other.found).all()
    scale = (np.ldexp(-1e3, power), np.ldexp(1e3, power))
    bounded = private_location_scale(X, guarantee, bounds=(-1e3, 1e3), random_state=3)
    other = private_location_scale(np.ldexp(X, power), guarantee, bounds=scale, random_state=3)
    assert (np.ldexp(bounded.location, power) == other.location).all()
    assert (np.ldexp(bounded.scale, power) == other.scale).all()


def test_single_and_double_precision_and_all_layouts_agree():
    X = np.random.default_rng(2).integers(-99, 99, size=(1000, 3))
    answers = [
        private_location_scale(table, EXACT, random_state=0)
        for table in (X, X.astype(np.float32), np.asfortranarray(X, dtype=float), X.tolist())
    ]
    answers.append(private_location_scale(list(X.T.astype(np.float32)), EXACT, random_state=0))
    for answer in answers:
        assert (answer.location == answers[0].location).all()
        assert (answer.scale == answers[0].scale).all()


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(1.0, 1e-6), PrivacyGuarantee(1.0)])
def test_constant_and_drowned_columns_are_not_found_and_are_not_nan(guarantee):
    rng = np.random.default_rng(3)
    drowned, plain = rng.normal(size=(40, 3)), rng.normal(size=(4000, 1))
    flat = np.tile([0.0, 1e30, -7.0], (4000, 1))
    count = {"drowned": 0, "flat": 0, "plain": 0}
    for name, table in (("drowned", drowned), ("flat", flat), ("plain", plain)):
        for seed in range(40):
            found = private_location_scale(table, guarantee, random_state=seed)
            count[name] += np.count_nonzero(found.found)
            assert np.isfinite(found.location).all()
            assert np.isfinite(found.scale).all()
            assert (found.scale > 0).all()
    # Noise alone stands out in one magnitude of fifty, and then must stand out as a location.
    assert count["flat"] <= binom.isf(FALSE_ALARM, 120, 0.02)
    assert count["drowned"] <= binom.isf(FALSE_ALARM, 120, 0.02)
    assert count["plain"] == 40
    # A constant column beside others does not disturb them.
    mixed = private_location_scale(np.hstack([flat, plain]), EXACT, random_state=1)
    assert mixed.found.tolist() == [False, False, False, True]
    assert abs(mixed.location[3]) < 0.2


@each_value(1)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_handful_of_records_of_either_parity_is_no_error(n, adjacency):
    X = np.random.default_rng(n).normal(size=(n, 2)) * 1e100
    for bounds in (None, (-1.0, 1.0), ([-1.0, -np.inf], [np.inf, np.inf])):
        settings = {"adjacency": adjacency, "bounds": bounds, "n_samples": 2.0, "random_state": n}
        found = private_location_scale(X, EXACT, **settings)
        assert np.isfinite(found.location).all()
        assert (found.scale > 0).all()
        assert np.isfinite(found.scale).all()


def test_extreme_values_do_not_overflow():
    column = np.random.default_rng(0).choice([-1e300, -1e-300, 0.0, 1e-300, 1e300, 1.0], 500)
    with np.errstate(over="ignore"):  # halves of the range of doubles are far apart
        found = private_location_scale([column, column[::-1]], EXACT, random_state=0)
    assert np.isfinite(found.location).all()
    assert np.isfinite(found.scale).all()


@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(2.0, 1e-6), PrivacyGuarantee(2.0)])
def test_public_bounds_save_budget_and_hold_what_lies_outside(guarantee):
    rng = np.random.default_rng(4)
    X = rng.uniform([0.0, -3.0], [10.0, 1.0], size=(3000, 2))
    low, high = np.array([0.0, -3.0]), np.array([10.0, 1.0])
    found = private_location_scale(X, guarantee, bounds=(low, high), random_state=0)
    assert found.found.all()
    assert (np.abs(found.location - X.mean(0)) < 0.1 * X.std(0)).all()
    assert (np.abs(np.log(found.scale / X.std(0))) < 0.25).all()
    beyond = X.copy()
    beyond[:50] = 1e100
    found = private_location_scale(beyond, guarantee, bounds=(low, high), random_state=0)
    assert (np.abs(found.location - np.clip(beyond, low, high).mean(0)) < 0.1 * X.std(0)).all()
    # Noise alone: everything stays within what the bounds allow.
    for seed in range(20):
        found = private_location_scale(X[:2], guarantee, bounds=(low, high), random_state=seed)
        assert ((low <= found.location) & (found.location <= high)).all()


def test_bounded_and_unbounded_columns_share_one_guarantee():
    rng, charged = np.random.default_rng(5), []
    X = rng.normal([0.5, 1e5, 0.5, -3.0], [0.1, 10.0, 0.1, 1.0], size=(20_000, 4))
    bounds = ([0.0, -np.inf, 0.0, -1e9], [1.0, np.inf, 1.0, np.inf])
    found = private_location_scale(
        X,
        GaussianLoss(0.5),
        noise="spr_gaussian",
        bounds=bounds,
        random_state=0,
        charge=lambda label, mechanism: charged.append((label, mechanism)),
    )
    assert found.found.all()
    assert (np.abs(found.location - X.mean(0)) < 0.3 * X.std(0)).all()
    open_columns = {m.sensitivity.n_coordinates for label, m in charged if label == "magnitudes"}
    assert open_columns == {2 * 201}
    assert sum(m.sensitivity.n_coordinates for label, m in charged if "means" in label) == 4
    total = np.sqrt(sum(m.privacy_loss().mu ** 2 for _, m in charged))
    assert 0.95 * 0.5 < total <= 0.5


@every_pair
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("guarantee", [PureLoss(3.0), GaussianLoss(1.0)])
@pytest.mark.parametrize("bounds", [None, (-1e9, 1e9), ([-np.inf, -1e9, 0.0], [np.inf, 1e9, 1e9])])
def test_the_charges_add_up_to_no_more_than_the_guarantee(adjacency, guarantee, bounds):
    rng = np.random.default_rng(6)
    for n, shift in ((5, 0.0), (400, 1e12), (3000, 1e4), (3000, 0.0)):
        losses = []
        private_location_scale(
            rng.normal(shift, 1.0, size=(n, 3)),
            guarantee,
            adjacency=adjacency,
            bounds=bounds,
            n_samples=float(n),
            random_state=n,
            charge=lambda label, mechanism, losses=losses: losses.append(mechanism.privacy_loss()),
        )
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        for epsilon in (0.5, 2.0):
            assert total.delta(epsilon) <= guarantee.delta(epsilon)
        if bounds == (-1e9, 1e9):
            assert total.delta(0.5) > 0.98 * guarantee.delta(0.5)


@pytest.mark.slow
def test_many_columns_are_drawn_together_where_that_helps():
    # Standardised columns: the noise on each mean is larger than their differences.
    rng, guarantee = np.random.default_rng(7), PrivacyGuarantee(0.5, 1e-6)
    X = np.clip(rng.normal(0.2, 0.3, size=(300, 12)), -1, 1)
    together, apart = [], []
    for seed in range(60):
        settings = {"bounds": (-1.0, 1.0), "random_state": seed}
        found = private_location_scale(X, guarantee, **settings).location
        together.append(np.mean((found - X.mean(0)) ** 2))
        # Groups of three, below which nothing is drawn together, for their parts of the budget.
        loss = GaussianLoss(gdp_mu(0.5, 1e-6)).share(0.25)
        groups = [
            private_location_scale(X[:, k : k + 3], loss, **settings | {"random_state": 99 * seed})
            for k in range(0, 12, 3)
        ]
        apart.append(np.mean((np.concatenate([g.location for g in groups]) - X.mean(0)) ** 2))
    assert np.mean(together) < 0.7 * np.mean(apart)


def test_three_columns_or_fewer_are_not_drawn_together():
    # Far apart and known exactly, columns keep their places; so do few columns in much noise.
    X = np.random.default_rng(8).uniform(-1, 1, size=(50, 3))
    loss, location = GaussianLoss(0.3), []
    for flip in (1.0, -1.0):  # the noise of the others does not reach the first
        columns = [X[:, 0], flip * X[:, 1], flip * X[:, 2]]
        settings = {"bounds": (-1.0, 1.0), "random_state": 5, "noise": "spr_gaussian"}
        location.append(private_location_scale(columns, loss, **settings).location[0])
    assert location[0] == location[1]
    many = []
    for flip in (1.0, -1.0):
        columns = [X[:, 0], *(flip * X[:, 1:].T + 0.0), X[:, 0]]
        many.append(private_location_scale(columns, loss, **settings).location[0])
    assert many[0] != many[1]


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ([1.0, 2.0], {}, "'columns' .* shape"),
        (np.zeros((0, 2)), {}, "'columns' .* (shape|empty)"),
        (np.zeros((3, 0)), {}, "'columns' .* (shape|empty)"),
        ([np.zeros(3), np.zeros(4)], {}, "of one length"),
        (np.array([[1.0], [np.nan]]), {}, "'columns' .* finite"),
        (np.array([[1.0], [-np.inf]]), {}, "'columns' .* finite"),
        (np.zeros((3, 1)), {"bounds": (1.0, -1.0)}, "'bounds' .* low < high"),
        (np.zeros((3, 1)), {"bounds": (np.nan, 1.0)}, "'bounds' .* low < high"),
        (np.zeros((3, 1)), {"adjacency": "add_remove"}, "'n_samples' .* private"),
        (np.zeros((3, 1)), {"adjacency": "swap"}, "'adjacency' .* among"),
        (np.zeros((3, 1)), {"noise": "inid_cauchy"}, "'noise'"),
    ],
)
def test_bad_input_is_refused_by_name(columns, settings, message):
    with pytest.raises(ValueError, match=message):
        private_location_scale(columns, PrivacyGuarantee(1.0, 1e-6), **settings)


def test_gaussian_noise_cannot_be_pure_and_the_guarantee_brings_its_adjacency():
    with pytest.raises(ValueError, match="noise"):
        private_location_scale(np.zeros((3, 1)), PrivacyGuarantee(1.0), noise="iid_gaussian")
    with pytest.raises(ValueError, match="'n_samples'"):
        private_location_scale(np.zeros((3, 1)), PrivacyGuarantee(1.0, 1e-6, "add_remove"))


def test_a_record_far_away_warns_no_more_than_another():
    column = 1e-8 * np.random.default_rng(0).normal(size=N)
    column[0] = np.finfo(float).max  # beyond doubles in units of the others
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        private_location_scale([column], EXACT, random_state=0)
