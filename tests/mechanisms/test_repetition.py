"""The best of K runs: bounds never passed by force, close to the worst case, and exact counts."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from skdpnoise.mechanisms import base_budget, choose_repetitions, repeated_loss
from skdpnoise.mechanisms.selection import approximate_base
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PoissonRepetitions,
    PrivacyGuarantee,
    PureLoss,
    Repetition,
    TruncatedNegativeBinomial,
)
from skdpnoise.privacy.curves import NormalShift, Promised, RandomisedResponse
from skdpnoise.privacy.repetition import curve as curves
from tests._cases import each_value, quick
from tests.privacy.repetition._laws import EVERY, LAWS, probabilities

TOTAL = PrivacyGuarantee(1.0, 1e-6)
DELTA = 1e-6


def best_of(law, masses, levels):
    """Return the law of the best of K runs, by summing over K; equal levels tie."""
    k, pmf = probabilities(law)
    above = np.array([masses[levels > level].sum() for level in levels])
    tied = np.array([masses[levels == level].sum() for level in levels])
    worse_or_tied, worse = np.maximum(1.0 - above, 0.0), np.maximum(1.0 - above - tied, 0.0)
    wins = (worse_or_tied[:, None] ** k - worse[:, None] ** k) @ pmf
    return wins * masses / np.where(tied > 0.0, tied, 1.0)


def hockey_stick(p, q, epsilons):
    """Return the sum of (p - e^ε q)_+ at each ε."""
    epsilons = np.atleast_1d(epsilons)
    return np.maximum(p - np.exp(epsilons)[..., None] * q, 0.0).sum(axis=-1)


def both_orders(p, q):
    """Return the curve of a pair, the larger of the two orders."""
    return lambda e: np.maximum(hockey_stick(p, q, e), hockey_stick(q, p, e))


def random_pairs(n):
    """Yield pairs over few outputs, with levels of scores: any order, ties, or a bad order."""
    rng = np.random.default_rng(0)
    for i in range(n):
        size = int(rng.integers(2, 9))
        p = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])))
        p = np.maximum(p, 1e-6)
        p /= p.sum()
        q = p * np.exp(rng.normal(0.0, rng.choice([0.05, 0.3, 1.0]), size))
        if i % 5 == 0:  # some outputs betray one of the two
            q[rng.integers(size)] = 0.0
        q /= q.sum()
        ratio = q / p
        levels = [
            rng.permutation(size).astype(float),
            rng.integers(0, 3, size).astype(float),
            np.argsort(np.argsort(ratio)).astype(float),
            -np.argsort(np.argsort(ratio)).astype(float),
        ][i % 4]
        yield p, q, levels


def gaussian_cells(mu, n):
    """Return the masses of n cells of equal mass of N(0, 1), and those under N(mu, 1)."""
    ends = np.concatenate([[-np.inf], ndtri(np.arange(1, n) / n), [np.inf]])
    return np.full(n, 1.0 / n), np.diff(ndtr(ends - mu))


def test_a_bound_that_forgets_the_neighbours_position_is_passed():
    law = LAWS["eta 1"]
    passed = 0
    for p, q, levels in random_pairs(20):
        if (q > 0.0).all():
            epsilon = 1.01 * float(np.abs(np.log(q / p)).max())
            exact = both_orders(best_of(law, p, levels), best_of(law, q, levels))(epsilon)
            passed += float(exact[0]) > law.mean * float(both_orders(p, q)(epsilon)[0])
    assert passed > 5


@quick("0.05-hardly more than one")
@each_value(1)
@EVERY
@pytest.mark.parametrize("mu", [0.05, 0.3])
def test_orders_of_a_gaussian_pair_are_below_the_curve(law, mu):
    n = 200
    p, q = gaussian_cells(mu, n)
    epsilons = mu * np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    limit = np.array([float(Repetition(law).hockey_stick(e, mu)) for e in epsilons])
    index = np.arange(n)
    swinging = np.where(index % 2 == 0, index, -index)  # the two ends by turns
    split = np.where(index > 0.97 * n, index + n, -index)  # a few likely ones first
    found = []
    for levels in (index, -index, swinging, split, np.random.default_rng(1).permutation(n)):
        one, other = best_of(law, p, levels), best_of(law, q, levels)
        found.append(both_orders(one, other)(epsilons))
    assert (np.array(found) <= limit).all()
    assert np.max(found, axis=0)[0] >= 0.2 * limit[0]


def test_runs_beyond_ten_thousand_count_as_disclosure():
    law, mu = TruncatedNegativeBinomial(eta=0.0, gamma=1e-6), 0.002
    k = np.arange(1.0, 10_001.0)
    beyond = 1.0 - float(law.pmf(k).sum())
    assert beyond > 0.2
    epsilons = np.array([0.0, 0.1, 0.5, 5.0])
    exact = NormalShift().hockey_stick(epsilons[:, None], mu * np.sqrt(k)) @ law.pmf(k) + beyond
    found = curves._all_runs(law, mu)(epsilons)
    assert (exact <= found).all()
    assert (found <= 1.02 * exact).all()


def naive_bound(law, mu, epsilon):
    """E sup_u (g(u) - e^ε g(U(u)) l)_+ under N(0, 1), by grids and sums over K."""
    k, pmf = probabilities(law)
    u = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 2501)])
    neighbour = ndtr(ndtri(u) + mu)

    def g(v):
        return np.array([(k[1:] * pmf[1:]) @ (1.0 - x) ** (k[1:] - 1.0) for x in v])

    a, b = g(u), math.exp(epsilon) * g(neighbour)
    z = np.linspace(-14.0, 4.0, 6001)
    ratio = np.exp(mu * z - 0.5 * mu**2)
    phi = np.zeros_like(z)
    for start in range(0, u.size, 500):
        part = slice(start, start + 500)
        phi = np.maximum(phi, (a[part, None] - b[part, None] * ratio).max(axis=0))
    return float((phi * np.exp(-0.5 * z**2)).sum() * (z[1] - z[0]) / math.sqrt(2.0 * math.pi))


@each_value(1)
@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("guarantee", [TOTAL, PrivacyGuarantee(3.0, 1e-2)])
def test_the_best_of_runs_that_only_promise_keeps_the_guarantee_whatever_the_order(law, guarantee):
    epsilon, delta = approximate_base(guarantee, law)
    larger = (1.0 - delta) * math.exp(epsilon) / (1.0 + math.exp(epsilon))
    p = np.array([delta, larger, 1.0 - delta - larger, 0.0])
    q = p[[3, 2, 1, 0]]  # the pair that dominates all that is (ε, δ)-private
    for levels in itertools.permutations(range(4)):
        best = [best_of(law, masses, np.array(levels)) for masses in (p, q)]
        assert both_orders(*best)(guarantee.epsilon)[0] <= guarantee.delta * (1.0 + 1e-9)
    loss = repeated_loss(NumericLoss(((Promised(delta), 1.02 * epsilon, 1),)), law)
    assert loss.delta(guarantee.epsilon) > guarantee.delta


@quick("0.2-1.2-eta -0.5")
@each_value(2)
@pytest.mark.parametrize("name", ["eta -0.5", "eta 0", "eta 1", "Poisson"])
@pytest.mark.parametrize(("mu", "epsilon"), [(0.1, 0.6), (0.2, 1.2), (0.3, 1.0)])
def test_without_prices_the_bound_is_what_grids_make_of_it(name, mu, epsilon):
    law = LAWS[name]
    base = Repetition(law).base
    made = curves.RepetitionBound(lambda t: base.hockey_stick(t, mu), law)
    bound = made.without_prices(np.array([epsilon]))[0]
    assert 1.0 - 1e-4 <= bound / naive_bound(law, mu, epsilon) <= 1.003


def worst_order(law, mu, epsilon):
    """Return the δ of an order made to hurt: the most likely of the neighbour, then the least."""
    k, pmf = probabilities(law)

    def wins(v):  # f(1) - f(1 - v), of top sets of mass v
        return -np.expm1(np.log1p(-np.minimum(v, 1.0 - 1e-16))[..., None] * k) @ pmf

    first = np.geomspace(1e-3, 0.3, 50)[:, None]
    rest = np.geomspace(1e-8, 1e-2, 60)[None, :]
    likely, unlikely = ndtr(ndtri(first) + mu), ndtr(ndtri(rest) - mu)
    gain = wins(first + rest) - wins(first)
    return float((gain - math.exp(epsilon) * (wins(likely + unlikely) - wins(likely))).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eta -0.5", "eta 0", "eta 1"])
def test_a_concrete_order_of_scores_comes_close_to_the_bound(name):
    law, mu = LAWS[name], 0.15
    epsilon = repeated_loss(GaussianLoss(mu), law).epsilon(DELTA)
    assert 0.8 * DELTA < worst_order(law, mu, epsilon) <= DELTA


def renyi_epsilon(law, mu, delta):
    """Return ε by Papernot and Steinke's Theorem 2 for a Gaussian base."""
    rho = 0.5 * mu**2
    order, other = np.geomspace(1.01, 2000.0, 3000), np.geomspace(1.01, 2000.0, 3000)
    extra = (1.0 - 1.0 / other) * other * rho + math.log(1.0 / law.gamma) / other
    renyi = order * rho + (1.0 + law.eta) * extra.min() + math.log(law.mean) / (order - 1.0)
    to_delta = np.log1p(-1.0 / order) + (math.log(1.0 / delta) - np.log(order)) / (order - 1.0)
    return float((renyi + to_delta).min())


