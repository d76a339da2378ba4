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

from skdpnoise.sampling.observer import current, words_go_by_rows
from skdpnoise.sampling.words import RandomWords

_KEY_WORDS = 4  # 256 bits
_BLOCK = 1 << 10  # words that one call of the function makes


def secret_key(rng: RandomWords) -> bytes:
    return rng.take(_KEY_WORDS).tobytes()


def new_key(rng: RandomWords) -> bytes:
    """Return a key for words by the numbers of the records."""
    words_go_by_rows()
    return secret_key(rng)


def keyed_order(key: bytes, use: int, n: int) -> NDArray[np.int64]:
    """Return one of all orders of n records, equally likely, for a use of a key.

    Examples
    --------
    >>> sorted(keyed_order(bytes(32), 0, 4).tolist())
    [0, 1, 2, 3]
    """
    # Independent words are sorted, and drawn anew where two are equal.
    observer, begin = current(), 0
    if observer is not None:  # an audit couples the orders of two data sets
        return observer.part_order(n)
    own = key + use.to_bytes(8, "little")
    while True:
        words = words_of_rows(own, begin, begin + n)
        order = np.argsort(words)
        if (np.diff(words[order]) != 0).all():
            return order
        begin += n


def words_of_rows(key: bytes, begin: int, end: int) -> NDArray[np.uint64]:
    """Return a word for each row, by its number: SHAKE-128 of the key and a block of numbers."""
    blocks = range(begin // _BLOCK, -(-end // _BLOCK))
    stream = b"".join(
        hashlib.shake_128(key + block.to_bytes(8, "little")).digest(8 * _BLOCK) for block in blocks
    )
    words = np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False)
    start = begin - blocks.start * _BLOCK
    return words[start : start + end - begin]
