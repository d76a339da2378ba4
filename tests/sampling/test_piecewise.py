"""Exact draws of any piecewise exponent: the law, the two paths, bad input."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import cycle

import numpy as np
import pytest

from skdpnoise.sampling import (
    Exponent,
    SeededWords,
    SystemWords,
    _piecewise_kernel,
    bits,
    integer_piecewise,
    piecewise,
    rounded_piecewise,
)
from skdpnoise.sampling._piecewise_exact import density as exact_density
from skdpnoise.sampling._piecewise_exact import draw_exactly
from tests._cases import each_value, quick
from tests._statistics import (
    FALSE_ALARM,
    binned_pvalue,
    chi_square_pvalue,
    fit_pvalue,
    uniform_pvalue,
)
from tests.sampling._piecewise_laws import INTEGERS, LAWS, WIDE, integer_weights, one_piece

N = 120_000

FEW_VALUES = ("truncated_laplace", "subbotin_5", "steep_staircase")
continuous = pytest.mark.parametrize("name", LAWS)

# Every law of both kinds, as a function of words and size.
SAMPLERS = {
    **{
        f"{name}-{bits}": (lambda words, size, e=e, b=bits: rounded_piecewise(words, size, b, e))
        for (name, (e, _)), bits in zip(LAWS.items(), cycle((0, 52)), strict=False)
    },
    **{
        name: (lambda words, size, f=make, s=scale: integer_piecewise(words, size, f(s)))
        for name, (make, scale, *_) in (INTEGERS | WIDE).items()
    },
}
every = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


@pytest.fixture
def fresh_tables(monkeypatch):
    """Tables made under changed settings, which nobody sees afterwards."""
    piecewise._table.cache_clear()
    yield monkeypatch
    piecewise._table.cache_clear()


class Script:
    """Words from a list, at most `at_most` at once."""

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


class Endless:
    """One word for ever."""

    secure = False

    def __init__(self, word):
        self.word = word

    def take(self, n):
        return np.full(n, self.word, dtype=np.uint64)


def values_pvalue(draws, weights):
    """Return Pearson's p-value of integers of few values, given weights of -m, ..., m.

    Rare values count as the nearest that is not rare.
    """
    probabilities = weights / weights.sum()
    k = np.arange(weights.size) - weights.size // 2
    (common,) = np.nonzero(probabilities * draws.size >= 200)
    low, high = k[common[0]], k[common[-1]]
    expected = np.bincount(np.clip(k, low, high) - low, probabilities)
    return chi_square_pvalue(np.bincount(np.clip(draws, low, high) - low), expected)


@quick("1-subbotin_5", "0-truncated_laplace")
@each_value(2)
@continuous
@pytest.mark.parametrize("bits", [0, 1, 24, 52])
def test_rounded_draws_have_the_exact_distribution(name, bits):
    exponent, density = LAWS[name]
    draws = rounded_piecewise(SeededWords(bits), N, bits, exponent)
    if bits < 2 and name in FEW_VALUES:
        edges = (np.arange(-10, 12) - 0.5) / 2.0**bits
        assert values_pvalue(draws, -np.diff(density.sf(edges))) > FALSE_ALARM
        return
    assert fit_pvalue(draws, density, bits) > FALSE_ALARM
    for scale in (0.95, 1.05):
        assert binned_pvalue(draws, density, bits, scale=scale) < FALSE_ALARM


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("name", [*LAWS][::3])
def test_draws_from_the_operating_system_have_the_exact_distribution(name):
    exponent, density = LAWS[name]
    assert fit_pvalue(rounded_piecewise(SystemWords(), N, 40, exponent), density, 40) > FALSE_ALARM


@pytest.mark.parametrize("name", INTEGERS)
def test_narrow_integer_laws_have_the_exact_probabilities(name):
    make, scale = INTEGERS[name]
    draws = integer_piecewise(SeededWords(1), N, make(scale))
    assert values_pvalue(draws, integer_weights(make(scale))) > FALSE_ALARM
    for wrong in (0.95, 1.05):
        assert values_pvalue(draws, integer_weights(make(wrong * scale))) < FALSE_ALARM


@pytest.mark.parametrize("name", WIDE)
def test_wide_integer_laws_have_the_exact_probabilities(name):
    make, scale, density = WIDE[name]
    draws = integer_piecewise(SeededWords(2), N, make(scale))
    assert fit_pvalue(draws, density, 0, scale=scale) > FALSE_ALARM
    for wrong in (0.95, 1.05):
        assert binned_pvalue(draws, density, 0, scale=wrong * scale) < FALSE_ALARM
    assert uniform_pvalue(draws & 255, 256) > FALSE_ALARM


@pytest.mark.parametrize("name", ["normal", "osgt", "subbotin", "truncated_laplace", "staircase"])
def test_low_bits_are_uniform_and_independent_of_the_high_ones(name):
    exponent, density = LAWS[name]
    draws = rounded_piecewise(SeededWords(3), N, 52, exponent)
    for shift in (0, 16, 32, 40):
        assert uniform_pvalue(draws >> shift & 255, 256) > FALSE_ALARM
    quarter = np.searchsorted(density.isf([0.75, 0.5, 0.25]), draws / 2.0**52)
    assert uniform_pvalue(quarter * 64 + (draws & 63), 256) > FALSE_ALARM


@pytest.mark.slow
@continuous
def test_the_envelope_changes_the_speed_and_not_the_law(name, fresh_tables):
    # A few coarse cells, after which the tail begins at once.
    fresh_tables.setattr(_piecewise_kernel, "MAX_CELLS", 3)
    fresh_tables.setattr(_piecewise_kernel, "TAIL", 0.9)
    exponent, density = LAWS[name]
    draws = rounded_piecewise(SeededWords(4), 3_000, 24, exponent)
    table = piecewise._table(exponent, 24)
    assert table.index.size <= 3
    if exponent.end == math.inf:
        beyond = 2.0 * density.sf(2.0**table.top)
        assert beyond > 0.01 or name in FEW_VALUES
    if name == "steep_staircase":
        assert abs((np.abs(draws) / 2.0**24 > 0.02).mean() - 2 * density.sf(0.02)) < 0.05
    else:
        assert binned_pvalue(draws, density, 24, n_bins=24) > FALSE_ALARM


def all_exact(table, words, size):
    draws, position = [], 0
    for _ in range(size):
        draw, position = draw_exactly(words, position, table)
        draws.append(draw)
    return draws


@quick("laplace", "steep_staircase", "flat_staircase")
@each_value(2)
@pytest.mark.parametrize("bits", [0, 5, 24, 52])
@continuous
def test_the_fast_path_makes_the_draws_of_the_exact_one(name, bits, fresh_tables):
    fresh_tables.setattr(_piecewise_kernel, "MAX_CELLS", 12)  # so that few draws are sure
    words = SeededWords(bits).take(4_000)
    exponent, _ = LAWS[name]
    draws = rounded_piecewise(Script(words), 150, bits, exponent)
    assert draws.tolist() == all_exact(piecewise._table(exponent, bits), words, 150)


@pytest.mark.parametrize("name", INTEGERS | WIDE)
def test_the_fast_path_makes_the_integers_of_the_exact_one(name, fresh_tables):
    fresh_tables.setattr(_piecewise_kernel, "MAX_CELLS", 70)
    words = SeededWords(5).take(4_000)
    make, scale, *_ = (INTEGERS | WIDE)[name]
    draws = integer_piecewise(Script(words), 300, make(scale))
    assert draws.tolist() == all_exact(piecewise._table(make(scale), None), words, 300)


@quick("0", "steep_staircase")
@every
def test_a_wider_band_of_undecided_draws_changes_no_draw(sampler, fresh_tables):
    narrow = sampler(SeededWords(6), 20_000)
    for band in (1e-3, math.inf):
        fresh_tables.setattr(piecewise, "_BAND", band)
        assert (sampler(SeededWords(6), 20_000) == narrow).all()


def tables():
    for name, (exponent, _) in LAWS.items():
        for places in (0, 40):
            yield pytest.param(exponent, places, id=f"{name}-{places}")
    for name, (make, scale, *_) in (INTEGERS | WIDE).items():
        yield pytest.param(make(scale), None, id=name)


@pytest.mark.parametrize(("exponent", "bits"), list(tables()))
def test_every_weight_is_an_upper_bound_and_every_sure_height_a_lower_one(exponent, bits):
    table = piecewise._table(exponent, bits)
    weights = np.diff(table.cells.cumulative)
    assert table.cells.cumulative[-1] == 2**62
    assert weights.min() > 0
    chosen = np.unique(np.linspace(0, table.index.size - 1, 100).astype(int))
    for cell in chosen.tolist():
        width = Fraction(2) ** int(table.level[cell])
        low = int(table.index[cell]) * width
        high = low + width - (0 if bits is not None else 1)
        height = Decimal(float(table.cells.height[cell]))
        with localcontext() as context:
            context.prec = 60
            least, most = exact_density(table.law, low, high, 60)
            assert height * most <= int(weights[cell])
            assert int(table.cells.sure[cell]) <= height * least
    # Little is wasted: eight attempts in ten are accepted without another look.
    assert table.cells.sure.sum() > 0.85 * 2**62
    assert table.cells.n_bits.size <= 1000


@continuous
def test_the_exponent_is_as_close_to_the_exact_one_as_its_bound_says(name):
    law = piecewise._law(LAWS[name][0], on_integers=False)
    for x in np.abs(rounded_piecewise(SeededWords(8), 200, 30, LAWS[name][0])) / 2.0**30:
        value, error = _piecewise_kernel.evaluate(x, law)
        with localcontext() as context:
            context.prec = 60
            density, _ = exact_density(law, Fraction(x), Fraction(x), 60)
            assert abs(-density.ln() - Decimal(value)) <= Decimal(error) + Decimal(10) ** -50


def as_words(*numbers_and_bits):
    """Words that begin with numbers of so many bits each."""
    total = shift = 0
    for number, n_bits in numbers_and_bits:
        total |= number << shift
        shift += n_bits
    return np.frombuffer(total.to_bytes(8 * -(-shift // 64), "little"), dtype="<u8")


def test_a_tie_is_decided_by_further_digits():
    # The first cell of the staircase is flat: a height equal to the density is on the border.
    exponent, _ = LAWS["staircase"]
    table = piecewise._table(exponent, 24)
    height = float(table.cells.height[0])
    assert height.is_integer()
    n_bits = int(table.cells.n_bits[0])
    on_the_border = [(int(height) << 1, 63), (7, n_bits)]
    below = [(int(height) - 1 << 1, 63), (7, n_bits)]
    after = [(int(word), 64) for word in SeededWords(9).take(60)]
    decided = rounded_piecewise(Script(as_words(*below, *after)), (), 24, exponent)
    assert decided == 4  # round(7 / 2)
    # Digits of x and of the height: the next step of the comparison tells that it is above.
    tied = rounded_piecewise(Script(as_words(*on_the_border, *after)), (), 24, exponent)
    later = rounded_piecewise(Script(as_words(*after[2:])), (), 24, exponent)
    assert tied == later
    # A height that stays on the border for ever.
    with pytest.raises(RuntimeError, match="random generator is broken"):
        rounded_piecewise(Script(as_words(*on_the_border, (0, 64 * 20))), (), 24, exponent)


@quick("gaussian_1e9", "osgt-52", "steep_staircase-0", "gaussian_0.4")
@every
def test_running_out_of_words_anywhere_changes_nothing(sampler, fresh_tables):
    fresh_tables.setattr(_piecewise_kernel, "MAX_CELLS", 70)
    fresh_tables.setattr(_piecewise_kernel, "TAIL", 0.2)  # the exact path runs out as well
    words = SeededWords(7).take(1_000)
    whole = sampler(Script(words), 100)
    for at_most in (1, 2, 5):
        assert (sampler(Script(words, at_most), 100) == whole).all()
    fresh_tables.setattr(bits, "_CHUNK", 7)
    assert (sampler(Script(words), 100) == whole).all()


@every
def test_shapes_and_seeds(sampler):
    first = sampler(SeededWords(5), (50, 7))
    assert first.shape == (50, 7)
    assert first.dtype == np.int64
    assert (first.ravel() == sampler(SeededWords(5), 350)).all()
    assert (first.ravel()[:30] == sampler(SeededWords(5), 30)).all()
    assert sampler(SeededWords(5), ()) == first[0, 0]
    assert sampler(SeededWords(5), 0).shape == (0,)


@each_value(1)
@every
@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_a_source_that_is_stuck_is_an_error_or_harmless_but_never_a_hang(sampler, word):
    try:
        draws = sampler(Endless(word), 20)
    except RuntimeError as error:
        assert "random generator is broken" in str(error)
    else:
        assert np.unique(draws).size == 1


def test_rounded_coefficients_at_a_knot_are_accepted_and_accounted_for():
    for alpha in np.linspace(0.1, 9.0, 50).tolist():
        pieces = ((0.0, alpha, 0.0, 0.0), (0.5 * alpha**2, 0.0, 0.5, 0.0))
        law = piecewise._law(Exponent((0.0, alpha), pieces), on_integers=False)
        exact = [Fraction(c) for c in (alpha * 1.0, 0.5 * alpha**2)]
        fall = exact[0] * exact[0] - exact[1] - exact[0] ** 2 / 2
        assert fall <= Fraction(law.fall)
        assert law.fall < 1e-10


def test_the_end_of_a_law_is_respected():
    exponent = one_piece(c1=1e-9, end=0.3)
    draws = rounded_piecewise(SeededWords(10), N, 52, exponent)
    assert np.abs(draws).max() <= 0.3 * 2**52
    assert np.abs(draws).max() > 0.2999 * 2**52
    integers = integer_piecewise(SeededWords(10), N, one_piece(end=3.0))
    assert uniform_pvalue(integers + 2, 5) > FALSE_ALARM


def test_noise_too_wide_for_64_bits_is_an_error():
    wide = one_piece(c1=2.0**-10)
    with pytest.raises(ValueError, match="ask for fewer bits"):
        rounded_piecewise(SeededWords(0), 3, 52, wide)
    assert np.abs(rounded_piecewise(SeededWords(0), 3, 40, wide)).max() > 0
    with pytest.raises(ValueError, match="too wide"):
        integer_piecewise(SeededWords(0), 3, one_piece(c1=1e-18))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("knots", {"knots": ()}),
        ("knots", {"knots": (1.0,)}),
        ("knots", {"knots": (0.0, 1.0, 1.0), "coefficients": ((0.0, 1.0, 0.0, 0.0),) * 3}),
        ("knots", {"knots": (0.0, math.nan), "coefficients": ((0.0, 1.0, 0.0, 0.0),) * 2}),
        ("knots", {"knots": (0.0, 3.0), "coefficients": ((0.0, 1.0, 0.0, 0.0),) * 2, "end": 2.0}),
        ("knots", {"knots": 0.0}),
        ("coefficients", {"coefficients": ((0.0, 1.0, 0.0),)}),
        ("coefficients", {"coefficients": ((0.0, math.nan, 0.0, 0.0),)}),
        ("coefficients", {"coefficients": 1.0}),
        ("coefficients", {"coefficients": ((0.0, 1.0, 0.0, 0.0),) * 2}),
        ("coefficients", {"coefficients": ((0.0, -1.0, 1.0, 0.0),)}),
        ("coefficients", {"coefficients": ((0.0, 1.0, -1.0, 0.0),)}),
        ("coefficients", {"coefficients": ((0.0, -1.0, 0.0, 2.0),)}),
        ("coefficients", {"coefficients": ((0.0, 0.0, 0.0, 0.0),)}),  # no density
        ("coefficients", {"knots": (0.0, 1.0), "coefficients": ((0.0, 1.0, 0.0, 0.0),) * 1}),
        (
            "coefficients",
            {"knots": (0.0, 1.0), "coefficients": ((0.0, 1.0, 0.0, 0.0), (-0.1, 1.0, 0.0, 0.0))},
        ),
        (
            "coefficients",  # falls where the period begins again
            {"coefficients": ((0.0, 2.0, 0.0, 0.0),), "period": (1.0, 1.0)},
        ),
        ("power", {"power": 0.5}),
        ("power", {"power": math.nan}),
        ("end", {"end": 0.0}),
        ("end", {"end": math.nan}),
        ("period", {"period": (1.0, 0.0)}),
        ("period", {"period": (1.0,)}),
        ("period", {"period": (math.inf, 1.0)}),
    ],
)
def test_pieces_that_define_no_falling_density_are_refused(name, arguments):
    good = {"knots": (0.0,), "coefficients": ((0.0, 1.0, 0.0, 0.0),)}
    Exponent(**good)
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of Exponent must be"):
        Exponent(**{**good, **arguments})


@pytest.mark.parametrize("name", ["knots", "coefficients", "power", "end", "period"])
def test_what_is_not_a_number_is_refused(name):
    good = {"knots": (0.0,), "coefficients": ((0.0, 1.0, 0.0, 0.0),)}
    bad = {"knots": ("0",), "coefficients": (("0",) * 4,), "period": ("1", 1.0)}.get(name, "1")
    with pytest.raises((TypeError, ValueError), match=rf"The '{name}' parameter of Exponent"):
        Exponent(**{**good, name: bad})


def test_precision_must_be_an_integer_of_at_most_52_bits():
    exponent, _ = LAWS["normal"]
    for bad in (-1, 53):
        with pytest.raises(ValueError, match=r"'bits' parameter of sample_rounded .* in the range"):
            rounded_piecewise(SeededWords(0), 3, bad, exponent)
    for bad in (2.0, True, math.nan):
        with pytest.raises(TypeError, match="'bits' parameter of sample_rounded must be an int"):
            rounded_piecewise(SeededWords(0), 3, bad, exponent)
