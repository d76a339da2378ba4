"""From a ``random_state`` to a random generator."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from skdpnoise.sampling.observer import current
from skdpnoise.sampling.words import RandomWords, SeededWords, SystemWords

_SEED_WORDS = 4


def random_words(random_state: object = None) -> RandomWords:
    """Turn scikit-learn's `random_state` into a stream of random words.

    Parameters
    ----------
    random_state : None, int, numpy RandomState, numpy Generator or RandomWords, default=None
        None is the operating system's source (`SystemWords`), the only choice under which a
        privacy guarantee holds against everyone. A non-negative integer gives the same
        `SeededWords` every time; a bool is refused. A numpy generator seeds fresh `SeededWords` and
        advances, so that repeated use gives different noise. `RandomWords` come back unchanged.

    Examples
    --------
    >>> random_words(None).secure, random_words(0).secure
    (True, False)
    """
    observer = current()
    if observer is not None and not isinstance(random_state, RandomWords):
        return observer.rng()
    if random_state is None:
        return SystemWords()
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(
                f"The 'random_state' parameter must be a non-negative int, got {random_state!r}."
            )
        return SeededWords(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        seeds = random_state.randint(0, 2**32, size=_SEED_WORDS, dtype=np.uint64)
        return SeededWords([int(seed) for seed in seeds])
    if isinstance(random_state, np.random.Generator):
        seeds = random_state.integers(0, 2**32, size=_SEED_WORDS, dtype=np.uint64)
        return SeededWords([int(seed) for seed in seeds])
    if isinstance(random_state, RandomWords) and not isinstance(random_state, type):
        return random_state
    raise TypeError(
        "The 'random_state' parameter must be None (secure noise from the operating system), a "
        "non-negative int, a numpy RandomState, a numpy Generator or a RandomWords, got an "
        f"instance of {type(random_state).__name__!r}."
    )
