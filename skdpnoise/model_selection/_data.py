"""The data of a search, read as compositions read X and estimators read y."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from skdpnoise.compose.columns import read_features
from skdpnoise.compose.data import check_data
from skdpnoise.compose.lists import read_once
from skdpnoise.estimators.seal import silence
from skdpnoise.estimators.targets import read_labels, read_numbers
from skdpnoise.model_selection._splits import Coins
from skdpnoise.queries.groups import GroupedRows, group_codes
from skdpnoise.sampling import RandomWords

_FEWEST = 4  # rows: two to fit, one to score, one to learn the units of the target

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class WholeRecords:
    """Records in memory, of which parts are told by the numbers of their rows."""

    X: Any
    y: NDArray[Any]
    labels: NDArray[Any] | None  # all labels of a classifier, sorted: public
    groups: Any  # a label for each row; None where each row is its own
    known: GroupedRows
    kept: Rows  # rows that are used of their groups

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None where each row is its own."""
        return self.known.n_groups

    def __len__(self) -> int:
        return len(self.y)

    def scattered(self, coins: Coins) -> list[Rows]:
        """Return the rows of each part."""
        codes = self.known.codes
        places = (
            coins.of_numbers(0, len(self)) if codes is None else coins.of_labels(self.groups, codes)
        )[self.kept]
        return [self.kept[places == place] for place in range(coins.n_places)]

    def all(self) -> Rows:
        """Return all rows that are used."""
        return self.kept

    def none(self) -> Rows:
        """Return no rows."""
        return self.kept[:0]

    def union(self, *parts: Rows) -> Rows:
        """Return the rows of several parts."""
        return np.unique(np.concatenate(parts))

    def of(self, rows: Rows) -> tuple[Any, NDArray[Any]]:
        """Return rows in memory of their own: a step may write into what it is given."""
        X = _safe_indexing(self.X, rows)
        return X if isinstance(X, np.ndarray) else deepcopy(X), self.y[rows]

    def target(self, rows: Rows) -> NDArray[Any]:
        """Return the target of rows."""
        return self.y[rows]

    def total(
        self, rows: Rows, step: Callable[[tuple[Any, NDArray[Any]]], NDArray[Any]], label: str
    ) -> NDArray[Any]:
        """Return the integers that a function makes of rows."""
        return step(self.of(rows))

    def joined(
        self,
        rows: Rows,
        take: Callable[[tuple[Any, NDArray[Any]], int], NDArray[Any]],
        finish: Callable[[list[NDArray[Any]]], Any],
        label: str,
    ) -> Any:
        """Return what a second function makes of what a first one makes of rows."""
        return finish([take(self.of(rows), 0)])


def read_records(
    search: Any, X: Any, y: Any, groups: Any, rng: RandomWords, *, classifier: bool
) -> WholeRecords:
    """Check the data of a search, and choose the rows that are used of groups with too many."""
    owner = type(search).__name__
    X, y = read_features(owner, X), read_once(owner, y)
    n_rows = check_data(owner, X, y)
    if n_rows < _FEWEST:
        raise ValueError(
            f"Found array with {n_rows} sample(s) while a minimum of {_FEWEST} is required by "
            f"{owner}."
        )
    y = read_labels(owner, y, n_rows) if classifier else read_numbers(search, y, n_rows)
    with silence():
        codes = None if groups is None else group_codes(f"{owner}.fit", groups, n_rows)
    known = GroupedRows(codes, int(search.rows_per_group), n_rows)
    (kept,) = known.keep(rng, np.arange(n_rows))
    return WholeRecords(X, y, np.unique(y) if classifier else None, groups, known, kept)
