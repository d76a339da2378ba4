"""What the samplers of rounded noise share: their result, and the check of its precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy.checks import check_count

MAX_BITS = 52

Shape = int | tuple[int, ...]


def new_draws(size: Shape, bits: int) -> tuple[NDArray[np.int64], int]:
    """Return an empty contiguous array of shape `size` and the checked number of binary places."""
    bits = check_count("sample_rounded", "bits", bits, low=0, high=MAX_BITS)
    return np.empty(size, dtype=np.int64), bits
