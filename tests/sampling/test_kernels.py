"""What the interpreter draws is what compiled code draws, bit for bit."""

from __future__ import annotations

import pkgutil
import warnings
from importlib import import_module

import numpy as np
import pytest

import skdpnoise
from skdpnoise.mechanisms._choice_laws import draw_exponential, draw_permute_and_flip
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.sampling import (
    SeededWords,
    integers_below,
    permutation,
    piecewise,
    rounded_gaussian,
    rounded_laplace,
)
from skdpnoise.sampling import kernels as module
from skdpnoise.sampling.bits import fill
from skdpnoise.sampling.kernels import Compilable
from skdpnoise.sampling.lazy import exponentials, half_normals, uniforms

# Far apart and close together, so that the choices need few and many coins.
UTILITIES = np.array([-(2**40), 0, 1, 700, 1000, 3000, 3000])


def places(noise) -> int:
    """Binary places that a noise can be drawn to."""
    return 0 if "Discrete" in type(noise).__name__ else 30


def noise_draws(name):
    noise = get_noise(name)
    return noise.sample_rounded(SeededWords(3), 400, places(noise))


DRAWS = {
    "permutation": lambda: permutation(SeededWords(0), 300),
    "integers": lambda: np.concatenate(
        [integers_below(SeededWords(1), bound, 200) for bound in (2, 7, 2**40 + 1, 2**62)]
    ),
    "gaussian": lambda: rounded_gaussian(SeededWords(2), 400, 52),
    "laplace": lambda: rounded_laplace(SeededWords(2), 400, 52),
    "exponential": lambda: draw_exponential(SeededWords(4), UTILITIES, 10, 300),
    "permute and flip": lambda: draw_permute_and_flip(SeededWords(4), UTILITIES, 10, 300),
    "lazy exponentials": lambda: exponentials(SeededWords(5), 300, 40).first,
    "lazy half normals": lambda: half_normals(SeededWords(5), 300, 2).first,
    "lazy uniforms": lambda: uniforms(SeededWords(5), np.array([1, 5, 2**50]), 90, 20).first,
    **{name: lambda name=name: noise_draws(name) for name in noise_names()},
}


def loops() -> set[str]:
    """Names of all loops of the package that are compiled only when it pays."""
    found = set()
    for one in pkgutil.walk_packages(skdpnoise.__path__, "skdpnoise."):
        if one.name.startswith(("skdpnoise.sampling", "skdpnoise.mechanisms", "skdpnoise.queries")):
            values = vars(import_module(one.name)).items()
            found |= {name for name, value in values if isinstance(value, Compilable)}
    return found


def draw(name, monkeypatch, form):
    """Draws of loops in one form."""
    monkeypatch.setattr(Compilable, "for_bits", form)
    piecewise._table.cache_clear()  # envelopes are made by a loop, too
    return DRAWS[name]()


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_interpreted_and_compiled_draws_are_equal_bit_for_bit(name, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # compiled code is silent, and so is the interpreter
        interpreted = draw(name, monkeypatch, lambda loop, n: loop)
    compiled = draw(name, monkeypatch, lambda loop, n: loop.compiled)
    np.testing.assert_array_equal(interpreted, compiled)
    assert np.unique(interpreted).size > 2


def test_every_loop_is_compared(monkeypatch):
    asked = set()

    def noted(self, n):
        asked.add(self.__name__)
        return self

    for name in DRAWS:
        draw(name, monkeypatch, noted)
    assert asked == loops()


def test_a_loop_is_compiled_once_it_has_read_many_bits_and_at_once_if_it_will():
    def loop(n):
        return n + 1

    kernel, another = Compilable(loop), Compilable(loop)
    half = 0.5 * module.INTERPRETED_BITS
    assert kernel.for_bits(half) is kernel
    assert kernel.for_bits(half) is kernel
    assert kernel.for_bits(1.0) is kernel.compiled
    assert another.for_bits(2.1 * half) is another.compiled
    assert another.for_bits(1.0) is another.compiled  # it is there now
    assert kernel(1) == kernel.compiled(1) == 2


def _never_before_many_words(words, position, out, done):
    """Use up what there is until a word of about one in a hundred thousand comes."""
    while position + 64 <= 64 * words.size:
        word = words[position >> 6]
        position += 64
        if word < 2**47:
            out[done] = 1
            return done + 1, position, False
    return done, position, False


def test_a_draw_that_takes_far_more_bits_than_foreseen_is_compiled_in_the_end():
    kernel = Compilable(_never_before_many_words)
    out = np.zeros(1, dtype=np.int64)
    fill(kernel, SeededWords(0), out, 64.0 * 1000)
    assert "compiled" in vars(kernel)
