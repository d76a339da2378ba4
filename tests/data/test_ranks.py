"""How many values lie below a threshold: the same of a sorted array and of partitions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from skdpnoise.data import scan_batches
from skdpnoise.data.ranks import SortedRanks, ordered
from skdpnoise.data.table import InMemory, scan_tables
from tests._cases import each_value

TINY, LARGEST = np.nextafter(0.0, 1.0), np.finfo(np.float64).max
ENDS = np.array([0.0, -0.0, TINY, -TINY, 2.0**-1022, 1.0, -1.0, LARGEST, -LARGEST, np.inf, -np.inf])
VALUES = np.concatenate([ENDS, ENDS, np.random.default_rng(0).normal(size=50), np.repeat(0.5, 9)])


def of_y(tables):
    return tables["y"]


@each_value(1)
@pytest.mark.parametrize("low", [-np.inf, -1.0, 0.0])
@pytest.mark.parametrize("high", [np.inf, 1.0])
def test_all_values_and_one_ulp_beside_them_are_told_apart(low, high):
    source = scan_batches([lambda: [VALUES[:7], VALUES[7:]], lambda: [VALUES]])
    values = np.concatenate([VALUES, VALUES])
    partitions = scan_tables(len, y=source).map(of_y)
    with np.errstate(over="ignore"):
        beside = [np.nextafter(VALUES, end) for end in (-np.inf, np.inf)]
    thresholds = np.unique(np.concatenate([VALUES, *beside]))
    clipped = np.clip(values, low, high)
    expected = (clipped < thresholds[:, np.newaxis]).sum(axis=1)
    keys = ordered(thresholds)
    for table in (InMemory.of(values), partitions):
        ranks = table.map(partial(np.clip, a_min=low, a_max=high)).ranked()
        np.testing.assert_array_equal(ranks.below(keys), expected)
        found = [int(ranks.below(keys[k : k + 1])[0]) for k in range(keys.size)]
        np.testing.assert_array_equal(found, expected)


@each_value(1)
@pytest.mark.parametrize("center", [-9.0, -1.0, 0.0, 0.3, 2.0, 9.0])
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_distances_of_sorted_values_are_sorted(center, n):
    rng = np.random.default_rng(n)
    for values in (rng.normal(size=n), rng.integers(-3, 3, n).astype(float)):
        expected = np.sort(np.abs(values - center))
        assert SortedRanks.of(values).distances(center)._values.tobytes() == expected.tobytes()
