"""What a network is trained on: private rows, whose they are, and the units they are put into."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.groups import GroupedRows
from skdpnoise.sampling import RandomWords

__all__ = ["Data", "Scaling", "Target", "members_of"]

_BLOCK = 1024  # rows that are put into these units at once
LIMIT = 3.0  # standard deviations, to which what has no bounds is clipped


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """From the user's units to those of the network."""

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    limit: float  # in units of the scale

    def __call__(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Return values in units of the network, clipped, each by itself."""
        found = np.empty(values.shape, dtype=np.float32)
        for begin in range(0, len(values), _BLOCK):
            some = slice(begin, begin + _BLOCK)
            with np.errstate(all="ignore"):
                standard = (values[some].astype(np.float64) - self.center) / self.scale
            found[some] = np.clip(standard, -self.limit, self.limit)
        return found

    def back(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return predictions in the user's units."""
        return np.asarray(self.center + self.scale * values.astype(np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The target of every row, and what is public of it."""

    values: NDArray[Any]  # codes of classes, or numbers
    n_outputs: int
    bounds: NDArray[np.float64] | None  # (2, 1); None for classes
    attributes: dict[str, Any]

    def alike(self, n_rows: int) -> Target:
        """Return a target of zeros of this kind."""
        return replace(self, values=np.zeros(n_rows, dtype=self.values.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The private data of one fit, read and checked."""

    X: NDArray[Any]  # (n_rows, ...)
    target: Target
    rows: GroupedRows
    bounds: NDArray[np.float64] | None  # (2, n_columns); None where rows go in as they are

    @property
    def n_people(self) -> int:
        """Number of people, or of rows where each stands for itself."""
        codes = self.rows.codes
        return self.rows.n_rows if codes is None else int(codes.max(initial=-1)) + 1

    @property
    def opens(self) -> bool:
        """Whether some columns have no public bounds."""
        return self.bounds is not None and not bool(np.isfinite(self.bounds).all())


def members_of(rows: GroupedRows, rng: RandomWords) -> NDArray[np.intp]:
    """Return the rows of each person that are used, shape (n_people, rows_per_group), or -1."""
    if rows.codes is None:
        return np.arange(rows.n_rows)[:, np.newaxis]
    (kept,) = rows.keep(rng, np.arange(rows.n_rows))
    codes = rows.codes[kept]
    order = np.argsort(codes, kind="stable")
    codes, kept = codes[order], kept[order]
    members = np.full((int(codes.max()) + 1, rows.most), -1)
    members[codes, np.arange(codes.size) - np.searchsorted(codes, codes)] = kept
    return members
