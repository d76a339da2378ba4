"""The features of a search, read as compositions read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdpnoise.data.columns import check_data, read_features
from skdpnoise.data.reading import Form
from skdpnoise.data.schema import Schema
from skdpnoise.data.sources import RowSource
from skdpnoise.data.table import InMemory

FEWEST = 4  # rows: two to fit, one to score, one to learn the units of the target

Records = dict[str, Any]
"""X and y of some records, by name."""


@dataclass(frozen=True, slots=True)
class StepColumns(Form[Any, Schema]):
    """X in any form that steps take, beside a y of as many rows."""

    fewest: int = FEWEST

    def read(self, estimator: Any, tables: Records) -> tuple[InMemory[Any], Schema]:
        owner = type(estimator).__name__
        X = read_features(owner, tables["X"])
        n_rows = check_data(owner, X, tables["y"])
        if n_rows < self.fewest:
            raise ValueError(
                f"Found array with {n_rows} sample(s) while a minimum of {self.fewest} is required "
                f"by {owner}."
            )
        if isinstance(X, list):  # of texts, say
            X = np.fromiter(X, dtype=object, count=n_rows)
        return InMemory(X, n_rows), Schema(n_columns=0, n_rows=None)

    def scan(self, estimator: Any, tables: Records) -> Schema:
        return replace(self, fewest=0).read(estimator, tables)[1]

    def agreed(self, estimator: Any, found: list[Schema], source: RowSource | None) -> Schema:
        return found[0]

    def load(
        self, schema: Schema, computed: frozenset[str]
    ) -> tuple[Callable[[Records], Any], tuple[int, ...]]:
        return _features, ()


def _features(tables: Records) -> Any:
    return read_features("A fit", tables["X"])
