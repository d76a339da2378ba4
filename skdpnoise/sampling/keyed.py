"""Secret words for numbered rows: the same for a row wherever and however often it is read.

They are SHAKE-128 of a key of 256 bits and the number of a block of rows. Who does not know the key
cannot tell them from independent uniform words, as little as those of the generator that a key
stretches in the operating system's source. Reference: NIST FIPS 202, "SHA-3 standard:
permutation-based hash and extendable-output functions", 2015, Section 6.2.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling.observer import words_go_by_rows
from skdpnoise.sampling.words import RandomWords

_KEY_WORDS = 4  # 256 bits
_BLOCK = 1 << 10  # words that one call of the function makes


def new_key(rng: RandomWords) -> bytes:
    words_go_by_rows()
    return rng.take(_KEY_WORDS).tobytes()


def words_of_rows(key: bytes, begin: int, end: int) -> NDArray[np.uint64]:
    """Return a word for each row, by its number: SHAKE-128 of the key and a block of numbers."""
    blocks = range(begin // _BLOCK, -(-end // _BLOCK))
    stream = b"".join(
        hashlib.shake_128(key + block.to_bytes(8, "little")).digest(8 * _BLOCK) for block in blocks
    )
    words = np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False)
    start = begin - blocks.start * _BLOCK
    return words[start : start + end - begin]
