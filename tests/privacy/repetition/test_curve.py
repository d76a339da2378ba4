"""The curve of the best of a random number of runs, against sums over all its outputs."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.polynomial.polynomial import polyval
from scipy.special import ndtr, ndtri

from skdpnoise.privacy import (
    NormalShift,
    PoissonRepetitions,
    Promised,
    RandomisedResponse,
    Repetition,
    TruncatedNegativeBinomial,
)
from skdpnoise.privacy.repetition.curve import bound_of
from tests._cases import each_value
from tests.privacy.repetition._laws import EVERY

_PARTS = 40  # of each output, in the search for its worst order
_MOST = 4000  # runs


def hockey_stick(one, other, epsilon):
    """Return the sum of (one - exp(epsilon) other)_+ over the last axis."""
    epsilon = np.asarray(epsilon, dtype=np.float64)[..., None]
    return np.maximum(one - np.exp(epsilon) * other, 0.0).sum(axis=-1)


@dataclass(frozen=True)
class Pair:
    """The curve of two laws of finitely many outputs: the larger of both ways."""

    one: tuple
    other: tuple

    def hockey_stick(self, epsilon, shift):
        epsilon, _ = np.broadcast_arrays(epsilon, shift)
        one, other = np.array(self.one), np.array(self.other)
        return np.maximum(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))

    def max_loss(self, shift):
        with np.errstate(divide="ignore"):
            return np.full(np.shape(shift), np.abs(np.log(self.one) - np.log(self.other)).max())


def number_of_runs(law):
    """Return Pr[K = 0], Pr[K = 1], ..., each from the one before by the law's recurrence."""
    k = np.arange(1.0, _MOST)
    if isinstance(law, PoissonRepetitions):
        weights = np.cumprod([1.0, *(law.mean / k)])
    else:
        weights = np.cumprod([1.0, *((1.0 - law.gamma) * (k + law.eta) / (k + 1.0))])
        weights = np.concatenate([[0.0], weights])
    kept = np.flatnonzero(weights > 1e-18 * weights.sum())
    return weights[: kept[-1] + 1] / weights.sum()


def best_of(runs, law, scores):
    """Return the law of the first run with the highest score."""
    _, which = np.unique(scores, return_inverse=True)
    masses = np.bincount(which, law)
    below = np.concatenate([[0.0], np.cumsum(masses)])
    below /= below[-1]
    wins = np.diff(polyval(below, runs))  # Pr[the highest score is this one]
    share = np.divide(law, masses[which], out=np.zeros_like(law), where=masses[which] > 0.0)
    return wins[which] * share


def worst_order(runs, one, other, epsilons):
    """Return the largest deltas over all orders of two outputs, each cut into equal parts.

    By dynamic programming: after i parts of the first and j of the second, counted from the
    best, better outputs have a fixed mass under both laws, in whatever order they stand.
    """
    cut = np.arange(_PARTS + 1.0) / _PARTS
    won = [polyval(1.0 - np.add.outer(cut * law[0], cut * law[1]), runs) for law in (one, other)]
    left = won[0][..., None] - won[1][..., None] * np.exp(epsilons)
    down = np.maximum(left[:-1] - left[1:], 0.0)
    across = np.maximum(left[:, :-1] - left[:, 1:], 0.0)
    value = np.zeros((_PARTS + 2, _PARTS + 2, np.size(epsilons)))
    for i, j in itertools.product(range(_PARTS, -1, -1), repeat=2):
        steps = []
        if i < _PARTS:
            steps.append(down[i, j] + value[i + 1, j])
        if j < _PARTS:
            steps.append(across[i, j] + value[i, j + 1])
        value[i, j] = np.max(steps, axis=0, initial=0.0)
    return value[0, 0]


def response(loss):
    """Return the two laws of randomised response."""
    one = np.array([1.0, math.exp(loss)]) / (1.0 + math.exp(loss))
    return one, one[::-1]


def cut(law, n):
    """Return each output's mass in `n` equal parts, one after the other."""
    return np.repeat(law / n, n)


