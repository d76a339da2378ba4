"""Differences of secret pairs of the records that have a value, column by column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling.keyed import keyed_order

Integers = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class GapsOfPresent:
    """Integers that the differences of pairs count for; each column has a matching of its own.

    Reference: the proof of :func:`~skdpnoise.sensitivity.paired_histogram`, "Gaps".
    """

    step: Callable[..., Integers]  # of values of columns, which are differences here
    missing: float  # what stands for no value
    key: bytes

    def __call__(
        self,
        rows: NDArray[Any],
        places: NDArray[np.intp],
        columns: NDArray[np.intp],
        which: NDArray[np.intp],
    ) -> Integers:
        found = []
        for column, place in zip(columns.tolist(), which.tolist(), strict=True):
            values = rows[places, column]
            values = values[values != self.missing]
            order, half = keyed_order(self.key, place, values.size), values.size // 2
            with np.errstate(over="ignore"):  # a warning would tell of a single record
                gaps = values[order[:half]] - values[order[half : 2 * half]]
            one = np.array([0]), np.array([place])
            found.append(self.step(gaps[:, np.newaxis], None, *one))
        return np.concatenate(found)
