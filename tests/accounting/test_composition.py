"""The sum of many charges: tight, on the safe side, and judged alike however it came about."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy.special import ndtr

from skdpnoise.accounting.composition import Composition, _up, compact, gaussian_mu_of_pure, on_grid
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PrivacyGuarantee,
    PureLoss,
    gdp_delta,
    gdp_mu,
)
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, quick

DELTA = 1e-6


def laplace(shift: float, count: int = 1) -> NumericLoss:
    return NumericLoss(((get_noise("laplace"), float(shift), count),))


def composed(losses) -> Composition:
    total = Composition()
    for loss in losses:
        total.add(loss, (1.0, 0.0))
    return total


def exact(losses) -> NumericLoss:
    """The same composition by the loss that the rest of the package uses."""
    return NumericLoss(tuple(term for loss in losses for term in loss.numeric().terms))


def assorted(n: int, seed: int = 0, scale: float = 1.0) -> list:
    rng = np.random.default_rng(seed)
    kinds = (laplace, PureLoss, GaussianLoss)
    return [kinds[rng.integers(3)](scale * rng.uniform(0.01, 0.2)) for _ in range(n)]


def test_sums_of_charges_are_never_below_the_exact_ones():
    rng = np.random.default_rng(0)
    mus = rng.uniform(0.01, 0.2, 200).tolist()
    total = composed(map(GaussianLoss, mus))
    exact_squares = sum(Fraction(mu) ** 2 for mu in mus)
    assert exact_squares < Fraction(total.normal) < exact_squares * (1 + Fraction(1, 10**35))


@pytest.mark.parametrize("digits", [3, 17, 18, 25, 40])
def test_the_float_of_a_sum_is_the_next_one_that_is_written_no_lower(digits):
    rng = np.random.default_rng(digits)
    for _ in range(200):
        text = "0." + "".join(map(str, rng.integers(0, 10, digits)))
        value = Decimal(text)
        found = _up(value)
        assert Decimal(repr(found)) >= value
        assert found == 0.0 or Decimal(repr(math.nextafter(found, 0.0))) < value


@pytest.mark.slow
def test_400_laplace_fits_total_4_82_where_basic_composition_says_20():
    mechanism = calibrate("iid_laplace", SensitivityProfile([1.0]), PureLoss(0.05))
    ledger = PrivacyLedger("laplace", epsilon=5.0, delta=DELTA)
    for _ in range(400):
        ledger.charge("fit", mechanism, guarantee=(0.05, 0.0))
    total = ledger.total()
    assert 4.81 < total.epsilon <= 4.82
    assert total.basic == (20.0, 0.0)
    assert total.left == pytest.approx(5.0 - total.epsilon)


def test_400_pure_fits_total_4_863():
    total = composed([PureLoss(0.05)] * 400)
    assert total.epsilon(DELTA) == pytest.approx(4.863, abs=1e-3)


@quick("0.001-1 PureLoss(pure_epsilon=0.3)")
@each_value(1)
@pytest.mark.parametrize(
    "losses",
    [
        [PureLoss(0.3)],
        [GaussianLoss(0.4)],
        [laplace(0.3)],
        [PureLoss(0.3), PureLoss(0.2)],
        [GaussianLoss(0.3), GaussianLoss(0.4)],
        [PureLoss(0.3), GaussianLoss(1e-3)],
        [PureLoss(1e-4), GaussianLoss(0.5)],
        [PureLoss(20.0), GaussianLoss(2.0), laplace(5.0)],
        [NumericLoss(((get_noise("subbotin"), 0.1, 3),)), PureLoss(0.1)],
        assorted(40),
        assorted(300, scale=0.2),
    ],
    ids=lambda losses: f"{len(losses)} {losses[0]!r}",
)
@pytest.mark.parametrize("delta", [1e-3, DELTA, 1e-12])
def test_the_total_is_that_of_the_composed_loss(losses, delta):
    total, expected = composed(losses), exact(losses)
    found = total.epsilon(delta)
    assert found == pytest.approx(expected.epsilon(delta), rel=1e-4, abs=1e-6)
    if found < float(total.pure):
        assert expected.delta(found) <= delta * (1.0 + 1e-4)
    assert total.loss(found).delta(found) <= delta * (1.0 + 1e-9)
    assert total.delta(found) <= delta * (1.0 + 1e-9)


def test_a_mixed_total_agrees_with_dp_accounting():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    losses = [laplace(0.05, 200), GaussianLoss(0.3), GaussianLoss(0.4), PureLoss(0.2)]
    options = {"value_discretization_interval": 1e-4}
    theirs = pld.from_laplace_mechanism(20.0, **options).self_compose(200)
    theirs = theirs.compose(pld.from_gaussian_mechanism(2.0, **options))
    response = pld.from_randomized_response(2.0 / (1.0 + math.exp(0.2)), 2, **options)
    theirs = theirs.compose(response)
    found = composed(losses).epsilon(DELTA)
    # Theirs rounds up as well: by half of a step each, 200 times.
    assert found == pytest.approx(theirs.get_epsilon_for_delta(DELTA), rel=3e-3)


@each_value(1)
@pytest.mark.parametrize("spent", [(0.05, 0.01), (0.15, 0.01), (0.4, 0.001)])
@pytest.mark.parametrize("part", [0.1, 0.2, 0.9])
def test_a_total_is_tight_where_the_loss_is_bounded_or_total_disclosure(spent, part):
    truncated = PrivacyGuarantee(spent[0], part * 0.01)
    losses = [
        calibrate("iid_gaussian", SensitivityProfile([1.0]), PrivacyGuarantee(*spent)).own_loss(),
        calibrate("iid_truncated_laplace", SensitivityProfile([1.0]), truncated).own_loss(),
    ]
    total = composed(losses).epsilon(0.01)
    assert total == pytest.approx(exact(losses).epsilon(0.01), rel=1e-4)


def test_no_losses_cost_nothing():
    total = Composition()
    assert total.epsilon(DELTA) == total.adaptive_epsilon(DELTA) == total.delta(0.0) == 0.0
    assert total.loss(0.0) == PureLoss(0.0)
    assert total.fits(PrivacyGuarantee(0.1), adaptive=True)


def test_a_large_delta_covers_a_small_loss_alone():
    assert composed([PureLoss(0.01), GaussianLoss(0.01)]).epsilon(0.1) == 0.0


def test_a_loss_that_is_infinite_too_often_has_no_epsilon():
    loss = NumericLoss(((get_noise("truncated_laplace", 5.0), 0.5, 3),))
    total = composed([loss, PureLoss(0.1)])
    assert total.epsilon(DELTA) == math.inf
    assert not total.fits(PrivacyGuarantee(50.0, DELTA), adaptive=False)


@pytest.mark.parametrize(("count", "epsilon", "budget"), [(10, 0.1, 1.0), (3, 0.1, 0.3)])
def test_decimal_epsilons_add_up_as_they_are_written(count, epsilon, budget):
    total = composed([PureLoss(epsilon)] * count)
    assert total.fits(PrivacyGuarantee(budget), adaptive=False)
    assert total.epsilon(0.0) == budget
    total.add(PureLoss(1e-15), (1e-15, 0.0))
    assert not total.fits(PrivacyGuarantee(budget), adaptive=False)
    assert total.epsilon(0.0) > budget


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_charge_is_judged_as_the_composed_loss_says(seed):
    # Anchors, which spare computing, must neither let through nor stop what the curve does not.
    budget = PrivacyGuarantee((0.6, 1.0, 2.0, 1.5)[seed], (1e-6, 1e-9, 1e-3, 1e-6)[seed])
    total, kept = Composition(), []
    refused = 0
    for loss in assorted(70, seed):
        candidate = total.with_one_more(loss, (1.0, 0.0))
        fits = candidate.fits(budget, adaptive=False)
        delta = exact([*kept, loss]).delta(budget.epsilon)
        if not 0.999 < delta / budget.delta < 1.001:
            assert fits == (delta <= budget.delta)
        if fits:
            total = candidate
            kept.append(loss)
        else:
            refused += 1
    assert refused > 5
    assert len(kept) > 5
    assert total.epsilon(budget.delta) <= budget.epsilon


def test_a_total_that_was_read_grows_with_the_next_charge():
    losses = [laplace(0.1), GaussianLoss(0.1), GaussianLoss(0.3)]
    total = composed(losses[:2])
    before = total.epsilon(DELTA)
    total.add(losses[2], (1.0, 0.0))
    assert total.epsilon(DELTA) == composed(losses).epsilon(DELTA) > 2.0 * before


@pytest.mark.parametrize("more", [GaussianLoss(0.05), laplace(0.05)], ids=["normal", "other"])
def test_a_bound_that_covers_what_comes_ends_where_the_budget_does(more):
    budget, losses = PrivacyGuarantee(1.0, DELTA), [laplace(0.1), GaussianLoss(0.1)]
    total = composed(losses)
    assert total.fits(budget, adaptive=False)
    assert total.anchor is not None
    while total.fits(budget, adaptive=False) and len(losses) < 60:
        losses.append(more)
        total.add(more, (1.0, 0.0))
    assert composed(losses[:-1]).delta(1.0) <= DELTA < composed(losses).delta(1.0)


@pytest.mark.slow
def test_many_different_shifts_cost_less_than_a_thousandth_more():
    shifts = np.random.default_rng(0).uniform(0.001, 0.02, 950)
    losses = [laplace(shift) for shift in shifts]
    total, expected = composed(losses), exact(losses).epsilon(DELTA)
    assert len(total.terms[get_noise("laplace")]) < 950
    assert expected <= total.epsilon(DELTA) * (1.0 + 1e-6) <= 1.001 * expected


def test_the_grid_of_shifts_rounds_up_and_keeps_its_own():
    for shift in np.random.default_rng(0).lognormal(0.0, 8.0, 500):
        up = on_grid(float(shift))
        assert shift <= up <= shift * 2.0 ** (1.01 / 512)
        assert on_grid(up) == up


@pytest.mark.slow
def test_a_loss_with_many_terms_is_written_down_shorter_and_no_smaller():
    rng = np.random.default_rng(0)
    loss = exact([*(laplace(s) for s in rng.uniform(1e-3, 0.02, 900)), GaussianLoss(0.1)])
    short = compact(loss)
    assert len(short.terms) <= 201
    assert sum(count for _, _, count in short.terms) == 901
    for epsilon in (0.5, 1.0, 2.0):
        assert loss.delta(epsilon) <= short.delta(epsilon)
    assert short.epsilon(DELTA) <= 1.02 * loss.epsilon(DELTA)
    assert compact(short) is short
    assert compact(PureLoss(1.0)) == PureLoss(1.0)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 0.99, 1.0, 3.0, 20.0, 500.0])
def test_a_pure_loss_is_below_its_gaussian_bound_and_touches_it(epsilon):
    mu = gaussian_mu_of_pure(epsilon)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0, 1.5):
        point = share * epsilon
        assert PureLoss(epsilon).delta(point) <= gdp_delta(mu, point) * (1.0 + 1e-9)
    # At zero both are the total variation distance.
    assert gdp_delta(mu, 0.0) == pytest.approx(PureLoss(epsilon).delta(0.0), rel=1e-9)


def test_an_infinite_loss_has_no_gaussian_bound():
    assert gaussian_mu_of_pure(math.inf) == math.inf


def test_losses_chosen_by_looking_follow_either_rule():
    budget = PrivacyGuarantee(1.0, DELTA)
    mu = gdp_mu(1.0, DELTA)
    within = {
        "pure sum": [PureLoss(0.5), PureLoss(0.5)],
        "all Gaussian": [GaussianLoss(0.6 * mu), GaussianLoss(0.79 * mu)],
        "many small": [PureLoss(0.01)] * 110,
        "both kinds": [GaussianLoss(0.9 * mu), *[PureLoss(0.01)] * 50],
        "numeric": [laplace(0.01, 100), laplace(0.005)],
    }
    beyond = {
        "pure sum": [PureLoss(0.5), PureLoss(0.51)],
        "all Gaussian": [GaussianLoss(0.7 * mu), GaussianLoss(0.8 * mu)],
        "both kinds": [GaussianLoss(0.9 * mu), *[PureLoss(0.01)] * 70],
        "neither": [NumericLoss(((get_noise("subbotin"), 0.01, 1),))],
    }
    for losses in within.values():
        total = composed(losses)
        assert total.fits(budget, adaptive=True)
        assert total.fits(budget, adaptive=False)
        assert total.epsilon(DELTA) <= total.adaptive_epsilon(DELTA) <= 1.0 + 1e-9
    for losses in beyond.values():
        total = composed(losses)
        assert not total.fits(budget, adaptive=True)
        assert total.adaptive_epsilon(DELTA) > 1.0


def responses(epsilon: float) -> tuple:
    """Randomised response, of all ε-private questions the worst: loss, and chances of answers."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    return PureLoss(epsilon), ((truth, 1.0 - truth), (1.0 - truth, truth))


