"""States that passes keep with a partition of the rows, and make anew if they are lost.

A state is a function of the rows and of what was released so far. It is kept where the part was
read last, in the memory of that process, and in files without a name if it is large. Whoever asks
for it again, in another process or after a fault, makes it anew: it is a matter of time, never of
bits.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.context import change, context
from skdpnoise.data.sizes import BUFFER, KEPT


def new_token() -> str:
    """Return a name that no other fit has.

    Examples
    --------
    >>> new_token() == new_token()
    False
    """
    import uuid

    return uuid.uuid4().hex


def at(part: int, begin: int, n_rows: int) -> None:
    """Say which rows are read now: of which part, beginning where, and how many."""
    change(place=(part, begin, n_rows))


class PartitionCache:
    """The states of the fits that this process worked for last, by their tokens."""

    def __init__(self) -> None:
        self.fits: OrderedDict[str, dict[Any, Any]] = OrderedDict()
        self._lock = Lock()

    def state(self, token: str, name: Any, make: Callable[[], Any]) -> Any:
        """Return what was kept with the rows that are read now, or what a function makes."""
        with self._lock:
            kept = self.fits.setdefault(token, {})
            self.fits.move_to_end(token)
            while len(self.fits) > KEPT:
                self.fits.popitem(last=False)
        key = name, context().place
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def forget(self, token: str) -> None:
        with self._lock:
            self.fits.pop(token, None)


cache = PartitionCache()
"""That of this process: tasks find it by importing it."""


def scratch(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that can be written to: in a file without a name, if it is large."""
    if values.nbytes < BUFFER:
        return values.copy()
    with tempfile.TemporaryFile() as file:
        copy = np.memmap(file, dtype=values.dtype, mode="w+", shape=values.shape)
    copy[:] = values
    return np.asarray(copy)