def between(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def any_law(rng):
    """Return any law of the number of runs."""
    if rng.random() < 0.3:
        return PoissonRepetitions(between(rng, 0.1, 60.0))
    eta = rng.choice([0.0, rng.uniform(-0.95, 0.0), rng.uniform(0.0, 8.0)])
    return TruncatedNegativeBinomial(float(eta), between(rng, 0.02, 0.95))


def any_pair(rng, n):
    """Return any two laws of `n` outputs; one in three has outputs of one law alone."""
    one = rng.dirichlet(np.full(n, between(rng, 0.3, 30.0)))
    other = one * np.exp(between(rng, 0.1, 3.0) * rng.standard_normal(n))
    if rng.random() < 1.0 / 3.0:
        one[0], other[-1] = 0.0, 0.0
    return one / one.sum(), other / other.sum()


# Each maker returns a curve, its shift, the pair of laws and orders of its outputs to try.
def any_scores(rng):
    n = int(rng.integers(2, 8))
    one, other = any_pair(rng, n)
    return Pair(tuple(one), tuple(other)), 1.0, one, other, rng.integers(0, n, size=(4, n))


def scores_by_ratio(rng):
    n, parts = int(rng.integers(2, 12)), 8
    one, other = any_pair(rng, n)
    curve = Pair(tuple(one), tuple(other))
    with np.errstate(divide="ignore"):
        rank = np.argsort(np.argsort(np.log(other) - np.log(one)))
    rank = parts * np.repeat(rank, parts) + np.tile(np.arange(parts), n)
    one, other = cut(one, parts), cut(other, parts)
    return curve, 1.0, one, other, [rank, -rank]


def normal_scores(rng):
    shift = between(rng, 0.05, 4.0)
    edges = np.concatenate([[-np.inf], np.linspace(-6.0, 6.0 + shift, 400), [np.inf]])
    one, other = np.diff(ndtr(edges)), np.diff(ndtr(edges - shift))
    rank = np.arange(one.size)
    return (
        NormalShift(),
        shift,
        one,
        other,
        [rank, -rank, np.abs(rank - 200), rng.permutation(rank)],
    )


def promised_scores(rng):
    shift, delta, parts = between(rng, 0.05, 8.0), between(rng, 1e-6, 0.2), 20
    one, other = response(shift)
    one = np.concatenate([cut((1.0 - delta) * one, parts), [delta, 0.0]])
    other = np.concatenate([cut((1.0 - delta) * other, parts), [0.0, delta]])
    places = np.repeat(np.arange(4), [parts, parts, 1, 1])
    rank = np.arange(one.size)
    orders = [100 * np.array(p)[places] + rank for p in itertools.permutations(range(4))]
    return Promised(delta), shift, one, other, orders


MAKERS = (any_scores, scores_by_ratio, normal_scores, promised_scores, None)


def bounds_and_largest(seed):
    """Return bounds at some epsilons, and the largest deltas found there, of one random case."""
    rng = np.random.default_rng(seed)
    law, maker = any_law(rng), MAKERS[seed % len(MAKERS)]
    runs = number_of_runs(law)
    if maker is None:
        base, shift = RandomisedResponse(), between(rng, 0.05, 12.0)
        epsilons = float(Repetition(law, base).max_loss(shift)) * rng.random(3)
        found = worst_order(runs, *response(shift), epsilons)
    else:
        base, shift, one, other, orders = maker(rng)
        pairs = [(best_of(runs, one, order), best_of(runs, other, order)) for order in orders]
        pairs += [(q, p) for p, q in pairs]
        seen = [(p > 1e-12) & (q > 1e-12) for p, q in pairs]
        reach = max(
            np.log(p[s] / q[s]).max(initial=0.0) for (p, q), s in zip(pairs, seen, strict=True)
        )
        epsilons = reach * rng.random(3)
        found = np.max([hockey_stick(p, q, epsilons) for p, q in pairs], axis=0)
    asked = epsilons
    if rng.random() < 0.02:  # more than a few epsilons are read from a table
        asked = np.concatenate([epsilons, [0.0, 1.0]])
    return Repetition(law, base).hockey_stick(asked, shift)[:3], found


def check_cases(seeds):
    """Check that no bound is passed, and return how near the nearest of each case is."""
    bounds, found = np.array([bounds_and_largest(seed) for seed in seeds]).transpose(1, 0, 2)
    assert (found <= bounds * (1.0 + 1e-9) + 1e-13).all()
    counts = (found > 1e-3) & (found < 0.999)
    ratios = np.where(counts, bounds / np.where(counts, found, 1.0), np.inf).min(axis=1)
    return ratios


def test_what_brute_force_sums_is_what_listing_all_runs_gives():
    law, scores = np.array([0.1, 0.2, 0.3, 0.25, 0.15]), np.array([1, 0, 1, 2, 0])
    runs = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    listed = np.zeros(law.size)
    for k in range(1, runs.size):
        for outputs in itertools.product(range(law.size), repeat=k):
            first = max(outputs, key=scores.__getitem__)  # of those that tie
            listed[first] += runs[k] * np.prod(law[list(outputs)])
    np.testing.assert_allclose(best_of(runs, law, scores), listed, rtol=1e-12)


def test_the_worst_order_of_a_few_parts_is_the_worst_of_all_orders(monkeypatch):
    monkeypatch.setattr(f"{__name__}._PARTS", 2)
    runs = number_of_runs(TruncatedNegativeBinomial(1.0, 0.2))
    one, other = response(1.0)
    pair = cut(one, 2), cut(other, 2)
    epsilons = np.array([0.0, 0.5, 2.0])
    all_orders = [
        hockey_stick(*(best_of(runs, law, np.array(order)) for law in pair), epsilons)
        for order in itertools.permutations(range(4))
    ]
    np.testing.assert_allclose(
        worst_order(runs, one, other, epsilons), np.max(all_orders, axis=0), rtol=1e-12
    )


@pytest.mark.slow
def test_no_order_of_any_outputs_passes_the_bound():
    check_cases([*range(40), 413])  # in the last, prices below 0 would be taken if they could


@pytest.mark.slow
def test_no_order_of_any_outputs_passes_the_bound_in_many_cases():
    ratios = check_cases(range(500))
    for kind in range(len(MAKERS)):
        assert ratios[kind :: len(MAKERS)].min() < 1.01


@each_value(1)
@EVERY
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_worst_order_comes_so_close_that_one_percent_less_is_too_little(law, share):
    curve, shift = Repetition(law, RandomisedResponse()), 10.0
    epsilon = share * float(curve.max_loss(shift))
    found = worst_order(number_of_runs(law), *response(shift), np.array([epsilon]))[0]
    assert 0.99 * curve.hockey_stick(epsilon, shift) < found <= curve.hockey_stick(epsilon, shift)


def response_curve(u, loss):
    """Return the most that a set of mass u has under the other law of randomised response."""
    return np.minimum(np.exp(loss) * u, 1.0 - np.exp(-loss) * (1.0 - u))


def normal_curve(u, shift):
    """Return the most that a set of mass u has under the other of two normal laws."""
    return ndtr(ndtri(u) + shift)


@each_value(2)
@EVERY
@pytest.mark.parametrize(
    ("base", "shift", "most"),
    [
        (NormalShift(), 0.3, normal_curve),
        (RandomisedResponse(), 0.3, response_curve),
        (RandomisedResponse(), 10.0, response_curve),
        (RandomisedResponse(), 12.0, response_curve),
    ],
)
def test_on_every_cell_the_law_is_bounded_at_both_ends_and_between(law, base, shift, most):
    bound = bound_of(law, base, shift)
    left, right = bound.position[0::2], bound.position[1::2]
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        u = (1.0 - share) * left + share * right
        a = (1.0 - share) * bound.a[0::2] + share * bound.a[1::2]
        b = (1.0 - share) * bound.b[0::2] + share * bound.b[1::2]
        own, neighbour = (np.exp(law.log_derivative(x)) for x in (u, most(u, shift)))
        assert (a >= own * (1.0 - 1e-12)).all()
        assert (b <= neighbour * (1.0 + 1e-12)).all()
        assert np.median(a / own) < 1.001
        assert np.median(b / neighbour) > 0.97
