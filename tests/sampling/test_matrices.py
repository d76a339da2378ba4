"""Exact draws of symmetric matrices: their laws, and the way that draws more places."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, gamma, norm

from skdpnoise.noises import get_noise
from skdpnoise.sampling import SeededWords
from skdpnoise.sampling import balls as sampler
from skdpnoise.sampling.balls import most_places, rounded_frobenius, rounded_wishart, wishart_places
from skdpnoise.sampling.lazy import LazyNumbers
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, uniform_pvalue

BITS = 20
SAMPLERS = {"frobenius": rounded_frobenius, "wishart": rounded_wishart}


def matrices(draw, size, count, seed=0):
    """Draw symmetric matrices of real entries, shape (count, size, size)."""
    words = SeededWords(seed)
    rows, columns = np.triu_indices(size, 1)
    drawn = np.zeros((count, size, size))
    for matrix in drawn:
        diagonal, others = draw(words, size, BITS)
        matrix[rows, columns] = matrix[columns, rows] = others
        matrix[np.diag_indices(size)] = diagonal
    return drawn / 2.0**BITS


def quantile_pvalue(values, distribution, n_bins=20):
    """Return the p-value of values being from a continuous distribution, by equal bins."""
    bins = np.floor(distribution.cdf(np.ravel(values)) * n_bins).astype(int)
    return uniform_pvalue(np.clip(bins, 0, n_bins - 1), n_bins)


class GammaDifference:
    """The law of the difference of two Gamma numbers of one shape and scale."""

    def __init__(self, shape, scale):
        law = gamma(shape, scale=scale)
        nodes, weights = np.polynomial.legendre.leggauss(150)
        self.grid = scale * np.linspace(0.0, 15.0 + 9.0 * math.sqrt(shape), 501)
        second = law.ppf(0.5 * nodes + 0.5)
        self.tails = (law.sf(self.grid[:, None] + second) * (0.5 * weights)).sum(axis=1)

    def cdf(self, z):
        tail = np.interp(np.abs(z), self.grid, self.tails)
        return np.where(np.asarray(z) > 0.0, 1.0 - tail, tail)


def check_law(values, law, error):
    assert quantile_pvalue(values, law) > FALSE_ALARM
    assert quantile_pvalue(values * (1.0 + error), law) < FALSE_ALARM
    assert quantile_pvalue(values / (1.0 + error), law) < FALSE_ALARM


def test_the_laws_to_compare_with_are_right():
    laplace = get_noise("laplace")
    z = np.linspace(-9.0, 9.0, 50)
    assert GammaDifference(1.0, 1.0).cdf(z) == pytest.approx(1.0 - laplace.sf(z), abs=1e-3)
    spread = GammaDifference(50.0, 3.0)
    assert spread.cdf(30.0) == pytest.approx(norm.cdf(1.0), abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3])
def test_a_wishart_difference_has_the_law_of_its_definition(size):
    drawn = matrices(rounded_wishart, size, 2500)
    vector = np.random.default_rng(0).normal(size=size)
    vector /= np.linalg.norm(vector)
    # Sums of squares of p + 1 normal numbers, in any direction.
    squares = GammaDifference((size + 1) / 2, 2.0)
    check_law(drawn[:, 0, 0], squares, 0.25)
    check_law(np.einsum("i,nij,j->n", vector, drawn, vector), squares, 0.25)
    trace = np.trace(drawn, axis1=1, axis2=2)
    check_law(trace, GammaDifference(size * (size + 1) / 2, 2.0), 0.25)
    if size > 1:
        # A sum of p + 1 products is a difference of Gamma((p + 1)/2) numbers, and so is its twin.
        check_law(drawn[:, 0, 1], GammaDifference(size + 1.0, 1.0), 0.25)


@pytest.mark.slow
def test_a_wrong_scale_of_a_wishart_difference_is_seen():
    size = 60
    drawn = matrices(rounded_wishart, size, 400)
    # Independent entries: all on the diagonal, and disjoint pairs of columns.
    check_law(drawn[:, range(size), range(size)], GammaDifference((size + 1) / 2, 2.0), 0.06)
    pairs = drawn[:, range(0, size, 2), range(1, size, 2)]
    check_law(pairs, GammaDifference(size + 1.0, 1.0), 0.08)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_a_matrix_of_the_frobenius_ball_has_its_density_and_a_wrong_scale_is_seen(size):
    n_entries = size * (size + 1) // 2
    drawn = matrices(rounded_frobenius, size, 4000 if size < 20 else 2200, seed=size)
    radius = np.linalg.norm(drawn, axis=(1, 2))
    check_law(radius, gamma(n_entries), 0.2 if size < 5 else 0.05)
    if size > 1:
        direction = beta(0.5, (n_entries - 1) / 2)
        for part in (drawn[:, 0, 0] ** 2, 2.0 * drawn[:, 0, 1] ** 2):
            assert quantile_pvalue(part / radius**2, direction) > FALSE_ALARM
            assert quantile_pvalue(np.minimum(1.6 * part / radius**2, 1.0), direction) < FALSE_ALARM
        pattern = (drawn[:, 0, 0] > 0) + 2 * (drawn[:, 0, 1] > 0) + 4 * (drawn[:, 1, 1] > 0)
        assert uniform_pvalue(pattern, 8) > FALSE_ALARM


@each_value(2)
@pytest.mark.parametrize("bits", [4, 20, 32])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_what_doubles_decide_more_places_decide_as_well(size, bits, monkeypatch):
    expected = {name: draw(SeededWords(3), size, bits) for name, draw in SAMPLERS.items()}
    products, roots = sampler._bounded_products, []

    def undecided(*arguments):
        above, below, unknown = products(*arguments)
        return above, below, unknown + (1 << 60)

    def counted(*arguments, _root=sampler.scaled_normal, **keywords):
        roots.append(arguments)
        return _root(*arguments, **keywords)

    monkeypatch.setattr(sampler, "_bounded_products", undecided)
    monkeypatch.setattr(sampler, "_MATRIX_ERROR", 0.9)
    monkeypatch.setattr(sampler, "scaled_normal", counted)
    for name, draw in SAMPLERS.items():
        for one, other in zip(expected[name], draw(SeededWords(3), size, bits), strict=True):
            assert (one == other).all()
    assert len(roots) > 0 or size == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_few_first_places_do_not_change_the_law(name):
    words = SeededWords(5)
    rough = [SAMPLERS[name](words, 2, 6, places=26) for _ in range(2000)]
    others = np.array([other[0] for _, other in rough]) / 64.0
    fine = np.sort(matrices(SAMPLERS[name], 2, 2000, seed=6)[:, 0, 1])
    empirical = np.searchsorted(fine, np.quantile(others, np.arange(1, 20) / 20)) / fine.size
    # Two samples of 2000: by the inequality of Dvoretzky, Kiefer and Wolfowitz for each.
    allowed = 2.0 * math.sqrt(math.log(4.0 / FALSE_ALARM) / 4000.0)
    assert np.abs(empirical - np.arange(1, 20) / 20).max() < allowed


@pytest.mark.slow
def test_large_matrices_are_drawn_and_rarely_need_more_places(monkeypatch):
    counts = []

    def counted(*arguments, _product=sampler._product):
        counts.append(1)
        return _product(*arguments)

    monkeypatch.setattr(sampler, "_product", counted)
    diagonal, others = rounded_wishart(SeededWords(0), 150, wishart_places(150))
    unit = 2.0 ** wishart_places(150)
    assert np.std(others / unit) == pytest.approx(math.sqrt(2 * 151), rel=0.05)
    assert np.std(diagonal / unit) == pytest.approx(2 * math.sqrt(151), rel=0.3)
    assert len(counts) < 0.01 * others.size
    size = 60
    bits = most_places(size * (size + 1) // 2 + 1) - 1
    diagonal, others = rounded_frobenius(SeededWords(0), size, bits)
    length = (
        math.hypot(np.linalg.norm(diagonal), math.sqrt(2.0) * np.linalg.norm(others)) / 2.0**bits
    )
    assert length == pytest.approx(size * (size + 1) / 2, rel=0.2)


class Zeros:
    """A broken source of words."""

    secure = False

    def take(self, n):
        return np.zeros(n, dtype=np.uint64)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_broken_source_is_reported(name):
    with pytest.raises(RuntimeError, match="broken"):
        SAMPLERS[name](Zeros(), 3, 10)


@pytest.mark.parametrize("n_normals", [4, 3000, 2 * (sampler.MOST_ROWS + 1)])
@pytest.mark.parametrize("size_of_normals", ["usual", "largest"])
def test_the_products_of_doubles_are_within_their_stated_error(n_normals, size_of_normals):
    """All further places may be zero, or one: in integers, the bounds hold at both ends."""
    rng = np.random.default_rng(n_normals)
    places, half = 52, np.repeat([1, -1], n_normals // 2)
    magnitude = np.abs(rng.normal(size=(3, n_normals)))
    if size_of_normals == "largest":  # beyond that, one in 10**18 or so, with all limbs full
        magnitude = np.full((3, n_normals), 9.0 - 2.0**-40)
    first = (magnitude * 2.0**places).astype(np.int64)
    # The sums of products of the first two rows cannot be larger.
    sign = np.stack([np.ones_like(half), half, rng.choice([-1, 1], n_normals)])
    normals = LazyNumbers(None, first.ravel(), places)
    above, below, unknown = sampler._bounded_products(normals, sign, places)
    assert (unknown > 0).all()
    for i, j in [(0, 0), (0, 1), (2, 1)]:
        stated = (int(above[i, j]) << 38) + int(below[i, j])
        for more in (0, 1):  # of every magnitude, in units of its last place
            one, other = ((sign[k] * (first[k] + more)).astype(object) for k in (i, j))
            assert abs((int(half @ (one * other)) >> 38) - stated) <= int(unknown[i, j])


def test_sizes_whose_sums_would_overflow_are_refused():
    with pytest.raises(ValueError, match=f"at most {sampler.MOST_ROWS}"):
        rounded_wishart(SeededWords(0), sampler.MOST_ROWS + 1, 10)
    with pytest.raises(ValueError, match="binary places"):
        rounded_wishart(SeededWords(0), 100, 45)
