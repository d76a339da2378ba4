"""What the samplers of rounded noise share: their result, and the check of its precision."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

MAX_BITS = 52

Shape = int | tuple[int, ...]


def new_draws(size: Shape, bits: int) -> tuple[NDArray[np.int64], int]:
    """Return an empty contiguous array of shape `size` and the checked number of binary places."""
    if not isinstance(bits, Integral) or isinstance(bits, bool):
        raise TypeError(f"The 'bits' parameter must be an int, got {bits!r}.")
    if not 0 <= bits <= MAX_BITS:
        raise ValueError(
            f"The 'bits' parameter must be an int in the range [0, {MAX_BITS}], got {bits!r}."
        )
    return np.empty(size, dtype=np.int64), int(bits)
