"""Words of a test, for coins that are coupled between two fits."""

from __future__ import annotations

import numpy as np


class Fixed:
    """Words that are what they are told to be."""

    secure = False

    def __init__(self, words):
        self.words = np.asarray(words, dtype=np.uint64)

    def take(self, n):
        found, self.words = self.words[:n], self.words[n:]
        return found
