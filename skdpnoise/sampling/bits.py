"""Reading a stream of words bit by bit, and giving back what an unfinished draw has read."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling.kernels import Compilable, inner
from skdpnoise.sampling.words import RandomWords

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# At most so many words are fetched at once: 128 KiB, which stay in cache until they are used.
_CHUNK = 1 << 14

BROKEN = (
    "The random words led to an event of probability below 2**-100 (two numbers that agree in 256 "
    "bits, or a huge sample): the random generator is broken."
)

# A kernel(rng, position, out, done, *parameters) fills out[done:] from the words, beginning at
# bit `position`, and returns (done, position, exhausted) when `out` is full or the words do not
# suffice for the next draw; `position` is then the first bit that no finished draw has read.
Progress = tuple[int, int, bool]
Kernel = Callable[..., Progress]


@inner
def take_bits(words: Words, position: int, n: int) -> int:
    """Return the n <= 63 bits from bit `position` on; past the end of the words they are zero."""
    # A caller compares its position with 64 * words.size, and undoes a draw that read past the end.
    if position + n > 64 * words.size:
        return 0
    first = position >> 6
    shift = position & 63
    value = words[first] >> np.uint64(shift)
    if shift + n > 64:
        value |= words[first + 1] << np.uint64(64 - shift)
    return int(np.int64(value)) & ((1 << n) - 1)


@inner
def take_below(words: Words, position: int, bound: int, n: int) -> tuple[int, int]:
    """Return an unbiased integer in [0, bound), bound <= 2**n, and the position after it."""
    # The first of successive n-bit integers that is below the bound: no modulo, hence no bias.
    while True:
        value = take_bits(words, position, n)
        position += n
        # Zeros past the end are always accepted, so this ends there.
        if value < bound:
            return value, position


def fill(
    kernel: Kernel, rng: RandomWords, out: Integers, mean_bits: float, *parameters: object
) -> None:
    buffer = np.empty(0, dtype=np.uint64)
    position = 0
    done = 0
    while done < out.size:
        # Mean plus a few standard deviations (one draw's is below its mean).
        missing = out.size - done
        n_words = math.ceil(mean_bits * (missing + 3.0 * math.sqrt(missing)) / 64) + 1
        # When the words run out in the middle of a draw, that draw starts again from the SAME
        # leftover words, followed by fresh ones. Starting from fresh words only would throw away
        # just those beginnings that need many words, and so favour draws that need few.
        leftover = buffer[position >> 6 :]
        fresh = rng.take(min(n_words, _CHUNK))
        buffer = np.concatenate([leftover, fresh])
        position &= 63
        # Each time anew: a draw may need far more bits than draws do on average.
        run = kernel.for_bits(64 * fresh.size) if isinstance(kernel, Compilable) else kernel
        done, position, exhausted = run(buffer, position, out, done, *parameters)
        if exhausted:
            raise RuntimeError(BROKEN)
