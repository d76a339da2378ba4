"""Releases from Poisson samples: both orders of the neighbours, against others and by force."""

from __future__ import annotations

import itertools
import logging
import math
import warnings

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from skdpnoise.noises import get_noise
from skdpnoise.privacy import (
    GaussianLoss,
    NormalShift,
    NumericLoss,
    PoissonSampled,
    PrivacyGuarantee,
    PureLoss,
    RandomisedResponse,
    Repetition,
    TruncatedNegativeBinomial,
    largest_sampled_shift,
    poisson_sampled,
)
from skdpnoise.privacy.numeric import loss as numeric
from skdpnoise.privacy.numeric._lattice import Lattice, Plan
from skdpnoise.privacy.numeric.loss import about_epsilon, bounds_near, composed_delta
from skdpnoise.privacy.repetition.curve import Composed
from skdpnoise.privacy.sampled import check_relation, needs_add_remove
from tests._cases import each_value, every_pair

LAPLACE = get_noise("laplace")
BASES = {"normal": NormalShift(), "laplace": LAPLACE}


def sampled_laplace(shift, rate, steps=1):
    return poisson_sampled(NumericLoss(((LAPLACE, shift, 1),)), rate).compose(steps)


def sampled_normal(mu, rate, steps=1):
    return poisson_sampled(GaussianLoss(mu), rate).compose(steps)


# One release, against integrals in forty digits.


def densities(base, shift, rate):
    """Return the densities with the record sampled, and without it."""

    def without(x):
        return mpmath.npdf(x) if base == "normal" else mpmath.exp(-abs(x)) / 2

    def with_it(x):
        return rate * without(x - shift) + (1 - rate) * without(x)

    return with_it, without


def integrated(base, shift, rate, epsilon, adding):
    """Return the integral of (p - e^ε q)_+ over the line."""
    with mpmath.workdps(40):
        one, other = densities(base, mpmath.mpf(shift), mpmath.mpf(rate))
        if adding:
            one, other = other, one

        def excess(x):
            return one(x) - mpmath.exp(epsilon) * other(x)

        # The ratio rises, or falls, with x: one end is where the excess changes its sign.
        points = [mpmath.mpf(x) / 8 for x in range(-8 * 60, 8 * 60)]
        signs = [excess(x) > 0 for x in points]
        if not any(signs):
            return mpmath.mpf(0)
        kinks = [mpmath.mpf(0), mpmath.mpf(shift)]
        change = next((i for i in range(1, len(points)) if signs[i] != signs[i - 1]), None)
        if change is not None:
            ends = (points[change - 1], points[change])
            kinks.append(mpmath.findroot(excess, ends, solver="anderson", tol=1e-60))
        inner = sorted({points[0], *points[::16], *kinks, points[-1]})
        return mpmath.quad(lambda x: max(excess(x), mpmath.mpf(0)), inner)


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("rate", "shift", "epsilon"),
    [
        (1e-4, 1.0, 0.0),
        (1e-4, 5.0, 2.0),
        (0.01, 0.2, 0.001),
        (0.01, 1.0, 0.008),
        (0.3, 2.0, 0.25),
        (0.3, 0.5, 0.1),
        (0.9, 3.0, 1.5),
    ],
)
def test_both_orders_of_one_release_are_the_integrals(base, rate, shift, epsilon):
    ways = PoissonSampled(rate, BASES[base]).ways
    truths = [float(integrated(base, shift, rate, epsilon, adding)) for adding in (False, True)]
    for way, truth in zip(ways, truths, strict=True):
        found = float(way.hockey_stick(epsilon, shift))
        assert truth * (1.0 - 1e-12) <= found <= truth * (1.0 + 1e-9)
    found = NumericLoss(((PoissonSampled(rate, BASES[base]), shift, 1),)).delta(epsilon)
    assert found == pytest.approx(max(truths), rel=1e-9)


@pytest.mark.slow
def test_far_tails_of_one_release_are_the_integrals():
    curve = PoissonSampled(0.01).ways[0]
    truth = float(integrated("normal", 2.0, 0.01, 18.0, adding=False))
    assert 1e-30 < truth < 1e-20
    assert truth * (1.0 - 1e-12) <= float(curve.hockey_stick(18.0, 2.0)) <= truth * (1.0 + 1e-9)


