"""Random generators: streams of independent uniform 64-bit words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.context import keep_reserved

SEEDED = "NOT PRIVATE: random_state is set"
"""The first line of everything that states a guarantee which rests on a seed."""

HIDDEN_SEED = "a seed, which is not written down"
"""The note in place of a seed."""


@runtime_checkable
class RandomWords(Protocol):
    """A stream of independent words, each uniform on 0, ..., 2**64 - 1.

    The exact samplers turn such a stream into noise and use no other randomness.
    """

    @property
    def secure(self) -> bool:
        """True if nobody outside can predict or replay the words; a guarantee needs that."""
        ...

    def take(self, n: int) -> NDArray[np.uint64]:
        """Return the next `n` words of the stream, shape (n,)."""
        ...


class SystemWords:
    """Words from the operating system's cryptographic source, `os.urandom`.

    They are secure. Nothing is kept between calls: a forked process never repeats its parent's.

    Examples
    --------
    >>> SystemWords().take(3).shape
    (3,)
    """

    __slots__ = ()
    secure: ClassVar[bool] = True

    def take(self, n: int) -> NDArray[np.uint64]:
        """Return `n` >= 0 fresh words, an ndarray of uint64 that is read-only."""
        keep_reserved()
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SystemWords()"


class SeededWords:
    """A reproducible stream of words; **not secure**.

    Anyone who knows or guesses the seed can compute the same noise, subtract it, and read the
    private value. Meant for tests and for studies on public data.

    Parameters
    ----------
    seed : int or sequence of int
        Non-negative seed of numpy's Philox generator (Salmon et al. 2011), whose stream of raw
        words is fixed by numpy's compatibility policy.

    References
    ----------
    Salmon, Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".

    Examples
    --------
    >>> bool((SeededWords(7).take(5) == SeededWords(7).take(5)).all())
    True
    """

    __slots__ = ("_source",)
    secure: ClassVar[bool] = False

    def __init__(self, seed: int | Sequence[int]) -> None:
        self._source = np.random.Philox(seed)

    def take(self, n: int) -> NDArray[np.uint64]:
        """Return the next `n` >= 0 words of the stream, an ndarray of uint64."""
        keep_reserved()
        return np.asarray(self._source.random_raw(n), dtype=np.uint64)

    def __repr__(self) -> str:
        # The seed is left out on purpose: a printed seed is a published seed.
        return "SeededWords(<seed not shown>)"


def is_seeded(random_state: object = None) -> bool:
    """Return whether somebody could know, guess or replay the words of a `random_state`.

    It is False for None and for a `RandomWords` that is secure, True for all else. Nothing is
    sampled: a generator does not advance.

    Parameters
    ----------
    random_state : None, int, numpy RandomState, numpy Generator or RandomWords, default=None
        As in :func:`random_words`.

    Examples
    --------
    >>> is_seeded(None), is_seeded(SystemWords()), is_seeded(0), is_seeded(SeededWords(0))
    (False, False, True, True)
    """
    if isinstance(random_state, RandomWords) and not isinstance(random_state, type):
        return not random_state.secure
    return random_state is not None


def with_caveat(text: str, *, secure: bool, end: str = "\n") -> str:
    """Return a text that states a guarantee, after a warning if that rests on a seed."""
    return text if secure else f"{SEEDED}{end}{text}"
