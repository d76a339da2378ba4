"""How many values lie below a threshold: the same of a sorted array and of rows in parts."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.data import scan_batches
from skdpnoise.data.table import looked_at
from skdpnoise.queries._ranks import ordered, ranked
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
    spread = looked_at(len, y=source).map(of_y)
    with np.errstate(over="ignore"):
        beside = [np.nextafter(VALUES, end) for end in (-np.inf, np.inf)]
    thresholds = np.unique(np.concatenate([VALUES, *beside]))
    clipped = np.clip(values, low, high)
    expected = (clipped < thresholds[:, np.newaxis]).sum(axis=1)
    keys = ordered(thresholds)
    for ranks in (ranked(values, low, high), ranked(spread, low, high)):
        np.testing.assert_array_equal(ranks.below(keys), expected)
        found = [int(ranks.below(keys[k : k + 1])[0]) for k in range(keys.size)]
        np.testing.assert_array_equal(found, expected)
