from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.sampling import RandomWords, SeededWords, SystemWords, random_words
from tests._statistics import FALSE_ALARM, uniform_pvalue


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("words", [SystemWords(), SeededWords(3)])
def test_every_byte_of_the_words_is_uniform(words):
    taken = words.take(40_000)
    assert isinstance(words, RandomWords)
    assert taken.dtype == np.uint64
    assert taken.shape == (40_000,)
    for byte in taken.copy().view(np.uint8).reshape(-1, 8).T:
        assert uniform_pvalue(byte, 256) > FALSE_ALARM


def test_only_the_operating_system_is_secure():
    assert random_words(None).secure
    assert isinstance(random_words(None), SystemWords)
    assert not random_words(0).secure
    assert not random_words(np.random.RandomState(0)).secure
    assert not random_words(np.random.default_rng(0)).secure


@pytest.mark.usefixtures("the_same_words")
def test_the_operating_system_never_repeats_itself():
    assert not (SystemWords().take(100) == SystemWords().take(100)).any()


@pytest.mark.parametrize("seed", [0, 7, 2**40, np.int32(7), np.uint64(7)])
def test_an_integer_gives_the_same_stream_every_time(seed):
    first, second = random_words(seed), random_words(seed)
    assert (first.take(10) == second.take(10)).all()
    assert not (first.take(10) == random_words(seed).take(10)).any()


def test_the_stream_does_not_depend_on_the_pieces_in_which_it_is_taken():
    words = SeededWords(5)
    pieces = [words.take(n) for n in (1, 0, 2, 3, 4)]
    assert (np.concatenate(pieces) == SeededWords(5).take(10)).all()


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_numpy_generator_gives_fresh_but_reproducible_streams(make):
    generator = make(1)
    first, second = random_words(generator).take(10), random_words(generator).take(10)
    assert not (first == second).any()
    assert (first == random_words(make(1)).take(10)).all()


def test_random_words_are_handed_through():
    for words in (SeededWords(1), SystemWords()):
        assert random_words(words) is words


@pytest.mark.parametrize("bad", [True, np.True_, 1.5, "1", [1, 2], SystemWords, np.random])
def test_anything_else_is_refused_by_name(bad):
    with pytest.raises(TypeError, match="'random_state' parameter must be"):
        random_words(bad)


def test_a_negative_seed_is_refused_by_name():
    with pytest.raises(ValueError, match="'random_state' parameter must be a non-negative int"):
        random_words(-1)


def test_the_display_does_not_publish_the_seed():
    assert "12345" not in repr(SeededWords(12345))
    assert repr(SystemWords()) == "SystemWords()"