def threshold(mu: float, at: float) -> tuple:
    """A bit that tells if a number from N(0, 1) or N(μ, 1) exceeds a value."""
    above = float(ndtr(mu - at)), float(ndtr(-at))
    return GaussianLoss(mu), (above, (1.0 - above[0], 1.0 - above[1]))


def worst_delta(menu: tuple, most: int, accepted, stated=None) -> float:
    """Return δ of the analyst who sees every answer before asking for the next, by all trees.

    The state is how often each question of the menu was asked, and the privacy loss so far.
    `accepted` says whether a composition may be reached; `stated` which ε is claimed where the
    analyst stops.
    """

    @lru_cache(None)
    def total(counts: tuple[int, ...]) -> Composition:
        found = Composition()
        for (loss, _), count in zip(menu, counts, strict=True):
            if count:
                found.add(loss, (0.0, 0.0), times=count)
        return found

    allowed = lru_cache(None)(lambda counts: accepted(total(counts)))
    claimed = lru_cache(None)(lambda counts: stated(total(counts)))

    @lru_cache(None)
    def value(counts: tuple[int, ...], loss: float) -> float:
        best = max(0.0, -math.expm1(claimed(counts) - loss))
        for k, (_, answers) in enumerate(menu):
            after = (*counts[:k], counts[k] + 1, *counts[k + 1 :])
            if sum(counts) < most and allowed(after):
                ends = ((p, value(after, round(loss + math.log(p / q), 9))) for p, q in answers)
                best = max(best, math.fsum(p * end for p, end in ends))
        return best

    return value((0,) * len(menu), 0.0)


