"""All that is public of a table before anything is spent: what planners get, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Public facts of the rows of one fit: no row, and nothing that can reach one."""

    n_columns: int
    n_rows: int | None  # that the fit uses; None where their number is private
    names: tuple[str, ...] | None = None
    dtype: str = "<f8"
    sparse: bool = False
    bounds: NDArray[np.float64] | None = None  # (2, n_columns), infinite where there are none
    column_groups: NDArray[np.intp] | None = None  # number of each column's group; -1 for none
    classes: NDArray[Any] | None = None  # the labels, sorted; None of a target of numbers
    target_bounds: NDArray[np.float64] | None = None  # (2, 1), of a target of numbers
    n_outputs: int = 1  # functions that are fitted
    row_shape: tuple[int, ...] = ()  # of rows that are arrays, such as images

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return what all batches of rows must agree on."""
        return self.n_columns, self.names
