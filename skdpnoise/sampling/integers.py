"""Exact uniform integers and permutations."""

from __future__ import annotations

import numpy as np

from skdpnoise._utils.checks import check_count
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.sampling.bits import Integers, Progress, Words, fill, take_below
from skdpnoise.sampling.kernels import Compilable
from skdpnoise.sampling.observer import current
from skdpnoise.sampling.words import RandomWords

# Rejection accepts more than half of the attempts.
_MEAN_ATTEMPTS = 1.4
_SPARSE = 4  # below such a part of n records, some are drawn without an order of all


@Compilable
def _fill_below(
    words: Words, position: int, out: Integers, done: int, bounds: Integers, repeats: int
) -> Progress:
    bound, n = 0, 0
    while done < out.size:
        if bounds[done // repeats] != bound:
            bound, n = bounds[done // repeats], 1
            while n < 62 and 1 << n < bound:
                n += 1
        value, after = take_below(words, position, bound, n)
        if after > 64 * words.size:
            break
        out[done] = value
        done += 1
        position = after
    return done, position, False


def uniform_integers(rng: RandomWords, bounds: Integers, repeats: int, n_bits: int) -> Integers:
    """Return ``repeats`` integers below each bound, the largest of which has ``n_bits`` bits."""
    out = np.empty(bounds.size * repeats, dtype=np.int64)
    fill(_fill_below, rng, out, _MEAN_ATTEMPTS * n_bits, bounds, repeats)
    return out


@Compilable
def _shuffle(words: Words, position: int, out: Integers, done: int, n: int) -> Progress:
    """Continue Fisher and Yates' shuffle from the back, after `done` steps."""
    while done < out.size:
        last = out.size - 1 - done
        # n bits suffice for last + 1 values; fewer would from the next power of two on.
        while n > 1 and last < 1 << (n - 1):
            n -= 1
        value, after = take_below(words, position, last + 1, n)
        if after > 64 * words.size:
            break
        out[last], out[value] = out[value], out[last]
        done += 1
        position = after
    return done, position, False


@shared_texts
def integers_below(rng: RandomWords, bound: int, size: int) -> Integers:
    """Sample independent integers, exactly uniform on 0, ..., `bound` - 1.

    Of successive integers of just enough bits it takes the first that is small enough.

    Parameters
    ----------
    %(mechanisms: rng)s
    bound : int
        Number of possible values, 1 <= `bound` <= 2**62.
    size : int
        Number of samples.

    Returns
    -------
    samples : ndarray of int64, shape (size,)

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> samples = integers_below(SeededWords(0), 6, 1000)
    >>> int(samples.min()), int(samples.max())
    (0, 5)
    """
    bound = check_count("integers_below", "bound", bound, high=2**62)
    size = check_count("integers_below", "size", size, low=0, high=2**48)
    if bound == 1:
        return np.zeros(size, dtype=np.int64)
    return uniform_integers(rng, np.array([bound]), size, (bound - 1).bit_length())


@shared_texts
def permutation(rng: RandomWords, n: int) -> Integers:
    r"""Sample one of the :math:`n!` orders of 0, ..., `n` - 1, all equally likely.

    Fisher and Yates' shuffle with unbiased integers; it is exact, unlike a shuffle seeded by
    fewer bits than there are orders.

    Parameters
    ----------
    %(mechanisms: rng)s
    n : int
        Length, 0 <= `n` <= 2**48.

    Returns
    -------
    order : ndarray of int64, shape (n,)

    References
    ----------
    Durstenfeld (1964), "Algorithm 235: Random permutation", Communications of the ACM 7.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> sorted(permutation(SeededWords(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    out = np.arange(check_count("permutation", "n", n, low=0, high=2**48), dtype=np.int64)
    if out.size > 1:
        n_bits = (out.size - 1).bit_length()
        fill(_shuffle, rng, out, _MEAN_ATTEMPTS * n_bits, n_bits)
    return out


@shared_texts
def secret_order(rng: RandomWords, n: int) -> Integers:
    """Sample an order of `n` records that is never released.

    Parameters
    ----------
    %(mechanisms: rng)s
    n : int
        Number of records, 0 <= `n` <= 2**48.

    Returns
    -------
    order : ndarray of int64, shape (n,)
        As of :func:`permutation`, unless an audit couples the orders of two data sets; writeable.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> sorted(secret_order(SeededWords(0), 3).tolist())
    [0, 1, 2]
    """
    observer = current()
    return permutation(rng, n) if observer is None else observer.order(n).copy()


@shared_texts
def secret_pairs(rng: RandomWords, n: int, most: int) -> Integers:
    r"""Sample disjoint pairs of `n` records that are never released.

    A random part of a uniformly random matching, of at most :math:`\lfloor n / 2 \rfloor` pairs.

    Parameters
    ----------
    %(mechanisms: rng)s
    n : int
        Number of records, 0 <= `n` <= 2**48.
    most : int
        The most pairs, at least 1.

    Returns
    -------
    pairs : ndarray of int64, shape (2, n_pairs)
        Numbers of records, each at most once.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> secret_pairs(SeededWords(0), 1_000_000, 3).shape
    (2, 3)
    """
    half = min(n // 2, most)
    if 2 * half > n // _SPARSE or current() is not None:
        order = secret_order(rng, n)
        stop = n // 2 * 2  # the second half of the pairs
        return np.stack([order[:half], order[stop // 2 : stop // 2 + half]])
    # Of independent integers the first of equal ones: the beginning of a random order.
    drawn = np.zeros(0, dtype=np.int64)
    while drawn.size < 2 * half:
        fresh = integers_below(rng, n, 2 * half - drawn.size)
        drawn = np.concatenate([drawn, fresh])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn.reshape(2, half)


def secret_rows(rng: RandomWords, n: int, most: int) -> Integers:
    """Sample some of `n` records that is never released: `most`, an even number, or all of fewer.

    Examples
    --------
    >>> from skdpnoise.sampling import SeededWords
    >>> secret_rows(SeededWords(0), 5, 6), secret_rows(SeededWords(0), 10**9, 6).size
    (array([0, 1, 2, 3, 4]), 6)
    """
    observer = current()
    if observer is not None:  # an audit couples those of two data sets
        return observer.part(n, most)
    if n <= most:
        return np.arange(n, dtype=np.int64)
    return np.sort(secret_pairs(rng, n, most // 2), axis=None)
