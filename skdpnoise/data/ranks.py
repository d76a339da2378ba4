"""How many values lie below a threshold: of a sorted array, or of rows in partitions."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DIGIT, _DIGITS = 16, 4  # bits of keys that one pass over rows tells apart, and passes in all
_BIN = (1 << _DIGIT) - 1


class Ranks(Protocol):
    """Values of which is asked how many are smaller."""

    @property
    def size(self) -> int: ...

    def below(self, keys: Integers) -> NDArray[np.int64]:
        """Return how many values are below each of ascending keys of `ordered`."""
        ...

    def distances(self, center: float) -> Ranks: ...


class SortedRanks:
    """Values that are sorted once."""

    def __init__(self, values: Floats) -> None:
        self._values = values  # sorted

    @classmethod
    def of(cls, values: Floats) -> SortedRanks:
        """Return the ranks of values in any order."""
        return cls(np.sort(values))

    @property
    def size(self) -> int:
        return self._values.size

    def below(self, keys: Integers) -> NDArray[np.int64]:
        return np.searchsorted(self._values, doubles(keys))

    def distances(self, center: float) -> SortedRanks:
        # In linear time: both sides are sorted.
        found = self._values - center
        np.abs(found, out=found)
        n_below = int(np.searchsorted(self._values, center))
        found[:n_below] = found[:n_below][::-1].copy()
        found.sort(kind="stable")
        return SortedRanks(found)


class CountedRanks:
    """Values in partitions: counts by the leading bits of their keys, and then by further ones."""

    # A search asks for one threshold after the other, each near the one before. A pass counts the
    # values that begin as the threshold does by their next 16 bits, so that four passes tell all
    # doubles apart, and what they counted answers what comes near.

    def __init__(self, values: Any) -> None:
        self._values = values  # a table of vectors
        # Digits that there are, and how often: of doubles near each other few.
        self._counted: dict[tuple[int, int], tuple[Integers, Integers]] = {}

    @property
    def size(self) -> int:
        return len(self._values)

    def below(self, keys: Integers) -> NDArray[np.int64]:
        if keys.size > 1:
            return np.asarray(self._values.total(partial(_cumulated, keys), "ranks"))
        return np.array([self._below(int(keys[0]) + (1 << 63))])

    def distances(self, center: float) -> CountedRanks:
        return CountedRanks(self._values.map(partial(_distances, center)))

    def _below(self, place: int) -> int:
        """Return how many values are below the key at a place among all keys."""
        count = 0
        for level in range(_DIGITS):
            shift = _DIGIT * (_DIGITS - 1 - level)
            start = place >> (shift + _DIGIT)
            if (level, start) not in self._counted:
                step = partial(_by_digit, level, start)
                counts = self._values.total(step, "ranks")
                there = np.flatnonzero(counts)
                self._counted[level, start] = there, counts[there]
            digits, counts = self._counted[level, start]
            count += int(counts[digits < ((place >> shift) & _BIN)].sum())
            if place & ((1 << shift) - 1) == 0:
                break
        return count


def _distances(center: float, values: Floats) -> Floats:
    return np.asarray(np.abs(values - center))


def _cumulated(keys: Integers, values: Floats) -> NDArray[np.int64]:
    """Return how many values are below each key."""
    places = np.searchsorted(keys, ordered(values), side="right")
    return np.asarray(np.cumsum(np.bincount(places, minlength=keys.size)[: keys.size]))


def _by_digit(level: int, start: int, values: Floats) -> NDArray[np.int64]:
    """Return how many values have each next digit, of those whose keys begin with some."""
    shift = _DIGIT * (_DIGITS - 1 - level)
    if level:  # few values are near; bits of an end that are no number leave out none
        first, last = start << (shift + _DIGIT), (start + 1 << (shift + _DIGIT)) - 1
        low, high = (real(place - (1 << 63)) for place in (first, last))
        values = values[~((values < low) | (values > high))]
    places = ordered(values).view(np.uint64) ^ np.uint64(1 << 63)
    if level:
        places = places[places >> np.uint64(shift + _DIGIT) == np.uint64(start)]
    digits = ((places >> np.uint64(shift)) & np.uint64(_BIN)).astype(np.intp)
    return np.bincount(digits, minlength=_BIN + 1)


def ordered(values: Floats) -> Integers:
    """Return integers in the order of the doubles: their bits, those of negative ones mirrored."""
    bits = np.asarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def real(key: int) -> float:
    """Return the double of an ordered integer."""
    return float(doubles(np.array([key], dtype=np.int64))[0])


def doubles(keys: Integers) -> Floats:
    """Return the doubles of ordered integers."""
    return np.where(keys < 0, np.int64(-(2**63)) - keys, keys).view(np.float64)
