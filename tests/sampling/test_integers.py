from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from skdpnoise.sampling import SeededWords, SystemWords, bits, integers_below, permutation
from tests._cases import quick
from tests._statistics import FALSE_ALARM, uniform_pvalue


@quick("7", "100", "3")
@pytest.mark.parametrize("bound", [2, 3, 5, 6, 7, 8, 100])
def test_bounded_integers_are_uniform(bound):
    draws = integers_below(SeededWords(0), bound, 50_000)
    assert draws.min() >= 0
    assert draws.max() < bound
    assert uniform_pvalue(draws, bound) > FALSE_ALARM


@pytest.mark.slow
def test_a_bound_that_a_modulo_would_bias_is_uniform():
    # 2**62 modulo 3 * 2**60 would make the first third twice as likely.
    draws = integers_below(SeededWords(0), 3 * 2**60, 50_000)
    assert uniform_pvalue(draws >> 60, 3) > FALSE_ALARM
    assert uniform_pvalue(draws & 63, 64) > FALSE_ALARM


def test_one_possible_value_needs_no_words():
    assert not integers_below(SeededWords(0), 1, 5).any()


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("n", [0, 1, 2, 3, 64, 65, 1000])
def test_a_permutation_holds_every_index_once(n):
    order = permutation(SystemWords(), n)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(n))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_all_orders_are_equally_likely(n):
    words = SeededWords(n)
    index = {order: i for i, order in enumerate(permutations(range(n)))}
    draws = [index[tuple(permutation(words, n).tolist())] for _ in range(150 * math.factorial(n))]
    assert uniform_pvalue(draws, len(index)) > FALSE_ALARM


def test_every_index_goes_to_every_place_of_a_longer_permutation():
    words = SeededWords(9)
    orders = np.array([permutation(words, 33) for _ in range(4_000)])
    for place in (0, 1, 16, 31, 32):
        assert uniform_pvalue(orders[:, place], 33) > FALSE_ALARM


def test_a_permutation_does_not_depend_on_the_pieces_in_which_words_are_fetched(monkeypatch):
    whole = permutation(SeededWords(4), 500)
    below = integers_below(SeededWords(4), 1000, 500)
    for chunk in (1, 2, 3, 17):
        monkeypatch.setattr(bits, "_CHUNK", chunk)
        assert (permutation(SeededWords(4), 500) == whole).all()
        assert (integers_below(SeededWords(4), 1000, 500) == below).all()


@pytest.mark.parametrize("bad", [2.0, True, "3", None])
def test_what_is_not_an_integer_is_refused(bad):
    with pytest.raises(TypeError, match="'n' parameter"):
        permutation(SeededWords(0), bad)
    with pytest.raises(TypeError, match="'bound' parameter"):
        integers_below(SeededWords(0), bad, 3)


def test_what_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match="'n' parameter"):
        permutation(SeededWords(0), -1)
    with pytest.raises(ValueError, match="'bound' parameter"):
        integers_below(SeededWords(0), 0, 3)
    with pytest.raises(ValueError, match="'bound' parameter"):
        integers_below(SeededWords(0), 2**62 + 1, 3)
    with pytest.raises(ValueError, match="'size' parameter"):
        integers_below(SeededWords(0), 2, -3)
