"""Bounds of what is spent: as rarely wrong as they say, and hardly less; the paper's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from skdpnoise.inspection.auditing._bounds import (
    clopper_pearson,
    epsilon_bound,
    mu_bound,
    one_run_bound,
    one_run_pvalue,
)
from tests._cases import each_value


def test_an_exact_bound_on_a_probability_is_wrong_as_rarely_as_it_says_and_hardly_less():
    for trials, probability, error in ((40, 0.3, 1e-3), (2000, 0.02, 1e-9), (500, 0.9, 1e-6)):
        counts = np.arange(trials + 1)
        weights = binom.pmf(counts, trials, probability)
        low, high = clopper_pearson(counts, trials, error)
        for wrong in (low > probability, high < probability):
            assert weights[wrong].sum() <= error
        assert weights[low > probability].sum() > error / 100
    assert clopper_pearson(0, 10, 0.01)[0] == 0.0
    assert clopper_pearson(10, 10, 0.01)[1] == 1.0


@each_value(1)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_false_alarm_of_a_bound_is_the_stated_one_by_enumeration(epsilon, delta):
    # The event that is the likeliest on one data set for what it is on the other.
    trials, alarm = 60, 0.05
    there = (1.0 - delta) / (1.0 + math.exp(epsilon))
    here = math.exp(epsilon) * there + delta
    counts = np.arange(trials + 1)
    weights = np.outer(binom.pmf(counts, trials, here), binom.pmf(counts, trials, there))
    found = epsilon_bound(*np.meshgrid(counts, counts, indexing="ij"), trials, delta, alarm)
    assert weights[found > epsilon].sum() <= alarm
    mu = norm.ppf(here) - norm.ppf(there)
    found = mu_bound(*np.meshgrid(counts, counts, indexing="ij"), trials, alarm)
    assert weights[found > mu].sum() <= alarm


def test_the_bounds_follow_their_definitions():
    many = 10**12
    assert epsilon_bound(0.5 * many, 0.1 * many, many, 0.0, 1e-3) == pytest.approx(np.log(5), 1e-4)
    assert epsilon_bound(0.5 * many, 0.1 * many, many, 0.1, 1e-3) == pytest.approx(np.log(4), 1e-4)
    shift = norm.ppf(0.5) - norm.ppf(0.1)
    assert mu_bound(0.5 * many, 0.1 * many, many, 1e-3) == pytest.approx(shift, 1e-4)
    assert epsilon_bound(100, 100, 1000, 0.0, 1e-3) < 0.0
    assert epsilon_bound(10, 0, 1000, 0.5, 1e-3) < 0.0
    # fewer runs, less certainty
    few, more = (epsilon_bound(n / 2, n / 10, n, 0.0, 1e-3) for n in (100, 1000))
    assert few < more


@pytest.mark.parametrize(
    ("counts", "published"),
    [
        ((1000, 100, 75, 1e-4, 0.05), 0.673),  # Appendix D
        ((100_000, 1510, 1439, 1e-5, 0.05), 2.675),  # Section 7, where it is cut, not rounded
    ],
)
def test_the_bound_of_one_run_is_that_of_the_paper(counts, published):
    assert one_run_bound(*counts) == pytest.approx(published, abs=1e-3)


def test_the_p_value_of_one_run_without_delta_is_a_binomial_tail():
    assert one_run_pvalue(100, 100, 75, math.log(3), 0.0) == pytest.approx(0.553, abs=1e-3)
    tail = sum(math.comb(20, k) * 0.5**20 for k in range(15, 21))
    assert one_run_pvalue(50, 20, 15, 0.0, 0.0) == pytest.approx(tail, rel=1e-9)


def test_the_p_value_of_one_run_with_delta_follows_the_theorem_term_by_term():
    m, r, v, epsilon, delta = 40, 12, 9, 0.7, 1e-3
    rate = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    pmf = [math.comb(r, k) * rate**k * (1.0 - rate) ** (r - k) for k in range(r + 1)]
    most = max(sum(pmf[v - i : v]) / i for i in range(1, v + 1))
    expected = sum(pmf[v:]) + 2 * m * delta * most
    assert one_run_pvalue(m, r, v, epsilon, delta) == pytest.approx(expected, rel=1e-12)


def test_one_run_of_randomised_response_is_refuted_as_rarely_as_stated():
    # Every canary's coin is told through randomised response, which is exactly as claimed.
    m, epsilon, alarm = 200, 1.0, 0.05
    rate = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    right = np.arange(m + 1)
    bounds = np.array([one_run_bound(m, m, int(v), 0.0, alarm) for v in right])
    weight = binom.pmf(right, m, rate)[bounds > epsilon].sum()
    assert alarm / 3 < weight <= alarm


def test_the_most_that_one_run_can_show_is_about_what_the_theory_says():
    for m in (100, 1000):
        for alarm in (0.05, 1e-3):
            most = one_run_bound(m, m, m, 0.0, alarm)
            assert most == pytest.approx(math.log(m / -math.log(alarm)), abs=0.1)
            assert one_run_bound(m, m, m - 1, 0.0, alarm) < most
    assert one_run_bound(1000, 1000, 1000, 1e-4, 0.05) < one_run_bound(1000, 1000, 1000, 0.0, 0.05)
    assert one_run_bound(100, 100, 50, 0.0, 0.05) == 0.0
    assert one_run_bound(100, 0, 0, 0.0, 0.05) == 0.0
