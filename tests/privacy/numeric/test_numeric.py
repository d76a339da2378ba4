"""The numeric loss: never below the truth, close to it, and in agreement with others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from skdpnoise.noises import get_noise
from skdpnoise.privacy import (
    GaussianLoss,
    NormalShift,
    NumericLoss,
    Promised,
    PureLoss,
    RandomisedResponse,
    gdp_delta,
)
from skdpnoise.privacy.numeric import _lattice
from skdpnoise.privacy.numeric._lattice import Lattice, LatticeSum, Plan, Tilted, Window
from skdpnoise.privacy.numeric.loss import about_epsilon, bounds_near, composed_delta
from tests._cases import each_value, quick

LAPLACE = get_noise("laplace")


def laplace_loss(*shifts):
    return NumericLoss(tuple((LAPLACE, shift, 1) for shift in shifts))


@each_value(2)
@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("count", [2, 37, 1000, 1_000_000])
def test_composed_normal_shifts_are_the_gaussian_loss(mu, count):
    """The curve of each is known to the lattice only, but their sum is known exactly."""

    class Curve:  # not recognised as normal, so really composed
        hockey_stick = staticmethod(NormalShift().hockey_stick)
        max_loss = staticmethod(NormalShift().max_loss)

    each = np.array([mu / math.sqrt(count)])
    for delta in (0.1, 1e-3, 1e-6, 1e-12, 1e-25):
        epsilon = GaussianLoss(mu).epsilon(delta)
        found = composed_delta([(Curve(), each, np.array([float(count)]))], epsilon)
        truth = gdp_delta(mu, epsilon)
        assert truth <= found <= truth * 1.02


@each_value(2)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("count", [2, 9, 60])
def test_composed_randomised_response_is_the_binomial_formula(epsilon, count):
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3: k answers of n are true."""
    k = np.arange(count + 1)
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    p, loss = binom.pmf(k, count, keep), (2 * k - count) * epsilon
    composed = PureLoss(epsilon).numeric().compose(count)
    for part in (0.0, 0.1, 0.35, 0.8, 0.97):
        total = part * count * epsilon
        truth = float((p * np.maximum(0.0, -np.expm1(total - loss))).sum())
        found = composed.delta(total)
        assert truth * (1.0 - 1e-9) <= found <= truth * 1.03 + 1e-300


def two_dimensional_delta(shift, scale, epsilon, n=3000, reach=30.0):
    """Integrate over the plane: two independent Laplace numbers, by the midpoint rule."""
    delta = 0.0
    ends = np.unique(np.concatenate([np.linspace(-reach, reach, n), [0.0, *shift]]))
    z, width = 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)

    def density(x, centre, b):
        return np.exp(-np.abs(x - centre) / b) / (2.0 * b)

    first = (density(z, 0.0, scale[0]), density(z, shift[0], scale[0]))
    second = (density(z, 0.0, scale[1]), density(z, shift[1], scale[1]))
    excess = np.outer(first[0], second[0]) - math.exp(epsilon) * np.outer(first[1], second[1])
    delta += float((np.maximum(excess, 0.0) * np.outer(width, width)).sum())
    return delta


@quick("0.9")
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 0.9])
def test_two_laplace_coordinates_agree_with_the_integral_over_the_plane(epsilon):
    truth = two_dimensional_delta((0.7, 0.5), (1.0, 1.5), epsilon)
    found = laplace_loss(0.7, 0.5 / 1.5).delta(epsilon)
    assert found == pytest.approx(truth, rel=2e-3)
    assert found >= truth * (1.0 - 1e-4)  # the error of the midpoint rule


@pytest.mark.parametrize(("count", "scale"), [(5, 10.0), (20, 33.4), (100, 79.4), (400, 160.5)])
def test_the_measured_scales_of_composed_laplace_noise(count, scale):
    """Those of the design document, at epsilon 0.5 and delta 1e-6, to the digits given."""
    at = laplace_loss(*[1.0 / (scale * 1.003)] * count)
    assert at.delta(0.5) <= 1e-6
    below = laplace_loss(*[1.0 / (scale * 0.99)] * count)
    assert below.delta(0.5) > 1e-6


