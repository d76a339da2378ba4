"""Neighbours by force, from one sum to a whole fit: what one record can do is what is paid for."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD
from skdpnoise.inspection import coupled_order
from skdpnoise.inspection.auditing._costs import TOLERANCE, total_moved
from skdpnoise.kernels import LOGISTIC, LOSSES, coordinate_descent
from skdpnoise.ledger import Account
from skdpnoise.mechanisms import SymmetricMatrixMechanism
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import NormQuantileMechanism, private_location_scale
from skdpnoise.sensitivity import paired_histogram
from tests._cases import each_value, every_pair, quick
from tests._replay import Ordered, two_runs
from tests.contracts._register import DESCENTS, each

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.linear_model.PrivacyWarning")

EXTREME = np.array([0.0, -0.0, 1e-300, 1e-30, -1.0, 1.0, 3e4, -1e18, 1e100, -1e100])
NO_NOISE = np.zeros((1, 3), dtype=np.int64)
ADJACENCIES = ["replace_one", "add_remove"]


def records(rng, n, p):
    """Records of every size, some of them extreme."""
    values = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, size=p)
    extreme = rng.random((n, p)) < 0.1
    values[extreme] = rng.choice(EXTREME, extreme.sum())
    return values


# One sum of the solver


def collector(met):
    """Return a way to add noise that notes the sums it is added to."""

    def add(total, draw):
        met.append(total)
        return total + draw

    return add


@each_value(1)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_record_moves_a_sum_by_at_most_the_stated_number_of_quanta(loss, adjacency):
    rng, largest, p = np.random.default_rng(0), 0.0, 3
    for _ in range(1500):
        clip = float(rng.lognormal(0.0, 2.0))
        grid_size = clip * 2.0 ** -rng.uniform(4.0, 30.0)
        bound = round(clip / grid_size) * (2 if adjacency == "replace_one" else 1)
        X, X_other = np.repeat([records(rng, 9, p)], 2, axis=0)
        y = rng.choice([-1.0, 1.0], 9) if loss is LOGISTIC else records(rng, 9, 1)[:, 0]
        X_other[-1], y_other = records(rng, 1, p)[0], np.r_[y[:-1], -y[-1]]
        if adjacency == "add_remove":
            X_other, y_other = X_other[:-1], y_other[:-1]
        settings = {
            "coef_init": rng.normal(size=p) * rng.choice([0.0, 0.1, 10.0]),
            "order": rng.integers(p, size=(1, 1)),
        }
        settings |= {"center": 0.1, "scale": 1.3, "limit": 3.0, "loss": loss}
        settings |= {"n_passes": 1, "step": 1.0, "clip": clip, "grid_size": grid_size}
        sums = []
        for columns in ((X, y), (X_other, y_other)):
            met = []
            next(coordinate_descent(*columns, **settings, noise=NO_NOISE, add=collector(met)))
            sums.append(met[-1])
        change = abs(sums[0] - sums[1])
        assert change <= bound
        largest = max(largest, change / bound)
    assert largest >= 0.99


# The random matching


def pairs(order):
    """Return the pairs of records that an order of them stands for, as in `find_magnitudes`."""
    half = len(order) // 2
    return frozenset(map(frozenset, zip(order[:half], order[half : 2 * half], strict=True)))


@each_value(1)
@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("n_records", [1, 2, 3, 4, 5])
def test_matchings_of_neighbours_can_be_drawn_together_so_that_one_pair_differs(n_records, place):
    profile, drawn = paired_histogram(100), Counter()
    orders = list(permutations(range(n_records + 1)))
    behind = [record for record in range(n_records + 1) if record != place % (n_records + 1)]
    for order in orders:
        joint = coupled_order(order, place).tolist()
        drawn[pairs(joint)] += Fraction(1, len(orders))
        fewer = pairs([behind[record] for record in joint])  # by their numbers with the other
        # The finest histogram: every pair has a bin of its own.
        lost, gained = len(pairs(order) - fewer), len(fewer - pairs(order))
        assert lost <= 1
        assert gained <= 1
        assert lost + gained <= profile.l1
    alone = list(permutations(range(n_records)))
    uniform = Counter()
    for order in alone:
        uniform[pairs(order)] += Fraction(1, len(alone))
    assert drawn == uniform


@pytest.mark.slow
@pytest.mark.parametrize("n_records", [2, 3, 4, 5])
def test_magnitudes_are_counted_over_the_pairs_of_the_matching(n_records):
    column = np.array([0.0, 1.0, 5.0, 5.0, 1e3])[:n_records]
    for order in permutations(range(n_records)):
        transcript = Ordered(order)
        transcript.watch(private_location_scale, [column], PrivacyGuarantee(1.0))
        first = transcript.meetings[0]
        counts = np.rint(first.integers * first.mechanism.grid_size)
        gaps = [abs(np.subtract(*column[list(pair)])) for pair in pairs(order)]
        expected = Counter(int(np.floor(np.log2(gap))) for gap in gaps if gap > 0)
        assert {k - 100: int(counts[k]) for k in np.flatnonzero(counts)} == expected


# A whole fit: with the released numbers held fixed, what must the noise make up for?


X_BOUNDS = {"feature_bounds": (-1.0, 1.0)}
FITS = {
    "gaussian": {"noise": "inid_gaussian", "delta": 1e-3},
    "gaussian, bounds": {"noise": "inid_gaussian", "delta": 0.1, "n_passes": 1, **X_BOUNDS},
    "pure": {"noise": "iid_laplace", "delta": 0.0, "n_passes": 4},
    "pure, bounds": {"noise": "spr_laplace", "delta": 0.0, **X_BOUNDS},
    "auto, no intercept": {"delta": 1e-6, "fit_intercept": False, "alpha": 0.1, **X_BOUNDS},
}


@quick("DPHuberRegressor 2-replace_one-pure, bounds")
@each_value(1)
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@each(DESCENTS)
def test_a_whole_fit_releases_no_more_than_is_paid_for_and_nothing_else(entry, adjacency, name):
    settings = {"epsilon": 20.0, "adjacency": adjacency, "clip": 0.05, **FITS[name]}
    if "feature_bounds" in settings:
        settings.update(entry.facts.public)
    rng, largest = np.random.default_rng(1), 0.0
    for seed in range(12):
        n = 160 + seed % 2
        X, y = records(rng, n, 2), entry.y(records(rng, n, 1))
        X_other, y_other = X.copy(), y.copy()
        if seed % 3:  # outside all bounds, to the other side
            X[-1] = X_other[-1] = 1e100
            y[-1], y_other[-1] = entry.facts.ends
        else:
            X_other[-1], y_other[-1] = records(rng, 1, 2)[0], y[0]
        if adjacency == "add_remove":
            X_other, y_other = X_other[:-1], y_other[:-1]

        def fit(X, y, seed=seed):
            return entry.estimator(**settings, random_state=seed).fit(X, y)

        runs = two_runs(fit, (X, y), (X_other, y_other), seed)
        assert all(one.share <= TOLERANCE for one in runs.moved)
        epsilon, delta = settings["epsilon"], runs.first.privacy_.guarantee.delta
        assert total_moved(runs.moved).delta(epsilon * TOLERANCE) <= delta * TOLERANCE
        assert runs.first.privacy_.total.delta(epsilon) <= delta
        gradients = [one.share for one in runs.moved if one.label == "gradients"]
        largest = max([largest, *gradients])
        runs.check_same()
    assert largest >= 0.99


@pytest.mark.parametrize(
    ("solver", "most"), [("coordinate", np.sqrt(2 / 3) + 1e-6), ("joint", TOLERANCE)]
)
def test_one_record_of_three_classes_costs_no_more_than_is_paid_for(solver, most):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    X[-1] = 1e100
    settings = {"feature_bounds": (-1.0, 1.0), "n_passes": 3, "solver": solver}
    model = DPLogisticCD(20.0, random_state=0, **settings)
    runs = two_runs(lambda X, y: model.fit(X, y).coef_, (X, y), (X, np.r_[y[:-1], 0]), 0)
    assert (runs.first == runs.second).all()
    # Of "coordinate", two of the three models see the label change.
    (gradients,) = [one for one in runs.moved if one.label == "gradients"]
    assert 0.7 < gradients.share <= most
    assert all(one.share <= TOLERANCE for one in runs.moved)


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("noise", ["iid_laplace", "inid_gaussian"])
def test_each_step_towards_locations_and_scales_costs_what_it_is_charged_for(adjacency, noise):
    guarantee = PrivacyGuarantee(2000.0, 0.0 if noise == "iid_laplace" else 1e-3)
    rng, largest = np.random.default_rng(2), {}
    choices = np.array([[0, 3000], [1, 3500], [1e100, -1e100], [-1e100, 1e100], [-2, 2900.0]])
    for seed in range(120):
        data = rng.normal([0.0, 3000.0], [1.0, 2.0], size=(60 + seed % 2, 2))
        other = data.copy()
        data[-1], other[-1] = rng.permuted(choices, axis=0)[:2]
        labels = {}

        def find(table, seed=seed, labels=labels):
            def note(name, mechanism):
                labels[mechanism] = name

            return private_location_scale(
                table,
                guarantee,
                noise=noise,
                adjacency=adjacency,
                n_samples=60.0,
                random_state=seed,
                charge=note,
            )

        neighbour = other if adjacency == "replace_one" else other[:-1]
        runs = two_runs(find, (data,), (neighbour,), seed)
        runs.check_same()
        for one in runs.moved:
            assert one.share <= TOLERANCE
            label = labels[one.mechanism]
            largest[label] = max(largest.get(label, 0.0), one.share)
    assert len(largest) >= 5
    assert min(largest.values()) >= 0.99


# The account


@quick("inid_laplace-add_remove-DPHuberRegressor 2")
@every_pair
@each(DESCENTS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("noise", ["auto", "spr_gaussian", "inid_laplace"])
def test_the_shares_compose_to_the_guarantee_and_nearly_use_it(entry, adjacency, noise):
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 4
    public = [{}, X_BOUNDS, {**X_BOUNDS, **entry.facts.public}]
    for epsilon in (0.01, 1.0, 30.0):
        for delta in (0.0, 1e-12, 1e-2):
            if not entry.takes(delta=delta, noise=noise):
                continue
            if delta == 0.0 and noise == "spr_gaussian":
                continue
            for bounds in public:
                settings = {"adjacency": adjacency, "noise": noise, "random_state": 0, **bounds}
                model = entry.make(epsilon, delta, **settings).fit(X, y)
                total = model.privacy_.total
                assert total.delta(epsilon) <= delta
                # Without the scale of the target there is no model to spend the rest on.
                if bounds == public[-1] and model._standardised[3]:
                    pure = np.isfinite(total.epsilon(0.0))  # it gains nothing from delta
                    assert total.epsilon(0.0 if pure else delta) >= 0.95 * epsilon


@each_value(1)
@each(DESCENTS)
@pytest.mark.parametrize("settings", [{}, {"delta": 0.0}, {"adjacency": "add_remove"}, X_BOUNDS])
def test_every_draw_was_charged_for_before_and_no_mechanism_draws_more(
    monkeypatch, entry, settings
):
    charged, drawn = [], Counter()
    charge, sample = Account.charge, VectorMechanism.sample
    sample_matrix, select = SymmetricMatrixMechanism.sample, NormQuantileMechanism.select

    def noted_charge(self, label, mechanism):
        charge(self, label, mechanism)
        charged.append(mechanism)

    def noted_sample(self, *args, **kwargs):
        draws = sample(self, *args, **kwargs)
        assert any(mechanism is self for mechanism in charged)
        drawn[id(self)] += len(draws)
        return draws

    def noted_matrix(self, *args):
        assert any(mechanism is self for mechanism in charged)
        drawn[id(self)] += 1
        return sample_matrix(self, *args)

    def noted_select(self, *args):
        assert any(mechanism is self for mechanism in charged)
        drawn[id(self)] += 1
        return select(self, *args)

    monkeypatch.setattr(Account, "charge", noted_charge)
    monkeypatch.setattr(VectorMechanism, "sample", noted_sample)
    monkeypatch.setattr(SymmetricMatrixMechanism, "sample", noted_matrix)
    monkeypatch.setattr(NormQuantileMechanism, "select", noted_select)
    rng = np.random.default_rng(0)
    X = rng.normal(1e5, 1.0, size=(2000, 2))
    model = entry.estimator(epsilon=5.0, **settings, random_state=0).fit(X, np.arange(2000) % 3)
    assert drawn == Counter({id(mechanism): mechanism.n_releases for mechanism in charged})
    n_vectors = sum(release.n_releases for release in model.privacy_.releases)
    assert n_vectors == sum(drawn.values())


def test_a_stage_that_would_overspend_is_refused_and_nothing_is_stored(monkeypatch):
    spend = Account.spend

    def spend_less(self, stages, noise, **facts):
        spend(self, [stage.share(0.9) for stage in stages], noise, **facts)

    monkeypatch.setattr(Account, "spend", spend_less)
    public = {**X_BOUNDS, "target_bounds": (-1.0, 1.0)}
    model = DPCoordinateDescentRegressor(1.0, 1e-6, random_state=0, **public)
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(RuntimeError, match="fits into none of the losses that were fixed"):
        model.fit(X, X[:, 0])
    assert not {"coef_", "coef_path_", "intercept_", "clip_range_", "privacy_"} & set(vars(model))