@each_value(2)
@pytest.mark.parametrize("name", ["eta -0.5", "eta 0", "eta 1", "eta 2.5"])
@pytest.mark.parametrize("mu", [0.1, 0.3, 1.0])
def test_the_curve_is_tighter_than_renyi_accounting(name, mu):
    loss = repeated_loss(GaussianLoss(mu), LAWS[name])
    assert loss.epsilon(DELTA) < 0.9 * renyi_epsilon(LAWS[name], mu, DELTA)


@each_value(2)
@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("mu", [0.02, 0.2, 2.0])
def test_the_table_is_a_convex_curve_above_the_direct_bound(law, mu):
    losses, deltas = curves.table(Repetition(law), mu)
    shown = deltas > 1e-60
    losses, deltas = losses[shown], deltas[shown]
    slopes = np.diff(deltas) / np.diff(np.exp(losses))
    assert (np.diff(deltas) < 0.0).all()
    assert (np.diff(slopes) >= -1e-9 * np.abs(slopes[1:])).all()
    assert deltas[0] <= 1.0
    curve = Repetition(law)
    for epsilon in np.linspace(0.01, 0.9, 12) * losses[-1]:
        direct = float(curve.hockey_stick(epsilon, mu))
        table = float(curve.hockey_stick(np.full(9, epsilon), mu)[0])
        assert table <= (1.005 if direct < 1e-4 else 1.15) * direct
        # Where there are prices, connecting the dots is better than either bound.
        assert table >= direct * (1.0 - 1e-9) or direct > 1e-4