def worst_of_a_ledger(
    budget: PrivacyGuarantee, menu: tuple, adaptive: bool, most: int = 20
) -> float:
    return worst_delta(
        menu, most, lambda total: total.fits(budget, adaptive=adaptive), lambda _: budget.epsilon
    )


@pytest.mark.parametrize(
    ("budget", "menu", "most"),
    [
        (PrivacyGuarantee(2.0, 0.02), tuple(map(responses, (0.25, 0.5, 1.0))), 20),
        (PrivacyGuarantee(0.5, 0.1), tuple(map(responses, (0.05, 0.1, 0.4))), 20),
        (PrivacyGuarantee(1.0, 0.05), tuple(map(responses, (0.1, 0.3, 0.5))), 20),
        # Both kinds, so that rule A holds on some paths and rule B on others.
        (PrivacyGuarantee(0.5, 0.1), (responses(0.4), threshold(0.3, 1.0), threshold(0.2, 1.5)), 9),
        (PrivacyGuarantee(1.0, 0.05), (responses(0.25), threshold(0.25, 0.5), responses(1.0)), 12),
        # Nearly the whole budget in one question, which is nearly the worst of its kind.
        (PrivacyGuarantee(0.5, 0.1), (responses(0.1), threshold(0.6425, 1.0)), 10),
    ],
)
def test_no_analyst_who_looks_at_answers_exceeds_the_delta_of_an_adaptive_ledger(
    budget, menu, most
):
    assert 0.0 < worst_of_a_ledger(budget, menu, True, most) <= budget.delta