@pytest.mark.parametrize("n", [60, 3000])
def test_many_distinct_shifts_are_covered_by_few_lattices(n):
    """Each group of shifts, taken apart, and all of them rounded up: bounds from both sides."""
    shifts = np.sort(np.random.default_rng(0).uniform(0.001, 0.05, n))
    ones = np.ones(n)
    total = math.sqrt(float(shifts @ shifts))
    for epsilon in (0.5 * total, 2.0 * total, 4.0 * total):
        found = composed_delta([(LAPLACE, shifts, ones)], epsilon)
        unique = np.unique(0.001 * np.floor(shifts / 0.001))
        down = [
            (
                LAPLACE,
                np.array([s]),
                np.array([float(np.sum(0.001 * np.floor(shifts / 0.001) == s))]),
            )
            for s in unique
            if s > 0.0
        ]
        up = [
            (
                LAPLACE,
                np.array([s + 0.001]),
                np.array([float(np.sum(0.001 * np.floor(shifts / 0.001) == s))]),
            )
            for s in unique
        ]
        assert composed_delta(down, epsilon) < found < composed_delta(up, epsilon)


def test_mixtures_of_lattices_agree_with_one_lattice_for_each_shift(monkeypatch):
    shifts = np.sort(np.random.default_rng(1).uniform(0.01, 0.5, 200))
    for epsilon in (0.5, 3.0, 8.0):
        few = composed_delta([(LAPLACE, shifts, np.ones(200))], epsilon)
        with monkeypatch.context() as patch:
            patch.setattr("skdpnoise.privacy.numeric._lattice._NODES_FREE", 10**6)
            each = composed_delta([(LAPLACE, shifts, np.ones(200))], epsilon)
        assert each <= few <= 1.03 * each


@pytest.mark.parametrize("n_shifts", [1001, 5000])
def test_shifts_are_only_ever_merged_upwards(n_shifts):
    """As many shifts of at least every size are planned for as there were."""
    rng = np.random.default_rng(n_shifts)
    shifts = np.sort(np.exp(rng.uniform(-6.0, 0.0, n_shifts)))
    counts = rng.integers(1, 4, n_shifts).astype(float)
    plan = Plan(LAPLACE, shifts, counts, 1e-60)
    assert plan.shifts.size < n_shifts
    assert plan.counts.sum() == counts.sum()
    for size in shifts:
        planned = plan.counts[plan.shifts >= size * (1.0 - 1e-12)].sum()
        assert planned >= counts[shifts >= size].sum()
    assert plan.counts @ plan.shifts <= 1.005 * (counts @ shifts)


def curve_of(lattice, step, n_dots):
    """Return the curve of a lattice at its dots, term by term."""
    dots = step * np.arange(n_dots)
    gains = np.maximum(0.0, -np.expm1(dots[:, None] - step * lattice.losses))
    return gains @ lattice.p + lattice.infinite


@quick("laplace")
@pytest.mark.parametrize("family", ["laplace", "osgt"])
def test_a_mixture_of_two_lattices_covers_every_shift_between_them(family):
    curve = get_noise(family)
    shifts = np.geomspace(0.02, 1.5, 300)
    plan = Plan(curve, shifts, np.ones(300), 1e-30)
    assert plan.nodes.size < plan.shifts.size
    step, lattices = 0.01, []
    for low, high, t, shift in zip(
        *plan.build(step, lattices)[:3], plan.shifts.tolist(), strict=True
    ):
        n_dots = lattices[high].p.size // 2 + 1
        pair = [curve_of(lattices[k], step, n_dots) for k in (low, high)]
        mixed = (1.0 - t) * pair[0] + t * pair[1]
        exact = curve.hockey_stick(step * np.arange(n_dots), shift)
        assert (mixed >= exact * (1.0 - 1e-9) - 1e-17).all()
        assert mixed[0] <= 1.05 * exact[0]