def test_the_orders_meet_at_zero_and_differ_elsewhere():
    removing, adding = PoissonSampled(0.1).ways
    assert removing.hockey_stick(0.0, 1.5) == pytest.approx(float(adding.hockey_stick(0.0, 1.5)))
    assert removing.hockey_stick(0.1, 1.5) > 10.0 * adding.hockey_stick(0.1, 1.5)


# Many releases, against sums that are exact.


def binomial_delta(pure, rate, steps, epsilon, adding):
    """Return δ of sampled answers of randomised response: the true ones of T are binomial."""
    keep = 1.0 / (1.0 + math.exp(-pure))
    without = np.array([1.0 - keep, keep])[::-1]
    sampled = rate * without[::-1] + (1.0 - rate) * without
    one, other = (without, sampled) if adding else (sampled, without)
    loss = np.log(one / other)
    k = np.arange(steps + 1)
    total = k * loss[1] + (steps - k) * loss[0]
    return float(
        binom.pmf(k, steps, one[1]) @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - total, 0.0)))
    )


@each_value(2)
@pytest.mark.slow
@pytest.mark.parametrize(("pure", "rate"), [(0.3, 0.5), (2.0, 0.1), (6.0, 0.002), (1.0, 0.97)])
@pytest.mark.parametrize("steps", [2, 30, 2000])
def test_sampled_randomised_response_is_the_binomial_formula(pure, rate, steps):
    loss = poisson_sampled(PureLoss(pure), rate).compose(steps)
    for delta in (1e-2, 1e-6, 1e-15):
        epsilon = loss.epsilon(delta)
        truth = [binomial_delta(pure, rate, steps, epsilon, adding) for adding in (False, True)]
        assert max(truth) * (1.0 - 1e-9) <= delta
        tighter = [binomial_delta(pure, rate, steps, 0.99 * epsilon, a) for a in (False, True)]
        assert epsilon == 0.0 or max(tighter) > delta


@pytest.mark.parametrize("adding", [False, True])
@pytest.mark.parametrize(("pure", "rate", "steps"), [(2.0, 0.1, 50), (1.0, 0.6, 300)])
def test_each_order_by_itself_is_the_binomial_formula(pure, rate, steps, adding):
    groups = [(PoissonSampled(rate, RandomisedResponse()), np.array([pure]), np.array([steps]))]
    for part in (0.02, 0.1, 0.3):
        epsilon = part * steps * math.log1p(rate * math.expm1(pure))
        truth = binomial_delta(pure, rate, steps, epsilon, adding)
        found = numeric._skewed_delta(groups, epsilon, 1e-60, 0.0, adding=adding)
        assert truth * (1.0 - 1e-9) <= found <= truth * 1.02 + 1e-60


def test_an_added_record_may_be_easier_to_see_than_one_taken_away():
    """Not in one release, but in two: so both orders are followed."""
    epsilon = 0.3036
    removing, adding = (binomial_delta(1.0, 0.6, 2, epsilon, order) for order in (False, True))
    assert adding > 1.25 * removing
    found = poisson_sampled(PureLoss(1.0), 0.6).compose(2).delta(epsilon)
    assert adding * (1.0 - 1e-9) <= found <= adding * 1.001
    groups = [(PoissonSampled(0.6, RandomisedResponse()), np.array([1.0]), np.array([2.0]))]
    assert adding * (1.0 - 1e-9) <= bounds_near(groups, 1e-6, epsilon)[0] <= adding * 1.01


def test_every_output_of_a_tiny_batch_query_is_within_the_curve():
    """Three other records with coins of their own, a noisy integer sum, and all outputs."""
    rate, scale = 0.3, 0.8
    grid = np.arange(-60, 61)
    noise = math.tanh(0.5 / scale) * np.exp(-np.abs(grid) / scale)

    def law(values):
        found = np.zeros(grid.size)
        for coins in itertools.product((0, 1), repeat=len(values)):
            chance = math.prod(rate if coin else 1.0 - rate for coin in coins)
            moved = sum(v for v, coin in zip(values, coins, strict=True) if coin)
            found += chance * np.roll(noise, moved)
        return found

    loss = poisson_sampled(PureLoss(1.0 / scale), rate)
    gap = 0.0
    for others in itertools.product((-1, 0, 1), repeat=3):
        for record in (-1, 1):
            p, q = law((*others, record)), law(others)
            for epsilon in (0.0, 0.1, 0.3, 0.45):
                for one, other in ((p, q), (q, p)):
                    delta = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
                    assert delta <= loss.delta(epsilon) + 1e-12
                    gap = max(gap, delta / loss.delta(epsilon))
    assert gap > 0.5  # and it comes close


