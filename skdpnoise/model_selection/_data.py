"""The records of a search, read as compositions read X and estimators read y."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.arguments import check_data
from skdpnoise.data.columns import read_features
from skdpnoise.data.lists import read_once
from skdpnoise.data.missing import check_present
from skdpnoise.data.reading import Form
from skdpnoise.data.schema import Schema
from skdpnoise.data.sources import RowSource
from skdpnoise.data.table import InMemory
from skdpnoise.data.targets import labels_of_parts, read_labels, read_numbers

Records = dict[str, Any]
"""X and y of some records, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchRows(Form[Records, Schema]):
    """X in any form that steps take, and y as labels, which are public, or as numbers."""

    kind: type  # of the search
    labels: bool
    fewest: int = 4  # two to fit, one to score, one to learn the units of the target
    in_memory: bool = False

    def read(self, estimator: Any, tables: Records) -> tuple[InMemory[Records], Any]:
        """Return both, and the labels."""
        records = self(tables)
        n_rows = len(records["y"])
        if n_rows < self.fewest:
            raise ValueError(
                f"Found array with {n_rows} sample(s) while a minimum of {self.fewest} is required "
                f"by {self.kind.__name__}."
            )
        if isinstance(records["X"], list):  # of texts, say
            records["X"] = np.fromiter(records["X"], dtype=object, count=n_rows)
        return InMemory(records, n_rows), self._labels_in(records)

    def scan(self, estimator: Any, tables: Records) -> Any:
        """Return the labels of one batch."""
        check_present(self.kind.__name__, tables["y"])
        return self._labels_in(self(tables))

    def agreed(self, estimator: Any, found: list[Any], source: RowSource | None) -> Schema:
        """Return all labels that occur as the classes."""
        labels = labels_of_parts(self.kind.__name__, found) if self.labels else None
        return Schema(n_columns=0, n_rows=None, classes=labels)

    def load(
        self, schema: Schema, computed: frozenset[str]
    ) -> tuple[Callable[[Records], Records], tuple[int, ...]]:
        """Return what reads batches."""
        return self, ()

    def __call__(self, tables: Records) -> Records:
        """Return some records, checked."""
        owner = self.kind.__name__
        X, y = read_features(owner, tables["X"]), read_once(owner, tables["y"], name="y")
        n_rows = check_data(owner, X, y)
        if self.labels:
            return {"X": X, "y": read_labels(owner, y, n_rows)}
        return {"X": X, "y": read_numbers(object.__new__(self.kind), y, n_rows)}

    def _labels_in(self, records: Records) -> NDArray[Any] | None:
        return np.unique(records["y"]) if self.labels else None
