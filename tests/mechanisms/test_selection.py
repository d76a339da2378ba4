"""Private selection: exact laws, privacy by force, and who beats whom."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import expit, ndtri

from skdpnoise.mechanisms._choice_laws import (
    draw_exponential,
    draw_permute_and_flip,
    laplace_law,
    permute_and_flip_law,
)
from skdpnoise.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    whole_steps,
)
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import private_argmax
from skdpnoise.sampling import SeededWords
from tests._cases import each_value, every_pair, quick
from tests._statistics import FALSE_ALARM, chi_square_pvalue

pytestmark = pytest.mark.usefixtures("the_same_words")


MECHANISMS = {
    "exponential": ExponentialMechanism,
    "permute and flip": PermuteAndFlip,
    "noisy max": ReportNoisyMax,
    "noisy max, Laplace": lambda *args: ReportNoisyMax(*args, noise="laplace"),
    "noisy max, Gumbel": lambda *args: ReportNoisyMax(*args, noise="gumbel"),
}
EVERY = pytest.mark.parametrize("make", MECHANISMS.values(), ids=MECHANISMS)


def draws(mechanism, utilities, size, seed=0):
    draw = mechanism._kind.draw
    return draw(SeededWords(seed), mechanism._integers(utilities), mechanism.bits, size)


def frequencies(mechanism, utilities, size, seed=0):
    return np.bincount(draws(mechanism, utilities, size, seed), minlength=len(utilities))


@every_pair
@EVERY
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("epsilon", [0.3, 3.7])
def test_choices_have_the_stated_law_and_not_that_of_another_epsilon(make, monotonic, epsilon):
    exponents = np.array([0.0, 1.5, 3.0, 2.9, -0.4, 3.0])
    utilities = exponents * (2.0 if monotonic else 4.0) / epsilon
    counts = frequencies(make(2.0, epsilon, monotonic), utilities, 120_000)
    law = make(2.0, epsilon, monotonic).probabilities(utilities)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert chi_square_pvalue(counts, law) > FALSE_ALARM
    for factor in (0.95, 1.05):
        wrong = make(2.0, factor * epsilon, monotonic).probabilities(utilities)
        assert chi_square_pvalue(counts, wrong) < FALSE_ALARM


@quick("noisy max, Laplace")
@EVERY
def test_many_candidates_have_the_stated_law(make):
    utilities = np.concatenate([np.zeros(900), np.full(90, 4.0), np.full(10, 8.0)])
    mechanism = make(1.0, 1.0)
    chosen = draws(mechanism, utilities, 8_000)
    law = mechanism.probabilities(utilities)
    groups = np.repeat([0, 1, 2], [900, 90, 10])
    counts = np.bincount(groups[chosen], minlength=3)
    assert chi_square_pvalue(counts, np.bincount(groups, law)) > FALSE_ALARM
    within = np.bincount(chosen[chosen >= 990] - 990, minlength=10)
    assert chi_square_pvalue(within, np.full(10, 0.1)) > FALSE_ALARM


@each_value(1)
@pytest.mark.parametrize("draw", [draw_exponential, draw_permute_and_flip])
@pytest.mark.parametrize("gap", [1, 3, 255, 700, 1024, 2600])
def test_coins_are_exact_for_fractions_and_whole_units(draw, gap):
    accepted = math.exp(-gap / 1024)
    best = 1 / (1 + accepted) if draw is draw_exponential else 1 - accepted / 2
    counts = np.bincount(draw(SeededWords(gap), np.array([0, -gap]), 10, 200_000), minlength=2)
    assert chi_square_pvalue(counts, [best, 1 - best]) > FALSE_ALARM


@pytest.mark.parametrize("draw", [draw_exponential, draw_permute_and_flip])
def test_choices_do_not_depend_on_the_pieces_in_which_words_arrive(draw):
    class Dribble:
        secure = False

        def __init__(self, seed, piece):
            self.stream, self.piece = SeededWords(seed), piece
            self.store = np.empty(0, dtype=np.uint64)

        def take(self, n):
            return self.stream.take(min(n, self.piece))

    utilities = -np.arange(40) << 8
    pieces = [draw(Dribble(3, piece), utilities, 10, 500).tolist() for piece in (1, 2, 7, 10_000)]
    assert all(piece == pieces[0] for piece in pieces)


def changes(size, monotonic):
    values = (0, 1) if monotonic else (-1, 0, 1)
    return (np.array(change, dtype=float) for change in product(values, repeat=size))


@every_pair
@EVERY
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_neighbour_tells_more_than_epsilon_and_some_nearly_does(make, monotonic, epsilon):
    mechanism = make(1.0, epsilon, monotonic)
    rng = np.random.default_rng(0)
    worst = 0.0
    for spread in (0.0, 1.0, 30.0):
        utilities = np.concatenate([[0.0], -spread - rng.uniform(0, 2, 3)])
        law = np.log(mechanism.probabilities(utilities))
        for change in changes(4, monotonic):
            other = np.log(mechanism.probabilities(utilities + change))
            worst = max(worst, np.abs(law - other).max())
    # The Laplace law leaves out the rounding of the noise.
    assert worst <= epsilon * (1 + 1e-6)
    assert worst >= 0.99 * epsilon
    assert mechanism.privacy_loss().pure_epsilon <= epsilon
    assert mechanism.privacy_loss().pure_epsilon >= epsilon * (1 - 2.0**-22)


@pytest.mark.parametrize("monotonic", [False, True])
def test_the_loss_of_the_exponential_mechanism_has_range_epsilon(monotonic):
    mechanism = ExponentialMechanism(1.0, 1.5, monotonic)
    utilities = np.array([0.0, -0.3, 1.0, 0.8])
    mu = mechanism.gaussian_loss().mu
    law = mechanism.probabilities(utilities)
    ranges, quantiles = [], []
    for change in changes(4, monotonic):
        other = mechanism.probabilities(utilities + change)
        loss = np.log(law / other)
        ranges.append(np.ptp(loss))
        order = np.argsort(-loss)
        power, size = np.cumsum(law[order])[:-1], np.cumsum(other[order])[:-1]
        quantiles.append((ndtri(power) - ndtri(size)).max())
    assert max(ranges) == pytest.approx(1.5, rel=1e-6)
    # The best test between neighbours is no better than that between normal laws.
    assert 0.9 * mu < max(quantiles) <= mu
    assert mu == pytest.approx(2 * ndtri(expit(0.75)), rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, 10.0, 80.0])
def test_the_gaussian_loss_covers_every_pair_of_two_point_laws(epsilon):
    mechanism = ExponentialMechanism(1.0, epsilon)
    mu, epsilon = mechanism.gaussian_loss().mu, mechanism.privacy_loss().pure_epsilon
    odds = np.linspace(-epsilon - 9.0, 9.0, 4001)
    gains = -ndtri(expit(-odds - epsilon)) - ndtri(expit(odds))
    within = np.isfinite(gains)
    assert gains[within].max() <= mu + 1e-14
    assert gains[within].max() == pytest.approx(mu, rel=1e-4, abs=1e-12)


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism():
    rng = np.random.default_rng(1)
    gains = []
    for _ in range(200):
        utilities = rng.exponential(size=rng.integers(2, 30)) * rng.choice([0.1, 1.0, 10.0, 100.0])
        epsilon = rng.choice([0.1, 1.0, 5.0])
        losses = [
            make(1.0, epsilon).expected_loss(utilities)
            for make in (PermuteAndFlip, ExponentialMechanism)
        ]
        assert losses[0] <= losses[1] * (1 + 1e-12)
        if losses[0] > 1e-12:
            gains.append(losses[1] / losses[0])
    assert 1.9 < max(gains) < 2.0 + 1e-9


@quick("noisy max", "noisy max, Gumbel")
@EVERY
def test_the_expected_loss_is_within_the_bound(make):
    mechanism = make(0.5, 0.7)
    for n in (1, 2, 50, 1000):
        for gap in (0.1, 1.0, 5.0, 10.0):
            utilities = np.r_[3.0, np.full(n - 1, 3.0 - gap)]
            assert mechanism.expected_loss(utilities) <= mechanism.error_bound(n)
    assert mechanism.error_bound(1000) < 2 * 0.5 / 0.7 * (np.log(1000) + 1.001)


def test_the_law_of_permute_and_flip_is_the_sum_over_orders():
    accepted = np.exp(-np.array([0.0, 0.2, 1.0, 3.0]))
    law = np.zeros(4)
    for order in permutations(range(4)):
        reached = 1.0
        for r in order:
            law[r] += reached * accepted[r] / 24
            reached *= 1 - accepted[r]
    assert permute_and_flip_law(-np.log(accepted)) == pytest.approx(law, abs=1e-14)


def test_permute_and_flip_is_report_noisy_max_with_exponential_noise():
    gaps = np.array([0.0, 0.7, 0.9, 4.0])
    z = np.linspace(0.0, 60.0, 600_001)
    law = []
    for r in range(4):
        below = [-np.expm1(-np.maximum(z + gaps[j], 0.0)) for j in range(4) if j != r]
        density = np.where(z + gaps[r] >= 0, np.exp(-(z + gaps[r])), 0.0)
        law.append(np.trapezoid(density * np.prod(below, axis=0), z))
    assert permute_and_flip_law(gaps) == pytest.approx(np.array(law), abs=1e-8)
    one = ReportNoisyMax(1.0, 1.0)
    assert (draws(one, gaps, 100) == draws(PermuteAndFlip(1.0, 1.0), gaps, 100)).all()


def test_the_law_of_the_laplace_maximum_is_known_for_two():
    # P(Z1 - Z2 > g) = exp(-g) (2 + g) / 4.
    for gap in (0.0, 0.3, 5.0, 40.0):
        lesser = math.exp(-gap) * (2 + gap) / 4
        assert laplace_law(np.array([0.0, gap])) == pytest.approx([1 - lesser, lesser], rel=1e-9)


def test_laws_of_many_candidates_sum_to_one():
    gaps = np.sort(np.random.default_rng(0).exponential(3.0, 20_000))
    gaps -= gaps[0]
    assert permute_and_flip_law(gaps).sum() == pytest.approx(1.0, abs=1e-12)
    assert laplace_law(gaps[::60]).sum() == pytest.approx(1.0, abs=1e-10)


def test_utilities_are_rounded_down_exactly_and_move_by_at_most_the_integer_sensitivity():
    rng = np.random.default_rng(2)
    for epsilon, sensitivity in [(0.7, 1.0), (1e-6, 0.1), (31.0, 1e-200), (1e5, 3e250)]:
        mechanism = ExponentialMechanism(sensitivity, epsilon)
        grid_size, steps = Fraction(mechanism.grid_size), mechanism._steps
        assert grid_size * steps >= Fraction(sensitivity)
        assert grid_size * steps <= Fraction(sensitivity) * (1 + Fraction(1, 2**51))
        utilities = rng.normal(size=400) * sensitivity * 10.0 ** rng.uniform(-6, 9, 400)
        utilities[:20] = np.arange(-10, 10) * mechanism.grid_size
        found = whole_steps(utilities, mechanism.grid_size)
        exact = [math.floor(Fraction(u) / grid_size) for u in utilities.tolist()]
        assert found.tolist() == [min(max(k, -(2**61)), 2**61) for k in exact]
        moved = np.nextafter(utilities + sensitivity, -np.inf)  # at most the sensitivity away
        legal = [
            Fraction(b) - Fraction(a) <= Fraction(sensitivity)
            for a, b in zip(utilities.tolist(), moved.tolist(), strict=True)
        ]
        difference = whole_steps(moved, mechanism.grid_size) - found
        assert (difference[legal] <= steps).all()
        assert (difference[legal] >= steps - 1).any()


def test_huge_utilities_are_clipped_and_stay_in_order():
    mechanism = PermuteAndFlip(1.0, 1.0)
    assert mechanism.select([1e300, -1e300, 0.0]) == 0
    integers = np.array([2**63 - 1, -(2**63), 2**53 + 3])
    quanta = mechanism._integers(integers)
    assert (quanta == np.clip(quanta, -(2**61), 2**61)).all()
    assert mechanism._integers(np.array([2**64 - 1, 5], dtype=np.uint64))[0] == 2**61
    assert mechanism._integers(np.array([3, -5], dtype=np.int8)).tolist() == [
        round(3 / mechanism.grid_size),
        round(-5 / mechanism.grid_size),
    ]


@EVERY
def test_one_candidate_needs_no_words_and_equal_ones_are_equally_likely(make):
    mechanism = make(1.0, 1.0)
    assert mechanism.select([3.0]) == 0
    assert mechanism.probabilities([3.0]) == pytest.approx([1.0])
    assert mechanism.probabilities(np.zeros(5)) == pytest.approx(np.full(5, 0.2))
    assert mechanism.select([0.0, 1.0], random_state=0) == mechanism.select([0.0, 1.0], 0)


def test_the_convenience_spends_the_guarantee_in_the_best_way():
    utilities = [10.0, 0.0, 300.0]
    for guarantee in (PrivacyGuarantee(0.8), PrivacyGuarantee(0.8, 1e-6), PureLoss(0.8)):
        index, mechanism = private_argmax(utilities, guarantee, sensitivity=2.0, random_state=0)
        assert index == 2
        assert mechanism == PermuteAndFlip(2.0, 0.8)
    for method, kind in [
        ("exponential", ExponentialMechanism),
        ("report_noisy_max", ReportNoisyMax),
        ("permute_and_flip", PermuteAndFlip),
    ]:
        _, mechanism = private_argmax(utilities, PureLoss(0.8), monotonic=True, method=method)
        assert type(mechanism) is kind
        assert mechanism.monotonic
        assert mechanism.privacy_loss().pure_epsilon == pytest.approx(0.8, rel=1e-6)


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.5, 3.0, 12.0])
def test_under_gaussian_privacy_the_bounded_range_doubles_epsilon(mu):
    _, ranged = private_argmax([1.0, 2.0], GaussianLoss(mu), random_state=0)
    _, pure = private_argmax([1.0, 2.0], GaussianLoss(mu), method="permute_and_flip")
    assert isinstance(ranged, ExponentialMechanism)
    assert mu * (1 - 1e-6) < ranged.gaussian_loss().mu <= mu
    assert ranged.epsilon == pytest.approx(2 * pure.epsilon)
    # epsilon-privacy is a range from -epsilon to epsilon: its curve lies below the Gaussian one.
    loss = pure.privacy_loss()
    for epsilon in np.linspace(0.0, 1.2 * pure.epsilon, 30):
        assert loss.delta(epsilon) <= GaussianLoss(mu).delta(epsilon) * (1 + 1e-9) + 1e-15
    kink = -2 * ndtri(expit(-loss.pure_epsilon))
    assert kink == pytest.approx(mu, rel=1e-5)


@pytest.mark.slow
def test_laws_agree_with_opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    utilities, n_draws = [1, 3, 5, 4], 4000
    theirs = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2.0)
    epsilon = theirs.map(1)
    assert epsilon == pytest.approx(1.0)
    counts = np.bincount([theirs(utilities) for _ in range(n_draws)], minlength=4)
    law = ReportNoisyMax(1.0, epsilon).probabilities(utilities)
    assert chi_square_pvalue(counts, law) > FALSE_ALARM


@each_value(2)
@EVERY
@pytest.mark.parametrize(
    ("utilities", "error", "message"),
    [
        ([], ValueError, r"Got an array of shape \(0,\)"),
        ([[1.0, 2.0]], ValueError, r"Got an array of shape \(1, 2\)"),
        (3.0, ValueError, "Got an array of shape"),
        ([123.25, np.nan], ValueError, "Remove or replace NaN"),
        ([123.25, np.inf], ValueError, "Remove or replace NaN"),
        (["123.25"], TypeError, "of dtype <U6"),
        ([1j], TypeError, "of dtype complex128"),
        ([True, False], TypeError, "of dtype bool"),
        (np.array([123.25], dtype=np.longdouble), TypeError, "double precision or less"),
        (np.ma.array([123.25, 1.0], mask=[True, False]), TypeError, "a masked array"),
    ],
)
def test_what_are_not_utilities_is_refused_without_a_value(make, utilities, error, message):
    with pytest.raises(error, match=message) as caught:
        make(1.0, 1.0).select(utilities)
    assert "123.25" not in str(caught.value)


@each_value(2)
@EVERY
@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, 1e-300])
def test_what_is_not_a_positive_parameter_is_refused(make, name, value):
    given = {"sensitivity": 1.0, "epsilon": 1.0} | {name: value}
    with pytest.raises(ValueError, match=f"{name!r} parameter"):
        make(*given.values())
    with pytest.raises(TypeError, match=f"{name!r} parameter"):
        make(*(given | {name: "1"}).values())


def test_other_wrong_parameters_are_named():
    with pytest.raises(TypeError, match="'monotonic' parameter of PermuteAndFlip"):
        PermuteAndFlip(1.0, 1.0, 1)
    with pytest.raises(ValueError, match=r"'noise' parameter of ReportNoisyMax.*'normal'"):
        ReportNoisyMax(1.0, 1.0, noise="normal")
    with pytest.raises(ValueError, match="'method' parameter of private_argmax"):
        private_argmax([1.0], PureLoss(1.0), method="best")
    with pytest.raises(TypeError, match="'method' parameter of private_argmax"):
        private_argmax([1.0], PureLoss(1.0), method=None)
    with pytest.raises(TypeError, match="'guarantee' parameter of private_argmax"):
        private_argmax([1.0], 1.0)
    with pytest.raises(ValueError, match="'n_candidates' parameter"):
        PermuteAndFlip(1.0, 1.0).error_bound(0)


@pytest.mark.parametrize("sensitivity", [2**17 + 1, 10**6 + 3, 2**30 - 1])
def test_integers_on_either_side_of_those_that_doubles_hold_are_rounded_alike(sensitivity):
    """Large ones are divided exactly, others in double precision; both are rounded down."""
    mechanism = ExponentialMechanism(float(sensitivity), 1.0)
    draws = np.random.default_rng(0).integers(1, sensitivity, size=300).tolist()
    for below in draws:
        first, second = 2**53 - below, 2**53 - below + sensitivity
        moved = np.diff([int(mechanism._integers([value, 0])[0]) for value in (first, second)])
        assert 0 < moved[0] <= mechanism._steps