# Many releases, against dp-accounting.


def oracle(steps, deltas, *, interval=1e-4, pessimistic, laplace=False, **mechanism):
    """Return ε of dp-accounting, the larger one of both orders."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    make = pld.from_laplace_mechanism if laplace else pld.from_gaussian_mechanism
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # its optimistic estimate warns that it has one method only
    try:
        one = make(
            **mechanism, pessimistic_estimate=pessimistic, value_discretization_interval=interval
        )
        composed = one.self_compose(steps) if steps > 1 else one
        return [composed.get_epsilon_for_delta(delta) for delta in deltas]
    finally:
        logger.setLevel(level)


DELTAS = (1e-3, 1e-6, 1e-10)
LARGEST_OF_ORACLE = 690.0  # beyond, exp(-ε) is subnormal, and dp-accounting says infinity


def check_bar(rate, mu, steps, deltas=DELTAS):
    loss = sampled_normal(mu, rate, steps)
    interval = max(1e-4, 1e-6 * loss.epsilon(1e-6))  # or dp-accounting needs gigabytes
    facts = {"standard_deviation": 1.0 / mu, "sampling_prob": rate, "interval": interval}
    lows = oracle(steps, deltas, pessimistic=False, **facts)
    highs = oracle(steps, deltas, pessimistic=True, **facts)
    for delta, low, high in zip(deltas, lows, highs, strict=True):
        found = loss.epsilon(delta)
        if found > LARGEST_OF_ORACLE:
            assert found <= GaussianLoss(mu).compose(steps).epsilon(delta)  # without sampling
            continue
        assert low * (1.0 - 1e-9) <= found <= 1.005 * high + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "mu", "steps"),
    [(0.01, 1.0, 10_000), (1e-4, 2.0, 100), (0.1, 0.5, 100)],
)
def test_epsilon_is_between_the_estimates_of_dp_accounting(rate, mu, steps):
    check_bar(rate, mu, steps, (1e-6,))


@each_value(2)
@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-4, 0.01, 0.1, 0.5])
@pytest.mark.parametrize("steps", [1, 100, 10_000])
@pytest.mark.parametrize("mu", [0.2, 0.5, 1.0, 2.0, 5.0])
def test_epsilon_is_between_the_estimates_of_dp_accounting_everywhere(rate, steps, mu):
    check_bar(rate, mu, steps)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "shift", "steps"), [(0.01, 1.0, 100), (0.2, 0.3, 1000)])
def test_laplace_steps_are_between_the_estimates_of_dp_accounting(rate, shift, steps):
    facts = {"parameter": 1.0 / shift, "sampling_prob": rate, "laplace": True}
    (low,) = oracle(steps, (1e-6,), pessimistic=False, **facts)
    (high,) = oracle(steps, (1e-6,), pessimistic=True, **facts)
    assert low <= sampled_laplace(shift, rate, steps).epsilon(1e-6) <= 1.005 * high


@pytest.mark.slow
def test_a_count_bought_first_composes_as_in_dp_accounting():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    interval = {"value_discretization_interval": 1e-4}
    theirs = pld.from_gaussian_mechanism(1.0, sampling_prob=0.02, **interval).self_compose(200)
    theirs = theirs.compose(pld.from_gaussian_mechanism(4.0, **interval))
    theirs = theirs.compose(pld.from_laplace_mechanism(5.0, **interval))
    laplace = NumericLoss(((LAPLACE, 0.2, 1),))
    parts = [GaussianLoss(0.25), sampled_normal(1.0, 0.02, 200), laplace]
    for order in itertools.permutations(parts):
        total = order[0] + order[1] + order[2]
        high = theirs.get_epsilon_for_delta(1e-6)
        assert high - 0.03 <= total.epsilon(1e-6) <= 1.005 * high


# What is known in closed form, and how it moves.


def test_a_rate_of_one_is_the_loss_itself_and_a_rate_of_zero_none():
    assert sampled_normal(0.3, 1.0, 100) == GaussianLoss(0.3).compose(100)
    assert sampled_normal(0.3, 1.0, 100).mu == pytest.approx(0.3 * 10.0)
    assert sampled_normal(0.3, 0.0, 100) == PureLoss(0.0)
    assert poisson_sampled(GaussianLoss(0.0), 0.5) == PureLoss(0.0)


@pytest.mark.slow
def test_rates_near_one_tend_to_the_gaussian_loss():
    exact = GaussianLoss(0.2).compose(100)
    near = sampled_normal(0.2, 1.0 - 1e-9, 100)
    for delta in (1e-3, 1e-9, 1e-15):
        epsilon = exact.epsilon(delta)
        assert epsilon * (1.0 - 1e-6) <= near.epsilon(delta) <= epsilon * 1.002


@every_pair
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("shift", [1e-3, 0.7, 8.0, 700.0])
@pytest.mark.parametrize("steps", [1, 1000])
def test_pure_epsilon_of_laplace_steps_is_the_closed_form(rate, shift, steps):
    with mpmath.workdps(40):
        truth = steps * mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(shift)))
    found = sampled_laplace(shift, rate, steps)
    assert truth <= found.epsilon(0.0) <= float(truth) * (1.0 + 1e-12)
    assert found.delta(found.epsilon(0.0)) == 0.0
    assert found.delta(0.999 * found.epsilon(0.0)) > 0.0 or steps > 1


def test_an_added_record_loses_at_most_what_the_closed_form_says():
    with mpmath.workdps(40):
        truth = -mpmath.log1p(mpmath.mpf(0.2) * mpmath.expm1(mpmath.mpf(-3.0)))
    found = PoissonSampled(0.2, LAPLACE).ways[1].max_loss(3.0)
    assert float(found) == pytest.approx(float(truth), rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("make", [sampled_normal, sampled_laplace])
def test_more_of_anything_costs_more(make):
    middle = make(0.8, 0.05, 50)
    assert make(0.8, 0.05, 49).epsilon(1e-6) < middle.epsilon(1e-6)
    assert make(0.8, 0.049, 50).epsilon(1e-6) < middle.epsilon(1e-6)
    assert make(0.79, 0.05, 50).epsilon(1e-6) < middle.epsilon(1e-6)
    assert middle.epsilon(1e-6) < middle.epsilon(5e-7)
    deltas = [middle.delta(e) for e in np.linspace(0.0, 3.0, 13)]
    assert all(a >= b for a, b in itertools.pairwise(deltas))
    assert middle.epsilon(1e-6) < (middle + PureLoss(1e-3)).epsilon(1e-6)
    assert middle.epsilon(1e-6) < make(0.8, 1.0, 50).epsilon(1e-6)


def test_a_sampled_step_is_never_below_a_smaller_pair():
    """Curves are rounded up: each covers the one of a rate and a shift a hair smaller."""
    epsilons = np.geomspace(1e-8, 30.0, 400)
    for rate, shift in ((1e-4, 1.0), (0.3, 0.2), (0.9, 5.0)):
        larger = PoissonSampled(rate, LAPLACE), PoissonSampled(rate)
        smaller = PoissonSampled(rate * (1 - 1e-9), LAPLACE), PoissonSampled(rate * (1 - 1e-9))
        for one, other in zip(larger, smaller, strict=True):
            for way, below in zip(one.ways, other.ways, strict=True):
                high = way.hockey_stick(epsilons, shift)
                assert (high >= below.hockey_stick(epsilons, shift * (1 - 1e-9))).all()


@pytest.mark.slow
def test_tails_of_delta_1e_15_are_near_those_that_logs_of_delta_extend_to():
    loss = sampled_normal(1.0, 0.01, 1000)
    epsilons = [loss.epsilon(delta) for delta in (1e-13, 1e-14, 1e-15, 1e-16)]
    steps = np.diff(epsilons)
    assert (steps > 0.0).all()
    assert (np.diff(steps) < 0.05 * steps[0]).all()  # concave, or nearly, in -log δ
    assert loss.delta(epsilons[2]) <= 1e-15 < loss.delta(epsilons[2] * 0.999)


@every_pair
@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-300, 1e-12, 0.3, 1.0 - 2.0**-53])
@pytest.mark.parametrize("shift", [1e-120, 0.1, 40.0, 1e8])
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("steps", [1, 7])
def test_extremes_are_numbers(rate, shift, base, steps):
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        loss = NumericLoss(((PoissonSampled(rate, base), shift, steps),))
        deltas = [loss.delta(epsilon) for epsilon in (0.0, 1.0, 700.0)]
    # An infinite loss whose chance is all there is counts a thousandth more.
    assert all(0.0 <= b <= a * 1.0011 for a, b in itertools.pairwise([1.0, *deltas]))
    if shift <= 0.1:
        assert loss.epsilon(1e-15) <= 0.1 * steps * (1.0 + 20.0)
    if shift == 1e8 and base != LAPLACE:  # whoever is sampled is seen
        seen = -math.expm1(steps * math.log1p(-max(rate, 1e-100)))
        assert deltas[2] == pytest.approx(seen, rel=2e-3)


# How it composes.


@pytest.mark.slow
def test_many_different_shifts_are_between_the_next_smaller_and_larger_ones():
    rng = np.random.default_rng(0)
    shifts = np.sort(rng.uniform(0.3, 2.0, 120))
    curve, ones = PoissonSampled(0.1), np.ones(120)
    few = composed_delta([(curve, shifts, ones)], 2.0)
    merged = [np.array([shifts[i : i + 3].max() for i in range(0, 120, 3)]), np.full(40, 3.0)]
    lower = [np.array([shifts[i : i + 3].min() for i in range(0, 120, 3)]), np.full(40, 3.0)]
    assert composed_delta([(curve, *lower)], 2.0) < few < composed_delta([(curve, *merged)], 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("adding", [False, True])
def test_a_mixture_of_two_lattices_covers_both_halves_of_every_curve(adding):
    shifts = np.geomspace(0.05, 2.0, 300)
    plan = Plan(PoissonSampled(0.2), shifts, np.ones(300), 1e-30, adding=adding)
    lattices: list[Lattice] = []
    step = plan.tops.max() / 400.0
    low, high, t, _ = plan.build(step, lattices)
    for i in range(0, 300, 23):
        for curve, sign in ((plan.curve, 1.0), (plan.back, -1.0)):
            mixed = 0.0
            for index, part in ((low[i], 1.0 - t[i]), (high[i], t[i])):
                lattice = lattices[index]
                # of the order that this half belongs to: e^{-L} turns one law into the other
                mass = lattice.p * np.exp(-step * lattice.losses * (sign < 0.0))
                beyond = np.maximum(0.0, -np.expm1(-step * (sign * lattice.losses - 3.0)))
                rest = lattice.infinite if sign > 0.0 else max(0.0, 1.0 - float(mass.sum()))
                mixed += part * (float(mass @ beyond) + rest)
            assert mixed >= float(curve.hockey_stick(3.0 * step, shifts[i])) * (1.0 - 1e-9) - 1e-15


@pytest.mark.slow
def test_bounds_near_and_about_epsilon_follow_both_orders():
    groups = [(PoissonSampled(0.05), np.array([1.0]), np.array([400.0]))]
    exact = sampled_normal(1.0, 0.05, 400).epsilon(1e-6)
    at, near = bounds_near(groups, 1e-6, exact)
    assert 1e-6 * 0.98 <= at <= 1.05e-6
    assert exact * 0.998 <= near <= exact * 1.01
    assert about_epsilon(groups, 1e-6, exact) == pytest.approx(exact, rel=0.01)


def test_losses_print_and_compare_like_the_others():
    loss = sampled_normal(0.5, 0.1, 20)
    assert loss == sampled_normal(0.5, 0.1, 20) != sampled_normal(0.5, 0.2, 20)
    assert repr(loss) == "NumericLoss(20 x PoissonSampled)"
    assert str(loss).endswith(", 1e-06)-DP")
    assert str(sampled_laplace(0.5, 0.1, 20)) == f"{20 * math.log1p(0.1 * math.expm1(0.5)):.6g}-DP"
    assert hash(loss) == hash(sampled_normal(0.5, 0.1, 10).compose(2))


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_a_rate_is_a_probability(rate):
    with pytest.raises(ValueError, match="'rate' parameter of poisson_sampled"):
        poisson_sampled(GaussianLoss(1.0), rate)
    with pytest.raises(ValueError, match="'rate' parameter of PoissonSampled"):
        PoissonSampled(rate)


def test_the_loss_of_several_releases_is_refused():
    two = GaussianLoss(1.0) + PureLoss(0.1)
    with pytest.raises(ValueError, match="must be the loss of one release"):
        poisson_sampled(two, 0.1)


# The largest shift within a guarantee.


@each_value(1)
@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [
        (1.0, 1e-6, 0.01, 10_000),
        (8.0, 1e-5, 0.1, 1000),
        (0.1, 1e-10, 0.5, 100),
        (2.0, 1e-5, 0.02, 1),
        (1.0, 1e-6, 1.0, 50),
    ],
)
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_the_largest_shift_is_within_the_guarantee_and_a_little_more_is_not(
    epsilon, delta, rate, steps, base
):
    guarantee = PrivacyGuarantee(epsilon, delta, "add_remove")
    shift = largest_sampled_shift(guarantee, rate=rate, steps=steps, base=base)

    def loss(shift):
        return poisson_sampled(NumericLoss(((base, shift, 1),)), rate).compose(steps)

    assert loss(shift).delta(epsilon) <= delta < loss(shift * 1.001).delta(epsilon)


def test_the_largest_pure_shift_is_the_closed_form():
    guarantee = PrivacyGuarantee(1.0, adjacency="add_remove")
    found = largest_sampled_shift(guarantee, rate=0.05, steps=200, base=LAPLACE)
    truth = math.log1p(math.expm1(1.0 / 200) / 0.05)
    assert truth * (1.0 - 1e-11) <= found <= truth
    assert sampled_laplace(found, 0.05, 200).epsilon(0.0) <= 1.0


@pytest.mark.slow
def test_what_is_spent_beside_makes_the_largest_shift_smaller():
    guarantee = PrivacyGuarantee(1.0, 1e-6, "add_remove")
    alone = largest_sampled_shift(guarantee, rate=0.05, steps=200)
    beside = PureLoss(0.2) + GaussianLoss(0.05)
    found = largest_sampled_shift(guarantee, rate=0.05, steps=200, beside=beside)
    total = beside + sampled_normal(found, 0.05, 200)
    assert found < 0.95 * alone
    assert total.delta(1.0) <= 1e-6 < (beside + sampled_normal(1.001 * found, 0.05, 200)).delta(1.0)


def test_what_no_shift_can_give_is_refused():
    pure = PrivacyGuarantee(1.0, 0.0, "add_remove")
    with pytest.raises(ValueError, match="bounded loss where delta is 0"):
        largest_sampled_shift(pure, rate=0.1, steps=10)
    given = PrivacyGuarantee(1.0, 1e-6, "add_remove")
    with pytest.raises(ValueError, match="leave something of the guarantee"):
        largest_sampled_shift(given, rate=0.1, steps=10, beside=GaussianLoss(1.0))
    with pytest.raises(TypeError, match="be of type PrivacyGuarantee"):
        largest_sampled_shift(GaussianLoss(1.0), rate=0.1, steps=10)


def test_replaced_records_are_refused():
    with pytest.raises(ValueError, match="adjacency='add_remove'"):
        largest_sampled_shift(PrivacyGuarantee(1.0, 1e-6), rate=0.1, steps=10)
    check_relation("fit", sampled_normal(1.0, 0.1), "add_remove")
    check_relation("fit", GaussianLoss(1.0) + PureLoss(0.1), "replace_one")
    with pytest.raises(ValueError, match="'adjacency' parameter of fit must be 'add_remove'"):
        check_relation("fit", GaussianLoss(1.0) + sampled_normal(1.0, 0.1), "replace_one")


def test_a_sampled_curve_is_found_within_others():
    law = TruncatedNegativeBinomial.with_mean(1.0, 5.0)
    terms = sampled_normal(1.0, 0.1, 10).terms
    assert needs_add_remove(NumericLoss(((Repetition(law, Composed(terms)), 1.0, 1),)))
    assert needs_add_remove(NumericLoss(((Repetition(law, PoissonSampled(0.1)), 1.0, 1),)))
    assert not needs_add_remove(NumericLoss(((Repetition(law), 1.0, 1),)))


@pytest.mark.slow
def test_the_best_of_many_trainings_costs_more_than_one():
    law = TruncatedNegativeBinomial.with_mean(1.0, 5.0)
    curve = Repetition(law, Composed(sampled_normal(0.6, 0.05, 100).terms))
    best = NumericLoss(((curve, 1.0, 1),))
    one = sampled_normal(0.6, 0.05, 100)
    assert one.delta(2.0) < best.delta(2.0) < 1000.0 * one.delta(2.0) + 1e-3