def test_one_run_costs_what_one_run_costs():
    law = TruncatedNegativeBinomial(1.0, 1.0 - 1e-9)
    loss = repeated_loss(GaussianLoss(0.3), law)
    for epsilon in (0.0, 0.3, 1.0):
        assert loss.delta(epsilon) == pytest.approx(GaussianLoss(0.3).delta(epsilon), rel=2e-2)
        assert loss.delta(epsilon) >= GaussianLoss(0.3).delta(epsilon) * (1.0 - 1e-6)
    assert repeated_loss(PureLoss(0.3), law).pure_epsilon == pytest.approx(0.3, rel=1e-6)


@pytest.mark.slow
@EVERY
def test_a_pure_base_stays_pure_and_the_bound_is_reached(law):
    epsilon = 0.4
    total = repeated_loss(PureLoss(epsilon), law).pure_epsilon
    if isinstance(law, TruncatedNegativeBinomial):
        assert total <= (2.0 + law.eta) * epsilon
    # Of all outputs the likely half for the neighbour is best; then come small unlikely pieces.
    n = 500
    e = math.exp(epsilon)
    p = np.concatenate([[1.0 / (1.0 + e)], np.full(n, e / (1.0 + e) / n)])
    q = np.concatenate([[e / (1.0 + e)], np.full(n, 1.0 / (1.0 + e) / n)])
    levels = -np.arange(n + 1.0)
    ratio = np.log(best_of(law, p, levels)[1] / best_of(law, q, levels)[1])
    assert ratio <= total
    assert ratio == pytest.approx(total, rel=3e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eta 0", "eta 1", "Poisson"])
def test_the_curve_of_a_pure_base_ends_at_the_pure_loss_and_composes(name):
    law = LAWS[name]
    loss = repeated_loss(PureLoss(0.2).numeric(), law)
    pure = repeated_loss(PureLoss(0.2), law)
    assert loss.pure_epsilon == pytest.approx(pure.pure_epsilon, rel=1e-9)
    for epsilon in (0.0, 0.1, 0.3, 0.45):
        assert loss.delta(epsilon) <= pure.delta(epsilon) * (1.0 + 2e-2)
    assert loss.compose(50).epsilon(DELTA) <= pure.numeric().compose(50).epsilon(DELTA) * 1.01
    assert loss == NumericLoss(((Repetition(law, RandomisedResponse()), 0.2, 1),))


@pytest.mark.slow
def test_a_composition_as_base_agrees_with_its_exact_curve():
    law = LAWS["eta 1"]
    shift = 0.1
    one = np.array([math.exp(shift), 1.0]) / (1.0 + math.exp(shift))
    p, q = np.outer(one, one).ravel(), np.outer(one[::-1], one[::-1]).ravel()
    exact = curves.RepetitionBound(both_orders(p, q), law)
    loss = repeated_loss(PureLoss(shift).numeric().compose(2), law)
    pure = repeated_loss(PureLoss(2.0 * shift), law)
    for epsilon in (0.05, 0.2, 0.4):
        limit = min(exact.delta(epsilon), pure.delta(epsilon))
        assert limit * (1.0 - 1e-3) <= loss.delta(epsilon) <= limit * 1.05
    mixed = repeated_loss(PureLoss(0.05) + GaussianLoss(0.05), law)
    assert mixed.epsilon(DELTA) > repeated_loss(GaussianLoss(0.05), law).epsilon(DELTA)


@pytest.mark.slow
def test_a_search_composes_with_other_losses():
    law = LAWS["eta 1"]
    search = repeated_loss(GaussianLoss(0.1), law)
    both = search + GaussianLoss(0.1)
    assert search.epsilon(DELTA) < both.epsilon(DELTA)
    assert both.epsilon(DELTA) < search.epsilon(DELTA / 2) + GaussianLoss(0.1).epsilon(DELTA / 2)
    assert search.compose(1) == search
    assert (search + search).terms == search.compose(2).terms
    assert search.compose(2).epsilon(DELTA) < 2.0 * search.epsilon(DELTA / 2)
    assert pickle.loads(pickle.dumps(search)) == search


@EVERY
def test_the_budget_of_one_run_meets_the_guarantee_and_a_little_more_does_not(law):
    base = base_budget(TOTAL, law)
    assert repeated_loss(base, law).delta(TOTAL.epsilon) <= TOTAL.delta
    more = repeated_loss(GaussianLoss(1.01 * base.mu), law)
    assert more.delta(TOTAL.epsilon) > TOTAL.delta
    pure = base_budget(TOTAL, law, kind="pure")
    assert repeated_loss(pure, law).epsilon(TOTAL.delta) <= TOTAL.epsilon
    assert repeated_loss(PureLoss(1.001 * pure.pure_epsilon), law).epsilon(TOTAL.delta) > 1.0
    other = base_budget(PureLoss(0.7), law, kind="pure")
    assert 0.699 < repeated_loss(other, law).pure_epsilon <= 0.7


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eta -0.5", "eta 1", "Poisson"])
def test_the_budget_under_a_gaussian_loss_keeps_the_whole_curve_below(name):
    law, total = LAWS[name], GaussianLoss(0.4)
    base = base_budget(total, law)
    loss = repeated_loss(base, law)
    epsilons = np.linspace(0.0, 4.0, 60)
    limits = np.array([total.delta(e) for e in epsilons])
    assert (np.array([loss.delta(e) for e in epsilons]) <= limits * (1.0 + 1e-3)).all()
    more = repeated_loss(GaussianLoss(1.05 * base.mu), law)
    assert (np.array([more.delta(e) for e in epsilons]) > limits).any()
    pure = repeated_loss(base_budget(total, law, kind="pure"), law)
    assert all(pure.delta(e) <= total.delta(e) for e in np.linspace(0.0, 2.0, 40))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TruncatedNegativeBinomial(-1.0, 0.5), ValueError, "'eta'"),
        (lambda: TruncatedNegativeBinomial(1.0, 1.0), ValueError, "'gamma'"),
        (lambda: TruncatedNegativeBinomial.with_mean(1.0, 1.0), ValueError, "'mean'"),
        (lambda: TruncatedNegativeBinomial.with_coverage(-0.9, 0.1, 0.9), ValueError, "'eta'"),
        (lambda: PoissonRepetitions(0.0), ValueError, "'mean'"),
        (lambda: repeated_loss(0.1, LAWS["eta 1"]), TypeError, "'base'"),
        (lambda: repeated_loss(PureLoss(0.1), "poisson"), TypeError, "'law'"),
        (lambda: base_budget(1.0, LAWS["eta 1"]), TypeError, "'guarantee'"),
        (lambda: base_budget(TOTAL, LAWS["eta 1"], kind="zcdp"), ValueError, "'kind'"),
        (lambda: base_budget(PureLoss(1.0), LAWS["eta 1"]), ValueError, "'pure'"),
        (lambda: base_budget(PrivacyGuarantee(1.0), LAWS["eta 1"]), ValueError, "'pure'"),
        (lambda: choose_repetitions(20, TOTAL, max_mean=10.0), ValueError, "'max_mean'"),
    ],
)
def test_what_cannot_be_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
