"""The rows of each person, and the units that networks take rows in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.groups import Groups
from skdpnoise.data.table import InMemory
from skdpnoise.sampling import RandomWords

_BLOCK = 1024  # rows that are put into these units at once


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """From the user's units to those of the network."""

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    limit: float  # in units of the scale
    shift: NDArray[np.float64] | float = 0.0  # of what is clipped

    def __call__(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Return values in units of the network, clipped, each by itself."""
        found = np.empty(values.shape, dtype=np.float32)
        for begin in range(0, len(values), _BLOCK):
            some = slice(begin, begin + _BLOCK)
            with np.errstate(all="ignore"):
                standard = (values[some].astype(np.float64) - self.center) / self.scale
            found[some] = np.clip(standard, -self.limit, self.limit) + self.shift
        return found

    def back(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.center + self.scale * values.astype(np.float64))


def members_of(rows: Groups[Any], rng: RandomWords) -> NDArray[np.intp]:
    """Return the rows of each person that are used, shape (n_people, rows_per_group), or -1."""
    if rows.codes is None:
        return np.arange(rows.rows.n_rows)[:, np.newaxis]
    numbers: Any = replace(rows, rows=InMemory.of(np.arange(rows.rows.n_rows))).kept(rng).rows
    kept = numbers.leaf
    codes = rows.codes[kept]
    order = np.argsort(codes, kind="stable")
    codes, kept = codes[order], kept[order]
    members = np.full((int(codes.max()) + 1, rows.most), -1)
    members[codes, np.arange(codes.size) - np.searchsorted(codes, codes)] = kept
    return members
