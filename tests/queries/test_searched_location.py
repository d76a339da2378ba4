"""A search for a location needs few records, no bounds, and costs what it is charged for."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from skdpnoise.accounting.session import Session
from skdpnoise.data.ranks import SortedRanks
from skdpnoise.data.table import InMemory
from skdpnoise.privacy import GaussianLoss, PureLoss, gdp_mu
from skdpnoise.queries._quantile_search import (
    believe_location,
    believe_spread,
    plan_search,
    search_quantile,
)
from skdpnoise.queries.searched_location import (
    count_strength,
    rough_share,
    search_roughly,
    search_share,
)
from skdpnoise.sampling import SeededWords, random_words
from tests._cases import each_value, every_pair, quick
from tests._replay import two_runs
from tests.queries import _searched
from tests.queries._searched import search_location

RNG = np.random.default_rng(0)
N = 1000
TARGETS = {
    "normal": RNG.normal(size=N),
    "far away": 1e6 + RNG.normal(size=N),
    "tiny": 1e-30 * (5.0 + RNG.normal(size=N)),
    "huge": 1e30 * RNG.lognormal(size=N),
    "counts, mostly zero": np.repeat([0.0, 1.0, 2.0, 5.0], [700, 150, 100, 50]),
    "two values": np.repeat([0.0, 1.0], [500, 500]),
    "heavy tails": RNG.standard_t(3, size=N),
}
LOSSES = {
    ("inid_gaussian", 300.0): GaussianLoss(gdp_mu(300.0 / N, 1e-6)),
    ("inid_laplace", 500.0): PureLoss(500.0 / N),
}


@quick("replace_one", "add_remove")
@every_pair
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("kind", "loss"), LOSSES.items(), ids=str)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_constant_from_few_records_is_nearly_as_good_as_the_mean(name, kind, loss, adjacency):
    y = TARGETS[name]
    scores = []
    for seed in range(6):
        found = search_location(
            y, loss, noise=kind[0], adjacency=adjacency, n_samples=float(N), random_state=seed
        )
        scores.append(1.0 - np.mean(((y - found.location) / y.std()) ** 2))
    # R2 of the median itself may be as low as -1 for two values, and -0.1 for skewed ones.
    assert np.median(scores) >= -0.15
    assert np.sort(scores)[1] >= -1.05


@quick("0.0769682")
@each_value(1)
@pytest.mark.parametrize("value", [0.0, 5.0, -1e100, 1e100, 1e-290])
@pytest.mark.parametrize(("kind", "loss"), LOSSES.items(), ids=str)
def test_a_constant_target_is_found_and_nothing_overflows(value, kind, loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = search_location(
            np.full(N, value),
            loss.share(1.0),
            noise=kind[0],
            adjacency="replace_one",
            n_samples=float(N),
            random_state=0,
        )
    assert np.isfinite([found.location, found.error, found.scale]).all()
    # A spread that is far below the location, or none at all.
    assert not found.found or found.scale <= max(0.02 * abs(value), 1e-3)


@each_value(1)
@pytest.mark.parametrize("shift", [0.0, 1e3, -1e5])
@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_units_do_not_decide_whether_a_target_is_found(shift, factor):
    y = factor * (RNG.normal(size=2000) + shift)
    found = search_location(
        y,
        GaussianLoss(0.05),
        noise="inid_gaussian",
        adjacency="replace_one",
        n_samples=2000.0,
        random_state=1,
    )
    assert found.found
    assert abs(found.location - factor * shift) < 0.5 * factor
    assert 0.5 < found.scale / factor < 2.0


def test_public_bounds_hold_the_location():
    for bounds in ((0.0, 1.0), (-1e100, 1e100), (5.0, np.inf), (-np.inf, -5.0)):
        found = search_location(
            RNG.normal(size=50),
            GaussianLoss(0.001),
            noise="inid_gaussian",
            adjacency="replace_one",
            bounds=bounds,
            n_samples=50.0,
            random_state=0,
        )
        assert bounds[0] <= found.location <= bounds[1]
        assert not found.found


@pytest.mark.slow
def test_the_stated_error_is_that_of_the_location():
    y = np.random.default_rng(1).normal(10.0, 2.0, size=2000)
    found = [
        search_location(
            y,
            GaussianLoss(0.04),
            noise="inid_gaussian",
            adjacency="replace_one",
            n_samples=2000.0,
            random_state=seed,
        )
        for seed in range(40)
    ]
    errors = np.array([one.location - y.mean() for one in found])
    stated = np.array([one.error for one in found])
    assert 0.6 < np.sqrt(np.mean(errors**2)) / np.sqrt(np.mean(stated**2)) < 1.4


def test_no_noise_finds_quantiles_to_the_last_digits():
    y = np.random.default_rng(2).lognormal(3.0, 2.0, size=4001)
    ranks, session = SortedRanks.of(y), Session(random_words(0), "replace_one")
    for parts, probability in (((1, 1), 0.5), ((1, 9), 0.9), ((3, 1), 0.25)):
        mechanism = plan_search("inid_gaussian", parts, GaussianLoss(1e4), "replace_one", 64)
        belief = believe_location(-np.inf, np.inf)
        found = search_quantile(ranks, parts, belief, session.draw("median", mechanism), 4001.0)
        found = found.quantile(0.5)
        assert abs(np.mean(y < found) - probability) < 1e-3


def test_beliefs_are_probabilities_and_are_cut_without_loss():
    for belief in (
        believe_location(-np.inf, np.inf),
        believe_location(-3.0, 1e6),
        believe_location(1e99, 1e100),
        believe_spread(0.0, np.inf),
        believe_spread(1e50, 1e60),
    ):
        mass = np.exp(belief.log_mass)
        assert (np.diff(belief.edges) > 0).all()
        assert mass.sum() == pytest.approx(1.0)
        for threshold in (belief.quantile(0.3), belief.quantile(0.9)):
            cut, edge = belief.cut(threshold)
            assert np.exp(cut.log_mass).sum() == pytest.approx(1.0)
            assert 0 <= edge < cut.edges.size
        quantiles = [belief.quantile(q) for q in np.linspace(0.01, 0.99, 50)]
        assert (np.diff(quantiles) > 0).all()


def test_shares_buy_what_a_search_needs_and_up_to_twice_that_of_many_records():
    for loss, noise in ((GaussianLoss(0.03), "inid_gaussian"), (PureLoss(0.1), "inid_laplace")):
        shares = [search_share(noise, loss, n, 0.9) for n in (5e3, 1e4, 2e4, 1e5, 1e7)]
        assert (np.diff(shares) < 0.0).all()
        strengths = [
            count_strength(noise, loss.share(share), n)
            for share, n in zip(shares, (5e3, 1e4, 2e4, 1e5, 1e7), strict=True)
        ]
        assert (np.diff(strengths[:3]) > 0.0).all()
        assert strengths[4] == pytest.approx(strengths[3])
        assert strengths[4] < 2.1 * strengths[0]
        assert search_share(noise, loss, 10.0, 0.9) == 0.9


def test_of_few_records_a_rough_search_leaves_more_than_a_whole_one():
    noise, loss = "inid_gaussian", GaussianLoss(0.25)
    shares = [rough_share(noise, loss, n) for n in (100, 300, 400, 2000)]
    assert shares[0] == shares[-1] == rough_share("inid_laplace", PureLoss(1.0), 400) == 0.0
    assert 0.1 < shares[2] < shares[1] <= 0.5
    for n, share in zip((300, 400), shares[1:3], strict=True):
        assert share < 0.5 * search_share(noise, loss, n, 0.9)


@pytest.mark.parametrize("unit", [1e-20, 1.0, 3e7])
def test_a_rough_search_finds_a_median_and_a_scale(unit):
    noise, loss, charges = "inid_gaussian", GaussianLoss(0.25), []
    found = []
    for seed in range(20):
        values = InMemory.of(unit * np.random.default_rng(seed).normal(3.0, 1.0, size=400))
        session = Session(SeededWords(seed), "replace_one", lambda *one: charges.append(one))
        part = loss.share(rough_share(noise, loss, 400))
        ends = (-np.inf, np.inf)
        found.append(search_roughly(values, part, ends, noise, 400.0, session))
    assert {label for label, _ in charges} == {"median", "spread"}
    assert math.hypot(*(what.privacy_loss().mu for _, what in charges[:2])) <= part.mu
    assert all(one.found for one in found)
    assert np.median([abs(one.location / unit - 3.0) for one in found]) < 0.3
    assert max(abs(one.location / unit - 3.0) for one in found) < 1.0
    assert np.all([0.3 < one.scale / unit < 3.0 for one in found])


def test_a_rough_search_finds_hardly_any_scale_of_a_constant():
    session = Session(SeededWords(0), "replace_one", lambda *_: None)
    facts = GaussianLoss(0.1), (-np.inf, np.inf), "inid_gaussian", 400.0, session
    found = search_roughly(InMemory.of(np.full(400, 7.0)), *facts)
    assert found.scale < 1e-6 or not found.found
    assert abs(found.location - 7.0) < 1e-6


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("noise", ["iid_laplace", "inid_gaussian"])
def test_each_step_of_a_search_costs_what_it_is_charged_for(adjacency, noise):
    loss = PureLoss(12.0) if noise == "iid_laplace" else GaussianLoss(2.0)
    rng, largest = np.random.default_rng(3), {}
    choices = np.array([0.0, -1.0, 1e100, -1e100, 3e-200, 40.0, 1e6])
    for seed in range(40):
        y = rng.normal(3.0, 1.0, size=60)
        other = y.copy()
        y[-1], other[-1] = rng.choice(choices, 2, replace=False)
        labels = {}

        def find(values, seed=seed, labels=labels):
            return search_location(
                values,
                loss,
                noise=noise,
                adjacency=adjacency,
                n_samples=60.0,
                random_state=seed,
                charge=lambda label, mechanism: labels.update(
                    {getattr(mechanism, "selection", mechanism): label}
                ),
            )

        neighbour = other if adjacency == "replace_one" else other[:-1]
        runs = two_runs(find, (y,), (neighbour,), seed)
        runs.check_same()
        for one in runs.moved:
            assert one.share <= 1.0 + 1e-9
            known = labels[one.mechanism]
            largest[known] = max(largest.get(known, 0.0), one.share)
    assert len(largest) >= 3
    assert largest["median"] >= 0.99
    assert largest["mean"] >= 0.99


@each_value(1)
@pytest.mark.parametrize("kind", ["normal", "skewed"])
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9, 0.98])
def test_noise_leads_to_neither_side_of_a_quantile(quantile, kind):
    # From 100 records over the noise on a count, and for far quantiles from more of them.
    n, shares = 2000, []
    strength = 100.0 * max(1.0, 0.05 / min(quantile, 1.0 - quantile))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=n) if kind == "normal" else rng.exponential(size=n) - 1.0
        terms = {"noise": "inid_gaussian", "adjacency": "replace_one", "n_samples": float(n)}
        loss = GaussianLoss(strength / n)
        found = _searched.search_quantile(y, quantile, loss, random_state=seed, **terms)
        shares.append(np.mean(y <= found))
    width = min(quantile, 1.0 - quantile)
    assert np.median(shares) == pytest.approx(quantile, abs=min(0.015, 0.4 * width))
    assert np.abs(np.array(shares) - quantile).max() < 0.06


def test_a_quantile_beyond_the_ends_is_an_end_and_where_nothing_is_known_it_is_between_them():
    terms = {"noise": "inid_gaussian", "adjacency": "replace_one", "n_samples": 1000.0}
    y = np.linspace(-50.0, 50.0, 1000)
    sure = _searched.search_quantile(y, 0.9, GaussianLoss(100.0), random_state=0, **terms)
    assert sure == pytest.approx(9.0, abs=0.01)
    for seed in range(10):
        found = _searched.search_quantile(y, 0.9, GaussianLoss(1e-6), random_state=seed, **terms)
        assert abs(found) < 0.5


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("quantile", [0.04, 0.5, 0.9, 1.0 - 1e-9])
@pytest.mark.parametrize("noise", ["iid_laplace", "inid_gaussian"])
def test_one_record_moves_every_step_of_a_quantile_by_what_is_charged_for(
    adjacency, quantile, noise
):
    loss = PureLoss(12.0) if noise == "iid_laplace" else GaussianLoss(2.0)
    rng, largest, costs = np.random.default_rng(3), 0.0, []
    ends = np.array([0.0, -np.inf, np.inf, 1e300, 3e-200, 1.1, -1.1])
    for seed in range(20):
        y = rng.normal(size=60)
        other = y.copy()
        y[-1], other[-1] = rng.choice(ends, 2, replace=False)
        charged = []

        def find(values, seed=seed, charged=charged):
            return _searched.search_quantile(
                values,
                quantile,
                loss,
                noise=noise,
                adjacency=adjacency,
                n_samples=60.0,
                random_state=seed,
                charge=lambda label, mechanism: charged.append((label, mechanism.privacy_loss())),
            )

        neighbour = other if adjacency == "replace_one" else other[:-1]
        runs = two_runs(find, (y,), (neighbour,), seed)
        runs.check_same()
        largest = max(largest, *(one.share for one in runs.moved))
        costs.append(charged[: len(charged) // 2])
    # Choices of quantiles are charged as if under add/remove one record moved ranks by 1, too.
    rounded = noise == "iid_laplace" and adjacency == "add_remove" and quantile != 0.5
    assert (max(quantile, 1.0 - quantile) if rounded else 1.0) - 0.01 <= largest <= 1.0 + 1e-9
    assert {label for label, _ in costs[0]} == {"quantile"}
    if noise == "iid_laplace":
        whole, total = 12.0, max(sum(loss.pure_epsilon for _, loss in cost) for cost in costs)
    else:
        whole, total = 2.0, max(np.linalg.norm([loss.mu for _, loss in cost]) for cost in costs)
    assert 0.97 * whole < total <= whole * (1.0 + 1e-9)


@each_value(1)
@pytest.mark.parametrize("name", ["exponential", "normal", "counts", "far from 0"])
def test_without_bounds_a_location_from_very_few_records_is_hardly_ever_far_too_large(name):
    rng, locations, terms = np.random.default_rng(5), [], {"noise": "inid_gaussian"}
    draw, middle, size = {
        "exponential": (lambda: rng.exponential(20.0, 32), 13.9, 20.0),
        "normal": (lambda: rng.normal(0.0, 20.0, 32), 0.0, 16.0),
        "counts": (lambda: rng.poisson(3.0, 32).astype(float), 3.0, 3.0),
        "far from 0": (lambda: rng.normal(-50.0, 10.0, 32), -50.0, 50.0),
    }[name]
    for seed in range(400):
        loss = GaussianLoss(0.95 * gdp_mu(1.0, 1e-6))
        found = search_location(
            draw(), loss, adjacency="replace_one", n_samples=32.0, random_state=seed, **terms
        )
        assert not found.found
        locations.append(found.location)
    assert np.mean(np.abs(locations) > 10.0 * size) <= 3.0 / 400.0
    assert np.median(np.abs(np.array(locations) - middle)) / size < 0.4
    assert np.quantile(np.abs(np.array(locations) - middle), 0.9) <= max(size, abs(middle))


@pytest.mark.parametrize("origin", [0.0, 3.0])
def test_a_cautious_number_has_the_least_expected_error(origin):
    belief = believe_location(-np.inf, np.inf)
    belief, edge = belief.cut(11.0)
    belief.log_mass[edge:] -= 4.0
    belief.log_mass[: edge - 3] -= 5.0
    at = np.array([belief.quantile((k + 0.5) / 20_000) for k in range(20_000)])

    def expected(number, worst):
        with np.errstate(over="ignore"):
            return np.minimum(np.abs(number - at) / np.abs(at - origin), worst).mean()

    for worst in (2.0, 5.0, 50.0):
        found = belief.cautious(origin, worst)
        best = min(expected(belief.quantile(k / 200), worst) for k in range(1, 200))
        assert expected(found, worst) <= min(best, expected(origin, worst)) + 0.01
    assert belief.cautious(origin, 1e9) == origin
    assert believe_location(-np.inf, np.inf).cautious(0.0, 5.0) == 0.0