def test_no_probability_of_the_transform_is_below_that_of_a_convolution():
    """A convolution of non-negative numbers keeps its relative accuracy, the transform does not."""
    step, count = 0.05, 6
    lattice = Lattice(NormalShift().hockey_stick(step * np.arange(81), 0.5), step)
    term = np.array([0]), np.array([0]), np.ones(1), np.array([float(count)])
    composition = LatticeSum([lattice], *term)
    state = composition.tilted_to(60.0)
    found = composition.window(state, 1 << 10, 481.0 - state.mean, step)
    tilted = lattice.p * np.exp(state.theta * lattice.losses - state.log_moments[0])
    exact = np.ones(1)
    for _ in range(count):
        exact = np.convolve(exact, tilted)
    inside = (found.losses >= -(exact.size // 2)) & (found.losses <= exact.size // 2)
    wanted = exact[found.losses[inside] + exact.size // 2]
    assert wanted.min() < 1e-20  # far below the error of the transform
    assert (found.probability[inside] >= wanted * (1.0 - 1e-12)).all()
    assert np.abs(found.probability[inside] - wanted).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_agreement_with_dp_accounting(family):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for scale, count, epsilon in ((5.0, 20, 1.0), (40.0, 300, 0.5), (3.0, 4, 0.7)):
        if family == "laplace":
            make, loss = pld.from_laplace_mechanism, laplace_loss(1.0 / scale).compose(count)
        else:
            make = pld.from_gaussian_mechanism
            loss = GaussianLoss(1.0 / scale).numeric().compose(count)
        bounds = [
            make(scale, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic)
            .self_compose(count)
            .get_delta_for_epsilon(epsilon)
            for pessimistic in (False, True)
        ]
        found = loss.delta(epsilon)
        assert bounds[0] * (1.0 - 1e-6) - 1e-12 <= found
        assert found <= bounds[1] * 1.005 + 1e-12


@pytest.mark.slow
def test_agreement_with_opendp_on_a_single_release():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    laplace = dp.m.make_laplace(*space, scale=2.0)
    assert laplace.map(1.0) == pytest.approx(laplace_loss(0.5).pure_epsilon, rel=1e-9)
    gaussian = dp.m.make_gaussian(*space, scale=4.0)  # a zCDP loss
    assert gaussian.map(1.0) == pytest.approx(0.25**2 / 2, rel=1e-9)


def test_all_kinds_compose_in_any_order_and_cost_more_together():
    parts = [
        PureLoss(0.3),
        GaussianLoss(0.4),
        laplace_loss(0.2, 0.3),
        NumericLoss(((get_noise("truncated_laplace", 9.0), 0.3, 1),)),
        NumericLoss(((get_noise("flipped_huber", 2.0), 0.3, 2),)),
    ]
    forward = parts[0]
    for part in parts[1:]:
        forward = forward + part
    backward = parts[-1]
    for part in parts[-2::-1]:
        backward = backward + part
    assert forward.delta(0.8) == pytest.approx(backward.delta(0.8), rel=1e-9)
    for part in parts:
        assert forward.delta(0.8) > part.delta(0.8)
    assert forward.delta(50.0) >= parts[3].delta(50.0) > 0.0  # disclosure stays


def test_epsilon_inverts_delta_and_rounds_up():
    for loss in (laplace_loss(*[0.1] * 30), PureLoss(0.05).numeric().compose(400)):
        for delta in (1e-9, 1e-6, 1e-2):
            epsilon = loss.epsilon(delta)
            assert loss.delta(epsilon) <= delta
            assert loss.delta(epsilon * (1.0 - 1e-4)) > delta
        assert loss.epsilon(0.0) == loss.pure_epsilon
        assert loss.delta(loss.pure_epsilon) == 0.0
        assert loss.epsilon(0.9999) == 0.0
    assert (GaussianLoss(1.0) + laplace_loss(0.1)).epsilon(0.0) == math.inf


def test_four_hundred_small_fits_cost_what_tight_composition_says():
    assert PureLoss(0.05).numeric().compose(400).epsilon(1e-6) <= 4.87
    assert laplace_loss(0.05).compose(400).epsilon(1e-6) <= 4.82


def test_equal_terms_are_merged_and_normal_ones_are_added_in_squares():
    loss = laplace_loss(0.1, 0.1, 0.0) + GaussianLoss(3.0) + GaussianLoss(4.0)
    terms = {type(curve).__name__: (shift, count) for curve, shift, count in loss.terms}
    assert terms["Laplace"] == (0.1, 2)
    assert terms["NormalShift"] == (pytest.approx(5.0), 1)
    assert len(loss.terms) == 2
    assert loss == laplace_loss(0.1, 0.1) + GaussianLoss(3.0) + GaussianLoss(4.0)
    assert hash(loss) == hash(laplace_loss(0.1, 0.1) + GaussianLoss(3.0) + GaussianLoss(4.0))


def test_a_tiny_delta_keeps_its_relative_accuracy():
    """Ten Laplace numbers near the end of their loss: delta is the chance of ten extreme ones."""
    loss = laplace_loss(*[1.0] * 10)
    deltas = [loss.delta(epsilon) for epsilon in (9.0, 9.9, 9.99)]
    # P(each loss is 1) = 1/2, so delta is above 2**-10 (1 - e^(e - 10)).
    for epsilon, delta in zip((9.0, 9.9, 9.99), deltas, strict=True):
        assert delta >= 2.0**-10 * -math.expm1(epsilon - 10.0)
        assert delta <= 2.0**-10 * (10.0 - epsilon) * 10.0


def test_chords_lie_above_the_curve_and_keep_its_masses():
    curve, step = RandomisedResponse(), 0.13
    lattice = Lattice(curve.hockey_stick(step * np.arange(12), 1.0), step)
    assert lattice.p.sum() + lattice.infinite == pytest.approx(1.0, abs=1e-9)
    assert (lattice.p * np.exp(-step * lattice.losses)).sum() <= 1.0 + 1e-9
    for epsilon in np.linspace(0.0, 1.2, 50):
        found = (lattice.p * np.maximum(0.0, -np.expm1(epsilon - step * lattice.losses))).sum()
        assert found + lattice.infinite >= float(curve.hockey_stick(epsilon, 1.0)) - 1e-15


def test_the_search_value_is_near_the_exact_one():
    for shifts in ([0.05] * 30, [0.01] * 400):
        loss = laplace_loss(*shifts)
        group = [(LAPLACE, np.array([shifts[0]]), np.array([float(len(shifts))]))]
        exact = loss.epsilon(1e-6)
        assert about_epsilon(group, 1e-6, exact) == pytest.approx(exact, rel=1e-2)


@each_value(2)
@pytest.mark.parametrize("curve", [get_noise("subbotin", 1.4), NormalShift(), get_noise("osgt")])
@pytest.mark.parametrize("floor", [1e-60, 1e-15, 1e-3, 2.0])
def test_an_unbounded_loss_ends_at_the_first_reach_below_the_floor(curve, floor):
    shifts, floors = np.geomspace(1e-6, 30.0, 9), np.full(9, floor)
    for shift, top in zip(shifts, _lattice._tops(curve, shifts, floors), strict=True):
        reaches = _lattice._REACHES.ravel() * shift
        values = curve.hockey_stick(reaches, shift)
        level = max(floor, values[-1] * (1.0 + 1e-9))
        assert top == reaches[np.argmax(values <= level)]


@pytest.mark.parametrize("near", [0.3, 1.0, 1.0001, 4.0])
def test_quick_bounds_are_bounds_and_close_where_they_are_near(near):
    normal = NumericLoss(((NormalShift(), 0.3, 1), (get_noise("subbotin", 1.4), 0.05, 9)))
    exact = normal.epsilon(1e-6)
    at, bound = normal.bounds_near(near * exact, 1e-6)
    assert at >= normal.delta(near * exact) * (1.0 - 1e-6)
    assert bound >= exact * (1.0 - 1e-6)
    if abs(near - 1.0) < 0.01:
        assert bound == pytest.approx(exact, rel=1e-3)


def test_an_empty_loss_costs_nothing():
    nothing = laplace_loss(0.0)
    assert (nothing.delta(0.0), nothing.epsilon(0.0), nothing.pure_epsilon) == (0.0, 0.0, 0.0)


def test_losses_print_what_they_promise():
    assert str(laplace_loss(0.25, 0.25)) == "0.5-DP"
    assert str(laplace_loss(0.25) + GaussianLoss(0.1)).endswith("1e-06)-DP")
    assert repr(laplace_loss(0.25, 0.5)) == "NumericLoss(2 x Laplace)"


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="'shift'"):
        laplace_loss(bad)
    with pytest.raises(ValueError, match="'epsilon'"):
        laplace_loss(0.1).delta(bad)
    with pytest.raises(ValueError, match="'delta'"):
        laplace_loss(0.1).epsilon(bad)
    with pytest.raises(TypeError):
        laplace_loss(0.1) + 1.0


@pytest.mark.slow
@pytest.mark.parametrize("cells", [50, 3_000])
def test_lattices_are_the_same_in_tables_of_any_size(cells, monkeypatch):
    shifts = np.geomspace(1e-3, 0.2, 70)
    groups = [(curve, shifts, np.ones(70)) for curve in (LAPLACE, get_noise("subbotin", 1.4))]
    delta = composed_delta(groups, 2.0)
    bounds = bounds_near(groups, 1e-6, 3.0)
    monkeypatch.setattr(_lattice, "_CELLS", cells)
    assert composed_delta(groups, 2.0) == pytest.approx(delta, rel=1e-9)
    assert bounds_near(groups, 1e-6, 3.0) == pytest.approx(bounds, rel=1e-9)


def test_what_is_right_of_a_window_counts_as_its_end():
    state = Tilted(0.25, np.zeros(1), np.ones(1), 0.5, 0.0, 1.0)
    window = Window(np.arange(-3, 9), np.where(np.arange(-3, 9) > 2, 0.0, 0.1), state, 0.1)
    # e^{K} times what is cut off, e^-44 at most, times e^{-θ l} at the last loss l = 8
    assert window.tail(3.0) >= math.exp(0.5 - 44.0 - 0.25 * 8.0)
    assert window.tail(3.0) <= 2.001 * math.exp(0.5 - 44.0 - 0.25 * 8.0)


@pytest.mark.parametrize("apart", [1e-15, 1e-3])
@pytest.mark.parametrize("count", [2, 20])
def test_shifts_that_are_close_are_composed_as_they_are(apart, count):
    shifts = 0.2 * (1.0 - apart * np.arange(count)[::-1])
    groups = [(get_noise("subbotin", 2.0), shifts, np.ones(count))]
    mu = math.sqrt(float(shifts @ shifts))
    epsilon = GaussianLoss(mu).epsilon(1e-6)
    truth = gdp_delta(mu, epsilon)
    assert truth * (1.0 - 1e-12) <= composed_delta(groups, epsilon) <= truth * 1.002


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian"])
def test_integers_that_cannot_move_cost_nothing(name):
    noise = get_noise(name, 1.0)
    none = NumericLoss(((noise, 0.5, 1000), (noise, 0.3, 2)))
    assert none.terms == ()
    assert none.delta(0.0) == 0.0
    mixed = NumericLoss(((noise, 0.5, 1000), (noise, 0.3, 2), (noise, 1.0, 3), (noise, 2.5, 1)))
    assert mixed.delta(1.0) == NumericLoss(((noise, 1.0, 3), (noise, 2.5, 1))).delta(1.0) > 0.0


CHANCES = [
    (PureLoss(0.7), 1e-4, 1),
    (GaussianLoss(0.5), 1e-6, 3),
    (PureLoss(0.2).numeric().compose(5), 0.01, 2),
    (PureLoss(0.3) + GaussianLoss(0.4), 1e-9, 7),
]


@pytest.mark.parametrize(("rest", "chance", "count"), CHANCES, ids=str)
def test_a_chance_of_disclosure_beside_a_loss_is_that_chance_and_else_the_loss(rest, chance, count):
    loss = rest + NumericLoss(((Promised(chance), 0.0, count),))
    some = -math.expm1(count * math.log1p(-chance))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        expected = some + (1.0 - some) * rest.delta(epsilon)
        assert expected <= loss.delta(epsilon) <= expected * (1.0 + 1e-9)
        # As a shift that is hardly one, on the lattice, which bounds it from above.
        nearly = rest + NumericLoss(((Promised(chance), 1e-12, count),))
        assert loss.delta(epsilon) <= nearly.delta(epsilon) * (1.0 + 1e-9)
    assert loss.epsilon(0.5 * some) == math.inf
    delta = 2.0 * some
    assert loss.epsilon(delta) == pytest.approx(rest.epsilon((delta - some) / (1.0 - some)), 1e-6)
    at, smallest = loss.bounds_near(0.5, delta)
    assert at >= loss.delta(0.5) * (1.0 - 1e-9)
    assert smallest >= loss.epsilon(delta) * (1.0 - 1e-9)


def test_chances_of_disclosure_alone_lose_nothing_else():
    loss = NumericLoss(((Promised(0.1), 0.0, 2),))
    assert loss.delta(0.0) == pytest.approx(0.19)
    assert loss.delta(50.0) == pytest.approx(0.19)
    assert loss.epsilon(0.2) == 0.0
    assert NumericLoss(((NormalShift(), 0.0, 2), (RandomisedResponse(), 0.0, 1))).terms == ()


@pytest.mark.parametrize("count", [500, 10**6])
def test_chances_that_add_up_to_certainty_bound_nothing(count):
    certain = NumericLoss(((Promised(0.1), 0.0, count),))
    for loss in (certain, certain + PureLoss(0.5), certain + PureLoss(0.5).numeric().compose(3)):
        assert loss.delta(1.0) == 1.0
        assert loss.epsilon(1e-6) == math.inf
        assert loss.bounds_near(1.0, 1e-6) == (1.0, math.inf)
    nearly = NumericLoss(((Promised(1.0 - 1e-12), 0.0, 1),))
    with np.errstate(all="raise"):
        assert nearly.delta(1.0) == pytest.approx(1.0)
