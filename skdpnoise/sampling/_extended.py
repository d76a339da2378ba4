"""Real numbers of which as many binary places are drawn as somebody asks for.

Sampling by comparison leaves the places that no comparison has looked at uniform and independent
of everything else. So a number whose first places do not decide a question is not drawn anew, which
would favour numbers that are easy to decide: further random bits are appended to the same number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from skdpnoise.sampling._karney import CDF, exponential, half_normal
from skdpnoise.sampling.bits import BROKEN, Integers, Progress, Words, fill, take_bits
from skdpnoise.sampling.integers import uniform_integers
from skdpnoise.sampling.kernels import Compilable, inner
from skdpnoise.sampling.lazy import DIGIT_BITS, leading_bits, new_numbers
from skdpnoise.sampling.words import RandomWords

T = TypeVar("T")

# Places asked for one after the other by a question that is still open.
EXTENSIONS = (64, 128, 192, 256)

_MEAN_BITS = 40.0  # mean number of random bits of one draw beyond those of its places

_X = 0  # row of the number that is accepted, in both algorithms


@dataclass(slots=True)
class LazyNumbers:
    """Non-negative numbers of which first[i] is the integer part of number i times 2**bits."""

    rng: RandomWords  # where further places come from
    first: Integers  # the places drawn so far
    bits: int  # how many of them are behind the point
    # value and places of those numbers of which more is known
    known: dict[int, tuple[int, int]] = field(default_factory=dict)

    def floor(self, index: int, bits: int) -> int:
        """Return the integer part of 2**bits times the number, drawing what is not yet known."""
        value, places = self.known.get(index, (int(self.first[index]), self.bits))
        while places < bits:
            value = value << 64 | int(self.rng.take(1)[0])
            places += 64
        self.known[index] = value, places
        return value >> (places - bits)


def settled(ends: Callable[[int], tuple[T, T]]) -> T:
    """Return what two bounds agree on, once they know so many more binary places."""
    for extension in EXTENSIONS:
        low, high = ends(extension)
        if low == high:
            return low
    raise RuntimeError(BROKEN)


@inner
def _floor(
    words: Words, position: int, whole: int, bits: int, width: int, numbers: Integers
) -> tuple[int, int]:
    """Return floor(2**bits * (whole + x)), the fraction x being in its row."""
    if numbers[_X, 0] > 0:
        fraction, position = leading_bits(words, position, width, numbers, _X, bits)
    else:
        first = take_bits(words, position, 1)
        fraction = (first << (bits - 1)) | take_bits(words, position + 1, bits - 1)
        position += bits
    return (whole << bits) + fraction, position


@Compilable
def _fill_floors(
    words: Words,
    position: int,
    out: Integers,
    done: int,
    normal: bool,
    bits: int,
    width: int,
    numbers: Integers,
    noted: Integers,
    n_noted: Integers,
) -> Progress:
    end = 64 * words.size
    while done < out.size:
        if normal:
            whole, after = half_normal(words, position, width, numbers)
        else:
            whole, after = exponential(words, position, width, numbers)
        value, after = _floor(words, after, whole, bits, width, numbers)
        if after > end:
            break
        if whole < 0:
            return done, position, True
        if numbers[_X, 0] * width > bits:
            if n_noted[0] == noted.shape[0]:
                return done, position, True
            noted[n_noted[0], 0] = done
            noted[n_noted[0], 1:] = numbers[_X]
            n_noted[0] += 1
        out[done] = value
        done += 1
        position = after
    return done, position, False


def _draw(
    rng: RandomWords, size: int, bits: int, normal: bool, digit_bits: int = DIGIT_BITS
) -> LazyNumbers:
    out = np.empty(size, dtype=np.int64)
    numbers = new_numbers(4, digit_bits, CDF)
    # A number is noted if a comparison has looked at more places than are returned of it. A few
    # comparisons look at one number, and each goes that far with a probability of about `rarely`.
    rarely = 0.5 ** (bits // digit_bits * digit_bits)
    room = min(size, 64 + int(64.0 * rarely * size))
    noted = np.zeros((room, 1 + numbers.shape[1]), dtype=np.int64)
    n_noted = np.zeros(1, dtype=np.int64)
    state = (normal, bits, digit_bits, numbers, noted, n_noted)
    fill(_fill_floors, rng, out, _MEAN_BITS + bits, *state)
    known = {}
    for index, n_digits, *digits in noted[: n_noted[0]].tolist():
        value = int(out[index]) >> bits
        for digit in digits[:n_digits]:
            value = value << digit_bits | digit
        known[index] = value, digit_bits * n_digits
    return LazyNumbers(rng, out, bits, known)


def exponentials(
    rng: RandomWords, size: int, bits: int, *, digit_bits: int = DIGIT_BITS
) -> LazyNumbers:
    """Draw exactly exponential numbers, to 2 <= `bits` <= 52 binary places at first."""
    return _draw(rng, size, bits, False, digit_bits)


def half_normals(
    rng: RandomWords, size: int, bits: int, *, digit_bits: int = DIGIT_BITS
) -> LazyNumbers:
    """Draw absolute values of exactly normal numbers, to 2 <= `bits` <= 52 places at first."""
    return _draw(rng, size, bits, True, digit_bits)


def uniforms(rng: RandomWords, bounds: Integers, repeats: int, bits: int) -> LazyNumbers:
    """Draw numbers exactly uniform on [0, bound / 2**bits), ``repeats`` for each bound."""
    n_bits = int(bounds.max(initial=0)).bit_length()
    return LazyNumbers(rng, uniform_integers(rng, bounds, repeats, n_bits), bits)


def with_random_signs(rng: RandomWords, magnitudes: Integers) -> Integers:
    """Return the magnitudes, each with an independent fair sign.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> int(abs(with_random_signs(SeededWords(0), np.array([3]))[0]))
    3
    """
    source = rng.take(-(-magnitudes.size // 64))
    negative = np.unpackbits(source.view(np.uint8), count=magnitudes.size).view(np.bool_)
    np.negative(magnitudes, out=magnitudes, where=negative.reshape(magnitudes.shape))
    return magnitudes
