"""Solvers, their plans, and the final steps after their passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from skdpnoise.accounting.session import Session
from skdpnoise.data.table import Table
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._records import (
    LinearProblem,
    LinearSchema,
    LinearTarget,
    Rows,
    Settings,
)
from skdpnoise.linear_model._standard_units import plain_units


@dataclass(frozen=True, slots=True, eq=False)
class SolverPlan(ABC):
    """All that is fixed before passes use the rows, of which it holds none."""

    solver: ClassVar[str]  # its name
    problem: LinearProblem  # in the units of the passes
    n_samples: float  # divisor of sums: the number of records, public or released
    n_passes: int
    final: tuple[Any, ...] = field(default=(), kw_only=True)  # steps, in this order

    @abstractmethod
    def run(self, table: Table[Rows], session: Session) -> Iterator[np.ndarray]:
        """Yield the iterate of every pass in standard units, shape (n_outputs, n_features + 1)."""

    @abstractmethod
    def average(self, path: np.ndarray) -> np.ndarray:
        """Return the model of all iterates: post-processing, so free."""


class Solver(Protocol):
    """Plans how a problem is solved, by public facts and released numbers."""

    name: ClassVar[str]

    def check(self, settings: Settings, schema: LinearSchema, budget: FitBudget) -> None:
        """Raise what planning would raise, before anything is spent."""
        ...

    def plan(self, problem: LinearProblem, n_samples: float, budget: FitBudget) -> SolverPlan:
        """Return the plan for so many records, a public or a released number."""
        ...


def made_up_problem(settings: Settings, schema: LinearSchema) -> LinearProblem:
    """Return a problem whose columns are in standard units, to plan before anything is known."""
    features = replace(plain_units(schema.n_columns), groups=schema.column_groups)
    scaling = None if schema.target_bounds is None else plain_units(1)
    return LinearProblem(
        settings, schema, features, LinearTarget(np.zeros(schema.n_outputs), scaling)
    )
