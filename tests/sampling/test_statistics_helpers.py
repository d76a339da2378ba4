"""The statistical helpers themselves, fed with input that is right and input that is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from tests._statistics import (
    FALSE_ALARM,
    binned_pvalue,
    chi_square_pvalue,
    distance_pvalue,
    fit_pvalue,
    hockey_stick,
    uniform_pvalue,
)

BITS = 6


def rounded(seed: int, n: int, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
    normal = np.random.default_rng(seed).standard_normal(n)
    return np.rint(2.0**BITS * (scale * normal + shift)).astype(np.int64)


@pytest.mark.slow
def test_binned_pvalues_of_true_draws_are_uniform():
    pvalues = [binned_pvalue(rounded(seed, 10_000), norm, BITS) for seed in range(300)]
    assert kstest(pvalues, "uniform").pvalue > 1e-6


def test_distance_pvalues_of_true_draws_are_never_too_small_too_often():
    pvalues = np.array([distance_pvalue(rounded(s, 10_000), norm, BITS) for s in range(300)])
    # Bernstein: 300 trials of probability at most 0.1 exceed 60 with probability below 1e-6.
    assert (pvalues < 0.1).sum() <= 60


@pytest.mark.parametrize("pvalue", [binned_pvalue, distance_pvalue, fit_pvalue])
@pytest.mark.parametrize("scale", [0.95, 1.05])
def test_a_scale_wrong_by_five_percent_is_rejected(pvalue, scale):
    draws = rounded(0, 300_000)
    assert pvalue(draws, norm, BITS) > FALSE_ALARM
    assert pvalue(draws, norm, BITS, scale=scale) < FALSE_ALARM
    assert pvalue(rounded(1, 300_000, scale), norm, BITS, scale=scale) > FALSE_ALARM


def test_a_wrong_family_and_a_wrong_centre_are_rejected():
    assert fit_pvalue(rounded(0, 300_000), laplace, BITS) < FALSE_ALARM
    assert fit_pvalue(rounded(0, 300_000, shift=0.03), norm, BITS) < FALSE_ALARM


def test_truncation_in_place_of_rounding_is_rejected():
    truncated = np.floor(np.random.default_rng(0).standard_normal(300_000)).astype(np.int64)
    assert fit_pvalue(truncated, norm, 0) < FALSE_ALARM


def test_an_atom_is_seen_by_the_distance():
    draws = rounded(0, 300_000)
    draws[:6_000] = 0
    assert distance_pvalue(draws, norm, BITS) < FALSE_ALARM


def test_uneven_counts_are_rejected_and_even_ones_are_not():
    assert uniform_pvalue(np.arange(60_000) % 6, 6) > 0.99
    assert uniform_pvalue(np.arange(60_000) % 7 % 6, 6) < FALSE_ALARM


def test_too_few_draws_for_the_approximation_are_an_error():
    with pytest.raises(AssertionError, match="more draws"):
        chi_square_pvalue([3, 4], [0.5, 0.5])


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_hockey_stick_of_laplace_noise_agrees_with_its_closed_form(epsilon):
    shift = 0.8
    expected = max(0.0, 1.0 - np.exp((epsilon - shift) / 2.0))
    assert hockey_stick(laplace.logpdf, shift, epsilon, 60.0) == pytest.approx(expected, rel=1e-10)


def test_hockey_stick_of_normal_noise_agrees_with_its_closed_form():
    expected = norm.sf(1.0 / 0.7 - 0.35) - np.e * norm.sf(1.0 / 0.7 + 0.35)
    assert hockey_stick(norm.logpdf, 0.7, 1.0, 30.0) == pytest.approx(expected, rel=1e-10)
