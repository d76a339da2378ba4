"""A run on a neighbour with the same released numbers: what must the noise make up for?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skdpnoise.inspection import Transcript
from skdpnoise.inspection.auditing._costs import Moved, moved
from skdpnoise.inspection.auditing._fingerprint import differences


class Replayed(NamedTuple):
    """What two runs returned and handed to their noise."""

    first: Any
    second: Any
    here: Transcript
    there: Transcript

    @property
    def moved(self) -> list[Moved]:
        """What each mechanism's noise had to make up for; the two runs did the same."""
        assert self.there.diverged is None
        assert len(self.here.meetings) == len(self.there.meetings)
        return moved(self.here, self.there)

    def check_same(self) -> None:
        """The same released numbers give the same result, to the last bit."""
        assert differences(self.first, self.second) == []


def two_runs(run: Any, data: Any, other: Any, seed: int) -> Replayed:
    """Run on a data set, and on its neighbour with the released numbers of the first.

    The neighbour may lack the last records. Secret orders are drawn jointly.
    """
    here = Transcript(seed)
    first = here.watch(run, *data)
    there = Transcript(seed, earlier=here)
    return Replayed(first, there.watch(run, *other), here, there)


class Ordered(Transcript):
    """Matches the records by an order that is given."""

    def __init__(self, order: Any) -> None:
        super().__init__()
        self._given = np.array(order)

    def order(self, n: int) -> Any:
        """Return that order."""
        assert n == self._given.size
        return self._given