def test_the_delta_of_an_adaptive_ledger_is_nearly_reached():
    budget = PrivacyGuarantee(0.5, 0.1)
    mu = gdp_mu(0.5, 0.1)
    best = 0.5 / mu + 0.5 * mu  # above this, one of both is more than e^ε times as likely
    assert worst_of_a_ledger(budget, (threshold(mu, best),), True) > 0.999 * budget.delta


def test_a_rule_that_took_the_two_kinds_apart_would_be_found_out():
    # Each kind by its own rule, with the whole budget for both: what a union is not.
    budget = PrivacyGuarantee(0.5, 0.1)

    def accepted(total: Composition) -> bool:
        largest = Decimal(gdp_mu(budget.epsilon, budget.delta)) ** 2
        return total.since <= Decimal("0.5") and total.normal <= largest

    menu = responses(0.5), threshold(0.64, 1.1)
    assert worst_delta(menu, 9, accepted, lambda _: budget.epsilon) > budget.delta


@pytest.mark.slow
def test_an_analyst_who_looks_may_exceed_what_is_promised_for_losses_fixed_in_advance():
    # Why there is an adaptive ledger: the tight rule is for those who fix their losses first.
    budget, menu = PrivacyGuarantee(2.0, 0.02), tuple(map(responses, (0.25, 0.5, 1.0)))
    assert worst_of_a_ledger(budget, menu, adaptive=False) > 1.2 * budget.delta
    # With one kind of loss only there is nothing to choose but when to stop.
    assert worst_of_a_ledger(budget, (responses(0.5),), adaptive=False) <= budget.delta


def test_who_chooses_when_to_read_a_total_is_promised_the_budget_and_not_what_it_shows():
    budget, menu = PrivacyGuarantee(1.0, 0.1), (responses(0.2),)
    shown = worst_delta(menu, 60, lambda _: True, lambda t: t.adaptive_epsilon(budget.delta))
    assert shown > 1.2 * budget.delta

    def guaranteed(total: Composition) -> float:
        pure = float(total.pure)
        covered = pure <= budget.epsilon or not total.fits(budget, adaptive=True)
        return pure if covered else budget.epsilon

    assert 0.0 < worst_delta(menu, 60, lambda _: True, guaranteed) <= budget.delta
