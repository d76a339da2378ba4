"""How many runs: formulas, exact draws, and the law that is recommended."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from skdpnoise.mechanisms import base_budget, choose_repetitions
from skdpnoise.privacy import PrivacyGuarantee, TruncatedNegativeBinomial
from skdpnoise.sampling import SeededWords
from tests._cases import quick
from tests._statistics import FALSE_ALARM, chi_square_pvalue
from tests.privacy.repetition._laws import EVERY, LAWS, probabilities

TOTAL = PrivacyGuarantee(1.0, 1e-6)


@EVERY
def test_the_formulas_of_a_law_are_sums_over_its_probabilities(law):
    k, pmf = probabilities(law)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-11)
    assert law.mean == pytest.approx(k @ pmf, rel=1e-9)
    for u in (0.0, 1e-3, 0.1, 0.7, 1.0):
        assert law.coverage(u) == pytest.approx(1.0 - (1.0 - u) ** k @ pmf, abs=1e-11)
        derivative = (k[1:] * pmf[1:]) @ (1.0 - u) ** (k[1:] - 1.0)
        assert float(np.exp(law.log_derivative(u))) == pytest.approx(derivative, rel=1e-9)
    step = 1e-6
    slope = (law.log_derivative(0.1 + step) - law.log_derivative(0.1 - step)) / (2.0 * step)
    assert float(law.log_slope(0.1)) == pytest.approx(float(slope), rel=1e-6)
    assert (law.pmf([-1.0, 0.5, 2.5]) == 0.0).all()


@EVERY
def test_what_a_law_adds_to_a_pure_loss_is_not_rounded_down_for_small_losses(law):
    if isinstance(law, TruncatedNegativeBinomial):
        rate = (law.eta + 1.0) * (1.0 - law.gamma) / (1.0 + law.gamma)
    else:
        rate = 0.5 * law.mean
    for epsilon in (1e-12, 1e-9, 1e-7):  # the series goes on with the third power
        assert law.pure_excess(epsilon) == pytest.approx(rate * epsilon, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1e-9, 1.0, 5.0, 100.0])
def test_a_law_is_found_by_its_mean_or_its_coverage(eta):
    assert TruncatedNegativeBinomial.with_mean(eta, 12.0).mean == pytest.approx(12.0, rel=1e-9)
    law = TruncatedNegativeBinomial.with_coverage(eta, 0.2, 0.3)
    assert law.coverage(0.2) == pytest.approx(0.3, abs=1e-12)


def draws(law, size, seed=0):
    words = SeededWords(seed)
    return np.array([law.sample(words) for _ in range(size)])


def frequencies_pvalue(law, counts):
    """P-value of draws of K, the rare large ones together."""
    k, pmf = probabilities(law)
    # Bins of counts in order, each with at least 150 expected.
    bins = np.minimum(
        np.floor((np.cumsum(pmf) - pmf) * counts.size / 300.0), counts.size // 300 - 1
    )
    _, bins = np.unique(bins, return_inverse=True)
    expected = np.bincount(bins, pmf)
    while expected[-1] * counts.size < 150.0:
        bins = np.minimum(bins, bins.max() - 1)
        expected = np.bincount(bins, pmf)
    observed = np.bincount(bins[np.minimum(counts, k[-1])], minlength=expected.size)
    return chi_square_pvalue(observed, expected / expected.sum())


@quick("hardly more than one")
@EVERY
def test_counts_are_drawn_from_the_law(law):
    assert frequencies_pvalue(law, draws(law, 3000)) > FALSE_ALARM


@pytest.mark.slow
def test_counts_of_another_law_are_refused():
    counts = draws(LAWS["eta 1"], 3000)
    assert frequencies_pvalue(TruncatedNegativeBinomial(1.0, 0.065), counts) < FALSE_ALARM
    assert frequencies_pvalue(TruncatedNegativeBinomial(0.6, 0.05), counts) < FALSE_ALARM


class Digits:
    """Words that spell a number in [0, 1), then zeros."""

    secure = False

    def __init__(self, value):
        self.rest, self.n_taken = value, 0

    def take(self, n):
        found = []
        for _ in range(n):
            self.rest *= 2**64
            found.append(math.floor(self.rest))
            self.rest -= found[-1]
        self.n_taken += n
        return np.array(found, dtype=np.uint64)


@pytest.mark.parametrize("k", [1, 2, 17, 200])
def test_the_distribution_function_is_exact_to_any_number_of_bits(k):
    law = TruncatedNegativeBinomial(1.0, 0.05)
    cdf = 1 - (1 - Fraction(0.05)) ** k  # geometric
    for bits in (60, 120, 500):
        assert law.sample(Digits(cdf - Fraction(1, 2**bits))) == k
        assert law.sample(Digits(cdf + Fraction(1, 2**bits))) == k + 1
    # What two words cannot tell apart takes more of them.
    words = Digits(cdf - Fraction(1, 2**500))
    law.sample(words)
    assert words.n_taken >= 8


@pytest.mark.slow
def test_the_recommended_law_covers_the_best_and_leaves_the_most():
    law = choose_repetitions(20, TOTAL)
    assert law.coverage(0.1) == pytest.approx(0.9, abs=1e-9)
    chosen = base_budget(TOTAL, law).mu
    for eta in (0.3, 0.5, 1.0, 5.0):
        other = TruncatedNegativeBinomial.with_coverage(eta, 0.1, 0.9)
        assert base_budget(TOTAL, other).mu <= 1.011 * chosen
    assert choose_repetitions(20, TOTAL, max_mean=35.0).mean <= 35.0
    assert choose_repetitions(20, PrivacyGuarantee(1.0)).coverage(0.1) >= 0.9 - 1e-9
