"""Exact rounded noise, and exact numbers with lazy digits: same promises, same tests."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import expon, halfnorm, laplace, norm

from skdpnoise.sampling import SeededWords, SystemWords, bits, rounded_gaussian, rounded_laplace
from skdpnoise.sampling.lazy import CDF, _fill_floors, exponentials, half_normals, new_numbers
from tests._cases import each_value, quick
from tests._statistics import FALSE_ALARM, binned_pvalue, fit_pvalue, uniform_pvalue

N = 120_000
SAMPLERS = [
    pytest.param(rounded_laplace, laplace, id="laplace"),
    pytest.param(rounded_gaussian, norm, id="gaussian"),
]
both = pytest.mark.parametrize(("sampler", "density"), SAMPLERS)


def lazily(draw, digit_bits):
    """Return a sampler of rounded numbers from what a lazy one draws at first."""

    def sampler(words, size, bits):
        places = max(bits + 1, 2)
        numbers = draw(words, math.prod(np.atleast_1d(size)), places, width=digit_bits)
        return ((numbers.first >> (places - bits - 1)) + 1 >> 1).reshape(size)

    return sampler


def every(*digit_bits):
    """Narrow digits tie all the time, so that every path through the ties is walked."""
    lazy = [
        pytest.param(lazily(draw, width), density, id=f"{draw.__name__}-{width}")
        for draw, density in ((exponentials, expon), (half_normals, halfnorm))
        for width in digit_bits
    ]
    return pytest.mark.parametrize(("sampler", "density"), SAMPLERS + lazy)


class Script:
    """Words from a list, at most `at_most` at once; remembers how many were asked for."""

    secure = False

    def __init__(self, words, at_most=10**9):
        self.rng = np.asarray(words, dtype=np.uint64)
        self.at_most = at_most
        self.taken = 0

    def take(self, n):
        n = min(n, self.at_most)
        self.taken += n
        assert self.taken <= self.rng.size, "the script is too short"
        return self.rng[self.taken - n : self.taken]


@quick("0-gaussian")
@each_value(2)
@every(1, 2, 8, 16)
@pytest.mark.parametrize("bits", [0, 1, 5, 20, 51])
def test_draws_have_the_exact_distribution(sampler, density, bits):
    draws = sampler(SeededWords(bits), N, bits)
    assert fit_pvalue(draws, density, bits) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert binned_pvalue(draws, density, bits, scale=scale) < FALSE_ALARM


@both
def test_the_finest_draws_have_the_exact_distribution(sampler, density):
    draws = sampler(SeededWords(52), N, 52)
    assert fit_pvalue(draws, density, 52) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert binned_pvalue(draws, density, 52, scale=scale) < FALSE_ALARM


@pytest.mark.usefixtures("the_same_words")
@every(8)
def test_draws_from_the_operating_system_have_the_exact_distribution(sampler, density):
    draws = sampler(SystemWords(), N, 30)
    assert fit_pvalue(draws, density, 30) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert fit_pvalue(draws, density, 30, scale=scale) < FALSE_ALARM


@every(2, 8, 32)
def test_low_bits_are_uniform_and_independent_of_the_high_ones(sampler, density):
    symmetric = density.sf(0.0) == 0.5
    bits = 52 if symmetric else 51
    draws = sampler(SeededWords(1), N, bits)
    # Where the density does not fall on one side what it gains on the other, high bits are not
    # uniform.
    for shift in (0, 8, 16, 24, 32, 40) if symmetric else (0, 8, 16, 24, 32):
        assert uniform_pvalue(draws >> shift & 255, 256) > FALSE_ALARM
    # The last bits of the draws in each quarter of the distribution.
    quarter = np.searchsorted(density.ppf([0.25, 0.5, 0.75]), draws / 2.0**bits)
    assert uniform_pvalue(quarter * 64 + (draws & 63), 256) > FALSE_ALARM


@every(8)
def test_neighbouring_draws_are_independent(sampler, density):
    octant = np.searchsorted(
        density.ppf(np.arange(1, 8) / 8), sampler(SeededWords(2), N, 40) / 2**40
    )
    for lag in (1, 2, 3):
        pairs = octant[: -lag : lag + 1] * 8 + octant[lag :: lag + 1]
        assert uniform_pvalue(pairs, 64) > FALSE_ALARM


@pytest.mark.parametrize(
    ("sampler", "even_moments"),
    [(rounded_laplace, [1, 2, 24, 720, 40320]), (rounded_gaussian, [1, 1, 3, 15, 105])],
    ids=["laplace", "gaussian"],
)
def test_moments_and_sign(sampler, even_moments):
    z = sampler(SeededWords(3), 4 * N, 40) / 2.0**40
    bound = 6.2 / math.sqrt(z.size)  # the normal distribution exceeds 6.2 below FALSE_ALARM
    for power in (1, 2, 3, 4):
        moment = 0 if power % 2 else even_moments[power // 2]
        sd = math.sqrt(even_moments[power] - moment**2)
        assert abs((z**power).mean() - moment) < bound * sd
    assert abs((z > 0).mean() - 0.5) < bound * 0.5


@pytest.mark.slow
@every(8)
def test_the_tails_are_reached(sampler, density):
    z = np.abs(sampler(SeededWords(4), 10 * N, 20)) / 2.0**20
    for tail in (1e-3, 1e-4):
        expected = tail * z.size
        beyond = density.isf(tail / 2 if density.sf(0.0) == 0.5 else tail)
        assert abs((z > beyond).sum() - expected) < 6.2 * math.sqrt(expected) + 20
    assert z.max() > density.isf(1e-5)


@every(8)
def test_one_seed_gives_one_array(sampler, density):
    first = sampler(SeededWords(5), (50, 7), 30)
    assert first.shape == (50, 7)
    assert first.dtype == np.int64
    assert (first == sampler(SeededWords(5), (50, 7), 30)).all()
    assert (first.ravel() == sampler(SeededWords(5), 350, 30)).all()
    assert not (first == sampler(SeededWords(6), (50, 7), 30)).all()


@each_value(2)
@every(2, 8, 32)
@pytest.mark.parametrize("bits", [0, 20, 51])
def test_running_out_of_words_anywhere_changes_nothing(sampler, density, bits):
    words = SeededWords(7).take(6_000)
    whole = sampler(Script(words), 400, bits)
    for at_most in (1, 2, 3, 5, 64):
        pieces = sampler(Script(words, at_most), 400, bits)
        assert (pieces == whole).all()


@every(8)
def test_the_chunk_in_which_words_are_fetched_changes_nothing(sampler, density, monkeypatch):
    whole = sampler(SeededWords(8), 3_000, 25)
    for chunk in (1, 7, 100):
        monkeypatch.setattr(bits, "_CHUNK", chunk)
        assert (sampler(SeededWords(8), 3_000, 25) == whole).all()


@every(8)
def test_a_single_draw_has_the_shape_of_a_number(sampler, density):
    assert sampler(SeededWords(9), (), 10).shape == ()
    assert sampler(SeededWords(9), (), 10) == sampler(SeededWords(9), 1, 10)[0]


@every(8)
def test_a_longer_request_begins_with_the_shorter_one(sampler, density):
    assert (sampler(SeededWords(9), 1_000, 10)[:30] == sampler(SeededWords(9), 30, 10)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("normal", "density"), [(False, expon), (True, halfnorm)])
def test_beginning_anew_with_fresh_words_only_would_be_noticed(normal, density):
    """The wrong rule, on purpose: a draw that does not fit into one word is thrown away."""
    draws = []
    out = np.zeros(1, dtype=np.int64)
    numbers = new_numbers(4, 8, CDF)
    noted = np.zeros((2, 1 + numbers.shape[1]), dtype=np.int64)
    for word in SeededWords(10).take(100_000).reshape(-1, 1):
        noted[0, 0] = 0
        done, _, _ = _fill_floors(word, 0, out, 0, (normal, 6, 8, numbers, noted))
        draws.extend((out[:done] + 1 >> 1).tolist())
    assert len(draws) > 50_000
    assert fit_pvalue(draws, density, 5) < FALSE_ALARM


@each_value(2)
@every(8)
@pytest.mark.parametrize("n", [0, 1, 10, 1000, 30_000])
def test_few_more_words_are_fetched_than_needed(sampler, density, n):
    source = Script(SeededWords(11).take(60_000))
    sampler(source, n, 25)
    # One bit more than the places, and 63 that choose a cell, its height and a sign; lazy numbers
    # need some 40 bits for all of this.
    mean = n * (25 + 65) / 64
    assert source.taken <= mean + 4 * math.sqrt(n) + 12


@each_value(1)
@every(2, 8, 32)
@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_a_source_that_is_stuck_is_an_error_or_harmless_but_never_a_hang(sampler, density, word):
    source = Script(np.full(50_000, word, dtype=np.uint64))
    try:
        draws = sampler(source, 20, 8)
    except RuntimeError as error:
        assert "random generator is broken" in str(error)
    else:
        assert np.unique(draws).size == 1


@both
def test_precision_must_be_an_integer_of_at_most_52_bits(sampler, density):
    for bad in (-1, 53):
        with pytest.raises(ValueError, match=r"'bits' parameter of sample_rounded .* in the range"):
            sampler(SeededWords(0), 3, bad)
    for bad in (2.0, True, "3"):
        with pytest.raises(TypeError, match="'bits' parameter of sample_rounded must be an int"):
            sampler(SeededWords(0), 3, bad)


def test_integer_part_of_the_normal_has_the_stated_probabilities():
    with localcontext() as context:
        context.prec = 200
        e = Decimal(1).exp()
        total = sum(e ** (-Decimal(k * k) / 2) for k in range(60))
        partial = Decimal(0)
        for k, bound in enumerate(CDF):
            partial += e ** (-Decimal(k * k) / 2)
            gap = partial / total * 2**256 - bound
            assert 0 <= gap < 1
    assert CDF[-1] == 2**256 - 1
    assert tuple(sorted(set(CDF))) == CDF
